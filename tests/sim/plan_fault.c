/* SPDX-License-Identifier: Apache-2.0 */
/* Which fault hits whom and when, and what it leaves behind. */
#include "tests/sim/plan_state.h"

#include <stddef.h>

static bool fault_is_in(const struct sim_fault *f, const struct plan_op *op)
{
	return (f->family < 0 || f->family == op->comm->family) &&
	       op->index >= f->from && op->index <= f->until &&
	       (op->index - f->from) % f->every < f->burst;
}

const struct sim_fault *plan_fault_find(const struct plan *plan, const struct plan_op *op,
					enum sim_fault_kind kind, int world)
{
	for (int i = 0; i < plan->scn->nfaults; i++) {
		const struct sim_fault *f = &plan->scn->fault[i];

		if (f->kind == kind && (world < 0 || f->rank == world) && fault_is_in(f, op))
			return f;
	}
	return NULL;
}

bool plan_fault_covers(const struct scenario *scn, const struct sim_fault *f,
		       const struct plan_op *op)
{
	for (int i = 0; i < op->nsides && fault_is_in(f, op); i++) {
		int w = op->comm->world[op->side[i].rank];

		if (f->rank == (f->kind == FAULT_KILL ? scenario_process_of(scn, w) : w) ||
		    f->rank < 0)
			return true;
	}
	return false;
}

const struct sim_fault *plan_fault_ending(const struct plan *plan, const struct plan_op *op)
{
	static const bool ends[FAULT_KINDS] = {
		[FAULT_STUCK] = true, [FAULT_KILL] = true, [FAULT_ABORT] = true,
		[FAULT_FREEZE] = true, [FAULT_MISMATCH] = true,
	};

	for (int i = 0; i < plan->scn->nfaults; i++) {
		const struct sim_fault *f = &plan->scn->fault[i];

		if (ends[f->kind] && plan_fault_covers(plan->scn, f, op))
			return f;
	}
	return NULL;
}

/* ---- what is slow ---- */

double plan_fault_link(const struct scenario *scn, const struct plan_op *op, int from, int to)
{
	double factor = 1;

	for (int i = 0; i < scn->nfaults; i++) {
		const struct sim_fault *f = &scn->fault[i];

		if (f->kind == FAULT_SLOW_LINK && f->rank == from && f->peer == to &&
		    fault_is_in(f, op))
			factor *= f->factor;
	}
	return factor;
}

double plan_fault_channel(const struct scenario *scn, const struct plan_op *op, int world,
			  int channel, int step)
{
	double factor = 1;

	for (int i = 0; i < scn->nfaults; i++) {
		const struct sim_fault *f = &scn->fault[i];

		if (f->kind == FAULT_SLOW_CHANNEL && f->rank == world && f->channel == channel &&
		    (f->queue < 0 || step < 0 || f->queue == step % scn->queues) &&
		    fault_is_in(f, op))
			factor *= f->factor;
	}
	return factor;
}

/* ---- what comes in another order ---- */

const struct sim_fault *plan_fault_swap(struct plan *plan, const struct plan_op *op, int world)
{
	const struct sim_fault *f = plan_fault_find(plan, op, FAULT_SWAP, world);
	int i = f ? (int)(f - plan->scn->fault) : 0;

	if (!f || plan->swapped[i])
		return NULL;
	plan->later[i] = (struct plan_later){ .spec = op->spec, .comm = op->comm,
					      .index = op->index };
	return f;
}

/* Whether this rank has just made the call that another one was left for. */
static bool fault_has_passed(const struct plan *plan, const struct sim_fault *f)
{
	for (int i = 0; i < plan->step.nops; i++) {
		const struct plan_op *op = &plan->step.op[i];

		if (op->comm->family != f->other_family || op->index != f->other_op)
			continue;
		for (int s = 0; s < op->nsides; s++)
			if (op->comm->world[op->side[s].rank] == f->rank)
				return true;
	}
	return false;
}

void plan_fault_look_back(struct plan *plan)
{
	for (int i = 0; i < plan->scn->nfaults; i++) {
		struct plan_later *later = &plan->later[i];

		if (!later->spec || later->due)
			continue;
		plan->swapped[i] = true;
		later->due = fault_has_passed(plan, &plan->scn->fault[i]);
	}
}

int64_t plan_fault_lateness(struct plan *plan, const struct plan_op *op, int world, bool host)
{
	const struct sim_fault *f = plan_fault_find(plan, op, FAULT_LATE, world);
	uint64_t mark = plan->step.number + 1;

	if (!f || f->host != host || plan->late_mark[world] == mark)
		return 0;
	plan->late_mark[world] = mark;
	return f->by_ns;
}

void plan_fault_apply(struct plan *plan, const struct plan_op *op)
{
	const struct scenario *scn = plan->scn;

	for (int w = 0; op->fault->kind == FAULT_KILL && w < scn->nranks; w++)
		if (scenario_process_of(scn, w) == op->fault->rank)
			plan->host[plan_thread_of(scn, w)] = PLAN_NEVER;
	if (op->fault->kind != FAULT_ABORT)
		return;
	plan->aborted[op->comm->index] = true;
	for (int r = 0; r < op->comm->nranks; r++) {
		int w = op->comm->world[r];
		int64_t *host = &plan->host[plan_thread_of(scn, w)];

		plan->gpu[w] = op->cut_ns;
		if (*host < op->cut_ns)
			*host = op->cut_ns;
	}
}

