/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operation is put together from its head (Coll, P2p, CeColl), the API call
 * that it came from, and its children (KernelCh, ProxyOp, ProxyStep).  Any of
 * them may be read first, so an operation exists from the first one on:
 *
 *     child ──► headless ──head──► open ──complete──► done()  ──► finished
 *                  │                │ ▲                  (its token, for late
 *                  │ 30 s           │ └─ child            children)
 *                  ▼                └─ superseded, evicted, process ended
 *               orphans                 ──► done(), complete = false
 */
#include "ncclinspd/join.h"

#include <string.h>

#include "ncclinspd/ops.h"
#include "ncclinspd/timeline.h"

#define STAMP_SLOP_NS	4096	/* stamps of fused members differ by a few clock steps */
#define STAMP_RESYNC	8	/* refused in a row: it was the reference that was wrong */

#define FIRST_API_WITH_CALLS	5	/* CollApi and P2pApi as parents */
#define FIRST_API_WITH_STAMPS	4

/* ---- handing on ---------------------------------------------------------- */

void join_deliver(struct reconstruct *rc, struct recon *r, struct op *op, bool complete,
		  uint64_t now_ns)
{
	op->complete = complete;
	op->done_ns = now_ns;
	timeline_place(&r->process->clock, op);
	ops_bandwidth(op);
	rc->stats.finished++;
	rc->done(op, now_ns, rc->arg);
}

void join_finish(struct reconstruct *rc, struct recon *r, uint32_t item, bool complete,
		 uint64_t now_ns)
{
	struct op *op = &recon_op(r, item)->op;
	struct recon_comm *rcomm = recon_comm(r, (uint16_t)op->comm_index);

	join_deliver(rc, r, op, complete, now_ns);
	if (rcomm) {
		rcomm->progress.in_flight--;
		if (complete && op->kernel_stopped && op->start_ticks > rcomm->newest_done)
			rcomm->newest_done = op->start_ticks;
	}
	recon_drop_op(r, item);
}

void join_finish_api(struct reconstruct *rc, struct recon *r, uint32_t item, bool complete,
		     uint64_t now_ns)
{
	struct op op;

	join_op_from_api(rc, r, recon_api(r, item), &op);
	join_deliver(rc, r, &op, complete, now_ns);
	recon_drop_api(r, item);
}

/*
 * What tells that an operation is complete depends on what was asked of NCCL:
 *
 *     KernelCh              as many channels have stopped as it has
 *     KernelCh, but some    a send or receive may use fewer channels than planned,
 *     channels never come   older APIs give an upper bound: see reconstruct_flush()
 *     ProxyOp only          see reconstruct_flush()
 *     neither               at once: there is nothing to watch
 */
static bool is_complete(const struct open_op *o)
{
	const struct op *op = &o->op;

	if (op->expects_kernel)
		return (op->channels && op->kernel_stopped >= op->channels) ||
		       (op->is_p2p && op->peer == op->rank);	/* to itself: no children */
	return !op->expects_proxy;
}

static void advance(struct reconstruct *rc, struct recon *r, uint32_t item, uint64_t now_ns)
{
	const struct open_op *o = recon_op(r, item);

	if (o->has_head && !o->waits && is_complete(o))
		join_finish(rc, r, item, true, now_ns);
}

/* ---- operations ---------------------------------------------------------- */

static void init_op(const struct recon *r, struct op *op, uint64_t token, uint64_t now_ns)
{
	op->token = token;
	op->seen_ns = now_ns;
	op->process_id = r->process->id;
	op->pid = r->process->pid;
	op->uid = r->process->uid;
	op->comm_index = NCI_COMM_NONE;
	op->rank = op->nranks = op->root = op->peer = UNKNOWN_I32;
	op->seq = op->count = op->bytes = UNKNOWN_U64;
}

/* Of a full pool the least recently touched goes; sums without a head first. */
static void make_room_for_op(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	if (r->ops.used < r->ops.capacity)
		return;
	r->process->loss.evicted++;
	if (r->headless.first != POOL_NONE) {
		rc->stats.orphans++;
		recon_drop_op(r, r->headless.first);
	} else {
		join_finish(rc, r, r->open.first, false, now_ns);
	}
}

