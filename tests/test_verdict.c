/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that say what is wrong, as text on the screen. */
#include "cli/base/member.h"
#include "cli/common/prose.h"
#include "cli/view/findings.h"
#include "tests/fixture_view.h"

/* As /v1/findings tells it, about eight live processes. */
static json_t *answer(void)
{
	if (!fx.answers.findings)
		fx.answers.findings = json_pack("{s:[], s:{s:i, s:i, s:i, s:n, s:[]}}", "findings",
						"watched", "live", FX_RANKS, "unseen", 0,
						"settling", 0, "settles_mono_ns", "jobs");
	return fx.answers.findings;
}

static void add(const char *grade, const char *severity, const char *kind, const char *text)
{
	json_array_append_new(json_object_get(answer(), "findings"),
			      json_pack("{s:b s:s s:s s:s s:s s:I}", "active", 1, "grade", grade,
					"severity", severity, "kind", kind, "text", text,
					"since_mono_ns", (json_int_t)(FX_NOW - 43 * FX_SECOND)));
}

static void set_watched(const char *key, json_int_t value)
{
	json_object_set_new(json_object_get(answer(), "watched"), key, json_integer(value));
}

TEST(what_is_found_comes_first_then_what_is_suspected_then_notes)
{
	static const char *const order[] = {
		"! c; it began 43s ago", "! b; it began", "! d; it began 43s ago (more:",
		"! suspected: f; it began 43s ago", "! suspected: e; it began 43s ago (more:",
		"a; it began 43s ago",
	};

	add("suspected", "warning", "straggler", "e. x");
	add("found", "info", "slow_peer", "a. x");
	add("found", "warning", "loss", "d. x");
	add("found", "warning", "regression", "b. x");
	add("suspected", "critical", "desync", "f. x");
	add("found", "critical", "died", "c. x");
	fx_build();
	for (int i = 0; i < FX_COUNT(order); i++)
		ck_assert_int_eq(fx_find_line(order[i]), i);
	ck_assert(!fx_shows("no fault"));
	ck_assert(!fx_shows("! a"));
}

TEST_LOOP(of_more_than_three_of_one_grade_the_rest_is_counted, 0, 2)
{
	for (int i = 0; i < 5; i++)
		add(_i ? "suspected" : "found", "warning", "straggler", "x");
	fx_build();
	ck_assert_int_eq(fx_find_line(_i ? "! 2 more suspected: ncclinsp diagnose"
					 : "! 2 more found: ncclinsp diagnose"), 3);
}

/* It may hang, where no end is watched. */
TEST(job_that_has_become_quiet_is_not_called_well)
{
	add("suspected", "info", "stall", "no operation was posted. x");
	fx_build();
	ck_assert_int_eq(fx_find_line("no operation was posted; it began 43s ago"), 0);
	ck_assert(!fx_shows("no fault"));
}

/* As after a restart of the daemon, which has one about each process. */
TEST(notes_do_not_hide_that_nothing_is_wrong)
{
	add("found", "info", "loss", "a. x");
	add("found", "info", "loss", "b. x");
	fx_build();
	ck_assert_int_eq(fx_find_line("no fault is found or suspected in 8 live processes"), 0);
	ck_assert_int_eq(fx_find_line("2 notes: ncclinsp diagnose"), 1);
	ck_assert(!fx_shows("it began"));
}

/* The daemon alone says what is wrong: not what is in flight, nor who has died or is late. */
TEST(nothing_is_judged_here)
{
	fx_add_inflight("Coll", "live", 43);
	fx_add_inflight("Coll", "died", 43);
	answer();
	fx_build();
	ck_assert_int_eq(fx_find_line("no fault is found or suspected in 8 live processes"), 0);
	ck_assert(!fx_shows("! "));
}

TEST(without_a_live_process_nothing_is_called_well)
{
	set_watched("live", 0);
	fx_build();
	ck_assert_int_eq(fx_find_line("uses NCCL with the plugin; ncclinsp doctor shows"), 0);
	ck_assert(!fx_shows("no fault"));
}

