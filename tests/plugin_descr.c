/* SPDX-License-Identifier: Apache-2.0 */
/* One sample of every event, in the layout of every version. */
#include <check.h>
#include <string.h>
#include <unistd.h>

#include "tests/plugin_driver.h"

#define COLL_NAMED(c, ev) do {								\
	(c)->seqNumber = 77;								\
	(c)->func = (ev)->func ? (ev)->func : "AllReduce";				\
	(c)->sendBuff = (void *)0x7000;							\
	(c)->recvBuff = (void *)0x8000;							\
	(c)->count = 4096;								\
	(c)->root = 2;									\
	(c)->datatype = "ncclFloat32";							\
	(c)->nWarps = 16;								\
	(c)->algo = "RING";								\
	(c)->proto = "SIMPLE";								\
} while (0)

#define P2P_NAMED(p, ev) do {								\
	(p)->func = (ev)->func ? (ev)->func : "Send";					\
	(p)->buff = (void *)0x9000;							\
	(p)->datatype = "ncclInt8";							\
	(p)->count = 512;								\
	(p)->peer = 3;									\
} while (0)

static void coll_v1(struct nccl_descr_v1 *d, const struct pd_event *ev)
{
	struct nccl_coll_v1 *c = &d->coll;

	(void)ev;
	c->commHash = 0xc0ffee;
	c->seqNumber = 77;
	c->func = 4;
	c->sendBuff = (void *)0x7000;
	c->recvBuff = (void *)0x8000;
	c->count = 4096;
	c->root = 2;
	c->datatype = 7;
	c->op = 1;
	c->trafficBytes = 16384;
	c->nMaxChannels = 12;
	c->nWarps = 16;
	c->algo = 1;
	c->proto = 2;
	c->isCollnet = 1;
	c->isNvls = 0;
}

static void p2p_v1(struct nccl_descr_v1 *d, const struct pd_event *ev)
{
	struct nccl_p2p_v1 *p = &d->p2p;

	(void)ev;
	p->commHash = 0xc0ffee;
	p->func = 6;
	p->buff = (void *)0x9000;
	p->datatype = 0;
	p->count = 512;
	p->peer = 3;
}

static void coll_v2(struct nccl_descr_v2 *d, const struct pd_event *ev)
{
	COLL_NAMED(&d->coll, ev);
	d->coll.commHash = 0xc0ffee;
	d->coll.trafficBytes = 16384;
	d->coll.nMaxChannels = 12;
}

static void coll_v3(struct nccl_descr_v3 *d, const struct pd_event *ev)
{
	COLL_NAMED(&d->coll, ev);
	d->coll.commHash = 0xc0ffee;
	d->coll.nMaxChannels = 12;
}

static void coll_v4(struct nccl_descr_v4 *d, const struct pd_event *ev)
{
	COLL_NAMED(&d->coll, ev);
	d->coll.nChannels = 12;
}

static void coll_v5(struct nccl_coll_v5 *c, const struct pd_event *ev)
{
	COLL_NAMED(c, ev);
	c->nChannels = 12;
	c->parentGroup = ev->group;
}

static void p2p_v5(struct nccl_p2p_v5 *p, const struct pd_event *ev)
{
	P2P_NAMED(p, ev);
	p->nChannels = 5;
	p->parentGroup = ev->group;
}

/* Members that all versions have alike. */
#define PROXY_MEMBERS(d, ev) do {							\
	if ((ev)->type == NCCL_PROXY_OP) {						\
		(d)->proxyOp.pid = (ev)->pid ? (ev)->pid : getpid();			\
		(d)->proxyOp.channelId = (ev)->channel;					\
		(d)->proxyOp.peer = 3;							\
		(d)->proxyOp.nSteps = 32;						\
		(d)->proxyOp.chunkSize = 65536;						\
		(d)->proxyOp.isSend = !(ev)->receive;					\
	} else if ((ev)->type == NCCL_PROXY_STEP) {					\
		(d)->proxyStep.step = (ev)->step;					\
	}										\
} while (0)

#define CHANNEL_MEMBERS(d, ev) do {							\
	if ((ev)->type == NCCL_KERNEL_CH) {						\
		(d)->kernelCh.channelId = (ev)->channel;				\
		(d)->kernelCh.pTimer = 1000000 + (ev)->channel;				\
	} else if ((ev)->type == NCCL_NET_PLUGIN) {					\
		(d)->netPlugin.id = NCI_NET_IB_V1;					\
		(d)->netPlugin.data = (ev)->payload;					\
	}										\
} while (0)

static void api_members(struct nccl_descr_v6 *d, const struct pd_event *ev)
{
	switch (ev->type) {
	case NCCL_GROUP_API:
		*(uint8_t *)&d->groupApi.graphCaptured = ev->eager ? 0 : 2;
		d->groupApi.groupDepth = 2;
		break;
	case NCCL_COLL_API:
		d->collApi.func = ev->func ? ev->func : "AllGather";
		d->collApi.count = 333;
		d->collApi.datatype = "ncclBfloat16";
		d->collApi.root = 1;
		d->collApi.stream = (void *)0x5000;
		*(uint8_t *)&d->collApi.graphCaptured = 0;
		break;
	case NCCL_P2P_API:
		d->p2pApi.func = "Recv";
		d->p2pApi.count = 444;
		d->p2pApi.datatype = "ncclInt64";
		d->p2pApi.stream = (void *)0x6000;
		*(uint8_t *)&d->p2pApi.graphCaptured = 1;
		break;
	case NCCL_KERNEL_LAUNCH:
		d->kernelLaunch.stream = (void *)0x5000;
		break;
	}
}

