/* SPDX-License-Identifier: Apache-2.0 */
/* The control file: which bytes are believed, whose, and what entries come to. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/orders.h"
#include "tests/fixture.h"

#define SECOND	UINT64_C(1000000000)
#define MINE	UINT64_C(0x1111)
#define OTHERS	UINT64_C(0x2222)

static struct orders c;
static struct nci_control file;
static char path[256];
static uint64_t now;
static const uint8_t boot_id[16] = "this boot";

static void put(const void *bytes, size_t n)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, bytes, n, 0), (ssize_t)n);
	close(fd);
}

static void seal(void)
{
	file.sequence++;
	file.checksum = nci_control_checksum(&file);
}

static void setup(void)
{
	snprintf(path, sizeof(path), "%s/control", fx_tmpdir());
	memset(&file, 0, sizeof(file));
	file.magic = NCI_CONTROL_MAGIC;
	file.version = NCI_CONTROL_VERSION;
	memcpy(file.boot_id, boot_id, sizeof(file.boot_id));
	file.entries = 1;
	file.entry[0] = (struct nci_control_entry){
		.level = NCI_LEVEL_OPS, .sample = NCI_CONTROL_KEEP };
	seal();
	now = 1000 * SECOND;
}

static void open_it(void)
{
	orders_init(&c, path, boot_id, now);
}

static enum orders_read look(void)
{
	now += ORDERS_LOOK_NS;
	return orders_read(&c, now);
}

static void put_and_open(void)
{
	put(&file, sizeof(file));
	open_it();
}

/* ---- which bytes ------------------------------------------------------------------- */

TEST(whole_file_is_read_once)
{
	put_and_open();
	ck_assert_int_eq(look(), ORDERS_NEW);
	ck_assert_uint_eq(c.file.entry[0].level, NCI_LEVEL_OPS);
	ck_assert_int_eq(look(), ORDERS_SAME);
	file.entry[0].level = NCI_LEVEL_TRACE;
	seal();
	put(&file, sizeof(file));
	ck_assert_int_eq(look(), ORDERS_NEW);
	ck_assert_uint_eq(c.file.entry[0].level, NCI_LEVEL_TRACE);
}

static void is_refused_and_changes_nothing(const void *bytes, size_t n)
{
	put(bytes, n);
	ck_assert_int_eq(look(), ORDERS_REFUSED);
	ck_assert_uint_eq(c.file.entry[0].level, NCI_LEVEL_OPS);
	put(&file, sizeof(file));
	ck_assert_int_eq(look(), ORDERS_SAME);
}

/* Halves of two writes: what a reader gets that comes in the middle. */
TEST(torn_file_changes_nothing)
{
	struct nci_control torn = file, next;

	put_and_open();
	look();
	next = file;
	next.sequence++;
	next.entries = 100;
	for (int i = 0; i < 100; i++)
		next.entry[i] = (struct nci_control_entry){ .level = NCI_LEVEL_TRACE };
	next.checksum = nci_control_checksum(&next);
	for (size_t at = 20; at < sizeof(torn); at += 64) {
		torn = next;
		memcpy((char *)&torn + at, (char *)&file + at, sizeof(torn) - at);
		is_refused_and_changes_nothing(&torn, sizeof(torn));
	}
}

TEST(file_that_is_short_empty_zero_or_random_changes_nothing)
{
	static uint8_t bytes[sizeof(file)];

	put_and_open();
	look();
	is_refused_and_changes_nothing(&file, 0);
	is_refused_and_changes_nothing(&file, 1);
	is_refused_and_changes_nothing(&file, sizeof(file) - 1);
	is_refused_and_changes_nothing(bytes, sizeof(bytes));
	for (int i = 0; i < 200; i++) {
		for (size_t at = 0; at < sizeof(bytes); at++)
			bytes[at] = (uint8_t)fx_random();
		if (i % 2)
			memcpy(bytes, &file, 24);	/* as if it were one */
		is_refused_and_changes_nothing(bytes, sizeof(bytes));
	}
}

TEST(other_version_and_other_boot_change_nothing)
{
	struct nci_control other;

	put_and_open();
	look();
	other = file;
	other.version++;
	other.sequence++;
	other.checksum = nci_control_checksum(&other);
	is_refused_and_changes_nothing(&other, sizeof(other));
	other.version--;
	other.boot_id[0]++;
	other.written_mono_ns = now + 3600 * SECOND;
	other.checksum = nci_control_checksum(&other);
	is_refused_and_changes_nothing(&other, sizeof(other));
}

TEST_LOOP(boot_that_is_not_known_or_a_containers_own_is_believed, 0, 2)
{
	if (_i)
		file.boot_id[0]++;
	else
		memset(file.boot_id, 0, sizeof(file.boot_id));
	file.written_mono_ns = now - !!_i;
	seal();
	put_and_open();
	ck_assert_int_eq(look(), ORDERS_NEW);
}

/* ---- which file --------------------------------------------------------------------- */

