/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_BASE_LOOP_BACKEND_H
#define NCCLINSPD_BASE_LOOP_BACKEND_H

/* The functions that a backend gives loop.c; nobody else includes this. */

#include "ncclinspd/base/loop.h"

#define LOOP_FDS	64	/* descriptors watched at the same time */

struct loop_ops {
	const char *name;
	int (*open)(void **state);
	void (*close)(void *state);
	int (*watch)(void *state, int fd);
	void (*unwatch)(void *state, int fd);
	/*
	 * Wait for a watched descriptor to be readable, for at most `wait_ns`
	 * (UINT64_MAX: for ever).  Returns how many of them it put into `ready`.
	 */
	int (*wait)(void *state, uint64_t wait_ns, int ready[LOOP_FDS]);
};

extern const struct loop_ops loop_uring;
extern const struct loop_ops loop_epoll;

#endif
