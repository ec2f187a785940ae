/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of /metrics as metrics of OTLP: the same families, names and labels, since it is made
 * of the same lines.  A body that is full ends between two samples, and the next one begins with
 * the same family.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/otlp/otlp_body.h"
#include "util/list.h"

#define BUCKETS 64
#define LABEL_BYTES 2048

/* A line of text; `end` is where it ends. */
struct points_line {
	const char *at, *end;
};

static struct points_line line_at(const struct otlp_text *t, size_t at)
{
	const char *begin = t->text + at, *end = memchr(begin, '\n', t->bytes - at);

	return (struct points_line){ begin, end ? end : t->text + t->bytes };
}

static bool line_begins(struct points_line l, const char *with)
{
	size_t n = strlen(with);

	return (size_t)(l.end - l.at) >= n && !memcmp(l.at, with, n);
}

static void line_skip(struct otlp_text *t)
{
	size_t next = (size_t)(line_at(t, t->at).end - t->text) + 1;

	t->at = next < t->bytes ? next : t->bytes;
}

/* The word behind `skip` others, cut to fit. */
static void line_word(struct points_line l, int skip, char *out, size_t size)
{
	const char *at = l.at, *end;

	while (skip-- && at < l.end) {
		const char *space = memchr(at, ' ', (size_t)(l.end - at));

		at = space ? space + 1 : l.end;
	}
	end = memchr(at, ' ', (size_t)(l.end - at));
	snprintf(out, size, "%.*s", (int)((end ? end : l.end) - at), at);
}

/* ---- samples -------------------------------------------------------------------------------- */

/* The labels lie between the braces, the value behind them. */
struct points_sample {
	struct points_line name, labels;
	double value;
};

static struct points_sample sample_read(struct points_line l)
{
	const char *name_end = l.at, *end = l.end;
	struct points_sample s = { .labels = { l.end, l.end } };

	while (name_end < l.end && *name_end != '{' && *name_end != ' ')
		name_end++;
	while (end > name_end && *end != ' ')	/* no value has a space in it */
		end--;
	s.name = (struct points_line){ l.at, name_end };
	if (*name_end == '{')
		s.labels = (struct points_line){ name_end + 1, end - 1 };
	s.value = strtod(end, NULL);
	return s;
}

static bool sample_is(const struct points_sample *s, const char *suffix)
{
	size_t n = strlen(suffix), bytes = (size_t)(s->name.end - s->name.at);

	return bytes >= n && !memcmp(s->name.end - n, suffix, n);
}

/* One label: name and value, without escapes.  False: there is none. */
static bool label_next(struct points_line *l, char name[64], char value[LABEL_BYTES])
{
	size_t n = 0;
	const char *equals = memchr(l->at, '=', (size_t)(l->end - l->at));

	if (!equals)
		return false;
	snprintf(name, 64, "%.*s", (int)(equals - l->at), l->at);
	for (l->at = equals + 2; l->at < l->end && *l->at != '"'; l->at++) {
		char c = *l->at;

		if (c == '\\')
			c = *++l->at == 'n' ? '\n' : *l->at;
		if (n < LABEL_BYTES - 1)
			value[n++] = c;
	}
	value[n] = '\0';
	l->at += l->at + 1 < l->end ? 2 : l->end - l->at;
	return true;
}

static void point_begin(struct json *j, const struct points_sample *s, const struct otlp_text *t,
			uint64_t started_ns)
{
	struct points_line labels = s->labels;
	char name[64], value[LABEL_BYTES];

	json_begin(j, '{');
	json_begin_member(j, "attributes", '[');
	while (label_next(&labels, name, value))
		otlp_put_attribute(j, name, value);
	json_end(j, ']');
	if (started_ns)
		otlp_put_u64(j, "startTimeUnixNano", started_ns);
	otlp_put_u64(j, "timeUnixNano", t->real_ns);
}

static void point_put_number(struct json *j, struct otlp_text *t, uint64_t started_ns)
{
	struct points_sample s = sample_read(line_at(t, t->at));

	point_begin(j, &s, t, started_ns);
	json_key(j, "asDouble");
	json_put_double(j, s.value);
	json_end(j, '}');
	line_skip(t);
}

/* The bound of a bucket. */
static double bucket_bound(const struct points_sample *s)
{
	struct points_line labels = s->labels;
	char name[64], value[LABEL_BYTES];

	while (label_next(&labels, name, value))
		if (!strcmp(name, "le"))
			return strtod(value, NULL);
	return 0;
}

