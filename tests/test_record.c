/* SPDX-License-Identifier: Apache-2.0 */
/* Writing calls down, reading them again, and making them again. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/format.h"
#include "tests/fixture.h"
#include "tests/fixture_sim.h"
#include "tests/plugin_driver.h"
#include "tests/sim/player.h"
#include "tests/sim/replay.h"

static const void *const tables[] = {
	NULL, &ncclProfiler_v1, &ncclProfiler_v2, &ncclProfiler_v3, &ncclProfiler_v4,
	&ncclProfiler_v5, &ncclProfiler_v6,
};
static const int releases[] = { 0, 23, 25, 26, 27, 28, 30 };

static const struct nccl_profiler_v6 *const v6 = &ncclProfiler_v6;
static char path[300];
static void *context;
static int mask;

/* Each test is a process of its own, and so has one file. */
static void use_file(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", fx_tmpdir(), name);
	setenv("NCCLINSP_RECORD", path, 1);
}

static void setup(void)
{
	use_file("calls.rec");
}

static void init(void)
{
	ck_assert_int_eq(v6->init(&context, 0xfedcba9876543210, &mask, "world", 2, 8, 3, NULL),
			 NCCL_SUCCESS);
}

static void *start_in(void *where, uint64_t type, void *parent)
{
	struct nccl_descr_v6 d = { .type = type, .parentObj = parent, .rank = 3 };
	void *handle = &d;

	v6->startEvent(where, &handle, &d);
	return handle;
}

static void *start(uint64_t type, void *parent)
{
	return start_in(context, type, parent);
}

static struct recording *load(const char *from)
{
	struct recording *rec = NULL;
	char err[300];

	ck_assert_msg(recording_load(&rec, from, err, sizeof(err)) == 0, "%s", err);
	return rec;
}

/* Without the times in front. */
static char *text_of(const char *from)
{
	struct recording *rec = load(from);
	char *text = NULL, *to, *p;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	recording_print(rec, f);
	fclose(f);
	recording_free(rec);
	for (to = p = text; *p; ) {
		p += strcspn(p, " ");
		do
			*to++ = *p;
		while (*p++ != '\n');
	}
	*to = 0;
	return text;
}

/* In a process of its own, which ends with `end_signal`, or well. */
static void in_child(void (*what)(int), int arg, int end_signal)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		what(arg);
		if (end_signal)
			raise(end_signal);
		exit(0);
	}
	waitpid(pid, &status, 0);
	ck_assert_int_eq(end_signal ? WTERMSIG(status) : WEXITSTATUS(status), end_signal);
}

/* ---- what is in the file ---- */

START_TEST(every_call_is_there_as_it_was_made)
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
		" sendBuff=0x1000 recvBuff=0x0\n"
		" T1 start 1 KernelCh context=#0 rank=3 parent=0 channelId=0 pTimer=0\n"
		" T1 state 1 KernelCh state=22 value=12345\n"
		" T1 state 1 KernelCh state=22 null\n"
		" T1 stop 1 KernelCh\n"
		" T1 stop\n"
		" T1 stop 0x5ca1ab1e\n"
		" T1 finalize #0\n");
	free(text);
}
END_TEST

START_TEST(every_interface_is_asked_for_all_its_events)
{
	static const int events[] = { 0, 0x3f, 0x3f, 0xbf, 0xbf, 0xfff, 0x7fff };
	struct api api;

	api_bind(&api, tables[_i], _i, releases[_i]);
	api_init(&api, &context, &mask, &(struct api_comm){ .nranks = 1 });
	ck_assert_int_eq(mask, events[_i]);
}
END_TEST

START_TEST(the_file_is_no_longer_than_its_records)
{
	struct stat st;

	init();
	v6->finalize(context);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_le(st.st_size, 512);
	ck_assert_int_eq(st.st_mode & 0777, 0600);
}
END_TEST

static void make_events(int n)
{
	init();
	for (int i = 0; i < n; i++)
		v6->stopEvent(start(NCCL_GROUP, NULL));
}

