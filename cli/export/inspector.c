/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One operation translated into a record of NVIDIA's Inspector, and the cases in which it has
 * none.
 */
#include "cli/export/inspector.h"

#include <string.h>

#include "cli/base/must.h"

#define FORMAT_VERSION "v4.2"

static const char *text_of(const json_t *op, const char *key, const char *otherwise)
{
	return json_string_value(json_object_get(op, key)) ?: otherwise;
}

/* The value; one that is not known is null, here too. */
static json_t *copy_of(const json_t *op, const char *key)
{
	json_t *value = json_object_get(op, key);

	return value ? json_incref(value) : json_null();
}

static bool is_p2p(const json_t *op)
{
	const char *func = text_of(op, "func", "");

	return !strcmp(func, "Send") || !strcmp(func, "Recv");
}

/* The three that the format has; NULL: it is no duration. */
static const char *source_of(const json_t *op)
{
	const char *source = text_of(op, "timing_source", "");

	if (!strcmp(source, "proxy_cpu"))
		return "collective_cpu";
	return strcmp(source, "kernel_gpu") && strcmp(source, "kernel_cpu") ? NULL : source;
}

/* The share one rank gives, or gets, of these two; the bandwidths are of the whole all the same. */
static json_t *message_bytes(const json_t *op)
{
	const json_t *whole = json_object_get(op, "bytes");
	json_int_t bytes = json_integer_value(whole);
	json_int_t nranks = json_integer_value(json_object_get(op, "nranks"));
	const char *func = text_of(op, "func", "");
	bool parts = !strcmp(func, "AllGather") || !strcmp(func, "ReduceScatter");

	if (!json_is_integer(whole))
		return json_null();
	return json_integer(parts && nranks > 0 ? bytes / nranks : bytes);
}

static json_t *header_of(const json_t *op, const struct inspector_context *context)
{
	json_t *nnodes = context->nnodes ? json_integer(context->nnodes) : json_null();

	return must(json_pack("{s:o, s:s, s:o, s:o, s:o}", "id", copy_of(op, "comm_id"),
			      "comm_name", text_of(op, "comm_name", "unknown"),
			      "rank", copy_of(op, "rank"), "n_ranks", copy_of(op, "nranks"),
			      "nnodes", nnodes));
}

static json_t *metadata_of(const json_t *op, const struct inspector_context *context)
{
	json_int_t done_ns = json_integer_value(json_object_get(op, "done_mono_ns"));

	return must(json_pack("{s:s, s:s, s:s, s:I, s:s, s:o}",
			      "inspector_output_format_version", FORMAT_VERSION,
			      "git_rev", "ncclinsp " NCCLINSP_VERSION,
			      "rec_mechanism", "nccl_profiler_interface",
			      "dump_timestamp_us", (done_ns + context->real_offset_ns) / 1000,
			      "hostname", context->host, "pid", copy_of(op, "pid")));
}

static json_int_t exec_us(const json_t *op)
{
	return (json_integer_value(json_object_get(op, "exec_ns")) + 500) / 1000;
}

static json_t *collective_of(const json_t *op)
{
	return must(json_pack("{s:o, s:s, s:s, s:o, s:o, s:I, s:s, s:o, s:o}",
			      "coll", copy_of(op, "func"),
			      "coll_algo", text_of(op, "algo", "unknown"),
			      "coll_proto", text_of(op, "proto", "unknown"),
			      "coll_sn", copy_of(op, "seq"),
			      "coll_msg_size_bytes", message_bytes(op),
			      "coll_exec_time_us", exec_us(op),
			      "coll_timing_source", source_of(op),
			      "coll_algobw_gbs", copy_of(op, "algbw_gbs"),
			      "coll_busbw_gbs", copy_of(op, "busbw_gbs")));
}

static json_t *p2p_of(const json_t *op, json_int_t number)
{
	return must(json_pack("{s:o, s:I, s:o, s:o, s:I, s:s, s:o, s:o}",
			      "p2p", copy_of(op, "func"),
			      "p2p_sn", number,
			      "p2p_peer", copy_of(op, "peer"),
			      "p2p_msg_size_bytes", message_bytes(op),
			      "p2p_exec_time_us", exec_us(op),
			      "p2p_timing_source", source_of(op),
			      "p2p_algobw_gbs", copy_of(op, "algbw_gbs"),
			      "p2p_busbw_gbs", copy_of(op, "busbw_gbs")));
}

enum inspector_outcome inspector_record(const json_t *op, const struct inspector_context *context,
					json_t **record)
{
	bool p2p = is_p2p(op);

	if (json_is_true(json_object_get(op, "derived")))
		return INSPECTOR_DERIVED;
	if (!json_is_integer(json_object_get(op, "exec_ns")) || !source_of(op))
		return INSPECTOR_UNTIMED;
	*record = must(json_pack("{s:o, s:o, s:o}", "header", header_of(op, context),
				 "metadata", metadata_of(op, context),
				 p2p ? "p2p_perf" : "coll_perf",
				 p2p ? p2p_of(op, context->number) : collective_of(op)));
	return INSPECTOR_WRITTEN;
}
