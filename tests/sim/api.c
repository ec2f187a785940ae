/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row of calls per interface version.  Bytes of a descriptor that NCCL does
 * not set are filled with garbage here, so that nobody gets used to zeros.
 */
#include "tests/sim/api.h"

#include <string.h>

#include "tests/sim/loader.h"
#include "tests/sim/names.h"

#define GARBAGE		0xa5

struct api_ops {
	int (*init)(const struct api *api, void **context, int *mask,
		    const struct api_comm *comm);
	void (*start)(const struct api *api, void *context, void **handle,
		      const struct api_event *event);
	void (*stop)(const struct api *api, void *handle);
	void (*state)(const struct api *api, void *handle, int state,
		      union nccl_args_v4 *args, int steps);
	void (*finalize)(const struct api *api, void *context);
};

#define TABLE(v) ((const struct nccl_profiler_v##v *)api->table)

/* From 2.28 on Coll and P2p hang below the Api events; older trees have the Group. */
static void *group_parent(const struct api *api, const struct nccl_descr_v7 *d)
{
	if (api->native >= 5 && d->type == NCCL_COLL)
		return d->coll.parentGroup;
	if (api->native >= 5 && d->type == NCCL_P2P)
		return d->p2p.parentGroup;
	return d->parentObj;
}

/* The numbers of v1; NCCL's conversion takes an unknown name for these. */
static uint8_t api_code(enum names_kind kind, const char *name)
{
	static const uint8_t fallback[] = {
		[NAMES_DATATYPE] = 8, [NAMES_ALGO] = 6, [NAMES_PROTO] = 2
	};
	int i = name && strcmp(name, "Unknown") ? names_find(kind, name) : -1;

	return i < 0 ? fallback[kind] : names_get(kind, i)->code;
}

static uint8_t api_func_code(const char *name)
{
	int i = names_find_func(name);

	return i < 0 ? 6 : names_func(i)->code;
}

/* Members that all versions share; the union starts at the same byte in all. */
static bool copy_common(void *to, const struct nccl_descr_v7 *d)
{
	static const struct { uint64_t type; size_t size; } members[] = {
		{ NCCL_PROXY_OP, sizeof(struct nccl_proxy_op) },
		{ NCCL_PROXY_STEP, sizeof(struct nccl_proxy_step) },
		{ NCCL_KERNEL_CH, sizeof(struct nccl_kernel_ch) },
		{ NCCL_NET_PLUGIN, sizeof(struct nccl_net_plugin) },
		{ NCCL_GROUP_API, sizeof(struct nccl_group_api) },
		{ NCCL_COLL_API, sizeof(struct nccl_coll_api) },
		{ NCCL_P2P_API, sizeof(struct nccl_p2p_api) },
		{ NCCL_KERNEL_LAUNCH, sizeof(struct nccl_kernel_launch) },
		{ NCCL_CE_COLL, sizeof(struct nccl_ce_coll) },
		{ NCCL_CE_SYNC, sizeof(struct nccl_ce_sync) },
		{ NCCL_CE_BATCH, sizeof(struct nccl_ce_batch) },
	};

	for (unsigned int i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		if (members[i].type != d->type)
			continue;
		memcpy((char *)to + 24, &d->groupApi, members[i].size);
		return true;
	}
	return false;
}

/* Versions before NCCL's own hear of no communicator and no traffic. */
static uint64_t if_native(const struct api *api, uint64_t value)
{
	return api->native == api->version ? value : 0;
}

#define FILL_HEAD(to, d)							\
	do {									\
		memset(&(to), GARBAGE, sizeof(to));				\
		(to).type = (d)->type;						\
		(to).parentObj = group_parent(api, d);				\
		(to).rank = (d)->rank;						\
		copy_common(&(to), d);						\
	} while (0)

