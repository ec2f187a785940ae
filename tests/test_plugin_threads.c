/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads at once: inits, lanes, names, stops on other threads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "shmring/producer.h"
#include "tests/fixture.h"
#include "tests/plugin_driver.h"

/* The words of a segment in the making are plain ones: callbacks pay for no more. */
#ifdef __SANITIZE_THREAD__
#define MEETINGS 0
#else
#define MEETINGS 20
#endif
#define THREADS 16
#define ROUNDS	200

static struct pd pd;
static pthread_barrier_t barrier;

static void setup(void)
{
	pd_open(&pd, "trace");
}

static void run(unsigned int n, void *(*what)(void *))
{
	pthread_t thread[256];

	pthread_barrier_init(&barrier, NULL, n);
	for (uintptr_t i = 0; i < n; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, what, (void *)i), 0);
	for (unsigned int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&barrier);
}

static void *contexts[THREADS];

static void *init_and_record(void *arg)
{
	uintptr_t i = (uintptr_t)arg;
	struct nccl_descr_v6 d = { .type = NCCL_GROUP };
	void *h;
	int mask;

	pthread_barrier_wait(&barrier);
	pd.v6->init(&contexts[i], 7, &mask, "at once", 1, THREADS, (int)i, NULL);
	for (int k = 0; k < ROUNDS; k++) {
		pd.v6->startEvent(contexts[i], &h, &d);
		pd.v6->stopEvent(h);
	}
	pthread_barrier_wait(&barrier);		/* to each thread a lane of its own */
	return NULL;
}

TEST(communicators_created_at_once_are_all_recorded)
{
	unsigned int seen[THREADS] = { 0 }, ranks = 0;

	run(THREADS, init_and_record);
	pd_read(&pd);
	ck_assert_uint_eq(pd_segments(&pd), 1);
	ck_assert_uint_eq(pd.live.comms, THREADS);
	ck_assert_uint_eq(pd.live.comms_open, THREADS);
	ck_assert_uint_eq(pd.records, THREADS * ROUNDS);
	for (unsigned int i = 0; i < pd.records; i++)
		seen[((const struct nci_record *)&pd.record[i])->comm]++;
	for (unsigned int i = 0; i < THREADS; i++) {
		ck_assert_uint_eq(seen[i], ROUNDS);
		ranks |= 1u << pd_comm(&pd, i).rank;
	}
	ck_assert_uint_eq(ranks, (1u << THREADS) - 1);
}

static void *init_and_finalize(void *arg)
{
	void *context;
	int mask;

	pthread_barrier_wait(&barrier);
	for (int k = 0; k < 20; k++) {
		pd.v6->init(&context, (uintptr_t)arg, &mask, "short", 1, 2, 0, NULL);
		pd.v6->finalize(context);
	}
	return NULL;
}

TEST(inits_and_finalizes_at_once_leave_nothing_open)
{
	run(THREADS, init_and_finalize);
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.comms_open, 0);
	ck_assert_uint_eq(pd.live.comms, 20 * THREADS);
}

static void *one_event(void *arg)
{
	struct nccl_descr_v6 d = { .type = NCCL_GROUP };
	void *h;

	(void)arg;
	pd.v6->startEvent(pd.context, &h, &d);
	pthread_barrier_wait(&barrier);		/* all of them alive at once */
	pd.v6->stopEvent(h);
	return NULL;
}

TEST(threads_beyond_the_last_lane_are_refused_and_counted)
{
	pd_init(&pd);
	run(200, one_event);
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.lanes, NCI_MAX_LANES);
	ck_assert_uint_eq(pd.records, NCI_MAX_LANES);
	ck_assert_uint_eq(pd.live.no_lane, 200 - NCI_MAX_LANES);
}

static void *holder(void *arg)
{
	struct nccl_descr_v6 d = { .type = NCCL_GROUP };
	void *h;

	(void)arg;
	pd.v6->startEvent(pd.context, &h, &d);
	pthread_barrier_wait(&barrier);		/* all lanes are held */
	pthread_barrier_wait(&barrier);		/* ... and were asked for */
	return h;
}

static unsigned int refused_of(unsigned int n)
{
	struct nccl_descr_v6 d = { .type = NCCL_GROUP };
	unsigned int refused = 0;
	void *h;

	for (unsigned int i = 0; i < n; i++) {
		pd.v6->startEvent(pd.context, &h, &d);
		refused += !h;
		pd.v6->stopEvent(h);
	}
	return refused;
}

TEST(thread_without_a_lane_gets_one_when_others_have_ended)
{
	pthread_t thread[NCI_MAX_LANES];

	pd_init(&pd);
	pthread_barrier_init(&barrier, NULL, NCI_MAX_LANES + 1);
	for (int i = 0; i < NCI_MAX_LANES; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, holder, NULL), 0);
	pthread_barrier_wait(&barrier);
	ck_assert_uint_eq(refused_of(5000), 5000);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < NCI_MAX_LANES; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_lt(refused_of(5000), 2500);
	pthread_barrier_destroy(&barrier);
}

TEST(lanes_of_dead_threads_are_used_again)
{
	pd_init(&pd);
	for (int i = 0; i < 300; i++)
		run(1, one_event);
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 300);
	ck_assert_uint_le(pd.live.lanes, 4);	/* a tid lingers for a moment after the join */
	ck_assert_uint_eq(pd.live.no_lane, 0);
}

static void *handles[THREADS][ROUNDS];

