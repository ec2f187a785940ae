/* SPDX-License-Identifier: Apache-2.0 */
/* No room for a segment, or not enough; and what the plugin says about itself. */
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plugin/room.h"
#include "tests/fixture.h"
#include "tests/plugin_driver.h"

static struct pd pd;

static void setup(void)
{
	pd_open(&pd, "trace");
}

/* NCCL's logger, as it would be. */

static char logged[4096];
static unsigned int warnings, infos;

__attribute__((format(printf, 5, 6)))
static void logger(int level, unsigned long flags, const char *file, int line,
		   const char *format, ...)
{
	va_list args;

	(void)flags;
	(void)file;
	(void)line;
	warnings += level == NCCL_LOG_WARN;
	infos += level == NCCL_LOG_INFO;
	va_start(args, format);
	vsnprintf(logged, sizeof(logged), format, args);
	va_end(args);
}

static void is_muted(const char *why)
{
	warnings = 0;
	pd.mask = 77;
	pd.context = pd_init_named(&pd, 1, "muted", logger);
	ck_assert_uint_eq(warnings, 1);
	ck_assert_msg(strstr(logged, why) != NULL, "\"%s\" does not tell %s", logged, why);
	ck_assert_int_eq(pd.mask, 0);
	ck_assert_ptr_null(PD_START(&pd, NCCL_COLL));
	pd_state(&pd, (void *)5, 1, NULL);
	pd_stop(&pd, (void *)5);
	pd_finalize(&pd, pd.context);
	pd.context = pd_init_named(&pd, 2, "muted again", logger);
	pd_init_named(&pd, 3, "muted too", logger);
	ck_assert_uint_eq(warnings, 1);
	ck_assert_uint_eq(infos, 0);
	ck_assert_uint_eq(pd_segments(&pd), 0);
	pd_finalize(&pd, pd.context);
}

TEST(missing_directory_mutes_with_one_line)
{
	setenv("NCCLINSP_SHM_DIR", "/nonexistent/shm", 1);
	is_muted("/nonexistent/shm: No such file");
}

TEST(relative_directory_mutes_with_one_line)
{
	setenv("NCCLINSP_SHM_DIR", "shm", 1);
	is_muted("Invalid argument");
}

TEST(file_size_limit_mutes_with_one_line)
{
	struct rlimit limit = { 4096, 4096 };

	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	is_muted("File too large");
}

TEST(full_file_system_mutes_with_one_line)
{
	if (fx_mount(pd.dir, "size=64k", 0))
		is_muted("No space left");
}

TEST(read_only_file_system_mutes_with_one_line)
{
	if (fx_mount(pd.dir, "size=1m", MS_RDONLY))
		is_muted("Read-only");
}

TEST(room_for_no_lane_refuses_and_counts)
{
	if (!fx_mount(pd.dir, "size=512k", 0))
		return;
	pd_init(&pd);
	for (int i = 0; i < 10; i++)
		ck_assert_ptr_null(PD_START(&pd, NCCL_COLL));
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.no_lane, 10);
	ck_assert_uint_eq(pd.live.lanes, 0);
}

TEST(segment_is_made_in_memory_or_not_at_all)
{
	char disk[] = "/var/tmp/ncclinsp-test.XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(disk));
	setenv("NCCLINSP_SHM_DIR", disk, 1);
	if (room_is_memory(disk))
		fx_skip("/var/tmp is in memory here");
	else
		is_muted("It is not in memory (tmpfs)");
	ck_assert_int_eq(rmdir(disk), 0);
	setenv("NCCLINSP_SHM_DIR", pd.dir, 1);
}

static uint64_t took_ns;	/* the first event of a thread */

static uint64_t clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void *event_of_a_thread(void *arg)
{
	uint64_t from_ns = clock_now();
	void *handle = PD_START(&pd, NCCL_COLL);

	(void)arg;
	took_ns = clock_now() - from_ns;
	return handle;
}

static int threads_with_a_lane(int n)
{
	pthread_t thread;
	void *handle;
	int got = 0;

	for (int i = 0; i < n; i++) {
		pthread_create(&thread, NULL, event_of_a_thread, NULL);
		pthread_join(thread, &handle);
		got += handle != NULL;
	}
	return got;
}

