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

#define TURNS		1500
#define REST_EVERY	8
#define WRITE_NS	110000000	/* a plugin reads the file no more often than that */
#define ROUNDS		40		/* of a program at most, until its test has seen enough */
#define ROUND_LOOKS	6000		/* for the first rank's word on the next round, */
#define ROUND_US	10000		/* so far apart */

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

/* One character for all ranks: whether there is a round more. */
static void round_announce(const char *path, char word)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, &word, 1) != 1) {
		perror(path);
		exit(1);
	}
	close(fd);
}

static char round_hear(const char *path)
{
	char word = '.';

	for (int i = 0; i < ROUND_LOOKS; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		bool told = fd >= 0 && read(fd, &word, 1) == 1;

		if (fd >= 0)
			close(fd);
		if (told)
			break;
		usleep(ROUND_US);
	}
	return word;
}

/* The first rank decides for all: until the test has made the file "seen". */
static bool round_begins(const struct world *w, int round)
{
	const struct job *job = w->job;
	char path[4096], seen[4096];

	snprintf(path, sizeof(path), "%s/%s.%d", job->directory, w->name, round);
	snprintf(seen, sizeof(seen), "%s/seen", job->directory);
	alarm(2 * JOB_LIMIT_S);
	if (!job->first)
		round_announce(path, round < ROUNDS && access(seen, F_OK) ? '+' : '.');
	return round_hear(path) == '+';
}

static void play_on(struct world *w, void (*play)(struct world *w, int local))
{
	for (int round = 0; !round || round_begins(w, round); round++)
		play(w, 0);
}

/* ---- programs -------------------------------------------------------------------------- */

void switch_bursts(struct job *job)
{
	struct world *w = world_new(job, "bursts", ordinary);

	play_on(w, play_forms);
	world_destroy(w);
}

struct errand {
	struct world *world;
	void (*play)(struct world *w, int local);
};

static void *run_errand(void *arg)
{
	const struct errand *e = arg;

	play_on(e->world, e->play);
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
	play_on(w, play_forms);
	pthread_join(thread, NULL);
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
	play_on(w, play_forms);
	writer.done = true;
	pthread_join(thread, NULL);
	world_destroy(w);
}
