/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations come in here: each is held against what is usual for its like, and kept for
 * a while, since those before it on the same GPU may be read later.  Then its lateness is
 * followed to its root: a rank that comes late because it had to wait in the operation
 * before has lost that time to another one.  judge/late_series.h says what that comes to.
 *
 *     bucket   what is usual for one function, size and algorithm of a communicator
 *     unit     one function of a communicator: its ranks (seats) over time
 *     joint    one operation, kept for a while in a ring
 *     track    the joints of one GPU, in order
 *     member   what one rank of one communicator came to since the start
 */

#include "ncclinspd/compare/straggler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "judge/late_series.h"
#include "ncclinspd/compare/ranks_compare.h"
#include "reader/join/ops.h"
#include "tables/keyed.h"
#include "tables/rolling.h"
#include "util/list.h"

#define SECOND_NS	UINT64_C(1000000000)
#define WINDOW_NS	(60 * SECOND_NS)
#define BUCKETS		512
#define UNITS		512
#define TRACKS		256
#define MEMBERS		8192
#define WINDOWS		4
#define BASES		8	/* windows whose c* counts */
#define JOINTS		4096
#define TRACK_JOINTS	1024	/* more than settle late, and some that were before */
#define TRACK_LATE	128	/* places by which they may be out of order */
#define MEMBER_UNITS	4	/* functions of which ranks are compared: see ops.c */

struct bucket {
	struct keyed_head head;
	uint64_t key;
	uint64_t window;	/* the window that `added` is of */
	uint32_t added;
	uint32_t nbases;
	uint64_t base_ns[BASES];	/* c* of earlier windows, a ring */
	struct rolling tail, shortest;
};

_Static_assert(LATE_RANKS == OP_RANKS, "each rank of an operation has its sums");

struct seat {
	struct straggler_rank who;
	uint32_t track;
	uint32_t member;
	uint64_t found;			/* seats_found() when these were; 0: they were not */
	/* a stage's sends and receives since they were last compared, */
	uint64_t sends, sends_wait_ns;
	uint64_t track_wait_ns;		/* the wait of its GPU in all else by then */
};

struct straggler_unit {
	struct keyed_head head;
	uint64_t key;
	uint64_t comm;
	name_t func;
	uint64_t seq;		/* number of the newest operation; UNKNOWN_U64 */
	bool stages;		/* it is a pipeline, by sends and receives ... */
	uint64_t compared_ns;	/* the time at which these were compared */
	bool changed;		/* operations have settled since the last look */
	uint32_t nseats;
	struct seat seat[OP_RANKS];
	struct late_series series;	/* seats are its ranks */
};

struct joint_part {
	uint32_t track;
	uint32_t place;		/* the index in the ring of its track */
	uint32_t seat;
	uint64_t gpu;
	uint64_t start;
	uint64_t inside_ns;
	uint64_t wait_ns;
	uint64_t late_ns;
	uint64_t blame_ns;	/* its share */
	uint64_t queued_ns;
};

struct straggler_joint {
	uint64_t id;		/* 1, 2, ...; at id % JOINTS */
	uint64_t seen_ns;
	uint64_t comm;
	uint64_t unit_key;
	uint32_t unit;
	uint64_t passed;	/* operations since the one before, this one included */
	uint32_t n;
	struct late_op op;	/* places are those in part[] */
	bool whole;		/* all ranks that are here told of it: which ones waited is known */
	struct joint_part part[OP_RANKS];
};

struct straggler_track {
	struct keyed_head head;
	uint64_t key;		/* key of the GPU */
	uint64_t wait_ns;	/* waiting in operations that ranks were compared in */
	uint32_t next;
	struct {
		uint64_t start, id;
	} ring[TRACK_JOINTS];
};

#define RECENT_PARTS	5
#define RECENT_PART_NS	(STRAGGLER_RECENT_NS / RECENT_PARTS)
#define HISTORY_LEAST_NS	(STRAGGLER_HISTORY_NS / 3)

#define STRETCH_NS		UINT64_C(500000000)
_Static_assert(RECENT_PART_NS % STRETCH_NS == 0 && STRAGGLER_HISTORY_NS % STRETCH_NS == 0,
	       "a stretch is in one part of each");

/* One of the parts of STRAGGLER_RECENT_NS, or of the last minute, or a stretch of both. */
struct recent {
	uint64_t wait_ns, blame_ns;
	uint32_t part;		/* its number, counted from the clock's zero */
	uint32_t ops;
	uint32_t ended, timed;	/* operations that may be timed, and that were */
	uint32_t finished;	/* operations */
};

struct member_key {
	uint64_t process_id, comm_index;
};

struct straggler_member {
	struct keyed_head head;
	struct member_key key;
	uint64_t first_ns;	/* when its first operation came */
	struct straggler_sums sums;
	uint64_t until_ns;	/* the end of the newest stretch; 0: there is none */
	struct recent newest;	/* the sum of that, in none of the parts yet */
	/* Part i is at i modulo their number. */
	struct recent recent[RECENT_PARTS + 1];
	struct recent minute[STRAGGLER_HISTORY + 1];
	uint32_t nunits;
	uint64_t unit_key[MEMBER_UNITS];
};

struct straggler {
	uint64_t window_ns;
	uint64_t seed;
	uint64_t opened_ns, slot_ns;	/* the window, and the slot of it, that are open */
	uint64_t turned_ns;	/* the last turn */
	uint64_t second;	/* the second of that */
	uint64_t windows;	/* ended since the start */
	struct keyed buckets, units, tracks, members;
	struct ops_words words;
	struct straggler_joint *joints;
	uint64_t last_id;	/* given out, and */
	uint64_t settled_id;	/* settled */
};

static inline struct straggler_unit *unit_at(const struct straggler *s, uint32_t item)
{
	return keyed_at(&s->units, item);
}

static inline struct straggler_track *track_at(const struct straggler *s, uint32_t item)
{
	return keyed_at(&s->tracks, item);
}

static inline struct straggler_member *member_at(const struct straggler *s, uint32_t item)
{
	return keyed_at(&s->members, item);
}

/* The seat's member; NULL: it has made room for another one. */
static struct straggler_member *seat_member(const struct straggler *s, const struct seat *seat)
{
	struct straggler_member *m = keyed_taken(&s->members, seat->member);

	return m && m->key.process_id == seat->who.process_id &&
	       m->key.comm_index == seat->who.comm_index ? m : NULL;
}

/* ---- what is usual --------------------------------------------------------- */

