/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/collectives: finished operations, one by one. */
#include "ncclinspd/serve/serve_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/sums/oplog.h"
#include "reader/time/stamps.h"
#include "reader/time/timeline.h"

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

static void put_complete(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	if (op_end_is_known(row))
		json_put_bool(j, ((const struct op *)row)->complete);
	else
		json_put_null(j);
}

static void put_stamps_why(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_string(j, stamps_fault_text(((const struct op *)row)->stamps_why));
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
	{ "gpu_start", FIELD_TIME, offsetof(struct op, gpu_start_mono_ns), NULL },
	{ "gpu_stop", FIELD_TIME, offsetof(struct op, gpu_stop_mono_ns), NULL },
	F(gpu_clock_error_ns, FIELD_U64),
	{ "arrival_rank_order", FIELD_PUT, 0, serve_put_arrival },
	{ "arrival_source", FIELD_PUT, 0, serve_put_arrival_source },
	{ "late_ns", FIELD_PUT, 0, serve_put_late },
	{ "busbw_waitfree_gbs", FIELD_PUT, 0, serve_put_waitfree },
	{ "fused", FIELD_PUT, 0, serve_put_fused },
	{ "batch", FIELD_PUT, 0, serve_put_batch },
	{ "derived", FIELD_PUT, 0, serve_put_derived },
	F(parts, FIELD_U32_0),
	{ "shift", FIELD_PUT, 0, serve_put_shift },
	{ "skew", FIELD_PUT, 0, serve_put_skew },
	F(sampled, FIELD_BOOL),
	{ "complete", FIELD_PUT, 0, put_complete },
	F(stamps_refused, FIELD_U32),
	{ "stamps_why", FIELD_PUT, 0, put_stamps_why },
	F(tag, FIELD_HEX_0),
	F(phase, FIELD_NAME),
	{ "done", FIELD_TIME, offsetof(struct op, done_ns), NULL },
#undef F
	{ NULL, 0, 0, NULL },
};

const struct field_table op_tables[] = { { NULL, op_fields }, { NULL, NULL } };

/*
 * Ten thousand rows take longer to copy than a busy lane takes to fill: they are
 * copied piece by piece, of the log as it is when it is asked.
 */
#define PIECE	256	/* operations looked at in one go */

/* Returns how many were copied, or -ENOMEM; *more: there may be some left. */
static int copy_piece(struct listing *l, const struct oplog *log, struct oplog_visit *visit,
		      uint32_t most, bool *more)
{
	uint32_t budget = PIECE, n = 0;
	const struct op *op;

	while (n < most && (op = oplog_next(visit, log, &budget))) {
		struct op *copy = listing_add(l);

		if (!copy)
			return -ENOMEM;
		*copy = *op;
		n++;
	}
	*more = !budget && n < most;
	return (int)n;
}

static int copy_rows(struct request *r, struct listing *l, const struct oplog_filter *filter)
{
	const struct oplog *log = r->serve->source.oplog;
	uint32_t left = r->query.limit ? r->query.limit : SERVE_ROWS_DEFAULT;
	struct oplog_visit visit;
	bool more = true;

	oplog_begin(&visit, log, filter);
	while (more) {
		int n = copy_piece(l, log, &visit, left, &more);

		if (n < 0)
			return n;
		left -= (uint32_t)n;
		serve_meanwhile(r->serve);
	}
	return 0;
}

void serve_visit_ops(const struct request *r, serve_op_fn *visit, void *arg)
{
	const struct oplog_filter filter = { .all_users = r->viewer.all, .uid = r->viewer.uid,
					     .rank = UNKNOWN_I32, .nranks = UNKNOWN_I32 };
	const struct oplog *log = r->serve->source.oplog;
	struct oplog_visit at;
	const struct op *op;
	uint32_t budget;

	oplog_begin(&at, log, &filter);
	do {
		budget = PIECE;
		while ((op = oplog_next(&at, log, &budget)))
			if (!visit(op, arg))
				return;
		serve_meanwhile(r->serve);
	} while (!budget);
}

static void put_op(const struct serve *s, struct json *j, const void *row,
		   const struct chosen *chosen)
{
	rows_put_chosen(s, j, op_fields, row, chosen, 0);
}

int serve_collectives(struct request *r, struct answer *a)
{
	const struct query *q = &r->query;
	struct oplog_filter filter = {
		.all_users = r->viewer.all,
		.uid = r->viewer.uid,
		.nranks = q->nranks,
		.rank = q->rank,
		.comm_name = *q->comm ? q->comm : NULL,
		.has_comm_id = q->comm_may_be_id,
		.comm_id = q->comm_id,
		.func = *q->func ? q->func : NULL,
		.npids = q->npids,
		.since_mono_ns = q->since_mono_ns,
	};
	struct listing *l = listing_new(r->serve, "collectives", sizeof(struct op), put_op,
					&r->chosen);

	memcpy(filter.pid, q->pid, sizeof(filter.pid));
	if (!l || copy_rows(r, l, &filter) < 0) {
		listing_free(l);
		return -ENOMEM;
	}
	listing_open(l, a);
	return 0;
}
