/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operation is put together from its head (Coll, P2p, CeColl), the API call
 * that it came from, and its children (KernelCh, ProxyOp, ProxyStep).  Any of
 * them may be read first, so an operation exists from the first one on:
 *
 *     child --> headless --head--> open --complete--> done()  --> finished
 *                  |                | ^                  (its token, for late
 *                  | 30 s           | +- child            children)
 *                  v                +- superseded, evicted, process ended
 *               orphans                 --> done(), complete = false
 */
#include "reader/join/join.h"

#include "reader/base/phase.h"
#include "reader/join/ops.h"
#include "reader/time/timeline.h"
#include "util/list.h"

#define PREDATES_NS UINT64_C(1000000000)

/* ---- handing on ---------------------------------------------------------- */

/* A communicator's tag is most often that of its last operation. */
static name_t op_tag_name(const struct process *p, struct recon_comm *rcomm, uint64_t tag)
{
	if (!tag)
		return NULL;
	if (!rcomm)
		return process_tag_name(p, tag);
	if (tag != rcomm->tag || p->nstrings != rcomm->tag_strings) {
		rcomm->tag = tag;
		rcomm->tag_name = process_tag_name(p, tag);
		rcomm->tag_strings = p->nstrings;
	}
	return rcomm->tag_name;
}

inline void join_deliver(struct reconstruct *rc, struct recon *r, struct op *op,
		  const struct op_facts *facts, bool complete, uint64_t now_ns)
{
	const struct process *p = r->process;
	struct recon_comm *rcomm = recon_seen_comm(r, op->comm_index);

	op->complete = complete;
	op->done_ns = now_ns;
	timeline_place(&p->clock, rcomm ? rcomm->gpu : NULL, op);
	op->phase = phase_at(p, op->enqueued_ns);
	op->tag_name = op_tag_name(p, rcomm, op->tag);
	op->predates = op->enqueued_ns && op->enqueued_ns + PREDATES_NS < p->first_seen_ns;
	ops_bandwidth_by(facts, op);
	rc->stats.finished++;
	rc->stats.unbatched += op->fused == OP_FUSED;
	rc->done(op, now_ns, rc->arg);
}

void join_hand_on(struct reconstruct *rc, struct recon *r, struct open_op *o, uint64_t now_ns)
{
	join_deliver(rc, r, &o->op, o->facts, o->op.complete, now_ns);
	if (o->group_key)
		join_group_part(rc, r, o, now_ns);
	recon_drop_op(r, o);
}

/*
 * Its kernel has run, so that what the communicator was given before it is over: told by the
 * kernel itself, or by a collective's transfers, which end with what their kernel took or gave.
 */
static bool op_has_run(const struct op *op)
{
	return op->kernel_stopped || (!op->is_p2p && op->proxy_stop_ticks);
}

void join_finish(struct reconstruct *rc, struct recon *r, struct open_op *o, bool complete,
		 uint64_t now_ns)
{
	struct op *op = &o->op;
	struct recon_comm *rcomm = o->rcomm;

	op->complete = complete;
	if (!join_finish_stamps(rc, r, o)) {
		join_plan_keep(rc, r, o, now_ns);
		o->unjudged = o->plan;
		if (!o->plan)
			join_judge_stamps(rc, r, o);
	}
	if (rcomm) {
		o->rcomm = NULL;
		rcomm->progress.in_flight--;
		if (complete && op_has_run(op) && op->start_ticks > rcomm->newest_done)
			rcomm->newest_done = op->start_ticks;
	}
	if (join_plan_hold(rc, r, o, now_ns))
		return;
	join_hand_on(rc, r, o, now_ns);
}

/*
 * The sign that an operation is complete depends on what was asked of NCCL:
 *
 *     KernelCh              as many channels have stopped as it has
 *     KernelCh, but some    a send or receive may use fewer channels than planned,
 *     channels never come   older APIs give an upper bound: see reconstruct_flush()
 *     ProxyOp only          see reconstruct_flush()
 *     neither, or to        at once: there is nothing to watch
 *     oneself
 */
static bool op_is_complete(const struct open_op *o)
{
	const struct op *op = &o->op;

	if (op->is_p2p && op->peer == op->rank && op->rank != UNKNOWN_I32)
		return true;
	if (op->expects_kernel)
		return op->channels && op->kernel_stopped >= op->channels;
	return !op->expects_proxy;
}

