/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/fill.h"

#include <string.h>

#include "plugin/process.h"
#include "plugin/steps.h"

#define CLEAR(field) memset(&(field), 0, sizeof(field))

static uint16_t name_id(const char *name)
{
	return intern_id(&process_self.names, &process_self.ring, name);
}

/* A bool of NCCL's is a byte to us: it may hold anything. */
static uint8_t truth(const void *byte)
{
	return *(const uint8_t *)byte != 0;
}

static uint32_t graph_form(const void *captured)
{
	return truth(captured) ? NCI_FORM_GRAPH : 0;
}

static uint32_t fill_group(struct nci_record *rec, const struct nccl_descr_v6 *d,
			   const struct adapt_extra *extra)
{
	struct nci_ev_group *ev = (struct nci_ev_group *)rec;

	(void)d;
	(void)extra;
	CLEAR(ev->zero);
	return 0;
}

static uint32_t fill_coll(struct nci_record *rec, const struct nccl_descr_v6 *d,
			  const struct adapt_extra *extra)
{
	struct nci_ev_coll *ev = (struct nci_ev_coll *)rec;
	const struct nccl_coll_v5 *c = &d->coll;

	ev->seq = c->seqNumber;
	ev->count = c->count;
	ev->func = name_id(c->func);
	ev->datatype = name_id(c->datatype);
	ev->algo = name_id(c->algo);
	ev->proto = name_id(c->proto);
	ev->cont = NCI_LINE_CONT;
	ev->channels = c->nChannels;
	ev->warps = c->nWarps;
	ev->flags = extra->flags;
	ev->rank = d->rank;
	ev->group = adapt_number(c->parentGroup);
	ev->send_buff = adapt_number(c->sendBuff);
	ev->recv_buff = adapt_number(c->recvBuff);
	ev->comm_hash = extra->comm_hash;
	ev->traffic = extra->traffic;
	ev->tag = 0;
	ev->root = c->root;
	ev->red_op = extra->red_op;
	return steer_launched(rec->start) ? NCI_FORM_WATCHED : 0;
}

static uint32_t fill_p2p(struct nci_record *rec, const struct nccl_descr_v6 *d,
			 const struct adapt_extra *extra)
{
	struct nci_ev_p2p *ev = (struct nci_ev_p2p *)rec;
	const struct nccl_p2p_v5 *p = &d->p2p;

	ev->count = p->count;
	ev->peer = p->peer;
	ev->rank = d->rank;
	ev->func = name_id(p->func);
	ev->datatype = name_id(p->datatype);
	ev->channels = p->nChannels;
	CLEAR(ev->zero);
	ev->cont = NCI_LINE_CONT;
	CLEAR(ev->zero1);
	ev->group = adapt_number(p->parentGroup);
	ev->buff = adapt_number(p->buff);
	ev->comm_hash = extra->comm_hash;
	ev->tag = 0;
	CLEAR(ev->zero2);
	return steer_launched(rec->start) ? NCI_FORM_WATCHED : 0;
}

static uint32_t fill_proxy_op(struct nci_record *rec, const struct nccl_descr_v6 *d,
			      const struct adapt_extra *extra)
{
	struct nci_ev_proxy_op *ev = (struct nci_ev_proxy_op *)rec;
	const struct nccl_proxy_op *p = &d->proxyOp;

	(void)extra;
	ev->peer = p->peer;
	ev->rank = d->rank;
	ev->steps = p->nSteps;
	ev->chunk_bytes = p->chunkSize;
	ev->pid = p->pid;
	ev->channel = p->channelId;
	CLEAR(ev->zero);
	memset(&ev->cont, 0, NCI_LINE_BYTES);
	ev->cont = NCI_LINE_CONT;
	ev->sums = atomic_load_explicit(&process_self.folds, memory_order_relaxed) ?
		   0 : STEPS_NO_SUMS;
	return p->isSend == 1 ? NCI_FORM_SEND : 0;
}

static uint32_t fill_proxy_step(struct nci_record *rec, const struct nccl_descr_v6 *d,
				const struct adapt_extra *extra)
{
	struct nci_ev_proxy_step *ev = (struct nci_ev_proxy_step *)rec;

	(void)extra;
	ev->step = d->proxyStep.step;
	ev->bytes = NCI_BYTES_UNKNOWN;
	CLEAR(ev->span);
	ev->repeats = 0;
	return 0;
}

/* No descriptor tells of it: emit.c opens it for an operation's first step. */
static uint32_t fill_proxy_sums(struct nci_record *rec, const struct nccl_descr_v6 *d,
				const struct adapt_extra *extra)
{
	struct nci_ev_proxy_sums *ev = (struct nci_ev_proxy_sums *)rec;

	(void)d;
	(void)extra;
	CLEAR(ev->ticks);
	memset(&ev->cont, 0, NCI_LINE_BYTES);
	ev->cont = NCI_LINE_CONT;
	return 0;
}

static uint32_t fill_proxy_ctrl(struct nci_record *rec, const struct nccl_descr_v6 *d,
				const struct adapt_extra *extra)
{
	struct nci_ev_proxy_ctrl *ev = (struct nci_ev_proxy_ctrl *)rec;

	(void)d;
	(void)extra;
	CLEAR(ev->marks);
	ev->appended = -1;
	CLEAR(ev->zero);
	return 0;
}

