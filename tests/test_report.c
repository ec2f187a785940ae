/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "cli/common/prose.h"
#include "cli/table/report.h"

static const struct column columns[] = {
	{ "pid", "PID", COL_INTEGER, "pid", 5, 0, 0 },
	{ "name", "NAME", COL_TEXT, "name|id", 0, 8, 1 },
	{ NULL, "ALGO/PROTO", COL_TEXT, "algo/proto", 0, 0, 3 },
	{ "size", "SIZE", COL_BYTES, "size", 0, 0, 0 },
	{ "p50_ns", "P50(us)", COL_MICROS, "exec.p50_ns", 0, 0, 2 },
	{ "lost", "LOST", COL_SUM, "lost", 0, 0, 0 },
	{ "share", NULL, COL_PERCENT, "share", 0, 0, 0 },
};
#define NCOLUMNS FX_COUNT(columns)

static json_t *rows;
static struct report report;
static const struct report_style usual;

static void setup(void)
{
	rows = json_loads(
		"[{\"pid\": 7, \"name\": \"dp\", \"algo\": \"Ring\", \"proto\": \"LL\","
		"  \"size\": 134217728, \"exec\": {\"p50_ns\": 17345}, \"share\": 0.5,"
		"  \"lost\": {\"overrun\": 0, \"pool\": 0}},"
		" {\"pid\": 12345, \"name\": \"\", \"id\": \"0x01\","
		"  \"algo\": null, \"proto\": null, \"size\": null,"
		"  \"exec\": {\"p50_ns\": null}, \"lost\": {\"overrun\": 2, \"pool\": 3}},"
		" {\"pid\": 9, \"name\": \"a, \\\"long\\\" name\", \"algo\": \"Tree\"}]",
		0, NULL);
	ck_assert_ptr_nonnull(rows);
	report_init(&report, columns, NCOLUMNS, &usual);
	report_fit(&report, rows, 1000);
}

static void teardown(void)
{
	json_decref(rows);
}

static const char *row_text(size_t i)
{
	static struct line line;

	line_start(&line, 1000);
	if (i)
		report_row(&report, json_array_get(rows, i - 1), &line);
	else
		report_header(&report, &line, -1);
	return line.text;
}

TEST(a_table_is_aligned_with_numbers_to_the_right)
{
	ck_assert_str_eq(row_text(0), "  PID  NAME      ALGO/PROTO    SIZE  P50(us)  LOST");
	ck_assert_str_eq(row_text(1), "    7  dp        Ring/LL     128MiB     17.3     0");
}

TEST(what_is_not_known_is_a_dash_and_never_a_zero)
{
	ck_assert_str_eq(row_text(2), "12345  0x01      -                -        -     5");
	ck_assert_str_eq(row_text(3), "    9  a, \"lon~  Tree/-           -        -     -");
}

TEST(a_narrow_terminal_drops_what_is_missed_least_first)
{
	report_fit(&report, rows, 45);
	ck_assert_str_eq(row_text(0), "  PID  NAME        SIZE  P50(us)  LOST");
	report_fit(&report, rows, 30);
	ck_assert_str_eq(row_text(0), "  PID  NAME        SIZE  LOST");
	report_fit(&report, rows, 10);
	ck_assert_str_eq(row_text(0), "  PID    SIZE  LOST");
}