/* c* of a bucket, the least of now and of some windows before; UNKNOWN_U64. */
static uint64_t transfer_ns(const struct bucket *b)
{
	uint64_t least = UNKNOWN_U64;

	if (b->shortest.n >= LATE_KNOWN)
		least = rolling_quantile(&b->shortest, 5);
	for (uint32_t i = 0; i < b->nbases && i < BASES; i++)
		if (b->base_ns[i] < least)
			least = b->base_ns[i];
	return least;
}

/* A new window: what was usual in the last one is remembered. */
static void turn_bucket(struct bucket *b, uint64_t window)
{
	if (b->window == window)
		return;
	if (b->added >= LATE_KNOWN)
		b->base_ns[b->nbases++ % BASES] = rolling_quantile(&b->shortest, 5);
	b->window = window;
	b->added = 0;
}

static void bucket_learn(struct bucket *b, const struct late_op *op, uint32_t n)
{
	b->added++;
	rolling_add(&b->shortest, op->least_ns);
	if (n < 2)
		return;
	rolling_add(&b->tail, late_tail(op, transfer_ns(b)));
}

/* ---- whose doing it was ------------------------------------------------------ */

#define HOPS		16

static const struct straggler_joint *joint_of(const struct straggler *s, uint64_t id)
{
	const struct straggler_joint *j = &s->joints[id % JOINTS];

	return id && j->id == id ? j : NULL;
}

/* The operation that this GPU was in before, or NULL; false: it is not known any more. */
static bool track_find_before(const struct straggler *s, const struct joint_part *p,
			      const struct straggler_joint **found)
{
	const struct straggler_track *t = track_at(s, p->track);
	uint64_t newest = 0;

	*found = NULL;
	if (t->key != p->gpu)
		return false;
	for (uint32_t back = 0; back < 2 * TRACK_LATE; back++) {
		uint32_t i = (p->place + TRACK_LATE - back) % TRACK_JOINTS;
		const struct straggler_joint *j;

		/* nearly in order, so that hardly any joint is looked at */
		if (t->ring[i].start >= p->start || (*found && t->ring[i].start <= newest))
			continue;
		j = joint_of(s, t->ring[i].id);
		if (j) {
			newest = t->ring[i].start;
			*found = j;
		}
	}
	return *found || !t->ring[t->next].id;
}

static const struct joint_part *part_of(const struct straggler_joint *j, uint64_t gpu)
{
	for (uint32_t i = 0; i < j->n; i++)
		if (j->part[i].gpu == gpu)
			return &j->part[i];
	return NULL;
}

struct root {
	const struct straggler_joint *joint;
	uint32_t late;		/* a part of it: the one that is to blame, else the last one */
	uint64_t moved_ns;	/* part of the lateness that we began with */
	bool lost;		/* the chain goes on, but what was there is not kept any more */
	bool nobody;		/* the one that is to blame is not here, or it is the network */
};

/*
 * The operation in which that part of `j` waited for what it is late by now, or NULL:
 * one of those since it last left an operation together with whom it keeps waiting.
 */
static const struct straggler_joint *find_cause(const struct straggler *s,
						const struct straggler_joint *j,
						const struct joint_part *late,
						uint64_t *wait_ns, bool *lost)
{
	const struct joint_part *then = late;
	const struct straggler_joint *prev;

	for (int hop = 0; hop < HOPS; hop++) {
		*lost = !track_find_before(s, then, &prev);
		if (!prev || prev->comm == j->comm)
			return NULL;
		*lost = !prev->whole;
		if (part_of(prev, j->part[j->op.first].gpu))
			return NULL;
		then = part_of(prev, late->gpu);
		if (*lost || !then)
			return NULL;
		*wait_ns = then->wait_ns;
		if (late_is_inherited(*wait_ns, late->late_ns))
			return prev;
	}
	return NULL;
}

/*
 * The time that a GPU was in operations since it last left one together with another GPU.
 * False: not all of them are known.
 */
static bool sum_inside(const struct straggler *s, const struct straggler_joint *j,
		       const struct joint_part *p, uint64_t other, uint64_t *sum_ns)
{
	const uint64_t gpu = p->gpu;
	const struct straggler_joint *prev;

	*sum_ns = 0;
	for (int hop = 0; hop < HOPS && p; hop++) {
		if (!track_find_before(s, p, &prev))
			return false;
		if (!prev || prev->comm == j->comm || part_of(prev, other))
			return true;
		p = part_of(prev, gpu);
		*sum_ns += p ? p->inside_ns : 0;
	}
	return false;
}

/*
 * The time that a late one spent in operations beyond what the first one did meanwhile:
 * for ranks elsewhere, or in transfers that take longer.
 */
static uint64_t lost_inside(const struct straggler *s, const struct straggler_joint *j,
			    const struct joint_part *late)
{
	const struct joint_part *first = &j->part[j->op.first];
	uint64_t first_ns, late_ns;

	if (!sum_inside(s, j, late, first->gpu, &late_ns) ||
	    !sum_inside(s, j, first, late->gpu, &first_ns))
		return 0;
	return late_ns > first_ns ? late_ns - first_ns : 0;
}

/* Finds out whether time whose cause was not seen was lost in NCCL all the same. */
static void try_nobody(const struct straggler *s, struct root *root)
{
	const struct joint_part *late = &root->joint->part[root->late];
	uint64_t ns = root->lost ? 0 : lost_inside(s, root->joint, late);

	root->nobody = ns && late_is_inherited(ns, late->late_ns);
	if (root->nobody && ns < root->moved_ns)
		root->moved_ns = ns;
}

/*
 * Go up the chain from that part of `j`.  root.late is to blame for `moved_ns`
 * (LATE_NOBODY: a rank that is not here), the part itself for the rest.
 */
static struct root find_root(const struct straggler *s, const struct straggler_joint *j,
			     uint32_t late)
{
	struct root root = { .joint = j, .late = late, .moved_ns = j->part[late].late_ns };

	for (int hop = 0; hop < HOPS && root.late != LATE_NOBODY; hop++) {
		uint64_t wait_ns;
		const struct straggler_joint *cause = find_cause(s, root.joint,
				&root.joint->part[root.late], &wait_ns, &root.lost);

		if (!cause) {
			try_nobody(s, &root);
			break;
		}
		if (wait_ns < root.moved_ns)
			root.moved_ns = wait_ns;
		root.joint = cause;
		root.late = cause->op.last;
	}
	if (root.joint == j && !root.nobody)
		root.moved_ns = 0;
	return root;
}

static struct straggler_unit *joint_unit(struct straggler *s, const struct straggler_joint *j)
{
	struct straggler_unit *u = unit_at(s, j->unit);

	return u->key == j->unit_key ? u : NULL;
}

