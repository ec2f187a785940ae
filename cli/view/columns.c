/* SPDX-License-Identifier: Apache-2.0 */
/* The columns that a command, the live view and export have in common. */
#include "cli/view/columns.h"

#include <stdio.h>
#include <string.h>

#include "cli/base/member.h"
#include "util/list.h"

const struct column ops_columns[] = {
#include "schema/ops_columns.h"
};
const size_t ops_column_count = ARRAY_LEN(ops_columns);

const struct column inflight_columns[] = {
#include "schema/inflight_columns.h"
};
const size_t inflight_column_count = ARRAY_LEN(inflight_columns);

const struct column peers_columns[] = {
#include "schema/peers_columns.h"
};
const size_t peers_column_count = ARRAY_LEN(peers_columns);

const struct column run_columns[] = {
#include "schema/run_columns.h"
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
	{ "posted", "posted; progress unknown" },
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
static json_t *progress_show(const json_t *row)
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
	return json_text(text);
}

void inflight_dress(json_t *row)
{
	json_object_set_new(row, "progress", progress_show(row));
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