/* Headless.  POOL_NONE: the token stands for something else. */
static uint32_t new_op(struct reconstruct *rc, struct recon *r, uint64_t token,
		       uint64_t now_ns)
{
	uint32_t item;

	make_room_for_op(rc, r, now_ns);
	item = recon_take_op(r, token);
	if (item == POOL_NONE)
		return item;
	init_op(r, &recon_op(r, item)->op, token, now_ns);
	pool_list_append(&r->ops, &r->headless, item);
	return item;
}

static void touch(struct recon *r, uint32_t item, uint64_t now_ns)
{
	struct open_op *o = recon_op(r, item);
	struct pool_list *list = o->has_head ? &r->open : &r->headless;

	o->touched_ns = now_ns;
	if (list->last == item)
		return;
	pool_list_remove(&r->ops, list, item);
	pool_list_append(&r->ops, list, item);
}

static struct recon_comm *named_comm(struct reconstruct *rc, struct recon *r, uint16_t index)
{
	const struct comm *comm = process_comm(r->process, index);
	struct recon_comm *rcomm = recon_comm(r, index);

	if (rcomm && !rcomm->name)
		rcomm->name = names_intern(rc->names, comm->name, sizeof(comm->name));
	return rcomm;
}

static void fill_comm(struct reconstruct *rc, struct recon *r, struct op *op, uint16_t index)
{
	const struct comm *comm = process_comm(r->process, index);
	const struct recon_comm *rcomm = named_comm(rc, r, index);

	if (!comm)
		return;
	op->comm_index = index;
	op->comm_name = rcomm ? rcomm->name : NULL;
	op->rank = comm->rank;
	op->has_comm_id = comm->has_id;
	if (comm->has_id) {
		op->comm_id = comm->id;
		op->nranks = comm->nranks;
	}
}

/* API v1 to v3: the communicator says nothing of itself, each event a little. */
static void fill_comm_from_event(struct op *op, int32_t rank, uint64_t comm_hash)
{
	if (op->has_comm_id)
		return;
	op->rank = rank >= 0 ? rank : UNKNOWN_I32;
	op->has_comm_id = comm_hash != 0;
	op->comm_id = comm_hash;
}

/* Types whose size we do not know are shown as not known: NCCL's name may be wrong. */
static name_t known_type(name_t datatype)
{
	return ops_datatype_bytes(datatype) ? datatype : NULL;
}

/* From NCCL's descriptor: right in bytes, but maybe not what the application passed. */
static void fill_size(struct op *op, uint64_t count, name_t datatype)
{
	const struct op_facts *facts = ops_facts(op->func);
	uint32_t type_bytes = ops_datatype_bytes(datatype);

	op->bytes = ops_size(facts, count, type_bytes, op->nranks);
	if (facts && facts->as_bytes && type_bytes == 1)
		return;		/* turned into bytes: the count could be anything's */
	op->count = count;
	op->datatype = known_type(datatype);
}

static int32_t root_of(name_t func, int32_t root)
{
	const struct op_facts *facts = ops_facts(func);

	return facts && facts->has_root && root >= 0 ? root : UNKNOWN_I32;
}

/* ---- API calls ----------------------------------------------------------- */

static void fill_from_api(struct op *op, const struct api_call *api)
{
	uint64_t bytes = ops_size(ops_facts(op->func), api->count,
				  ops_datatype_bytes(api->datatype), op->nranks);

	op->count = api->count;
	op->datatype = known_type(api->datatype);
	if (bytes != UNKNOWN_U64)
		op->bytes = bytes;
	op->has_graph = true;
	op->graph = api->graph;
	if (!api->graph)	/* a replay is launched, not called for */
		op->api_start_ticks = api->start_ticks;
}

void join_op_from_api(struct reconstruct *rc, struct recon *r, const struct api_call *api,
		      struct op *op)
{
	memset(op, 0, sizeof(*op));
	init_op(r, op, api->token, api->seen_ns);
	fill_comm(rc, r, op, api->comm);
	op->api_only = true;
	op->is_p2p = api->is_p2p;
	op->func = api->func;
	op->root = root_of(api->func, api->root);
	op->start_ticks = api->start_ticks;
	op->stop_ticks = api->stop_ticks;
	fill_from_api(op, api);
}

