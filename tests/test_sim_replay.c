/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a recorded run and making its calls again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fixture.h"
#include "tests/sim/pace.h"
#include "tests/sim/probe.h"
#include "tests/sim/replay.h"

#define COMM "\"commId\":12464174370433239723,\"rank\":1"

/* Two uses of one address, a state, a child that begins after its parent's end. */
static const char small[] =
	"{\"type\":\"ProfilerLifecycle\",\"func\":\"ProfilerInit\"," COMM ","
	"\"start\":{\"ts\":1000.0,\"tid\":1},"
	"\"details\":{\"nranks\":4,\"commName\":\"x\"}}\n"
	"{\"recordType\":\"state\",\"eventAddr\":\"0xc0\",\"ts\":1030.5,\"name\":\"KernelChStop\","
	"\"id\":22,\"tid\":3,\"pTimer\":1770891945557575008}\n"
	"{\"recordType\":\"event\",\"type\":\"ncclProfileCollApi\"," COMM ","
	"\"start\":{\"ts\":1010.0,\"tid\":2},\"stop\":{\"ts\":1011.0,\"tid\":2},"
	"\"parentObj\":\"null\",\"eventAddr\":\"0xa0\",\"details\":{\"func\":\"AllReduce\","
	"\"count\":8,\"dtype\":\"ncclFloat32\",\"root\":0,\"stream\":\"0x1\"}}\n"
	"{\"recordType\":\"event\",\"type\":\"ncclProfileColl\"," COMM ","
	"\"start\":{\"ts\":1012.0,\"tid\":2},\"stop\":{\"ts\":1013.0,\"tid\":2},"
	"\"parentObj\":\"0xa0\",\"eventAddr\":\"0xb0\",\"details\":{\"func\":\"AllReduce\","
	"\"seq\":5,\"algo\":\"RING\",\"proto\":\"LL\",\"channels\":1,\"count\":8,"
	"\"dtype\":\"ncclFloat32\",\"parentGroup\":\"null\"}}\n"
	"{\"recordType\":\"event\",\"type\":\"ncclProfileProxyCtrl\"," COMM ","
	"\"start\":{\"ts\":1001.0,\"tid\":3},\"stop\":{\"ts\":1002.0,\"tid\":3},"
	"\"parentObj\":\"null\",\"eventAddr\":\"0xc0\",\"details\":{}}\n"
	"{\"recordType\":\"cuptiActivity\",\"type\":\"KERNEL\"}\n"
	"{\"recordType\":\"event\",\"type\":\"ncclProfileKernelCh\"," COMM ","
	"\"start\":{\"ts\":1020.0,\"tid\":3},\"stop\":{\"ts\":1031.0,\"tid\":3},"
	"\"parentObj\":\"0xb0\",\"eventAddr\":\"0xc0\",\"details\":{\"channel\":3,\"pTimer\":7}}\n"
	"{\"type\":\"ProfilerLifecycle\",\"func\":\"ProfilerFinalize\"," COMM ","
	"\"start\":{\"ts\":1040.0,\"tid\":1},\"details\":{}}\n";

