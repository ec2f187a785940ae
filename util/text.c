/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names come from jobs: a communicator may be called anything, escape sequences
 * included.  So widths are not asked from the locale, which differs between the
 * daemon's and the user's, but looked up in the two small tables below.
 */
#include "util/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/list.h"
#include "util/utf8.h"

struct text_range {
	uint32_t first;
	uint32_t last;
};

/* Combining marks: no column of their own. */
static const struct text_range zero_width[] = {
	{ 0x0300, 0x036f }, { 0x0483, 0x0489 }, { 0x0591, 0x05bd }, { 0x0610, 0x061a },
	{ 0x064b, 0x065f }, { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff }, { 0x20d0, 0x20ff },
	{ 0xfe20, 0xfe2f },
};

/* East Asian wide and fullwidth, and pictographs. */
static const struct text_range two_wide[] = {
	{ 0x1100, 0x115f },   { 0x2e80, 0x303e },   { 0x3041, 0x33ff },	  { 0x3400, 0x4dbf },
	{ 0x4e00, 0x9fff },   { 0xa000, 0xa4cf },   { 0xac00, 0xd7a3 },	  { 0xf900, 0xfaff },
	{ 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },	  { 0x1f300, 0x1f64f },
	{ 0x1f680, 0x1f6ff }, { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd },
};

static bool code_in_ranges(const struct text_range *table, size_t n, uint32_t cp)
{
	for (size_t i = 0; i < n; i++)
		if (cp >= table[i].first && cp <= table[i].last)
			return true;
	return false;
}

static int code_width(uint32_t cp)
{
	if (cp < zero_width[0].first)
		return 1;
	if (code_in_ranges(zero_width, ARRAY_LEN(zero_width), cp))
		return 0;
	return code_in_ranges(two_wide, ARRAY_LEN(two_wide), cp) ? 2 : 1;
}

/* One character of `s`, not at its end.  *len: its bytes.  False: show '?'. */
static bool code_decode(const char *s, uint32_t *cp, size_t *len)
{
	if (*s >= ' ' && *s < 0x7f) {	/* nearly all there is */
		*cp = (uint32_t)*s;
		*len = 1;
		return true;
	}
	*len = utf8_decode(s, strnlen(s, 4), cp);
	if (*len)
		return true;
	*len = 1;
	return false;
}

int text_width(const char *s)
{
	int width = 0;
	uint32_t cp;
	size_t len;

	for (; *s; s += len)
		width += code_decode(s, &cp, &len) ? code_width(cp) : 1;
	return width;
}

int text_fit(char *buf, size_t size, const char *s, int columns)
{
	bool cut = text_width(s) > columns;
	int room = cut ? columns - 1 : columns;
	size_t used = 0, len;
	int width = 0;
	uint32_t cp;

	for (; *s; s += len) {
		bool good = code_decode(s, &cp, &len);
		int w = good ? code_width(cp) : 1;
		size_t bytes = good ? len : 1;

		if (width + w > room || used + bytes + 2 > size)
			break;
		memcpy(buf + used, good ? s : "?", bytes);
		used += bytes;
		width += w;
	}
	if (*s && columns > 0 && used + 2 <= size) {
		buf[used++] = '~';
		width++;
	}
	if (size)
		buf[used] = '\0';
	return width;
}

#define BLOCK_FIRST	0x2581	/* an eighth */
#define BLOCK_FULL	0x2588

const char *text_block(int eighths)
{
	static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };

	return blocks[eighths];
}

void text_to_ascii(char *s)
{
	char *out = s;
	uint32_t cp;
	size_t len;

	for (; *s; s += len) {
		int width = code_decode(s, &cp, &len) ? code_width(cp) : 1;

		if (len == 1 && *s > 0)
			*out++ = *s;
		else if (len > 1 && cp >= BLOCK_FIRST && cp <= BLOCK_FULL)
			*out++ = (char)('0' + cp - BLOCK_FIRST);
		else
			while (width-- > 0)
				*out++ = '?';
	}
	*out = '\0';
}

/* Digits after the point that make three in all; the limits are those of rounding. */
static int number_decimals(double n)
{
	return n < 9.995 ? 2 : n < 99.95 ? 1 : 0;
}

static void number_trim_zeros(char *s)
{
	char *end = s + strlen(s);

	if (!strchr(s, '.'))
		return;
	while (end[-1] == '0')
		*--end = '\0';
	if (end[-1] == '.')
		end[-1] = '\0';
}

