/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/base/memory.h"
#include "reader/read/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reader/base/memory.h"
#include "reader/base/names.h"
#include "reader/read/life.h"
#include "tests/fixture.h"
#include "tests/fixture_daemon.h"
#include "util/utf8.h"


static struct shmring ring;
static struct nci_header *h;
static char name[80];
static int dirfd;
static struct names *names;
static struct segment *seg;

static void setup(void)
{
	dirfd = open(fx_tmpdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dirfd, 0);
	ck_assert_int_eq(names_new(&names, 100), 0);
	fx_job_open(&ring, fx_tmpdir(), name);
	h = ring.header;
}

static int open_it(void)
{
	int r;

	segment_free(seg);
	seg = NULL;
	r = segment_open(&seg, dirfd, name, names);
	return r < 0 ? r : segment_check(seg);
}

TEST(sound_segment_opens_with_what_its_header_says)
{
	strcpy(h->command, "pyth\x01on\xff");
	memcpy(h->env, "RANK=3\0A=\xc3(", 11);
	h->env_bytes = 11;
	ck_assert_int_eq(open_it(), SEGMENT_OK);
	ck_assert_int_eq(seg->process.pid, getpid());
	ck_assert_uint_eq(seg->process.uid, geteuid());
	ck_assert_uint_eq(seg->process.nonce, h->nonce);
	ck_assert_uint_eq(seg->process.instance, h->instance);
	ck_assert_str_eq(seg->process.command, "pyth?on?");
	ck_assert_str_eq(seg->process.env, "RANK=3");
	ck_assert_str_eq(seg->process.env + 7, "A=?");	/* always ends, always printable */
	ck_assert_str_eq(seg->process.file, name);
	ck_assert_int_eq(life_of(seg), LIFE_ALIVE);
	segment_free(NULL);
}

static const struct {
	const char *file;
	bool good;
} files[] = {
	{ "ncclinsp.0.1.0", true },
	{ "ncclinsp.1000.4711.123456789", true },
	{ "ncclinsp.4294967294.2147483647.1", true },
	{ "ncclinsp.4294967295.1.1", false },	/* no uid */
	{ "ncclinsp.0.2147483648.1", false },
	{ "ncclinsp.0.0.1", false },
	{ "ncclinsp.00.1.1", false },
	{ "ncclinsp.0.01.1", false },
	{ "ncclinsp.0.1.01", false },
	{ "ncclinsp.0.1", false },
	{ "ncclinsp.0.1.", false },
	{ "ncclinsp.0.1.1 ", false },
	{ "ncclinsp.0.1.1.1", true },		/* the name was taken */
	{ "ncclinsp.4294967294.2147483647.1152921504606846975.4294967295", true },
	{ "ncclinsp.0.1.1.4294967296", false },
	{ "ncclinsp.0.1.1.01", false },
	{ "ncclinsp.0.1.1.", false },
	{ "ncclinsp.0.1.1.1.1", false },
	{ "ncclinsp.0.1..1", false },
	{ "ncclinsp.-1.1.1", false },
	{ "ncclinsp.+1.1.1", false },
	{ "ncclinsp. 1.1.1", false },
	{ "ncclinsp...", false },
	{ "ncclinsp.0.1.99999999999999999999999", false },
	{ "nccl.0.1.1", false },
	{ "", false },
};

TEST_LOOP(only_names_in_canonical_form_are_segments, 0, FX_COUNT(files))
{
	struct segment_name n;

	ck_assert_int_eq(segment_parse_name(files[_i].file, &n), files[_i].good);
	if (_i == 1) {
		ck_assert_uint_eq(n.uid, 1000);
		ck_assert_int_eq(n.pid, 4711);
		ck_assert_uint_eq(n.start_time, 123456789);
	}
}

