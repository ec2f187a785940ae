/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_CONFIG_H
#define NCCLINSPD_CONFIG_H

/* Options, environment and defaults: root's daemon serves the node, a user's the user. */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/log.h"

struct config {
	char socket[PATH_MAX];
	char shm_dir[PATH_MAX];
	char state_dir[PATH_MAX];
	const char *loop;	/* backend that is forced, or NULL */
	bool foreground;
	bool everybody;		/* read all users' segments */
	enum log_level log_level;
	uint32_t max_segments;
	uint32_t max_ended;
	uint64_t keep_ns;
	uint64_t straggler_window_ns;	/* 0: the default of straggler */
	uint64_t stall_min_ns;	/* 0: the default of diagnose */
};

enum config_outcome {
	CONFIG_RUN = 0,
	CONFIG_DONE,		/* it was a question, and it was answered on stdout */
};

/* Texts of the result live as long as argv and the environment.  -EINVAL: told on stderr. */
int config_parse(struct config *config, int argc, char **argv);

#endif
