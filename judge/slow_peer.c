/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only like is compared with like: links are put in groups by communicator and size of
 * transfers, or by job where a communicator has one link; and what is slow in a group has to
 * cost enough.
 */
#include "judge/slow_peer.h"

#include <stdlib.h>
#include <string.h>

#include "tables/stat.h"
#include "util/list.h"

#define LEAST_STEPS	20	/* steps of a link, to be compared */
#define FEW_LINKS	3	/* fewer, and one of them has to be worse to be called slow */
#define EXPLAINED	0.33	/* part of what it costs; kernels show half of the absences */
#define USUAL		0.25	/* quantile: half of the threads may be the ones that suffer */

/* Limits to begin and to go on: times slower, and the part of the time that it costs. */
static const struct slow_limits {
	double ratio, ratio_of_few, share;
} begin = { 1.5, 2, 0.02 }, go_on = { 1.25, 1.5, 0.01 };

/* ---- groups ---------------------------------------------------------------- */

int slow_links_by_link(const void *a, const void *b)
{
	const struct slow_link *x = a, *y = b;

	return (x->link > y->link) - (x->link < y->link);
}

/* Sizes up to the next power of two are one. */
static unsigned link_size(const struct slow_link *l)
{
	return (unsigned)__builtin_clzll(l->bytes / l->steps | 1);
}

static int links_by_comm(const void *a, const void *b)
{
	const struct slow_link *x = a, *y = b;
	int r = number_order(x->comm, y->comm);

	return r ? r : number_order(link_size(x), link_size(y));
}

/* Links of one job, one name and number of ranks, and one size of transfers are a family. */
static int links_by_family(const void *a, const void *b)
{
	const struct slow_link *x = a, *y = b;
	int r = number_order(x->job, y->job);

	if (!r)
		r = number_order((uintptr_t)x->comm_name, (uintptr_t)y->comm_name);
	if (!r)
		r = number_order((uint32_t)x->nranks, (uint32_t)y->nranks);
	return r ? r : number_order(link_size(x), link_size(y));
}

static void links_group(struct slow_links *list, int (*order)(const void *a, const void *b))
{
	list_sort(list, order);
	for (uint32_t i = 0, group = 0; i < list->n; i++) {
		group += i && order(&list->at[i - 1], &list->at[i]);
		list->at[i].group = group;
	}
}

uint32_t slow_links_group_end(const struct slow_links *list, uint32_t first)
{
	uint32_t end = first + 1;

	while (end < list->n && list->at[end].group == list->at[first].group)
		end++;
	return end;
}

/* Less what it had done before. */
static void link_subtract(struct slow_link *l, const struct slow_links *before)
{
	const struct slow_link *old = NULL;

	if (before->n)
		old = bsearch(l, before->at, before->n, sizeof(*l), slow_links_by_link);
	if (!old || old->steps > l->steps || old->bytes > l->bytes)
		return;
	l->bytes -= old->bytes;
	l->steps -= old->steps;
	l->busy_ns -= old->busy_ns;
	l->held_ns -= old->held_ns;
}

void slow_links_group(struct slow_links *list)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < list->n; i++) {
		const struct slow_link *l = &list->at[i];

		if (l->steps >= LEAST_STEPS && l->bytes && l->busy_ns)
			list->at[kept++] = *l;
	}
	list->n = kept;
	links_group(list, links_by_comm);
}

void slow_links_since(const struct slow_links *now, const struct slow_links *before,
		      struct slow_links *out)
{
	if (list_init(out, now->n) < 0)
		return;
	for (uint32_t i = 0; i < now->n; i++) {
		struct slow_link *link = list_must_add(out);

		*link = now->at[i];
		link_subtract(link, before);
	}
	slow_links_group(out);
}

/* ---- links that are alone in their communicator ------------------------------------ */

/* All of them, channel by channel, are of one link. */
static bool is_one_link(const struct slow_link *l, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (l[i].row != l[0].row || l[i].column != l[0].column)
			return false;
	return l->has_comm_id;
}

static void links_collect_alone(const struct slow_links *since, struct slow_links *out)
{
	uint32_t end;

	for (uint32_t i = 0; i < since->n; i = end) {
		end = slow_links_group_end(since, i);
		if (!is_one_link(&since->at[i], end - i))
			continue;
		for (uint32_t k = i; k < end; k++) {
			struct slow_link *l = list_must_add(out);

			*l = since->at[k];
			l->row = l->column = (int32_t)i;	/* its communicator's own */
		}
	}
}

/* Links of one communicator have nobody to be compared with. */
static void links_keep_families(struct slow_links *list)
{
	uint32_t kept = 0, end;

	for (uint32_t i = 0; i < list->n; i = end) {
		end = slow_links_group_end(list, i);
		if (is_one_link(&list->at[i], end - i))
			continue;
		memmove(&list->at[kept], &list->at[i], (end - i) * sizeof(*list->at));
		kept += end - i;
	}
	list->n = kept;
}

void slow_links_siblings(const struct slow_links *since, struct slow_links *out)
{
	if (list_init(out, since->n) < 0)
		return;
	links_collect_alone(since, out);
	links_group(out, links_by_family);
	links_keep_families(out);
}

/* ---- what is slow ---------------------------------------------------------- */

