/* SPDX-License-Identifier: Apache-2.0 */
/* Writing calls down. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/fx_record.h"

/* ---- what is in the file ---- */

TEST(every_call_is_there_as_it_was_made)
{
	struct nccl_coll_v5 coll = {
		.seqNumber = 7, .func = "AllReduce", .count = 1 << 20, .datatype = "ncclFloat32",
		.nChannels = 2, .nWarps = 16, .algo = "RING", .sendBuff = (void *)0x1000,
	};
	struct nccl_descr_v6 d = { .type = NCCL_COLL, .rank = 3, .coll = coll };
	union nccl_args_v4 args = { .kernelCh = { 12345 } };
	void *h, *child;
	char *text;

	init();
	v6->startEvent(context, &h, &d);
	child = start(NCCL_KERNEL_CH, h);
	v6->recordEventState(child, NCCL_KERNEL_CH_STOP, &args);
	v6->recordEventState(child, NCCL_KERNEL_CH_STOP, NULL);
	v6->stopEvent(child);
	v6->stopEvent(NULL);
	v6->stopEvent((void *)0x5ca1ab1e);
	v6->finalize(context);
	text = text_of(path);
	ck_assert_str_eq(text,
		" T1 init #0 comm=world id=fedcba9876543210 nnodes=2 nranks=8 rank=3\n"
		" T1 start 0 Coll context=#0 rank=3 func=AllReduce seqNumber=7 count=1048576"
		" datatype=ncclFloat32 root=0 algo=RING proto=- nChannels=2 nWarps=16"
		" sendBuff=0x1000 recvBuff=0x0 isSymColl=0 kernelVariant=- userTag=0\n"
		" T1 start 1 KernelCh context=#0 rank=3 parent=0 channelId=0 pTimer=0\n"
		" T1 state 1 KernelCh state=22 value=12345\n"
		" T1 state 1 KernelCh state=22 null\n"
		" T1 stop 1 KernelCh\n"
		" T1 stop\n"
		" T1 stop 0x5ca1ab1e\n"
		" T1 finalize #0\n");
	free(text);
}

TEST_LOOP(every_interface_is_asked_for_all_its_events, 1, NCCL_PROFILER_VERSIONS + 1)
{
	static const int events[] = { 0, 0x3f, 0x3f, 0xbf, 0xbf, 0xfff, 0x7fbf, 0xffff };
	struct api api;

	api_bind(&api, tables[_i], _i, releases[_i]);
	api_init(&api, &context, &mask, &(struct api_comm){ .nranks = 1 });
	ck_assert_int_eq(mask, events[_i]);
}

TEST(the_file_is_no_longer_than_its_records)
{
	struct stat st;

	init();
	v6->finalize(context);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_le(st.st_size, 512);
	ck_assert_int_eq(st.st_mode & 0777, 0600);
}

static void make_events(int n)
{
	init();
	for (int i = 0; i < n; i++)
		v6->stopEvent(start(NCCL_GROUP, NULL));
}

TEST(what_a_killed_process_wrote_can_be_read)
{
	struct recording *rec;

	in_child(make_events, 1000, SIGKILL);
	rec = load(path);
	ck_assert_int_eq(rec->ncalls, 2001);
	ck_assert_uint_eq(rec->lost, 0);
	recording_free(rec);
}

TEST(a_second_life_of_the_library_goes_on_in_the_same_file)
{
	struct recording *rec;

	for (int i = 0; i < 3; i++) {
		init();
		v6->stopEvent(start(NCCL_GROUP, NULL));
		v6->finalize(context);
	}
	rec = load(path);
	ck_assert_int_eq(rec->ncalls, 12);
	ck_assert_int_eq(rec->ncontexts, 3);
	recording_free(rec);
}

/* ---- what is not ---- */

TEST(calls_after_the_last_communicator_are_counted)
{
	struct recording *rec;

	init();
	v6->finalize(context);
	ck_assert_ptr_null(start(NCCL_GROUP, NULL));
	v6->stopEvent(NULL);
	rec = load(path);
	ck_assert_uint_eq(rec->lost, 2);
	ck_assert_int_eq(rec->ncalls, 2);
	recording_free(rec);
}

