/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_ASKED_H
#define TESTS_SIM_ASKED_H

/*
 * What NCCL was asked for of each operation, which is what its call read in the mask:
 * one line of JSON for each run of operations of one rank with the same mask.
 */

#include <stdbool.h>
#include <stdint.h>

struct member;

/* Of one member. */
struct asked {
	uint64_t first, last;		/* operations of the communicator */
	int64_t first_real_ns;		/* CLOCK_REALTIME, when the first one was called */
	int mask;
	bool any;
};

/* fd: in O_APPEND, each line one write; -1: nobody wants to know. */
void asked_note(int fd, struct member *m, uint64_t op, int mask);

/* The run that lasts, if one does, ends here. */
void asked_end(int fd, struct member *m);

#endif
