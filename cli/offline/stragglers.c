/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of all nodes as one window of each communicator and function.  A node keeps one of
 * so many operations; the time that they stand for is worked out from their numbers.
 */
#include "cli/offline/stragglers.h"

#include <stdlib.h>
#include <string.h>

#include "cli/base/must.h"
#include "tables/stat.h"
#include "util/list.h"

#define LONG	10	/* times what the others usually wait */

/* One operation. */
struct late_joint {
	const struct shots_sample *at;	/* its samples, by rank */
	uint32_t n;
	unsigned size_class;
	struct late_op op;
};

/* One communicator's function. */
struct series {
	const struct shots_comm *comm;
	const struct shots_series *of;
	int32_t nranks;
	LIST(struct late_joint) joints;
	LIST(int64_t) ranks;
	struct late_window window;
	struct late_tally *tally;	/* one for each of `ranks` */
	struct late_part *parts;
	double *values;			/* room for each joint, and for two of each rank */
	double *shares;			/* one for each rank */
	bool *late, *told;		/* one for each rank */
	uint64_t inside_ns;
};

static int compare_i64(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return (a > b) - (a < b);
}

/* ---- what there is ---------------------------------------------------------------------- */

static void series_find_ranks(struct series *s)
{
	uint32_t all;

	for (size_t i = 0; i < s->of->samples.n; i++)
		*(int64_t *)must(list_append(&s->ranks)) = s->of->samples.at[i].rank;
	list_sort(&s->ranks, compare_i64);
	all = s->ranks.n;
	s->ranks.n = 0;
	for (uint32_t i = 0; i < all; i++)
		if (!i || s->ranks.at[s->ranks.n - 1] != s->ranks.at[i])
			*list_must_add(&s->ranks) = s->ranks.at[i];
}

/* Keeps those of which the most ranks tell: one that is missing in another may be its last. */
static void series_find_joints(struct series *s)
{
	uint32_t most = 0, all;

	for (size_t i = 0, k; i < s->of->samples.n; i = k) {
		struct late_joint *j = must(list_append(&s->joints));

		for (k = i; k < s->of->samples.n &&
			    s->of->samples.at[k].seq == s->of->samples.at[i].seq;)
			k++;
		*j = (struct late_joint){
			.at = &s->of->samples.at[i], .n = (uint32_t)(k - i),
			.size_class = s->of->samples.at[i].size_class,
		};
		most = j->n > most ? j->n : most;
	}
	all = s->joints.n;
	s->joints.n = 0;
	for (uint32_t i = 0; i < all; i++)
		if (s->joints.at[i].n == most)
			*list_must_add(&s->joints) = s->joints.at[i];
}

static void joint_parts(const struct late_joint *j, struct late_part *parts)
{
	for (uint32_t i = 0; i < j->n; i++)
		parts[i] = (struct late_part){ .inside_ns = j->at[i].inside_ns };
}

/* ---- what is usual ----------------------------------------------------------------------- */

static struct late_usual class_usual(struct series *s, unsigned size_class)
{
	struct late_usual usual = { .transfer_ns = UNKNOWN_U64 };
	uint32_t n = 0;

#define GATHER(expression)						\
	do {								\
		n = 0;							\
		for (uint32_t i = 0; i < s->joints.n; i++) {		\
			const struct late_joint *j = &s->joints.at[i];	\
									\
			if (j->size_class == size_class) {		\
				s->values[n] = (double)(expression);	\
				n++;					\
			}						\
		}							\
	} while (0)
	GATHER(j->op.least_ns);
	usual.known = n >= LATE_KNOWN;
	if (!usual.known)
		return usual;
	usual.transfer_ns = (uint64_t)stat_quantile(s->values, n, 0.05);
	GATHER(late_tail(&j->op, usual.transfer_ns));
	usual.tail_ns = (uint64_t)stat_quantile(s->values, n, 0.1);
#undef GATHER
	return usual;
}