TEST(file_that_comes_later_is_found_within_ten_seconds)
{
	open_it();
	ck_assert_int_eq(look(), ORDERS_NONE);
	put(&file, sizeof(file));
	ck_assert_int_eq(look(), ORDERS_NONE);
	now += ORDERS_OPEN_NS;
	ck_assert_int_eq(look(), ORDERS_NEW);
}

TEST(file_that_is_removed_keeps_what_it_said_and_its_successor_is_found)
{
	put_and_open();
	look();
	unlink(path);
	ck_assert_int_eq(look(), ORDERS_SAME);
	now += ORDERS_OPEN_NS;
	ck_assert_int_eq(look(), ORDERS_NONE);
	ck_assert_uint_eq(c.file.entry[0].level, NCI_LEVEL_OPS);
	file.entry[0].level = NCI_LEVEL_OFF;
	seal();
	put(&file, sizeof(file));
	now += ORDERS_OPEN_NS;
	ck_assert_int_eq(look(), ORDERS_NEW);
	ck_assert_uint_eq(c.file.entry[0].level, NCI_LEVEL_OFF);
}

TEST(file_that_others_may_write_is_none)
{
	static const mode_t bad[] = { 0666, 0646, 0664 };

	for (int i = 0; i < FX_COUNT(bad); i++) {
		put(&file, sizeof(file));
		ck_assert_int_eq(chmod(path, bad[i]), 0);
		open_it();
		ck_assert_int_eq(look(), ORDERS_NONE);
	}
	ck_assert_int_eq(chmod(path, 0644), 0);
	now += ORDERS_OPEN_NS;
	ck_assert_int_eq(look(), ORDERS_NEW);
}

TEST(file_of_somebody_else_is_none_unless_the_directory_is_theirs)
{
	char dir[256];

	if (geteuid() != 0)
		return;		/* nobody can be somebody else */
	put(&file, sizeof(file));
	ck_assert_int_eq(chown(path, 12345, 12345), 0);
	open_it();
	ck_assert_int_eq(look(), ORDERS_NONE);
	snprintf(dir, sizeof(dir), "%s", path);
	*strrchr(dir, '/') = '\0';
	ck_assert_int_eq(chown(dir, 12345, 12345), 0);
	now += ORDERS_OPEN_NS;
	ck_assert_int_eq(look(), ORDERS_NEW);
	orders_close(&c);
	ck_assert_int_eq(chown(dir, 0, 0), 0);
}

TEST(link_fifo_and_directory_are_none)
{
	char target[300];

	snprintf(target, sizeof(target), "%s.target", path);
	put(&file, sizeof(file));
	ck_assert_int_eq(rename(path, target), 0);
	ck_assert_int_eq(symlink(target, path), 0);
	open_it();
	ck_assert_int_eq(look(), ORDERS_NONE);
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0644), 0);
	open_it();		/* returns */
	ck_assert_int_eq(look(), ORDERS_NONE);
	unlink(path);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	open_it();
	ck_assert_int_eq(look(), ORDERS_NONE);
}

/* One that somebody has to answer for; the file itself could be read well. */
TEST(file_system_that_could_keep_us_waiting_is_left_alone)
{
	orders_init(&c, "/proc/version", boot_id, now);
	ck_assert_int_eq(look(), ORDERS_NONE);
	ck_assert_str_eq(c.path, "");
	now += ORDERS_OPEN_NS;
	ck_assert_int_eq(look(), ORDERS_NONE);
}

/* A file alone may be mounted where all else is local. */
TEST(file_of_such_a_file_system_is_left_alone)
{
	put(&file, sizeof(file));
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("/proc/version", path, NULL, MS_BIND, NULL) < 0)
		return;		/* not ours to mount */
	open_it();
	ck_assert_int_eq(look(), ORDERS_NONE);
	ck_assert_int_eq(umount(path), 0);
	now += ORDERS_OPEN_NS;
	ck_assert_int_eq(look(), ORDERS_NEW);
}

TEST(path_that_is_none_is_no_file)
{
	static char long_path[400];

	memset(long_path, 'a', sizeof(long_path) - 1);
	long_path[0] = '/';
	orders_init(&c, long_path, boot_id, now);
	ck_assert_int_eq(look(), ORDERS_NONE);
	orders_init(&c, "control", boot_id, now);
	now += ORDERS_OPEN_NS;
	ck_assert_int_eq(look(), ORDERS_NONE);
	orders_init(&c, "", boot_id, now);
	ck_assert_str_eq(c.path, NCI_CONTROL_PATH);
	orders_close(&c);
}

/* ---- the descriptor -------------------------------------------------------------------- */

/* What a job opens after it has closed all that it can think of. */
static int reuse(int fd, const void *bytes, size_t n)
{
	int own = memfd_create("job", MFD_CLOEXEC);

	ck_assert_int_eq(pwrite(own, bytes, n, 0), (ssize_t)n);
	ck_assert_int_eq(dup2(own, fd), fd);
	close(own);
	return fd;
}

