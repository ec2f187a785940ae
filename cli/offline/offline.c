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

struct offline {
	struct shots shots;
};

/* The path that is asked for, and its array's name in an answer and in a file. */
static const struct {
	const char *path, *answered, *kept;
} arrays[] = {
	{ "/v1/processes", "processes", "processes" },
	{ "/v1/comms", "comms", "comms" },
	{ "/v1/summary", "rows", "rows" },
	{ "/v1/inflight", "inflight", "inflight" },
	{ "/v1/peers", "peers", "peers" },
	{ "/v1/findings", "findings", "findings" },
};

/* ---- time ------------------------------------------------------------------------- */

static bool is_mono(const char *key)
{
	static const char end[] = "_mono_ns";
	size_t n = strlen(key);

	return n >= sizeof(end) && !strcmp(key + n - (sizeof(end) - 1), end);
}

/* Times before this machine's clock began cannot be said. */
static void move_times(json_t *value, json_int_t by_ns)
{
	const char *key;
	json_t *member;
	void *next;
	size_t i;

	json_array_foreach(value, i, member)
		move_times(member, by_ns);
	json_object_foreach_safe(value, next, key, member) {
		json_int_t at_ns = json_integer_value(member) + by_ns;

		if (json_is_integer(member) && is_mono(key))
			json_object_set_new(value, key,
					    at_ns > 0 ? json_integer(at_ns) : json_null());
		else
			move_times(member, by_ns);
	}
}

static void move_nodes(struct offline *o)
{
	json_int_t now_ns = (json_int_t)cli_now_ns();
	const char *host;
	json_t *node;

	json_object_foreach(o->shots.nodes, host, node)
		move_times(node, now_ns - json_integer_value(json_object_get(node,
									     "written_mono_ns")));
}

/* ---- answers ------------------------------------------------------------------------ */

/* Is this parameter of the target the value? */
static bool has(const char *target, const char *parameter)
{
	const char *at = strstr(target, parameter);
	size_t n = strlen(parameter);

	return at && (at[n] == '&' || !at[n]);
}

static bool is_wanted(const char *target, const json_t *row)
{
	const char *window = json_string_value(json_object_get(row, "window"));

	if (has(target, "active=true") && !json_is_true(json_object_get(row, "active")))
		return false;
	return !window || strcmp(window, has(target, "window=60s") ? "60s" : "all") == 0;
}

static void add_rows(json_t *all, const char *target, const char *host, const json_t *rows)
{
	json_t *row, *named;
	size_t i;

	json_array_foreach((json_t *)rows, i, row) {
		if (!is_wanted(target, row))
			continue;
		named = json_copy(row);
		json_object_set_new(named, "host", json_string(host));
		json_array_append_new(all, named);
	}
}

static json_t *first_status(const struct offline *o)
{
	const char *host;
	json_t *node;

	json_object_foreach(o->shots.nodes, host, node)
		return json_incref(json_object_get(node, "status"));
	return NULL;
}

json_t *offline_answer(void *arg, const char *target)
{
	const struct offline *o = arg;
	size_t n = strcspn(target, "?"), i = 0;
	const char *host;
	json_t *all, *node;

	if (!strncmp(target, "/v1/status", n) && n == strlen("/v1/status"))
		return first_status(o);
	while (i < sizeof(arrays) / sizeof(arrays[0]) &&
	       (strncmp(target, arrays[i].path, n) || arrays[i].path[n]))
		i++;
	if (i == sizeof(arrays) / sizeof(arrays[0]))
		return NULL;
	all = json_array();
	if (strstr(target, "window=1"))		/* figures of the last seconds: none */
		return json_pack("{s:o}", arrays[i].answered, all);
	json_object_foreach(o->shots.nodes, host, node)
		add_rows(all, target, host, json_object_get(node, arrays[i].kept));
	return json_pack("{s:o}", arrays[i].answered, all);
}

/* ---- life ---------------------------------------------------------------------------- */

struct offline *offline_open(const char *const *paths, size_t n, const char *until,
			     enum cli_exit *code)
{
	static const char *const members[] = {
		"written_at", "written_mono_ns", "status", "processes", "comms", "rows",
		"inflight", "peers", "findings", NULL,
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
	move_nodes(o);
	return o;
}

void offline_free(struct offline *o)
{
	if (!o)
		return;
	shots_deinit(&o->shots);
	free(o);
}
