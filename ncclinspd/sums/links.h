/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SUMS_LINKS_H
#define NCCLINSPD_SUMS_LINKS_H

/*
 * Network transfers -> figures of each link: what one rank of a communicator sent to
 * (or received from) one peer on one channel.  Lately, and since the link was first
 * used.  Memory is fixed: the link that was idle for longest makes room, of the user
 * with most.
 *
 * What a link's time went into, with the states of nci_ev_proxy_sums:
 *
 *     first start, of a send: first data                       last stop
 *        ├─────────────────────── active ───────────────────────┤
 *        │ nothing is ready │ ready, none on the wire │ on the wire │
 *        └───── idle ───────┴───────── held ──────────┴─── busy ────┘
 *
 * Steps overlap, so the sums of their states say nothing about that; unions do.  These
 * three parts lie mixed, but add up.
 */

#include "ncclinspd/sums/fit.h"
#include "reader/base/model.h"

/*		 name       text  */
#define LINKS_WINDOWS(X)	\
	X(60S, "60s")		\
	X(ALL, "all")

enum links_window {
#define X(NAME, text) LINKS_##NAME,
	LINKS_WINDOWS(X)
#undef X
	LINKS_WINDOW_END
};

extern const char *const links_windows[];	/* texts by enum links_window, then NULL */

/* States of a step, in their order, see nci_ev_proxy_sums. */
#define LINKS_STATES 3

struct links_sums {
	uint64_t ops;		/* ProxyOps that have stopped */
	uint64_t steps;		/* steps of these ops; in a row UNKNOWN_U64 instead of 0 */
	uint64_t bytes;		/* the same */
	/* the ones that told their states; the rest is theirs, in a row UNKNOWN_U64 for 0 */
	uint64_t timed_steps;
	uint64_t timed_bytes;
	uint64_t state_ns[LINKS_STATES];	/* sum over the steps */
	uint64_t longest_ns[LINKS_STATES];	/* the longest of one step */
	uint64_t active_ns, held_ns, busy_ns;	/* see above; idle is the rest */
	uint64_t repeats;	/* steps posted again, because the peer had no room yet */
	struct fit fit;		/* sends that found the wire idle; the last member */
};

/* The process that sent or received, and its peer. */
struct links_who {
	uint64_t process_id;	/* process whose communicator it is */
	pid_t pid;
	uid_t uid;
	bool has_comm_id;
	uint64_t comm_id;
	name_t comm_name;	/* NULL: none */
	int32_t nranks;
	int32_t rank;
	int32_t peer;		/* UNKNOWN_I32: not told */
	uint32_t comm_index;
	uint32_t channel;
	bool send;
	pid_t proxy_pid;	/* process that carried it out: with PXN another one */
};

struct links_row {
	enum links_window window;
	uint64_t window_ns;	/* time that the figures cover */
	struct links_who who;
	uint32_t channels;	/* channels in this row; of several, who.channel is any of them */
	struct links_sums sums;
	double rate_gbs;	/* sends: bytes over the time that the wire was busy; < 0 */
	double trend;		/* rate of the last minute over that before it; < 0 */
	/*
	 * Time for which data was ready, and waited for the peer or moved slower than on
	 * the communicator's median link; UNKNOWN_U64: not known, or no send.  Of several
	 * channels: the longest.
	 */
	uint64_t excess_ns;
};

/* Zero means the default. */
struct links_limits {
	uint32_t links;		/* 4096 */
	uint64_t seed;
};

struct links_stats {
	uint32_t links;		/* links in use */
	uint64_t added;		/* ProxyOps taken in */
	uint64_t refused;	/* sums that cannot be true, left out */
	uint64_t evicted;	/* links thrown out for new ones, with their totals */
	uint64_t bytes;		/* memory reserved; what is touched is less */
};

struct links_query {
	uint32_t windows;	/* bits: 1 << enum links_window */
	bool together;		/* all channels of a link in one row: sums and rates are added */
	bool all_users;
	uid_t uid;		/* unless all_users */
	/*
	 * Called now and then on the way, so that thousands of links need not be looked
	 * at in one go; links_add() may be called from it.  NULL: never.
	 */
	void (*meanwhile)(void *arg);
	void *meanwhile_arg;
};

struct links;

/* A peer, a channel and a direction are not set: they are UNKNOWN_I32 and 0. */
void links_set_who(struct links_who *who, const struct process *issuer,
		   const struct process *executor, uint32_t comm_index, name_t comm_name);

/* Returns 0 or -ENOMEM.  `limits` may be NULL. */
int links_new(struct links **lp, const struct links_limits *limits, uint64_t now_ns);
void links_free(struct links *l);

void links_add(struct links *l, const struct transfers *t, uint64_t now_ns);

/*
 * The part that the last links_add() brought, as a row of its own: without rate_gbs and
 * excess_ns, and sums.fit is left as it was.
 */
void links_last(const struct links *l, struct links_row *row);

/*
 * Visit the rows, window after window, in each the one with the most excess first, then
 * what has none by the time spent waiting, as of this moment: what is added from
 * `meanwhile` waits until the last was visited.  A row is valid during its visit; `visit`
 * returns false for -ENOMEM.  Returns the number of rows visited, -ENOMEM, or -EAGAIN:
 * more was added than can wait, ask again without `meanwhile`.
 */
typedef bool links_row_fn(const struct links_row *row, void *arg);
int links_visit(struct links *l, const struct links_query *query, uint64_t now_ns,
		links_row_fn *visit, void *arg);

/*
 * The limit of the link, the largest of the three parts of its active time:
 *
 *            idle                  held                 busy
 *   send     "gpu": no data        "peer": no room      "net"
 *   receive  NULL: the sender or   NULL: the flush      "gpu": does not take
 *            the network, which    (to the GPU)         the data
 *            only its side can tell
 *
 * NULL: cannot be told.
 */
const char *links_bound(const struct links_row *row);

/* The line through its sends that found the wire idle, if it is credible. */
enum fit_outcome links_line(const struct links_row *row, struct fit_line *line);

const struct links_stats *links_stats(const struct links *l);

#endif
