/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that reads GPUs, and what the loop has of it.  The lock is held for copies alone,
 * never while the library is at work, so that the loop waits for nothing.
 */
#include "ncclinspd/around/sensors.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ncclinspd/around/nvml.h"
#include "shmring/clock.h"
#include "util/cleanup.h"
#include "util/list.h"
#include "util/log.h"
#include "util/phrase.h"

#define SECOND_NS	UINT64_C(1000000000)
#define RETRY_NS	(60 * SECOND_NS)	/* a library that does not work is tried again */
#define CLOSE_NS	SECOND_NS

struct sensors_wanted {
	char id[SENSORS_GPUS][32];	/* places on the PCI bus */
	uint32_t n;
};

/* A GPU, with its last readings. */
struct sensors_gpu {
	struct gpu_health health;
	struct {
		uint64_t mhz, reasons;
	} sample[SENSORS_SAMPLES];
	uint32_t samples, turns;	/* clocks that were told, and readings, since it is read */
};

struct sensors {
	struct sensors_config config;
	struct kmsg kmsg;	/* the loop's */
	pthread_t thread;
	bool running;
	/* the thread's */
	struct nvml nvml;
	struct sensors_gpu gpu[SENSORS_GPUS];
	uint32_t ngpus;
	uint64_t retry_ns;
	/* shared, under the lock */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stop, left, finished;
	uint64_t busy_ns;	/* when the library began its work; 0: it does none */
	struct sensors_wanted wanted;
	struct gpu_health told[SENSORS_GPUS];
	uint32_t ntold;
	char why[NVML_WHY];	/* why nothing is told; "": it is */
};

name_t sensors_state_text(enum sensors_state state)
{
	static const name_t texts[] = {
#define X(NAME, text) [SENSORS_##NAME] = text,
		SENSORS_STATES(X)
#undef X
	};

	return texts[state];
}

/* ---- one GPU, in the thread ------------------------------------------------------------ */

static void gpu_sum_up(struct sensors_gpu *gpu)
{
	uint64_t sum = 0, reasons = 0;
	uint32_t n = gpu->samples < SENSORS_SAMPLES ? gpu->samples : SENSORS_SAMPLES;

	for (uint32_t i = 0; i < n; i++) {
		sum += gpu->sample[i].mhz;
		reasons |= gpu->sample[i].reasons;
	}
	gpu->health.mean_mhz = n ? sum / n : UNKNOWN_U64;
	if (gpu->health.reasons != UNKNOWN_U64)
		gpu->health.reasons = reasons;
}

/* A limit that was in force in any of the last readings still is. */
static void gpu_take_sample(struct sensors_gpu *gpu, uint64_t now_ns)
{
	struct gpu_health *g = &gpu->health;

	if (g->sm_mhz != UNKNOWN_U64) {
		uint32_t at = gpu->samples++ % SENSORS_SAMPLES;

		gpu->sample[at].mhz = g->sm_mhz;
		gpu->sample[at].reasons = g->reasons == UNKNOWN_U64 ? 0 : g->reasons;
	}
	gpu_sum_up(gpu);
	if (gpu_limit_of(g) == GPU_LIMIT_NONE) {
		g->limited_ns = g->limited_real_ns = 0;
	} else if (!g->limited_ns) {
		g->limited_ns = now_ns;
		g->limited_real_ns = clock_ns(CLOCK_REALTIME);
	}
}

/* Values that take many calls are read at every tenth turn. */
static void gpu_read(const struct nvml *nvml, struct sensors_gpu *gpu)
{
	struct gpu_health read = gpu_unknown(gpu->health.pci_bus_id);
	bool whole = gpu->turns++ % SENSORS_SAMPLES == 0;
	uint64_t now_ns;

	if (!whole) {
#define X(name) read.name = gpu->health.name;
		GPU_SLOW_VALUES(X)
#undef X
	}
	nvml_read(nvml, &read, whole);
	now_ns = clock_ns(CLOCK_MONOTONIC);
	read.read_ns = now_ns;
	read.limited_ns = gpu->health.limited_ns;
	read.limited_real_ns = gpu->health.limited_real_ns;
	gpu->health = read;
	gpu_take_sample(gpu, now_ns);
}

/* ---- the thread ------------------------------------------------------------------------ */

