/* SPDX-License-Identifier: Apache-2.0 */
/*
 *     cohort   the local ranks of one communicator, as the processes' tables tell
 *     joint    one operation of a cohort, with what came of it so far
 */
#include "ncclinspd/compare/ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/base/jobs.h"
#include "ncclinspd/compare/ranks_compare.h"
#include "reader/join/ops.h"
#include "reader/time/timeline.h"
#include "tables/keyed.h"
#include "util/list.h"

#define RESCAN_NS	UINT64_C(5000000000)	/* a cohort may have lost members by then */
#define UNKNOWN_NS	UINT64_C(100000000)	/* a cohort may have gained members by then */
#define INIT_APART_NS	UINT64_C(30000000000)	/* ranks of one communicator start together */
#define ENDED_NS	UINT64_C(1000000000)	/* a process that ended before has no more to say */
#define SCAN_NS		200	/* ns earn a look at one more communicator, up to */
#define SCAN_MOST	65536	/* these: tables come from jobs, and a scan reads them all */

struct ranks_member {
	uint64_t process_id;
	uint32_t comm_index;
	int32_t rank;
	bool finalized;
	uint64_t init_ns;
	uint32_t next;		/* number of the joint behind that of its last one, most often */
};

/* Compared and hashed as bytes: no padding. */
struct cohort_key {
	uint64_t comm_id;
	name_t comm_name;
	int32_t nranks;
	uid_t uid;
};
_Static_assert(sizeof(struct cohort_key) == 24, "padding would be compared");

struct cohort {
	struct keyed_head head;
	struct cohort_key key;
	uint64_t scanned_ns;
	uint32_t newest;		/* the member whose operation came last */
	uint32_t n;			/* 0: nothing is compared */
	bool ambiguous;
	struct ranks_member member[OP_RANKS];
};

struct joint_key {
	struct cohort *cohort;
	uint64_t func, seq;
};

struct ranks_joint {
	struct keyed_head head;
	struct joint_key key;
	uint32_t here;			/* bit per member: has come, or will not */
	uint32_t n;
	uint32_t item[OP_RANKS];	/* items of the pool `ops` */
	uint64_t first_ns;
};

struct ranks {
	struct ranks_hooks hooks;
	struct ranks_stats stats;
	struct pool ops;
	struct keyed joints;		/* the oldest first: none is touched */
	struct keyed cohorts;
	struct ops_words words;
	uint64_t now_ns;
	uint64_t scan_left, scan_ns;	/* communicators that may be looked at, as of then */
};

static struct op *ranks_op_at(const struct ranks *ranks, uint32_t item)
{
	return pool_at(&ranks->ops, item);
}

/* ---- who belongs together ------------------------------------------------ */

static bool comm_is_same(const struct comm *a, const struct comm *b)
{
	return b->ready && b->has_id && a->id == b->id && a->nranks == b->nranks &&
	       !strcmp(a->name, b->name);
}

/* The members of a process; false: more than there is room for. */
static bool cohort_add_members(struct cohort *cohort, const struct process *p,
			       const struct comm *comm)
{
	for (uint32_t i = 0; i < p->ncomms; i++) {
		const struct comm *c = &p->comms[i];
		struct ranks_member *member;

		if (!comm_is_same(comm, c))
			continue;
		member = array_add(cohort->member, &cohort->n);
		if (!member)
			return false;
		*member = (struct ranks_member){
			.process_id = p->id, .comm_index = i, .rank = c->rank,
			.finalized = c->finalize_ticks,
			.init_ns = timeline_mono(&p->clock, c->init_ticks),
		};
	}
	return true;
}

