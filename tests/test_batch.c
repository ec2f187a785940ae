/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/join/batch.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fixture.h"

#define MEMBERS	12
#define SPANS	64

static uint32_t below(uint32_t n)
{
	return (uint32_t)(fx_random() % n);
}

TEST(members_share_an_interval_on_any_channel)
{
	struct batch_span spans[] = {
		{ 100, 200, 0, 0 }, { 101, 199, 0, 1 },	/* 0 and 1 on channel 0 */
		{ 100, 180, 3, 1 }, { 103, 181, 3, 2 },	/* 1 and 2 on channel 3 */
		{ 200, 300, 0, 3 },			/* 3 begins where they end */
		{ 150, 160, 7, 4 },			/* 4 is on a channel of its own */
	};
	uint32_t batch[5];

	batch_unite(spans, 6, batch, 5);
	ck_assert_uint_eq(batch[0], 0);
	ck_assert_uint_eq(batch[1], 0);
	ck_assert_uint_eq(batch[2], 0);
	ck_assert_uint_eq(batch[3], 3);
	ck_assert_uint_eq(batch[4], 4);
}

TEST(a_coarse_clock_stamps_members_alike)
{
	struct batch_span spans[] = { { 5, 5, 0, 0 }, { 5, 5, 0, 1 }, { 6, 6, 0, 2 } };
	uint32_t batch[3];

	batch_unite(spans, 3, batch, 3);
	ck_assert_uint_eq(batch[1], 0);
	ck_assert_uint_eq(batch[2], 2);
}

/* ---- against what is slow and obvious -------------------------------------- */

static bool overlap(const struct batch_span *a, const struct batch_span *b)
{
	return a->channel == b->channel &&
	       (a->start == b->start || (a->start < b->stop && b->start < a->stop));
}

/* Relabel until nothing changes. */
static void unite_slowly(const struct batch_span *spans, uint32_t n, uint32_t *batch)
{
	bool changed = true;

	for (uint32_t m = 0; m < MEMBERS; m++)
		batch[m] = m;
	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t k = 0; k < n; k++) {
				uint32_t *a = &batch[spans[i].member];
				uint32_t *b = &batch[spans[k].member];

				if (!overlap(&spans[i], &spans[k]) || *a <= *b)
					continue;
				*a = *b;
				changed = true;
			}
	}
}

TEST(random_spans_unite_as_their_transitive_closure)
{
	struct batch_span spans[SPANS];
	uint32_t fast[MEMBERS], slow[MEMBERS];

	for (int round = 0; round < 3000; round++) {
		uint32_t n = below(SPANS), width = 1 + below(60), channels = 1 + below(8);

		for (uint32_t i = 0; i < n; i++) {
			uint64_t start = 1000 + below(300);

			spans[i] = (struct batch_span){ start, start + 1 + below(width),
							below(channels), below(MEMBERS) };
		}
		unite_slowly(spans, n, slow);
		batch_unite(spans, n, fast, MEMBERS);
		ck_assert_mem_eq(fast, slow, sizeof(fast));
	}
}

/* ---- the batch as one ------------------------------------------------------ */

static struct op coll(uint64_t token, name_t func, uint64_t bytes, uint64_t start, uint64_t stop)
{
	return (struct op){
		.token = token, .func = func, .bytes = bytes, .nranks = 4,
		.source = TIMING_KERNEL_GPU, .gpu_start_ns = start, .gpu_stop_ns = stop,
	};
}

TEST(batch_has_its_bytes_over_its_time)
{
	struct op a = coll(7, "AllReduce", 1000, 100, 190);
	struct op b = coll(8, "AllGather", 2000, 101, 200);
	struct op *both[] = { &a, &b };

	batch_fill(both, 2);
	ck_assert_uint_eq(a.fused, 2);
	ck_assert_uint_eq(b.batch, 7);
	ck_assert(a.batch_head && !b.batch_head);
	ck_assert_uint_eq(b.batch_ns, 100);
	ck_assert_uint_eq(b.batch_bytes, 3000);
	ck_assert_double_eq_tol(b.batch_busbw_gbs, (1000 * 1.5 + 2000 * 0.75) / 100, 1e-9);
}

TEST(directions_of_a_wire_do_not_add_up)
{
	struct op a = coll(7, "Send", 1000, 100, 200), b = coll(8, "Recv", 800, 100, 200);
	struct op *both[] = { &a, &b };

	a.is_p2p = b.is_p2p = true;
	batch_fill(both, 2);
	ck_assert_double_eq_tol(a.batch_busbw_gbs, 10, 1e-9);
}

TEST_LOOP(batch_with_an_untimed_or_unsized_member_has_no_bandwidth, 0, 2)
{
	struct op a = coll(7, "AllReduce", 1000, 100, 200);
	struct op b = coll(8, "AllReduce", _i ? UNKNOWN_U64 : 1000, 100, 200);
	struct op *both[] = { &a, &b };

	if (!_i)
		b.source = TIMING_NONE;
	batch_fill(both, 2);
	ck_assert_uint_eq(a.batch_ns, _i ? 100 : UNKNOWN_U64);
	ck_assert_uint_eq(a.batch_bytes, _i ? UNKNOWN_U64 : 2000);
	ck_assert_double_lt(a.batch_busbw_gbs, 0);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
