/* SPDX-License-Identifier: Apache-2.0 */
/* Segments and lanes: made, locked, reused, forked, and refused where there is no room. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fixture.h"
#include "tests/fixture_ring.h"

static struct fx_lane fx;

static void setup(void)
{
	fx_lane_open(&fx);
}

static void teardown(void)
{
	fx_lane_close(&fx);
}

static const char *segment_path(void)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/segment", fx_tmpdir());
	return path;
}

static uint32_t lane_state(uint32_t i)
{
	return atomic_load_explicit(&fx.ring.directory[i].state, memory_order_acquire);
}

static uint32_t lanes_in_use(void)
{
	return atomic_load_explicit(&fx.ring.live->lanes, memory_order_relaxed);
}

/* Who holds the write lock, as a reader asks; 0: nobody. */
static pid_t lock_holder(int fd)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

	ck_assert_int_eq(fcntl(fd, F_GETLK, &lock), 0);
	return lock.l_type == F_UNLCK ? 0 : lock.l_pid;
}

/* A thread that takes a lane, publishes `records`, and dies. */
struct worker {
	pthread_t thread;
	pid_t tid;
	struct shmring_lane *lane;
	uint64_t from, records;
	pthread_barrier_t *together;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	w->tid = gettid();
	w->lane = shmring_lane_new(&fx.ring, w->tid);
	if (w->lane)
		fx_publish_many(w->lane, w->from, w->from + w->records, 1);
	if (w->together)
		pthread_barrier_wait(w->together);
	return NULL;
}

static void run_worker(struct worker *w)
{
	ck_assert_int_eq(pthread_create(&w->thread, NULL, work, w), 0);
	ck_assert_int_eq(pthread_join(w->thread, NULL), 0);
	while (tgkill(getpid(), w->tid, 0) == 0)	/* the kernel has it for a moment more */
		sched_yield();
}

