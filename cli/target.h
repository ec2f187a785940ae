/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TARGET_H
#define CLI_TARGET_H

/* The target of a command that changes something: the node, a process, a job, a communicator. */

#include "cli/common/cli.h"

/*
 * The argument that names it, "node", a pid or NULL, beside the options; `what` is the
 * other thing that it could have been meant as.  0, or an exit code after having said
 * what is wrong.
 */
int target_take(struct cli *cli, const char *argument, const char *what);

/*
 * PUT a request, whose body (taken over) is then completed with whom it is about and
 * --dry-run; `tell` prints the answer for people.  Returns an exit code.
 */
int target_change(struct cli *cli, const char *path, json_t *body,
		  void (*tell)(struct cli *cli, const json_t *answer));

/* "job 7": of an answer, or of a wish. */
void target_text(char *buf, size_t size, const json_t *answer);

/*
 * A listing's fetch of an answer with "processes": those of the communicator --comm get
 * its id and name, so that they pass its filter.  `arg` is the request, as text.
 */
int target_fetch(struct cli *cli, void *arg, json_t **root);

#endif
