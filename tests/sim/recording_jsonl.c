/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON lines.  Handles are addresses out of a pool: an event is an address at a
 * time.  Three passes: read the lines; make contexts, events and calls of them; find
 * parents and the events of states by (address, time).
 */
#include "tests/sim/recording.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/field.h"
#include "tests/sim/recording_descr.h"

#define MAX_LINE	65536

/* A line as it was recorded. */
struct jsonl_line {
	json_t *json;
	int number;
};

/* Where an event lives in the recorder's memory and time. */
struct jsonl_place {
	uint64_t address;
	double start, stop;
};

struct jsonl_reader {
	struct recording *rec;
	struct jsonl_line *line;
	int nlines, room;
	struct jsonl_place *place;	/* by event */
	int64_t tid[256];		/* by thread */
	double first_ts;
	char *err;
	unsigned int err_size;
	const char *path;
};

/* ---- reading ---- */

static int jsonl_complain(struct jsonl_reader *r, int line, const char *why)
{
	snprintf(r->err, r->err_size, "%s:%d: %s", r->path, line, why);
	return -EINVAL;
}

/* commId has 64 bits and no sign, which a JSON integer has not: make it a string. */
static void quote_comm_id(char *text)
{
	static const char key[] = "\"commId\":";
	char *at = strstr(text, key);
	size_t digits;

	if (!at)
		return;
	at += sizeof(key) - 1;
	digits = strspn(at, "0123456789");
	if (!digits)
		return;
	memmove(at + digits + 2, at + digits, strlen(at + digits) + 1);
	memmove(at + 1, at, digits);
	at[0] = '"';
	at[digits + 1] = '"';
}

static int jsonl_read_line(struct jsonl_reader *r, char *text, int number)
{
	json_error_t error;
	json_t *json;

	quote_comm_id(text);
	json = json_loads(text, 0, &error);
	if (!json)
		return jsonl_complain(r, number, error.text);
	if (r->nlines == r->room) {
		int room = r->room * 2 + 256;
		struct jsonl_line *p = realloc(r->line, room * sizeof(*p));

		if (!p) {
			json_decref(json);
			return -ENOMEM;
		}
		r->line = p;
		r->room = room;
	}
	r->line[r->nlines++] = (struct jsonl_line){ json, number };
	return 0;
}

static int jsonl_read_lines(struct jsonl_reader *r, FILE *f)
{
	char *text = malloc(MAX_LINE + 2);
	int e = text ? 0 : -ENOMEM, number = 0;

	while (!e && fgets(text, MAX_LINE, f)) {
		number++;
		if (text[strspn(text, " \t\r\n")])
			e = jsonl_read_line(r, text, number);
	}
	free(text);
	return e;
}

/* ---- making calls ---- */

static int jsonl_thread(struct jsonl_reader *r, int64_t tid)
{
	struct recording *rec = r->rec;

	for (int i = 0; i < rec->nthreads; i++)
		if (r->tid[i] == tid)
			return i;
	if (rec->nthreads == (int)(sizeof(r->tid) / sizeof(r->tid[0])))
		return 0;
	r->tid[rec->nthreads] = tid;
	return rec->nthreads++;
}

/* In µs with a fraction; 0 for what is no time of a machine's. */
static double jsonl_ts(const json_t *when)
{
	double ts = field_number(when, "ts");

	return ts > 0 && ts < 1e15 ? ts : 0;
}

/* Keep ns since the first. */
static struct recording_call *jsonl_add_call(struct jsonl_reader *r, enum recording_verb verb,
					     const json_t *when)
{
	struct recording_call *call = &r->rec->call[r->rec->ncalls++];
	double ts = jsonl_ts(when);

	*call = (struct recording_call){ .verb = verb, .event = -1, .context = -1,
					 .thread = jsonl_thread(r, field_int(when, "tid")) };
	call->at_ns = (int64_t)((ts - r->first_ts) * 1000);
	return call;
}

static int find_context(const struct recording *rec, uint64_t comm_id, int rank)
{
	for (int i = 0; i < rec->ncontexts; i++)
		if (rec->context[i].comm_id == comm_id && rec->context[i].rank == rank)
			return i;
	return -1;
}

static uint64_t comm_id_of(const json_t *json)
{
	const char *s = json_string_value(json_object_get(json, "commId"));

	return s ? strtoull(s, NULL, 10) : 0;
}

static int jsonl_add_lifecycle(struct jsonl_reader *r, const json_t *json)
{
	struct recording *rec = r->rec;
	const char *func = json_string_value(json_object_get(json, "func"));
	bool init = func && !strcmp(func, "ProfilerInit");
	int rank = (int)field_int(json, "rank"), c = rec->ncontexts;

	if (!init)
		c = find_context(rec, comm_id_of(json), rank);
	if (init)
		rec->context[rec->ncontexts++] = (struct recording_context){
			.comm_id = comm_id_of(json), .rank = rank, .nnodes = 1,
			.nranks = (int)field_int(field_details(json), "nranks"),
			.name = recording_name(rec->names, field_details(json), "commName") };
	if (c >= 0)
		jsonl_add_call(r, init ? RECORDING_INIT : RECORDING_FINALIZE,
			       json_object_get(json, "start"))->context = c;
	return 0;
}

