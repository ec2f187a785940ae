/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks' table is joined from four answers.  What binds them is the
 * communicator and the rank in it, null being equal to null: an old NCCL does not
 * tell the id.  The id alone does not do: communicators that were split off one
 * parent can share it, and so can those of two jobs.
 */
#include "cli/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/findings.h"
#include "cli/label.h"
#include "cli/listing.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define STALLED_NS    UINT64_C(1000000000)
#define RATE_NS	      UINT64_C(50000000)	/* over less, the daemon's polls make it jump */

static const struct column rank_columns[] = {
	{ NULL, "RANK", COL_INTEGER, "rank", 0, 0, 0 },
	{ NULL, "GPU", COL_TEXT, "gpu", 0, 16, 7 },
	{ NULL, "PID", COL_INTEGER, "pid", 7, 0, 3 },
	{ NULL, "USER", COL_TEXT, "user", 0, 10, 8 },
	{ NULL, "COMM", COL_TEXT, "comm", 6, 20, 0 },
	{ NULL, "STATE", COL_STATE, "ended", 0, 0, REPORT_IF_KNOWN },
	{ NULL, "OPS/s", COL_NUMBER, "ops_per_s", 6, 0, 5 },
	{ NULL, "BUSBW(GB/s)", COL_NUMBER, "busbw_gbs", 0, 0, 2 },
	{ NULL, "P50(us)", COL_MICROS, "p50_ns", 8, 0, 1 },
	{ NULL, "P99(us)", COL_MICROS, "p99_ns", 8, 0, 4 },
	{ NULL, "SHARE(%)", COL_PERCENT, "share", 0, 0, 6 },
	{ NULL, "INFL", COL_INTEGER, "in_flight", 0, 0, 0 },
	{ NULL, "OLDEST", COL_STALL, "oldest_ns", 6, 0, 0 },
	{ NULL, "LATE(us)", COL_MICROS, "late_ns", 8, 0, 0 },
	{ NULL, NULL, COL_INTEGER, "badness", 0, 0, 0 },
};
static const size_t rank_column_count = ARRAY_LEN(rank_columns) - 1;
static const struct column *const by_badness = &rank_columns[ARRAY_LEN(rank_columns) - 1];

const struct view_table_type view_tables[VIEW_TABLES] = {
	[VIEW_RANKS] = { "Ranks", rank_columns, &rank_column_count,
			 "no rank is alive" },
	[VIEW_OPS] = { "Operations", ops_columns, &ops_column_count,
		       "no operation has finished lately" },
	[VIEW_INFLIGHT] = { "In flight", inflight_columns, &inflight_column_count,
			    "nothing is in flight" },
};

/* ---- joining -------------------------------------------------------------- */

static bool same(const json_t *a, const json_t *b, const char *path)
{
	const json_t *left = report_get(a, path), *right = report_get(b, path);

	return left == right || (left && right && json_equal(left, right));
}

/* The row with the same members; of several, the one that rests on most operations. */
static const json_t *find_row(const json_t *rows, const json_t *like, const char *const *paths)
{
	const json_t *best = NULL;
	json_t *row;
	size_t i;

	json_array_foreach((json_t *)rows, i, row) {
		bool fits = true;

		for (const char *const *path = paths; *path && fits; path++)
			fits = same(row, like, *path);
		if (fits && (!best || json_integer_value(report_get(row, "ops")) >
					      json_integer_value(report_get(best, "ops"))))
			best = row;
	}
	return best;
}

/* Copy what is known at a path; unknown stays null. */
static void take(json_t *to, const char *key, const json_t *from, const char *path)
{
	const json_t *value = from ? report_get(from, path) : NULL;

	json_object_set(to, key, value ? (json_t *)value : json_null());
}

static void take_rate(json_t *to, const char *key, const json_t *row)
{
	const json_t *ops = row ? report_get(row, "ops") : NULL;
	const json_t *window = row ? report_get(row, "window_ns") : NULL;

	if (json_is_integer(ops) && json_integer_value(window) > 0)
		json_object_set_new(to, key, json_real((double)json_integer_value(ops) * 1e9 /
						       (double)json_integer_value(window)));
	else
		json_object_set_new(to, key, json_null());
}

/*
 * How many operations of this rank are in flight, and the longest that anything of
 * it is.  Both from one answer: what /v1/comms counts is of another moment.
 */
static void take_inflight(json_t *to, const json_t *inflight)
{
	static const char *const member[] = { "pid", "comm_id", "rank" };
	json_int_t oldest = -1, operations = 0;
	json_t *row;
	size_t i;

	json_array_foreach((json_t *)inflight, i, row) {
		json_int_t age = json_integer_value(report_get(row, "age_ns"));
		bool fits = true;

		for (size_t k = 0; k < ARRAY_LEN(member); k++)
			fits = fits && same(row, to, member[k]);
		oldest = fits && age > oldest ? age : oldest;
		operations += fits && report_get(row, "func") && !report_get(row, "parent");
	}
	json_object_set_new(to, "in_flight", json_integer(operations));
	json_object_set_new(to, "oldest_ns", oldest < 0 ? json_null() : json_integer(oldest));
}

