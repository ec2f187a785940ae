/* SPDX-License-Identifier: Apache-2.0 */
/* The columns that a command, the live view and export have in common. */
#include "cli/view/columns.h"

#include <stdio.h>
#include <string.h>

#include "util/list.h"

const struct column ops_columns[] = {
	{ "comm_id", NULL, COL_TEXT, "comm_id", 0, 0, 0 },
	{ "comm_name", NULL, COL_TEXT, "comm_name", 0, 0, 0 },
	{ NULL, "COMM", COL_TEXT, "comm_label|comm_name|comm_id", 0, 20, 0 },
	{ "rank", "RANK", COL_INTEGER, "rank", 0, 0, REPORT_IF_KNOWN | REPORT_KEY },
	{ NULL, "PHASE", COL_TEXT, "phase", 0, 16, 3 | REPORT_IF_KNOWN | REPORT_APART },
	{ NULL, "TAG", COL_TEXT, "tag", 0, 18, 3 | REPORT_IF_KNOWN | REPORT_APART },
	{ "func", NULL, COL_TEXT, "func", 0, 0, 0 },
	{ NULL, "OP", COL_OP, "func", 9, 20, 0 },
	{ "size_class", "SIZE", COL_BYTES, "size_class", 6, 0, REPORT_KEY },
	{ "algo", NULL, COL_TEXT, "algo", 0, 0, 0 },
	{ "proto", NULL, COL_TEXT, "proto", 0, 0, 0 },
	{ NULL, "ALGO/PROTO", COL_TEXT, "algo/proto", 0, 20, 5 | REPORT_APART },
	{ "ops", "N", COL_INTEGER, "ops", 6, 0, 0 },
	{ "fused", "FUSED", COL_INTEGER, "fused", 0, 0, REPORT_IF_UNUSUAL },
	{ "derived", NULL, COL_INTEGER, "derived", 0, 0, 0 },
	{ "bytes", NULL, COL_INTEGER, "bytes", 0, 0, 0 },
	{ "mean_ns", NULL, COL_MICROS, "exec.mean_ns", 0, 0, 0 },
	{ "p50_ns", NULL, COL_MICROS, "exec.p50_ns", 0, 0, 0 },
	{ "p90_ns", NULL, COL_MICROS, "exec.p90_ns", 0, 0, 0 },
	{ "p95_ns", NULL, COL_MICROS, "exec.p95_ns", 0, 0, 0 },
	{ "p99_ns", NULL, COL_MICROS, "exec.p99_ns", 0, 0, 0 },
	{ "max_ns", NULL, COL_MICROS, "exec.max_ns", 0, 0, 0 },
	{ "batches", NULL, COL_INTEGER, "batch.n", 0, 0, 0 },
	{ "batch_mean_ns", NULL, COL_MICROS, "batch.mean_ns", 0, 0, 0 },
	{ "batch_p50_ns", NULL, COL_MICROS, "batch.p50_ns", 0, 0, 0 },
	{ "batch_p99_ns", NULL, COL_MICROS, "batch.p99_ns", 0, 0, 0 },
	{ NULL, "P50(us)", COL_MICROS, "exec.p50_ns|batch.p50_ns", 8, 0, 0 },
	{ NULL, "P95(us)", COL_MICROS, "exec.p95_ns|batch.p95_ns", 8, 0, 9 },
	{ NULL, "P99(us)", COL_MICROS, "exec.p99_ns|batch.p99_ns", 8, 0, 2 },
	{ NULL, "MAX(us)", COL_MICROS, "exec.max_ns|batch.max_ns", 8, 0, 7 },
	{ "algbw_gbs", NULL, COL_NUMBER, "algbw_gbs", 0, 0, 0 },
	{ "busbw_gbs", "BUSBW(GB/s)", COL_NUMBER, "busbw_gbs.mean", 0, 0, 0 },
	{ "busbw_waitfree_gbs", "WAITFREE(GB/s)", COL_NUMBER, "busbw_waitfree_gbs", 0, 0,
	  REPORT_IF_KNOWN | 8 },
	{ "wait_fraction", "WAIT(%)", COL_PERCENT, "wait_fraction", 0, 0, REPORT_IF_KNOWN | 5 },
	{ "share", "SHARE(%)", COL_PERCENT, "share", 0, 0, 6 },
	{ "sampled_fraction", "TIMED(%)", COL_PERCENT, "sampled_fraction", 0, 0,
	  5 | REPORT_IF_UNUSUAL },
	{ "lost_fraction", "LOST(%)", COL_LOSS, "lost_fraction", 0, 0, REPORT_IF_UNUSUAL },
	{ "timing_source", "SRC", COL_TEXT, "timing_source", 10, 0, 4 | REPORT_APART },
	{ "nranks", NULL, COL_INTEGER, "nranks", 0, 0, REPORT_KEY },
	{ "phase", NULL, COL_TEXT, "phase", 0, 0, 0 },
	{ "tag", NULL, COL_TEXT, "tag", 0, 0, 0 },
	{ "host", "HOST", COL_TEXT, "host", 0, 24, REPORT_IF_KNOWN },
};
const size_t ops_column_count = ARRAY_LEN(ops_columns);