void join_advance(struct reconstruct *rc, struct recon *r, struct open_op *o, uint64_t now_ns)
{
	if (o->has_head && !o->waits && !o->held && op_is_complete(o))
		join_finish(rc, r, o, true, now_ns);
}

/* ---- operations ---------------------------------------------------------- */

void join_init_op(const struct recon *r, struct op *op, uint64_t token, uint64_t now_ns)
{
	const struct process *p = r->process;

	op->token = token;
	op->seen_ns = now_ns;
	op->process_id = p->id;
	op->pid = p->pid;
	op->uid = p->uid;
	op->account = p->account;
	op->comm_index = NCI_COMM_NONE;
	op->rank = op->nranks = op->root = op->peer = UNKNOWN_I32;
	op->seq = op->count = op->bytes = UNKNOWN_U64;
}

/* The least recently touched one leaves a full pool; sums without a head go first. */
static void make_room_for_op(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	if (recon_has_room(r, &r->ops))
		return;
	if (r->headless.first) {
		r->process->loss.evicted++;
		rc->stats.orphans++;
		recon_drop_op(r, r->headless.first);
	} else if (r->open.first) {
		r->process->loss.evicted++;
		join_finish(rc, r, r->open.first, false, now_ns);
	}
	for (uint32_t n = r->plan_list.count; n && !recon_has_room(r, &r->ops); n--)
		join_close_plan(rc, r, r->plan_list.first, now_ns);
}

/* It is on no list yet. */
static inline struct open_op *op_make(struct reconstruct *rc, struct recon *r, uint64_t token,
				      uint64_t now_ns)
{
	struct open_op *o;

	make_room_for_op(rc, r, now_ns);
	o = recon_take_op(r, token);
	if (o)
		join_init_op(r, &o->op, token, now_ns);
	return o;
}

struct open_op *join_new_op(struct reconstruct *rc, struct recon *r, uint64_t token,
			    uint64_t now_ns)
{
	struct open_op *o = op_make(rc, r, token, now_ns);

	if (o)
		pool_list_append(&r->headless, o);
	return o;
}

static struct recon_comm *named_comm(struct reconstruct *rc, struct recon *r, uint16_t index,
				     const struct comm *comm)
{
	struct recon_comm *rcomm = recon_comm(r, index);

	if (rcomm && !rcomm->name && *comm->name)
		rcomm->name = names_intern(rc->names, r->process->account, comm->name,
					   sizeof(comm->name));
	return rcomm;
}

name_t join_comm_name(struct reconstruct *rc, struct recon *r, uint16_t index)
{
	const struct recon_comm *rcomm = named_comm(rc, r, index, process_comm(r->process, index));

	return rcomm ? rcomm->name : NULL;
}

inline struct recon_comm *join_fill_comm(struct reconstruct *rc, struct recon *r, struct op *op,
					 uint16_t index, const struct comm *comm)
{
	struct recon_comm *rcomm;

	if (!comm)
		return NULL;
	rcomm = named_comm(rc, r, index, comm);
	op->comm_index = index;
	op->comm_name = rcomm ? rcomm->name : NULL;
	op->rank = comm->rank;
	op->has_comm_id = comm->has_id;
	if (comm->has_id) {
		op->comm_id = comm->id;
		op->nranks = comm->nranks;
	}
	return rcomm;
}

/* API v1 to v3: the communicator says nothing of itself, each event a little, which is kept. */
static void fill_comm_from_event(const struct recon *r, struct op *op, const struct nci_record *rec,
				 int32_t rank, uint64_t comm_hash)
{
	struct comm *comm;

	if (op->has_comm_id)
		return;
	comm = process_comm(r->process, rec->comm);
	op->rank = rank >= 0 ? rank : UNKNOWN_I32;
	op->has_comm_id = comm_hash != 0;
	op->comm_id = comm_hash;
	if (!comm || !comm_hash)
		return;
	comm->has_id = true;
	comm->id = comm_hash;
	comm->rank = op->rank;
}

/*
 * Take the size from NCCL's descriptor: right in bytes, but maybe not what the
 * application passed.
 */
static void op_fill_size(struct recon *r, struct op *op, const struct op_facts *facts,
			 uint64_t count, uint16_t datatype)
{
	const struct ops_word *type;

	if (op->has_graph && op->bytes != UNKNOWN_U64)
		return;		/* its API call has told all */
	type = ops_word(&r->words, process_name(r->process, datatype));
	op->bytes = ops_size(facts, count, type->type_bytes, op->nranks);
	if (op->has_graph)
		return;
	if (facts && facts->as_bytes && type->type_bytes == 1)
		return;		/* turned into bytes: the count could be anything's */
	op->count = count;
	op->datatype = ops_known_type(type);
}

