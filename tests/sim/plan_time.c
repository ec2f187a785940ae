/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When things happen.  Hosts post in program order; a GPU begins a kernel when
 * its stream is free; a collective's data flows when the last rank has come,
 * and all ranks leave together, after latency and bytes over the slowest link
 * of the ring.  Whatever needs someone who never comes, never happens.
 */
#include "tests/sim/plan_state.h"

#include <stdlib.h>

#include "tests/sim/schedule.h"

#define API_NS		2000	/* host time of one API call */
#define TO_GPU_NS	3000	/* launch to the first instruction */
#define KERNEL_NS	5000	/* a kernel that moves nothing */
#define GPU_EPOCH	1770000000000000000ull
#define BATCH_ROUNDS	8	/* rounds of Send and Recv that a channel runs as one */
#define CHANNELS	64

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

	if (model_ns >= clock->step_at_ns)
		t += clock->step_ns;
	return (GPU_EPOCH + t) / clock->tick_ns * clock->tick_ns;
}

int plan_channel_number(const struct plan_op *op, int index)
{
	return (op->first_channel + index) % op->all_channels;
}

/* How far a channel is from its kernel's edge; short kernels have no room for it. */
static int64_t side_skew(const struct scenario *scn, const struct plan_op *op,
			 const struct plan_side *side, int index, int edge)
{
	int64_t stop = side->stop == PLAN_NEVER ? side->arrival : side->stop;
	int exact = edge ? op->nchannels - 1 : 0;
	uint64_t h = plan_hash(scn->seed, 3 + edge, side->gpu_start,
			       plan_channel_number(op, index));

	return index == exact || stop - side->arrival < 1024 ? 0 : (int64_t)(h % 8) * 32;
}

void plan_channel(const struct scenario *scn, const struct plan_op *op,
		  const struct plan_side *side, int index, struct plan_span *span)
{
	int w = op->comm->world[side->rank];
	bool stuck = op->fault && op->fault->kind == FAULT_STUCK && op->data_ns != PLAN_NEVER;

	bool fast = op->fast_ns && index != op->slow_index && !op->fault;

	span->start = side->arrival + side_skew(scn, op, side, index, 0);
	span->gpu_start = plan_gpu_clock(scn, w, span->start);
	span->stop = side->stop;
	if (stuck && index)	/* only the first channel hangs */
		span->stop = 2 * op->cut_ns - op->data_ns;
	else if (fast && side->stop != PLAN_NEVER)
		span->stop = op->data_ns + op->fast_ns;
	else if (side->stop != PLAN_NEVER)
		span->stop -= side_skew(scn, op, side, index, 1);
	span->gpu_stop = span->stop == PLAN_NEVER ? 0 : plan_gpu_clock(scn, w, span->stop);
}

struct sim_link plan_link(const struct scenario *scn, const struct plan_op *op, int from, int to)
{
	struct sim_link link = *scenario_link(scn, from, to);
	double factor = plan_fault_link(scn, op, from, to);

	link.latency_ns = (int64_t)(link.latency_ns * factor);
	link.rate /= factor;
	return link;
}

static int64_t ring_ns(const struct plan *plan, const struct plan_op *op)
{
	const struct ring_cost *cost = &ring_costs[op->spec->func];
	const struct sim_comm *c = op->comm;
	int64_t latency = 0;
	double rate = 0, bytes = op->bytes * cost->passes;

	for (int i = 0; i < c->nranks; i++) {
		struct sim_link link = plan_link(plan->scn, op, c->world[i],
						 c->world[(i + 1) % c->nranks]);

		if (link.latency_ns > latency)
			latency = link.latency_ns;
		if (!i || link.rate < rate)
			rate = link.rate;
	}
	if (cost->shared)
		bytes = bytes * (c->nranks - 1) / c->nranks;
	return cost->rounds * (c->nranks - 1) * latency + (int64_t)(bytes / rate);
}

/* ---- the host ---- */

