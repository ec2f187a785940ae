/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_READ_DRAIN_H
#define READER_READ_DRAIN_H

/*
 * Reads all lanes of all segments in batches, decodes what is new and hands it
 * on, and accounts for what was lost.  It decides how often: often enough that
 * no lane fills past a quarter between two polls, and no oftener.
 */

#include "reader/base/model.h"
#include "reader/read/segment.h"

struct drain;

/* Takes the checked events.  `event` is gone after the call. */
typedef void drain_sink(void *arg, struct process *p, const struct event *event,
			uint64_t now_ns);

/* `ticks` is the machine's calibrated counter; it outlives the drain. */
int drain_new(struct drain **out, const struct tick_clock *ticks, drain_sink *sink, void *arg);
void drain_free(struct drain *drain);

/* Polls the segment from now on.  It stays the caller's; -ENOMEM, -ENOSPC. */
int drain_add(struct drain *drain, struct segment *seg);
void drain_remove(struct drain *drain, struct segment *seg);

/* Poll every segment once, and say when to poll again (CLOCK_MONOTONIC). */
uint64_t drain_poll(struct drain *drain, uint64_t now_ns);

/* The writer is gone: take all that is left, and what was in flight (p->last_slots). */
void drain_finish(struct drain *drain, struct segment *seg);

/*
 * Copies what is in flight in a live process now: returns how many, or a negative errno
 * (-EPROTO: it lies); *slots holds until the next call.  Each has passed decode_slot().
 */
int drain_slots(struct drain *drain, struct process *p, const struct live_slot **slots);

/*
 * The threads of that kind in a live process, by their numbers in its pid namespace, as far as
 * they have written anything and still own their lane: how many, at most `max`.
 */
uint32_t drain_threads(struct drain *drain, struct process *p, enum segment_thread kind,
		       pid_t *tids, uint32_t max);

/* Sums over all that was ever drained. */
struct drain_totals {
	uint64_t records;
	uint64_t bytes;
	uint64_t lost;		/* overrun, pool and lane: events that nobody will ever see */
	uint64_t before;	/* records overwritten before we came */
	uint64_t rejected;	/* records that decode refused */
	uint64_t unknown;	/* records of a type this daemon does not know */
	uint64_t poll_interval_ns;
};

void drain_sum(const struct drain *drain, struct drain_totals *out);

#endif