static inline void recent_sum(struct recent *to, const struct recent *more)
{
	to->ops += more->ops;
	to->wait_ns += more->wait_ns;
	to->blame_ns += more->blame_ns;
	to->ended += more->ended;
	to->timed += more->timed;
	to->finished += more->finished;
}

/* Adds to the part of that time; one so long ago that its place has gone to another is past. */
static void recent_add(struct recent *parts, uint32_t n, uint64_t part, const struct recent *more)
{
	struct recent *to = &parts[part % n];

	if (to->part < part)
		*to = (struct recent){ .part = (uint32_t)part };
	if (to->part == part)
		recent_sum(to, more);
}

static void member_add_parts(struct straggler_member *m, uint64_t now_ns,
			     const struct recent *more)
{
	recent_add(m->recent, ARRAY_LEN(m->recent), now_ns / RECENT_PART_NS, more);
	recent_add(m->minute, ARRAY_LEN(m->minute), now_ns / STRAGGLER_HISTORY_NS, more);
}

/* The newest stretch is over, or it came before that. */
static __attribute__((noinline))
void member_add_other(struct straggler_member *m, uint64_t now_ns, const struct recent *more)
{
	if (!m->first_ns)
		m->first_ns = now_ns;
	if (now_ns < m->until_ns) {
		member_add_parts(m, now_ns, more);
		return;
	}
	if (m->until_ns)
		member_add_parts(m, m->until_ns - 1, &m->newest);
	m->newest = *more;
	m->until_ns = now_ns - now_ns % STRETCH_NS + STRETCH_NS;
}

static inline void member_add(struct straggler_member *m, uint64_t now_ns,
			      const struct recent *more)
{
	if (m->until_ns - 1 - now_ns < STRETCH_NS)
		recent_sum(&m->newest, more);
	else
		member_add_other(m, now_ns, more);
}

/* All that came in a part of the time, which is one of those n, of so many ns. */
static struct recent member_part(const struct straggler_member *m, const struct recent *parts,
				 uint32_t n, uint64_t part_ns, uint64_t part)
{
	struct recent sum = { 0 };

	if (parts[part % n].part == part)
		sum = parts[part % n];
	if (m->until_ns && (m->until_ns - 1) / part_ns == part)
		recent_sum(&sum, &m->newest);
	return sum;
}

/* The others' waiting, for operations that came at `now_ns`.  `m` may be NULL. */
static void member_blame(struct straggler_member *m, uint64_t blame_ns, uint64_t now_ns)
{
	if (!m)
		return;
	m->sums.blame_ns += blame_ns;
	member_add(m, now_ns, &(struct recent){ .blame_ns = blame_ns });
}

/* Cost that was handed on belongs to the ranks that were late where it began. */
static void root_move(struct straggler *s, const struct root *root, double blame_ns)
{
	const struct straggler_joint *j = root->joint;
	struct straggler_unit *u = joint_unit(s, j);

	if (!u || root->nobody || root->late == LATE_NOBODY)
		return;
	for (uint32_t i = 0; i < j->n; i++) {
		double share = j->op.blame_ns ?
			(double)j->part[i].blame_ns / (double)j->op.blame_ns : i == root->late;
		uint64_t ns = (uint64_t)(blame_ns * share);

		late_series_open(&u->series)->tally[j->part[i].seat].moved_ns += ns;
		member_blame(seat_member(s, &u->seat[j->part[i].seat]), ns, j->seen_ns);
	}
	u->changed = true;
}

/* One part of an operation, less what others handed on. */
struct own_part {
	bool own;		/* it was late, and by its own doing */
	uint64_t late_ns, blame_ns;
};

static struct own_part part_own(struct straggler *s, const struct straggler_joint *j, uint32_t i)
{
	const struct joint_part *p = &j->part[i];
	struct own_part own = { .late_ns = p->late_ns, .blame_ns = p->blame_ns };
	struct root root;
	double part;

	if (!late_is_worth_following(&j->op, p->inside_ns))
		return own;
	root = find_root(s, j, i);
	part = root.lost ? 1 : (double)root.moved_ns / (double)p->late_ns;
	own.own = !root.lost && !late_is_inherited(root.moved_ns, p->late_ns);
	own.late_ns = own.own ? p->late_ns - root.moved_ns : j->op.most_ns - j->op.punctual_ns;
	own.blame_ns -= (uint64_t)((double)p->blame_ns * part);
	if (!root.lost && root.moved_ns)
		root_move(s, &root, (double)p->blame_ns * part);
	return own;
}

static void joint_add_own(struct straggler *s, struct straggler_unit *u,
			  const struct straggler_joint *j, const struct own_part *own)
{
	struct late_slot *slot = late_series_open(&u->series);

	late_add_judged(&slot->sums, &j->op);
	for (uint32_t i = 0; i < j->n; i++) {
		uint32_t seat = j->part[i].seat;
		struct straggler_member *m = seat_member(s, &u->seat[seat]);
		bool last = i == j->op.last && own[i].own;

		late_add_own(&slot->tally[seat], last, own[i].late_ns, own[i].blame_ns);
		if (own[i].own)
			late_add_cause(&slot->tally[seat], own[i].late_ns, j->part[i].queued_ns);
		member_blame(m, own[i].blame_ns, j->seen_ns);
		if (m) {
			m->sums.judged++;
			m->sums.last += last;
		}
	}
}

static void joint_settle(struct straggler *s, const struct straggler_joint *j)
{
	struct straggler_unit *u = joint_unit(s, j);
	struct own_part own[OP_RANKS];
	bool any = false;

	if (!u)
		return;
	u->changed = true;
	late_add(&late_series_open(&u->series)->sums, &j->op, j->passed);
	if (!j->op.judged)
		return;
	for (uint32_t i = 0; i < j->n; i++) {
		own[i] = part_own(s, j, i);
		any = any || own[i].own;
	}
	if (any)
		joint_add_own(s, u, j, own);
}

/* ---- which GPU --------------------------------------------------------------- */

/* One operation of n ranks, and the processes, which tell the ranks' GPUs. */
struct straggler_ops {
	const struct op *const *op;
	uint32_t n;
	struct process *const *list;
	size_t count, next;
};

/* NULL: there is none.  Most often it is the one at *next; that behind it will be. */
static const struct process *processes_find(struct process *const *list, size_t count, uint64_t id,
					    size_t *next)
{
	size_t low = 0, high = count;

	if (*next < count && list[*next]->id == id)
		return list[(*next)++];
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == count || list[low]->id != id)
		return NULL;
	*next = low + 1;
	return list[low];
}

/* Is it another rank of the same communicator, so that the process has several GPUs? */
static bool comm_is_sibling(const struct comm *a, const struct comm *b)
{
	return a->id == b->id && a != b && b->ready && b->has_id && a->nranks == b->nranks &&
	       !strcmp(a->name, b->name);
}

