/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/collectives and /v1/summary: finished operations, one by one and in sum. */
#include "ncclinspd/serve_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/aggregate.h"
#include "ncclinspd/oplog.h"
#include "ncclinspd/timeline.h"

/* ---- operations -------------------------------------------------------- */

static void put_comm_id(const struct serve *s, struct json *j, const void *row)
{
	const struct op *op = row;

	(void)s;
	if (op->has_comm_id)
		json_put_hex64(j, op->comm_id);
	else
		json_put_null(j);
}

static void put_graph(const struct serve *s, struct json *j, const void *row)
{
	const struct op *op = row;

	(void)s;
	if (op->has_graph)
		json_put_bool(j, op->graph);
	else
		json_put_null(j);
}

/*
 * An operation of which nothing but its posting can be watched (an old API within
 * a node, copy engines, level ops) counts as over at once; whether it is, nobody
 * knows.
 */
static void put_complete(const struct serve *s, struct json *j, const void *row)
{
	const struct op *op = row;

	(void)s;
	if (op->complete && !op->kernel_stopped && !op->proxy_ops)
		json_put_null(j);
	else
		json_put_bool(j, op->complete);
}

static void put_source(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_string(j, timeline_source_text(((const struct op *)row)->source));
}

const struct field op_fields[] = {
#define F(name, kind) { #name, kind, offsetof(struct op, name), NULL }
	{ "comm_id", FIELD_PUT, 0, put_comm_id },
	F(comm_name, FIELD_NAME),
	F(rank, FIELD_I32),
	F(nranks, FIELD_I32),
	F(pid, FIELD_I32),
	F(token, FIELD_HEX),
	F(func, FIELD_NAME),
	F(seq, FIELD_U64),
	F(count, FIELD_U64),
	F(datatype, FIELD_NAME),
	F(bytes, FIELD_U64),
	F(root, FIELD_I32),
	F(peer, FIELD_I32),
	F(algo, FIELD_NAME),
	F(proto, FIELD_NAME),
	F(channels, FIELD_U32_0),
	{ "graph", FIELD_PUT, 0, put_graph },
	{ "enqueued", FIELD_TIME, offsetof(struct op, enqueued_ns), NULL },
	F(enqueue_ns, FIELD_U64),
	F(queue_ns, FIELD_U64),
	F(exec_ns, FIELD_U64),
	{ "timing_source", FIELD_PUT, 0, put_source },
	F(exec_error_ns, FIELD_U64),
	F(algbw_gbs, FIELD_RATE),
	F(busbw_gbs, FIELD_RATE),
	{ "gpu_start_at", FIELD_NULL, 0, NULL },
	{ "gpu_stop_at", FIELD_NULL, 0, NULL },
	{ "arrival_rank_order", FIELD_NULL, 0, NULL },
	{ "late_ns", FIELD_NULL, 0, NULL },
	{ "fused", FIELD_NULL, 0, NULL },
	F(sampled, FIELD_BOOL),
	{ "complete", FIELD_PUT, 0, put_complete },
	F(stamps_refused, FIELD_U32),
	F(tag, FIELD_HEX_0),
	{ "done", FIELD_TIME, offsetof(struct op, done_ns), NULL },
#undef F
	{ NULL, 0, 0, NULL },
};

/*
 * Ten thousand rows take longer to write than a busy lane takes to fill, and
 * nobody drains meanwhile.  So the operations are copied at once, which is quick
 * and makes the answer one state, and become text as the client takes it.
 */
struct listing {
	const struct serve *serve;
	struct json text;
	size_t sent;			/* bytes of text */
	uint32_t next, n;
	bool ended;
	struct op ops[];
};

static bool collect(const struct op *op, uint64_t serial, void *arg)
{
	struct listing *l = arg;

	(void)serial;
	l->ops[l->n++] = *op;
	return true;
}

