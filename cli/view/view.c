/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of the daemon made into what is shown; what asks for them is view_fetch.c. */
#include "cli/view/view.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/common/label.h"
#include "cli/view/columns.h"
#include "cli/view/findings.h"

#define RATE_NS UINT64_C(50000000)	/* over less, the daemon's polls make it jump */

/* ---- counting ------------------------------------------------------------- */

static void view_count_processes(struct view *view, const json_t *answer)
{
	view->live = view->exited = view->died = 0;
	json_each(process, json_object_get(answer, "processes")) {
		view->live += member_is(process, "state", "live");
		view->exited += member_is(process, "state", "exited");
		view->died += member_is(process, "state", "died");
	}
}

static void count_ranks(struct view *view, const json_t *answer)
{
	json_int_t gpus = json_integer_value(json_object_get(answer, "gpus_total"));
	double waited = 0;
	int knowing = 0;

	view->ranks = (int)json_integer_value(json_object_get(answer, "ranks_total"));
	view->comms = (int)json_integer_value(json_object_get(answer, "comms_total"));
	view->gpus = gpus ? (int)gpus : -1;
	view->in_flight = json_integer_value(json_object_get(answer, "in_flight_total"));
	json_each(rank, view->rows[VIEW_RANKS]) {
		const json_t *wait = json_object_get(rank, "wait");

		knowing += json_is_number(wait);
		waited += json_number_value(wait);
	}
	view->wait = knowing ? waited / knowing : -1;
}

static void view_count_ops(struct view *view, const json_t *ops)
{
	view->ops_per_s = json_is_array(ops) ? 0 : -1;
	json_each(row, ops) {
		json_int_t window = json_integer_value(report_get(row, "window_ns"));

		if (window > 0)
			view->ops_per_s += json_number_value(report_get(row, "ops")) * 1e9 /
					   (double)window;
	}
}

/* A key may have asked again a moment after the last look: then the rate stays. */
static void view_count_records(struct view *view, uint64_t now_ns)
{
	double records = json_number_value(report_get(view->status, "ingest.records"));
	bool counted = view->known && view->up && records >= view->records;

	view->lost = json_number_value(report_get(view->status, "ingest.lost"));
	if (counted && now_ns < view->counted_ns + RATE_NS)
		return;
	view->records_per_s = counted ? (records - view->records) * 1e9 /
						(double)(now_ns - view->counted_ns) : -1;
	view->records = records;
	view->counted_ns = now_ns;
}

/* ---- building ------------------------------------------------------------- */

static bool is_of_members(int table)
{
	return table == VIEW_RANKS || table == VIEW_COMMS || table == VIEW_JOBS;
}

static void drop_contents(struct view *view, bool same_members)
{
	json_decref(view->status);
	view->status = NULL;
	json_decref(view->findings);
	view->findings = NULL;
	for (int i = 0; i < VIEW_TABLES; i++) {
		if (same_members && is_of_members(i))
			continue;
		json_decref(view->rows[i]);
		view->rows[i] = NULL;
	}
}

json_t **view_answer(struct view_answers *answers, enum view_question question)
{
	static const size_t at[VIEW_QUESTIONS] = {
#define AT(QUESTION, member) [VIEW_ASK_##QUESTION] = offsetof(struct view_answers, member)
		AT(STATUS, status), AT(PROCESSES, processes), AT(RANKS, ranks),
		AT(OPS, ops), AT(NOW, now), AT(INFLIGHT, inflight), AT(FINDINGS, findings),
		AT(PEERS, peers), AT(KINDS, kinds), AT(RUNS, runs),
#undef AT
	};

	return (json_t **)((char *)answers + at[question]);
}

void view_answers_deinit(struct view_answers *answers)
{
	for (int i = 0; i < VIEW_QUESTIONS; i++)
		json_decref(*view_answer(answers, (enum view_question)i));
	memset(answers, 0, sizeof(*answers));
}

void view_forget(struct view_kept_answer *kept)
{
	json_decref(kept->root);
	free(kept->target);
	memset(kept, 0, sizeof(*kept));
}

/* Rows in the order of what they are, so that they stay where they are from look to look. */
static void rows_sort_by_name(json_t *rows)
{
	static const struct column what = {
		NULL, NULL, COL_TEXT, "event_type/func/channel/peer/step", 0, 0, 0 };
	static const struct column rank = { NULL, NULL, COL_INTEGER, "rank", 0, 0, 0 };
	static const struct column comm = { NULL, NULL, COL_TEXT, "comm_name/comm_id", 0, 0, 0 };

	report_sort(rows, &what, true);
	report_sort(rows, &rank, true);
	report_sort(rows, &comm, true);
}

/* Rows younger than a second come last, and in no order of time. */
static json_t *rows_settle_young(json_t *rows)
{
	json_t *old = json_array(), *young = json_array();

	json_each(row, rows)
		json_array_append(json_integer_value(json_object_get(row, "age_ns")) <
				  (json_int_t)VIEW_OLD_NS ? young : old, row);
	rows_sort_by_name(young);
	json_array_extend(old, young);
	json_decref(young);
	json_decref(rows);
	return old;
}

/*
 * The order of the daemon in steps of a twentieth of its scale: ranks that differ little do not
 * change places at each look.  Ranks that hang stay in the order of their age.
 */
