/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_APP_H
#define TESTS_SIM_APP_H

/*
 * An application thread: it makes the API calls of its ranks and launches their
 * kernels, one step of the plan after the other.
 */

#include "tests/sim/hook.h"

struct app_range {
	struct player *player;
	int first, count;	/* world ranks */
};

/*
 * Play the whole program for these ranks in the calling thread.  Returns 0 when
 * all of it is done, 1 when something hangs for ever, or -ENOMEM.
 */
int app_run(const struct app_range *range);

#endif
