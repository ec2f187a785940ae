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

/* ---- a GPU for each thread ------------------------------------------------------------ */

#define GPUS	4

struct gpu_thread {
	pthread_t thread;
	bool first, second;	/* KernelCh was on at the Send, and at the Recv */
};

static pthread_barrier_t all_there;

static void *send_at_once(void *arg)
{
	struct gpu_thread *t = arg;
	void *group;

	pthread_barrier_wait(&all_there);
	t->first = is_watched_now();
	group = start(NCCL_GROUP_API, NULL, 2, false);
	play(NCCL_P2P_API, "Send");
	t->second = is_watched_now();
	play(NCCL_P2P_API, "Recv");
	play(NCCL_P2P, "Send");
	play(NCCL_P2P, "Recv");
	ncclProfiler_v6.stopEvent(group);
	pthread_barrier_wait(&all_there);	/* a lane is free again when its thread is gone */
	return NULL;
}

/* Nobody may change it any more: so it must have been off before they began. */
START_TEST(ranks_of_one_process_that_send_at_once_are_not_watched_for_good)
{
	void *contexts[GPUS];

	pthread_barrier_init(&all_there, NULL, GPUS);
	for (int i = 0; i < TRIALS / 10; i++) {
		struct gpu_thread t[GPUS] = { 0 };

		for (int g = 0; g < GPUS; g++)
			ck_assert_int_eq(ncclProfiler_v6.init(&contexts[g], 7, &mask, "w", 1, GPUS,
							      g, NULL), 0);
		context = contexts[0];
		ck_assert(!is_watched_now());
		for (int g = 0; g < GPUS; g++)
			ck_assert_int_eq(pthread_create(&t[g].thread, NULL, send_at_once, &t[g]),
					 0);
		for (int g = 0; g < GPUS; g++) {
			pthread_join(t[g].thread, NULL);
			ck_assert_msg(!t[g].first || t[g].second, "trial %d: it would hang", i);
		}
		now.mono_ns = clock_ns(CLOCK_MONOTONIC);
		now.real_ns = clock_ns(CLOCK_REALTIME);
		decide_at(true);
		ck_assert_uint_eq(reason(), NCI_REASON_THREADS);
		ck_assert_uint_eq(told()->kernels, NCI_KERNELS_NEVER);
		for (int g = 0; g < GPUS; g++)
			ncclProfiler_v6.finalize(contexts[g]);
	}
	pthread_barrier_destroy(&all_there);
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(no_first_send_is_watched_without_its_receive),
		FX_TEST(ranks_of_one_process_that_send_at_once_are_not_watched_for_good),
	};

	return fx_run(setup, NULL, tests, FX_COUNT(tests));
}