START_TEST(what_a_killed_process_wrote_can_be_read)
{
	struct recording *rec;

	in_child(make_events, 1000, SIGKILL);
	rec = load(path);
	ck_assert_int_eq(rec->ncalls, 2001);
	ck_assert_uint_eq(rec->lost, 0);
	recording_free(rec);
}
END_TEST

START_TEST(a_second_life_of_the_library_goes_on_in_the_same_file)
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
END_TEST

/* ---- what is not ---- */

START_TEST(calls_after_the_last_communicator_are_counted)
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
END_TEST

/* The first calls that do not fit end it: no later, shorter one gets in. */
START_TEST(a_full_file_holds_the_beginning_and_counts_the_rest)
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
END_TEST

START_TEST(a_full_disk_is_no_fault)
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
END_TEST

START_TEST(a_file_that_exists_is_left_alone)
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
END_TEST

static const char *const nonsense[] = { "", "%q", "%", "/no/such/dir/x" };

START_TEST(without_a_file_nothing_is_asked_for)
{
	setenv("NCCLINSP_RECORD", nonsense[_i], 1);
	init();
	ck_assert_int_eq(mask, 0);
	ck_assert_ptr_null(start(NCCL_GROUP, NULL));
	v6->finalize(context);
}
END_TEST

START_TEST(a_name_may_hold_the_process_id)
{
	char want[400];

	use_file("x-%p-%%.rec");
	init();
	v6->finalize(context);
	snprintf(want, sizeof(want), "%s/x-%d-%%.rec", fx_tmpdir(), (int)getpid());
	ck_assert_int_eq(access(want, R_OK), 0);
}
END_TEST

static void try_an_event(int unused)
{
	(void)unused;
	if (start(NCCL_GROUP, NULL))
		abort();
}

START_TEST(a_forked_child_writes_nothing)
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
END_TEST

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
START_TEST(threads_keep_their_order_while_the_file_is_cut)
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
END_TEST

/* ---- there and back ---- */

static const char *const scenarios[] = {
	"nodes 2\ncomm w ranks 0,1 channels 2\nloop 2\nAllReduce w 1Mi float32\n"
	"AllGather w 64Ki bfloat16\nBroadcast w 4Ki int8 root 1\n"
	"group\nSend w 128 float16 from 0 to 1\nSend w 128 float16 from 1 to 0\nend\nend\n",
	"gpus 2\nthreads process\ncomm w ranks 0,1 channels 2\nAllReduce w 1Mi float32 algo tree\n"
	"AllGather w 1Ki int8 ce\nAllReduce w 1Ki float32 symmetric\n"
	"graph g\nAllReduce w 1Ki float32\nend\nreplay g 3\n",
	"nodes 2\nnetplugin ib\ncomm w ranks 0,1 channels 1\nAllReduce w 1Mi float32\n",
};

static const char *played;

static void play(int version)
{
	struct scenario *scn = fx_scenario(played);
	struct player_plugin plugin = { tables[version], version };
	struct pace pace = { .factor = 0 };

	scn->hold_ns = 0;
	scn->release = releases[version];
	if (player_run(scn, 0, &plugin, &pace, NULL))
		abort();
	scenario_free(scn);
}

static char first[300];

static void replay(int version)
{
	struct recording *rec = load(first);
	struct api api;

	api_bind(&api, tables[version], version, releases[version]);
	if (replay_run(rec, &api, 0, 0) < 0)
		abort();
	recording_free(rec);
}

/* The first line that differs, since both in full are too long for a message. */
static void check_same_text(const char *a, const char *b)
{
	size_t at = 0, line;

	while (a[at] && a[at] == b[at])
		at++;
	for (line = at; line && a[line - 1] != '\n'; line--)
		;
	ck_assert_msg(a[at] == b[at], "\"%.*s\" became \"%.*s\"",
		      (int)strcspn(a + line, "\n"), a + line,
		      (int)strcspn(b + line, "\n"), b + line);
}

