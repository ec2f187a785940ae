/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/discover.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fixture.h"
#include "tests/fixture_daemon.h"

static const char *const backends[] = { "epoll", "io_uring" };

static struct fx_daemon fx;
static char name[80];

static const struct discover_config config = {
	.everybody = true,
	.max_segments = 2,
	.max_ended = 2,
	.keep_ns = UINT64_C(60000000000),
};

static bool there(const char *file)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", fx.dir, file);
	return access(path, F_OK) == 0;
}

static void publish_some(struct shmring *ring, struct shmring_lane *lane)
{
	(void)ring;
	for (uint64_t n = 0; n < 50; n++)
		fx_job_publish(lane, n);
}

static void leave_three_in_flight(struct shmring *ring, struct shmring_lane *lane)
{
	publish_some(ring, lane);
	for (uint64_t n = 0; n < 3; n++)
		fx_job_start(lane, n);
}

START_TEST(new_segment_is_told_by_inotify)
{
	pid_t pid;

	if (!fx_daemon_open(&fx, backends[_i]))
		return;
	pid = fx_job_fork(fx.dir, publish_some, name);
	while (!fx.seen.appeared)
		ck_assert_int_eq(loop_once(fx.loop, UINT64_MAX), 0);
	ck_assert_str_eq(fx_process(&fx, 0)->file, name);
	ck_assert_int_eq(fx_process(&fx, 0)->pid, pid);
	ck_assert_int_eq(fx_process(&fx, 0)->state, PROCESS_LIVE);
	ck_assert_uint_eq(fx_process(&fx, 0)->id, 1);
	ck_assert_uint_eq(discover_attached(fx.discover), 1);
	fx_job_kill(pid);
	fx_daemon_close(&fx);
	ck_assert_uint_eq(fx.seen.forgotten, 1);
}
END_TEST

