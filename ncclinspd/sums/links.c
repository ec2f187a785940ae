/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers -> sums of their link -> rows, the worst first.  A link holds a ring of slices, each
 * one period long: the youngest ones together are the last minute.  A slice whose place is needed
 * is added to what was before.
 */
#include "ncclinspd/sums/links.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nci/sums.h"
#include "ncclinspd/sums/slices.h"
#include "tables/hold.h"
#include "tables/keyed.h"
#include "util/list.h"

#define LINKS		4096
#define TICKS_SLOP	(UINT64_C(1) << NCI_SPAN_SHIFT)	/* ticks that a coarse span leaves out */
#define BREATH		32	/* links looked at, or put in their place, before others' turn */
#define TREND_STEPS	32	/* transfers of a link that make a rate worth comparing */

const char *const links_windows[] = {
#define X(NAME, text) text,
	LINKS_WINDOWS(X)
#undef X
	NULL,
};

/* Compared and hashed as bytes: no padding. */
struct link_key {
	uint64_t issuer;	/* process ids */
	uint64_t executor;
	uint32_t comm_index;
	int32_t peer;
	uint32_t channel;
	uint32_t send;
};
_Static_assert(sizeof(struct link_key) == 32, "padding would be compared");

struct link_slice {
	uint64_t period;	/* slices_period(); 0: never used */
	struct links_sums sums;
};

struct link {
	struct keyed_head head;
	struct link_key key;
	uint64_t first_ns;
	struct links_who who;
	struct links_sums before;	/* sums since it was made, but for these slices */
	struct link_slice slice[SLICES];
};

/* Transfers that come while a query is at work wait here, up to so many. */
#define LINKS_HELD	2048

/* The sums of one ProxyOp, on their way into their link. */
struct links_entry {
	struct link_key key;
	struct links_who who;
	struct links_sums sums;
	uid_t account;
	uint64_t now_ns;
};

struct links {
	struct keyed table;	/* has struct link */
	struct links_stats stats;
	struct links_entry last;	/* entry of the last links_add() */
	uint64_t started_ns;
	struct hold hold;		/* holds struct links_entry */
};

/* ---- adding -------------------------------------------------------------- */

static int32_t rank_if_known(int32_t value)
{
	return value < 0 ? UNKNOWN_I32 : value;
}

void links_set_who(struct links_who *who, const struct process *issuer,
		   const struct process *executor, uint32_t comm_index, name_t comm_name)
{
	const struct comm *comm = process_comm(issuer, (uint16_t)comm_index);
	bool has_id = comm && comm->has_id;

	*who = (struct links_who){
		.process_id = issuer->id,
		.pid = issuer->pid,
		.uid = issuer->uid,
		.has_comm_id = has_id,
		.comm_id = has_id ? comm->id : 0,
		.comm_name = comm_name,
		.nranks = has_id ? comm->nranks : UNKNOWN_I32,
		.rank = comm ? comm->rank : UNKNOWN_I32,
		.peer = UNKNOWN_I32,
		.comm_index = comm_index,
		.proxy_pid = executor->pid,
	};
}

static void link_set_who(struct links_who *who, const struct transfers *t)
{
	links_set_who(who, t->issuer, t->executor, t->comm_index, t->comm_name);
	if (t->op->rank >= 0)
		who->rank = t->op->rank;
	who->peer = rank_if_known(t->op->peer);
	who->channel = t->op->channel;
	who->send = t->op->form & NCI_FORM_SEND;
	/* Profiler API 1 to 3: the communicator does not say, its operations do. */
	if (!who->has_comm_id && t->parent && t->parent->has_comm_id) {
		who->has_comm_id = true;
		who->comm_id = t->parent->comm_id;
	}
}

static uint64_t ticks_to_ns_of(const struct process *p, uint64_t ticks)
{
	double ns = (double)ticks * p->clock.ns_per_tick;

	return ns < (double)INT64_MAX ? (uint64_t)(int64_t)ns : INT64_MAX;
}

/* They came from a job: whatever is larger than what it is part of is a lie. */
static bool sums_are_possible(const struct nci_ev_proxy_sums *s)
{
	uint64_t active = s->stop - s->start + TICKS_SLOP;

	if (s->stop < s->start || s->covered > active || s->busy > s->covered)
		return false;
	for (int i = 0; i < LINKS_STATES; i++)
		if ((s->ticks[i] > active && s->ticks[i] / s->steps > active) ||
		    nci_span_ticks(s->longest[i]) > active)
			return false;
	return true;
}