TEST(a_sentence_gives_way_before_columns_do_and_its_header_too)
{
	static const struct column said[] = {
		{ "pid", "PID", COL_INTEGER, "pid", 5, 0, 0 },
		{ "kind", "KIND", COL_TEXT, "kind", 0, 0, 1 },
		{ "text", "WHAT", COL_TEXT, "text", 0, 0, 0 },
	};
	json_t *findings = json_pack("[{s:i s:s s:s}]", "pid", 7, "kind", "stall", "text",
				     "a rank has not come to it, and nobody knows why it has not");
	const json_t *row = json_array_get(findings, 0);
	struct line line;

	report_init(&report, said, FX_COUNT(said), &usual);
	report_fit(&report, findings, 60);
	line_start(&line, 60);
	report_row(&report, row, &line);
	ck_assert_str_eq(line.text,
			 "    7  stall  a rank has not come to it, and nobody knows w~");
	line_start(&line, 60);
	report_header(&report, &line, -1);
	ck_assert_ptr_null(strchr(line.text, '~'));
	report_fit(&report, findings, 50);	/* 40 columns of it are wanted at least */
	line_start(&line, 50);
	report_row(&report, row, &line);
	ck_assert_str_eq(line.text, "    7  a rank has not come to it, and nobody know~");
	report_fit(&report, findings, 1000);
	line_start(&line, 1000);
	report_row(&report, row, &line);
	ck_assert_ptr_nonnull(strstr(line.text, "stall  a rank"));
	ck_assert_ptr_nonnull(strstr(line.text, "why it has not"));
	json_decref(findings);
}

/* The width at which the columns are laid out leaves room for one of two of them. */
static const char *narrow_header(const char *text)
{
	static const struct column clocks[] = {
		{ "op", "OP", COL_TEXT, "op", 0, 0, 0 },
		{ "p99_ns", "P99(us)", COL_MICROS, "p99_ns", 8, 0, 1 },
		{ "src", "SRC", COL_TEXT, "src", 8, 0, 2 | REPORT_APART },
		{ "what", "WHAT", COL_TEXT, "what", 0, 0, 0 },
	};
	static struct line line;
	json_t *some = json_loads(text, 0, NULL);

	ck_assert_ptr_nonnull(some);
	report_init(&report, clocks, FX_COUNT(clocks), &usual);
	report_fit(&report, some, 38);
	line_start(&line, 38);
	report_header(&report, &line, -1);
	json_decref(some);
	for (size_t len = strlen(line.text); len && line.text[len - 1] == ' '; len--)
		line.text[len - 1] = '\0';
	return line.text;
}

TEST(a_column_without_which_rows_look_alike_stays_longest)
{
	ck_assert_str_eq(narrow_header("[{\"op\":\"A\",\"src\":\"gpu\"},"
				       "{\"op\":\"B\",\"src\":\"cpu\","
				       " \"what\":\"a sentence of thirty columns, or so\"}]"),
			 "OP  WHAT");
	ck_assert_str_eq(narrow_header("[{\"op\":\"A\",\"src\":\"gpu\","
				       " \"what\":\"a sentence of thirty columns, or so\"},"
				       "{\"op\":\"A\",\"src\":\"cpu\","
				       " \"what\":\"a sentence of thirty columns, or so\"}]"),
			 "OP  SRC       WHAT");
	ck_assert_str_eq(narrow_header("[{\"op\":\"A\",\"src\":\"gpu\"},"
				       "{\"op\":\"A\",\"src\":\"cpu\"}]"),
			 "OP   P99(us)  SRC       WHAT");
}

TEST(a_column_that_nothing_knows_can_be_left_out)
{
	const struct column some[] = {
		{ "pid", "PID", COL_INTEGER, "pid", 0, 0, 0 },
		{ "rank", "RANK", COL_INTEGER, "rank", 0, 0, REPORT_IF_KNOWN },
	};

	report_init(&report, some, 2, &usual);
	report_fit(&report, rows, 1000);
	ck_assert_str_eq(row_text(0), "  PID");
	json_object_set_new(json_array_get(rows, 2), "rank", json_integer(0));
	report_fit(&report, rows, 4);
	ck_assert_int_eq(report.width[1], 4);
}

