/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_API_H
#define TESTS_SIM_API_H

/*
 * A profiler library as NCCL's inner code sees it: always the newest interface.
 * Older libraries are reached through the same conversions, with the same
 * losses and flaws, as in NCCL; NCCL's own interface of that release is
 * reached without any.
 *
 * Thread-safe once filled in: it only calls out.
 */

#include <stdbool.h>
#include <stdint.h>

#include "nccl/profiler.h"

struct api_ops;

struct api {
	const struct api_ops *ops;
	const void *table;
	int version;		/* of the library's table */
	int native;		/* what NCCL itself speaks in this release */
};

/* What init tells a library about a communicator. */
struct api_comm {
	uint64_t id;
	const char *name;	/* may be NULL */
	int nnodes, nranks, rank;
	nccl_logger_fn *logger;
};

/* NCCL's own event: the newest descriptor, and what only old ones carry. */
struct api_event {
	struct nccl_descr_v7 descr;
	uint64_t comm_id;	/* Coll and P2p, native 2.23 to 2.26 */
	uint64_t traffic_bytes;
};

void api_bind(struct api *api, const void *table, int version, int release);

int api_init(const struct api *api, void **context, int *mask, const struct api_comm *comm);
void api_start(const struct api *api, void *context, void **handle, struct api_event *event);
void api_stop(const struct api *api, void *handle);

/* args: as the newest interface has them; old ones need `steps` too. */
void api_state(const struct api *api, void *handle, int state, union nccl_args_v4 *args,
	       int steps);
void api_finalize(const struct api *api, void *context);

#endif