/* Links of one group. */
struct slow_group {
	const struct slow_link *at;
	uint32_t n;
	enum slow_peer_aspect aspect;
	bool siblings;
	uint64_t window_ns;
	double median;		/* ns for a byte */
};

static double link_ns(const struct slow_link *l, enum slow_peer_aspect aspect)
{
	return (double)(l->busy_ns + (aspect == SLOW_PEER_ROOM ? l->held_ns : 0));
}

static int delays_by_length(const void *a, const void *b)
{
	const struct delay_link *x = a, *y = b;

	return (x->delay > y->delay) - (x->delay < y->delay);
}

/* Sets the median. */
static int group_find_hot(struct slow_group *g, struct delay_hot hot[SLOW_PEERS])
{
	struct delay_link *links = calloc(g->n + 1, sizeof(*links));
	int n;

	if (!links)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n; i++)
		links[i] = (struct delay_link){
			.from = g->at[i].row,
			.to = g->at[i].column,
			.channel = g->at[i].channel,
			.delay = link_ns(&g->at[i], g->aspect) / (double)g->at[i].bytes,
		};
	n = delay_find(links, g->n, go_on.ratio, hot, SLOW_PEERS);
	qsort(links, g->n, sizeof(*links), delays_by_length);
	g->median = links[(g->n - 1) / 2].delay;
	free(links);
	return n;
}

static bool hot_has(const struct delay_hot *hot, const struct slow_link *l)
{
	return (hot->where == DELAY_RECEIVE_SIDE || hot->from == l->row) &&
	       (hot->where == DELAY_SEND_SIDE || hot->to == l->column) &&
	       (hot->where != DELAY_CHANNEL || hot->channel == l->channel);
}

/* The link that costs most; *share: the part of the time that it is slower for. */
static const struct slow_link *group_worst(const struct slow_group *g, const struct delay_hot *hot,
					   double *share)
{
	const struct slow_link *worst = NULL;

	*share = -1;
	for (uint32_t i = 0; i < g->n; i++) {
		double part = link_ns(&g->at[i], g->aspect) * (1 - 1 / hot->ratio) /
			      (double)g->window_ns;

		if (!hot_has(hot, &g->at[i]) || part <= *share)
			continue;
		*share = part;
		worst = &g->at[i];
	}
	return worst;
}

static bool hot_is_beyond(const struct slow_limits *limits, const struct slow_group *g,
			  double ratio, double share)
{
	return share >= limits->share &&
	       ratio >= (g->siblings || g->n < FEW_LINKS ? limits->ratio_of_few : limits->ratio);
}

/* The channels of a link that is alone were compared before; room is the receiver's alone. */
static bool hot_is_worth_telling(const struct slow_group *g, const struct delay_hot *hot)
{
	if (g->siblings)
		return hot->where == DELAY_LINK;
	return g->aspect == SLOW_PEER_WIRE ||
	       (hot->where != DELAY_SEND_SIDE && hot->where != DELAY_CHANNEL);
}

/* False: it costs too little. */
static bool group_judge(const struct slow_group *g, const struct delay_hot *hot,
			struct slow_peer *p)
{
	static const enum verdict verdicts[] = {
		[DELAY_CHANNEL] = VERDICT_CHANNEL,
		[DELAY_LINK] = VERDICT_LINK,
		[DELAY_SEND_SIDE] = VERDICT_SEND_SIDE,
		[DELAY_RECEIVE_SIDE] = VERDICT_RECEIVE_SIDE,
	};
	double share;
	const struct slow_link *worst = group_worst(g, hot, &share);

	if (!worst || !hot_is_beyond(&go_on, g, hot->ratio, share))
		return false;
	*p = (struct slow_peer){
		.hot = *hot, .aspect = g->aspect, .verdict = verdicts[hot->where], .worst = worst,
		.begins = hot_is_beyond(&begin, g, hot->ratio, share), .share = share,
		.rate_gbs = (double)worst->bytes / link_ns(worst, g->aspect),
		.median_gbs = 1 / g->median, .links = g->n, .siblings = g->siblings,
		.window_ns = g->window_ns, .away_rank = UNKNOWN_I32,
		.resent.segments = UNKNOWN_U64,
		.from = { .rank = worst->rank, .world_rank = UNKNOWN_I32 },
		.to = { .rank = worst->peer, .world_rank = UNKNOWN_I32 },
	};
	p->hot.from = worst->rank;
	p->hot.to = worst->peer;
	return true;
}

int slow_peer_find(const struct slow_link *links, uint32_t n, enum slow_peer_aspect aspect,
		   bool siblings, uint64_t window_ns, struct slow_peer *out)
{
	struct slow_group g = { .at = links, .n = n, .aspect = aspect, .siblings = siblings,
				.window_ns = window_ns };
	struct delay_hot hot[SLOW_PEERS];
	int found = n ? group_find_hot(&g, hot) : 0, kept = 0;

	for (int i = 0; i < found; i++)
		if (hot_is_worth_telling(&g, &hot[i]))
			kept += group_judge(&g, &hot[i], &out[kept]);
	return found < 0 ? found : kept;
}

bool slow_peer_is_explained(const struct slow_peer *p, double away_share, double usual_share)
{
	return away_share - usual_share >= EXPLAINED * p->share;
}

double slow_links_usual_away(double *shares, uint32_t n)
{
	return n ? stat_quantile(shares, n, USUAL) : 0;
}
