/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_HANG_H
#define JUDGE_HANG_H

/*
 * Why does an operation not end?  A decision from what each rank that can be seen has
 * posted and waits for: pure functions of rows, whoever made them.  The daemon makes them
 * of the processes of its node, `ncclinsp report` of the snapshots of many nodes.
 *
 *     *list_append(&h.ranks) = ..    each rank, with hang_rank_see() of its operations
 *     hang_ready(&h)                 room for all that follows
 *     hang_find(&h)                  groups of one communicator; the oldest operation of each
 *     *list_append(&h.rows) = ..     what is in flight, where a group's is too old
 *     hang_take_rows(&h)
 *     hang_place(&h)                 where each rank stands with its group's operation
 *     hang_decide(..)                the verdict on one group
 *     hang_say(..)                   the verdict in words
 *
 *     somebody is dead                       RANK_DEAD
 *     somebody has not come:
 *         is stopped                         STOPPED
 *         with another function here         ORDER_MISMATCH
 *         and is nowhere else                NOT_JOINED
 *         but may be in its last call, where
 *         all have halted, unwatched         UNKNOWN, if nobody else has not come
 *         but waits on another communicator  follow it; a circle: COMM_DEADLOCK
 *     somebody's GPU has not begun it, and is
 *     in something older elsewhere:          the same
 *     nothing tells that it has, and so on:  the same, if that is a circle
 *     all are there:
 *         other arguments                    METADATA_MISMATCH
 *         other algorithm                    CONFIG_MISMATCH
 *         somebody is stopped                STOPPED
 *         else follow who waits for whom to a rank that waits for nobody:
 *         its network                        LINK
 *         its GPU                            GPU_STUCK, NOT_RUNNING (that only where
 *                                            a kernel would have been told of)
 *         its GPU, or one of its node that
 *         this one passes data on to         GPU_STUCK, one of these
 *         nobody such, a receiver waits for
 *         a sender that has no room there    NO_ROOM
 *         nobody such, some are done         PARTIAL
 *         a circle                           INTERNAL
 *         a rank that is not seen here       UNKNOWN, unless hang_hear() knows which:
 *             its process gives no answer    NO_ANSWER
 *             it has not come                NOT_JOINED
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "judge/afar.h"
#include "judge/nic.h"
#include "judge/xid.h"
#include "util/list.h"
#include "util/unknown.h"
#include "util/words.h"

#define HANG_RANKS	32
#define HANG_CIRCLE	8
#define HANG_NONE	UINT32_MAX
#define HANG_FUNCS	12
#define HANG_CALLS	8

/* ---- rows ------------------------------------------------------------------------ */

/* One operation in flight, or a part of one: a kernel's channel, a transfer. */
struct hang_row {
	uint64_t key;		/* key of its rank */
	int32_t rank;		/* UNKNOWN_I32 */
	uint64_t token;
	name_t type;		/* text of nccl_event_name() */
	bool is_op;		/* false: a part of one, and func and seq are the operation's */
	bool is_p2p;
	name_t comm_name;
	name_t func;
	uint64_t seq;		/* UNKNOWN_U64: it has none */
	uint64_t bytes, count;	/* UNKNOWN_U64 */
	name_t datatype, algo, proto;
	int32_t root, peer;	/* UNKNOWN_I32 */
	uint32_t channels;	/* 0: not known */
	uint64_t enqueued_ns;	/* when it was posted; 0: not known */
	int32_t kernel_started, kernel_stopped;	/* channels; UNKNOWN_I32: nobody tells */
	uint32_t proxy_steps;
	uint64_t limit_ns;	/* the age from which it hangs; UNKNOWN_U64 */
	name_t state, direction;
	int32_t channel, step, steps;	/* UNKNOWN_I32 */
};

/* A collective as the application called it. */
struct hang_call {
	name_t func, datatype;
	uint64_t count;
	int32_t root;		/* UNKNOWN_I32 */
	uint64_t at_ns;		/* when; 0: not known */
};

/* A process that the kernel lets run no further, by a signal or for a debugger. */
struct hang_halt {
	bool stopped;
	int32_t tracer;		/* the debugger's pid; 0: none */
	char tracer_name[16];
};

/* One rank of one communicator. */
struct hang_rank {
	/* ranks are of one communicator if all of these agree; without an id each stands alone */
	bool has_id;
	uint64_t id;
	int32_t nranks;
	uint64_t user;
	const char *name;	/* "": none */

