/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_EMIT_H
#define PLUGIN_EMIT_H

/*
 * The three callbacks, in the form of version 6.  Any thread, any argument: no
 * lock, allocation, system call or loop without a small bound, but for a thread's
 * first event (its lane) and a name's first sight.  All return NCCL_SUCCESS.
 */

#include "plugin/adapt.h"
#include "plugin/process.h"

/* Whether an event of this type (0 or several bits: none) may get a handle. */
static inline bool emit_wants(uint64_t type)
{
	return likely(type & atomic_load_explicit(&process_self.wanted,
						  memory_order_acquire)) &&
	       likely(!(type & (type - 1)));
}

/*
 * A start that emit_wants() refused: counted, if its type is none of `events`.  Where
 * groups are there only for us to decide when they stop, *handle says so.
 */
int emit_refuse(uint64_t type, uint32_t events, void **handle, const struct nccl_descr_v6 *d);

/* A part of the kernel whose KernelCh has that token: noted there, *handle takes its end. */
int emit_phase(void **handle, uint64_t kernel, const struct nccl_kernel_phase *phase);

/* Start an event of a type that emit_wants().  *handle is 0, and stays so if it is refused. */
int emit_start(uint64_t context, void **handle, const struct nccl_descr_v6 *d,
	       const struct adapt_extra *extra);

/* The same for a ProxyStep, wanted or not, whatever *handle is. */
int emit_step(uint64_t context, void **handle, const struct nccl_descr_v6 *d);

/* The callbacks of version 4 and newer themselves. */
int emit_state(void *handle, int number, union nccl_args_v4 *args);
int emit_stop(void *handle);

#endif
