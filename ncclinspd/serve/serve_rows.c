/* SPDX-License-Identifier: Apache-2.0 */
/* Rows are tables of fields, so that what an answer holds can be read off. */
#include "ncclinspd/serve/serve_impl.h"

#include <stdio.h>

static void put_u64(struct json *j, const void *at)
{
	uint64_t value = *(const uint64_t *)at;

	if (value == UNKNOWN_U64)
		json_put_null(j);
	else
		json_put_u64(j, value);
}

static void put_u64_0(struct json *j, const void *at)
{
	uint64_t value = *(const uint64_t *)at;

	if (!value)
		json_put_null(j);
	else
		json_put_u64(j, value);
}

static void put_u32(struct json *j, const void *at)
{
	json_put_u64(j, *(const uint32_t *)at);
}

static void put_u32_0(struct json *j, const void *at)
{
	uint32_t value = *(const uint32_t *)at;

	if (!value)
		json_put_null(j);
	else
		json_put_u64(j, value);
}

static void put_i32(struct json *j, const void *at)
{
	int32_t value = *(const int32_t *)at;

	if (value == UNKNOWN_I32)
		json_put_null(j);
	else
		json_put_i64(j, value);
}

static void put_bool(struct json *j, const void *at)
{
	json_put_bool(j, *(const bool *)at);
}

static void put_name(struct json *j, const void *at)
{
	json_put_string(j, *(const name_t *)at);
}

static void put_text(struct json *j, const void *at)
{
	const char *text = at;

	json_put_string(j, *text ? text : NULL);
}

static void put_hex(struct json *j, const void *at)
{
	json_put_hex64(j, *(const uint64_t *)at);
}

static void put_hex_0(struct json *j, const void *at)
{
	uint64_t value = *(const uint64_t *)at;

	if (!value)
		json_put_null(j);
	else
		json_put_hex64(j, value);
}

static void put_rate(struct json *j, const void *at)
{
	double value = *(const double *)at;

	if (value < 0)
		json_put_null(j);
	else
		json_put_rounded(j, value);
}

static void put_null(struct json *j, const void *at)
{
	(void)at;
	json_put_null(j);
}

static void (*const putters[])(struct json *j, const void *at) = {
	[FIELD_U64] = put_u64,
	[FIELD_U64_0] = put_u64_0,
	[FIELD_U32] = put_u32,
	[FIELD_U32_0] = put_u32_0,
	[FIELD_I32] = put_i32,
	[FIELD_BOOL] = put_bool,
	[FIELD_NAME] = put_name,
	[FIELD_TEXT] = put_text,
	[FIELD_HEX] = put_hex,
	[FIELD_HEX_0] = put_hex_0,
	[FIELD_RATE] = put_rate,
	[FIELD_NULL] = put_null,
};

static void put_time_at(const struct serve *s, struct json *j, const char *name, uint64_t mono_ns)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_at", name);
	json_key(j, key);
	if (mono_ns)
		json_put_time(j, mono_ns + s->real_offset_ns);
	else
		json_put_null(j);
}

static void put_mono_ns(struct json *j, const char *name, uint64_t mono_ns)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_mono_ns", name);
	json_key(j, key);
	put_u64_0(j, &mono_ns);
}

void rows_put_time(const struct serve *s, struct json *j, const char *name, uint64_t mono_ns)
{
	put_time_at(s, j, name, mono_ns);
	put_mono_ns(j, name, mono_ns);
}

unsigned rows_put_chosen(const struct serve *s, struct json *j, const struct field *fields,
			 const void *row, const struct chosen *c, unsigned n)
{
	for (const struct field *f = fields; f->name; f++, n++) {
		const void *at = (const char *)row + f->offset;

		if (f->kind == FIELD_TIME) {
			if (chosen_wants(c, n))
				put_time_at(s, j, f->name, *(const uint64_t *)at);
			if (chosen_wants(c, ++n))
				put_mono_ns(j, f->name, *(const uint64_t *)at);
			continue;
		}
		if (!chosen_wants(c, n))
			continue;
		json_key(j, f->name);
		if (f->kind == FIELD_PUT)
			f->put(s, j, row);
		else
			putters[f->kind](j, at);
	}
	return n;
}

void rows_put(const struct serve *s, struct json *j, const struct field *fields,
	      const void *row)
{
	rows_put_chosen(s, j, fields, row, &(struct chosen){ .some = false }, 0);
}

unsigned rows_count(const struct field *fields)
{
	unsigned n = 0;

	for (const struct field *f = fields; f->name; f++)
		n += f->kind == FIELD_TIME ? 2 : 1;
	return n;
}

void serve_put_clock(struct json *j, const struct tick_clock *clock)
{
	json_key(j, "ticks");
	json_put_u64(j, clock->ticks);
	json_key(j, "mono_ns");
	json_put_u64(j, clock->mono_ns);
	json_key(j, "ns_per_tick");
	json_put_double(j, clock->ns_per_tick);
}
