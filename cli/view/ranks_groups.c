/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks added up by communicator, by job, and by GPU. */
#include <string.h>

#include "cli/base/member.h"
#include "cli/view/ranks.h"

#include "util/list.h"

#define NAME 640
#define NAME_PART 100	/* the longest part of a value */

const struct column comm_columns[] = {
#include "schema/comm_columns.h"
};
const size_t comm_column_count = ARRAY_LEN(comm_columns);

const struct column job_columns[] = {
#include "schema/job_columns.h"
};
const size_t job_column_count = ARRAY_LEN(job_columns);

/* Columns as wide as they get: lines that follow one another stay in columns. */
const struct column gpu_columns[] = {
#include "schema/gpu_columns.h"
};
const size_t gpu_column_count = ARRAY_LEN(gpu_columns);

/* The way the members of a group become one figure; SHARE: a mean that a hang makes unknown. */
enum fold { SUM, MOST, MEAN, SHARE, WORST_SHARE, FIRST, HISTORY_SUM, HISTORY_MOST };

static const struct {
	const char *key;
	enum fold fold;
} folds[] = {
	{ "ops_per_s", SUM },	 { "in_flight", SUM },	 { "oldest_ns", MOST },
	{ "busbw_gbs", MEAN },	 { "wait", SHARE },	 { "idle", SHARE },
	{ "found", FIRST },	 { "grade", FIRST },	 { "ended", FIRST },
	{ "share", SUM },	 { "blame", WORST_SHARE },
	{ "iteration_ns", MOST }, { "nccl", MEAN },	 { "exposed", MEAN },
	{ "ops_history", HISTORY_SUM }, { "blame_history", HISTORY_MOST },
};

static json_t *members_fold(const json_t *members, const char *key, enum fold how)
{
	double sum = 0, most = 0;
	bool whole = true;
	int n = 0;

	json_each(member, members) {
		json_t *value = json_object_get(member, key);

		if ((how == SHARE || how == WORST_SHARE) &&
		    json_is_true(json_object_get(member, "stalled")))
			return json_null();
		if (!value || json_is_null(value))
			continue;
		if (how == FIRST)
			return json_incref(value);
		whole = whole && json_is_integer(value);
		sum += json_number_value(value);
		most = !n++ || json_number_value(value) > most ? json_number_value(value) : most;
	}
	if (!n)
		return json_null();
	sum = how == MEAN || how == SHARE ? sum / n : how == SUM ? sum : most;
	whole = whole && (how == SUM || how == MOST);
	return whole ? json_integer((json_int_t)sum) : json_real(sum);
}

#define HISTORY_PARTS 16

/* The same for values over time, each by itself; null where none of the members knows any. */
static json_t *members_fold_history(const json_t *members, const char *key, enum fold how)
{
	double parts[HISTORY_PARTS];
	json_t *member, *value, *history;
	size_t i, k, n = 0;

	json_array_foreach((json_t *)members, i, member) {
		json_array_foreach(json_object_get(member, key), k, value) {
			double more = json_is_number(value) ? json_number_value(value) : -1;

			if (k == HISTORY_PARTS)
				break;
			if (k == n)
				parts[n++] = -1;
			if (more < 0)
				continue;
			if (how == HISTORY_SUM && parts[k] >= 0)
				parts[k] += more;
			else if (more > parts[k])
				parts[k] = more;
		}
	}
	history = n ? json_array() : json_null();
	for (k = 0; k < n; k++)
		json_array_append_new(history, parts[k] < 0 ? json_null() : json_real(parts[k]));
	return history;
}

static size_t name_add(char *name, const char *text)
{
	size_t n = strnlen(text, NAME_PART);

	memcpy(name, text, n);
	name[n] = '\0';
	return n;
}

/* The values of the keys, so that no two rows that differ in one read the same. */
static void group_name(const json_t *row, const char *const *keys, char name[NAME])
{
	size_t used = 0;

	for (; *keys && used + NAME_PART + 2 < NAME; keys++) {
		const json_t *value = json_object_get(row, *keys);

		if (json_is_string(value))
			used += name_add(name + used, json_string_value(value));
		else if (json_is_integer(value))
			used += (size_t)snprintf(name + used, NAME - used,
						 "%" JSON_INTEGER_FORMAT,
						 json_integer_value(value));
		else
			used += name_add(name + used, "\x1e");
		used += name_add(name + used, "\x1f");
	}
}

/* Rows that agree in all of the keys, in the order of the first of each. */
static json_t *ranks_group(const json_t *ranks, const char *const *keys)
{
	json_t *groups = json_object();
	char name[NAME];

	json_each(row, ranks) {
		json_t *members;

		group_name(row, keys, name);
		members = json_object_get(groups, name);
		if (!members)
			json_object_set_new_nocheck(groups, name, members = json_array());
		json_array_append(members, row);
	}
	return groups;
}

