/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that lie, tear and rot under the reader. */
#include "reader/read/drain.h"

#include <string.h>
#include <unistd.h>

#include "tests/fixture.h"
#include "tests/fixture_daemon.h"

static struct fx_daemon fx;
static struct fx_job job;

static void set64(_Atomic uint64_t *at, uint64_t value)
{
	atomic_store_explicit(at, value, memory_order_relaxed);
}

static void end_backwards(void)    { set64(&job.ring.directory[0].end, 10); }
static void end_beyond_begin(void) { set64(&job.ring.directory[0].end, UINT64_MAX); }
static void begin_huge(void)       { set64(&job.ring.directory[0].begin, UINT64_MAX); }
static void no_record(void)
{
	job.lane->out->ring[job.lane->out->next & (SHMRING_LINES - 1)].word[0] = 0;
	set64(&job.ring.directory[0].begin, job.lane->out->next + 1);
	set64(&job.ring.directory[0].end, job.lane->out->next + 1);
}
static void fewer_lanes(void)
{
	atomic_store_explicit(&job.ring.live->lanes, 0, memory_order_relaxed);
}
static void truncated(void)        { ck_assert_int_eq(ftruncate(job.ring.fd, 100), 0); }
static void ring_cut(void)
{
	fx_job_publish_range(job.lane, 100, 110);
	ck_assert_int_eq(ftruncate(job.ring.fd, (off_t)job.ring.directory[0].offset), 0);
}
static void next_lane_outside(void)
{
	job.ring.directory[1].lines = SHMRING_LINES;
	job.ring.directory[1].slots = SHMRING_SLOTS;
	job.ring.directory[1].offset = UINT64_MAX - 4095;
	atomic_store_explicit(&job.ring.directory[1].state, NCI_LANE_READY, memory_order_relaxed);
	atomic_store_explicit(&job.ring.live->lanes, 2, memory_order_relaxed);
}

static void (*const lies[])(void) = {
	end_backwards, end_beyond_begin, begin_huge, no_record, fewer_lanes, truncated,
	ring_cut, next_lane_outside,
};

TEST_LOOP(segment_that_lies_is_dropped_and_never_read_again, 0, FX_COUNT(lies))
{
	fx_daemon_open_job(&fx, &job);
	fx_job_publish_range(job.lane, 0, 100);
	fx_daemon_step(&fx, 1);
	ck_assert_uint_eq(fx.seen.events, 100);
	lies[_i]();
	fx_daemon_step(&fx, 1);
	fx_daemon_step(&fx, 1);
	ck_assert_ptr_null(fx_process(&fx, 0));
	ck_assert_uint_eq(discover_refused(fx.discover), 1);
	ck_assert_uint_eq(fx.seen.forgotten, 1);
	for (int i = 0; i < 5; i++)
		fx_daemon_step(&fx, 3000);
	ck_assert_uint_eq(fx.seen.appeared, 1);
	ck_assert_uint_eq(discover_refused(fx.discover), 1);
	fx_daemon_close(&fx);
}

TEST(torn_end_of_a_lane_is_not_delivered)
{
	fx_daemon_open_job(&fx, &job);
	fx_job_publish_range(job.lane, 0, 10);
	set64(&job.ring.directory[0].begin, 12);	/* its writer died at `begun` */
	fx_daemon_step(&fx, 1);
	fx_daemon_step(&fx, 1);
	ck_assert_uint_eq(fx.seen.events, 10);
	ck_assert_ptr_nonnull(fx_process(&fx, 0));
	fx_daemon_close(&fx);
}

/* Numbers that find the edges: small, just around sizes, huge, or anything. */
static uint64_t odd_number(void)
{
	static const uint64_t edges[] = {
		0, 1, 2, 63, 64, 4095, 4096, 4097, 1 << 20, UINT32_MAX, INT64_MAX, UINT64_MAX,
		UINT64_C(1) << 62,
	};

	return fx_random() % 3 ? edges[fx_random() % FX_COUNT(edges)] + fx_random() % 3 - 1
			  : fx_random();
}

static void spoil(size_t bytes)
{
	uint8_t *base = (uint8_t *)job.ring.header;

	for (int i = 0; i < 20; i++) {
		uint64_t n = odd_number();

		memcpy(base + sizeof(struct nci_header) + fx_random() % (bytes / 8) * 8, &n,
		       sizeof(n));
	}
	for (int i = 0; i < 50; i++)
		((uint64_t *)job.lane->out->ring)[fx_random() % (SHMRING_LINES * 8)] = odd_number();
	for (int i = 0; i < 50; i++)
		((uint64_t *)job.lane->pool)[fx_random() % (SHMRING_SLOTS * 16)] = odd_number();
}

TEST_LOOP(random_damage_never_harms_the_reader, 0, 8)
{
	char path[FX_PATH];

	fx_seed((uint64_t)_i);
	for (int round = 0; round < 20; round++) {
		const struct live_slot *slots;

		fx_daemon_open_job(&fx, &job);
		for (uint64_t n = 0; n < 300; n++)
			fx_job_start(job.lane, n);
		for (int i = 0; i < 20; i++) {
			fx_job_publish_range(job.lane, 0, fx_random() % 3000);
			/* live block and directory are the first of the tables */
			spoil(i % 2 ? 512 : job.ring.tables_bytes - sizeof(struct nci_header));
			fx_daemon_step(&fx, 1);
			if (fx_process(&fx, 0))
				drain_slots(fx.drain, fx_process(&fx, 0), &slots);
		}
		fx_daemon_close(&fx);
		shmring_forget(&job.ring);
		unlink(fx_shm_path(&fx, job.name, path));
	}
}

int main(void)
{
	return fx_run(NULL, NULL);
}
