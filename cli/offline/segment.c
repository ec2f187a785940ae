/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library reads the segment, and the structs that its stages hand on become the API's
 * answers by the daemon's tables.  A process that is gone is read to its end at once, one that
 * runs for a moment, in which what was finished shows.
 */
#include "cli/offline/segment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/base/intake.h"
#include "cli/base/must.h"
#include "ncclinspd/sums/aggregate.h"
#include "reader/base/job.h"
#include "reader/base/process.h"
#include "reader/inspect.h"
#include "reader/time/stamps.h"
#include "reader/time/timeline.h"
#include "rows/local_ranks.h"
#include "util/cleanup.h"
#include "util/list.h"

#include "schema/segment.h"

#define MOMENT_NS   UINT64_C(300000000)	/* longer than an operation waits to be settled */
#define TEXT_MOST   (256u << 20)

struct segment_source {
	struct ncclinsp *reader;
	const char *path;
	struct aggregate *aggregate;
	segment_source_event *on_event;	/* or NULL */
	void *event_arg;
	LIST(struct op) ops;	/* operations for the stream; begins anew when all were told */
	uint32_t told;		/* number of them told so far */
	struct json json;
	struct rows_writer writer;
	uint64_t began_ns;
	bool read;
	int error;
};

/* ---- reading --------------------------------------------------------------------- */

/* An operation counts as of the process's begin: sums of all time do not depend on when. */
static void segment_take_op(const struct op *op, uint64_t now_ns, void *arg)
{
	struct segment_source *s = arg;

	*(struct op *)must(list_append(&s->ops)) = *op;
	aggregate_add(s->aggregate, op, s->began_ns);
}

static void pass_event(const struct process *p, const struct event *event, void *arg)
{
	struct segment_source *s = arg;

	if (s->on_event)
		s->on_event(p, event, s->event_arg);
}

/* The moment of its end, or now. */
static uint64_t segment_until_ns(const struct segment_source *s)
{
	uint64_t ended_ns = inspect_process(s->reader)->ended_ns;

	return ended_ns ? ended_ns : cli_now_ns();
}

static int poll_once(struct segment_source *s)
{
	int r = ncclinsp_poll(s->reader);
	struct timespec wait;

	if (r < 0) {
		fprintf(stderr, "ncclinsp: %s: %s\n", s->path, ncclinsp_reason(r));
		s->error = r;
	} else if (r > 0) {
		wait = (struct timespec){ .tv_nsec = (long)ncclinsp_wait_ns(s->reader) };
		nanosleep(&wait, NULL);
	}
	return r;
}

static void read_moment(struct segment_source *s)
{
	uint64_t until_ns = cli_now_ns() + MOMENT_NS;

	if (s->read)
		return;
	s->read = true;
	while (poll_once(s) > 0 && cli_now_ns() < until_ns)
		;
}

/* ---- answers --------------------------------------------------------------------- */

/* Nobody has seen it before: it is first seen where it begins. */
static void segment_put_process(struct segment_source *s, struct json *j)
{
	struct process p = *inspect_process(s->reader);

	p.first_seen_ns = p.first_mono_ns;
	rows_put(&s->writer, j, process_fields, &p);
}

static void segment_put_processes(struct segment_source *s, struct json *j, const char *target)
{
	json_begin_member(j, "processes", '[');
	json_begin(j, '{');
	segment_put_process(s, j);
	json_end(j, '}');
	json_end(j, ']');
	json_member_u64(j, "abi_major", NCI_ABI_MAJOR);
	json_begin_member(j, "foreign", '[');
	json_end(j, ']');
}

static void segment_put_comms(struct segment_source *s, struct json *j, const char *target)
{
	CLEANUP(local_ranks_deinit) struct local_ranks ranks = { 0 };

	if (local_ranks_add(&ranks, inspect_process(s->reader)) < 0)
		must(NULL);
	json_member_u64(j, "comms_left_out", 0);
	json_begin_member(j, "comms", '[');
	local_ranks_put(&s->writer, j, &ranks, comm_fields, local_rank_fields,
			&(struct chosen){ .some = false });
	json_end(j, ']');
}

static void segment_put_inflight(struct segment_source *s, struct json *j, const char *target)
{
	CLEANUP(inflights_deinit) struct inflights rows = { 0 };
	const char *older = strstr(target, "older_than_ns=");
	uint64_t older_ns = older ? strtoull(strchr(older, '=') + 1, NULL, 10) : 0;
	size_t n = 0;

	s->error = inspect_inflight(s->reader, &rows);
	json_begin_member(j, "inflight", '[');
	for (; n < rows.n && inflight_age_ns(&rows.at[n]) >= older_ns; n++)
		rows_put_object(&s->writer, j, inflight_fields, &rows.at[n]);
	json_end(j, ']');
	json_member_u64(j, "inflight_total", n);
}

/* ---- sums */

/* The words of ?by=, as bits. */
static uint32_t segment_query_keys(const char *target)
{
	const char *at = strstr(target, "by=");
	uint32_t by = 0;

	for (at += at ? 3 : 0; at && *at && *at != '&'; at += *at == ',') {
		size_t n = strcspn(at, ",&");

		for (size_t i = 0; aggregate_keys[i]; i++)
			if (strlen(aggregate_keys[i]) == n && !strncmp(aggregate_keys[i], at, n))
				by |= 1u << i;
		at += n;
	}
	return by;
}

