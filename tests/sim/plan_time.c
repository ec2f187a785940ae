/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When things happen.  Hosts post in program order; a GPU begins a kernel when
 * its stream is free; a collective's data flows when the last rank has come,
 * and all ranks leave together, after latency and bytes over the slowest link
 * of the ring.  Whatever needs someone who never comes, never happens.
 */
#include "tests/sim/plan_state.h"

#include <stdlib.h>

#define API_NS		2000	/* host time of one API call */
#define TO_GPU_NS	3000	/* launch to the first instruction */
#define KERNEL_NS	5000	/* a kernel that moves nothing */
#define GPU_EPOCH	1770000000000000000ull
#define GPU_TICK_NS	32

/* Ring transfer: hops of latency, and how often the bytes pass a link. */
struct ring_cost {
	int rounds;		/* x (n - 1) latencies */
	double passes;		/* x bytes */
	bool shared;		/* x (n - 1) / n: each rank has its part */
};

static const struct ring_cost ring_costs[FUNC_COUNT] = {
	[FUNC_ALL_REDUCE]	= { 2, 2, true },
	[FUNC_ALL_GATHER]	= { 1, 1, true },
	[FUNC_REDUCE_SCATTER]	= { 1, 1, true },
	[FUNC_BROADCAST]	= { 1, 1, false },
	[FUNC_REDUCE]		= { 1, 1, false },
	[FUNC_ALL_TO_ALL]	= { 1, 1, true },
};

uint64_t plan_gpu_clock(const struct scenario *scn, int world, int64_t model_ns)
{
	const struct sim_clock *clock = &scn->clock[world];
	int64_t t = model_ns + clock->offset_ns +
		    (int64_t)((double)model_ns * clock->drift_ppm / 1e6);

	return (GPU_EPOCH + t) / GPU_TICK_NS * GPU_TICK_NS;
}

static int64_t ring_ns(const struct plan *plan, const struct plan_op *op)
{
	const struct ring_cost *cost = &ring_costs[op->spec->func];
	const struct sim_comm *c = op->comm;
	int64_t latency = 0;
	double rate = 0, bytes = op->bytes * cost->passes;

	for (int i = 0; i < c->nranks; i++) {
		const struct sim_link *link = scenario_link(plan->scn, c->world[i],
							    c->world[(i + 1) % c->nranks]);

		if (link->latency_ns > latency)
			latency = link->latency_ns;
		if (!i || link->rate < rate)
			rate = link->rate;
	}
	if (cost->shared)
		bytes = bytes * (c->nranks - 1) / c->nranks;
	return cost->rounds * (c->nranks - 1) * latency + (int64_t)(bytes / rate);
}

/* ---- faults ---- */

static const struct sim_fault *find_fault(const struct plan *plan, const struct plan_op *op,
					  enum sim_fault_kind kind, int world)
{
	for (int i = 0; i < plan->scn->nfaults; i++) {
		const struct sim_fault *f = &plan->scn->fault[i];

		if (f->kind == kind && (world < 0 || f->rank == world) &&
		    (f->family < 0 || f->family == op->comm->family) &&
		    op->index >= f->from && op->index <= f->until &&
		    (op->index - f->from) % f->every == 0)
			return f;
	}
	return NULL;
}

/* Whether this fault's rank, or process, has a part in the operation. */
static bool fault_hits(const struct plan *plan, const struct sim_fault *f,
		       const struct plan_op *op)
{
	for (int i = 0; i < op->nsides; i++) {
		int w = op->comm->world[op->side[i].rank];

		if (f->kind == FAULT_ABORT || (f->kind == FAULT_STUCK && f->rank == w) ||
		    (f->kind == FAULT_KILL && f->rank == scenario_process_of(plan->scn, w)))
			return true;
	}
	return false;
}

static const struct sim_fault *ending_fault(const struct plan *plan, const struct plan_op *op)
{
	static const enum sim_fault_kind kinds[] = { FAULT_STUCK, FAULT_KILL, FAULT_ABORT };

	for (int k = 0; k < 3; k++) {
		const struct sim_fault *f = find_fault(plan, op, kinds[k], -1);

		if (f && fault_hits(plan, f, op))
			return f;
	}
	return NULL;
}

