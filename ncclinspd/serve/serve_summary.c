/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/summary: finished operations in sum. */
#include "ncclinspd/serve/serve_impl.h"

#include <errno.h>

#include "ncclinspd/sums/aggregate.h"
#include "reader/time/timeline.h"

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
	F(p95_ns),
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

static void put_batch(const struct serve *s, struct json *j, const void *row)
{
	json_begin(j, '{');
	rows_put(s, j, times_fields, &((const struct aggregate_row *)row)->batch);
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

static void put_window(const struct serve *s, struct json *j, const void *row)
{
	static const char *const texts[] = {
#define X(NAME, text, slices, ns) [AGGREGATE_##NAME] = text,
		AGGREGATE_WINDOWS(X)
#undef X
	};

	(void)s;
	json_put_string(j, texts[((const struct aggregate_row *)row)->window]);
}

static const struct field window_field[] = {
	{ "window", FIELD_PUT, 0, put_window },
	{ NULL, 0, 0, NULL },
};

#define A(name, kind) { #name, kind, offsetof(struct aggregate_row, name), NULL }

/* The fields that a key of ?by= shows; in the order of AGGREGATE_KEYS. */
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
	{ A(phase, FIELD_NAME) },
};

static const struct field sum_fields[] = {
	A(window_ns, FIELD_U64),
	A(ops, FIELD_U64),
	{ "bytes", FIELD_PUT, 0, put_row_bytes },
	A(fused, FIELD_U64),
	A(derived, FIELD_U64),
	{ "exec", FIELD_PUT, 0, put_exec },
	{ "batch", FIELD_PUT, 0, put_batch },
	{ "queue", FIELD_PUT, 0, put_queue },
	A(algbw_gbs, FIELD_RATE),
	{ "busbw_gbs", FIELD_PUT, 0, put_busbw },
	A(busbw_waitfree_gbs, FIELD_RATE),
	A(wait_fraction, FIELD_RATE),
	A(share, FIELD_RATE),
	{ "timing_source", FIELD_PUT, 0, put_row_source },
	A(sampled_fraction, FIELD_RATE),
	A(lost_fraction, FIELD_RATE),
	{ NULL, 0, 0, NULL },
};
#undef A

const struct field_table summary_tables[] = {
	{ NULL, window_field },
#define X(bit, NAME, text) { NULL, key_fields[bit] },
	AGGREGATE_KEYS(X)
#undef X
	{ NULL, sum_fields },
	{ NULL, NULL },
};

void serve_put_summary_row(const struct serve *s, struct json *j, const void *row,
			   const struct chosen *chosen)
{
	const struct aggregate_row *a = row;
	unsigned n = rows_put_chosen(s, j, window_field, row, chosen, 0);

	for (size_t i = 0; i < sizeof(key_fields) / sizeof(key_fields[0]); i++)
		n = a->by & 1u << i ? rows_put_chosen(s, j, key_fields[i], row, chosen, n)
				    : n + rows_count(key_fields[i]);
	rows_put_chosen(s, j, sum_fields, row, chosen, n);
}

static void meanwhile(void *arg)
{
	serve_meanwhile(arg);
}

int serve_visit_sums(struct request *r, aggregate_row_fn *visit, void (*restart)(void *arg),
		     void *arg)
{
	struct serve *s = r->serve;
	struct aggregate_query query = {
		.windows = r->query.windows,
		.by = r->query.by,
		.all_users = r->viewer.all,
		.uid = r->viewer.uid,
		.meanwhile = meanwhile,
		.meanwhile_arg = s,
	};
	int err = aggregate_query(s->source.aggregate, &query, s->now_ns, visit, arg);

	if (err == -EAGAIN) {
		restart(arg);
		query.meanwhile = NULL;
		err = aggregate_query(s->source.aggregate, &query, s->now_ns, visit, arg);
	}
	return err;
}

static bool keep_row(const struct aggregate_row *row, void *arg)
{
	struct aggregate_row *copy = listing_add(arg);

	if (copy)
		*copy = *row;
	return copy;
}

static void drop_rows(void *arg)
{
	listing_clear(arg);
}

int serve_take_summary(struct request *r, struct listing *l)
{
	return serve_visit_sums(r, keep_row, drop_rows, l);
}

int serve_summary(struct request *r, struct answer *a)
{
	struct listing *l = listing_new(r->serve, "rows", sizeof(struct aggregate_row),
					serve_put_summary_row, &r->chosen);

	if (!l || serve_take_summary(r, l) < 0) {
		listing_free(l);
		return -ENOMEM;
	}
	listing_open(l, a);
	return 0;
}
