/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a comma is due is read off the last byte: no value ends in an opening
 * bracket, a colon or a newline, since strings end in their quote.
 */
#include "util/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/utf8.h"

#define FIRST_ROOM	1024

static bool reserve(struct json *j, size_t bytes)
{
	size_t room = j->room ? j->room : FIRST_ROOM;
	char *text;

	if (j->error)
		return false;
	if (bytes <= j->room - j->bytes)
		return true;
	if (bytes > j->max - j->bytes) {
		j->error = -E2BIG;
		return false;
	}
	while (room - j->bytes < bytes)
		room *= 2;
	text = realloc(j->text, room);
	if (!text) {
		j->error = -ENOMEM;
		return false;
	}
	j->text = text;
	j->room = room;
	return true;
}

static void put(struct json *j, const char *s, size_t bytes)
{
	if (!reserve(j, bytes))
		return;
	memcpy(j->text + j->bytes, s, bytes);
	j->bytes += bytes;
}

static void separate(struct json *j)
{
	if (j->bytes && !memchr("{[:\n", j->text[j->bytes - 1], 4))
		put(j, ",", 1);
}

static void put_value(struct json *j, const char *s, size_t bytes)
{
	separate(j);
	put(j, s, bytes);
}

/* Write what must not stand in a string as it is; 1, the bytes it replaces. */
static size_t put_escaped(struct json *j, unsigned char c)
{
	static const char letter[] = "\bb\ff\nn\rr\tt\"\"\\\\";
	char text[8];

	if (c >= 0x80) {
		put(j, "\xef\xbf\xbd", 3);	/* U+FFFD */
		return 1;
	}
	for (const char *l = letter; *l; l += 2) {
		if (*l == (char)c) {
			put(j, (char[]){ '\\', l[1] }, 2);
			return 1;
		}
	}
	snprintf(text, sizeof(text), "\\u%04x", c);
	put(j, text, 6);
	return 1;
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

void json_put_string(struct json *j, const char *s)
{
	const unsigned char *u = (const unsigned char *)s;

	if (!s) {
		json_put_null(j);
		return;
	}
	put_value(j, "\"", 1);
	while (*u) {
		size_t bytes = 0;
		uint32_t code;

		while (is_plain(u[bytes]))
			bytes++;
		if (!bytes && *u >= 0x80)
			bytes = utf8_decode((const char *)u, strnlen((const char *)u, 4), &code);
		put(j, (const char *)u, bytes);
		u += bytes ? bytes : put_escaped(j, *u);
	}
	put(j, "\"", 1);
}

void json_init(struct json *j, size_t max)
{
	*j = (struct json){ .max = max };
}

void json_deinit(struct json *j)
{
	free(j->text);
	json_init(j, j->max);
}

void json_clear(struct json *j)
{
	j->bytes = 0;
	j->error = 0;
}

char *json_steal(struct json *j, size_t *bytes)
{
	char *text = j->text;

	*bytes = j->bytes;
	json_init(j, j->max);
	return text;
}

int json_error(const struct json *j)
{
	return j->error;
}

void json_fail(struct json *j, int error)
{
	if (!j->error)
		j->error = error;
}

void json_begin(struct json *j, char bracket)
{
	put_value(j, &bracket, 1);
}

void json_end(struct json *j, char bracket)
{
	put(j, &bracket, 1);
}

void json_key(struct json *j, const char *key)
{
	json_put_string(j, key);
	put(j, ":", 1);
}

void json_put_null(struct json *j)
{
	put_value(j, "null", 4);
}

void json_put_bool(struct json *j, bool value)
{
	put_value(j, value ? "true" : "false", value ? 4 : 5);
}

void json_put_u64(struct json *j, uint64_t value)
{
	char text[24];

	put_value(j, text, (size_t)snprintf(text, sizeof(text), "%" PRIu64, value));
}

void json_put_i64(struct json *j, int64_t value)
{
	char text[24];

	put_value(j, text, (size_t)snprintf(text, sizeof(text), "%" PRId64, value));
}

void json_put_double(struct json *j, double value)
{
	char text[32], *comma;
	int bytes = 0;

	if (!isfinite(value)) {
		json_put_null(j);
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		bytes = snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	comma = strchr(text, ',');	/* the decimal point of some locales */
	if (comma)
		*comma = '.';
	put_value(j, text, (size_t)bytes);
}

void json_put_hex64(struct json *j, uint64_t value)
{
	char text[24];

	put_value(j, text, (size_t)snprintf(text, sizeof(text), "\"0x%016" PRIx64 "\"", value));
}

void json_put_time(struct json *j, uint64_t real_ns)
{
	time_t seconds = (time_t)(real_ns / 1000000000);
	char text[48], fraction[16];
	struct tm tm;
	size_t bytes;

	gmtime_r(&seconds, &tm);
	bytes = strftime(text, sizeof(text), "\"%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(fraction, sizeof(fraction), ".%09uZ\"", (unsigned)(real_ns % 1000000000));
	memcpy(text + bytes, fraction, 12);
	put_value(j, text, bytes + 12);
}

void json_newline(struct json *j)
{
	put(j, "\n", 1);
}
