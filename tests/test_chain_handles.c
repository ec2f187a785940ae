/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs are found whole, by whoever asks, and the newest always. */
#include "chain/handles.h"

#include <pthread.h>
#include <string.h>

#include "tests/fixture.h"

#define SETS	16
#define ENTRIES	(SETS * HANDLES_WAYS)
#define THREADS	4
#define ROUNDS	200000

static struct handle_entry entries[SETS][HANDLES_WAYS];
static struct handles handles;

static void setup(void)
{
	memset(entries, 0, sizeof(entries));
	handles = (struct handles){ .set = entries, .nsets = SETS };
}

static struct handle_pair pair_of(uint64_t key)
{
	return (struct handle_pair){ key * 3, key * 5, key & 1 };
}

static bool is_pair_of(uint64_t key, const struct handle_pair *pair)
{
	return pair->ours == key * 3 && pair->others == key * 5 && pair->flag == (key & 1);
}

TEST(what_was_added_is_found_until_it_is_removed)
{
	struct handle_pair pair = pair_of(1000);

	ck_assert(!handles_find(&handles, 1000, &pair));
	ck_assert_uint_eq(pair.others, 0);
	pair = pair_of(1000);
	ck_assert(handles_add(&handles, 1000, &pair));
	ck_assert(handles_find(&handles, 1000, &pair) && is_pair_of(1000, &pair));
	handles_remove(&handles, 1001);
	ck_assert(handles_find(&handles, 1000, &pair));
	handles_remove(&handles, 1000);
	ck_assert(!handles_find(&handles, 1000, &pair));
	ck_assert(!handles_find(&handles, 0, &pair));	/* NCCL's for no parent */
	ck_assert(!handles_find(&handles, 1, &pair));
}

/* What has ended makes room for what has not, however old that is. */
TEST(what_is_open_outlasts_what_has_ended)
{
	struct handle_pair pair = pair_of(2);

	ck_assert(handles_add(&handles, 2, &pair));
	for (uint64_t key = 3; key < 3 + 10 * ENTRIES; key++) {
		pair = pair_of(key);
		ck_assert(handles_add(&handles, key, &pair));
		handles_end(&handles, key);
		ck_assert(handles_find(&handles, key, &pair) && is_pair_of(key, &pair));
	}
	ck_assert(handles_find(&handles, 2, &pair) && is_pair_of(2, &pair));
	ck_assert_uint_eq(handles.forgotten, 0);
}

TEST(where_nothing_makes_room_there_is_an_end)
{
	struct handle_pair pair;
	uint64_t n = 0;

	handles.keeps = true;
	for (uint64_t key = 2; key < 2 + 10 * ENTRIES; key++) {
		pair = pair_of(key);
		n += handles_add(&handles, key, &pair);
	}
	ck_assert_uint_eq(n, ENTRIES);
	ck_assert(handles_find(&handles, 2, &pair) && is_pair_of(2, &pair));
	handles_remove(&handles, 2);
	pair = pair_of(2);
	ck_assert(handles_add(&handles, 2, &pair));
}

/* So many as there are ways are always found; beyond that the oldest of a set makes room. */
TEST(the_newest_are_found)
{
	struct handle_pair pair;
	uint64_t found = 0;

	for (uint64_t key = 2; key < 2 + 100 * ENTRIES; key++) {
		pair = pair_of(key);
		ck_assert(handles_add(&handles, key, &pair));
		for (uint64_t k = key; k > 1 && k + HANDLES_WAYS > key; k--)
			ck_assert(handles_find(&handles, k, &pair) && is_pair_of(k, &pair));
	}
	for (uint64_t key = 2; key < 2 + 100 * ENTRIES; key++)
		found += handles_find(&handles, key, &pair);
	ck_assert_uint_eq(found, ENTRIES);
	ck_assert_uint_eq(handles.forgotten, 99 * ENTRIES);
}

/* How often what was found under a key was not what somebody had added there. */
static void *add_and_find(void *arg)
{
	uint64_t from = (uint64_t)(uintptr_t)arg * ROUNDS + 2;
	struct handle_pair pair;
	uintptr_t wrong = 0;

	for (uint64_t key = from; key < from + ROUNDS; key++) {
		pair = pair_of(key);
		handles_add(&handles, key, &pair);
		for (uint64_t k = 2; k < 2 + THREADS; k++) {
			uint64_t other = key % ROUNDS + (k - 2) * ROUNDS;

			wrong += handles_find(&handles, other, &pair) && !is_pair_of(other, &pair);
		}
		if (key & 1)
			handles_remove(&handles, key);
	}
	return (void *)wrong;
}

TEST(threads_find_whole_pairs)
{
	pthread_t thread[THREADS];
	void *wrong;

	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert(!pthread_create(&thread[i], NULL, add_and_find, (void *)i));
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &wrong);
		ck_assert_ptr_null(wrong);
	}
}

int main(void)
{
	return fx_run(setup, NULL);
}
