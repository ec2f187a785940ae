/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_ATTACH_H
#define PROBE_ATTACH_H

#include <stdint.h>

#define ATTACH_NO_RIGHT	3	/* exit status: the kernel does not let it */
#define ATTACH_MOST_S	3600

/*
 * Counts the calls of NCCL that these processes ("4711,4712") make in the next seconds, or until a
 * signal to end, and prints them as one JSON object on stdout.  An exit status.
 */
int attach_run(const char *pids, uint32_t seconds);

#endif