/* One call gives one operation, except under graph capture: there, one per replay. */
bool join_api(struct recon *r, struct open_op *o)
{
	uint32_t item;
	struct api_call *api;

	if (recon_find(r, o->api_token, &item) != RECON_API)
		return false;
	api = recon_api(r, item);
	fill_from_api(&o->op, api);
	if (api->graph) {
		pool_list_remove(&r->apis, &r->captured, item);
		pool_list_append(&r->apis, &r->captured, item);
	} else {
		recon_drop_api(r, item);
	}
	return true;
}

void join_stop_waiting(struct reconstruct *rc, struct recon *r, uint32_t item,
		       uint64_t now_ns)
{
	pool_list_remove(&r->ops, &r->waiting, item);
	recon_op(r, item)->waits = false;
	advance(rc, r, item, now_ns);
}

static void look_for_api(struct recon *r, uint32_t op_item)
{
	struct open_op *o = recon_op(r, op_item);
	uint32_t item;

	if (!o->api_token || r->process->api_version < FIRST_API_WITH_CALLS || join_api(r, o))
		return;
	if (recon_find(r, o->api_token, &item) != RECON_NONE)
		return;		/* claimed before, or no API call at all */
	o->waits = true;
	pool_list_append(&r->ops, &r->waiting, op_item);
}

/* An unclaimed call goes first, and counts: most likely nothing more comes of it. */
static void make_room_for_api(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	if (r->apis.used < r->apis.capacity)
		return;
	if (r->calls.first != POOL_NONE)
		join_finish_api(rc, r, r->calls.first, true, now_ns);
	else
		recon_drop_api(r, r->captured.first);
}

static struct api_call *new_api(struct reconstruct *rc, struct recon *r,
				const struct nci_record *rec, uint64_t now_ns)
{
	struct api_call *api;
	uint32_t item;

	make_room_for_api(rc, r, now_ns);
	item = recon_take_api(r, rec->token);
	if (item == POOL_NONE)
		return NULL;
	api = recon_api(r, item);
	api->group = rec->parent;
	api->start_ticks = rec->start;
	api->stop_ticks = rec->stop;
	api->seen_ns = now_ns;
	api->comm = rec->comm;
	api->root = UNKNOWN_I32;
	api->graph = rec->form & NCI_FORM_GRAPH;
	pool_list_append(&r->apis, api->graph ? &r->captured : &r->calls, item);
	return api;
}

static void on_coll_api(struct reconstruct *rc, struct recon *r, const struct event *ev,
			uint64_t now_ns)
{
	const struct nci_ev_coll_api *c = EVENT(ev, coll_api);
	struct api_call *api = new_api(rc, r, ev->rec, now_ns);

	if (!api)
		return;
	api->func = process_name(r->process, c->func);
	api->datatype = process_name(r->process, c->datatype);
	api->count = c->count;
	api->root = c->root;
}

static void on_p2p_api(struct reconstruct *rc, struct recon *r, const struct event *ev,
		       uint64_t now_ns)
{
	const struct nci_ev_p2p_api *c = EVENT(ev, p2p_api);
	struct api_call *api = new_api(rc, r, ev->rec, now_ns);

	if (!api)
		return;
	api->is_p2p = true;
	api->func = process_name(r->process, c->func);
	api->datatype = process_name(r->process, c->datatype);
	api->count = c->count;
}

/* The group has ended: calls in it that gave no operation by now hardly will. */
static void on_group_api(struct reconstruct *rc, struct recon *r, const struct event *ev,
			 uint64_t now_ns)
{
	(void)rc;
	(void)now_ns;
	recon_remember(r, ev->rec->token, RECON_GROUP);
}

/* ---- heads --------------------------------------------------------------- */

/* Where this head belongs; POOL_NONE: that token had its head already. */
static uint32_t place_head(struct reconstruct *rc, struct recon *r, uint64_t token,
			   uint64_t now_ns)
{
	uint32_t item;
	enum recon_kind kind = recon_find(r, token, &item);

	if (kind == RECON_NONE)
		return new_op(rc, r, token, now_ns);
	if (kind != RECON_OP || recon_op(r, item)->has_head)
		return POOL_NONE;
	return item;
}

static bool asked_for(const struct recon *r, uint32_t event)
{
	return r->process->mask & NCI_EVENT_BIT(event);
}

/* Within one node there is no network, unless we have seen it used all the same. */
static bool expects_proxy(const struct recon *r, const struct comm *comm,
			  const struct recon_comm *rcomm)
{
	if (!asked_for(r, NCI_EV_PROXY_OP) && !asked_for(r, NCI_EV_PROXY_STEP))
		return false;
	return !comm || !comm->has_id || comm->nnodes != 1 || (rcomm && rcomm->proxy_seen);
}