/* How late this rank comes to this operation; `host` says which of its clocks. */
static int64_t lateness(struct plan *plan, const struct plan_op *op, int world, bool host)
{
	const struct sim_fault *f = find_fault(plan, op, FAULT_LATE, world);
	uint64_t mark = plan->step.number + 1;

	if (!f || f->host != host || plan->late_mark[world] == mark)
		return 0;
	plan->late_mark[world] = mark;
	return f->by_ns;
}

/* ---- the host ---- */

static void enqueue_side(struct plan *plan, struct plan_op *op, struct plan_side *side, int world)
{
	int64_t *host = &plan->host[plan_thread_of(plan->scn, world)];

	if (find_fault(plan, op, FAULT_ABSENT, world))
		*host = PLAN_NEVER;
	if (*host != PLAN_NEVER)
		*host += lateness(plan, op, world, true);
	side->enqueued = *host;
	side->launched = *host;
	side->arrival = PLAN_NEVER;
	side->stop = PLAN_NEVER;
	if (*host == PLAN_NEVER)
		return;
	*host += API_NS;
	if (side->has_seq)
		side->seq = plan->seq[plan->rank_base[op->comm->index] + side->rank][side->func]++;
}

/* Every API call of the step, thread by thread as each makes its calls. */
static void enqueue_all(struct plan *plan)
{
	for (int w = 0; w < plan->scn->nranks; w++)
		for (int i = 0; i < plan->step.nops; i++)
			for (int s = 0; s < plan->step.op[i].nsides; s++) {
				struct plan_op *op = &plan->step.op[i];

				if (op->comm->world[op->side[s].rank] == w)
					enqueue_side(plan, op, &op->side[s], w);
			}
}

/* One kernel launch of a rank and communicator: its sides from op[first] on. */
static void launch_kernel(struct plan *plan, int first, int world)
{
	const struct sim_comm *comm = plan->step.op[first].comm;
	int64_t *host = &plan->host[plan_thread_of(plan->scn, world)];
	bool any = false;

	for (int i = first; i < plan->step.nops; i++) {
		struct plan_op *op = &plan->step.op[i];

		for (int s = 0; op->comm == comm && s < op->nsides; s++) {
			struct plan_side *side = &op->side[s];

			if (comm->world[side->rank] != world || side->enqueued == PLAN_NEVER)
				continue;
			side->launched = *host;
			any = true;
		}
	}
	if (any && *host != PLAN_NEVER)
		*host += plan->scn->launch_ns + plan->scn->spacing_ns;
}

/* Whether op[i] is the first of its communicator in the step. */
static bool first_of_comm(const struct plan_step *step, int i)
{
	for (int j = 0; j < i; j++)
		if (step->op[j].comm == step->op[i].comm)
			return false;
	return true;
}

static void launch_all(struct plan *plan)
{
	int n = plan->scn->nranks;

	for (int k = 0; k < n; k++)
		for (int i = 0; i < plan->step.nops; i++)
			if (first_of_comm(&plan->step, i))
				launch_kernel(plan, i, plan->scn->reverse ? n - 1 - k : k);
}

/* ---- the GPU ---- */

static void arrive(struct plan *plan, struct plan_op *op, struct plan_side *side)
{
	int w = op->comm->world[side->rank];

	if (side->enqueued == PLAN_NEVER || side->launched == PLAN_NEVER ||
	    plan->gpu[w] == PLAN_NEVER)
		return;
	if (plan->gpu[w] < side->launched + TO_GPU_NS)
		plan->gpu[w] = side->launched + TO_GPU_NS;
	plan->gpu[w] += lateness(plan, op, w, false);
	side->arrival = plan->gpu[w];
}

static void find_last(struct plan_op *op)
{
	int last = 0;

	for (int s = 1; s < op->nsides; s++)
		if (op->side[s].arrival > op->side[last].arrival)
			last = s;
	op->data_ns = op->side[last].arrival;
	if (op->data_ns != PLAN_NEVER)
		op->last_rank = op->side[last].rank;
}