static void add_points(struct fit *fit, const struct process *p,
		       const struct nci_point point[2])
{
	int n = point[0].bytes == point[1].bytes ? 1 : 2;

	for (int i = 0; i < n; i++)
		fit_add(fit, point[i].bytes, ticks_to_ns_of(p, nci_span_ticks(point[i].span)));
}

/*
 * A send's transfers are begun long before its GPU computes what they carry: they count from
 * the first data on.  A receive cannot tell when its sender had any.
 */
static uint64_t transfers_active(const struct transfers *t)
{
	const struct nci_ev_proxy_sums *s = t->sums;
	uint64_t start = s->start;

	if (t->op->form & NCI_FORM_SEND && t->data_ticks > start && t->data_ticks <= s->stop)
		start = t->data_ticks;
	return nci_sums_later(s->stop - start, s->covered);
}

/* All but the points. */
static void make_sums(struct links_sums *sums, const struct transfers *t, bool times)
{
	const struct nci_ev_proxy_sums *s = t->sums;
	const struct process *p = t->executor;

	/* Of its sizes a fit reads those that it counts. */
	memset(sums, 0, offsetof(struct links_sums, fit.size));
	sums->ops = 1;
	sums->steps = t->op->steps_done;
	sums->bytes = t->op->bytes;
	if (!times)
		return;
	sums->timed_steps = s->steps;
	sums->timed_bytes = s->bytes;
	for (int i = 0; i < LINKS_STATES; i++) {
		sums->state_ns[i] = ticks_to_ns_of(p, s->ticks[i]);
		sums->longest_ns[i] = ticks_to_ns_of(p, nci_span_ticks(s->longest[i]));
	}
	sums->active_ns = ticks_to_ns_of(p, transfers_active(t));
	sums->held_ns = ticks_to_ns_of(p, s->covered - s->busy);
	sums->busy_ns = ticks_to_ns_of(p, s->busy);
	sums->repeats = s->repeats;
}

static void links_add_up(struct links_sums *to, const struct links_sums *from)
{
	to->ops += from->ops;
	to->steps += from->steps;
	to->bytes += from->bytes;
	to->timed_steps += from->timed_steps;
	to->timed_bytes += from->timed_bytes;
	to->active_ns += from->active_ns;
	to->held_ns += from->held_ns;
	to->busy_ns += from->busy_ns;
	to->repeats += from->repeats;
	for (int i = 0; i < LINKS_STATES; i++) {
		to->state_ns[i] += from->state_ns[i];
		if (from->longest_ns[i] > to->longest_ns[i])
			to->longest_ns[i] = from->longest_ns[i];
	}
}

static void links_merge(struct links_sums *to, const struct links_sums *from)
{
	links_add_up(to, from);
	fit_merge(&to->fit, &from->fit);
}

static struct links_sums *link_current_slice(struct link *link, uint64_t now_ns)
{
	uint64_t period = slices_period(now_ns);
	struct link_slice *slice = &link->slice[period % SLICES];

	if (slice->period < period) {
		links_merge(&link->before, &slice->sums);
		memset(slice, 0, sizeof(*slice));
		slice->period = period;
	}
	return &slice->sums;
}

static bool link_has_key(const struct link *link, const struct link_key *key)
{
	return link->key.issuer == key->issuer && link->key.executor == key->executor &&
	       link->key.comm_index == key->comm_index && link->key.peer == key->peer &&
	       link->key.channel == key->channel && link->key.send == key->send;
}

/* NULL: no memory. */
static struct link *links_use(struct links *l, const struct links_entry *e)
{
	const struct link_key *key = &e->key;
	uint64_t mark = key->executor ^ (uint64_t)key->comm_index << 48 ^
			(uint64_t)(uint32_t)key->peer << 24 ^ key->channel << 12 ^ key->send << 11;
	struct link *link = keyed_lately(&l->table, mark);
	bool made;

	if (link && link_has_key(link, key)) {
		keyed_touch(&l->table, link);
		return link;
	}
	link = keyed_use_lately(&l->table, mark, key, e->account, &made);
	if (link && made) {
		link->first_ns = e->now_ns;
		l->stats.links = keyed_count(&l->table);
		l->stats.evicted = l->table.evicted;
	}
	return link;
}

/* Returns the slice that its sums were added to; NULL: no memory. */
static struct links_sums *links_take(struct links *l, const struct links_entry *e)
{
	struct link *link = links_use(l, e);
	struct links_sums *sums;

	if (!link)
		return NULL;
	if (!link->who.has_comm_id)
		link->who = e->who;
	sums = link_current_slice(link, e->now_ns);
	links_add_up(sums, &e->sums);
	return sums;
}

