/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread sends for the first time while another one switches KernelCh as fast as it
 * can.  NCCL reads its mask at the begin of each call, before we hear of the call: what
 * the two calls of one group have read must never be what hangs a job.
 */
#include "tests/fx_steer.h"

#define TRIALS	400

struct pair {
	bool sends_first;
	bool first, second;		/* KernelCh was on at that call */
	_Atomic bool go, done;
};

static bool is_watched_now(void)
{
	return __atomic_load_n(&mask, __ATOMIC_RELAXED) & NCCL_KERNEL_CH;
}

static void *send_and_receive(void *arg)
{
	struct pair *p = arg;

	while (!atomic_load(&p->go))
		;
	for (volatile uint64_t i = fx_random() % 400; i; i--)
		;		/* not always at the same moment */
	p->first = is_watched_now();
	start(NCCL_GROUP_API, NULL, 2, false);
	play(NCCL_P2P_API, p->sends_first ? "Send" : "Recv");
	for (volatile int i = 300; i; i--)
		;
	p->second = is_watched_now();
	atomic_store(&p->done, true);
	return NULL;
}

/* Bursts of half a second, and never twice at the same half. */
static void switch_until(const struct pair *p)
{
	for (uint64_t i = 0; !atomic_load(&p->done); i++) {
		now.real_ns = 1700000000 * SECOND + (i % 2) * 500 * MS;
		s->plan = (struct burst_plan){ 1000, 500000 };
		s->rate = (struct burst_rate){ .from_ns = now.real_ns, .rate = 1 };
		decide_at(true);
	}
}

START_TEST(no_first_send_is_watched_without_its_receive)
{
	uint64_t switches = 0;

	setenv("NCCLINSP_SETTLE", "0", 1);
	for (int i = 0; i < TRIALS; i++) {
		struct pair p = { .sends_first = i % 2 };
		pthread_t thread;

		init();
		atomic_store(&s->fresh, 0);
		ck_assert_int_eq(pthread_create(&thread, NULL, send_and_receive, &p), 0);
		atomic_store(&p.go, true);
		switch_until(&p);
		pthread_join(thread, NULL);
		ck_assert_msg(!(p.sends_first ? p.first && !p.second : p.second && !p.first),
			      "trial %d: the job would hang", i);
		switches += atomic_load(&s->switches);
		ncclProfiler_v6.finalize(context);
	}
	ck_assert_uint_gt(switches, 0);
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(no_first_send_is_watched_without_its_receive),
	};

	return fx_run(setup, NULL, tests, FX_COUNT(tests));
}
