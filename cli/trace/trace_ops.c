/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the API as slices: the execution of each operation on a thread per
 * communicator, its posting on another one, transfers, what has not ended, findings.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/trace/trace.h"
#include "util/text.h"

#define POSTING_LANE UINT64_C(0xffff)	/* no lane has that number */

void trace_copy(struct json *j, const json_t *row, const char *const *keys)
{
	for (; *keys; keys++) {
		json_t *value = json_object_get(row, *keys);
		char *text;

		if (!value || json_is_null(value))
			continue;
		text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
		if (!text)
			continue;
		json_key(j, *keys);
		json_put_raw(j, text, strlen(text));
		free(text);
	}
}

static const struct trace_member *row_member(struct trace *t, const json_t *row)
{
	uint64_t pid = member_number(row, "pid", 0);

	return trace_who_learn(t->who, trace_who_source(t->who, (int64_t)pid, 0), row);
}

/* "AllReduce #300 4MiB". */
static void row_put_name(char *buf, size_t size, const json_t *row)
{
	uint64_t seq = member_number(row, "seq", UINT64_MAX);
	uint64_t bytes = member_number(row, "bytes", UINT64_MAX);
	char number[32] = "", much[TEXT_MAX] = "";

	if (seq != UINT64_MAX)
		snprintf(number, sizeof(number), " #%" PRIu64, seq);
	if (bytes != UINT64_MAX)
		text_bytes(much, sizeof(much), bytes);
	snprintf(buf, size, "%s%s%s%s",
		 *member_text(row, "func", "") ? member_text(row, "func", "") : "operation",
		 number, *much ? " " : "", much);
}

/* ---- operations ------------------------------------------------------------------ */

/* The time in which it ran, by the best source there is; false: not known. */
static bool row_when(struct trace *t, const json_t *row, const struct trace_member *m,
		     uint64_t *start_ns, uint64_t *stop_ns)
{
	static const char *const sources[][2] = {
		{ "gpu_start_mono_ns", "gpu_stop_mono_ns" },
		{ "proxy_start_mono_ns", "proxy_stop_mono_ns" },
	};

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		*start_ns = member_number(row, sources[i][0], 0);
		*stop_ns = member_number(row, sources[i][1], 0);
		if (*start_ns && *stop_ns >= *start_ns)
			return true;
	}
	return trace_heads_extent(t->heads, m->source, member_hex(row, "token"), start_ns,
				  stop_ns);
}

/* Draws the call, as what its parts belong to: from a file, where no records tell it. */
static void row_draw_posting(struct trace *t, const json_t *row, const struct trace_member *m)
{
	static const char *const keys[] = { "seq", "count", "datatype", "root", "peer", NULL };
	uint64_t start_ns = member_number(row, "enqueued_mono_ns", 0);
	uint64_t stop_ns = start_ns + member_number(row, "enqueue_ns", 0);
	struct trace_head head = { .start_ns = start_ns, .stop_ns = stop_ns, .seq = UINT64_MAX };
	char name[96];

	if (!start_ns)
		return;
	snprintf(name, sizeof(name), "post %s", member_text(row, "func", ""));
	head.at = trace_rows_place(t->rows, trace_rows_track(t->rows, m->pid, TRACE_LANE,
							     POSTING_LANE, "posting"),
				   start_ns, stop_ns);
	trace_copy(trace_slice(&t->w, head.at, name, "posting", start_ns, stop_ns), row, keys);
	trace_slice_end(&t->w);
	trace_heads_add(t->heads, m->source, member_hex(row, "token"), &head);
}

static uint32_t member_operations(struct trace *t, const struct trace_member *m)
{
	char name[64];

	snprintf(name, sizeof(name), "operations %s", m->comm);
	return trace_rows_track(t->rows, m->pid, TRACE_OPS, m->index, name);
}

/* Is it out of the time that is drawn? */
static bool trace_is_outside(const struct trace *t, uint64_t start_ns, uint64_t stop_ns)
{
	return stop_ns < t->from_ns || (t->until_ns && start_ns > t->until_ns);
}