/* The first calls that do not fit end it: no later, shorter one gets in. */
TEST(a_full_file_holds_the_beginning_and_counts_the_rest)
{
	const int made = 40000;
	struct recording *rec;

	setenv("NCCLINSP_RECORD_MIB", "1", 1);
	init();
	for (int i = 0; i < made; i++)
		v6->stopEvent(start(NCCL_PROXY_OP, NULL));
	v6->finalize(context);
	rec = load(path);
	ck_assert_uint_gt(rec->lost, 0);
	ck_assert_int_eq(rec->ncalls + (int)rec->lost, 1 + 2 * made + 1);
	for (int i = 1; i < rec->ncalls; i++)
		ck_assert_int_eq(rec->call[i].verb, i % 2 ? RECORDING_START : RECORDING_STOP);
	recording_free(rec);
}

TEST(a_full_disk_is_no_fault)
{
	struct recording *rec;

	if (!fx_mount(fx_tmpdir(), "size=2m", 0))
		return;
	init();
	for (int i = 0; i < 40000; i++)
		v6->stopEvent(start(NCCL_PROXY_OP, NULL));
	v6->finalize(context);
	rec = load(path);
	ck_assert_uint_gt(rec->lost, 0);
	ck_assert_int_gt(rec->ncalls, 1000);
	recording_free(rec);
}

TEST(a_file_that_exists_is_left_alone)
{
	struct stat st;
	FILE *f = fopen(path, "we");

	fputs("mine", f);
	fclose(f);
	mask = -1;
	init();
	ck_assert_int_eq(mask, 0);
	ck_assert_ptr_null(start(NCCL_GROUP, NULL));
	v6->finalize(context);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_size, 4);
}

static const char *const nonsense[] = { "", "%q", "%", "/no/such/dir/x" };

TEST_LOOP(without_a_file_nothing_is_asked_for, 0, FX_COUNT(nonsense))
{
	setenv("NCCLINSP_RECORD", nonsense[_i], 1);
	init();
	ck_assert_int_eq(mask, 0);
	ck_assert_ptr_null(start(NCCL_GROUP, NULL));
	v6->finalize(context);
}

TEST(a_name_may_hold_the_process_id)
{
	char want[400];

	use_file("x-%p-%%.rec");
	init();
	v6->finalize(context);
	snprintf(want, sizeof(want), "%s/x-%d-%%.rec", fx_tmpdir(), (int)getpid());
	ck_assert_int_eq(access(want, R_OK), 0);
}

static void try_an_event(int unused)
{
	(void)unused;
	if (start(NCCL_GROUP, NULL))
		abort();
}

TEST(a_forked_child_writes_nothing)
{
	struct recording *rec;

	init();
	in_child(try_an_event, 0, 0);
	v6->stopEvent(start(NCCL_GROUP, NULL));
	v6->finalize(context);
	rec = load(path);
	ck_assert_int_eq(rec->ncalls, 4);
	ck_assert_uint_eq(rec->lost, 0);
	recording_free(rec);
}