static void ranks_settle(json_t *ranks)
{
	static const struct column order = { NULL, NULL, COL_NUMBER, "order", 0, 0, 0 };

	json_each(rank, ranks) {
		double badness = json_number_value(json_object_get(rank, "badness"));

		if (!member_true(rank, "stalled"))
			badness = floor(badness * 20) / 20;
		json_object_set_new(rank, "order", json_real(badness));
	}
	rows_sort_by_name(ranks);
	report_sort(ranks, &order, false);
}

static void build_inflight(struct view *view, const struct view_answers *answers)
{
	static const struct column oldest = { NULL, NULL, COL_AGE, "age_ns", 0, 0, 0 };
	json_t *rows = listing_dressed(json_object_get(answers->inflight, "inflight"),
				       inflight_dress);

	report_sort(rows, &oldest, false);
	rows = rows_settle_young(rows);
	view->rows[VIEW_INFLIGHT] = rows;
	view->only_old = answers->only_old;
	view->inflight_total = (int)json_integer_value(json_object_get(answers->inflight,
								       "inflight_total"));
}

/* Labels come first: communicators and jobs have those of their ranks. */
static void build_ranks(struct view *view, const struct view_answers *answers)
{
	json_t *ranks = json_object_get(answers->ranks, "ranks");

	json_decref(view->names);
	view->names = label_names(ranks);
	label_rows(ranks, view->names);
	json_each(rank, ranks)
		ranks_dress(rank);
	ranks_settle(ranks);
	json_decref(view->jobs);
	view->jobs = label_jobs(ranks);
	view->rows[VIEW_RANKS] = json_incref(ranks);
	view->rows[VIEW_JOBS] = ranks_by_job(ranks);
	count_ranks(view, answers->ranks);
}

/* Rows of what has ended may name communicators that no rank is in any more. */
static void label_others(struct view *view)
{
	for (int i = 0; i < VIEW_TABLES; i++)
		json_each(row, view->rows[i])
			if (!is_of_members(i))
				label_learn(view->names, row);
	for (int i = 0; i < VIEW_TABLES; i++) {
		if (is_of_members(i))
			continue;
		label_rows(view->rows[i], view->names);
		label_put_jobs(view->rows[i], view->jobs);
	}
}

/* Operations of one kind are told apart by size as in summaries: by powers of two. */
static void add_size_classes(json_t *runs)
{
	json_each(row, runs) {
		json_int_t bytes = json_integer_value(report_get(row, "bytes"));

		if (report_get(row, "bytes"))
			json_object_set_new(row, "size_class", json_integer(
				bytes > 0 ? INT64_C(1) << (63 - __builtin_clzll((uint64_t)bytes))
					  : 0));
	}
}

/* The bus bandwidth now, over all communicators by the time spent in each; < 0: unknown. */
static double mean_busbw(const json_t *rows)
{
	double sum = 0, shares = 0;

	json_each(row, rows) {
		const json_t *busbw = report_get(row, "busbw_gbs.mean");
		double share = json_number_value(report_get(row, "share"));

		if (!busbw)
			continue;
		sum += json_number_value(busbw) * share;
		shares += share;
	}
	return shares > 0 ? sum / shares : -1;
}

void view_build(struct view *view, struct view_answers *answers, uint64_t now_ns)
{
	bool same_members = view->known && answers->ranks == view->built.ranks;

	drop_contents(view, same_members);
	view->status = json_incref(answers->status);
	view_count_records(view, now_ns);
	view_count_processes(view, answers->processes);
	view->rows[VIEW_FINDINGS] =
		findings_reshape(json_object_get(answers->findings, "findings"), now_ns);
	view->findings = findings_active(view->rows[VIEW_FINDINGS]);
	view->rows[VIEW_OPS] = json_incref(json_object_get(answers->ops, "rows"));
	view_count_ops(view, view->rows[VIEW_OPS]);
	build_inflight(view, answers);
	if (!same_members)
		build_ranks(view, answers);
	if (answers->peers)
		view->rows[VIEW_PEERS] = listing_dressed(json_object_get(answers->peers, "peers"),
							 peers_dress);
	view->rows[VIEW_KINDS] = json_incref(json_object_get(answers->kinds, "rows"));
	view->rows[VIEW_RUNS] = json_incref(json_object_get(answers->runs, "collectives"));
	add_size_classes(view->rows[VIEW_RUNS]);
	label_others(view);
	view->busbw_gbs = mean_busbw(json_object_get(answers->now, "rows"));

	view->now_ns = view->tried_ns = now_ns;
	view->known = view->up = true;
	view->error[0] = '\0';
	view_answers_deinit(&view->built);
	view->built = *answers;
	memset(answers, 0, sizeof(*answers));
}

json_t *view_rows(const struct view *view, enum view_table table)
{
	struct view *added_up = (struct view *)view;

	if (table == VIEW_COMMS && !view->rows[table] && view->rows[VIEW_RANKS])
		added_up->rows[table] = ranks_by_comm(view->rows[VIEW_RANKS]);
	return view->rows[table];
}

const json_t *view_process(const struct view *view, json_int_t pid)
{
	json_each(process, json_object_get(view->kept.at[VIEW_ASK_PROCESSES].root, "processes"))
		if (json_integer_value(json_object_get(process, "pid")) == pid)
			return process;
	return NULL;
}

void view_sample(struct view *view)
{
	history_push(&view->history, view->busbw_gbs, view->wait);
}

void view_deinit(struct view *view)
{
	drop_contents(view, false);
	view_answers_deinit(&view->built);
	for (int i = 0; i < VIEW_QUESTIONS; i++)
		view_forget(&view->kept.at[i]);
	json_decref(view->names);
	json_decref(view->jobs);
	view->names = view->jobs = NULL;
}