static void fill_head(struct reconstruct *rc, struct recon *r, uint32_t item,
		      const struct event *ev, uint64_t now_ns)
{
	struct open_op *o = recon_op(r, item);
	struct recon_comm *rcomm = named_comm(rc, r, ev->rec->comm);

	fill_comm(rc, r, &o->op, ev->rec->comm);
	o->api_token = ev->rec->parent;
	o->head_ns = now_ns;
	o->op.start_ticks = ev->rec->start;
	o->op.stop_ticks = ev->rec->stop;
	o->op.expects_kernel = asked_for(r, NCI_EV_KERNEL_CH) || o->op.kernel_stopped;
	o->op.expects_proxy = o->op.proxy_ops || expects_proxy(r, ev->comm, rcomm);
	if (rcomm)
		rcomm->progress.in_flight++;
}

static void note_posted(struct recon *r, const struct op *op)
{
	struct recon_comm *rcomm = recon_comm(r, (uint16_t)op->comm_index);
	struct comm_progress *progress;
	uint64_t posted_ns = timeline_mono(&r->process->clock, op->start_ticks);
	uint32_t i = 0;

	if (!rcomm)
		return;
	progress = &rcomm->progress;
	if (posted_ns > progress->last_op_ns)
		progress->last_op_ns = posted_ns;
	if (op->seq == UNKNOWN_U64 || !op->func)
		return;
	while (i < progress->nfuncs && progress->last_seq[i].func != op->func)
		i++;
	if (i == RECONSTRUCT_FUNCS)
		return;
	if (i == progress->nfuncs) {
		progress->last_seq[i].func = op->func;
		progress->last_seq[i].seq = op->seq;
		progress->nfuncs++;
	}
	if (op->seq > progress->last_seq[i].seq)
		progress->last_seq[i].seq = op->seq;
}

static void head_is_filled(struct reconstruct *rc, struct recon *r, uint32_t item,
			   uint64_t now_ns)
{
	struct open_op *o = recon_op(r, item);

	pool_list_remove(&r->ops, &r->headless, item);
	o->has_head = true;
	o->touched_ns = now_ns;
	pool_list_append(&r->ops, &r->open, item);
	note_posted(r, &o->op);
	look_for_api(r, item);
	advance(rc, r, item, now_ns);
}

static void on_coll(struct reconstruct *rc, struct recon *r, const struct event *ev,
		    uint64_t now_ns)
{
	const struct nci_ev_coll *c = EVENT(ev, coll);
	uint32_t item = place_head(rc, r, c->token, now_ns);
	struct op *op;

	if (item == POOL_NONE)
		return;
	fill_head(rc, r, item, ev, now_ns);
	op = &recon_op(r, item)->op;
	op->func = process_name(r->process, c->func);
	op->algo = process_name(r->process, c->algo);
	op->proto = process_name(r->process, c->proto);
	op->seq = c->seq;
	op->channels = c->channels;
	op->tag = c->tag;
	op->group = c->group;
	op->root = root_of(op->func, c->root);
	fill_comm_from_event(op, c->rank, c->comm_hash);
	fill_size(op, c->count, process_name(r->process, c->datatype));
	head_is_filled(rc, r, item, now_ns);
}

static void on_p2p(struct reconstruct *rc, struct recon *r, const struct event *ev,
		   uint64_t now_ns)
{
	const struct nci_ev_p2p *c = EVENT(ev, p2p);
	uint32_t item = place_head(rc, r, c->token, now_ns);
	struct op *op;

	if (item == POOL_NONE)
		return;
	fill_head(rc, r, item, ev, now_ns);
	op = &recon_op(r, item)->op;
	op->is_p2p = true;
	op->func = process_name(r->process, c->func);
	op->peer = c->peer >= 0 ? c->peer : UNKNOWN_I32;
	op->channels = c->channels;
	op->tag = c->tag;
	op->group = c->group;
	fill_comm_from_event(op, c->rank, c->comm_hash);
	fill_size(op, c->count, process_name(r->process, c->datatype));
	head_is_filled(rc, r, item, now_ns);
}

