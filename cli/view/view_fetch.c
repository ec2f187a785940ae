/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests to the daemon for one look at the node: only what will be shown, and figures
 * over some seconds not at each look.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/view/view.h"
#include "schema/fields.h"
#include "util/list.h"
#include "util/text.h"

#define TARGET	  960	/* bytes */
#define RUNS_MOST 200

#define PROCESSES_AGE_NS UINT64_C(5000000000)
#define FIGURES_AGE_NS	 UINT64_C(2000000000)
#define SLACK_NS	 UINT64_C(100000000)	/* a look comes a little early or late */
#define ROW_NS		 UINT64_C(1000000)	/* an answer is as old as it has rows of it */

#define MEMBER_FIELDS "pid,uid,user,state,job,level,sampling"

struct look {
	struct client *client;
	struct view_kept *kept;
	const struct view_want *want;
	struct view_answers *answers;
	uint64_t now_ns;
	uint64_t figures_ns;	/* age that figures may have */
};

/* ---- targets ---------------------------------------------------------------- */

__attribute__((format(printf, 2, 3)))
static void target_append(char target[TARGET], const char *format, ...)
{
	size_t used = strlen(target);
	va_list args;

	va_start(args, format);
	vsnprintf(target + used, TARGET - used, format, args);
	va_end(args);
}

/* "&key=value", with all but letters and digits escaped; nothing where it is not known. */
static void add_parameter(char target[TARGET], const char *key, const json_t *value)
{
	char number[32] = "";
	const char *text = json_string_value(value) ?: number;

	if (json_is_integer(value))
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
			 json_integer_value(value));
	if (!*text)
		return;
	target_append(target, "&%s=", key);
	for (; *text && strlen(target) + 4 < TARGET; text++)
		target_append(target, isalnum((unsigned char)*text) ? "%c" : "%%%02X",
			      (unsigned char)*text);
}

/* Adds the fields of a table, and those that its rows are known by. */
static void target_add_fields(char target[TARGET], const char *fields, enum view_table table)
{
	target_append(target, "&fields=%s,", fields);
	for (const char *key = view_tables[table].key; *key; key++)
		target_append(target, "%c", *key == '/' ? ',' : *key);
}

/* ---- asking ----------------------------------------------------------------- */

static bool answer_is_due(const struct view_kept_answer *kept, const char *target, uint64_t age_ns,
			  uint64_t now_ns)
{
	return !kept->root || strcmp(kept->target, target) ||
	       now_ns + SLACK_NS >= kept->asked_ns + age_ns;
}

/* The rows of the largest table in an answer. */
static size_t answer_rows(const json_t *root)
{
	const char *key;
	json_t *member;
	size_t most = 0;

	json_object_foreach((json_t *)root, key, member)
		most = json_array_size(member) > most ? json_array_size(member) : most;
	return most;
}

/*
 * Ask, unless what was answered to the same question is younger than `age_ns`.  Thousands of rows
 * may be some seconds old, so that reading them takes the same part of a core as reading few.
 */
static int look_ask(struct look *look, enum view_question question, const char *target,
		    uint64_t age_ns)
{
	struct view_kept_answer *kept = &look->kept->at[question];
	json_t *root;
	int r;

	if (!look->want->fresh && age_ns < kept->rows * ROW_NS)
		age_ns = kept->rows * ROW_NS;
	if (answer_is_due(kept, target, age_ns, look->now_ns)) {
		r = client_get(look->client, target, &root);
		if (r)
			return r;
		view_forget(kept);
		*kept = (struct view_kept_answer){
			.root = root, .target = strdup(target), .asked_ns = look->now_ns,
			.rows = answer_rows(root),
		};
		if (!kept->target)
			abort();
	}
	*view_answer(look->answers, question) = json_incref(kept->root);
	return 0;
}

/* The time figures over a window are good for, at most a fifth of it. */
static uint64_t figures_age_ns(const char *window)
{
	uint64_t window_ns;

	if (text_parse_duration(window, &window_ns) || window_ns > 5 * FIGURES_AGE_NS)
		return FIGURES_AGE_NS;
	return window_ns / 5;
}

/* ---- the questions ---------------------------------------------------------- */

/* Whoever comes, goes or dies changes it. */
static uint64_t comms_census(const json_t *ranks)
{
	uint64_t sum = 0;

	json_each(rank, ranks) {
		const char *state = json_string_value(json_object_get(rank, "state"));

		sum = sum * 31 + (uint64_t)json_integer_value(json_object_get(rank, "pid"));
		sum = sum * 31 + (state ? (unsigned char)state[0] : 0);
	}
	return sum;
}

/* The badness of the worst rank of an answer, which comes first. */
static double worst_of(const json_t *answer)
{
	const json_t *first = json_array_get(json_object_get(answer, "ranks"), 0);

	return json_number_value(json_object_get(first, "badness"));
}

#define BAD_STALLED 3	/* something hangs, or worse: its age is looked at */

/* Asks for ranks, at each look while one hangs; and when one came or went for processes. */
static int ask_members(struct look *look)
{
	const struct view_kept_answer *kept = &look->kept->at[VIEW_ASK_RANKS];
	bool hangs = worst_of(kept->root) >= BAD_STALLED;
	uint64_t asked_ns = kept->asked_ns, sum = look->kept->census;
	char target[TARGET] = "/v1/ranks?window=";
	int r;

	target_append(target, "%s&fields=%s", look->want->window,
		      look->want->brief ? "pid,state,badness&limit=1" : RANK_FIELDS);
	r = look_ask(look, VIEW_ASK_RANKS, target, hangs ? 0 : look->figures_ns);
	if (r)
		return r;
	if (kept->asked_ns != asked_ns)
		sum = comms_census(json_object_get(look->answers->ranks, "ranks"));
	r = look_ask(look, VIEW_ASK_PROCESSES, "/v1/processes?fields=" MEMBER_FIELDS,
		     sum == look->kept->census ? PROCESSES_AGE_NS : 0);
	if (!r)
		look->kept->census = sum;
	return r;
}

