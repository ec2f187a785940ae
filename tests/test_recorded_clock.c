/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of four real GPUs, against CUPTI's record of when their kernels began. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/time/gpuclock.h"
#include "tests/fixture.h"
#include "tests/sim/recording.h"

#define RANKS	4
#define BASE	INT64_C(1000000000)	/* the recording's first call */

static char path[4096];
static struct recording *rec;
static int64_t cupti_ns[RANKS];		/* since the first call */

/* `"start":{"ts":` of a line, in us; < 0: it has none. */
static double start_us(const char *line)
{
	const char *at = strstr(line, "\"start\":{\"ts\":");

	return at ? strtod(at + strlen("\"start\":{\"ts\":"), NULL) : -1;
}

/* The n-th launch was that of rank 4 - n. */
static void read_cupti(void)
{
	double first = -1, start[RANKS] = { 0 };
	char line[8192];
	FILE *f = fopen(path, "re");

	while (fgets(line, sizeof(line), f)) {
		const char *id = strstr(line, "\"extCorrId\":");
		double us = start_us(line);

		if (strstr(line, "cuptiActivity") && id)
			start[RANKS - atoi(id + strlen("\"extCorrId\":"))] = us;
		else if (us >= 0 && (first < 0 || us < first))
			first = us;
	}
	fclose(f);
	for (int i = 0; i < RANKS; i++)
		cupti_ns[i] = (int64_t)((start[i] - first) * 1000);
}

static uint64_t launched_ns(int rank)
{
	for (int i = 0; i < rec->ncalls; i++) {
		const struct recording_call *call = &rec->call[i];

		if (call->verb == RECORDING_START && call->event >= 0 &&
		    rec->event[call->event].descr.type == NCCL_COLL_API &&
		    rec->context[rec->event[call->event].context].rank == rank)
			return (uint64_t)(BASE + call->at_ns);
	}
	ck_abort_msg("rank %d makes no call", rank);
	return 0;
}

/* All that was told of the rank's kernel; its first stamp. */
static uint64_t learn(struct gpuclock *c, int rank)
{
	struct gpuclock_sight *sights = calloc((size_t)rec->nevents, sizeof(*sights));
	uint64_t first = UINT64_MAX, launch_ns = launched_ns(rank);

	for (int i = 0; i < rec->ncalls; i++) {
		const struct recording_call *call = &rec->call[i];
		const struct recording_event *ev = call->event < 0 ? NULL :
						   &rec->event[call->event];
		struct gpuclock_sight *s = ev ? &sights[call->event] : NULL;

		if (!ev || ev->descr.type != NCCL_KERNEL_CH ||
		    rec->context[ev->context].rank != rank)
			continue;
		if (call->verb == RECORDING_START) {
			s->gpu_start_ns = ev->descr.kernelCh.pTimer;
			s->start_ns = (uint64_t)(BASE + call->at_ns);
			s->launch_ns = launch_ns;
		} else if (call->verb == RECORDING_STATE) {
			s->gpu_stop_ns = call->args.kernelCh.pTimer;
		} else if (call->verb == RECORDING_STOP) {
			s->stop_ns = (uint64_t)(BASE + call->at_ns);
			ck_assert_int_eq(gpuclock_see(c, s, true), GPUCLOCK_FITS);
			first = s->gpu_start_ns < first ? s->gpu_start_ns : first;
		}
	}
	free(sights);
	return first;
}

TEST_LOOP(kernels_begin_within_their_brackets_where_cupti_saw_them_begin, 0, RANKS)
{
	uint64_t lo, hi, cupti = (uint64_t)(BASE + cupti_ns[_i]);
	struct gpuclock *c;

	ck_assert_int_eq(gpuclock_new(&c), 0);
	ck_assert(gpuclock_map(c, learn(c, _i), &lo, &hi));
	gpuclock_free(c);
	printf("# rank %d: begins %.1f us before its bracket ends, which is %.1f us wide\n", _i,
	       (double)(int64_t)(hi - cupti) / 1e3, (double)(hi - lo) / 1e3);
	ck_assert_uint_le(lo, cupti);
	ck_assert_uint_le(cupti, hi);
}

int main(void)
{
	const char *env = getenv("NCCLINSP_RECORDING");
	char err[300];
	int r;

	snprintf(path, sizeof(path), "%s", env ? env :
		 "../shared/data/nccl-4gpu-group-2allreduce.jsonl");
	if (recording_load(&rec, path, err, sizeof(err))) {
		printf("1..0 # SKIP the recorded run is not here (NCCLINSP_RECORDING)\n");
		return 0;
	}
	read_cupti();
	r = fx_run(NULL, NULL);
	recording_free(rec);
	return r;
}
