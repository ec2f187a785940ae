/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of one size (within a factor of two) of a queue are an item of the table, since
 * only like ones are compared; all its items together are the row.  An item holds its totals
 * and a ring of slices (slices.h), each with a histogram of the times in flight.
 */
#include "ncclinspd/sums/queues.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/sums/slices.h"
#include "ncclinspd/sums/sums.h"
#include "reader/time/timeline.h"
#include "tables/hold.h"
#include "tables/keyed.h"
#include "util/list.h"

#define QUEUES		8192
#define QUEUE_CHUNKS	262144
#define QUEUES_HELD	2048	/* requests that come while a query is at work */
#define QUEUES_BREATH	32	/* queues looked at before others' turn */

/*
 * A number is of one device, and a process may have several: the link is part of the key.  Queues
 * that agree in all before `channel` are compared; all from `issuer` on is one queue's.
 */
struct queue_key {
	uint32_t size;		/* slow_queue_size() */
	uint32_t zero;
	uint64_t issuer, executor;	/* process ids */
	uint32_t kind;		/* QUEUE_* */
	uint32_t comm_index;
	int32_t peer;
	int32_t nic;
	uint32_t channel;
	uint32_t number;
};
_Static_assert(sizeof(struct queue_key) == 48, "padding would be compared");

#define QUEUE_SEND	1u
#define QUEUE_SOCKET	2u

struct queue_sums {
	uint64_t period;	/* slices_period(); 0: never used, or no slice */
	uint64_t bytes;
	uint64_t first_ns, last_ns;	/* when the first began and the last ended */
	struct value_sums flight;	/* ns from the posting to the completion */
};

struct queue {
	struct keyed_head head;
	struct queue_key key;
	struct links_who who;
	struct queue_sums sums[SLICES + 1];	/* slices, and all since it was made */
};

/* A request, on its way into its queue. */
struct queue_entry {
	struct queue_key key;
	struct links_who who;
	uid_t account;
	uint64_t bytes, start_ns, stop_ns;	/* CLOCK_MONOTONIC */
	uint64_t now_ns;
};

struct queues {
	struct keyed table;	/* has struct queue */
	struct sums_chunks chunks;
	struct hold hold;	/* holds struct queue_entry */
	struct queues_stats stats;
};

/* ---- adding ---------------------------------------------------------------- */

static void queue_sums_clear(struct queue_sums *sums, struct sums_chunks *chunks)
{
	sums_free_value(&sums->flight, chunks);
	memset(sums, 0, sizeof(*sums));
}

static void queue_gone(void *item, void *arg)
{
	struct queue *queue = item;
	struct queues *q = arg;

	for (int i = 0; i <= SLICES; i++)
		queue_sums_clear(&queue->sums[i], &q->chunks);
}

static void queue_sums_add(struct queues *q, struct queue_sums *sums, const struct queue_entry *e)
{
	uint64_t flight_ns = e->stop_ns - e->start_ns;

	if (!sums->flight.n || e->start_ns < sums->first_ns)
		sums->first_ns = e->start_ns;
	if (e->stop_ns > sums->last_ns)
		sums->last_ns = e->stop_ns;
	sums->bytes += e->bytes;
	q->stats.unbinned += !sums_add_value(&sums->flight, &q->chunks, e->account, flight_ns);
}

static struct queue_sums *queue_current_slice(struct queues *q, struct queue *queue,
					      uint64_t now_ns)
{
	uint64_t period = slices_period(now_ns);
	struct queue_sums *slice = &queue->sums[period % SLICES];

	if (slice->period < period) {
		queue_sums_clear(slice, &q->chunks);
		slice->period = period;
	}
	return slice;
}

static void queues_take_in(const void *entry, void *arg)
{
	const struct queue_entry *e = entry;
	struct queues *q = arg;
	bool made;
	struct queue *queue = keyed_use(&q->table, &e->key, e->account, &made);

	if (!queue)
		return;
	if (made)
		queue->who = e->who;
	queue_sums_add(q, &queue->sums[SLICES], e);
	queue_sums_add(q, queue_current_slice(q, queue, e->now_ns), e);
	q->stats.queues = keyed_count(&q->table);
	q->stats.evicted = q->table.evicted;
}

