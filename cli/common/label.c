/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/common/label.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/table/report.h"

#define SUFFIX 4	/* digits of the id: enough for the groups of one job */

static const char *name_of(const json_t *row)
{
	return json_string_value(report_get(row, "comm_name|name"));
}

static const char *id_of(const json_t *row)
{
	return json_string_value(report_get(row, "comm_id"));
}

static const char *suffix_of(const char *id)
{
	size_t len = strlen(id);

	return len > SUFFIX ? id + len - SUFFIX : id;
}

/* Name -> its only id, or true when there are several. */
static json_t *owners(const json_t *known)
{
	json_t *map = json_object(), *row;
	size_t i;

	json_array_foreach((json_t *)known, i, row) {
		const char *name = name_of(row), *id = id_of(row);
		const json_t *owner = name ? json_object_get(map, name) : NULL;

		if (!name || !id)
			continue;
		if (!owner)
			json_object_set_new(map, name, json_string(id));
		else if (json_is_string(owner) && strcmp(json_string_value(owner), id))
			json_object_set_new(map, name, json_true());
	}
	return map;
}

void label_rows(json_t *rows, const json_t *known)
{
	json_t *map = owners(known), *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		const char *name = name_of(row), *id = id_of(row);
		char label[160];

		if (name && id && json_is_true(json_object_get(map, name)))
			snprintf(label, sizeof(label), "%s:%s", name, suffix_of(id));
		else if (name || id)
			snprintf(label, sizeof(label), "%s", name ? name : id);
		else
			continue;
		json_object_set_new(row, "comm_label", json_string(label));
	}
	json_decref(map);
}

void label_learn(json_t *known, const json_t *row)
{
	const char *name = name_of(row), *id = id_of(row);
	json_t *have;
	size_t i;

	if (!name || !id)
		return;
	json_array_foreach(known, i, have)
		if (!strcmp(name_of(have) ?: "", name) && !strcmp(id_of(have) ?: "", id))
			return;
	json_array_append_new(known, json_pack("{s:s s:s}", "comm_name", name, "comm_id", id));
}

static bool matches_label(const char *wanted, const char *name, const char *id)
{
	const char *colon = strrchr(wanted, ':');

	return colon && strlen(name) == (size_t)(colon - wanted) &&
	       !strncasecmp(wanted, name, strlen(name)) && !strcasecmp(colon + 1, suffix_of(id));
}

bool label_matches(const char *wanted, const json_t *row)
{
	const char *name = name_of(row), *id = id_of(row);

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
