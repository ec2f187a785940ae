/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of each rank whose number is a multiple of a power of two: daemons that
 * know nothing of each other keep the same ones, also some time apart, and who reads them
 * can compare the ranks of all nodes in one operation.
 */
#include <errno.h>
#include <stdlib.h>

#include "ncclinspd/oplog.h"
#include "ncclinspd/ops.h"
#include "ncclinspd/ranks_compare.h"
#include "ncclinspd/serve_impl.h"
#include "util/cleanup.h"

#define SERIES	512	/* one rank's operations of one function on one communicator */
#define KEPT	64	/* of each, and half of that at least where there are so many */
#define ROWS	8192
#define PIECE	256	/* of the log, between two turns of who cannot wait */

struct series {
	uint64_t process_id;
	uint32_t comm_index;
	name_t func;
	uint64_t least_seq, most_seq;
	uint64_t stride;
};

struct samples {
	struct request *request;
	struct json *json;
	struct series series[SERIES];
	uint32_t nseries;
	uint32_t rows;
};

/* Ranks can be told apart by their time inside, if each needs all the others' data. */
static bool is_comparable(const struct op *op)
{
	const struct op_facts *facts = ops_facts(op->func);

	return facts && facts->joint && op->has_comm_id && op->nranks > 1 &&
	       op->seq != UNKNOWN_U64 && ranks_is_timed(op);
}

/* NULL: no room for another. */
static struct series *series_of(struct samples *s, const struct op *op)
{
	struct series *l;

	for (uint32_t i = 0; i < s->nseries; i++) {
		l = &s->series[i];
		if (l->process_id == op->process_id && l->comm_index == op->comm_index &&
		    l->func == op->func)
			return l;
	}
	if (s->nseries == SERIES)
		return NULL;
	l = &s->series[s->nseries++];
	*l = (struct series){ .process_id = op->process_id, .comm_index = op->comm_index,
			      .func = op->func, .least_seq = op->seq, .most_seq = op->seq };
	return l;
}

static void measure(struct samples *s, const struct op *op)
{
	struct series *l = series_of(s, op);

	if (!l)
		return;
	if (op->seq < l->least_seq)
		l->least_seq = op->seq;
	if (op->seq > l->most_seq)
		l->most_seq = op->seq;
}

static void put_comm_id(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_hex64(j, ((const struct op *)row)->comm_id);
}

static void put_inside(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_u64(j, op_inside_ns(row));
}

static const struct field sample_fields[] = {
#define F(name, kind) { #name, kind, offsetof(struct op, name), NULL }
	{ "comm_id", FIELD_PUT, 0, put_comm_id },
	F(comm_name, FIELD_NAME),
	F(nranks, FIELD_I32),
	F(rank, FIELD_I32),
	F(pid, FIELD_I32),
	F(func, FIELD_NAME),
	F(seq, FIELD_U64),
	F(bytes, FIELD_U64),
	{ "inside_ns", FIELD_PUT, 0, put_inside },
#undef F
	{ NULL, 0, 0, NULL },
};

static void put_sample(struct samples *s, const struct op *op)
{
	const struct series *l = series_of(s, op);

	if (!l || !l->stride || op->seq % l->stride || s->rows == ROWS)
		return;
	s->rows++;
	json_begin(s->json, '{');
	rows_put(s->request->serve, s->json, sample_fields, op);
	json_end(s->json, '}');
}

/* Piece by piece: what is added to the log meanwhile is not seen. */
static void walk(struct samples *s, void look(struct samples *s, const struct op *op))
{
	const struct request *r = s->request;
	const struct oplog_filter filter = { .all_users = r->viewer.all, .uid = r->viewer.uid,
					     .rank = UNKNOWN_I32, .nranks = UNKNOWN_I32 };
	struct oplog_visit visit;
	uint32_t budget;

	oplog_begin(&visit, r->serve->source.oplog, &filter);
	do {
		const struct op *op;

		budget = PIECE;
		while ((op = oplog_next(&visit, r->serve->source.oplog, &budget)))
			if (is_comparable(op))
				look(s, op);
		serve_meanwhile(r->serve);
	} while (!budget);
}

static void choose_strides(struct samples *s)
{
	for (uint32_t i = 0; i < s->nseries; i++) {
		struct series *l = &s->series[i];

		l->stride = 1;
		while ((l->most_seq - l->least_seq) / l->stride >= KEPT)
			l->stride *= 2;
	}
}

void serve_samples(struct request *r, struct json *j)
{
	CLEANUP(cleanup_freep) struct samples *s = calloc(1, sizeof(*s));

	if (!s) {
		json_fail(j, -ENOMEM);
		return;
	}
	s->request = r;
	s->json = j;
	walk(s, measure);
	choose_strides(s);
	json_key(j, "samples");
	json_begin(j, '[');
	walk(s, put_sample);
	json_end(j, ']');
}
