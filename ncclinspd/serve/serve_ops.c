/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/collectives: finished operations, one by one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/compare/ranks_compare.h"
#include "ncclinspd/serve/serve_parts.h"
#include "ncclinspd/sums/oplog.h"
#include "reader/time/stamps.h"
#include "reader/time/timeline.h"

static void put_arrival(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct op *op = row;

	if (!op->local_ranks) {
		json_put_null(j);
		return;
	}
	json_begin(j, '[');
	for (uint32_t i = 0; i < op->local_ranks && i < OP_RANKS; i++)
		json_put_i64(j, op->arrival[i]);
	json_end(j, ']');
}

#include "schema/op.h"

const struct field_table op_tables[] = { { NULL, op_fields }, { NULL, NULL } };

/*
 * Ten thousand rows take longer to copy than a busy lane takes to fill: they are
 * copied piece by piece, of the log as it is when it is asked.
 */
#define PIECE	256	/* operations looked at in one go */

/* Returns how many were copied, or -ENOMEM; *more: there may be some left. */
static int ops_copy_piece(struct sent_listing *l, const struct oplog *log,
			  struct oplog_visit *visit, uint32_t most, bool *more)
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

static int ops_copy_rows(struct request *r, struct sent_listing *l,
			 const struct oplog_filter *filter)
{
	const struct oplog *log = r->serve->source.oplog;
	uint32_t left = r->query.limit ? r->query.limit : SERVE_ROWS_DEFAULT;
	struct oplog_visit visit;
	bool more = true;

	oplog_begin(&visit, log, filter);
	while (more) {
		int n = ops_copy_piece(l, log, &visit, left, &more);

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

static void op_put(const struct serve *s, struct json *j, const void *row,
		   const struct chosen *chosen)
{
	rows_put_chosen(&s->writer, j, op_fields, row, chosen, 0);
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
	struct sent_listing *l = listing_new(r->serve, "collectives", sizeof(struct op), op_put,
					     &r->chosen);

	memcpy(filter.pid, q->pid, sizeof(filter.pid));
	return listing_answer(l, l ? ops_copy_rows(r, l, &filter) : 0, a);
}