/* 16 MiB: lanes of 384 KiB may take 2 of them. */
TEST(lanes_take_an_eighth_of_what_is_free)
{
	if (!fx_mount(pd.dir, "size=16m", 0))
		return;
	pd_init(&pd);
	for (int i = 0; i < 15; i++)	/* which would make lanes ahead */
		pd_init_named(&pd, 2 + (uint64_t)i, "more", NULL);
	pd_read(&pd);
	ck_assert_uint_ge(pd.live.lanes, 3);
	ck_assert_uint_le(pd.live.lanes, 16 * 1024 / 384 / 8);
}

/* Making one needs a larger file, which this process may not have any more. */
TEST(first_event_of_a_thread_finds_its_lane_made)
{
	struct rlimit limit;

	pd_init(&pd);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = 4096;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(threads_with_a_lane(1), 1);
		printf("# the first event of a thread: %.1f us\n", (double)took_ns / 1000);
	}
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.no_lane, 0);
}

static uint64_t with_limit(const char *group, const char *limit)
{
	char path[256];
	int fd, pipes[2];
	uint64_t room = 0;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/memory.limit_in_bytes", group);
	fd = open(path, O_WRONLY);
	ck_assert_int_ge(write(fd, limit, strlen(limit)), 1);
	close(fd);
	ck_assert_int_eq(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		snprintf(path, sizeof(path), "%s/tasks", group);
		fd = open(path, O_WRONLY);
		if (fd >= 0 && write(fd, "0", 1) == 1)
			room = room_in_cgroups();
		_exit(write(pipes[1], &room, sizeof(room)) < 0);
	}
	ck_assert_int_eq(read(pipes[0], &room, sizeof(room)), sizeof(room));
	waitpid(pid, NULL, 0);
	close(pipes[0]);
	close(pipes[1]);
	return room;
}

TEST(room_is_what_the_memory_cgroup_leaves)
{
	const char *group = "/sys/fs/cgroup/memory/ncclinsp-test-room";
	uint64_t room;

	if (mkdir(group, 0700) < 0) {
		fx_skip("no cgroup can be made here");
		return;
	}
	room = with_limit(group, "50000000");
	ck_assert_uint_ge(room, 30000000);
	ck_assert_uint_le(room, 50000000);
	room = with_limit(group, "-1");
	ck_assert_uint_gt(room, 50000000);
	ck_assert_int_eq(rmdir(group), 0);
}

/* Which hides the directory of segments. */
static bool mount_dev_shm(const char *options)
{
	return fx_mount("/dev/shm", options, 0) && mkdir(pd.dir, 0700) == 0;
}

TEST(small_dev_shm_goes_without_kernel_ch_and_says_why)
{
	setenv("NCCLINSP_LEVEL", "net", 1);
	setenv("NCCLINSP_KERNELS", "always", 1);
	if (!mount_dev_shm("size=16m"))
		return;
	pd_init(&pd);
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.seen, NCI_SEEN_SCARCE);
	ck_assert_int_eq(pd.mask & NCCL_KERNEL_CH, 0);
	ck_assert_int_eq(pd.mask & NCCL_PROXY_STEP, NCCL_PROXY_STEP);
}

TEST(dev_shm_without_a_limit_has_room)
{
	setenv("NCCLINSP_LEVEL", "net", 1);
	setenv("NCCLINSP_KERNELS", "always", 1);
	if (!mount_dev_shm("size=0"))
		return;
	pd_init(&pd);
	ck_assert_int_eq(pd.mask & NCCL_KERNEL_CH, NCCL_KERNEL_CH);
}

static void fill_dev_shm(size_t bytes)
{
	int fd = open("/dev/shm/filler", O_CREAT | O_RDWR, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(posix_fallocate(fd, 0, (off_t)bytes), 0);
	close(fd);
}

/* Toggled on again, it would lie where graphs were captured meanwhile. */
TEST(dev_shm_that_fills_up_costs_later_communicators_kernel_ch_for_good)
{
	setenv("NCCLINSP_LEVEL", "net", 1);
	setenv("NCCLINSP_KERNELS", "always", 1);
	if (!mount_dev_shm("size=64m"))
		return;
	pd_init_named(&pd, 1, "first", logger);
	ck_assert_int_eq(pd.mask & NCCL_KERNEL_CH, NCCL_KERNEL_CH);
	fill_dev_shm(32 << 20);
	for (int i = 0; i < 2; i++) {
		pd.context = pd_init_named(&pd, 2, "later", logger);
		pd_stop(&pd, PD_START(&pd, NCCL_GROUP_API, .eager = true));
		ck_assert_int_eq(pd.mask & NCCL_KERNEL_CH, 0);
		unlink("/dev/shm/filler");
	}
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.seen, NCI_SEEN_SCARCE);
	ck_assert_uint_eq(pd.live.mask, (uint32_t)pd.mask);
	ck_assert_uint_eq(infos, 2);
	ck_assert_ptr_nonnull(strstr(logged, "not timed any more"));
}

