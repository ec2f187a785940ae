/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index holds one number per token: the kind in the upper bits, the item
 * below.  A token stands for one thing at a time; a hostile stream that uses one
 * twice is refused, so that an item and its index entry always belong together.  The
 * token of an operation that is done with keeps its number, while its item has another
 * token, or is free: that is how it is known.
 */
#include "reader/join/recon.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define KIND_SHIFT	28
#define ITEM_MASK	((UINT32_C(1) << KIND_SHIFT) - 1)

/* Touched at once: tables of a process; a communicator before its kernels' stamps. */
#define PROCESS_BYTES	(28 << 10)
#define COMM_BYTES	(12 << 10)
#define TOKEN_BYTES	128		/* the most, with its place in the index */

static uint32_t token_pack(enum recon_kind kind, uint32_t item)
{
	return (uint32_t)kind << KIND_SHIFT | item;
}

static bool recon_charge(struct recon *r, uint64_t bytes)
{
	if (!memory_take(r->room->memory, r->process->account, bytes))
		return false;
	r->taken += bytes;
	return true;
}

static void recon_discharge(struct recon *r, uint64_t bytes)
{
	memory_give(r->room->memory, r->process->account, bytes);
	r->taken -= bytes;
}

static int recon_init_stores(struct recon *r, const struct reconstruct_limits *limits)
{
	uint32_t tokens = limits->ops + limits->apis + limits->proxies + limits->plans +
			  limits->finished;
	int err = 0;

	err = err ? err : pool_init(&r->ops, limits->ops, sizeof(struct open_op));
	err = err ? err : pool_init(&r->apis, limits->apis, sizeof(struct api_call));
	err = err ? err : pool_init(&r->steps, limits->proxies, sizeof(struct step_sums));
	err = err ? err : pool_init(&r->plans, limits->plans, sizeof(struct plan));
	err = err ? err : pool_init(&r->spans, limits->spans, sizeof(struct recon_span));
	err = err ? err : pool_init(&r->groups, limits->groups, sizeof(struct p2p_group));
	err = err ? err : pool_init(&r->parts, limits->parts, sizeof(struct recon_part));
	err = err ? err : index_init(&r->group_index, limits->groups, limits->seed);
	err = err ? err : index_init(&r->index, tokens, limits->seed);
	r->finished_capacity = limits->finished;
	return err;
}

static uint32_t *recon_of_user(struct recon *r)
{
	return &r->room->of_user[r->process->account % RECON_USERS];
}

static void recon_drop_comm(struct recon *r, uint32_t comm)
{
	struct recon_comm *rcomm = r->comms[comm];

	r->comms[comm] = NULL;
	if (!rcomm || rcomm == RECON_NO_ROOM)
		return;
	gpus_put(r->room->gpus, rcomm->gpu);
	recon_discharge(r, rcomm->stamped ? sizeof(*rcomm) : COMM_BYTES);
	pages_give(rcomm, sizeof(*rcomm));
	r->room->comms--;
	--*recon_of_user(r);
}

int recon_new(struct recon **rp, struct process *process,
	      const struct reconstruct_limits *limits, struct recon_room *room)
{
	struct recon *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->process = process;
	r->room = room;
	err = recon_charge(r, PROCESS_BYTES) ? recon_init_stores(r, limits) : -ENOMEM;
	if (err) {
		recon_free(r);
		return err;
	}
	pool_list_init(&r->open, offsetof(struct open_op, link));
	pool_list_init(&r->headless, offsetof(struct open_op, link));
	pool_list_init(&r->waiting, offsetof(struct open_op, wait_link));
	pool_list_init(&r->calls, offsetof(struct api_call, link));
	pool_list_init(&r->captured, offsetof(struct api_call, link));
	pool_list_init(&r->step_list, offsetof(struct step_sums, link));
	pool_list_init(&r->group_list, offsetof(struct p2p_group, link));
	pool_list_init(&r->plan_list, offsetof(struct plan, link));
	*rp = r;
	return 0;
}

void recon_free(struct recon *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->ncomms; i++)
		recon_drop_comm(r, i);
	free(r->comms);
	list_deinit(&r->finished);
	index_deinit(&r->index);
	index_deinit(&r->group_index);
	pool_deinit(&r->parts);
	pool_deinit(&r->groups);
	pool_deinit(&r->spans);
	pool_deinit(&r->plans);
	pool_deinit(&r->steps);
	pool_deinit(&r->apis);
	pool_deinit(&r->ops);
	recon_discharge(r, r->taken);
	free(r);
}

enum recon_kind recon_find(const struct recon *r, uint64_t token, uint32_t *item)
{
	uint32_t value = index_find(&r->index, token);
	enum recon_kind kind;

