/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_BACKGROUND_H
#define NCCLINSPD_BACKGROUND_H

/* A daemon whose caller goes on only when the daemon answers. */

/*
 * The child goes on; the parent waits until it is ready or gone and never
 * returns.  Before anything is open: threads stay with the parent.
 * 0 or a negative errno; *ready_fd is where the parent waits.
 */
int background_enter(int *ready_fd);

/*
 * The parent may go: from here on the daemon answers.  Standard output and
 * error go to a log in `state_dir`; NULL: nowhere.  Nothing where *ready_fd is -1.
 */
void background_ready(int *ready_fd, const char *state_dir);

#endif