/* The only rank of which it is known that it has that GPU. */
static uint64_t rank_gpu(const struct straggler *s, const struct op *op)
{
	const uint64_t words[] = { op->process_id, op->comm_index };

	return index_hash(s->seed, words, sizeof(words));
}

/* `p`: its process; NULL: it is gone. */
static uint64_t op_gpu(const struct straggler *s, const struct op *op, const struct process *p)
{
	const struct comm *comm = p ? process_comm(p, (uint16_t)op->comm_index) : NULL;

	if (!comm)
		return rank_gpu(s, op);
	if (comm->has_gpu) {
		uint64_t words[3] = { p->id };

		memcpy(words + 1, comm->gpu_uuid, sizeof(comm->gpu_uuid));
		return index_hash(s->seed, words, sizeof(words));
	}
	for (uint32_t i = 0; i < p->ncomms; i++)
		if (comm_is_sibling(comm, &p->comms[i]))
			return rank_gpu(s, op);
	return op->process_id;
}

static uint64_t ops_gpu(const struct straggler *s, struct straggler_ops *ops, uint32_t i)
{
	const struct op *op = ops->op[i];

	return op_gpu(s, op, processes_find(ops->list, ops->count, op->process_id, &ops->next));
}

uint64_t straggler_gpu(const struct straggler *s, const struct op *op,
		       struct process *const *list, size_t count)
{
	struct straggler_ops ops = { .op = &op, .n = 1, .list = list, .count = count };

	return ops_gpu(s, &ops, 0);
}

/* ---- one operation --------------------------------------------------------- */

static void join_unit(struct straggler_member *m, uint64_t unit_key)
{
	uint64_t *key;

	for (uint32_t i = 0; i < m->nunits; i++)
		if (m->unit_key[i] == unit_key)
			return;
	key = array_add(m->unit_key, &m->nunits);
	if (key)
		*key = unit_key;
}

static bool seat_is_of(const struct seat *seat, uint64_t process_id, uint32_t comm_index)
{
	return seat->who.process_id == process_id && seat->who.comm_index == comm_index;
}

static uint32_t find_seat(const struct straggler_unit *u, uint64_t process_id, uint32_t comm_index)
{
	for (uint32_t i = 0; i < u->nseats; i++)
		if (seat_is_of(&u->seat[i], process_id, comm_index))
			return i;
	return LATE_NOBODY;
}

/* A number that changes when a seat's numbers may no longer be of its own track and member. */
static uint64_t seats_found(const struct straggler *s)
{
	return s->tracks.gone + s->members.gone + s->second + 1;
}

/*
 * The seat of the i-th rank, looked for; its track and member are used once a second.  NULL: there
 * are more ranks than there may be, or no memory.
 */
static __attribute__((noinline))
struct seat *seat_look_for(struct straggler *s, struct straggler_unit *u,
			   struct straggler_ops *ops, uint32_t i)
{
	const struct op *op = ops->op[i];
	const struct member_key key = { op->process_id, op->comm_index };
	const uint64_t gpu = ops_gpu(s, ops, i);
	uint32_t at = find_seat(u, op->process_id, op->comm_index);
	struct seat *seat = at != LATE_NOBODY ? &u->seat[at] : array_add(u->seat, &u->nseats);
	struct straggler_track *track;
	struct straggler_member *member;
	bool made;

	if (!seat)
		return NULL;
	u->series.n = u->nseats;
	if (seat->who.gpu != gpu)
		seat->found = 0;	/* the track before is no answer until its own is found */
	seat->who = (struct straggler_rank){
		.process_id = op->process_id, .pid = op->pid, .comm_index = op->comm_index,
		.rank = op->rank, .account = op->account, .gpu = gpu,
	};
	if (seat->found == seats_found(s))
		return seat;
	track = keyed_use_again(&s->tracks, seat->track, &gpu, op->account, &made);
	member = keyed_use_again(&s->members, seat->member, &key, op->account, &made);
	if (!track || !member)
		return NULL;
	seat->track = keyed_number(track);
	seat->member = keyed_number(member);
	seat->found = seats_found(s);
	join_unit(member, u->key);
	return seat;
}

/* Most often it has the i-th seat, and its GPU is the one that it had earlier in this second. */
static inline struct seat *seat_of(struct straggler *s, struct straggler_unit *u,
				   struct straggler_ops *ops, uint32_t i)
{
	struct seat *seat = &u->seat[i];

	if (i < u->nseats && seat_is_of(seat, ops->op[i]->process_id, ops->op[i]->comm_index) &&
	    seat->found == seats_found(s))
		return seat;
	return seat_look_for(s, u, ops, i);
}

static uint32_t track_follow(struct straggler_track *t, uint64_t start, uint64_t id)
{
	uint32_t place = t->next;

	t->ring[place].start = start;
	t->ring[place].id = id;
	t->next = (place + 1) % TRACK_JOINTS;
	return place;
}

static struct straggler_joint *straggler_new_joint(struct straggler *s, uint64_t now_ns)
{
	struct straggler_joint *j;

	if (s->last_id - s->settled_id >= JOINTS / 2) {
		s->settled_id++;
		joint_settle(s, &s->joints[s->settled_id % JOINTS]);
	}
	s->last_id++;
	j = &s->joints[s->last_id % JOINTS];
	memset(j, 0, offsetof(struct straggler_joint, part));
	j->id = s->last_id;
	j->seen_ns = now_ns;
	return j;
}

/* False: not all of them have a seat; `members` has those that do. */
static bool add_parts(struct straggler *s, struct straggler_unit *u, struct straggler_joint *j,
		      struct straggler_ops *ops, struct straggler_member **members)
{
	for (uint32_t i = 0; i < ops->n; i++) {
		const struct seat *seat = seat_of(s, u, ops, i);
		uint64_t start = ops->op[i]->gpu_start_ns;

		if (!seat)
			return false;
		*array_must_add(j->part, &j->n) = (struct joint_part){
			.track = seat->track, .seat = (uint32_t)(seat - u->seat),
			.gpu = seat->who.gpu, .start = start,
			.place = track_follow(track_at(s, seat->track), start, j->id),
		};
		members[i] = member_at(s, seat->member);
		members[i]->sums.ops++;
	}
	return true;
}

/* Everybody has waited for the last, or all together for one elsewhere. */
static void add_waits(struct straggler *s, struct straggler_joint *j,
		      struct straggler_member *const *members)
{
	uint64_t away_ns = j->op.last == LATE_NOBODY ? j->op.slow_ns : 0;

