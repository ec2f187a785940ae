/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Up to version 6 only Coll and P2p ever changed their layout, and KernelCh gained a
 * member; all other members are copied as they are.  Up to version 4 the parent of a
 * Coll or P2p is its Group: it serves as both.  Version 7 has only longer members.
 */
#include "plugin/adapt.h"

#include <string.h>

#include "nci/events.h"

const struct adapt_extra adapt_no_extra;

/* Version 1 counts where later ones name.  NULL: a number that has no name. */
static const char *const func_names[] = {
	"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "SendRecv",
	"Send", "Recv", "AlltoAll", "Scatter", "Gather", "AllGatherV", "PutSignal",
	"Signal", "WaitSignal",
};

static const char *const datatype_names[] = {
	"ncclInt8", "ncclUint8", "ncclInt32", "ncclUint32", "ncclInt64", "ncclUint64",
	"ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3",
	"ncclFloat8e5m2",
};

static const char *const algo_names[] = {
	"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT",
};

static const char *const proto_names[] = { "LL", "LL128", "SIMPLE" };

#define NAME(table, i) ((i) < sizeof(table) / sizeof((table)[0]) ? (table)[i] : NULL)

#define HEAD(e, d) adapt_head(e, (d)->type, (d)->parentObj, (d)->rank)

static void adapt_head(struct adapt_event *e, uint64_t type, void *parent, int rank)
{
	e->descr.type = type;
	e->descr.parentObj = parent;
	e->descr.rank = rank;
	e->extra = adapt_no_extra;
}

/* Members that have one layout in all versions, by the number of their bit. */
static const uint8_t same_bytes[] = {
	[NCI_EV_PROXY_OP - 1] = sizeof(struct nccl_proxy_op),
	[NCI_EV_PROXY_STEP - 1] = sizeof(struct nccl_proxy_step),
	[NCI_EV_KERNEL_CH - 1] = sizeof(struct nccl_kernel_ch),
	[NCI_EV_NET_PLUGIN - 1] = sizeof(struct nccl_net_plugin),
};

static void adapt_same(struct adapt_event *e, const void *member)
{
	unsigned int bit = (unsigned int)__builtin_ctzll(e->descr.type);

	if (bit < sizeof(same_bytes))
		memcpy(&e->descr.coll, member, same_bytes[bit]);
}

void adapt_v1(struct adapt_event *e, const struct nccl_descr_v1 *d)
{
	const struct nccl_coll_v1 *c = &d->coll;
	const struct nccl_p2p_v1 *p = &d->p2p;

	HEAD(e, d);
	if (d->type == NCCL_COLL) {
		e->descr.coll = (struct nccl_coll_v5){
			c->seqNumber, NAME(func_names, c->func), c->sendBuff, c->recvBuff,
			c->count, c->root, NAME(datatype_names, c->datatype),
			c->nMaxChannels, c->nWarps, NAME(algo_names, c->algo),
			NAME(proto_names, c->proto), d->parentObj,
		};
		e->extra.comm_hash = c->commHash;
		e->extra.traffic = c->trafficBytes;
		e->extra.red_op = (uint16_t)c->op;
		e->extra.flags = (uint8_t)((c->isCollnet ? NCI_COLL_COLLNET : 0) |
					   (c->isNvls ? NCI_COLL_NVLS : 0));
	} else if (d->type == NCCL_P2P) {
		e->descr.p2p = (struct nccl_p2p_v5){
			NAME(func_names, p->func), p->buff,
			NAME(datatype_names, p->datatype), p->count, p->peer, 0,
			d->parentObj,
		};
		e->extra.comm_hash = p->commHash;
	} else {
		adapt_same(e, &d->coll);
	}
}

static void adapt_p2p_v2(struct adapt_event *e, const struct nccl_p2p_v2 *p)
{
	e->descr.p2p = (struct nccl_p2p_v5){
		p->func, p->buff, p->datatype, p->count, p->peer, 0, e->descr.parentObj,
	};
	e->extra.comm_hash = p->commHash;
}

