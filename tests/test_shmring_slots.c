/* SPDX-License-Identifier: Apache-2.0 */
/* The handle pool: a slot's life, stale tokens, other threads, a pool run dry. */
#include <string.h>

#include "tests/fixture.h"
#include "tests/fixture_ring.h"

static struct fx_lane fx;
static struct shmring_lane *other;	/* the lane of another thread */

static void setup(void)
{
	fx_lane_open(&fx);
	other = fx_lane_more(&fx.ring);
	if (!other)
		ck_abort_msg("no second lane");
}

static void teardown(void)
{
	fx_lane_close(&fx);
}

static uint64_t counter(const _Atomic uint64_t *at)
{
	return atomic_load_explicit(at, memory_order_relaxed);
}

static bool close_token(struct shmring_lane *lane, uint64_t token, uint64_t stop)
{
	struct nci_record *rec = shmring_find(&fx.ring, token);

	return rec && shmring_close(lane, rec, token, stop);
}

static bool none(const struct nci_record *rec, void *arg)
{
	(void)rec;
	(void)arg;
	return false;
}

/* Gives up the event of the number that arg points to. */
static bool numbered(const struct nci_record *rec, void *arg)
{
	return rec->parent == *(uint64_t *)arg;
}

TEST(event_becomes_one_record_when_it_stops)
{
	uint64_t token = fx_start(fx.lane, 0, 2), last = 1;

	ck_assert_ptr_null(fx_lane_next(&fx));
	ck_assert_ptr_nonnull(shmring_find(&fx.ring, token));
	ck_assert(close_token(fx.lane, token, 7));
	ck_assert_ptr_null(shmring_find(&fx.ring, token));
	ck_assert_uint_eq(fx_lane_drain(&fx, &last), 1);
	ck_assert_uint_eq(last, 0);
}

TEST(token_tells_lane_slot_and_generation)
{
	uint64_t token = fx_start(other, 0, 1);

	ck_assert_uint_eq(nci_token_lane(token), other->index);
	ck_assert_uint_eq(nci_token_slot(token), 0);
	ck_assert_uint_eq(nci_token_generation(token), 1);
	ck_assert_uint_eq(token, nci_token(other->index, 0, 1));
}

TEST(stopped_event_is_stale_and_its_slot_gets_a_new_token)
{
	uint64_t first = fx_start(fx.lane, 0, 1), second;

	ck_assert(close_token(fx.lane, first, 7));
	ck_assert(!close_token(fx.lane, first, 7));
	second = fx_start(fx.lane, 1, 1);
	ck_assert_uint_eq(nci_token_slot(second), nci_token_slot(first));
	ck_assert_uint_eq(nci_token_generation(second), 2);
	ck_assert_ptr_null(shmring_find(&fx.ring, first));
}

TEST(no_number_but_a_live_token_is_found)
{
	uint64_t token = fx_start(fx.lane, 0, 1);
	const uint64_t wrong[] = {
		0, 1, UINT64_MAX, token | NCI_TOKEN_FREE, token + NCI_TOKEN_GEN_ONE,
		nci_token(0, 1, 0), nci_token(0, 1, 0) | NCI_TOKEN_FREE,
		nci_token(0, SHMRING_SLOTS, 1), nci_token(NCI_MAX_LANES, 0, 1),
		nci_token(NCI_MAX_LANES - 1, 0, 1), nci_token(255, 4095, 1),
		(uint64_t)(uintptr_t)&fx, nci_context(7, 0),
	};

	for (int i = 0; i < FX_COUNT(wrong); i++) {
		ck_assert_ptr_null(shmring_find(&fx.ring, wrong[i]));
		ck_assert_ptr_null(shmring_find_own(fx.lane, wrong[i]));
	}
	for (uint64_t i = 0; i < 100000; i++) {
		ck_assert_ptr_null(shmring_find(&fx.ring, fx_mix(i)));
		ck_assert_ptr_null(shmring_find_own(fx.lane, fx_mix(i)));
	}
	ck_assert_ptr_nonnull(shmring_find(&fx.ring, token));
	ck_assert_ptr_nonnull(shmring_find_own(fx.lane, token));
	ck_assert_ptr_null(shmring_find_own(other, token));
}

TEST(number_that_points_to_no_pool_is_not_found)
{
	struct shmring closed = { 0 };
	uint64_t lane;

	shmring_forget(&closed);
	for (lane = 0; lane < 256; lane++)
		for (uint32_t slot = 0; slot < 4096; slot += 256) {
			ck_assert_ptr_null(shmring_find(&fx.ring, nci_token(lane, slot, 0)));
			ck_assert_ptr_null(shmring_find(&fx.ring, nci_token(lane, slot, 1)));
			ck_assert_ptr_null(shmring_find(&closed, nci_token(lane, slot, 0)));
		}
	ck_assert_ptr_null(shmring_find(&closed, UINT64_MAX));
	ck_assert_ptr_null(shmring_find(&closed, NCI_TOKEN_FREE));
	memset(&closed, 0, sizeof(closed));
	ck_assert_int_eq(shmring_create(&closed, fx_tmpdir(), "without-lanes"), 0);
	ck_assert_ptr_null(shmring_find(&closed, 0));
	ck_assert_ptr_null(shmring_find(&closed, NCI_TOKEN_FREE));
	shmring_forget(&closed);
}

