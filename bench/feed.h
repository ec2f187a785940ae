/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_FEED_H
#define BENCH_FEED_H

/*
 * Events as drain hands them on, made off the clock, and the daemon's pure stages
 * behind them, joined as its main() joins them:
 *
 *     feed_run -> reconstruct -> ranks -> aggregate, oplog, diagnose
 *                                ranks -> straggler
 *                             -> links
 *
 * FEED_PROCESSES processes, each with one rank of each of so many communicators.  A
 * tick is a nanosecond.  What cannot be had ends the program.
 */

#include "ncclinspd/compare/ranks.h"
#include "ncclinspd/compare/straggler.h"
#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/sums/aggregate.h"
#include "ncclinspd/sums/links.h"
#include "ncclinspd/sums/oplog.h"
#include "reader/join/reconstruct.h"

#define FEED_PROCESSES	8
#define FEED_STRINGS	7

/* One operation's records: a call, a head, its launch, and so many children. */
struct feed_mix {
	const char *name;
	uint32_t channels;
	uint32_t proxies;
	uint32_t sizes;		/* a communicator's operations have so many */
};

struct feed {
	struct feed_mix mix;
	uint32_t ncomms;
	uint64_t processes;		/* made so far */
	struct names *names;
	struct reconstruct *reconstruct;
	struct ranks *ranks;
	struct straggler *straggler;
	struct aggregate *aggregate;
	struct links *links;
	struct oplog *oplog;
	struct diagnose *diagnose;
	struct process process[FEED_PROCESSES];
	struct process *list[FEED_PROCESSES];
	name_t strings[FEED_STRINGS];
	struct nci_slot *records;	/* made and not yet fed */
	uint32_t nrecords, room;
	uint64_t ops;			/* finished */
};

/* `room` operations can be made before they are fed. */
void feed_open(struct feed *f, const struct feed_mix *mix, uint32_t ncomms, uint32_t room);
void feed_close(struct feed *f);

/* All processes end and are forgotten, and others come in their place. */
void feed_restart(struct feed *f, uint64_t now_ns);

/* Make the records of each process's nth operation; its communicators take turns. */
void feed_make(struct feed *f, uint64_t nth);

/* When the nth operation is posted. */
static inline uint64_t feed_time_ns(uint64_t nth)
{
	return 1000000000 + nth * 100000;
}

/* Feed what was made to one process, lane after lane as drain does, and look after it. */
void feed_run(struct feed *f, uint32_t process, uint64_t now_ns);

#endif
