/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was launched together is told together: who shared a batch with whom, and
 * nothing where that cannot be known.
 */
#include "tests/fx_recon.h"

#define GROUP	900

static struct fx_recon fx;

static void teardown(void)
{
	fx_recon_close(&fx);
}

static void give(union fx_record r)
{
	fx_give(&fx, &fx.a, &r);
}

static union fx_record member(uint64_t token, uint64_t group, uint8_t channels, uint64_t start)
{
	union fx_record r = fx_coll(token, 0, token, channels, start);

	r.coll.group = group;
	return r;
}

static void end_group(uint64_t group)
{
	give(fx_head(NCI_EV_GROUP, 1, group, 0, 90, 200));
}

static const struct op *done(uint64_t token)
{
	for (uint32_t i = 0; i < fx.ndone; i++)
		if (fx.done[i].token == token)
			return &fx.done[i];
	return NULL;
}

/* Two collectives that share channel 1, and one that runs after them. */
static void give_three(void)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	give(member(7, GROUP, 2, 100));
	give(member(8, GROUP, 1, 101));
	give(member(9, GROUP, 1, 102));
}

static void end_three(void)
{
	give(fx_kernel(101, 7, 0, 5000, 9000));
	give(fx_kernel(102, 7, 1, 5000, 8000));
	give(fx_kernel(103, 8, 1, 5001, 8001));
}

TEST(members_of_a_batch_share_one_time_and_one_bandwidth)
{
	give_three();
	end_group(GROUP);
	end_three();
	ck_assert_uint_eq(fx.ndone, 0);		/* 9 is still running, and may be in it */
	give(fx_kernel(104, 9, 1, 8001, 8500));
	fx_wait(&fx, 0);
	ck_assert_uint_eq(fx.ndone, 3);
	ck_assert_uint_eq(done(7)->fused, 2);
	ck_assert_uint_eq(done(8)->fused, 2);
	ck_assert_uint_eq(done(8)->batch, 7);
	ck_assert_uint_eq(done(8)->batch_ns, 4000);
	ck_assert_uint_eq(done(8)->batch_bytes, 8192);
	ck_assert_double_eq_tol(done(8)->batch_busbw_gbs, 8192 * 1.5 / 4000, 1e-9);
	ck_assert_double_lt(done(8)->busbw_gbs, 0);
	ck_assert_double_lt(done(8)->algbw_gbs, 0);
	ck_assert_uint_eq(done(9)->fused, 0);
	ck_assert_double_eq_tol(done(9)->busbw_gbs, 4096 * 1.5 / 499, 1e-9);
}

TEST(launch_is_told_once_its_group_event_has_ended)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	give(member(7, GROUP, 1, 100));
	give(fx_kernel(101, 7, 0, 5000, 9000));
	ck_assert_uint_eq(fx.ndone, 0);		/* another head may follow */
	end_group(GROUP);
	fx_wait(&fx, 0);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert_uint_eq(done(7)->fused, 0);
	ck_assert_double_gt(done(7)->busbw_gbs, 0);
}

/* Its call tells that its stamps are its own: there is nothing else to wait for. */
TEST(launch_whose_stamps_are_settled_waits_for_its_group_event_all_the_same)
{
	union fx_record head = member(7, GROUP, 1, 100);

	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	head.rec.parent = 6;
	give(fx_coll_api(6, 0, FX_ALLREDUCE, 1024, 90));
	give(head);
	give(fx_kernel(101, 7, 0, 5000, 9000));
	ck_assert_uint_eq(fx.ndone, 0);
	end_group(GROUP);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert_uint_eq(done(7)->fused, 0);
}

/* So much was posted before its kernel ended that its stamps may be another's. */
TEST(launch_whose_stamps_are_never_settled_has_no_gpu_time)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	give(member(7, GROUP, 1, 50));
	end_group(GROUP);
	give(fx_kernel(101, 7, 0, 1000, 2000));
	fx_wait(&fx, 0);
	for (uint64_t i = 0; i < 70; i++) {
		give(member(10 + i, GROUP + 10 + i, 1, 100 + i));
		end_group(GROUP + 10 + i);
	}
	give(fx_kernel(102, 10, 0, 5000, 9000));
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert_uint_eq(done(7)->stamps_refused, 0);
	fx_wait(&fx, 1000 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 2);
	ck_assert_uint_eq(done(10)->stamps_refused, 1);
	ck_assert_int_eq(done(10)->stamps_why, STAMP_DISTRUSTED);
	ck_assert_uint_eq(done(10)->gpu_start_ns, 0);
}