	for (uint32_t i = 0; i < j->n; i++) {
		struct joint_part *p = &j->part[i];
		struct straggler_member *m = members[i];

		p->wait_ns = p->inside_ns - j->op.least_ns + away_ns;
		p->late_ns = j->op.most_ns - p->inside_ns;
		m->sums.remote_wait_ns += away_ns;
		m->sums.wait_ns += p->wait_ns;
		track_at(s, p->track)->wait_ns += p->wait_ns;
	}
}

static uint64_t op_comm(const struct straggler *s, const struct op *op)
{
	const uint64_t words[] = {
		op->comm_id, (uint32_t)op->nranks, (uintptr_t)op->comm_name, op->uid,
	};

	return index_hash(s->seed, words, sizeof(words));
}

/* NULL: no memory. */
static struct straggler_unit *unit_take(struct straggler *s, const struct op *op, name_t func,
					uint64_t now_ns)
{
	const uint64_t words[] = { op_comm(s, op), (uintptr_t)func };
	const uint64_t key = index_hash(s->seed, words, sizeof(words));
	bool made;
	struct straggler_unit *u = keyed_use(&s->units, &key, op->account, &made);

	if (u && made) {
		u->comm = words[0];
		u->func = func;
		u->seq = UNKNOWN_U64;
		late_series_begin(&u->series, op->nranks, now_ns);
	}
	return u;
}

#define PASSED_MOST	UINT64_C(1000000)	/* more is another job's number */

/* Bursts of operations are timed, or records may be lost: the numbers tell what came between. */
static uint64_t unit_passed(struct straggler_unit *u, const struct op *op)
{
	uint64_t before = u->seq, passed = op->seq - before;

	if (op->seq == UNKNOWN_U64)
		return 1;
	if (before != UNKNOWN_U64 && op->seq <= before && before - op->seq < PASSED_MOST)
		return 0;	/* it comes late: what came after it has counted it */
	u->seq = op->seq;
	if (before == UNKNOWN_U64 || passed >= PASSED_MOST || passed <= op->fused)
		return 1;
	return op->fused ? passed / op->fused : passed;
}

static uint64_t op_size_class(uint64_t bytes)
{
	return bytes && bytes != UNKNOWN_U64 ? 63 - (uint64_t)__builtin_clzll(bytes) : 0;
}

/* Only like is compared with like. */
static uint64_t op_kind(const struct straggler *s, const struct op *op)
{
	const uint64_t words[] = {
		op_size_class(op_is_fused(op) ? op->batch_bytes : op->bytes), op->fused,
		(uintptr_t)op->algo, (uintptr_t)op->proto, op->channels,
	};

	return index_hash(s->seed, words, sizeof(words));
}

/* NULL: no memory. */
static struct bucket *unit_bucket(struct straggler *s, const struct straggler_unit *u,
				  const struct op *op)
{
	const uint64_t words[] = { u->comm, (uintptr_t)u->func, op_kind(s, op) };
	const uint64_t key = index_hash(s->seed, words, sizeof(words));
	bool made;
	struct bucket *b = keyed_use(&s->buckets, &key, op->account, &made);

	if (b)
		turn_bucket(b, s->windows);
	return b;
}

/* Its kernel's start is told by the GPU's clock, or by NCCL's progress thread; UNKNOWN_U64. */
static uint64_t op_queued_ns(const struct op *op)
{
	uint64_t start_ns = op->gpu_start_mono_ns;

	if (!start_ns || !op->enqueued_ns || op_is_fused(op))
		return op->queue_ns;
	return start_ns > op->enqueued_ns ? start_ns - op->enqueued_ns : 0;
}

/* Holds it against what is usual for its like, and lets that learn from it. */
static void joint_judge(struct straggler_joint *j, const struct op *const *ops, struct bucket *b)
{
	struct late_usual usual = { .transfer_ns = transfer_ns(b) };
	struct late_part parts[OP_RANKS];
	double shares[OP_RANKS], scratch[2 * OP_RANKS];

	for (uint32_t i = 0; i < j->n; i++) {
		parts[i] = (struct late_part){
			.inside_ns = op_inside_ns(ops[i]), .end_ns = ops[i]->gpu_stop_mono_ns,
			.end_error_ns = ops[i]->gpu_clock_error_ns,
		};
		j->part[i].inside_ns = parts[i].inside_ns;
	}
	late_measure(parts, j->n, &j->op);
	bucket_learn(b, &j->op, j->n);
	usual.known = b->tail.n >= LATE_KNOWN;
	usual.tail_ns = rolling_quantile(&b->tail, 10);
	late_rate(parts, j->n, ops[0]->nranks, &usual, &j->op, scratch);
	if (!j->op.judged)
		return;
	late_share(parts, j->n, &j->op, shares, scratch);
	for (uint32_t i = 0; i < j->n; i++) {
		j->part[i].blame_ns = (uint64_t)shares[i];
		j->part[i].queued_ns = op_queued_ns(ops[i]);
	}
}

/* It is whole, its ranks' waits are known, if all ranks that were seen of it are here. */
static void joint_fill(struct straggler *s, struct straggler_unit *u, struct straggler_joint *j,
		       struct straggler_ops *ops, struct straggler_member **members)
{
	struct bucket *b;

	j->comm = u->comm;
	j->unit = keyed_number(u);
	j->unit_key = u->key;
	if (!add_parts(s, u, j, ops, members))
		return;
	if (ops->n < u->nseats)
		return;		/* whoever is missing may be the last */
	b = unit_bucket(s, u, ops->op[0]);
	if (!b)
		return;
	j->whole = true;
	j->passed = unit_passed(u, ops->op[0]);
	joint_judge(j, ops->op, b);
	add_waits(s, j, members);
}

/* NULL: no memory. */
static struct straggler_member *op_member(struct straggler *s, const struct op *op)
{
	const struct member_key key = { op->process_id, op->comm_index };
	uint32_t *likely = keyed_lately_place(&s->members, key.process_id ^ key.comm_index << 48);
	struct straggler_member *m = keyed_taken(&s->members, *likely);
	bool made;

	if (m && m->key.process_id == key.process_id && m->key.comm_index == key.comm_index)
		return m;
	/* One that is never compared is not touched: it makes room before those that are. */
	m = keyed_get(&s->members, &key, op->account, &made);
	if (m)
		*likely = keyed_number(m);
	return m;
}

/* Operations that are not timed are not compared, and count beside those that are. */
static inline struct recent op_end(const struct op *op)
{
	bool may_be_timed = op_may_be_timed(op);

	if (op->parts)
		return (struct recent){ 0 };
	return (struct recent){
		.ended = may_be_timed, .finished = 1,
		.timed = may_be_timed && op->source == TIMING_KERNEL_GPU,
	};
}