static bool is_in_state(const json_t *member, const char *state)
{
	const char *is = json_string_value(report_get(member, "state"));

	return is && !strcmp(is, state);
}

/* Ended as it should, with nothing left behind: no longer of interest here. */
static bool is_over(const json_t *member)
{
	return is_in_state(member, "exited") ||
	       (is_in_state(member, "finalized") &&
		!json_integer_value(report_get(member, "in_flight")));
}

/* When the processes ended that left something in flight. */
static void add_ends(json_t *inflight, const json_t *processes)
{
	static const char *const key[] = { "pid", NULL };
	json_t *row;
	size_t i;

	json_array_foreach(inflight, i, row) {
		const json_t *process = find_row(processes, row, key);

		if (process && is_in_state(process, "died"))
			take(row, "ended_mono_ns", process, "ended_mono_ns");
	}
}

const json_t *view_lateness(const json_t *member)
{
	const json_t *lately = report_get(member, "waiting.lately");

	return json_is_true(report_get(lately, "late")) && is_in_state(member, "live") ? lately : NULL;
}

/* Worst first: who died, what hangs, who comes last; the rest keeps its order. */
static void rate_badness(json_t *row, const json_t *member)
{
	json_int_t oldest = json_integer_value(json_object_get(row, "oldest_ns"));
	json_int_t badness = oldest >= (json_int_t)STALLED_NS ? oldest : 0;

	if (!badness && view_lateness(member))
		badness = 1;
	if (is_in_state(member, "died"))
		badness = INT64_MAX;
	json_object_set_new(row, "badness", json_integer(badness));
}

static json_t *join_rank(const json_t *comm, const json_t *member,
			 const struct view_answers *answers, const json_t *inflight)
{
	static const char *const rank_key[] = { "comm_id", "comm_name", "nranks", "rank", NULL };
	static const char *const pid_key[] = { "pid", NULL };
	const json_t *summary, *process;
	json_t *row = json_object();

	take(row, "comm_id", comm, "comm_id");
	take(row, "comm_name", comm, "name");
	take(row, "nranks", comm, "nranks");
	take(row, "comm", comm, "comm_label|comm_id");
	take(row, "rank", member, "rank");
	take(row, "pid", member, "pid");
	take(row, "gpu", member, "pci_bus_id");
	if (!is_in_state(member, "live"))
		take(row, "ended", member, "state");

	process = find_row(json_object_get(answers->processes, "processes"), row, pid_key);
	take(row, "user", process, "user|uid");

	summary = find_row(json_object_get(answers->ranks, "rows"), row, rank_key);
	take(row, "busbw_gbs", summary, "busbw_gbs.mean");
	take(row, "p50_ns", summary, "exec.p50_ns|batch.p50_ns");
	take(row, "p99_ns", summary, "exec.p99_ns|batch.p99_ns");
	take(row, "share", summary, "share");
	take_rate(row, "ops_per_s", summary);
	take_inflight(row, inflight);
	take(row, "late_ns", member, "waiting.lately.late_ns");
	rate_badness(row, member);
	return row;
}

static json_t *join_ranks(struct view *view, const struct view_answers *answers)
{
	json_t *rows = json_array(), *comm, *member;
	size_t i, k;

	json_array_foreach(json_object_get(answers->comms, "comms"), i, comm)
		json_array_foreach(json_object_get(comm, "local_ranks"), k, member)
			if (!is_over(member))
				json_array_append_new(rows, join_rank(comm, member, answers,
								      view->rows[VIEW_INFLIGHT]));
	report_sort(rows, by_badness, false);
	return rows;
}

/* ---- counting ------------------------------------------------------------- */

static void count_processes(struct view *view, const json_t *answer)
{
	json_t *process;
	size_t i;

	view->live = view->exited = view->died = view->blind = 0;
	json_array_foreach(json_object_get(answer, "processes"), i, process) {
		const char *state = json_string_value(report_get(process, "state"));

		view->live += state && !strcmp(state, "live");
		view->blind += state && !strcmp(state, "live") &&
			       report_get(process, "level") && !report_get(process, "sampling");
		view->exited += state && !strcmp(state, "exited");
		view->died += state && !strcmp(state, "died");
	}
}