/* What lies where a token with such a slot points to is its own lane's, or another's ring. */
TEST(slot_behind_the_pool_is_not_found)
{
	uint64_t token = nci_token(fx.lane->index, SHMRING_SLOTS, 1);

	ck_assert_ptr_null(shmring_find(&fx.ring, token));
	ck_assert_ptr_null(shmring_find_own(fx.lane, token));
	token = nci_token(fx.lane->index, 2048, 1);
	((struct nci_record *)other->out->ring)->token = token;
	ck_assert_ptr_null(shmring_find(&fx.ring, token));
}

TEST(generation_that_wraps_costs_one_event_and_no_more)
{
	struct nci_record *rec = shmring_slot(fx.lane->pool, 0);
	uint64_t last_generation = (UINT64_C(1) << 42) - 1, token;

	*shmring_token(rec) = NCI_TOKEN_FREE | nci_token(0, 0, last_generation - 1);
	token = fx_start(fx.lane, 0, 1);
	ck_assert_uint_eq(nci_token_generation(token), last_generation);
	ck_assert(close_token(fx.lane, token, 0));

	token = fx_start(fx.lane, 1, 1);
	ck_assert_uint_ne(token, 0);
	ck_assert(!close_token(fx.lane, token, 0));
	for (int i = 1; i < SHMRING_SLOTS; i++)
		ck_assert_uint_ne(fx_start(fx.lane, 1, 1), 0);
	ck_assert_ptr_eq(shmring_take_slowly(fx.lane, &token, none, NULL), rec);
	ck_assert_uint_eq(nci_token_generation(token), 1);
}

/* The list that the next owner begins with is of when the lane was made. */
TEST(next_owner_of_a_lane_finds_all_empty_slots_and_no_other)
{
	struct shmring_lane before = *fx.lane, next = *fx.lane;
	static bool used[SHMRING_SLOTS];
	uint64_t token[100];
	uint32_t taken = 0;

	for (uint64_t i = 0; i < 100; i++)
		token[i] = fx_start(&before, i, 1);
	for (uint64_t i = 0; i < 100; i++)
		if (i % 3 == 0)
			ck_assert(close_token(&before, token[99 - i], i));
		else
			used[nci_token_slot(token[99 - i])] = true;
	for (int i = 0; i < 20 * SHMRING_SLOTS; i++) {
		uint64_t t;
		struct nci_record *rec = shmring_take(&next, &t);

		if (!rec)
			rec = shmring_take_slowly(&next, &t, none, NULL);
		if (!rec)
			continue;
		shmring_open(rec, t);
		ck_assert(!used[nci_token_slot(t)]);
		used[nci_token_slot(t)] = true;
		taken++;
	}
	ck_assert_uint_eq(taken, SHMRING_SLOTS - 66);
}

TEST(slot_that_was_emptied_last_is_taken_first)
{
	uint64_t token[100];

	for (uint64_t i = 0; i < 100; i++) {
		token[i] = fx_start(fx.lane, i, 1);
		ck_assert_uint_eq(nci_token_slot(token[i]), i);
	}
	close_token(fx.lane, token[3], 0);
	close_token(fx.lane, token[70], 0);
	ck_assert_uint_eq(nci_token_slot(fx_start(fx.lane, 0, 1)), 70);
	ck_assert_uint_eq(nci_token_slot(fx_start(fx.lane, 0, 1)), 3);
	ck_assert_uint_eq(nci_token_slot(fx_start(fx.lane, 0, 1)), 100);
}

/*
 * What a callback that interrupts a callback of its own thread may leave behind, or a state
 * that another thread tells of an event while it stops.
 */
TEST(list_in_disorder_never_leads_outside_the_pool_or_to_a_live_event)
{
	uint64_t live = fx_start(fx.lane, 0, 1), token;
	const uint32_t wrong[] = { nci_token_slot(live), SHMRING_SLOTS, 1u << 31, UINT32_MAX };

	for (int i = 0; i < FX_COUNT(wrong); i++) {
		fx.lane->free = wrong[i];
		ck_assert_ptr_null(shmring_take(fx.lane, &token));
		ck_assert_ptr_nonnull(shmring_take_slowly(fx.lane, &token, none, NULL));
		ck_assert_uint_ne(nci_token_slot(token), nci_token_slot(live));
	}
	ck_assert_ptr_nonnull(shmring_find(&fx.ring, live));
}