TEST(a_column_that_says_only_the_usual_can_be_left_out)
{
	const struct column some[] = {
		{ "pid", "PID", COL_INTEGER, "pid", 0, 0, 0 },
		{ "fused", "FUSED", COL_INTEGER, "fused", 0, 0, REPORT_IF_UNUSUAL },
		{ "timed", "TIMED(%)", COL_PERCENT, "timed", 0, 0, REPORT_IF_UNUSUAL | 1 },
		{ "lost", "LOST(%)", COL_LOSS, "loss", 0, 0, REPORT_IF_UNUSUAL },
	};
	json_t *row = json_array_get(rows, 0);

	json_object_update_new(row, json_pack("{s:i,s:f,s:i}", "fused", 0, "timed", 1.0,
					      "loss", 0));
	report_init(&report, some, FX_COUNT(some), &usual);
	report_fit(&report, rows, 1000);
	ck_assert_str_eq(row_text(0), "  PID");
	json_object_update_new(row, json_pack("{s:i,s:f,s:f}", "fused", 3, "timed", 0.25,
					      "loss", 1e-6));
	report_fit(&report, rows, 1000);
	ck_assert_str_eq(row_text(0), "  PID  FUSED  TIMED(%)  LOST(%)");
	ck_assert_str_eq(row_text(1), "    7      3      25.0     <0.1");
	ck_assert_str_eq(row_text(2), "12345      -         -        -");
	report_fit(&report, rows, 1);
	ck_assert_str_eq(row_text(0), "  PID  FUSED  LOST(%)");
}

TEST(what_was_put_together_has_a_mark)
{
	const struct column op = { NULL, "OP", COL_OP, "func", 0, 0, 0 };
	static const struct {
		const char *row, *cell;
	} cases[] = {
		{ "{\"func\": \"AlltoAll\", \"derived\": true}", "AlltoAll*" },
		{ "{\"func\": \"AlltoAll\", \"derived\": 4}", "AlltoAll*" },
		{ "{\"func\": \"Send\", \"derived\": false}", "Send" },
		{ "{\"func\": \"Send\", \"derived\": 0}", "Send" },
		{ "{\"func\": \"Send\"}", "Send" },
	};
	char cell[64];

	for (size_t i = 0; i < FX_COUNT(cases); i++) {
		json_t *row = json_loads(cases[i].row, 0, NULL);

		report_cell(&op, row, &usual, cell, sizeof(cell));
		ck_assert_str_eq(cell, cases[i].cell);
		json_decref(row);
	}
}

TEST(a_line_never_passes_its_limit)
{
	for (int limit = 0; limit < 60; limit++) {
		struct line line;

		line_start(&line, limit);
		report_row(&report, json_array_get(rows, 2), &line);
		ck_assert_int_le(line.columns, limit);
	}
}

static char *csv(void)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	report_csv_header(&report, out);
	for (size_t i = 0; i < json_array_size(rows); i++)
		report_csv_row(&report, json_array_get(rows, i), out);
	fclose(out);
	return text;
}

TEST(csv_has_base_units_empty_unknowns_and_quotes)
{
	char *text = csv();

	ck_assert_str_eq(text, "pid,name,size,p50_ns,lost,share\n"
			       "7,dp,134217728,17345,0,0.5\n"
			       "12345,0x01,,,5,\n"
			       "9,\"a, \"\"long\"\" name\",,,,\n");
	free(text);
}

/* A spreadsheet takes them for formulas; numbers are none. */
TEST(csv_has_no_cell_that_a_spreadsheet_would_work_out)
{
	static const struct {
		const char *name, *cell;
	} names[] = {
		{ "=1+2", "'=1+2" }, { "+1", "'+1" }, { "-1", "'-1" }, { "@x", "'@x" },
		{ "\t=1", "'\t=1" }, { "=a,b", "\"'=a,b\"" }, { "a=b", "a=b" }, { "'=1", "'=1" },
	};

	for (int i = 0; i < FX_COUNT(names); i++) {
		json_t *row = json_pack("{s:i,s:s,s:f}", "pid", -7, "name", names[i].name,
					"share", -0.5);
		char *text, line[64];
		size_t size;
		FILE *out = open_memstream(&text, &size);

		report_csv_row(&report, row, out);
		fclose(out);
		snprintf(line, sizeof(line), "-7,%s,,,,-0.5\n", names[i].cell);
		ck_assert_str_eq(text, line);
		free(text);
		json_decref(row);
	}
}

