/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RUN_CHILD_H
#define CLI_RUN_CHILD_H

/* Another program in the foreground, as if it had been started without us. */

/*
 * Runs the program, found along PATH, until it ends: with our files and our terminal, in our
 * process group, so that it gets the terminal's signals as we do.  Signals that are sent to us
 * alone are handed on.  0, with *status as waitpid() has it, or a negative errno: it was not
 * started.
 */
int child_run(char *const argv[], int *status);

/* The exit code of such a status.  One that a signal ended ends us by the same signal. */
int child_end_alike(int status);

#endif
