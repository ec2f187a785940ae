/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of communicators, by a table of names: a node may have very many of these. */
#include "cli/common/label.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/table/report.h"

#define SUFFIX 4	/* digits of the id: enough for the groups of one job */

static const char *label_name(const json_t *row)
{
	return json_string_value(report_get(row, "comm_name|name"));
}

static const char *label_id(const json_t *row)
{
	return json_string_value(report_get(row, "comm_id"));
}

static const char *label_suffix(const char *id)
{
	size_t len = strlen(id);

	return len > SUFFIX ? id + len - SUFFIX : id;
}

void label_learn(json_t *names, const json_t *row)
{
	const char *label = json_string_value(json_object_get(row, "comm_label"));
	const char *name = label_name(row), *id = label_id(row);
	json_t *ids;

	if (!name || !id)
		return;
	ids = json_object_get(names, name);
	if (!ids) {
		ids = json_object();
		json_object_set_new(names, name, ids);
	}
	json_object_set_new(ids, id, json_true());
	if (label && strcmp(label, name))
		json_object_set_new(ids, label, json_true());
}

json_t *label_names(const json_t *rows)
{
	json_t *names = json_object(), *row;
	size_t i;

	json_array_foreach((json_t *)rows, i, row)
		label_learn(names, row);
	return names;
}

void label_rows(json_t *rows, const json_t *names)
{
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		const char *name = label_name(row), *id = label_id(row);
		char label[160];

		if (name && id && json_object_size(json_object_get(names, name)) > 1)
			snprintf(label, sizeof(label), "%s:%s", name, label_suffix(id));
		else if (name || id)
			snprintf(label, sizeof(label), "%s", name ? name : id);
		else
			continue;
		json_object_set_new(row, "comm_label", json_string(label));
	}
}

static bool matches_label(const char *wanted, const char *name, const char *id)
{
	const char *colon = strrchr(wanted, ':');

	return colon && strlen(name) == (size_t)(colon - wanted) &&
	       !strncasecmp(wanted, name, strlen(name)) && !strcasecmp(colon + 1, label_suffix(id));
}

bool label_is(const char *wanted, const char *name, const char *id)
{
	if (name && !strcasecmp(wanted, name))
		return true;
	if (name && id && matches_label(wanted, name, id))
		return true;
	if (!strncasecmp(wanted, "0x", 2))
		wanted += 2;
	if (id && !strncasecmp(id, "0x", 2))
		id += 2;
	return id && !strcasecmp(wanted, id);
}

bool label_matches(const char *wanted, const json_t *row)
{
	return label_is(wanted, label_name(row), label_id(row));
}

static const char *row_pid(const json_t *row, char pid[24])
{
	snprintf(pid, 24, "%lld", (long long)json_integer_value(json_object_get(row, "pid")));
	return pid;
}

json_t *label_jobs(const json_t *ranks)
{
	json_t *jobs = json_object(), *rank, *job;
	char pid[24];
	size_t i;

	json_array_foreach((json_t *)ranks, i, rank) {
		job = json_object_get(rank, "job");
		if (!json_is_string(job))
			continue;
		if (label_id(rank))
			json_object_set(jobs, label_id(rank), job);
		json_object_set(jobs, row_pid(rank, pid), job);
	}
	return jobs;
}

void label_put_jobs(json_t *rows, const json_t *jobs)
{
	char pid[24];
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		json_t *job = json_object_get(jobs, label_id(row) ?: row_pid(row, pid));

		if (job && !json_object_get(row, "job"))
			json_object_set(row, "job", job);
	}
}