static void check_order(const char *expected)
{
	char order[32] = "";

	for (size_t i = 0; i < json_array_size(rows); i++)
		snprintf(order + strlen(order), sizeof(order) - strlen(order), "%lld ",
			 (long long)json_integer_value(
				 report_get(json_array_get(rows, i), "pid")));
	ck_assert_str_eq(order, expected);
}

TEST(sorting_puts_the_largest_first_and_the_unknown_last)
{
	report_sort(rows, &columns[0], false);
	check_order("12345 9 7 ");
	report_sort(rows, &columns[0], true);
	check_order("7 9 12345 ");
	report_sort(rows, &columns[5], false);
	check_order("12345 7 9 ");
	report_sort(rows, &columns[4], true);
	check_order("7 12345 9 ");
	report_sort(rows, &columns[1], true);
	check_order("12345 9 7 ");
}

TEST(ages_count_from_the_daemons_clock_and_never_below_zero)
{
	const struct column since = { NULL, "AGE", COL_SINCE, "t", 0, 0, 0 };
	json_t *row = json_pack("{s:I}", "t", (json_int_t)1000000000);
	char cell[32];

	report_cell(&since, row, &(struct report_style){ .now_ns = 131000000000 }, cell,
		    sizeof(cell));
	ck_assert_str_eq(cell, "2m10s");
	report_cell(&since, row, &(struct report_style){ .now_ns = 5 }, cell, sizeof(cell));
	ck_assert_str_eq(cell, "0ns");
	json_decref(row);
}

TEST(a_time_is_shown_in_the_local_zone_unless_utc_is_asked_for)
{
	const struct column at = { NULL, "AT", COL_TIME, "at", 0, 0, 0 };
	json_t *row = json_pack("{s:s}", "at", "2026-01-02T23:04:05.678901234Z");
	char cell[64];

	setenv("TZ", "UTC-1", 1);
	report_cell(&at, row, &usual, cell, sizeof(cell));
	ck_assert_str_eq(cell, "00:04:05.678");
	report_cell(&at, row, &(struct report_style){ .utc = true }, cell, sizeof(cell));
	ck_assert_str_eq(cell, "23:04:05.678");
	json_object_set_new(row, "at", json_string("yesterday"));
	report_cell(&at, row, &usual, cell, sizeof(cell));
	ck_assert_str_eq(cell, "yesterday");
	json_decref(row);
}

static const struct column of_a_link[] = {
	{ "comm_name", "COMM", COL_TEXT, "comm_name", 0, 0, 0 },
	{ "rank", "RANK", COL_INTEGER, "rank", 0, 0, REPORT_KEY },
	{ "seen_at", NULL, COL_TIME, "at", 0, 0, 0 },
	{ "p50_ns", "P50(us)", COL_MICROS, "exec.p50", 0, 0, 0 },
	{ "busbw_gbs", "BUSBW(GB/s)", COL_NUMBER, "busbw", 0, 0, 0 },
	{ "lost", NULL, COL_SUM, "lost", 0, 0, 0 },
	{ "idle_ns", "IDLE", COL_SINCE, "since", 0, 0, 0 },
	{ "share", "SHARE(%)", COL_PERCENT, "share", 0, 0, 0 },
	{ NULL, "SIZE", COL_BYTES, "size", 0, 0, 0 },
};

static json_t *links(void)
{
	return json_pack("[{s:s,s:i,s:s,s:{s:i},s:f,s:{s:i,s:i},s:I,s:f,s:I},{s:s,s:i,s:n}]",
			 "comm_name", "a\"b\\c\nd", "rank", 3, "at", "2026-01-02T03:04:05Z", "exec",
			 "p50", 17345, "busbw", 1.5, "lost", "overrun", 2, "pool", 3, "since",
			 (json_int_t)1000, "share", 0.25, "size", (json_int_t)134217728,
			 "comm_name", "tp", "rank", 0, "share");
}