TEST(nobody_says_all_is_well_who_cannot_see)
{
	set_watched("unseen", 1);
	fx_build();
	ck_assert(fx_shows("no fault is found or suspected in 8 live processes; but the kernels of "
			   "1 of 8 processes are not seen"));
}

TEST(nor_who_hears_so_little)
{
	set_watched("unled", 8);
	fx_build();
	ck_assert(fx_shows("8 live processes; but 8 of 8 processes do not see the daemon's "
			   "control file"));
	ck_assert(fx_shows("and a late rank is found later"));
}

TEST_LOOP(whose_kernels_are_not_timed_yet_is_told_from_when_on, 0, 2)
{
	set_watched("settling", 8);
	if (!_i)
		set_watched("settles_mono_ns", (json_int_t)(FX_NOW + 23 * FX_SECOND / 2));
	fx_build();
	ck_assert(!fx_shows("not seen"));
	ck_assert(fx_shows(_i ? "; settling: the kernels of 8 of 8 processes are timed from their "
				"next operation on"
			      : "; settling: the kernels of 8 of 8 processes are timed in 12s"));
}

TEST(what_is_wrong_is_said_in_full_on_a_narrow_terminal)
{
	add("suspected", "critical", "desync", "rank 5 (pid 4005) has not come to AllReduce #12 on "
	    "größe; its last one there is #11; ranks 0-4,6-7 wait there. For 7s.");
	view_build(&fx.view, &fx.answers, FX_NOW);
	fx_show(80, 24);
	ck_assert(fx_shows("! suspected: rank 5 (pid 4005) has not come to AllReduce #12 on "
			   "größe;"));
	ck_assert(fx_shows("ranks 0-4,6-7 wait there; it began"));
}

TEST(a_late_rank_is_listed_first)
{
	int header;

	json_object_set_new(fx_worst_rank(5), "late_ns", json_integer(13900000));
	fx_build();
	header = fx_find_line("RANK  GPU");
	ck_assert_int_ge(header, 0);
	ck_assert(strstr(fx.frame.lines[header + 1].text, "  5  0000:15:00.0"));
	ck_assert(strstr(fx.frame.lines[header + 1].text, "13900"));
}

TEST(the_table_has_the_worst_first_and_last_what_is_over)
{
	static const char *const order[] = {
		"died", "slow_peer", "loss", "desync", "straggler", "stall"
	};
	json_t *rows = json_pack("[{s:s s:s s:b}, {s:s s:s s:b s:s}, {s:s s:s s:b}, {s:s s:s s:b},"
				 " {s:s s:s s:b}, {s:s s:s s:b}]",
				 "kind", "stall", "severity", "critical", "active", 0,
				 "kind", "desync", "severity", "critical", "active", 1,
				 "grade", "suspected",
				 "kind", "straggler", "severity", "info", "active", 1,
				 "kind", "loss", "severity", "warning", "active", 1,
				 "kind", "slow_peer", "severity", "warning", "active", 1,
				 "kind", "died", "severity", "critical", "active", 1);
	json_t *shaped = findings_reshape(rows, 1);

	for (size_t i = 0; i < FX_COUNT(order); i++)
		ck_assert(member_is(json_array_get(shaped, i), "kind", order[i]));
	ck_assert(member_is(json_array_get(shaped, 3), "now", "suspected"));
	ck_assert_int_eq(findings_count(rows, "critical"), 1);
	json_decref(shaped);
	json_decref(rows);
}

TEST(a_word_is_whole_on_the_narrowest_terminal)
{
	static const char path[] = "NCCL_PROFILER_PLUGIN=/opt/nccl/lib/libnccl-profiler-insp.so";
	struct frame frame;

	prose_begin(&frame, &(struct cli){ .columns = 24 }, PROSE_WIDEST);
	prose_put(&frame, LINE_PLAIN, 2, 4, "start jobs with NCCL_PROFILER_PLUGIN="
		  "/opt/nccl/lib/libnccl-profiler-insp.so and look again");
	ck_assert_int_eq(frame.count, 3);
	ck_assert_str_eq(frame.lines[1].text + 4, path);
	ck_assert_str_eq(frame.lines[2].text, "    and look again");
	frame_deinit(&frame);
}

int main(void)
{
	return fx_run(fx_setup, fx_teardown);
}
