/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a callback costs the job: ours against the floor and the empty plugin, all
 * in one run, turn by turn, so that what a machine does meanwhile hits all alike.
 * Ratios are of one round each; what is printed is the median over the rounds.
 *
 * Cold: 1 MiB of other memory is touched before each operation, as a training
 * step does.  Which lines of ours that pushes out hangs on where it lies: each
 * round has its own.
 *
 * bench_publish [--json] [--enforce]
 * bench_publish --beside FILE
 *
 * --beside: ours in turns with the profiler library FILE (v5 or v6), for the events that that
 * one asks for.
 *
 * Fails if a callback allocates, locks or calls the kernel after its thread's
 * first event; with --enforce also if a bound is missed.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <pthread.h>
#include <unistd.h>

#include "bench/count.h"
#include "bench/figure.h"
#include "bench/floor.h"
#include "bench/stream.h"
#include "nci/segment.h"
#include "ncclinspd/levels/overhead.h"
#include "shmring/clock.h"

#define ROUNDS		41
#define OTHER_BYTES	(1 << 20)
#define MUCH_BYTES	(64 << 20)	/* more than a processor's caches hold */
#define TICK		NCI_CLOCK_TSC	/* falls back to CLOCK_MONOTONIC elsewhere */

enum { OURS, FLOOR, EMPTY, PLUGINS };

struct plugin {
	const struct nccl_profiler_v6 *p;
	void *context;
};

static struct plugin plugins[PLUGINS];
static double ns_per_tick;
static char dir[64];
static uint8_t other[MUCH_BYTES];

/* ---- what is measured: n operations, the ticks they took in all ---------------- */

static uint64_t publish_pair(const struct plugin *pl, int n)
{
	struct nccl_descr_v6 d = { .type = NCCL_KERNEL_CH, .kernelCh = { 1, 1000000 } };
	uint64_t from = clock_ticks(TICK);
	void *handle;

	for (int i = 0; i < n; i++) {
		pl->p->startEvent(pl->context, &handle, &d);
		if (handle)
			pl->p->stopEvent(handle);
	}
	return clock_ticks(TICK) - from;
}

static uint64_t publish_state(const struct plugin *pl, int n)
{
	struct nccl_descr_v6 d = { .type = NCCL_KERNEL_CH, .kernelCh = { 1, 1000000 } };
	union nccl_args_v4 args = { .kernelCh = { 2000000 } };
	uint64_t ticks;
	void *handle;

	pl->p->startEvent(pl->context, &handle, &d);
	ticks = clock_ticks(TICK);
	for (int i = 0; i < n; i++)
		pl->p->recordEventState(handle, NCCL_KERNEL_CH_STOP, &args);
	ticks = clock_ticks(TICK) - ticks;
	if (handle)
		pl->p->stopEvent(handle);
	return ticks;
}

static uint64_t publish_stream(const struct plugin *pl, int n)
{
	static uint64_t seq;
	uint64_t from = clock_ticks(TICK);

	for (int i = 0; i < n; i++)
		stream_play(pl->p, pl->context, seq++);
	return clock_ticks(TICK) - from;
}

static uint64_t publish_refused(const struct plugin *pl, int n)
{
	struct nccl_descr_v6 d = { .type = NCCL_PROXY_CTRL };
	uint64_t from = clock_ticks(TICK);
	void *handle;

	for (int i = 0; i < n; i++)
		pl->p->startEvent(pl->context, &handle, &d);
	return clock_ticks(TICK) - from;
}

/* Two bare tick reads and one 64-byte store: what start and stop are compared with. */
static uint64_t publish_bare(const struct plugin *pl, int n)
{
	static struct nci_line ring[16384];
	static uint32_t next;
	uint64_t from = clock_ticks(TICK);

	for (int i = 0; i < n; i++) {
		struct nci_line *line = &ring[next++ % 16384];

		*(volatile uint64_t *)&line->word[0] = clock_ticks(TICK);
		for (unsigned int w = 2; w < 8; w++)
			*(volatile uint64_t *)&line->word[w] = w;
		*(volatile uint64_t *)&line->word[1] = clock_ticks(TICK);
	}
	return clock_ticks(TICK) - from;
}

typedef uint64_t measured_fn(const struct plugin *pl, int n);