START_TEST(killed_process_is_drained_shown_and_its_file_removed)
{
	const struct process *p;
	pid_t pid;

	if (!fx_daemon_open(&fx, backends[_i]))
		return;
	pid = fx_job_fork(fx.dir, leave_three_in_flight, name);
	discover_look(fx.discover, fx.now_ns + UINT64_C(4000000000));
	ck_assert_uint_eq(fx.seen.appeared, 1);
	fx_job_kill(pid);
	fx_daemon_step(&fx, 100);
	p = fx_process(&fx, 0);
	ck_assert_uint_eq(fx.seen.events, 50);
	ck_assert_uint_eq(fx.seen.ended, 1);
	ck_assert_int_eq(fx.seen.last_state, PROCESS_DIED);
	ck_assert_uint_eq(fx.seen.last_in_flight, 3);
	ck_assert_int_eq(p->state, PROCESS_DIED);
	ck_assert_int_eq(p->last_slots[0].tid, pid);
	ck_assert(!there(name));
	ck_assert_uint_eq(discover_attached(fx.discover), 0);
	fx_daemon_step(&fx, 59000);
	ck_assert_ptr_nonnull(fx_process(&fx, 0));
	fx_daemon_step(&fx, 2000);
	ck_assert_ptr_null(fx_process(&fx, 0));
	ck_assert_uint_eq(fx.seen.forgotten, 1);
	ck_assert_uint_eq(fx.seen.appeared, 1);
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(process_that_nobody_waits_for_is_dead_as_well)
{
	siginfo_t info;
	pid_t pid;

	if (!fx_daemon_open(&fx, backends[_i]))
		return;
	pid = fx_job_fork(fx.dir, publish_some, name);
	fx_daemon_step(&fx, 4000);
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	fx_daemon_step(&fx, 100);
	ck_assert_int_eq(fx.seen.last_state, PROCESS_DIED);
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(black_box_of_a_process_that_died_before_us_is_read)
{
	char dir[80];
	pid_t pid;

	snprintf(dir, sizeof(dir), "%s/shm", fx_tmpdir());
	mkdir(dir, 0755);
	pid = fx_job_fork(dir, leave_three_in_flight, name);
	fx_job_kill(pid);
	if (!fx_daemon_open(&fx, backends[_i]))
		return;
	ck_assert_uint_eq(fx.seen.appeared, 1);
	fx_daemon_step(&fx, 100);
	ck_assert_uint_eq(fx.seen.events, 50);
	ck_assert_int_eq(fx.seen.last_state, PROCESS_DIED);
	ck_assert_uint_eq(fx.seen.last_in_flight, 3);
	ck_assert(!there(name));
	fx_daemon_close(&fx);
}
END_TEST

static void say_goodbye(struct shmring *ring, struct shmring_lane *lane)
{
	char path[160], file[80];

	publish_some(ring, lane);
	atomic_store_explicit(&ring->live->flags, NCI_LIVE_EXITED, memory_order_relaxed);
	fx_job_name(file, getpid());
	snprintf(path, sizeof(path), "%s/%s", fx.dir, file);
	unlink(path);
}

static void say_goodbye_late(struct shmring *ring, struct shmring_lane *lane)
{
	raise(SIGSTOP);
	say_goodbye(ring, lane);
}

START_TEST(process_that_said_goodbye_has_exited)
{
	int status;
	pid_t pid;

	if (!fx_daemon_open(&fx, backends[_i]))
		return;
	pid = fx_job_fork(fx.dir, say_goodbye_late, name);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, 1);
	kill(pid, SIGCONT);
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	fx_daemon_step(&fx, 100);
	ck_assert_uint_eq(fx.seen.ended, 0);	/* it still runs */
	fx_job_kill(pid);
	fx_daemon_step(&fx, 100);
	ck_assert_int_eq(fx.seen.last_state, PROCESS_EXITED);
	ck_assert_uint_eq(fx.seen.events, 50);
	ck_assert(!there(name));
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(lost_lock_alone_does_not_make_a_running_process_dead)
{
	char path[160];
	struct shmring ring;

	if (!fx_daemon_open(&fx, backends[_i]))
		return;
	fx_job_open(&ring, fx.dir, name);	/* ours: F_GETLK never shows one's own lock */
	snprintf(path, sizeof(path), "%s/%s", fx.dir, name);
	close(open(path, O_RDONLY));		/* and this drops it */
	fx_daemon_step(&fx, 4000);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, 1);
	ck_assert_uint_eq(fx.seen.ended, 0);
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(new_file_under_the_old_name_is_a_new_segment)
{
	struct shmring old, new;

	if (!fx_daemon_open(&fx, backends[_i]))
		return;
	fx_job_open(&old, fx.dir, name);
	fx_daemon_step(&fx, 4000);
	shmring_forget(&old);			/* an exec does this */
	fx_job_open(&new, fx.dir, name);
	fx_daemon_step(&fx, 4000);
	fx_daemon_step(&fx, 100);
	ck_assert_uint_eq(fx.seen.appeared, 2);
	ck_assert_uint_eq(fx.seen.ended, 1);
	ck_assert_int_eq(fx.seen.last_state, PROCESS_EXITED);
	ck_assert_uint_eq(discover_attached(fx.discover), 1);
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(segment_becomes_ready_later_or_is_given_up)
{
	struct shmring ring;

	if (!fx_daemon_open(&fx, backends[_i]))
		return;
	fx_job_open(&ring, fx.dir, name);
	atomic_store_explicit(&ring.header->ready, 0, memory_order_relaxed);
	fx_daemon_step(&fx, 4000);
	fx_daemon_step(&fx, 5000);
	ck_assert_uint_eq(fx.seen.appeared, 0);
	ck_assert_uint_eq(discover_refused(fx.discover), 0);
	shmring_ready(&ring);
	fx_daemon_step(&fx, 100);
	ck_assert_uint_eq(fx.seen.appeared, 1);
	fx_daemon_close(&fx);

	ck_assert(fx_daemon_open(&fx, backends[_i]));
	ck_assert_uint_eq(fx.seen.appeared, 1);
	fx_daemon_close(&fx);

	atomic_store_explicit(&ring.header->ready, 0, memory_order_relaxed);
	ck_assert(fx_daemon_open(&fx, backends[_i]));
	fx_daemon_step(&fx, 11000);
	ck_assert_uint_eq(discover_refused(fx.discover), 1);
	shmring_ready(&ring);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, 0);
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(process_that_exits_at_once_is_read_to_its_end)
{
	struct shmring_lane *lane;
	struct shmring ring;
	char path[160];

	if (!fx_daemon_open(&fx, backends[_i]))
		return;
	fx_job_open(&ring, fx.dir, name);
	atomic_store_explicit(&ring.header->ready, 0, memory_order_relaxed);
	loop_once(fx.loop, UINT64_MAX);		/* seen, and not ready */
	ck_assert_uint_eq(fx.seen.appeared, 0);
	lane = shmring_lane_new(&ring, gettid());
	publish_some(&ring, lane);
	shmring_ready(&ring);
	snprintf(path, sizeof(path), "%s/%s", fx.dir, name);
	unlink(path);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, 1);
	ck_assert_uint_eq(fx.seen.events, 50);
	fx_daemon_step(&fx, 100);
	ck_assert_int_eq(fx.seen.last_state, PROCESS_EXITED);
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(what_others_wrote_is_known_before_a_process_is_over)
{
	struct shmring_lane *lane;
	struct shmring ring;
	pid_t pid;

	if (!fx_daemon_open(&fx, backends[_i]))
		return;
	pid = fx_job_fork(fx.dir, publish_some, name);
	fx_job_open(&ring, fx.dir, name);
	lane = shmring_lane_new(&ring, gettid());
	fx_daemon_step(&fx, 4000);
	publish_some(&ring, lane);
	fx_job_kill(pid);
	discover_look(fx.discover, fx.now_ns);
	ck_assert_uint_eq(fx.seen.ended, 1);
	ck_assert_uint_eq(fx.seen.events_at_end, 100);
	fx_daemon_close(&fx);
}
END_TEST

static unsigned long queued_events(void)
{
	FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
	unsigned long n = 0;

	if (f && fscanf(f, "%lu", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n;
}

START_TEST(overflow_of_the_notices_leads_to_a_scan)
{
	unsigned long n = queued_events();
	char path[160];
	pid_t pid;

	if (n == 0 || n > 100000 || !fx_daemon_open(&fx, backends[_i]))
		return;
	fx_daemon_step(&fx, 4000);
	for (unsigned long i = 0; i < n + 10; i++) {
		snprintf(path, sizeof(path), "%s/%lu", fx.dir, i);
		ck_assert_int_eq(mknod(path, S_IFREG | 0600, 0), 0);
		unlink(path);
	}
	pid = fx_job_fork(fx.dir, publish_some, name);
	for (unsigned long i = 0; i < n / 50; i++)	/* 4 KiB of notices at a time */
		loop_once(fx.loop, 0);
	ck_assert_uint_eq(fx.seen.appeared, 0);
	fx_daemon_step(&fx, 100);
	ck_assert_uint_eq(fx.seen.appeared, 1);
	fx_job_kill(pid);
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(foreign_segment_is_left_alone_and_counted_once)
{
	struct shmring ring;

	if (!fx_daemon_open(&fx, backends[_i]))
		return;
	fx_job_open(&ring, fx.dir, name);
	ring.header->abi_major++;
	for (int i = 0; i < 5; i++)
		fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, 0);
	ck_assert_uint_eq(discover_refused(fx.discover), 1);
	ck_assert(there(name));
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(segments_over_the_limit_wait_for_their_turn)
{
	pid_t pid[3];

	if (!fx_daemon_open_with(&fx, backends[_i], config))
		return;
	for (int i = 0; i < 3; i++)
		pid[i] = fx_job_fork(fx.dir, publish_some, name);
	fx_daemon_step(&fx, 4000);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, 2);
	ck_assert_uint_eq(discover_refused(fx.discover), 1);
	for (int i = 0; i < 3; i++)
		if (fx_process(&fx, 0)->pid == pid[i])
			fx_job_kill(pid[i]);
	fx_daemon_step(&fx, 100);
	fx_daemon_step(&fx, 100);
	ck_assert_uint_eq(fx.seen.appeared, 3);
	ck_assert_uint_eq(fx.seen.ended, 1);
	ck_assert_uint_eq(discover_attached(fx.discover), 2);
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(no_user_takes_all_the_room)
{
	struct discover_config four = config;
	char mine[80], path[160], to[160];
	struct shmring ring;

	four.max_segments = 4;
	if (geteuid() != 0 || !fx_daemon_open_with(&fx, backends[_i], four))
		return;
	for (int i = 0; i < 5; i++)
		fx_job_fork(fx.dir, publish_some, name);
	fx_job_open(&ring, fx.dir, mine);
	ring.header->uid = 77;
	ck_assert_int_eq(fchown(ring.fd, 77, 77), 0);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(discover_attached(fx.discover), 3);
	snprintf(path, sizeof(path), "%s/%s", fx.dir, mine);
	snprintf(to, sizeof(to), "%s/ncclinsp.77%s", fx.dir, mine + strlen("ncclinsp.0"));
	ck_assert_int_eq(rename(path, to), 0);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(discover_attached(fx.discover), 4);
	ck_assert_uint_eq(fx_process(&fx, 3)->uid, 77);
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(only_the_last_that_ended_are_remembered)
{
	if (!fx_daemon_open_with(&fx, backends[_i], config))
		return;
	for (int i = 0; i < 4; i++) {
		pid_t pid = fx_job_fork(fx.dir, publish_some, name);

		fx_daemon_step(&fx, 4000);
		fx_job_kill(pid);
		fx_daemon_step(&fx, 100);
	}
	ck_assert_uint_eq(fx.seen.ended, 4);
	ck_assert_uint_eq(fx.seen.forgotten, 2);
	ck_assert_uint_eq(fx_process(&fx, 0)->id, 3);
	ck_assert_uint_eq(fx_process(&fx, 1)->id, 4);
	ck_assert_ptr_null(fx_process(&fx, 2));
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(one_users_rubbish_does_not_blind_us)
{
	pid_t pid;

	if (!fx_daemon_open_with(&fx, backends[_i], config))
		return;
	for (int i = 1; i < 100; i++) {		/* another user's, by the name */
		char path[160];

		snprintf(path, sizeof(path), "%s/ncclinsp.77.%d.1", fx.dir, i);
		close(open(path, O_CREAT | O_RDWR, 0600));
	}
	fx_daemon_step(&fx, 4000);
	pid = fx_job_fork(fx.dir, publish_some, name);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, 1);
	fx_job_kill(pid);
	fx_daemon_close(&fx);
}
END_TEST

/* Only root can make what belongs to somebody else. */
START_TEST(user_reads_no_segment_of_others)
{
	struct discover_config only_own = config;
	char path[160], to[160];
	struct shmring ring;

	only_own.everybody = _i < 2;
	if (geteuid() != 0 || !fx_daemon_open_with(&fx, backends[_i % 2], only_own))
		return;
	fx_job_open(&ring, fx.dir, name);
	ring.header->uid = 77;
	ck_assert_int_eq(fchown(ring.fd, 77, 77), 0);
	snprintf(path, sizeof(path), "%s/%s", fx.dir, name);
	snprintf(to, sizeof(to), "%s/ncclinsp.77%s", fx.dir, name + strlen("ncclinsp.0"));
	ck_assert_int_eq(rename(path, to), 0);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, only_own.everybody);
	fx_daemon_close(&fx);
}
END_TEST

static void move_away(void)
{
	char to[80];

	snprintf(to, sizeof(to), "%s-old", fx.dir);
	ck_assert_int_eq(rename(fx.dir, to), 0);
}

START_TEST(directory_that_comes_later_or_is_replaced_is_found)
{
	pid_t pid;

	if (!fx_daemon_open(&fx, backends[_i]))
		return;
	move_away();
	fx_daemon_step(&fx, 4000);
	fx_daemon_step(&fx, 4000);
	ck_assert_int_eq(mkdir(fx.dir, 0755), 0);
	pid = fx_job_fork(fx.dir, publish_some, name);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, 1);
	fx_job_kill(pid);
	fx_daemon_close(&fx);
}
END_TEST

/* A daemon that is started again reads what the rings still hold. */
START_TEST(second_daemon_picks_up_where_the_rings_allow)
{
	struct shmring_lane *lane;
	const struct process *p;
	struct shmring ring;

	if (!fx_daemon_open(&fx, backends[_i]))
		return;
	fx_job_open(&ring, fx.dir, name);
	lane = shmring_lane_new(&ring, gettid());
	fx_daemon_step(&fx, 4000);
	for (uint64_t n = 0; n < 3000; n++)
		fx_job_publish(lane, n);
	fx_daemon_step(&fx, 1);
	ck_assert_uint_eq(fx.seen.events, 3000);
	fx_daemon_close(&fx);
	for (uint64_t n = 3000; n < 6000; n++)
		fx_job_publish(lane, n);
	ck_assert(fx_daemon_open(&fx, backends[_i]));
	fx_daemon_step(&fx, 1);
	p = fx_process(&fx, 0);
	ck_assert_uint_eq(p->records + p->loss.before, 6000);
	ck_assert_uint_ge(p->records, 3000);
	ck_assert_uint_eq(p->loss.overrun, 0);
	ck_assert_uint_eq(fx.seen.last_parent, 5999);
	fx_daemon_close(&fx);
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_LOOP(new_segment_is_told_by_inotify, 0, 2),
		FX_LOOP(killed_process_is_drained_shown_and_its_file_removed, 0, 2),
		FX_LOOP(process_that_nobody_waits_for_is_dead_as_well, 0, 2),
		FX_LOOP(black_box_of_a_process_that_died_before_us_is_read, 0, 2),
		FX_LOOP(process_that_said_goodbye_has_exited, 0, 2),
		FX_LOOP(lost_lock_alone_does_not_make_a_running_process_dead, 0, 2),
		FX_LOOP(new_file_under_the_old_name_is_a_new_segment, 0, 2),
		FX_LOOP(segment_becomes_ready_later_or_is_given_up, 0, 2),
		FX_LOOP(process_that_exits_at_once_is_read_to_its_end, 0, 2),
		FX_LOOP(what_others_wrote_is_known_before_a_process_is_over, 0, 2),
		FX_LOOP(overflow_of_the_notices_leads_to_a_scan, 0, 2),
		FX_LOOP(foreign_segment_is_left_alone_and_counted_once, 0, 2),
		FX_LOOP(segments_over_the_limit_wait_for_their_turn, 0, 2),
		FX_LOOP(no_user_takes_all_the_room, 0, 2),
		FX_LOOP(only_the_last_that_ended_are_remembered, 0, 2),
		FX_LOOP(one_users_rubbish_does_not_blind_us, 0, 2),
		FX_LOOP(user_reads_no_segment_of_others, 0, 4),
		FX_LOOP(directory_that_comes_later_or_is_replaced_is_found, 0, 2),
		FX_LOOP(second_daemon_picks_up_where_the_rings_allow, 0, 2),
	};

	return fx_run(NULL, NULL, tests, FX_COUNT(tests));
}