static void links_take_in(const void *entry, void *arg)
{
	const struct links_entry *e = entry;
	struct links_sums *sums = links_take(arg, e);

	if (sums)
		fit_merge(&sums->fit, &e->sums.fit);
}

void links_add(struct links *l, const struct transfers *t, uint64_t now_ns)
{
	bool times = t->sums && sums_are_possible(t->sums);
	struct links_entry *e = &l->last, *held;
	struct links_sums *sums;

	e->now_ns = now_ns;
	e->account = t->issuer->account;
	e->key = (struct link_key){
		.issuer = t->issuer->id,
		.executor = t->executor->id,
		.comm_index = t->comm_index,
		.peer = t->op->peer,
		.channel = t->op->channel,
		.send = t->op->form & NCI_FORM_SEND,
	};
	link_set_who(&e->who, t);
	make_sums(&e->sums, t, times);
	l->stats.added++;
	l->stats.refused += t->sums && !times;
	held = hold_place(&l->hold);
	if (held)
		*held = *e;
	sums = held ? &held->sums : links_take(l, e);
	if (sums && times && t->op->form & NCI_FORM_SEND)
		add_points(&sums->fit, t->executor, t->sums->point);
}

/* ---- life ---------------------------------------------------------------- */

int links_new(struct links **lp, const struct links_limits *limits, uint64_t now_ns)
{
	uint32_t n = limits && limits->links ? limits->links : LINKS;
	struct links *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	if (hold_init(&l->hold, LINKS_HELD, sizeof(struct links_entry), links_take_in, l) ||
	    keyed_init(&l->table, &KEYED_CONFIG(struct link, key, n,
						.seed = limits ? limits->seed : 0,
						.lately = true))) {
		links_free(l);
		return -ENOMEM;
	}
	l->started_ns = now_ns;
	l->stats.bytes = keyed_bytes(&l->table) + hold_bytes(&l->hold);
	*lp = l;
	return 0;
}

void links_free(struct links *l)
{
	if (!l)
		return;
	keyed_deinit(&l->table);
	hold_deinit(&l->hold);
	free(l);
}

const struct links_stats *links_stats(const struct links *l)
{
	return &l->stats;
}

/* ---- rows ---------------------------------------------------------------- */

/* A link on its way to its place among the others. */
struct candidate {
	const struct link *link;
	uint64_t comm;		/* equal: of one communicator */
	double rate_gbs;
	double excess_ns;	/* < 0: not known */
	double wait_ns;
};

typedef void add_fn(struct links_sums *to, const struct links_sums *from);

/*
 * Gathers the sums of one window, of n of these; `add` is links_add_up or links_merge.
 * False: there was nothing.
 */
static bool candidates_gather(const struct candidate *c, size_t n, enum links_window window,
			      uint64_t now_ns, add_fn *add, struct links_sums *sums)
{
	memset(sums, 0, sizeof(*sums));
	for (const struct candidate *end = c + n; c < end; c++) {
		const struct link *link = c->link;

		if (window == LINKS_ALL)
			add(sums, &link->before);
		for (int i = 0; i < SLICES; i++)
			if (window == LINKS_ALL || slices_are_recent(link->slice[i].period, now_ns))
				add(sums, &link->slice[i].sums);
	}
	return sums->ops;
}

static double rate_of(const struct links_who *who, const struct links_sums *sums)
{
	if (!who->send || !sums->busy_ns)
		return -1;
	return (double)sums->timed_bytes / (double)sums->busy_ns;
}

/* The minute is part of all the time, and is taken out of it: an old link would hide it else. */
static double candidates_trend(const struct candidate *c, size_t n, uint64_t now_ns)
{
	struct links_sums lately, before;
	double rate, usual;

	candidates_gather(c, n, LINKS_60S, now_ns, links_add_up, &lately);
	candidates_gather(c, n, LINKS_ALL, now_ns, links_add_up, &before);
	if (lately.timed_steps < TREND_STEPS || before.timed_steps < TREND_STEPS ||
	    before.timed_steps - TREND_STEPS < lately.timed_steps)
		return -1;
	before.timed_bytes -= lately.timed_bytes;
	before.busy_ns -= lately.busy_ns;
	rate = rate_of(&c->link->who, &lately);
	usual = rate_of(&c->link->who, &before);
	return rate >= 0 && usual > 0 ? rate / usual : -1;
}

static int numbers_compare(double a, double b)
{
	return (a > b) - (a < b);
}

/* Members of one communicator beside each other, the slowest first. */
static int by_comm_and_rate(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	return numbers_compare(x->rate_gbs, y->rate_gbs);
}

