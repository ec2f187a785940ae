/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filters by user, job and GPU for rows that do not tell these: the rows are matched with
 * the ranks that /v1/processes and /v1/comms name.
 */
#include "cli/common/members.h"

#include <string.h>

#include "cli/base/member.h"
#include "cli/table/report.h"

#define NAME 160

bool members_asked(const struct cli *cli)
{
	return cli->uid != CLI_ANY || cli->job || cli->gpu;
}

static void take(json_t *to, const char *key, const json_t *from, const char *path)
{
	const json_t *value = report_get(from, path);

	json_object_set(to, key, value ? (json_t *)value : json_null());
}

static json_t *new_member(const json_t *process)
{
	json_t *member = json_object();

	take(member, "pid", process, "pid");
	take(member, "uid", process, "uid");
	take(member, "job", process, "job.id");
	return member;
}

/* ---- by key: a node has thousands of members, and a table thousands of rows ------------- */

/* The list of those that have this value there, by which a row finds them. */
static void list_name(char name[NAME], const char *path, const json_t *value)
{
	if (json_is_integer(value))
		snprintf(name, NAME, "%s %" JSON_INTEGER_FORMAT, path, json_integer_value(value));
	else
		snprintf(name, NAME, "%s %s", path, json_string_value(value) ?: "");
}

static json_t *list_of(const json_t *lists, const char *path, const json_t *value)
{
	char name[NAME];

	list_name(name, path, value);
	return json_object_get(lists, name);
}

static void list_append(json_t *lists, const char *path, const json_t *value, json_t *item)
{
	json_t *list = list_of(lists, path, value);
	char name[NAME];

	if (!list) {
		list_name(name, path, value);
		json_object_set_new_nocheck(lists, name, list = json_array());
	}
	json_array_append(list, item);
}

/* Takes the member over. */
static void members_add(json_t *members, json_t *member)
{
	list_append(members, "", NULL, member);
	list_append(members, "comm_id", report_get(member, "comm_id"), member);
	list_append(members, "pid", report_get(member, "pid"), member);
	json_decref(member);
}

static void add_rank(json_t *members, const json_t *by_pid, const json_t *comm,
		     const json_t *rank)
{
	json_each(process, list_of(by_pid, "pid", report_get(rank, "pid"))) {
		json_t *member = new_member(process);

		take(member, "comm_id", comm, "comm_id");
		take(member, "comm_name", comm, "name");
		take(member, "nranks", comm, "nranks");
		take(member, "rank", rank, "rank");
		take(member, "gpu_uuid", rank, "gpu_uuid");
		take(member, "pci_bus_id", rank, "pci_bus_id");
		take(member, "gpu_index", rank, "gpu_index");
		members_add(members, member);
	}
}

json_t *members_join(const json_t *processes, const json_t *comms)
{
	json_auto_t *by_pid = json_object();
	json_t *members = json_object();

	json_each(process, processes)
		list_append(by_pid, "pid", report_get(process, "pid"), process);
	json_each(comm, comms)
		json_each(rank, json_object_get(comm, "local_ranks"))
			add_rank(members, by_pid, comm, rank);
	json_each(process, processes)
		if (!list_of(members, "pid", report_get(process, "pid")))
			members_add(members, new_member(process));
	return members;
}

int members_get(const struct cli *cli, json_t **members)
{
	json_auto_t *processes = NULL, *comms = NULL;
	int r;

	r = client_get(cli->client, "/v1/processes?fields=pid,uid,job", &processes);
	if (!r)
		r = client_get(cli->client, "/v1/comms?fields=comm_id,name,nranks,local_ranks.rank,"
			       "local_ranks.pid,local_ranks.gpu_uuid,local_ranks.pci_bus_id,"
			       "local_ranks.gpu_index",
			       &comms);
	if (!r)
		*members = members_join(json_object_get(processes, "processes"),
					json_object_get(comms, "comms"));
	return r;
}

static bool contains(const json_t *member, const char *key, const char *part)
{
	const char *text = member_text(member, key, NULL);

	return text && strcasestr(text, part);
}

static bool is_number(const json_t *row, const char *key, int64_t wanted)
{
	const json_t *value = json_object_get(row, key);

	return wanted == CLI_ANY || (json_is_integer(value) && json_integer_value(value) == wanted);
}

/* A number of few digits is the GPU's in nvidia-smi. */
static bool gpu_fits(const json_t *row, const char *wanted)
{
	char *end;
	long index = strtol(wanted, &end, 10);

	if (!*end && end > wanted && end - wanted <= 3)
		return is_number(row, "gpu_index", index);
	return contains(row, "gpu_uuid", wanted) || contains(row, "pci_bus_id", wanted);
}

bool members_fit(const struct cli *cli, const json_t *row)
{
	char job[128];

	if (!is_number(row, "pid", cli->pid) || !is_number(row, "uid", cli->uid))
		return false;
	if (cli->job && (!report_text(row, "job", job, sizeof(job)) || strcmp(job, cli->job)))
		return false;
	return !cli->gpu || gpu_fits(row, cli->gpu);
}

/* The process's profiler API may not tell its ranks; its rows may know them all the same. */
static bool agrees(const json_t *member, const json_t *row, const char *of_member, const char *path)
{
	const json_t *has = report_get(member, of_member), *wants = report_get(row, path);

	return !wants || (has ? json_equal(has, wants) : !!report_get(row, "pid"));
}

/* A key that a row does not know cannot contradict; a row that knows none is about nobody. */
static bool concerns(const json_t *row, const json_t *member)
{
	static const char *const keys[][2] = {
		{ "pid", "pid" }, { "comm_id", "comm_id" }, { "comm_name", "comm_name|name" },
		{ "nranks", "nranks" }, { "rank", "rank" }, { "gpu_uuid", "gpu_uuid" },
	};
	bool known = false;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (!agrees(member, row, keys[i][0], keys[i][1]))
			return false;
		known = known || report_get(row, keys[i][1]);
	}
	return known;
}

static bool list_wants(const struct cli *cli, const json_t *list, const json_t *row)
{
	json_each(member, list)
		if (members_fit(cli, member) && concerns(row, member))
			return true;
	return false;
}

/* A member without a communicator does not contradict a row of one. */
bool members_want(const struct cli *cli, const json_t *members, const json_t *row)
{
	const json_t *comm = report_get(row, "comm_id"), *pid = report_get(row, "pid");

	if (comm)
		return list_wants(cli, list_of(members, "comm_id", comm), row) ||
		       list_wants(cli, list_of(members, "comm_id", NULL), row);
	return list_wants(cli, pid ? list_of(members, "pid", pid) : list_of(members, "", NULL),
			  row);
}
