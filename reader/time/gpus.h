/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_TIME_GPUS_H
#define READER_TIME_GPUS_H

/*
 * The clocks of the node's GPUs: one for each GPU whose uuid the processes tell, and
 * where they do not, one for each communicator of each process.  Each user has clocks
 * of their own, or one could make up stamps that put another's out; and so has each
 * kind of host counter.
 *
 * The kernel slews CLOCK_MONOTONIC, by more than clocks drift: seen by it, a GPU's
 * clock does not run straight.  So they are compared with the host's counter, whose
 * ticks are turned into ns by a rate that is frozen, and only what comes out is
 * placed on CLOCK_MONOTONIC.
 */

#include "reader/base/model.h"
#include "reader/time/gpuclock.h"
#include "util/list.h"

#define GPUS_MAX	1024
#define GPUS_OF_USER	768	/* the most that one user's communicators hold */

struct gpu {
	bool has_uuid;
	uint8_t uuid[16];
	char pci_bus_id[32];	/* "": not known */
	int32_t gpu_index;	/* its number in nvidia-smi; UNKNOWN_I32: not known */
	pid_t pid;		/* process that used it last */
	uid_t uid, account;
	uint64_t process_id;	/* process that names it if it has no uuid, and */
	uint16_t comm;		/* communicator of that process */
	uint64_t comm_id;
	bool has_comm_id;
	int32_t rank;
	uint32_t users;		/* communicators that hold it */
	struct tick_clock host;	/* clock when the GPU was first seen */
	struct tick_clock now;	/* clock when it was last used */
	struct gpuclock *clock;	/* GPU's clock in `host`'s time, not quite CLOCK_MONOTONIC */
};

struct gpus {
	LIST(struct gpu *);
	uint64_t freed;		/* times that one lost its last user */
};

/* Zeroed is empty. */
void gpus_deinit(struct gpus *gpus);

/*
 * The GPU of that communicator of that process; held until gpus_put().  NULL: no
 * memory, or GPUS_MAX are in use, or GPUS_OF_USER by that user.
 */
struct gpu *gpus_get(struct gpus *gpus, const struct process *p, uint16_t comm);
void gpus_put(struct gpus *gpus, struct gpu *gpu);	/* NULL is fine */

/*
 * The latest that a stamp's true moment can have been, CLOCK_MONOTONIC ns, and how much earlier
 * than that: UNKNOWN_U64 is any time.  `clock` is what a tick is now.  False: nothing is known.
 */
bool gpus_map(const struct gpu *gpu, const struct tick_clock *clock, uint64_t gpu_ns,
	      uint64_t *hi, uint64_t *error_ns);

#endif
