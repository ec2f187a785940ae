/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of each rank whose number is a multiple of a power of two: daemons that
 * know nothing of each other keep the same ones, also some time apart, and who reads them
 * can compare the ranks of all nodes in one operation.
 */
#include <errno.h>
#include <stdlib.h>

#include "ncclinspd/compare/ranks_compare.h"
#include "ncclinspd/serve/serve_impl.h"
#include "util/cleanup.h"
#include "util/list.h"

#define SERIES	512	/* one rank's operations of one function on one communicator */
#define KEPT	64	/* most of each series; at least half of it where there are so many */
#define ROWS	8192

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
	l = array_add(s->series, &s->nseries);
	if (!l)
		return NULL;
	*l = (struct series){ .process_id = op->process_id, .comm_index = op->comm_index,
			      .func = op->func, .least_seq = op->seq, .most_seq = op->seq };
	return l;
}

static bool measure(const struct op *op, void *arg)
{
	struct series *l = ranks_are_told_apart_by(op) ? series_of(arg, op) : NULL;

	if (!l)
		return true;
	if (op->seq < l->least_seq)
		l->least_seq = op->seq;
	if (op->seq > l->most_seq)
		l->most_seq = op->seq;
	return true;
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

static bool put_sample(const struct op *op, void *arg)
{
	struct samples *s = arg;
	const struct series *l = ranks_are_told_apart_by(op) ? series_of(s, op) : NULL;

	if (!l || !l->stride || op->seq % l->stride)
		return true;
	if (s->rows == ROWS)
		return false;
	s->rows++;
	json_begin(s->json, '{');
	rows_put(s->request->serve, s->json, sample_fields, op);
	json_end(s->json, '}');
	return true;
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
	serve_visit_ops(r, measure, s);
	choose_strides(s);
	json_key(j, "samples");
	json_begin(j, '[');
	serve_visit_ops(r, put_sample, s);
	json_end(j, ']');
}
