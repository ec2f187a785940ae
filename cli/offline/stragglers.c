/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for late ranks in samples of all nodes, with the bars that keep chance and noise
 * from being reported.
 */
#include "cli/offline/stragglers.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/list.h"

#define LEAST_OPS	20
#define LEAST_LAST	0.5
#define LEAST_RANKS	5	/* more often than by chance, where there are few */
#define LEAST_SHARE	0.05
#define NOISE		4	/* times as late as the others lie apart */
#define LEAST_NS	20000

/* One operation. */
struct joint {
	int64_t rank;		/* the rank that was inside for the shortest time */
	int64_t wait_ns;	/* waiting of the median of the others */
	int64_t median_ns;
	int64_t apart_ns;	/* the others */
};

static int by_time(const void *left, const void *right)
{
	const struct shots_sample *a = left, *b = right;

	return (a->inside_ns > b->inside_ns) - (a->inside_ns < b->inside_ns);
}

static int by_apart(const void *left, const void *right)
{
	const struct joint *a = left, *b = right;

	return (a->apart_ns > b->apart_ns) - (a->apart_ns < b->apart_ns);
}

static int by_rank(const void *left, const void *right)
{
	const struct joint *a = left, *b = right;

	return (a->rank > b->rank) - (a->rank < b->rank);
}

static bool is_series(const struct shots_sample *a, const struct shots_sample *b)
{
	return !strcmp(a->comm, b->comm) && !strcmp(a->func, b->func);
}

/* Two ranks alone do not tell how far apart the others are. */
static struct joint compare(const struct shots_sample *at, size_t n, struct shots_sample *scratch)
{
	memcpy(scratch, at, n * sizeof(*at));
	qsort(scratch, n, sizeof(*scratch), by_time);
	return (struct joint){
		.rank = scratch[0].rank,
		.median_ns = scratch[1 + (n - 1) / 2].inside_ns,
		.wait_ns = scratch[1 + (n - 1) / 2].inside_ns - scratch[0].inside_ns,
		.apart_ns = scratch[n - 1].inside_ns - scratch[1].inside_ns,
	};
}

/* The tenth percentile: most of what lies above has another cause. */
static int64_t noise_ns(struct joint *joints, size_t n)
{
	qsort(joints, n, sizeof(*joints), by_apart);
	return joints[n / 10].apart_ns;
}

static size_t drop_noise(struct joint *joints, size_t n)
{
	int64_t least_ns = NOISE * noise_ns(joints, n);
	size_t kept = 0;

	if (least_ns < LEAST_NS)
		least_ns = LEAST_NS;
	for (size_t i = 0; i < n; i++)
		if (joints[i].wait_ns > least_ns)
			joints[kept++] = joints[i];
	return kept;
}

/*
 * The bar for standing out: half way from its share of all waiting by chance, 1 / nranks, to
 * all of it.  One of two ranks always comes last in half of the operations.
 */
static bool stands_out(const struct late *l, int64_t waited_ns, int64_t nranks)
{
	return 2 * (double)l->wait_ns * (double)nranks >= (double)waited_ns * (double)(nranks + 1);
}

static void judge(struct joint *joints, size_t n, const struct shots_sample *series,
		  void found(const struct late *l, void *arg), void *arg)
{
	int64_t all_ns = 0, waited_ns = 0;
	int64_t nranks = strtoll(strchr(series->comm, '/') + 1, NULL, 10);
	size_t ops;

	for (size_t i = 0; i < n; i++)
		all_ns += joints[i].median_ns;
	ops = drop_noise(joints, n);
	for (size_t i = 0; i < ops; i++)
		waited_ns += joints[i].wait_ns;
	qsort(joints, ops, sizeof(*joints), by_rank);
	for (size_t i = 0; i < ops;) {
		struct late l = { .comm = series->comm, .func = series->func,
				  .rank = joints[i].rank, .ops = ops };

		for (; i < ops && joints[i].rank == l.rank; i++, l.last++)
			l.wait_ns += joints[i].wait_ns;
		l.share = all_ns ? (double)l.wait_ns / (double)all_ns : 0;
		if (ops >= LEAST_OPS && (double)l.last >= LEAST_LAST * (double)ops &&
		    (nranks < 2 * LEAST_RANKS || (double)l.last * (double)nranks >=
		     LEAST_RANKS * (double)ops) && l.share >= LEAST_SHARE &&
		    stands_out(&l, waited_ns, nranks))
			found(&l, arg);
	}
}

/* The number of sorted samples, from the first on, that are of one operation. */
static size_t count_joint(const struct shots_sample *at, size_t n)
{
	size_t k = 1;

	while (k < n && is_series(at, &at[k]) && at[k].seq == at->seq)
		k++;
	return k;
}

void late_find(const struct shots *s, void found(const struct late *l, void *arg), void *arg)
{
	struct shots_sample *scratch = malloc((s->samples.n + 1) * sizeof(*scratch));
	LIST(struct joint) joints = { 0 };
	int r = list_init(&joints, s->samples.n);

	for (size_t i = 0; r == 0 && scratch && i < s->samples.n;) {
		const struct shots_sample *series = &s->samples.at[i];

		joints.n = 0;
		while (i < s->samples.n && is_series(series, &s->samples.at[i])) {
			size_t k = count_joint(&s->samples.at[i], s->samples.n - i);

			if (k > 1)
				*list_must_add(&joints) = compare(&s->samples.at[i], k, scratch);
			i += k;
		}
		if (joints.n)
			judge(joints.at, joints.n, series, found, arg);
	}
	free(scratch);
	list_deinit(&joints);
}