	if (value == POOL_NONE)
		return token && token == r->newest_call.token ? RECON_API : RECON_NONE;
	*item = value & ITEM_MASK;
	kind = (enum recon_kind)(value >> KIND_SHIFT);
	return kind == RECON_OP && !recon_op_of(r, *item, token) ? RECON_FINISHED : kind;
}

bool recon_has_room(const struct recon *r, const struct pool *pool)
{
	return pool->free != POOL_NONE ||
	       (pool->fresh < pool->capacity &&
		memory_has(r->room->memory, r->process->account, pool->stride));
}

static bool recon_may_take(struct recon *r, const struct pool *pool)
{
	return pool->free != POOL_NONE ||
	       (pool->fresh < pool->capacity && recon_charge(r, pool->stride));
}

uint32_t recon_take(struct recon *r, struct pool *pool)
{
	return recon_may_take(r, pool) ? pool_take(pool) : POOL_NONE;
}

void recon_trim(struct recon *r)
{
	struct pool *const pools[] = { &r->ops, &r->apis, &r->steps, &r->plans, &r->spans,
				       &r->groups, &r->parts };

	for (size_t i = 0; i < ARRAY_LEN(pools); i++)
		if (pools[i]->fresh && !pools[i]->used)
			recon_discharge(r, pool_trim(pools[i]));
}

/* Its places are few beside what they lead to: counted, not refused. */
static void recon_count_places(struct recon *r, uint32_t mask_before)
{
	uint64_t bytes = (r->index.mask - mask_before) * sizeof(*r->index.places);

	if (!bytes)
		return;
	memory_add(r->room->memory, r->process->account, bytes);
	r->taken += bytes;
}

static bool recon_add_token(struct recon *r, uint64_t token, uint32_t value)
{
	uint32_t mask = r->index.mask;
	bool added = index_add(&r->index, token, value);

	recon_count_places(r, mask);
	return added;
}

static uint32_t recon_take_item(struct recon *r, struct pool *pool, enum recon_kind kind,
				uint64_t token)
{
	uint32_t item = recon_take(r, pool);

	if (item == POOL_NONE)
		return POOL_NONE;
	if (!recon_add_token(r, token, token_pack(kind, item))) {
		/* it stands for something, or there is no memory to make the index larger */
		pool_put(pool, item);
		return POOL_NONE;
	}
	return item;
}

uint32_t recon_take_op(struct recon *r, uint64_t token)
{
	uint32_t item = recon_take_item(r, &r->ops, RECON_OP, token);

	if (item != POOL_NONE)
		recon_op(r, item)->op.token = token;
	return item;
}

uint32_t recon_take_api(struct recon *r, uint64_t token)
{
	uint32_t item = recon_take_item(r, &r->apis, RECON_API, token);

	if (item != POOL_NONE)
		recon_api(r, item)->token = token;
	return item;
}

uint32_t recon_take_steps(struct recon *r, uint64_t token)
{
	uint32_t item = recon_take_item(r, &r->steps, RECON_STEPS, token);

	if (item != POOL_NONE)
		recon_steps(r, item)->token = token;
	return item;
}

uint32_t recon_take_plan(struct recon *r, uint64_t token)
{
	uint32_t item = recon_take_item(r, &r->plans, RECON_PLAN, token);

	if (item == POOL_NONE)
		return item;
	recon_plan(r, item)->token = token;
	recon_plan(r, item)->serial = ++r->plans_made;
	pool_list_init(&recon_plan(r, item)->held, offsetof(struct open_op, link));
	pool_list_append(&r->plans, &r->plan_list, item);
	return item;
}

struct recon_span *recon_add_span(struct recon *r, struct open_op *o)
{
	struct recon_span *span;
	uint32_t item;

	if (!recon_may_take(r, &r->spans)) {
		o->unsure = true;
		return NULL;
	}
	item = pool_take_unset(&r->spans);
	span = recon_span(r, item);
	span->next = o->spans;
	o->spans = item + 1;
	return span;
}

static void recon_drop_spans(struct recon *r, struct open_op *o)
{
	while (o->spans) {
		uint32_t item = o->spans - 1;

		o->spans = recon_span(r, item)->next;
		pool_put(&r->spans, item);
	}
}

/* The place of the next one; NULL: no memory for a single one. */
static uint64_t *finished_place(struct recon *r)
{
	bool more = r->finished.n < r->finished_capacity &&
		    memory_has(r->room->memory, r->process->account, TOKEN_BYTES);
	uint64_t *place = more ? list_append(&r->finished) : NULL;

	if (place)
		return place;
	if (!r->finished.n)
		return NULL;
	place = &r->finished.at[r->finished_again++ % r->finished.n];
	index_remove(&r->index, *place);	/* nothing else can have taken it */
	return place;
}

