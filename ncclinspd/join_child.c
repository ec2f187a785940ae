/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children of operations: what ran on the GPU and in the network, and from when
 * to when.
 */
#include "ncclinspd/join.h"
#include "ncclinspd/timeline.h"

#define STAMP_SLOP_NS	4096	/* stamps of fused members differ by a few clock steps */
#define STAMP_RESYNC	8	/* refused in a row: it was the reference that was wrong */

#define FIRST_API_WITH_STAMPS	4

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

/* The operation of that token, headless if need be; POOL_NONE: there is none to have. */
static uint32_t parent_of(struct reconstruct *rc, struct recon *r, uint64_t token,
			  uint64_t now_ns)
{
	uint32_t item = POOL_NONE;
	enum recon_kind kind = token ? recon_find(r, token, &item) : RECON_API;

	if (kind == RECON_NONE)
		item = join_new_op(rc, r, token, now_ns);
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

/*
 * A channel's kernels run one after another, so in neither of its queues stamps run
 * backwards.  Which queue these came from is not told: the one that they are closest
 * to, which finds a place for them if there is any.  False: there is none.
 */
static bool runs_forwards(struct recon_channel *channel, uint64_t gpu_start)
{
	uint64_t *last = channel->gpu_start;
	unsigned int i = last[1] > last[0];

	if (gpu_start + STAMP_SLOP_NS < last[i])
		i = !i;
	if (gpu_start + STAMP_SLOP_NS < last[i]) {
		if (++channel->refused < STAMP_RESYNC)
			return false;
		last[!i] = gpu_start;
	}
	last[i] = gpu_start;
	channel->refused = 0;
	return true;
}

static void add_stamps(struct reconstruct *rc, struct recon *r, struct op *op,
		       const struct nci_ev_kernel_ch *c)
{
	struct recon_comm *rcomm = recon_comm(r, c->comm);
	bool good = timeline_stamps_sane(c->gpu_start, c->gpu_stop);

	if (!c->gpu_start && !c->gpu_stop && r->process->api_version < FIRST_API_WITH_STAMPS)
		return;
	if (good && rcomm && c->channel < RECON_CHANNELS)
		good = runs_forwards(&rcomm->channel[c->channel], c->gpu_start);
	if (!good) {
		op->stamps_refused++;
		rc->stats.stamps_refused++;
		return;
	}
	earliest(&op->gpu_start_ns, c->gpu_start);
	latest(&op->gpu_stop_ns, c->gpu_stop);
}

void join_on_kernel_ch(struct reconstruct *rc, struct recon *r, const struct event *ev,
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
	join_advance(rc, r, item, now_ns);
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

void join_on_proxy_op(struct reconstruct *rc, struct recon *r, const struct event *ev,
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

void join_on_proxy_step(struct reconstruct *rc, struct recon *r, const struct event *ev,
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