static void lanes_none(void)		{ h->lanes = 0; }
static void lanes_many(void)		{ h->lanes = SEGMENT_MAX_LANES + 1; }
static void lanes_huge(void)		{ h->lanes = UINT32_MAX; }
static void comms_huge(void)		{ h->comms = UINT32_MAX; }
static void comms_none(void)		{ h->comms = 0; }
static void comms_outside(void)		{ h->comms = NCI_COMM_NUMBERS; }
static void comms_odd(void)		{ h->comms = 1000; }
static void entries_short(void)		{ h->comm_bytes = sizeof(struct nci_comm) - 64; }
static void entries_odd(void)		{ h->lane_bytes = 100; }
static void entries_huge(void)		{ h->string_bytes = 8192; }
static void live_short(void)		{ h->live_bytes = 64; }
static void strings_huge(void)		{ h->strings = UINT32_MAX; }
static void strings_outside(void)	{ h->strings = 65535; }
static void live_in_header(void)	{ h->live_offset = 64; }
static void live_odd(void)		{ h->live_offset += 8; }
static void live_outside(void)		{ h->live_offset = ring.tables_bytes; }
static void live_wraps(void)		{ h->live_offset = UINT64_MAX - 63; }
static void comms_wrap(void)		{ h->comms_offset = UINT64_MAX - 4095; }
static void strings_wrap(void)		{ h->strings_offset = UINT64_MAX - 63; }
static void env_long(void)		{ h->env_bytes = sizeof(h->env) + 1; }
static void other_pid(void)		{ h->pid++; }
static void other_uid(void)		{ h->uid++; }
static void other_start(void)		{ h->start_time++; }
static void no_nonce(void)		{ h->nonce = 0; }
static void clock_none(void)		{ h->clock = 0; }
static void clock_new(void)		{ h->clock = 99; }
static void magic(void)			{ h->magic++; }
static void cut(void)
{
	ck_assert_int_eq(ftruncate(ring.fd, sizeof(struct nci_header)), 0);
}

static void (*const lies[])(void) = {
	lanes_none, lanes_many, lanes_huge, comms_huge, comms_outside, comms_none,
	comms_odd, entries_short, entries_odd, entries_huge, live_short, strings_huge,
	strings_outside, live_in_header, live_odd, live_outside, live_wraps, comms_wrap,
	strings_wrap, env_long, other_pid, other_uid, other_start, no_nonce, clock_none,
	clock_new, magic, cut,
};

static void look_at_tables(enum segment_tables which)
{
	struct nci_live live = *ring.live;

	ck_assert_int_eq(segment_tables(seg, &live, which), 0);
}

static void begin_comm(uint32_t number)
{
	struct nci_comm *comm = &ring.comms[number % SHMRING_COMMS];

	comm->comm_id = number;
	comm->init = number + 1;
	atomic_store_explicit(&comm->finalize, 0, memory_order_relaxed);
	atomic_store_explicit(&comm->published, number % NCI_COMM_NUMBERS + 1,
			      memory_order_relaxed);
	atomic_store_explicit(&ring.live->comms, number + 1, memory_order_relaxed);
}

static void end_comm(uint32_t number, uint64_t ticks, bool counted)
{
	atomic_store_explicit(&ring.comms[number % SHMRING_COMMS].finalize, ticks,
			      memory_order_relaxed);
	atomic_fetch_add_explicit(&ring.live->comms_ended, counted, memory_order_relaxed);
}

static const struct comm *comm_of(uint32_t number)
{
	return &seg->process.comms[number % NCI_COMM_NUMBERS];
}

TEST(a_table_is_read_again_when_one_of_its_communicators_has_changed)
{
	ck_assert_int_eq(open_it(), SEGMENT_OK);
	for (uint32_t i = 0; i < 3; i++)
		begin_comm(i);
	look_at_tables(TABLES_CHANGED);
	end_comm(0, 5, false);
	look_at_tables(TABLES_NEW);
	look_at_tables(TABLES_CHANGED);		/* not counted yet, so it is not read */
	ck_assert_uint_eq(comm_of(0)->finalize_ticks, 0);
	end_comm(0, 5, true);
	begin_comm(3);
	look_at_tables(TABLES_NEW);
	ck_assert(comm_of(3)->ready);
	ck_assert_uint_eq(comm_of(0)->finalize_ticks, 0);
	look_at_tables(TABLES_CHANGED);
	ck_assert_uint_eq(comm_of(0)->finalize_ticks, 5);
	end_comm(1, 6, false);
	look_at_tables(TABLES_CHANGED);
	ck_assert_uint_eq(comm_of(1)->finalize_ticks, 0);
	look_at_tables(TABLES_ALL);
	ck_assert_uint_eq(comm_of(1)->finalize_ticks, 6);
}

