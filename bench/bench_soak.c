/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's memory over many operations: its pure stages, fed with the
 * operations of 8 processes with 200 communicators each, all ranks of them here.
 * In steps, after each of which the job is over and another comes.  Fails when the
 * memory grows once all tables are full, or is above its bound.
 *
 *     bench_soak [operations]		(10 million)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/feed.h"
#include "bench/figure.h"

#define COMMS		200
#define BATCH		256
#define STEPS		20
#define FULL_AFTER	14	/* jobs, until what is kept of those that are over is full */
#define BOUND_KIB	(100 << 10)	/* 1600 ranks of communicators; 128 have to do with 64 */
#define GROWTH_KIB	64	/* of tables that are touched as they fill */

static uint64_t rss_kib(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%*u %lu", &pages) != 1)
		perror("bench_soak: /proc/self/statm");
	if (f)
		fclose(f);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static void soak_play(struct feed *f, uint64_t *nth, uint64_t ops)
{
	uint64_t second = 0;

	for (uint64_t until = f->ops + ops; f->ops < until;) {
		f->nrecords = 0;
		for (uint32_t i = 0; i < BATCH; i++)
			feed_make(f, (*nth)++);
		for (uint32_t p = 0; p < FEED_PROCESSES; p++)
			feed_run(f, p, feed_time_ns(*nth));
		if (feed_time_ns(*nth) / 1000000000 == second)
			continue;
		second = feed_time_ns(*nth) / 1000000000;
		diagnose_look(f->diagnose, feed_time_ns(*nth));
	}
}

int main(int argc, char **argv)
{
	static const struct feed_mix mix = { "soak", 4, 0, 2 };
	uint64_t ops;
	uint64_t nth = 0, full = 0, kib = 0;
	struct feed f;

	figure_start("soak", &argc, argv);
	ops = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
	if (ops < 100000) {
		fprintf(stderr, "bench_soak: bad number '%s'; allowed: 100000 and more\n", argv[1]);
		return 2;
	}
	feed_open(&f, &mix, COMMS, BATCH);
	figure_say("operations   RSS KiB   cells   evicted   not binned\n");
	for (int step = 1; step <= STEPS; step++) {
		const struct aggregate_stats *stats = aggregate_stats(f.aggregate);

		soak_play(&f, &nth, ops / STEPS);
		feed_restart(&f, feed_time_ns(nth));
		kib = rss_kib();
		if (step == FULL_AFTER)
			full = kib;
		figure_say("%10" PRIu64 "  %8" PRIu64 "  %6" PRIu32 "  %8" PRIu64 "  %11" PRIu64
			   "\n", f.ops, kib, stats->cells, stats->evicted, stats->unbinned);
	}
	feed_close(&f);
	figure_say("%s: %" PRIi64 " KiB more than after %" PRIu64 "%s\n",
		   kib <= full + GROWTH_KIB ? "flat" : "NOT FLAT", (int64_t)(kib - full),
		   ops / STEPS * FULL_AFTER, kib <= BOUND_KIB ? "" : ", and ABOVE the bound");
	figure_tell((double)kib, "KiB", "memory after %" PRIu64 " operations", ops);
	return kib > full + GROWTH_KIB || kib > BOUND_KIB;
}