void adapt_v2(struct adapt_event *e, const struct nccl_descr_v2 *d)
{
	const struct nccl_coll_v2 *c = &d->coll;

	HEAD(e, d);
	if (d->type == NCCL_COLL) {
		e->descr.coll = (struct nccl_coll_v5){
			c->seqNumber, c->func, c->sendBuff, c->recvBuff, c->count, c->root,
			c->datatype, c->nMaxChannels, c->nWarps, c->algo, c->proto,
			d->parentObj,
		};
		e->extra.comm_hash = c->commHash;
		e->extra.traffic = c->trafficBytes;
	} else if (d->type == NCCL_P2P) {
		adapt_p2p_v2(e, &d->p2p);
	} else {
		adapt_same(e, &d->coll);
	}
}

void adapt_v3(struct adapt_event *e, const struct nccl_descr_v3 *d)
{
	const struct nccl_coll_v3 *c = &d->coll;

	HEAD(e, d);
	if (d->type == NCCL_COLL) {
		e->descr.coll = (struct nccl_coll_v5){
			c->seqNumber, c->func, c->sendBuff, c->recvBuff, c->count, c->root,
			c->datatype, c->nMaxChannels, c->nWarps, c->algo, c->proto,
			d->parentObj,
		};
		e->extra.comm_hash = c->commHash;
	} else if (d->type == NCCL_P2P) {
		adapt_p2p_v2(e, &d->p2p);
	} else if (d->type == NCCL_KERNEL_CH) {
		e->descr.kernelCh = (struct nccl_kernel_ch){ d->kernelCh.channelId, 0 };
	} else {
		adapt_same(e, &d->coll);
	}
}

void adapt_v4(struct adapt_event *e, const struct nccl_descr_v4 *d)
{
	const struct nccl_coll_v4 *c = &d->coll;
	const struct nccl_p2p_v4 *p = &d->p2p;

	HEAD(e, d);
	if (d->type == NCCL_COLL)
		e->descr.coll = (struct nccl_coll_v5){
			c->seqNumber, c->func, c->sendBuff, c->recvBuff, c->count, c->root,
			c->datatype, c->nChannels, c->nWarps, c->algo, c->proto,
			d->parentObj,
		};
	else if (d->type == NCCL_P2P)
		e->descr.p2p = (struct nccl_p2p_v5){
			p->func, p->buff, p->datatype, p->count, p->peer, p->nChannels,
			d->parentObj,
		};
	else
		adapt_same(e, &d->coll);
}

#define ASSERT_LONGER(member, from)								\
	_Static_assert(offsetof(struct nccl_##member##_v7, userTag) >=				\
		       sizeof(struct nccl_##from), "v7 of " #member " has other places")
ASSERT_LONGER(coll, coll_v5);
ASSERT_LONGER(p2p, p2p_v5);
ASSERT_LONGER(coll_api, coll_api);
ASSERT_LONGER(p2p_api, p2p_api);
ASSERT_LONGER(ce_coll, ce_coll);

const struct nccl_descr_v6 *adapt_v7(struct adapt_extra *extra, const struct nccl_descr_v7 *d)
{
	*extra = adapt_no_extra;
	switch (d->type) {
	case NCCL_COLL:
		extra->tag = d->coll.userTag;
		extra->variant = d->coll.kernelVariant;
		if (*(const uint8_t *)&d->coll.isSymColl)	/* a bool that may hold anything */
			extra->flags = NCI_COLL_SYMMETRIC;
		break;
	case NCCL_P2P:
		extra->tag = d->p2p.userTag;
		break;
	case NCCL_COLL_API:
		extra->tag = d->collApi.userTag;
		break;
	case NCCL_P2P_API:
		extra->tag = d->p2pApi.userTag;
		break;
	case NCCL_CE_COLL:
		extra->tag = d->ceColl.userTag;
		break;
	}
	return (const struct nccl_descr_v6 *)d;
}
