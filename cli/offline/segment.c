/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library reads the segment; what it tells becomes the API's answers.  A process that is
 * gone is read to its end at once, one that runs for a moment, in which what was finished
 * shows.
 */
#include "cli/offline/segment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/base/intake.h"
#include "cli/base/must.h"
#include "cli/offline/segment_rows.h"
#include "reader/inspect.h"
#include "util/list.h"

#define MOMENT_NS   UINT64_C(300000000)	/* longer than an operation waits to be settled */
#define TEXT_MOST   (256u << 20)

struct segment_source {
	struct ncclinsp *reader;
	const char *path;
	struct aggregate *aggregate;
	segment_source_event *on_event;	/* or NULL */
	void *event_arg;
	LIST(struct ncclinsp_operation) ops;
	uint32_t told;		/* number of operations told in the stream */
	struct json json;
	uint64_t real_ns;	/* CLOCK_REALTIME less CLOCK_MONOTONIC */
	uint64_t began_ns;
	bool read;
	int error;
};

/* ---- reading --------------------------------------------------------------------- */

static void keep_operation(const struct ncclinsp_operation *op, void *arg)
{
	struct segment_source *s = arg;

	*(struct ncclinsp_operation *)must(list_append(&s->ops)) = *op;
}

/* Takes each as of the process's begin: sums of all time do not depend on when. */
static void sum_operation(const struct op *op, uint64_t now_ns, void *arg)
{
	struct segment_source *s = arg;

	(void)now_ns;
	aggregate_add(s->aggregate, op, s->began_ns);
}

static void pass_event(const struct process *p, const struct event *event, void *arg)
{
	struct segment_source *s = arg;

	if (s->on_event)
		s->on_event(p, event, s->event_arg);
}

