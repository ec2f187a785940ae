/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children of operations: what ran on the GPU and in the network, and from when
 * to when.
 */
#include "nci/sums.h"
#include "reader/join/join.h"

/* The operation of that token, headless if need be; NULL: there is none to have. */
static struct open_op *child_find_parent(struct reconstruct *rc, struct recon *r, uint64_t token,
					 uint64_t now_ns)
{
	struct recon_found found = recon_find(r, token);
	struct open_op *o = found.item;

	if (found.kind == RECON_OP && !o->held)
		return o;
	if (found.kind == RECON_OP || found.kind == RECON_FINISHED || recon_is_past(r, token))
		rc->stats.late++;
	else if (token && found.kind == RECON_NONE)
		return join_new_op(rc, r, token, now_ns);
	else
		rc->stats.orphans++;
	return NULL;
}

/*
 * The same operation, which is r->newest_parent then; NULL: none.  Many children of one come one
 * after another.
 */
static struct open_op *child_parent(struct reconstruct *rc, struct recon *r, uint64_t token,
				    uint64_t now_ns)
{
	struct open_op *o = r->newest_parent;

	if (!o || o->op.token != token || o->held)
		r->newest_parent = child_find_parent(rc, r, token, now_ns);
	return r->newest_parent;
}

static void parent_touch(struct recon *r, struct open_op *o, uint64_t now_ns)
{
	o->touched_ns = now_ns;
	pool_list_touch(o->has_head ? &r->open : &r->headless, o);
}

static void time_set_earliest(uint64_t *time, uint64_t candidate)
{
	if (!*time || candidate < *time)
		*time = candidate;
}

static void time_set_latest(uint64_t *time, uint64_t candidate)
{
	if (candidate > *time)
		*time = candidate;
}

/* The time that it waited in its kernel for the other ranks, in the GPU's own time. */
static void take_sync(struct op *op, const struct nci_ev_kernel_ch *c)
{
	const struct nci_phase *sync = &c->phase[NCI_PHASE_INITIAL_SYNC];

	if (NCI_FORM_LINES(c->form) != 2)
		return;
	op->has_sync = true;	/* a phase of no length is not told */
	if (sync->start && sync->stop > sync->start)
		time_set_latest(&op->sync_ns, sync->stop - sync->start);
}

void join_on_kernel_ch(struct reconstruct *rc, struct recon *r, const struct event *ev,
			 uint64_t now_ns)
{
	const struct nci_ev_kernel_ch *c = EVENT(ev, kernel_ch);
	struct open_op *o = child_parent(rc, r, c->parent, now_ns);
	struct op *op;

	if (!o)
		return;
	parent_touch(r, o, now_ns);
	op = &o->op;
	if (join_has_drifted(r, o->rcomm, op)) {
		join_read_stamps(r, o, c);	/* stamps to be refused */
		return;
	}
	time_set_earliest(&op->kernel_start_ticks, c->start);
	op->expects_kernel = true;
	if (c->form & NCI_FORM_UNSTOPPED)
		return;		/* started, and that is all that is known */
	op->kernel_stopped++;
	if (op->kernel_started < op->kernel_stopped)
		op->kernel_started = op->kernel_stopped;
	time_set_latest(&op->kernel_stop_ticks, c->stop);
	take_sync(op, c);
	join_read_stamps(r, o, c);
	join_advance(rc, r, o, now_ns);
}

/* The process that issued it: this one, or with PXN another one of the same user; or NULL. */
static struct recon *child_issuer(struct reconstruct *rc, struct recon *r, uint8_t form,
				  uint64_t origin)
{
	uint32_t place;
	struct recon *other;

	if (!(form & NCI_FORM_FOREIGN))
		return r;
	place = index_find(&rc->nonces, join_nonce_key(r->process->uid,
						       nci_context_nonce(origin)));
	other = place == POOL_NONE ? NULL : rc->recons[place];
	if (!other || other->ended)
		return NULL;
	r->serves = true;
	return other;
}

/* All that is known of its steps; NULL: nothing. */
static struct step_sums *steps_find(struct recon *r, uint64_t token)
{
	struct recon_found found;

	if (r->newest_sums.token == token)
		return &r->newest_sums;
	found = recon_find(r, token);
	return found.kind == RECON_STEPS ? found.item : NULL;
}

/* Their ProxyOp has stopped. */
static void steps_drop(struct recon *r, struct step_sums *steps)
{
	if (steps == &r->newest_sums)
		steps->token = 0;
	else if (steps)
		recon_drop_steps(r, steps);
}

static uint16_t child_comm(bool own, uint16_t comm, uint64_t origin)
{
	return own ? comm : (uint16_t)nci_context_comm(origin);
}

/* A ProxyOp of that operation, which is open; `stop_ticks`: its last step's, if that is known. */
static void op_add_proxy(struct open_op *o, const struct transfers *t, uint64_t stop_ticks)
{
	struct op *op = &o->op;

	if (o->rcomm)
		o->rcomm->proxy_seen = true;
	op->proxy_ops++;
	op->proxy_steps += t->op->steps_done;
	op->proxy_bytes += t->op->bytes;
	if (t->sums)
		time_set_earliest(&op->proxy_start_ticks, t->data_ticks);
	if (!(t->op->form & NCI_FORM_UNSTOPPED))
		time_set_latest(&op->proxy_stop_ticks, stop_ticks);
}

