/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One operation translated into a record of NVIDIA's Inspector, and the cases in which it has
 * none.
 */
#include "cli/export/inspector.h"

#include <string.h>

#include "cli/base/member.h"
#include "cli/base/must.h"

#define FORMAT_VERSION "v4.2"

/* The value; one that is not known is null, here too. */
static json_t *op_copy(const json_t *op, const char *key)
{
	json_t *value = json_object_get(op, key);

	return value ? json_incref(value) : json_null();
}

static bool op_is_p2p(const json_t *op)
{
	const char *func = member_text(op, "func", "");

	return !strcmp(func, "Send") || !strcmp(func, "Recv");
}

/* The three that the format has; NULL: it is no duration. */
static const char *op_source(const json_t *op)
{
	const char *source = member_text(op, "timing_source", "");

	if (!strcmp(source, "proxy_cpu"))
		return "collective_cpu";
	return strcmp(source, "kernel_gpu") && strcmp(source, "kernel_cpu") ? NULL : source;
}

/* The share one rank gives, or gets, of these two; the bandwidths are of the whole all the same. */
static json_t *op_message_bytes(const json_t *op)
{
	const json_t *whole = json_object_get(op, "bytes");
	json_int_t bytes = json_integer_value(whole);
	json_int_t nranks = json_integer_value(json_object_get(op, "nranks"));
	const char *func = member_text(op, "func", "");
	bool parts = !strcmp(func, "AllGather") || !strcmp(func, "ReduceScatter");

	if (!json_is_integer(whole))
		return json_null();
	return json_integer(parts && nranks > 0 ? bytes / nranks : bytes);
}

static json_t *op_header(const json_t *op, const struct inspector_context *context)
{
	json_t *nnodes = context->nnodes ? json_integer(context->nnodes) : json_null();

	return must(json_pack("{s:o, s:s, s:o, s:o, s:o}", "id", op_copy(op, "comm_id"),
			      "comm_name", member_text(op, "comm_name", "unknown"),
			      "rank", op_copy(op, "rank"), "n_ranks", op_copy(op, "nranks"),
			      "nnodes", nnodes));
}

static json_t *op_metadata(const json_t *op, const struct inspector_context *context)
{
	json_int_t done_ns = json_integer_value(json_object_get(op, "done_mono_ns"));

	return must(json_pack("{s:s, s:s, s:s, s:I, s:s, s:o}",
			      "inspector_output_format_version", FORMAT_VERSION,
			      "git_rev", "ncclinsp " NCCLINSP_VERSION,
			      "rec_mechanism", "nccl_profiler_interface",
			      "dump_timestamp_us", (done_ns + context->real_offset_ns) / 1000,
			      "hostname", context->host, "pid", op_copy(op, "pid")));
}

static json_int_t op_exec_us(const json_t *op)
{
	return (json_integer_value(json_object_get(op, "exec_ns")) + 500) / 1000;
}

static json_t *op_collective(const json_t *op)
{
	return must(json_pack("{s:o, s:s, s:s, s:o, s:o, s:I, s:s, s:o, s:o}",
			      "coll", op_copy(op, "func"),
			      "coll_algo", member_text(op, "algo", "unknown"),
			      "coll_proto", member_text(op, "proto", "unknown"),
			      "coll_sn", op_copy(op, "seq"),
			      "coll_msg_size_bytes", op_message_bytes(op),
			      "coll_exec_time_us", op_exec_us(op),
			      "coll_timing_source", op_source(op),
			      "coll_algobw_gbs", op_copy(op, "algbw_gbs"),
			      "coll_busbw_gbs", op_copy(op, "busbw_gbs")));
}

static json_t *op_p2p(const json_t *op, json_int_t number)
{
	return must(json_pack("{s:o, s:I, s:o, s:o, s:I, s:s, s:o, s:o}",
			      "p2p", op_copy(op, "func"),
			      "p2p_sn", number,
			      "p2p_peer", op_copy(op, "peer"),
			      "p2p_msg_size_bytes", op_message_bytes(op),
			      "p2p_exec_time_us", op_exec_us(op),
			      "p2p_timing_source", op_source(op),
			      "p2p_algobw_gbs", op_copy(op, "algbw_gbs"),
			      "p2p_busbw_gbs", op_copy(op, "busbw_gbs")));
}

enum inspector_outcome inspector_record(const json_t *op, const struct inspector_context *context,
					json_t **record)
{
	bool p2p = op_is_p2p(op);

	if (member_true(op, "derived"))
		return INSPECTOR_DERIVED;
	if (!json_is_integer(json_object_get(op, "exec_ns")) || !op_source(op))
		return INSPECTOR_UNTIMED;
	*record = must(json_pack("{s:o, s:o, s:o}", "header", op_header(op, context),
				 "metadata", op_metadata(op, context),
				 p2p ? "p2p_perf" : "coll_perf",
				 p2p ? op_p2p(op, context->number) : op_collective(op)));
	return INSPECTOR_WRITTEN;
}
