/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are there whole or not at all, and no more of them than allowed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ncclinspd/keep/writer.h"
#include "shmring/clock.h"
#include "tests/fixture.h"
#include "util/log.h"
#include "util/zst.h"

static struct writer *w;

static void open_dir(uint32_t files, uint64_t bytes)
{
	const struct writer_limits limits = { .files = files, .bytes = bytes };

	ck_assert_int_eq(writer_open(&w, fx_tmpdir(), "box-", &limits), 0);
}

/* Too many at a time are refused: then wait until there is room. */
static void put(int number, const char *text)
{
	char name[32];

	snprintf(name, sizeof(name), "box-%03d.json", number);
	while (writer_put(w, name, strdup(text), strlen(text)) == -EBUSY)
		usleep(1000);
}

static const char *path_of(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", fx_tmpdir(), name);
	return path;
}

static int count_in(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int n = 0;

	while ((entry = readdir(dir)))
		n += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	closedir(dir);
	return n;
}

static int count_files(void)
{
	return count_in(fx_tmpdir());
}

static int count_threads(void)
{
	return count_in("/proc/self/task");
}

TEST(what_was_given_is_there_when_the_writer_is_gone)
{
	char text[16] = "";
	struct stat st;
	FILE *file;

	open_dir(10, 1000);
	put(1, "hello");
	writer_close(w);
	file = fopen(path_of("box-001.json"), "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fread(text, 1, sizeof(text) - 1, file), 5);
	ck_assert_str_eq(text, "hello");
	fclose(file);
	ck_assert_int_eq(stat(path_of("box-001.json"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	ck_assert_int_eq(count_files(), 1);
}

TEST(the_oldest_make_room_and_what_is_not_ours_stays)
{
	FILE *other = fopen(path_of("notes"), "w");

	fclose(other);
	ck_assert_int_eq(mkdir(path_of("box-000"), 0700), 0);	/* nor what is no file */
	open_dir(3, 1000);
	for (int i = 0; i < 20; i++)
		put(i, "hello");
	writer_close(w);
	ck_assert_int_eq(count_files(), 5);
	ck_assert_int_eq(access(path_of("box-016.json"), F_OK), -1);
	ck_assert_int_eq(access(path_of("box-017.json"), F_OK), 0);
	ck_assert_int_eq(access(path_of("box-019.json"), F_OK), 0);
}

/* Hosts whose files are in one directory: "node1" is how "node1-a" begins. */
TEST(what_bears_no_time_behind_the_prefix_is_somebody_elses)
{
	const struct writer_limits limits = { .files = 2, .bytes = 1000, .stamped = true };
	static const char *const others[] = {
		"node1-a-20261122T060000.000000001Z.json", "node1-20261122.json",
		"node1-20261122T060000Z.json", "node1-",
	};
	char name[64];

	for (size_t i = 0; i < FX_COUNT(others); i++)
		fclose(fopen(path_of(others[i]), "w"));
	ck_assert_int_eq(writer_open(&w, fx_tmpdir(), "node1-", &limits), 0);
	for (int i = 0; i < 9; i++) {
		snprintf(name, sizeof(name), "node1-20261122T06000%d.000000001Z.json", i);
		while (writer_put(w, name, strdup("x"), 1) == -EBUSY)
			usleep(1000);
	}
	writer_close(w);
	for (size_t i = 0; i < FX_COUNT(others); i++)
		ck_assert_int_eq(access(path_of(others[i]), F_OK), 0);
	ck_assert_int_eq(count_files(), FX_COUNT(others) + 2);
}

TEST(bytes_are_limited_but_the_newest_always_stays)
{
	open_dir(100, 12);
	for (int i = 0; i < 5; i++)
		put(i, "hello");
	put(9, "a long one, longer than all that is allowed");
	writer_close(w);
	ck_assert_int_eq(count_files(), 1);
	ck_assert_int_eq(access(path_of("box-009.json"), F_OK), 0);
}

TEST(a_failure_is_counted_and_leaves_nothing_behind)
{
	struct writer_stats stats;

	ck_assert_int_eq(mkdir(path_of("box-001.json"), 0700), 0);	/* in the way */
	open_dir(10, 1000);
	put(1, "hello");
	do {
		usleep(1000);
		writer_read_stats(w, &stats);
	} while (!stats.failed && !stats.written);
	ck_assert_uint_eq(stats.failed, 1);
	ck_assert_int_lt(stats.error, 0);
	writer_close(w);
	ck_assert_int_eq(count_files(), 1);
}

TEST(without_its_directory_nothing_is_written)
{
	const struct writer_limits limits = { .files = 1, .bytes = 1 };

	ck_assert_int_eq(writer_open(&w, path_of("nowhere"), "box-", &limits), -ENOENT);
}

struct seen {
	char names[256];
	uint64_t bytes;
};

static void note(void *arg, const char *name, uint64_t bytes)
{
	struct seen *seen = arg;

	strcat(strcat(seen->names, name), " ");
	seen->bytes += bytes;
}

TEST(what_is_there_is_known_and_can_be_read)
{
	struct seen seen = { "", 0 };
	size_t bytes;
	char *text;

	open_dir(1, 1000);
	put(1, "hello");
	put(2, "hi");
	writer_close(w);
	open_dir(1, 1000);
	writer_visit(w, note, &seen);
	ck_assert_str_eq(seen.names, "box-002.json ");
	ck_assert_uint_eq(seen.bytes, 2);
	ck_assert_int_eq(writer_read(w, "box-002.json", 100, &text, &bytes), 0);
	ck_assert_uint_eq(bytes, 2);
	ck_assert_mem_eq(text, "hi", 2);
	free(text);
	ck_assert_int_eq(writer_read(w, "box-002.json", 1, &text, &bytes), 0);
	ck_assert_uint_eq(bytes, 1);
	free(text);
	ck_assert_int_eq(writer_read(w, "box-001.json", 100, &text, &bytes), -ENOENT);
	ck_assert_int_eq(writer_read(w, ".", 100, &text, &bytes), -ENOENT);
	writer_close(w);
}

TEST(what_is_written_is_known_at_once_when_it_is_counted)
{
	struct writer_stats stats;
	struct seen seen = { "", 0 };

	open_dir(8, 1000);
	put(1, "hello");
	do {
		usleep(1000);
		writer_read_stats(w, &stats);
	} while (!stats.written);
	writer_visit(w, note, &seen);
	ck_assert_str_eq(seen.names, "box-001.json ");
	writer_close(w);
}

TEST(what_sorts_before_the_given_name_is_too_old)
{
	open_dir(100, 1000);
	for (int i = 0; i < 6; i++)
		put(i, "hello");
	writer_close(w);
	open_dir(100, 1000);
	writer_expire(w, "box-004.json");
	put(7, "hello");
	writer_close(w);
	ck_assert_int_eq(access(path_of("box-003.json"), F_OK), -1);
	ck_assert_int_eq(access(path_of("box-004.json"), F_OK), 0);
	ck_assert_int_eq(count_files(), 3);
}

TEST(what_was_written_last_stays_wherever_it_sorts)
{
	open_dir(3, 1000);
	for (int i = 7; i < 10; i++)
		put(i, "hello");
	put(1, "hello");
	writer_close(w);
	ck_assert_int_eq(count_files(), 3);
	ck_assert_int_eq(access(path_of("box-001.json"), F_OK), 0);
	ck_assert_int_eq(access(path_of("box-007.json"), F_OK), -1);
}

TEST(what_is_ahead_of_all_that_can_be_makes_room_first)
{
	open_dir(4, 1000);
	put(1, "hello");
	for (int i = 900; i < 903; i++)
		put(i, "hello");
	writer_distrust(w, "box-500.json");
	for (int i = 2; i < 5; i++)
		put(i, "hello");
	writer_close(w);
	ck_assert_int_eq(count_files(), 4);
	ck_assert_int_eq(access(path_of("box-001.json"), F_OK), 0);
	ck_assert_int_eq(access(path_of("box-004.json"), F_OK), 0);
}

TEST(wrong_clock_for_a_moment_does_not_cost_all_there_is)
{
	open_dir(100, 1000);
	for (int i = 0; i < 20; i++)
		put(i, "hello");
	writer_expire(w, "box-900.json");
	put(999, "hello");
	writer_close(w);
	ck_assert_int_eq(count_files(), 20 + 1 - 4);
}

TEST(a_directory_that_vanished_is_made_again)
{
	const struct writer_limits limits = { .files = 8, .bytes = 1000 };
	struct writer_stats stats;
	struct stat st;

	ck_assert_int_eq(mkdir(path_of("place"), 0700), 0);
	ck_assert_int_eq(writer_open(&w, path_of("place"), "box-", &limits), 0);
	ck_assert_int_eq(rmdir(path_of("place")), 0);
	put(1, "hello");
	do {
		usleep(1000);
		writer_read_stats(w, &stats);
	} while (!stats.written && !stats.failed);
	ck_assert_int_eq(stats.failing, 0);
	writer_close(w);
	ck_assert_int_eq(stat(path_of("place/box-001.json"), &st), 0);
	ck_assert_int_eq(st.st_size, 5);
}

TEST(a_compressed_file_holds_the_text)
{
	const struct writer_limits limits = { .files = 8, .bytes = 1000, .compressed = true };
	char packed[64], *text;
	size_t bytes;
	FILE *file;

	ck_assert_int_eq(writer_open(&w, fx_tmpdir(), "box-", &limits), 0);
	put(1, "hello");
	writer_close(w);
	file = fopen(path_of("box-001.json"), "r");
	bytes = fread(packed, 1, sizeof(packed), file);
	fclose(file);
	ck_assert_int_eq(zst_expand(packed, bytes, 5, &text, &bytes), 0);
	ck_assert_mem_eq(text, "hello", 5);
	free(text);
}

#define BIG	(4u << 20)

static void write_until_killed(const char *place)
{
	const struct writer_limits limits = { .files = 8, .bytes = UINT64_C(1) << 30 };

	if (writer_open(&w, place, "box-", &limits) < 0)
		_exit(1);
	for (int i = 0; ; i++) {
		char *text = malloc(BIG), name[32];

		memset(text, 'x', BIG);
		snprintf(name, sizeof(name), "box-%03d.json", i % 1000);
		if (writer_put(w, name, text, BIG) < 0)
			usleep(100);
	}
}

/* Counts the whole ones, and takes them away. */
static int check_whole(const char *place)
{
	DIR *dir = opendir(place);
	struct dirent *entry;
	char path[512];
	struct stat st;
	int n = 0;

	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", place, entry->d_name);
		if (!strncmp(entry->d_name, "box-", 4) && stat(path, &st) == 0) {
			ck_assert_int_eq(st.st_size, BIG);
			n++;
		}
		unlink(path);
	}
	closedir(dir);
	return n;
}

/* In memory: a disk would make it wait, and who waits is not in the middle of a write. */
TEST(who_is_killed_while_writing_leaves_whole_files_only)
{
	char place[] = "/dev/shm/ncclinsp-test.XXXXXX";
	int whole = 0;

	ck_assert_ptr_nonnull(mkdtemp(place));
	for (int i = 0; i < 40 || (!whole && i < 2000); i++) {
		pid_t pid = fork();

		if (!pid)
			write_until_killed(place);
		/* Longer each time around where that is too short for a single file. */
		usleep((5000 + (useconds_t)(i % 40) * 250) * (whole ? 1 : 1 + (useconds_t)i / 40));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		whole += check_whole(place);
	}
	rmdir(place);
	ck_assert_int_gt(whole, 0);
}

TEST(what_a_killed_writer_left_half_written_goes)
{
	FILE *half = fopen(path_of(".box.new"), "w");

	fclose(half);
	open_dir(8, 1000);
	ck_assert_int_eq(count_files(), 0);
	writer_close(w);
}

/* ---- a directory that does not answer ------------------------------------------------- */

/* Who opens a pipe to write into it waits for a reader: as on a disk that hangs. */
static void open_hanging(void)
{
	open_dir(8, 1000);
	ck_assert_int_eq(mkfifo(path_of(".box.new"), 0600), 0);
	put(1, "hello");
}

/* The thread may not have come to it yet. */
static void let_go(void)
{
	while (access(path_of(".box.new"), F_OK) == 0) {
		int fd = open(path_of(".box.new"), O_RDONLY | O_NONBLOCK);

		usleep(1000);
		if (fd >= 0)
			close(fd);
	}
}

TEST(what_hangs_fails_after_ten_seconds_and_no_longer_than_it_lasts)
{
	const uint64_t second_ns = 1000000000;
	struct writer_stats stats;

	open_hanging();
	for (uint64_t i = 1; i <= 10; i++)
		writer_watch(w, i * second_ns);
	writer_read_stats(w, &stats);
	ck_assert_int_eq(stats.failing, 0);
	writer_watch(w, 11 * second_ns);
	writer_read_stats(w, &stats);
	ck_assert_int_eq(stats.failing, -ETIMEDOUT);
	let_go();
	put(2, "hi");
	do {
		usleep(1000);
		writer_read_stats(w, &stats);
	} while (!stats.written);
	ck_assert_int_eq(stats.failing, 0);
	for (uint64_t i = 1000; i <= 1020; i++)
		writer_watch(w, i * second_ns);		/* nothing waits: nothing hangs */
	writer_read_stats(w, &stats);
	ck_assert_int_eq(stats.failing, 0);
	writer_close(w);
}

TEST(where_one_hangs_too_many_are_refused_and_counted)
{
	struct writer_stats stats;
	int taken = 1;

	open_hanging();
	while (writer_put(w, "box-002.json", strdup("hi"), 2) == 0)
		taken++;
	ck_assert_int_eq(taken, 4);
	ck_assert(writer_is_full(w));
	writer_miss(w, -EBUSY);
	writer_read_stats(w, &stats);
	ck_assert_uint_eq(stats.failed, 2);
	ck_assert_int_eq(stats.error, -EBUSY);
	ck_assert_int_eq(stats.failing, 0);
	let_go();
	writer_close(w);
	ck_assert_int_eq(access(path_of("box-002.json"), F_OK), 0);
}

/* Nor does a thread that hangs hold up who reads, or who closes, for more than seconds. */
TEST(who_asks_for_a_file_where_one_hangs_is_refused)
{
	size_t bytes;
	char *text;

	open_hanging();
	ck_assert_int_eq(writer_read(w, "box-001.json", 100, &text, &bytes), -EAGAIN);
	let_go();
	writer_close(w);
}

TEST(a_thread_that_hangs_is_left_behind)
{
	int others = count_threads();

	open_hanging();
	log_set_level(LOG_ERROR);
	writer_close(w);
	ck_assert_int_eq(access(path_of("box-001.json"), F_OK), -1);
	ck_assert_int_eq(count_threads(), others + 1);
	let_go();	/* then it ends by itself, and frees what it has: no sooner */
	while (count_threads() > others)
		usleep(1000);
}

TEST(a_time_in_which_the_daemon_did_not_run_is_not_the_disk_s)
{
	const uint64_t second_ns = 1000000000;
	struct writer_stats stats;

	open_hanging();
	for (uint64_t i = 1; i <= 5; i++)
		writer_watch(w, i * second_ns);
	writer_watch(w, 100 * second_ns);
	writer_watch(w, 101 * second_ns);
	writer_read_stats(w, &stats);
	ck_assert_int_eq(stats.failing, 0);
	writer_watch(w, 104 * second_ns);
	writer_watch(w, 107 * second_ns);	/* a few of its own seconds more, and it is */
	writer_read_stats(w, &stats);
	ck_assert_int_eq(stats.failing, -ETIMEDOUT);
	let_go();
	writer_close(w);
}

TEST(who_is_known_to_hang_is_not_waited_for)
{
	uint64_t began_ns;

	open_hanging();
	log_set_level(LOG_ERROR);
	for (uint64_t i = 1; i <= 20; i++)
		writer_watch(w, i * 1000000000);
	began_ns = clock_ns(CLOCK_MONOTONIC);
	writer_close(w);
	ck_assert_uint_lt(clock_ns(CLOCK_MONOTONIC) - began_ns, UINT64_C(4000000000));
	let_go();
}

TEST(one_that_hangs_holds_up_no_other)
{
	const struct writer_limits limits = { .files = 8, .bytes = 1000 };
	struct writer *other;

	ck_assert_int_eq(mkdir(path_of("other"), 0700), 0);
	ck_assert_int_eq(writer_open(&other, path_of("other"), "pin-", &limits), 0);
	open_hanging();
	ck_assert_int_eq(writer_put(other, "pin-1", strdup("there"), 5), 0);
	writer_close(other);
	ck_assert_int_eq(access(path_of("other/pin-1"), F_OK), 0);
	let_go();
	writer_close(w);
}

TEST(a_directory_is_made_with_its_parents)
{
	struct stat st;

	ck_assert_int_eq(writer_make_dir(path_of("one/two"), 0700), 0);
	ck_assert_int_eq(stat(path_of("one/two"), &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0700);
	ck_assert_int_eq(stat(path_of("one"), &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0755);
	ck_assert_int_eq(writer_make_dir(path_of("one/two"), 0700), 0);
	fclose(fopen(path_of("file"), "w"));
	ck_assert_int_eq(writer_make_dir(path_of("file/two"), 0700), -ENOTDIR);
}

TEST(what_is_fleeting_goes_with_its_writer)
{
	const struct writer_limits limits = { .mode = 0644, .fleeting = true };
	struct writer_stats stats;

	ck_assert_int_eq(writer_open(&w, fx_tmpdir(), "m.prom", &limits), 0);
	ck_assert_int_eq(writer_put(w, "m.prom", strdup("x 1"), 3), 0);
	do {
		usleep(1000);
		writer_read_stats(w, &stats);
	} while (!stats.written);
	ck_assert_int_eq(access(path_of("m.prom"), F_OK), 0);
	writer_close(w);
	ck_assert_int_eq(access(path_of("m.prom"), F_OK), -1);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
