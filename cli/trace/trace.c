/* SPDX-License-Identifier: Apache-2.0 */
/* The start and end of a trace, and the dispatch of each line of a stream to what draws it. */
#include "cli/trace/trace.h"

#include <string.h>

#include "cli/base/member.h"

void trace_init(struct trace *t, struct trace_out *out, bool live)
{
	*t = (struct trace){ .live = live };
	trace_begin(&t->w, out);
	t->rows = trace_rows_new();
	t->who = trace_who_new();
	t->heads = trace_heads_new(&t->w);
	t->joints = trace_joints_new();
	t->records = trace_records_new();
}

static void trace_take_loss(struct trace *t, const json_t *line)
{
	uint64_t n = member_number(line, "n", 0);

	/* Records are counted where they are missing; this is of all that a line can be. */
	trace_loss(t, 0, n, t->w.last_ns, t->w.last_ns, "lines that this client was too slow for");
	t->lost -= n;
}

static void trace_describe(struct trace *t, const json_t *line)
{
	int64_t pid = (int64_t)member_number(line, "pid", 0);
	uint64_t instance = member_hex(line, "instance");

	trace_who_describe(t->who, trace_who_source(t->who, pid, instance), line);
}

void trace_take_line(struct trace *t, const json_t *line)
{
	const char *kind = member_text(line, "kind", NULL);

	if (!kind)
		t->malformed++;
	else if (!strcmp(kind, "source"))
		trace_records_source(t, line);
	else if (!strcmp(kind, "records"))
		trace_records_batch(t, line);
	else if (!strcmp(kind, "collective"))
		trace_operation(t, line);
	else if (!strcmp(kind, "finding"))
		trace_finding(t, line);
	else if (!strcmp(kind, "process"))
		trace_describe(t, line);
	else if (!strcmp(kind, "lost"))
		trace_take_loss(t, line);
}

/* Facts that a reader of the file should know. */
static void trace_put_other(const struct trace *t, struct json *j, const char *what)
{
	json_begin(j, '{');
	json_member_string(j, "made_by", "ncclinsp " NCCLINSP_VERSION);
	json_member_string(j, "made_from", what);
	json_member_string(j, "clock", "CLOCK_MONOTONIC");
	json_member_u64(j, "zero_mono_ns", t->w.zero_ns);
	json_member_u64(j, "slices", t->w.counts.slices);
	json_member_u64(j, "overlapping_slices", t->w.counts.overlapping);
	json_member_u64(j, "arrows", t->w.counts.arrows);
	json_member_u64(j, "records", t->nrecords);
	json_member_u64(j, "lost_records", t->lost);
	json_member_u64(j, "operations", t->operations);
	json_member_u64(j, "malformed_lines", t->malformed);
	json_end(j, '}');
}

void trace_finish(struct trace *t, const char *what)
{
	struct json j;

	trace_records_flush(t);
	trace_who_tell(t->who, &t->w);
	trace_rows_tell(t->rows, &t->w);
	json_init(&j, 1 << 16);
	trace_put_other(t, &j, what);
	trace_end(&t->w, j.text, j.bytes);
	json_deinit(&j);
	trace_records_free(t->records);
	trace_joints_free(t->joints);
	trace_heads_free(t->heads);
	trace_who_free(t->who);
	trace_rows_free(t->rows);
}
