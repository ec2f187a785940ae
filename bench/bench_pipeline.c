/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon's pure stages cost: records per second of one core's time, from
 * reconstruct_event() to the aggregates, the links, the log and the detectors, for the mixes
 * that jobs make.  All ranks of each operation are compared.  `--mix N` plays one mix alone,
 * 2048 operations of each process and no more, to be counted by another program:
 *
 *     valgrind --tool=callgrind --toggle-collect=feed_run build/bench/bench_pipeline --mix 1
 *
 * A second number gives each process as many communicators, a third one plays so many operations.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/feed.h"
#include "bench/figure.h"
#include "shmring/clock.h"

#define BATCH		256	/* operations of a process at a time, prepared off the clock */
#define RUN_NS		400000000
#define COUNTED		2048	/* operations of each process */

static const struct feed_mix mixes[] = {
	{ "ops: call and collective",        0,  0, 8 },
	{ "kernel, 1 channel",               1,  0, 8 },
	{ "kernel, 16 channels",            16,  0, 8 },
	{ "net, 16 channels, 32 proxy ops", 16, 32, 8 },
};

static uint64_t feed_timed_run(struct feed *f, uint64_t now_ns)
{
	uint64_t from = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (uint32_t p = 0; p < FEED_PROCESSES; p++)
		feed_run(f, p, now_ns);
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - from;
}

static void mix_run(const struct feed_mix *mix)
{
	uint64_t ns = 0, records = 0, nth = 0;
	struct feed f;

	feed_open(&f, mix, 1, BATCH);
	while (ns < RUN_NS) {
		f.nrecords = 0;
		for (uint32_t i = 0; i < BATCH; i++)
			feed_make(&f, nth++);
		ns += feed_timed_run(&f, feed_time_ns(nth));
		records += (uint64_t)f.nrecords * FEED_PROCESSES;
	}
	figure_say("%-32s %6.1f M records/s  %6.1f ns/record  %6.0f ns/operation\n", mix->name,
		   (double)records * 1e3 / (double)ns, (double)ns / (double)records,
		   (double)ns / (double)f.ops);
	figure_tell((double)ns / (double)records, "ns/record", "%s", mix->name);
	figure_tell((double)ns / (double)f.ops, "ns/operation", "%s: operation", mix->name);
	feed_close(&f);
}

static int mix_count(uint32_t i, uint32_t ncomms, uint64_t counted)
{
	uint64_t nth = 0;
	struct feed f;

	if (i >= sizeof(mixes) / sizeof(*mixes) || !ncomms)
		return EXIT_FAILURE;
	feed_open(&f, &mixes[i], ncomms, BATCH);
	while (nth < counted) {
		f.nrecords = 0;
		for (uint32_t k = 0; k < BATCH; k++)
			feed_make(&f, nth++);
		feed_timed_run(&f, feed_time_ns(nth));
	}
	printf("%s: %llu operations\n", mixes[i].name, (unsigned long long)f.ops);
	feed_close(&f);
	return 0;
}

int main(int argc, char **argv)
{
	figure_start("pipeline", &argc, argv);
	if (argc > 2 && !strcmp(argv[1], "--mix"))
		return mix_count((uint32_t)atoi(argv[2]), argc > 3 ? (uint32_t)atoi(argv[3]) : 1,
				 argc > 4 ? (uint64_t)atoll(argv[4]) : COUNTED);
	for (size_t i = 0; i < sizeof(mixes) / sizeof(*mixes); i++)
		mix_run(&mixes[i]);
	return 0;
}
