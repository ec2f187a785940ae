/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame of a request, and what logs, spans and data points have in common: attributes are
 * the members of a row of the API, whatever their types.
 */
#include "ncclinspd/otlp/otlp_body.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "util/list.h"

const struct otlp_form otlp_forms[OTLP_SIGNAL_END] = {
	[OTLP_LOGS] = { "/v1/logs", "resourceLogs", "scopeLogs", "logRecords",
			"rejectedLogRecords", otlp_write_log },
	[OTLP_TRACES] = { "/v1/traces", "resourceSpans", "scopeSpans", "spans", "rejectedSpans",
			  otlp_write_spans },
	[OTLP_METRICS] = { "/v1/metrics", "resourceMetrics", "scopeMetrics", "metrics",
			   "rejectedDataPoints", otlp_write_points },
};

void otlp_put_u64(struct json *j, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	json_member_string(j, key, text);
}

void otlp_put_attribute(struct json *j, const char *key, const char *value)
{
	json_begin(j, '{');
	json_member_string(j, "key", key);
	json_begin_member(j, "value", '{');
	json_member_string(j, "stringValue", value);
	json_end(j, '}');
	json_end(j, '}');
}

void otlp_body_begin(struct json *j, const struct otlp_form *form, const struct otlp_self *self)
{
	json_begin(j, '{');
	json_begin_member(j, form->resources, '[');
	json_begin(j, '{');
	json_begin_member(j, "resource", '{');
	json_begin_member(j, "attributes", '[');
	otlp_put_attribute(j, "service.name", "ncclinspd");
	otlp_put_attribute(j, "service.version", NCCLINSP_VERSION);
	otlp_put_attribute(j, "service.instance.id", self->instance);
	otlp_put_attribute(j, "host.name", self->host);
	json_end(j, ']');
	json_end(j, '}');
	json_begin_member(j, form->scopes, '[');
	json_begin(j, '{');
	json_begin_member(j, "scope", '{');
	json_member_string(j, "name", "ncclinspd");
	json_member_string(j, "version", NCCLINSP_VERSION);
	json_end(j, '}');
	json_begin_member(j, form->items, '[');
}

void otlp_body_end(struct json *j)
{
	for (const char *end = "]}]}]}"; *end; end++)
		json_end(j, *end);
}

/* ---- values --------------------------------------------------------------------------- */

static void value_put(struct json *j, const json_t *value);

static void value_put_array(struct json *j, const json_t *array)
{
	size_t i;
	json_t *value;

	json_begin_member(j, "arrayValue", '{');
	json_begin_member(j, "values", '[');
	json_array_foreach((json_t *)array, i, value)
		value_put(j, value);
	json_end(j, ']');
	json_end(j, '}');
}

static void member_put(struct json *j, const char *key, const json_t *value)
{
	json_begin(j, '{');
	json_member_string(j, "key", key);
	json_key(j, "value");
	value_put(j, value);
	json_end(j, '}');
}

static void value_put_object(struct json *j, const json_t *object)
{
	const char *key;
	json_t *value;

	json_begin_member(j, "kvlistValue", '{');
	json_begin_member(j, "values", '[');
	json_object_foreach((json_t *)object, key, value)
		if (!json_is_null(value))
			member_put(j, key, value);
	json_end(j, ']');
	json_end(j, '}');
}

/* Null is a value without anything in it. */
static void value_put(struct json *j, const json_t *value)
{
	char number[24];

	json_begin(j, '{');
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		value_put_object(j, value);
		break;
	case JSON_ARRAY:
		value_put_array(j, value);
		break;
	case JSON_STRING:
		json_member_string(j, "stringValue", json_string_value(value));
		break;
	case JSON_INTEGER:
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
			 json_integer_value(value));
		json_member_string(j, "intValue", number);
		break;
	case JSON_REAL:
		json_key(j, "doubleValue");
		json_put_double(j, json_real_value(value));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		json_member_bool(j, "boolValue", json_is_true(value));
		break;
	case JSON_NULL:
		break;
	}
	json_end(j, '}');
}

/* Fields that OpenTelemetry has a name for; all others are "nccl." and their own. */
static const struct convention {
	const char *field, *attribute;
} conventions[] = {
	{ "pid", "process.pid" },
};

static void row_put_member(struct json *j, const char *name, const json_t *value)
{
	char key[128];

	snprintf(key, sizeof(key), "nccl.%s", name);
	for (size_t i = 0; i < ARRAY_LEN(conventions); i++)
		if (!strcmp(conventions[i].field, name))
			snprintf(key, sizeof(key), "%s", conventions[i].attribute);
	member_put(j, key, value);
}

static bool name_is_left_out(const char *name, const char *const *but)
{
	size_t n = strlen(name), end = strlen("_mono_ns");

	if (n > end && !strcmp(name + n - end, "_mono_ns"))
		return true;
	while (*but && strcmp(*but, name))
		but++;
	return *but;
}

void otlp_put_row(struct json *j, const json_t *row, const char *const *but)
{
	const char *name;
	json_t *value;

	json_begin_member(j, "attributes", '[');
	json_object_foreach((json_t *)row, name, value)
		if (!json_is_null(value) && !name_is_left_out(name, but))
			row_put_member(j, name, value);
	json_end(j, ']');
}

uint64_t otlp_time(const json_t *row, const char *name)
{
	const char *text = json_string_value(json_object_get(row, name));
	struct tm tm = { 0 };
	const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S.", &tm) : NULL;

	/* The API's have nine decimals. */
	return end ? (uint64_t)timegm(&tm) * 1000000000 + strtoull(end, NULL, 10) : 0;
}

/* ---- ids ------------------------------------------------------------------------------- */

/* FNV-1a: simple enough for anybody else to find a trace by its operation. */
static uint64_t id_hash(const char *text)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	while (*text)
		hash = (hash ^ (unsigned char)*text++) * UINT64_C(1099511628211);
	return hash;
}

static const char *text_of(const json_t *row, const char *name)
{
	return json_string_value(json_object_get(row, name)) ?: "";
}

/*
 * A trace is the communicator's id, then the hash of COMM_ID/FUNC/SEQ; a span is the hash of that
 * and /RANK.  Without a sequence number it is of one rank alone: its token is in place of it.
 */
void otlp_put_ids(struct json *j, const json_t *comm_id, const json_t *operation)
{
	const json_t *seq = json_object_get(operation, "seq");
	const char *token = text_of(operation, "token"), *comm = json_string_value(comm_id);
	char text[160], id[33], number[24] = "";

	if (json_is_integer(seq))
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(seq));
	if (!comm || strlen(comm) != 18 || (!*number && !*token))
		return;
	snprintf(text, sizeof(text), "%s/%s/%s", comm, text_of(operation, "func"),
		 *number ? number : token);
	snprintf(id, sizeof(id), "%s%016" PRIx64, comm + 2, id_hash(text));
	json_member_string(j, "traceId", id);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "/%" JSON_INTEGER_FORMAT,
		 json_integer_value(json_object_get(operation, "rank")));
	snprintf(id, sizeof(id), "%016" PRIx64, id_hash(text));
	if (*token)
		json_member_string(j, "spanId", id);
}
