/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_METRICS_METRICS_IMPL_H
#define NCCLINSPD_METRICS_METRICS_IMPL_H

/*
 * The structs and functions that the stage's files share: metrics.c keeps rows and takes in
 * what finishes, metrics_rows.c finds room for them, metrics_look.c and metrics_comms.c look
 * at everything once a second, metrics_write.c has the table of families and writes them.
 *
 * A row is one set of labels, with its values, each of which is one or more series.
 */

#include "ncclinspd/compare/straggler.h"
#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/metrics/exposition.h"
#include "ncclinspd/metrics/metrics.h"
#include "reader/base/accounts.h"
#include "tables/keyed.h"

/*		 kind     what its labels are, beside the user's and the job's */
#define METRICS_KINDS(X)						\
	X(JOB)		/* - */						\
	X(MEMBER)	/* rank, GPU: a process */			\
	X(ROLE)		/* comm: all communicators of that name */	\
	X(COMM)		/* comm, comm_id */				\
	X(RANK)		/* comm, rank, GPU */				\
	X(OP)		/* comm, rank, GPU, op */			\
	X(INSIDE)	/* comm, comm_id, rank, GPU */	\
	X(PEER)		/* comm, rank, GPU, peer rank, direction */	\
	X(TIME)		/* comm, op, size class, algorithm, protocol, source */

enum metrics_kind {
#define X(NAME) METRICS_##NAME,
	METRICS_KINDS(X)
#undef X
	METRICS_KIND_END
};

/* 10 us, 20 us, ... 84 s, and the rest. */
#define METRICS_BOUNDS		24
#define METRICS_FIRST_BOUND_NS	10000

/* Dropped, by reason; the texts are the label's. */
#define METRICS_REASONS(X)			\
	X(RING_FULL,      "ring_full")		\
	X(SLOT_EXHAUSTED, "slot_exhausted")	\
	X(BEFORE,         "before")		\
	X(REJECTED,       "rejected")		\
	X(UNMATCHED,      "unmatched")		\
	X(BAD_CLOCK,      "bad_clock")		\
	X(FUSED,          "fused")

enum metrics_reason {
#define X(NAME, text) METRICS_REASON_##NAME,
	METRICS_REASONS(X)
#undef X
	METRICS_REASON_END
};

/* The place of each value in a row of its kind. */
enum { JOB_LIVE, JOB_CLEAN, JOB_UNKNOWN };
enum {
	MEMBER_INFO, MEMBER_RECORDS,
	MEMBER_DROPPED,		/* METRICS_REASON_END of them */
	MEMBER_CALLBACK = MEMBER_DROPPED + METRICS_REASON_END,	/* one for each thread class */
	MEMBER_OVERHEAD = MEMBER_CALLBACK + NCI_THREAD_CLASSES,
	MEMBER_BUDGET, MEMBER_LEVEL,
	/* send: produce, credit, wire; receive: recv_wait, flush, consume */
	MEMBER_STEP,
	MEMBER_MOVED = MEMBER_STEP + 6,	/* sent, received */
};
enum { ROLE_STALL, ROLE_DESYNC };
enum { COMM_INFO };
enum { RANK_WAIT, RANK_BLAME, RANK_JUDGED, RANK_LAST, RANK_INFLIGHT, RANK_OLDEST };
enum { OP_OPS, OP_BYTES, OP_SEQUENCE };
enum { INSIDE_OPS, INSIDE_TIME };
enum { PEER_BYTES, PEER_RATE, PEER_LATENCY };
enum {
	TIME_BUCKET,		/* METRICS_BOUNDS of them, and the one for the rest */
	TIME_SUM = TIME_BUCKET + METRICS_BOUNDS + 1,
	TIME_BUSBW, TIME_WAITFREE,
	METRICS_VALUES,		/* the most that any row has */
};
_Static_assert(MEMBER_MOVED + 2 <= METRICS_VALUES, "no room in a row");

/* Compared and hashed as bytes: zeroed, no padding. */
struct metrics_labels {
	uint32_t kind;
	uid_t uid;		/* METRICS_NOBODY: what found no room */
	char job[64];		/* "": not known */
	char comm[40];
	uint64_t comm_id;
	name_t op, algo, proto;
	uint64_t size_class;	/* the most bytes that belong to it; 0: not known */
	uint32_t source;	/* enum timing_source */
	int32_t rank;		/* UNKNOWN_I32 */
	uint8_t gpu[16];	/* all 0: not known */
	int32_t peer;		/* rank of the other end, for kind PEER */
	uint32_t receives;
};
_Static_assert(sizeof(struct metrics_labels) == 184, "padding would be compared");

#define METRICS_NOBODY	((uid_t)-1)
#define METRICS_OTHER	"other"

/* The newest bandwidths of a TIME row: what its gauges are the medians of. */
#define METRICS_LATELY	32
struct metrics_lately {
	struct {
		uint32_t n;	/* ever */
		uint64_t at_ns[METRICS_LATELY];
		double rate[METRICS_LATELY];	/* bytes per second */
	} of[2];		/* bandwidths as they were; those of ranks that waited for nobody */
};

