/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two formats differ in comments only: OpenMetrics' families are named without the
 * suffix of their samples, and it ends in a line that says so.
 */
#include "ncclinspd/metrics/exposition.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util/utf8.h"

static const struct {
	const char *open, *text;
	const char *suffix;	/* end of a sample's name, no part of OpenMetrics' family */
} types[] = {
	[EXPOSITION_COUNTER] = { "counter", "counter", "_total" },
	[EXPOSITION_GAUGE] = { "gauge", "gauge", "" },
	[EXPOSITION_HISTOGRAM] = { "histogram", "histogram", "" },
	[EXPOSITION_INFO] = { "info", "gauge", "_info" },
};

void exposition_init(struct exposition *e, bool open, size_t max)
{
	*e = (struct exposition){ .open = open };
	json_init(&e->out, max);
}

void exposition_deinit(struct exposition *e)
{
	json_deinit(&e->out);
}

static void exposition_put_text(struct exposition *e, const char *text)
{
	json_append(&e->out, text, strlen(text));
}

void exposition_family(struct exposition *e, const char *name, enum exposition_type type,
		       const char *help)
{
	size_t bytes = strlen(name);

	e->family = name;
	if (e->open)
		bytes -= strlen(types[type].suffix);
	exposition_put_text(e, "# HELP ");
	json_append(&e->out, name, bytes);
	exposition_put_text(e, " ");
	exposition_put_text(e, help);
	exposition_put_text(e, "\n# TYPE ");
	json_append(&e->out, name, bytes);
	exposition_put_text(e, " ");
	exposition_put_text(e, e->open ? types[type].open : types[type].text);
	exposition_put_text(e, "\n");
}

/* One character as a label's value has it: its bytes in the value, and in `out`. */
static size_t label_escape(const char *at, char out[5], size_t *bytes)
{
	size_t n;
	uint32_t code;

	if (*at == '\n' || *at == '\\' || *at == '"') {
		out[0] = '\\';
		out[1] = *at == '\n' ? 'n' : *at;
		*bytes = 2;
		return 1;
	}
	n = utf8_decode(at, strlen(at), &code);
	*bytes = n ? n : 3;
	memcpy(out, n ? at : "\xef\xbf\xbd", *bytes);
	return n ? n : 1;
}

static bool exposition_add_bytes(struct exposition *e, const char *text, size_t bytes)
{
	if (bytes > sizeof(e->labels) - e->label_bytes)
		return false;
	memcpy(e->labels + e->label_bytes, text, bytes);
	e->label_bytes += bytes;
	return true;
}

static bool exposition_add_label(struct exposition *e, const char *name, const char *value)
{
	bool fits = (!e->label_bytes || exposition_add_bytes(e, ",", 1)) &&
		    exposition_add_bytes(e, name, strlen(name)) &&
		    exposition_add_bytes(e, "=\"", 2);

	while (fits && *value) {
		char out[5];
		size_t bytes;

		value += label_escape(value, out, &bytes);
		fits = exposition_add_bytes(e, out, bytes);
	}
	return fits && exposition_add_bytes(e, "\"", 1);
}

void exposition_label(struct exposition *e, const char *name, const char *value)
{
	size_t before = e->label_bytes;

	if (value && *value && !exposition_add_label(e, name, value))
		exposition_unlabel(e, before);
}

void exposition_unlabel(struct exposition *e, size_t bytes)
{
	e->label_bytes = bytes;
}

void exposition_sample(struct exposition *e, const char *suffix, double value)
{
	char text[40];

	if (isnan(value))
		return;
	exposition_put_text(e, e->family);
	exposition_put_text(e, suffix);
	if (e->label_bytes) {
		exposition_put_text(e, "{");
		json_append(&e->out, e->labels, e->label_bytes);
		exposition_put_text(e, "}");
	}
	snprintf(text, sizeof(text), " %.15g\n", value);
	exposition_put_text(e, text);
	e->series++;
}

void exposition_end(struct exposition *e)
{
	if (e->open)
		exposition_put_text(e, "# EOF\n");
}
