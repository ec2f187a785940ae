/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_AROUND_KMSG_H
#define NCCLINSPD_AROUND_KMSG_H

/*
 * Errors of GPUs in the kernel's log.  Its device never blocks, so the loop reads it itself, some
 * records at each look.
 */

#include <stddef.h>

#include "judge/xid.h"

#define KMSG_PATH	"/dev/kmsg"
#define KMSG_XIDS	64	/* the newest are kept */
#define KMSG_WHY	96

struct kmsg {
	int fd;			/* -1: it cannot be read; `why` says so */
	char why[KMSG_WHY];
	bool caught_up;		/* its records from before the start have been read */
	struct kmsg_xid {
		uint32_t domain, bus, device;	/* the GPU's place on the PCI bus */
		struct xid xid;
	} at[KMSG_XIDS];	/* a ring */
	uint32_t n;		/* all since the start */
};

/* `path` "": it is not to be read. */
void kmsg_open(struct kmsg *k, const char *path);
void kmsg_close(struct kmsg *k);

void kmsg_look(struct kmsg *k, uint64_t now_ns);

/*
 * The first error of that GPU since then that is no consequence of another.  With a pid, only one
 * that names this process or none.  False: there is none.
 */
bool kmsg_find(const struct kmsg *k, const char *pci_bus_id, uint64_t since_ns, int32_t pid,
	       struct xid *out);

#endif
