/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/peers: what went over the network, link by link. */
#include "ncclinspd/serve/serve_impl.h"

#include <errno.h>
#include <string.h>

#include "ncclinspd/sums/links.h"
#include "ncclinspd/sums/transferlog.h"

static void put_window(const struct serve *s, struct json *j, const void *row)
{
	static const char *const texts[] = {
#define X(NAME, text) [LINKS_##NAME] = text,
		LINKS_WINDOWS(X)
#undef X
	};

	(void)s;
	json_put_string(j, texts[((const struct links_row *)row)->window]);
}

static void put_comm_id(const struct serve *s, struct json *j, const void *row)
{
	const struct links_row *l = row;

	(void)s;
	if (l->who.has_comm_id)
		json_put_hex64(j, l->who.comm_id);
	else
		json_put_null(j);
}

static void put_direction(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_string(j, ((const struct links_row *)row)->who.send ? "send" : "recv");
}

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

static void put_states(struct json *j, const struct links_row *l, const uint64_t *ns)
{
	json_begin(j, '{');
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		int state = times[i].state[l->who.send];

		json_key(j, times[i].name);
		if (state < 0 || ns[state] == UNKNOWN_U64)
			json_put_null(j);
		else
			json_put_u64(j, ns[state]);
	}
	json_end(j, '}');
}

static void put_time(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	put_states(j, row, ((const struct links_row *)row)->sums.state_ns);
}

static void put_longest(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	put_states(j, row, ((const struct links_row *)row)->sums.longest_ns);
}

struct fit_fields {
	uint64_t latency_ns;
	double rate_gbs, r2;
	const char *method;
};

static const struct field fit_fields[] = {
#define F(name, kind) { #name, kind, offsetof(struct fit_fields, name), NULL }
	F(latency_ns, FIELD_U64),
	F(rate_gbs, FIELD_RATE),
	F(r2, FIELD_RATE),
	F(method, FIELD_NAME),
#undef F
	{ NULL, 0, 0, NULL },
};

static void put_fit(const struct serve *s, struct json *j, const void *row)
{
	const struct fit *fit = &((const struct links_row *)row)->sums.fit;
	struct fit_fields f = { .latency_ns = UNKNOWN_U64, .rate_gbs = -1, .r2 = -1 };
	struct fit_line line;

	if (links_line(row, &line))
		f = (struct fit_fields){
			.latency_ns = (uint64_t)(line.latency_ns + 0.5),
			.rate_gbs = 1 / line.ns_per_byte,
			.r2 = line.r2,
			.method = fit_method_text(line.method),
		};
	json_begin(j, '{');
	rows_put(s, j, fit_fields, &f);
	json_key(j, "points");
	json_put_u64(j, fit->n);
	json_key(j, "sizes");
	json_put_u64(j, fit->sizes);
	json_end(j, '}');
}

static void put_bound(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_string(j, links_bound(row));
}

static const struct field peer_fields[] = {
#define P(name, put) { name, FIELD_PUT, 0, put }
#define W(name, kind) { #name, kind, offsetof(struct links_row, who.name), NULL }
#define S(name, kind) { #name, kind, offsetof(struct links_row, sums.name), NULL }
#define R(name, kind) { #name, kind, offsetof(struct links_row, name), NULL }
	P("window", put_window),
	R(window_ns, FIELD_U64),
	P("comm_id", put_comm_id),
	W(comm_name, FIELD_NAME),
	W(nranks, FIELD_I32),
	W(rank, FIELD_I32),
	W(pid, FIELD_I32),
	W(proxy_pid, FIELD_I32),
	W(peer, FIELD_I32),
	W(channel, FIELD_U32),
	P("direction", put_direction),
	S(bytes, FIELD_U64),
	S(steps, FIELD_U64),
	S(ops, FIELD_U64),
	S(timed_steps, FIELD_U64),
	P("time", put_time),
	P("longest", put_longest),
	S(active_ns, FIELD_U64),
	S(held_ns, FIELD_U64),
	S(busy_ns, FIELD_U64),
	S(repeats, FIELD_U64),
	R(rate_gbs, FIELD_RATE),
	R(trend, FIELD_RATE),
	P("fit", put_fit),
	R(excess_ns, FIELD_U64),
	P("bound", put_bound),
#undef R
#undef S
#undef W
#undef P
	{ NULL, 0, 0, NULL },
};

