/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp ps: the processes that use NCCL, or lately did. */
#include <pwd.h>
#include <string.h>

#include "cli/common/listing.h"
#include "cli/doctor/foreign.h"
#include "schema/fields.h"

static const struct column columns[] = {
#include "schema/ps_columns.h"
};

/* The daemon asks no directory service for a name, since it must not wait. */
static void name_user(json_t *row)
{
	const json_t *uid = json_object_get(row, "uid");
	const struct passwd *entry;

	if (report_get(row, "user") || !json_is_integer(uid))
		return;
	entry = getpwuid((uid_t)json_integer_value(uid));
	if (entry)
		json_object_set_new(row, "user", json_string(entry->pw_name));
}

/* Records overwritten before the daemon came are no loss of its own: they are shown apart. */
static void part_losses(json_t *row)
{
	json_t *lost = json_copy(json_object_get(row, "lost"));
	json_t *before = json_object_get(lost, "before");

	if (!lost)
		return;
	if (before)
		json_object_set(row, "before", before);
	json_object_del(lost, "before");
	json_object_set_new(row, "lost", lost);
}

/* The name people use: the pod, else the runtime's, else as much of an id as runtimes show. */
static void name_container(json_t *row)
{
	const char *pod = json_string_value(report_get(row, "container.pod"));
	const char *space = json_string_value(report_get(row, "container.namespace"));
	const char *id = json_string_value(report_get(row, "container.id"));
	json_t *ns_pid = json_object_get(row, "ns_pid");

	if (pod)
		json_object_set_new(row, "container_name",
				    json_sprintf("%s%s%s", space ?: "", space ? "/" : "", pod));
	else if (id)
		json_object_set_new(row, "container_name",
				    json_sprintf("%.*s", strlen(id) == 64 ? 12 : 64, id));
	if (!json_equal(ns_pid, json_object_get(row, "pid")))
		json_object_set(row, "other_pid", ns_pid);
}

/* Nothing is timed yet, whatever will be. */
static void name_settling(json_t *row)
{
	json_t *kernels = (json_t *)report_get(row, "steering.kernels");

	if (!strcmp(json_string_value(kernels) ?: "", "settling"))
		json_object_set(row, "settling", kernels);
}

/* Processes that died come first, those that ended last; on one node by pid. */
static void set_order(json_t *row)
{
	const char *state = json_string_value(report_get(row, "state")) ?: "";
	double order = !strcmp(state, "died") ? 0 : !strcmp(state, "exited") ? 2 : 1;

	if (!report_get(row, "host"))
		order += (double)json_integer_value(report_get(row, "pid")) / INT32_MAX;
	json_object_set_new(row, "order", json_real(order));
}

static void process_dress(json_t *row)
{
	name_settling(row);
	name_user(row);
	part_losses(row);
	name_container(row);
	set_order(row);
}

int cmd_ps(struct cli *cli)
{
	static const struct column order = { NULL, NULL, COL_NUMBER, "order", 0, 0, 0 };
	static const struct listing listing = {
		.array = "processes",
		.asked = PS_FIELDS,
		.sort = &order,
		.ascending = true,
		LISTING_COLUMNS(columns),
		.nothing = "no process uses NCCL with this plugin; start the job with "
			   "NCCL_PROFILER_PLUGIN=insp (see ncclinsp(1))",
		.note = foreign_tell,
		.dress = process_dress,
	};

	return listing_run(cli, &listing, "/v1/processes");
}
