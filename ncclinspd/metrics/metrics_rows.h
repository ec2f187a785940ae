/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_METRICS_METRICS_ROWS_H
#define NCCLINSPD_METRICS_METRICS_ROWS_H

/*
 * Rows of series: a row is one set of labels, with its values, each of which is one or more
 * series.  The families that the values belong to, and their text, are those of
 * schema/metrics.schema.
 */

#include "ncclinspd/base/finding.h"
#include "ncclinspd/metrics/exposition.h"
#include "ncclinspd/metrics/metrics.h"
#include "ncclinspd/otlp/otlp.h"
#include "reader/base/accounts.h"
#include "tables/keyed.h"

/*		 kind     what its labels are, beside the user's and the job's */
#define METRICS_KINDS(X)						\
	X(NODE)		/* nor these: the node itself */		\
	X(JOB)		/* - */						\
	X(MEMBER)	/* rank, GPU: a process */			\
	X(FINDING)	/* comm, comm_id, rank, kind, verdict, grade */	\
	X(ROLE)		/* comm: all communicators of that name */	\
	X(RANK)		/* comm, comm_id, rank, GPU */			\
	X(OP)		/* comm, comm_id, rank, GPU, op */		\
	X(INSIDE)	/* comm, comm_id, rank, GPU */			\
	X(WAITING)	/* comm, comm_id, rank, GPU */			\
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
enum {
	NODE_INFO, NODE_CPU, NODE_USED, NODE_LIMIT, NODE_LEFT_OUT, NODE_REFUSED,
	NODE_FOUND,		/* one for each kind */
	NODE_SUSPECTED = NODE_FOUND + FINDING_KIND_END,
	NODE_PUSHED = NODE_SUSPECTED + FINDING_KIND_END,	/* one for each signal, too */
	NODE_UNPUSHED = NODE_PUSHED + OTLP_SIGNAL_END,
	METRICS_VALUES = NODE_UNPUSHED + OTLP_SIGNAL_END,	/* the most that any row has */
};
enum { JOB_LIVE, JOB_CLEAN, JOB_UNKNOWN };
enum {
	MEMBER_INFO, MEMBER_RECORDS,
	MEMBER_DROPPED,		/* METRICS_REASON_END of them */
	MEMBER_CALLBACK = MEMBER_DROPPED + METRICS_REASON_END,	/* one for each thread class */
	MEMBER_OVERHEAD = MEMBER_CALLBACK + NCI_THREAD_CLASSES,
	MEMBER_BUDGET, MEMBER_LEVEL, MEMBER_ITERATION, MEMBER_NCCL, MEMBER_EXPOSED,
	/* send: produce, credit, wire; receive: recv_wait, flush, consume */
	MEMBER_STEP,
	MEMBER_MOVED = MEMBER_STEP + 6,	/* sent, received */
};
enum { FINDING_ACTIVE };
enum { ROLE_STALL, ROLE_DESYNC };
enum { RANK_INFO, RANK_INFLIGHT, RANK_OLDEST };
enum { OP_OPS, OP_BYTES, OP_SEQUENCE };
enum { INSIDE_OPS, INSIDE_TIME };
enum { WAITING_WAIT, WAITING_BLAME, WAITING_JUDGED, WAITING_LAST };
enum { PEER_BYTES, PEER_RATE, PEER_LATENCY };
enum {
	TIME_BUCKET,		/* METRICS_BOUNDS of them, and the one for the rest */
	TIME_SUM = TIME_BUCKET + METRICS_BOUNDS + 1,
	TIME_BUSBW, TIME_WAITFREE,
};
_Static_assert(MEMBER_MOVED + 2 <= METRICS_VALUES && TIME_WAITFREE + 0 < METRICS_VALUES,
	       "no room in a row");

