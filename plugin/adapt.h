/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_ADAPT_H
#define PLUGIN_ADAPT_H

/*
 * Descriptors of all interface versions, brought into one form: that of version 6.
 * Version 5 has it already, member for member, and so has version 7, but for what its
 * members have behind their end.
 */

#include "nccl/profiler.h"

/* Values that version 6 has no field for; all 0 from version 4 to 6. */
struct adapt_extra {
	uint64_t comm_hash;
	uint64_t traffic;	/* bytes */
	uint64_t tag;
	uint64_t origin;	/* the issuer's context, where that is another process */
	const char *variant;	/* or NULL */
	uint16_t red_op;
	uint8_t flags;		/* NCI_COLL_* */
};

/* An event in the form of version 6: only the union member of its type means anything. */
struct adapt_event {
	struct nccl_descr_v6 descr;
	struct adapt_extra extra;
};

extern const struct adapt_extra adapt_no_extra;

/* A pointer that NCCL carries, or the application's: never followed. */
static inline uint64_t adapt_number(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

/* `d->type` must be a single event of that version. */
void adapt_v1(struct adapt_event *e, const struct nccl_descr_v1 *d);
void adapt_v2(struct adapt_event *e, const struct nccl_descr_v2 *d);
void adapt_v3(struct adapt_event *e, const struct nccl_descr_v3 *d);
void adapt_v4(struct adapt_event *e, const struct nccl_descr_v4 *d);

/* The same descriptor in the form of version 6, and what that does not have. */
const struct nccl_descr_v6 *adapt_v7(struct adapt_extra *extra, const struct nccl_descr_v7 *d);

/*
 * State arguments of versions 1 to 3: none for a ProxyStep.  NCCL up to 2.26
 * gives none; later ones pass zeros there, which are no sizes.
 */
static inline void *adapt_args_v1(int state, union nccl_args_v1 *args)
{
	if (state >= NCCL_STEP_SEND_GPU_WAIT && state <= NCCL_STEP_RECV_GPU_WAIT)
		return NULL;
	return args;
}

#endif
