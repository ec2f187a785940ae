/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_TIME_TICKS_H
#define READER_TIME_TICKS_H

/*
 * The length of a tick of this machine's counter in CLOCK_MONOTONIC, kept up to date from
 * pairs of both that the caller reads about once a second.  The rate is taken over the last
 * minute, so that it follows the kernel's own slewing.
 */

#include "reader/base/model.h"

#define TICKS_PAIRS	64

struct ticks_pair {
	uint64_t ticks;
	uint64_t mono_ns;
};

struct ticks {
	struct tick_clock clock;	/* ready after two pairs */
	struct ticks_pair pair[TICKS_PAIRS];
	uint32_t count, next;
	uint32_t restarts;		/* the counter jumped: suspend, migration */
};

/* The hardware counter of this machine, NCI_CLOCK_*; MONOTONIC: it has none we know. */
uint32_t ticks_hardware(void);

/* Read one pair, as close together as this thread can get them. */
void ticks_read(uint32_t kind, struct ticks_pair *pair);

/* The hardware counter, calibrated over a first TICKS_START_NS, in which the caller waits. */
#define TICKS_START_NS	UINT64_C(5000000)
void ticks_start(struct ticks *t);

void ticks_init(struct ticks *t, uint32_t kind);
void ticks_observe(struct ticks *t, const struct ticks_pair *pair);

/* Read and observe one pair. */
void ticks_look(struct ticks *t);

/*
 * The pair contradicts the calibration: the counter jumped, as it does when a machine was
 * suspended or moved.  A machine sleeps for longer than the time between two calibrations:
 * ticks_watch(), called before each read of records, observes a pair that tells of that, so
 * that records made since are not placed before it.
 */
void ticks_watch(struct ticks *t);
bool ticks_jumped(const struct ticks *t, const struct ticks_pair *now);

/*
 * A rate that was taken over moments is microseconds off per second of the past.  A
 * process that has been there for longer knows a pair of its begin: as long as its rate
 * is the better one, and does not contradict ours, what it has told lies between its
 * begin and now.
 */
void ticks_reach_back(struct tick_clock *clock, const struct ticks_pair *first);

/* The place of CLOCK_MONOTONIC `mono_ns` on the counter. */
uint64_t ticks_at(const struct tick_clock *clock, uint64_t mono_ns);

#endif
