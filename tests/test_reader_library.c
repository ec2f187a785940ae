/* SPDX-License-Identifier: Apache-2.0 */
/* The library's public functions, on segments of processes that forks of this one play. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nci/events.h"
#include "ncclinsp/ncclinsp.h"
#include "reader/time/ticks.h"
#include "shmring/clock.h"
#include "shmring/producer.h"
#include "tests/fixture.h"
#include "tests/fixture_daemon.h"

#define OPERATIONS 5	/* finished ones of each job */

static char path[FX_PATH];
static struct ncclinsp *reader;

/* What the callbacks saw. */
static struct {
	uint32_t operations, complete, unfinished, records, colls, inflight;
	uint64_t last_seq;
} seen;

static void on_operation(const struct ncclinsp_operation *op, void *arg)
{
	ck_assert_ptr_eq(arg, &seen);
	ck_assert_uint_eq(op->size, sizeof(*op));
	ck_assert_str_eq(op->func, "AllReduce");
	ck_assert_str_eq(op->comm_name, "dp");
	ck_assert(op->has_comm_id && op->comm_id == 0x1234);
	ck_assert_int_eq(op->rank, 1);
	ck_assert_int_eq(op->nranks, 2);
	ck_assert_uint_eq(op->count, 1024);
	ck_assert_str_eq(op->datatype, "ncclFloat32");
	ck_assert_uint_eq(op->bytes, 4096);
	ck_assert(op->enqueued_ns && op->done_ns >= op->enqueued_ns);
	ck_assert_uint_eq(op->exec_ns, NCCLINSP_UNKNOWN);
	ck_assert_ptr_null(op->algo);
	if (seen.operations)
		ck_assert_uint_gt(op->seq, seen.last_seq);
	seen.last_seq = op->seq;
	seen.operations++;
	seen.complete += op->complete != 0;
	seen.unfinished += op->complete == 0;
}

static void on_record(const struct ncclinsp_record *rec, void *arg)
{
	ck_assert_ptr_eq(arg, &seen);
	ck_assert_uint_eq(rec->size, sizeof(*rec));
	ck_assert_uint_eq(rec->record_bytes % NCI_LINE_BYTES, 0);
	ck_assert_uint_ge(rec->stop_ns, rec->start_ns);
	seen.records++;
	if (rec->type != NCI_EV_COLL)
		return;
	ck_assert_str_eq(rec->type_name, "Coll");
	ck_assert_str_eq(rec->func, "AllReduce");
	ck_assert_str_eq(rec->comm->name, "dp");
	ck_assert_str_eq(ncclinsp_name(reader, ((const struct nci_ev_coll *)rec->record)->datatype),
			 "ncclFloat32");
	seen.colls++;
}

static void on_inflight(const struct ncclinsp_inflight *row, void *arg)
{
	ck_assert_ptr_eq(arg, &seen);
	ck_assert_uint_eq(row->size, sizeof(*row));
	ck_assert_str_eq(row->event_type, "Coll");
	ck_assert_str_eq(row->func, "AllReduce");
	ck_assert_uint_eq(row->seq, OPERATIONS);
	seen.inflight++;
}

static void check_comm(const struct ncclinsp_comm *comm)
{
	ck_assert_ptr_nonnull(comm);
	ck_assert_uint_eq(comm->size, sizeof(*comm));
	ck_assert_str_eq(comm->name, "dp");
	ck_assert_int_eq(comm->rank, 1);
	ck_assert_uint_eq(comm->nlast, 1);
	ck_assert_uint_eq(comm->last[0].seq, OPERATIONS - 1);
	ck_assert_ptr_null(comm->gpu_uuid);
}

/* ---- jobs ------------------------------------------------------------------------ */

static void add_name(struct shmring *ring, uint32_t i, const char *text)
{
	memcpy(ring->strings[i].text, text, strlen(text));
	atomic_store_explicit(&ring->strings[i].bytes, (uint32_t)strlen(text) + 1,
			      memory_order_relaxed);
	atomic_store_explicit(&ring->live->strings, i + 1, memory_order_release);
}

static void add_tables(struct shmring *ring)
{
	struct nci_comm *comm = &ring->comms[0];

	add_name(ring, 0, "AllReduce");
	add_name(ring, 1, "ncclFloat32");
	*comm = (struct nci_comm){
		.flags = NCI_COMM_HAS_ID, .comm_id = 0x1234, .rank = 1, .nranks = 2, .nnodes = 1,
		.name_bytes = 2, .name = "dp", .init = ring->header->anchor.ticks,
	};
	atomic_store_explicit(&comm->published, 1, memory_order_relaxed);
	atomic_store_explicit(&ring->live->comms, 1, memory_order_release);
}

/* As at level ops: nothing but the call is watched. */
static struct nci_record *start(struct shmring_lane *lane, uint64_t seq, uint64_t *token)
{
	struct nci_record *rec = shmring_take(lane, token);
	struct nci_ev_coll *coll = (struct nci_ev_coll *)(void *)rec;

