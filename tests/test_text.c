/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"
#include "util/utf8.h"

static char buf[256];

static const struct {
	uint64_t bytes;
	const char *text;
} sizes[] = {
	{ 0, "0B" },		     { 8, "8B" },	      { 1000, "1000B" },
	{ 1023, "1023B" },	     { 1024, "1KiB" },	      { 1536, "1.5KiB" },
	{ 134217728, "128MiB" },     { 134217729, "128MiB" }, { 1048575, "1MiB" },
	{ 10737418240, "10GiB" },    { 1363149, "1.3MiB" },   { UINT64_MAX, "16EiB" },
};

TEST_LOOP(sizes_are_in_powers_of_1024_with_three_digits, 0, FX_COUNT(sizes))
{
	text_bytes(buf, sizeof(buf), sizes[_i].bytes);
	ck_assert_str_eq(buf, sizes[_i].text);
}

static const struct {
	uint64_t bytes;
	const char *text;
} si_sizes[] = {
	{ 0, "0B" }, { 999, "999B" }, { 1000, "1kB" }, { 1500, "1.5kB" }, { 134217728, "134MB" },
	{ UINT64_MAX, "18.4EB" },
};

TEST_LOOP(or_in_powers_of_1000, 0, FX_COUNT(si_sizes))
{
	text_bytes_si(buf, sizeof(buf), si_sizes[_i].bytes);
	ck_assert_str_eq(buf, si_sizes[_i].text);
}

static const struct {
	const char *text;
	double bytes;		/* < 0: refused */
} read_sizes[] = {
	{ "0", 0 }, { "4096", 4096 }, { "4096B", 4096 }, { "4KiB", 4096 }, { "4k", 4096 },
	{ "1.5M", 1572864 }, { "10MB", 1e7 }, { "2gib", 2147483648.0 }, { "1EB", 1e18 },
	{ "", -1 }, { "-1", -1 }, { "x", -1 }, { "4q", -1 }, { "4KiBx", -1 }, { "4iB", -1 },
	{ " 4", -1 }, { "nan", -1 },
};

TEST_LOOP(sizes_are_read_with_either, 0, FX_COUNT(read_sizes))
{
	double bytes = -1;
	int r = text_parse_bytes(read_sizes[_i].text, &bytes);

	ck_assert_int_eq(r, read_sizes[_i].bytes < 0 ? -EINVAL : 0);
	ck_assert_double_eq(bytes, read_sizes[_i].bytes);
}

static const struct {
	uint64_t ns;
	const char *text;
} durations[] = {
	{ 0, "0ns" },
	{ 12, "12ns" },
	{ 17300, "17.3us" },
	{ 999999, "1ms" },
	{ 13900000, "13.9ms" },
	{ UINT64_C(999600000), "1.0s" },
	{ UINT64_C(4300000000), "4.3s" },
	{ UINT64_C(9960000000), "10s" },
	{ UINT64_C(43000000000), "43s" },
	{ UINT64_C(59999999999), "1m00s" },
	{ UINT64_C(130000000000), "2m10s" },
	{ UINT64_C(3900000000000), "1h05m" },
	{ UINT64_C(273600000000000), "3d04h" },
};

TEST_LOOP(durations_and_ages_read_as_people_say_them, 0, FX_COUNT(durations))
{
	text_duration(buf, sizeof(buf), durations[_i].ns);
	ck_assert_str_eq(buf, durations[_i].text);
}

TEST(counts_rates_and_microseconds_keep_three_digits)
{
	static const struct {
		void (*format)(char *out, size_t size, double n);
		double n;
		const char *text;
	} cases[] = {
		{ text_count, 0, "0" },		  { text_count, 999, "999" },
		{ text_count, 12345, "12.3k" },	  { text_count, 4560000, "4.56M" },
		{ text_count, 999999, "1M" },	  { text_count, -1, "-" },
		{ text_number, 0, "0.00" },	  { text_number, 0.01234, "0.012" },
		{ text_number, 1.234, "1.23" },	  { text_number, 45.67, "45.7" },
		{ text_number, 370.4, "370" },	  { text_micros, 350, "0.35" },
		{ text_micros, 17345, "17.3" },	  { text_micros, 13912345, "13912" },
		{ text_micros, 999960, "1000" },
	};

	for (int i = 0; i < FX_COUNT(cases); i++) {
		cases[i].format(buf, sizeof(buf), cases[i].n);
		ck_assert_str_eq(buf, cases[i].text);
	}
}

TEST(no_number_overflows_text_max)
{
	static const double extremes[] = { 0, 1, 1e18, 1e300, 9.999e17 };
	char small[TEXT_MAX + 1];

	for (int i = 0; i < FX_COUNT(extremes); i++) {
		memset(small, 'x', sizeof(small));
		text_number(small, TEXT_MAX, extremes[i]);
		ck_assert_uint_lt(strlen(small), TEXT_MAX);
		text_count(small, TEXT_MAX, extremes[i]);
		ck_assert_uint_lt(strlen(small), TEXT_MAX);
		text_micros(small, TEXT_MAX, extremes[i]);
		ck_assert_uint_lt(strlen(small), TEXT_MAX);
		ck_assert_int_eq(small[TEXT_MAX], 'x');
	}
	text_duration(small, TEXT_MAX, UINT64_MAX);
	ck_assert_uint_lt(strlen(small), TEXT_MAX);
}

