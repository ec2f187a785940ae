/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers are added in order, also while somebody reads in pieces. */
#include "tables/hold.h"

#include "tests/fixture.h"

#define ROOM	16

static struct hold h;
static uint64_t added, taken;
static uint32_t turns, adds_a_turn;

static void take_in(const void *entry, void *arg)
{
	ck_assert_ptr_eq(arg, &h);
	ck_assert_uint_eq(*(const uint64_t *)entry, taken + 1);
	taken++;
}

static void add(void)
{
	uint64_t number = ++added, *place = hold_place(&h);

	if (place)
		*place = number;
	else
		take_in(&number, &h);
}

static void meanwhile(void *arg)
{
	ck_assert_ptr_eq(arg, &turns);
	turns++;
	for (uint32_t i = 0; i < adds_a_turn; i++)
		add();
}

static struct hold_reader reader = {
	.most = 5, .meanwhile = meanwhile, .arg = &turns,
};

static void setup(void)
{
	added = taken = turns = 0;
	ck_assert_int_eq(hold_init(&h, ROOM, sizeof(uint64_t), take_in, &h), 0);
}

static void teardown(void)
{
	hold_deinit(&h);
}

/* Steps of random size; what was taken in changes if and only if the reader is told so. */
TEST_LOOP(state_stands_still_until_the_reading_has_ended, 0, 20)
{
	fx_seed((uint64_t)_i);
	for (int reading = 0; reading < 50; reading++) {
		uint64_t before, steps = 0;
		bool goes_on = true;

		adds_a_turn = (uint32_t)(fx_random() % 6);
		turns = 0;
		add();
		ck_assert_uint_eq(taken, added);
		before = taken;
		hold_begin(&reader, &h);
		while (goes_on && steps < 40) {
			uint32_t n = (uint32_t)(fx_random() % 4);

			steps += n;
			goes_on = hold_go_on(&reader, n);
			ck_assert_int_eq(goes_on, added - before <= ROOM);
			ck_assert_int_eq(goes_on, taken == before);
			ck_assert_uint_ge(5 * turns + 3 * turns + 4, steps);
			ck_assert_uint_le(5 * turns, steps);
		}
		hold_end(&h);
		ck_assert_uint_eq(taken, added);
	}
}

TEST(reader_without_others_goes_through_in_one_go)
{
	struct hold_reader alone = { .most = 1 };

	hold_begin(&alone, &h);
	ck_assert(hold_go_on(&alone, 100) && hold_breathe(&alone));
	hold_end(&h);
	ck_assert_uint_eq(turns, 0);
}

TEST(breath_is_a_turn_of_the_others_at_once)
{
	adds_a_turn = ROOM;
	hold_begin(&reader, &h);
	ck_assert(hold_breathe(&reader));
	ck_assert_uint_eq(taken, 0);
	ck_assert(!hold_breathe(&reader));
	ck_assert_uint_eq(taken, 2 * ROOM);
	hold_end(&h);
}

int main(void)
{
	fx_seed_anew();
	return fx_run(setup, teardown);
}
