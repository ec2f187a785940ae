/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of communicators, by a table of names: a node may have very many of these. */
#include "cli/common/label.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/base/member.h"
#include "cli/table/report.h"

#define PROCESS 320	/* bytes of a host's name and a pid */
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
	const char *label = member_text(row, "comm_label", NULL);
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
	json_t *names = json_object();

	json_each(row, rows)
		label_learn(names, row);
	return names;
}

void label_rows(json_t *rows, const json_t *names)
{
	json_each(row, rows) {
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

/* Its process: pids of several nodes may be the same.  Without a host, that of the only node. */
static const char *label_process(const json_t *row, const char *host, char key[PROCESS])
{
	snprintf(key, PROCESS, "%s/%lld", host ? host : "",
		 (long long)json_integer_value(json_object_get(row, "pid")));
	return key;
}

static void jobs_put(json_t *jobs, const char *key, json_t *job)
{
	if (json_is_string(job))
		json_object_set(jobs, key, job);
	else
		json_object_del(jobs, key);
}

void label_learn_job(json_t *jobs, const json_t *row, json_t *job)
{
	const char *host = member_text(row, "host", NULL);
	char key[PROCESS];

	if (label_id(row) && json_is_string(job))
		json_object_set(jobs, label_id(row), job);
	if (host)
		jobs_put(jobs, label_process(row, host, key), job);
	jobs_put(jobs, label_process(row, NULL, key), job);
}

json_t *label_jobs(const json_t *ranks)
{
	json_t *jobs = json_object();

	json_each(rank, ranks)
		label_learn_job(jobs, rank, json_object_get(rank, "job"));
	return jobs;
}

void label_put_jobs(json_t *rows, const json_t *jobs)
{
	char key[PROCESS];

	json_each(row, rows) {
		const char *host = member_text(row, "host", NULL);
		json_t *job = json_object_get(jobs, label_id(row));

		if (!job)
			job = json_object_get(jobs, label_process(row, host, key));
		if (job && !json_object_get(row, "job"))
			json_object_set(row, "job", job);
	}
}