/* Its sequence number counts synchronisations, so it has none of its own. */
static void on_ce_coll(struct reconstruct *rc, struct recon *r, const struct event *ev,
		       uint64_t now_ns)
{
	const struct nci_ev_ce_coll *c = EVENT(ev, ce_coll);
	uint32_t item = place_head(rc, r, c->token, now_ns);
	struct op *op;

	if (item == POOL_NONE)
		return;
	fill_head(rc, r, item, ev, now_ns);
	op = &recon_op(r, item)->op;
	op->is_ce = true;
	op->expects_kernel = op->expects_proxy = false;
	op->func = process_name(r->process, c->func);
	op->root = root_of(op->func, c->root);
	fill_size(op, c->count, process_name(r->process, c->datatype));
	head_is_filled(rc, r, item, now_ns);
}

/* ---- children ------------------------------------------------------------ */

/* The operation of that token, headless if need be; POOL_NONE: there is none to have. */
static uint32_t parent_of(struct reconstruct *rc, struct recon *r, uint64_t token,
			  uint64_t now_ns)
{
	uint32_t item = POOL_NONE;
	enum recon_kind kind = token ? recon_find(r, token, &item) : RECON_API;

	if (kind == RECON_NONE)
		item = new_op(rc, r, token, now_ns);
	else if (kind == RECON_FINISHED)
		rc->stats.late++;
	else if (kind != RECON_OP)
		rc->stats.orphans++;
	return kind == RECON_NONE || kind == RECON_OP ? item : POOL_NONE;
}

static void earliest(uint64_t *time, uint64_t candidate)
{
	if (!*time || candidate < *time)
		*time = candidate;
}

static void latest(uint64_t *time, uint64_t candidate)
{
	if (candidate > *time)
		*time = candidate;
}

/* A channel's kernels run one after another: its stamps never run backwards. */
static bool runs_backwards(struct recon_comm *rcomm, const struct nci_ev_kernel_ch *c)
{
	if (!rcomm || c->channel >= RECON_CHANNELS)
		return false;
	if (c->gpu_start + STAMP_SLOP_NS >= rcomm->channel[c->channel].gpu_start)
		return false;
	return ++rcomm->channel[c->channel].refused < STAMP_RESYNC;
}

static void add_stamps(struct reconstruct *rc, struct recon *r, struct op *op,
		       const struct nci_ev_kernel_ch *c)
{
	struct recon_comm *rcomm = recon_comm(r, c->comm);

	if (!c->gpu_start && !c->gpu_stop && r->process->api_version < FIRST_API_WITH_STAMPS)
		return;
	if (!timeline_stamps_sane(c->gpu_start, c->gpu_stop) || runs_backwards(rcomm, c)) {
		op->stamps_refused++;
		rc->stats.stamps_refused++;
		return;
	}
	if (rcomm && c->channel < RECON_CHANNELS) {
		rcomm->channel[c->channel].gpu_start = c->gpu_start;
		rcomm->channel[c->channel].refused = 0;
	}
	earliest(&op->gpu_start_ns, c->gpu_start);
	latest(&op->gpu_stop_ns, c->gpu_stop);
}

static void on_kernel_ch(struct reconstruct *rc, struct recon *r, const struct event *ev,
			 uint64_t now_ns)
{
	const struct nci_ev_kernel_ch *c = EVENT(ev, kernel_ch);
	uint32_t item = parent_of(rc, r, c->parent, now_ns);
	struct op *op;

	if (item == POOL_NONE)
		return;
	touch(r, item, now_ns);
	op = &recon_op(r, item)->op;
	earliest(&op->kernel_start_ticks, c->start);
	op->expects_kernel = true;
	if (c->form & NCI_FORM_UNSTOPPED)
		return;		/* started, and that is all that is known */
	op->kernel_stopped++;
	if (op->kernel_started < op->kernel_stopped)
		op->kernel_started = op->kernel_stopped;
	latest(&op->kernel_stop_ticks, c->stop);
	add_stamps(rc, r, op, c);
	advance(rc, r, item, now_ns);
}

/* Who issued it: this process, or with PXN another one of the same user; or NULL. */
static struct recon *issuer_of(struct reconstruct *rc, struct recon *r,
			       const struct nci_ev_proxy_op *c)
{
	uint32_t place;
	struct recon *other;

	if (!(c->form & NCI_FORM_FOREIGN))
		return r;
	place = index_find(&rc->nonces, nci_context_nonce(c->origin));
	other = place == POOL_NONE ? NULL : rc->recons[place];
	if (!other || other->ended || other->process->uid != r->process->uid)
		return NULL;
	r->serves = true;
	return other;
}