static uint64_t who_comm_id(const struct links *l, const struct links_who *who)
{
	const uint64_t key[] = {
		who->has_comm_id,
		who->has_comm_id ? who->comm_id : who->process_id,
		who->has_comm_id ? (uint64_t)who->nranks : who->comm_index,
		who->uid,	/* nobody else's links are its own */
	};

	return index_hash(l->table.config.seed, key, sizeof(key));
}

/* Channels of one link are equal. */
static int links_compare(const struct link *a, const struct link *b)
{
	struct link_key x = a->key, y = b->key;

	x.channel = y.channel = 0;
	return memcmp(&x, &y, sizeof(x));
}

static int candidates_by_link(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int r = links_compare(x->link, y->link);

	return r ? r : numbers_compare(x->link->key.channel, y->link->key.channel);
}

static int candidates_by_excess(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int r = numbers_compare(y->excess_ns, x->excess_ns);

	if (!r)
		r = numbers_compare(y->wait_ns, x->wait_ns);
	return r ? r : candidates_by_link(a, b);
}

/* A query under way. */
struct links_work {
	const struct links *links;
	const struct links_query *query;
	enum links_window window;
	uint64_t now_ns;
	struct hold_reader reader;
	LIST(struct candidate) c;
};

typedef int order_fn(const void *a, const void *b);

/* Below `at` is a heap, its greatest first; make it one from `at` on. */
static void candidates_sift(struct candidate *c, size_t at, size_t n, order_fn *order)
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
static bool candidates_sort(struct links_work *w, order_fn *order)
{
	for (size_t i = w->c.n / 2; i-- > 0;)
		candidates_sift(w->c.at, i, w->c.n, order);
	for (size_t n = w->c.n; n-- > 1;) {
		const struct candidate greatest = w->c.at[0];

		w->c.at[0] = w->c.at[n];
		w->c.at[n] = greatest;
		candidates_sift(w->c.at, 0, n, order);
		if (!hold_go_on(&w->reader, 1))
			return false;
	}
	return hold_breathe(&w->reader);
}

/* Links of one communicator, by rate; those whose rate is not known come first. */
static bool compare_links(struct links_work *w, struct candidate *c, size_t n)
{
	struct links_sums sums;
	size_t unknown = 0;
	double median;

	while (unknown < n && c[unknown].rate_gbs < 0)
		unknown++;
	median = unknown < n ? c[unknown + (n - unknown) / 2].rate_gbs : 0;
	for (size_t i = unknown; i < n; i++) {
		candidates_gather(&c[i], 1, w->window, w->now_ns, links_add_up, &sums);
		c[i].excess_ns = (double)sums.held_ns;
		if (c[i].rate_gbs < median)
			c[i].excess_ns += (double)sums.busy_ns * (1 - c[i].rate_gbs / median);
		if (!hold_go_on(&w->reader, 1))
			return false;
	}
	return true;
}

static bool find_candidates(struct links_work *w)
{
	const struct links *l = w->links;
	struct links_sums sums;
	struct candidate c;

	w->c.n = 0;
	for (const struct link *link = NULL; (link = keyed_next(&l->table, link));) {
		if (!hold_go_on(&w->reader, 1))
			return false;
		if (!w->query->all_users && link->who.uid != w->query->uid)
			continue;
		c = (struct candidate){
			.link = link,
			.comm = who_comm_id(l, &link->who),
			.excess_ns = -1,
		};
		if (!candidates_gather(&c, 1, w->window, w->now_ns, links_add_up, &sums))
			continue;
		c.rate_gbs = rate_of(&link->who, &sums);
		c.wait_ns = (double)sums.state_ns[0];
		*list_must_add(&w->c) = c;
	}
	return hold_breathe(&w->reader);
}

/* The place behind what is one row with the one at i. */
static size_t row_end(const struct links_work *w, size_t i)
{
	size_t end = i + 1;

	while (w->query->together && end < w->c.n &&
	       !links_compare(w->c.at[i].link, w->c.at[end].link))
		end++;
	return end;
}

/* Each channel of a link gets the loss of its worst one, so that all are ordered by that. */
static bool candidates_level(struct links_work *w)
{
	struct candidate *c = w->c.at;
	size_t end;

	if (!candidates_sort(w, candidates_by_link))
		return false;
	for (size_t i = 0; i < w->c.n; i = end) {
		end = row_end(w, i);
		for (size_t k = i + 1; k < end; k++) {
			c[i].excess_ns = fmax(c[i].excess_ns, c[k].excess_ns);
			c[i].wait_ns = fmax(c[i].wait_ns, c[k].wait_ns);
		}
		for (size_t k = i + 1; k < end; k++) {
			c[k].excess_ns = c[i].excess_ns;
			c[k].wait_ns = c[i].wait_ns;
		}
	}
	return true;
}