static uint32_t fill_kernel_ch(struct nci_record *rec, const struct nccl_descr_v6 *d,
			       const struct adapt_extra *extra)
{
	struct nci_ev_kernel_ch *ev = (struct nci_ev_kernel_ch *)rec;

	(void)extra;
	ev->gpu_start = d->kernelCh.pTimer;
	ev->gpu_stop = 0;
	ev->stop_span = 0;
	ev->channel = d->kernelCh.channelId;
	CLEAR(ev->zero);
	return 0;
}

static uint32_t fill_net_plugin(struct nci_record *rec, const struct nccl_descr_v6 *d,
				const struct adapt_extra *extra)
{
	struct nci_ev_net_plugin *ev = (struct nci_ev_net_plugin *)rec;

	(void)extra;
	ev->id = d->netPlugin.id;
	CLEAR(ev->marks);
	CLEAR(ev->zero);
	return 0;
}

static uint32_t fill_group_api(struct nci_record *rec, const struct nccl_descr_v6 *d,
			       const struct adapt_extra *extra)
{
	struct nci_ev_group_api *ev = (struct nci_ev_group_api *)rec;

	(void)extra;
	ev->depth = d->groupApi.groupDepth;
	ev->begin_span = 0;
	ev->end_span = 0;
	CLEAR(ev->zero);
	return graph_form(&d->groupApi.graphCaptured);
}

static uint32_t fill_coll_api(struct nci_record *rec, const struct nccl_descr_v6 *d,
			      const struct adapt_extra *extra)
{
	struct nci_ev_coll_api *ev = (struct nci_ev_coll_api *)rec;

	(void)extra;
	ev->count = d->collApi.count;
	ev->stream = adapt_number(d->collApi.stream);
	ev->func = name_id(d->collApi.func);
	ev->datatype = name_id(d->collApi.datatype);
	ev->root = d->collApi.root;
	return graph_form(&d->collApi.graphCaptured);
}

static uint32_t fill_p2p_api(struct nci_record *rec, const struct nccl_descr_v6 *d,
			     const struct adapt_extra *extra)
{
	struct nci_ev_p2p_api *ev = (struct nci_ev_p2p_api *)rec;

	(void)extra;
	ev->count = d->p2pApi.count;
	ev->stream = adapt_number(d->p2pApi.stream);
	ev->func = name_id(d->p2pApi.func);
	ev->datatype = name_id(d->p2pApi.datatype);
	CLEAR(ev->zero);
	return graph_form(&d->p2pApi.graphCaptured);
}

static uint32_t fill_kernel_launch(struct nci_record *rec, const struct nccl_descr_v6 *d,
				   const struct adapt_extra *extra)
{
	struct nci_ev_kernel_launch *ev = (struct nci_ev_kernel_launch *)rec;

	(void)extra;
	ev->stream = adapt_number(d->kernelLaunch.stream);
	CLEAR(ev->zero);
	return 0;
}

static uint32_t fill_ce_coll(struct nci_record *rec, const struct nccl_descr_v6 *d,
			     const struct adapt_extra *extra)
{
	struct nci_ev_ce_coll *ev = (struct nci_ev_ce_coll *)rec;
	const struct nccl_ce_coll *c = &d->ceColl;

	(void)extra;
	ev->seq = c->seqNumber;
	ev->count = c->count;
	ev->func = name_id(c->func);
	ev->datatype = name_id(c->datatype);
	ev->sync = name_id(c->syncStrategy);
	ev->intra_sync = truth(&c->intraBatchSync);
	ev->zero = 0;
	ev->cont = NCI_LINE_CONT;
	CLEAR(ev->zero1);
	ev->rank = d->rank;
	ev->send_buff = adapt_number(c->sendBuff);
	ev->recv_buff = adapt_number(c->recvBuff);
	ev->stream = adapt_number(c->stream);
	ev->root = c->root;
	ev->batch_size = c->batchSize;
	ev->batches = c->numBatches;
	ev->ce_seq = c->ceSeqNum;
	CLEAR(ev->marks);
	CLEAR(ev->zero2);
	return 0;
}

static uint32_t fill_ce_sync(struct nci_record *rec, const struct nccl_descr_v6 *d,
			     const struct adapt_extra *extra)
{
	struct nci_ev_ce_sync *ev = (struct nci_ev_ce_sync *)rec;

	(void)extra;
	CLEAR(ev->marks);
	ev->rank = d->rank;
	ev->ranks = d->ceCollSync.nRanks;
	ev->complete = truth(&d->ceCollSync.isComplete);
	CLEAR(ev->zero);
	return 0;
}

static uint32_t fill_ce_batch(struct nci_record *rec, const struct nccl_descr_v6 *d,
			      const struct adapt_extra *extra)
{
	struct nci_ev_ce_batch *ev = (struct nci_ev_ce_batch *)rec;

	(void)extra;
	ev->bytes = d->ceCollBatch.totalBytes;
	CLEAR(ev->marks);
	ev->ops_sync = (int32_t)((uint32_t)d->ceCollBatch.numOps << 1 |
				 truth(&d->ceCollBatch.useIntraSync));
	return 0;
}

const struct fill_row fill_rows[NCI_EV_END] = {
#define X(id, NAME, name, nlines) [id] = { .fill = fill_##name, .lines = (nlines) },
	NCI_EVENTS(X)
#undef X
};
