/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FX_ACCOUNTS_H
#define TESTS_FX_ACCOUNTS_H

/* What a text in /etc/subuid makes of user ids. */

#include <stdio.h>

#include "reader/base/accounts.h"
#include "tests/fixture.h"

static inline struct accounts *fx_accounts(const char *text)
{
	static char path[128];
	struct accounts *a;
	FILE *f;

	snprintf(path, sizeof(path), "%s/subuid", fx_tmpdir());
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
	ck_assert_int_eq(accounts_new(&a, path, "/nonexistent"), 0);
	return a;
}

#endif