TEST(member_that_is_read_after_its_group_event_is_of_the_launch_all_the_same)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	give(member(7, GROUP, 1, 100));
	end_group(GROUP);
	give(member(8, GROUP, 1, 101));
	give(fx_kernel(101, 7, 0, 5000, 9000));
	give(fx_kernel(102, 8, 0, 5000, 9000));
	fx_wait(&fx, 0);
	ck_assert_uint_eq(fx.ndone, 2);
	ck_assert_uint_eq(done(7)->fused, 2);
}

/* A launch of one operation takes no room, however many are in flight. */
TEST(launches_of_one_operation_push_none_out)
{
	const struct reconstruct_limits limits = { .plans = 2 };

	fx_recon_open_with(&fx, 6, FX_MASK_KERNEL, &limits);
	for (uint64_t i = 0; i < 20; i++) {
		give(member(10 + i, GROUP + i, 1, 100 + i));
		end_group(GROUP + i);
	}
	for (uint64_t i = 0; i < 20; i++)
		give(fx_kernel(101 + i, 10 + i, 0, 10000 * i + 5000, 10000 * i + 9000));
	fx_wait(&fx, 1000 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 20);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->unbatched, 0);
}

TEST(child_of_an_operation_that_is_held_is_late)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	give(member(7, GROUP, 1, 100));
	give(member(8, GROUP, 1, 101));
	give(fx_kernel(101, 7, 0, 5000, 9000));
	give(fx_kernel(102, 7, 0, 15000, 19000));
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->late, 1);
}

TEST(lost_group_event_delays_a_launch_only_for_a_moment)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	give(member(7, GROUP, 1, 100));
	give(fx_kernel(101, 7, 0, 5000, 9000));
	fx_wait(&fx, 60 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert_uint_eq(done(7)->fused, 0);
}

TEST(who_hangs_does_not_hold_the_others_for_ever)
{
	give_three();
	end_group(GROUP);
	end_three();
	fx_wait(&fx, 500 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 0);
	fx_wait(&fx, 600 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 2);
	ck_assert_uint_eq(done(7)->fused, OP_FUSED);	/* 9 may run with them */
	ck_assert_double_lt(done(7)->busbw_gbs, 0);
	give(fx_kernel(104, 9, 1, 8001, 8500));
	fx_wait(&fx, 0);
	ck_assert_uint_eq(fx.ndone, 3);
	ck_assert_uint_eq(done(9)->fused, OP_FUSED);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->unbatched, 3);
}

TEST(refused_stamps_leave_open_who_ran_with_whom)
{
	give_three();
	end_group(GROUP);
	end_three();
	give(fx_kernel(104, 9, 1, 8500, 8001));
	fx_wait(&fx, 0);
	ck_assert_uint_eq(fx.ndone, 3);
	ck_assert_uint_eq(done(7)->fused, OP_FUSED);
	ck_assert_double_lt(done(7)->busbw_gbs, 0);
}

TEST(end_of_a_process_tells_what_was_held)
{
	give_three();
	end_three();
	reconstruct_end(fx.rc, &fx.a.p, fx.now);
	ck_assert_uint_eq(fx.ndone, 3);
	ck_assert(done(7)->complete && !done(9)->complete);
	ck_assert_uint_eq(done(7)->fused, OP_FUSED);
}

TEST(small_pools_push_launches_out_and_say_so)
{
	const struct reconstruct_limits small = { .ops = 4, .plans = 2, .spans = 3, .ended = 8 };

	fx_recon_open_with(&fx, 6, FX_MASK_KERNEL, &small);
	for (uint64_t i = 0; i < 100; i++) {
		give(member(2 * i + 1, GROUP + i, 2, 100 + i));
		give(member(2 * i + 2, GROUP + i, 1, 100 + i));
		give(fx_kernel(1000 + i, 2 * i + 2, 0, 5000 + 10 * i, 5005 + 10 * i));
	}
	reconstruct_end(fx.rc, &fx.a.p, fx.now);
	ck_assert_uint_eq(fx.ndone, 200);
	for (uint32_t i = 0; i < fx.ndone; i++)
		ck_assert(fx.done[i].busbw_gbs < 0);
}

