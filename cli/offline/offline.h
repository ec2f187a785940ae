/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OFFLINE_OFFLINE_H
#define CLI_OFFLINE_OFFLINE_H

/*
 * Snapshots and black boxes in place of the daemon: what it would answer, of all nodes
 * together, each row with its node's name as "host", and findings judged of all of them.  Times on
 * a node's clock are moved so that its file seems to be of this moment: ages are those of then.
 */

#include <jansson.h>

#include "cli/common/cli.h"

struct joint;
struct offline;

/*
 * `n` files and directories, as ncclinsp report takes them.  `until` NULL: of each node the
 * newest; else the newest that is not later (shots.h).  NULL: none tells anything, which is
 * told on stderr; *code: the exit code that goes with it.  code NULL: nobody is told.
 */
struct offline *offline_open(const char *const *paths, size_t n, const char *until,
			     enum cli_exit *code);
void offline_free(struct offline *o);

/*
 * The same in pieces, where nodes themselves are asked: add to the joint (joint.h), then have
 * times moved, once, before the first answer.
 */
struct offline *offline_new(const char *until);
struct joint *offline_joint(struct offline *o);
void offline_settle(struct offline *o);

/* A new object; NULL: files do not tell that.  `arg` is the struct offline. */
json_t *offline_answer(void *arg, const char *target);

/* A source that can be asked again: `ask` adds what is so now.  The rest is zeroed. */
struct offline_live {
	void (*ask)(void *arg, struct joint *joint);
	void *arg;
	struct offline *sample;	/* the last answer; NULL: nothing yet */
	json_t *told;		/* targets that were answered from it */
};

/*
 * A client's source, `arg` being the struct offline_live.  It is asked anew when the same is
 * asked again: a sample is of one moment.
 */
json_t *offline_live_answer(void *arg, const char *target);
void offline_live_deinit(struct offline_live *live);

#endif
