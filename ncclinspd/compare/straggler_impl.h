/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_COMPARE_STRAGGLER_IMPL_H
#define NCCLINSPD_COMPARE_STRAGGLER_IMPL_H

/*
 * Types that three files share: straggler.c takes operations in, straggler_root.c finds
 * whose lateness it was, straggler_judge.c decides at the end of each window.
 *
 *     bucket   what is usual for one function, size and algorithm of a communicator
 *     unit     one function of a communicator: its ranks (seats) and windows
 *     joint    one operation, kept for a while in a ring
 *     track    the joints of one GPU, in order
 *     member   what one rank of one communicator came to since the start
 */

#include "ncclinspd/compare/straggler.h"
#include "reader/base/pool.h"
#include "tables/rolling.h"

#define WINDOWS		4
#define BASES		8	/* windows whose c* counts */
#define JOINTS		4096
#define TRACK_JOINTS	1024	/* more than settle late, and some that were before */
#define MEMBER_UNITS	4	/* functions of which ranks are compared: see ops.c */
#define NOBODY		UINT32_MAX

struct bucket {
	struct pool_link link;	/* all, least recently used first */
	uint64_t key;
	uint64_t window;	/* the window that `added` is of */
	uint32_t added;
	uint32_t nbases;
	uint64_t base_ns[BASES];	/* c* of earlier windows, a ring */
	struct rolling spread, tail, shortest;
};

struct tally {
	uint64_t last, bursts;	/* operations: it was last; ... and it was a burst */
	uint64_t late_ns;	/* sum over what was judged */
	uint64_t blame_ns, burst_ns;
	uint64_t burst_most_ns;	/* cost of the costliest burst */
	uint64_t moved_ns;	/* blame from elsewhere, not in blame_ns */
};

struct window {
	uint64_t wall_ns;	/* 0: still open */
	uint64_t ops, judged, bursts;
	uint64_t rated;		/* operations whose c* was known */
	uint64_t slow;		/* rated ones that took all ranks here over 1.3 c* */
	uint64_t slow_ns;	/* sum over these: the shortest time inside beyond c* */
	uint64_t tail_ns;	/* sum over what was judged */
	struct tally tally[OP_RANKS];
};

/* One grade per window, two bits each: 0, 1 (over half of each limit), 2 (over all). */
struct trial {
	uint8_t grades;		/* the newest lowest */
	bool flagged;
	uint64_t since_ns;
};

struct seat {
	struct straggler_part part;	/* its part in its newest operation */
	uint32_t track;
	uint32_t member;
	struct trial steady, intermittent;
};

struct unit {
	struct pool_link link;	/* all, least recently used first */
	uint64_t key;
	uint64_t comm;
	name_t func;
	int32_t nranks;
	uint32_t nseats;
	uint32_t current;	/* window */
	struct seat seat[OP_RANKS];
	struct window window[WINDOWS];
	struct trial elsewhere, slower;
};

struct joint_part {
	uint32_t track;
	uint32_t seat;
	uint64_t gpu;
	uint64_t start;
	uint64_t inside_ns;
	uint64_t wait_ns;
	uint64_t late_ns;
};

struct joint {
	uint64_t id;		/* 1, 2, ...; at id % JOINTS */
	uint64_t seen_ns;
	uint64_t comm;
	uint64_t unit_key;
	uint32_t unit;
	uint32_t n;
	uint32_t first, last;	/* places in part[]; last NOBODY: it is elsewhere */
	bool whole;		/* all ranks that are here told of it: which ones waited is known */
	bool judged, burst;
	bool rated, slow;	/* counted as such in struct window */
	uint64_t slow_ns;
	uint64_t blame_ns;
	uint64_t tail_ns;
	struct joint_part part[OP_RANKS];
};

struct track {
	struct pool_link link;	/* all, least recently used first */
	uint64_t key;		/* key of the GPU */
	uint32_t next;
	struct {
		uint64_t start, id;
	} ring[TRACK_JOINTS];
};

struct member {
	struct pool_link link;	/* all, least recently used first */
	uint64_t key;
	struct straggler_sums sums;
	uint32_t nunits;
	uint64_t unit_key[MEMBER_UNITS];
};

/* Items with a key, the least recently used of which makes room. */
struct store {
	struct pool pool;
	struct index index;
	struct pool_list lru;
};

struct straggler {
	uint64_t window_ns;
	uint64_t seed;
	uint64_t opened_ns;	/* the window that is open */
	uint64_t turned_ns;	/* the last turn */
	uint64_t windows;	/* ended since the start */
	struct store buckets, units, tracks, members;
	struct joint *joints;
	uint64_t last_id;	/* given out, and */
	uint64_t settled_id;	/* settled */
};

static inline struct unit *unit_at(const struct straggler *s, uint32_t item)
{
	return pool_at(&s->units.pool, item);
}

static inline struct track *track_at(const struct straggler *s, uint32_t item)
{
	return pool_at(&s->tracks.pool, item);
}

static inline struct member *member_at(const struct straggler *s, uint32_t item)
{
	return pool_at(&s->members.pool, item);
}

/* The rank of one process in one communicator, as a key. */
uint64_t straggler_member_key(const struct straggler *s, uint64_t process_id,
			      uint32_t comm_index);

/* Find the rank whose doing it was, and add it to the windows. */
void straggler_settle(struct straggler *s, const struct joint *joint);

/* The window that is open ends. */
void straggler_close(struct straggler *s, uint64_t now_ns);

#endif
