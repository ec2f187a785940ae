/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a daemon costs and loses under a load: the real daemon, and jobs that call
 * the real plugin at a steady rate (level trace, collectives of bench/stream.h).
 * The figures are the daemon's own, from its socket.  What is lost before the
 * measured time, when a job starts at full rate out of nothing, is told apart.
 *
 *     bench_load [seconds [records/s...]]
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/figure.h"
#include "bench/stream.h"
#include "cli/base/client.h"
#include "shmring/clock.h"
#include "tests/fixture.h"

#define RECORDS_PER_PLAY	84	/* of one collective, at level trace */
#define PERIOD_NS		UINT64_C(500000)
#define MAX_PROCESSES		8
#define SETTLE_NS		UINT64_C(1500000000)	/* jobs are up, clocks are calibrated */

static const struct load {
	const char *name;
	unsigned int processes, threads;	/* threads of each process */
	uint64_t rate;				/* records per second, all together */
} loads[] = {
	{ "8 idle processes",				8, 1, 0 },
	{ "100,000 records/s, 8 processes",		8, 1, 100000 },
	{ "1,000,000 records/s, 1 process, 4 threads",	1, 4, 1000000 },
	{ "1,000,000 records/s, 1 process, 1 thread",	1, 1, 1000000 },
};

static const struct nccl_profiler_v6 *plugin;
static void *context;
static const struct load *load;
static uint64_t end_ns;

/* ---- a job ------------------------------------------------------------------ */

static void thread_sleep_until(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static void *thread_play(void *arg)
{
	uint64_t per_second = load->rate / load->processes / load->threads;
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), now, seq = 0;

	stream_play(plugin, context, seq);	/* its lane */
	for (now = begin; now < end_ns; now = clock_ns(CLOCK_MONOTONIC)) {
		uint64_t due = (now - begin) / 1000 * per_second / 1000000;

		while (seq * RECORDS_PER_PLAY < due)
			stream_play(plugin, context, seq++);
		thread_sleep_until(now + PERIOD_NS);
	}
	return arg;
}

static void job_run(void)
{
	void *lib = dlopen(fx_build_path("libnccl-profiler-insp.so"), RTLD_NOW | RTLD_LOCAL);
	pthread_t thread[8];
	int mask = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!lib) {
		fprintf(stderr, "bench_load: %s\n", dlerror());
		_exit(EXIT_FAILURE);
	}
	plugin = dlsym(lib, "ncclProfiler_v6");
	plugin->init(&context, 1, &mask, "load", 1, 2, 0, NULL);
	for (unsigned int i = 0; i < load->threads; i++)
		pthread_create(&thread[i], NULL, thread_play, NULL);
	for (unsigned int i = 0; i < load->threads; i++)
		pthread_join(thread[i], NULL);
	pause();	/* until the figures are taken */
}

/* ---- the daemon -------------------------------------------------------------- */

static pid_t daemon_launch(const char *dir)
{
	char socket[512], state[512];
	pid_t pid;

	snprintf(socket, sizeof(socket), "%s/socket", fx_tmpdir());
	snprintf(state, sizeof(state), "%s/state", fx_tmpdir());
	setenv("NCCLINSP_SOCKET", socket, 1);
	setenv("NCCLINSP_SHM_DIR", dir, 1);
	setenv("NCCLINSP_LEVEL", "trace", 1);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(fx_build_path("ncclinspd"), "ncclinspd", "--foreground", "--socket", socket,
		      "--shm-dir", dir, "--state-dir", state, (char *)NULL);
		_exit(127);
	}
	return pid;
}

struct figures {
	uint64_t cpu_ns, records, lost, rss;
};