TEST(stop_on_another_thread_leaves_the_record_in_that_threads_lane)
{
	uint64_t token = fx_start(fx.lane, 0, 2), last = 1;

	ck_assert(close_token(other, token, 7));
	ck_assert_ptr_null(shmring_find(&fx.ring, token));
	ck_assert_uint_eq(fx_lane_drain(&fx, &last), 0);
	fx_lane_attach(&fx, other->index);
	ck_assert_uint_eq(fx_lane_drain(&fx, &last), 1);
	ck_assert_uint_eq(last, 0);
}

TEST(full_pool_refuses_counts_and_leaves_live_events_alone)
{
	uint64_t token[SHMRING_SLOTS], t;

	for (uint64_t i = 0; i < SHMRING_SLOTS; i++)
		token[i] = fx_start(fx.lane, i, 1);
	ck_assert_ptr_null(shmring_take(fx.lane, &t));
	for (int i = 0; i < 1000; i++)
		ck_assert_ptr_null(shmring_take_slowly(fx.lane, &t, none, NULL));
	ck_assert_uint_eq(counter(&fx.lane->out->line->pool_full), 1000);
	ck_assert_uint_eq(fx.lane->out->line->reclaimed, 0);
	for (uint64_t i = 0; i < SHMRING_SLOTS; i++)
		ck_assert(close_token(fx.lane, token[i], 0));
}

TEST(abandoned_event_makes_room_and_its_token_goes_stale)
{
	uint64_t token[SHMRING_SLOTS], victim = 700, t;
	struct nci_record *rec = NULL;

	for (uint64_t i = 0; i < SHMRING_SLOTS; i++)
		token[i] = fx_start(fx.lane, i, 1);
	for (int i = 0; i < 16 * SHMRING_SLOTS / 64 && !rec; i++)
		rec = shmring_take_slowly(fx.lane, &t, numbered, &victim);
	ck_assert_ptr_eq(rec, shmring_slot(fx.lane->pool, 700));
	ck_assert_ptr_null(shmring_find(&fx.ring, token[victim]));
	ck_assert_uint_eq(fx.lane->out->line->reclaimed, 1);
	ck_assert_uint_eq(nci_token_generation(t), 2);
}

static uint64_t start_somehow(uint64_t n)
{
	uint64_t token = fx_start(fx.lane, n, 1);
	struct nci_record *rec;

	if (token)
		return token;
	rec = shmring_take_slowly(fx.lane, &token, none, NULL);
	if (!rec)
		return 0;
	fx_fill(rec, n, 1);
	shmring_open(rec, token);
	return token;
}

TEST(events_that_always_stop_elsewhere_are_never_refused)
{
	for (uint64_t n = 0; n < 20 * SHMRING_SLOTS; n++) {
		uint64_t token = start_somehow(n);

		ck_assert_msg(token, "event %lu was refused", (unsigned long)n);
		ck_assert(close_token(other, token, 0));
	}
	ck_assert_uint_eq(counter(&fx.lane->out->line->pool_full), 0);
}

TEST(nearly_full_pool_costs_few_looks_for_each_event)
{
	uint64_t token[SHMRING_SLOTS], taken = 0;

	for (uint64_t i = 0; i < SHMRING_SLOTS; i++)
		token[i] = fx_start(fx.lane, i, 1);
	for (uint64_t i = 0; i < SHMRING_SLOTS; i += 64)
		close_token(other, token[i], 0);
	for (uint64_t n = 0; n < SHMRING_SLOTS; n++)
		taken += start_somehow(n) != 0;
	ck_assert_uint_eq(taken, SHMRING_SLOTS / 64);
	ck_assert_uint_eq(counter(&fx.lane->out->line->pool_full), SHMRING_SLOTS - taken);
}

TEST(settled_copy_needs_the_same_live_token_three_times)
{
	struct nci_slot live, stale, empty;
	uint64_t token = fx_start(fx.lane, 3, 2);

	memcpy(&live, shmring_find(&fx.ring, token), sizeof(live));
	close_token(fx.lane, token, 0);
	memcpy(&empty, shmring_slot(fx.lane->pool, 0), sizeof(empty));
	fx_start(fx.lane, 4, 2);
	memcpy(&stale, shmring_slot(fx.lane->pool, 0), sizeof(stale));

	ck_assert(shmring_slot_settled(&live, &live, &live));
	ck_assert(!shmring_slot_settled(&stale, &live, &live));
	ck_assert(!shmring_slot_settled(&live, &stale, &live));
	ck_assert(!shmring_slot_settled(&live, &live, &stale));
	ck_assert(!shmring_slot_settled(&empty, &empty, &empty));
	memset(&live, 0, sizeof(live));
	ck_assert(!shmring_slot_settled(&live, &live, &live));
}

int main(void)
{
	return fx_run(setup, teardown);
}