	ck_assert_ptr_nonnull(rec);
	*coll = (struct nci_ev_coll){
		.type = NCI_EV_COLL, .form = 2, .token = *token,
		.start = clock_ticks(ticks_hardware()), .seq = seq, .count = 1024, .func = 1,
		.datatype = 2, .cont = NCI_LINE_CONT, .rank = 1,
	};
	shmring_open(rec, *token);
	return rec;
}

static void work(struct shmring *ring, struct shmring_lane *lane)
{
	uint64_t token;

	add_tables(ring);
	atomic_store_explicit(&ring->live->mask, NCI_EV_COLL, memory_order_relaxed);
	for (uint64_t seq = 0; seq < OPERATIONS; seq++) {
		struct nci_record *rec = start(lane, seq, &token);

		shmring_close(lane, rec, token, clock_ticks(ticks_hardware()));
	}
	start(lane, OPERATIONS, &token);	/* is in flight for ever */
}

static pid_t job_fork(void)
{
	char name[80];
	pid_t pid = fx_job_fork(fx_tmpdir(), work, name);

	snprintf(path, sizeof(path), "%s/%s", fx_tmpdir(), name);
	return pid;
}

static void teardown(void)
{
	ncclinsp_close(reader);
	reader = NULL;
	memset(&seen, 0, sizeof(seen));
}

static int open_path(const char *what)
{
	int r = ncclinsp_open(&reader, what);

	if (r == 0) {
		ncclinsp_on_operation(reader, on_operation, &seen);
		ncclinsp_on_record(reader, on_record, &seen);
	}
	return r;
}

static void copy(const char *to)
{
	char command[2 * FX_PATH + 16];

	snprintf(command, sizeof(command), "cp %s %s", path, to);
	ck_assert_int_eq(system(command), 0);
}

static void put(const char *to, off_t at, const void *bytes, size_t n)
{
	int fd = open(to, O_WRONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, bytes, n, at), (ssize_t)n);
	close(fd);
}

/* ---- tests ----------------------------------------------------------------------- */

static void check_all(uint32_t state)
{
	ck_assert_uint_eq(seen.records, OPERATIONS);
	ck_assert_uint_eq(seen.colls, OPERATIONS);
	ck_assert_uint_eq(seen.operations, OPERATIONS);
	ck_assert_int_eq(ncclinsp_inflight(reader, on_inflight, &seen), 1);
	ck_assert_uint_eq(ncclinsp_process(reader)->comms, 1);
	check_comm(ncclinsp_comm(reader, 0));
	ck_assert_ptr_null(ncclinsp_comm(reader, 1));
	ck_assert_ptr_null(ncclinsp_comm(reader, UINT32_MAX));
	ck_assert_uint_eq(ncclinsp_process(reader)->state, state);
	ck_assert_uint_eq(ncclinsp_process(reader)->records, OPERATIONS);
	ck_assert_uint_eq(ncclinsp_loss(reader)->overrun + ncclinsp_loss(reader)->before, 0);
}

TEST(a_killed_process_s_operations_are_told_once_and_what_it_was_in)
{
	pid_t pid = job_fork();
	const struct ncclinsp_process *p;

	fx_job_kill(pid);
	ck_assert_int_eq(open_path(path), 0);
	ck_assert_int_eq(ncclinsp_poll(reader), 0);
	check_all(NCCLINSP_DIED);
	p = ncclinsp_process(reader);
	ck_assert_int_eq(p->pid, pid);
	ck_assert_uint_eq(p->uid, geteuid());
	ck_assert_str_eq(p->command, "job");
	ck_assert_str_eq(p->state_text, "died");
	ck_assert_str_eq(p->level, "trace");
	ck_assert_ptr_null(p->job_id);
	ck_assert_int_eq(p->job_rank, NCCLINSP_NONE);
	/* It had ended before: the last that it told of, not the time of this test. */
	ck_assert_uint_ge(p->ended_ns, p->began_ns);
	ck_assert_uint_lt(p->ended_ns, p->opened_ns);
	ck_assert_int_eq(ncclinsp_poll(reader), 0);
	ck_assert_uint_eq(seen.operations, OPERATIONS);
}

TEST(a_live_process_is_read_until_it_ends)
{
	pid_t pid = job_fork();

	ck_assert_int_eq(open_path(path), 0);
	ck_assert_int_eq(ncclinsp_poll(reader), 1);
	ck_assert_uint_le(ncclinsp_wait_ns(reader), 100000000);
	ck_assert_uint_eq(ncclinsp_process(reader)->proven, 1);
	fx_job_kill(pid);
	ck_assert_int_eq(ncclinsp_poll(reader), 0);
	check_all(NCCLINSP_DIED);
	ck_assert_uint_gt(ncclinsp_process(reader)->ended_ns, ncclinsp_process(reader)->opened_ns);
}