static void touch_other_memory(size_t from, size_t bytes)
{
	for (size_t i = from; i < from + bytes; i += NCI_LINE_BYTES)
		((volatile uint8_t *)other)[i]++;
}

static void touch_of_round(int round)
{
	_Static_assert(ROUNDS * OTHER_BYTES <= MUCH_BYTES, "each round has its own");
	touch_other_memory((size_t)round * OTHER_BYTES, OTHER_BYTES);
}

static double measured_hot_ns(measured_fn *fn, const struct plugin *pl, int n)
{
	return (double)fn(pl, n) * ns_per_tick / n;
}

/* Each operation by itself; the two ticks around it are taken off. */
static double measured_cold_ns(measured_fn *fn, const struct plugin *pl, int n, int round)
{
	uint64_t ticks = 0, around = 0;

	for (int i = 0; i < n; i++) {
		touch_of_round(round);
		ticks += fn(pl, 1);
		around += fn(pl, 0);
	}
	return (double)(ticks - (around < ticks ? around : ticks)) * ns_per_tick / n;
}

/* ---- rounds --------------------------------------------------------------------- */

struct publish_row {
	const char *name;
	measured_fn *fn;
	measured_fn *against;	/* NULL: the floor plugin's same */
	int hot, cold;		/* operations per round */
	int per;		/* callbacks per operation that ns are given for */
	double bound;		/* of the hot ratio; 0: none, or of ns if in_ns */
	bool in_ns;
	const char *level;	/* of ours; NULL: trace */
	/* Results. */
	double ns[2][PLUGINS];
	double reference[2];
	double ratio[2];
};