static void series_rate(struct series *s)
{
	for (unsigned class = 0; class < 64; class++) {
		struct late_usual usual;
		bool known = false;

		list_each(j, &s->joints) {
			if (j->size_class != class)
				continue;
			if (!known)
				usual = class_usual(s, class);
			known = true;
			joint_parts(j, s->parts);
			late_rate(s->parts, j->n, s->nranks, &usual, &j->op, s->values);
		}
	}
}

/* ---- whose doing it was ------------------------------------------------------------------ */

static struct late_tally *series_tally(const struct series *s, int64_t rank)
{
	const int64_t *at = bsearch(&rank, s->ranks.at, s->ranks.n, sizeof(rank), compare_i64);

	return &s->tally[at - s->ranks.at];
}

/*
 * Did a late one only hand on what it had waited for on other communicators?  It was in
 * these for longer than the first one was meanwhile.  True also where that is not known.
 */
static bool sample_is_inherited(const struct late_joint *j, uint32_t i)
{
	const struct shots_sample *first = &j->at[j->op.first], *late = &j->at[i];

	if (first->before_us == SHOTS_UNKNOWN || late->before_us == SHOTS_UNKNOWN)
		return true;
	return late->before_us > first->before_us &&
	       late_is_inherited(1000 * (uint64_t)(late->before_us - first->before_us),
				 j->op.most_ns - late->inside_ns);
}

/* Is it late in this operation by its own doing? */
static bool sample_is_own(const struct late_joint *j, uint32_t i)
{
	return late_is_worth_following(&j->op, j->at[i].inside_ns) &&
	       !sample_is_inherited(j, i);
}

static void joint_add_own(struct series *s, const struct late_joint *j)
{
	joint_parts(j, s->parts);
	late_share(s->parts, j->n, &j->op, s->shares, s->values);
	late_add_judged(&s->window, &j->op);
	for (uint32_t i = 0; i < j->n; i++) {
		uint64_t inside_ns = j->at[i].inside_ns;
		bool handed_on = late_is_worth_following(&j->op, inside_ns) &&
				 sample_is_inherited(j, i);

		late_add_own(series_tally(s, j->at[i].rank), i == j->op.last && !handed_on,
			     j->op.most_ns - (handed_on ? j->op.punctual_ns : inside_ns),
			     handed_on ? 0 : (uint64_t)s->shares[i]);
	}
}

/* The time from one operation to the next by one rank's samples, as often as there are any. */
static uint64_t series_wall(const struct series *s)
{
	const struct shots_span *span = s->ranks.n ? shots_span(s->of, s->ranks.at[0]) : NULL;
	double wall_ns;

	if (!span || span->to_seq == span->from_seq || span->to_ns <= span->from_ns)
		return 0;
	wall_ns = (double)(span->to_ns - span->from_ns) / (double)(span->to_seq - span->from_seq) *
		  s->joints.n;
	return wall_ns < 1e18 ? (uint64_t)wall_ns : 0;
}

/* Adds up the operations in which the others waited for so long at most. */
static void series_add_up(struct series *s, uint64_t most_ns)
{
	s->window = (struct late_window){ .wall_ns = series_wall(s) };
	s->inside_ns = 0;
	memset(s->tally, 0, s->ranks.n * sizeof(*s->tally));
	list_each(j, &s->joints) {
		bool own = false;

		if (j->op.blame_ns > most_ns)
			continue;
		late_add(&s->window, &j->op, 1);
		s->inside_ns += j->op.least_ns + j->op.blame_ns;
		for (uint32_t k = 0; j->op.judged && !own && k < j->n; k++)
			own = sample_is_own(j, k);
		if (own)
			joint_add_own(s, j);
	}
}

/* ---- judgement ----------------------------------------------------------------------------- */

