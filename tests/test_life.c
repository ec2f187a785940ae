/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /proc says of a process, of a /proc made by hand; and numbers of processes that other
 * processes have by now.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "reader/read/life.h"
#include "tests/fixture.h"
#include "tests/fixture_daemon.h"

static int dirfd;

static void setup(void)
{
	dirfd = open(fx_tmpdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dirfd, 0);
	ck_assert_int_eq(mkdirat(dirfd, "7", 0700), 0);
}

static void teardown(void)
{
	close(dirfd);
}

static void say(const char *name, const char *text)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "7/%s", name);
	fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static const struct {
	const char *status;
	pid_t ns_pid;
	uint32_t depth;
} numbers[] = {
	{ "Name:\tx\nNSpid:\t7\n", 7, 1 },
	{ "Name:\tx\nNSpid:\t7\t12\t3\nNSpgid:\t7\n", 3, 3 },
	{ "Name:\tx\n", 0, 0 },
	{ "NSpid:\t7\n", 0, 0 },			/* a command may be called so */
	{ "Name:\tx\nNSpid:", 0, 0 },		/* cut, as behind many groups */
	{ "Name:\tx\nNSpid:\t", 0, 0 },
	{ "Name:\tx\nNSpid:\t7\t", 7, 1 },
	{ "Name:\tx\nNSpid:\t\t7", 0, 0 },
	{ "Name:\tx\nNSpid:\t-7\n", 0, 0 },
	{ "Name:\tx\nNSpid:\t99999999999999999999\n", 0, 1 },
};

TEST_LOOP(number_in_its_own_namespace_is_the_last, 0, FX_COUNT(numbers))
{
	uint32_t depth = 99;

	say("status", numbers[_i].status);
	ck_assert_int_eq(life_ns_pid(dirfd, 7, &depth), numbers[_i].ns_pid);
	ck_assert_uint_eq(depth, numbers[_i].depth);
	ck_assert_int_eq(life_ns_pid(dirfd, 8, &depth), 0);
}

static const struct {
	const char *status;
	bool has;
} owners[] = {
	{ "Name:\tx\nUid:\t77\t0\t0\t0\n", true },
	{ "Name:\tx\nUid:\t0\t0\t0\t77\nGid:\t1\t1\t1\t1\n", true },
	{ "Name:\tx\nUid:\t0\t0\t0\t0\nGid:\t77\t77\t77\t77\n", false },
	{ "Uid:\t77\t77\t77\t77\n", false },	/* a command may be called so */
	{ "Name:\tx\nUid:\t", false },
	{ "Name:\tx\nUid:\t0\t", false },
};

#define FIELDS " 1 7 7 0 -1 4 1 0 0 0 5 6 0 0 20 0 1 0 12345 1 2\n"

static const struct {
	const char *stat, *status;
	bool stopped;
	pid_t tracer;
	const char *name;
} halts[] = {
	{ "7 (x) S" FIELDS, "Name:\tx\nTracerPid:\t8\n", false, 0, "" },
	{ "7 (x) T" FIELDS, "Name:\tx\nTracerPid:\t0\n", true, 0, "" },
	{ "7 (x) t" FIELDS, "Name:\tx\nTgid:\t7\nTracerPid:\t8\n", true, 8, "gdb" },
	{ "7 (x) t" FIELDS, "Name:\tx\nTracerPid:\t9\n", true, 9, "" },
	{ "7 (x) t" FIELDS, "TracerPid:\t9\n", true, 0, "" },	/* a command may be called so */
	{ "7 (x) T 1) S" FIELDS, "Name:\tx\nTracerPid:\t0\n", false, 0, "" },
	{ "7 (x) T", "Name:\tx\nTracerPid:\t0\n", false, 0, "" },
};