/* ---- heads --------------------------------------------------------------- */

/* The operation of this head, on no list; NULL: that token had its head already, or no memory. */
static struct open_op *op_place_head(struct reconstruct *rc, struct recon *r, uint64_t token,
				     uint64_t now_ns)
{
	struct recon_found found = { RECON_NONE, NULL };
	struct open_op *o;

	if (!recon_see_head(r, token))
		found = recon_find(r, token);
	o = found.item;
	if (found.kind == RECON_NONE)
		return op_make(rc, r, token, now_ns);
	if (found.kind != RECON_OP || o->has_head)
		return NULL;
	pool_list_remove(&r->headless, o);
	return o;
}

static bool asked_for(const struct recon *r, uint32_t event)
{
	return r->process->mask & NCI_EVENT_BIT(event);
}

/* Kernels that are told of may be others' once a communicator has drifted. */
static void look_at_kernels(struct recon *r, struct recon_comm *rcomm, struct op *op,
			    const struct nci_record *head)
{
	bool watched = op->kernel_stopped || head->form & NCI_FORM_WATCHED;

	join_note_uncounted(r, rcomm, op, watched, 0);
	op->expects_kernel = watched && !join_has_drifted(r, rcomm, op);
	if (op->expects_kernel)
		return;
	op->kernel_started = op->kernel_stopped = 0;
	op->kernel_start_ticks = op->kernel_stop_ticks = 0;
}

/* Within one node there is no network, unless we have seen it used all the same. */
static bool expects_proxy(const struct recon *r, const struct comm *comm,
			  const struct recon_comm *rcomm)
{
	if (!asked_for(r, NCI_EV_PROXY_OP) && !asked_for(r, NCI_EV_PROXY_STEP))
		return false;
	return !comm || !comm->has_id || comm->nnodes != 1 || (rcomm && rcomm->proxy_seen);
}

/* The operation of a head, with what all heads tell, on no list; NULL: that makes none. */
static struct open_op *head_take(struct reconstruct *rc, struct recon *r, const struct event *ev,
				 uint64_t now_ns)
{
	const struct nci_record *head = ev->rec;
	struct open_op *o = op_place_head(rc, r, head->token, now_ns);

	if (!o)
		return NULL;
	o->rcomm = join_fill_comm(rc, r, &o->op, head->comm, ev->comm);
	o->api_token = head->parent;
	o->head_ns = now_ns;
	o->op.start_ticks = head->start;
	o->op.stop_ticks = head->stop;
	look_at_kernels(r, o->rcomm, &o->op, head);
	o->op.expects_proxy = o->op.proxy_ops || expects_proxy(r, ev->comm, o->rcomm);
	if (o->rcomm)
		o->rcomm->progress.in_flight++;
	return o;
}

static void note_posted(struct recon *r, struct recon_comm *rcomm, const struct op *op)
{
	struct comm_progress *progress;
	uint64_t posted_ns = timeline_mono(&r->process->clock, op->start_ticks);
	uint32_t i = 0;
	int64_t newer;

	if (!rcomm)
		return;
	if (posted_ns > rcomm->launched_ns)
		rcomm->launched_ns = posted_ns;
	progress = &rcomm->progress;
	if (posted_ns >= progress->last_op_ns) {
		progress->last_op_ns = posted_ns;
		progress->last_func = op->func;
		progress->last_func_seq = op->seq;
		progress->last_unwatched = !op->expects_kernel && !rcomm->proxy_seen;
	}
	if (op->is_p2p)
		progress->tag = op->tag;
	if (op->seq == UNKNOWN_U64 || !op->func)
		return;
	while (i < progress->nfuncs && progress->last_seq[i].func != op->func)
		i++;
	if (i == progress->nfuncs) {
		if (!array_add(progress->last_seq, &progress->nfuncs))
			return;
		progress->last_seq[i].func = op->func;
		progress->last_seq[i].seq = op->seq;
	}
	newer = (int64_t)(op->seq - progress->last_seq[i].seq);
	if (newer < 0)
		join_note_uncounted(r, rcomm, op, true, -1);
	else if (newer > 1)
		join_note_uncounted(r, rcomm, op, true, newer - 1);
	if (newer > 0)
		progress->last_seq[i].seq = op->seq;
}