static void enqueue_side(struct plan *plan, struct plan_op *op, struct plan_side *side, int world)
{
	int64_t *host = &plan->host[plan_thread_of(plan->scn, world)];

	side->due = *host;
	side->enqueued = side->launched = PLAN_NEVER;
	side->arrival = side->stop = PLAN_NEVER;
	side->elsewhere |= *host != PLAN_NEVER && plan_fault_swap(plan, op, world);
	if (side->elsewhere)
		return;
	if (plan_fault_find(plan, op, FAULT_ABSENT, world) ||
	    plan_fault_find(plan, op, FAULT_PAUSE, -1))
		*host = PLAN_NEVER;
	if (*host != PLAN_NEVER)
		*host += plan_fault_lateness(plan, op, world, true);
	side->enqueued = *host;
	side->launched = *host;
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

/* The whole program stops where one of its operations would be. */
static void pause_all(struct plan *plan)
{
	for (int i = 0; i < plan->step.nops; i++)
		if (plan_fault_find(plan, &plan->step.op[i], FAULT_PAUSE, -1))
			for (int w = 0; w < plan->scn->nranks; w++)
				plan->host[plan_thread_of(plan->scn, w)] = PLAN_NEVER;
}

/* One kernel launch of a rank and communicator: its sides from op[first] on. */
static void host_launch_kernel(struct plan *plan, int first, int world)
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

static void plan_launch_all(struct plan *plan)
{
	int n = plan->scn->nranks;

	for (int k = 0; k < n; k++)
		for (int i = 0; i < plan->step.nops; i++)
			if (first_of_comm(&plan->step, i))
				host_launch_kernel(plan, i, plan->scn->forward ? k : n - 1 - k);
}

/* ---- the GPU ---- */

/* A progress thread that gets no CPU from a launch on; the GPU does not wait for it. */
static void side_starve(struct plan *plan, const struct plan_op *op, struct plan_side *side,
			int world)
{
	const struct sim_fault *f = plan_fault_find(plan, op, FAULT_STARVE, world);
	int64_t *away = &plan->away[op->comm->index][side->rank];

	if (f && side->launched + f->by_ns > *away)
		*away = side->launched + f->by_ns;
	side->away = *away > side->launched ? *away : 0;
	side->busy = f && f->busy;
}

static void side_arrive(struct plan *plan, struct plan_op *op, struct plan_side *side)
{
	int w = op->comm->world[side->rank];

	if (side->enqueued == PLAN_NEVER || side->launched == PLAN_NEVER ||
	    plan->gpu[w] == PLAN_NEVER)
		return;
	if (plan->gpu[w] < side->launched + TO_GPU_NS)
		plan->gpu[w] = side->launched + TO_GPU_NS;
	plan->gpu[w] += plan_fault_lateness(plan, op, w, false);
	side_starve(plan, op, side, w);
	side->arrival = plan->gpu[w];
}

/* When the last rank is there, and the last progress thread if there is a network. */
static void find_last(struct plan_op *op)
{
	int last = 0;
	int64_t away = 0;

	for (int s = 1; s < op->nsides; s++)
		if (op->side[s].arrival > op->side[last].arrival)
			last = s;
	for (int s = 0; s < op->nsides; s++)
		if (op->side[s].away > away)
			away = op->side[s].away;
	op->data_ns = op->side[last].arrival;
	if (op->data_ns == PLAN_NEVER)
		return;
	op->last_rank = op->side[last].rank;
	if (op->comm->nnodes > 1 && away > op->data_ns)
		op->data_ns = away;
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
static void op_finish(struct plan_op *op, int64_t xfer_ns)
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
	double slow;			/* the slowest channel takes so many times longer */
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
			side_arrive(plan, op, &op->side[s]);
		k->xfer_ns += ring_ns(plan, op);
		k->bytes += op->bytes;
		k->members++;
		if (!k->fault)
			k->fault = plan_fault_ending(plan, op);
	}
}

/* The slowest channel of an operation and how slow it is; -1 if all are as they should be. */
static int slowest_channel(const struct plan *plan, const struct plan_op *op, double *factor)
{
	int index = -1;

	for (int c = 0; c < op->nchannels; c++)
		for (int s = 0; s < op->nsides; s++) {
			double f = plan_fault_channel(plan->scn, op,
						      op->comm->world[op->side[s].rank],
						      plan_channel_number(op, c), -1);

			if (f <= 1 || (index >= 0 && f <= *factor))
				continue;
			index = c;
			*factor = f;
		}
	return index;
}

/* Members share the channels when they are small, and have their own when not. */
static void lay_out_channels(struct plan *plan, const struct sim_comm *comm, struct kernel *k)
{
	for (int i = 0; i < plan->step.nops; i++) {
		struct plan_op *op = &plan->step.op[i];
		double slow = 1;

		if (!runs_on(op, comm, true))
			continue;
		op->first_channel = k->bytes / k->members < 65536 ? 0 : k->channel % CHANNELS;
		k->channel += op->nchannels;
		op->slow_index = slowest_channel(plan, op, &slow);
		k->slow = slow > k->slow ? slow : k->slow;
	}
}

static void time_member(struct plan *plan, struct plan_op *op, struct kernel *k)
{
	int64_t xfer = (int64_t)(k->xfer_ns * k->slow);

	for (int s = 0; s < op->nsides; s++)
		if (op->side[s].arrival != PLAN_NEVER)
			op->side[s].arrival = plan->gpu[op->comm->world[s]];
	op->members = k->members;
	find_last(op);
	op->fault = k->fault;
	op->fast_ns = k->slow > 1 ? k->xfer_ns : 0;
	op_finish(op, xfer);
	for (int s = 0; s < op->nsides; s++) {
		int64_t tail = plan_hash(plan->scn->seed, 2, plan->step.number, s) %
			       (xfer / 200 + 500);

		stop_side(plan, op, &op->side[s], op->data_ns == PLAN_NEVER || op->fault ?
			  PLAN_NEVER : op->data_ns + xfer + tail);
	}
}

