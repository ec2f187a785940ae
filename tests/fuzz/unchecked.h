/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_UNCHECKED_H
#define TESTS_FUZZ_UNCHECKED_H

/*
 * For fixtures in a fuzz target, included before them: what they assert is demanded here,
 * since check has nobody to tell outside of a test.
 */

#include <check.h>

#include "tests/fuzz/fuzz.h"

#undef ck_assert_int_eq
#undef ck_assert_uint_eq
#undef ck_assert_msg
#define ck_assert_int_eq(a, b)	demand((a) == (b))
#define ck_assert_uint_eq(a, b)	demand((a) == (b))
#define ck_assert_msg(held, ...) demand(held)

#endif