/* Records that nobody will ever see, as the API counts them. */
static uint64_t lost_of(const struct ncclinsp_loss *loss)
{
	return loss->overrun + loss->pool + loss->lane;
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

static void put_processes(struct segment_source *s, struct json *j, const char *target)
{
	(void)target;
	json_begin(j, '{');
	segment_rows_process(j, ncclinsp_process(s->reader), ncclinsp_loss(s->reader),
			     inspect_process(s->reader), s->real_ns);
	json_end(j, '}');
}

/* ---- communicators */

/* Communicators without an id stand alone. */
static bool is_same_comm(const struct ncclinsp_comm *a, const struct ncclinsp_comm *b)
{
	return a->index == b->index ||
	       (a->has_id && b->has_id && a->id == b->id && a->nranks == b->nranks &&
		!strcmp(a->name ?: "", b->name ?: ""));
}

/* The ranks of that communicator in this process, from its number on. */
static void put_ranks(struct segment_source *s, struct json *j, struct ncclinsp_comm of, bool *seen)
{
	const struct ncclinsp_process *p = ncclinsp_process(s->reader);

	for (uint32_t i = of.index; i < p->comms; i++) {
		const struct ncclinsp_comm *comm = seen[i] ? NULL : ncclinsp_comm(s->reader, i);

		if (!comm || !is_same_comm(comm, &of))
			continue;
		seen[i] = true;
		json_begin(j, '{');
		segment_rows_local_rank(j, comm, p, s->real_ns);
		json_end(j, '}');
	}
}

static void put_comms(struct segment_source *s, struct json *j, const char *target)
{
	uint32_t n = ncclinsp_process(s->reader)->comms;
	bool *seen = must(calloc(n + 1, sizeof(*seen)));

	(void)target;
	for (uint32_t i = 0; i < n; i++) {
		const struct ncclinsp_comm *comm = seen[i] ? NULL : ncclinsp_comm(s->reader, i);

		if (!comm)
			continue;
		json_begin(j, '{');
		segment_rows_comm(j, comm);
		json_key(j, "local_ranks");
		json_begin(j, '[');
		put_ranks(s, j, *comm, seen);
		json_end(j, ']');
		json_end(j, '}');
	}
	free(seen);
}

/* ---- what is in flight */

struct inflight_rows {
	struct segment_source *s;
	const struct ncclinsp_process *process;
	uint64_t older_ns;
};

static void put_inflight_row(const struct ncclinsp_inflight *row, void *arg)
{
	const struct inflight_rows *rows = arg;
	struct json *j = &rows->s->json;

	if ((row->age_ns == NCCLINSP_UNKNOWN ? 0 : row->age_ns) < rows->older_ns)
		return;
	json_begin(j, '{');
	segment_rows_inflight(j, row, rows->process);
	json_end(j, '}');
}

static void put_inflight(struct segment_source *s, struct json *j, const char *target)
{
	const char *older = strstr(target, "older_than_ns=");
	struct inflight_rows rows = { .s = s, .process = ncclinsp_process(s->reader) };
	int r;

	(void)j;
	if (older)
		rows.older_ns = strtoull(strchr(older, '=') + 1, NULL, 10);
	r = ncclinsp_inflight(s->reader, put_inflight_row, &rows);
	if (r < 0)
		s->error = r;
}

/* ---- sums */

/* The words of ?by=, as bits. */
static uint32_t keys_of(const char *target)
{
	static const struct {
		const char *text;
		uint32_t bit;
	} keys[] = {
#define X(bit, NAME, text) { text, AGGREGATE_BY_##NAME },
		AGGREGATE_KEYS(X)
#undef X
	};
	const char *at = strstr(target, "by=");
	uint32_t by = 0;

	for (at += at ? 3 : 0; at && *at && *at != '&'; at += *at == ',') {
		size_t n = strcspn(at, ",&");

		for (size_t i = 0; i < ARRAY_LEN(keys); i++)
			if (strlen(keys[i].text) == n && !strncmp(keys[i].text, at, n))
				by |= keys[i].bit;
		at += n;
	}
	return by;
}

static bool put_sum(const struct aggregate_row *row, void *arg)
{
	struct segment_source *s = arg;

	json_begin(&s->json, '{');
	segment_rows_summary(&s->json, row);
	json_end(&s->json, '}');
	return true;
}

static void put_summary(struct segment_source *s, struct json *j, const char *target)
{
	const struct aggregate_query query = {
		.windows = 1u << AGGREGATE_ALL, .by = keys_of(target), .all_users = true,
	};
	const struct ncclinsp_process *p = ncclinsp_process(s->reader);
	const struct ncclinsp_loss *loss = ncclinsp_loss(s->reader);
	uint64_t until_ns = p->ended_ns ? p->ended_ns : cli_now_ns();
	int r;

	(void)j;
	aggregate_account(s->aggregate, inspect_process(s->reader)->id, p->records,
			  lost_of(loss), until_ns);
	r = aggregate_query(s->aggregate, &query, until_ns, put_sum, s);
	if (r < 0)
		s->error = r;
}

static const struct {
	const char *path, *array;
	void (*put)(struct segment_source *s, struct json *j, const char *target);
} answers[] = {
	{ "/v1/processes", "processes", put_processes },
	{ "/v1/comms", "comms", put_comms },
	{ "/v1/inflight", "inflight", put_inflight },
	{ "/v1/summary", "rows", put_summary },
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
	json_key(j, answers[i].array);
	json_begin(j, '[');
	answers[i].put(s, j, target);
	json_end(j, ']');
	if (answers[i].put == put_processes) {
		json_key(j, "abi_major");
		json_put_u64(j, NCI_ABI_MAJOR);
		json_key(j, "foreign");
		json_begin(j, '[');
		json_end(j, ']');
	}
	json_end(j, '}');
	return s->error || json_error(j) ? NULL : intake_read(j->text, j->bytes, NULL);
}

/* ---- the stream ------------------------------------------------------------------ */

static struct json *begin_line(struct segment_source *s, const char *kind)
{
	json_clear(&s->json);
	json_begin(&s->json, '{');
	json_key(&s->json, "kind");
	json_put_string(&s->json, kind);
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
	const struct ncclinsp_process *p;
	int more, r = 0;

	do {
		more = poll_once(s);
		if (more < 0)
			return more;
		for (; !r && s->told < s->ops.n; s->told++) {
			struct json *j = begin_line(s, "collective");

			segment_rows_operation(j, &s->ops.at[s->told], s->real_ns);
			r = end_line(j, on_line, line_arg);
		}
	} while (!r && more && (!goes_on || goes_on(line_arg)));
	if (r || more)
		return r ? r : 1;
	p = ncclinsp_process(s->reader);
	begin_line(s, "process");
	segment_rows_process(&s->json, p, ncclinsp_loss(s->reader),
			     inspect_process(s->reader), s->real_ns);
	r = end_line(&s->json, on_line, line_arg);
	return r ? r : 1;
}

/* ---- life ------------------------------------------------------------------------ */

struct segment_source *segment_source_open(const char *path, enum cli_exit *code)
{
	struct segment_source *s = must(calloc(1, sizeof(*s)));
	const struct inspect_hooks hooks = { .op = sum_operation, .event = pass_event, .arg = s };
	int r = ncclinsp_open(&s->reader, path);

	if (r < 0) {
		fprintf(stderr, "ncclinsp: --segment: %s: %s\n", path, ncclinsp_reason(r));
		*code = r == -EACCES ? CLI_NO_RIGHT : CLI_FAILED;
		free(s);
		return NULL;
	}
	s->path = path;
	s->real_ns = (uint64_t)cli_real_offset_ns();
	json_init(&s->json, TEXT_MOST);
	s->began_ns = ncclinsp_process(s->reader)->began_ns;
	if (aggregate_new(&s->aggregate, NULL, s->began_ns))
		must(NULL);
	ncclinsp_on_operation(s->reader, keep_operation, s);
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
	const struct ncclinsp_loss *loss = ncclinsp_loss(s->reader);
	uint64_t ended_ns = ncclinsp_process(s->reader)->ended_ns;

	*until_ns = ended_ns ? ended_ns : cli_now_ns();
	return loss->before + lost_of(loss);
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
