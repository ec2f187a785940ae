/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_AROUND_NICS_H
#define NCCLINSPD_AROUND_NICS_H

/*
 * The node's network interfaces, RDMA ports and network devices of hardware, as Linux' sysfs
 * tells them, every ten seconds while processes use NCCL.  A thread reads it, since a device's
 * firmware may hang.  Nobody waits for that thread: what it has not told for NICS_STALE_NS is
 * unknown.
 */

#include "judge/nic.h"

struct nics;

#define NICS_MOST	32	/* later ones are not read */
#define NICS_MINUTE	6	/* readings in a minute */
#define NICS_STALE_NS	UINT64_C(30000000000)

/* 0, -ENOMEM, or why there is no thread.  `sys`: NULL is /sys; `interval_ns`: 0 is 10 s. */
int nics_new(struct nics **out, const char *sys, uint64_t interval_ns);

/* Waits for the thread for a second at most. */
void nics_free(struct nics *n);

/* They are read from now on, or not. */
void nics_look(struct nics *n, bool wanted);

/* The interfaces that there are, with the health of each.  Never waits. */
uint32_t nics_all(struct nics *n, uint64_t now_ns, struct nic_health out[NICS_MOST]);

#endif