static void member_note_end(struct straggler *s, const struct op *op, uint64_t now_ns)
{
	const struct recent end = op_end(op);
	struct straggler_member *m = op->parts ? NULL : op_member(s, op);

	if (m)
		member_add(m, now_ns, &end);
}

/* Takes in an operation that can be compared. */
static void straggler_take(struct straggler *s, struct straggler_ops *ops, uint64_t now_ns)
{
	struct straggler_joint *j = straggler_new_joint(s, now_ns);
	struct straggler_unit *u = unit_take(s, ops->op[0], ops->op[0]->func, now_ns);
	struct straggler_member *members[OP_RANKS];

	if (u)
		joint_fill(s, u, j, ops, members);
	for (uint32_t i = 0; i < ops->n; i++) {
		struct recent end = op_end(ops->op[i]);
		struct straggler_member *m = i < j->n ? members[i] : op_member(s, ops->op[i]);

		end.ops = j->whole;
		end.wait_ns = i < j->n ? j->part[i].wait_ns : 0;
		if (m)
			member_add(m, now_ns, &end);
	}
}

/* ---- sends and receives -------------------------------------------------------- */

#define STAGE_FUSED	4	/* sends and receives of one group: two each way */
#define STAGE_TAIL	1000	/* part of the time by which equal stages' waiting differs */

/* One operation is compared with all of its size, whichever rank did it: some waited little. */
static void stage_add(struct straggler *s, struct straggler_ops *ops, uint64_t now_ns)
{
	const struct op *op = ops->op[0];
	struct straggler_unit *u = unit_take(s, op, LATE_STAGES, now_ns);
	struct bucket *b = u ? unit_bucket(s, u, op) : NULL;
	struct seat *seat = b ? seat_of(s, u, ops, 0) : NULL;
	uint64_t inside_ns = op_inside_ns(op), transfer;

	if (!seat)
		return;
	b->added++;
	rolling_add(&b->shortest, inside_ns);
	transfer = transfer_ns(b);
	u->stages = true;
	seat->sends++;
	if (transfer < inside_ns)
		seat->sends_wait_ns += inside_ns - transfer;
}

/* All that each waited since the last time; false: some had nothing to do. */
static bool stages_wait(struct straggler *s, struct straggler_unit *u, struct late_part *parts)
{
	for (uint32_t i = 0; i < u->nseats; i++)
		if (!u->seat[i].sends)
			return false;
	for (uint32_t i = 0; i < u->nseats; i++) {
		struct seat *seat = &u->seat[i];
		const struct straggler_track *t = track_at(s, seat->track);
		uint64_t elsewhere_ns = t->key == seat->who.gpu ? t->wait_ns : 0;

		parts[i] = (struct late_part){
			.inside_ns = seat->sends_wait_ns + (elsewhere_ns > seat->track_wait_ns ?
				     elsewhere_ns - seat->track_wait_ns : 0),
			.end_error_ns = UNKNOWN_U64,
		};
		seat->sends = seat->sends_wait_ns = 0;
		seat->track_wait_ns = elsewhere_ns;
	}
	return true;
}

/* A second of them is one operation, in which the stage that waited least came last. */
static void stages_compare(struct straggler *s, struct straggler_unit *u, uint64_t now_ns)
{
	struct late_slot *slot = late_series_open(&u->series);
	double shares[OP_RANKS], scratch[2 * OP_RANKS];
	struct late_usual usual = { .known = true, .transfer_ns = UNKNOWN_U64 };
	struct late_part parts[OP_RANKS];
	uint64_t from_ns = u->compared_ns;
	struct late_op op;

	if (u->nseats < 2 || !stages_wait(s, u, parts))
		return;
	u->compared_ns = now_ns;
	if (!from_ns)
		return;		/* not a whole second, and nobody knows what is usual */
	usual.tail_ns = (now_ns - from_ns) / STAGE_TAIL;
	late_measure(parts, u->nseats, &op);
	late_rate(parts, u->nseats, (int32_t)u->nseats, &usual, &op, scratch);
	late_add(&slot->sums, &op, 1);
	u->changed = true;
	if (!op.judged)
		return;
	late_share(parts, u->nseats, &op, shares, scratch);
	late_add_judged(&slot->sums, &op);
	for (uint32_t i = 0; i < u->nseats; i++)
		late_add_own(&slot->tally[i], i == op.last, op.most_ns - parts[i].inside_ns,
			     (uint64_t)shares[i]);
}

/* ---- time ---------------------------------------------------------------------- */

/* Takes in operations since the last look; at the end of a slot or window, all. */
static void units_look(struct straggler *s, uint64_t now_ns)
{
	bool slot = now_ns >= s->slot_ns + s->window_ns / LATE_WINDOW;
	bool window = now_ns >= s->opened_ns + s->window_ns;

	for (struct straggler_unit *u = NULL; (u = keyed_next(&s->units, u));) {
		if (u->stages)
			stages_compare(s, u, now_ns);
		if (slot || window)
			late_series_close(&u->series, s->window_ns, now_ns);
		else if (u->changed)
			late_series_look(&u->series, s->window_ns, now_ns);
		if (window)
			late_series_close_window(&u->series, s->opened_ns);
		u->changed = false;
	}
	if (slot || window)
		s->slot_ns = now_ns;
	if (!window)
		return;
	s->opened_ns = now_ns;
	s->windows++;
}

/* ---- what is late -------------------------------------------------------------- */

/* The windows that are kept of it, and the open one. */
static struct late_slot unit_sum(const struct straggler *s, const struct straggler_unit *u)
{
	uint64_t kept_ns = WINDOWS * s->window_ns;
	struct late_slot sum;

	late_series_sum(&u->series, s->opened_ns > kept_ns ? s->opened_ns - kept_ns : 0,
			s->turned_ns, &sum);
	return sum;
}

static struct straggler_case case_of(const struct straggler_unit *u, uint32_t seat,
				     const struct late_window *w)
{
	const struct straggler_rank *who = &u->seat[seat].who;

	return (struct straggler_case){
		.who = *who,
		.said = {
			.func = u->func, .nranks = u->series.nranks, .seen = u->nseats,
			.here = "this node",
			.who = { .rank = who->rank, .pid = who->pid, .world_rank = UNKNOWN_I32 },
			.wall_ns = (uint64_t)late_watched_ns(w), .ops = w->ops,
		},
	};
}

