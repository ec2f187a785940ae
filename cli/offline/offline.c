/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's stand-in for snapshots: the files' rows of all nodes are put together as the
 * API's answers, with their times moved to this moment.
 */
#include "cli/offline/offline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/cli.h"
#include "cli/offline/shots.h"
#include "cli/view/ranks.h"

struct offline {
	struct shots shots;
};

/* The path that is asked for, and its array's name in an answer and in a file. */
static const struct source {
	const char *path, *answered, *kept;
	bool by_window;		/* a row for each window; else all figures are of all the time */
	const struct column *order;	/* of several nodes' rows, the largest first; NULL: none */
} sources[] = {
	{ "/v1/processes", "processes", "processes", false, NULL },
	{ "/v1/comms", "comms", "comms", false, NULL },
	{ "/v1/ranks", "ranks", "ranks", false, &ranks_badness },
	{ "/v1/summary", "rows", "rows", true, NULL },
	{ "/v1/inflight", "inflight", "inflight", false, NULL },
	{ "/v1/peers", "peers", "peers", true, NULL },
	{ "/v1/findings", "findings", "findings", false, NULL },
};

/* ---- time ------------------------------------------------------------------------- */

static bool key_is_mono(const char *key)
{
	static const char end[] = "_mono_ns";
	size_t n = strlen(key);

	return n >= sizeof(end) && !strcmp(key + n - (sizeof(end) - 1), end);
}

/* Times before this machine's clock began cannot be said. */
static void row_move_times(json_t *value, json_int_t by_ns)
{
	const char *key;
	json_t *member;
	void *next;
	size_t i;

	json_array_foreach(value, i, member)
		row_move_times(member, by_ns);
	json_object_foreach_safe(value, next, key, member) {
		json_int_t at_ns = json_integer_value(member) + by_ns;

		if (json_is_integer(member) && key_is_mono(key))
			json_object_set_new(value, key,
					    at_ns > 0 ? json_integer(at_ns) : json_null());
		else
			row_move_times(member, by_ns);
	}
}

static void row_move_nodes(struct offline *o)
{
	json_int_t now_ns = (json_int_t)cli_now_ns(), then_ns;
	const char *host;
	json_t *node;

	json_object_foreach(o->shots.nodes, host, node) {
		then_ns = json_integer_value(json_object_get(node, "written_mono_ns"));
		row_move_times(node, now_ns - then_ns);
	}
}

/* ---- answers ------------------------------------------------------------------------ */

/* Is this parameter of the target the value? */
static bool target_has(const char *target, const char *parameter)
{
	const char *at = strstr(target, parameter);
	size_t n = strlen(parameter);

	return at && (at[n] == '&' || !at[n]);
}

static bool target_wants(const struct source *source, const char *target, const json_t *row)
{
	const char *window = json_string_value(json_object_get(row, "window"));

	if (target_has(target, "active=true") && !json_is_true(json_object_get(row, "active")))
		return false;
	return !source->by_window || !window ||
	       strcmp(window, target_has(target, "window=60s") ? "60s" : "all") == 0;
}

static void offline_add_rows(json_t *all, const struct source *source, const char *target,
			     const char *host, const json_t *rows)
{
	json_t *row, *named;
	size_t i;

	json_array_foreach((json_t *)rows, i, row) {
		if (!target_wants(source, target, row))
			continue;
		named = json_copy(row);
		json_object_set_new(named, "host", json_string(host));
		json_array_append_new(all, named);
	}
}

static json_t *offline_first_status(const struct offline *o)
{
	const char *host;
	json_t *node;

	json_object_foreach(o->shots.nodes, host, node)
		return json_incref(json_object_get(node, "status"));
	return NULL;
}

static const struct source *source_find(const char *target)
{
	size_t n = strcspn(target, "?");

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		if (!strncmp(target, sources[i].path, n) && !sources[i].path[n])
			return &sources[i];
	return NULL;
}

static void watched_add(json_t *watched, const json_t *processes)
{
	json_t *jobs = json_object_get(watched, "jobs"), *id, *row;
	size_t i;

	json_array_foreach((json_t *)processes, i, row) {
		json_int_t live = json_integer_value(json_object_get(watched, "live"));
		const char *state = json_string_value(json_object_get(row, "state"));

		if (state && !strcmp(state, "live"))
			json_object_set_new(watched, "live", json_integer(live + 1));
		id = json_object_get(json_object_get(row, "job"), "id");
		if (json_is_string(id))
			json_array_append(jobs, id);
	}
}

/* The processes that the findings of all nodes speak of; older files tell no more of them. */
static json_t *offline_watched(const struct offline *o)
{
	json_t *watched = json_pack("{s:i, s:[]}", "live", 0, "jobs"), *node;
	const char *host;

	json_object_foreach(o->shots.nodes, host, node)
		watched_add(watched, json_object_get(node, "processes"));
	return watched;
}

json_t *offline_answer(void *arg, const char *target)
{
	const struct source *source = source_find(target);
	const struct offline *o = arg;
	const char *host;
	json_t *all, *node;

	if (!strcmp(target, "/v1/status"))
		return offline_first_status(o);
	if (!source)
		return NULL;
	all = json_array();
	if (source->by_window && strstr(target, "window=1"))	/* none is of the last seconds */
		return json_pack("{s:o}", source->answered, all);
	json_object_foreach(o->shots.nodes, host, node)
		offline_add_rows(all, source, target, host, json_object_get(node, source->kept));
	if (source->order)
		report_sort(all, source->order, false);
	if (!strcmp(source->answered, "findings"))
		return json_pack("{s:o, s:o}", "findings", all, "watched", offline_watched(o));
	return json_pack("{s:o}", source->answered, all);
}

/* ---- life ---------------------------------------------------------------------------- */

struct offline *offline_open(const char *const *paths, size_t n, const char *until,
			     enum cli_exit *code)
{
	static const char *const members[] = {
		"written_at", "written_mono_ns", "status", "processes", "comms", "rows",
		"inflight", "peers", "findings", "ranks", NULL,
	};
	struct offline *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->shots.members = members;
	o->shots.until = until;
	for (size_t i = 0; i < n; i++)
		shots_add(&o->shots, paths[i]);
	if (!o->shots.files) {
		if (code)
			*code = shots_tell_none(&o->shots, "--from: ");
		offline_free(o);
		return NULL;
	}
	row_move_nodes(o);
	return o;
}

void offline_free(struct offline *o)
{
	if (!o)
		return;
	shots_deinit(&o->shots);
	free(o);
}
