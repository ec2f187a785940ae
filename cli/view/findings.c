/* SPDX-License-Identifier: Apache-2.0 */
/* The findings of /v1/findings in the shape and order that tables show. */
#include "cli/view/findings.h"

#include <stdio.h>
#include <string.h>

#include "cli/base/member.h"
#include "util/text.h"

#define SECOND_NS UINT64_C(1000000000)

enum finding_standing finding_standing(const json_t *row)
{
	if (member_is(row, "severity", "info"))
		return FINDING_IS_NOTE;
	return member_is(row, "grade", "suspected") ? FINDING_IS_SUSPECTED : FINDING_IS_FOUND;
}

int findings_count(const json_t *rows, const char *severity)
{
	int n = 0;

	json_each(row, rows)
		n += member_true(row, "active") &&
		     finding_standing(row) != FINDING_IS_SUSPECTED &&
		     member_is(row, "severity", severity);
	return n;
}

#define SEVERITIES 3
#define ORDERS	   (FINDING_STANDINGS * 2 * (SEVERITIES + 1))

size_t finding_severity(const json_t *row)
{
	static const char *const severities[SEVERITIES] = { "critical", "warning", "info" };
	size_t is = 0;

	while (is < SEVERITIES && !member_is(row, "severity", severities[is]))
		is++;
	return is;
}

/* Faults of the job come before what was not seen of it. */
static size_t severity_order(const json_t *row)
{
	return 2 * ((SEVERITIES + 1) * (size_t)finding_standing(row) + finding_severity(row)) +
	       member_is(row, "kind", "loss");
}

void finding_sentence(const json_t *row, char buf[FINDINGS_SENTENCE])
{
	const char *text = member_text(row, "text", "");
	const char *end = strstr(text, ". ");
	size_t len = end ? (size_t)(end - text) : strlen(text);

	if (!end && len && text[len - 1] == '.')
		len--;
	snprintf(buf, FINDINGS_SENTENCE, "%.*s", (int)len, text);
}

void finding_headline(const json_t *row, char buf[FINDINGS_SENTENCE])
{
	const char *job = member_text(row, "job", "");
	char sentence[FINDINGS_SENTENCE];

	finding_sentence(row, sentence);
	if (*job)
		snprintf(buf, FINDINGS_SENTENCE, "job %.64s: %.*s", job, FINDINGS_SENTENCE - 72,
			 sentence);
	else
		memcpy(buf, sentence, sizeof(sentence));
}

bool finding_has_age(const json_t *row)
{
	return json_is_integer(json_object_get(row, "since_mono_ns"));
}

uint64_t finding_age_ns(const json_t *row, uint64_t now_ns)
{
	const json_t *until = json_object_get(row, "until_mono_ns");
	uint64_t since_ns = member_number(row, "since_mono_ns", now_ns);

	if (json_is_integer(until))
		now_ns = (uint64_t)json_integer_value(until);
	return now_ns > since_ns ? now_ns - since_ns : 0;
}

void finding_due(const json_t *row, uint64_t now_ns, char buf[FINDINGS_DUE])
{
	uint64_t due_ns = member_number(row, "due_mono_ns", 0);
	uint64_t left_ns = due_ns > now_ns ? due_ns - now_ns : 0;
	char left[TEXT_MAX];

	*buf = '\0';
	if (!due_ns)
		return;
	text_duration(left, sizeof(left), (left_ns / SECOND_NS + 1) * SECOND_NS);
	snprintf(buf, FINDINGS_DUE, ", found in %s if it goes on", left);
}

/* ---- as a table --------------------------------------------------------------- */

/* The columns: for programs as the daemon tells them, for people in their own order. */
const struct column finding_columns[] = {
#include "schema/finding_columns.h"
};
const size_t finding_column_count = sizeof(finding_columns) / sizeof(finding_columns[0]);

const struct column finding_weight = { NULL, NULL, COL_INTEGER, "weight", 0, 0, 0 };

/* [3, 0] -> "3,0"; null when it is about no rank. */
static json_t *finding_who(const json_t *row)
{
	char text[128] = "";
	json_t *rank;
	size_t i, used = 0;

	json_array_foreach(json_object_get(row, "ranks"), i, rank)
		if (used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used,
						 "%s%" JSON_INTEGER_FORMAT, i ? "," : "",
						 json_integer_value(rank));
	return json_text(text);
}

static json_t *finding_shape(const json_t *row, uint64_t now_ns)
{
	bool active = member_true(row, "active");
	json_t *copy = json_copy((json_t *)row);
	char sentence[FINDINGS_SENTENCE];

	finding_sentence(row, sentence);
	json_object_set_new(copy, "sentence", json_string(sentence));
	json_object_set_new(copy, "who", finding_who(row));
	json_object_set_new(copy, "age_ns",
			    json_integer((json_int_t)finding_age_ns(row, now_ns)));
	json_object_set_new(copy, "now", json_string(!active ? "over" :
				member_is(row, "grade", "suspected") ? "suspected" : "active"));
	json_object_set_new(copy, "weight",
			    json_integer((json_int_t)(ORDERS - severity_order(row)) +
							 (active ? ORDERS : 0)));
	return copy;
}

json_t *findings_shape(const json_t *rows, uint64_t now_ns)
{
	json_t *shaped = json_array();

	json_each(row, rows)
		json_array_append_new(shaped, finding_shape(row, now_ns));
	return shaped;
}

json_t *findings_active(const json_t *rows)
{
	json_t *active = json_array();

	json_each(row, rows)
		if (member_true(row, "active"))
			json_array_append(active, row);
	return active;
}

json_t *findings_reshape(const json_t *rows, uint64_t now_ns)
{
	json_t *shaped = findings_shape(rows, now_ns);

	report_sort(shaped, &finding_weight, false);
	return shaped;
}
