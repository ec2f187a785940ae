/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/peers and /v1/queues: what went over the network, by link, and by queue pair. */
#include <errno.h>
#include <string.h>

#include "ncclinspd/serve/serve_parts.h"
#include "ncclinspd/sums/queues.h"
#include "ncclinspd/sums/transferlog.h"

/* The state that each member is of, in a send and in a receive; -1: there is none. */
static const struct {
	const char *name;
	int state[2];	/* [send] */
} times[] = {
	{ "gpu_wait_ns",  { 2, 0 } },
	{ "peer_wait_ns", { -1, 1 } },
	{ "net_ns",       { -1, 2 } },
	{ "data_wait_ns", { 0, -1 } },
	{ "flush_ns",     { 1, -1 } },
};

static void peer_put_states(struct json *j, const struct links_row *l, const uint64_t *ns)
{
	json_begin(j, '{');
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		int state = times[i].state[l->who.send];

		json_key(j, times[i].name);
		rows_put_u64(j, state < 0 ? UNKNOWN_U64 : ns[state]);
	}
	json_end(j, '}');
}

static void peer_put_time(const struct rows_writer *w, struct json *j, const void *row)
{
	peer_put_states(j, row, ((const struct links_row *)row)->sums.state_ns);
}

static void peer_put_longest(const struct rows_writer *w, struct json *j, const void *row)
{
	peer_put_states(j, row, ((const struct links_row *)row)->sums.longest_ns);
}

struct fit_row {
	uint64_t latency_ns;
	double rate_gbs, r2;
	const char *method, *missing;
	uint64_t points, sizes;
};

static field_put_fn peer_put_fit;

#include "schema/peer.h"

static void peer_put_fit(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct fit *fit = &((const struct links_row *)row)->sums.fit;
	struct fit_row f = { .latency_ns = UNKNOWN_U64, .rate_gbs = -1, .r2 = -1,
			     .points = fit->n, .sizes = fit->sizes };
	struct fit_line line;
	enum fit_outcome outcome = links_line(row, &line);

	f.missing = fit_outcome_text(outcome);
	if (outcome == FIT_FOUND) {
		f.latency_ns = (uint64_t)line.latency_ns;
		f.rate_gbs = 1 / line.ns_per_byte;
		f.r2 = line.r2;
		f.method = fit_method_text(line.method);
	}
	rows_put_object(w, j, fit_fields, &f);
}

#include "schema/queue.h"

const struct field_table peer_tables[] = { { NULL, peer_fields }, { NULL, NULL } };
const struct field_table queue_tables[] = { { NULL, queue_fields }, { NULL, NULL } };

static void peer_put_row(const struct serve *s, struct json *j, const void *row,
			 const struct chosen *chosen)
{
	rows_put_chosen(&s->writer, j, peer_fields, row, chosen, 0);
}

static void queue_put_row(const struct serve *s, struct json *j, const void *row,
			  const struct chosen *chosen)
{
	rows_put_chosen(&s->writer, j, queue_fields, row, chosen, 0);
}

/* ---- which ----------------------------------------------------------------- */

struct wanted {
	const struct query *query;
	struct sent_listing *listing;
};

static bool wanted_keep(const struct wanted *wanted, const struct links_who *who, const void *row,
			size_t bytes)
{
	const struct query *q = wanted->query;
	const struct query_rank rank = {
		.has_comm_id = who->has_comm_id, .comm_id = who->comm_id,
		.comm_name = who->comm_name, .nranks = who->nranks, .rank = who->rank,
		.pid = who->pid,
	};
	void *copy;

	if ((q->peer != UNKNOWN_I32 && q->peer != who->peer) ||
	    (q->send != QUERY_ANY && q->send != who->send) || !query_wants(q, &rank))
		return true;
	copy = listing_add(wanted->listing);
	if (copy)
		memcpy(copy, row, bytes);
	return copy;
}

static bool peers_keep_row(const struct links_row *row, void *arg)
{
	return wanted_keep(arg, &row->who, row, sizeof(*row));
}

static bool queues_keep_row(const struct queues_row *row, void *arg)
{
	return wanted_keep(arg, &row->who, row, sizeof(*row));
}

static struct links_query peers_query(const struct request *r)
{
	return (struct links_query){
		.windows = r->query.link_windows,
		.together = r->query.together,
		.all_users = r->viewer.all,
		.uid = r->viewer.uid,
		.meanwhile = serve_meanwhile_arg,
		.meanwhile_arg = r->serve,
	};
}

struct sent_listing *serve_new_peers(const struct serve *s, const struct chosen *chosen)
{
	return listing_new(s, "peers", sizeof(struct links_row), peer_put_row, chosen);
}

int serve_take_peers(struct request *r, struct sent_listing *l)
{
	struct serve *s = r->serve;
	struct links_query query = peers_query(r);
	struct wanted wanted = { .query = &r->query, .listing = l };
	int err = links_visit(s->source.links, &query, s->now_ns, peers_keep_row, &wanted);

	if (err == -EAGAIN) {
		listing_clear(l);
		query.meanwhile = NULL;
		err = links_visit(s->source.links, &query, s->now_ns, peers_keep_row, &wanted);
	}
	return err;
}

struct sent_listing *serve_new_queues(const struct serve *s, const struct chosen *chosen)
{
	return listing_new(s, "queues", sizeof(struct queues_row), queue_put_row, chosen);
}

int serve_take_queues(struct request *r, struct sent_listing *l)
{
	const struct links_query query = peers_query(r);
	struct wanted wanted = { .query = &r->query, .listing = l };

	return queues_visit(r->serve->source.queues, &query, r->serve->now_ns, queues_keep_row,
			    &wanted);
}

int serve_peers(struct request *r, struct answer *a)
{
	struct sent_listing *l = serve_new_peers(r->serve, &r->chosen);

	return listing_answer(l, l ? serve_take_peers(r, l) : 0, a);
}

int serve_queues(struct request *r, struct answer *a)
{
	struct sent_listing *l = serve_new_queues(r->serve, &r->chosen);

	return listing_answer(l, l ? serve_take_queues(r, l) : 0, a);
}
