/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk through a scenario's program: statements become steps, an operation
 * becomes one plan_op for each communicator of its name (AlltoAll: one for each
 * pair of ranks).
 */
#include "tests/sim/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/plan_state.h"
#include "tests/sim/schedule.h"

uint64_t plan_hash(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t x = seed;
	const uint64_t in[] = { a, b, c };

	for (int i = 0; i < 3; i++) {
		x += in[i] * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull;
		x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
		x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
		x ^= x >> 31;
	}
	return x;
}

int plan_thread_of(const struct scenario *scn, int world)
{
	return scn->thread_per_process ? scenario_process_of(scn, world) * scn->gpus_per_process
				       : world;
}

bool plan_is_hidden(const struct scenario *scn, const struct sim_op *op)
{
	return op->ce || (op->symmetric && scn->release < 31) ||
	       (op->func == FUNC_BROADCAST && scn->agv && scn->release >= 29);
}

/* ---- operations of a step ---- */

static int array_grow(void **array, int *room, int need, size_t size)
{
	void *p;

	if (need <= *room)
		return 0;
	need *= 2;
	p = realloc(*array, need * size);
	if (!p)
		return -ENOMEM;
	*array = p;
	*room = need;
	return 0;
}

static int plan_add_op(struct plan *plan, const struct sim_op *spec, const struct sim_comm *comm,
		       int nsides, struct plan_op **opp)
{
	struct plan_step *step = &plan->step;
	int r = array_grow((void **)&step->op, &plan->ops_room, step->nops + 1, sizeof(*step->op));

	if (!r)
		r = array_grow((void **)&plan->sides, &plan->sides_room, plan->nsides + nsides,
			       sizeof(*plan->sides));
	if (r)
		return r;
	*opp = &step->op[step->nops++];
	**opp = (struct plan_op){ .spec = spec, .comm = comm, .nsides = nsides,
				  .index = plan->comm_ops[comm->index],
				  .nchannels = spec->channels, .all_channels = 64,
				  .last_rank = -1 };
	memset(&plan->sides[plan->nsides], 0, nsides * sizeof(*plan->sides));
	plan->nsides += nsides;
	return 0;
}

static uint64_t op_bytes(const struct sim_op *spec, const struct sim_comm *comm)
{
	uint64_t one = spec->count * names_get(NAMES_DATATYPE, spec->datatype)->size;

	return names_func(spec->func)->scaled ? one * comm->nranks : one;
}

/* What a side passes is what the program says, unless a fault has it otherwise. */
static void fill_side(struct plan_side *side, const struct sim_op *spec, uint64_t bytes)
{
	side->count = spec->count;
	side->datatype = spec->datatype;
	side->root = spec->root;
	side->bytes = bytes;
}

static void pass_others(const struct plan *plan, const struct plan_op *op,
			struct plan_side *side)
{
	const struct sim_fault *f = plan_fault_find(plan, op, FAULT_MISMATCH,
						    op->comm->world[side->rank]);
	int size = names_get(NAMES_DATATYPE, side->datatype)->size;

	if (!f)
		return;
	side->bytes /= side->count * size;
	side->count = f->count ? f->count : side->count;
	side->datatype = f->datatype >= 0 ? f->datatype : side->datatype;
	side->root = f->root >= 0 ? f->root : side->root;
	side->bytes *= side->count * names_get(NAMES_DATATYPE, side->datatype)->size;
}

static int add_coll(struct plan *plan, const struct sim_op *spec, const struct sim_comm *comm)
{
	struct plan_side *side;
	struct plan_op *op;
	int r = plan_add_op(plan, spec, comm, comm->nranks, &op);

	if (r)
		return r;
	op->bytes = op_bytes(spec, comm);
	side = &plan->sides[plan->nsides - comm->nranks];
	for (int i = 0; i < comm->nranks; i++) {
		side[i] = (struct plan_side){ .func = spec->func, .rank = i, .peer = -1,
					      .has_seq = !plan_is_hidden(plan->scn, spec),
					      .moves = true };
		fill_side(&side[i], spec, op->bytes);
		pass_others(plan, op, &side[i]);
	}
	return 0;
}