TEST(segment_is_laid_out_as_the_abi_says)
{
	const struct nci_header *h = fx.ring.header;
	struct stat st;

	ck_assert_uint_eq(h->magic, NCI_MAGIC);
	ck_assert_mem_eq(h, "cclinsp\n", 8);
	ck_assert_uint_eq(h->live_offset % NCI_LINE_BYTES, 0);
	ck_assert_uint_eq(h->comms_offset, h->live_offset + sizeof(struct nci_live) +
			  h->lanes * sizeof(struct nci_lane));
	ck_assert_uint_eq(h->strings_offset, h->comms_offset + h->comms * sizeof(struct nci_comm));
	ck_assert_int_eq(stat(segment_path(), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_uint_eq((uint64_t)st.st_size % NCI_PAGE, 0);
	ck_assert_uint_ge((uint64_t)st.st_blocks * 512, (uint64_t)st.st_size);
	ck_assert_uint_ge((uint64_t)st.st_size, h->strings_offset +
			  h->strings * sizeof(struct nci_string) +
			  SHMRING_LINES * NCI_LINE_BYTES + SHMRING_SLOTS * NCI_SLOT_BYTES);
}

TEST(eight_lanes_stay_below_4_mib)
{
	struct stat st;

	for (uint32_t i = 1; i < 8; i++)
		ck_assert_ptr_nonnull(fx_lane_more(&fx.ring));
	ck_assert_uint_eq(lanes_in_use(), 8);
	ck_assert_int_eq(stat(segment_path(), &st), 0);
	ck_assert_int_le(st.st_size, 4 << 20);
}

TEST(thread_that_asks_twice_gets_its_own_lane_again)
{
	ck_assert_ptr_eq(shmring_lane_new(&fx.ring, gettid()), fx.lane);
	ck_assert_uint_eq(lanes_in_use(), 1);
}

TEST(dead_threads_lane_is_reused_and_its_cursors_go_on)
{
	struct worker first = { .records = 10 }, second = { .from = 10, .records = 5 };
	uint64_t last = 0;

	run_worker(&first);
	run_worker(&second);
	ck_assert_ptr_eq(first.lane, second.lane);
	ck_assert_uint_eq(lanes_in_use(), 2);
	ck_assert_uint_eq(first.lane->out->line->owners, 2);
	fx_lane_attach(&fx, first.lane->index);
	ck_assert_uint_eq(fx_lane_drain(&fx, &last), 15);
}

TEST(what_a_dead_thread_left_in_flight_can_be_stopped_by_others)
{
	struct worker w = { 0 };
	uint64_t token, last = 1;
	struct nci_record *rec;

	run_worker(&w);
	token = fx_start(w.lane, 0, 1);
	run_worker(&w);
	rec = shmring_find(&fx.ring, token);
	ck_assert(shmring_close(fx.lane, rec, token, 7));
	ck_assert_uint_eq(fx_lane_drain(&fx, &last), 1);
}

TEST(torn_lane_is_never_given_to_another_thread)
{
	struct worker first = { .records = 1 }, second = { .records = 1 };

	run_worker(&first);
	shmring_begin(first.lane->out, 1);
	run_worker(&second);
	ck_assert_ptr_ne(first.lane, second.lane);
}

TEST(more_threads_than_lanes_get_null_and_the_rest_work)
{
	static struct worker w[NCI_MAX_LANES + 9];
	const uint32_t threads = FX_COUNT(w);
	pthread_barrier_t together;
	uint32_t refused = 0;
	uint64_t last = 0;

	ck_assert_int_eq(pthread_barrier_init(&together, NULL, threads), 0);
	for (uint32_t i = 0; i < threads; i++) {
		w[i] = (struct worker){ .records = i + 1, .together = &together };
		ck_assert_int_eq(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (uint32_t i = 0; i < threads; i++)
		ck_assert_int_eq(pthread_join(w[i].thread, NULL), 0);
	pthread_barrier_destroy(&together);
	for (uint32_t i = 0; i < threads; i++) {
		if (!w[i].lane) {
			refused++;
			continue;
		}
		for (uint32_t k = 0; k < i; k++)
			ck_assert_ptr_ne(w[i].lane, w[k].lane);
		fx_lane_attach(&fx, w[i].lane->index);
		ck_assert_uint_eq(fx_lane_drain(&fx, &last), i + 1);
	}
	ck_assert_uint_eq(refused, threads - (NCI_MAX_LANES - 1));
	ck_assert_uint_eq(lanes_in_use(), NCI_MAX_LANES);
}

TEST(threads_that_come_and_go_share_few_lanes)
{
	static struct worker w[64];

	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 8; i++) {
			w[i] = (struct worker){ .records = 100 };
			ck_assert_int_eq(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
		}
		for (int i = 0; i < 8; i++)
			ck_assert_int_eq(pthread_join(w[i].thread, NULL), 0);
	}
	ck_assert_uint_le(lanes_in_use(), 9);
	for (uint32_t i = 0; i < lanes_in_use(); i++)
		ck_assert_uint_eq(lane_state(i), NCI_LANE_READY);
}

/* Pages of [at, at + bytes) that a touch would not fault on; -1: the kernel does not say. */
static int present_pages(const void *at, size_t bytes)
{
	uint64_t entry[256];
	size_t pages = bytes / NCI_PAGE;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), present = 0;
	ssize_t n = pread(fd, entry, pages * sizeof(entry[0]),
			  (off_t)((uintptr_t)at / NCI_PAGE * sizeof(entry[0])));

	close(fd);
	if (n != (ssize_t)(pages * sizeof(entry[0])))
		return -1;
	for (size_t i = 0; i < pages; i++)
		present += (int)(entry[i] >> 63);
	return present;
}

TEST(pages_of_a_new_lane_are_there)
{
	const size_t bytes = SHMRING_LINES * NCI_LINE_BYTES + SHMRING_SLOTS * NCI_SLOT_BYTES;
	int present = present_pages(fx.lane->out->ring, bytes);

	if (present < 0)
		fx_skip("the kernel does not tell which pages are there");
	else
		ck_assert_int_eq(present, bytes / NCI_PAGE);
}

TEST(reader_sees_the_lock_through_a_read_only_descriptor_until_death)
{
	const char *dir = fx_tmpdir();
	pid_t child;
	int go[2];
	char c;

	ck_assert_int_eq(lock_holder(fx.fd), 0);	/* one's own locks do not show */
	ck_assert_int_eq(pipe(go), 0);
	unlink(segment_path());
	child = fork();
	if (child == 0) {
		shmring_forget(&fx.ring);
		if (shmring_create(&fx.ring, dir, "segment") == 0)
			(void)!write(go[1], "r", 1);
		pause();
	}
	ck_assert_int_eq(read(go[0], &c, 1), 1);
	close(fx.fd);
	fx.fd = open(segment_path(), O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(lock_holder(fx.fd), child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ck_assert_int_eq(lock_holder(fx.fd), 0);
}

/* In a child, since one's own locks do not show. */
static int parent_still_holds_it(pid_t parent)
{
	shmring_forget(&fx.ring);
	return fx.ring.header == NULL && lock_holder(fx.fd) == parent ? 0 : 1;
}

TEST(forked_child_lets_go_and_the_parent_keeps_lock_and_lane)
{
	pid_t parent = getpid(), child = fork();
	uint64_t last = 0;
	int status;

	if (child == 0)
		_exit(parent_still_holds_it(parent));
	fx_publish_many(fx.lane, 0, 10, 2);
	waitpid(child, &status, 0);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(fx_lane_drain(&fx, &last), 10);
	child = fork();
	if (child == 0)
		_exit(parent_still_holds_it(parent));
	waitpid(child, &status, 0);
	ck_assert_int_eq(status, 0);
}

TEST(segment_from_before_an_exec_is_replaced)
{
	struct shmring again;
	struct stat old, new;

	ck_assert_int_eq(fcntl(fx.ring.fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fstat(fx.fd, &old), 0);
	ck_assert_int_eq(shmring_create(&again, fx_tmpdir(), "segment"), 0);
	ck_assert_int_eq(stat(segment_path(), &new), 0);
	ck_assert_uint_ne(old.st_ino, new.st_ino);
	ck_assert_uint_eq(again.live->lanes, 0);
	shmring_forget(&again);
}

/* Whose lock a child sees: one's own would not show. */
TEST(segment_that_another_process_holds_is_left_alone)
{
	const char *dir = fx_tmpdir();
	struct shmring again;
	struct stat old, new;
	pid_t child;
	int status;

	ck_assert_int_eq(fstat(fx.fd, &old), 0);
	child = fork();
	if (child == 0)
		_exit(shmring_create(&again, dir, "segment") == -EEXIST ? 0 : 1);
	waitpid(child, &status, 0);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(stat(segment_path(), &new), 0);
	ck_assert_uint_eq(old.st_ino, new.st_ino);
}

TEST(what_cannot_be_removed_keeps_its_name)
{
	struct shmring again;
	char path[160];

	snprintf(path, sizeof(path), "%s/taken", fx_tmpdir());
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(shmring_create(&again, fx_tmpdir(), "taken"), -EEXIST);
	ck_assert_int_eq(rmdir(path), 0);
}

TEST(link_in_the_way_is_replaced_and_not_followed)
{
	char target[160];
	struct shmring again;
	struct stat st;

	snprintf(target, sizeof(target), "%s/target", fx_tmpdir());
	ck_assert_int_eq(close(open(target, O_CREAT | O_WRONLY, 0600)), 0);
	unlink(segment_path());
	ck_assert_int_eq(symlink(target, segment_path()), 0);
	ck_assert_int_eq(shmring_create(&again, fx_tmpdir(), "segment"), 0);
	ck_assert_int_eq(stat(target, &st), 0);
	ck_assert_int_eq(st.st_size, 0);
	shmring_forget(&again);
}

TEST(descriptor_that_the_job_took_is_neither_grown_nor_closed)
{
	char path[160];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/job", fx_tmpdir());
	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	ck_assert_int_eq(dup2(fd, fx.ring.fd), fx.ring.fd);
	fd = fx.ring.fd;
	ck_assert_ptr_null(fx_lane_more(&fx.ring));
	ck_assert_uint_eq(lane_state(1), NCI_LANE_REFUSED);
	fx_publish(fx.lane, 0, 1);
	shmring_forget(&fx.ring);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(st.st_size, 0);
	close(fd);
}

TEST(segment_never_becomes_a_standard_stream)
{
	struct shmring again;
	int saved[2] = { dup(STDIN_FILENO), dup(STDOUT_FILENO) };

	close(STDIN_FILENO);		/* where the directory is opened */
	close(STDOUT_FILENO);
	ck_assert_int_eq(shmring_create(&again, fx_tmpdir(), "other"), 0);
	ck_assert_int_gt(again.fd, STDERR_FILENO);
	ck_assert_int_eq(fcntl(again.fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_lt(fcntl(STDOUT_FILENO, F_GETFD), 0);
	shmring_forget(&again);
	for (int i = 0; i < 2; i++) {
		dup2(saved[i], i);
		close(saved[i]);
	}
}

TEST(missing_directory_is_told)
{
	struct shmring ring;

	ck_assert_int_eq(shmring_create(&ring, "/nonexistent/dir", "segment"), -ENOENT);
	ck_assert_int_eq(shmring_create(&ring, segment_path(), "segment"), -ENOTDIR);
}

TEST(limit_on_file_size_refuses_and_does_not_kill)
{
	struct rlimit limit;
	struct shmring ring;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = 3 << 18;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(shmring_create(&ring, fx_tmpdir(), "small"), 0);
	ck_assert_ptr_nonnull(shmring_lane_new(&ring, gettid()));
	ck_assert_ptr_null(fx_lane_more(&ring));
	shmring_forget(&ring);
	limit.rlim_cur = 1 << 16;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(shmring_create(&ring, fx_tmpdir(), "none"), -EFBIG);
	ck_assert_int_eq(access(segment_path(), F_OK), 0);
}

/* A lane, asked for as long as it may take until it is tried again. */
static struct shmring_lane *lane_in_a_second(struct shmring *ring)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	struct shmring_lane *lane = NULL;

	for (int i = 0; i < 100 && !lane; i++) {
		lane = fx_lane_more(ring);
		nanosleep(&pause, NULL);
	}
	return lane;
}

TEST(full_file_system_refuses_lanes_and_has_all_numbers_later)
{
	struct shmring ring;

	if (!fx_mount(fx_tmpdir(), "size=700k", 0))
		return;
	ck_assert_int_eq(shmring_create(&ring, fx_tmpdir(), "segment"), 0);
	for (int i = 0; i < 2 * NCI_MAX_LANES; i++)
		ck_assert_int_eq(fx_lane_more(&ring) != NULL, i == 0);
	ck_assert_int_eq(mount("", fx_tmpdir(), "", MS_REMOUNT, "size=64m"), 0);
	ck_assert_ptr_nonnull(lane_in_a_second(&ring));
	for (int i = 2; i < NCI_MAX_LANES; i++)
		ck_assert_ptr_nonnull(fx_lane_more(&ring));
	shmring_forget(&ring);
}

TEST(full_file_system_refuses_lanes_and_keeps_the_rest)
{
	struct shmring ring;
	struct shmring_lane *lane;

	if (!fx_mount(fx_tmpdir(), "size=700k", 0))
		return;
	ck_assert_int_eq(shmring_create(&ring, fx_tmpdir(), "segment"), 0);
	lane = shmring_lane_new(&ring, gettid());
	ck_assert_ptr_nonnull(lane);
	ck_assert_ptr_null(fx_lane_more(&ring));
	ck_assert_ptr_null(fx_lane_more(&ring));
	fx_publish_many(lane, 0, 2 * SHMRING_LINES, 2);
	ck_assert_uint_eq(ring.live->lanes, 2);
	ck_assert_uint_eq(ring.directory[1].state, NCI_LANE_REFUSED);
	shmring_forget(&ring);
}

TEST(file_system_without_room_leaves_nothing_behind)
{
	struct shmring ring;

	if (!fx_mount(fx_tmpdir(), "size=64k", 0))
		return;
	ck_assert_int_eq(shmring_create(&ring, fx_tmpdir(), "segment"), -ENOSPC);
	ck_assert_int_eq(access(segment_path(), F_OK), -1);
	ck_assert_int_eq(mount("", fx_tmpdir(), "", MS_REMOUNT | MS_RDONLY, NULL), 0);
	ck_assert_int_eq(shmring_create(&ring, fx_tmpdir(), "segment"), -EROFS);
}

TEST(forgetting_a_closed_segment_does_nothing)
{
	struct shmring ring = { 0 };

	shmring_forget(&ring);
	ck_assert_int_eq(fcntl(0, F_GETFD) < 0 && errno == EBADF, 0);
}

int main(void)
{
	return fx_run(setup, teardown);
}