static void stop_side(struct plan *plan, const struct plan_op *op, struct plan_side *side,
		      int64_t stop)
{
	int w = op->comm->world[side->rank];

	if (side->arrival == PLAN_NEVER)
		return;
	side->stop = stop;
	side->gpu_start = plan_gpu_clock(plan->scn, w, side->arrival);
	side->gpu_stop = stop == PLAN_NEVER ? 0 : plan_gpu_clock(plan->scn, w, stop);
}

/* Data flows for xfer_ns, or half of it until a fault ends it. */
static void end_op(struct plan_op *op, int64_t xfer_ns)
{
	op->cut_ns = PLAN_NEVER;
	if (op->fault && op->data_ns != PLAN_NEVER)
		op->cut_ns = op->data_ns + xfer_ns / 2;
}

static bool runs_on(const struct plan_op *op, const struct sim_comm *comm, bool coll)
{
	return op->comm == comm && (op->side[0].peer < 0) == coll;
}

/* What the collectives of one communicator and launch have in common. */
struct kernel {
	int64_t xfer_ns;
	uint64_t bytes;
	int members, channel;
	const struct sim_fault *fault;	/* of any member */
};

/* All ranks arrive, as late as they are for any member. */
static void arrive_all(struct plan *plan, const struct sim_comm *comm, struct kernel *k)
{
	for (int i = 0; i < plan->step.nops; i++) {
		struct plan_op *op = &plan->step.op[i];

		if (!runs_on(op, comm, true))
			continue;
		for (int s = 0; s < op->nsides; s++)
			arrive(plan, op, &op->side[s]);
		k->xfer_ns += ring_ns(plan, op);
		k->bytes += op->bytes;
		k->members++;
		if (!k->fault)
			k->fault = ending_fault(plan, op);
	}
}

static void time_member(struct plan *plan, struct plan_op *op, struct kernel *k)
{
	for (int s = 0; s < op->nsides; s++)
		if (op->side[s].arrival != PLAN_NEVER)
			op->side[s].arrival = plan->gpu[op->comm->world[s]];
	op->members = k->members;
	op->first_channel = k->bytes / k->members < 65536 ? 0 : k->channel % 64;
	k->channel += op->nchannels;
	find_last(op);
	op->fault = k->fault;
	end_op(op, k->xfer_ns);
	for (int s = 0; s < op->nsides; s++) {
		int64_t tail = plan_hash(plan->scn->seed, 2, plan->step.number, s) %
			       (k->xfer_ns / 200 + 500);

		stop_side(plan, op, &op->side[s], op->data_ns == PLAN_NEVER || op->fault ?
			  PLAN_NEVER : op->data_ns + k->xfer_ns + tail);
	}
}

/*
 * The collectives of one communicator share one kernel: members begin and end
 * together.  When they are small they share the channels too.
 */
static void time_colls(struct plan *plan, const struct sim_comm *comm)
{
	struct kernel k = { .xfer_ns = KERNEL_NS };
	struct plan_op *last = NULL;

	arrive_all(plan, comm, &k);
	for (int i = 0; i < plan->step.nops; i++) {
		if (!runs_on(&plan->step.op[i], comm, true))
			continue;
		last = &plan->step.op[i];
		time_member(plan, last, &k);
	}
	for (int s = 0; last && s < last->nsides; s++)
		if (last->side[s].enqueued != PLAN_NEVER)
			plan->gpu[comm->world[s]] = last->side[s].stop;
}

/* How many transfers of this step share a rank's way out, or in. */
static int sharing(const struct plan_step *step, const struct plan_op *op, int side)
{
	int n = 0;

	for (int i = 0; i < step->nops; i++)
		n += runs_on(&step->op[i], op->comm, false) &&
		     step->op[i].side[side].rank == op->side[side].rank;
	return n;
}

/* The round of NCCL's schedule that a pair meets in. */
static int round_of(const struct plan_op *op)
{
	int n = op->comm->nranks;

	return (op->side[1].rank - op->side[0].rank + n) % n;
}