void trace_operation(struct trace *t, const json_t *row)
{
	static const char *const keys[] = {
		"seq", "bytes", "count", "datatype", "root", "peer", "algo", "proto", "channels",
		"comm_id", "comm_name", "rank", "nranks", "exec_ns", "timing_source",
		"exec_error_ns", "queue_ns",
		"gpu_clock_error_ns", "busbw_gbs", "busbw_waitfree_gbs", "arrival_rank_order",
		"arrival_source", "late_ns", "fused", "derived", "parts", "skew", "complete",
		"graph", "stamps_refused", "stamps_why", "tag", "tag_name", "token", NULL,
	};
	const struct trace_member *m = row_member(t, row);
	uint64_t start_ns, stop_ns, token = member_hex(row, "token");
	struct trace_at at;
	char name[96];

	if (!m || trace_is_outside(t, member_number(row, "enqueued_mono_ns", 0),
				   member_number(row, "done_mono_ns", UINT64_MAX)))
		return;
	t->operations++;
	if (!t->live && !member_true(row, "derived"))
		row_draw_posting(t, row, m);
	if (!row_when(t, row, m, &start_ns, &stop_ns))
		return;
	row_put_name(name, sizeof(name), row);
	at = trace_rows_place(t->rows, member_operations(t, m), start_ns, stop_ns);
	trace_copy(trace_slice(&t->w, at, name, "operation", start_ns, stop_ns), row, keys);
	trace_slice_end(&t->w);
	if (!member_true(row, "derived"))
		trace_heads_child(t->heads, m->source, token, at, start_ns, stop_ns);
	trace_joints_add(t, row, at, start_ns, stop_ns);
}

/* ---- the network ----------------------------------------------------------------- */

/* "3", or "?". */
static const char *number_text(char buf[16], int32_t n)
{
	snprintf(buf, 16, n < 0 ? "?" : "%" PRId32, n);
	return buf;
}

uint32_t trace_link(struct trace *t, uint32_t pid, uint64_t comm, const char *label,
		    struct trace_link link)
{
	uint64_t key = (uint64_t)link.beside | (uint64_t)((uint32_t)link.peer & 0xffffff) << 1 |
		       (uint64_t)link.send << 25 |
		       (uint64_t)((uint32_t)link.channel & 0xffff) << 26 | comm << 42;
	char name[128], channel[16], peer[16];

	snprintf(name, sizeof(name), "net ch %s %s %s %s%s", number_text(channel, link.channel),
		 link.send ? "send to" : "recv from", number_text(peer, link.peer), label,
		 link.beside ? ", more steps" : "");
	return trace_rows_track(t->rows, pid, TRACE_NET, key, name);
}

uint32_t trace_channel(struct trace *t, uint32_t pid, uint64_t comm, const char *label,
		       uint32_t channel)
{
	char name[96];

	snprintf(name, sizeof(name), "GPU ch %" PRIu32 " %s", channel, label);
	return trace_rows_track(t->rows, pid, TRACE_GPU, comm << 16 | channel, name);
}

static uint32_t row_link(struct trace *t, const struct trace_member *m, const json_t *row)
{
	const struct trace_link link = {
		.channel = (int32_t)member_number(row, "channel", UINT64_MAX),
		.peer = (int32_t)member_number(row, "peer", UINT64_MAX),
		.send = member_is(row, "direction", "send"),
	};

	return trace_link(t, m->pid, m->index, m->comm, link);
}

void trace_transfer(struct trace *t, const json_t *row)
{
	static const char *const keys[] = {
		"channel", "peer", "direction", "bytes", "steps", "timed_steps", "time",
		"longest", "active_ns", "held_ns", "busy_ns", "repeats", "proxy_pid", NULL,
	};
	const struct trace_member *m = row_member(t, row);
	uint64_t start_ns = member_number(row, "start_mono_ns", 0);
	uint64_t stop_ns = member_number(row, "stop_mono_ns", 0);
	struct trace_at at;
	char name[96];

	if (!m || !start_ns || stop_ns < start_ns || trace_is_outside(t, start_ns, stop_ns))
		return;
	snprintf(name, sizeof(name), "ProxyOp %s", member_text(row, "direction", ""));
	at = trace_rows_place(t->rows, row_link(t, m, row), start_ns, stop_ns);
	trace_copy(trace_slice(&t->w, at, name, "ProxyOp", start_ns, stop_ns), row, keys);
	trace_slice_end(&t->w);
	trace_heads_child(t->heads, m->source, member_hex(row, "parent"), at, start_ns, stop_ns);
}