#define FILL_COLL_NAMES(to, d)							\
	do {									\
		(to).seqNumber = (d)->coll.seqNumber;				\
		(to).func = (d)->coll.func;					\
		(to).sendBuff = (d)->coll.sendBuff;				\
		(to).recvBuff = (d)->coll.recvBuff;				\
		(to).count = (d)->coll.count;					\
		(to).root = (d)->coll.root;					\
		(to).datatype = (d)->coll.datatype;				\
		(to).nWarps = (d)->coll.nWarps;					\
		(to).algo = (d)->coll.algo;					\
		(to).proto = (d)->coll.proto;					\
	} while (0)

#define FILL_P2P_NAMES(to, d)							\
	do {									\
		(to).func = (d)->p2p.func;					\
		(to).buff = (d)->p2p.buff;					\
		(to).datatype = (d)->p2p.datatype;				\
		(to).count = (d)->p2p.count;					\
		(to).peer = (d)->p2p.peer;					\
	} while (0)

/* ---- v1 to v3 ---- */

static bool old_knows(const struct api *api, uint64_t type)
{
	return type & (api->version >= 3 ? NCCL_EVENTS_V3 : NCCL_EVENTS_V1);
}

static void api_start_v1(const struct api *api, void *context, void **handle,
			 const struct api_event *event)
{
	const struct nccl_descr_v7 *d = &event->descr;
	struct nccl_descr_v1 to;

	*handle = NULL;
	if (!old_knows(api, d->type))
		return;
	FILL_HEAD(to, d);
	if (d->type == NCCL_COLL)
		to.coll = (struct nccl_coll_v1){
			.commHash = if_native(api, event->comm_id),
			.seqNumber = d->coll.seqNumber, .func = api_func_code(d->coll.func),
			.sendBuff = d->coll.sendBuff, .recvBuff = d->coll.recvBuff,
			.count = d->coll.count, .root = d->coll.root,
			.datatype = api_code(NAMES_DATATYPE, d->coll.datatype),
			.trafficBytes = if_native(api, event->traffic_bytes),
			.nMaxChannels = d->coll.nChannels, .nWarps = d->coll.nWarps,
			.algo = api_code(NAMES_ALGO, d->coll.algo),
			.proto = api_code(NAMES_PROTO, d->coll.proto) };
	if (d->type == NCCL_P2P)
		to.p2p = (struct nccl_p2p_v1){
			.commHash = if_native(api, event->comm_id),
			.func = api_func_code(d->p2p.func), .buff = d->p2p.buff,
			.datatype = api_code(NAMES_DATATYPE, d->p2p.datatype),
			.count = d->p2p.count, .peer = d->p2p.peer };
	TABLE(1)->startEvent(context, handle, &to);
}

static void api_start_v2(const struct api *api, void *context, void **handle,
			 const struct api_event *event)
{
	const struct nccl_descr_v7 *d = &event->descr;
	struct nccl_descr_v2 to;

	*handle = NULL;
	if (!old_knows(api, d->type))
		return;
	FILL_HEAD(to, d);
	if (d->type == NCCL_COLL) {
		FILL_COLL_NAMES(to.coll, d);
		to.coll.name = NULL;
		to.coll.commHash = if_native(api, event->comm_id);
		to.coll.trafficBytes = if_native(api, event->traffic_bytes);
		to.coll.nMaxChannels = d->coll.nChannels;
	}
	if (d->type == NCCL_P2P) {
		FILL_P2P_NAMES(to.p2p, d);
		to.p2p.name = NULL;
		to.p2p.commHash = if_native(api, event->comm_id);
	}
	TABLE(2)->startEvent(context, handle, &to);
}

static void api_start_v3(const struct api *api, void *context, void **handle,
			 const struct api_event *event)
{
	const struct nccl_descr_v7 *d = &event->descr;
	struct nccl_descr_v3 to;

	*handle = NULL;
	if (!old_knows(api, d->type))
		return;
	FILL_HEAD(to, d);
	if (d->type == NCCL_KERNEL_CH)	/* no GPU time yet in v3 */
		memset(&to.kernelCh + 1, GARBAGE, sizeof(struct nccl_kernel_ch) - 1);
	if (d->type == NCCL_COLL) {
		FILL_COLL_NAMES(to.coll, d);
		to.coll.name = NULL;
		to.coll.commHash = if_native(api, event->comm_id);
		to.coll.nMaxChannels = d->coll.nChannels;
	}
	if (d->type == NCCL_P2P) {
		FILL_P2P_NAMES(to.p2p, d);
		to.p2p.name = NULL;
		to.p2p.commHash = if_native(api, event->comm_id);
	}
	TABLE(3)->startEvent(context, handle, &to);
}

