/* SPDX-License-Identifier: Apache-2.0 */
/* The turns that read GPUs, and what the loop has of them. */
#include "ncclinspd/around/sensors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ncclinspd/around/nvml.h"
#include "ncclinspd/around/turns.h"
#include "reader/base/accounts.h"
#include "shmring/clock.h"
#include "util/list.h"
#include "util/phrase.h"

#define SECOND_NS	UINT64_C(1000000000)
#define RETRY_NS	(60 * SECOND_NS)	/* a library that does not work is tried again */

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
	struct turns *turns;	/* NULL: the library is not to be used */
	/* the turns' */
	struct nvml nvml;
	struct sensors_gpu gpu[SENSORS_GPUS];
	uint32_t ngpus;
	uint64_t retry_ns;
	struct sensors_wanted chosen;
	char found[NVML_WHY];	/* the reason, to be told as `why` */
	/* shared, under the lock */
	struct sensors_wanted wanted;
	struct gpu_health told[SENSORS_GPUS];
	uint32_t ntold;
	char why[NVML_WHY];	/* why nothing is told; "": it is */
};

name_t sensors_state_text(enum sensors_state state)
{
	static const name_t texts[] = { SENSORS_STATES(NAME_TEXT) };

	return texts[state];
}

/* ---- one GPU, in a turn ------------------------------------------------------------ */

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

/* ---- a turn ---------------------------------------------------------------------------- */

/* The GPUs are those that are wanted; the ones that stay keep what was read. */
static void gpus_choose(struct sensors *s)
{
	const struct sensors_wanted *wanted = &s->chosen;
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
static void gpus_read(struct sensors *s)
{
	char *why = s->found;
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

/* The last turn, for no GPU at all, closes the library. */
static bool sensors_prepare(void *state)
{
	struct sensors *s = state;

	s->chosen = s->wanted;
	return s->wanted.n || s->ngpus;
}

static void sensors_turn(void *state)
{
	gpus_choose(state);
	gpus_read(state);
}

static void sensors_tell(void *state)
{
	struct sensors *s = state;

	s->ntold = s->nvml.library ? s->ngpus : 0;
	for (uint32_t i = 0; i < s->ntold; i++)
		s->told[i] = s->gpu[i].health;
	snprintf(s->why, sizeof(s->why), "%s", s->found);
}

static void sensors_end(void *state)
{
	struct sensors *s = state;

	nvml_close(&s->nvml);
	free(s);
}

/* ---- the loop's side ------------------------------------------------------------------- */

static void wanted_add(struct sensors_wanted *wanted, struct accounts_tally *of, uid_t account,
		       const struct comm *c)
{
	char (*id)[sizeof(wanted->id[0])];

	if (!c->ready || !c->has_gpu || c->finalize_ticks || !*c->pci_bus_id)
		return;
	for (uint32_t i = 0; i < wanted->n; i++)
		if (!strcasecmp(wanted->id[i], c->pci_bus_id))
			return;
	if (!accounts_may_take(of, account, SENSORS_GPUS - wanted->n))
		return;
	id = array_must_add(wanted->id, &wanted->n);
	snprintf(*id, sizeof(*id), "%s", c->pci_bus_id);
	++*accounts_count(of, account);
}

void sensors_look(struct sensors *s, struct process *const *list, size_t n, uint64_t now_ns)
{
	struct sensors_wanted wanted = { .n = 0 };
	struct accounts_tally of = { 0 };

	kmsg_look(&s->kmsg, now_ns);
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; list[i]->state == PROCESS_LIVE && k < list[i]->ncomms; k++)
			wanted_add(&wanted, &of, list[i]->account, &list[i]->comms[k]);
	turns_lock(s->turns);
	s->wanted = wanted;
	turns_wake(s->turns);
	turns_unlock(s->turns);
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

	turns_lock(s->turns);
	n = s->wanted.n;
	for (uint32_t i = 0; i < n; i++)
		out[i] = gpu_told(s, s->wanted.id[i], now_ns);
	turns_unlock(s->turns);
	return n;
}

/* Under the lock. */
static bool library_hangs(const struct sensors *s, uint64_t now_ns)
{
	return turns_busy_ns(s->turns, now_ns) > SENSORS_STALE_NS;
}

static void library_tell(struct sensors *s, uint64_t now_ns, struct sensors_source *out)
{
	struct phrase why;

	phrase_start(&why, out->why, sizeof(out->why));
	turns_lock(s->turns);
	out->state = SENSORS_ABSENT;
	if (s->config.off) {
		phrase_add(&why, "switched off (gpu-sensors)");
	} else if (library_hangs(s, now_ns)) {
		phrase_add(&why, "the library has not answered for ");
		phrase_add_duration(&why, turns_busy_ns(s->turns, now_ns) / SECOND_NS * SECOND_NS);
	} else if (*s->why) {
		phrase_add(&why, "%s", s->why);
	} else if (!s->ntold) {
		out->state = SENSORS_UNUSED;
		phrase_add(&why, "no process has reported a GPU");
	} else {
		out->state = SENSORS_PRESENT;
	}
	turns_unlock(s->turns);
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

int sensors_new(struct sensors **out, const struct sensors_config *config)
{
	struct sensors *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return -ENOMEM;
	s->config = *config;
	s->config.library = config->library ?: NVML_LIBRARY;
	kmsg_open(&s->kmsg, config->kernel_log ?: KMSG_PATH);
	if (!config->off)
		r = turns_start(&s->turns, &(struct turns_work){
			.name = "the GPUs' library",
			.interval_ns = config->interval_ns ?: SECOND_NS, .prepare = sensors_prepare,
			.turn = sensors_turn, .tell = sensors_tell, .end = sensors_end,
		}, s);
	if (r < 0) {
		kmsg_close(&s->kmsg);
		free(s);
		return r;
	}
	*out = s;
	return 0;
}

void sensors_free(struct sensors *s)
{
	if (!s)
		return;
	kmsg_close(&s->kmsg);
	if (s->turns)
		turns_stop(s->turns);
	else
		free(s);
}
