/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of links -> rows, the worst first.
 *
 * Thousands of links take milliseconds, and nobody reads what the jobs publish
 * meanwhile.  So after each BREATH of them the caller gets a turn; the state is held
 * until the end, so that all rows are of one moment.
 */
#include "ncclinspd/sums/links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/sums/links_impl.h"
#include "util/list.h"

#define BREATH	32	/* links looked at, or put in their place */

/* Network transfers of a link that make a rate worth comparing. */
#define TREND_STEPS	32

/* A link on its way to its place among the others. */
struct candidate {
	const struct link *link;
	uint64_t comm;		/* equal: of one communicator */
	double rate_gbs;
	double excess_ns;	/* < 0: not known */
	double wait_ns;
};

static bool is_recent(const struct slice *slice, uint64_t now_ns)
{
	return slice->period && slice->period + LINKS_SLICES > now_ns / LINKS_SLICE_NS + 1;
}

/*
 * Gathers the sums of one window; `add` is links_add_up or links_merge.  False: there was
 * nothing.
 */
static bool gather(const struct link *link, enum links_window window, uint64_t now_ns,
		   void (*add)(struct links_sums *to, const struct links_sums *from),
		   struct links_sums *sums)
{
	memset(sums, 0, sizeof(*sums));
	if (window == LINKS_ALL)
		add(sums, &link->sums);
	for (int i = 0; window == LINKS_60S && i < LINKS_SLICES; i++)
		if (is_recent(&link->slice[i], now_ns))
			add(sums, &link->slice[i].sums);
	return sums->ops;
}

static double rate_of(const struct links_who *who, const struct links_sums *sums)
{
	if (!who->send || !sums->busy_ns)
		return -1;
	return (double)sums->timed_bytes / (double)sums->busy_ns;
}

/* The minute is part of all the time, and is taken out of it: an old link would hide it else. */
static double trend_of(const struct link *link, uint64_t now_ns)
{
	struct links_sums lately, before;
	double rate, usual;

	gather(link, LINKS_60S, now_ns, links_add_up, &lately);
	gather(link, LINKS_ALL, now_ns, links_add_up, &before);
	if (lately.timed_steps < TREND_STEPS || before.timed_steps < TREND_STEPS ||
	    before.timed_steps - TREND_STEPS < lately.timed_steps)
		return -1;
	before.timed_bytes -= lately.timed_bytes;
	before.busy_ns -= lately.busy_ns;
	rate = rate_of(&link->who, &lately);
	usual = rate_of(&link->who, &before);
	return rate >= 0 && usual > 0 ? rate / usual : -1;
}

static int compare(double a, double b)
{
	return (a > b) - (a < b);
}

/* Members of one communicator beside each other, the slowest first. */
static int by_comm_and_rate(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	return compare(x->rate_gbs, y->rate_gbs);
}

static uint64_t comm_of(const struct links *l, const struct links_who *who)
{
	const uint64_t key[] = {
		who->has_comm_id,
		who->has_comm_id ? who->comm_id : who->process_id,
		who->has_comm_id ? (uint64_t)who->nranks : who->comm_index,
		who->uid,	/* nobody else's links are its own */
	};

	return index_hash(l->table.config.seed, key, sizeof(key));
}

static int by_excess(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int r = compare(y->excess_ns, x->excess_ns);

	if (r)
		return r;
	r = compare(y->wait_ns, x->wait_ns);
	return r ? r : x->link < y->link ? -1 : x->link > y->link;
}

/* A query under way. */
struct work {
	const struct links *links;
	const struct links_query *query;
	enum links_window window;
	uint64_t now_ns;
	uint64_t released;	/* the links' when it began */
	uint32_t steps;
	LIST(struct candidate) c;
};

/* False: the state was let go meanwhile, and what was found out is void. */
static bool breathe(struct work *w)
{
	w->steps = 0;
	if (!w->query->meanwhile)
		return true;
	w->query->meanwhile(w->query->meanwhile_arg);
	return w->links->released == w->released;
}

