/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables that NCCL looks up, one per version of its interface.  Every callback
 * says success, whatever happened: NCCL either ignores the result or, after a failed
 * init, unloads us under other communicators.
 */
#include "plugin/emit.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- init, finalize ----------------------------------------------------------- */

#define CALLER	__builtin_extract_return_addr(__builtin_return_address(0))

static int entry_init(void **context, int *mask, const struct process_comm *comm)
{
	uint64_t token = process_init(comm, mask);

	if (context)
		*context = (void *)token;
	return NCCL_SUCCESS;
}

#define INIT_BEFORE_V4(v)								\
	static int entry_init_v##v(void **context, int *mask)				\
	{										\
		return entry_init(context, mask, &(struct process_comm){		\
			.version = (v), .caller = CALLER });				\
	}
INIT_BEFORE_V4(1)
INIT_BEFORE_V4(2)
INIT_BEFORE_V4(3)

static int entry_init_v4(void **context, int *mask, const char *name, uint64_t id, int nnodes,
			 int nranks, int rank, nccl_logger_fn *logger)
{
	return entry_init(context, mask, &(struct process_comm){
		4, CALLER, true, id, name, nnodes, nranks, rank, logger });
}

#define INIT_FROM_V5(v)									\
	static int entry_init_v##v(void **context, uint64_t id, int *mask, const char *name, \
				   int nnodes, int nranks, int rank, nccl_logger_fn *logger) \
	{										\
		return entry_init(context, mask, &(struct process_comm){		\
			(v), CALLER, true, id, name, nnodes, nranks, rank, logger });	\
	}
INIT_FROM_V5(5)
INIT_FROM_V5(6)
INIT_FROM_V5(7)

static int entry_finalize(void *context)
{
	process_finalize((uint64_t)context);
	return NCCL_SUCCESS;
}

/* ---- start -------------------------------------------------------------------- */

/* *eHandle is written first: NCCL's slot may hold anything, and it would come back. */
#define WANTED_OR_RETURN(eHandle, d, v) do {						\
	*(eHandle) = NULL;								\
	if (unlikely(!(d)))								\
		return NCCL_SUCCESS;							\
	if (unlikely(!emit_wants((d)->type)))						\
		return emit_refuse((d)->type, NCCL_EVENTS_V##v, (eHandle),		\
				   (const void *)(d));					\
} while (0)

#define START_BEFORE_V5(v)								\
	static int entry_start_v##v(void *context, void **eHandle, struct nccl_descr_v##v *d) \
	{										\
		struct adapt_event e;							\
											\
		WANTED_OR_RETURN(eHandle, d, v);					\
		adapt_v##v(&e, d);							\
		return emit_start((uint64_t)context, eHandle, &e.descr, &e.extra);	\
	}
START_BEFORE_V5(1)
START_BEFORE_V5(2)
START_BEFORE_V5(3)
START_BEFORE_V5(4)

#define START_FROM_V5(v)								\
	static int entry_start_v##v(void *context, void **eHandle, struct nccl_descr_v##v *d) \
	{										\
		if (likely(d && d->type == NCCL_PROXY_STEP))				\
			return emit_step((uint64_t)context, eHandle, d);		\
		WANTED_OR_RETURN(eHandle, d, v);					\
		return emit_start((uint64_t)context, eHandle, d, &adapt_no_extra);	\
	}
START_FROM_V5(5)
START_FROM_V5(6)

static int entry_start_v7(void *context, void **eHandle, struct nccl_descr_v7 *d)
{
	struct adapt_extra extra;

	if (likely(d && d->type == NCCL_PROXY_STEP))
		return emit_step((uint64_t)context, eHandle, (const struct nccl_descr_v6 *)d);
	*eHandle = NULL;
	if (d && unlikely(d->type == NCCL_KERNEL_PHASE))
		return emit_phase(eHandle, adapt_number(d->parentObj), &d->kernelPhase);
	WANTED_OR_RETURN(eHandle, d, 7);
	return emit_start((uint64_t)context, eHandle, adapt_v7(&extra, d), &extra);
}

/* ---- state -------------------------------------------------------------------- */

static int entry_state_before_v4(void *eHandle, int state, union nccl_args_v1 *args)
{
	return emit_state(eHandle, state, adapt_args_v1(state, args));
}

/* ---- the tables --------------------------------------------------------------- */

#define TABLE(v, state)									\
	EXPORT extern const struct nccl_profiler_v##v ncclProfiler_v##v;		\
	EXPORT const struct nccl_profiler_v##v ncclProfiler_v##v = {			\
		"ncclinsp", entry_init_v##v, entry_start_v##v, emit_stop, state, entry_finalize, \
	}
TABLE(1, entry_state_before_v4);
TABLE(2, entry_state_before_v4);
TABLE(3, entry_state_before_v4);
TABLE(4, emit_state);
TABLE(5, emit_state);
TABLE(6, emit_state);
TABLE(7, emit_state);
