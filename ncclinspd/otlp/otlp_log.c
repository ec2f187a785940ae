/* SPDX-License-Identifier: Apache-2.0 */
/* A finding as a log record, one each time that it begins, changes or ends. */
#include <stdio.h>
#include <string.h>

#include "ncclinspd/otlp/otlp_body.h"
#include "util/list.h"

/* Severity numbers: as syslog's info, warning and critical. */
static const struct severity {
	const char *name;
	unsigned number;
} severities[] = { { "info", 9 }, { "warning", 13 }, { "critical", 18 } };

/* An alarm has its own severity; what is but suspected, or over, is information. */
static const struct severity *record_severity(const json_t *finding)
{
	const char *name = json_string_value(json_object_get(finding, "severity"));
	const char *grade = json_string_value(json_object_get(finding, "grade"));

	if (!name || !grade || strcmp(grade, "found") ||
	    !json_is_true(json_object_get(finding, "active")))
		return severities;
	for (size_t i = 0; i < ARRAY_LEN(severities); i++)
		if (!strcmp(severities[i].name, name))
			return &severities[i];
	return severities;
}

static void record_put_finding(struct json *j, const json_t *finding, uint64_t real_ns)
{
	static const char *const but[] = { "text", NULL };
	const struct severity *severity = record_severity(finding);
	const char *kind = json_string_value(json_object_get(finding, "kind"));
	char event[64];

	snprintf(event, sizeof(event), "nccl.finding.%s", kind ? kind : "unknown");
	json_begin(j, '{');
	otlp_put_u64(j, "timeUnixNano", real_ns);
	otlp_put_u64(j, "observedTimeUnixNano", real_ns);
	json_member_u64(j, "severityNumber", severity->number);
	json_member_string(j, "severityText", severity->name);
	json_member_string(j, "eventName", event);
	json_begin_member(j, "body", '{');
	json_member_string(j, "stringValue",
			   json_string_value(json_object_get(finding, "text")) ?: "");
	json_end(j, '}');
	otlp_put_row(j, finding, but);
	otlp_put_ids(j, json_object_get(finding, "comm_id"), json_object_get(finding, "evidence"));
	json_end(j, '}');
}

uint32_t otlp_write_log(struct json *j, struct otlp_text *t, const struct otlp_self *self)
{
	json_t *finding = json_loadb(t->text, t->bytes, 0, NULL);

	if (finding)
		record_put_finding(j, finding, t->real_ns);
	json_decref(finding);
	t->at = t->bytes;
	return finding != NULL;
}