/* ---- what has not ended ---------------------------------------------------------- */

static uint32_t track_of_open(struct trace *t, const struct trace_member *m, const json_t *row)
{
	const char *type = member_text(row, "event_type", "");

	if (!strcmp(type, "ProxyOp") || !strcmp(type, "ProxyStep"))
		return row_link(t, m, row);
	if (strcmp(type, "KernelCh"))
		return member_operations(t, m);
	return trace_channel(t, m->pid, m->index, m->comm,
			     (uint32_t)member_number(row, "channel", 0));
}

void trace_inflight(struct trace *t, const json_t *row, uint64_t until_ns)
{
	static const char *const keys[] = {
		"state", "seq", "bytes", "channel", "peer", "direction", "step", "steps",
		"channels", "kernel_started", "kernel_stopped", "proxy_ops", "process_state", NULL,
	};
	const struct trace_member *m = row_member(t, row);
	uint64_t age_ns = member_number(row, "age_ns", UINT64_MAX);
	char name[160], what[96] = "";
	struct trace_at at;
	uint32_t track;
	struct json *j;

	if (!m || age_ns >= until_ns || trace_is_outside(t, until_ns - age_ns, until_ns))
		return;
	track = track_of_open(t, m, row);
	if (*member_text(row, "func", ""))
		row_put_name(what, sizeof(what), row);
	snprintf(name, sizeof(name), "%s%s%s (not ended)", member_text(row, "event_type", ""),
		 *what ? " " : "", what);
	at = trace_rows_place(t->rows, track, until_ns - age_ns, until_ns);
	j = trace_slice(&t->w, at, name, "inflight", until_ns - age_ns, until_ns);
	json_member_bool(j, "ended", false);
	trace_copy(j, row, keys);
	trace_slice_end(&t->w);
	if (member_is(row, "event_type", "ProxyOp"))
		trace_records_open_proxy(t, m->source, member_hex(row, "token"), at);
}

/* ---- what went wrong ------------------------------------------------------------- */

void trace_finding(struct trace *t, const json_t *row)
{
	static const char *const keys[] = { "grade", "severity", "verdict", "comm_id", "comm_name",
					    "ranks", "peer", "active", "text", NULL };
	const json_t *first = json_array_get(json_object_get(row, "ranks"), 0);
	const char *kind = member_text(row, "finding", member_text(row, "kind", ""));
	uint64_t since_ns = member_number(row, "since_mono_ns", 0);
	uint64_t until_ns = member_number(row, "until_mono_ns", UINT64_MAX);
	uint32_t pid = 0;
	char name[128];

	if (!since_ns || (t->from_ns && until_ns < t->from_ns))
		return;
	if (since_ns < t->from_ns)
		since_ns = t->from_ns;
	if (json_is_integer(first))
		pid = trace_who_of_rank(t->who, row, json_integer_value(first));
	snprintf(name, sizeof(name), "%s%s%s%s",
		 member_is(row, "grade", "suspected") ? "suspected: " : "", kind,
		 *member_text(row, "verdict", "") ? " " : "", member_text(row, "verdict", ""));
	trace_copy(trace_instant(&t->w, pid, name, "finding", since_ns), row, keys);
	trace_instant_end(&t->w);
}

void trace_loss(struct trace *t, uint32_t pid, uint64_t n, uint64_t from_ns, uint64_t to_ns,
		const char *why)
{
	struct json *j;
	struct trace_at at;
	char name[96];

	t->lost += n;
	snprintf(name, sizeof(name), "%" PRIu64 " lost", n);
	at = trace_rows_place(t->rows, trace_rows_track(t->rows, pid, TRACE_LOSSES, 0, "lost"),
			      from_ns, to_ns);
	j = trace_slice(&t->w, at, name, "lost", from_ns, to_ns);
	json_member_u64(j, "n", n);
	json_member_string(j, "why", why);
	trace_slice_end(&t->w);
}