/* An uneven pair moves more or less than the program says, by chance. */
static uint64_t pair_count(const struct plan *plan, const struct sim_op *spec,
			   const struct plan_op *op, int src, int dst)
{
	uint64_t h = plan_hash(plan->scn->seed, 9 + op->index, op->comm->index,
			       src * SCENARIO_MAX_RANKS + dst);
	double spread = spec->uneven * ((double)(h >> 11) / (1ull << 52) - 1);
	uint64_t count = (uint64_t)(spec->count * (1 + spread));

	return count ? count : 1;
}

static int add_pair(struct plan *plan, const struct sim_op *spec, const struct sim_comm *comm,
		    int src, int dst)
{
	bool moves = src != dst || !spec->inplace;
	struct plan_side *side;
	struct plan_op *op;
	int r = plan_add_op(plan, spec, comm, 2, &op);

	if (r)
		return r;
	side = &plan->sides[plan->nsides - 2];
	side[0] = (struct plan_side){ .func = FUNC_SEND, .rank = src, .peer = dst,
				      .moves = moves };
	side[1] = (struct plan_side){ .func = FUNC_RECV, .rank = dst, .peer = src,
				      .moves = moves };
	for (int s = 0; s < 2; s++) {
		fill_side(&side[s], spec, 0);
		side[s].count = pair_count(plan, spec, op, src, dst);
		side[s].bytes = side[s].count * names_get(NAMES_DATATYPE, spec->datatype)->size;
	}
	op->bytes = side->bytes;
	op->round = schedule_round(plan->scn, comm, src, dst);
	return 0;
}

static int add_all_to_all(struct plan *plan, const struct sim_op *spec,
			  const struct sim_comm *comm)
{
	int r = 0;

	for (int src = 0; src < comm->nranks && !r; src++)
		for (int dst = 0; dst < comm->nranks && !r; dst++)
			r = add_pair(plan, spec, comm, src, dst);
	return r;
}

/* Empty and lonely collectives do nothing. */
static bool does_nothing(const struct plan *plan, const struct sim_op *spec,
			 const struct sim_comm *comm)
{
	bool pairs = spec->func == FUNC_SEND || (spec->func == FUNC_ALL_TO_ALL && !spec->ce);

	return plan->aborted[comm->index] || !spec->count || (!pairs && comm->nranks == 1);
}

static int add_on_comm(struct plan *plan, const struct sim_op *spec,
		       const struct sim_comm *comm)
{
	if (spec->func == FUNC_SEND)
		return add_pair(plan, spec, comm, spec->src, spec->dst);
	if (spec->func == FUNC_ALL_TO_ALL && !spec->ce)
		return add_all_to_all(plan, spec, comm);
	return add_coll(plan, spec, comm);
}

/* On every communicator of its name. */
static int add_spec(struct plan *plan, const struct sim_op *spec)
{
	const struct sim_family *fam = &plan->scn->family[spec->family];
	int r = 0;

	for (int i = 0; i < fam->ncomms && !r; i++) {
		const struct sim_comm *comm = &plan->scn->comm[fam->first + i];

		if (does_nothing(plan, spec, comm))
			continue;
		r = add_on_comm(plan, spec, comm);
		plan->comm_ops[comm->index] += plan->step.kind != PLAN_CAPTURE;
	}
	return r;
}

/* Sides moved while they were added: tie them to their operations now. */
static void tie_sides(struct plan *plan)
{
	struct plan_side *side = plan->sides;

	for (int i = 0; i < plan->step.nops; i++) {
		plan->step.op[i].side = side;
		side += plan->step.op[i].nsides;
	}
}