static void series_tell(const struct series *s, const struct late_view *v, uint32_t i,
			uint32_t others, stragglers_found_fn *found, void *arg)
{
	const struct late_window *w = v->window;
	const struct late_tally *t = &v->tally[i];
	struct offline_straggler l = {
		.comm = s->comm, .series = s->of, .rank = s->ranks.at[i],
		.inside_ns = s->inside_ns,
		.c = { .verdict = late_how_often(v, i), .func = s->of->func,
		       .nranks = s->nranks, .seen = s->ranks.n, .here = "these nodes",
		       .who.rank = (int32_t)s->ranks.at[i],
		       .wall_ns = w->wall_ns, .ops = w->ops, .judged = w->judged,
		       .last = t->last, .times = (uint64_t)(late_times(v, i) + 0.5),
		       .blame_ns = t->blame_ns, .others = others },
	};

	l.c.late_ns = late_mean_ns(v, i);
	found(&l, arg);
}

/* Tells of each rank that is late, and of which nothing was told yet. */
static void series_judge(struct series *s, stragglers_found_fn *found, void *arg)
{
	const struct late_view v = { &s->window, s->tally, s->ranks.n, s->nranks, s->values };
	uint32_t n = 0;

	for (uint32_t i = 0; s->window.wall_ns && i < s->ranks.n; i++) {
		s->late[i] = late_is_late(&v, i);
		n += s->late[i];
	}
	for (uint32_t i = 0; n && i < s->ranks.n; i++) {
		if (s->late[i] && !s->told[i])
			series_tell(s, &v, i, n - 1, found, arg);
		s->told[i] |= s->late[i];
	}
}

/*
 * A few operations in which somebody stopped for long would hide who is a little late in each:
 * what those add to everybody's chance is more than that.  Such ones are left out.
 */
static uint64_t series_most(const struct series *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->joints.n; i++)
		if (s->joints.at[i].op.judged)
			s->values[n++] = (double)s->joints.at[i].op.blame_ns;
	return n ? (uint64_t)(LONG * stat_median(s->values, n)) : UINT64_MAX;
}

static bool series_has_longer(const struct series *s, uint64_t most_ns)
{
	for (uint32_t i = 0; i < s->joints.n; i++)
		if (s->joints.at[i].op.blame_ns > most_ns)
			return true;
	return false;
}

static void series_look(struct series *s, stragglers_found_fn *found, void *arg)
{
	uint64_t most_ns;
	size_t most;

	series_find_ranks(s);
	series_find_joints(s);
	most = s->joints.n > 2 * s->ranks.n ? s->joints.n : 2 * s->ranks.n;
	s->tally = must(calloc(s->ranks.n, sizeof(*s->tally)));
	s->parts = must(calloc(s->ranks.n, sizeof(*s->parts)));
	s->values = must(calloc(most, sizeof(*s->values)));
	s->shares = must(calloc(s->ranks.n, sizeof(*s->shares)));
	s->late = must(calloc(s->ranks.n, sizeof(*s->late)));
	s->told = must(calloc(s->ranks.n, sizeof(*s->told)));
	list_each(j, &s->joints) {
		joint_parts(j, s->parts);
		late_measure(s->parts, j->n, &j->op);
	}
	series_rate(s);
	series_add_up(s, UINT64_MAX);
	series_judge(s, found, arg);
	most_ns = series_most(s);
	if (series_has_longer(s, most_ns)) {
		series_add_up(s, most_ns);
		series_judge(s, found, arg);
	}
	free(s->tally);
	free(s->parts);
	free(s->values);
	free(s->shares);
	free(s->late);
	free(s->told);
	list_deinit(&s->joints);
	list_deinit(&s->ranks);
}

void stragglers_find(const struct shots *s, stragglers_found_fn *found, void *arg)
{
	for (uint32_t i = 0; i < s->comms.n; i++) {
		const struct shots_comm *comm = s->comms.at[i];

		for (const struct shots_series *at = comm->series; at; at = at->next) {
			struct series series = { .comm = comm, .of = at, .nranks = comm->nranks };

			series_look(&series, found, arg);
		}
	}
}
