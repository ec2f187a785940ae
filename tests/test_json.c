/* SPDX-License-Identifier: Apache-2.0 */
/* What is written must read back equal, with another library as the judge. */
#include "tests/fixture.h"

#include <errno.h>
#include <float.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/cleanup.h"
#include "util/json.h"
#include "util/utf8.h"

static struct json j;

static void setup(void)
{
	json_init(&j, 1 << 20);
}

static void teardown(void)
{
	json_deinit(&j);
}

static json_t *read_back(void)
{
	json_error_t error;
	json_t *value;

	ck_assert_int_eq(json_error(&j), 0);
	value = json_loadb(j.text, j.bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
	ck_assert_msg(value, "%.*s: %s", (int)j.bytes, j.text, error.text);
	return value;
}

static void check_text(const char *text)
{
	ck_assert_uint_eq(j.bytes, strlen(text));
	ck_assert_int_eq(memcmp(j.text, text, j.bytes), 0);
}

TEST(commas_come_by_themselves)
{
	json_begin(&j, '{');
	json_key(&j, "a");
	json_begin(&j, '[');
	json_put_u64(&j, 1);
	json_begin(&j, '{');
	json_end(&j, '}');
	json_put_string(&j, "[");
	json_put_null(&j);
	json_begin(&j, '[');
	json_end(&j, ']');
	json_put_bool(&j, true);
	json_end(&j, ']');
	json_key(&j, "b");
	json_put_bool(&j, false);
	json_end(&j, '}');
	json_newline(&j);
	json_begin(&j, '{');
	json_end(&j, '}');
	check_text("{\"a\":[1,{},\"[\",null,[],true],\"b\":false}\n{}");
}

TEST(integers_keep_every_digit)
{
	json_begin(&j, '[');
	json_put_u64(&j, UINT64_MAX);
	json_put_i64(&j, INT64_MIN);
	json_put_u64(&j, (1ULL << 53) + 1);
	json_put_hex64(&j, 0xdeadbeefULL);
	json_end(&j, ']');
	check_text("[18446744073709551615,-9223372036854775808,9007199254740993,"
		   "\"0x00000000deadbeef\"]");
}

TEST(doubles_read_back_equal)
{
	static const double edge[] = { 0, -0.0, 0.1, 1e-9, 1.0 / 3, 186.25, DBL_MAX, DBL_MIN,
				       DBL_EPSILON, 4.9e-324, -1e300 };
	double value;

	for (unsigned i = 0; i < 20000; i++) {
		uint64_t bits = fx_random();
		json_t *back;

		memcpy(&value, &bits, sizeof(value));
		if (i < FX_COUNT(edge))
			value = edge[i];
		if (!isfinite(value))
			continue;
		json_clear(&j);
		json_put_double(&j, value);
		back = read_back();
		ck_assert_double_eq(json_number_value(back), value);
		json_decref(back);
	}
}

TEST(what_is_no_number_is_null)
{
	json_begin(&j, '[');
	json_put_double(&j, NAN);
	json_put_double(&j, INFINITY);
	json_put_double(&j, -INFINITY);
	json_put_string(&j, NULL);
	json_end(&j, ']');
	check_text("[null,null,null,null]");
}

TEST(a_locale_with_a_decimal_comma_changes_nothing)
{
	static const char *const locales[] = { "de_DE.UTF-8", "de_DE", "fr_FR.UTF-8" };

	for (size_t i = 0; i < 3; i++)
		setlocale(LC_NUMERIC, locales[i]);	/* whichever is installed */
	json_put_double(&j, 1.5);
	setlocale(LC_NUMERIC, "C");
	check_text("1.5");
}

TEST(every_character_reads_back_as_it_was)
{
	for (unsigned c = 1; c < 0x110000; c += c < 0x3000 ? 1 : 97) {
		char text[5] = "";
		uint32_t code;
		json_t *back;

		if (c < 0x80) {
			text[0] = (char)c;
		} else if (c < 0x800) {
			text[0] = (char)(0xc0 | c >> 6);
			text[1] = (char)(0x80 | (c & 63));
		} else if (c < 0x10000) {
			text[0] = (char)(0xe0 | c >> 12);
			text[1] = (char)(0x80 | (c >> 6 & 63));
			text[2] = (char)(0x80 | (c & 63));
		} else {
			text[0] = (char)(0xf0 | c >> 18);
			text[1] = (char)(0x80 | (c >> 12 & 63));
			text[2] = (char)(0x80 | (c >> 6 & 63));
			text[3] = (char)(0x80 | (c & 63));
		}
		if (c >= 0x80 && !utf8_decode(text, strlen(text), &code))
			continue;	/* none, or one that is not shown */
		json_clear(&j);
		json_put_string(&j, text);
		back = read_back();
		ck_assert_str_eq(json_string_value(back), text);
		json_decref(back);
	}
}

TEST(bad_utf8_and_control_characters_are_replaced)
{
	static const char *const bad[] = {
		"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80",
		"\xf0\x9f", "\xc2\x9b",
	};

	for (int i = 0; i < FX_COUNT(bad); i++) {
		json_t *back;

		json_clear(&j);
		json_put_string(&j, bad[i]);
		back = read_back();
		for (const char *s = json_string_value(back); *s; s += 3)
			ck_assert_int_eq(memcmp(s, "\xef\xbf\xbd", 3), 0);
		json_decref(back);
	}
	json_clear(&j);
	json_put_string(&j, "a\xff" "b\xc3\xa9");
	check_text("\"a\xef\xbf\xbd" "b\xc3\xa9\"");
}

TEST(random_bytes_always_make_valid_json)
{
	srand(7);
	for (int i = 0; i < 20000; i++) {
		char text[24];
		size_t bytes = (size_t)rand() % (sizeof(text) - 1);

		for (size_t n = 0; n < bytes; n++)
			text[n] = (char)(1 + rand() % 255);
		text[bytes] = '\0';
		json_clear(&j);
		json_put_string(&j, text);
		json_decref(read_back());
	}
}

TEST(times_are_rfc_3339_with_nanoseconds)
{
	json_begin(&j, '[');
	json_put_time(&j, 0);
	json_put_time(&j, 1709210096000000007ULL);
	json_end(&j, ']');
	check_text("[\"1970-01-01T00:00:00.000000000Z\",\"2024-02-29T12:34:56.000000007Z\"]");
}

TEST(every_day_has_its_date)
{
	for (uint64_t day = 0; day < 80000; day++) {	/* to 2189 */
		time_t seconds = (time_t)day * 86400 + 86399;
		char text[64];
		struct tm tm;

		gmtime_r(&seconds, &tm);
		strftime(text, sizeof(text), "\"%Y-%m-%dT%H:%M:%S.000000001Z\"", &tm);
		json_clear(&j);
		json_put_time(&j, (uint64_t)seconds * 1000000000 + 1);
		check_text(text);
	}
}

TEST(what_was_measured_is_rounded_to_nine_digits)
{
	json_begin(&j, '[');
	json_put_rounded(&j, 1.0 / 3);
	json_put_rounded(&j, 186.25);
	json_put_rounded(&j, 0);
	json_put_rounded(&j, 3e-7);
	json_put_rounded(&j, NAN);
	json_end(&j, ']');
	check_text("[0.333333333,186.25,0,3e-07,null]");
}

TEST(too_much_text_is_an_error_that_stays_until_cleared)
{
	json_deinit(&j);
	json_init(&j, 4096);
	for (int i = 0; i < 1000; i++)
		json_put_string(&j, "some text");
	ck_assert_int_eq(json_error(&j), -E2BIG);
	ck_assert_uint_le(j.bytes, 4096);
	json_put_u64(&j, 1);
	ck_assert_int_eq(json_error(&j), -E2BIG);
	json_clear(&j);
	json_put_u64(&j, 1);
	ck_assert_int_eq(json_error(&j), 0);
	check_text("1");
}

TEST(the_text_can_be_taken_away)
{
	CLEANUP(cleanup_freep) char *text = NULL;
	size_t bytes;

	json_put_u64(&j, 42);
	text = json_steal(&j, &bytes);
	ck_assert_uint_eq(bytes, 2);
	ck_assert_int_eq(memcmp(text, "42", 2), 0);
	ck_assert_uint_eq(j.bytes, 0);
	json_put_u64(&j, 7);
	check_text("7");
}

int main(void)
{
	return fx_run(setup, teardown);
}
