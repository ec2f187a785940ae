/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FIXTURE_H
#define TESTS_FIXTURE_H

/* Shared set-up of the unit tests. */

#include <check.h>

/*
 * Run a suite and report in TAP, which `prove` adds up.  Returns main()'s exit
 * status.  Each test runs in a process of its own (CK_FORK=no: in this one).
 */
int fx_run(Suite *suite);

/* Say in the report why the running test proves nothing here; it returns then. */
void fx_skip(const char *why);

/* A fresh directory, removed with all it holds when the test process exits. */
const char *fx_tmpdir(void);

/* Where the build is: the plugin, the daemon, the simulator. */
const char *fx_build_path(const char *name);

#endif
