/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/findings.h"

#include <stdio.h>
#include <string.h>

bool finding_is(const json_t *row, const char *key, const char *value)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text && !strcmp(text, value);
}

int findings_count(const json_t *rows, const char *severity)
{
	json_t *row;
	size_t i;
	int n = 0;

	json_array_foreach((json_t *)rows, i, row)
		n += json_is_true(json_object_get(row, "active")) &&
		     finding_is(row, "severity", severity);
	return n;
}

json_t *findings_by_severity(const json_t *rows)
{
	static const char *const severities[] = { "critical", "warning", "info" };
	size_t n = sizeof(severities) / sizeof(severities[0]);
	json_t *sorted = rows ? json_array() : NULL, *row;
	size_t i;

	for (size_t k = 0; k <= n && sorted; k++)
		json_array_foreach((json_t *)rows, i, row) {
			size_t is = 0;

			while (is < n && !finding_is(row, "severity", severities[is]))
				is++;
			if (is == k)
				json_array_append(sorted, row);
		}
	return sorted;
}

void finding_sentence(const json_t *row, char buf[FINDINGS_SENTENCE])
{
	const char *text = json_string_value(json_object_get(row, "text")) ?: "";
	const char *end = strstr(text, ". ");

	snprintf(buf, FINDINGS_SENTENCE, "%.*s", end ? (int)(end - text) : (int)strlen(text), text);
}

uint64_t finding_age_ns(const json_t *row, uint64_t now_ns)
{
	const json_t *until = json_object_get(row, "until_mono_ns");
	uint64_t since_ns = (uint64_t)json_integer_value(json_object_get(row, "since_mono_ns"));

	if (json_is_integer(until))
		now_ns = (uint64_t)json_integer_value(until);
	return now_ns > since_ns ? now_ns - since_ns : 0;
}
