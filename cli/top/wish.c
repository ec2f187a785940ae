/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The targets and levels that a user can wish for in the live view, and the requests made from
 * them.
 */
#include "cli/top/wish.h"

#include <stdio.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/common/prose.h"
#include "cli/table/report.h"
#include "util/list.h"
#include "util/phrase.h"

/* The targets a request can name, the least first, and where a row of any table has each. */
static const struct {
	const char *member;
	const char *path;
	const char *label;
	const char *name;	/* people's name for it */
} targets[] = {
	{ "pid", "pid", "process", "pid" },
	{ "comm_id", "comm_id", "communicator", "comm_label|comm_name|comm_id" },
	{ "job", "job", "job", "job" },
};

#define SOME_US "NCCL some microseconds per operation: much for a small one, little for a large one"
#define BUDGET	"at most the budget for timing kernels, by default 0.5 % of the time; beyond it " \
		"where sampling is all"
#define STEPS	"; callbacks for the network's steps come on top"

enum { LEVEL_TRACE = 4, LEVEL_ALL = 5 };

static const struct {
	const char *name;
	const char *level;	/* NULL: it stays */
	const char *sample;	/* NULL: it stays */
	int for_s;		/* seconds; 0: for good */
	const char *records, *cost;
} levels[] = {
	{ "off", "off", NULL, 0, "nothing: a hang or a late rank is not found", "nothing" },
	{ "ops", "ops", NULL, 0, "which operations are posted, no times of GPU or network",
	  "least of all but off" },
	{ "kernel", "kernel", NULL, 0, "operations, and when their kernels ran", BUDGET },
	{ "net", "net", NULL, 0, "operations, kernels, and what the network did",
	  BUDGET STEPS },
	[LEVEL_TRACE] = { "trace, for 10s", "trace", NULL, 10,
			  "every event and every state, a record each", SOME_US },
	[LEVEL_ALL] = { "every operation timed, for 60s", NULL, "all", 60,
			"the kernels of all operations, beyond the budget", SOME_US },
	{ "default: as the processes began", "default", NULL, 0, "what the processes began with",
	  "what that level costs; of net: " BUDGET STEPS },
};

void wish_deinit(struct top_wish *wish)
{
	json_decref(wish->bodies);
	json_decref(wish->chosen);
	json_decref(wish->due);
	memset(wish, 0, sizeof(*wish));
}

static void add_target(struct top_wish *wish, json_t *items, const char *name, json_t *bodies)
{
	json_array_append_new(items, json_string(name));
	json_array_append_new(wish->bodies, bodies);
}

static void add_targets_of(struct top_wish *wish, json_t *items, const json_t *row)
{
	for (size_t i = 0; row && i < ARRAY_LEN(targets); i++) {
		const json_t *value = report_get(row, targets[i].path);
		char name[WISH_TEXT], label[2 * WISH_TEXT];

		if (!value)
			continue;
		report_text(row, targets[i].name, name, sizeof(name));
		snprintf(label, sizeof(label), "%s %s", targets[i].label, name);
		add_target(wish, items, label,
			   json_pack("[{s:O}]", targets[i].member, value));
	}
}

/* The least that each row is of, each once: two ranks may be one process. */
static json_t *bodies_of(const json_t *tagged)
{
	json_t *once = json_object(), *bodies = json_array(), *row;
	const char *key;

	json_object_foreach((json_t *)tagged, key, row) {
		for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
			char text[2 * WISH_TEXT], name[WISH_TEXT];

			if (!report_get(row, targets[i].path))
				continue;
			report_text(row, targets[i].path, name, sizeof(name));
			snprintf(text, sizeof(text), "%s %s", targets[i].label, name);
			if (!json_object_get(once, text))
				json_array_append_new(bodies, json_pack(
					"{s:O}", targets[i].member,
					report_get(row, targets[i].path)));
			json_object_set_new(once, text, json_true());
			break;
		}
	}
	json_decref(once);
	return bodies;
}

static void add_tagged(struct top_wish *wish, json_t *items, const json_t *tagged)
{
	char label[WISH_TEXT];

	if (!json_object_size(tagged))
		return;
	snprintf(label, sizeof(label), "the %zu tagged", json_object_size(tagged));
	add_target(wish, items, label, bodies_of(tagged));
}

json_t *wish_targets(struct top_wish *wish, const json_t *row, const json_t *tagged)
{
	json_t *items = json_array();

	wish_deinit(wish);
	wish->bodies = json_array();
	add_target(wish, items, "the node", json_pack("[{}]"));
	add_tagged(wish, items, tagged);
	add_targets_of(wish, items, row);
	return items;
}