/* At least `bytes` of text, unless that is the end. */
static void write_rows(struct listing *l, size_t bytes)
{
	struct json *j = &l->text;

	while (l->next < l->n && j->bytes < bytes) {
		json_begin(j, '{');
		rows_put(l->serve, j, op_fields, &l->ops[l->next++]);
		json_end(j, '}');
	}
	if (l->next < l->n || l->ended)
		return;
	json_end(j, ']');
	json_end(j, '}');
	json_newline(j);
	l->ended = true;
}

/* What was sent goes; the last byte stays, since commas depend on it. */
static void drop_sent(struct listing *l)
{
	l->text.text[0] = l->text.text[l->text.bytes - 1];
	l->text.bytes = 1;
	l->sent = 1;
}

static ssize_t read_listing(void *arg, uint64_t pos, char *buf, size_t max)
{
	struct listing *l = arg;
	size_t bytes;

	(void)pos;
	if (!json_error(&l->text) && l->sent == l->text.bytes) {
		if (l->ended)
			return MHD_CONTENT_READER_END_OF_STREAM;
		serve_meanwhile(l->serve);
		drop_sent(l);
		write_rows(l, max);
	}
	if (json_error(&l->text))
		return MHD_CONTENT_READER_END_WITH_ERROR;
	bytes = l->text.bytes - l->sent < max ? l->text.bytes - l->sent : max;
	memcpy(buf, l->text.text + l->sent, bytes);
	l->sent += bytes;
	return (ssize_t)bytes;
}

static void listing_free(void *arg)
{
	struct listing *l = arg;

	json_deinit(&l->text);
	free(l);
}

struct MHD_Response *serve_collectives(struct request *r, struct MHD_Connection *connection)
{
	const struct query *q = &r->query;
	struct oplog_filter filter = {
		.all_users = r->viewer.all,
		.uid = r->viewer.uid,
		.rank = q->rank,
		.comm_name = *q->comm ? q->comm : NULL,
		.has_comm_id = q->comm_may_be_id,
		.comm_id = q->comm_id,
		.func = *q->func ? q->func : NULL,
		.pid = q->pid,
		.since_mono_ns = q->since_mono_ns,
		.limit = q->limit,
	};
	struct listing *l = malloc(sizeof(*l) + q->limit * sizeof(l->ops[0]));
	struct MHD_Response *response;

	(void)connection;
	if (!l)
		return NULL;
	*l = (struct listing){ .serve = r->serve };
	json_init(&l->text, SERVE_ANSWER_BYTES);
	oplog_visit(r->serve->source.oplog, &filter, collect, l);
	json_begin(&l->text, '{');
	json_key(&l->text, "collectives");
	json_begin(&l->text, '[');
	response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, SERVE_BLOCK_BYTES,
						     read_listing, l, listing_free);
	if (!response)
		listing_free(l);
	return response;
}

/* ---- sums -------------------------------------------------------------- */

static void put_row_comm_id(const struct serve *s, struct json *j, const void *row)
{
	const struct aggregate_row *a = row;

	(void)s;
	if (a->has_comm_id)
		json_put_hex64(j, a->comm_id);
	else
		json_put_null(j);
}

static void put_row_bytes(const struct serve *s, struct json *j, const void *row)
{
	const struct aggregate_row *a = row;

	(void)s;
	if (a->sized_ops || !a->ops)
		json_put_u64(j, a->bytes);
	else
		json_put_null(j);
}

static const struct field times_fields[] = {
#define F(name) { #name, FIELD_U64, offsetof(struct aggregate_times, name), NULL }
	F(n),
	F(mean_ns),
	F(p50_ns),
	F(p90_ns),
	F(p99_ns),
	F(max_ns),
#undef F
	{ NULL, 0, 0, NULL },
};

static void put_exec(const struct serve *s, struct json *j, const void *row)
{
	json_begin(j, '{');
	rows_put(s, j, times_fields, &((const struct aggregate_row *)row)->exec);
	json_end(j, '}');
}