/* So many, but never less than all that is old. */
static int ask_oldest(struct look *look, const char *target)
{
	char limited[TARGET] = "";
	const json_t *rows, *answer, *last;
	int r;

	target_append(limited, "%s&limit=%d", target, look->want->most);
	r = look_ask(look, VIEW_ASK_INFLIGHT, limited, 0);
	if (r)
		return r;
	answer = look->answers->inflight;
	rows = json_object_get(answer, "inflight");
	if (json_integer_value(json_object_get(answer, "inflight_total")) <=
	    (json_int_t)json_array_size(rows))
		return 0;
	last = json_array_get(rows, json_array_size(rows) - 1);
	look->answers->only_old = true;
	if (json_integer_value(json_object_get(last, "age_ns")) < (json_int_t)VIEW_OLD_NS)
		return 0;
	look->answers->only_old = !look->want->young;
	json_decref(look->answers->inflight);
	look->answers->inflight = NULL;
	return look_ask(look, VIEW_ASK_INFLIGHT, target, 0);
}

/* Only what is old matters of each rank where single operations are not shown. */
static int ask_inflight(struct look *look)
{
	char target[TARGET] = "/v1/inflight?older_than_ns=";

	target_append(target, "%llu", look->want->young ? 0ULL : (unsigned long long)VIEW_OLD_NS);
	if (!look->want->whole)
		target_add_fields(target, INFLIGHT_FIELDS, VIEW_INFLIGHT);
	look->answers->only_old = !look->want->young;
	return look->want->most ? ask_oldest(look, target)
				: look_ask(look, VIEW_ASK_INFLIGHT, target, 0);
}

/* The summary by these keys, as a table of operations shows it. */
static int ask_summary(struct look *look, enum view_question question, const char *by)
{
	char target[TARGET] = "/v1/summary?window=";

	target_append(target, "%s&by=%s", look->want->window, by);
	target_add_fields(target, OPS_FIELDS, VIEW_OPS);
	return look_ask(look, question, target, look->figures_ns);
}

static int ask_peers(struct look *look)
{
	char target[TARGET] = "/v1/peers?window=60s&channels=together";

	if (!look->want->whole)
		target_add_fields(target, PEERS_FIELDS, VIEW_PEERS);
	return look_ask(look, VIEW_ASK_PEERS, target, look->figures_ns);
}

static int ask_runs(struct look *look)
{
	static const struct {
		const char *parameter;
		const char *key;
	} parameters[] = {
		{ "comm", "comm_id" }, { "nranks", "nranks" }, { "rank", "rank" },
		{ "func", "func" },
	};
	char target[TARGET] = "/v1/collectives?limit=";

	target_append(target, "%d", RUNS_MOST);
	for (size_t i = 0; i < ARRAY_LEN(parameters); i++)
		add_parameter(target, parameters[i].parameter,
			      json_object_get(look->want->runs, parameters[i].key));
	if (!look->want->whole)
		target_add_fields(target, RUN_FIELDS, VIEW_RUNS);
	return look_ask(look, VIEW_ASK_RUNS, target, look->figures_ns);
}

/* Asks for what only one screen shows. */
static int ask_for_screen(struct look *look)
{
	const struct view_want *want = look->want;
	int r = 0;

	if (want->peers)
		r = ask_peers(look);
	else
		view_forget(&look->kept->at[VIEW_ASK_PEERS]);
	if (want->kinds)
		r = r ?: ask_summary(look, VIEW_ASK_KINDS, "comm,rank,func,size,algo,proto");
	else
		view_forget(&look->kept->at[VIEW_ASK_KINDS]);
	if (want->runs)
		r = r ?: ask_runs(look);
	else
		view_forget(&look->kept->at[VIEW_ASK_RUNS]);
	return r;
}

/* Asks for the figures of the whole node. */
static int ask_figures(struct look *look)
{
	int r = look_ask(look, VIEW_ASK_NOW, "/v1/summary?window=1s&by=comm&fields=busbw_gbs,share",
			 0);

	return r ?: ask_summary(look, VIEW_ASK_OPS, "comm,func,size,algo,proto");
}

static int ask_all(struct look *look)
{
	int r = look_ask(look, VIEW_ASK_STATUS, "/v1/status", 0);

	r = r ?: ask_members(look);
	r = r ?: ask_inflight(look);
	r = r ?: look_ask(look, VIEW_ASK_FINDINGS,
			  look->want->past ? "/v1/findings" : "/v1/findings?active=true", 0);
	if (!look->want->brief)
		r = r ?: ask_figures(look);
	return r ?: ask_for_screen(look);
}

int view_fetch(struct view *view, struct client *client, const struct view_want *want,
	       uint64_t now_ns)
{
	struct view_answers answers = { 0 };
	struct look look = {
		.client = client, .kept = &view->kept, .want = want, .answers = &answers,
		.now_ns = now_ns, .figures_ns = want->fresh ? 0 : figures_age_ns(want->window),
	};
	int r = ask_all(&look);

	if (!r) {
		view_build(view, &answers, now_ns);
		return 0;
	}
	view_answers_deinit(&answers);
	view->up = false;
	view->tried_ns = now_ns;
	snprintf(view->error, sizeof(view->error), "%s", client_error(client));
	return r;
}
