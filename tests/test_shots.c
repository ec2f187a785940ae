/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of several nodes, of which two may say that they are the same. */
#include <stdio.h>

#include "cli/offline/shots.h"
#include "tests/fixture.h"

static struct shots shots;

static void setup(void)
{
	shots = (struct shots){ 0 };
	shots_init(&shots);
}

static void teardown(void)
{
	shots_deinit(&shots);
}

static void answer(const char *name, const char *host, int started)
{
	char text[512];

	snprintf(text, sizeof(text), "{\"format\":\"ncclinsp-snapshot\",\"format_version\":1,"
		 "\"written_at\":\"2026-11-27T10:00:00.000000000Z\",\"written_mono_ns\":1000,"
		 "\"status\":{\"host\":\"%s\",\"started_at\":\"2026-11-27T09:00:00.000000000Z\","
		 "\"started_mono_ns\":%d}}", host, started);
	shots_add_answer(&shots, name, text, NULL);
}

TEST(node_that_has_the_name_of_another_is_told_as_one_that_gave_no_answer)
{
	answer("a", "node7", 1);
	answer("b", "node7", 2);
	answer("c", "node8", 3);
	ck_assert_uint_eq(shots.nodes.n, 2);
	ck_assert_uint_eq(json_object_size(shots.silent), 1);
	ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(shots.silent, "b")),
				     "has the same name"));
}

TEST(node_that_was_asked_by_two_names_is_one)
{
	answer("a", "node7", 1);
	answer("alias-of-a", "node7", 1);
	ck_assert_uint_eq(shots.nodes.n, 1);
	ck_assert_ptr_null(shots.silent);
}

int main(void)
{
	return fx_run(setup, teardown);
}