static struct recording *load(const char *text)
{
	struct recording *rec = NULL;
	char path[300], err[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/small.jsonl", fx_tmpdir());
	f = fopen(path, "we");
	fputs(text, f);
	fclose(f);
	if (recording_load(&rec, path, err, sizeof(err)))
		fprintf(stderr, "# %s\n", err);
	return rec;
}

static int replay(const struct recording *rec, int version)
{
	struct api api;

	api_bind(&api, probe_table(version), version, 28);
	return replay_run(rec, &api, 0, 0);
}

TEST(calls_come_in_recorded_order_with_parents_by_address_and_time)
{
	struct recording *rec = load(small);

	probe_reset(0xfff, 0);
	ck_assert_int_eq(replay(rec, 5), 4);
	ck_assert_str_eq(probe_text(PROBE_UNIT, 1),
			 "CollApi S <- AllReduce 8 ncclFloat32 graph=0\n"
			 "CollApi X\n"
			 "Coll S <CollApi group=- AllReduce seq=5 count=8 ncclFloat32 RING LL "
			 "channels=1\n"
			 "Coll X\n");
	ck_assert_str_eq(probe_text(PROBE_PROXY, 1),
			 "ProxyCtrl S <-\nProxyCtrl X\n"
			 "KernelCh S <Coll channel=3\nKernelCh R 22\nKernelCh X\n");
	ck_assert_int_eq(probe_count("finalize"), 1);
	recording_free(rec);
}

/* A plugin that keeps its caller waiting in each CollApi, and sees stamps. */
#define TARDY_NS	5000000

static uint64_t stamps[2];

static int tardy_start(void *context, void **handle, struct nccl_descr_v5 *d)
{
	(void)context;
	if (d->type == NCCL_COLL_API)
		pace_sleep(TARDY_NS);
	if (d->type == NCCL_KERNEL_CH)
		stamps[0] = d->kernelCh.pTimer;
	*handle = stamps;
	return NCCL_SUCCESS;
}

static int tardy_state(void *handle, int state, union nccl_args_v4 *args)
{
	(void)handle;
	if (state == NCCL_KERNEL_CH_STOP)
		stamps[1] = args->kernelCh.pTimer;
	return NCCL_SUCCESS;
}

static int tardy_stop(void *handle)
{
	(void)handle;
	return NCCL_SUCCESS;
}

/* The launch is to come 1.5 us after that. */
static const char launch[] =
	"{\"recordType\":\"event\",\"type\":\"ncclProfileGroup\"," COMM ","
	"\"start\":{\"ts\":1011.5,\"tid\":2},\"stop\":{\"ts\":1014.0,\"tid\":2},"
	"\"parentObj\":\"null\",\"eventAddr\":\"0xd0\",\"details\":{}}\n";

TEST(a_kernel_runs_later_by_as_much_as_its_launch_is_late)
{
	struct nccl_profiler_v5 tardy = *(const struct nccl_profiler_v5 *)probe_table(5);
	char text[sizeof(small) + sizeof(launch)];
	struct recording *rec;
	struct api api;
	uint64_t late_ns;

	snprintf(text, sizeof(text), "%s%s", small, launch);
	rec = load(text);

	probe_reset(0xfff, 0);
	tardy.startEvent = tardy_start;
	tardy.stopEvent = tardy_stop;
	tardy.recordEventState = tardy_state;
	api_bind(&api, &tardy, 5, 28);
	ck_assert_int_eq(replay_run(rec, &api, 1, 0), 5);
	late_ns = stamps[0] - 7;
	ck_assert_uint_ge(late_ns, TARDY_NS - 1500);
	ck_assert_uint_eq(stamps[1] - 1770891945557575008, late_ns);
	recording_free(rec);
}

TEST(an_unsigned_comm_id_and_a_gpu_time_keep_all_their_digits)
{
	struct recording *rec = load(small);

	ck_assert_uint_eq(rec->context[0].comm_id, 12464174370433239723ull);
	for (int i = 0; i < rec->ncalls; i++)
		if (rec->call[i].verb == RECORDING_STATE)
			ck_assert_uint_eq(rec->call[i].args.kernelCh.pTimer,
					  1770891945557575008ull);
	recording_free(rec);
}

TEST(what_the_mask_does_not_want_is_not_called)
{
	struct recording *rec = load(small);

	probe_reset(0x2, 0);		/* Coll, which brings CollApi */
	ck_assert_int_eq(replay(rec, 5), 2);
	ck_assert_int_eq(probe_count("KernelCh"), 0);
	recording_free(rec);
}

TEST(equal_names_are_one_pointer)
{
	struct recording *rec = load(small);

	ck_assert_ptr_eq((void *)rec->event[0].descr.collApi.func,
			 (void *)rec->event[1].descr.coll.func);
	recording_free(rec);
}

static const char *const broken[] = {
	"", "{", "[]\n",
	"{\"recordType\":\"event\",\"type\":\"ncclProfileGroup\",\"rank\":0}\n",
	"{\"recordType\":\"state\",\"eventAddr\":\"0x1\",\"name\":\"KernelChStop\"}\n",
};

TEST_LOOP(a_broken_recording_is_refused, 0, FX_COUNT(broken))
{
	struct recording *rec;
	char path[300], err[300] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/broken.jsonl", fx_tmpdir());
	f = fopen(path, "we");
	fputs(broken[_i], f);
	fclose(f);
	ck_assert_int_lt(recording_load(&rec, path, err, sizeof(err)), 0);
	ck_assert_ptr_nonnull(strstr(err, "broken.jsonl"));
}

/* The recorded 4-GPU run, which is not part of the project. */
static const char *recorded_path(void)
{
	const char *path = getenv("NCCLINSP_RECORDING");

	return path ? path : "../shared/data/nccl-4gpu-group-2allreduce.jsonl";
}

TEST(the_recorded_run_plays_every_event_and_state)
{
	struct recording *rec;
	char err[300];

	if (access(recorded_path(), R_OK)) {
		fx_skip("the recorded run is not here");
		return;
	}
	ck_assert_int_eq(recording_load(&rec, recorded_path(), err, sizeof(err)), 0);
	probe_reset(0xfff, 0);
	ck_assert_int_eq(replay(rec, 5), 149);
	ck_assert_int_eq(probe_count("Coll S <CollApi group=Group AllReduce"), 8);
	ck_assert_int_eq(probe_count("KernelCh S <Coll"), 100);
	ck_assert_int_eq(probe_count("KernelCh R 22"), 100);
	ck_assert_int_eq(probe_count("ProxyCtrl R"), 40);
	ck_assert_int_eq(probe_count("finalize"), 4);
	ck_assert_int_eq(probe_strangers(), 0);
	ck_assert_int_eq(probe_stale(), 0);
	recording_free(rec);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