static bool rank_candidates(struct links_work *w)
{
	struct candidate *c = w->c.at;
	size_t end;

	if (!candidates_sort(w, by_comm_and_rate))
		return false;
	for (size_t i = 0; i < w->c.n; i = end) {
		for (end = i + 1; end < w->c.n && c[i].comm == c[end].comm; end++)
			continue;
		if (!compare_links(w, &c[i], end - i))
			return false;
	}
	return (!w->query->together || candidates_level(w)) &&
	       candidates_sort(w, candidates_by_excess);
}

static uint64_t window_ns(const struct links *l, const struct link *link,
			  enum links_window window, uint64_t now_ns)
{
	uint64_t from_ns = window == LINKS_ALL ? link->first_ns : l->started_ns;

	if (window == LINKS_60S && slices_begin_ns(now_ns) > from_ns)
		from_ns = slices_begin_ns(now_ns);
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
	row->channels = 1;
	memcpy(&row->sums, &l->last.sums, offsetof(struct links_sums, fit));
	row->rate_gbs = row->trend = -1;
	row->excess_ns = UNKNOWN_U64;
	forget_untold(&row->sums);
}

static void candidates_make_row(const struct links_work *w, const struct candidate *c, size_t n,
				struct links_row *row)
{
	row->window = w->window;
	row->window_ns = 0;
	row->who = c->link->who;
	row->channels = (uint32_t)n;
	candidates_gather(c, n, w->window, w->now_ns, links_merge, &row->sums);
	forget_untold(&row->sums);
	row->rate_gbs = c->rate_gbs;
	for (size_t i = 0; i < n; i++) {
		uint64_t ns = window_ns(w->links, c[i].link, w->window, w->now_ns);

		if (ns > row->window_ns)
			row->window_ns = ns;
		if (i && c[i].rate_gbs >= 0)
			row->rate_gbs = fmax(row->rate_gbs, 0) + c[i].rate_gbs;
	}
	row->trend = candidates_trend(c, n, w->now_ns);
	row->excess_ns = c->excess_ns < 0 ? UNKNOWN_U64 : (uint64_t)c->excess_ns;
}

static int links_visit_window(struct links_work *w, links_row_fn *visit, void *arg)
{
	struct links_row row;
	size_t end;
	int rows = 0;

	if (!find_candidates(w) || !rank_candidates(w))
		return -EAGAIN;
	for (size_t i = 0; i < w->c.n; i = end, rows++) {
		end = row_end(w, i);
		candidates_make_row(w, &w->c.at[i], end - i, &row);
		if (!visit(&row, arg))
			return -ENOMEM;
		if (!hold_go_on(&w->reader, (uint32_t)(end - i)))
			return -EAGAIN;
	}
	return rows;
}

int links_visit(struct links *l, const struct links_query *query, uint64_t now_ns,
		links_row_fn *visit, void *arg)
{
	struct links_work work = {
		.links = l,
		.query = query,
		.now_ns = now_ns,
		.reader = { .most = BREATH, .meanwhile = query->meanwhile,
			    .arg = query->meanwhile_arg },
	};
	int sum = 0, r = 0;

	if (list_init(&work.c, keyed_count(&l->table)) < 0)
		return -ENOMEM;
	hold_begin(&work.reader, &l->hold);
	for (work.window = 0; work.window < LINKS_WINDOW_END && r >= 0; work.window++) {
		if (!(query->windows & 1u << work.window))
			continue;
		r = links_visit_window(&work, visit, arg);
		sum += r;
	}
	hold_end(&l->hold);
	list_deinit(&work.c);
	return r < 0 ? r : sum;
}

/*
 * Stamps that come late make transfers look short.  A line that has a transfer of
 * mean size ten times as fast as the busy wire was tells of such stamps, not of it.
 */
static bool row_is_credible(const struct links_row *row, const struct fit_line *line)
{
	const struct fit *fit = &row->sums.fit;
	double bytes = fit->bytes / (double)fit->n;
	double ns = line->latency_ns + line->ns_per_byte * bytes;

	return row->rate_gbs < 0 || bytes <= 10 * row->rate_gbs * ns;
}

enum fit_outcome links_line(const struct links_row *row, struct fit_line *line)
{
	enum fit_outcome outcome = fit_line(&row->sums.fit, line);

	return outcome == FIT_FOUND && !row_is_credible(row, line) ? FIT_TOO_FAST : outcome;
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