static void head_is_filled(struct reconstruct *rc, struct recon *r, struct open_op *o,
			   uint64_t count, uint16_t datatype, uint64_t now_ns)
{
	r->newest_parent = o;
	o->has_head = true;
	o->touched_ns = now_ns;
	pool_list_append(&r->open, o);
	note_posted(r, o->rcomm, &o->op);
	join_post(rc, r, o->rcomm, &o->op);
	join_plan_head(rc, r, o, now_ns);
	join_look_for_api(r, o);
	op_fill_size(r, &o->op, o->facts, count, datatype);
	join_group_head(rc, r, o, now_ns);
	join_advance(rc, r, o, now_ns);
}

static void on_coll(struct reconstruct *rc, struct recon *r, const struct event *ev,
		    uint64_t now_ns)
{
	const struct nci_ev_coll *c = EVENT(ev, coll);
	const struct process *p = r->process;
	struct open_op *o = head_take(rc, r, ev, now_ns);
	struct op *op;

	if (!o)
		return;
	op = &o->op;
	op->func = process_name(p, c->func);
	op->algo = process_name(p, c->algo);
	op->proto = process_name(p, c->proto);
	op->seq = c->seq;
	op->channels = c->channels;
	op->tag = c->tag;
	op->group = c->group;
	op->symmetric = c->flags & NCI_COLL_SYMMETRIC;
	o->facts = ops_word(&r->words, op->func)->facts;
	op->root = ops_root(o->facts, c->root);
	fill_comm_from_event(r, op, ev->rec, c->rank, c->comm_hash);
	head_is_filled(rc, r, o, c->count, c->datatype, now_ns);
}

static void on_p2p(struct reconstruct *rc, struct recon *r, const struct event *ev,
		   uint64_t now_ns)
{
	const struct nci_ev_p2p *c = EVENT(ev, p2p);
	struct open_op *o = head_take(rc, r, ev, now_ns);
	struct op *op;

	if (!o)
		return;
	op = &o->op;
	op->is_p2p = true;
	op->func = process_name(r->process, c->func);
	o->facts = ops_word(&r->words, op->func)->facts;
	op->peer = c->peer >= 0 ? c->peer : UNKNOWN_I32;
	op->channels = c->channels;
	op->tag = c->tag;
	op->group = c->group;
	fill_comm_from_event(r, op, ev->rec, c->rank, c->comm_hash);
	head_is_filled(rc, r, o, c->count, c->datatype, now_ns);
}

/* Its sequence number counts synchronisations, so it has none of its own. */
static void on_ce_coll(struct reconstruct *rc, struct recon *r, const struct event *ev,
		       uint64_t now_ns)
{
	const struct nci_ev_ce_coll *c = EVENT(ev, ce_coll);
	struct open_op *o = head_take(rc, r, ev, now_ns);
	struct op *op;

	if (!o)
		return;
	op = &o->op;
	op->is_ce = true;
	op->expects_kernel = op->expects_proxy = false;
	op->func = process_name(r->process, c->func);
	o->facts = ops_word(&r->words, op->func)->facts;
	op->root = ops_root(o->facts, c->root);
	head_is_filled(rc, r, o, c->count, c->datatype, now_ns);
}

/* ---- dispatch ----------------------------------------------------------- */

/* Events without a row tell nothing about an operation. */
static join_fn *const handlers[NCI_EV_END] = {
	[NCI_EV_GROUP]      = join_on_group,
	[NCI_EV_COLL]       = on_coll,
	[NCI_EV_P2P]        = on_p2p,
	[NCI_EV_PROXY_OP]   = join_on_proxy_op,
	[NCI_EV_PROXY_STEP] = join_on_proxy_step,
	[NCI_EV_PROXY_SUMS] = join_on_proxy_sums,
	[NCI_EV_KERNEL_CH]  = join_on_kernel_ch,
	[NCI_EV_NET_PLUGIN] = join_on_net_plugin,
	[NCI_EV_GROUP_API]  = join_on_group_api,
	[NCI_EV_COLL_API]   = join_on_coll_api,
	[NCI_EV_P2P_API]    = join_on_p2p_api,
	[NCI_EV_CE_COLL]    = on_ce_coll,
};

void reconstruct_event(struct reconstruct *rc, struct process *process,
		       const struct event *ev, uint64_t now_ns)
{
	struct recon *r = process->recon;
	join_fn *handler = ev->rec->type < NCI_EV_END ? handlers[ev->rec->type] : NULL;

	if (!r || r->ended)
		return;
	rc->stats.records++;
	if (handler)
		handler(rc, r, ev, now_ns);
}