/* What is read after it may be told with another work's time. */
TEST(a_communicator_that_drifts_is_known_with_the_next_look)
{
	ck_assert_int_eq(open_it(), SEGMENT_OK);
	begin_comm(0);
	look_at_tables(TABLES_NEW);
	atomic_store_explicit(&ring.comms[0].drift, 7, memory_order_relaxed);
	look_at_tables(TABLES_NEW);
	ck_assert_uint_eq(comm_of(0)->drift_ticks, 0);
	atomic_fetch_add_explicit(&ring.live->comms_drifted, 1, memory_order_relaxed);
	look_at_tables(TABLES_NEW);
	ck_assert_uint_eq(comm_of(0)->drift_ticks, 7);
}

/* Those that came and went between two looks are gone, and nobody waits for them. */
TEST(an_entry_is_that_of_the_communicator_that_it_names)
{
	ck_assert_int_eq(open_it(), SEGMENT_OK);
	begin_comm(0);
	begin_comm(1);
	look_at_tables(TABLES_NEW);
	end_comm(1, 9, true);
	begin_comm(SHMRING_COMMS + 1);
	look_at_tables(TABLES_CHANGED);
	ck_assert_uint_eq(comm_of(0)->id, 0);
	ck_assert_uint_eq(comm_of(1)->id, 1);
	ck_assert_uint_eq(comm_of(SHMRING_COMMS + 1)->id, SHMRING_COMMS + 1);
	ck_assert(!comm_of(2)->ready && !comm_of(SHMRING_COMMS)->ready);
	ck_assert_uint_eq(seg->comms_begun, SHMRING_COMMS + 2);
}

TEST(a_communicator_in_the_making_is_waited_for)
{
	ck_assert_int_eq(open_it(), SEGMENT_OK);
	begin_comm(0);
	begin_comm(1);
	atomic_store_explicit(&ring.comms[1].published, 0, memory_order_relaxed);
	look_at_tables(TABLES_NEW);
	ck_assert_uint_eq(seg->comms_begun, 1);
	begin_comm(1);
	look_at_tables(TABLES_NEW);
	ck_assert(comm_of(1)->ready);
	ck_assert_uint_eq(seg->comms_begun, 2);
}

/* Whoever lies about it costs no more than one look at the table. */
/* The daemon would count a communicator less than none as memory that a user has taken. */
TEST(communicators_that_become_fewer_are_a_lie_that_costs_nothing)
{
	struct memory memory;

	ck_assert_int_eq(open_it(), SEGMENT_OK);
	memory_init(&memory, 0);
	seg->memory = &memory;
	atomic_store_explicit(&ring.live->comms, 5, memory_order_relaxed);
	look_at_tables(TABLES_ALL);	/* the last one is in the making */
	atomic_store_explicit(&ring.live->comms, 4, memory_order_relaxed);
	ck_assert_int_eq(segment_tables(seg, ring.live, TABLES_ALL), -EPROTO);
	ck_assert_uint_eq(memory.refused, 0);
	ck_assert_uint_eq(memory.taken, 5 * sizeof(struct comm));
	segment_free(seg);
	seg = NULL;
	ck_assert_uint_eq(memory.taken, 0);
}

TEST(numbers_that_never_were_are_not_looked_for)
{
	ck_assert_int_eq(open_it(), SEGMENT_OK);
	begin_comm(0);
	atomic_store_explicit(&ring.live->comms, UINT32_MAX, memory_order_relaxed);
	look_at_tables(TABLES_NEW);
	ck_assert_uint_eq(seg->comms_begun, UINT32_MAX - 1);
	ck_assert_uint_eq(seg->process.ncomms, NCI_COMM_NUMBERS);
}

