/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index holds one number per token: the kind in the upper bits, the item
 * below.  A token stands for one thing at a time; a hostile stream that uses one
 * twice is refused, so that an item and its index entry always belong together.
 *
 * Open operations are found by the slot and generation of their token (nci/token.h), which
 * give them places side by side; the index has those whose place another one has taken.  One
 * slot's generations only go up: that tells early children from late ones.
 */
#include "reader/join/recon.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "nci/token.h"

#define KIND_SHIFT	28
#define ITEM_MASK	((UINT32_C(1) << KIND_SHIFT) - 1)

/* Touched at once: tables of a process; a communicator before its kernels' stamps. */
#define PROCESS_BYTES	(28 << 10)
#define COMM_BYTES	(12 << 10)
#define TOKEN_BYTES	128		/* the most, with its place in the index */

/* Touched when the first operations come, and the first of some slots side by side. */
#define PLACES_BYTES	(RECON_PLACES * sizeof(struct open_op *))
#define BESIDE_BYTES	(RECON_BESIDE * sizeof(struct recon_slot))

static uint32_t token_pack(enum recon_kind kind, uint32_t number)
{
	return (uint32_t)kind << KIND_SHIFT | number;
}

static uint32_t op_pack(const struct open_op *o)
{
	return token_pack(RECON_OP, pool_number(o));
}

/* Threads use the lowest slots of their lanes: these lie far from each other. */
static uint32_t slot_of(uint64_t token)
{
	return 633 * nci_token_lane(token) + nci_token_slot(token);
}

/* A lane has so many slots; more would share their places, where the last operation's counts. */
static struct recon_slot *recon_slot(struct recon *r, uint64_t token)
{
	return &r->slot[nci_token_lane(token)][token % RECON_SLOTS];
}

/* Operations that one slot gave one after the other lie side by side. */
static struct open_op **recon_place(struct recon *r, uint64_t token)
{
	return &r->place[(61 * slot_of(token) + (token >> NCI_TOKEN_GEN_SHIFT)) % RECON_PLACES];
}

static bool slot_gave(const struct recon_slot *s, uint64_t token)
{
	return !((s->token ^ token) & (NCI_TOKEN_GEN_ONE - 1));
}