TEST(prometheus_has_base_units_labels_and_no_unknowns)
{
	const struct report_style style = { .now_ns = 2000001000 };
	json_t *rows_of_links = links();
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	report_init(&report, of_a_link, FX_COUNT(of_a_link), &style);
	report_prom(&report, "links", rows_of_links, out);
	fclose(out);
	ck_assert_ptr_nonnull(strstr(text, "# TYPE ncclinsp_links_p50_seconds gauge\n"
					   "ncclinsp_links_p50_seconds"
					   "{comm_name=\"a\\\"b\\\\c\\nd\",rank=\"3\"} "
					   "1.7345e-05\n# "));
	ck_assert_ptr_nonnull(strstr(text, "ncclinsp_links_busbw_bytes_per_second{"));
	ck_assert_ptr_nonnull(strstr(text, "\"} 1500000000\n"));
	ck_assert_ptr_nonnull(strstr(text, "ncclinsp_links_lost{"));
	ck_assert_ptr_nonnull(strstr(text, "\"} 5\n"));
	ck_assert_ptr_nonnull(strstr(text, "ncclinsp_links_idle_seconds{"));
	ck_assert_ptr_nonnull(strstr(text, "\"} 2\n"));
	ck_assert_ptr_null(strstr(text, "tp"));
	ck_assert_ptr_null(strstr(text, "seen"));
	ck_assert_ptr_null(strstr(text, "size"));
	free(text);
	json_decref(rows_of_links);
}

TEST(json_lines_keep_types_and_tell_null_from_zero)
{
	const struct report_style style = { .now_ns = 5000 };
	json_t *rows_of_links = links(), *expected, *object;

	report_init(&report, of_a_link, FX_COUNT(of_a_link), &style);
	object = report_object(&report, json_array_get(rows_of_links, 0));
	expected = json_pack("{s:s,s:i,s:s,s:i,s:f,s:i,s:i,s:f}", "comm_name", "a\"b\\c\nd",
			     "rank", 3, "seen_at", "2026-01-02T03:04:05Z", "p50_ns", 17345,
			     "busbw_gbs", 1.5, "lost", 5, "idle_ns", 4000, "share", 0.25);
	ck_assert(json_equal(object, expected));
	json_decref(object);
	json_decref(expected);
	object = report_object(&report, json_array_get(rows_of_links, 1));
	expected = json_pack("{s:s,s:i,s:n,s:n,s:n,s:n,s:n,s:n}", "comm_name", "tp", "rank", 0,
			     "seen_at", "p50_ns", "busbw_gbs", "lost", "idle_ns", "share");
	ck_assert(json_equal(object, expected));
	json_decref(object);
	json_decref(expected);
	json_decref(rows_of_links);
}

static void check_answer(const char *object, const char *printed)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	report_answer(object, out);
	fclose(out);
	ck_assert_str_eq(text, printed);
	free(text);
}

TEST(an_answer_begins_with_the_number_of_its_schema_and_keeps_its_digits)
{
	check_answer("{\"rate\":1.2300000000000000001}\n",
		     "{\"schema\":1,\"rate\":1.2300000000000000001}\n");
	check_answer("{\"a\":[{}]}", "{\"schema\":1,\"a\":[{}]}\n");
	check_answer("{}", "{\"schema\":1}\n");
}

static const char *link_text(enum report_units units, size_t i)
{
	const struct report_style style = { .now_ns = 5000001000, .units = units };
	static struct line line;
	json_t *rows_of_links = links();

	report_init(&report, &of_a_link[3], FX_COUNT(of_a_link) - 3, &style);
	report_fit(&report, rows_of_links, 1000);
	line_start(&line, 1000);
	if (i)
		report_row(&report, json_array_get(rows_of_links, i - 1), &line);
	else
		report_header(&report, &line, -1);
	json_decref(rows_of_links);
	return line.text;
}