static void time_pair(struct plan *plan, struct plan_op *op)
{
	const int *world = op->comm->world;
	const struct sim_link *link = scenario_link(plan->scn, world[op->side[0].rank],
						    world[op->side[1].rank]);
	int out = sharing(&plan->step, op, 0), in = sharing(&plan->step, op, 1);
	int64_t xfer = KERNEL_NS + link->latency_ns +
		       (int64_t)(op->bytes * (double)(out > in ? out : in) / link->rate);

	op->members = out + in;
	op->first_channel = round_of(op) * op->nchannels % 64;
	find_last(op);
	op->fault = ending_fault(plan, op);
	end_op(op, xfer);
	for (int s = 0; s < 2; s++)
		stop_side(plan, op, &op->side[s], op->data_ns == PLAN_NEVER || op->fault ?
			  PLAN_NEVER : op->data_ns + xfer);
}

/* A rank's send and receive of one round are one piece of work: they end together. */
static void fuse_round(struct plan *plan, struct plan_op *op)
{
	struct plan_step *step = &plan->step;

	for (int i = 0; i < step->nops; i++) {
		struct plan_op *other = &step->op[i];

		if (!runs_on(other, op->comm, false) || round_of(other) != round_of(op))
			continue;
		for (int s = 0; s < 2; s++)
			if (other->side[!s].rank == op->side[s].rank &&
			    other->side[!s].stop > op->side[s].stop)
				stop_side(plan, op, &op->side[s], other->side[!s].stop);
	}
}

static void time_pairs(struct plan *plan, const struct sim_comm *comm)
{
	struct plan_step *step = &plan->step;
	int64_t end[SCENARIO_MAX_RANKS] = { 0 };

	for (int i = 0; i < step->nops; i++)
		for (int s = 0; runs_on(&step->op[i], comm, false) && s < 2; s++)
			arrive(plan, &step->op[i], &step->op[i].side[s]);
	for (int i = 0; i < step->nops; i++)
		if (runs_on(&step->op[i], comm, false))
			time_pair(plan, &step->op[i]);
	for (int i = 0; i < step->nops; i++) {
		struct plan_op *op = &step->op[i];

		if (!runs_on(op, comm, false))
			continue;
		fuse_round(plan, op);
		for (int s = 0; s < 2; s++)
			if (op->side[s].enqueued != PLAN_NEVER &&
			    op->side[s].stop > end[op->side[s].rank])
				end[op->side[s].rank] = op->side[s].stop;
	}
	for (int r = 0; r < comm->nranks; r++)
		if (end[r])
			plan->gpu[comm->world[r]] = end[r];
}

/* A killed process posts nothing more; an aborted communicator is gone. */
static void apply_fault(struct plan *plan, const struct plan_op *op)
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

static void run_all(struct plan *plan)
{
	for (int i = 0; i < plan->step.nops; i++) {
		if (!first_of_comm(&plan->step, i))
			continue;
		time_colls(plan, plan->step.op[i].comm);
		time_pairs(plan, plan->step.op[i].comm);
	}
	for (int i = 0; i < plan->step.nops; i++)
		if (plan->step.op[i].fault)
			apply_fault(plan, &plan->step.op[i]);
}

void plan_time_launch(struct plan *plan)
{
	enqueue_all(plan);
	launch_all(plan);
	run_all(plan);
}

void plan_time_replay(struct plan *plan)
{
	enqueue_all(plan);
	launch_all(plan);
	run_all(plan);
}

void plan_time_capture(struct plan *plan)
{
	enqueue_all(plan);
	for (int i = 0; i < plan->step.nops; i++)
		for (int s = 0; s < plan->step.op[i].nsides; s++) {
			struct plan_side *side = &plan->step.op[i].side[s];
			struct plan_op *op = &plan->step.op[i];

			if (side->has_seq && side->enqueued != PLAN_NEVER)
				plan->seq[plan->rank_base[op->comm->index] + side->rank]
					 [side->func]--;
		}
}