/*
 * The collectives of one communicator share one kernel: members begin and end
 * together.  When they are small they share the channels too.
 */
static void time_colls(struct plan *plan, const struct sim_comm *comm)
{
	struct kernel k = { .xfer_ns = KERNEL_NS, .slow = 1 };
	struct plan_op *last = NULL;

	arrive_all(plan, comm, &k);
	lay_out_channels(plan, comm, &k);
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
static int side_sharing(const struct plan_step *step, const struct plan_op *op, int side)
{
	int n = 0;

	for (int i = 0; i < step->nops; i++)
		n += runs_on(&step->op[i], op->comm, false) &&
		     step->op[i].side[side].rank == op->side[side].rank;
	return n;
}

static void time_pair(struct plan *plan, struct plan_op *op)
{
	const int *world = op->comm->world;
	struct sim_link link = plan_link(plan->scn, op, world[op->side[0].rank],
					 world[op->side[1].rank]);
	int channels = plan->scn->family[op->comm->family].channels;
	int out = side_sharing(&plan->step, op, 0), in = side_sharing(&plan->step, op, 1);
	int64_t xfer = KERNEL_NS + link.latency_ns +
		       (int64_t)(op->bytes * (double)(out > in ? out : in) / link.rate);

	op->members = out + in;
	op->all_channels = schedule_channels(channels > op->nchannels ? channels : op->nchannels);
	op->first_channel = schedule_first(op->round, op->all_channels);
	find_last(op);
	op->fault = plan_fault_ending(plan, op);
	op_finish(op, xfer);
	for (int s = 0; s < 2; s++)
		stop_side(plan, op, &op->side[s], op->data_ns == PLAN_NEVER || op->fault ?
			  PLAN_NEVER : op->data_ns + xfer);
}

/* A work on several channels ends with its last one.  True: an end moved. */
static bool end_work(struct plan *plan, const struct plan_op *op, struct plan_side *side,
		     int64_t end[CHANNELS])
{
	int64_t stop = side->stop;
	bool moved = false;

	if (side->arrival == PLAN_NEVER || !side->moves)
		return false;
	for (int c = 0; c < op->nchannels; c++)
		if (end[plan_channel_number(op, c)] > stop)
			stop = end[plan_channel_number(op, c)];
	for (int c = 0; c < op->nchannels; c++) {
		moved |= end[plan_channel_number(op, c)] != stop;
		end[plan_channel_number(op, c)] = stop;
	}
	stop_side(plan, op, side, stop);
	return moved;
}

static bool end_batch(struct plan *plan, const struct sim_comm *comm, int batch,
		      int64_t end[][CHANNELS])
{
	bool moved = false;

	for (int i = 0; i < plan->step.nops; i++) {
		struct plan_op *op = &plan->step.op[i];

		if (!runs_on(op, comm, false) || op->round / BATCH_ROUNDS != batch)
			continue;
		for (int s = 0; s < 2; s++)
			moved |= end_work(plan, op, &op->side[s], end[op->side[s].rank]);
	}
	return moved;
}

/*
 * A channel runs eight rounds as one batch: NCCL stamps all their works when the batch begins,
 * and again when it ends.  No batch ends before an earlier one does.
 */
static void end_batches(struct plan *plan, const struct sim_comm *comm)
{
	int64_t end[SCENARIO_MAX_RANKS][CHANNELS] = { 0 };

	for (int batch = 0; batch * BATCH_ROUNDS < comm->nranks; batch++)
		while (end_batch(plan, comm, batch, end))
			continue;
}

static void time_pairs(struct plan *plan, const struct sim_comm *comm)
{
	struct plan_step *step = &plan->step;
	int64_t end[SCENARIO_MAX_RANKS] = { 0 };

	for (int i = 0; i < step->nops; i++)
		for (int s = 0; runs_on(&step->op[i], comm, false) && s < 2; s++)
			side_arrive(plan, &step->op[i], &step->op[i].side[s]);
	for (int i = 0; i < step->nops; i++)
		if (runs_on(&step->op[i], comm, false))
			time_pair(plan, &step->op[i]);
	end_batches(plan, comm);
	for (int i = 0; i < step->nops; i++) {
		struct plan_op *op = &step->op[i];

		if (!runs_on(op, comm, false))
			continue;
		for (int s = 0; s < 2; s++)
			if (op->side[s].enqueued != PLAN_NEVER &&
			    op->side[s].stop > end[op->side[s].rank])
				end[op->side[s].rank] = op->side[s].stop;
	}
	for (int r = 0; r < comm->nranks; r++)
		if (end[r])
			plan->gpu[comm->world[r]] = end[r];
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
			plan_fault_apply(plan, &plan->step.op[i]);
}

void plan_time_launch(struct plan *plan)
{
	enqueue_all(plan);
	pause_all(plan);
	plan_launch_all(plan);
	run_all(plan);
}

void plan_time_replay(struct plan *plan)
{
	plan_time_launch(plan);
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