#define METRICS_INFOS	7
struct metrics_row {
	struct keyed_head head;
	struct metrics_labels labels;
	struct pool_link link;	/* place in the list of its kind */
	uint64_t used_ns;
	double v[METRICS_VALUES];	/* NaN: not known, not written */
	uint32_t lately;	/* item of its pool, for kind TIME */
	char info[METRICS_INFOS][128];	/* values of the info's labels, if it has an info */
};

/* The values last seen of a process, for what grows by differences. */
struct metrics_seen {
	struct keyed_head head;
	uint64_t process_id;
	uint32_t member;	/* its row, or POOL_NONE ... */
	uint64_t generation;	/* ... known at this generation; 0: never looked for */
	double records;
	double dropped[METRICS_REASON_END];
	double callback_s[NCI_THREAD_CLASSES];
	struct metrics_comm *comms;	/* the rows of its communicators ... */
	uint32_t ncomms;		/* ... so many of them */
};

/* The same of one communicator of a process. */
struct metrics_waited_key {
	uint64_t process_id;
	uint64_t comm_index;
};

struct metrics_waited {
	struct keyed_head head;
	struct metrics_waited_key key;
	struct straggler_sums sums;
};

#define METRICS_CACHE	4096

/* The rows that an operation belongs to. */
struct metrics_cached {
	uint64_t process_id;
	name_t func, algo, proto;
	uint64_t size_class;
	uint32_t comm_index;
	uint32_t source;
	int32_t rank;
	bool inside;		/* it tells ranks apart */
	uint32_t op, time, member, within;	/* rows, or POOL_NONE */
	uint64_t generation;	/* the stage's when they were looked for; 0: empty */
};

struct metrics_stats {
	uint32_t series;	/* series of the rows that are kept */
	uint32_t limit;
	uint64_t refused;	/* times that labels found no room */
};

struct metrics {
	struct metrics_config config;
	struct metrics_source source;
	char host[256];
	struct keyed rows;		/* by labels */
	struct keyed seen;		/* by process */
	struct keyed waited;		/* by process and communicator */
	struct pool lately;
	struct pool_list kind[METRICS_KIND_END];	/* rows */
	struct metrics_cached *cache;	/* METRICS_CACHE of them */
	uint64_t generation;		/* grows when a row goes */
	uint64_t evict_ns;		/* not looked for room before */
	uint64_t shared_until_ns;	/* nobody gets more than a fair share before */
	struct accounts_tally of_account;	/* series */
	uint64_t look_ns;		/* time of the look that is under way */
	uint32_t findings[FINDING_GRADE_END][FINDING_KIND_END];	/* active */
	uint32_t reserved;		/* series that are kept free */
	struct metrics_stats stats;
};

static inline struct metrics_row *metrics_row_at(const struct metrics *m, uint32_t row)
{
	return row == POOL_NONE ? NULL : keyed_at(&m->rows, row);
}

/* The number of series that a row of this kind is. */
uint32_t metrics_cost(enum metrics_kind kind);

/* The number of series that are kept free: the node's, and a row of each kind. */
uint32_t metrics_reserved(void);

/* Row numbers; POOL_NONE where there is no room, not even for what found none. */
uint32_t metrics_row(struct metrics *m, const struct metrics_labels *labels, uint64_t now_ns);

/* Drop what had no use for an hour. */
void metrics_expire(struct metrics *m, uint64_t now_ns);

/* The labels of a process's job, of a process, of a communicator of it (not NULL). */
void metrics_job_labels(struct metrics_labels *l, const struct process *p);
void metrics_member_labels(struct metrics_labels *l, const struct process *p);
void metrics_comm_labels(struct metrics_labels *l, enum metrics_kind kind,
			 const struct process *p, const struct comm *comm);

/* Short role of a communicator: its name up to a separator, else 12 digits of its id. */
void metrics_comm_text(char text[40], const char *name, bool has_id, uint64_t id);

/* The row of kind MEMBER of a process; POOL_NONE: it is gone, or there is no room. */
uint32_t metrics_member(struct metrics *m, uint64_t process_id, uint64_t now_ns);

const struct process *metrics_process(const struct metrics *m, uint64_t id);

/* The gauges of a link over the last minute; `arg` is the struct metrics.  True. */
bool metrics_see_link(const struct links_row *link, void *arg);

/* The communicators of a process, at a look.  `seen` may be NULL. */
void metrics_see_comms(struct metrics *m, struct metrics_seen *seen, const struct process *p,
		       uint64_t now_ns);

/* The row of kind RANK of one of them, by that look or else by its labels; or NULL. */
struct metrics_row *metrics_comm_row(struct metrics *m, const struct metrics_seen *seen,
				     const struct process *p, uint32_t index, uint64_t now_ns);
void metrics_forget_comms(struct metrics *m, const struct process *p);
void metrics_seen_deinit(struct metrics_seen *seen);

/* All gauges and infos of a row become unknown. */
void metrics_reset_gauges(struct metrics_row *row);

#endif