/*
 * NCCL 2.26 and before brings sizes with the operation's states and nothing
 * with a step's; newer ones drop the states 19 to 22 and all sizes.
 */
static union nccl_args_v1 *old_args(const struct api *api, int state,
				    union nccl_args_v4 *args, int steps,
				    union nccl_args_v1 *to)
{
	memset(to, 0, sizeof(*to));
	if (state >= NCCL_CTRL_IDLE && state <= NCCL_CTRL_APPEND_END) {
		to->proxyCtrl.appendedProxyOps = args ? args->proxyCtrl.appendedProxyOps : 0;
		return to;
	}
	if (api->native != api->version)
		return to;
	if (state > NCCL_OP_RECV_DONE)
		return NULL;
	to->proxyOp.transSize = args->proxyStep.transSize;
	to->proxyOp.steps = steps;
	return to;
}

#define OLD_STATE(v)								\
	static void api_state_v##v(const struct api *api, void *handle, int state, \
				   union nccl_args_v4 *args, int steps)		\
	{									\
		union nccl_args_v1 to;						\
										\
		if (state <= NCCL_CTRL_APPEND_END)				\
			TABLE(v)->recordEventState(handle, state,		\
				old_args(api, state, args, steps, &to));	\
	}									\
	static int api_init_v##v(const struct api *api, void **context, int *mask, \
				 const struct api_comm *comm)			\
	{									\
		(void)comm;							\
		return TABLE(v)->init(context, mask);				\
	}
OLD_STATE(1)
OLD_STATE(2)
OLD_STATE(3)

/* ---- v4 to v7 ---- */

/* The conversion for v4 leaves *handle alone for what v4 does not know. */
static void api_start_v4(const struct api *api, void *context, void **handle,
			 const struct api_event *event)
{
	const struct nccl_descr_v7 *d = &event->descr;
	struct nccl_descr_v4 to;

	if (!(d->type & NCCL_EVENTS_V4))
		return;
	FILL_HEAD(to, d);
	if (d->type == NCCL_COLL) {
		FILL_COLL_NAMES(to.coll, d);
		to.coll.nChannels = d->coll.nChannels;
	}
	if (d->type == NCCL_P2P) {
		FILL_P2P_NAMES(to.p2p, d);
		to.p2p.nChannels = d->p2p.nChannels;
	}
	TABLE(4)->startEvent(context, handle, &to);
}

