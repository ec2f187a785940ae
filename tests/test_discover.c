/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/find/discover.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fixture.h"
#include "tests/fixture_daemon.h"

static struct fx_daemon fx;
static char name[80];

static const struct discover_config config = {
	.everybody = true,
	.max_segments = 2,
	.max_ended = 2,
	.keep_ns = UINT64_C(60000000000),
};

START_TEST(new_segment_is_told_by_inotify)
{
	pid_t pid;

	if (!fx_daemon_open(&fx, _i))
		return;
	pid = fx_job_fork(fx.dir, fx_job_publish_some, name);
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

START_TEST(segment_becomes_ready_later_or_is_given_up)
{
	struct shmring ring;

	if (!fx_daemon_open(&fx, _i))
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

	ck_assert(fx_daemon_open(&fx, _i));
	ck_assert_uint_eq(fx.seen.appeared, 1);
	fx_daemon_close(&fx);

	atomic_store_explicit(&ring.header->ready, 0, memory_order_relaxed);
	ck_assert(fx_daemon_open(&fx, _i));
	fx_daemon_step(&fx, 11000);
	ck_assert_uint_eq(discover_refused(fx.discover), 1);
	shmring_ready(&ring);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, 0);
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
	uint64_t began_ns = loop_clock_ns();
	char path[FX_PATH];
	pid_t pid;

	if (n == 0 || n > 100000) {
		fx_skip("the queue is too long to be filled");
		return;
	}
	if (!fx_daemon_open(&fx, _i))
		return;
	fx_daemon_step(&fx, 4000);
	for (unsigned long i = 0; i < n + 10; i++) {
		snprintf(path, sizeof(path), "%s/%lu", fx.dir, i);
		ck_assert_int_eq(mknod(path, S_IFREG | 0600, 0), 0);
		unlink(path);
	}
	pid = fx_job_fork(fx.dir, fx_job_publish_some, name);
	for (unsigned long i = 0; i < n / 50; i++)	/* 4 KiB of notices at a time */
		loop_once(fx.loop, 0);
	if (loop_clock_ns() - began_ns < 2000000000)	/* else the loop's timers are due */
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
	char path[FX_PATH];

	if (!fx_daemon_open(&fx, _i))
		return;
	fx_job_open(&ring, fx.dir, name);
	ring.header->abi_major++;
	for (int i = 0; i < 5; i++)
		fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, 0);
	ck_assert_uint_eq(discover_refused(fx.discover), 1);
	ck_assert_int_eq(access(fx_shm_path(&fx, name, path), F_OK), 0);
	fx_daemon_close(&fx);
}
END_TEST

static size_t count_foreign(void)
{
	size_t i = 0, n = 0;

	while (discover_next_foreign(fx.discover, &i))
		n++;
	return n;
}

