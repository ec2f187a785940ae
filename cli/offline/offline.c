/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's stand-in for snapshots: the files' rows of all nodes are put together as the
 * API's answers, with their times moved to this moment.
 */
#include "cli/offline/offline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/base/must.h"
#include "cli/common/cli.h"
#include "cli/offline/joint.h"
#include "cli/view/ranks.h"

struct offline {
	struct joint joint;
	json_t *findings;	/* all nodes' together; NULL: nobody has asked */
};

/* The path that is asked for, its array's name in an answer, and where files have it. */
static const struct source {
	const char *path, *answered;
	size_t kept;		/* the offset of its text in struct snapshot_read */
	bool by_window;		/* a row for each window; else all figures are of all the time */
} sources[] = {
#define KEPT(name) offsetof(struct snapshot_read, name##_json)
	{ "/v1/processes", "processes", KEPT(processes), false },
	{ "/v1/comms", "comms", KEPT(comms), false },
	{ "/v1/ranks", "ranks", KEPT(ranks), false },
	{ "/v1/summary", "rows", KEPT(rows), true },
	{ "/v1/inflight", "inflight", KEPT(inflight), false },
	{ "/v1/peers", "peers", KEPT(peers), true },
	{ "/v1/queues", "queues", KEPT(queues), true },
	{ "/v1/clocks", "clocks", KEPT(clocks), false },
	{ "/v1/collectives", "collectives", KEPT(collectives), false },
	{ "/v1/findings", "findings", KEPT(findings), false },
#undef KEPT
};

/* ---- answers ------------------------------------------------------------------------ */

/* Is this parameter of the target the value? */
static bool target_has(const char *target, const char *parameter)
{
	const char *at = strstr(target, parameter);
	size_t n = strlen(parameter);

	return at && (at[n] == '&' || !at[n]);
}

/* Is a row of the window that the target names?  It names all the time where it names none. */
static bool target_has_window(const char *target, const json_t *row)
{
	const char *window = member_text(row, "window", NULL);
	char parameter[32];

	if (!window)
		return true;
	snprintf(parameter, sizeof(parameter), "window=%s", window);
	return target_has(target, parameter) ||
	       (!strcmp(window, "all") && !strstr(target, "window="));
}

/* Has it been in flight for as long as the target wants? */
static bool target_has_age(const char *target, const json_t *row)
{
	static const char parameter[] = "older_than_ns=";
	const char *at = strstr(target, parameter);

	return !at || json_integer_value(json_object_get(row, "age_ns")) >=
		      strtoll(at + sizeof(parameter) - 1, NULL, 10);
}

static bool target_wants(const struct source *source, const char *target, const json_t *row)
{
	if (target_has(target, "active=true") && !member_true(row, "active"))
		return false;
	return (!source->by_window || target_has_window(target, row)) &&
	       target_has_age(target, row);
}

/* `host` NULL: rows have it already. */
static void offline_add_rows(json_t *all, const struct source *source, const char *target,
			     const char *host, const json_t *rows)
{
	json_t *named;

	json_each(row, rows) {
		if (!target_wants(source, target, row))
			continue;
		named = json_copy(row);
		if (host)
			json_object_set_new(named, "host", json_string(host));
		json_array_append_new(all, named);
	}
}

/* The rows of each node, with its name. */
static void offline_add_nodes(const struct offline *o, json_t *all, const struct source *source,
			      const char *target)
{
	for (uint32_t i = 0; i < o->joint.shots.nodes.n; i++) {
		const struct shots_node *node = o->joint.shots.nodes.at[i];
		const char *rows = (const char *)&node->rows;
		json_t *part = shots_json(node, (const struct scan_text *)(rows + source->kept));

		offline_add_rows(all, source, target, node->host, part);
		json_decref(part);
	}
}

static bool offline_is_joint(const struct offline *o)
{
	return o->joint.shots.nodes.n > 1 || o->joint.shots.silent;
}

static const json_t *offline_joint_findings(struct offline *o)
{
	o->findings = o->findings ?: joint_findings(&o->joint);
	return o->findings;
}

/* One node's findings are its own; those of several are judged of all together. */
static void offline_add_findings(struct offline *o, json_t *all, const struct source *source,
				 const char *target)
{
	if (offline_is_joint(o))
		offline_add_rows(all, source, target, NULL, offline_joint_findings(o));
	else
		offline_add_nodes(o, all, source, target);
}

static void status_add(json_t *status, const char *group, const char *key, const json_t *other)
{
	json_t *to = json_object_get(status, group);
	json_int_t more = json_integer_value(json_object_get(json_object_get(other, group), key));

	json_object_set_new(to, key, json_integer(json_integer_value(json_object_get(to, key)) +
						  more));
}

static void status_keep_larger(json_t *status, const char *group, const char *key,
			       const json_t *other)
{
	json_t *to = json_object_get(status, group);
	json_t *with = json_object_get(json_object_get(other, group), key);

	if (json_number_value(with) > json_number_value(json_object_get(to, key)))
		json_object_set(to, key, with);
}

/* Keeps a value only if all agree on it. */
static void status_keep_same(json_t *status, const char *key, const json_t *other)
{
	if (!json_equal(json_object_get(status, key), json_object_get(other, key)))
		json_object_set_new(status, key, json_null());
}

static void status_join(json_t *status, const json_t *other)
{
	static const char *const sums[] = { "records", "bytes", "lost", "rejected", "before" };
	static const char *const same[] = {
		"version", "level", "sampling", "loop", "uptime_ns", "started_mono_ns",
	};

	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		status_add(status, "ingest", sums[i], other);
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		status_keep_same(status, same[i], other);
	status_keep_larger(status, "overhead", "share", other);
}