/* Scale `n` until it fits in three digits and write it with the unit reached. */
static void number_put_scaled(char *buf, size_t size, double n, double base, double limit,
			      const char *const *units, size_t nunits)
{
	char digits[TEXT_MAX];
	size_t i = 0;

	while (n >= limit && i + 1 < nunits) {
		n /= base;
		i++;
	}
	snprintf(digits, sizeof(digits), "%.*f", i ? number_decimals(n) : 0, n);
	number_trim_zeros(digits);
	snprintf(buf, size, "%s%s", digits, units[i]);
}

void text_bytes(char *buf, size_t size, uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };

	number_put_scaled(buf, size, (double)bytes, 1024, 1023.5, units, ARRAY_LEN(units));
}

void text_bytes_si(char *buf, size_t size, uint64_t bytes)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB", "EB" };

	number_put_scaled(buf, size, (double)bytes, 1000, 999.5, units, ARRAY_LEN(units));
}

void text_count(char *buf, size_t size, double n)
{
	static const char *const units[] = { "", "k", "M", "G", "T", "P", "E" };

	if (n >= 0)
		number_put_scaled(buf, size, n, 1000, 999.5, units, ARRAY_LEN(units));
	else
		snprintf(buf, size, "-");
}

static void number_put_seconds(char *buf, size_t size, uint64_t s)
{
	unsigned long long n = s;

	if (s < 60)
		snprintf(buf, size, "%llus", n);
	else if (s < 3600)
		snprintf(buf, size, "%llum%02llus", n / 60, n % 60);
	else if (s < 86400)
		snprintf(buf, size, "%lluh%02llum", n / 3600, n / 60 % 60);
	else
		snprintf(buf, size, "%llud%02lluh", n / 86400, n / 3600 % 24);
}

void text_duration(char *buf, size_t size, uint64_t ns)
{
	static const char *const units[] = { "ns", "us", "ms" };

	if (ns >= UINT64_C(9950000000))
		number_put_seconds(buf, size, ns / 1000000000 + (ns % 1000000000 >= 500000000));
	else if (ns >= UINT64_C(999500000))
		snprintf(buf, size, "%.1fs", (double)ns / 1e9);
	else
		number_put_scaled(buf, size, (double)ns, 1000, 999.5, units, ARRAY_LEN(units));
}

void text_micros(char *buf, size_t size, double ns)
{
	double us = ns / 1000;

	snprintf(buf, size, "%.*f", us < 9.995 ? 2 : us < 999.95 ? 1 : 0, us);
}

void text_number(char *buf, size_t size, double n)
{
	if (n > 0 && n < 0.0995)
		snprintf(buf, size, "%.2g", n);
	else
		snprintf(buf, size, "%.*f", number_decimals(n), n);
}

int text_parse_duration(const char *text, uint64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {
		{ "", 1e9 },  { "s", 1e9 },   { "ms", 1e6 },	 { "us", 1e3 },
		{ "ns", 1 },  { "m", 60e9 },  { "min", 60e9 },	 { "h", 3600e9 },
	};
	char *end;
	double n;

	n = strtod(text, &end);
	if (end == text || end != text + strspn(text, "0123456789."))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		if (n * units[i].ns >= 1e18)
			return -EINVAL;
		*ns = (uint64_t)llround(n * units[i].ns);
		return 0;
	}
	return -EINVAL;
}

int text_parse_bytes(const char *text, double *bytes)
{
	static const char letters[] = "kmgtpe";
	const char *letter;
	double n, base;
	char *end;

	n = strtod(text, &end);
	if (end == text || !(n >= 0) || text[0] == '-' || text[0] == ' ')
		return -EINVAL;
	letter = *end ? strchr(letters, tolower((unsigned char)*end)) : NULL;
	end += !!letter;
	base = letter && !strcasecmp(end, "b") ? 1000 : 1024;
	if (*end && strcasecmp(end, "b") && !(letter && !strcasecmp(end, "ib")))
		return -EINVAL;
	*bytes = letter ? n * pow(base, (double)(letter - letters + 1)) : n;
	return 0;
}

int text_parse_integer(const char *text, int64_t min, int64_t max, int64_t *out)
{
	long long n;
	char *end;

	if (*text != '-' && (*text < '0' || *text > '9'))
		return -EINVAL;
	errno = 0;
	n = strtoll(text, &end, 10);
	if (errno || *end || end == text || n < min || n > max)
		return -EINVAL;
	*out = n;
	return 0;
}

char *text_trim(char *text)
{
	size_t bytes;

	text += strspn(text, " \t\r");
	bytes = strlen(text);
	while (bytes && strchr(" \t\r", text[bytes - 1]))
		bytes--;
	text[bytes] = '\0';
	return text;
}

int text_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