START_TEST(running_process_of_another_format_is_told_until_it_ends)
{
	const struct foreign *f;
	struct shmring ring;
	char path[FX_PATH];
	size_t i = 0;
	pid_t pid;
	int fd;

	if (!fx_daemon_open(&fx, _i))
		return;
	fx_job_open(&ring, fx.dir, name);	/* ours: neither foreign nor stale */
	pid = fx_job_fork(fx.dir, fx_job_publish_some, name);
	fd = open(fx_shm_path(&fx, name, path), O_RDWR);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, &(uint16_t){ 7 }, 2,
				offsetof(struct nci_header, abi_major)), 2);
	fx_daemon_step(&fx, 4000);
	f = discover_next_foreign(fx.discover, &i);
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(f->pid, pid);
	ck_assert_uint_eq(f->uid, geteuid());
	ck_assert_uint_eq(f->abi_major, 7);
	ck_assert_uint_eq(f->abi_minor, NCI_ABI_MINOR);
	ck_assert_uint_eq(count_foreign(), 1);
	fx_job_kill(pid);
	ck_assert_uint_eq(count_foreign(), 0);	/* its file is still there */
	ck_assert_int_eq(access(path, F_OK), 0);
	close(fd);
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(segments_over_the_limit_wait_for_their_turn)
{
	pid_t pid[3];

	if (!fx_daemon_open_with(&fx, _i, config))
		return;
	for (int i = 0; i < 3; i++)
		pid[i] = fx_job_fork(fx.dir, fx_job_publish_some, name);
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

/* Only root can make what belongs to somebody else. */
#define STRANGER 77

static bool is_root(void)
{
	if (geteuid() != 0)
		fx_skip("only root can be somebody else");
	return geteuid() == 0;
}

START_TEST(no_user_takes_all_the_room)
{
	struct discover_config four = config;

	four.max_segments = 4;
	if (!is_root() || !fx_daemon_open_with(&fx, _i, four))
		return;
	for (int i = 0; i < 5; i++)
		fx_job_fork(fx.dir, fx_job_publish_some, name);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(discover_attached(fx.discover), 3);
	fx_job_fork_as(STRANGER, fx.dir, fx_job_publish_some, name);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(discover_attached(fx.discover), 4);
	ck_assert_uint_eq(fx_process(&fx, 3)->uid, STRANGER);
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(one_users_rubbish_does_not_blind_us)
{
	pid_t pid;

	if (!is_root() || !fx_daemon_open_with(&fx, _i, config))
		return;
	for (int i = 1; i < 100; i++) {		/* another user's, whatever their names say */
		char path[FX_PATH];

		snprintf(path, sizeof(path), "%s/ncclinsp.%d.%d.1", fx.dir, STRANGER + i, i);
		close(open(path, O_CREAT | O_RDWR, 0600));
		ck_assert_int_eq(chown(path, STRANGER, STRANGER), 0);
	}
	fx_daemon_step(&fx, 4000);
	pid = fx_job_fork(fx.dir, fx_job_publish_some, name);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, 1);
	fx_job_kill(pid);
	fx_daemon_close(&fx);
}
END_TEST

START_TEST(user_reads_no_segment_of_others)
{
	struct discover_config only_own = config;

	only_own.everybody = _i < FX_BACKENDS;
	if (!is_root() || !fx_daemon_open_with(&fx, _i % FX_BACKENDS, only_own))
		return;
	fx_job_fork_as(STRANGER, fx.dir, fx_job_publish_some, name);
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

	if (!fx_daemon_open(&fx, _i))
		return;
	move_away();
	fx_daemon_step(&fx, 4000);
	fx_daemon_step(&fx, 4000);
	ck_assert_int_eq(mkdir(fx.dir, 0755), 0);
	pid = fx_job_fork(fx.dir, fx_job_publish_some, name);
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

	if (!fx_daemon_open(&fx, _i))
		return;
	fx_job_open(&ring, fx.dir, name);
	lane = shmring_lane_new(&ring, gettid());
	fx_daemon_step(&fx, 4000);
	fx_job_publish_range(lane, 0, 3000);
	fx_daemon_step(&fx, 1);
	ck_assert_uint_eq(fx.seen.events, 3000);
	fx_daemon_close(&fx);
	fx_job_publish_range(lane, 3000, 6000);
	ck_assert(fx_daemon_open(&fx, _i));
	fx_daemon_step(&fx, 1);
	p = fx_process(&fx, 0);
	ck_assert_uint_eq(p->records + p->loss.before, 6000);
	ck_assert_uint_ge(p->records, 3000);
	ck_assert_uint_eq(p->loss.overrun, 0);
	ck_assert_uint_eq(fx.seen.last_parent, 5999);
	fx_daemon_close(&fx);
}
END_TEST

/* How long from "ready" to the first read of a segment that was seen unready. */
static uint64_t attach_ns(enum fx_backend backend)
{
	struct shmring ring = { 0 };
	uint64_t from_ns;
	char file[80];

	if (!fx_daemon_open(&fx, backend))
		return 0;
	fx_job_open(&ring, fx.dir, file);
	atomic_store(&ring.header->ready, 0);
	ck_assert_int_eq(loop_once(fx.loop, UINT64_MAX), 0);
	ck_assert_uint_eq(fx.seen.appeared, 0);
	from_ns = loop_clock_ns();
	shmring_ready(&ring);
	while (!fx.seen.appeared)
		ck_assert_int_eq(loop_once(fx.loop, UINT64_MAX), 0);
	from_ns = loop_clock_ns() - from_ns;
	fx_daemon_close(&fx);
	unlink(fx_shm_path(&fx, file, (char[FX_PATH]){ 0 }));
	shmring_forget(&ring);
	return from_ns;
}

START_TEST(segment_is_read_soon_after_it_is_ready)
{
	static const uint64_t soon_ns = 50000000;	/* the next look at all is due in 100 ms */
	uint64_t best_ns = UINT64_MAX;

	for (int i = 0; i < 5 && best_ns > soon_ns; i++) {	/* the machine may be busy */
		uint64_t ns = attach_ns(_i);

		best_ns = ns < best_ns ? ns : best_ns;
	}
	ck_assert_uint_le(best_ns, soon_ns);
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_LOOP(new_segment_is_told_by_inotify, 0, FX_BACKENDS),
		FX_LOOP(segment_becomes_ready_later_or_is_given_up, 0, FX_BACKENDS),
		FX_LOOP(segment_is_read_soon_after_it_is_ready, 0, FX_BACKENDS),
		FX_LOOP(overflow_of_the_notices_leads_to_a_scan, 0, FX_BACKENDS),
		FX_LOOP(foreign_segment_is_left_alone_and_counted_once, 0, FX_BACKENDS),
		FX_LOOP(running_process_of_another_format_is_told_until_it_ends, 0, FX_BACKENDS),
		FX_LOOP(segments_over_the_limit_wait_for_their_turn, 0, FX_BACKENDS),
		FX_LOOP(no_user_takes_all_the_room, 0, FX_BACKENDS),
		FX_LOOP(one_users_rubbish_does_not_blind_us, 0, FX_BACKENDS),
		FX_LOOP(user_reads_no_segment_of_others, 0, 2 * FX_BACKENDS),
		FX_LOOP(directory_that_comes_later_or_is_replaced_is_found, 0, FX_BACKENDS),
		FX_LOOP(second_daemon_picks_up_where_the_rings_allow, 0, FX_BACKENDS),
	};

	return fx_run(NULL, NULL, tests, FX_COUNT(tests));
}
