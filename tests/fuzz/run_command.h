/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_RUN_COMMAND_H
#define TESTS_FUZZ_RUN_COMMAND_H

/*
 * One command of ncclinsp, as main() would run it, with what it prints caught: that is text
 * which does nothing to a terminal, however the answers and files look that it was made of.
 */

#include "cli/command.h"
#include "cli/common/cli.h"
#include "tests/fuzz/fuzz.h"

/* From here to there nothing is printed. */
void command_catch_output(void);
void command_check_output(void);

/*
 * In between: `format` and `flags` are bits of the input's.  `from` are files in place of a daemon,
 * `paths` (npaths of them) a command's arguments.
 */
void command_run(enum command_id id, uint8_t format, uint8_t flags, struct client *client,
		 struct cli_list from, char **paths, int npaths);

#endif