static bool go_on(struct work *w)
{
	return ++w->steps < BREATH || breathe(w);
}

typedef int order_fn(const void *a, const void *b);

/* Below `at` is a heap, its greatest first; make it one from `at` on. */
static void sift(struct candidate *c, size_t at, size_t n, order_fn *order)
{
	const struct candidate moved = c[at];
	size_t child;

	for (; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && order(&c[child], &c[child + 1]) < 0)
			child++;
		if (order(&moved, &c[child]) >= 0)
			break;
		c[at] = c[child];
	}
	c[at] = moved;
}

/* A heap sort, since that can be done in pieces. */
static bool sort(struct work *w, order_fn *order)
{
	for (size_t i = w->c.n / 2; i-- > 0;)
		sift(w->c.at, i, w->c.n, order);
	for (size_t n = w->c.n; n-- > 1;) {
		const struct candidate greatest = w->c.at[0];

		w->c.at[0] = w->c.at[n];
		w->c.at[n] = greatest;
		sift(w->c.at, 0, n, order);
		if (!go_on(w))
			return false;
	}
	return breathe(w);
}

/* Links of one communicator, by rate; those whose rate is not known come first. */
static bool compare_links(struct work *w, struct candidate *c, size_t n)
{
	struct links_sums sums;
	size_t unknown = 0;
	double median;

	while (unknown < n && c[unknown].rate_gbs < 0)
		unknown++;
	median = unknown < n ? c[unknown + (n - unknown) / 2].rate_gbs : 0;
	for (size_t i = unknown; i < n; i++) {
		gather(c[i].link, w->window, w->now_ns, links_add_up, &sums);
		c[i].excess_ns = (double)sums.held_ns;
		if (c[i].rate_gbs < median)
			c[i].excess_ns += (double)sums.busy_ns * (1 - c[i].rate_gbs / median);
		if (!go_on(w))
			return false;
	}
	return true;
}

static bool find_candidates(struct work *w)
{
	const struct links *l = w->links;
	struct links_sums sums;

	w->c.n = 0;
	for (const struct link *link = NULL; (link = keyed_next(&l->table, link));) {
		if (!go_on(w))
			return false;
		if (!w->query->all_users && link->who.uid != w->query->uid)
			continue;
		if (!gather(link, w->window, w->now_ns, links_add_up, &sums))
			continue;
		*list_must_add(&w->c) = (struct candidate){
			.link = link,
			.comm = comm_of(l, &link->who),
			.rate_gbs = rate_of(&link->who, &sums),
			.excess_ns = -1,
			.wait_ns = (double)sums.state_ns[0],
		};
	}
	return breathe(w);
}

static bool rank_candidates(struct work *w)
{
	struct candidate *c = w->c.at;
	size_t end;

	if (!sort(w, by_comm_and_rate))
		return false;
	for (size_t i = 0; i < w->c.n; i = end) {
		for (end = i + 1; end < w->c.n && c[i].comm == c[end].comm; end++)
			continue;
		if (!compare_links(w, &c[i], end - i))
			return false;
	}
	return sort(w, by_excess);
}

static uint64_t window_ns(const struct links *l, const struct link *link,
			  enum links_window window, uint64_t now_ns)
{
	uint64_t from_ns = window == LINKS_ALL ? link->first_ns : l->started_ns;
	uint64_t oldest_ns = (now_ns / LINKS_SLICE_NS - (LINKS_SLICES - 1)) * LINKS_SLICE_NS;

	if (window == LINKS_60S && now_ns >= LINKS_SLICES * LINKS_SLICE_NS && oldest_ns > from_ns)
		from_ns = oldest_ns;
	return now_ns > from_ns ? now_ns - from_ns : 0;
}