static void *start_many(void *arg)
{
	struct nccl_descr_v6 d = { .type = NCCL_COLL };
	uintptr_t i = (uintptr_t)arg;

	for (int k = 0; k < ROUNDS; k++)
		pd.v6->startEvent(pd.context, &handles[i][k], &d);
	pthread_barrier_wait(&barrier);
	i = (i + 1) % THREADS;			/* another thread's */
	for (int k = 0; k < ROUNDS; k++)
		pd.v6->stopEvent(handles[i][k]);
	return NULL;
}

TEST(events_stopped_on_other_threads_are_recorded_once)
{
	static bool seen[NCI_MAX_LANES][SHMRING_SLOTS];

	pd_init(&pd);
	run(THREADS, start_many);
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, THREADS * ROUNDS);
	for (unsigned int i = 0; i < pd.records; i++) {
		uint64_t token = ((const struct nci_record *)&pd.record[i])->token;

		ck_assert(!seen[nci_token_lane(token)][nci_token_slot(token)]);
		seen[nci_token_lane(token)][nci_token_slot(token)] = true;
	}
}

static char names[THREADS][64][24];

static void *use_names(void *arg)
{
	struct nccl_descr_v6 d = { .type = NCCL_COLL_API };
	uintptr_t i = (uintptr_t)arg;
	void *h;

	pthread_barrier_wait(&barrier);
	for (int k = 0; k < 64; k++) {
		d.collApi.func = names[i][k];
		pd.v6->startEvent(pd.context, &h, &d);
		pd.v6->stopEvent(h);
	}
	pthread_barrier_wait(&barrier);
	return NULL;
}

TEST(new_names_seen_at_once_are_published_once)
{
	unsigned int times[64] = { 0 }, unknown = 0;

	for (int i = 0; i < THREADS; i++)
		for (int k = 0; k < 64; k++)
			snprintf(names[i][k], sizeof(names[i][k]), "%d", k);
	pd_init(&pd);
	run(THREADS, use_names);
	pd_read(&pd);
	for (uint16_t id = 1; id <= pd.live.strings; id++) {
		const char *text = pd_string(&pd, id);

		if (text[0] >= '0' && text[0] <= '9')
			ck_assert_uint_eq(times[atoi(text)]++, 0);
	}
	for (unsigned int i = 0; i < pd.records; i++) {
		const struct nci_ev_coll_api *ev = (const void *)&pd.record[i];

		unknown += !ev->func;
	}
	/* Whoever meets a name in the making, for too long, does without it. */
	ck_assert_uint_le(unknown, pd.live.no_string);
}

TEST(names_beyond_the_table_are_unknown_and_counted)
{
	static char text[400][8];
	const struct nci_ev_coll_api *ev;
	uint32_t known;

	pd_init(&pd);
	pd_read(&pd);
	known = pd.live.strings;
	for (int round = 0; round < 2; round++)
		for (unsigned int i = 0; i < 400; i++) {
			snprintf(text[i], sizeof(text[i]), "n%u", i);
			pd_stop(&pd, PD_START(&pd, NCCL_COLL_API, .func = text[i]));
		}
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 800);
	for (unsigned int i = 0; i < 800; i++) {
		ev = (const struct nci_ev_coll_api *)pd_record(&pd, NCI_EV_COLL_API, i);
		if (i % 400 < SHMRING_STRINGS - known)
			ck_assert_str_eq(pd_string(&pd, ev->func), text[i % 400]);
		else
			ck_assert_uint_eq(ev->func, 0);
	}
	ck_assert_uint_ge(pd.live.no_string, 400 - (SHMRING_STRINGS - known));
}

TEST(long_names_are_cut_and_stay_one_name)
{
	static char a[128], b[128];
	const struct nci_ev_coll_api *ev[2];

	for (int i = 0; i < 127; i++)
		a[i] = b[i] = 'x';
	pd_init(&pd);
	pd_stop(&pd, PD_START(&pd, NCCL_COLL_API, .func = a));
	pd_stop(&pd, PD_START(&pd, NCCL_COLL_API, .func = b));
	pd_read(&pd);
	for (unsigned int i = 0; i < 2; i++)
		ev[i] = (const struct nci_ev_coll_api *)pd_record(&pd, NCI_EV_COLL_API, i);
	ck_assert_uint_ne(ev[0]->func, 0);
	ck_assert_uint_eq(ev[0]->func, ev[1]->func);
}

/* Threads of NCCL's network plugins stop what was never started: a NULL handle. */
static void *stop_nothing(void *arg)
{
	union nccl_args_v4 args = { .netPlugin = { NULL } };
	_Atomic bool *over = arg;

	pthread_barrier_wait(&barrier);
	while (!atomic_load_explicit(over, memory_order_relaxed)) {
		pd.v6->recordEventState(NULL, NCCL_NET_PLUGIN_UPDATE, &args);
		pd.v6->stopEvent(NULL);
	}
	return NULL;
}

TEST_LOOP(stops_of_nothing_while_the_segment_is_made_do_nothing, 0, MEETINGS)
{
	_Atomic bool over = false;
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	ck_assert_int_eq(pthread_create(&thread, NULL, stop_nothing, &over), 0);
	pthread_barrier_wait(&barrier);
	pd_init(&pd);
	atomic_store_explicit(&over, true, memory_order_relaxed);
	pthread_join(thread, NULL);
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.unknown_state, 0);
}

int main(void)
{
	return fx_run(setup, NULL);
}
