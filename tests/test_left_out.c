/* SPDX-License-Identifier: Apache-2.0 */
/* What bounds have left out is told, each by itself, and nothing where nothing was. */
#include "cli/left_out.h"

#include <check.h>
#include <string.h>

#include "tests/fixture.h"

static const struct {
	const char *object, *member;
	const char *told;
} rows[] = {
	{ "unwatched", "processes", "7 processes: " },
	{ "unwatched", "names", "7 names, " },
	{ "unwatched", "files", "7 times a file: " },
	{ "reconstruct", "comms_refused", "7 communicators: " },
	{ "memory", "refused", "7 operations or communicators: " },
	{ "memory", "forgotten", "7 ended processes: " },
	{ "aggregate", "evicted", "7 rows of sums " },
	{ "aggregate", "unbinned", "7 durations, " },
	{ "links", "evicted", "7 network links: " },
	{ "ranks", "pushed_out", "7 operations, from comparing ranks: " },
	{ "ranks", "unscanned", "7 operations, from comparing ranks: " },
	{ "exemplars", "skipped", "7 slow operations, " },
	{ "containers", "unseen", "7 processes in containers: " },
	{ "containers", "left_out", "7 times a container or process: " },
	{ "control", "left_out", "7 level settings" },
	{ "control", "forgotten", "7 processes, " },
};

/* Of all members but this one it is 0. */
static json_t *status_with(int which)
{
	json_t *status = json_object();

	for (int i = 0; i < FX_COUNT(rows); i++) {
		json_t *object = json_object_get(status, rows[i].object);

		if (!object) {
			object = json_object();
			json_object_set_new(status, rows[i].object, object);
		}
		json_object_set_new(object, rows[i].member, json_integer(i == which ? 7 : 0));
	}
	return status;
}

TEST(nothing_is_told_where_nothing_is_left_out)
{
	json_t *status = status_with(-1), *processes = json_pack("{s:[]}", "processes");
	char text[LEFT_OUT_BYTES];
	size_t i = 0;

	ck_assert(!left_out_next(status, processes, &i, text));
	json_decref(status);
	json_decref(processes);
}

TEST_LOOP(each_bound_is_told_with_its_number, 0, FX_COUNT(rows))
{
	json_t *status = status_with(_i);
	char text[LEFT_OUT_BYTES];
	size_t i = 0;

	ck_assert(left_out_next(status, NULL, &i, text));
	ck_assert_msg(!strncmp(text, rows[_i].told, strlen(rows[_i].told)), "%s", text);
	ck_assert_uint_lt(strlen(text), 80);
	ck_assert(!left_out_next(status, NULL, &i, text));
	json_decref(status);
}

TEST(calls_that_plugins_do_not_know_are_added_up)
{
	json_t *status = json_object(), *processes;
	char text[LEFT_OUT_BYTES];
	size_t i = 0;

	processes = json_pack("{s:[{s:{s:i,s:i}},{s:{s:i,s:i}}]}", "processes",
			      "ignored", "event", 2, "handle", 5,
			      "ignored", "event", 1, "context", 4);
	ck_assert_ptr_nonnull(processes);
	ck_assert(left_out_next(status, processes, &i, text));
	ck_assert_ptr_nonnull(strstr(text, "3 events of a kind "));
	ck_assert(left_out_next(status, processes, &i, text));
	ck_assert_ptr_nonnull(strstr(text, "4 events of communicators "));
	ck_assert(!left_out_next(status, processes, &i, text));
	json_decref(status);
	json_decref(processes);
}

TEST(totals_of_others_are_not_known_and_not_told)
{
	json_t *status = json_pack("{s:n,s:n}", "reconstruct", "ranks");
	char text[LEFT_OUT_BYTES];
	size_t i = 0;

	ck_assert(!left_out_next(status, NULL, &i, text));
	json_decref(status);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