/* The ProxyOp tells when it had its first data where its steps left no records. */
static void transfers_add_steps(struct transfers *t, const struct step_sums *steps)
{
	if (!steps->sums.steps)
		return;
	t->sums = &steps->sums;
	t->data_ticks = steps->data_ticks ?:
			t->op->start + nci_span_ticks(t->op->state_span[0]);
}

void join_on_proxy_op(struct reconstruct *rc, struct recon *r, const struct event *ev,
			uint64_t now_ns)
{
	const struct nci_ev_proxy_op *c = EVENT(ev, proxy_op);
	struct recon *issuer = child_issuer(rc, r, c->form, c->origin);
	struct step_sums *steps = steps_find(r, c->token);
	struct transfers t = { .executor = r->process, .op = c };
	struct open_op *o;

	if (!issuer) {
		rc->stats.foreign_orphans++;
		steps_drop(r, steps);
		return;
	}
	o = child_parent(rc, issuer, c->parent, now_ns);
	t.issuer = issuer->process;
	t.comm_index = child_comm(issuer == r, c->comm, c->origin);
	t.comm_name = o && o->op.comm_index == t.comm_index ? o->op.comm_name :
		      join_comm_name(rc, issuer, t.comm_index);
	t.parent = o ? &o->op : NULL;
	if (steps)
		transfers_add_steps(&t, steps);
	if (rc->moved)
		rc->moved(&t, now_ns, rc->arg);
	if (o) {
		rc->stats.foreign += issuer != r;
		parent_touch(issuer, o, now_ns);
		/* NCCL stops the ProxyOps of one batch all together. */
		op_add_proxy(o, &t, steps ? steps->stop_ticks : c->stop);
	}
	steps_drop(r, steps);
}

/* The sums that are kept of the steps of a ProxyOp until it stops; NULL: it has. */
static struct step_sums *steps_of(struct recon *r, uint64_t parent)
{
	struct recon_found found = recon_find(r, parent);
	struct step_sums *steps;

	if (!parent || found.kind != RECON_NONE)
		return found.kind == RECON_STEPS ? found.item : NULL;
	if (!recon_has_room(r, &r->steps) && r->step_list.first)
		recon_drop_steps(r, r->step_list.first);
	steps = recon_take_steps(r, parent);
	if (steps)
		pool_list_append(&r->step_list, steps);
	return steps;
}

/* The newest sums are kept with all others, if another record came than their ProxyOp's. */
static void steps_put_away(struct recon *r)
{
	struct step_sums *steps = steps_of(r, r->newest_sums.token);

	if (steps) {
		steps->sums = r->newest_sums.sums;
		steps->seen_ns = r->newest_sums.seen_ns;
		time_set_latest(&steps->stop_ticks, r->newest_sums.stop_ticks);
	}
	r->newest_sums.token = 0;
}

/* One step, at level trace: added up here as the plugin does at level net. */
void join_on_proxy_step(struct reconstruct *rc, struct recon *r, const struct event *ev,
			  uint64_t now_ns)
{
	const struct nci_ev_proxy_step *c = EVENT(ev, proxy_step);
	struct step_sums *steps = steps_of(r, c->parent);
	struct nci_sums_times times;

	(void)rc;
	if (!steps)
		return;
	steps->seen_ns = now_ns;
	time_set_latest(&steps->stop_ticks, c->stop);
	if (!nci_sums_counts(c))
		return;
	time_set_earliest(&steps->sums.start, c->start);
	times = nci_sums_enter(&steps->sums, c);
	time_set_earliest(&steps->data_ticks, times.covered);
	nci_sums_leave(&steps->sums, c, times, c->stop);
}

void join_on_proxy_sums(struct reconstruct *rc, struct recon *r, const struct event *ev,
			uint64_t now_ns)
{
	const struct nci_ev_proxy_sums *c = EVENT(ev, proxy_sums);

	(void)rc;
	if (r->newest_sums.token)
		steps_put_away(r);
	r->newest_sums.token = c->parent;
	r->newest_sums.stop_ticks = c->stop;
	r->newest_sums.seen_ns = now_ns;
	r->newest_sums.sums = *c;
}

/* Its payload is needed, and its end: of a request that never stopped no time is known. */
void join_on_net_plugin(struct reconstruct *rc, struct recon *r, const struct event *ev,
			uint64_t now_ns)
{
	const struct nci_ev_net_plugin *c = EVENT(ev, net_plugin);
	struct net_request request = { .executor = r->process, .ev = c };
	struct recon *issuer;

	if (!rc->requested || EVENT_LINES(ev) < 2 || c->form & NCI_FORM_UNSTOPPED)
		return;
	issuer = child_issuer(rc, r, c->form, c->origin);
	if (!issuer) {
		rc->stats.foreign_orphans++;
		return;
	}
	request.issuer = issuer->process;
	request.comm_index = child_comm(issuer == r, c->comm, c->origin);
	request.comm_name = join_comm_name(rc, issuer, request.comm_index);
	rc->requested(&request, now_ns, rc->arg);
}

struct open_op *join_live_parent(struct reconstruct *rc, struct recon *r,
				 const struct nci_record *rec)
{
	const struct nci_ev_proxy_op *c = (const void *)rec;
	struct recon *issuer = r;
	struct recon_found found;
	struct open_op *o;

	if (rec->type == NCI_EV_PROXY_OP)
		issuer = child_issuer(rc, r, c->form, c->origin);
	else if (rec->type != NCI_EV_KERNEL_CH)
		return NULL;
	if (!issuer)
		return NULL;
	found = recon_find(issuer, rec->parent);
	o = found.item;
	return found.kind == RECON_OP && !o->held ? o : NULL;
}