static int fill_step(struct plan *plan, const struct sim_stmt *st)
{
	static void (*const time_step[])(struct plan *) = {
		[PLAN_LAUNCH] = plan_time_launch,
		[PLAN_CAPTURE] = plan_time_capture,
		[PLAN_REPLAY] = plan_time_replay,
	};
	struct plan_step *step = &plan->step;
	int r = 0;

	step->nops = 0;
	plan->nsides = 0;
	step->grouped = st->kind == STMT_GROUP || st->op.func == FUNC_ALL_TO_ALL;
	if (st->kind == STMT_OP)
		r = add_spec(plan, &st->op);
	for (st = st->body; st && !r; st = st->next)
		r = add_spec(plan, &st->op);
	if (r)
		return r;
	tie_sides(plan);
	time_step[step->kind](plan);
	plan_fault_look_back(plan);
	step->number++;
	return 0;
}

/* Of an operation that was, the calls of one rank: it makes them only now. */
static int fill_later(struct plan *plan, const struct sim_fault *f, struct plan_later *later)
{
	struct plan_step *step = &plan->step;
	int r;

	step->kind = PLAN_LAUNCH;
	step->nops = 0;
	step->grouped = later->spec->func == FUNC_ALL_TO_ALL;
	plan->nsides = 0;
	r = add_on_comm(plan, later->spec, later->comm);
	later->spec = NULL;
	if (r)
		return r;
	tie_sides(plan);
	for (int i = 0; i < step->nops; i++) {
		struct plan_op *op = &step->op[i];

		op->index = later->index;
		for (int s = 0; s < op->nsides; s++)
			op->side[s].elsewhere = op->comm->world[op->side[s].rank] != f->rank;
	}
	plan_time_launch(plan);
	step->number++;
	return 0;
}

/* 1: a step was made of a call that was left for later; 0: none is due; or -ENOMEM. */
static int make_up(struct plan *plan)
{
	for (int i = 0; i < plan->scn->nfaults; i++) {
		struct plan_later *later = &plan->later[i];
		int r;

		if (!later->spec || !later->due)
			continue;
		r = fill_later(plan, &plan->scn->fault[i], later);
		return r ? r : 1;
	}
	return 0;
}

/* ---- the walk ---- */

static void plan_push(struct plan *plan, const struct sim_stmt *st, const struct sim_stmt *body)
{
	if (!st->times || !body)
		return;
	plan->frame[++plan->depth] = (struct plan_frame){
		.body = body, .at = body, .left = st->times, .kind = st->kind,
		.graph = st->graph };
}

/* The GPU is busy from when it is free and told, the host from now on. */
static void pass_time(struct plan *plan, const struct sim_stmt *st)
{
	const struct scenario *scn = plan->scn;

	plan->computes++;
	for (int w = 0; w < scn->nranks; w++) {
		int64_t *host = &plan->host[plan_thread_of(scn, w)], *gpu = &plan->gpu[w];
		uint64_t h = plan_hash(scn->seed, 1, plan->computes, w);
		double spread = st->jitter * ((double)(h >> 11) / (1ull << 52) - 1);

		int64_t ns = (int64_t)(st->ns * (1 + spread));
		bool rare = st->rare_every && plan_hash(h, 8, w, 0) % st->rare_every == 0;
		bool leads = w == plan_thread_of(scn, w);

		if (!st->ranks[w] || *host == PLAN_NEVER)
			continue;
		ns += rare ? st->rare_ns : 0;
		if (st->kind == STMT_COMPUTE && *gpu != PLAN_NEVER)
			*gpu = (*gpu > *host ? *gpu : *host) + ns;
		if (st->kind == STMT_IDLE && leads)	/* once for a thread of many ranks */
			*host += ns;
	}
}

static void sync_hosts(struct plan *plan)
{
	for (int w = 0; w < plan->scn->nranks; w++) {
		int64_t *host = &plan->host[plan_thread_of(plan->scn, w)];

		if (plan->gpu[w] > *host)
			*host = plan->gpu[w];
	}
}

static bool any_host_left(const struct plan *plan)
{
	for (int w = 0; w < plan->scn->nranks; w++)
		if (plan->host[plan_thread_of(plan->scn, w)] != PLAN_NEVER)
			return true;
	return false;
}