static bool segment_put_sum(const struct aggregate_row *row, void *arg)
{
	struct segment_source *s = arg;

	json_begin(&s->json, '{');
	rows_put_keyed(&s->writer, &s->json, summary_tables, row->by, row,
		       &(struct chosen){ .some = false });
	json_end(&s->json, '}');
	return true;
}

static void segment_put_summary(struct segment_source *s, struct json *j, const char *target)
{
	const struct aggregate_query query = {
		.windows = 1u << AGGREGATE_ALL, .by = segment_query_keys(target), .all_users = true,
	};
	const struct process *p = inspect_process(s->reader);
	uint64_t until_ns = segment_until_ns(s);
	int r;

	json_begin_member(j, "rows", '[');
	aggregate_account(s->aggregate, p->id, p->records, process_lost(p), until_ns);
	r = aggregate_query(s->aggregate, &query, until_ns, segment_put_sum, s);
	if (r < 0)
		s->error = r;
	json_end(j, ']');
}

static const struct {
	const char *path;
	void (*put)(struct segment_source *s, struct json *j, const char *target);
} answers[] = {
	{ "/v1/processes", segment_put_processes },
	{ "/v1/comms", segment_put_comms },
	{ "/v1/inflight", segment_put_inflight },
	{ "/v1/summary", segment_put_summary },
};

json_t *segment_source_answer(void *arg, const char *target)
{
	struct segment_source *s = arg;
	size_t n = strcspn(target, "?"), i = 0;
	struct json *j = &s->json;

	while (i < ARRAY_LEN(answers) &&
	       (strncmp(target, answers[i].path, n) || answers[i].path[n]))
		i++;
	if (i == ARRAY_LEN(answers))
		return NULL;
	read_moment(s);
	if (s->error)
		return NULL;
	json_clear(j);
	json_begin(j, '{');
	answers[i].put(s, j, target);
	json_end(j, '}');
	return s->error || json_error(j) ? NULL : intake_read(j->text, j->bytes, NULL);
}

/* ---- the stream ------------------------------------------------------------------ */

static struct json *begin_line(struct segment_source *s, const char *kind)
{
	json_clear(&s->json);
	json_begin(&s->json, '{');
	json_member_string(&s->json, "kind", kind);
	return &s->json;
}

/* Returns what on_line() said, or a negative errno. */
static int end_line(struct json *j, int (*on_line)(void *arg, const char *text, size_t len),
		    void *line_arg)
{
	size_t bytes;
	char *text;
	int r;

	json_end(j, '}');
	json_newline(j);
	if (json_error(j))
		return json_error(j);
	text = json_steal(j, &bytes);
	text[bytes - 1] = '\0';
	r = on_line(line_arg, text, bytes - 1);
	free(text);
	return r;
}

int segment_source_stream(void *arg, int (*on_line)(void *arg, const char *text, size_t len),
			  bool (*goes_on)(void *arg), void *line_arg)
{
	struct segment_source *s = arg;
	int more, r = 0;

	do {
		more = poll_once(s);
		if (more < 0)
			return more;
		for (; !r && s->told < s->ops.n; s->told++) {
			struct json *j = begin_line(s, "collective");

			rows_put(&s->writer, j, op_fields, &s->ops.at[s->told]);
			r = end_line(j, on_line, line_arg);
		}
		if (s->told == s->ops.n)
			s->told = s->ops.n = 0;
	} while (!r && more && (!goes_on || goes_on(line_arg)));
	if (r || more)
		return r ? r : 1;
	segment_put_process(s, begin_line(s, "process"));
	r = end_line(&s->json, on_line, line_arg);
	return r ? r : 1;
}

/* ---- life ------------------------------------------------------------------------ */

struct segment_source *segment_source_open(const char *path, enum cli_exit *code)
{
	struct segment_source *s = must(calloc(1, sizeof(*s)));
	const struct inspect_hooks hooks = { .op = segment_take_op, .event = pass_event, .arg = s };
	int r = ncclinsp_open(&s->reader, path);

	if (r < 0) {
		fprintf(stderr, "ncclinsp: --segment: %s: %s\n", path, ncclinsp_reason(r));
		*code = r == -EACCES ? CLI_NO_RIGHT : CLI_FAILED;
		free(s);
		return NULL;
	}
	s->path = path;
	s->writer.real_offset_ns = (uint64_t)cli_real_offset_ns();
	json_init(&s->json, TEXT_MOST);
	s->began_ns = inspect_process(s->reader)->first_mono_ns;
	if (aggregate_new(&s->aggregate, NULL, s->began_ns))
		must(NULL);
	inspect_hook(s->reader, &hooks);
	return s;
}

void segment_source_on_event(struct segment_source *s, segment_source_event *fn, void *arg)
{
	s->on_event = fn;
	s->event_arg = arg;
}

uint64_t segment_source_lost(struct segment_source *s, uint64_t *until_ns)
{
	const struct process *p = inspect_process(s->reader);

	*until_ns = segment_until_ns(s);
	return p->loss.before + process_lost(p);
}

void segment_source_free(struct segment_source *s)
{
	if (!s)
		return;
	aggregate_free(s->aggregate);
	json_deinit(&s->json);
	list_deinit(&s->ops);
	ncclinsp_close(s->reader);
	free(s);
}