TEST_LOOP(process_that_is_stopped_is_told_with_its_debugger, 0, FX_COUNT(halts))
{
	pid_t tracer = -1;
	char name[16];

	say("status", halts[_i].status);
	ck_assert_int_eq(mkdirat(dirfd, "7/task", 0700), 0);
	ck_assert_int_eq(mkdirat(dirfd, "7/task/7", 0700), 0);
	say("task/7/stat", halts[_i].stat);
	ck_assert_int_eq(mkdirat(dirfd, "8", 0700), 0);
	say("../8/comm", "gdb\n");
	ck_assert_int_eq(life_is_stopped(fx_tmpdir(), 7, &tracer, name), halts[_i].stopped);
	ck_assert_int_eq(tracer, halts[_i].tracer);
	ck_assert_str_eq(name, halts[_i].name);
	ck_assert(!life_is_stopped(fx_tmpdir(), 6, &tracer, name));
}

TEST_LOOP(process_has_the_user_ids_of_its_line_and_no_others, 0, FX_COUNT(owners))
{
	say("status", owners[_i].status);
	ck_assert_int_eq(life_has_uid(fx_tmpdir(), 7, 77), owners[_i].has);
	ck_assert(!life_has_uid(fx_tmpdir(), 8, 77));
}

static const struct {
	const char *stat;
	uint64_t start;
} stats[] = {
	{ "7 (a) b) S 1 7 7 0 -1 4 1 0 0 0 5 6 0 0 20 0 1 0 12345 1 2\n", 12345 },
	{ "7 (x) Z 1 7 7 0 -1 4 1 0 0 0 5 6 0 0 20 0 1 0 12345 1 2\n", 0 },	/* over */
	{ "7 (x) S 1 7 7 0 -1 4 1 0 0 0 5 6 0 0 20 0 1", 0 },
	{ "7 (x", 0 },
};

TEST_LOOP(process_that_is_over_or_not_to_be_read_has_no_start, 0, FX_COUNT(stats))
{
	say("stat", stats[_i].stat);
	ck_assert_uint_eq(life_start_time(fx_tmpdir(), 7), stats[_i].start);
	ck_assert_uint_eq(life_start_time(fx_tmpdir(), 8), 0);
}

/* ---- a number that is given again ---------------------------------------------------- */

/* Another process with that number, which waits; false, and said so: not allowed here. */
static bool give_again(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1,
	};
	long r = syscall(SYS_clone3, &args, sizeof(args));

	if (r < 0) {
		fx_skip("nobody may choose the number of a process here");
		return false;
	}
	if (r == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	ck_assert_int_eq(r, pid);
	return true;
}

/* Until the kernel's ticks, by which processes of one number are told apart, go on. */
static void outlive_tick(pid_t job)
{
	uint64_t begun = life_start_time(LIFE_PROC, job), now;

	do {
		pid_t pid = fork();

		if (pid == 0)
			for (;;)
				pause();
		now = life_start_time(LIFE_PROC, pid);
		fx_job_kill(pid);
	} while (now <= begun);
}

static void kill_and_give_again(pid_t pid)
{
	outlive_tick(pid);
	fx_job_kill(pid);
	if (!give_again(pid))
		_exit(0);
}

TEST(process_is_not_alive_because_another_has_its_number)
{
	static struct fx_daemon fx;
	char name[80];
	pid_t pid;

	fx_daemon_open(&fx);
	pid = fx_job_fork(fx.dir, fx_job_publish_some, name);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, 1);
	kill_and_give_again(pid);
	fx_daemon_step(&fx, 100);
	ck_assert_uint_eq(fx.seen.ended, 1);
	ck_assert_int_eq(fx.seen.last_state, PROCESS_DIED);
	ck_assert_uint_eq(fx.seen.events, FX_SOME);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, 1);
	fx_job_kill(pid);
	fx_daemon_close(&fx);
}

TEST(file_of_before_is_nobody_s_that_has_its_number_now)
{
	static struct fx_daemon fx;
	char dir[80], name[80];
	pid_t pid;

	snprintf(dir, sizeof(dir), "%s/shm", fx_tmpdir());
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	pid = fx_job_fork(dir, fx_job_publish_some, name);
	kill_and_give_again(pid);
	fx_daemon_open(&fx);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(discover_attached(fx.discover), 0);
	ck_assert_int_eq(fx.seen.last_state, PROCESS_DIED);
	fx_job_kill(pid);
	fx_daemon_close(&fx);
}

int main(void)
{
	return fx_run(setup, teardown);
}