const struct column inflight_columns[] = {
	{ NULL, "AGE", COL_STALL, "age_ns", 6, 0, 0 },
	{ "age_ns", NULL, COL_AGE, "age_ns", 0, 0, 0 },
	{ "pid", "PID", COL_INTEGER, "pid", 7, 0, 4 | REPORT_KEY },
	{ "tid", NULL, COL_INTEGER, "tid", 0, 0, REPORT_KEY },
	{ "comm_id", NULL, COL_TEXT, "comm_id", 0, 0, 0 },
	{ NULL, "COMM", COL_TEXT, "comm_label|comm_name|comm_id", 0, 20, 0 },
	{ "rank", "RANK", COL_INTEGER, "rank", 0, 0, REPORT_KEY },
	{ "event_type", "EVENT", COL_TEXT, "event_type", 9, 0, 0 },
	{ "func", "OP", COL_TEXT, "func", 9, 20, 0 },
	{ "seq", "SEQ", COL_INTEGER, "seq", 0, 0, REPORT_KEY },
	{ "channel", "CH", COL_INTEGER, "channel", 0, 0, 3 | REPORT_KEY | REPORT_APART },
	{ "peer", "PEER", COL_INTEGER, "peer", 0, 0, 3 | REPORT_KEY },
	{ "step", NULL, COL_INTEGER, "step", 0, 0, REPORT_KEY },
	{ "steps", NULL, COL_INTEGER, "steps", 0, 0, REPORT_KEY },
	{ "state", NULL, COL_TEXT, "state", 0, 0, 0 },
	{ NULL, "PHASE", COL_TEXT, "phase", 0, 16, 2 | REPORT_IF_KNOWN },
	{ NULL, "TAG", COL_TEXT, "tag", 0, 18, 2 | REPORT_IF_KNOWN },
	{ "direction", NULL, COL_TEXT, "direction", 0, 0, 0 },
	{ "process_state", NULL, COL_TEXT, "process_state", 0, 0, 0 },
	{ "parent", NULL, COL_TEXT, "parent", 0, 0, 0 },
	{ NULL, "STATE", COL_TEXT, "progress", 0, 72, 0 },
	{ "token", NULL, COL_TEXT, "token", 0, 0, 0 },
	{ "phase", NULL, COL_TEXT, "phase", 0, 0, 0 },
	{ "tag", NULL, COL_TEXT, "tag", 0, 0, 0 },
	{ "host", "HOST", COL_TEXT, "host", 0, 24, REPORT_IF_KNOWN },
};
const size_t inflight_column_count = ARRAY_LEN(inflight_columns);

const struct column peers_columns[] = {
	{ "window_ns", NULL, COL_INTEGER, "window_ns", 0, 0, 0 },
	{ "comm_id", NULL, COL_TEXT, "comm_id", 0, 0, 0 },
	{ "comm_name", NULL, COL_TEXT, "comm_name", 0, 0, 0 },
	{ NULL, "COMM", COL_TEXT, "comm_label|comm_name|comm_id", 0, 20, 0 },
	{ "rank", "RANK", COL_INTEGER, "rank", 0, 0, REPORT_KEY },
	{ "pid", NULL, COL_INTEGER, "pid", 0, 0, REPORT_KEY },
	{ "proxy_pid", NULL, COL_INTEGER, "proxy_pid", 0, 0, REPORT_KEY },
	{ "direction", "DIR", COL_TEXT, "direction", 4, 0, 0 },
	{ "peer", "PEER", COL_INTEGER, "peer", 0, 0, REPORT_KEY },
	{ "channel", "CH", COL_INTEGER, "channel", 0, 0, REPORT_KEY },
	{ "ops", NULL, COL_INTEGER, "ops", 0, 0, 0 },
	{ "steps", "STEPS", COL_INTEGER, "steps", 6, 0, 5 },
	{ "bytes", "BYTES", COL_BYTES, "bytes", 6, 0, 4 },
	{ "rate_gbs", "RATE(GB/s)", COL_NUMBER, "rate_gbs", 0, 0, 0 },
	{ "trend", "TREND", COL_NUMBER, "trend", 0, 0, 4 | REPORT_IF_KNOWN },
	{ "latency_ns", "LAT(us)", COL_MICROS, "fit.latency_ns", 0, 0, 3 },
	{ "fit_rate_gbs", "FIT(GB/s)", COL_NUMBER, "fit.rate_gbs", 0, 0, 6 },
	{ "mean_gpu_wait_ns", "GPU(us)", COL_MICROS, "mean.gpu_wait_ns", 0, 0, 2 },
	{ "mean_peer_wait_ns", "PEER(us)", COL_MICROS, "mean.peer_wait_ns", 0, 0, 2 },
	{ "mean_net_ns", "NET(us)", COL_MICROS, "mean.net_ns", 0, 0, 2 },
	{ "mean_data_wait_ns", "DATA(us)", COL_MICROS, "mean.data_wait_ns", 0, 0, 2 },
	{ "mean_flush_ns", NULL, COL_MICROS, "mean.flush_ns", 0, 0, 0 },
	{ "excess_ns", "EXCESS", COL_AGE, "excess_ns", 6, 0, 1 },
	{ "bound", "BOUND", COL_TEXT, "bound", 5, 0, 0 },
	{ "host", "HOST", COL_TEXT, "host", 0, 24, REPORT_IF_KNOWN },
};
const size_t peers_column_count = ARRAY_LEN(peers_columns);