/* Of the C library's and of everybody's in this process; 0: not told here. */
static unsigned long long reads_so_far(void)
{
	FILE *f = fopen("/proc/self/io", "r");
	unsigned long long reads = 0;

	if (!f)
		return 0;
	if (fscanf(f, "rchar: %*u wchar: %*u syscr: %llu", &reads) != 1)
		reads = 0;
	fclose(f);
	return reads;
}

TEST(communicators_that_come_together_look_at_the_machine_once)
{
	unsigned long long before;

	if (!reads_so_far() || room_in("/dev/shm", room_in_cgroups()) < UINT64_C(10) << 30)
		return fx_skip("reads are not counted, or too little is free");
	pd_init(&pd);
	before = reads_so_far();
	for (int i = 0; i < 12; i++)
		pd_init_named(&pd, 2, "more", NULL);
	ck_assert_uint_le(reads_so_far() - before, 2);
}

TEST(space_that_comes_later_is_used_by_the_next_first_init)
{
	setenv("NCCLINSP_SHM_DIR", "/nonexistent/shm", 1);
	pd.context = pd_init_named(&pd, 1, "muted", logger);
	setenv("NCCLINSP_SHM_DIR", pd.dir, 1);
	pd_finalize(&pd, pd.context);
	pd_init(&pd);
	ck_assert_ptr_nonnull(PD_START(&pd, NCCL_COLL));
	pd_read(&pd);
}

TEST(old_versions_say_on_stderr_why_they_are_muted)
{
	char text[256] = "";
	int pipefd[2];

	ck_assert_int_eq(pipe(pipefd), 0);
	dup2(pipefd[1], STDERR_FILENO);
	setenv("NCCLINSP_SHM_DIR", "/nonexistent/shm", 1);
	pd.version = 2;
	pd_init(&pd);
	pd_init(&pd);
	close(pipefd[1]);
	close(STDERR_FILENO);
	ck_assert_int_gt(read(pipefd[0], text, sizeof(text) - 1), 0);
	ck_assert_ptr_nonnull(strstr(text, "/nonexistent/shm: No such file"));
	ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
}

TEST(logger_hears_one_line_at_first_init_and_at_last_finalize)
{
	void *a = pd_init_named(&pd, 1, "a", logger), *b;

	ck_assert_uint_eq(infos, 1);
	ck_assert_ptr_nonnull(strstr(logged, "active, level trace, events 0x7fff"));
	b = pd_init_named(&pd, 2, "b", logger);
	pd_finalize(&pd, a);
	ck_assert_uint_eq(infos, 1);
	pd_finalize(&pd, b);
	ck_assert_uint_eq(infos, 2);
	ck_assert_uint_eq(warnings, 0);
}

static unsigned int calls_of_other;

static void logger_of_other_nccl(int level, unsigned long flags, const char *file, int line,
				 const char *format, ...)
{
	(void)level;
	(void)flags;
	(void)file;
	(void)line;
	(void)format;
	calls_of_other++;
}

/* Two NCCLs in one process: the one whose communicator is gone may be unmapped. */
TEST(last_line_goes_to_the_logger_that_came_with_the_communicator)
{
	void *a = pd_init_named(&pd, 1, "a", logger);
	void *b = pd_init_named(&pd, 2, "b", logger_of_other_nccl);

	pd_finalize(&pd, b);
	calls_of_other = 0;
	pd_finalize(&pd, a);
	ck_assert_uint_eq(calls_of_other, 0);
	ck_assert_uint_eq(infos, 2);
}

int main(void)
{
	return fx_run(setup, NULL);
}
