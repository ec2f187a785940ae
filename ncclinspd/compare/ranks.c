/* SPDX-License-Identifier: Apache-2.0 */
/*
 *     cohort   the local ranks of one communicator, as the processes' tables tell
 *     joint    one operation of a cohort, with what came of it so far
 */
#include "ncclinspd/compare/ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/compare/ranks_compare.h"
#include "reader/base/pool.h"
#include "reader/join/ops.h"
#include "reader/time/timeline.h"
#include "util/list.h"

#define RESCAN_NS	UINT64_C(5000000000)	/* a cohort may have lost members by then */
#define UNKNOWN_NS	UINT64_C(100000000)	/* a cohort may have gained members by then */
#define INIT_APART_NS	UINT64_C(30000000000)	/* ranks of one communicator start together */
#define ENDED_NS	UINT64_C(1000000000)	/* a process that ended before has no more to say */
#define SCAN_NS		200	/* ns earn a look at one more communicator, up to */
#define SCAN_MOST	65536	/* these: tables come from jobs, and a scan reads them all */

struct member {
	uint64_t process_id;
	uint32_t comm_index;
	int32_t rank;
	bool finalized;
	uint64_t init_ns;
};

struct cohort {
	struct pool_link link;		/* all, least recently scanned first */
	uint64_t key;
	uint64_t scanned_ns;
	uint32_t n;			/* 0: nothing is compared */
	bool ambiguous;
	struct member member[OP_RANKS];
};

struct joint {
	struct pool_link link;		/* all, oldest first */
	uint64_t key;
	uint32_t cohort;
	uint32_t here;			/* bit per member: has come, or will not */
	uint32_t n;
	uint32_t item[OP_RANKS];	/* items of the pool `ops` */
	uint64_t first_ns;
};

struct ranks {
	struct ranks_hooks hooks;
	struct ranks_stats stats;
	struct pool ops, joints, cohorts;
	struct index joint_index, cohort_index;
	struct pool_list joint_list, cohort_list;
	uint64_t seed;
	uint64_t scan_left, scan_ns;	/* communicators that may be looked at, as of then */
};

static struct op *op_at(const struct ranks *ranks, uint32_t item)
{
	return pool_at(&ranks->ops, item);
}

static struct joint *joint_at(const struct ranks *ranks, uint32_t item)
{
	return pool_at(&ranks->joints, item);
}

static struct cohort *cohort_at(const struct ranks *ranks, uint32_t item)
{
	return pool_at(&ranks->cohorts, item);
}

/* ---- making -------------------------------------------------------------- */

static int init_stores(struct ranks *ranks, const struct ranks_limits *l)
{
	int err = pool_init(&ranks->ops, l->ops, sizeof(struct op));

	err = err ? err : pool_init(&ranks->joints, l->joints, sizeof(struct joint));
	err = err ? err : pool_init(&ranks->cohorts, l->cohorts, sizeof(struct cohort));
	err = err ? err : index_init(&ranks->joint_index, l->joints, l->seed);
	err = err ? err : index_init(&ranks->cohort_index, l->cohorts, l->seed);
	return err;
}

int ranks_new(struct ranks **ranksp, const struct ranks_limits *limits,
	      const struct ranks_hooks *hooks)
{
	struct ranks *ranks = calloc(1, sizeof(*ranks));
	struct ranks_limits l = { 0 };

	if (!ranks)
		return -ENOMEM;
	if (limits)
		l = *limits;
	l.ops = l.ops ? l.ops : 4096;
	l.joints = l.joints ? l.joints : 2048;
	l.cohorts = l.cohorts ? l.cohorts : 1024;
	if (init_stores(ranks, &l)) {
		ranks_free(ranks);
		return -ENOMEM;
	}
	pool_list_init(&ranks->joint_list, offsetof(struct joint, link));
	pool_list_init(&ranks->cohort_list, offsetof(struct cohort, link));
	ranks->hooks = *hooks;
	ranks->seed = l.seed;
	*ranksp = ranks;
	return 0;
}