TEST(descriptor_that_became_the_jobs_is_neither_read_nor_closed)
{
	int fd;

	put_and_open();
	ck_assert_int_eq(look(), ORDERS_NEW);
	file.entry[0].level = NCI_LEVEL_TRACE;
	seal();
	fd = reuse(c.fd, &file, sizeof(file));
	ck_assert_int_eq(look(), ORDERS_NONE);
	ck_assert_uint_eq(c.file.entry[0].level, NCI_LEVEL_OPS);
	now += ORDERS_OPEN_NS;
	ck_assert_int_eq(look(), ORDERS_SAME);	/* the file itself, opened again */
	ck_assert_int_ne(c.fd, fd);
	ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
	fd = reuse(c.fd, &file, sizeof(file));
	now += ORDERS_OPEN_NS;
	ck_assert_int_eq(look(), ORDERS_SAME);	/* it was time to look for it at once */
	ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
}

TEST(descriptor_that_became_the_jobs_is_left_open_at_the_end)
{
	int fd;

	put_and_open();
	fd = reuse(c.fd, &file, 1);
	orders_close(&c);
	ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
	open_it();
	fd = c.fd;
	orders_close(&c);
	ck_assert_int_lt(fcntl(fd, F_GETFD), 0);
}

TEST(descriptor_is_none_of_the_standard_ones)
{
	put(&file, sizeof(file));
	close(STDIN_FILENO);		/* the directory's, for a moment */
	close(STDOUT_FILENO);
	open_it();
	ck_assert_int_gt(c.fd, STDERR_FILENO);
	ck_assert_int_lt(fcntl(STDOUT_FILENO, F_GETFD), 0);
	ck_assert_int_ne(fcntl(c.fd, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_eq(look(), ORDERS_NEW);
}

/* ---- what entries come to ------------------------------------------------------------- */

static struct orders_result result(void)
{
	struct orders_result r = { .level = NCI_LEVEL_NET, .sample = NCI_SAMPLE_BUDGET };

	orders_apply(&file, MINE, now, &r);
	return r;
}

static void entries(const struct nci_control_entry *e, uint32_t n)
{
	memset(file.entry, 0, sizeof(file.entry));
	memcpy(file.entry, e, n * sizeof(*e));
	file.entries = n;
}

TEST(later_entries_win_field_by_field)
{
	const struct nci_control_entry e[] = {
		{ .level = NCI_LEVEL_OPS, .sample = NCI_SAMPLE_ALL },
		{ .instance = OTHERS, .level = NCI_LEVEL_OFF, .sample = NCI_SAMPLE_BUDGET },
		{ .instance = MINE, .level = NCI_LEVEL_KERNEL, .sample = NCI_CONTROL_KEEP,
		  .cause = NCI_CAUSE_PERSON },
	};

	entries(e, 3);
	ck_assert_uint_eq(result().level, NCI_LEVEL_KERNEL);
	ck_assert_uint_eq(result().sample, NCI_SAMPLE_ALL);
	ck_assert_uint_eq(result().cause, NCI_CAUSE_PERSON);
	ck_assert(result().asked);
}

TEST(entry_ends_by_itself_and_what_was_before_holds_again)
{
	const struct nci_control_entry e[] = {
		{ .level = NCI_LEVEL_OPS, .sample = NCI_CONTROL_KEEP },
		{ .instance = MINE, .level = NCI_LEVEL_NET, .sample = NCI_SAMPLE_ALL,
		  .until_mono_ns = now + 10 * SECOND },
		{ .instance = MINE, .level = NCI_LEVEL_TRACE, .sample = NCI_CONTROL_KEEP,
		  .until_mono_ns = now + 5 * SECOND },
	};

	entries(e, 3);
	ck_assert_uint_eq(result().level, NCI_LEVEL_TRACE);
	ck_assert_uint_eq(result().until_mono_ns, now + 5 * SECOND);
	now += 5 * SECOND;
	ck_assert_uint_eq(result().level, NCI_LEVEL_NET);
	ck_assert_uint_eq(result().sample, NCI_SAMPLE_ALL);
	ck_assert_uint_eq(result().until_mono_ns, now + 5 * SECOND);
	now += 5 * SECOND;
	ck_assert_uint_eq(result().level, NCI_LEVEL_OPS);
	ck_assert_uint_eq(result().sample, NCI_SAMPLE_BUDGET);
	ck_assert_uint_eq(result().until_mono_ns, 0);
}

TEST(values_that_are_none_change_nothing)
{
	const struct nci_control_entry e[] = {
		{ .level = NCI_LEVEL_MASK, .sample = 0 },
		{ .level = 77, .sample = 3 },
	};

	entries(e, 2);
	ck_assert_uint_eq(result().level, NCI_LEVEL_NET);
	ck_assert_uint_eq(result().sample, NCI_SAMPLE_BUDGET);
	ck_assert(!result().asked);
	file.entries = UINT32_MAX;	/* never believed, and survived */
	result();
}

int main(void)
{
	return fx_run(setup, NULL);
}
