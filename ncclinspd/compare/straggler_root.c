/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lateness has a root: a rank that comes late because it had to wait in the operation
 * before has lost that time to another one.
 */
#include "ncclinspd/compare/straggler_impl.h"

#define HOPS		16
#define INHERITED	0.7	/* part of its lateness that must be waiting, or it is its own */

static const struct joint *joint_of(const struct straggler *s, uint64_t id)
{
	const struct joint *j = &s->joints[id % JOINTS];

	return id && j->id == id ? j : NULL;
}

/* The operation that this GPU was in before, or NULL; false: it is not known any more. */
static bool find_before(const struct straggler *s, const struct joint_part *p,
			const struct joint **found)
{
	const struct track *t = track_at(s, p->track);
	uint64_t newest = 0;

	*found = NULL;
	if (t->key != p->gpu)
		return false;
	for (uint32_t i = 0; i < TRACK_JOINTS; i++) {
		const struct joint *j = joint_of(s, t->ring[i].id);

		if (j && t->ring[i].start < p->start && t->ring[i].start >= newest) {
			newest = t->ring[i].start;
			*found = j;
		}
	}
	return *found || !t->ring[t->next].id;
}

static const struct joint_part *part_of(const struct joint *j, uint64_t gpu)
{
	for (uint32_t i = 0; i < j->n; i++)
		if (j->part[i].gpu == gpu)
			return &j->part[i];
	return NULL;
}

struct root {
	const struct joint *joint;
	uint64_t moved_ns;	/* part of its lateness in the operation that we began with */
	bool lost;		/* the chain goes on, but what was there is not kept any more */
	bool nobody;		/* the one that is to blame is not here, or it is the network */
};

/*
 * The operation in which the last one of `j` waited for what it is late by now, or NULL:
 * one of those since it last left an operation together with whom it keeps waiting.
 */
static const struct joint *find_cause(const struct straggler *s, const struct joint *j,
				      uint64_t *wait_ns, bool *lost)
{
	const struct joint_part *late = &j->part[j->last], *then = late;
	const struct joint *prev;

	for (int hop = 0; hop < HOPS; hop++) {
		*lost = !find_before(s, then, &prev);
		if (!prev || prev->comm == j->comm)
			return NULL;
		*lost = !prev->whole;
		if (part_of(prev, j->part[j->first].gpu))
			return NULL;
		then = part_of(prev, late->gpu);
		if (*lost || !then)
			return NULL;
		*wait_ns = then->wait_ns;
		if ((double)*wait_ns >= INHERITED * (double)late->late_ns)
			return prev;
	}
	return NULL;
}

/*
 * The time that a GPU was in operations since it last left one together with another GPU.
 * False: not all of them are known.
 */
static bool sum_inside(const struct straggler *s, const struct joint *j,
		       const struct joint_part *p, uint64_t other, uint64_t *sum_ns)
{
	const uint64_t gpu = p->gpu;
	const struct joint *prev;

	*sum_ns = 0;
	for (int hop = 0; hop < HOPS && p; hop++) {
		if (!find_before(s, p, &prev))
			return false;
		if (!prev || prev->comm == j->comm || part_of(prev, other))
			return true;
		p = part_of(prev, gpu);
		*sum_ns += p ? p->inside_ns : 0;
	}
	return false;
}

/*
 * The time that the last one spent in operations beyond what the first one did meanwhile:
 * for ranks elsewhere, or in transfers that take longer.
 */
static uint64_t lost_inside(const struct straggler *s, const struct joint *j)
{
	const struct joint_part *first = &j->part[j->first], *last = &j->part[j->last];
	uint64_t first_ns, last_ns;

	if (!sum_inside(s, j, last, first->gpu, &last_ns) ||
	    !sum_inside(s, j, first, last->gpu, &first_ns))
		return 0;
	return last_ns > first_ns ? last_ns - first_ns : 0;
}