static int jsonl_add_event(struct jsonl_reader *r, const struct jsonl_line *line)
{
	struct recording *rec = r->rec;
	const json_t *start = json_object_get(line->json, "start");
	const json_t *stop = json_object_get(line->json, "stop");
	struct recording_event *event = &rec->event[rec->nevents];
	int rank = (int)field_int(line->json, "rank");

	if (!recording_descr(rec->names, line->json, &event->descr))
		return 0;
	event->context = find_context(rec, comm_id_of(line->json), rank);
	if (event->context < 0)
		return jsonl_complain(r, line->number, "an event of a context that had no init");
	event->descr.rank = rank;
	r->place[rec->nevents] = (struct jsonl_place){
		.address = field_address(line->json, "eventAddr"),
		.start = jsonl_ts(start), .stop = jsonl_ts(stop) };
	jsonl_add_call(r, RECORDING_START, start)->event = rec->nevents;
	jsonl_add_call(r, RECORDING_STOP, stop)->event = rec->nevents;
	rec->nevents++;
	return 0;
}

/* The event at this address that began last before `ts`. */
static int event_at(const struct jsonl_reader *r, uint64_t address, double ts)
{
	int found = -1;

	for (int i = 0; address && i < r->rec->nevents; i++)
		if (r->place[i].address == address && r->place[i].start <= ts &&
		    (found < 0 || r->place[i].start > r->place[found].start))
			found = i;
	return found;
}

static int jsonl_add_state(struct jsonl_reader *r, const struct jsonl_line *line)
{
	int state = recording_state(json_string_value(json_object_get(line->json, "name")));
	struct recording_call *call;
	int event;

	event = event_at(r, field_address(line->json, "eventAddr"), jsonl_ts(line->json));
	if (state < 0 || event < 0)
		return jsonl_complain(r, line->number, "a state of no known name or event");
	call = jsonl_add_call(r, RECORDING_STATE, line->json);
	call->event = event;
	call->state = state;
	call->has_args = state < NCCL_GROUP_API_START_STOP;
	if (state == NCCL_KERNEL_CH_STOP)
		call->args.kernelCh.pTimer = field_int(line->json, "pTimer");
	else if (state >= NCCL_CTRL_IDLE && state <= NCCL_CTRL_APPEND_END)
		call->args.proxyCtrl.appendedProxyOps =
			(int)field_int(line->json, "appendedProxyOps");
	else
		call->args.proxyStep.transSize = field_int(line->json, "transSize");
	return 0;
}

static void jsonl_find_first_ts(struct jsonl_reader *r)
{
	for (int i = 0; i < r->nlines; i++) {
		double ts = jsonl_ts(json_object_get(r->line[i].json, "start"));

		if (ts > 0 && (r->first_ts == 0 || ts < r->first_ts))
			r->first_ts = ts;
	}
}

/* Contexts first, then events, then what refers to events. */
static int jsonl_make_calls(struct jsonl_reader *r)
{
	int e = 0;

	jsonl_find_first_ts(r);
	for (int i = 0; i < r->nlines && !e; i++)
		if (field_is(r->line[i].json, "type", "ProfilerLifecycle"))
			e = jsonl_add_lifecycle(r, r->line[i].json);
	for (int i = 0; i < r->nlines && !e; i++)
		if (field_is(r->line[i].json, "recordType", "event"))
			e = jsonl_add_event(r, &r->line[i]);
	for (int i = 0, k = 0; i < r->nlines && !e; i++) {
		const json_t *json = r->line[i].json;

		if (field_is(json, "recordType", "state"))
			e = jsonl_add_state(r, &r->line[i]);
		if (!field_is(json, "recordType", "event") || k == r->rec->nevents ||
		    r->place[k].address != field_address(json, "eventAddr"))
			continue;
		r->rec->event[k].parent = event_at(r, field_address(json, "parentObj"),
						   r->place[k].start);
		r->rec->event[k].group = event_at(
			r, field_address(field_details(json), "parentGroup"),
			r->place[k].start);
		k++;
	}
	return e;
}

/* By time; at one time in the order of a life. */
static int lines_by_time(const void *a, const void *b)
{
	const struct recording_call *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	if (x->verb != y->verb)
		return x->verb < y->verb ? -1 : 1;
	return x->event - y->event;
}

static int jsonl_make_room(struct jsonl_reader *r)
{
	struct recording *rec = recording_new();

	r->rec = rec;
	if (!rec)
		return -ENOMEM;
	rec->api = 5;
	rec->context = calloc(r->nlines + 1, sizeof(*rec->context));
	rec->event = calloc(r->nlines + 1, sizeof(*rec->event));
	rec->call = calloc(2 * r->nlines + 1, sizeof(*rec->call));
	r->place = calloc(r->nlines + 1, sizeof(*r->place));
	return rec->context && rec->event && rec->call && r->place ? 0 : -ENOMEM;
}

int recording_jsonl(struct recording **recp, FILE *f, const char *path, char *err,
		    unsigned int err_size)
{
	struct jsonl_reader r = { .path = path, .err = err, .err_size = err_size };
	int e;

	snprintf(err, err_size, "%s: out of memory", path);
	e = jsonl_read_lines(&r, f);
	if (!e)
		e = jsonl_make_room(&r);
	if (!e)
		e = jsonl_make_calls(&r);
	if (!e && !r.rec->ncontexts)
		e = jsonl_complain(&r, 1, "no context is ever initialised");
	for (int i = 0; i < r.nlines; i++)
		json_decref(r.line[i].json);
	free(r.line);
	free(r.place);
	if (e) {
		recording_free(r.rec);
		return e;
	}
	qsort(r.rec->call, r.rec->ncalls, sizeof(*r.rec->call), lines_by_time);
	*recp = r.rec;
	return 0;
}
