/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0) */
#ifndef PROBE_RESENT_H
#define PROBE_RESENT_H

/* Sums of TCP segments that were sent again: the keys of the map that kernel/watch.c counts in. */

#ifdef __bpf__
#include "probe/kernel/types.h"
#else
#include <stdint.h>
#endif

#define RESENT_SUMS	2048u

struct resent_key {
	int32_t pid;
	uint32_t turn;		/* the half, 0 or 1: counted in, or waiting to be told */
	uint8_t address[16];	/* the other end's */
};

#endif
