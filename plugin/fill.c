/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function for each event type knows both NCCL's descriptor and our record, so that
 * the callbacks (emit.c) know neither.
 */
#include "plugin/fill.h"

#include <string.h>

#include "plugin/process.h"
#include "plugin/steps.h"

#define CLEAR(field) memset(&(field), 0, sizeof(field))

/* A fill_fn (fill.h); few need all of what it gets. */
#define FILL(name)									\
	static int fill_##name(struct nci_record *rec,					\
			       __attribute__((unused)) const struct nccl_descr_v6 *d,	\
			       __attribute__((unused)) const struct adapt_extra *extra,	\
			       uint64_t head, uint64_t token)

static uint16_t fill_name_id(const char *name)
{
	return intern_id(&process_self.names, &process_self.ring, name);
}

/* A bool of NCCL's is a byte to us: it may hold anything. */
static uint8_t fill_truth(const void *byte)
{
	return *(const uint8_t *)byte != 0;
}

/* NCCL's word for it, else the thread's. */
static uint64_t fill_tag_of(const struct adapt_extra *extra)
{
	return extra->tag ? extra->tag : process_thread.tag;
}

static uint32_t fill_graph_form(const void *captured)
{
	return fill_truth(captured) ? NCI_FORM_GRAPH : 0;
}

FILL(group)
{
	struct nci_ev_group *ev = (struct nci_ev_group *)rec;

	CLEAR(ev->zero);
	return fill_end(rec, head, 1, token);
}

FILL(coll)
{
	struct nci_ev_coll *ev = (struct nci_ev_coll *)rec;
	const struct nccl_coll_v5 *c = &d->coll;

	ev->seq = c->seqNumber;
	ev->count = c->count;
	ev->func = fill_name_id(c->func);
	ev->datatype = fill_name_id(c->datatype);
	ev->algo = fill_name_id(c->algo);
	ev->proto = fill_name_id(c->proto);
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
	ev->tag = fill_tag_of(extra);
	ev->root = c->root;
	ev->red_op = extra->red_op;
	ev->variant = fill_name_id(extra->variant);
	return fill_end(rec, head, 2 | (steer_launched(rec->start) ? NCI_FORM_WATCHED : 0), token);
}

FILL(p2p)
{
	struct nci_ev_p2p *ev = (struct nci_ev_p2p *)rec;
	const struct nccl_p2p_v5 *p = &d->p2p;

	ev->count = p->count;
	ev->peer = p->peer;
	ev->rank = d->rank;
	ev->func = fill_name_id(p->func);
	ev->datatype = fill_name_id(p->datatype);
	ev->channels = p->nChannels;
	CLEAR(ev->zero);
	ev->cont = NCI_LINE_CONT;
	CLEAR(ev->zero1);
	ev->group = adapt_number(p->parentGroup);
	ev->buff = adapt_number(p->buff);
	ev->comm_hash = extra->comm_hash;
	ev->tag = fill_tag_of(extra);
	CLEAR(ev->zero2);
	return fill_end(rec, head, 2 | (steer_launched(rec->start) ? NCI_FORM_WATCHED : 0), token);
}

FILL(proxy_op)
{
	struct nci_ev_proxy_op *ev = (struct nci_ev_proxy_op *)rec;
	const struct nccl_proxy_op *p = &d->proxyOp;

	ev->peer = p->peer;
	ev->rank = d->rank;
	ev->steps = p->nSteps;
	ev->chunk_bytes = p->chunkSize;
	ev->pid = p->pid;
	ev->channel = p->channelId;
	CLEAR(ev->zero);
	fill_second_line(rec);
	ev->origin = extra->origin;
	ev->sums = atomic_load_explicit(&process_self.folds, memory_order_relaxed) ?
		   0 : STEPS_NO_SUMS;
	return fill_end(rec, head, 2 | (p->isSend == 1 ? NCI_FORM_SEND : 0), token);
}

FILL(proxy_step)
{
	fill_step(rec, d->proxyStep.step);
	return fill_end(rec, head, 1, token);
}

FILL(proxy_sums)
{
	fill_sums(rec, head, token);
	return NCCL_SUCCESS;
}

FILL(proxy_ctrl)
{
	struct nci_ev_proxy_ctrl *ev = (struct nci_ev_proxy_ctrl *)rec;

	CLEAR(ev->marks);
	ev->appended = -1;
	CLEAR(ev->zero);
	return fill_end(rec, head, 1, token);
}

FILL(kernel_ch)
{
	struct nci_ev_kernel_ch *ev = (struct nci_ev_kernel_ch *)rec;

	ev->gpu_start = d->kernelCh.pTimer;
	ev->gpu_stop = 0;
	ev->stop_span = 0;
	ev->channel = d->kernelCh.channelId;
	CLEAR(ev->zero);
	return fill_end(rec, head, 1, token);
}

/*
 * The operation of a request, by way of its step.  A socket's thread may come when either is
 * over and its slot is another event's: what was read counts if both tokens are still there.
 */
static uint32_t fill_net_op(struct nci_ev_net_plugin *ev)
{
	const struct nci_record *step = shmring_find(&process_self.ring, ev->parent);
	uint64_t token = step && step->type == NCI_EV_PROXY_STEP ? step->parent : 0;
	const struct nci_ev_proxy_op *op = token ? steps_find(token) : NULL;
	uint32_t form;

	ev->peer = -1;
	if (!op)
		return 0;
	ev->peer = op->peer;
	ev->channel = op->channel;
	ev->origin = op->origin;
	form = op->form & NCI_FORM_SEND;
	atomic_thread_fence(memory_order_acquire);
	if (steps_find(token) == op && shmring_find(&process_self.ring, ev->parent) == step) {
		ev->op = token;
		return form;
	}
	ev->peer = -1;
	ev->channel = 0;
	ev->origin = 0;
	return 0;
}