/* Its token may come again before its first members have finished. */
TEST(launch_that_was_pushed_out_does_not_count_in_the_next_one)
{
	const struct reconstruct_limits small = { .plans = 1 };

	fx_recon_open_with(&fx, 6, FX_MASK_KERNEL, &small);
	give(member(1, GROUP, 1, 100));
	give(member(2, GROUP + 1, 1, 100));
	give(member(3, GROUP, 1, 100));
	give(fx_kernel(101, 1, 0, 5000, 9000));
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert_uint_eq(done(1)->fused, OP_FUSED);
	give(fx_kernel(103, 3, 1, 5000, 9000));
	end_group(GROUP);
	fx_wait(&fx, 0);
	ck_assert_uint_eq(fx.ndone, 2);
}

/* ---- any order ------------------------------------------------------------- */

#define LAUNCHES	40
#define MEMBERS		6
#define CHANNELS	8

/* Lanes: heads and Group events on one, kernels on the other. */
struct stream {
	union fx_record head[LAUNCHES * (MEMBERS + 1)], kernel[LAUNCHES * MEMBERS * CHANNELS];
	uint32_t heads, kernels;
	uint32_t batch[LAUNCHES][MEMBERS];	/* smallest member of the batch of each */
};

static uint32_t below(uint32_t n)
{
	return (uint32_t)(fx_random() % n);
}

static uint64_t token_of(uint32_t launch, uint32_t m)
{
	return 10000 + launch * MEMBERS + m;
}

static void add_kernel(struct stream *s, uint64_t token, uint8_t channel, uint64_t start)
{
	uint32_t i = s->kernels++;

	s->kernel[i] = fx_kernel(100000 + i, token, channel, start + below(3),
				 start + 900 + below(3));
}

/* Batch by batch: its members share the channels of their range and their stamps. */
static void add_batch(struct stream *s, uint32_t launch, uint32_t first, uint32_t n,
		      uint64_t start)
{
	uint32_t lo = below(CHANNELS), channels = 1 + below(CHANNELS - lo);

	for (uint32_t m = first; m < first + n; m++) {
		s->batch[launch][m] = first;
		s->head[s->heads++] = member(token_of(launch, m), 900 + launch,
					     (uint8_t)channels, 100 + launch);
		for (uint32_t c = lo; c < lo + channels; c++)
			add_kernel(s, token_of(launch, m), (uint8_t)c, start);
	}
}

static void make_stream(struct stream *s)
{
	uint64_t start = 1000000;

	for (uint32_t launch = 0; launch < LAUNCHES; launch++) {
		for (uint32_t m = 0, n; m < MEMBERS; m += n, start += 1000) {
			n = 1 + below(MEMBERS - m);
			add_batch(s, launch, m, n, start);
		}
		s->head[s->heads++] = fx_head(NCI_EV_GROUP, 1, 900 + launch, 0, 90, 200);
	}
}

TEST_LOOP(any_order_gives_the_same_batches, 0, 10)
{
	struct stream *s = calloc(1, sizeof(*s));
	uint32_t h = 0, k = 0;

	fx_seed((uint64_t)_i);
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	make_stream(s);
	while (h < s->heads || k < s->kernels) {
		for (uint32_t n = below(30); n && h < s->heads; n--)
			give(s->head[h++]);
		for (uint32_t n = below(100); n && k < s->kernels; n--)
			give(s->kernel[k++]);
		fx_wait(&fx, FX_MS / 8);
	}
	ck_assert_uint_eq(fx.ndone, LAUNCHES * MEMBERS);
	for (uint32_t i = 0; i < fx.ndone; i++) {
		uint32_t id = (uint32_t)(fx.done[i].token - token_of(0, 0)), size = 0;
		const uint32_t *batch = s->batch[id / MEMBERS];

		for (uint32_t m = 0; m < MEMBERS; m++)
			size += batch[m] == batch[id % MEMBERS];
		ck_assert_uint_eq(fx.done[i].fused, size > 1 ? size : 0);
	}
	free(s);
}

int main(void)
{
	return fx_run(NULL, teardown);
}
