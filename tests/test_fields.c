/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table/fields.h"

static const struct column columns[] = {
	{ "comm_id", NULL, COL_TEXT, "comm_id", 0, 0, 0 },
	{ NULL, "COMM", COL_TEXT, "comm_label|comm_name|comm_id", 0, 0, 2 },
	{ "rank", "RANK", COL_INTEGER, "rank", 0, 0, REPORT_IF_KNOWN | REPORT_KEY },
	{ "algo", NULL, COL_TEXT, "algo", 0, 0, 0 },
	{ NULL, "ALGO/PROTO", COL_TEXT, "algo/proto", 0, 0, 3 },
	{ "p50_ns", NULL, COL_MICROS, "exec.p50_ns", 0, 0, 0 },
	{ "batch_p50_ns", NULL, COL_MICROS, "batch.p50_ns", 0, 0, 0 },
	{ NULL, "P50(us)", COL_MICROS, "exec.p50_ns|batch.p50_ns", 0, 0, 0 },
	{ "algbw_gbs", NULL, COL_NUMBER, "algbw_gbs", 0, 0, 0 },
};
#define NCOLUMNS FX_COUNT(columns)

static struct fields fields;

static const struct column *find(const char *name, bool *raw)
{
	return fields_find(columns, NCOLUMNS, name, raw);
}

TEST(a_field_answers_to_its_name_and_to_its_header_without_the_unit)
{
	bool raw;

	ck_assert_ptr_eq(find("p50_ns", &raw), &columns[5]);
	ck_assert(raw);
	ck_assert_ptr_eq(find("p50", &raw), &columns[7]);
	ck_assert(!raw);
	ck_assert_ptr_eq(find("Comm", &raw), &columns[1]);
	ck_assert_ptr_eq(find("RANK", &raw), &columns[2]);
	ck_assert(!raw);
	ck_assert_ptr_null(find("p5", &raw));
	ck_assert_ptr_null(find("p50(us)", &raw));
	ck_assert_ptr_null(find("", &raw));
}

/* "name:header name:header" */
static const char *chosen(void)
{
	static char text[1024];

	text[0] = '\0';
	for (size_t i = 0; i < fields.count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s:%s", i ? " " : "",
			 fields.columns[i].name ?: "-", fields.columns[i].header);
	return text;
}

TEST(what_is_chosen_has_the_order_given_a_name_and_a_header)
{
	char *unknown = NULL;

	ck_assert_int_eq(fields_select(&fields, columns, NCOLUMNS,
				       "algbw_gbs,p50_ns,p50,algo/proto,rank,comm_id", &unknown),
			 0);
	ck_assert_str_eq(chosen(), "algbw_gbs:ALGBW(GB/s) p50_ns:P50(us) p50:P50(us) "
				   "algo/proto:ALGO/PROTO rank:RANK comm_id:COMM_ID");
	for (size_t i = 0; i < fields.count; i++)	/* none is left out */
		ck_assert_uint_eq(fields.columns[i].drop & ~REPORT_KEY, 0);
}

TEST(an_unknown_field_is_named)
{
	char *unknown = NULL;

	ck_assert_int_eq(fields_select(&fields, columns, NCOLUMNS, "rank,nonsense,x", &unknown),
			 -ENOENT);
	ck_assert_str_eq(unknown, "nonsense");
	free(unknown);
}

TEST(more_fields_than_there_is_room_for_are_refused)
{
	char list[5 * REPORT_COLUMNS + 6] = "rank", *unknown = NULL;

	for (int i = 1; i < REPORT_COLUMNS; i++)
		strcat(list, ",rank");
	ck_assert_int_eq(fields_select(&fields, columns, NCOLUMNS, list, &unknown), 0);
	strcat(list, ",rank");
	ck_assert_int_eq(fields_select(&fields, columns, NCOLUMNS, list, &unknown), -E2BIG);
	ck_assert_ptr_null(unknown);
}

TEST(wide_has_the_tables_columns_and_then_what_none_of_them_shows)
{
	fields_widen(&fields, columns, NCOLUMNS);
	ck_assert_str_eq(chosen(), "comm:COMM rank:RANK algo/proto:ALGO/PROTO p50:P50(us) "
				   "comm_id:COMM_ID batch_p50_ns:BATCH_P50(us) "
				   "algbw_gbs:ALGBW(GB/s)");
}

TEST_LOOP(help_lists_each_field_by_which_it_is_found, 0, 2)
{
	char *text, *left, *line;
	size_t size, listed = 0;
	FILE *out = open_memstream(&text, &size);
	bool raw;

	fields_list(columns, NCOLUMNS, _i, out);
	fclose(out);
	for (left = text; (line = strsep(&left, "\n")) && *line; listed++) {
		line[strcspn(line, " ")] = '\0';
		ck_assert_msg(find(line, &raw), "%s", line);
	}
	ck_assert_uint_eq(listed, NCOLUMNS);
	free(text);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
