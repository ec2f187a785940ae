/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations as spans: one for each rank, in one trace for all ranks of the operation on all
 * nodes.  There is no span above them, since no node knows that it is the one to send it.
 */
#include "ncclinspd/otlp/otlp_body.h"

static void span_put(struct json *j, const json_t *op)
{
	static const char *const but[] = { "started_at", "stopped_at", NULL };
	uint64_t started_ns = otlp_time(op, "started_at"), stopped_ns = otlp_time(op, "stopped_at");

	json_begin(j, '{');
	otlp_put_ids(j, json_object_get(op, "comm_id"), op);
	json_member_string(j, "name",
			   json_string_value(json_object_get(op, "func")) ?: "unknown");
	json_member_u64(j, "kind", 1);		/* internal */
	otlp_put_u64(j, "startTimeUnixNano", started_ns);
	otlp_put_u64(j, "endTimeUnixNano", stopped_ns);
	otlp_put_row(j, op, but);
	json_end(j, '}');
}

uint32_t otlp_write_spans(struct json *j, struct otlp_text *t, const struct otlp_self *self)
{
	json_t *ops = json_loadb(t->text, t->bytes, 0, NULL), *op;
	uint32_t n = (uint32_t)json_array_size(ops);
	size_t i;

	json_array_foreach(ops, i, op)
		span_put(j, op);
	json_decref(ops);
	t->at = t->bytes;
	return n;
}