const struct column run_columns[] = {
	{ NULL, "POSTED", COL_TIME, "enqueued_at", 12, 12, 0 },
	{ "enqueued_at", NULL, COL_TIME, "enqueued_at", 0, 0, 0 },
	{ "pid", "PID", COL_INTEGER, "pid", 7, 0, 4 | REPORT_KEY },
	{ "comm_id", NULL, COL_TEXT, "comm_id", 0, 0, 0 },
	{ "comm_name", NULL, COL_TEXT, "comm_name", 0, 0, 0 },
	{ NULL, "COMM", COL_TEXT, "comm_label|comm_id", 16, 20, 0 },
	{ "rank", "RANK", COL_INTEGER, "rank", 0, 0, REPORT_KEY },
	{ "func", NULL, COL_TEXT, "func", 0, 0, 0 },
	{ NULL, "OP", COL_OP, "func", 14, 14, 0 },
	{ "derived", NULL, COL_TEXT, "derived", 0, 0, 0 },
	{ "parts", NULL, COL_INTEGER, "parts", 0, 0, 0 },
	{ "seq", "SEQ", COL_INTEGER, "seq", 6, 0, 1 },
	{ "peer", NULL, COL_INTEGER, "peer", 0, 0, REPORT_KEY },
	{ "bytes", "SIZE", COL_BYTES, "bytes", 7, 0, 0 },
	{ "algo", NULL, COL_TEXT, "algo", 0, 0, 0 },
	{ "proto", NULL, COL_TEXT, "proto", 0, 0, 0 },
	{ NULL, "ALGO/PROTO", COL_TEXT, "algo/proto", 12, 16, 3 },
	{ "enqueue_ns", NULL, COL_MICROS, "enqueue_ns", 0, 0, 0 },
	{ "exec_ns", NULL, COL_MICROS, "exec_ns", 0, 0, 0 },
	{ "exec_error_ns", NULL, COL_MICROS, "exec_error_ns", 0, 0, 0 },
	{ NULL, "TIME(us)", COL_MICROS, "batch.exec_ns|exec_ns", 9, 0, 0 },
	{ "busbw_gbs", NULL, COL_NUMBER, "busbw_gbs", 0, 0, 0 },
	{ NULL, "BUSBW(GB/s)", COL_NUMBER, "batch.busbw_gbs|busbw_gbs", 0, 0, 1 },
	{ "fused", "FUSED", COL_INTEGER, "fused", 0, 0, 5 },
	{ "late_ns", NULL, COL_MICROS, "late_ns", 0, 0, 0 },
	{ "sampled", NULL, COL_TEXT, "sampled", 0, 0, 0 },
	{ "stamps_refused", NULL, COL_INTEGER, "stamps_refused", 0, 0, 0 },
	{ "complete", NULL, COL_TEXT, "complete", 0, 0, 0 },
	{ "timing_source", "SRC", COL_TEXT, "timing_source", 11, 11, 2 },
	{ "phase", NULL, COL_TEXT, "phase", 0, 0, 0 },
	{ "tag", NULL, COL_TEXT, "tag", 0, 0, 0 },
};
const size_t run_column_count = ARRAY_LEN(run_columns);

/* ---- beyond what the daemon answers ------------------------------------------------ */

