/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_IDENTITY_H
#define PLUGIN_IDENTITY_H

/* The identity of this process, as its segment tells it.  All slow: for init only. */

#include <sys/types.h>

#include "nci/segment.h"

/* Field 22 of /proc/<pid>/stat, clock ticks since boot; 0: no such process. */
uint64_t identity_start_time(pid_t pid);

/* The NCI_CLOCK_* that is good on this machine. */
uint32_t identity_clock(void);

/* Fill `bytes` at `to` with what nobody can guess or repeat. */
void identity_random(void *to, size_t bytes);

/* All of the header that is neither layout nor nonce. */
void identity_fill(struct nci_header *h, uint32_t clock);

#endif