static uint64_t figure_integer(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* Records that were there before the daemon looked are lost to it as well. */
static uint64_t figures_sum_before(struct client *client)
{
	json_t *root, *process;
	uint64_t sum = 0;
	size_t i;

	if (client_get(client, "/v1/processes", &root) < 0)
		return 0;
	json_array_foreach(json_object_get(root, "processes"), i, process)
		sum += figure_integer(json_object_get(process, "lost"), "before");
	json_decref(root);
	return sum;
}

static struct figures figures_ask(struct client *client)
{
	struct figures f = { 0 };
	const json_t *ingest;
	json_t *root;

	for (int tries = 0; client_get(client, "/v1/status", &root) < 0; tries++) {
		if (tries == 100) {
			fprintf(stderr, "bench_load: %s\n", client_error(client));
			exit(EXIT_FAILURE);
		}
		usleep(20000);
	}
	ingest = json_object_get(root, "ingest");
	f.cpu_ns = figure_integer(root, "cpu_ns");
	f.rss = figure_integer(root, "rss_bytes");
	f.records = figure_integer(ingest, "records");
	f.lost = figure_integer(ingest, "lost") + figures_sum_before(client);
	json_decref(root);
	return f;
}

static void figures_measure(struct client *client, unsigned int seconds)
{
	struct figures from, to;
	pid_t pid[MAX_PROCESSES];
	uint64_t begin;
	double cpu;

	end_ns = clock_ns(CLOCK_MONOTONIC) + SETTLE_NS + seconds * UINT64_C(1000000000);
	for (unsigned int i = 0; i < load->processes; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			job_run();
	}
	thread_sleep_until(end_ns - seconds * UINT64_C(1000000000));
	begin = clock_ns(CLOCK_MONOTONIC);
	from = figures_ask(client);
	thread_sleep_until(end_ns + UINT64_C(300000000));	/* the last records are read */
	to = figures_ask(client);
	cpu = (double)(to.cpu_ns - from.cpu_ns) * 100 /
	      (double)(clock_ns(CLOCK_MONOTONIC) - begin);
	figure_say("%-44s %11.0f %9llu %9llu %7.2f %6.1f\n", load->name,
		   (double)(to.records - from.records) / seconds,
		   (unsigned long long)(to.lost - from.lost), (unsigned long long)from.lost, cpu,
		   (double)to.rss / (1 << 20));
	figure_tell((double)(to.records - from.records) / seconds, "records/s", "%s: read",
		    load->name);
	figure_tell(cpu, "% of a core", "%s", load->name);
	figure_tell((double)(to.lost - from.lost), "records", "%s: lost", load->name);
	figure_tell((double)to.rss / (1 << 20), "MiB", "%s: memory", load->name);
	for (unsigned int i = 0; i < load->processes; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
}

/* The daemon removes the segments of the dead. */
static void remove_when_empty(const char *dir)
{
	for (int tries = 0; rmdir(dir) < 0 && tries < 100; tries++)
		usleep(20000);
}

static void load_run(const struct load *which, unsigned int seconds)
{
	char dir[] = "/dev/shm/ncclinsp-bench.XXXXXX";
	struct client *client;
	pid_t daemon;

	load = which;
	if (!mkdtemp(dir))
		exit(EXIT_FAILURE);
	daemon = daemon_launch(dir);
	client = client_new(NULL, 5000);
	figures_ask(client);
	figures_measure(client, seconds);
	fflush(stdout);
	remove_when_empty(dir);
	client_free(client);
	kill(daemon, SIGTERM);
	waitpid(daemon, NULL, 0);
}

int main(int argc, char **argv)
{
	unsigned int seconds;

	figure_start("load", &argc, argv);
	seconds = argc > 1 ? (unsigned int)atoi(argv[1]) : 5;
	if (!seconds) {
		fprintf(stderr, "usage: bench_load [seconds [records/s...]]\n");
		return 2;
	}
	figure_say("%-44s %11s %9s %9s %7s %6s\n", "load", "records/s", "lost", "at start",
		   "cpu %", "MiB");
	for (size_t i = 0; argc <= 2 && i < sizeof(loads) / sizeof(loads[0]); i++)
		load_run(&loads[i], seconds);
	for (int i = 2; i < argc; i++) {
		char name[64];

		snprintf(name, sizeof(name), "%s records/s, 8 processes", argv[i]);
		load_run(&(struct load){ name, 8, 1, strtoull(argv[i], NULL, 10) }, seconds);
	}
	return EXIT_SUCCESS;
}