/* The GPUs are those that are wanted; the ones that stay keep what was read. */
static void gpus_choose(struct sensors *s, const struct sensors_wanted *wanted)
{
	struct sensors_gpu *made = calloc(SENSORS_GPUS, sizeof(*made));

	if (!made)
		return;
	for (uint32_t i = 0; i < wanted->n; i++) {
		made[i].health = gpu_unknown(wanted->id[i]);
		for (uint32_t k = 0; k < s->ngpus; k++)
			if (!strcmp(s->gpu[k].health.pci_bus_id, wanted->id[i]))
				made[i] = s->gpu[k];
	}
	memcpy(s->gpu, made, sizeof(s->gpu));
	s->ngpus = wanted->n;
	free(made);
}

/* The library is at work, for as long as it takes. */
static void gpus_read(struct sensors *s, char why[NVML_WHY])
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (!s->ngpus) {
		nvml_close(&s->nvml);
		why[0] = '\0';
		s->retry_ns = 0;
		return;
	}
	if (!s->nvml.library && now_ns < s->retry_ns)
		return;
	why[0] = '\0';
	if (!s->nvml.library && !nvml_open(&s->nvml, s->config.library, why)) {
		s->retry_ns = now_ns + RETRY_NS;
		return;
	}
	for (uint32_t i = 0; i < s->ngpus; i++)
		gpu_read(&s->nvml, &s->gpu[i]);
}

/* Under the lock. */
static void gpus_tell(struct sensors *s, const char *why)
{
	s->ntold = s->nvml.library ? s->ngpus : 0;
	for (uint32_t i = 0; i < s->ntold; i++)
		s->told[i] = s->gpu[i].health;
	snprintf(s->why, sizeof(s->why), "%s", why);
	s->busy_ns = 0;
}

/* Under the lock: the next turn, or nothing is wanted and the library is closed. */
static void sensors_wait(struct sensors *s)
{
	uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + s->config.interval_ns;
	struct timespec until = { .tv_sec = (time_t)(until_ns / SECOND_NS),
				  .tv_nsec = (long)(until_ns % SECOND_NS) };

	while (!s->stop && !s->wanted.n && !s->ngpus)
		pthread_cond_wait(&s->changed, &s->lock);
	while (!s->stop && s->ngpus &&
	       pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT)
		;
}