/* The end of a pass through a block; loops make hosts wait.  Whether it is a step. */
static bool end_pass(struct plan *plan)
{
	struct plan_frame *f = &plan->frame[plan->depth];
	bool is_loop = f->kind == STMT_LOOP;

	f->at = f->body;
	f->part = 0;
	if (f->left != SCENARIO_FOREVER && !--f->left)
		plan->depth--;
	if (is_loop)
		sync_hosts(plan);
	plan->step.kind = PLAN_SYNC;
	return is_loop;
}

/* One statement.  1: it made a step; 0: go on; or -ENOMEM. */
static int plan_walk(struct plan *plan, const struct sim_stmt *st)
{
	struct plan_frame *f = &plan->frame[plan->depth];
	struct plan_step *step = &plan->step;
	int r;

	switch (st->kind) {
	case STMT_LOOP:
		plan_push(plan, st, st->body);
		return 0;
	case STMT_GRAPH:
		plan->graph_body[st->graph] = st->body;
		plan_push(plan, st, st->body);
		return 0;
	case STMT_REPLAY:
		plan_push(plan, st, plan->graph_body[st->graph]);
		return 0;
	case STMT_COMPUTE:
	case STMT_IDLE:
		pass_time(plan, st);
		return 0;
	case STMT_SYNC:
		sync_hosts(plan);
		step->kind = PLAN_SYNC;
		return 1;
	case STMT_OP:
	case STMT_GROUP:
		break;
	}
	step->kind = f->kind == STMT_GRAPH ? PLAN_CAPTURE :
		     f->kind == STMT_REPLAY ? PLAN_REPLAY : PLAN_LAUNCH;
	step->graph = f->graph;
	step->part = f->part++;
	r = fill_step(plan, st);
	return r ? r : 1;
}

int plan_next(struct plan *plan, const struct plan_step **stepp)
{
	int r = 0;

	while (!r && !plan->ended) {
		struct plan_frame *f = &plan->frame[plan->depth];
		const struct sim_stmt *st = f->at;

		plan->ended = !any_host_left(plan);
		r = plan->ended ? 0 : make_up(plan);
		if (r)
			break;
		plan->ended |= !st && !plan->depth;
		if (plan->ended)
			break;
		if (!st) {
			r = end_pass(plan);
			continue;
		}
		f->at = st->next;
		r = plan_walk(plan, st);
	}
	if (plan->ended)
		plan->step.kind = PLAN_END;
	*stepp = &plan->step;
	return r < 0 ? r : 0;
}

int plan_new(struct plan **planp, const struct scenario *scn)
{
	struct plan *plan = calloc(1, sizeof(*plan));
	int ranks = 0;

	if (!plan)
		return -ENOMEM;
	plan->scn = scn;
	plan->frame[0].at = scn->program;
	plan->frame[0].kind = STMT_OP;
	for (int i = 0; i < scn->ncomms; i++) {
		plan->rank_base[i] = ranks;
		ranks += scn->comm[i].nranks;
	}
	plan->seq = calloc(ranks + 1, sizeof(*plan->seq));
	plan->away = calloc(scn->ncomms + 1, sizeof(*plan->away));
	if (!plan->seq || !plan->away) {
		plan_free(plan);
		return -ENOMEM;
	}
	*planp = plan;
	return 0;
}

void plan_free(struct plan *plan)
{
	if (!plan)
		return;
	free(plan->step.op);
	free(plan->sides);
	free(plan->seq);
	free(plan->away);
	free(plan);
}

int64_t plan_host_ns(const struct plan *plan, int world)
{
	return plan->host[plan_thread_of(plan->scn, world)];
}

int64_t plan_gpu_ns(const struct plan *plan, int world)
{
	return plan->gpu[world];
}

const struct plan_side *plan_side_of(const struct plan_op *op, int rank, int nth)
{
	for (int i = 0; i < op->nsides; i++)
		if (op->side[i].rank == rank && !nth--)
			return &op->side[i];
	return NULL;
}