void wish_take_target(struct top_wish *wish, int index, const char *name)
{
	json_decref(wish->chosen);
	wish->chosen = json_deep_copy(json_array_get(wish->bodies, (size_t)index));
	snprintf(wish->whom, sizeof(wish->whom), "%s", name);
}

json_t *wish_levels(void)
{
	json_t *items = json_array();

	for (size_t i = 0; i < ARRAY_LEN(levels); i++)
		json_array_append_new(items, json_string(levels[i].name));
	return items;
}

void wish_take_level(struct top_wish *wish, int index)
{
	json_each(body, wish->chosen) {
		if (levels[index].level)
			json_object_set_new(body, "level", json_string(levels[index].level));
		if (levels[index].sample)
			json_object_set_new(body, "sample", json_string(levels[index].sample));
		if (levels[index].for_s)
			json_object_set_new(body, "for_s", json_integer(levels[index].for_s));
	}
	wish->level = index;
	snprintf(wish->question, sizeof(wish->question), "Level of %s: %s.  Do it? (y/n)",
		 wish->whom, levels[index].name);
}

/* The first target after the node is what is tagged, or the least that the row is of. */
void wish_trace(struct top_wish *wish, const json_t *row, const json_t *tagged, const char *file)
{
	json_auto_t *items = wish_targets(wish, row, tagged);
	size_t index = json_array_size(items) > 1;

	wish_take_target(wish, (int)index, json_string_value(json_array_get(items, index)));
	wish->level = LEVEL_TRACE;
	snprintf(wish->file, sizeof(wish->file), "%s", file);
	snprintf(wish->question, sizeof(wish->question), "Trace %s for %d s into %s? (y/n)",
		 wish->whom, CAPTURE_S, file);
}

/* ---- before a yes ------------------------------------------------------------ */

/* An empty body is the node. */
static bool rank_is_meant(const json_t *rank, const json_t *bodies)
{
	json_each(body, bodies) {
		bool meant = true;

		for (size_t k = 0; k < ARRAY_LEN(targets); k++) {
			const json_t *wanted = json_object_get(body, targets[k].member);

			meant = meant && (!wanted || json_equal((json_t *)wanted,
					json_object_get(rank, targets[k].member)));
		}
		if (meant)
			return true;
	}
	return false;
}

/* The number of processes that are meant, and their jobs: "2 of 10 processes here, of job 4711". */
static void put_scope(struct frame *frame, const json_t *bodies, const json_t *ranks)
{
	json_t *all = json_object(), *meant = json_object(), *jobs = json_object(), *unused;
	char pid[32], list[2 * WISH_TEXT];
	struct phrase text;
	const char *job;
	size_t i;

	json_each(rank, ranks) {
		snprintf(pid, sizeof(pid), "%lld",
			 (long long)json_integer_value(json_object_get(rank, "pid")));
		json_object_set_new(all, pid, json_true());
		if (!rank_is_meant(rank, bodies))
			continue;
		json_object_set_new(meant, pid, json_true());
		job = json_string_value(json_object_get(rank, "job"));
		if (job)
			json_object_set_new(jobs, job, json_true());
	}
	phrase_start(&text, list, sizeof(list));
	phrase_add(&text, "%zu of %zu processes here", json_object_size(meant),
		   json_object_size(all));
	i = 0;
	json_object_foreach(jobs, job, unused)
		phrase_add(&text, "%s%s", i++ ? ", " : json_object_size(jobs) > 1 ? ", of jobs "
			   : ", of job ", job);
	prose_put_term(frame, PROSE_TERM, "concerns", list);
	json_decref(all);
	json_decref(meant);
	json_decref(jobs);
}

static void put_facts(struct frame *frame, const json_t *bodies, int level, const json_t *ranks,
		      const char *ends)
{
	put_scope(frame, bodies, ranks);
	prose_put_term(frame, PROSE_TERM, "records", levels[level].records);
	prose_put_term(frame, PROSE_TERM, "costs", levels[level].cost);
	prose_put_term(frame, PROSE_TERM, "ends", ends);
}

void wish_put_facts(struct frame *frame, const struct top_wish *wish, const json_t *ranks)
{
	put_facts(frame, wish->chosen, wish->level, ranks,
		  levels[wish->level].for_s ? "by itself, after that time"
					    : "when somebody changes it again: L, default");
}

void wish_put_focus_facts(struct frame *frame, json_int_t pid, const json_t *ranks)
{
	json_auto_t *bodies = json_pack("[{s:I}]", "pid", pid);

	put_facts(frame, bodies, LEVEL_ALL, ranks, "half a minute after you look elsewhere");
}

void wish_confirm(struct top_wish *wish)
{
	json_decref(wish->due);
	wish->due = wish->chosen;
	wish->chosen = NULL;
}
