/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs during which the plugin switches what NCCL is asked for: by itself, in bursts,
 * or since this process writes a control file, as a daemon would.  What a rank does
 * depends on numbers alone, so that all ranks do the same.
 */
#include "switch.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nci/control.h"

#define TURNS		4500
#define REST_EVERY	8
#define WRITE_NS	110000000	/* a plugin reads the file no more often than that */
#define SEEN_LOOKS	1200		/* for the file that ends a job, */
#define SEEN_US		50000		/* so far apart */

static const struct world_options ordinary;

/* ---- groups of all forms ------------------------------------------------------------ */

static void ring(struct world *w, int local)
{
	world_ring_call(w, local, 100, ncclInt8);
}

static void all_reduce(struct world *w, int local)
{
	world_call(w, local, ALL_REDUCE, 100, ncclFloat32, 0);
}

/*
 * An inner group that begins after the first call: for the plugin, NCCL's group ends
 * with it, and its Send is on the way while its Recv has not been called.
 */
static void inner_end(struct world *w, int local)
{
	world_group_start();
	world_send_call(w, local, 100, ncclInt8);
	world_group_start();
	all_reduce(w, local);
	world_group_end();
	world_recv_call(w, local, 100, ncclInt8);
	world_group_end();
}

static void coalesced(struct world *w, int local)
{
	world_group_start();
	for (int i = 0; i < 4; i++)
		all_reduce(w, local);
	ring(w, local);
	world_group_end();
}

static void lone(struct world *w, int local)
{
	all_reduce(w, local);
}

static void (*const forms[])(struct world *w, int local) = {
	ring, lone, inner_end, coalesced, ring, lone, lone,
};

/* Neither kernels nor transfers are to pile up, nor is it to be over too soon. */
static void rest(struct world *w, int i)
{
	alarm(JOB_LIMIT_S);		/* it comes on, however slow its machine is */
	if (i % REST_EVERY)
		return;
	world_wait(w);
	usleep(3000);
}

static void play_forms(struct world *w, int local)
{
	for (int i = 0; i < TURNS; i++) {
		forms[(size_t)i % (sizeof(forms) / sizeof(*forms))](w, local);
		rest(w, i);
	}
}

static void play_collectives(struct world *w, int local)
{
	for (int i = 0; i < TURNS; i++) {
		all_reduce(w, local);
		rest(w, i);
	}
}

/* The job's end, put off until its test has seen what there is to see: it makes the file. */
static void wait_until_seen(const struct job *job)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/seen", job->directory);
	for (int i = 0; i < SEEN_LOOKS && access(path, F_OK); i++) {
		alarm(JOB_LIMIT_S);	/* of its end, which follows */
		usleep(SEEN_US);
	}
}

/* ---- programs -------------------------------------------------------------------------- */

void switch_bursts(struct job *job)
{
	struct world *w = world_new(job, "bursts", ordinary);

	for (int i = 0; i < 2; i++)
		play_forms(w, 0);
	wait_until_seen(job);
	world_destroy(w);
}

struct errand {
	struct world *world;
	void (*play)(struct world *w, int local);
};

static void *run_errand(void *arg)
{
	const struct errand *e = arg;

	e->play(e->world, 0);
	return NULL;
}

/* Two threads of a process, each with a communicator of its own. */
static void play_both(struct job *job, const char *first, const char *second,
		      void (*play)(struct world *w, int local))
{
	struct errand other = { world_new(job, second, ordinary), play };
	struct world *w = world_new(job, first, ordinary);
	pthread_t thread;

	play_forms(w, 0);		/* one sender is well known when the other begins */
	if (pthread_create(&thread, NULL, run_errand, &other))
		abort();
	play_forms(w, 0);
	pthread_join(thread, NULL);
	wait_until_seen(job);
	world_destroy(w);
	world_destroy(other.world);
}

void switch_senders(struct job *job)
{
	play_both(job, "sender", "sender-too", play_forms);
}

void switch_beside(struct job *job)
{
	play_both(job, "sends", "collects", play_collectives);
}

/* ---- levels ------------------------------------------------------------------------------ */

static const struct {
	uint32_t level, sample;
} wishes[] = {
	{ NCI_LEVEL_NET, NCI_SAMPLE_ALL }, { NCI_LEVEL_OPS, NCI_SAMPLE_ALL },
	{ NCI_LEVEL_TRACE, NCI_SAMPLE_BUDGET }, { NCI_LEVEL_OFF, NCI_SAMPLE_ALL },
	{ NCI_LEVEL_KERNEL, NCI_SAMPLE_ALL }, { NCI_LEVEL_NET, NCI_SAMPLE_BUDGET },
};

static void write_control(const char *path, uint64_t n)
{
	static struct nci_control file;
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	size_t i = n % (sizeof(wishes) / sizeof(*wishes));

	file.magic = NCI_CONTROL_MAGIC;
	file.version = NCI_CONTROL_VERSION;
	file.sequence = n;
	file.entries = 1;
	file.entry[0].level = wishes[i].level;
	file.entry[0].sample = wishes[i].sample;
	file.checksum = nci_control_checksum(&file);
	if (fd < 0 || pwrite(fd, &file, sizeof(file), 0) != (ssize_t)sizeof(file)) {
		perror(path);
		exit(1);
	}
	close(fd);
}

struct writer {
	char path[4096];
	_Atomic bool done;
};

static void *write_on(void *arg)
{
	const struct timespec t = { .tv_nsec = WRITE_NS };
	struct writer *writer = arg;

	for (uint64_t n = 1; !writer->done; n++) {
		write_control(writer->path, n);
		nanosleep(&t, NULL);
	}
	return NULL;
}

void switch_levels(struct job *job)
{
	static struct writer writer;
	pthread_t thread;
	struct world *w;

	/* Of this process alone: ranks need not be at the same level. */
	snprintf(writer.path, sizeof(writer.path), "%s/control.%d", job->directory, job->first);
	setenv("NCCLINSP_CONTROL", writer.path, 1);
	write_control(writer.path, 1);
	if (pthread_create(&thread, NULL, write_on, &writer))
		abort();
	w = world_new(job, "levels", ordinary);
	for (int i = 0; i < 2; i++)
		play_forms(w, 0);
	writer.done = true;
	pthread_join(thread, NULL);
	wait_until_seen(job);
	world_destroy(w);
}