/* Compared and hashed as bytes: zeroed, no padding. */
struct metrics_labels {
	uint32_t kind;
	uid_t uid;		/* METRICS_NOBODY: what found no room */
	char job[64];		/* "": not known */
	char comm[40];
	uint64_t comm_id;
	name_t op, algo, proto;	/* a finding has its kind, verdict and grade here */
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

#define METRICS_INFOS	11
struct metrics_row {
	struct keyed_head head;
	struct metrics_labels labels;
	struct pool_link link;	/* place in the list of its kind */
	uint64_t used_ns;
	double v[METRICS_VALUES];	/* NaN: not known, not written */
	uint32_t lately;	/* item of its pool, for kind TIME */
	char info[METRICS_INFOS][128];	/* values of labels that a family alone has (FACTS) */
};

struct metrics_rows {
	char host[256];
	bool fleet;			/* the profile: else full */
	uint32_t cost[METRICS_KIND_END];	/* series of a row, of the profile's families */
	const struct accounts *accounts;
	struct keyed table;		/* rows by labels */
	struct pool lately;
	struct pool_list kind[METRICS_KIND_END];
	uint64_t generation;		/* grows when a row goes, in the fleet profile also when
					   one comes */
	uint64_t looked_ns;		/* time of the last look that is complete, 0: none: all
					   jobs that live had their rows in use then */
	bool wanting;			/* somebody found no room */
	uint64_t scarce_until_ns;	/* a rank found no room a moment ago: fleet profile */
	uint64_t evict_ns;		/* not looked for room before */
	uint64_t shared_until_ns;	/* nobody gets more than a fair share before */
	struct accounts_tally of_account;	/* series */
	uint32_t reserved;		/* series that are kept free */
	uint32_t series;		/* series of the rows that are kept */
	uint32_t limit;
	uint64_t refused;		/* times that labels found no room */
};

static inline struct metrics_row *metrics_row_at(const struct metrics_rows *t, uint32_t row)
{
	return row == POOL_NONE ? NULL : keyed_at(&t->table, row);
}

/* Returns 0 or -ENOMEM; a zeroed one may be deinitialised. */
int metrics_rows_init(struct metrics_rows *t, const struct metrics_config *config);
void metrics_rows_deinit(struct metrics_rows *t);

/*
 * Row numbers; POOL_NONE where there is no room, not even for what found none, and where the
 * profile has no family of that kind.
 */
uint32_t metrics_row(struct metrics_rows *t, const struct metrics_labels *labels,
		     uint64_t now_ns);

/* The row of these labels if there is one: nothing goes for it, and it is not in use by that. */
uint32_t metrics_row_known(const struct metrics_rows *t, const struct metrics_labels *labels);

/* Is there no room for what was never used?  Asked in the fleet profile alone. */
static inline bool metrics_rows_are_scarce(const struct metrics_rows *t, uint64_t now_ns)
{
	return t->fleet && now_ns < t->scarce_until_ns;
}

/* Drop what had no use for an hour, and where somebody found no room what is of ended jobs. */
void metrics_rows_expire(struct metrics_rows *t, uint64_t now_ns);

/* All gauges and infos become unknown. */
void metrics_rows_reset(struct metrics_rows *t);

/* The labels of a finding, of a process's job, of a process, of a communicator of it (not NULL). */
void metrics_finding_labels(struct metrics_labels *l, const struct finding *f);
void metrics_job_labels(struct metrics_labels *l, const struct process *p);
void metrics_member_labels(struct metrics_labels *l, const struct process *p);
void metrics_comm_labels(struct metrics_labels *l, enum metrics_kind kind,
			 const struct process *p, const struct comm *comm);

/* Short role of a communicator: its name up to a separator, else 12 digits of its id. */
void metrics_comm_text(char text[40], const char *name, bool has_id, uint64_t id);

/* All rows that `uid` may see, or everything, as text; of the node's row the rest its version. */
void metrics_rows_write(const struct metrics_rows *t, struct exposition *e,
			const struct metrics_row *node, bool all, uid_t uid, uint64_t now_ns);

#endif