/* One rank number twice, or communicators that were not made together. */
static bool cohort_is_ambiguous(const struct cohort *cohort)
{
	for (uint32_t i = 0; i < cohort->n; i++)
		for (uint32_t k = 0; k < i; k++) {
			const struct ranks_member *a = &cohort->member[i], *b = &cohort->member[k];

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

static void cohort_scan(struct ranks *ranks, struct cohort *cohort, const struct op *op,
			uint64_t now_ns)
{
	struct process *const *list;
	size_t n = ranks->hooks.processes(ranks->hooks.arg, &list);
	const struct process *own = jobs_process(list, n, op->process_id);
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
			fits = cohort_add_members(cohort, list[i], comm);
	cohort->ambiguous = cohort_is_ambiguous(cohort);
	if (cohort->ambiguous)
		drop_finalized(cohort);
	cohort->ambiguous = cohort_is_ambiguous(cohort);
	if (!fits || cohort->ambiguous)
		cohort->n = 0;
}

static bool member_is_of(const struct ranks_member *member, const struct op *op)
{
	return member->process_id == op->process_id && member->comm_index == op->comm_index;
}

/* NULL: it is none.  One process's operations come one after another. */
static struct ranks_member *cohort_member(struct cohort *cohort, const struct op *op)
{
	if (cohort->newest < cohort->n && member_is_of(&cohort->member[cohort->newest], op))
		return &cohort->member[cohort->newest];
	for (cohort->newest = 0; cohort->newest < cohort->n; cohort->newest++)
		if (member_is_of(&cohort->member[cohort->newest], op))
			return &cohort->member[cohort->newest];
	return NULL;
}

/* ---- what is waited for -------------------------------------------------- */

/* All that came goes on, compared if there is something to compare. */
static void joint_release(struct ranks *ranks, struct ranks_joint *held, uint64_t now_ns)
{
	struct ranks_joint joint = *held;
	uint32_t expected = joint.key.cohort->n;
	struct op *ops[OP_RANKS];

	keyed_drop(&ranks->joints, held);
	for (uint32_t i = 0; i < joint.n; i++)
		ops[i] = ranks_op_at(ranks, joint.item[i]);
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

static bool joint_is_whole(const struct ranks_joint *joint)
{
	return joint->here == (UINT32_C(1) << joint->key.cohort->n) - 1;
}

/* All that is held of one cohort. */
static void release_all(struct ranks *ranks, const struct cohort *cohort, uint64_t now_ns)
{
	struct ranks_joint *joint = keyed_next(&ranks->joints, NULL), *next;

	for (; joint; joint = next) {
		next = keyed_next(&ranks->joints, joint);
		if (joint->key.cohort == cohort)
			joint_release(ranks, joint, now_ns);
	}
}

static void cohort_gone(void *cohort, void *arg)
{
	struct ranks *ranks = arg;

	release_all(ranks, cohort, ranks->now_ns);
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

static bool ranks_may_scan(struct ranks *ranks, uint64_t now_ns)
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

static void joint_rescan(struct ranks *ranks, struct cohort *cohort, const struct op *op,
			 uint64_t now_ns)
{
	struct cohort scanned = *cohort;

	cohort_scan(ranks, &scanned, op, now_ns);
	if (!same_members(cohort, &scanned))
		release_all(ranks, cohort, now_ns);	/* held by the members of before */
	*cohort = scanned;
}

static bool cohort_is_of(const struct cohort *cohort, const struct op *op)
{
	return cohort->key.comm_id == op->comm_id && cohort->key.comm_name == op->comm_name &&
	       cohort->key.nranks == op->nranks && cohort->key.uid == op->uid;
}

/* NULL: no memory. */
static struct cohort *cohort_use(struct ranks *ranks, const struct op *op)
{
	struct cohort *cohort = keyed_lately(&ranks->cohorts, op->comm_id);
	bool made;

	if (!cohort || !cohort_is_of(cohort, op)) {
		const struct cohort_key key = { op->comm_id, op->comm_name, op->nranks, op->uid };

		return keyed_use_lately(&ranks->cohorts, op->comm_id, &key, op->account, &made);
	}
	keyed_touch(&ranks->cohorts, cohort);
	return cohort;
}

/*
 * The member whose operation it is, of *cohort, whose members are brought up to date if need be.
 * NULL: none, and *cohort may be NULL as well, for want of memory.
 */
static struct ranks_member *ranks_member_of(struct ranks *ranks, const struct op *op,
					    uint64_t now_ns, struct cohort **cohort)
{
	struct ranks_member *member;

	ranks->now_ns = now_ns;
	*cohort = cohort_use(ranks, op);
	if (!*cohort)
		return NULL;
	member = cohort_member(*cohort, op);
	if (now_ns < (*cohort)->scanned_ns + (member ? RESCAN_NS : UNKNOWN_NS) ||
	    !ranks_may_scan(ranks, now_ns))
		return member;
	joint_rescan(ranks, *cohort, op, now_ns);
	return cohort_member(*cohort, op);
}

static void ranks_make_room(struct ranks *ranks, uid_t account, uint64_t now_ns)
{
	if (ranks->ops.used < ranks->ops.capacity &&
	    keyed_count(&ranks->joints) < ranks->joints.config.capacity)
		return;
	ranks->stats.pushed_out++;
	joint_release(ranks, keyed_first_to_go(&ranks->joints, account), now_ns);
}

/*
 * The joint of that key, which most often is `likely`: ranks come to one after another in the same
 * order.  NULL: there is none, or no memory; one that has a time begins one.
 */
static struct ranks_joint *joint_of(struct ranks *ranks, uint32_t likely,
				    const struct joint_key *key, uid_t account, bool timed,
				    uint64_t now_ns)
{
	struct ranks_joint *joint = keyed_taken(&ranks->joints, likely);
	bool made;

	if (joint && joint->key.cohort == key->cohort && joint->key.func == key->func &&
	    joint->key.seq == key->seq)
		return joint;
	if (!timed)
		return keyed_find(&ranks->joints, key);
	joint = keyed_get(&ranks->joints, key, account, &made);
	if (joint && made)
		joint->first_ns = now_ns;
	return joint;
}

/* True: it is held.  What has no time is not, but need not be waited for. */
static bool joint_take_in(struct ranks *ranks, const struct op *op, struct cohort *cohort,
			  struct ranks_member *member, bool timed, uint64_t now_ns)
{
	const struct joint_key key = {
		cohort, ops_word(&ranks->words, op->func)->facts->joint, op->seq,
	};
	uint32_t bit = UINT32_C(1) << cohort->newest;
	struct ranks_joint *joint;

	ranks_make_room(ranks, op->account, now_ns);
	joint = joint_of(ranks, member->next, &key, op->account, timed, now_ns);
	if (!joint || joint->here & bit)
		return false;		/* an id was used again: nothing fits */
	joint->here |= bit;
	member->next = joint->head.link.next ? keyed_number(joint->head.link.next) : POOL_NONE;
	if (timed) {
		uint32_t *place = array_must_add(joint->item, &joint->n);

		*place = pool_number(pool_take_unset(&ranks->ops));
		*ranks_op_at(ranks, *place) = *op;
	}
	if (joint_is_whole(joint))
		joint_release(ranks, joint, now_ns);
	return timed;
}

static bool op_is_joint(struct ranks *ranks, const struct op *op, bool timed)
{
	const struct op_facts *facts;

	if (op->seq == UNKNOWN_U64 || !op->has_comm_id || op->comm_index == NCI_COMM_NONE)
		return false;
	if (!timed && !keyed_count(&ranks->joints))
		return false;
	facts = ops_word(&ranks->words, op->func)->facts;
	return facts && facts->joint;
}

void ranks_add(struct ranks *ranks, const struct op *op, uint64_t now_ns)
{
	bool timed = ranks_is_timed(op);
	struct cohort *cohort = NULL;
	struct ranks_member *member = op_is_joint(ranks, op, timed) ?
				      ranks_member_of(ranks, op, now_ns, &cohort) : NULL;

	ranks->stats.ambiguous += cohort && cohort->ambiguous;
	if (!member || cohort->n < 2 ||
	    !joint_take_in(ranks, op, cohort, member, timed, now_ns))
		ranks->hooks.op(op, now_ns, ranks->hooks.arg);
}

/* Each account's are in the order of time. */
void ranks_flush(struct ranks *ranks, uint64_t now_ns)
{
	struct ranks_joint *joint;

	for (uint32_t list = 0; (joint = keyed_first(&ranks->joints, list));) {
		if (now_ns < joint->first_ns + RANKS_WAIT_NS) {
			list = joint->head.account % ACCOUNTS_TALLY + 1;
			continue;
		}
		ranks->stats.expired++;
		joint_release(ranks, joint, now_ns);
	}
}

void ranks_end(struct ranks *ranks, const struct process *process, uint64_t now_ns)
{
	struct ranks_joint *joint = keyed_next(&ranks->joints, NULL), *next;

	for (; joint; joint = next) {
		const struct cohort *cohort = joint->key.cohort;

		next = keyed_next(&ranks->joints, joint);
		for (uint32_t i = 0; i < cohort->n; i++)
			if (cohort->member[i].process_id == process->id)
				joint->here |= UINT32_C(1) << i;
		if (joint_is_whole(joint))
			joint_release(ranks, joint, now_ns);
	}
}

/* ---- life ---------------------------------------------------------------- */

static int ranks_init_stores(struct ranks *ranks, const struct ranks_limits *l)
{
	int err = pool_init(&ranks->ops, l->ops, sizeof(struct op));

	err = err ? err : keyed_init(&ranks->joints, &KEYED_CONFIG(struct ranks_joint, key,
				l->joints, .seed = l->seed));
	return err ? err : keyed_init(&ranks->cohorts, &KEYED_CONFIG(struct cohort, key,
				l->cohorts, .seed = l->seed, .lately = true,
				.gone = cohort_gone, .arg = ranks));
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
	if (ranks_init_stores(ranks, &l)) {
		ranks_free(ranks);
		return -ENOMEM;
	}
	ranks->hooks = *hooks;
	*ranksp = ranks;
	return 0;
}

void ranks_free(struct ranks *ranks)
{
	if (!ranks)
		return;
	keyed_deinit(&ranks->cohorts);
	keyed_deinit(&ranks->joints);
	pool_deinit(&ranks->ops);
	free(ranks);
}

const struct ranks_stats *ranks_stats(const struct ranks *ranks)
{
	return &ranks->stats;
}
