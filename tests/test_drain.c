/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/read/drain.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reader/read/look.h"
#include "tests/fixture.h"
#include "tests/fixture_daemon.h"

static struct fx_daemon fx;
static struct fx_job job;

TEST(records_of_both_sizes_arrive_whole_and_in_order)
{
	const struct process *p;

	fx_daemon_open_job(&fx, &job);
	for (uint64_t n = 0; n < 20000; n++) {
		if (n % 3)
			fx_job_publish(job.lane, n);
		else
			fx_job_publish_coll(job.lane, n);
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

TEST(lapped_reader_counts_to_the_record_what_it_missed)
{
	const struct process *p;

	fx_daemon_open_job(&fx, &job);
	fx_job_publish_range(job.lane, 0, 1);
	fx_daemon_step(&fx, 1);
	fx_job_publish_range(job.lane, 1, 10000);
	fx_daemon_step(&fx, 1);
	p = fx_process(&fx, 0);
	ck_assert_uint_eq(fx.seen.last_parent, 9999);
	ck_assert_uint_eq(p->records + p->loss.overrun, 10000);
	ck_assert_uint_gt(p->loss.overrun, 10000 - SHMRING_LINES - 10);
	ck_assert_uint_eq(p->loss.before, 0);
	fx_daemon_close(&fx);
}

TEST(what_was_overwritten_before_we_came_is_no_loss_of_ours)
{
	const struct process *p;

	fx_daemon_open(&fx);
	fx_job_open(&job.ring, fx.dir, job.name);
	job.lane = shmring_lane_new(&job.ring, gettid());
	fx_job_publish_range(job.lane, 0, 10000);
	fx_daemon_step(&fx, 3000);
	p = fx_process(&fx, 0);
	ck_assert_uint_eq(p->records + p->loss.before, 10000);
	ck_assert_uint_gt(p->loss.before, 0);
	ck_assert_uint_eq(p->loss.overrun, 0);
	fx_daemon_close(&fx);
}

/* Lanes belong to threads that live: each of these makes one, and waits. */
#define LANES 12
static pthread_barrier_t made, done;

static void *own_a_lane(void *arg)
{
	struct shmring_lane **out = arg;

	*out = shmring_lane_new(&job.ring, gettid());
	pthread_barrier_wait(&made);
	pthread_barrier_wait(&done);
	return NULL;
}

TEST(one_poll_takes_more_than_its_buffer_holds)
{
	struct shmring_lane *lanes[LANES];
	pthread_t thread[LANES];

	fx_daemon_open_job(&fx, &job);
	pthread_barrier_init(&made, NULL, LANES + 1);
	pthread_barrier_init(&done, NULL, LANES + 1);
	for (int i = 0; i < LANES; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, own_a_lane, &lanes[i]), 0);
	pthread_barrier_wait(&made);
	for (int i = 0; i < LANES; i++)
		fx_job_publish_range(lanes[i], 0, 4000);
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

TEST(losses_of_the_process_itself_are_shown)
{
	const struct process *p;
	struct drain_totals sum;

	fx_daemon_open_job(&fx, &job);
	atomic_store_explicit(&job.ring.directory[0].pool_full, 5, memory_order_relaxed);
	atomic_store_explicit(&job.ring.directory[0].reclaimed, 2, memory_order_relaxed);
	atomic_store_explicit(&job.ring.live->no_lane, 11, memory_order_relaxed);
	atomic_store_explicit(&job.ring.live->no_string, 3, memory_order_relaxed);
	atomic_store_explicit(&job.ring.live->no_comm, 4, memory_order_relaxed);
	atomic_store_explicit(&job.ring.live->unknown_event, 21, memory_order_relaxed);
	atomic_store_explicit(&job.ring.live->unknown_state, 22, memory_order_relaxed);
	atomic_store_explicit(&job.ring.live->closed_comm, 23, memory_order_relaxed);
	atomic_store_explicit(&job.ring.live->bad_context, 24, memory_order_relaxed);
	atomic_store_explicit(&job.ring.directory[0].stale, 25, memory_order_relaxed);
	fx_daemon_step(&fx, 1);
	p = fx_process(&fx, 0);
	ck_assert_uint_eq(p->ignored.event, 21);
	ck_assert_uint_eq(p->ignored.state, 22);
	ck_assert_uint_eq(p->ignored.finalized, 23);
	ck_assert_uint_eq(p->ignored.context, 24);
	ck_assert_uint_eq(p->ignored.handle, 25);
	ck_assert_uint_eq(p->loss.pool, 7);
	ck_assert_uint_eq(p->loss.lane, 11);
	ck_assert_uint_eq(p->loss.string, 3);
	ck_assert_uint_eq(p->loss.comm, 4);
	drain_sum(fx.drain, &sum);
	ck_assert_uint_eq(sum.lost, 18);
	fx_daemon_close(&fx);
}

static void publish_raw(uint8_t type, uint8_t form, uint16_t comm)
{
	struct nci_slot slot = { 0 };
	struct nci_record *rec = (struct nci_record *)&slot;

	rec->type = type;
	rec->form = form;
	rec->comm = comm;
	rec->start = job.ring.header->anchor.ticks + 1;
	rec->token = nci_token(0, 0, 1);
	shmring_publish(job.lane, rec, rec->start);
}

TEST(unknown_and_refused_records_are_counted_and_skipped)
{
	const struct process *p;

	fx_daemon_open_job(&fx, &job);
	publish_raw(NCI_EV_END, 1, NCI_COMM_NONE);
	publish_raw(200, 1, NCI_COMM_NONE);
	publish_raw(NCI_EV_PROXY_STEP, 1, 0);	/* no communicator was begun */
	fx_job_publish_range(job.lane, 4, 5);
	fx_daemon_step(&fx, 1);
	p = fx_process(&fx, 0);
	ck_assert_uint_eq(p->loss.unknown, 2);
	ck_assert_uint_eq(p->loss.rejected, 1);
	ck_assert_uint_eq(p->records, 4);
	ck_assert_uint_eq(fx.seen.events, 1);
	ck_assert_uint_eq(fx.seen.last_parent, 4);
	fx_daemon_close(&fx);
}

static void begin_comm(uint32_t i, int32_t rank, const char *text, bool ready)
{
	struct nci_comm *comm = &job.ring.comms[i];

	comm->flags = NCI_COMM_HAS_ID;
	comm->comm_id = 77 + i;
	comm->rank = rank;
	comm->nranks = 8;
	comm->nnodes = 1;
	comm->name_bytes = (uint32_t)strlen(text);
	memcpy(comm->name, text, strlen(text));
	atomic_store_explicit(&comm->published, ready ? i + 1 : 0, memory_order_relaxed);
	atomic_store_explicit(&job.ring.live->comms, i + 1, memory_order_relaxed);
}

TEST(communicators_appear_when_ready_and_are_seen_to_end)
{
	struct process *p;

	fx_daemon_open_job(&fx, &job);
	begin_comm(0, 4, "data", true);
	begin_comm(1, 3, "tensor \xff\n\xc3\xa9", false);
	fx_daemon_step(&fx, 1);
	p = fx_process(&fx, 0);
	ck_assert_uint_eq(p->ncomms, 2);
	ck_assert_ptr_null(process_comm(p, 1));
	ck_assert_ptr_null(process_comm(p, 2));
	ck_assert_str_eq(process_comm(p, 0)->name, "data");
	ck_assert_int_eq(process_comm(p, 0)->rank, 4);
	atomic_store_explicit(&job.ring.comms[1].published, 2, memory_order_relaxed);
	fx_daemon_step(&fx, 1);
	ck_assert_str_eq(process_comm(p, 1)->name, "tensor ??\xc3\xa9");
	ck_assert_uint_eq(process_comm(p, 1)->finalize_ticks, 0);
	atomic_store_explicit(&job.ring.comms[1].finalize, 5, memory_order_relaxed);
	drain_finish(fx.drain, process_segment(p));
	ck_assert_uint_eq(process_comm(p, 1)->finalize_ticks, 5);
	fx_daemon_close(&fx);
}

TEST(names_are_known_before_the_records_that_use_them)
{
	struct process *p;

	fx_daemon_open_job(&fx, &job);
	for (uint32_t i = 0; i < 100; i++) {
		struct nci_string *s = &job.ring.strings[i];

		snprintf(s->text, sizeof(s->text), "name%u", i);
		atomic_store_explicit(&s->bytes, (uint32_t)strlen(s->text) + 1,
				      memory_order_relaxed);
		atomic_store_explicit(&job.ring.live->strings, i + 1, memory_order_relaxed);
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

TEST(polls_come_faster_as_lanes_fill_and_slower_when_idle)
{
	uint64_t now, next;

	fx_daemon_open_job(&fx, &job);
	now = fx.now_ns;
	for (int i = 0; i < 20; i++)
		now = drain_poll(fx.drain, now);
	next = drain_poll(fx.drain, now);
	ck_assert_uint_ge(next - now, 15000000);
	ck_assert_uint_le(next - now, 100000000);
	fx_job_publish_range(job.lane, 0, SHMRING_LINES / 2);	/* half a lane within one wait */
	now = drain_poll(fx.drain, next);
	ck_assert_uint_le(now - next, 25000000);	/* it took at most 100 ms to fill */
	for (uint64_t i = 0; i < 50; i++) {	/* 100 lines a millisecond */
		fx_job_publish_range(job.lane, i * 200, i * 200 + 100 * ((now - next) / 1000000));
		next = now;
		now = drain_poll(fx.drain, next);
		ck_assert_uint_lt(100 * ((now - next) / 1000000), SHMRING_LINES / 4);
	}
	fx_daemon_close(&fx);
}

static void flood(struct shmring *r, struct shmring_lane *l)
{
	(void)r;
	raise(SIGSTOP);
	fx_job_publish_range(l, 0, 3000000);
}

TEST(writer_at_full_speed_is_accounted_for_to_the_record)
{
	const struct process *p;
	int status;
	pid_t pid;

	fx_daemon_open(&fx);
	pid = fx_job_fork(fx.dir, flood, job.name);
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

/* One that is asked for events, so that it may be left alone while it does nothing. */
static void open_asked_job(void)
{
	fx_daemon_open_job(&fx, &job);
	atomic_store_explicit(&job.ring.live->mask, NCI_EVENT_BIT(NCI_EV_COLL),
			      memory_order_relaxed);
	for (int i = 0; i < 3; i++)
		fx_daemon_step(&fx, 1);
}

TEST(what_is_seen_between_two_polls_is_read_by_the_next)
{
	const struct live_slot *slots;

	open_asked_job();
	for (uint64_t n = 0; n < 5; n++) {
		fx_job_publish(job.lane, n);
		ck_assert_int_eq(drain_slots(fx.drain, fx_process(&fx, 0), &slots), 0);
		fx_daemon_step(&fx, 1);
		ck_assert_uint_eq(fx.seen.events, n + 1);
		fx_daemon_step(&fx, 1);
	}
	fx_daemon_close(&fx);
}

/* Its number is told before it is there, in a table of its own. */
TEST(communicator_that_was_begun_is_waited_for_where_nothing_else_happens)
{
	struct nci_comm *comm;

	open_asked_job();
	comm = &job.ring.comms[0];
	atomic_store_explicit(&job.ring.live->comms, 1, memory_order_relaxed);
	for (int i = 0; i < 3; i++)
		fx_daemon_step(&fx, 1);
	ck_assert_ptr_null(process_comm(fx_process(&fx, 0), 0));
	comm->nranks = 2;
	atomic_store_explicit(&comm->published, 1, memory_order_release);
	fx_daemon_step(&fx, 1);
	ck_assert_ptr_nonnull(process_comm(fx_process(&fx, 0), 0));
	fx_daemon_close(&fx);
}

TEST(level_is_told_with_the_moment_since_which_it_is_in_force)
{
	open_asked_job();
	usleep(120000);
	fx_daemon_step(&fx, 1);
	fx_daemon_step(&fx, 1);
	atomic_store_explicit(&job.ring.header->steer.since, 4711, memory_order_relaxed);
	atomic_store_explicit(&job.ring.live->level, 2, memory_order_relaxed);
	fx_daemon_step(&fx, 1);
	ck_assert_uint_eq(fx_process(&fx, 0)->level, 2);
	ck_assert_uint_eq(fx_process(&fx, 0)->steering.since_ticks, 4711);
	fx_daemon_close(&fx);
}

TEST(order_is_known_whole_though_its_level_is_told_before_the_rest)
{
	open_asked_job();
	usleep(120000);
	fx_daemon_step(&fx, 1);
	atomic_store_explicit(&job.ring.live->level, 2, memory_order_relaxed);
	fx_daemon_step(&fx, 1);
	atomic_store_explicit(&job.ring.header->steer.sequence, 7, memory_order_relaxed);
	usleep(120000);
	for (int i = 0; i < 2; i++)
		fx_daemon_step(&fx, 1);
	ck_assert_uint_eq(fx_process(&fx, 0)->steering.sequence, 7);
	fx_daemon_close(&fx);
}

#define SECOND	UINT64_C(1000000000)

/* How many of `n` that did the same so long ago are looked at within a second of such polls. */
static uint32_t looks_of(uint32_t n, bool unchanged, uint64_t quiet_ns, uint64_t wait_ns)
{
	const uint64_t from_ns = 100 * SECOND;
	struct attached at[500];
	uint32_t looks = 0;

	for (uint32_t i = 0; i < n; i++)
		at[i] = (struct attached){ .unchanged = unchanged, .looked_ns = from_ns };
	for (uint64_t now = from_ns; now < from_ns + SECOND;) {
		now += wait_ns;
		for (uint32_t i = 0; i < n; i++) {
			at[i].changed_ns = now - quiet_ns;
			if (!look_is_due(&at[i], i, n, now))
				continue;
			ck_assert_uint_le(now - at[i].looked_ns, SECOND / 2 + wait_ns);
			at[i].looked_ns = now;
			looks++;
		}
	}
	return looks;
}

TEST(process_that_does_nothing_for_a_while_is_looked_at_less_often)
{
	ck_assert_uint_eq(looks_of(100, false, 20 * SECOND, SECOND / 50), 100 * 50);
	ck_assert_uint_eq(looks_of(100, true, 0, SECOND / 50), 100 * 50);
	ck_assert_uint_eq(looks_of(100, true, SECOND, SECOND / 50), 100 * 10);
	ck_assert_uint_eq(looks_of(100, true, 10 * SECOND, SECOND / 50), 250);
	ck_assert_uint_eq(looks_of(500, true, 10 * SECOND, SECOND / 50), 500 * 2);
	ck_assert_uint_eq(looks_of(1, true, 10 * SECOND, SECOND / 50), 50);
}

/* The job whose processes they are has begun again: some of them are looked at right away. */
TEST(any_poll_looks_at_some_of_those_that_do_nothing)
{
	struct attached at[192];
	uint32_t least = 192, most = 0;

	for (uint32_t i = 0; i < 192; i++)
		at[i] = (struct attached){ .unchanged = true, .looked_ns = 20 * SECOND };
	for (uint64_t now = 20 * SECOND; now < 30 * SECOND;) {
		uint32_t n = 0;

		now += SECOND / 10;
		for (uint32_t i = 0; i < 192; i++) {
			if (!look_is_due(&at[i], i, 192, now))
				continue;
			at[i].looked_ns = now;
			n++;
		}
		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	ck_assert_uint_ge(least, 192 / 5 - 2);
	ck_assert_uint_le(most, 192 / 5 + 2);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