static struct publish_row rows[] = {
	{ .name = "start+stop", .fn = publish_pair, .against = publish_bare, .hot = 20000,
	  .cold = 20, .per = 1, .bound = 1.6 },
	{ .name = "state", .fn = publish_state, .hot = 20000, .cold = 20, .per = 1 },
	{ .name = "collective, per callback", .fn = publish_stream, .hot = 50, .cold = 10,
	  .per = STREAM_CALLBACKS, .bound = 1.0 },
	{ .name = "the same, at level net", .fn = publish_stream, .hot = 50, .cold = 10,
	  .per = STREAM_CALLBACKS, .level = "net" },
	{ .name = "refused start", .fn = publish_refused, .hot = 100000, .cold = 20, .per = 1,
	  .bound = 3, .in_ns = true, .level = "net" },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static double row_one_ns(const struct publish_row *row, measured_fn *fn, const struct plugin *pl,
			 bool cold, int round)
{
	return (cold ? measured_cold_ns(fn, pl, row->cold, round) :
		measured_hot_ns(fn, pl, row->hot)) / row->per;
}

static void row_measure(struct publish_row *row, bool cold)
{
	static double ns[PLUGINS + 1][ROUNDS], ratio[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		for (int i = 0; i < PLUGINS; i++)
			ns[i][r] = row_one_ns(row, row->fn, &plugins[i], cold, r);
		ns[PLUGINS][r] = row->against ?
			row_one_ns(row, row->against, &plugins[FLOOR], cold, r) : ns[FLOOR][r];
		ratio[r] = ns[OURS][r] / ns[PLUGINS][r];
	}
	row->ratio[cold] = figure_median(ratio, ROUNDS);
	row->reference[cold] = figure_median(ns[PLUGINS], ROUNDS);
	for (int i = 0; i < PLUGINS; i++)
		row->ns[cold][i] = figure_median(ns[i], ROUNDS);
}

/* Longest single callback of a paced run: per round, and over all rounds. */
struct longest {
	double median_ns[PLUGINS];
	double worst_ns[PLUGINS];
};

static void longest_measure(struct longest *l)
{
	static double ns[PLUGINS][ROUNDS];

	memset(l, 0, sizeof(*l));
	for (int r = 0; r < ROUNDS; r++)
		for (int i = 0; i < PLUGINS; i++) {
			uint64_t longest = 0;

			for (int k = 0; k < 40; k++) {
				touch_of_round(r);
				stream_play_timed(plugins[i].p, plugins[i].context, 0, &longest);
			}
			ns[i][r] = (double)longest * ns_per_tick;
			if (ns[i][r] > l->worst_ns[i])
				l->worst_ns[i] = ns[i][r];
		}
	for (int i = 0; i < PLUGINS; i++)
		l->median_ns[i] = figure_median(ns[i], ROUNDS);
}

/* ---- what callbacks measure of themselves ----------------------------------------- */

#define OWN_PLAYS	200

/* ns per callback of a collective, with no cache that knows it when it begins. */
struct own_cost {
	double bench, empty;	/* around all of them */
	double plugin;		/* what the plugin has found, as the daemon takes it */
};

struct own_timed {
	double count, ticks;
};

/* This process's segment: children that were counted left theirs beside it.  Or NULL. */
static const struct nci_header *segment_header(void)
{
	char path[sizeof(dir) + sizeof(((struct dirent *)0)->d_name)];
	const struct nci_header *h = NULL;
	const struct dirent *entry;
	DIR *d = opendir(dir);

	while ((!h || h->pid != (uint32_t)getpid()) && d && (entry = readdir(d))) {
		int fd;
		void *map;

		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		map = mmap(NULL, sizeof(*h), PROT_READ, MAP_SHARED, fd, 0);
		h = map == MAP_FAILED ? NULL : map;
		close(fd);
	}
	if (d)
		closedir(d);
	return h && h->pid == (uint32_t)getpid() ? h : NULL;
}

/* All that was measured so far, of both classes of threads. */
static void timed_add(const struct nci_header *h, int sign, struct own_timed *t)
{
	for (int i = 0; i < NCI_THREAD_CLASSES; i++) {
		t->count += sign * (double)h->steer.timed[i].count;
		t->ticks += sign * (double)h->steer.timed[i].ticks;
	}
}

static void own_measure(struct own_cost *o)
{
	const struct nci_header *h = segment_header();
	struct own_timed t = { 0 };

	*o = (struct own_cost){ 0 };
	if (!h)
		return;
	timed_add(h, -1, &t);
	for (int n = 0; n < OWN_PLAYS; n++)
		for (int i = OURS; i <= EMPTY; i += EMPTY) {
			touch_other_memory(0, MUCH_BYTES);
			*(i == OURS ? &o->bench : &o->empty) +=
				(double)publish_stream(&plugins[i], 1) * ns_per_tick /
				(OWN_PLAYS * STREAM_CALLBACKS);
		}
	timed_add(h, 1, &t);
	o->plugin = (t.ticks / t.count - (double)overhead_clock_ticks(TICK)) * ns_per_tick;
}

/* ---- another plugin beside ours --------------------------------------------------- */

#define BESIDE_PLAYS	20	/* so few that none needs a reader meanwhile */

static const struct nccl_profiler_v6 *asked;	/* plugin whose turn it is */
static int asked_events;

/* NCCL makes no call for an event that was not asked for. */
static int asked_start(void *context, void **handle, struct nccl_descr_v6 *d)
{
	*handle = NULL;
	return d->type & (uint64_t)asked_events ? asked->startEvent(context, handle, d) :
						  NCCL_SUCCESS;
}

static double asked_ns(const struct plugin *pl, bool cold, int round)
{
	struct nccl_profiler_v6 filtered = *pl->p;
	struct plugin turn = { &filtered, pl->context };

	filtered.startEvent = asked_start;
	asked = pl->p;
	return cold ? measured_cold_ns(publish_stream, &turn, BESIDE_PLAYS, round) :
		      measured_hot_ns(publish_stream, &turn, BESIDE_PLAYS);
}

static void beside_measure(const struct plugin *peer, bool cold)
{
	const struct plugin *turn[] = { &plugins[OURS], peer, &plugins[FLOOR], &plugins[EMPTY] };
	static double ns[4][ROUNDS], ratio[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		for (int i = 0; i < 4; i++)
			ns[i][r] = asked_ns(turn[i], cold, r);
		ratio[r] = (ns[0][r] - ns[3][r]) / (ns[1][r] - ns[3][r]);
	}
	printf("%-5s %8.0f %8.0f %8.0f %8.0f %8.2f\n", cold ? "cold" : "hot",
	       figure_median(ns[0], ROUNDS), figure_median(ns[1], ROUNDS),
	       figure_median(ns[2], ROUNDS), figure_median(ns[3], ROUNDS),
	       figure_median(ratio, ROUNDS));
}

static void silent_log(int level, unsigned long subsystems, const char *file, int line,
		       const char *format, ...)
{
}

static int beside(const char *file)
{
	void *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	struct plugin peer = { lib ? dlsym(lib, "ncclProfiler_v6") : NULL, NULL };

	if (lib && !peer.p)
		peer.p = dlsym(lib, "ncclProfiler_v5");	/* but for types, the same */
	if (!peer.p || peer.p->init(&peer.context, 1, &asked_events, "bench", 2, 2, 0,
				      silent_log) != NCCL_SUCCESS) {
		fprintf(stderr, "bench_publish: %s: %s\n", file,
			peer.p ? "its init fails" : dlerror());
		return EXIT_FAILURE;
	}
	if (!asked_events) {
		fprintf(stderr, "bench_publish: %s asks for no event\n", file);
		return EXIT_FAILURE;
	}
	printf("ns a collective of events %#x, %s\n         ours    other    floor    empty"
	       "  ours/other, less the empty one's\n", (unsigned int)asked_events, file);
	for (int cold = 0; cold < 2; cold++)
		beside_measure(&peer, cold);
	return 0;
}

/* ---- what callbacks must not do ------------------------------------------------- */

static void plugin_init(struct plugin *pl)
{
	static int mask;	/* NCCL has one, for good: the plugin changes it later */

	pl->p->init(&pl->context, 1, &mask, "bench", 1, 2, 0, NULL);
}

static void calls_prepare(void *arg)
{
	plugin_init(arg);
	publish_stream(arg, 1);	/* the thread's first events: its lane, the names */
}

#define MANY		1000
#define MANY_CALLBACKS	(MANY * STREAM_CALLBACKS + 2 * MANY + 2 + MANY)

static void calls_many(void *arg)
{
	publish_stream(arg, MANY);
	publish_pair(arg, MANY);
	publish_state(arg, MANY);
}

static void calls_prepare_none(void *arg)
{
}

/* One of each: what does not see these proves nothing. */
static void do_what_is_counted(void *arg)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	void *volatile p;