/* Fields of a struct transfer. */
const struct field transfer_fields[] = {
#define P(name, put) { name, FIELD_PUT, 0, put }
#define W(name, kind) { #name, kind, offsetof(struct transfer, row.who.name), NULL }
#define S(name, kind) { #name, kind, offsetof(struct transfer, row.sums.name), NULL }
#define T(name, member, kind) { name, kind, offsetof(struct transfer, member), NULL }
	P("comm_id", put_comm_id),
	W(comm_name, FIELD_NAME),
	W(rank, FIELD_I32),
	W(pid, FIELD_I32),
	W(proxy_pid, FIELD_I32),
	W(peer, FIELD_I32),
	W(channel, FIELD_U32),
	P("direction", put_direction),
	T("parent", parent, FIELD_HEX_0),
	T("start", start_ns, FIELD_TIME),
	T("stop", stop_ns, FIELD_TIME),
	S(bytes, FIELD_U64),
	S(steps, FIELD_U64),
	S(timed_steps, FIELD_U64),
	P("time", put_time),
	P("longest", put_longest),
	S(active_ns, FIELD_U64),
	S(held_ns, FIELD_U64),
	S(busy_ns, FIELD_U64),
	S(repeats, FIELD_U64),
#undef T
#undef S
#undef W
#undef P
	{ NULL, 0, 0, NULL },
};

const struct field_table peer_tables[] = { { NULL, peer_fields }, { NULL, NULL } };

static void put_row(const struct serve *s, struct json *j, const void *row,
		    const struct chosen *chosen)
{
	rows_put_chosen(s, j, peer_fields, row, chosen, 0);
}

/* ---- which ----------------------------------------------------------------- */

struct wanted {
	const struct query *query;
	struct listing *listing;
};

static bool keep_row(const struct links_row *row, void *arg)
{
	const struct wanted *wanted = arg;
	const struct links_who *who = &row->who;
	const struct query *q = wanted->query;
	const struct query_rank rank = {
		.has_comm_id = who->has_comm_id, .comm_id = who->comm_id,
		.comm_name = who->comm_name, .nranks = who->nranks, .rank = who->rank,
		.pid = who->pid,
	};
	struct links_row *copy;

	if ((q->peer != UNKNOWN_I32 && q->peer != who->peer) ||
	    (q->send != QUERY_ANY && q->send != who->send) || !query_wants(q, &rank))
		return true;
	copy = listing_add(wanted->listing);
	if (copy)
		*copy = *row;
	return copy;
}

static void meanwhile(void *arg)
{
	serve_meanwhile(arg);
}

struct listing *serve_new_peers(const struct serve *s, const struct chosen *chosen)
{
	return listing_new(s, "peers", sizeof(struct links_row), put_row, chosen);
}

int serve_take_peers(struct request *r, struct listing *l)
{
	struct serve *s = r->serve;
	struct links_query query = {
		.windows = r->query.link_windows,
		.all_users = r->viewer.all,
		.uid = r->viewer.uid,
		.meanwhile = meanwhile,
		.meanwhile_arg = s,
	};
	struct wanted wanted = { .query = &r->query, .listing = l };
	int err = links_visit(s->source.links, &query, s->now_ns, keep_row, &wanted);

	if (err == -EAGAIN) {
		listing_clear(l);
		query.meanwhile = NULL;
		err = links_visit(s->source.links, &query, s->now_ns, keep_row, &wanted);
	}
	return err;
}

int serve_peers(struct request *r, struct answer *a)
{
	struct listing *l = serve_new_peers(r->serve, &r->chosen);

	if (!l || serve_take_peers(r, l) < 0) {
		listing_free(l);
		return -ENOMEM;
	}
	listing_open(l, a);
	return 0;
}
