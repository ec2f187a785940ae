/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of ten thousand nodes are gigabytes of JSON, of which a report needs a few members of
 * each row: a tree of them costs five times as much as looking at each byte once.
 */
#include "util/scan.h"

#include "util/text.h"

void scan_init(struct scan *s, const char *text, size_t bytes)
{
	*s = (struct scan){ .text = text, .at = text, .end = text + bytes };
}

void scan_deinit(struct scan *s)
{
	list_deinit(&s->unescaped);
}

static bool scan_fail(struct scan *s, const char *error)
{
	if (!s->error)
		s->error = s->at >= s->end ? "the text ends early" : error;
	return false;
}

/* The byte that comes next behind space; 0: an error, or the end. */
static char scan_peek(struct scan *s)
{
	if (s->error)
		return 0;
	while (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' || *s->at == '\r')
		s->at++;
	return *s->at;
}

enum scan_type scan_type(struct scan *s)
{
	switch (scan_peek(s)) {
	case '{':
		return SCAN_OBJECT;
	case '[':
		return SCAN_ARRAY;
	case '"':
		return SCAN_TEXT;
	case 't':
	case 'f':
		return SCAN_BOOL;
	case 'n':
		return SCAN_NULL;
	case '-':
	case '0' ... '9':
		return SCAN_NUMBER;
	}
	return SCAN_NONE;
}

/* ---- brackets -------------------------------------------------------------------------- */

bool scan_open(struct scan *s, char bracket)
{
	if (scan_peek(s) != bracket)
		return scan_fail(s, bracket == '{' ? "an object is expected here"
						   : "an array is expected here");
	if (s->depth == SCAN_DEPTH)
		return scan_fail(s, "too many brackets within each other");
	s->depth++;
	s->at++;
	s->is_first = true;
	return true;
}

bool scan_next(struct scan *s, char bracket)
{
	bool is_first = s->is_first;
	char next = scan_peek(s);

	s->is_first = false;
	if (s->error)
		return false;
	if (next == bracket) {
		s->at++;
		s->depth--;
		return false;
	}
	if (is_first)
		return true;
	if (next != ',')
		return scan_fail(s, "a comma or a closing bracket is expected here");
	s->at++;
	return true;
}

/* ---- strings --------------------------------------------------------------------------- */

/* The four digits behind "\u"; UINT32_MAX: they are none. */
static uint32_t scan_unit(struct scan *s)
{
	uint32_t unit = 0;

	for (int i = 0; i < 4; i++, s->at++) {
		int digit = text_hex_digit(*s->at);

		if (digit < 0)
			return UINT32_MAX;
		unit = unit << 4 | (uint32_t)digit;
	}
	return unit;
}

/* The character that "\u" and what follows name; 0: none. */
static uint32_t scan_code(struct scan *s)
{
	uint32_t high = scan_unit(s), low;

	if (high == UINT32_MAX || (high >= 0xdc00 && high <= 0xdfff))
		return 0;
	if (high < 0xd800 || high > 0xdbff)
		return high;
	if (s->at[0] != '\\' || s->at[1] != 'u')
		return 0;
	s->at += 2;
	low = scan_unit(s);
	if (low < 0xdc00 || low > 0xdfff)
		return 0;
	return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

static void scan_put(struct scan *s, char byte)
{
	char *to = list_append(&s->unescaped);

	if (to)
		*to = byte;
	else
		scan_fail(s, "out of memory");
}

static void scan_put_code(struct scan *s, uint32_t code)
{
	static const unsigned char lead[] = { 0, 0xc0, 0xe0, 0xf0 };
	int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;

	scan_put(s, (char)(lead[more] | code >> (6 * more)));
	while (more--)
		scan_put(s, (char)(0x80 | (code >> (6 * more) & 0x3f)));
}

/* Reads the character behind a backslash. */
static bool scan_escape(struct scan *s)
{
	static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *escape;
	uint32_t code;

	s->at++;
	escape = *s->at ? strchr(escapes, *s->at) : NULL;
	if (escape) {
		scan_put(s, meant[escape - escapes]);
		s->at++;
		return true;
	}
	if (*s->at != 'u')
		return scan_fail(s, "this is no escape");
	s->at++;
	code = scan_code(s);
	if (!code)
		return scan_fail(s, "this is no character");
	scan_put_code(s, code);
	return true;
}

/* The first byte from here on that is no plain part of a string. */
static const char *scan_past_plain(const struct scan *s)
{
	const unsigned char *at = (const unsigned char *)s->at;

	while (*at >= ' ' && *at != '"' && *at != '\\')
		at++;
	return (const char *)at;
}

bool scan_text(struct scan *s, struct scan_text *text)
{
	const char *from;

	if (scan_peek(s) != '"')
		return scan_fail(s, "a string is expected here");
	from = ++s->at;
	s->at = scan_past_plain(s);
	if (*s->at == '"') {
		*text = (struct scan_text){ from, (size_t)(s->at++ - from) };
		return true;
	}
	s->unescaped.n = 0;
	for (s->at = from; *s->at != '"';) {
		for (const char *end = scan_past_plain(s); s->at < end;)
			scan_put(s, *s->at++);
		if ((unsigned char)*s->at < ' ')
			return scan_fail(s, "a control character within a string");
		if (*s->at == '\\' && !scan_escape(s))
			return false;
	}
	*text = (struct scan_text){ s->unescaped.at, s->unescaped.n };
	s->at++;
	return !s->error;
}

bool scan_key(struct scan *s, struct scan_text *key)
{
	if (!scan_text(s, key))
		return false;
	if (scan_peek(s) != ':')
		return scan_fail(s, "a colon is expected here");
	s->at++;
	return true;
}

/* ---- words and numbers ------------------------------------------------------------------- */

static bool scan_word(struct scan *s, const char *word)
{
	size_t bytes = strlen(word);

	if (strncmp(s->at, word, bytes))
		return scan_fail(s, "no value begins so");
	s->at += bytes;
	return true;
}

bool scan_bool(struct scan *s, bool *value)
{
	char first = scan_peek(s);

	if (!scan_word(s, first == 't' ? "true" : "false"))
		return false;
	*value = first == 't';
	return true;
}

static bool scan_digits(struct scan *s)
{
	if (*s->at < '0' || *s->at > '9')
		return scan_fail(s, "a digit is expected here");
	while (*s->at >= '0' && *s->at <= '9')
		s->at++;
	return true;
}

/* Leaves what begins at `from` behind; *whole: it is digits alone. */
static bool scan_past_number(struct scan *s, bool *whole)
{
	const char *behind;

	s->at += *s->at == '-';
	behind = s->at + 1;
	if (!scan_digits(s))
		return false;
	if (behind[-1] == '0' && s->at != behind)
		return scan_fail(s, "a number begins with 0");
	*whole = true;
	if (*s->at == '.') {
		*whole = false;
		s->at++;
		if (!scan_digits(s))
			return false;
	}
	if ((*s->at | 0x20) == 'e') {
		*whole = false;
		s->at++;
		s->at += *s->at == '+' || *s->at == '-';
		return scan_digits(s);
	}
	return true;
}

/* Digits alone, as most numbers are; false: they are too many. */
static bool digits_value(const char *from, const char *end, int64_t *value)
{
	bool below = *from == '-';
	int64_t sum = 0;

	for (from += below; from < end; from++)
		if (__builtin_mul_overflow(sum, 10, &sum) ||
		    (below ? __builtin_sub_overflow(sum, *from - '0', &sum)
			   : __builtin_add_overflow(sum, *from - '0', &sum)))
			return false;
	*value = sum;
	return true;
}

bool scan_number(struct scan *s, bool *whole, int64_t *integer)
{
	const char *from;

	if (scan_type(s) != SCAN_NUMBER)
		return scan_fail(s, "a number is expected here");
	from = s->at;
	if (!scan_past_number(s, whole))
		return false;
	return !*whole || digits_value(from, s->at, integer) ||
	       scan_fail(s, "too large a number");
}

/* ---- what nobody asks for ------------------------------------------------------------------ */

static bool scan_past_text(struct scan *s)
{
	const char *quote = s->at, *before;

	do {
		quote = memchr(quote + 1, '"', (size_t)(s->end - quote - 1));
		if (!quote) {
			s->at = s->end;
			return scan_fail(s, "");
		}
		for (before = quote; before[-1] == '\\';)
			before--;
	} while ((quote - before) % 2);
	s->at = quote + 1;
	return true;
}

/* Brackets that are open, the outermost first: what closes each. */
struct scan_open {
	unsigned n;
	char closing[SCAN_DEPTH];
};

static bool scan_past_bracket(struct scan *s, struct scan_open *open)
{
	char bracket = *s->at, *closing;

	if (bracket == ']' || bracket == '}') {
		if (open->closing[--open->n] != bracket)
			return scan_fail(s, "another bracket is expected here");
	} else {
		closing = s->depth + open->n < SCAN_DEPTH ? array_add(open->closing, &open->n) :
							    NULL;
		if (!closing)
			return scan_fail(s, "too many brackets within each other");
		*closing = bracket == '{' ? '}' : ']';
	}
	s->at++;
	return true;
}

static bool scan_past_brackets(struct scan *s)
{
	static const bool matters[256] = {
		[0] = true, ['"'] = true, ['['] = true, [']'] = true, ['{'] = true, ['}'] = true,
	};
	struct scan_open open;

	open.n = 0;
	do {
		while (!matters[(unsigned char)*s->at])
			s->at++;
		if (!*s->at)
			return scan_fail(s, "a zero byte");
		if (!(*s->at == '"' ? scan_past_text(s) : scan_past_bracket(s, &open)))
			return false;
	} while (open.n);
	return true;
}

bool scan_skip(struct scan *s)
{
	int64_t integer;
	bool is;

	switch (scan_type(s)) {
	case SCAN_ARRAY:
	case SCAN_OBJECT:
		return scan_past_brackets(s);
	case SCAN_TEXT:
		return scan_past_text(s);
	case SCAN_NUMBER:
		return scan_number(s, &is, &integer);
	case SCAN_BOOL:
		return scan_bool(s, &is);
	case SCAN_NULL:
		return scan_word(s, "null");
	case SCAN_NONE:
		break;
	}
	return scan_fail(s, "a value is expected here");
}

bool scan_end(struct scan *s)
{
	scan_peek(s);
	return !s->error && (s->at == s->end || scan_fail(s, "more than one value"));
}