/* A value that no step told is unknown, not 0. */
static void forget_untold(struct links_sums *sums)
{
	if (!sums->steps)
		sums->steps = UNKNOWN_U64;
	if (!sums->bytes)
		sums->bytes = UNKNOWN_U64;
	if (sums->timed_steps)
		return;
	sums->active_ns = sums->held_ns = sums->busy_ns = sums->repeats = UNKNOWN_U64;
	for (int i = 0; i < LINKS_STATES; i++)
		sums->state_ns[i] = sums->longest_ns[i] = UNKNOWN_U64;
}

void links_last(const struct links *l, struct links_row *row)
{
	row->window = LINKS_ALL;
	row->window_ns = 0;
	row->who = l->last.who;
	memcpy(&row->sums, &l->last.sums, offsetof(struct links_sums, fit));
	row->rate_gbs = row->trend = -1;
	row->excess_ns = UNKNOWN_U64;
	forget_untold(&row->sums);
}

static void make_row(const struct work *w, const struct candidate *c, struct links_row *row)
{
	row->window = w->window;
	row->window_ns = window_ns(w->links, c->link, w->window, w->now_ns);
	row->who = c->link->who;
	gather(c->link, w->window, w->now_ns, links_merge, &row->sums);
	forget_untold(&row->sums);
	row->rate_gbs = c->rate_gbs;
	row->trend = trend_of(c->link, w->now_ns);
	row->excess_ns = c->excess_ns < 0 ? UNKNOWN_U64 : (uint64_t)c->excess_ns;
}

static int visit_window(struct work *w, links_row_fn *visit, void *arg)
{
	struct links_row row;

	if (!find_candidates(w) || !rank_candidates(w))
		return -EAGAIN;
	for (size_t i = 0; i < w->c.n; i++) {
		make_row(w, &w->c.at[i], &row);
		if (!visit(&row, arg))
			return -ENOMEM;
		if (!go_on(w))
			return -EAGAIN;
	}
	return (int)w->c.n;
}

int links_visit(struct links *l, const struct links_query *query, uint64_t now_ns,
		links_row_fn *visit, void *arg)
{
	struct work work = {
		.links = l,
		.query = query,
		.now_ns = now_ns,
		.released = l->released,
	};
	int sum = 0, r = 0;

	if (list_init(&work.c, keyed_count(&l->table)) < 0)
		return -ENOMEM;
	links_hold(l);
	for (work.window = 0; work.window < LINKS_WINDOW_END && r >= 0; work.window++) {
		if (!(query->windows & 1u << work.window))
			continue;
		r = visit_window(&work, visit, arg);
		sum += r;
	}
	links_release(l);
	list_deinit(&work.c);
	return r < 0 ? r : sum;
}

/*
 * Stamps that come late make transfers look short.  A line that has a transfer of
 * mean size ten times as fast as the busy wire was tells of such stamps, not of it.
 */
static bool is_credible(const struct links_row *row, const struct fit_line *line)
{
	const struct fit *fit = &row->sums.fit;
	double bytes = fit->bytes / (double)fit->n;
	double ns = line->latency_ns + line->ns_per_byte * bytes;

	return row->rate_gbs < 0 || bytes <= 10 * row->rate_gbs * ns;
}

bool links_line(const struct links_row *row, struct fit_line *line)
{
	return fit_line(&row->sums.fit, line) && is_credible(row, line);
}

const char *links_bound(const struct links_row *row)
{
	enum { IDLE, HELD, BUSY };
	static const char *const bounds[2][3] = {
		{ [BUSY] = "gpu" },				/* receives */
		{ [IDLE] = "gpu", [HELD] = "peer", [BUSY] = "net" },	/* sends */
	};
	const struct links_sums *s = &row->sums;
	uint64_t moving_ns = s->held_ns + s->busy_ns;
	uint64_t part_ns[] = {
		[IDLE] = s->active_ns > moving_ns ? s->active_ns - moving_ns : 0,
		[HELD] = s->held_ns,
		[BUSY] = s->busy_ns,
	};
	int most = IDLE;

	if (!s->timed_steps)
		return NULL;
	for (int i = HELD; i <= BUSY; i++)
		if (part_ns[i] > part_ns[most])
			most = i;
	return bounds[row->who.send][most];
}
