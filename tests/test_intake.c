/* SPDX-License-Identifier: Apache-2.0 */
/* JSON from elsewhere: what a terminal or a sum could not take is gone before anybody looks. */
#include <string.h>

#include "cli/base/intake.h"
#include "tests/fixture.h"

static json_t *take(const char *text)
{
	json_t *root = intake_read(text, strlen(text), NULL);

	ck_assert_msg(root, "%s", text);
	return root;
}

TEST(numbers_are_as_large_as_can_be_added)
{
	static const struct {
		const char *text;
		json_int_t is;
	} numbers[] = {
		{ "[9223372036854775807]", INTAKE_MOST },
		{ "[-9223372036854775808]", -INTAKE_MOST },
		{ "[1152921504606846977]", INTAKE_MOST }, { "[1152921504606846976]", INTAKE_MOST },
		{ "[1152921504606846975]", INTAKE_MOST - 1 }, { "[0]", 0 }, { "[-7]", -7 },
	};

	for (int i = 0; i < FX_COUNT(numbers); i++) {
		json_t *root = take(numbers[i].text);

		ck_assert_int_eq(json_integer_value(json_array_get(root, 0)), numbers[i].is);
		json_decref(root);
	}
}

TEST(fractions_are_as_large_as_whole_numbers)
{
	json_t *root = take("{\"a\": {\"b\": [1e300, -1e300, 0.5]}}");
	json_t *list = json_object_get(json_object_get(root, "a"), "b");

	ck_assert_double_eq(json_real_value(json_array_get(list, 0)), (double)INTAKE_MOST);
	ck_assert_double_eq(json_real_value(json_array_get(list, 1)), -(double)INTAKE_MOST);
	ck_assert_double_eq(json_real_value(json_array_get(list, 2)), 0.5);
	json_decref(root);
	ck_assert_uint_eq(intake_whole(-5), 0);
	ck_assert_uint_eq(intake_whole(0.0 / 0.0), 0);
	ck_assert_uint_eq(intake_whole(1e300), (uint64_t)INTAKE_MOST);
	ck_assert_uint_eq(intake_whole(7.9), 7);
}

TEST(texts_and_names_do_nothing_to_a_terminal)
{
	json_t *root = take("{\"a\\u001b[2J\": [\"x\\n\\u202ey\"],"
			    " \"gr\\u00fc\\u00df\": \"\\u65e5\"}");

	ck_assert_uint_eq(json_object_size(root), 2);
	ck_assert_str_eq(json_string_value(json_array_get(json_object_get(root, "a?[2J"), 0)),
			 "x????y");
	ck_assert_str_eq(json_string_value(json_object_get(root, "gr\u00fc\u00df")), "\u65e5");
	json_decref(root);
	root = take("[\"a\x7f" "b\", \"c\xe2\x80\xae" "d\", \"1e300 00000000000000000000\"]");
	ck_assert_str_eq(json_string_value(json_array_get(root, 0)), "a?b");
	ck_assert_str_eq(json_string_value(json_array_get(root, 1)), "c???d");
	ck_assert_str_eq(json_string_value(json_array_get(root, 2)),
			 "1e300 00000000000000000000");
	json_decref(root);
}

TEST(a_time_that_cannot_be_moved_so_far_is_not_told)
{
	json_t *root = take("{\"a_mono_ns\": -9223372036854775808}");

	intake_move_times(root, INT64_MIN);
	ck_assert(json_is_null(json_object_get(root, "a_mono_ns")));
	json_object_set_new(root, "a_mono_ns", json_integer(5));
	intake_move_times(root, INT64_MAX);
	ck_assert(json_is_null(json_object_get(root, "a_mono_ns")));
	json_object_set_new(root, "a_mono_ns", json_integer(5));
	intake_move_times(root, 2);
	ck_assert_int_eq(json_integer_value(json_object_get(root, "a_mono_ns")), 7);
	json_decref(root);
}

TEST(what_is_no_json_is_told)
{
	json_error_t error;

	ck_assert_ptr_null(intake_read("{", 1, &error));
	ck_assert_str_ne(error.text, "");
	ck_assert_ptr_null(intake_read("", 0, NULL));
}

int main(void)
{
	return fx_run(NULL, NULL);
}
