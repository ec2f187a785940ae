/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_LEVELS_KERNELS_H
#define NCCLINSPD_LEVELS_KERNELS_H

/*
 * Whether a process's kernels are timed, and why not, from what its plugin tells of itself:
 * mask, mode, sample and what it has seen (nci/segment.h).
 */

#include "reader/base/model.h"

enum kernels_state {
	KERNELS_NEVER,		/* no burst is to come either */
	KERNELS_ALWAYS,		/* timed, with no end planned */
	KERNELS_OUTSIDE,	/* now: outside a burst */
	KERNELS_INSIDE,		/* now: inside a burst, or in the time of NCI_MODE_FIRST */
	KERNELS_SETTLING,	/* not yet: how it uses NCCL has yet to show */
};

enum kernels_state kernels_state(const struct process *p);

/* "never" and so on. */
const char *kernels_word(enum kernels_state state);

/* Write a mode as NCCLINSP_KERNELS says it, into `text`: "burst", "first 60s". */
#define KERNELS_MODE_BYTES	24
const char *kernels_mode(uint32_t mode, uint32_t seconds, char text[KERNELS_MODE_BYTES]);

/* The inverse: NCI_MODE_*, or 0 where it is none. */
uint32_t kernels_parse_mode(const char *text, uint32_t *seconds);

/* One sentence; NULL: they are timed as level, mode and sample say. */
const char *kernels_reason(const struct process *p);

#endif
