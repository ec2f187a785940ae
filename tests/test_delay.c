/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/delay.h"

#include <math.h>

#include "tests/fixture.h"

#define SIDE		6
#define CHANNELS	4
#define HOTS		32

static struct delay_link links[SIDE * SIDE * CHANNELS];
static size_t nlinks;
static struct delay_hot hot[HOTS];

/* Everybody to everybody else, ten percent around 1. */
static void fill(uint32_t channels)
{
	nlinks = 0;
	for (int32_t from = 0; from < SIDE; from++)
		for (int32_t to = 0; to < SIDE; to++)
			for (uint32_t c = 0; from != to && c < channels; c++)
				links[nlinks++] = (struct delay_link){
					from, to, c,
					0.95 + 0.1 * (double)(fx_random() % 1000) / 1000,
				};
}

static bool is_hurt(const struct delay_link *l, enum delay_where where, int32_t from, int32_t to)
{
	return (where == DELAY_RECEIVE_SIDE || l->from == from) &&
	       (where == DELAY_SEND_SIDE || l->to == to) &&
	       (where != DELAY_CHANNEL || l->channel == 2);
}

TEST_LOOP(one_slow_thing_among_many_is_found_and_named_and_nothing_else, 0, 40)
{
	enum delay_where where = (enum delay_where)(_i % 4);
	int32_t from = (int32_t)(fx_random() % SIDE);
	int32_t to = (from + 1 + (int32_t)(fx_random() % (SIDE - 1))) % SIDE;

	fill(CHANNELS);
	for (size_t i = 0; i < nlinks; i++)
		if (is_hurt(&links[i], where, from, to))
			links[i].delay *= 3;
	ck_assert_int_eq(delay_find(links, nlinks, 1.5, hot, HOTS), 1);
	ck_assert_int_eq(hot[0].where, where);
	ck_assert(where == DELAY_RECEIVE_SIDE || hot[0].from == from);
	ck_assert(where == DELAY_SEND_SIDE || hot[0].to == to);
	ck_assert(where != DELAY_CHANNEL || hot[0].channel == 2);
	ck_assert(where != DELAY_LINK || (hot[0].sender_cleared && hot[0].receiver_cleared));
	ck_assert(hot[0].ratio > 2.5 && hot[0].ratio < 3.5);
}

TEST_LOOP(even_links_are_left_alone, 0, 20)
{
	fill(1 + (uint32_t)(fx_random() % CHANNELS));
	ck_assert_int_eq(delay_find(links, nlinks, 1.5, hot, HOTS), 0);
	ck_assert_int_eq(delay_find(links, 0, 1.5, hot, HOTS), 0);
	ck_assert_int_eq(delay_find(links, 1, 1.5, hot, HOTS), 0);
}

TEST(a_ring_cannot_tell_a_link_from_its_ends)
{
	for (int32_t i = 0; i < 4; i++)
		links[i] = (struct delay_link){ i, (i + 1) % 4, 0, i == 1 ? 5 : 1 };
	ck_assert_int_eq(delay_find(links, 4, 1.5, hot, HOTS), 1);
	ck_assert_int_eq(hot[0].where, DELAY_LINK);
	ck_assert_int_eq(hot[0].from, 1);
	ck_assert(!hot[0].sender_cleared && !hot[0].receiver_cleared);
}

TEST(of_two_links_the_slower_one_is_slow)
{
	links[0] = (struct delay_link){ 0, 1, 0, 4 };
	links[1] = (struct delay_link){ 1, 0, 0, 1 };
	ck_assert_int_eq(delay_find(links, 2, 1.5, hot, HOTS), 1);
	ck_assert_int_eq(hot[0].from, 0);
	ck_assert(fabs(hot[0].ratio - 4) < 1e-9);
}

TEST(no_more_are_told_than_there_is_room_for)
{
	for (int32_t i = 0; i < 40; i++)
		links[i] = (struct delay_link){ i, i + 100, 0, i < 15 ? 9 : 1 };
	ck_assert_int_eq(delay_find(links, 40, 1.5, hot, 4), 4);
	ck_assert_int_eq(delay_find(links, 40, 1.5, hot, HOTS), 15);
}

/* ---- the same, the long way ---------------------------------------------------- */

static double rest[SIDE][SIDE], effect[2][SIDE];

static double low_median(double *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++)
			if (v[k] < v[i]) {
				double swap = v[i];

				v[i] = v[k];
				v[k] = swap;
			}
	return v[(n - 1) / 2];
}

static double *at(int kind, int line, int i)
{
	return kind ? &rest[i][line] : &rest[line][i];
}

static void polish_slowly(void)
{
	for (int step = 0; step < 20 * SIDE; step++) {
		int kind = step / SIDE % 2, line = step % SIDE;
		double v[SIDE], m;
		size_t n = 0;

		for (int i = 0; i < SIDE; i++)
			if (!isnan(*at(kind, line, i)))
				v[n++] = *at(kind, line, i);
		if (n < 2)
			continue;
		m = low_median(v, n);
		effect[kind][line] += m;
		for (int i = 0; i < SIDE; i++)
			*at(kind, line, i) -= m;
	}
}

/* A matrix with holes, of one channel; delays from 1 to 16. */
static void fill_with_holes(void)
{
	double all[SIDE * SIDE], middle;

	nlinks = 0;
	memset(effect, 0, sizeof(effect));
	for (int32_t from = 0; from < SIDE; from++)
		for (int32_t to = 0; to < SIDE; to++) {
			rest[from][to] = NAN;
			if (fx_random() % 3 == 0)
				continue;
			all[nlinks] = exp2((double)(fx_random() % 4000) / 1000);
			rest[from][to] = log(all[nlinks]);
			links[nlinks] = (struct delay_link){ from, to, 0, all[nlinks] };
			nlinks++;
		}
	if (!nlinks)
		return;
	middle = log(low_median(all, nlinks));
	for (int i = 0; i < SIDE * SIDE; i++)
		rest[i / SIDE][i % SIDE] -= middle;
}

static double expected(const struct delay_hot *h)
{
	if (h->where == DELAY_SEND_SIDE)
		return exp(effect[0][h->from]);
	if (h->where == DELAY_RECEIVE_SIDE)
		return exp(effect[1][h->to]);
	return exp(rest[h->from][h->to]);
}

static int count_expected(void)
{
	int n = 0;

	for (int i = 0; i < SIDE; i++) {
		n += exp(effect[0][i]) >= 1.5;
		n += exp(effect[1][i]) >= 1.5;
		for (int k = 0; k < SIDE; k++)
			n += !isnan(rest[i][k]) && exp(rest[i][k]) >= 1.5;
	}
	return n;
}

TEST_LOOP(it_finds_what_the_long_way_finds, 0, 50)
{
	int n;

	fill_with_holes();
	polish_slowly();
	n = delay_find(links, nlinks, 1.5, hot, HOTS);
	ck_assert_int_eq(n, count_expected());
	for (int i = 0; i < n; i++)
		ck_assert(fabs(hot[i].ratio / expected(&hot[i]) - 1) < 1e-6);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