/* Finds out whether time whose cause was not seen was lost in NCCL all the same. */
static void try_nobody(const struct straggler *s, struct root *root)
{
	const struct joint *j = root->joint;
	uint64_t ns = root->lost ? 0 : lost_inside(s, j);

	root->nobody = ns && (double)ns >= INHERITED * (double)j->part[j->last].late_ns;
	if (root->nobody && ns < root->moved_ns)
		root->moved_ns = ns;
}

/*
 * Go up the chain from the last one.  root.joint's last one is to blame for `moved_ns`
 * (NOBODY: a rank that is not here), the last one of `j` for the rest.
 */
static struct root find_root(const struct straggler *s, const struct joint *j)
{
	struct root root = { .joint = j, .moved_ns = j->part[j->last].late_ns };

	for (int hop = 0; hop < HOPS && root.joint->last != NOBODY; hop++) {
		uint64_t wait_ns;
		const struct joint *cause = find_cause(s, root.joint, &wait_ns, &root.lost);

		if (!cause) {
			try_nobody(s, &root);
			break;
		}
		if (wait_ns < root.moved_ns)
			root.moved_ns = wait_ns;
		root.joint = cause;
	}
	if (root.joint == j && !root.nobody)
		root.moved_ns = 0;
	return root;
}

static struct unit *unit_of(struct straggler *s, const struct joint *j)
{
	struct unit *u = unit_at(s, j->unit);

	return u->key == j->unit_key ? u : NULL;
}

/* Cost that was handed on belongs to the rank that was last where it began. */
static void move(struct straggler *s, const struct root *root, uint64_t blame_ns)
{
	struct unit *u = unit_of(s, root->joint);
	uint32_t seat;

	if (!u || root->nobody || root->joint->last == NOBODY)
		return;
	seat = root->joint->part[root->joint->last].seat;
	u->window[u->current].tally[seat].moved_ns += blame_ns;
	member_at(s, u->seat[seat].member)->sums.blame_ns += blame_ns;
}

static void add_own(struct straggler *s, struct unit *u, const struct joint *j,
		    uint64_t blame_ns)
{
	struct window *w = &u->window[u->current];
	uint32_t last = j->part[j->last].seat;
	struct tally *t = &w->tally[last];

	w->judged++;
	w->bursts += j->burst;
	w->tail_ns += j->tail_ns;
	for (uint32_t i = 0; i < j->n; i++) {
		w->tally[j->part[i].seat].late_ns += j->part[i].late_ns;
		member_at(s, u->seat[j->part[i].seat].member)->sums.judged++;
	}
	t->last++;
	t->bursts += j->burst;
	t->blame_ns += blame_ns;
	t->burst_ns += j->burst ? blame_ns : 0;
	if (j->burst && blame_ns > t->burst_most_ns)
		t->burst_most_ns = blame_ns;
	member_at(s, u->seat[last].member)->sums.last++;
	member_at(s, u->seat[last].member)->sums.blame_ns += blame_ns;
}

static void add_up(struct window *w, const struct joint *j)
{
	w->ops++;
	w->rated += j->rated;
	w->slow += j->slow;
	w->slow_ns += j->slow_ns;
}

void straggler_settle(struct straggler *s, const struct joint *j)
{
	struct unit *u = unit_of(s, j);
	struct root root;
	uint64_t late_ns, moved_ns;

	if (!u)
		return;
	add_up(&u->window[u->current], j);
	if (!j->judged)
		return;
	root = find_root(s, j);
	if (root.lost)
		return;		/* nobody can tell whose doing it was */
	late_ns = j->part[j->last].late_ns;
	moved_ns = (uint64_t)((double)j->blame_ns * ((double)root.moved_ns / (double)late_ns));
	if (moved_ns)
		move(s, &root, moved_ns);
	if ((double)root.moved_ns < INHERITED * (double)late_ns)
		add_own(s, u, j, j->blame_ns - moved_ns);
}
