/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/join/p2pgroup.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fixture.h"

#define RANKS	64
#define ROOM	(4 * RANKS)

static struct p2p_part part[ROOM];
static uint32_t nparts;

static void add(int32_t peer, bool is_send, uint64_t bytes)
{
	part[nparts++] = (struct p2p_part){ peer, is_send, bytes };
}

static void both(int32_t peer, uint64_t out, uint64_t in)
{
	add(peer, true, out);
	add(peer, false, in);
}

/* In any order: they come as NCCL's schedule has them. */
static void shuffle(void)
{
	for (uint32_t i = nparts; i > 1; i--) {
		uint32_t k = (uint32_t)(fx_random() % i);
		struct p2p_part swap = part[i - 1];

		part[i - 1] = part[k];
		part[k] = swap;
	}
}

static struct p2p_shape shape_of(int32_t rank, int32_t nranks, uint32_t silent)
{
	struct p2p_shape shape;

	shuffle();
	p2pgroup_shape(part, nparts, rank, nranks, silent, &shape);
	return shape;
}

/* How the transfer to oneself shows: as any other, by its calls, or (from 4 ranks) not. */
TEST_LOOP(exchange_with_everybody_is_alltoall, 0, 3 * (RANKS - 1))
{
	int32_t n = 2 + _i % (RANKS - 1);
	int self = _i / (RANKS - 1);

	if (self == 2 && n < 4)
		return;
	for (int32_t rank = 0; rank < n; rank += 1 + n / 7) {
		nparts = 0;
		for (int32_t p = 0; p < n; p++)
			if (p != rank || self == 0)
				both(p, 1000, 1000);
		struct p2p_shape s = shape_of(rank, n, self == 1 ? 2 : 0);

		ck_assert_int_eq(s.class, P2P_ALLTOALL);
		ck_assert_uint_eq(s.bytes, 1000 * (uint64_t)n);
		ck_assert_uint_eq(s.bus_bytes, 1000 * (uint64_t)(n - 1));
		ck_assert_double_eq_tol(s.skew, n > 2 ? 1 : 0, 1e-9);
	}
}

TEST(uneven_exchange_is_alltoallv_and_has_a_skew)
{
	nparts = 0;
	both(1, 100, 700);
	both(2, 200, 100);
	both(3, 600, 100);
	struct p2p_shape s = shape_of(0, 4, 0);

	ck_assert_int_eq(s.class, P2P_ALLTOALLV);
	ck_assert_uint_eq(s.bytes, 900);
	ck_assert_uint_eq(s.bus_bytes, 900);
	ck_assert_double_eq_tol(s.skew, 2, 1e-9);
}

TEST(exchange_with_half_of_the_others_is_alltoallv)
{
	nparts = 0;
	for (int32_t p = 1; p <= 4; p++)
		both(p, 100, 100);
	ck_assert_int_eq(shape_of(0, 8, 0).class, P2P_ALLTOALLV);
	nparts -= 2;
	ck_assert_int_eq(shape_of(0, 8, 0).class, P2P_SENDRECV);
}

/* One direction, or one neighbour, or both: in a pipeline of 2 to 64 stages. */
TEST_LOOP(pipeline_is_no_alltoall, 0, RANKS - 1)
{
	int32_t n = 2 + _i;

	for (int32_t rank = 0; rank < n; rank++)
		for (int way = 1; way < 16; way++)
			for (int ring = 0; ring < 2; ring++) {
				int32_t next = (rank + 1) % n, prev = (rank + n - 1) % n;
				struct p2p_shape s;

				nparts = 0;
				if (way & 1 && (ring || next > rank))
					add(next, true, 1000);
				if (way & 2 && (ring || prev < rank))
					add(prev, false, 1000);
				if (way & 4 && (ring || prev < rank))
					add(prev, true, 1000);
				if (way & 8 && (ring || next > rank))
					add(next, false, 1000);
				s = shape_of(rank, n, 0);
				ck_assert(s.class == P2P_NONE || s.class == P2P_SHIFT ||
					  s.class == P2P_SENDRECV);
			}
}

TEST_LOOP(root_of_gather_and_scatter_is_known, 0, 2)
{
	struct p2p_shape s;

	nparts = 0;
	for (int32_t p = 0; p < 8; p++)
		if (p != 3)
			add(p, _i, 1000);
	s = shape_of(3, 8, 0);
	ck_assert_int_eq(s.class, _i ? P2P_SCATTER : P2P_GATHER);
	ck_assert_uint_eq(s.bytes, 8000);
	ck_assert_uint_eq(s.bus_bytes, 7000);
}

TEST_LOOP(shift_goes_the_shorter_way_round, 0, 8)
{
	int32_t k = _i + 1, n = 9;
	struct p2p_shape s;

	nparts = 0;
	add((2 + k) % n, true, 1000);
	add((2 + n - k) % n, false, 900);
	s = shape_of(2, n, 0);
	ck_assert_int_eq(s.class, P2P_SHIFT);
	ck_assert_int_eq(s.shift, k > n / 2 ? k - n : k);
	ck_assert_uint_eq(s.bytes, 1000);
}

