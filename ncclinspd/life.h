/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_LIFE_H
#define NCCLINSPD_LIFE_H

/* Whether the process behind a segment still runs, and if not, whether it said so. */

#include "ncclinspd/segment.h"

enum life {
	LIFE_ALIVE,
	LIFE_EXITED,
	LIFE_DIED,
};

/* Fills in host_pid and host_pid_proven of a segment that was just opened. */
void life_find_owner(struct segment *seg);

/* Its process holds the lock, as only a running one can. */
bool life_is_held(const struct segment *seg);

enum life life_of(const struct segment *seg);

#endif
