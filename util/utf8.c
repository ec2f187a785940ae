/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names come from jobs: what they hold must not mislead people, break JSON or control a
 * terminal.
 */
#include "util/utf8.h"

#include <stdbool.h>
#include <stdint.h>

/* The length of a character by its first byte, and the least code that needs so many. */
static const struct {
	uint8_t mask, value, bytes;
	uint32_t least;
} forms[] = {
	{ 0x80, 0x00, 1, 0 },
	{ 0xe0, 0xc0, 2, 0x80 },
	{ 0xf0, 0xe0, 3, 0x800 },
	{ 0xf8, 0xf0, 4, 0x10000 },
};

/*
 * Characters that turn the direction of what follows, end a line, or are not to be seen at
 * all: with these a name reads as another one.
 */
static const struct {
	uint32_t first, last;
} hidden[] = {
	{ 0x00ad, 0x00ad }, { 0x034f, 0x034f }, { 0x061c, 0x061c }, { 0x115f, 0x1160 },
	{ 0x17b4, 0x17b5 }, { 0x180b, 0x180f }, { 0x200b, 0x200f }, { 0x2028, 0x202e },
	{ 0x2060, 0x206f }, { 0x3164, 0x3164 }, { 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff },
	{ 0xffa0, 0xffa0 }, { 0xfff0, 0xfffb }, { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a },
	{ 0xe0000, 0xe0fff },
};

static bool utf8_is_printable(uint32_t code)
{
	for (size_t i = 0; code >= hidden[0].first && i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (code >= hidden[i].first && code <= hidden[i].last)
			return false;
	return code == 0 || (code >= 0x20 && code < 0x7f) ||
	       (code >= 0xa0 && code < 0xd800) || (code > 0xdfff && code < 0x110000);
}

size_t utf8_decode(const char *s, size_t room, uint32_t *code)
{
	const uint8_t *u = (const uint8_t *)s;

	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		uint32_t got;

		if (!room || (u[0] & forms[f].mask) != forms[f].value)
			continue;
		if (forms[f].bytes > room)
			return 0;
		got = u[0] & (uint8_t)~forms[f].mask;
		for (size_t i = 1; i < forms[f].bytes; i++) {
			if ((u[i] & 0xc0) != 0x80)
				return 0;
			got = got << 6 | (u[i] & 0x3f);
		}
		if (got < forms[f].least || !utf8_is_printable(got))
			return 0;
		*code = got;
		return forms[f].bytes;
	}
	return 0;
}

void utf8_clean(char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes;) {
		uint32_t code;
		size_t n = utf8_decode(text + i, bytes - i, &code);

		if (n == 0) {
			text[i] = '?';
			n = 1;
		}
		i += n;
	}
}