static uint64_t slot_generations(uint64_t newer, uint64_t older)
{
	return (newer - older) >> NCI_TOKEN_GEN_SHIFT;
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

/* A slot and those beside it, if there is memory: else its late children pass for early ones. */
static __attribute__((noinline)) bool recon_add_slots(struct recon *r, uint64_t token)
{
	bool *has = &r->has_slots[nci_token_lane(token)][token % RECON_SLOTS / RECON_BESIDE];

	if (!*has && memory_has(r->room->memory, r->process->account, BESIDE_BYTES))
		*has = recon_charge(r, BESIDE_BYTES);
	return *has;
}

/* A newer operation of the slot, or another slot in its place.  False: no memory to know it. */
static bool recon_advance(struct recon *r, struct recon_slot *s, uint64_t token)
{
	uint64_t newer = slot_gave(s, token) ? slot_generations(token, s->token) : RECON_PAST;

	if (!s->token && !recon_add_slots(r, token))
		return false;
	s->done = newer < RECON_PAST ? s->done << newer : 0;
	s->token = token;
	return true;
}

static int recon_init_stores(struct recon *r, const struct reconstruct_limits *limits)
{
	uint32_t tokens = limits->ops + limits->apis + limits->proxies + limits->plans +
			  limits->ended;
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
	r->ended_capacity = limits->ended;
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
	struct recon *r = pages_take(sizeof(*r));
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
	list_deinit(&r->ended_groups);
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
	pages_give(r, sizeof(*r));
}

static void *recon_item(const struct recon *r, enum recon_kind kind, uint32_t number)
{
	switch (kind) {
	case RECON_OP:
		return pool_at(&r->ops, number);
	case RECON_API:
		return pool_at(&r->apis, number);
	case RECON_STEPS:
		return pool_at(&r->steps, number);
	case RECON_PLAN:
		return pool_at(&r->plans, number);
	default:
		return NULL;
	}
}

struct recon_found recon_find(struct recon *r, uint64_t token)
{
	const struct recon_slot *s = recon_slot(r, token);
	struct open_op *o = *recon_place(r, token);
	enum recon_kind kind;
	uint32_t value;

	if (o && o->op.token == token)
		return (struct recon_found){ RECON_OP, o };
	if (slot_gave(s, token) && token <= s->token &&
	    slot_generations(s->token, token) < RECON_PAST &&
	    s->done >> slot_generations(s->token, token) & 1)
		return (struct recon_found){ RECON_FINISHED, NULL };
	value = r->index.used ? index_find(&r->index, token) : POOL_NONE;
	kind = (enum recon_kind)(value >> KIND_SHIFT);
	if (value != POOL_NONE)
		return (struct recon_found){ kind, recon_item(r, kind, value & ITEM_MASK) };
	if (token && token == r->newest_call.token)
		return (struct recon_found){ RECON_API, &r->newest_call };
	return (struct recon_found){ RECON_NONE, NULL };
}

bool recon_see_head(struct recon *r, uint64_t token)
{
	struct recon_slot *s = recon_slot(r, token);
	bool newer = slot_gave(s, token) && token > s->token;

	if (!newer && slot_gave(s, token))
		return false;
	return recon_advance(r, s, token) && newer && !r->headless.count;
}

bool recon_is_past(struct recon *r, uint64_t token)
{
	const struct recon_slot *s = recon_slot(r, token);

	return slot_gave(s, token) && token < s->token &&
	       slot_generations(s->token, token) >= RECON_PAST;
}

static uint64_t recon_growth(const struct recon *r, const struct pool *pool)
{
	return pool->stride + (r->has_places ? 0 : PLACES_BYTES);
}

bool recon_may_grow(const struct recon *r, const struct pool *pool)
{
	return pool->fresh < pool->capacity &&
	       memory_has(r->room->memory, r->process->account, recon_growth(r, pool));
}

bool recon_grow(struct recon *r, const struct pool *pool)
{
	if (pool->fresh == pool->capacity || !recon_charge(r, recon_growth(r, pool)))
		return false;
	r->has_places = true;
	return true;
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

static void *recon_take_item(struct recon *r, struct pool *pool, enum recon_kind kind,
			     uint64_t token)
{
	void *item;

	if (recon_find(r, token).kind != RECON_NONE)
		return NULL;
	item = recon_take(r, pool);
	if (item && !recon_add_token(r, token, token_pack(kind, pool_number(item)))) {
		pool_put_back(pool, item);	/* no memory to make the index larger */
		return NULL;
	}
	return item;
}

struct open_op *recon_take_op(struct recon *r, uint64_t token)
{
	struct open_op **place = recon_place(r, token), *other = *place;
	struct open_op *o;

	if (other && !recon_add_token(r, other->op.token, op_pack(other)))
		return NULL;
	*place = NULL;
	o = recon_take(r, &r->ops);
	if (!o)
		return NULL;
	o->op.token = token;
	*place = o;
	return o;
}

struct api_call *recon_take_api(struct recon *r, uint64_t token)
{
	struct api_call *api = recon_take_item(r, &r->apis, RECON_API, token);

	if (api)
		api->token = token;
	return api;
}

struct step_sums *recon_take_steps(struct recon *r, uint64_t token)
{
	struct step_sums *steps = recon_take_item(r, &r->steps, RECON_STEPS, token);

	if (steps)
		steps->token = token;
	return steps;
}

struct plan *recon_take_plan(struct recon *r, uint64_t token)
{
	struct plan *plan = recon_take_item(r, &r->plans, RECON_PLAN, token);

	if (!plan)
		return NULL;
	plan->token = token;
	plan->serial = ++r->plans_made;
	pool_list_init(&plan->held, offsetof(struct open_op, link));
	pool_list_append(&r->plan_list, plan);
	return plan;
}

static void recon_drop_spans(struct recon *r, struct open_op *o)
{
	for (struct recon_span *next, *span = o->spans; span; span = next) {
		next = span->next;
		pool_put_back(&r->spans, span);
	}
}

/* The place of the next one; NULL: no memory for a single one. */
static uint64_t *ended_place(struct recon *r)
{
	bool more = r->ended_groups.n < r->ended_capacity &&
		    memory_has(r->room->memory, r->process->account, TOKEN_BYTES);
	uint64_t *place = more ? list_append(&r->ended_groups) : NULL;

	if (place)
		return place;
	if (!r->ended_groups.n)
		return NULL;
	place = &r->ended_groups.at[r->ended_again++ % r->ended_groups.n];
	index_remove(&r->index, *place);	/* nothing else can have taken it */
	return place;
}

void recon_remember(struct recon *r, uint64_t token, enum recon_kind kind)
{
	uint64_t *place;

	assert(kind >= RECON_GROUP);
	if (recon_find(r, token).kind != RECON_NONE)
		return;
	place = ended_place(r);
	if (!place)
		return;
	*place = recon_add_token(r, token, token_pack(kind, 0)) ? token : 0;
}

static void recon_drop_item(struct recon *r, struct pool *pool, void *item, uint64_t token)
{
	index_remove(&r->index, token);
	pool_put_back(pool, item);
}

/* Late children are known by its slot, also where its head was not read. */
static void recon_forget_op(struct recon *r, const struct open_op *o)
{
	uint64_t token = o->op.token, older;
	struct open_op **place = recon_place(r, token);
	struct recon_slot *s = recon_slot(r, token);

	if (*place == o)
		*place = NULL;
	else
		index_remove(&r->index, token);
	if (!slot_gave(s, token) || token > s->token)
		recon_see_head(r, token);
	if (!s->token)
		return;			/* there is no memory to know it */
	older = slot_generations(s->token, token);
	s->done |= older < RECON_PAST ? UINT64_C(1) << older : 0;
}

void recon_drop_op(struct recon *r, struct open_op *o)
{
	if (o->waits)
		pool_list_remove(&r->waiting, o);
	if (!o->held)
		pool_list_remove(o->has_head ? &r->open : &r->headless, o);
	recon_drop_spans(r, o);
	recon_forget_op(r, o);
	if (r->newest_parent == o)
		r->newest_parent = NULL;
	pool_put_back(&r->ops, o);
}

void recon_drop_api(struct recon *r, struct api_call *api)
{
	pool_list_remove(api->graph ? &r->captured : &r->calls, api);
	recon_drop_item(r, &r->apis, api, api->token);
}

void recon_drop_steps(struct recon *r, struct step_sums *steps)
{
	pool_list_remove(&r->step_list, steps);
	recon_drop_item(r, &r->steps, steps, steps->token);
}

void recon_drop_plan(struct recon *r, struct plan *plan)
{
	pool_list_remove(&r->plan_list, plan);
	plan->serial = 0;
	recon_drop_item(r, &r->plans, plan, plan->token);
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