void queues_add(struct queues *q, const struct net_request *request, uint64_t now_ns)
{
	const struct nci_ev_net_plugin *ev = request->ev;
	bool is_socket = ev->id == NCI_NET_SOCKET_V1;
	struct queue_entry e = {
		.account = request->issuer->account,
		.bytes = ev->bytes,
		.start_ns = timeline_mono(&request->executor->clock, ev->start),
		.stop_ns = timeline_mono(&request->executor->clock, ev->stop),
		.now_ns = now_ns,
	}, *held;

	if (!e.start_ns || e.stop_ns < e.start_ns) {
		q->stats.refused++;
		return;
	}
	q->stats.added++;
	links_set_who(&e.who, request->issuer, request->executor, request->comm_index,
		      request->comm_name);
	e.who.send = ev->form & NCI_FORM_SEND;
	if (ev->op && ev->peer >= 0) {
		e.who.peer = ev->peer;
		e.who.channel = ev->channel;
	}
	e.key = (struct queue_key){
		.size = slow_queue_size(ev->bytes),
		.issuer = e.who.process_id,
		.executor = request->executor->id,
		.kind = (e.who.send ? QUEUE_SEND : 0) | (is_socket ? QUEUE_SOCKET : 0),
		.comm_index = e.who.comm_index,
		.peer = e.who.peer,
		.nic = is_socket || ev->device < 0 ? UNKNOWN_I32 : ev->device,
		.channel = e.who.channel,
		.number = ev->queue,
	};
	held = hold_place(&q->hold);
	if (held)
		*held = e;
	else
		queues_take_in(&e, q);
}

/* ---- life ------------------------------------------------------------------ */

int queues_new(struct queues **qp, const struct queues_limits *limits)
{
	static const struct queues_limits none;
	const struct queues_limits *l = limits ? limits : &none;
	struct queues *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	if (hold_init(&q->hold, QUEUES_HELD, sizeof(struct queue_entry), queues_take_in, q) ||
	    sums_init_chunks(&q->chunks, l->chunks ? l->chunks : QUEUE_CHUNKS) ||
	    keyed_init(&q->table, &KEYED_CONFIG(struct queue, key,
						l->queues ? l->queues : QUEUES,
						.seed = l->seed, .gone = queue_gone, .arg = q))) {
		queues_free(q);
		return -ENOMEM;
	}
	q->stats.bytes = keyed_bytes(&q->table) + pool_bytes(&q->chunks.pool) +
			 hold_bytes(&q->hold);
	*qp = q;
	return 0;
}

void queues_free(struct queues *q)
{
	if (!q)
		return;
	keyed_deinit(&q->table);
	pool_deinit(&q->chunks.pool);
	hold_deinit(&q->hold);
	free(q);
}

const struct queues_stats *queues_stats(const struct queues *q)
{
	return &q->stats;
}

/* ---- rows ------------------------------------------------------------------ */

/* A query under way. */
struct queues_work {
	struct queues *queues;
	const struct links_query *query;
	enum links_window window;
	uint64_t now_ns;
	struct hold_reader reader;
	struct histogram h;
	LIST(struct slow_queue) c;	/* candidates: requests of one size of a struct queue */
	LIST(struct queues_row) rows;
};

static void queue_sums_merge(struct queues_work *w, struct queue_sums *to,
			     const struct queue_sums *from)
{
	if (!from->flight.n)
		return;
	if (!to->flight.n || from->first_ns < to->first_ns)
		to->first_ns = from->first_ns;
	if (from->last_ns > to->last_ns)
		to->last_ns = from->last_ns;
	to->bytes += from->bytes;
	sums_merge_value(&to->flight, &w->h, &from->flight, &w->queues->chunks);
}

/* Gathers the sums of n of these, and their histogram. */
static void candidates_gather(struct queues_work *w, const struct slow_queue *c, size_t n,
			      struct queue_sums *sums)
{
	memset(sums, 0, sizeof(*sums));
	histogram_clear(&w->h);
	for (const struct slow_queue *end = c + n; c < end; c++) {
		const struct queue_sums *of = ((const struct queue *)c->queue)->sums;

		for (int i = 0; i <= SLICES; i++)
			if (w->window == LINKS_ALL ? i == SLICES :
						     slices_are_recent(of[i].period, w->now_ns))
				queue_sums_merge(w, sums, &of[i]);
	}
}

/* False: it has ended. */
static bool candidates_find(struct queues_work *w)
{
	const struct links_query *query = w->query;
	const struct queue *queue = NULL;
	struct queue_sums sums;

	w->c.n = w->rows.n = 0;
	while ((queue = keyed_next(&w->queues->table, queue))) {
		struct slow_queue c = { .queue = queue, .ratio = -1 };

		if (!hold_go_on(&w->reader, 1))
			return false;
		if (!query->all_users && queue->who.uid != query->uid)
			continue;
		candidates_gather(w, &c, 1, &sums);
		c.requests = sums.flight.n;
		c.median_ns = sums_quantile(&sums.flight, &w->h, 0.5);
		if (sums.flight.n)
			*list_must_add(&w->c) = c;
	}
	return hold_breathe(&w->reader);
}

static const struct queue_key *candidate_key(const void *c)
{
	return &((const struct queue *)((const struct slow_queue *)c)->queue)->key;
}

/* Equal: of one rank, peer, direction, NIC and size; channel and number differ. */
static int candidates_by_link(const void *a, const void *b)
{
	return memcmp(candidate_key(a), candidate_key(b), offsetof(struct queue_key, channel));
}