void ranks_free(struct ranks *ranks)
{
	if (!ranks)
		return;
	index_deinit(&ranks->cohort_index);
	index_deinit(&ranks->joint_index);
	pool_deinit(&ranks->cohorts);
	pool_deinit(&ranks->joints);
	pool_deinit(&ranks->ops);
	free(ranks);
}

/* ---- who belongs together ------------------------------------------------ */

static const struct process *find_process(struct process *const *list, size_t n, uint64_t id)
{
	for (size_t i = 0; i < n; i++)
		if (list[i]->id == id)
			return list[i];
	return NULL;
}

static bool is_same(const struct comm *a, const struct comm *b)
{
	return b->ready && b->has_id && a->id == b->id && a->nranks == b->nranks &&
	       !strcmp(a->name, b->name);
}

/* The members of a process; false: more than there is room for. */
static bool add_members(struct cohort *cohort, const struct process *p, const struct comm *comm)
{
	for (uint32_t i = 0; i < p->ncomms; i++) {
		const struct comm *c = &p->comms[i];
		struct member *member;

		if (!is_same(comm, c))
			continue;
		member = array_add(cohort->member, &cohort->n);
		if (!member)
			return false;
		*member = (struct member){
			.process_id = p->id, .comm_index = i, .rank = c->rank,
			.finalized = c->finalize_ticks,
			.init_ns = timeline_mono(&p->clock, c->init_ticks),
		};
	}
	return true;
}

/* One rank number twice, or communicators that were not made together. */
static bool is_ambiguous(const struct cohort *cohort)
{
	for (uint32_t i = 0; i < cohort->n; i++)
		for (uint32_t k = 0; k < i; k++) {
			const struct member *a = &cohort->member[i], *b = &cohort->member[k];

			if (a->rank == b->rank || a->init_ns > b->init_ns + INIT_APART_NS ||
			    b->init_ns > a->init_ns + INIT_APART_NS)
				return true;
		}
	return false;
}

static void drop_finalized(struct cohort *cohort)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < cohort->n; i++)
		if (!cohort->member[i].finalized)
			cohort->member[n++] = cohort->member[i];
	cohort->n = n;
}

static void scan(struct ranks *ranks, struct cohort *cohort, const struct op *op, uint64_t now_ns)
{
	struct process *const *list;
	size_t n = ranks->hooks.processes(ranks->hooks.arg, &list);
	const struct process *own = find_process(list, n, op->process_id);
	const struct comm *comm = own ? process_comm(own, (uint16_t)op->comm_index) : NULL;
	bool fits = comm;

	cohort->n = 0;
	cohort->scanned_ns = now_ns;
	for (size_t i = 0; i < n; i++)
		if (list[i]->uid == op->uid)
			ranks->scan_left -= list[i]->ncomms < ranks->scan_left ?
					    list[i]->ncomms : ranks->scan_left;
	for (size_t i = 0; i < n && fits; i++)
		if (list[i]->uid == op->uid &&
		    (!list[i]->ended_ns || now_ns < list[i]->ended_ns + ENDED_NS))
			fits = add_members(cohort, list[i], comm);
	cohort->ambiguous = is_ambiguous(cohort);
	if (cohort->ambiguous)
		drop_finalized(cohort);
	cohort->ambiguous = is_ambiguous(cohort);
	if (!fits || cohort->ambiguous)
		cohort->n = 0;
}

static uint32_t member_of(const struct cohort *cohort, const struct op *op)
{
	for (uint32_t i = 0; i < cohort->n; i++)
		if (cohort->member[i].process_id == op->process_id &&
		    cohort->member[i].comm_index == op->comm_index)
			return i;
	return POOL_NONE;
}

/* ---- what is waited for -------------------------------------------------- */

/* All that came goes on, compared if there is something to compare. */
static void release(struct ranks *ranks, uint32_t item, uint64_t now_ns)
{
	struct joint joint = *joint_at(ranks, item);
	uint32_t expected = cohort_at(ranks, joint.cohort)->n;
	struct op *ops[OP_RANKS];

	index_remove(&ranks->joint_index, joint.key);
	pool_list_remove(&ranks->joints, &ranks->joint_list, item);
	pool_put(&ranks->joints, item);
	for (uint32_t i = 0; i < joint.n; i++)
		ops[i] = op_at(ranks, joint.item[i]);
	if (ranks_are_alike(ops, joint.n)) {
		ranks_compare(ops, joint.n);
		ranks->stats.joints++;
		if (ranks->hooks.joint)
			ranks->hooks.joint((const struct op *const *)ops, joint.n, expected,
					   now_ns, ranks->hooks.arg);
	}
	for (uint32_t i = 0; i < joint.n; i++) {
		ranks->hooks.op(ops[i], now_ns, ranks->hooks.arg);
		pool_put(&ranks->ops, joint.item[i]);
	}
}

