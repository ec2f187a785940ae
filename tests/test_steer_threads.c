/* SPDX-License-Identifier: Apache-2.0 */
/* Real threads, which send for the first time all at once while another one decides. */
#include "tests/fx_steer.h"

#define TRIALS	40
#define GPUS	4

struct gpu_thread {
	pthread_t thread;
	bool first, second;	/* KernelCh was on at the Send, and at the Recv */
};

static pthread_barrier_t all_there;

static bool is_watched_now(void)
{
	return __atomic_load_n(&mask, __ATOMIC_RELAXED) & NCCL_KERNEL_CH;
}

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

/* Nobody may change it any more: so it is off before they begin. */
TEST(ranks_of_one_process_that_send_at_once_are_not_watched_for_good)
{
	void *contexts[GPUS];

	unsetenv("NCCLINSP_SETTLE");
	pthread_barrier_init(&all_there, NULL, GPUS);
	for (int i = 0; i < TRIALS; i++) {
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
		decide(false);
		ck_assert_uint_eq(seen(), NCI_SEEN_SENDERS);
		ck_assert(!is_watched_now());
		for (int g = 0; g < GPUS; g++)
			ncclProfiler_v6.finalize(contexts[g]);
	}
	pthread_barrier_destroy(&all_there);
}

int main(void)
{
	return fx_run(setup, NULL);
}