	p = malloc(1);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	syscall(SYS_getppid);
	free(p);
}

static bool counts_are_real(void)
{
	struct count c = count_in(calls_prepare_none, do_what_is_counted, NULL);

	return c.allocations == 2 && c.locks == 1 && (c.syscalls == 1 || c.syscalls == -1);
}

/* ---- set-up, report --------------------------------------------------------------- */

static void remove_dir(void)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
	rmdir(dir);
}

static void clock_calibrate(void)
{
	uint64_t ticks = clock_ticks(TICK), from = clock_ns(CLOCK_MONOTONIC), now;

	do
		now = clock_ns(CLOCK_MONOTONIC);
	while (now - from < 50000000);
	ns_per_tick = (double)(now - from) / (double)(clock_ticks(TICK) - ticks);
}

static bool plugins_open(void)
{
	void *lib = dlopen(B "/libnccl-profiler-insp.so", RTLD_NOW | RTLD_LOCAL);

	plugins[OURS].p = lib ? dlsym(lib, "ncclProfiler_v6") : NULL;
	plugins[FLOOR].p = &floor_plugin;
	plugins[EMPTY].p = &empty_plugin;
	if (!plugins[OURS].p)
		fprintf(stderr, "bench_publish: %s\n", dlerror());
	return plugins[OURS].p != NULL;
}

static bool row_is_within(const struct publish_row *row)
{
	return !row->bound ||
	       (row->in_ns ? row->ns[0][OURS] : row->ratio[0]) <= row->bound;
}

static void row_print(const struct publish_row *r, int cold)
{
	const char *caches = cold ? "cold" : "hot";

	figure_say("%-24s%4s %7.1f %8.1f %8.1f %8.1f %8.2f  ", cold ? "" : r->name, caches,
		   r->ns[cold][OURS], r->ns[cold][FLOOR], r->ns[cold][EMPTY], r->reference[cold],
		   r->ratio[cold]);
	if (r->bound && !cold)
		figure_say("%.1f%s %s", r->bound, r->in_ns ? " ns" : "",
			   row_is_within(r) ? "ok" : "MISSED");
	figure_say("\n");
	figure_tell(r->ns[cold][OURS], "ns", "%s, %s", r->name, caches);
	figure_tell(r->ratio[cold], "ratio", "%s, %s, against the floor", r->name, caches);
}

