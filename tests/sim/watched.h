/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_WATCHED_H
#define TESTS_SIM_WATCHED_H

/*
 * Which operations NCCL was asked to time by KernelCh, as their calls read it in the
 * mask: one line of JSON for each run of operations of one rank of a communicator.
 */

#include <stdbool.h>
#include <stdint.h>

struct member;

/* Of one member. */
struct watched {
	uint64_t first, last;		/* operations of the communicator */
	int64_t first_real_ns;		/* CLOCK_REALTIME, when the first one was called */
	bool any;
};

/* fd: in O_APPEND, each line one write; -1: nobody wants to know. */
void watched_note(int fd, struct member *m, uint64_t op, bool is_watched);

/* The run that lasts, if one does, ends here. */
void watched_end(int fd, struct member *m);

#endif
