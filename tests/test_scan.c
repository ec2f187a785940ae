/* SPDX-License-Identifier: Apache-2.0 */
/* What is read value by value is what jansson makes of the same text, or refused by both. */
#include "util/scan.h"

#include <jansson.h>
#include <stdio.h>

#include "tests/fixture.h"

/* ---- a tree of it -------------------------------------------------------------------- */

static json_t *scan_tree(struct scan *s);

static json_t *scan_array(struct scan *s)
{
	json_t *array = json_array();

	for (scan_open(s, '['); scan_next(s, ']');)
		json_array_append_new(array, scan_tree(s));
	return array;
}

static json_t *scan_object(struct scan *s)
{
	json_t *object = json_object();

	for (scan_open(s, '{'); scan_next(s, '}');) {
		struct scan_text key;
		char name[256] = "";

		if (scan_key(s, &key))
			memcpy(name, key.at, key.bytes < 255 ? key.bytes : 255);
		json_object_set_new_nocheck(object, name, scan_tree(s) ?: json_null());
	}
	return object;
}

static json_t *scan_scalar(struct scan *s)
{
	const char *from = (scan_type(s), s->at);
	struct scan_text text;
	int64_t number;
	bool is;

	switch (scan_type(s)) {
	case SCAN_TEXT:
		return scan_text(s, &text) ? json_stringn_nocheck(text.at, text.bytes) : NULL;
	case SCAN_BOOL:
		return scan_bool(s, &is) ? json_boolean(is) : NULL;
	case SCAN_NUMBER:
		if (!scan_number(s, &is, &number))
			return NULL;
		return is ? json_integer(number) : json_real(strtod(from, NULL));
	case SCAN_NULL:
		return scan_skip(s) ? json_null() : NULL;
	default:
		scan_skip(s);
		return NULL;
	}
}

static json_t *scan_tree(struct scan *s)
{
	switch (scan_type(s)) {
	case SCAN_ARRAY:
		return scan_array(s);
	case SCAN_OBJECT:
		return scan_object(s);
	default:
		return scan_scalar(s);
	}
}

/* NULL, and *error: it is refused. */
static json_t *tree_of(const char *text, size_t bytes, const char **error)
{
	struct scan s;
	json_t *tree;

	scan_init(&s, text, bytes);
	tree = scan_tree(&s);
	scan_end(&s);
	*error = s.error;
	scan_deinit(&s);
	if (!*error)
		return tree;
	json_decref(tree);
	return NULL;
}

/* Is it beyond what the scanner looks at? */
static bool is_left_to_others(const json_error_t *error)
{
	return strstr(error->text, "real number overflow") ||
	       strstr(error->text, "unable to decode byte");
}

static void check_same(const char *text, size_t bytes)
{
	json_error_t theirs;
	const char *ours;
	json_t *wanted = json_loadb(text, bytes, JSON_DECODE_ANY, &theirs);
	json_t *tree = tree_of(text, bytes, &ours);

	if (wanted || !is_left_to_others(&theirs)) {
		ck_assert_msg(!tree == !wanted, "%s\nscan: %s\njansson: %s", text, ours ?: "taken",
			      wanted ? "taken" : theirs.text);
		ck_assert_msg(json_equal(tree, wanted) || !tree, "%s", text);
	}
	json_decref(wanted);
	json_decref(tree);
}

static void check_skips(const char *text, size_t bytes)
{
	struct scan s;

	scan_init(&s, text, bytes);
	ck_assert_msg(scan_skip(&s) && scan_end(&s), "%s: %s", text, s.error);
	scan_deinit(&s);
}

/* ---- documents ------------------------------------------------------------------------ */

static const char *const pieces[] = {
	"null", "true", "false", "0", "-0", "-1", "7", "9223372036854775807",
	"-9223372036854775808",
	"1.5", "-0.0", "1e5", "1E-5", "12e+3", "0.1e1", "\"\"", "\"a\"", "\"a\\\"b\"", "\"\\\\\"",
	"\"\\u0041\"", "\"\\ud83d\\ude00\"", "\"\\/\\b\\f\\n\\r\\t\"", "\"gr\u00fc\u00df \u65e5\"",
	"\"[{,:}]\"", "\"\\\\\\\"\"", "\"\x7f\"", "[]", "{}", "[[]]", "{\"\":{}}",
	"\"\\u00e9\\u65e5\"",
};

static const char *const wrong[] = {
	"", " ", "nul", "nulls", "tru", "01", "-", "+1", "1.", ".5", "1e", "1e+", "0x10", "NaN",
	"9223372036854775808", "-9223372036854775809", "\"", "\"\\\"", "\"\\x\"", "\"\\u12\"",
	"\"\\u0000\"", "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"", "\"\\ud800\\udbff\"",
	"\"\t\"", "\"\n\"", "'a'", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1}", "{", "{]",
	"{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{1:1}", "{\"a\" 1}", "{\"a\":1 \"b\":2}",
	"1 2",
	"[] []", "{\"\\u0000\":1}", "/**/1", "\"\\uD83D\\uDE0\"", "\xef\xbb\xbf[]", "-a", "--1",
};