	uint64_t key;		/* tells it from all others, and whose rows are whose */
	int32_t rank;
	uint64_t process;	/* a number of its process */
	int32_t pid;
	int32_t world_rank;	/* UNKNOWN_I32 */
	const char *pci_bus_id;	/* its GPU's, and gpu_index; NULL or "": not told */
	int32_t gpu_index;
	const char *host;	/* NULL: not told */
	uint64_t gpu;		/* a number of its GPU; 0: not told */
	const void *owner;	/* the caller's own */
	uint64_t seen_ns;	/* nothing later is known of it */
	bool ended;		/* its process has, and it had not left */
	struct hang_halt halt;
	bool counts;		/* `last` is all that it has posted */
	bool counts_calls;	/* `calls` are all that it has made */
	bool may_be_silenced;	/* its recording can be switched off from outside */
	uint64_t last_op_ns;	/* when it last posted anything; 0: never */
	bool last_unwatched;	/* nothing tells the end of that */
	uint32_t nlast;
	struct hang_last {
		name_t func;
		uint64_t seq;	/* newest posted */
	} last[HANG_FUNCS];
	uint64_t calls;		/* calls of collectives */
	struct hang_call call[HANG_CALLS];	/* the newest, the last one at the end */

	/* set by hang_rank_see() */
	bool has_oldest;
	struct hang_row oldest;	/* the oldest of its operations in flight */
	bool has_p2p;		/* sends or receives are in flight */
	bool p2p_has_kernel;	/* kernels are told of for these */

	/* set by hang_find() and hang_place() */
	uint32_t group;
	const struct hang_row *rows;	/* its own, by token */
	size_t nrows;
	bool p2p_has_begun;	/* the GPU has come to its sends and receives */
	const struct hang_row *op;	/* the group's operation as this rank has it, or NULL */
	const struct hang_row *transfer; /* the one that tells most, or NULL */
};

/* A communicator: its ranks, [first, first + n) of all. */
struct hang_group {
	uint32_t first, n;
	uint32_t job;		/* the same for groups that share processes, also through others */
	uint64_t job_last_ns;	/* when the job posted last anything; kept in the group `job` */
	bool has_op;
	/*
	 * The oldest in flight of its live ranks; of two that were called in another
	 * order, what more ranks called first.  If there is none: the oldest that
	 * some have posted and others have not (only func and seq are known then), with
	 * the time since when none of them has posted anything.
	 */
	struct hang_row op;
	bool unwatched;			/* `op` is the latter: its end is not watched */
	bool by_calls;			/* `op` is the call of a collective that not all have
					   made, or that they made unlike each other, or before
					   and after one of another communicator */
	uint64_t call;			/* number of that call on its communicator, from 0 */
	uint64_t least_ns;		/* a rank seen sooner after `op` than that may still come */
};

/* ---- where each rank stands ------------------------------------------------------- */

/* The thing that a rank's most telling transfer waits for. */
enum hang_wait {
	WAIT_NONE,	/* no transfer is in flight */
	WAIT_PRODUCE,	/* its own GPU has no data yet */
	WAIT_CREDIT,	/* the receiver, `peer`, has no room */
	WAIT_RECV,	/* the sender, `peer`, has sent nothing */
	WAIT_CONSUME,	/* its own GPU does not take what has come */
	WAIT_FLUSH,	/* the way from the NIC into its own GPU */
	WAIT_WIRE,	/* the network to `peer` */
};

/* One rank, and the operation in question. */
struct hang_standing {
	int32_t rank;
	uint64_t process;	/* a number of its process */
	bool ended;		/* its process, without having left the communicator */
	bool stopped;		/* its process is */
	bool posted;		/* it has made the call */
	bool done;		/* the operation is over on this rank */
	bool wants_kernel;	/* KernelCh is told */
	uint32_t kernel_started; /* channels */
	enum hang_wait wait;
	int32_t peer;		/* UNKNOWN_I32 */
	int32_t step;		/* step of that transfer; UNKNOWN_I32 */
	const char *host;	/* NULL: not told */
	bool passes_on;		/* what it receives, its GPU passes on within the node */
	/* The transfer furthest behind, of those that wait for room at a receiver or for data. */
	struct hang_wait_for {
		int32_t peer;	/* UNKNOWN_I32: there is none */
		int32_t step;
	} room, data;
	/* the call, where it is in flight */
	uint64_t count;		/* UNKNOWN_U64 */
	name_t datatype, algo, proto;	/* NULL: not known */
	int32_t root;		/* UNKNOWN_I32 */
	uint32_t channels;	/* 0: not known */
	/* if it has not made the call, or its GPU has not begun it */
	name_t other_func;	/* called on this communicator, and not posted by the others */
	uint32_t elsewhere;	/* the communicator that it waits on instead, or HANG_NONE */
	bool may_be_away;	/* nothing tells that its GPU has begun it, and elsewhere is set */
	bool may_wait;		/* it has not come, and may be inside its last call elsewhere */
};