void recon_remember(struct recon *r, uint64_t token, enum recon_kind kind)
{
	uint64_t *place;
	uint32_t item;

	assert(kind >= RECON_FINISHED);
	if (recon_find(r, token, &item) != RECON_NONE)
		return;
	place = finished_place(r);
	if (!place)
		return;
	*place = recon_add_token(r, token, token_pack(kind, 0)) ? token : 0;
}

/* The same of one whose item goes: its token keeps its place in the index, and leads there. */
static void recon_remember_op(struct recon *r, uint64_t token)
{
	uint64_t *place = finished_place(r);

	if (place)
		*place = token;
	else
		index_remove(&r->index, token);
}

static void recon_drop_item(struct recon *r, struct pool *pool, uint32_t item, uint64_t token)
{
	index_remove(&r->index, token);
	pool_put(pool, item);
}

void recon_drop_op(struct recon *r, uint32_t item)
{
	struct open_op *o = recon_op(r, item);
	uint64_t token = o->op.token;

	if (o->waits)
		pool_list_remove(&r->ops, &r->waiting, item);
	if (!o->held)
		pool_list_remove(&r->ops, o->has_head ? &r->open : &r->headless, item);
	recon_drop_spans(r, o);
	pool_put(&r->ops, item);
	recon_remember_op(r, token);
}

void recon_drop_api(struct recon *r, uint32_t item)
{
	struct api_call *api = recon_api(r, item);

	pool_list_remove(&r->apis, api->graph ? &r->captured : &r->calls, item);
	recon_drop_item(r, &r->apis, item, api->token);
}

void recon_drop_steps(struct recon *r, uint32_t item)
{
	pool_list_remove(&r->steps, &r->step_list, item);
	recon_drop_item(r, &r->steps, item, recon_steps(r, item)->token);
}

void recon_drop_plan(struct recon *r, uint32_t item)
{
	pool_list_remove(&r->plans, &r->plan_list, item);
	recon_drop_item(r, &r->plans, item, recon_plan(r, item)->token);
}

/* Tables grow with the process's own, which discover bounds. */
static bool recon_grow_comms(struct recon *r, uint32_t n)
{
	struct recon_comm **comms = realloc(r->comms, n * sizeof(*comms));

	if (!comms)
		return false;
	for (uint32_t i = r->ncomms; i < n; i++)
		comms[i] = NULL;
	r->comms = comms;
	r->ncomms = n;
	return true;
}

static bool comm_is_over(const struct recon *r, uint16_t comm)
{
	const struct comm *c = process_comm(r->process, comm);

	return r->comms[comm] && r->comms[comm] != RECON_NO_ROOM && c && c->finalize_ticks &&
	       !r->comms[comm]->progress.in_flight;
}

/* A process that makes communicators again and again needs only those of now. */
static bool recon_make_room_for_comms(struct recon *r)
{
	const struct recon_room *room = r->room;

	if (room->comms < room->most && *recon_of_user(r) < room->most / 2)
		return true;
	for (uint32_t i = 0; i < r->ncomms; i++) {
		if (comm_is_over(r, (uint16_t)i)) {
			recon_drop_comm(r, i);
			return true;
		}
	}
	return false;
}

/* 26 KiB each, for an event of the job's. */
static struct recon_comm *recon_add_comm(struct recon *r)
{
	struct recon_comm *rcomm = NULL;

	if (recon_make_room_for_comms(r) && recon_charge(r, COMM_BYTES)) {
		rcomm = pages_take(sizeof(*rcomm));
		if (!rcomm)
			recon_discharge(r, COMM_BYTES);
	}

	if (!rcomm) {
		++*r->room->refused;
		return RECON_NO_ROOM;
	}
	r->room->comms++;
	++*recon_of_user(r);
	return rcomm;
}

struct recon_comm *recon_comm_first(struct recon *r, uint16_t comm)
{
	const struct comm *c = process_comm(r->process, comm);

	if (!c)
		return NULL;
	if (comm >= r->ncomms && !recon_grow_comms(r, r->process->ncomms))
		return NULL;
	if (!r->comms[comm])
		r->comms[comm] = recon_add_comm(r);
	return r->comms[comm] == RECON_NO_ROOM ? NULL : r->comms[comm];
}

bool recon_may_stamp_first(struct recon *r, struct recon_comm *rcomm)
{
	rcomm->stamped = recon_charge(r, sizeof(*rcomm) - COMM_BYTES);
	return rcomm->stamped;
}