TEST(a_forked_child_that_uses_nccl_has_a_file_of_its_own)
{
	char pattern[320], own[320], *text;
	pid_t pid;

	snprintf(pattern, sizeof(pattern), "%s.%%p", path);
	setenv("NCCLINSP_RECORD", pattern, 1);
	init();
	v6->stopEvent(start(NCCL_GROUP, NULL));
	pid = fork();
	if (pid == 0) {
		init();
		v6->stopEvent(start(NCCL_GROUP, NULL));
		v6->finalize(context);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	snprintf(own, sizeof(own), "%s.%d", path, pid);
	text = text_of(own);
	ck_assert_str_eq(text,
		" T1 init #0 comm=world id=fedcba9876543210 nnodes=2 nranks=8 rank=3\n"
		" T1 start 0 Group context=#0 rank=3\n"
		" T1 stop 0 Group\n"
		" T1 finalize #0\n");
	free(text);
}

/* The file is its parent's, who would write behind its end: a bus error. */
TEST(child_of_a_fork_without_handlers_leaves_the_file_alone)
{
	struct stat st;
	pid_t pid;

	init();
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		exit(0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_ge(st.st_size, 1 << 20);
	for (int i = 0; i < 1000; i++)
		v6->stopEvent(start(NCCL_GROUP, NULL));
	v6->finalize(context);
}

static void limit_file_size(uint64_t bytes)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The kernel would send SIGXFSZ, which kills. */
TEST(a_limit_on_file_size_refuses_and_does_not_kill)
{
	limit_file_size(1 << 20);
	mask = -1;
	init();
	ck_assert_int_eq(mask, 0);
	ck_assert_int_eq(access(path, F_OK), -1);
	v6->finalize(context);
	setenv("NCCLINSP_RECORD_MIB", "1", 1);
	init();
	v6->stopEvent(start(NCCL_GROUP, NULL));
	v6->finalize(context);
	limit_file_size(4096);
	mask = -1;
	init();
	ck_assert_int_eq(mask, 0);
	v6->finalize(context);
}

/* The number of the recording's descriptor becomes one of the job's own file. */
static void take_its_number(int own)
{
	char link[64], at[300];

	for (int fd = STDERR_FILENO + 1; fd < 256; fd++) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, at, sizeof(at) - 1);
		at[n > 0 ? n : 0] = 0;
		if (strcmp(at, path) == 0)
			ck_assert_int_eq(dup2(own, fd), fd);
	}
}

/* A job that becomes a daemon closes all that it finds, and opens files of its own there. */
TEST(a_file_of_the_job_under_our_number_is_left_alone)
{
	char name[400];
	struct stat st;
	int own;

	snprintf(name, sizeof(name), "%s.own", path);
	own = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_eq(write(own, "checkpoint", 10), 10);
	init();
	take_its_number(own);
	for (int i = 0; i < 40000; i++)
		v6->stopEvent(start(NCCL_PROXY_OP, NULL));
	in_child(try_an_event, 0, 0);
	for (int i = 0; i < 2; i++) {
		v6->finalize(context);
		ck_assert_int_eq(fstat(own, &st), 0);
		ck_assert_int_eq(st.st_size, 10);
		mask = -1;
		init();
		ck_assert_int_eq(mask, 0);
	}
	v6->finalize(context);
	recording_free(load(path));
	close(own);
}

/* Its output would be written over the beginning of the recording. */
TEST(a_file_never_is_the_standard_output_of_the_job)
{
	int out = dup(STDOUT_FILENO), wrote;

	close(STDOUT_FILENO);
	init();
	wrote = (int)write(STDOUT_FILENO, "loss 0.1\n", 9);
	dup2(out, STDOUT_FILENO);
	ck_assert_int_eq(wrote, -1);
	v6->finalize(context);
	recording_free(load(path));
}

/* ---- many threads ---- */

#define THREADS	4
#define EACH	4000

static void *call_a_lot(void *arg)
{
	for (int i = 0; i < EACH; i++)
		v6->stopEvent(start_in(NULL, NCCL_GROUP, (void *)(uintptr_t)i));
	return arg;
}

/* The last communicator comes and goes under the feet of others. */
TEST(threads_keep_their_order_while_the_file_is_cut)
{
	pthread_t thread[THREADS];
	uint64_t next[THREADS + 2] = { 0 };
	struct recording *rec;
	int starts = 0;

	init();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, call_a_lot, NULL);
	for (int i = 0; i < 200; i++) {
		v6->finalize(context);
		init();
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	/* They may have been done before the last cut. */
	v6->stopEvent(start_in(NULL, NCCL_GROUP, NULL));
	v6->finalize(context);
	rec = load(path);
	for (int i = 0; i < rec->ncalls; i++) {
		const struct recording_call *call = &rec->call[i];
		uint64_t n;

		if (call->verb != RECORDING_START)
			continue;
		n = (uint64_t)rec->event[call->event].descr.parentObj;
		ck_assert_int_le(call->thread, THREADS + 1);
		ck_assert_uint_ge(n, next[call->thread]);
		next[call->thread] = n + 1;
		starts++;
	}
	ck_assert_int_eq(rec->ncalls + (int)rec->lost - rec->ncontexts * 2,
			 (THREADS * EACH + 1) * 2);
	ck_assert_int_gt(starts, 0);
	recording_free(rec);
}

int main(void)
{
	return fx_run(setup, NULL);
}