TEST(a_number_that_has_wrapped_is_a_new_communicator)
{
	const uint32_t again = NCI_COMM_NUMBERS + 5;

	ck_assert_int_eq(open_it(), SEGMENT_OK);
	begin_comm(5);
	end_comm(5, 7, true);
	look_at_tables(TABLES_ALL);
	ck_assert_uint_eq(comm_of(5)->finalize_ticks, 7);
	begin_comm(again);
	look_at_tables(TABLES_ALL);
	ck_assert_uint_eq(comm_of(5)->id, again);
	ck_assert_uint_eq(comm_of(5)->finalize_ticks, 0);
}

TEST(entries_that_are_longer_than_those_we_know_are_read)
{
	static uint8_t table[2 * 512];
	const uint64_t offset = ring.tables_bytes;
	struct nci_comm comm = { .comm_id = 77 };

	atomic_store_explicit(&comm.published, 2, memory_order_relaxed);
	memcpy(table + 512, &comm, sizeof(comm));
	memset(table + 512 + sizeof(comm), 0xa5, 512 - sizeof(comm));
	ck_assert_int_eq(pwrite(ring.fd, table, sizeof(table), (off_t)offset), sizeof(table));
	h->comms_offset = offset;
	h->comms = 2;
	h->comm_bytes = 512;
	ck_assert_int_eq(open_it(), SEGMENT_OK);
	atomic_store_explicit(&ring.live->comms, 2, memory_order_relaxed);
	look_at_tables(TABLES_NEW);
	ck_assert_uint_eq(comm_of(1)->id, 77);
	ck_assert(!comm_of(0)->ready);
}

TEST_LOOP(header_that_cannot_be_is_refused, 0, FX_COUNT(lies))
{
	lies[_i]();
	ck_assert_int_eq(open_it(), -EPROTO);
}

TEST(other_formats_and_other_boots_are_told_apart)
{
	h->abi_minor = 0;	/* the first of this format, without sums */
	ck_assert_int_eq(open_it(), SEGMENT_OK);
	h->abi_major++;
	ck_assert_int_eq(open_it(), SEGMENT_FOREIGN);
	h->abi_major--;
	h->abi_minor += 5;
	ck_assert_int_eq(open_it(), SEGMENT_OK);
	memset(h->boot_id, 0xab, sizeof(h->boot_id));
	ck_assert_int_eq(open_it(), SEGMENT_STALE);
}

/* A process that holds the segment's lock until its pipe is closed. */
static pid_t hold(int *until)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct flock none = { .l_type = F_UNLCK, .l_whence = SEEK_SET };
	int ready[2], end[2];
	char byte = 0;
	pid_t pid;

	ck_assert_int_eq(pipe(ready), 0);
	ck_assert_int_eq(pipe(end), 0);
	ck_assert_int_eq(fcntl(ring.fd, F_SETLK, &none), 0);
	pid = fork();
	if (pid == 0) {
		close(end[1]);
		if (fcntl(ring.fd, F_SETLK, &lock) < 0 || write(ready[1], &byte, 1) != 1)
			_exit(1);
		_exit(read(end[0], &byte, 1) == 0 ? 0 : 1);
	}
	close(ready[1]);
	close(end[0]);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	*until = end[1];
	return pid;
}

TEST(who_holds_the_lock_is_of_this_boot_whatever_it_says)
{
	int until, status;
	pid_t pid;

	memset(h->boot_id, 0xab, sizeof(h->boot_id));
	pid = hold(&until);
	ck_assert_int_eq(open_it(), SEGMENT_OK);
	close(until);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(open_it(), SEGMENT_STALE);
}

TEST(segment_in_the_making_is_not_ready)
{
	atomic_store_explicit(&h->ready, 0, memory_order_relaxed);
	ck_assert_int_eq(open_it(), SEGMENT_NOT_READY);
	ck_assert_int_eq(ftruncate(ring.fd, 100), 0);
	ck_assert_int_eq(open_it(), SEGMENT_NOT_READY);
	ck_assert_int_eq(ftruncate(ring.fd, 0), 0);
	ck_assert_int_eq(open_it(), SEGMENT_NOT_READY);
}