static json_t *offline_status(const struct offline *o)
{
	uint32_t n = o->joint.shots.nodes.n;
	json_t *all = NULL, *status;
	char name[32];

	for (uint32_t i = 0; i < n; i++) {
		const struct shots_node *node = o->joint.shots.nodes.at[i];

		status = shots_json(node, &node->rows.status_json);
		if (!all) {
			all = status;
			continue;
		}
		status_join(all, status);
		json_decref(status);
	}
	snprintf(name, sizeof(name), "%u nodes", n);
	if (n == 1)
		return all;
	all = all ?: json_object();
	json_object_set_new(all, "host", json_string(name));
	return all;
}

static const struct source *source_find(const char *target)
{
	size_t n = strcspn(target, "?");

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		if (!strncmp(target, sources[i].path, n) && !sources[i].path[n])
			return &sources[i];
	return NULL;
}

/* The processes that the findings of all nodes speak of; older files tell no more of them. */
static json_t *offline_watched(const struct offline *o)
{
	json_t *jobs = json_array();
	int live = 0;

	for (uint32_t i = 0; i < o->joint.shots.nodes.n; i++) {
		const struct snapshot_read *rows = &o->joint.shots.nodes.at[i]->rows;

		list_each(p, &rows->processes) {
			live += p->state && !strcmp(p->state, "live");
			if (p->job.id)
				json_array_append_new(jobs, json_string(p->job.id));
		}
	}
	return json_pack("{s:i, s:o}", "live", live, "jobs", jobs);
}

/* The number of different ones: a communicator of several nodes is one. */
static json_t *ranks_count(const json_t *ranks, const char *key)
{
	json_auto_t *seen = json_object();
	const char *text;

	json_each(rank, ranks) {
		text = member_text(rank, key, NULL);
		if (text)
			json_object_set_new(seen, text, json_true());
	}
	return json_integer((json_int_t)json_object_size(seen));
}

static json_t *ranks_add_up(const json_t *ranks, const char *key)
{
	json_int_t sum = 0;

	json_each(rank, ranks)
		sum += json_integer_value(json_object_get(rank, key));
	return json_integer(sum);
}

static json_t *offline_ranks(struct offline *o, json_t *ranks)
{
	if (offline_is_joint(o))
		joint_mark_ranks(ranks, offline_joint_findings(o));
	report_sort(ranks, &ranks_badness, false);
	return json_pack("{s:o, s:o, s:o, s:o, s:I}", "ranks", ranks,
			 "comms_total", ranks_count(ranks, "comm_id"),
			 "gpus_total", ranks_count(ranks, "gpu_uuid"),
			 "in_flight_total", ranks_add_up(ranks, "in_flight"),
			 "ranks_total", (json_int_t)json_array_size(ranks));
}

json_t *offline_answer(void *arg, const char *target)
{
	const struct source *source = source_find(target);
	struct offline *o = arg;
	json_t *all;

	if (!strcmp(target, "/v1/status"))
		return offline_status(o);
	if (!source)
		return NULL;
	all = json_array();
	if (!strcmp(source->answered, "findings")) {
		offline_add_findings(o, all, source, target);
		return json_pack("{s:o, s:o}", "findings", all, "watched", offline_watched(o));
	}
	offline_add_nodes(o, all, source, target);
	if (!strcmp(source->answered, "ranks"))
		return offline_ranks(o, all);
	return json_pack("{s:o}", source->answered, all);
}

/* ---- life ---------------------------------------------------------------------------- */

struct offline *offline_new(const char *until)
{
	struct offline *o = must(calloc(1, sizeof(*o)));

	joint_init(&o->joint);
	o->joint.shots.keeps_text = true;
	o->joint.shots.until = until;
	return o;
}

struct joint *offline_joint(struct offline *o)
{
	return &o->joint;
}

void offline_settle(struct offline *o)
{
	uint64_t now_ns = cli_now_ns();

	shots_settle(&o->joint.shots);
	for (uint32_t i = 0; i < o->joint.shots.nodes.n; i++) {
		struct shots_node *node = o->joint.shots.nodes.at[i];

		if (node->clock.mono_ns != UNKNOWN_U64)
			node->moved_ns = (int64_t)(now_ns - node->clock.mono_ns);
	}
}

struct offline *offline_open(const char *const *paths, size_t n, const char *until,
			     enum cli_exit *code)
{
	struct offline *o = offline_new(until);

	shots_add(&o->joint.shots, paths, n);
	if (!o->joint.shots.files) {
		if (code)
			*code = shots_tell_none(&o->joint.shots, "--from: ");
		offline_free(o);
		return NULL;
	}
	offline_settle(o);
	return o;
}

void offline_free(struct offline *o)
{
	if (!o)
		return;
	json_decref(o->findings);
	joint_deinit(&o->joint);
	free(o);
}

/* ---- what can be asked again ----------------------------------------------------------- */

void offline_live_deinit(struct offline_live *live)
{
	offline_free(live->sample);
	json_decref(live->told);
}

json_t *offline_live_answer(void *arg, const char *target)
{
	struct offline_live *live = arg;

	if (!live->sample || json_object_get(live->told, target)) {
		offline_live_deinit(live);
		live->sample = offline_new(NULL);
		live->told = json_object();
		live->ask(live->arg, offline_joint(live->sample));
		offline_settle(live->sample);
	}
	json_object_set_new(live->told, target, json_true());
	return offline_answer(live->sample, target);
}