/* When its last step stopped: NCCL stops the ProxyOps of one batch all together. */
static uint64_t take_last_step(struct recon *r, const struct nci_ev_proxy_op *c)
{
	uint64_t stop = c->stop;
	uint32_t item;

	if (recon_find(r, c->token, &item) != RECON_STEPS)
		return stop;
	stop = recon_steps(r, item)->stop_ticks;
	recon_drop_steps(r, item);
	return stop;
}

static void on_proxy_op(struct reconstruct *rc, struct recon *r, const struct event *ev,
			uint64_t now_ns)
{
	const struct nci_ev_proxy_op *c = EVENT(ev, proxy_op);
	struct recon *issuer = issuer_of(rc, r, c);
	uint64_t stop = take_last_step(r, c);
	struct recon_comm *rcomm;
	uint32_t item;
	struct op *op;

	if (!issuer) {
		rc->stats.foreign_orphans++;
		return;
	}
	item = parent_of(rc, issuer, c->parent, now_ns);
	if (item == POOL_NONE)
		return;
	rc->stats.foreign += issuer != r;
	touch(issuer, item, now_ns);
	op = &recon_op(issuer, item)->op;
	rcomm = recon_comm(issuer, (uint16_t)op->comm_index);
	if (rcomm)
		rcomm->proxy_seen = true;
	op->proxy_ops++;
	op->proxy_steps += c->steps_done;
	op->proxy_bytes += c->bytes;
	earliest(&op->proxy_start_ticks, c->start + nci_span_ticks(c->progress_span));
	if (!(c->form & NCI_FORM_UNSTOPPED))
		latest(&op->proxy_stop_ticks, stop);
}

static void on_proxy_step(struct reconstruct *rc, struct recon *r, const struct event *ev,
			  uint64_t now_ns)
{
	const struct nci_ev_proxy_step *c = EVENT(ev, proxy_step);
	uint32_t item = POOL_NONE;
	enum recon_kind kind = c->parent ? recon_find(r, c->parent, &item) : RECON_API;

	(void)rc;
	if (kind != RECON_NONE && kind != RECON_STEPS)
		return;
	if (kind == RECON_NONE) {
		if (r->steps.used == r->steps.capacity)
			recon_drop_steps(r, r->step_list.first);
		item = recon_take_steps(r, c->parent);
		pool_list_append(&r->steps, &r->step_list, item);
	}
	recon_steps(r, item)->seen_ns = now_ns;
	latest(&recon_steps(r, item)->stop_ticks, c->stop);
}

/* ---- */

typedef void event_fn(struct reconstruct *rc, struct recon *r, const struct event *ev,
		      uint64_t now_ns);

/* Events without a row tell nothing about an operation. */
static event_fn *const handlers[NCI_EV_END] = {
	[NCI_EV_COLL]       = on_coll,
	[NCI_EV_P2P]        = on_p2p,
	[NCI_EV_PROXY_OP]   = on_proxy_op,
	[NCI_EV_PROXY_STEP] = on_proxy_step,
	[NCI_EV_KERNEL_CH]  = on_kernel_ch,
	[NCI_EV_GROUP_API]  = on_group_api,
	[NCI_EV_COLL_API]   = on_coll_api,
	[NCI_EV_P2P_API]    = on_p2p_api,
	[NCI_EV_CE_COLL]    = on_ce_coll,
};

void join_event(struct reconstruct *rc, struct recon *r, const struct event *ev,
		uint64_t now_ns)
{
	rc->stats.records++;
	if (ev->rec->type < NCI_EV_END && handlers[ev->rec->type])
		handlers[ev->rec->type](rc, r, ev, now_ns);
}

struct open_op *join_live_parent(struct reconstruct *rc, struct recon *r,
				 const struct nci_record *rec)
{
	struct recon *issuer = r;
	uint32_t item;

	if (rec->type == NCI_EV_PROXY_OP)
		issuer = issuer_of(rc, r, (const struct nci_ev_proxy_op *)(const void *)rec);
	else if (rec->type != NCI_EV_KERNEL_CH)
		return NULL;
	if (!issuer || recon_find(issuer, rec->parent, &item) != RECON_OP)
		return NULL;
	return recon_op(issuer, item);
}