TEST(a_copy_of_any_name_reads_the_same)
{
	char to[FX_PATH];
	pid_t pid = job_fork();

	fx_job_kill(pid);
	snprintf(to, sizeof(to), "%s/evidence", fx_tmpdir());
	copy(to);
	chmod(to, 0666);
	unlink(path);
	ck_assert_int_eq(open_path(to), 0);
	ck_assert_int_eq(ncclinsp_poll(reader), 0);
	check_all(NCCLINSP_DIED);
	ck_assert_str_eq(ncclinsp_process(reader)->segment, "evidence");
}

TEST(a_copy_is_of_a_live_process_as_long_as_that_runs)
{
	char to[FX_PATH];
	pid_t pid = job_fork();

	snprintf(to, sizeof(to), "%s/copy", fx_tmpdir());
	copy(to);
	ck_assert_int_eq(open_path(to), 0);
	ck_assert_int_eq(ncclinsp_poll(reader), 1);
	ck_assert_uint_eq(ncclinsp_process(reader)->proven, 0);
	fx_job_kill(pid);
	ck_assert_int_eq(ncclinsp_poll(reader), 0);
	check_all(NCCLINSP_DIED);
}

TEST(a_descriptor_stays_the_caller_s)
{
	pid_t pid = job_fork();
	int fd;

	fx_job_kill(pid);
	fd = open(path, O_RDONLY);
	ck_assert_int_eq(ncclinsp_open_fd(&reader, fd), 0);
	ck_assert_int_eq(ncclinsp_poll(reader), 0);	/* with no callback at all */
	ck_assert_str_eq(ncclinsp_process(reader)->segment, strrchr(path, '/') + 1);
	ncclinsp_close(reader);
	reader = NULL;
	ck_assert_int_eq(fcntl(fd, F_GETFD), 0);
	ck_assert_int_eq(ncclinsp_open_fd(&reader, -1), -EBADF);
	close(fd);
}

/* Bytes that make a sound file something else, and the error for it. */
static const struct {
	off_t at;
	const char *bytes;
	size_t n;
	int error;
} wrong[] = {
	{ 0, "x", 1, -EPROTO },					/* magic */
	{ 8, "\xff", 1, -EPROTONOSUPPORT },			/* major version */
	{ 12, "\0", 1, -EAGAIN },				/* ready */
	{ 16, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, -EPROTO },	/* an offset */
	{ 80, "another boot....", 16, -ESTALE },		/* boot id */
};

TEST_LOOP(a_file_that_is_something_else_gives_its_own_error, 0, FX_COUNT(wrong))
{
	pid_t pid = job_fork();

	fx_job_kill(pid);
	put(path, wrong[_i].at, wrong[_i].bytes, wrong[_i].n);
	ck_assert_int_eq(open_path(path), wrong[_i].error);
	ck_assert_ptr_null(reader);
	ck_assert_str_ne(ncclinsp_reason(wrong[_i].error), strerror(-wrong[_i].error));
}

TEST(what_is_no_file_is_refused_and_does_not_block)
{
	snprintf(path, sizeof(path), "%s/fifo", fx_tmpdir());
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(open_path(path), -EPERM);
	ck_assert_int_eq(open_path(fx_tmpdir()), -EPERM);
	snprintf(path, sizeof(path), "%s/none", fx_tmpdir());
	ck_assert_int_eq(open_path(path), -ENOENT);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	ck_assert_int_eq(open_path(path), -EAGAIN);
}

TEST(the_process_s_own_segment_is_refused_and_its_lock_stays)
{
	struct shmring ring;
	char name[80];

	fx_job_open(&ring, fx_tmpdir(), name);
	snprintf(path, sizeof(path), "%s/%s", fx_tmpdir(), name);
	ck_assert_int_eq(open_path(path), -EDEADLK);
	if (fork() == 0) {	/* a lock shows to others only */
		struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
		int fd = open(path, O_RDONLY);

		_exit(fcntl(fd, F_GETLK, &lock) || lock.l_type != F_WRLCK);
	}
	int status;

	wait(&status);
	ck_assert_int_eq(status, 0);
}

TEST(a_file_cut_under_the_reader_is_an_error_that_stays)
{
	pid_t pid = job_fork();

	ck_assert_int_eq(open_path(path), 0);
	ck_assert_int_eq(truncate(path, 4096), 0);
	ck_assert_int_eq(ncclinsp_poll(reader), -EPROTO);
	ck_assert_int_eq(ncclinsp_poll(reader), -EPROTO);
	ck_assert_int_eq(ncclinsp_inflight(reader, on_inflight, &seen), -EPROTO);
	ck_assert_uint_eq(ncclinsp_process(reader)->size, sizeof(struct ncclinsp_process));
	fx_job_kill(pid);
}

/* An older library's struct ends where its size says. */
TEST(a_member_behind_the_size_is_not_there)
{
	struct ncclinsp_operation op = { .size = offsetof(struct ncclinsp_operation, done_ns) };

	ck_assert(NCCLINSP_HAS(&op, tag));
	ck_assert(!NCCLINSP_HAS(&op, done_ns));
	op.size += sizeof(op.done_ns);
	ck_assert(NCCLINSP_HAS(&op, done_ns));
}

int main(void)
{
	return fx_run(NULL, teardown);
}
