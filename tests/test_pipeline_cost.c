/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon's stages do for one operation, in instructions: from checked events to sums,
 * links, log and detectors; and among very many communicators, whose ranks are more than there is
 * room for GPUs, not much more than among few.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/feed.h"
#include "tests/fixture.h"
#include "tests/fx_count.h"

#define WARM	64	/* operations of each process that fill tables */
#define COUNTED	1	/* a trap takes microseconds: bench_pipeline --mix counts thousands */

#if FX_CAN_COUNT

/*
 * As gcc 12 compiles them with -O2, with all of the C library's.  Whoever makes one of them
 * higher has a reason for it; whoever makes one lower writes that down here, so that it stays.
 */
static const struct {
	struct feed_mix mix;
	uint32_t instructions;	/* of one operation of one rank */
} costs[] = {
	{ { "ops", 0, 0, 8 }, 2985 },
	{ { "kernel, 1 channel", 1, 0, 8 }, 5940 },
	{ { "kernel, 16 channels", 16, 0, 8 }, 11690 },
	{ { "net, 16 channels, 32 proxy ops", 16, 32, 8 }, 38060 },
};

static volatile uint64_t instructions;

static void on_trap(int signal)
{
	(void)signal;
	instructions++;
}

static void feed_ops(struct feed *f, uint64_t from, uint64_t n)
{
	f->nrecords = 0;
	for (uint64_t i = 0; i < n; i++)
		feed_make(f, from + i);
}

static void feed_all(struct feed *f, uint64_t now_ns)
{
	for (uint32_t p = 0; p < FEED_PROCESSES; p++)
		feed_run(f, p, now_ns);
}

/* Instructions of one operation, when all communicators have had some. */
static uint64_t cost_of_op(const struct feed_mix *mix, uint32_t ncomms)
{
	const struct sigaction action = { .sa_handler = on_trap };
	uint64_t warm = (uint64_t)WARM + 2 * ncomms, ops;
	struct feed f;

	feed_open(&f, mix, ncomms, (uint32_t)warm);
	feed_ops(&f, 0, warm);
	feed_all(&f, feed_time_ns(warm));
	ops = f.ops;
	feed_ops(&f, warm, COUNTED);
	ck_assert_int_eq(sigaction(SIGTRAP, &action, NULL), 0);
	instructions = 0;
	fx_trap(true);
	feed_all(&f, feed_time_ns(warm + COUNTED));
	fx_trap(false);
	ops = f.ops - ops;
	feed_close(&f);
	ck_assert_uint_gt(ops, 0);
	return instructions / ops;
}

TEST_LOOP(operation_takes_no_more_instructions_than_it_did, 0, FX_COUNT(costs))
{
	uint64_t cost = cost_of_op(&costs[_i].mix, 1), most = costs[_i].instructions;

	printf("# %s: %llu instructions\n", costs[_i].mix.name, (unsigned long long)cost);
	fflush(stdout);
	ck_assert_msg(cost <= most + most / 100 * FX_TOLERATED_PERCENT(10),
		      "%s: %llu instructions, %llu were enough", costs[_i].mix.name,
		      (unsigned long long)cost, (unsigned long long)most);
}

#define MORE	4500	/* instructions of one operation among so many communicators */

/* Of 1600 ranks with 8 sizes each most of what is kept of one has made room for another's. */
TEST(operation_takes_about_as_long_among_many_communicators)
{
	uint64_t few = cost_of_op(&costs[1].mix, 10), many = cost_of_op(&costs[1].mix, 200);

	printf("# 10 communicators: %llu instructions, 200: %llu\n", (unsigned long long)few,
	       (unsigned long long)many);
	fflush(stdout);
	ck_assert_uint_le(many, few + MORE + MORE / 100 * FX_TOLERATED_PERCENT(10));
}

#endif

int main(void)
{
#if FX_CAN_COUNT
	return fx_run(NULL, NULL);
#else
	printf("1..0 # SKIP only optimized code for x86-64 is counted\n");
	return EXIT_SUCCESS;
#endif
}