/*
 * The meaning of a state for the waiting rank; %s is the peer, "rank 5" or "the peer".  Short,
 * since on 80 columns there is room for 23, and the peer is what one looks for next.
 */
static const struct {
	const char *state;
	const char *words;
} progress_meanings[] = {
	{ "SendGPUWait", "awaits own GPU's data for %s" },
	{ "SendPeerWait", "awaits room at %s" },
	{ "SendWait", "on the wire to %s" },
	{ "RecvWait", "awaits data of %s" },
	{ "RecvFlushWait", "flushing data of %s to the GPU" },
	{ "RecvGPUWait", "awaits own GPU to take data of %s" },
	{ "SendPosted", "awaits own GPU's data for %s" },
	{ "SendRemFifoWait", "awaits room at %s" },
	{ "SendTransmitted", "on the wire to %s" },
	{ "RecvPosted", "awaits data of %s" },
	{ "RecvReceived", "flushing data of %s to the GPU" },
	{ "RecvTransmitted", "awaits own GPU to take data of %s" },
	{ "InProgress", "at work with %s" },
	{ "KernelChStop", "kernel ended" },
	{ "posted", "posted; nothing tells how far it is" },
	{ "not_started", "posted, not on the GPU yet" },
	{ "finishing", "finishing" },
};

static void progress_add_words(char *text, size_t size, const char *state, const json_t *peer)
{
	char who[32] = "the peer";
	size_t used = strlen(text);

	if (json_is_integer(peer))
		snprintf(who, sizeof(who), "rank %" JSON_INTEGER_FORMAT, json_integer_value(peer));
	for (size_t i = 0; i < ARRAY_LEN(progress_meanings); i++) {
		if (strcmp(progress_meanings[i].state, state))
			continue;
		snprintf(text + used, size - used, progress_meanings[i].words, who);
		return;
	}
	snprintf(text + used, size - used, "%s", state);
}

/* A number at a path in *value; false when it is not known. */
static bool progress_number(const json_t *row, const char *path, long long *value)
{
	const json_t *got = report_get(row, path);

	if (!json_is_integer(got))
		return false;
	*value = json_integer_value(got);
	return true;
}

/* Adds how far it is: "step 2/8", "kernel on 3/8 channels, 1 ended"; "" if that is not known. */
static void progress_add_counts(char *text, size_t size, const json_t *row)
{
	long long started, stopped, channels, step, steps;

	if (progress_number(row, "kernel_started", &started) && started &&
	    progress_number(row, "kernel_stopped", &stopped) &&
	    progress_number(row, "channels", &channels))
		snprintf(text, size, "kernel on %lld/%lld channels, %lld ended", started,
			 channels, stopped);
	else if (progress_number(row, "step", &step) && progress_number(row, "steps", &steps))
		snprintf(text, size, "step %lld/%lld", step, steps);
}

/* "awaits data of rank 1, step 2/8"; null when nothing is known. */
static json_t *progress_text(const json_t *row)
{
	const char *process = json_string_value(report_get(row, "process_state"));
	const char *state = json_string_value(report_get(row, "state"));
	char counts[80] = "", text[200] = "";
	size_t used = 0;

	if (process && strcmp(process, "live"))
		used = (size_t)snprintf(text, sizeof(text), "process %.20s, ", process);
	progress_add_counts(counts, sizeof(counts), row);
	if (state && !(*counts && !strcmp(state, "running")))
		progress_add_words(text, sizeof(text), state, report_get(row, "peer"));
	else if (!state && !strcmp(json_string_value(report_get(row, "event_type")) ?: "",
				   "KernelCh"))
		snprintf(text + used, sizeof(text) - used, "on the GPU");
	if (*counts) {
		const char *comma = strlen(text) > used ? ", " : "";

		used = strlen(text);
		snprintf(text + used, sizeof(text) - used, "%s%s", comma, counts);
	}
	used = strlen(text);
	if (used > 2 && !strcmp(text + used - 2, ", "))
		text[used - 2] = '\0';
	return *text ? json_string(text) : json_null();
}

void inflight_dress(json_t *row)
{
	json_object_set_new(row, "progress", progress_text(row));
}

void peers_dress(json_t *row)
{
	json_int_t steps = json_integer_value(json_object_get(row, "timed_steps"));
	json_t *mean = json_object(), *sum;
	const char *key;

	json_object_foreach(json_object_get(row, "time"), key, sum)
		if (json_is_integer(sum) && steps)
			json_object_set_new(mean, key,
					    json_integer(json_integer_value(sum) / steps));
	json_object_set_new(row, "mean", mean);
}