static void put_queue(const struct serve *s, struct json *j, const void *row)
{
	json_begin(j, '{');
	rows_put(s, j, times_fields, &((const struct aggregate_row *)row)->queue);
	json_end(j, '}');
}

static const struct field busbw_fields[] = {
#define F(name, member) { name, FIELD_RATE, offsetof(struct aggregate_row, member), NULL }
	F("mean", busbw_mean_gbs),
	F("p50", busbw_p50_gbs),
	F("min", busbw_min_gbs),
#undef F
	{ NULL, 0, 0, NULL },
};

static void put_busbw(const struct serve *s, struct json *j, const void *row)
{
	json_begin(j, '{');
	rows_put(s, j, busbw_fields, row);
	json_end(j, '}');
}

static void put_row_source(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_string(j, timeline_source_text(((const struct aggregate_row *)row)->source));
}

#define A(name, kind) { #name, kind, offsetof(struct aggregate_row, name), NULL }

/* What a key of ?by= shows; in the order of AGGREGATE_KEYS. */
static const struct field key_fields[][4] = {
	{ { "comm_id", FIELD_PUT, 0, put_row_comm_id }, A(comm_name, FIELD_NAME),
	  A(nranks, FIELD_I32), { NULL, 0, 0, NULL } },
	{ A(rank, FIELD_I32) },
	{ A(func, FIELD_NAME) },
	{ A(algo, FIELD_NAME) },
	{ A(proto, FIELD_NAME) },
	{ A(size_class, FIELD_U64) },
	{ A(peer, FIELD_I32) },
	{ A(tag, FIELD_HEX_0) },
};

static const struct field sum_fields[] = {
	A(window_ns, FIELD_U64),
	A(ops, FIELD_U64),
	{ "bytes", FIELD_PUT, 0, put_row_bytes },
	{ "exec", FIELD_PUT, 0, put_exec },
	{ "queue", FIELD_PUT, 0, put_queue },
	A(algbw_gbs, FIELD_RATE),
	{ "busbw_gbs", FIELD_PUT, 0, put_busbw },
	{ "busbw_waitfree_gbs", FIELD_NULL, 0, NULL },
	A(share, FIELD_RATE),
	{ "timing_source", FIELD_PUT, 0, put_row_source },
	A(sampled_fraction, FIELD_RATE),
	{ NULL, 0, 0, NULL },
};
#undef A

/* Where a visitor writes. */
struct output {
	const struct serve *serve;
	struct json *json;
	const char *window;
};

static bool put_sum(const struct aggregate_row *row, void *arg)
{
	struct output *o = arg;

	json_begin(o->json, '{');
	json_key(o->json, "window");
	json_put_string(o->json, o->window);
	for (size_t i = 0; i < sizeof(key_fields) / sizeof(key_fields[0]); i++)
		if (row->by & 1u << i)
			rows_put(o->serve, o->json, key_fields[i], row);
	rows_put(o->serve, o->json, sum_fields, row);
	json_end(o->json, '}');
	return !json_error(o->json);
}

void serve_summary(struct request *r, struct json *j)
{
	static const char *const texts[] = {
#define X(NAME, text, slices, ns) [AGGREGATE_##NAME] = text,
		AGGREGATE_WINDOWS(X)
#undef X
	};
	struct serve *s = r->serve;
	struct output o = { .serve = s, .json = j };
	struct aggregate_query query = {
		.by = r->query.by,
		.all_users = r->viewer.all,
		.uid = r->viewer.uid,
	};

	json_key(j, "rows");
	json_begin(j, '[');
	for (unsigned w = 0; w < AGGREGATE_WINDOW_END; w++) {
		if (!(r->query.windows & 1u << w))
			continue;
		o.window = texts[w];
		query.window = w;
		if (aggregate_query(s->source.aggregate, &query, s->now_ns, put_sum, &o) < 0)
			json_fail(j, -ENOMEM);
	}
	json_end(j, ']');
}