static json_int_t members_count_distinct(const json_t *members, const char *const *keys)
{
	json_auto_t *seen = json_object();
	char name[NAME];

	json_each(row, members) {
		group_name(row, keys, name);
		json_object_set_new_nocheck(seen, name, json_true());
	}
	return (json_int_t)json_object_size(seen);
}

static const char *const comm_keys[] = { "comm_id", "comm_name", "nranks", "job", "user", NULL };
static const char *const pid_keys[] = { "pid", NULL };
/* Processes that share a GPU have a row each; where no GPU is known, a process stands for it. */
static const char *const gpu_keys[] = { "gpu_uuid", "pci_bus_id", "gpu_index", "pid", "job",
					 NULL };
static const char *const job_keys[] = { "job", "user", NULL };

static json_t *members_sum_up(const json_t *members, const char *const *keys)
{
	const json_t *first = json_array_get(members, 0);
	json_t *row = json_object();

	for (const char *const *key = keys; *key; key++)
		json_object_set(row, *key, json_object_get(first, *key));
	json_object_set(row, "user", json_object_get(first, "user"));
	json_object_set(row, "uid", json_object_get(first, "uid"));
	for (size_t i = 0; i < ARRAY_LEN(folds); i++)
		json_object_set_new(row, folds[i].key,
				    folds[i].fold >= HISTORY_SUM ?
				    members_fold_history(members, folds[i].key, folds[i].fold) :
				    members_fold(members, folds[i].key, folds[i].fold));
	return row;
}

static json_t *sum_comm(const json_t *members)
{
	json_t *row = members_sum_up(members, comm_keys);

	json_object_set(row, "comm_label",
			json_object_get(json_array_get(members, 0), "comm_label"));
	json_object_set_new(row, "here", json_integer((json_int_t)json_array_size(members)));
	return row;
}

static json_t *sum_job(const json_t *members)
{
	json_t *row = members_sum_up(members, job_keys);

	json_object_set_new(row, "processes",
			    json_integer(members_count_distinct(members, pid_keys)));
	json_object_set_new(row, "comms", json_integer(members_count_distinct(members, comm_keys)));
	return row;
}

static json_t *sum_gpu(const json_t *members)
{
	json_t *row = members_sum_up(members, gpu_keys);

	json_object_set_new(row, "comms", json_integer(members_count_distinct(members, comm_keys)));
	return row;
}

static json_t *groups_sum(const json_t *ranks, const char *const *keys,
			  json_t *(*sum)(const json_t *members))
{
	json_t *groups = ranks_group(ranks, keys), *rows = json_array(), *members;
	const char *key;

	json_object_foreach(groups, key, members)
		json_array_append_new(rows, sum(members));
	json_decref(groups);
	return rows;
}

json_t *ranks_by_comm(const json_t *ranks)
{
	return groups_sum(ranks, comm_keys, sum_comm);
}

json_t *ranks_by_job(const json_t *ranks)
{
	return groups_sum(ranks, job_keys, sum_job);
}

json_t *ranks_by_gpu(const json_t *ranks)
{
	return groups_sum(ranks, gpu_keys, sum_gpu);
}

/* ---- the tree ------------------------------------------------------------------- */

static const char *value_shown(const json_t *row, const char *key, char number[32])
{
	const json_t *value = json_object_get(row, key);

	if (!json_is_integer(value))
		return json_string_value(value) ?: "-";
	snprintf(number, 32, "%lld", (long long)json_integer_value(value));
	return number;
}

/* Takes the row over. */
static void tree_grow(json_t *tree, json_t *row, enum ranks_branch branch)
{
	static const struct {
		const char *indent;
		const char *what;
		const char *key;
	} names[] = {
		[RANKS_JOB] = { "", "job ", "job" },
		[RANKS_COMM] = { "  ", "", "comm_label" },
		[RANKS_RANK] = { "    ", "rank ", "rank" },
	};
	char text[128], number[32];

	snprintf(text, sizeof(text), "%s%s%s", names[branch].indent, names[branch].what,
		 value_shown(row, names[branch].key, number));
	json_object_set_new(row, "tree", json_string(text));
	json_object_set_new(row, "branch", json_integer(branch));
	json_array_append_new(tree, row);
}

static void grow_comms(json_t *tree, const json_t *of_job)
{
	json_t *comms = ranks_group(of_job, comm_keys), *members;
	const char *key;

	json_object_foreach(comms, key, members) {
		tree_grow(tree, sum_comm(members), RANKS_COMM);
		json_each(rank, members)
			tree_grow(tree, json_copy(rank), RANKS_RANK);
	}
	json_decref(comms);
}

json_t *ranks_tree(const json_t *ranks)
{
	json_t *tree = json_array(), *jobs = ranks_group(ranks, job_keys), *members;
	const char *key;

	json_object_foreach(jobs, key, members) {
		tree_grow(tree, sum_job(members), RANKS_JOB);
		grow_comms(tree, members);
	}
	json_decref(jobs);
	return tree;
}
