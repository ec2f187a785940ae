/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FX_EXPOSITION_H
#define TESTS_FX_EXPOSITION_H

#include <stdlib.h>

#include "ncclinspd/metrics/exposition.h"
#include "tests/fixture.h"

/* The text that was written, terminated, to be freed. */
static inline char *fx_exposition_text(struct exposition *e)
{
	size_t bytes;
	char *text;

	ck_assert_int_eq(e->out.error, 0);
	text = json_steal(&e->out, &bytes);
	text = realloc(text, bytes + 1);
	text[bytes] = '\0';
	return text;
}

#endif