static bool is_whole(const struct ranks *ranks, const struct joint *joint)
{
	return joint->here == (UINT32_C(1) << cohort_at(ranks, joint->cohort)->n) - 1;
}

/* All that is held of one cohort. */
static void release_all(struct ranks *ranks, uint32_t cohort, uint64_t now_ns)
{
	uint32_t next;

	for (uint32_t item = ranks->joint_list.first; item != POOL_NONE; item = next) {
		next = pool_list_next(&ranks->joints, &ranks->joint_list, item);
		if (joint_at(ranks, item)->cohort == cohort)
			release(ranks, item, now_ns);
	}
}

static uint32_t new_cohort(struct ranks *ranks, uint64_t key, uint64_t now_ns)
{
	uint32_t item = ranks->cohort_list.first;

	if (ranks->cohorts.used == ranks->cohorts.capacity) {
		release_all(ranks, item, now_ns);
		index_remove(&ranks->cohort_index, cohort_at(ranks, item)->key);
		pool_list_remove(&ranks->cohorts, &ranks->cohort_list, item);
		pool_put(&ranks->cohorts, item);
	}
	item = pool_take(&ranks->cohorts);
	cohort_at(ranks, item)->key = key;
	pool_list_append(&ranks->cohorts, &ranks->cohort_list, item);
	index_set(&ranks->cohort_index, key, item);
	return item;
}

static bool same_members(const struct cohort *a, const struct cohort *b)
{
	if (a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->member[i].process_id != b->member[i].process_id ||
		    a->member[i].comm_index != b->member[i].comm_index)
			return false;
	return true;
}

static bool may_scan(struct ranks *ranks, uint64_t now_ns)
{
	uint64_t more = (now_ns - ranks->scan_ns) / SCAN_NS;

	ranks->scan_ns += more * SCAN_NS;
	if (more >= SCAN_MOST - ranks->scan_left)
		ranks->scan_left = SCAN_MOST;
	else
		ranks->scan_left += more;
	ranks->stats.unscanned += !ranks->scan_left;
	return ranks->scan_left;
}

static void rescan(struct ranks *ranks, uint32_t item, const struct op *op, uint64_t now_ns)
{
	struct cohort *cohort = cohort_at(ranks, item);
	struct cohort scanned = *cohort;

	scan(ranks, &scanned, op, now_ns);
	if (!same_members(cohort, &scanned))
		release_all(ranks, item, now_ns);	/* held by the members of before */
	*cohort = scanned;
	pool_list_remove(&ranks->cohorts, &ranks->cohort_list, item);
	pool_list_append(&ranks->cohorts, &ranks->cohort_list, item);
}

/* The cohort of an operation, its members brought up to date if need be. */
static uint32_t cohort_of(struct ranks *ranks, const struct op *op, uint64_t now_ns)
{
	const uint64_t words[] = {
		op->comm_id, (uint32_t)op->nranks, (uintptr_t)op->comm_name, op->uid,
	};
	uint64_t key = index_hash(ranks->seed, words, sizeof(words));
	uint32_t item = index_find(&ranks->cohort_index, key);
	const struct cohort *cohort;

	if (item == POOL_NONE)
		item = new_cohort(ranks, key, now_ns);
	cohort = cohort_at(ranks, item);
	if ((now_ns >= cohort->scanned_ns + RESCAN_NS ||
	     (now_ns >= cohort->scanned_ns + UNKNOWN_NS && member_of(cohort, op) == POOL_NONE)) &&
	    may_scan(ranks, now_ns))
		rescan(ranks, item, op, now_ns);
	return item;
}