static void ce_members(struct nccl_descr_v6 *d, const struct pd_event *ev)
{
	struct nccl_ce_coll *c = &d->ceColl;

	switch (ev->type) {
	case NCCL_CE_COLL:
		c->seqNumber = 4;
		c->func = "AlltoAll";
		c->sendBuff = (void *)0x7000;
		c->recvBuff = (void *)0x8000;
		c->count = 2048;
		c->root = 0;
		c->datatype = "ncclInt8";
		c->syncStrategy = "MC";
		*(uint8_t *)&c->intraBatchSync = 1;
		c->batchSize = 8;
		c->numBatches = 9;
		c->ceSeqNum = 10;
		c->stream = (void *)0x5000;
		break;
	case NCCL_CE_SYNC:
		*(uint8_t *)&d->ceCollSync.isComplete = 1;
		d->ceCollSync.nRanks = 4;
		break;
	case NCCL_CE_BATCH:
		d->ceCollBatch.numOps = 21;
		d->ceCollBatch.totalBytes = 1 << 20;
		*(uint8_t *)&d->ceCollBatch.useIntraSync = 1;
		break;
	}
}

static void members_v1(struct nccl_descr_v1 *d, const struct pd_event *ev)
{
	if (ev->type == NCCL_COLL)
		coll_v1(d, ev);
	if (ev->type == NCCL_P2P)
		p2p_v1(d, ev);
	PROXY_MEMBERS(d, ev);
}

static void members_v2(struct nccl_descr_v2 *d, const struct pd_event *ev)
{
	if (ev->type == NCCL_COLL)
		coll_v2(d, ev);
	if (ev->type == NCCL_P2P) {
		P2P_NAMED(&d->p2p, ev);
		d->p2p.commHash = 0xc0ffee;
	}
	PROXY_MEMBERS(d, ev);
}

static void members_v3(struct nccl_descr_v3 *d, const struct pd_event *ev)
{
	if (ev->type == NCCL_COLL)
		coll_v3(d, ev);
	if (ev->type == NCCL_P2P) {
		P2P_NAMED(&d->p2p, ev);
		d->p2p.commHash = 0xc0ffee;
	}
	if (ev->type == NCCL_KERNEL_CH)
		d->kernelCh.channelId = ev->channel;
	if (ev->type == NCCL_NET_PLUGIN)
		d->netPlugin = (struct nccl_net_plugin){ NCI_NET_IB_V1, ev->payload };
	PROXY_MEMBERS(d, ev);
}

static void members_v4(struct nccl_descr_v4 *d, const struct pd_event *ev)
{
	if (ev->type == NCCL_COLL)
		coll_v4(d, ev);
	if (ev->type == NCCL_P2P) {
		P2P_NAMED(&d->p2p, ev);
		d->p2p.nChannels = 5;
	}
	PROXY_MEMBERS(d, ev);
	CHANNEL_MEMBERS(d, ev);
}

static void members_v6(struct nccl_descr_v6 *d, const struct pd_event *ev)
{
	if (ev->type == NCCL_COLL)
		coll_v5(&d->coll, ev);
	if (ev->type == NCCL_P2P)
		p2p_v5(&d->p2p, ev);
	PROXY_MEMBERS(d, ev);
	CHANNEL_MEMBERS(d, ev);
	api_members(d, ev);
	ce_members(d, ev);
}

static void members_v5(struct nccl_descr_v5 *d, const struct pd_event *ev)
{
	members_v6((struct nccl_descr_v6 *)d, ev);
}

/* Version 7 only appends members, most of all a tag. */
static void members_v7(struct nccl_descr_v7 *d, const struct pd_event *ev)
{
	members_v6((struct nccl_descr_v6 *)d, ev);
	switch (ev->type) {
	case NCCL_COLL:
		d->coll.kernelVariant = ev->variant;
		*(uint8_t *)&d->coll.isSymColl = ev->variant ? 3 : 0;
		d->coll.userTag = ev->tag;
		break;
	case NCCL_P2P:		d->p2p.userTag = ev->tag; break;
	case NCCL_COLL_API:	d->collApi.userTag = ev->tag; break;
	case NCCL_P2P_API:	d->p2pApi.userTag = ev->tag; break;
	case NCCL_CE_COLL:	d->ceColl.userTag = ev->tag; break;
	case NCCL_KERNEL_PHASE:
		d->kernelPhase.channelId = ev->channel;
		d->kernelPhase.phaseId = ev->phase;
		d->kernelPhase.phaseName = "a phase";
		d->kernelPhase.pTimer = 2000000 + 1000 * ev->phase;
		break;
	}
}

#define START(n)									\
	static void *start_v##n(struct pd *pd, void *context, const struct pd_event *ev) \
	{										\
		void *handle = (void *)-1;						\
		struct nccl_descr_v##n d;						\
											\
		memset(&d, PD_GARBAGE, sizeof(d));						\
		d.type = (__typeof__(d.type))ev->type;					\
		d.parentObj = ev->parent;						\
		d.rank = 1;								\
		members_v##n(&d, ev);							\
		ck_assert_int_eq(pd->v##n->startEvent(context, &handle, &d), 0);	\
		memset(&d, PD_GARBAGE, sizeof(d));						\
		return handle;								\
	}
START(1)
START(2)
START(3)
START(4)
START(5)
START(6)
START(7)

void *pd_start(struct pd *pd, const struct pd_event *ev)
{
	static void *(*const start[])(struct pd *, void *, const struct pd_event *) = {
		NULL, start_v1, start_v2, start_v3, start_v4, start_v5, start_v6,
		start_v7,
	};

	return start[pd->version](pd, ev->context ? ev->context : pd->context, ev);
}