/* The number of ranks of its process, if these come one after another, and it last; 0: not. */
static uint32_t seat_launched(const struct straggler *s, const struct straggler_unit *u,
			      uint32_t seat)
{
	const struct late_slot sum = unit_sum(s, u);
	double late_ns[OP_RANKS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < u->nseats; i++) {
		if (u->seat[i].who.process_id != u->seat[seat].who.process_id)
			continue;
		if (sum.tally[i].late_ns > sum.tally[seat].late_ns)
			return 0;
		late_ns[n] = (double)sum.tally[i].late_ns;
		n++;
	}
	return late_is_spread(late_ns, n) ? n : 0;
}

static void seat_tell(const struct straggler *s, const struct straggler_unit *u, uint32_t seat,
		      straggler_case_fn *visit, void *arg)
{
	const struct late_rank *r = &u->series.rank[seat];
	struct straggler_case c = case_of(u, seat, &r->window);

	if (r->grade == LATE_NOT)
		return;
	c.key = c.who.gpu;
	c.since_ns = r->since_ns;
	c.score = r->score;
	c.said.verdict = r->verdict;
	c.said.suspected_window_ns = r->grade == LATE_SUSPECTED ? s->window_ns : 0;
	c.said.judged = r->window.judged;
	c.said.last = r->tally.last;
	c.said.times = r->times;
	c.said.late_ns = r->mean_ns;
	c.said.blame_ns = r->tally.blame_ns + r->tally.moved_ns;
	c.said.moved_ns = r->tally.moved_ns;
	c.said.stage = u->stages;
	c.said.launched = u->stages ? 0 : seat_launched(s, u, seat);
	c.said.why = c.said.launched ? LATE_WHY_LAUNCHES : late_why(&r->tally);
	for (uint32_t i = 0; i < u->nseats; i++)
		c.said.others += i != seat && u->series.rank[i].grade != LATE_NOT;
	visit(&c, arg);
}

static void unit_tell(const struct straggler *s, const struct straggler_unit *u,
		      straggler_case_fn *visit, void *arg)
{
	bool elsewhere = u->series.elsewhere.flagged;
	const struct late_trial *trial = elsewhere ? &u->series.elsewhere : &u->series.slower;
	struct late_slot sum;
	struct straggler_case c;

	if (!trial->flagged)
		return;
	sum = unit_sum(s, u);
	c = case_of(u, 0, &sum.sums);
	c.key = u->key;
	c.since_ns = trial->since_ns;
	c.said.verdict = elsewhere ? VERDICT_ELSEWHERE : VERDICT_SLOWER;
	c.said.judged = sum.sums.rated;
	c.said.last = sum.sums.slow;
	c.said.blame_ns = sum.sums.slow_ns;
	c.said.late_ns = sum.sums.slow ? sum.sums.slow_ns / sum.sums.slow : 0;
	visit(&c, arg);
}

void straggler_visit(const struct straggler *s, straggler_case_fn *visit, void *arg)
{
	for (const struct straggler_unit *u = NULL; (u = keyed_next(&s->units, u));) {
		for (uint32_t i = 0; i < u->nseats; i++)
			seat_tell(s, u, i, visit, arg);
		unit_tell(s, u, visit, arg);
	}
}

static void look_at_seat(const struct straggler *s, const struct straggler_unit *u, uint32_t seat,
			 struct straggler_lately *out)
{
	const struct late_slot sum = unit_sum(s, u);
	const struct late_tally *t = &sum.tally[seat];

	if (out->func && t->blame_ns + t->moved_ns <= out->blame_ns)
		return;
	*out = (struct straggler_lately){
		.func = u->func,
		.window_ns = sum.sums.wall_ns,
		.ops = sum.sums.ops,
		.judged = sum.sums.judged,
		.last = t->last,
		.late_ns = sum.sums.judged ? t->late_ns / sum.sums.judged : UNKNOWN_U64,
		.blame_ns = t->blame_ns + t->moved_ns,
		.late = u->series.rank[seat].grade != LATE_NOT,
	};
}

static const struct straggler_member *member_find(const struct straggler *s, uint64_t process_id,
						  uint32_t comm_index)
{
	const struct member_key key = { process_id, comm_index };

	return keyed_find(&s->members, &key);
}

bool straggler_lately(const struct straggler *s, uint64_t process_id, uint32_t comm_index,
		      struct straggler_lately *lately)
{
	const struct straggler_member *m = member_find(s, process_id, comm_index);

	*lately = (struct straggler_lately){ .late_ns = UNKNOWN_U64 };
	for (uint32_t i = 0; m && i < m->nunits; i++) {
		const struct straggler_unit *u = keyed_find(&s->units, &m->unit_key[i]);
		uint32_t seat = u ? find_seat(u, process_id, comm_index) : LATE_NOBODY;

		if (seat != LATE_NOBODY)
			look_at_seat(s, u, seat, lately);
	}
	return lately->func;
}

/* ---- struct op, as the statistics need it --------------------------------------- */

/* A send or receive, or a few at once: more are an AlltoAll and the like, of all ranks. */
static bool op_is_stage(const struct op *op)
{
	return op->is_p2p && !op->parts && op->has_comm_id && op->nranks > 1 &&
	       op->fused <= STAGE_FUSED && (!op_is_fused(op) || op->batch_head) &&
	       ranks_is_timed(op);
}

/*
 * All are of one communicator and function, and timed if they are several.  One of a batch
 * counts, and stands for all of it.
 */
static bool ops_count(struct straggler *s, const struct op *const *ops, uint32_t n)
{
	const struct op_facts *facts = ops_word(&s->words, ops[0]->func)->facts;

	if (!facts || !facts->joint || !ops[0]->has_comm_id || ops[0]->nranks < 2 ||
	    !ranks_is_timed(ops[0]))
		return false;
	for (uint32_t i = 0; i < n && op_is_fused(ops[0]); i++)
		if (ops[i]->batch_head)
			return true;
	return !op_is_fused(ops[0]);
}

void straggler_see(struct straggler *s, const struct op *const *ops, uint32_t n,
		   struct process *const *list, size_t count, uint64_t now_ns)
{
	struct straggler_ops all = { .op = ops, .n = n, .list = list, .count = count };
	bool stage = n == 1 && op_is_stage(ops[0]);