/* Version 7 has appended members to those of 5 and 6. */
#define START(v)								\
	static void api_start_v##v(const struct api *api, void *context, void **handle, \
				   const struct api_event *event)		\
	{									\
		const struct nccl_descr_v7 *d = &event->descr;			\
		struct nccl_descr_v##v to;					\
										\
		if (!(d->type & NCCL_EVENTS_V##v)) {				\
			*handle = NULL;						\
			return;							\
		}								\
		memset(&to, GARBAGE, sizeof(to));				\
		to.type = d->type;						\
		to.parentObj = d->parentObj;					\
		to.rank = d->rank;						\
		copy_common(&to, d);						\
		if (d->type == NCCL_COLL)					\
			memcpy(&to.coll, &d->coll, sizeof(to.coll));		\
		if (d->type == NCCL_P2P)					\
			memcpy(&to.p2p, &d->p2p, sizeof(to.p2p));		\
		TABLE(v)->startEvent(context, handle, &to);			\
	}
START(5)
START(6)

static void api_start_v7(const struct api *api, void *context, void **handle,
			 const struct api_event *event)
{
	struct nccl_descr_v7 to = event->descr;

	TABLE(7)->startEvent(context, handle, &to);
}

static void api_state_v4(const struct api *api, void *handle, int state,
			 union nccl_args_v4 *args, int steps)
{
	(void)steps;
	if (state < NCCL_GROUP_API_START_STOP)
		TABLE(4)->recordEventState(handle, state, args);
}

/* From 2.29 on the states of a GroupApi come with arguments that nobody set. */
static void api_state_v5(const struct api *api, void *handle, int state,
			 union nccl_args_v4 *args, int steps)
{
	union nccl_args_v4 garbage;

	(void)steps;
	memset(&garbage, GARBAGE, sizeof(garbage));
	if (state > NCCL_GROUP_API_END_START)
		return;
	TABLE(5)->recordEventState(handle, state, args || api->native == 5 ? args : &garbage);
}

static void api_state_v6(const struct api *api, void *handle, int state,
			 union nccl_args_v4 *args, int steps)
{
	(void)steps;
	if (state < NCCL_KERNEL_PHASE_STOP)
		TABLE(6)->recordEventState(handle, state, args);
}

static void api_state_v7(const struct api *api, void *handle, int state,
			 union nccl_args_v4 *args, int steps)
{
	(void)steps;
	TABLE(7)->recordEventState(handle, state, args);
}

static int api_init_v4(const struct api *api, void **context, int *mask, const struct api_comm *c)
{
	return TABLE(4)->init(context, mask, c->name, c->id, c->nnodes, c->nranks, c->rank,
			      c->logger);
}

/* The conversion takes what is newer out of the mask, not in one piece. */
#define INIT(v)									\
	static int api_init_v##v(const struct api *api, void **context, int *mask, \
				 const struct api_comm *c)			\
	{									\
		int r = TABLE(v)->init(context, c->id, mask, c->name, c->nnodes, c->nranks, \
				       c->rank, c->logger);			\
										\
		if (!r && api->native > v)					\
			__atomic_store_n(mask, __atomic_load_n(mask, __ATOMIC_RELAXED) & \
					 NCCL_EVENTS_V##v, __ATOMIC_RELAXED);	\
		return r;							\
	}
INIT(5)
INIT(6)
INIT(7)

#define STOP_AND_FINALIZE(v)							\
	static void api_stop_v##v(const struct api *api, void *handle)		\
	{									\
		TABLE(v)->stopEvent(handle);					\
	}									\
	static void api_finalize_v##v(const struct api *api, void *context) \
	{									\
		TABLE(v)->finalize(context);					\
	}
STOP_AND_FINALIZE(1)
STOP_AND_FINALIZE(2)
STOP_AND_FINALIZE(3)
STOP_AND_FINALIZE(4)
STOP_AND_FINALIZE(5)
STOP_AND_FINALIZE(6)
STOP_AND_FINALIZE(7)

#define ROW(v) [v] = { api_init_v##v, api_start_v##v, api_stop_v##v, api_state_v##v, \
		       api_finalize_v##v }
static const struct api_ops rows[NCCL_PROFILER_VERSIONS + 1] = {
	ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7)
};

/* ---- the public face ---- */

void api_bind(struct api *api, const void *table, int version, int release)
{
	*api = (struct api){ .ops = &rows[version], .table = table, .version = version,
			     .native = loader_newest(release) };
}

int api_init(const struct api *api, void **context, int *mask, const struct api_comm *comm)
{
	return api->ops->init(api, context, mask, comm);
}

void api_start(const struct api *api, void *context, void **handle, struct api_event *event)
{
	api->ops->start(api, context, handle, event);
}

void api_stop(const struct api *api, void *handle)
{
	api->ops->stop(api, handle);
}

void api_state(const struct api *api, void *handle, int state, union nccl_args_v4 *args,
	       int steps)
{
	api->ops->state(api, handle, state, args, steps);
}

void api_finalize(const struct api *api, void *context)
{
	api->ops->finalize(api, context);
}