TEST(file_that_others_may_write_is_refused)
{
	ck_assert_int_eq(fchmod(ring.fd, 0620), 0);
	ck_assert_int_eq(open_it(), -EPERM);
	ck_assert_int_eq(fchmod(ring.fd, 0602), 0);
	ck_assert_int_eq(open_it(), -EPERM);
	ck_assert_int_eq(fchmod(ring.fd, 0644), 0);
	ck_assert_int_eq(open_it(), SEGMENT_OK);
}

#define STRANGER 77

static bool may_give_away(void)
{
	if (geteuid() != 0)
		fx_skip("only root can give a file away");
	return geteuid() == 0;
}

/* From now on the segment says, twice, that it is of that process. */
static void claim(pid_t pid, uint64_t start_time)
{
	char before[80];

	strcpy(before, name);
	h->pid = (uint32_t)pid;
	h->start_time = start_time;
	snprintf(name, sizeof(name), "ncclinsp.%u.%d.%" PRIu64, (unsigned)h->uid, (int)pid,
		 start_time);
	ck_assert_int_eq(renameat(dirfd, before, dirfd, name), 0);
}

/* In a user namespace a process has another number; and a name can be anybody's. */
TEST(it_belongs_to_whom_the_file_belongs_whatever_its_name_says)
{
	if (!may_give_away())
		return;
	ck_assert_int_eq(fchown(ring.fd, STRANGER, STRANGER), 0);
	claim(getpid(), h->start_time + 1);	/* a process that is no more */
	ck_assert_int_eq(open_it(), SEGMENT_OK);
	ck_assert_uint_eq(h->uid, 0);
	ck_assert_uint_eq(seg->process.uid, STRANGER);
}

/* The number that a process here has, by the lock; of a dead one only what it said. */
TEST(its_pid_is_that_of_who_holds_the_lock)
{
	int until, status;
	pid_t pid = hold(&until);

	ck_assert_int_eq(open_it(), SEGMENT_OK);
	ck_assert_int_eq(seg->process.pid, pid);
	ck_assert_int_eq(seg->process.ns_pid, getpid());
	ck_assert(!seg->process.proven);	/* it says that it is its parent */
	claim(pid, life_start_time(LIFE_PROC, pid));
	ck_assert_int_eq(open_it(), SEGMENT_OK);
	ck_assert(seg->process.proven);
	ck_assert(!seg->process.contained);
	claim(pid, h->start_time + 1);		/* another process that had its number */
	ck_assert_int_eq(open_it(), SEGMENT_OK);
	ck_assert(!seg->process.proven);
	close(until);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
}

TEST(a_claim_without_a_lock_is_no_proof)
{
	ck_assert_int_eq(open_it(), SEGMENT_OK);	/* nobody sees a lock of its own */
	ck_assert_int_eq(seg->process.pid, getpid());
	ck_assert(!seg->process.proven);
	ck_assert_int_eq(life_of(seg), LIFE_ALIVE);	/* but this user's process runs */
	seg->process.uid++;
	ck_assert_int_eq(life_of(seg), LIFE_DIED);
}

TEST(nobody_speaks_of_another_user_s_process)
{
	if (!may_give_away())
		return;
	ck_assert_int_eq(fchown(ring.fd, STRANGER, STRANGER), 0);
	ck_assert_int_eq(open_it(), SEGMENT_STRANGER);
	h->abi_major++;			/* nor in another format */
	ck_assert_int_eq(open_it(), SEGMENT_FOREIGN);
	ck_assert_uint_eq(seg->foreign.abi_major, 0);
}

/* A number can come to another process while files that processes share stay locked. */
TEST(lock_and_number_of_another_user_s_process_are_no_proof)
{
	int until, status;
	pid_t pid;

	if (!may_give_away())
		return;
	pid = hold(&until);
	claim(pid, life_start_time(LIFE_PROC, pid));
	ck_assert_int_eq(fchown(ring.fd, STRANGER, STRANGER), 0);
	ck_assert_int_eq(open_it(), SEGMENT_OK);
	ck_assert(!seg->process.proven);
	close(until);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(life_of(seg), LIFE_DIED);
}