	if (!stage && ops_count(s, ops, n)) {
		straggler_take(s, &all, now_ns);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		member_note_end(s, ops[i], now_ns);
	if (stage)
		stage_add(s, &all, now_ns);
}

/* ---- life ------------------------------------------------------------------ */

void straggler_turn(struct straggler *s, uint64_t now_ns)
{
	while (s->settled_id < s->last_id) {
		const struct straggler_joint *j = &s->joints[(s->settled_id + 1) % JOINTS];

		if (now_ns < j->seen_ns + STRAGGLER_SETTLE_NS)
			break;
		s->settled_id++;
		joint_settle(s, j);
	}
	s->turned_ns = now_ns;
	s->second = now_ns / SECOND_NS;
	if (!s->opened_ns)
		s->opened_ns = s->slot_ns = now_ns;
	units_look(s, now_ns);
}

static bool unit_has_process(const struct straggler_unit *u, uint64_t process_id)
{
	for (uint32_t i = 0; i < u->nseats; i++)
		if (u->seat[i].who.process_id == process_id)
			return true;
	return false;
}

static void forget_key(struct keyed *t, const void *key)
{
	void *item = keyed_find(t, key);

	if (item)
		keyed_drop(t, item);
}

static void forget_unit(struct straggler *s, struct straggler_unit *u)
{
	for (uint32_t i = 0; i < u->nseats; i++) {
		const struct straggler_rank *p = &u->seat[i].who;

		forget_key(&s->tracks, &p->gpu);
		forget_key(&s->members, &(struct member_key){ p->process_id, p->comm_index });
	}
	keyed_drop(&s->units, u);
}

/* Its communicators cannot go on without it. */
void straggler_forget(struct straggler *s, uint64_t process_id)
{
	struct straggler_unit *u = keyed_next(&s->units, NULL), *next;
	struct straggler_member *m, *behind;

	for (; u; u = next) {
		next = keyed_next(&s->units, u);
		if (unit_has_process(u, process_id))
			forget_unit(s, u);
	}
	for (m = keyed_next(&s->members, NULL); m; m = behind) {
		behind = keyed_next(&s->members, m);
		if (m->key.process_id == process_id)
			keyed_drop(&s->members, m);
	}
}

bool straggler_of(const struct straggler *s, uint64_t process_id, uint32_t comm_index,
		  struct straggler_sums *sums)
{
	const struct straggler_member *m = member_find(s, process_id, comm_index);

	if (!m || !m->nunits)
		return false;	/* it has never been compared */
	*sums = m->sums;
	return true;
}

/* Costs of what was timed stand for all that may be: the factor. */
static double recent_whole(uint64_t ended, uint64_t timed)
{
	return timed ? (double)ended / (double)timed : 1;
}

/* The part that is running counts as far as it has come. */
bool straggler_recent(const struct straggler *s, uint64_t process_id, uint32_t comm_index,
		      uint64_t now_ns, struct straggler_recent *recent)
{
	const struct straggler_member *m = member_find(s, process_id, comm_index);
	uint64_t now_part = now_ns / RECENT_PART_NS, from_ns;
	double whole;

	if (!m)
		return false;
	*recent = (struct straggler_recent){ 0 };
	for (uint64_t back = 0; back < RECENT_PARTS && back <= now_part; back++) {
		const struct recent r = member_part(m, m->recent, ARRAY_LEN(m->recent),
						    RECENT_PART_NS, now_part - back);

		recent->ops += r.ops;
		recent->wait_ns += r.wait_ns;
		recent->blame_ns += r.blame_ns;
		recent->ended += r.ended;
		recent->timed += r.timed;
	}
	whole = recent_whole(recent->ended, recent->timed);
	recent->wait_ns = (uint64_t)((double)recent->wait_ns * whole);
	recent->blame_ns = (uint64_t)((double)recent->blame_ns * whole);
	from_ns = now_part < RECENT_PARTS ? 0 : (now_part - RECENT_PARTS + 1) * RECENT_PART_NS;
	if (m->first_ns > from_ns)
		from_ns = m->first_ns;
	recent->window_ns = now_ns > from_ns ? now_ns - from_ns : 0;
	return true;
}

/* A part of the minute that is known for too short a time to tell stays unknown. */
static void member_put_part(const struct straggler_member *m, uint64_t part, uint64_t now_ns,
			    double *blame, double *ops_per_s)
{
	const struct recent r = member_part(m, m->minute, ARRAY_LEN(m->minute),
					    STRAGGLER_HISTORY_NS, part);
	uint64_t from_ns = part * STRAGGLER_HISTORY_NS, to_ns = from_ns + STRAGGLER_HISTORY_NS;
	double ns, share;

	from_ns = m->first_ns > from_ns ? m->first_ns : from_ns;
	to_ns = now_ns < to_ns ? now_ns : to_ns;
	if (to_ns < from_ns + HISTORY_LEAST_NS)
		return;
	ns = (double)(to_ns - from_ns);
	*ops_per_s = (double)r.finished * 1e9 / ns;
	if (!r.ops)
		return;
	share = (double)r.blame_ns * recent_whole(r.ended, r.timed) / ns;
	*blame = share < 1 ? share : 1;
}

void straggler_history(const struct straggler *s, uint64_t process_id, uint32_t comm_index,
		       uint64_t now_ns, struct straggler_history *history)
{
	const struct straggler_member *m = s ? member_find(s, process_id, comm_index) : NULL;
	uint64_t end = (now_ns + STRAGGLER_HISTORY_NS - HISTORY_LEAST_NS) / STRAGGLER_HISTORY_NS;

	for (uint64_t i = 0; i < STRAGGLER_HISTORY; i++) {
		uint64_t part = end - STRAGGLER_HISTORY + i;

		history->blame[i] = history->ops_per_s[i] = -1;
		if (m && part < end)
			member_put_part(m, part, now_ns, &history->blame[i],
					&history->ops_per_s[i]);
	}
}

void straggler_set_window(struct straggler *s, uint64_t window_ns)
{
	s->window_ns = window_ns ? window_ns : WINDOW_NS;
}

#define TABLE(type, n, ...)							\
	&KEYED_CONFIG(type, key, n, .seed = s->seed, __VA_ARGS__)

int straggler_new(struct straggler **sp, const struct straggler_config *config)
{
	struct straggler *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->seed = config ? config->seed : 0;
	straggler_set_window(s, config ? config->window_ns : 0);
	s->joints = calloc(JOINTS, sizeof(*s->joints));
	r = s->joints ? 0 : -ENOMEM;
	r = r ? r : keyed_init(&s->buckets, TABLE(struct bucket, BUCKETS));
	r = r ? r : keyed_init(&s->units, TABLE(struct straggler_unit, UNITS));
	r = r ? r : keyed_init(&s->tracks, TABLE(struct straggler_track, TRACKS));
	r = r ? r : keyed_init(&s->members, TABLE(struct straggler_member, MEMBERS,
						  .lately = true));
	if (r < 0) {
		straggler_free(s);
		return r;
	}
	*sp = s;
	return 0;
}

void straggler_free(struct straggler *s)
{
	if (!s)
		return;
	keyed_deinit(&s->members);
	keyed_deinit(&s->tracks);
	keyed_deinit(&s->units);
	keyed_deinit(&s->buckets);
	free(s->joints);
	free(s);
}