/* GPUs are told apart by their bus ids, communicators by their rows. */
static void count_comms(struct view *view, const json_t *answer)
{
	json_t *gpus = json_object(), *comm, *member;
	size_t i, k;

	json_array_foreach(json_object_get(answer, "comms"), i, comm) {
		json_array_foreach(json_object_get(comm, "local_ranks"), k, member) {
			const char *gpu = json_string_value(report_get(member,
								       "gpu_uuid|pci_bus_id"));

			if (gpu)
				json_object_set_new(gpus, gpu, json_true());
		}
	}
	view->comms = (int)json_array_size(json_object_get(answer, "comms"));
	view->gpus = json_object_size(gpus) ? (int)json_object_size(gpus) : -1;
	json_decref(gpus);
}

static void count_ops(struct view *view, const json_t *ops)
{
	json_t *row;
	size_t i;

	view->ops_per_s = json_is_array(ops) ? 0 : -1;
	json_array_foreach((json_t *)ops, i, row) {
		json_int_t window = json_integer_value(report_get(row, "window_ns"));

		if (window > 0)
			view->ops_per_s += json_number_value(report_get(row, "ops")) * 1e9 /
					   (double)window;
	}
}

static void count_records(struct view *view, uint64_t now_ns)
{
	double records = json_number_value(report_get(view->status, "ingest.records"));

	view->records_per_s = -1;
	if (view->known && view->up && records >= view->records &&
	    now_ns >= view->now_ns + RATE_NS)
		view->records_per_s = (records - view->records) * 1e9 /
				      (double)(now_ns - view->now_ns);
	view->records = records;
	view->lost = json_number_value(report_get(view->status, "ingest.lost"));
}

/* ---- building ------------------------------------------------------------- */

static void drop_contents(struct view *view)
{
	json_decref(view->status);
	view->status = NULL;
	json_decref(view->findings);
	view->findings = NULL;
	json_decref(view->all_comms);
	view->all_comms = NULL;
	for (int i = 0; i < VIEW_TABLES; i++) {
		json_decref(view->rows[i]);
		view->rows[i] = NULL;
	}
}

static void free_answers(struct view_answers *answers)
{
	json_decref(answers->status);
	json_decref(answers->processes);
	json_decref(answers->comms);
	json_decref(answers->ranks);
	json_decref(answers->ops);
	json_decref(answers->inflight);
	json_decref(answers->findings);
	memset(answers, 0, sizeof(*answers));
}

void view_build(struct view *view, struct view_answers *answers, uint64_t now_ns)
{
	static const struct column oldest = { NULL, NULL, COL_AGE, "age_ns", 0, 0, 0 };
	json_t *comms = json_object_get(answers->comms, "comms");

	drop_contents(view);
	view->status = json_incref(answers->status);
	count_records(view, now_ns);
	count_processes(view, answers->processes);
	count_comms(view, answers->comms);

	label_rows(comms, comms);
	view->all_comms = json_incref(comms);
	view->findings = findings_by_severity(json_object_get(answers->findings, "findings"));
	view->rows[VIEW_OPS] = json_incref(json_object_get(answers->ops, "rows"));
	label_rows(view->rows[VIEW_OPS], comms);
	count_ops(view, view->rows[VIEW_OPS]);
	view->rows[VIEW_INFLIGHT] =
		inflight_reshape(json_object_get(answers->inflight, "inflight"));
	label_rows(view->rows[VIEW_INFLIGHT], comms);
	add_ends(view->rows[VIEW_INFLIGHT], json_object_get(answers->processes, "processes"));
	report_sort(view->rows[VIEW_INFLIGHT], &oldest, false);
	view->rows[VIEW_RANKS] = join_ranks(view, answers);

	view->now_ns = view->tried_ns = now_ns;
	view->known = view->up = true;
	view->error[0] = '\0';
	free_answers(answers);
}

int view_fetch(struct view *view, struct client *client, const char *window, uint64_t now_ns)
{
	struct view_answers answers = { 0 };
	char ranks[96], ops[96];
	const struct {
		const char *target;
		json_t **answer;
	} requests[] = {
		{ "/v1/status", &answers.status },
		{ "/v1/processes", &answers.processes },
		{ "/v1/comms", &answers.comms },
		{ ranks, &answers.ranks },
		{ ops, &answers.ops },
		{ "/v1/inflight", &answers.inflight },
		{ "/v1/findings?active=true", &answers.findings },
	};
	int r = 0;

	snprintf(ranks, sizeof(ranks), "/v1/summary?window=%s&by=comm,rank", window);
	snprintf(ops, sizeof(ops), "/v1/summary?window=%s&by=comm,func,size,algo,proto", window);
	for (size_t i = 0; i < ARRAY_LEN(requests) && !r; i++)
		r = client_get(client, requests[i].target, requests[i].answer);
	if (!r) {
		view_build(view, &answers, now_ns);
		return 0;
	}
	free_answers(&answers);
	view->up = false;
	view->tried_ns = now_ns;
	snprintf(view->error, sizeof(view->error), "%s", client_error(client));
	return r;
}

void view_deinit(struct view *view)
{
	drop_contents(view);
}