static void histogram_put(struct json *j, const double *counts, const double *bounds, uint32_t n)
{
	json_begin_member(j, "bucketCounts", '[');
	for (uint32_t i = 0; i < n; i++) {
		char text[32];

		snprintf(text, sizeof(text), "%.0f", counts[i] - (i ? counts[i - 1] : 0));
		json_put_string(j, text);
	}
	json_end(j, ']');
	json_begin_member(j, "explicitBounds", '[');
	for (uint32_t i = 0; i + 1 < n; i++)
		json_put_double(j, bounds[i]);
	json_end(j, ']');
}

/* Its buckets, each with all below it; its sum; its count. */
static void point_put_histogram(struct json *j, struct otlp_text *t, uint64_t started_ns)
{
	double counts[BUCKETS], bounds[BUCKETS];
	struct points_sample s = sample_read(line_at(t, t->at));
	uint32_t n = 0;

	while (sample_is(&s, "_bucket") && n < BUCKETS && t->at < t->bytes) {
		counts[n] = s.value;
		bounds[n++] = bucket_bound(&s);
		line_skip(t);
		s = sample_read(line_at(t, t->at));
	}
	point_begin(j, &s, t, started_ns);
	json_key(j, "sum");
	json_put_double(j, s.value);
	line_skip(t);
	otlp_put_u64(j, "count", (uint64_t)sample_read(line_at(t, t->at)).value);
	line_skip(t);
	histogram_put(j, counts, bounds, n);
	json_end(j, '}');
}

/* ---- families ------------------------------------------------------------------------------- */

static const struct points_type {
	const char *name, *member;
	bool sum, counts;
	void (*put)(struct json *j, struct otlp_text *t, uint64_t started_ns);
} types[] = {
	{ "gauge", "gauge", false, false, point_put_number },
	{ "counter", "sum", true, true, point_put_number },
	{ "histogram", "histogram", false, true, point_put_histogram },
};

/* Units by the end of a name, which Prometheus' own rules give it. */
static const struct {
	const char *end, *unit;
} units[] = {
	{ "_bytes_per_second", "By/s" }, { "_seconds", "s" }, { "_seconds_total", "s" },
	{ "_bytes", "By" }, { "_bytes_total", "By" }, { "_ratio", "1" },
};

static void family_put_unit(struct json *j, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		size_t n = strlen(name), end = strlen(units[i].end);

		if (n > end && !strcmp(name + n - end, units[i].end)) {
			json_member_string(j, "unit", units[i].unit);
			return;
		}
	}
}

/* The two lines of comment that a family begins with; t->at is behind them then. */
static const struct points_type *family_begin(struct json *j, struct otlp_text *t)
{
	struct points_line help = line_at(t, t->family);
	struct points_line type = line_at(t, (size_t)(help.end - t->text) + 1);
	char name[128], text[1024], word[16];
	const struct points_type *found = types;

	line_word(help, 2, name, sizeof(name));
	snprintf(text, sizeof(text), "%.*s", (int)(help.end - help.at), help.at);
	line_word(type, 3, word, sizeof(word));
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (!strcmp(types[i].name, word))
			found = &types[i];
	json_begin(j, '{');
	json_member_string(j, "name", name);
	json_member_string(j, "description", text + strlen("# HELP ") + strlen(name) + 1);
	family_put_unit(j, name);
	json_begin_member(j, found->member, '{');
	if (found->sum)
		json_member_bool(j, "isMonotonic", true);
	if (found->counts)
		json_member_u64(j, "aggregationTemporality", 2);	/* cumulative */
	json_begin_member(j, "dataPoints", '[');
	return found;
}

static uint32_t family_put(struct json *j, struct otlp_text *t, const struct otlp_self *self)
{
	const struct points_type *type = family_begin(j, t);
	uint32_t n = 0;

	for (; t->at < t->bytes && t->text[t->at] != '#' && j->bytes < OTLP_BODY_BYTES; n++)
		type->put(j, t, type->counts ? self->started_ns : 0);
	for (const char *end = "]}}"; *end; end++)
		json_end(j, *end);
	return n;
}

uint32_t otlp_write_points(struct json *j, struct otlp_text *t, const struct otlp_self *self)
{
	uint32_t n = 0;

	while (t->at < t->bytes && j->bytes < OTLP_BODY_BYTES) {
		if (line_begins(line_at(t, t->at), "# HELP "))
			t->family = t->at;
		if (t->text[t->at] == '#')
			line_skip(t);
		else
			n += family_put(j, t, self);
	}
	return n;
}
