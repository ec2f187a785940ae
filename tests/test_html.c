/* SPDX-License-Identifier: Apache-2.0 */
/* Text in a page: nobody's name is markup, or hides something. */
#include <stdio.h>
#include <string.h>

#include "cli/page/html.h"
#include "cli/page/page_parts.h"
#include "tests/fixture.h"

static const char *escaped(const char *text)
{
	static char page[256];
	FILE *out = fmemopen(page, sizeof(page), "w");

	*page = '\0';
	ck_assert_ptr_nonnull(out);
	html_text(out, text);
	fclose(out);
	return page;
}

TEST(markup_is_text)
{
	ck_assert_str_eq(escaped("<b a=\"1\" c='2'>&amp;"),
			 "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;");
	ck_assert_str_eq(escaped("\u00e9\u4e16 dp[1]"), "\u00e9\u4e16 dp[1]");
	ck_assert_str_eq(escaped(""), "");
}

TEST(what_is_no_character_or_not_to_be_seen_is_a_question_mark)
{
	ck_assert_str_eq(escaped("a\xff\xc3"), "a??");
	ck_assert_str_eq(escaped("a\u202e\x1b" "b"), "a????b");
	ck_assert_str_eq(escaped("a\nb"), "a b");
}

TEST(ranks_of_one_operation_are_one_row)
{
	json_t *ops = json_loads(
		"[{\"comm_id\": \"0x1\", \"func\": \"AllReduce\", \"size_class\": 4096, "
		"  \"ops\": 3, \"busbw_gbs\": {\"mean\": 2}, \"busbw_waitfree_gbs\": 6,"
		"  \"usual_busbw_gbs\": 8},"
		" {\"comm_id\": \"0x1\", \"func\": \"AllReduce\", \"size_class\": 512, \"ops\": 1},"
		" {\"comm_id\": \"0x1\", \"func\": \"AllReduce\", \"size_class\": 4096, "
		"  \"ops\": 4, \"busbw_gbs\": {\"mean\": 4}, \"busbw_waitfree_gbs\": null},"
		" {\"comm_id\": \"0x2\", \"func\": \"AllReduce\", \"size_class\": 4096,"
		"  \"ops\": 9}]",
		0, NULL);
	json_t *rows = page_ops_by_size(ops), *row = json_array_get(rows, 1);

	ck_assert_int_eq(json_array_size(rows), 3);
	ck_assert_int_eq(json_integer_value(json_object_get(row, "ops")), 7);
	ck_assert_double_eq(json_real_value(json_object_get(row, "bus")), 3);
	ck_assert_double_eq(json_real_value(json_object_get(row, "least")), 2);
	ck_assert_double_eq(json_real_value(json_object_get(row, "of_usual")), 0.75);
	ck_assert_ptr_null(json_object_get(json_array_get(rows, 0), "bus"));
	json_decref(rows);
	json_decref(ops);
}

TEST(a_verdict_on_several_ranks_is_one)
{
#define ROW(comm, rank) "{\"severity\": \"critical\", \"verdict\": \"LINK\", \"text\": \"so\", " \
			"\"comm_id\": \"" comm "\", \"rank\": " rank "}, "
	json_t *rows = json_loads("[" ROW("0x1", "1") ROW("0x1", "2") ROW("0x2", "1")
				  "{\"severity\": \"info\", \"text\": \"no file\"}]", 0, NULL);
#undef ROW
	static char text[16384];
	struct page page = { .out = fmemopen(text, sizeof(text), "w"), .verdicts = rows };

	page_verdicts(&page);
	fclose(page.out);
	ck_assert_ptr_nonnull(strstr(text, "2 critical findings, 1 note<"));
	json_decref(rows);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