TEST(units_are_those_that_were_asked_for)
{
	ck_assert_str_eq(link_text(REPORT_IEC, 0), "P50(us)  BUSBW(GB/s)  IDLE  SHARE(%)    SIZE");
	ck_assert_str_eq(link_text(REPORT_IEC, 1), "   17.3         1.50  5.0s      25.0  128MiB");
	ck_assert_str_eq(link_text(REPORT_SI, 1), "   17.3         1.50  5.0s      25.0  134MB");
	ck_assert_str_eq(link_text(REPORT_RAW, 0),
			 "P50(ns)  BUSBW(GB/s)    IDLE(ns)  SHARE    SIZE(B)");
	ck_assert_str_eq(link_text(REPORT_RAW, 1),
			 "  17345          1.5  5000000000   0.25  134217728");
	ck_assert_str_eq(link_text(REPORT_RAW, 2),
			 "      -            -           -      -          -");
}

static char *printed(const struct line *line, const struct line_style *style)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	line_print(line, style, out);
	fclose(out);
	return text;
}

TEST(colour_is_only_written_when_asked_for)
{
	static const struct line_style plain = { 0 }, color = { .color = true };
	struct line line;
	char *text;

	line_start(&line, 40);
	line_put(&line, LINE_PLAIN, "state ");
	line_put(&line, LINE_BAD, "died");
	line_pad(&line, LINE_PLAIN, 30);
	text = printed(&line, &plain);
	ck_assert_str_eq(text, "state died\n");
	free(text);
	text = printed(&line, &color);
	ck_assert_str_eq(text, "state \033[1;31mdied\033[0m\n");
	free(text);
}

/* Yellow letters cannot be read on a light background. */
TEST(what_warns_has_a_sign_on_yellow_and_text_as_usual)
{
	static const struct line_style color = { .color = true };
	struct frame frame;
	char *text;

	frame_init(&frame, 12, 4);
	prose_put(&frame, LINE_WARN, 0, 2, "! look at it");
	prose_put(&frame, LINE_WARN, 0, 2, "! at that too");
	text = printed(&frame.lines[0], &color);
	ck_assert_str_eq(text, "\033[30;43m!\033[0m look at it\n");
	free(text);
	text = printed(&frame.lines[2], &color);
	ck_assert_str_eq(text, "  too\n");
	free(text);
	frame_deinit(&frame);
}

TEST(a_line_is_shortened_at_the_end_of_a_word)
{
	static const struct line_style color = { .color = true };
	struct line line;
	char *text;

	line_start(&line, 20);
	line_put(&line, LINE_WARN, "!");
	line_put(&line, LINE_PLAIN, " größe of ");
	line_put(&line, LINE_BAD, "it all");
	line_shorten(&line, 9);
	ck_assert_int_eq(line.columns, 7);
	line_put(&line, LINE_DIM, " ...");
	text = printed(&line, &color);
	ck_assert_str_eq(text, "\033[30;43m!\033[0m größe\033[2m ...\033[0m\n");
	free(text);
	line_shorten(&line, 0);
	ck_assert_str_eq(line.text, "!");
}

