/* SPDX-License-Identifier: Apache-2.0 */
/* A keyed table beside an array that is searched from end to end, over random calls. */
#include "tables/keyed.h"

#include <string.h>

#include "tests/fixture.h"

#define MOST	24
#define KEYS	48
#define WORDS	6

struct key {
	uint64_t word[WORDS];
};

struct item {
	struct keyed_head head;
	struct key key;
	uint64_t value;
};

/* The items as they should be, least recently used first. */
static struct {
	int key;
	uid_t account;
	uint64_t value;
	bool used;		/* since the last one was made */
} model[MOST];
static uint32_t nmodel, gone, accounts;
static struct keyed t;

/*
 * Eight keys each have one hash whatever the seed: the highest bit of a word is undone by two
 * bits of the next.
 */
static struct key make_key(int i)
{
	struct key key = { { (uint64_t)i / 8 } };

	for (int bit = 0; bit < 3; bit++)
		if (i >> bit & 1) {
			key.word[2 * bit] ^= UINT64_C(1) << 63;
			key.word[2 * bit + 1] ^= UINT64_C(1) << 63 | UINT64_C(1) << 31;
		}
	return key;
}

static void on_gone(void *item, void *arg)
{
	gone += ((struct item *)item)->value;
	(void)arg;
}

static void make_table(bool refuses, uint32_t capacity)
{
	ck_assert_int_eq(keyed_init(&t, &KEYED_CONFIG(struct item, key, capacity,
				.seed = fx_random(), .refuses = refuses, .gone = on_gone)), 0);
	nmodel = gone = 0;
}

static struct item *use(int i, uid_t account, bool *made)
{
	struct key key = make_key(i);

	if (fx_random() % 2)	/* of an item that went, of another's, of none, and of its own */
		return keyed_use_again(&t, (uint32_t)(fx_random() % (t.config.capacity + 1)), &key,
				       account, made);
	return keyed_use(&t, &key, account, made);
}

static uint32_t model_find(int key)
{
	uint32_t i = 0;

	while (i < nmodel && model[i].key != key)
		i++;
	return i;
}

static void model_remove(uint32_t i)
{
	memmove(&model[i], &model[i + 1], (--nmodel - i) * sizeof(model[0]));
}

static uint32_t model_count(uid_t account)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < nmodel; i++)
		n += model[i].account == account;
	return n;
}

static uint32_t model_first_to_go(uid_t account)
{
	uid_t fullest = account;
	uint32_t i = 0;

	for (uid_t a = 0; a < accounts; a++)
		if (model_count(a) > model_count(fullest))
			fullest = a;
	while (model[i].account != fullest)
		i++;
	return i;
}

static void model_use(uint32_t i)
{
	__typeof__(model[0]) moved = model[i];

	if (moved.used)
		return;
	moved.used = true;
	model_remove(i);
	model[nmodel++] = moved;
}

static void random_use(uint64_t value)
{
	int key = (int)(fx_random() % KEYS);
	uid_t account = (uid_t)(fx_random() % accounts);
	uint32_t at = model_find(key), before = gone;
	bool known = at < nmodel, made;
	struct item *item = use(key, account, &made);

	if (!known && nmodel == t.config.capacity && t.config.refuses) {
		ck_assert_ptr_null(item);
		return;
	}
	ck_assert_int_eq(made, !known);
	if (known) {
		ck_assert_uint_eq(item->value, model[at].value);
		model_use(at);
		return;
	}
	ck_assert_uint_eq(item->value, 0);
	item->value = value;
	if (nmodel == t.config.capacity) {
		at = model_first_to_go(account);
		ck_assert_uint_eq(gone - before, model[at].value);
		model_remove(at);
	}
	model[nmodel].key = key;
	for (uint32_t i = 0; i < nmodel; i++)
		model[i].used = false;
	model[nmodel].account = account;
	model[nmodel].used = true;
	model[nmodel++].value = value;
}

static void random_other(void)
{
	struct key key = make_key((int)(fx_random() % KEYS));
	struct item *item = keyed_find(&t, &key);

	if (!item)
		return;
	ck_assert_ptr_eq(keyed_taken(&t, keyed_number(item)), item);
	for (uint32_t i = 0; i < nmodel; i++) {
		if (model[i].value != item->value)
			continue;
		if (fx_random() % 2) {
			keyed_touch(&t, item);
			model_use(i);
		} else {
			keyed_drop(&t, item);
			model_remove(i);
		}
		return;
	}
	ck_abort_msg("found what is not there");
}

static void compare(void)
{
	struct item *item = NULL;

	ck_assert_uint_eq(keyed_count(&t), nmodel);
	for (uint32_t i = 0; i < accounts * nmodel; i++) {
		struct key key = make_key(model[i % nmodel].key);

		if (model[i % nmodel].account != i / nmodel)
			continue;
		item = keyed_next(&t, item);
		ck_assert_mem_eq(&item->key, &key, sizeof(key));
		ck_assert_uint_eq(item->value, model[i % nmodel].value);
		ck_assert_ptr_eq(keyed_find(&t, &key), item);
		ck_assert_ptr_eq(keyed_at(&t, keyed_number(item)), item);
	}
	ck_assert_ptr_null(keyed_next(&t, item));
}

static void run(bool refuses, uint32_t of_accounts, int nth)
{
	fx_seed((uint64_t)nth);
	accounts = of_accounts;
	make_table(refuses, 1 + (uint32_t)(fx_random() % MOST));
	for (uint64_t step = 1; step <= 3000; step++) {
		if (fx_random() % 4)
			random_use(step);
		else
			random_other();
		if (step % 16 == 0)
			compare();
	}
	keyed_deinit(&t);
}

TEST_LOOP(oldest_makes_room_as_in_the_model, 0, 20)
{
	run(false, 1, _i);
}

TEST_LOOP(oldest_of_the_account_with_most_makes_room_as_in_the_model, 0, 20)
{
	run(false, 4, _i);
}

TEST_LOOP(full_table_refuses_as_in_the_model, 0, 20)
{
	run(true, 4, _i);
}

/* Without the eight keys of one hash, the model would say nothing about them. */
TEST(keys_of_one_hash_are_told_apart)
{
	struct key one = make_key(0), other = make_key(7);

	ck_assert_mem_ne(&one, &other, sizeof(one));
	ck_assert_uint_eq(index_hash(5, &one, sizeof(one)), index_hash(5, &other, sizeof(other)));
	make_table(false, 2);
	for (int i = 0; i < 2; i++) {
		bool made;

		use(7 * i, 0, &made)->value = (uint64_t)i;
		ck_assert(made);
	}
	ck_assert_uint_eq(((struct item *)keyed_find(&t, &one))->value, 0);
	ck_assert_uint_eq(((struct item *)keyed_find(&t, &other))->value, 1);
	keyed_deinit(&t);
}

TEST(who_has_most_cannot_push_out_what_others_have)
{
	bool made;

	make_table(false, 8);
	use(0, 1, &made)->value = 1;
	use(1, 2, &made)->value = 2;
	for (int i = 2; i < KEYS; i++)
		use(i, 3, &made);
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(use(i, 0, &made)->value, (uint64_t)i + 1);
		ck_assert(!made);
	}
	ck_assert_uint_eq(t.evicted, KEYS - 8);
	keyed_deinit(&t);
}

TEST(table_that_was_never_made_is_empty)
{
	const struct keyed never = { .evicted = 0 };

	ck_assert_ptr_null(keyed_next(&never, NULL));
}

int main(void)
{
	fx_seed_anew();
	return fx_run(NULL, NULL);
}