static void sensors_release(struct sensors *s)
{
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void *sensors_run(void *arg)
{
	struct sensors *s = arg;
	char why[NVML_WHY] = "";
	struct sensors_wanted wanted;
	bool left;

	pthread_mutex_lock(&s->lock);
	while (!s->stop) {
		wanted = s->wanted;
		s->busy_ns = clock_ns(CLOCK_MONOTONIC);
		pthread_mutex_unlock(&s->lock);
		gpus_choose(s, &wanted);
		gpus_read(s, why);
		pthread_mutex_lock(&s->lock);
		gpus_tell(s, why);
		sensors_wait(s);
	}
	pthread_mutex_unlock(&s->lock);
	nvml_close(&s->nvml);
	pthread_mutex_lock(&s->lock);
	s->finished = true;
	left = s->left;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (left)
		sensors_release(s);
	return NULL;
}

/* ---- the loop's side ------------------------------------------------------------------- */

static void wanted_add(struct sensors_wanted *wanted, const struct comm *c)
{
	char (*id)[sizeof(wanted->id[0])];

	if (!c->ready || !c->has_gpu || c->finalize_ticks || !*c->pci_bus_id)
		return;
	for (uint32_t i = 0; i < wanted->n; i++)
		if (!strcasecmp(wanted->id[i], c->pci_bus_id))
			return;
	id = array_add(wanted->id, &wanted->n);
	if (id)
		snprintf(*id, sizeof(*id), "%s", c->pci_bus_id);
}

void sensors_look(struct sensors *s, struct process *const *list, size_t n, uint64_t now_ns)
{
	struct sensors_wanted wanted = { .n = 0 };

	kmsg_look(&s->kmsg, now_ns);
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; list[i]->state == PROCESS_LIVE && k < list[i]->ncomms; k++)
			wanted_add(&wanted, &list[i]->comms[k]);
	pthread_mutex_lock(&s->lock);
	s->wanted = wanted;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

/* Under the lock.  What was told of it, unless it is too old. */
static struct gpu_health gpu_told(const struct sensors *s, const char *id, uint64_t now_ns)
{
	for (uint32_t i = 0; i < s->ntold; i++)
		if (!strcmp(s->told[i].pci_bus_id, id) &&
		    now_ns < s->told[i].read_ns + SENSORS_STALE_NS)
			return s->told[i];
	return gpu_unknown(id);
}

uint32_t sensors_gpus(struct sensors *s, uint64_t now_ns, struct gpu_health out[SENSORS_GPUS])
{
	uint32_t n;

	pthread_mutex_lock(&s->lock);
	n = s->wanted.n;
	for (uint32_t i = 0; i < n; i++)
		out[i] = gpu_told(s, s->wanted.id[i], now_ns);
	pthread_mutex_unlock(&s->lock);
	return n;
}

/* Under the lock. */
static bool library_hangs(const struct sensors *s, uint64_t now_ns)
{
	return s->busy_ns && now_ns > s->busy_ns + SENSORS_STALE_NS;
}

static void library_tell(struct sensors *s, uint64_t now_ns, struct sensors_source *out)
{
	struct phrase why;

	phrase_start(&why, out->why, sizeof(out->why));
	pthread_mutex_lock(&s->lock);
	out->state = SENSORS_ABSENT;
	if (s->config.off) {
		phrase_add(&why, "switched off (gpu-sensors)");
	} else if (library_hangs(s, now_ns)) {
		phrase_add(&why, "the library has not answered for ");
		phrase_add_duration(&why, (now_ns - s->busy_ns) / SECOND_NS * SECOND_NS);
	} else if (*s->why) {
		phrase_add(&why, "%s", s->why);
	} else if (!s->ntold) {
		out->state = SENSORS_UNUSED;
		phrase_add(&why, "no process has told of a GPU");
	} else {
		out->state = SENSORS_PRESENT;
	}
	pthread_mutex_unlock(&s->lock);
}

static void kmsg_tell(const struct kmsg *k, struct sensors_source *out)
{
	out->state = k->fd < 0 ? SENSORS_ABSENT : SENSORS_PRESENT;
	snprintf(out->why, sizeof(out->why), "%s", k->why);
}

bool sensors_source(struct sensors *s, size_t i, uint64_t now_ns, struct sensors_source *out)
{
	if (i > 1)
		return false;
	*out = (struct sensors_source){ .name = i ? "kernel log" : "gpu" };
	if (i)
		kmsg_tell(&s->kmsg, out);
	else
		library_tell(s, now_ns, out);
	return true;
}

const struct kmsg *sensors_kmsg(const struct sensors *s)
{
	return &s->kmsg;
}

/* ---- life ------------------------------------------------------------------------------ */

/* Signals are for the main thread. */
static int sensors_start(struct sensors *s)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&s->thread, NULL, sensors_run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	s->running = r == 0;
	return -r;
}

static void sensors_freep(struct sensors **sp)
{
	sensors_free(*sp);
}

int sensors_new(struct sensors **out, const struct sensors_config *config)
{
	CLEANUP(sensors_freep) struct sensors *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;
	int r;

	if (!s)
		return -ENOMEM;
	s->config = *config;
	s->config.library = config->library ?: NVML_LIBRARY;
	s->config.interval_ns = config->interval_ns ?: SECOND_NS;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attr);
	pthread_condattr_destroy(&attr);
	kmsg_open(&s->kmsg, config->kernel_log ?: KMSG_PATH);
	r = config->off ? 0 : sensors_start(s);
	if (r < 0)
		return r;
	*out = s;
	s = NULL;
	return 0;
}

/* Under the lock.  False: the thread is left to itself, with what it needs. */
static bool sensors_has_finished(struct sensors *s)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t until_ns = now_ns + (library_hangs(s, now_ns) ? 0 : CLOSE_NS);
	struct timespec until = { .tv_sec = (time_t)(until_ns / SECOND_NS),
				  .tv_nsec = (long)(until_ns % SECOND_NS) };

	while (!s->finished && pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT)
		;
	s->left = !s->finished;
	return s->finished;
}

void sensors_free(struct sensors *s)
{
	pthread_t thread;
	bool finished;

	if (!s)
		return;
	kmsg_close(&s->kmsg);
	if (!s->running) {
		sensors_release(s);
		return;
	}
	thread = s->thread;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->changed);
	finished = sensors_has_finished(s);
	pthread_mutex_unlock(&s->lock);
	if (!finished) {
		log_say(LOG_WARN, "the GPUs' library does not answer, its thread is left");
		pthread_detach(thread);
		return;
	}
	pthread_join(thread, NULL);
	sensors_release(s);
}
