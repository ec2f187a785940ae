/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/metrics/exposition.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "tests/fixture.h"

static struct exposition e;

static void setup(void)
{
	exposition_init(&e, false, 1 << 20);
}

static void teardown(void)
{
	exposition_deinit(&e);
}

static void is_text(const char *want)
{
	ck_assert_int_eq(e.out.error, 0);
	ck_assert_msg(e.out.bytes == strlen(want) && !memcmp(e.out.text, want, e.out.bytes), "%.*s",
		      (int)e.out.bytes, e.out.text);
}

TEST(every_family_has_its_help_and_type_also_without_samples)
{
	exposition_family(&e, "x_ops_total", EXPOSITION_COUNTER, "Operations.");
	exposition_family(&e, "x_info", EXPOSITION_INFO, "Facts.");
	exposition_sample(&e, "", 1);
	exposition_end(&e);
	is_text("# HELP x_ops_total Operations.\n# TYPE x_ops_total counter\n"
		"# HELP x_info Facts.\n# TYPE x_info gauge\nx_info 1\n");
}

TEST(openmetrics_names_families_without_suffix_and_says_where_it_ends)
{
	e.open = true;
	exposition_family(&e, "x_ops_total", EXPOSITION_COUNTER, "Operations.");
	exposition_sample(&e, "", 3);
	exposition_family(&e, "x_info", EXPOSITION_INFO, "Facts.");
	exposition_end(&e);
	is_text("# HELP x_ops Operations.\n# TYPE x_ops counter\nx_ops_total 3\n"
		"# HELP x Facts.\n# TYPE x info\n# EOF\n");
}

TEST(labels_are_escaped_and_what_is_no_utf8_replaced)
{
	exposition_family(&e, "x", EXPOSITION_GAUGE, "X.");
	exposition_label(&e, "a", "1\"2\\3\n4");
	exposition_label(&e, "none", "");
	exposition_label(&e, "null", NULL);
	exposition_label(&e, "b", "\xff\xc3\xa9\x1b");
	exposition_sample(&e, "", 0.5);
	is_text("# HELP x X.\n# TYPE x gauge\n"
		"x{a=\"1\\\"2\\\\3\\n4\",b=\"\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\"} 0.5\n");
}

TEST(a_label_holds_until_it_is_taken_back)
{
	size_t before;

	exposition_family(&e, "x", EXPOSITION_GAUGE, "X.");
	exposition_label(&e, "a", "1");
	before = e.label_bytes;
	exposition_label(&e, "b", "2");
	exposition_sample(&e, "", 1e9);
	exposition_unlabel(&e, before);
	exposition_sample(&e, "_sum", 1234567890123);
	is_text("# HELP x X.\n# TYPE x gauge\nx{a=\"1\",b=\"2\"} 1000000000\n"
		"x_sum{a=\"1\"} 1234567890123\n");
}

TEST(what_is_not_known_is_not_written)
{
	exposition_family(&e, "x", EXPOSITION_GAUGE, "X.");
	exposition_sample(&e, "", NAN);
	ck_assert_uint_eq(e.series, 0);
	is_text("# HELP x X.\n# TYPE x gauge\n");
}

TEST(a_label_that_finds_no_room_is_left_out_whole)
{
	char value[EXPOSITION_LABELS + 1];

	memset(value, '"', sizeof(value));
	value[EXPOSITION_LABELS] = '\0';
	exposition_family(&e, "x", EXPOSITION_GAUGE, "X.");
	exposition_label(&e, "a", value);
	exposition_label(&e, "b", "1");
	exposition_sample(&e, "", 1);
	is_text("# HELP x X.\n# TYPE x gauge\nx{b=\"1\"} 1\n");
}

TEST(a_text_that_grows_too_long_is_an_error)
{
	exposition_deinit(&e);
	exposition_init(&e, false, 20);
	exposition_family(&e, "x", EXPOSITION_GAUGE, "Long, and longer.");
	ck_assert_int_eq(e.out.error, -E2BIG);
	exposition_sample(&e, "", 1);
	ck_assert_uint_le(e.out.bytes, 20);
}

int main(void)
{
	return fx_run(setup, teardown);
}
