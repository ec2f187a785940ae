/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/drain.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fixture.h"
#include "tests/fixture_daemon.h"

static const char *const backends[] = { "epoll", "io_uring" };

static struct fx_daemon fx;
static struct shmring ring;
static struct shmring_lane *lane;
static char name[80];

/* A daemon that reads one job of this process, with one lane. */
static bool open_both(int backend)
{
	if (!fx_daemon_open(&fx, backends[backend]))
		return false;
	fx_job_open(&ring, fx.dir, name);
	lane = shmring_lane_new(&ring, gettid());
	fx_daemon_step(&fx, 3000);
	ck_assert_uint_eq(fx.seen.appeared, 1);
	return true;
}

static void publish(uint64_t from, uint64_t to)
{
	for (uint64_t n = from; n < to; n++)
		fx_job_publish(lane, n);
}

START_TEST(records_of_both_sizes_arrive_whole_and_in_order)
{
	const struct process *p;

	if (!open_both(_i))
		return;
	for (uint64_t n = 0; n < 20000; n++) {
		if (n % 3)
			fx_job_publish(lane, n);
		else
			fx_job_publish_coll(lane, n);
		if (n % 1000 == 999)
			fx_daemon_step(&fx, 1);
	}
	p = fx_process(&fx, 0);
	ck_assert_uint_eq(fx.seen.events, 20000);
	ck_assert_uint_eq(fx.seen.disorder, 0);
	ck_assert_uint_eq(p->records, 20000);
	ck_assert_uint_eq(p->bytes, (20000 + 6667) * 64);
	ck_assert_uint_eq(p->loss.overrun, 0);
	ck_assert_uint_eq(p->loss.before, 0);
	ck_assert_uint_eq(p->loss.rejected, 0);
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(lapped_reader_counts_to_the_record_what_it_missed)
{
	const struct process *p;

	if (!open_both(_i))
		return;
	publish(0, 1);
	fx_daemon_step(&fx, 1);
	publish(1, 10000);
	fx_daemon_step(&fx, 1);
	p = fx_process(&fx, 0);
	ck_assert_uint_eq(fx.seen.last_parent, 9999);
	ck_assert_uint_eq(p->records + p->loss.overrun, 10000);
	ck_assert_uint_gt(p->loss.overrun, 10000 - SHMRING_LINES - 10);
	ck_assert_uint_eq(p->loss.before, 0);
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(what_was_overwritten_before_we_came_is_no_loss_of_ours)
{
	const struct process *p;

	if (!fx_daemon_open(&fx, backends[_i]))
		return;
	fx_job_open(&ring, fx.dir, name);
	lane = shmring_lane_new(&ring, gettid());
	publish(0, 10000);
	fx_daemon_step(&fx, 3000);
	p = fx_process(&fx, 0);
	ck_assert_uint_eq(p->records + p->loss.before, 10000);
	ck_assert_uint_gt(p->loss.before, 0);
	ck_assert_uint_eq(p->loss.overrun, 0);
	fx_daemon_close(&fx);
}
END_TEST

/* Lanes belong to threads that live: each of these makes one, and waits. */
#define LANES 12
static pthread_barrier_t made, done;

static void *own_a_lane(void *arg)
{
	struct shmring_lane **out = arg;

	*out = shmring_lane_new(&ring, gettid());
	pthread_barrier_wait(&made);
	pthread_barrier_wait(&done);
	return NULL;
}

START_TEST(one_poll_takes_more_than_its_buffer_holds)
{
	struct shmring_lane *lanes[LANES];
	pthread_t thread[LANES];

	if (!open_both(_i))
		return;
	pthread_barrier_init(&made, NULL, LANES + 1);
	pthread_barrier_init(&done, NULL, LANES + 1);
	for (int i = 0; i < LANES; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, own_a_lane, &lanes[i]), 0);
	pthread_barrier_wait(&made);
	for (int i = 0; i < LANES; i++)
		for (uint64_t n = 0; n < 4000; n++)
			fx_job_publish(lanes[i], n);
	fx_daemon_step(&fx, 1);		/* more lanes than the first look covers */
	fx_daemon_step(&fx, 1);
	ck_assert_uint_eq(fx.seen.events, LANES * 4000);
	ck_assert_uint_eq(fx.seen.disorder, 0);
	ck_assert_uint_eq(fx_process(&fx, 0)->lanes, LANES + 1);
	pthread_barrier_wait(&done);
	for (int i = 0; i < LANES; i++)
		pthread_join(thread[i], NULL);
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(losses_of_the_process_itself_are_shown)
{
	const struct process *p;
	struct drain_totals sum;

	if (!open_both(_i))
		return;
	atomic_store_explicit(&ring.directory[0].pool_full, 5, memory_order_relaxed);
	atomic_store_explicit(&ring.directory[0].reclaimed, 2, memory_order_relaxed);
	atomic_store_explicit(&ring.live->no_lane, 11, memory_order_relaxed);
	atomic_store_explicit(&ring.live->no_string, 3, memory_order_relaxed);
	atomic_store_explicit(&ring.live->no_comm, 4, memory_order_relaxed);
	fx_daemon_step(&fx, 1);
	p = fx_process(&fx, 0);
	ck_assert_uint_eq(p->loss.pool, 7);
	ck_assert_uint_eq(p->loss.lane, 11);
	ck_assert_uint_eq(p->loss.string, 3);
	ck_assert_uint_eq(p->loss.comm, 4);
	drain_sum(fx.drain, &sum);
	ck_assert_uint_eq(sum.lost, 18);
	fx_daemon_close(&fx);
}
END_TEST

static void publish_raw(uint8_t type, uint8_t form, uint16_t comm)
{
	struct nci_slot slot = { 0 };
	struct nci_record *rec = (struct nci_record *)&slot;

	rec->type = type;
	rec->form = form;
	rec->comm = comm;
	rec->start = ring.header->anchor.ticks + 1;
	rec->token = nci_token(0, 0, 1);
	shmring_publish(lane, rec, rec->start);
}

START_TEST(unknown_and_refused_records_are_counted_and_skipped)
{
	const struct process *p;

	if (!open_both(_i))
		return;
	publish_raw(NCI_EV_END, 1, NCI_COMM_NONE);
	publish_raw(200, 1, NCI_COMM_NONE);
	publish_raw(NCI_EV_PROXY_STEP, 1, 0);	/* no communicator was begun */
	publish(4, 5);
	fx_daemon_step(&fx, 1);
	p = fx_process(&fx, 0);
	ck_assert_uint_eq(p->loss.unknown, 2);
	ck_assert_uint_eq(p->loss.rejected, 1);
	ck_assert_uint_eq(p->records, 4);
	ck_assert_uint_eq(fx.seen.events, 1);
	ck_assert_uint_eq(fx.seen.last_parent, 4);
	fx_daemon_close(&fx);
}
END_TEST

static void set64(_Atomic uint64_t *at, uint64_t value)
{
	atomic_store_explicit(at, value, memory_order_relaxed);
}

static void end_backwards(void)    { set64(&ring.directory[0].end, 10); }
static void end_beyond_begin(void) { set64(&ring.directory[0].end, UINT64_MAX); }
static void begin_huge(void)       { set64(&ring.directory[0].begin, UINT64_MAX); }
static void no_record(void)
{
	lane->ring[lane->next & (SHMRING_LINES - 1)].word[0] = 0;
	set64(&ring.directory[0].begin, lane->next + 1);
	set64(&ring.directory[0].end, lane->next + 1);
}
static void fewer_lanes(void)
{
	atomic_store_explicit(&ring.live->lanes, 0, memory_order_relaxed);
}
static void truncated(void)        { ck_assert_int_eq(ftruncate(ring.fd, 100), 0); }
static void ring_cut(void)
{
	publish(100, 110);
	ck_assert_int_eq(ftruncate(ring.fd, (off_t)ring.directory[0].offset), 0);
}
static void next_lane_outside(void)
{
	ring.directory[1].lines = SHMRING_LINES;
	ring.directory[1].slots = SHMRING_SLOTS;
	ring.directory[1].offset = UINT64_MAX - 4095;
	atomic_store_explicit(&ring.directory[1].state, NCI_LANE_READY, memory_order_relaxed);
	atomic_store_explicit(&ring.live->lanes, 2, memory_order_relaxed);
}

static void (*const lies[])(void) = {
	end_backwards, end_beyond_begin, begin_huge, no_record, fewer_lanes, truncated,
	ring_cut, next_lane_outside,
};

START_TEST(segment_that_lies_is_dropped_and_never_read_again)
{
	if (!open_both(_i % 2))
		return;
	publish(0, 100);
	fx_daemon_step(&fx, 1);
	ck_assert_uint_eq(fx.seen.events, 100);
	lies[_i / 2]();
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
END_TEST

START_TEST(torn_end_of_a_lane_is_not_delivered)
{
	if (!open_both(_i))
		return;
	publish(0, 10);
	set64(&ring.directory[0].begin, 12);	/* its writer died at `begun` */
	fx_daemon_step(&fx, 1);
	fx_daemon_step(&fx, 1);
	ck_assert_uint_eq(fx.seen.events, 10);
	ck_assert_ptr_nonnull(fx_process(&fx, 0));
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(live_slots_are_what_is_in_flight_now)
{
	const struct live_slot *slots;
	uint64_t token[200];

	if (!open_both(_i))
		return;
	ck_assert_int_eq(drain_slots(fx.drain, fx_process(&fx, 0), &slots), 0);
	for (uint64_t n = 0; n < 200; n++)
		token[n] = fx_job_start(lane, n);
	for (int n = 0; n < 199; n++)
		ck_assert(shmring_close(lane, shmring_find(&ring, token[n]), token[n],
					ring.header->anchor.ticks + 9));
	ck_assert_int_eq(drain_slots(fx.drain, fx_process(&fx, 0), &slots), 1);
	ck_assert_uint_eq(((const struct nci_record *)&slots[0].slot)->token, token[199]);
	ck_assert_uint_eq(((const struct nci_record *)&slots[0].slot)->parent, 199);
	ck_assert_int_eq(slots[0].tid, gettid());
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(full_pool_is_seen_to_its_last_slot)
{
	const struct live_slot *slots;

	if (!open_both(_i))
		return;
	for (uint64_t n = 0; n < SHMRING_SLOTS; n++)
		fx_job_start(lane, n);
	ck_assert_int_eq(drain_slots(fx.drain, fx_process(&fx, 0), &slots), SHMRING_SLOTS);
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(slot_that_lies_about_itself_is_not_shown)
{
	const struct live_slot *slots;
	struct nci_record *rec;

	if (!open_both(_i))
		return;
	for (uint64_t n = 0; n < 5; n++)
		fx_job_start(lane, n);
	rec = shmring_slot(lane->pool, 0);
	rec->type = 99;
	rec = shmring_slot(lane->pool, 1);
	rec->token = nci_token(0, 9, 1);	/* another slot's */
	rec = shmring_slot(lane->pool, 2);
	rec->comm = 12;
	rec = shmring_slot(lane->pool, 3);
	rec->start = UINT64_MAX / 2;		/* in the future */
	ck_assert_int_eq(drain_slots(fx.drain, fx_process(&fx, 0), &slots), 1);
	ck_assert_uint_eq(((const struct nci_record *)&slots[0].slot)->parent, 4);
	fx_daemon_close(&fx);
}
END_TEST

static void begin_comm(uint32_t i, int32_t rank, const char *text, bool ready)
{
	struct nci_comm *comm = &ring.comms[i];

	comm->flags = NCI_COMM_HAS_ID;
	comm->comm_id = 77 + i;
	comm->rank = rank;
	comm->nranks = 8;
	comm->nnodes = 1;
	comm->name_bytes = (uint32_t)strlen(text);
	memcpy(comm->name, text, strlen(text));
	atomic_store_explicit(&comm->ready, ready, memory_order_relaxed);
	atomic_store_explicit(&ring.live->comms, i + 1, memory_order_relaxed);
}

START_TEST(communicators_appear_when_ready_and_are_seen_to_end)
{
	struct process *p;

	if (!open_both(_i))
		return;
	begin_comm(0, 3, "tensor \xff\n\xc3\xa9", false);
	begin_comm(1, 4, "data", true);
	fx_daemon_step(&fx, 1);
	p = fx_process(&fx, 0);
	ck_assert_uint_eq(p->ncomms, 2);
	ck_assert_ptr_null(process_comm(p, 0));
	ck_assert_ptr_null(process_comm(p, 2));
	ck_assert_str_eq(process_comm(p, 1)->name, "data");
	ck_assert_int_eq(process_comm(p, 1)->rank, 4);
	atomic_store_explicit(&ring.comms[0].ready, 1, memory_order_relaxed);
	fx_daemon_step(&fx, 1);
	ck_assert_str_eq(process_comm(p, 0)->name, "tensor ??\xc3\xa9");
	ck_assert_uint_eq(process_comm(p, 0)->finalize_ticks, 0);
	atomic_store_explicit(&ring.comms[0].finalize, 5, memory_order_relaxed);
	drain_finish(fx.drain, process_segment(p));
	ck_assert_uint_eq(process_comm(p, 0)->finalize_ticks, 5);
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(names_are_known_before_the_records_that_use_them)
{
	struct process *p;

	if (!open_both(_i))
		return;
	for (uint32_t i = 0; i < 100; i++) {
		struct nci_string *s = &ring.strings[i];

		snprintf(s->text, sizeof(s->text), "name%u", i);
		atomic_store_explicit(&s->bytes, (uint32_t)strlen(s->text) + 1,
				      memory_order_relaxed);
		atomic_store_explicit(&ring.live->strings, i + 1, memory_order_relaxed);
		if (i % 40 == 39)
			fx_daemon_step(&fx, 1);
	}
	fx_daemon_step(&fx, 1);
	p = fx_process(&fx, 0);
	ck_assert_ptr_null(process_name(p, 0));
	ck_assert_str_eq(process_name(p, 1), "name0");
	ck_assert_str_eq(process_name(p, 100), "name99");
	ck_assert_ptr_null(process_name(p, 101));
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(polls_come_faster_as_lanes_fill_and_slower_when_idle)
{
	uint64_t now, next;

	if (!open_both(_i))
		return;
	now = fx.now_ns;
	for (int i = 0; i < 20; i++)
		now = drain_poll(fx.drain, now);
	next = drain_poll(fx.drain, now);
	ck_assert_uint_ge(next - now, 15000000);
	ck_assert_uint_le(next - now, 100000000);
	publish(0, SHMRING_LINES / 2);		/* half a lane within one wait */
	now = drain_poll(fx.drain, next);
	ck_assert_uint_le(now - next, 25000000);	/* it took at most 100 ms to fill */
	for (uint64_t i = 0; i < 50; i++) {	/* 100 lines a millisecond */
		publish(i * 200, i * 200 + 100 * ((now - next) / 1000000));
		next = now;
		now = drain_poll(fx.drain, next);
		ck_assert_uint_lt(100 * ((now - next) / 1000000), SHMRING_LINES / 4);
	}
	fx_daemon_close(&fx);
}
END_TEST

static void flood(struct shmring *r, struct shmring_lane *l)
{
	(void)r;
	raise(SIGSTOP);
	for (uint64_t n = 0; n < 3000000; n++)
		fx_job_publish(l, n);
}

START_TEST(writer_at_full_speed_is_accounted_for_to_the_record)
{
	const struct process *p;
	int status;
	pid_t pid;

	if (!fx_daemon_open(&fx, backends[_i]))
		return;
	pid = fx_job_fork(fx.dir, flood, name);
	fx_daemon_step(&fx, 3000);
	p = fx_process(&fx, 0);
	kill(pid, SIGCONT);
	while (waitpid(pid, &status, WUNTRACED | WNOHANG) == 0)
		drain_poll(fx.drain, fx.now_ns += 1000000);
	ck_assert(WIFSTOPPED(status));
	drain_poll(fx.drain, fx.now_ns += 1000000);
	ck_assert_uint_eq(p->records + p->loss.overrun + p->loss.before, 3000000);
	ck_assert_uint_eq(p->loss.rejected + p->loss.unknown, 0);
	ck_assert_uint_eq(fx.seen.disorder, 0);
	ck_assert_uint_eq(fx.seen.last_parent, 2999999);
	fx_job_kill(pid);
	fx_daemon_close(&fx);
}
END_TEST

static uint64_t seed = 1;

static uint64_t dice(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

/* Numbers that find the edges: small, just around sizes, huge, or anything. */
static uint64_t odd_number(void)
{
	static const uint64_t edges[] = {
		0, 1, 2, 63, 64, 4095, 4096, 4097, 1 << 20, UINT32_MAX, INT64_MAX, UINT64_MAX,
		UINT64_C(1) << 62,
	};

	return dice() % 3 ? edges[dice() % FX_COUNT(edges)] + dice() % 3 - 1
			  : dice();
}

static void spoil(size_t bytes)
{
	uint8_t *base = (uint8_t *)ring.header;

	for (int i = 0; i < 20; i++) {
		uint64_t n = odd_number();

		memcpy(base + sizeof(struct nci_header) + dice() % (bytes / 8) * 8, &n, sizeof(n));
	}
	for (int i = 0; i < 50; i++)
		((uint64_t *)lane->ring)[dice() % (SHMRING_LINES * 8)] = odd_number();
	for (int i = 0; i < 50; i++)
		((uint64_t *)lane->pool)[dice() % (SHMRING_SLOTS * 16)] = odd_number();
}

START_TEST(random_damage_never_harms_the_reader)
{
	char path[160];

	seed = (uint64_t)_i + 1;
	for (int round = 0; round < 20; round++) {
		const struct live_slot *slots;

		if (!open_both(_i % 2))
			return;
		for (uint64_t n = 0; n < 300; n++)
			fx_job_start(lane, n);
		for (int i = 0; i < 20; i++) {
			publish(0, dice() % 3000);
			/* live block and directory are the first of the tables */
			spoil(i % 2 ? 512 : ring.tables_bytes - sizeof(struct nci_header));
			fx_daemon_step(&fx, 1);
			if (fx_process(&fx, 0))
				drain_slots(fx.drain, fx_process(&fx, 0), &slots);
		}
		fx_daemon_close(&fx);
		shmring_forget(&ring);
		snprintf(path, sizeof(path), "%s/%s", fx.dir, name);
		unlink(path);
	}
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_LOOP(records_of_both_sizes_arrive_whole_and_in_order, 0, 2),
		FX_LOOP(lapped_reader_counts_to_the_record_what_it_missed, 0, 2),
		FX_LOOP(what_was_overwritten_before_we_came_is_no_loss_of_ours, 0, 2),
		FX_LOOP(one_poll_takes_more_than_its_buffer_holds, 0, 2),
		FX_LOOP(losses_of_the_process_itself_are_shown, 0, 2),
		FX_LOOP(unknown_and_refused_records_are_counted_and_skipped, 0, 2),
		FX_LOOP(segment_that_lies_is_dropped_and_never_read_again, 0, 2 * FX_COUNT(lies)),
		FX_LOOP(torn_end_of_a_lane_is_not_delivered, 0, 2),
		FX_LOOP(live_slots_are_what_is_in_flight_now, 0, 2),
		FX_LOOP(full_pool_is_seen_to_its_last_slot, 0, 2),
		FX_LOOP(slot_that_lies_about_itself_is_not_shown, 0, 2),
		FX_LOOP(communicators_appear_when_ready_and_are_seen_to_end, 0, 2),
		FX_LOOP(names_are_known_before_the_records_that_use_them, 0, 2),
		FX_LOOP(polls_come_faster_as_lanes_fill_and_slower_when_idle, 0, 2),
		FX_LOOP(writer_at_full_speed_is_accounted_for_to_the_record, 0, 2),
		FX_LOOP(random_damage_never_harms_the_reader, 0, 8),
	};

	return fx_run(NULL, NULL, tests, FX_COUNT(tests));
}