TEST(a_wide_character_takes_two_columns_and_a_combining_one_none)
{
	ck_assert_int_eq(text_width("dp"), 2);
	ck_assert_int_eq(text_width("größe"), 5);
	ck_assert_int_eq(text_width("日本"), 4);
	ck_assert_int_eq(text_width("e\xcc\x81"), 1);
	ck_assert_int_eq(text_width("🙂"), 2);
}

TEST(what_is_too_long_ends_in_a_tilde)
{
	ck_assert_int_eq(text_fit(buf, sizeof(buf), "tensor-parallel", 8), 8);
	ck_assert_str_eq(buf, "tensor-~");
	ck_assert_int_eq(text_fit(buf, sizeof(buf), "dp", 8), 2);
	ck_assert_str_eq(buf, "dp");
	ck_assert_int_eq(text_fit(buf, sizeof(buf), "日本語", 4), 3);
	ck_assert_str_eq(buf, "日~");
	ck_assert_int_eq(text_fit(buf, sizeof(buf), "日本", 4), 4);
	ck_assert_int_eq(text_fit(buf, sizeof(buf), "abc", 0), 0);
	ck_assert_str_eq(buf, "");
	ck_assert_int_eq(text_fit(buf, 4, "größe", 5), 3);
	ck_assert_str_eq(buf, "gr~");
}

TEST(a_name_cannot_send_escape_sequences)
{
	text_fit(buf, sizeof(buf), "a\033[2Jb\x7f\xc2\x9b" "c\xff\xc3", 40);
	ck_assert_str_eq(buf, "a?[2Jb???c??");
	text_fit(buf, sizeof(buf), "gpj.\u202egnp\u200d\u2028", 40);
	ck_assert_str_eq(buf, "gpj.???gnp??????");
	text_fit(buf, sizeof(buf), "\xed\xa0\x80|\xf4\x90\x80\x80|\xc0\xaf", 40);
	ck_assert_str_eq(buf, "???|????|??");
}

/* Random bytes: what comes out is clean, fits, and has the width that is said. */
TEST(whatever_the_bytes_the_result_is_clean_and_fits)
{
	unsigned seed = 1;

	for (int round = 0; round < 20000; round++) {
		char text[40], out[64];
		size_t len = (size_t)(rand_r(&seed) % 32);
		int columns = rand_r(&seed) % 40, width;
		size_t size = 1 + (size_t)(rand_r(&seed) % (int)sizeof(out));

		for (size_t i = 0; i < len; i++)
			text[i] = (char)(1 + rand_r(&seed) % 255);
		text[len] = '\0';
		width = text_fit(out, size, text, columns);
		ck_assert_uint_lt(strlen(out), size);
		ck_assert_int_le(width, columns);
		ck_assert_int_eq(text_width(out), width);
		for (size_t i = 0, n; out[i]; i += n) {
			uint32_t code;

			n = utf8_decode(out + i, strlen(out + i), &code);
			ck_assert_uint_gt(n, 0);
		}
	}
}

TEST(ascii_keeps_the_width)
{
	strcpy(buf, "größe 日本");
	text_to_ascii(buf);
	ck_assert_str_eq(buf, "gr??e ????");
	buf[0] = '\0';
	for (int eighths = 0; eighths <= 8; eighths++)
		strcat(buf, text_block(eighths));
	ck_assert_int_eq(text_width(buf), 9);
	text_to_ascii(buf);
	ck_assert_str_eq(buf, " 01234567");
}

TEST(durations_are_read_with_and_without_a_unit)
{
	uint64_t ns = 0;

	ck_assert_int_eq(text_parse_duration("2.5", &ns), 0);
	ck_assert_uint_eq(ns, UINT64_C(2500000000));
	ck_assert_int_eq(text_parse_duration("500ms", &ns), 0);
	ck_assert_uint_eq(ns, 500000000);
	ck_assert_int_eq(text_parse_duration("2m", &ns), 0);
	ck_assert_uint_eq(ns, UINT64_C(120000000000));
	ck_assert_int_eq(text_parse_duration("0", &ns), 0);
	ck_assert_uint_eq(ns, 0);
}

TEST(what_is_no_duration_or_number_is_refused)
{
	static const char *const wrong[] = {
		"", "x", "-1", "1y", "nan", "inf", "1e30", " 1", "1 s",
	};
	uint64_t ns = 7;
	int64_t n = 7;

	for (int i = 0; i < FX_COUNT(wrong); i++)
		ck_assert_int_eq(text_parse_duration(wrong[i], &ns), -EINVAL);
	ck_assert_uint_eq(ns, 7);

	ck_assert_int_eq(text_parse_integer("12x", 0, 100, &n), -EINVAL);
	ck_assert_int_eq(text_parse_integer("101", 0, 100, &n), -EINVAL);
	ck_assert_int_eq(text_parse_integer("-1", 0, 100, &n), -EINVAL);
	ck_assert_int_eq(text_parse_integer("", 0, 100, &n), -EINVAL);
	ck_assert_int_eq(text_parse_integer("99999999999999999999", 0, INT64_MAX, &n), -EINVAL);
	ck_assert_int_eq(n, 7);
	ck_assert_int_eq(text_parse_integer("100", 0, 100, &n), 0);
	ck_assert_int_eq(n, 100);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