/* Equal: of one queue. */
static int candidates_by_queue(const void *a, const void *b)
{
	return memcmp(&candidate_key(a)->issuer, &candidate_key(b)->issuer,
		      sizeof(struct queue_key) - offsetof(struct queue_key, issuer));
}

/* The place behind those that are equal to the one at i. */
static uint32_t candidates_end(const struct queues_work *w, uint32_t i,
			       int order(const void *a, const void *b))
{
	uint32_t end = i + 1;

	while (end < w->c.n && !order(&w->c.at[i], &w->c.at[end]))
		end++;
	return end;
}

/* Receives are not compared, nor is what is not known to go to one peer. */
static void candidates_compare(struct queues_work *w)
{
	uint32_t end;

	list_sort(&w->c, candidates_by_link);
	for (uint32_t i = 0; i < w->c.n; i = end) {
		const struct queue_key *key = candidate_key(&w->c.at[i]);

		end = candidates_end(w, i, candidates_by_link);
		if (key->kind & QUEUE_SEND && key->peer != UNKNOWN_I32)
			slow_queues_compare(&w->c.at[i], end - i);
	}
}

static double load_ns(const struct slow_queue *load)
{
	return load->ratio < 0 ? -1 : (double)load->requests * (double)load->median_ns;
}

static void candidates_make_row(struct queues_work *w, const struct slow_queue *c, size_t n,
				struct queues_row *row)
{
	const struct queue_key *key = candidate_key(c);
	struct queue_sums sums;
	uint64_t window_ns;

	candidates_gather(w, c, n, &sums);
	window_ns = sums.last_ns - sums.first_ns;
	*row = (struct queues_row){
		.window = w->window,
		.window_ns = window_ns,
		.who = ((const struct queue *)c->queue)->who,
		.is_socket = key->kind & QUEUE_SOCKET,
		.number = key->number,
		.nic = key->nic,
		.requests = sums.flight.n,
		.bytes = sums.bytes,
		.rate = sums.flight.n > 1 && window_ns ?
			(double)sums.flight.n * 1e9 / (double)window_ns : -1,
		.p50_ns = sums_quantile(&sums.flight, &w->h, 0.5),
		.p99_ns = sums_quantile(&sums.flight, &w->h, 0.99),
		.max_ns = sums.flight.max,
		.load = *c,
	};
	for (size_t i = 1; i < n; i++)
		if (load_ns(&c[i]) > load_ns(&row->load))
			row->load = c[i];
}

static int queues_by_ratio(const void *a, const void *b)
{
	const struct queues_row *x = a, *y = b;
	int r = (x->load.ratio < y->load.ratio) - (x->load.ratio > y->load.ratio);

	r = r ? r : number_order((uint64_t)x->who.rank, (uint64_t)y->who.rank);
	r = r ? r : number_order((uint64_t)x->who.peer, (uint64_t)y->who.peer);
	r = r ? r : number_order(x->who.channel, y->who.channel);
	return r ? r : number_order(x->number, y->number);
}

/* False: it has ended. */
static bool queues_make_rows(struct queues_work *w)
{
	uint32_t end;

	if (!candidates_find(w))
		return false;
	candidates_compare(w);
	list_sort(&w->c, candidates_by_queue);
	for (uint32_t i = 0; i < w->c.n; i = end) {
		end = candidates_end(w, i, candidates_by_queue);
		candidates_make_row(w, &w->c.at[i], end - i, list_must_add(&w->rows));
		if (!hold_go_on(&w->reader, end - i))
			return false;
	}
	list_sort(&w->rows, queues_by_ratio);
	return true;
}

static int queues_visit_window(struct queues_work *w, queues_row_fn *visit, void *arg)
{
	struct hold *hold = &w->queues->hold;

	hold_begin(&w->reader, hold);
	if (!queues_make_rows(w)) {
		w->reader.meanwhile = NULL;
		hold_begin(&w->reader, hold);
		queues_make_rows(w);
	}
	hold_end(hold);
	for (uint32_t i = 0; i < w->rows.n; i++)
		if (!visit(&w->rows.at[i], arg))
			return -ENOMEM;
	return (int)w->rows.n;
}

int queues_visit(struct queues *q, const struct links_query *query, uint64_t now_ns,
		 queues_row_fn *visit, void *arg)
{
	struct queues_work w = {
		.queues = q,
		.query = query,
		.now_ns = now_ns,
		.reader = { .most = QUEUES_BREATH, .meanwhile = query->meanwhile,
			    .arg = query->meanwhile_arg },
	};
	uint32_t room = q->table.config.capacity;
	int sum = 0, r = list_init(&w.c, room) | list_init(&w.rows, room);

	for (w.window = 0; w.window < LINKS_WINDOW_END && r >= 0; w.window++) {
		if (!(query->windows & 1u << w.window))
			continue;
		r = queues_visit_window(&w, visit, arg);
		sum += r;
	}
	list_deinit(&w.c);
	list_deinit(&w.rows);
	return r < 0 ? r : sum;
}