TEST(pair_is_sendrecv_however_many_pieces)
{
	nparts = 0;
	for (int i = 0; i < 5; i++)
		both(1, 1000, 500);
	struct p2p_shape s = shape_of(0, 2, 0);

	ck_assert_int_eq(s.class, P2P_SENDRECV);
	ck_assert_uint_eq(s.bytes, 5000);
	ck_assert_uint_eq(s.bus_bytes, 5000);
}

TEST(what_is_alone_or_unknown_has_no_name_or_no_size)
{
	struct p2p_shape s;

	nparts = 0;
	add(1, true, 1000);
	ck_assert_int_eq(shape_of(0, 4, 0).class, P2P_NONE);
	both(0, 1000, 1000);		/* to oneself: moves nothing */
	ck_assert_int_eq(shape_of(0, 4, 0).class, P2P_NONE);
	add(1, false, UNKNOWN_U64);
	s = shape_of(0, 4, 0);
	ck_assert_int_eq(s.class, P2P_SENDRECV);
	ck_assert_uint_eq(s.bytes, UNKNOWN_U64);
	ck_assert_int_eq(shape_of(UNKNOWN_I32, 4, 0).class, P2P_NONE);
	ck_assert_int_eq(shape_of(0, UNKNOWN_I32, 0).class, P2P_NONE);
}

/* ---- against what is slow and obvious -------------------------------------- */

static uint64_t table[2][RANKS];	/* [in, out][peer]; 0: none */

static uint32_t partners(const uint64_t *side, int32_t rank, int32_t n)
{
	uint32_t count = 0;

	for (int32_t p = 0; p < n; p++)
		count += p != rank && side[p];
	return count;
}

static bool same_everywhere(int32_t n)
{
	uint64_t size = 0;

	for (int way = 0; way < 2; way++)
		for (int32_t p = 0; p < n; p++) {
			if (table[way][p] && size && table[way][p] != size)
				return false;
			size = table[way][p] ? table[way][p] : size;
		}
	return true;
}

/* With 4 to 64 ranks and one transfer per pair, where the rules are simple. */
static enum p2p_class slow_class(int32_t rank, int32_t n)
{
	uint32_t in = partners(table[0], rank, n), out = partners(table[1], rank, n);
	uint32_t all = (uint32_t)n - 1;

	if (in + out < 2)
		return P2P_NONE;
	if (in == all && out == all)
		return same_everywhere(n) ? P2P_ALLTOALL : P2P_ALLTOALLV;
	if (in > 2 && out > 2 && in * 2 > all && out * 2 > all)
		return P2P_ALLTOALLV;
	if (!out)
		return in == all ? P2P_GATHER : P2P_NONE;
	if (!in)
		return out == all ? P2P_SCATTER : P2P_NONE;
	for (int32_t k = 1; k < n && in == 1 && out == 1; k++)
		if (table[1][(rank + k) % n] && table[0][(rank + n - k) % n] && 2 * k != n)
			return P2P_SHIFT;
	return P2P_SENDRECV;
}

static void random_table(int32_t n)
{
	uint64_t likely[2] = { fx_random() % 101, fx_random() % 101 };
	bool even = fx_random() % 2;

	if (fx_random() % 3 == 0)
		likely[0] = likely[1] = 100;
	for (int way = 0; way < 2; way++)
		for (int32_t p = 0; p < n; p++)
			table[way][p] = fx_random() % 100 >= likely[way] ? 0 :
					even ? 4096 : 1 + fx_random() % 9;
}

TEST(random_groups_are_what_the_obvious_rules_say)
{
	uint32_t seen[P2P_CLASSES] = { 0 };

	for (int round = 0; round < 20000; round++) {
		int32_t n = 4 + (int32_t)(fx_random() % (round % 2 ? 4 : RANKS - 3));
		int32_t rank = (int32_t)(fx_random() % (uint32_t)n);
		uint64_t sent = 0;
		struct p2p_shape s;

		random_table(n);
		nparts = 0;
		for (int way = 0; way < 2; way++)
			for (int32_t p = 0; p < n; p++)
				if (table[way][p])
					add(p, way, table[way][p]);
		for (int32_t p = 0; p < n; p++)
			sent += p == rank ? 0 : table[1][p];
		s = shape_of(rank, n, 0);
		ck_assert_int_eq(s.class, slow_class(rank, n));
		seen[s.class]++;
		if (s.class == P2P_ALLTOALL || s.class == P2P_ALLTOALLV)
			ck_assert_uint_eq(s.bus_bytes, sent);
	}
	for (int c = 0; c < P2P_CLASSES; c++)
		ck_assert_uint_gt(seen[c], 0);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
