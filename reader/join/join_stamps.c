/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU stamps on their way into an operation: kept with it as they are read, judged
 * when it is complete and all is known that speaks for or against them.  A launch's
 * API call is often read after its kernels, so it is no sooner.
 *
 * An operation one of whose stamps is refused has no GPU time at all: what the other
 * channels took is not what it took.
 */
#include "reader/join/join.h"

#include "reader/join/ops.h"
#include "reader/time/timeline.h"

#define FIRST_API_WITH_STAMPS	4

/* None is looked for while all are in use. */
static void look_for_gpu(struct reconstruct *rc, struct recon *r, struct recon_comm *rcomm,
			 uint32_t comm)
{
	if (rcomm->gpu || rcomm->gpus_freed == rc->gpus.freed + 1)
		return;
	rcomm->gpu = gpus_get(&rc->gpus, r->process, (uint16_t)comm);
	rcomm->gpus_freed = rc->gpus.freed + 1;
}

const struct gpu *join_gpu(const struct recon *r, uint32_t comm)
{
	const struct recon_comm *rcomm = recon_seen_comm(r, comm);

	return rcomm ? rcomm->gpu : NULL;
}

/* NCCL reports receives from one queue and all else from another. */
static bool op_is_receive(const struct op *op)
{
	return op->is_p2p && !ops_is_send(op->func);
}

/* The clock that turns ticks into the time with which the clock of its GPU is compared. */
static const struct tick_clock *host_clock(const struct recon *r, const struct recon_comm *rcomm)
{
	return rcomm->gpu ? &rcomm->gpu->host : &r->process->clock;
}

/* Operations that were posted by lost records are not counted: that is a gap. */
static void note_loss(const struct recon *r, struct recon_comm *rcomm)
{
	uint64_t lost = process_lost(r->process);

	if (lost != rcomm->lost)
		stamps_gap(&rcomm->stamps);
	rcomm->lost = lost;
}

void join_post(struct reconstruct *rc, struct recon *r, struct recon_comm *rcomm, struct op *op)
{
	if (!rcomm || !op->expects_kernel)
		return;
	if (op->is_p2p && op->peer == op->rank && op->rank != UNKNOWN_I32)
		return;		/* whether the GPU has work with it is not known */
	look_for_gpu(rc, r, rcomm, op->comm_index);
	note_loss(r, rcomm);
	op->nth = stamps_post(&rcomm->stamps,
			      timeline_mono(host_clock(r, rcomm), op->start_ticks),
			      op->is_p2p, op->channels, op->group);
}

void join_read_stamps(struct recon *r, struct open_op *o, const struct nci_ev_kernel_ch *c)
{
	struct recon_comm *rcomm = recon_comm(r, c->comm);
	struct recon_span *span;
	struct stamps_pair unkept, *pair;

	if (!c->gpu_start && !c->gpu_stop &&
	    (r->process->api_version < FIRST_API_WITH_STAMPS || r->process->is_rccl))
		return;
	if (!rcomm || !recon_may_stamp(r, rcomm)) {	/* nobody's clock: not to be believed */
		o->unsure = true;
		return;
	}
	span = recon_add_span(r, o);
	pair = span ? &span->pair : &unkept;
	pair->channel = c->channel;
	pair->start = c->gpu_start;
	pair->stop = c->gpu_stop;
	pair->start_ticks = c->start;
	pair->stop_ticks = c->stop;
	stamps_read(&rcomm->stamps, pair, op_is_receive(&o->op), o->op.group, o->op.nth);
}

static void count_refused(struct reconstruct *rc, struct recon *r, struct op *op,
			  enum stamp_fault fault)
{
	if (!op->stamps_refused++)
		op->stamps_why = fault;
	r->process->stamps_refused[fault]++;
	rc->stats.stamps_refused++;
	rc->stats.stamps_refused_by[fault]++;
}

/*
 * All that its channels have in common.  All times are of its GPU's clock (gpus.h).  A replay is
 * launched when nobody is told, and a launch by an old API is never told of: then the launch is 0.
 */
static void told_by(struct stamps_told *told, const struct tick_clock *clock,
		    const struct open_op *o)
{
	const struct op *op = &o->op;

	told->sight.launch_ns = timeline_mono(clock, op->api_start_ticks);
	told->sight.gpu_first_ns = 0;
	told->is_p2p = op->is_p2p;
	told->is_receive = op_is_receive(op);
	told->alone = join_plan_is_alone(o);
	told->group = op->group;
	told->nth = op->nth;
}

static void told_on(struct stamps_told *told, const struct tick_clock *clock,
		    const struct stamps_pair *pair)
{
	told->pair = *pair;
	told->sight.gpu_start_ns = pair->start;
	told->sight.gpu_stop_ns = pair->stop;
	told->sight.start_ns = timeline_mono(clock, pair->start_ticks);
	told->sight.stop_ns = timeline_mono(clock, pair->stop_ticks);
}

static struct gpuclock *gpu_clock(const struct recon_comm *rcomm)
{
	return rcomm->gpu ? rcomm->gpu->clock : NULL;
}

/* Host and GPU count replays alike only as long as nothing comes between them. */
static void note_replay(struct recon_comm *rcomm, const struct op *op)
{
	if (op->graph && rcomm->eager)
		stamps_suspect(&rcomm->stamps);
	rcomm->eager = !op->graph;
}