/* One of an open file outlives whoever took it; one for reading may be a reader's. */
TEST(only_a_process_s_own_lock_for_writing_is_its_life)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", fx_tmpdir(), name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);		/* and our own lock ends when it is closed */
	ck_assert_int_eq(fcntl(ring.fd, F_SETLK, &(struct flock){ .l_type = F_UNLCK }), 0);
	claim(getpid(), h->start_time + 1);
	ck_assert_int_eq(open_it(), SEGMENT_OK);
	for (int type = 0; type < 2; type++) {
		lock.l_type = type ? F_WRLCK : F_RDLCK;
		ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &lock), 0);
		ck_assert(!life_is_held(seg));
		ck_assert_int_eq(life_of(seg), LIFE_DIED);
	}
	close(fd);
}

TEST(what_is_no_plain_file_is_refused_and_does_not_block)
{
	char target[80];

	strcpy(target, name);
	snprintf(name, sizeof(name), "ncclinsp.%u.1.1", (unsigned)geteuid());
	ck_assert_int_eq(symlinkat(target, dirfd, name), 0);
	ck_assert_int_eq(open_it(), -ELOOP);
	unlinkat(dirfd, name, 0);
	ck_assert_int_eq(mkfifoat(dirfd, name, 0600), 0);
	ck_assert_int_eq(open_it(), -EPERM);
	unlinkat(dirfd, name, 0);
	ck_assert_int_eq(mkdirat(dirfd, name, 0700), 0);
	ck_assert_int_eq(open_it(), -EPERM);
	unlinkat(dirfd, name, AT_REMOVEDIR);
	ck_assert_int_eq(open_it(), -ENOENT);
}

TEST(another_name_for_a_segment_is_refused)
{
	char other[80];

	snprintf(other, sizeof(other), "ncclinsp.%u.1.%" PRIu64, (unsigned)geteuid(),
		 (uint64_t)h->start_time);
	ck_assert_int_eq(linkat(dirfd, name, dirfd, other, 0), 0);
	strcpy(name, other);
	ck_assert_int_eq(open_it(), -EPROTO);
	unlinkat(dirfd, name, 0);
}

static const struct {
	const char *from, *to;
} texts[] = {
	{ "plain", "plain" },
	{ "tab\tnl\nesc\033[2Jdel\x7f", "tab?nl?esc?[2Jdel?" },
	{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
	{ "\xe6\xbc\xa2\xf0\x9f\x98\x80", "\xe6\xbc\xa2\xf0\x9f\x98\x80" },
	{ "cut\xe6\xbc", "cut??" },
	{ "long\xc0\xaf", "long??" },			/* overlong '/' */
	{ "\xe0\x80\x80", "???" },
	{ "\xed\xa0\x80", "???" },			/* a surrogate */
	{ "\xf4\x90\x80\x80", "????" },			/* beyond Unicode */
	{ "\xc2\x9b" "31m", "??31m" },			/* the one-byte CSI */
	{ "\xff\xfe\x80", "???" },
	{ "a\u202eb\u200bc\u2066d\ufeff", "a???b???c???d???" },	/* reads as another name */
	{ "a\u00adb\u3164\U000e0041", "a??b???????" },
};

TEST_LOOP(foreign_text_is_made_safe, 0, FX_COUNT(texts))
{
	char text[64];

	strcpy(text, texts[_i].from);
	utf8_clean(text, strlen(text));
	ck_assert_str_eq(text, texts[_i].to);
}

TEST(damaged_header_never_harms_the_reader)
{
	struct nci_header sound = *h;

	for (int i = 0; i < 5000; i++) {
		uint64_t x = 0;

		memcpy(h, &sound, sizeof(sound));
		for (int k = 0; k < 2; k++) {
			x = fx_random();
			((uint8_t *)h)[12 + x % 90] = (uint8_t)(x >> 32);
		}
		if (open_it() == SEGMENT_OK) {
			struct nci_live live = *ring.live;

			atomic_store_explicit(&live.comms, (uint32_t)x, memory_order_relaxed);
			atomic_store_explicit(&live.strings, (uint32_t)(x >> 32),
					      memory_order_relaxed);
			segment_tables(seg, &live, TABLES_ALL);
		}
	}
}

int main(void)
{
	return fx_run(setup, NULL);
}