/* The others wait for it: it has not come, or its GPU is busy on another communicator. */
static inline bool hang_is_away(const struct hang_standing *r)
{
	if (r->ended || r->done)
		return false;
	return !r->posted ||
	       (r->wants_kernel && !r->kernel_started && r->elsewhere != HANG_NONE);
}

/* It is inside, and nothing tells that its GPU has begun: no kernel, no transfer. */
bool hang_has_not_begun(const struct hang_standing *r);

/* One communicator with an operation in flight. */
struct hang_comm {
	int32_t nranks;		/* ranks that take part, on all nodes; UNKNOWN_I32 */
	const struct hang_standing *ranks;	/* ranks that are seen, and take part */
	uint32_t n;
};

struct hang_input {
	const struct hang_comm *comms;
	uint32_t n;
};

struct hang_verdict {
	enum verdict verdict;
	uint32_t comm;		/* the communicator with the cause */
	int32_t ranks[HANG_RANKS];
	uint32_t nranks;
	/* UNKNOWN_I32; LINK's, NO_ROOM's sender, or the rank elsewhere that is waited for */
	int32_t peer;
	name_t field;		/* the argument in METADATA_MISMATCH and CONFIG_MISMATCH */
	name_t other_func;	/* the other function of ORDER_MISMATCH */
	uint32_t circle[HANG_CIRCLE];	/* communicators of COMM_DEADLOCK */
	uint32_t ncircle;
	bool one_of;		/* one of these ranks: nothing tells which */
	bool remote;		/* the cause lies, or may lie, on a node that is not seen */
	bool may_wait;		/* UNKNOWN: these have not come, and may wait elsewhere */
	bool heard;		/* hang_hear() named `ranks` */
};

/* It is away, or nothing tells that it is not. */
static inline bool hang_may_be_away(const struct hang_standing *r)
{
	return hang_is_away(r) || r->may_be_away;
}

/* True if the rank of circle[place] waits in the next one instead. */
static inline bool hang_leads_on(const struct hang_verdict *v, uint32_t place,
				 const struct hang_standing *r)
{
	return hang_may_be_away(r) && r->elsewhere == v->circle[(place + 1) % v->ncircle];
}

void hang_decide(const struct hang_input *in, uint32_t comm, struct hang_verdict *out);

/* It is certain from the rows alone: no time has to pass, and nothing else explains it. */
bool hang_is_proven(enum verdict verdict);

/* ---- the whole -------------------------------------------------------------------- */

struct hang {
	LIST(struct hang_rank) ranks;
	LIST(struct hang_group) groups;
	LIST(struct hang_row) rows;
	LIST(struct hang_standing) standings;
	struct hang_comm *comms;	/* one for each group */
	const struct hang_rank **by_process;	/* all ranks, by the numbers of process and group */
	uint64_t now_ns;
	uint32_t most;		/* ranks of one communicator that are compared; 0: all */
	uint32_t nodes;		/* nodes that are looked at, as the words say */
	/*
	 * An operation whose seq is known: is it in flight on that rank?  Asked before the
	 * rows are there; NULL: they are there from the beginning.
	 */
	bool (*is_open)(void *arg, const struct hang_rank *r, const struct hang_row *op);
	void *arg;
};

/* Room for what is made of the ranks, once all of them are there.  0 or -ENOMEM. */
int hang_ready(struct hang *h);
void hang_deinit(struct hang *h);

/* One operation in flight of that rank, in any order. */
void hang_rank_see(struct hang_rank *r, const struct hang_row *op);

/* Gives each rank its rows, once all of them are there. */
void hang_take_rows(struct hang *h);

/* The groups, the largest first, with their ranks in order, and what is oldest in each. */
void hang_find(struct hang *h);

/* Finds where each rank stands with its group's operation, when it has its rows. */
void hang_place(struct hang *h);

/* The ranks of a process, by their groups.  Set by hang_find(). */
struct hang_own {
	const struct hang_rank *const *at;
	uint32_t n;
};

struct hang_own hang_own(const struct hang *h, uint64_t process);

static inline struct hang_input hang_input(const struct hang *h)
{
	return (struct hang_input){ h->comms, h->groups.n };
}

/* The number that its next operation of that function will have. */
uint64_t hang_next_seq(const struct hang_rank *r, name_t func);