START_TEST(a_replay_makes_the_recorded_calls_in_every_version)
{
	int version = 1 + _i % NCCL_PROFILER_VERSIONS;
	char *once, *again;

	played = scenarios[_i / NCCL_PROFILER_VERSIONS];
	use_file("first.rec");
	strcpy(first, path);
	in_child(play, version, 0);
	use_file("again.rec");
	in_child(replay, version, 0);
	once = text_of(first);
	again = text_of(path);
	ck_assert_ptr_nonnull(strstr(once, "start"));
	check_same_text(once, again);
	free(once);
	free(again);
}
END_TEST

/* ---- damaged files ---- */

static const struct { long at; const char *bytes; int size; const char *why; } damages[] = {
	{ 0, "x", 1, "" },
	{ 4, "x", 1, "no recording" },
	{ 8, "\x02", 1, "another version" },
	{ 12, "\x08", 1, "another version" },
	{ 19, "\xff", 1, "makes no sense" },
	{ 20, "\x07", 1, "makes no sense" },
	{ 256, "\x09", 1, "impossible size" },
	{ 256, "\x08", 1, "impossible size" },
	{ 256, "\xf8\xff", 2, "impossible size" },
	{ 256, "\x00\x00", 2, "no communicator" },
};

START_TEST(a_damaged_recording_is_refused)
{
	struct recording *rec;
	char err[300] = "";
	FILE *f;

	init();
	v6->finalize(context);
	f = fopen(path, "r+e");
	fseek(f, damages[_i].at, SEEK_SET);
	fwrite(damages[_i].bytes, 1, damages[_i].size, f);
	fclose(f);
	ck_assert_int_eq(recording_load(&rec, path, err, sizeof(err)), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err, damages[_i].why));
}
END_TEST

START_TEST(a_name_ends_at_a_nul)
{
	struct recording *rec = recording_new();
	const char *name = recording_intern(rec->names, "a\0bcdefgh", 9);

	ck_assert_str_eq(name, "a");
	ck_assert_ptr_eq((void *)recording_intern(rec->names, "a\0xyzuvwx", 9), (void *)name);
	recording_free(rec);
}
END_TEST

/* Where a copy may have ended; at the end of a record it is a shorter recording. */
START_TEST(a_recording_that_is_cut_off_is_refused)
{
	struct recording *rec;
	char err[300] = "";
	struct stat st;

	init();
	v6->stopEvent(start(NCCL_PROXY_OP, NULL));
	v6->finalize(context);
	ck_assert_int_eq(stat(path, &st), 0);
	for (off_t size = st.st_size - 1; size > st.st_size - 24; size--) {
		ck_assert_int_eq(truncate(path, size), 0);
		ck_assert_int_eq(recording_load(&rec, path, err, sizeof(err)), -EINVAL);
		ck_assert_ptr_nonnull(strstr(err, "cut off"));
	}
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(every_call_is_there_as_it_was_made),
		FX_LOOP(every_interface_is_asked_for_all_its_events, 1, 7),
		FX_TEST(the_file_is_no_longer_than_its_records),
		FX_TEST(what_a_killed_process_wrote_can_be_read),
		FX_TEST(a_second_life_of_the_library_goes_on_in_the_same_file),
		FX_TEST(calls_after_the_last_communicator_are_counted),
		FX_TEST(a_full_file_holds_the_beginning_and_counts_the_rest),
		FX_TEST(a_full_disk_is_no_fault),
		FX_TEST(a_file_that_exists_is_left_alone),
		FX_LOOP(without_a_file_nothing_is_asked_for, 0, FX_COUNT(nonsense)),
		FX_TEST(a_name_may_hold_the_process_id),
		FX_TEST(a_forked_child_writes_nothing),
		FX_TEST(threads_keep_their_order_while_the_file_is_cut),
		FX_LOOP(a_replay_makes_the_recorded_calls_in_every_version, 0,
			FX_COUNT(scenarios) * NCCL_PROFILER_VERSIONS),
		FX_LOOP(a_damaged_recording_is_refused, 0, FX_COUNT(damages)),
		FX_TEST(a_name_ends_at_a_nul),
		FX_TEST(a_recording_that_is_cut_off_is_refused),
	};

	return fx_run(setup, NULL, tests, FX_COUNT(tests));
}