/* The payload of a transport of NCCL's own, into a second line of zeros. */
static uint32_t fill_net_request(struct nci_ev_net_plugin *ev, const struct nccl_net_plugin *net)
{
	const struct nccl_net_ib_v1 *ib = net->data;
	const struct nccl_net_socket_v1 *socket = net->data;
	uint32_t send = fill_net_op(ev);

	ev->device = ev->opcode = -1;
	if (ev->id == NCI_NET_SOCKET_V1) {
		ev->bytes = socket->sock.length;
		ev->queue = (uint32_t)socket->sock.fd;
		return socket->sock.op == 0 ? NCI_FORM_SEND : 0;
	}
	ev->request = ib->qp.wr_id;
	ev->queue = (uint32_t)ib->qp.qpNum;
	ev->device = ib->qp.device;
	if (send) {		/* both stay as they were for a receive */
		ev->bytes = ib->qp.length;
		ev->opcode = ib->qp.opcode;
	}
	return send;
}

FILL(net_plugin)
{
	struct nci_ev_net_plugin *ev = (struct nci_ev_net_plugin *)rec;
	const struct nccl_net_plugin *net = &d->netPlugin;
	uint32_t form = 1;

	ev->id = net->id;
	CLEAR(ev->marks);
	ev->channel = 0;
	CLEAR(ev->zero);
	if ((net->id == NCI_NET_IB_V1 || net->id == NCI_NET_SOCKET_V1) && net->data &&
	    *(const uint8_t *)net->data == NCCL_NET_TYPE) {
		fill_second_line(rec);
		form = 2 | fill_net_request(ev, net);
	}
	return fill_end(rec, head, form, token);
}

FILL(group_api)
{
	struct nci_ev_group_api *ev = (struct nci_ev_group_api *)rec;

	ev->depth = d->groupApi.groupDepth;
	ev->begin_span = 0;
	ev->end_span = 0;
	CLEAR(ev->zero);
	return fill_end(rec, head, 1 | fill_graph_form(&d->groupApi.graphCaptured), token);
}

/* An API event's second line, if there is anything to say in it: that has the tag's place. */
static uint32_t fill_tag(struct nci_record *rec, const struct adapt_extra *extra)
{
	struct nci_ev_coll_api *ev = (struct nci_ev_coll_api *)rec;

	_Static_assert(offsetof(struct nci_ev_coll_api, tag) ==
		       offsetof(struct nci_ev_p2p_api, tag), "both have the same second line");
	if (!fill_tag_of(extra))
		return 1;
	fill_second_line(rec);
	ev->tag = fill_tag_of(extra);
	return 2;
}

FILL(coll_api)
{
	struct nci_ev_coll_api *ev = (struct nci_ev_coll_api *)rec;

	ev->count = d->collApi.count;
	ev->stream = adapt_number(d->collApi.stream);
	ev->func = fill_name_id(d->collApi.func);
	ev->datatype = fill_name_id(d->collApi.datatype);
	ev->root = d->collApi.root;
	return fill_end(rec, head, fill_tag(rec, extra) |
			fill_graph_form(&d->collApi.graphCaptured), token);
}

FILL(p2p_api)
{
	struct nci_ev_p2p_api *ev = (struct nci_ev_p2p_api *)rec;

	ev->count = d->p2pApi.count;
	ev->stream = adapt_number(d->p2pApi.stream);
	ev->func = fill_name_id(d->p2pApi.func);
	ev->datatype = fill_name_id(d->p2pApi.datatype);
	CLEAR(ev->zero);
	return fill_end(rec, head, fill_tag(rec, extra) |
			fill_graph_form(&d->p2pApi.graphCaptured), token);
}

FILL(kernel_launch)
{
	struct nci_ev_kernel_launch *ev = (struct nci_ev_kernel_launch *)rec;

	ev->stream = adapt_number(d->kernelLaunch.stream);
	CLEAR(ev->zero);
	return fill_end(rec, head, 1, token);
}

FILL(ce_coll)
{
	struct nci_ev_ce_coll *ev = (struct nci_ev_ce_coll *)rec;
	const struct nccl_ce_coll *c = &d->ceColl;

	ev->seq = c->seqNumber;
	ev->count = c->count;
	ev->func = fill_name_id(c->func);
	ev->datatype = fill_name_id(c->datatype);
	ev->sync = fill_name_id(c->syncStrategy);
	ev->intra_sync = fill_truth(&c->intraBatchSync);
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
	ev->tag = fill_tag_of(extra);
	ev->begin_span = 0;
	ev->end_span = 0;
	return fill_end(rec, head, 2, token);
}

FILL(ce_sync)
{
	struct nci_ev_ce_sync *ev = (struct nci_ev_ce_sync *)rec;

	CLEAR(ev->marks);
	ev->rank = d->rank;
	ev->ranks = d->ceCollSync.nRanks;
	ev->complete = fill_truth(&d->ceCollSync.isComplete);
	CLEAR(ev->zero);
	return fill_end(rec, head, 1, token);
}

FILL(ce_batch)
{
	struct nci_ev_ce_batch *ev = (struct nci_ev_ce_batch *)rec;

	ev->bytes = d->ceCollBatch.totalBytes;
	CLEAR(ev->marks);
	ev->ops_sync = (int32_t)((uint32_t)d->ceCollBatch.numOps << 1 |
				 fill_truth(&d->ceCollBatch.useIntraSync));
	return fill_end(rec, head, 1, token);
}

fill_fn *const fill_events[NCI_EV_END] = {
#define X(id, NAME, name, least, most) [id] = fill_##name,
	NCI_EVENTS(X)
#undef X
};
