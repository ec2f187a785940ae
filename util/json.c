/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last byte tells whether a comma is due: no value ends in an opening
 * bracket, a colon or a newline, since strings end in their quote.
 */
#include "util/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/utf8.h"

#define FIRST_ROOM	1024

static bool json_reserve(struct json *j, size_t bytes)
{
	size_t room = j->room ? j->room : FIRST_ROOM;
	char *text;

	if (j->error)
		return false;
	if (bytes > j->max - j->bytes) {
		j->error = -E2BIG;
		return false;
	}
	if (bytes <= j->room - j->bytes)
		return true;
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

void json_append(struct json *j, const char *s, size_t bytes)
{
	if (!json_reserve(j, bytes))
		return;
	memcpy(j->text + j->bytes, s, bytes);
	j->bytes += bytes;
}

static void json_separate(struct json *j)
{
	char last = j->bytes ? j->text[j->bytes - 1] : '\n';

	if (last != ':' && last != '{' && last != '[' && last != '\n')
		json_append(j, ",", 1);
}

static void json_put_value(struct json *j, const char *s, size_t bytes)
{
	json_separate(j);
	json_append(j, s, bytes);
}

/* Write what must not stand in a string as it is; 1, the bytes it replaces. */
static size_t json_put_escaped(struct json *j, unsigned char c)
{
	static const char letter[] = "\bb\ff\nn\rr\tt\"\"\\\\";
	char text[8];

	if (c >= 0x80) {
		json_append(j, "\xef\xbf\xbd", 3);	/* U+FFFD */
		return 1;
	}
	for (const char *l = letter; *l; l += 2) {
		if (*l == (char)c) {
			json_append(j, (char[]){ '\\', l[1] }, 2);
			return 1;
		}
	}
	snprintf(text, sizeof(text), "\\u%04x", c);
	json_append(j, text, 6);
	return 1;
}

static bool byte_is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

static size_t json_plain_bytes(const unsigned char *u)
{
	size_t bytes = 0;

	while (byte_is_plain(u[bytes]))
		bytes++;
	return bytes;
}

static void json_put_quoted(struct json *j, const char *s, size_t bytes)
{
	if (!json_reserve(j, bytes + 2))
		return;
	j->text[j->bytes] = '"';
	memcpy(j->text + j->bytes + 1, s, bytes);
	j->text[j->bytes + 1 + bytes] = '"';
	j->bytes += bytes + 2;
}

static void json_put_unclean(struct json *j, const unsigned char *u)
{
	json_append(j, "\"", 1);
	while (*u) {
		size_t bytes = json_plain_bytes(u);
		uint32_t code;

		if (!bytes && *u >= 0x80)
			bytes = utf8_decode((const char *)u, strnlen((const char *)u, 4), &code);
		if (bytes)
			json_append(j, (const char *)u, bytes);
		u += bytes ? bytes : json_put_escaped(j, *u);
	}
	json_append(j, "\"", 1);
}

void json_put_string(struct json *j, const char *s)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t bytes;

	if (!s) {
		json_put_null(j);
		return;
	}
	json_separate(j);
	bytes = json_plain_bytes(u);
	if (!u[bytes])
		json_put_quoted(j, s, bytes);
	else
		json_put_unclean(j, u);
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
	json_put_value(j, &bracket, 1);
}

void json_end(struct json *j, char bracket)
{
	json_append(j, &bracket, 1);
}

void json_key(struct json *j, const char *key)
{
	json_put_string(j, key);
	json_append(j, ":", 1);
}

void json_put_null(struct json *j)
{
	json_put_value(j, "null", 4);
}

void json_put_bool(struct json *j, bool value)
{
	json_put_value(j, value ? "true" : "false", value ? 4 : 5);
}

/* Writes backwards, from `end`; at least `width` digits.  Returns the first. */
static char *json_digits(char *end, uint64_t value, unsigned base, unsigned width)
{
	do {
		*--end = "0123456789abcdef"[value % base];
		value /= base;
		width -= width > 0;
	} while (value || width);
	return end;
}

void json_put_u64(struct json *j, uint64_t value)
{
	char text[24], *first = json_digits(text + sizeof(text), value, 10, 1);

	json_put_value(j, first, (size_t)(text + sizeof(text) - first));
}

void json_put_i64(struct json *j, int64_t value)
{
	char text[24], *first;

	if (value >= 0) {
		json_put_u64(j, (uint64_t)value);
		return;
	}
	first = json_digits(text + sizeof(text), -(uint64_t)value, 10, 1);
	*--first = '-';
	json_put_value(j, first, (size_t)(text + sizeof(text) - first));
}

static void json_write_double(struct json *j, double value, int least, int most)
{
	char text[32], *comma;
	int bytes = 0;

	if (!isfinite(value)) {
		json_put_null(j);
		return;
	}
	for (int n = least; n <= most; n++) {
		bytes = snprintf(text, sizeof(text), "%.*g", n, value);
		if (n == most || strtod(text, NULL) == value)
			break;
	}
	comma = strchr(text, ',');	/* the decimal point of some locales */
	if (comma)
		*comma = '.';
	json_put_value(j, text, (size_t)bytes);
}

void json_put_double(struct json *j, double value)
{
	json_write_double(j, value, 15, 17);
}

void json_put_rounded(struct json *j, double value)
{
	json_write_double(j, value, 9, 9);
}

void json_put_hex64(struct json *j, uint64_t value)
{
	char text[16];

	json_digits(text + sizeof(text), value, 16, 16);
	json_separate(j);
	json_append(j, "\"0x", 3);
	json_append(j, text, sizeof(text));
	json_append(j, "\"", 1);
}

/* Year, month, day of a day since 1970-01-01, as years that begin in March. */
static void json_date(uint64_t day, unsigned date[3])
{
	uint64_t d = day + 719468;	/* days since 0000-03-01 */
	uint64_t era = d / 146097, of_era = d % 146097;
	uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	uint64_t of_year = of_era - (365 * year + year / 4 - year / 100);
	uint64_t month = (5 * of_year + 2) / 153;

	date[0] = (unsigned)(year + era * 400 + (month >= 10));
	date[1] = (unsigned)(month < 10 ? month + 3 : month - 9);
	date[2] = (unsigned)(of_year - (153 * month + 2) / 5 + 1);
}

void json_put_time(struct json *j, uint64_t real_ns)
{
	char text[] = "\"0000-00-00T00:00:00.000000000Z\"";
	uint64_t seconds = real_ns / 1000000000;
	unsigned date[3];

	json_date(seconds / 86400, date);
	json_digits(text + 5, date[0], 10, 4);
	json_digits(text + 8, date[1], 10, 2);
	json_digits(text + 11, date[2], 10, 2);
	json_digits(text + 14, seconds / 3600 % 24, 10, 2);
	json_digits(text + 17, seconds / 60 % 60, 10, 2);
	json_digits(text + 20, seconds % 60, 10, 2);
	json_digits(text + 30, real_ns % 1000000000, 10, 9);
	json_put_value(j, text, sizeof(text) - 1);
}

void json_put_raw(struct json *j, const char *text, size_t bytes)
{
	json_put_value(j, text, bytes);
}

void json_newline(struct json *j)
{
	json_append(j, "\n", 1);
}