static void make_room(struct ranks *ranks, uint64_t now_ns)
{
	if (ranks->ops.used < ranks->ops.capacity &&
	    ranks->joints.used < ranks->joints.capacity)
		return;
	ranks->stats.pushed_out++;
	release(ranks, ranks->joint_list.first, now_ns);
}

static uint32_t new_joint(struct ranks *ranks, uint32_t cohort, uint64_t key, uint64_t now_ns)
{
	uint32_t item = pool_take(&ranks->joints);
	struct joint *joint = joint_at(ranks, item);

	joint->key = key;
	joint->cohort = cohort;
	joint->first_ns = now_ns;
	pool_list_append(&ranks->joints, &ranks->joint_list, item);
	index_set(&ranks->joint_index, key, item);
	return item;
}

/* True: it is held.  What has no time is not, but need not be waited for. */
static bool take_in(struct ranks *ranks, const struct op *op, uint32_t cohort, uint32_t member,
		    uint64_t now_ns)
{
	const uint64_t words[] = {
		cohort_at(ranks, cohort)->key, ops_facts(op->func)->joint, op->seq,
	};
	uint64_t key = index_hash(ranks->seed, words, sizeof(words));
	uint32_t item;
	struct joint *joint;

	make_room(ranks, now_ns);
	item = index_find(&ranks->joint_index, key);
	if (item == POOL_NONE && !ranks_is_timed(op))
		return false;
	if (item == POOL_NONE)
		item = new_joint(ranks, cohort, key, now_ns);
	joint = joint_at(ranks, item);
	if (joint->cohort != cohort || joint->here & UINT32_C(1) << member)
		return false;		/* an id was used again: nothing fits */
	joint->here |= UINT32_C(1) << member;
	if (ranks_is_timed(op)) {
		uint32_t *place = array_must_add(joint->item, &joint->n);

		*place = pool_take(&ranks->ops);
		*op_at(ranks, *place) = *op;
	}
	if (is_whole(ranks, joint))
		release(ranks, item, now_ns);
	return ranks_is_timed(op);
}

static bool is_joint(const struct ranks *ranks, const struct op *op)
{
	const struct op_facts *facts;

	if (op->seq == UNKNOWN_U64 || !op->has_comm_id || op->comm_index == NCI_COMM_NONE)
		return false;
	if (!ranks_is_timed(op) && ranks->joint_list.first == POOL_NONE)
		return false;
	facts = ops_facts(op->func);
	return facts && facts->joint;
}

void ranks_add(struct ranks *ranks, const struct op *op, uint64_t now_ns)
{
	bool held = false;

	if (is_joint(ranks, op)) {
		uint32_t item = cohort_of(ranks, op, now_ns);
		const struct cohort *cohort = cohort_at(ranks, item);
		uint32_t member = member_of(cohort, op);

		ranks->stats.ambiguous += cohort->ambiguous;
		if (cohort->n > 1 && member != POOL_NONE)
			held = take_in(ranks, op, item, member, now_ns);
	}
	if (!held)
		ranks->hooks.op(op, now_ns, ranks->hooks.arg);
}

void ranks_flush(struct ranks *ranks, uint64_t now_ns)
{
	uint32_t item;

	while ((item = ranks->joint_list.first) != POOL_NONE &&
	       now_ns >= joint_at(ranks, item)->first_ns + RANKS_WAIT_NS) {
		ranks->stats.expired++;
		release(ranks, item, now_ns);
	}
}

void ranks_end(struct ranks *ranks, const struct process *process, uint64_t now_ns)
{
	uint32_t next;

	for (uint32_t item = ranks->joint_list.first; item != POOL_NONE; item = next) {
		struct joint *joint = joint_at(ranks, item);
		const struct cohort *cohort = cohort_at(ranks, joint->cohort);

		next = pool_list_next(&ranks->joints, &ranks->joint_list, item);
		for (uint32_t i = 0; i < cohort->n; i++)
			if (cohort->member[i].process_id == process->id)
				joint->here |= UINT32_C(1) << i;
		if (is_whole(ranks, joint))
			release(ranks, item, now_ns);
	}
}

const struct ranks_stats *ranks_stats(const struct ranks *ranks)
{
	return &ranks->stats;
}