static void rows_print(const struct longest *l, const struct own_cost *o, const struct count *c)
{
	figure_say("ns per operation            %8s %8s %8s %8s %8s  %s\n", "ours", "floor",
		   "empty", "against", "ratio", "bound");
	for (size_t i = 0; i < ROWS; i++)
		for (int cold = 0; cold < 2; cold++)
			row_print(&rows[i], cold);
	figure_say("longest callback, cold      %8.0f %8.0f %8.0f  (median of %d rounds)\n",
		   l->median_ns[OURS], l->median_ns[FLOOR], l->median_ns[EMPTY], ROUNDS);
	figure_say("                            %8.0f %8.0f %8.0f  (of all)\n",
		   l->worst_ns[OURS], l->worst_ns[FLOOR], l->worst_ns[EMPTY]);
	figure_tell(l->median_ns[OURS], "ns", "longest callback, cold");
	figure_say("no cache knows them: %.1f ns a callback at level net (empty %.1f); "
		   "by their own measure %.1f\n", o->bench, o->empty, o->plugin);
	figure_tell(o->bench - o->empty, "ns", "callback, no cache");
	figure_tell(o->plugin, "ns", "callback, no cache, by its own measure");
	figure_say("inside %d callbacks: %ld allocations, %ld locks, ", MANY_CALLBACKS,
		   c->allocations, c->locks);
	if (c->syscalls < 0)
		figure_say("system calls could not be counted here\n");
	else
		figure_say("%ld system calls\n", c->syscalls);
	figure_tell((double)c->allocations, "count", "allocations in callbacks");
	figure_tell((double)c->locks, "count", "locks in callbacks");
	if (c->syscalls >= 0)
		figure_tell((double)c->syscalls, "count", "system calls in callbacks");
}

static struct count rows_run(struct longest *longest, struct own_cost *own)
{
	struct count count;

	clock_calibrate();
	plugin_init(&plugins[FLOOR]);
	plugin_init(&plugins[EMPTY]);
	count = count_in(calls_prepare, calls_many, &plugins[OURS]);
	plugin_init(&plugins[OURS]);
	for (size_t i = 0; i < ROWS; i++) {
		if (rows[i].level) {
			plugins[OURS].p->finalize(plugins[OURS].context);
			setenv("NCCLINSP_LEVEL", rows[i].level, 1);
			plugin_init(&plugins[OURS]);
		}
		row_measure(&rows[i], false);
		row_measure(&rows[i], true);
	}
	own_measure(own);
	plugins[OURS].p->finalize(plugins[OURS].context);
	setenv("NCCLINSP_LEVEL", "trace", 1);
	plugin_init(&plugins[OURS]);
	longest_measure(longest);
	return count;
}

int main(int argc, char **argv)
{
	bool enforce, kept = true;
	struct longest longest;
	struct count count;
	struct own_cost own;

	figure_start("publish", &argc, argv);
	enforce = argc > 1 && !strcmp(argv[1], "--enforce");
	snprintf(dir, sizeof(dir), "/dev/shm/ncclinsp-bench.XXXXXX");
	if (!plugins_open() || !mkdtemp(dir))
		return EXIT_FAILURE;
	atexit(remove_dir);
	setenv("NCCLINSP_SHM_DIR", dir, 1);
	setenv("NCCLINSP_LEVEL", "trace", 1);
	if (!counts_are_real()) {
		fprintf(stderr, "bench_publish: what is to be counted is not seen\n");
		return EXIT_FAILURE;
	}
	if (argc > 1 && !strcmp(argv[1], "--beside")) {
		if (argc != 3) {
			fprintf(stderr, "bench_publish: --beside FILE: a profiler library\n");
			return EXIT_FAILURE;
		}
		clock_calibrate();
		for (int i = 0; i < PLUGINS; i++)
			plugin_init(&plugins[i]);
		return beside(argv[2]);
	}
	count = rows_run(&longest, &own);
	rows_print(&longest, &own, &count);
	for (size_t i = 0; i < ROWS; i++)
		kept &= row_is_within(&rows[i]);
	return count.allocations || count.locks || count.syscalls > 0 || (enforce && !kept);
}
