/* SPDX-License-Identifier: Apache-2.0 */
/* Members that an operation has together with others: a kernel, a group, the other ranks. */
#include "ncclinspd/compare/ranks_compare.h"
#include "ncclinspd/serve/serve_impl.h"

void serve_put_fused(const struct serve *s, struct json *j, const void *row)
{
	const struct op *op = row;

	(void)s;
	if (op_is_fused(op) && op->fused != OP_FUSED)
		json_put_u64(j, op->fused);
	else
		json_put_null(j);
}

static const struct field batch_fields[] = {
#define F(name, member, kind) { name, kind, offsetof(struct op, member), NULL }
	F("token", batch, FIELD_HEX),
	F("ops", fused, FIELD_U32),
	F("bytes", batch_bytes, FIELD_U64),
	F("exec_ns", batch_ns, FIELD_U64),
	F("busbw_gbs", batch_busbw_gbs, FIELD_RATE),
	{ NULL, 0, 0, NULL },
};

void serve_put_batch(const struct serve *s, struct json *j, const void *row)
{
	const struct op *op = row;

	if (!op_is_fused(op) || op->fused == OP_FUSED) {
		json_put_null(j);
		return;
	}
	json_begin(j, '{');
	rows_put(s, j, batch_fields, op);
	json_end(j, '}');
}

void serve_put_derived(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_bool(j, ((const struct op *)row)->parts);
}

void serve_put_shift(const struct serve *s, struct json *j, const void *row)
{
	const struct op *op = row;

	(void)s;
	if (op->shift)
		json_put_i64(j, op->shift);
	else
		json_put_null(j);
}

static void put_known(struct json *j, double value)
{
	if (value > 0)
		json_put_rounded(j, value);
	else
		json_put_null(j);
}

void serve_put_skew(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	put_known(j, ((const struct op *)row)->skew);
}

void serve_put_arrival(const struct serve *s, struct json *j, const void *row)
{
	const struct op *op = row;

	(void)s;
	if (!op->local_ranks) {
		json_put_null(j);
		return;
	}
	json_begin(j, '[');
	for (uint32_t i = 0; i < op->local_ranks && i < OP_RANKS; i++)
		json_put_i64(j, op->arrival[i]);
	json_end(j, ']');
}

void serve_put_arrival_source(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_string(j, ranks_arrival_text(((const struct op *)row)->arrival_source));
}

void serve_put_late(const struct serve *s, struct json *j, const void *row)
{
	const struct op *op = row;

	(void)s;
	if (op->local_ranks)
		json_put_u64(j, op->late_ns);
	else
		json_put_null(j);
}

void serve_put_waitfree(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	put_known(j, ((const struct op *)row)->busbw_waitfree_gbs);
}
