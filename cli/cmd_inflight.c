/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp inflight: what has begun and not ended, the oldest first. */
#include <inttypes.h>
#include <string.h>

#include "cli/common/listing.h"

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
const size_t inflight_column_count = sizeof(inflight_columns) / sizeof(inflight_columns[0]);

/*
 * What a state means for who waits; %s is the peer, "rank 5" or "the peer".  Short, since
 * on 80 columns there is room for 23, and the peer is what one looks for next.
 */
static const struct {
	const char *state;
	const char *words;
} meanings[] = {
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

static void add_words(char *text, size_t size, const char *state, const json_t *peer)
{
	char who[32] = "the peer";
	size_t used = strlen(text);

	if (json_is_integer(peer))
		snprintf(who, sizeof(who), "rank %" JSON_INTEGER_FORMAT, json_integer_value(peer));
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		if (strcmp(meanings[i].state, state))
			continue;
		snprintf(text + used, size - used, meanings[i].words, who);
		return;
	}
	snprintf(text + used, size - used, "%s", state);
}

/* A number at a path in *value; false when it is not known. */
static bool number(const json_t *row, const char *path, long long *value)
{
	const json_t *got = report_get(row, path);

	if (!json_is_integer(got))
		return false;
	*value = json_integer_value(got);
	return true;
}

/* How far: "step 2/8", "kernel on 3/8 channels, 1 ended"; "" is left of what is not known. */
static void add_counts(char *text, size_t size, const json_t *row)
{
	long long started, stopped, channels, step, steps;

	if (number(row, "kernel_started", &started) && started &&
	    number(row, "kernel_stopped", &stopped) && number(row, "channels", &channels))
		snprintf(text, size, "kernel on %lld/%lld channels, %lld ended", started,
			 channels, stopped);
	else if (number(row, "step", &step) && number(row, "steps", &steps))
		snprintf(text, size, "step %lld/%lld", step, steps);
}

/* "awaits data of rank 1, step 2/8"; null when nothing is known. */
static json_t *progress(const json_t *row)
{
	const char *process = json_string_value(report_get(row, "process_state"));
	const char *state = json_string_value(report_get(row, "state"));
	char counts[80] = "", text[200] = "";
	size_t used = 0;

	if (process && strcmp(process, "live"))
		used = (size_t)snprintf(text, sizeof(text), "process %.20s, ", process);
	add_counts(counts, sizeof(counts), row);
	if (state && !(*counts && !strcmp(state, "running")))
		add_words(text, sizeof(text), state, report_get(row, "peer"));
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
	json_object_set_new(row, "progress", progress(row));
}

int cmd_inflight(struct cli *cli)
{
	static const struct column oldest = { "age_ns", NULL, COL_AGE, "age_ns", 0, 0, 0 };
	static const struct listing listing = {
		.array = "inflight",
		.members = "pid,tid,process_state,comm_id,comm_name,rank,event_type,func,seq,"
			   "age_ns,state,phase,tag,direction,channel,peer,step,steps,channels,"
			   "kernel_started,kernel_stopped,token,parent",
		LISTING_COLUMNS(inflight_columns),
		.sort = &oldest,
		.nothing = "nothing is in flight",
		.dress = inflight_dress,
	};
	char target[64];

	snprintf(target, sizeof(target), "/v1/inflight?older_than_ns=%" PRIu64, cli->older_ns);
	return listing_run(cli, &listing, target);
}