/* The newest number of that function on that communicator; UNKNOWN_U64: none. */
uint64_t hang_last_seq(const struct hang_rank *r, name_t func);

/*
 * Did the rank call something else first, that the ranks in the group's operation have
 * yet to do?
 */
bool hang_is_swapped(const struct hang *h, const struct hang_rank *r);

/* The rank's call of that number, if it is one of its newest; NULL: it is not, or not made. */
const struct hang_call *hang_call(const struct hang_rank *r, uint64_t number);

/*
 * Did all ranks of the group fall silent within a second, where NCCL's RAS can have them
 * do so?  The operations that each has posted say nothing then.
 */
bool hang_may_be_silenced(const struct hang *h, const struct hang_group *g);

/* The time since which no rank of the group has posted anything. */
uint64_t hang_quiet_since(const struct hang *h, const struct hang_group *g);

/* The thing that a transfer waits for; WAIT_NONE: it is a kernel or an operation, or NULL. */
enum hang_wait hang_row_wait(const struct hang_row *row);

/* Is this row of the operation in question, of that rank? */
bool hang_is_of(const struct hang_row *row, const struct hang_rank *r);

/* ---- words ------------------------------------------------------------------------ */

/* An operation that hangs, and why. */
struct hang_case {
	const struct hang *hang;
	uint32_t group;			/* the group whose operation is too old */
	struct hang_verdict verdict;	/* verdict.comm: the group with the cause */
	uint64_t age_ns;
	uint64_t limit_ns;		/* UNKNOWN_U64 */
	uint64_t critical_ns;		/* the age until which it is a warning; 0: it is none */
	const struct afar *afar;	/* NCCL's RAS on the cause; NULL: not told */
	struct xid xid;			/* the driver's error on a GPU of it; number 0: none */
	int32_t xid_rank;		/* the rank of that GPU */
	struct nic_cause nic;		/* LINK: an interface of this node that fails */
};

/* Nothing here shows the cause, and there are ranks that are not seen: RAS may know more. */
bool hang_lies_afar(const struct hang_case *c);

/* The verdict on the ranks that `afar` names, where hang_lies_afar(). */
void hang_hear(struct hang_case *c);

/* Is the verdict RAS's, and its ranks elsewhere? */
static inline bool hang_is_heard(const struct hang_case *c)
{
	return c->afar && c->verdict.heard;
}

/* A rank that is alive and has not come may be busy: no alarm before so long, if not told else. */
#define HANG_NOT_JOINED_NS	UINT64_C(300000000000)

/* Has a rank not come? */
static inline bool hang_is_absence(const struct hang_verdict *v)
{
	return v->verdict == VERDICT_NOT_JOINED || v->may_wait;
}

/* May its ranks be alive and well, and busy elsewhere?  One is away, or no end is watched. */
bool hang_may_be_busy(const struct hang_case *c);

/* Do ranks call different things, or not at all (a desync)?  Else it stands still. */
static inline bool hang_is_desync(const struct hang_case *c)
{
	enum verdict verdict = c->verdict.verdict;

	return verdict == VERDICT_NOT_JOINED || verdict == VERDICT_ORDER_MISMATCH ||
	       verdict == VERDICT_COMM_DEADLOCK || verdict == VERDICT_METADATA_MISMATCH ||
	       verdict == VERDICT_CONFIG_MISMATCH;
}

/* Is it no more than a warning yet?  Else it is critical. */
static inline bool hang_is_warning(const struct hang_case *c)
{
	return c->verdict.verdict == VERDICT_SLOW || c->critical_ns > c->age_ns;
}

/*
 * Is the first the cause of both, as far as can be told?  A job that hangs somewhere soon waits
 * everywhere: of its cases the surest is, then the oldest, or where absent ranks may wait
 * elsewhere, the one with the most of them.  What is proven is a cause itself.
 */
bool hang_explains(const struct hang_case *cause, const struct hang_case *c);

/* The verdict first, then what supports it, its limits, and what to do. */
void hang_say(const struct hang_case *c, char *text, size_t size);

/* "ranks 0-1,3 wait in AllReduce #19 on world"; empty: none that is seen. */
void hang_say_waiting(const struct hang_case *c, char *text, size_t size);

/* The rank of the group, or in the communicator with the cause; NULL: not seen here. */
const struct hang_rank *hang_group_rank(const struct hang *h, uint32_t group, int32_t rank);
static inline const struct hang_rank *hang_rank_of(const struct hang_case *c, int32_t rank)
{
	return hang_group_rank(c->hang, c->verdict.comm, rank);
}

#endif
