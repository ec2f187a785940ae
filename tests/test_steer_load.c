/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thousand switches of the level while threads do what NCCL's do: each call reads the
 * mask before it tells us anything, and operations keep what they were posted with.  No
 * handle may be another event's, none be left over, and no time be longer than it was.
 */
#include "tests/fx_steer.h"

#define THREADS		4
#define SWITCHES	1000
#define STEPS		3
#define STEP_BYTES	512

static _Atomic uint64_t calls, misread;
static _Atomic bool done;

/* ---- NCCL's part ---------------------------------------------------------------------- */

static uint32_t latch(void)
{
	return (uint32_t)__atomic_load_n(&mask, __ATOMIC_RELAXED);
}

static void *begin(const struct nccl_descr_v6 *d)
{
	struct nccl_descr_v6 copy = *d;
	void *handle = (void *)UINT64_C(0xdead);

	ncclProfiler_v6.startEvent(context, &handle, &copy);
	return handle;
}

/* What NCCL carries as this event's handle must still be this event. */
static void check_handle(void *handle, uint64_t type, uint64_t begun)
{
	const struct nci_record *rec;

	if (!handle || handle == (void *)NCI_TOKEN_UNRECORDED)
		return;
	rec = shmring_find(&process_self.ring, (uint64_t)handle);
	if (!rec || NCI_EVENT_BIT(rec->type) != type || rec->start < begun ||
	    rec->start > clock_ticks(process_self.clock))
		atomic_fetch_add(&misread, 1);
}

static void finish(void *handle, uint64_t type, uint64_t begun)
{
	check_handle(handle, type, begun);
	if (handle)
		ncclProfiler_v6.stopEvent(handle);
}

static void whole(const struct nccl_descr_v6 *d)
{
	uint64_t begun = clock_ticks(process_self.clock);

	finish(begin(d), d->type, begun);
}

/* Whatever the level has been meanwhile, all of its steps were counted. */
static void check_sums(uint64_t handle)
{
	const struct nci_ev_proxy_op *op =
		(const struct nci_ev_proxy_op *)shmring_find(&process_self.ring, handle);

	if (!op || op->steps_done != STEPS || op->bytes != STEPS * STEP_BYTES)
		atomic_fetch_add(&misread, 1);
}

static void play_proxy(uint32_t latched, void *coll)
{
	struct nccl_descr_v6 op = { .type = NCCL_PROXY_OP, .parentObj = coll };
	uint64_t begun = clock_ticks(process_self.clock), size = STEP_BYTES;
	void *handle;

	if (!(latched & (NCCL_PROXY_OP | NCCL_PROXY_STEP)))
		return;
	op.proxyOp.pid = getpid();
	op.proxyOp.isSend = 1;
	handle = begin(&op);
	for (int i = 0; i < STEPS; i++) {
		struct nccl_descr_v6 step = { .type = NCCL_PROXY_STEP, .parentObj = handle };
		void *s1;

		step.proxyStep.step = i;
		s1 = begin(&step);
		if (s1) {
			ncclProfiler_v6.recordEventState(s1, NCCL_STEP_SEND_GPU_WAIT, NULL);
			ncclProfiler_v6.recordEventState(s1, NCCL_STEP_SEND_PEER_WAIT, NULL);
			ncclProfiler_v6.recordEventState(s1, NCCL_STEP_SEND_WAIT, (void *)&size);
		}
		sched_yield();
		finish(s1, NCCL_PROXY_STEP, begun);
	}
	if (handle)
		check_sums((uint64_t)handle);
	finish(handle, NCCL_PROXY_OP, begun);
}

static void play_group(void)
{
	struct nccl_descr_v6 d = { .type = NCCL_GROUP_API };
	uint64_t begun = clock_ticks(process_self.clock);
	uint32_t latched = latch();
	void *group, *coll = NULL;

	d.groupApi.groupDepth = 1;
	group = begin(&d);
	if (latched & ~(uint32_t)(NCCL_GROUP_API | NCCL_PROXY_CTRL)) {
		whole(&(struct nccl_descr_v6){ .type = NCCL_COLL_API, .parentObj = group });
		d = (struct nccl_descr_v6){ .type = NCCL_COLL };
		coll = begin(&d);
		finish(coll, NCCL_COLL, begun);
	}
	if (latched & NCCL_KERNEL_CH)
		whole(&(struct nccl_descr_v6){ .type = NCCL_KERNEL_CH, .parentObj = coll });
	play_proxy(latched, coll);
	finish(group, NCCL_GROUP_API, begun);
	atomic_fetch_add(&calls, 1);
}

static void *play_on(void *arg)
{
	(void)arg;
	while (!atomic_load(&done))
		play_group();
	return NULL;
}

/* ---- what is left ----------------------------------------------------------------------- */

static void no_slot_is_left_over(uint32_t lane)
{
	struct nci_slot *pool = process_self.ring.slots + lane * SHMRING_LANE_SLOTS;

	for (uint32_t i = 0; pool && i < SHMRING_SLOTS; i++)
		ck_assert_msg(!shmring_slot(pool, i)->token ||
			      shmring_slot(pool, i)->token & NCI_TOKEN_FREE,
			      "lane %u, slot %u is still taken by event %u", lane, i,
			      shmring_slot(pool, i)->type);
}

TEST(thousand_switches_under_load_lose_and_misread_nothing)
{
	static const uint32_t levels[] = { NCI_LEVEL_OFF, NCI_LEVEL_OPS, NCI_LEVEL_KERNEL,
					   NCI_LEVEL_NET, NCI_LEVEL_TRACE };
	pthread_t thread[THREADS];
	uint32_t lanes;

	write_entry(NCI_LEVEL_NET, NCI_SAMPLE_ALL, 0);
	init();
	pass(3600 * SECOND);	/* the threads look by the real clock, which stays behind */
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, play_on, NULL), 0);
	for (int i = 0; i < SWITCHES; i++) {
		uint64_t seen = atomic_load(&calls);

		write_entry(levels[fx_random() % 5], i % 2 ? NCI_SAMPLE_ALL : NCI_SAMPLE_BUDGET, 0);
		pass(ORDERS_LOOK_NS);
		decide(false);
		ck_assert_uint_eq(process_self.ring.live->level, file.entry[0].level);
		ck_assert_uint_eq(latch() & ~level_events(6), 0);
		while (atomic_load(&calls) < seen + 20)
			sched_yield();
	}
	atomic_store(&done, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(atomic_load(&misread), 0);
	lanes = atomic_load(&process_self.ring.live->lanes);
	ck_assert_uint_ge(lanes, THREADS);
	for (uint32_t i = 0; i < lanes; i++) {
		ck_assert_uint_eq(process_self.ring.directory[i].stale, 0);
		ck_assert_uint_eq(process_self.ring.directory[i].pool_full, 0);
		no_slot_is_left_over(i);
	}
	ck_assert_uint_ge(told()->stores, SWITCHES / 2);
}

int main(void)
{
	return fx_run(setup, NULL);
}