TEST(a_verdict_is_in_capitals_with_a_mark_if_suspected_and_in_data_as_it_came)
{
	static const struct column verdict = { "verdict", "VERDICT", COL_VERDICT, "name", 0, 0, 0 };
	char cell[64];

	ck_assert_int_eq(report_cell(&verdict, json_array_get(rows, 0), &usual, cell,
				     sizeof(cell)), LINE_PLAIN);
	ck_assert_str_eq(cell, "DP");
	json_object_set_new(json_array_get(rows, 0), "grade", json_string("suspected"));
	report_cell(&verdict, json_array_get(rows, 0), &usual, cell, sizeof(cell));
	ck_assert_str_eq(cell, "DP?");
	json_object_set_new(json_array_get(rows, 0), "grade", json_string("found"));
	report_cell(&verdict, json_array_get(rows, 0), &usual, cell, sizeof(cell));
	ck_assert_str_eq(cell, "DP");
	ck_assert(report_text(json_array_get(rows, 0), verdict.path, cell, sizeof(cell)));
	ck_assert_str_eq(cell, "dp");
	json_object_del(json_array_get(rows, 0), "name");
	ck_assert_int_eq(report_cell(&verdict, json_array_get(rows, 0), &usual, cell,
				     sizeof(cell)), LINE_DIM);
	ck_assert_str_eq(cell, "-");
}

/* A block of its own for nothing, others for each seventh of what is full. */
TEST(values_over_time_are_blocks_and_in_data_a_list)
{
	static const struct column some[] = {
		{ "blame", "BLAME", COL_SHARES, "blame", 8, 0, 0 },
		{ "ops", "OPS", COL_RATES, "ops", 0, 0, 0 },
	};
	static const struct line_style ascii = { .ascii = true };
	struct line line;
	json_t *array;
	char *text;
	size_t size;
	double most;
	FILE *out;

	json_decref(rows);
	rows = json_loads("[{\"blame\": [null, 0, 0.01, 0.25, 0.49, 0.5, 1],"
			  "  \"ops\": [1, 700, 690, 350, 0]},"
			  " {\"blame\": null, \"ops\": [0, 0, null]},"
			  " {\"ops\": {\"1\": 1}, \"blame\": [null, {}, -3]}]", 0, NULL);
	report_init(&report, some, FX_COUNT(some), &usual);
	report_fit(&report, rows, 1000);
	ck_assert_str_eq(row_text(0), "   BLAME    OPS");
	ck_assert_str_eq(row_text(1), " -▁▂▅███  ▂██▅▁");
	ck_assert_str_eq(row_text(2), "       -    ▁▁-");
	ck_assert_str_eq(row_text(3), "     --▁      -");
	line_start(&line, 40);
	report_row(&report, json_array_get(rows, 0), &line);
	text = printed(&line, &ascii);
	ck_assert_str_eq(text, " -014777  17740\n");
	free(text);
	ck_assert(report_value(&some[1], json_array_get(rows, 0), 0, &most));
	ck_assert_double_eq(most, 700);
	ck_assert(!report_value(&some[0], json_array_get(rows, 1), 0, &most));
	array = json_array();
	for (int i = 0; i < 1000; i++)	/* somebody else's answer */
		json_array_append_new(array, json_integer(i));
	json_object_set_new(json_array_get(rows, 1), "ops", array);
	report_fit(&report, rows, 1000);
	ck_assert_int_eq(report.width[1], 16);
	json_object_set_new(json_array_get(rows, 1), "ops", json_null());
	out = open_memstream(&text, &size);
	report_csv_row(&report, json_array_get(rows, 0), out);
	report_csv_row(&report, json_array_get(rows, 1), out);
	report_prom(&report, "ranks", rows, out);
	fclose(out);
	ck_assert_str_eq(text, "\"[null,0,0.01,0.25,0.49,0.5,1]\",\"[1,700,690,350,0]\"\n,\n");
	free(text);
}

TEST(a_terminal_without_utf8_gets_ascii_of_the_same_width)
{
	static const struct line_style ascii = { .ascii = true };
	struct line line;
	char *text;

	line_start(&line, 40);
	line_cell(&line, LINE_PLAIN, "größe", 7, false);
	line_put(&line, LINE_PLAIN, "|");
	text = printed(&line, &ascii);
	ck_assert_str_eq(text, "gr??e  |\n");
	free(text);
}

int main(void)
{
	return fx_run(setup, teardown);
}