static char document[65536];
static size_t length;

static void document_add(const char *text)
{
	length += (size_t)snprintf(document + length, sizeof(document) - length, "%s", text);
	ck_assert_uint_lt(length, sizeof(document));
}

static void document_add_space(void)
{
	static const char *const space[] = { "", "", "", " ", "\n", "\t\r " };

	document_add(space[fx_random() % FX_COUNT(space)]);
}

static void document_add_value(int depth)
{
	bool object = fx_random() % 2;

	document_add_space();
	if (!depth || fx_random() % 4 == 0) {
		document_add(pieces[fx_random() % FX_COUNT(pieces)]);
	} else {
		document_add(object ? "{" : "[");
		for (int n = (int)(fx_random() % 5); n >= 0; n--) {
			if (object) {
				char key[16];

				snprintf(key, sizeof(key), "\"k%d\" :", (int)(fx_random() % 4));
				document_add_space();
				document_add(key);
			}
			document_add_value(depth - 1);
			document_add(n ? "," : "");
		}
		document_add(object ? "}" : "]");
	}
	document_add_space();
}

static void document_make(void)
{
	length = 0;
	document_add_value(4);
}

TEST(a_random_document_is_what_jansson_reads)
{
	for (int i = 0; i < 2000; i++) {
		document_make();
		check_same(document, length);
		check_skips(document, length);
	}
}

TEST(a_damaged_document_is_refused_where_jansson_refuses_it)
{
	static const char bytes[] = "\"\\{}[],:0-1.eu\n\x01 ";

	for (int i = 0; i < 20000; i++) {
		document_make();
		for (uint64_t n = fx_random() % 3; n < 3; n++)
			document[fx_random() % length] = bytes[fx_random() % (sizeof(bytes) - 1)];
		if (fx_random() % 4 == 0)
			length = fx_random() % length;
		document[length] = '\0';
		check_same(document, length);
	}
}

TEST(what_is_no_json_is_refused)
{
	for (int i = 0; i < FX_COUNT(wrong); i++)
		check_same(wrong[i], strlen(wrong[i]));
	for (int i = 0; i < FX_COUNT(pieces); i++)
		check_same(pieces[i], strlen(pieces[i]));
}

/* jansson passes over some. */
TEST(a_zero_byte_is_nowhere_allowed)
{
	static const char texts[][8] = { "[1\0]", "[\0]", "\"a\0b\"", "[]\0", "{\0}" };
	const char *error;

	for (int i = 0; i < FX_COUNT(texts); i++) {
		size_t bytes = sizeof(texts[i]);

		while (texts[i][bytes - 1] != ']' && texts[i][bytes - 1] != '"' &&
		       texts[i][bytes - 1] != '}')
			bytes--;
		ck_assert_ptr_null(tree_of(texts[i], bytes + (i == 3), &error));
		ck_assert_ptr_nonnull(error);
	}
}

TEST(brackets_lie_as_deep_in_each_other_as_for_jansson)
{
	for (size_t depth = SCAN_DEPTH - 1; depth <= SCAN_DEPTH + 1; depth++) {
		struct scan s;

		memset(document, '[', depth);
		memset(document + depth, ']', depth);
		document[2 * depth] = '\0';
		check_same(document, 2 * depth);
		scan_init(&s, document, 2 * depth);
		ck_assert_int_eq(scan_skip(&s), depth <= SCAN_DEPTH);
		scan_deinit(&s);
	}
}

/* The bytes before the place at which it is wrong; the error in *error. */
static size_t place_of(const char *text, bool (*read)(struct scan *s), const char **error)
{
	struct scan s;

	scan_init(&s, text, strlen(text));
	ck_assert(!read(&s));
	scan_end(&s);
	*error = s.error;
	scan_deinit(&s);
	return (size_t)(s.at - text);
}

TEST(what_is_skipped_has_its_brackets_and_strings_checked)
{
	const char *error;

	ck_assert_uint_eq(place_of("[1, {\"a\": 2]}", scan_skip, &error), 11);
	ck_assert_str_eq(error, "another bracket is expected here");
	ck_assert_uint_eq(place_of("[1, {\"a", scan_skip, &error), 7);
	ck_assert_str_eq(error, "the text ends early");
	ck_assert_uint_eq(place_of("[\"a\\\\\\\"]", scan_skip, &error), 8);
	ck_assert_str_eq(error, "the text ends early");
}

TEST(the_first_error_stays)
{
	struct scan s;
	bool value;

	scan_init(&s, "[7, true]", 9);
	ck_assert(scan_open(&s, '[') && scan_next(&s, ']'));
	ck_assert(!scan_bool(&s, &value));
	ck_assert_uint_eq((size_t)(s.at - s.text), 1);
	ck_assert(!scan_next(&s, ']') && !scan_skip(&s) && !scan_end(&s));
	ck_assert_str_eq(s.error, "no value begins so");
	ck_assert_uint_eq((size_t)(s.at - s.text), 1);
	scan_deinit(&s);
}

int main(void)
{
	fx_seed_anew();
	return fx_run(NULL, NULL);
}