void join_note_uncounted(struct recon *r, struct recon_comm *rcomm, const struct op *op,
			 bool watched, int64_t missing)
{
	const struct process *p = r->process;

	if (!rcomm || !process_counts_less(p))
		return;
	if (!watched && (!rcomm->uncounted || op->start_ticks < rcomm->uncounted))
		rcomm->uncounted = op->start_ticks;
	if (missing > 0 && !rcomm->missing)
		rcomm->gap = op->start_ticks;
	if (process_lost(p))
		rcomm->missing = 0;	/* the missing ones may have been lost */
	else if (missing > 0 || rcomm->missing)
		rcomm->missing += (uint64_t)missing;
}

static bool spans_settle(struct recon *r, struct recon_comm *rcomm, const struct open_op *o,
			 const struct stamps_whole *whole, struct stamps_told *told, bool all_read)
{
	struct stamps *stamps = &rcomm->stamps;
	bool settled = true;

	if (stamps_settle_whole(stamps, gpu_clock(rcomm), whole, told, all_read)) {
		RECON_EACH_SPAN(o, span)
			stamps_believe(stamps, &span->pair);
		return true;
	}
	RECON_EACH_SPAN(o, span) {
		told_on(told, host_clock(r, rcomm), &span->pair);
		settled &= stamps_settle(stamps, gpu_clock(rcomm), told, all_read);
	}
	return settled;
}

static void spans_judge_each(struct reconstruct *rc, struct recon *r, struct recon_comm *rcomm,
			     struct open_op *o, struct stamps_told *told)
{
	RECON_EACH_SPAN(o, span) {
		enum stamp_fault fault;

		told_on(told, host_clock(r, rcomm), &span->pair);
		fault = stamps_judge(&rcomm->stamps, gpu_clock(rcomm), told);
		if (fault != STAMP_GOOD)
			count_refused(rc, r, &o->op, fault);
	}
}

static void spans_judge(struct reconstruct *rc, struct recon *r, struct recon_comm *rcomm,
			struct open_op *o, const struct stamps_whole *whole,
			struct stamps_told *told)
{
	if (join_has_drifted(r, rcomm, &o->op)) {
		RECON_EACH_SPAN(o, span)
			count_refused(rc, r, &o->op, STAMP_DRIFTED);
		return;
	}
	if (rcomm->gpu)
		rcomm->gpu->now = r->process->clock;
	note_replay(rcomm, &o->op);
	if (!stamps_judge_whole(&rcomm->stamps, gpu_clock(rcomm), whole, told))
		spans_judge_each(rc, r, rcomm, o, told);
	if (o->unsure || o->op.stamps_refused)
		return;
	o->op.gpu_start_ns = whole->first_start;
	o->op.gpu_stop_ns = whole->last_stop;
}

/* `judged` is o, or NULL.  False: they are to be settled, and are not; nor are they judged then. */
static bool spans_take(struct reconstruct *rc, struct recon *r, const struct open_op *o,
		       struct open_op *judged, bool settle, bool all_read)
{
	struct recon_comm *rcomm = recon_comm(r, (uint16_t)o->op.comm_index);
	struct stamps_whole whole = STAMPS_NONE;
	const struct tick_clock *clock;
	struct stamps_told told;

	if (!rcomm || !o->spans)
		return true;
	if (judged)
		look_for_gpu(rc, r, rcomm, o->op.comm_index);
	clock = host_clock(r, rcomm);
	note_loss(r, rcomm);
	told_by(&told, clock, o);
	RECON_EACH_SPAN(o, span)
		stamps_whole_add(&whole, &rcomm->stamps, &span->pair, o->op.nth,
				 timeline_mono(clock, span->pair.start_ticks),
				 timeline_mono(clock, span->pair.stop_ticks));
	if (settle && !spans_settle(r, rcomm, o, &whole, &told, all_read))
		return false;
	if (!settle)
		RECON_EACH_SPAN(o, span)
			whole.strange |= !stamps_are_sure(&rcomm->stamps, &span->pair);
	if (judged)
		spans_judge(rc, r, rcomm, judged, &whole, &told);
	return true;
}

bool join_settle_stamps(struct recon *r, const struct open_op *o, bool all_read)
{
	return spans_take(NULL, r, o, NULL, true, all_read);
}

void join_judge_stamps(struct reconstruct *rc, struct recon *r, struct open_op *o)
{
	o->unjudged = false;
	spans_take(rc, r, o, o, false, false);
}

bool join_finish_stamps(struct reconstruct *rc, struct recon *r, struct open_op *o)
{
	return spans_take(rc, r, o, o, true, false);
}

void join_take_back_stamps(struct reconstruct *rc, struct recon *r, struct open_op *o)
{
	const struct recon_comm *rcomm = recon_comm(r, (uint16_t)o->op.comm_index);

	if (!rcomm || !o->op.gpu_start_ns || !stamps_doubtful(&rcomm->stamps, o->op.group))
		return;
	count_refused(rc, r, &o->op, STAMP_REPEATED);
	o->op.gpu_start_ns = o->op.gpu_stop_ns = 0;
}
