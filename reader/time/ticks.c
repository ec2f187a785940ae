/* SPDX-License-Identifier: Apache-2.0 */
/* The counter's rate is measured, because the kernel slews CLOCK_MONOTONIC against it. */
#include "reader/time/ticks.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "shmring/clock.h"

#define READ_TRIES	8
#define JUMP		1e-3	/* no rate changes by this much: the counter jumped */
#define LONG_NS		UINT64_C(30000000000)	/* a rate over that is good for hours */
#define JUMP_NS		50000	/* reading errors that are no jump */

uint32_t ticks_hardware(void)
{
	uint32_t kind = clock_kind("tsc");

	return kind == NCI_CLOCK_MONOTONIC ? clock_kind("arch_sys_counter") : kind;
}

/* The clock is read between two ticks; the closer those are, the better the pair. */
void ticks_read(uint32_t kind, struct ticks_pair *pair)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < READ_TRIES; i++) {
		uint64_t before = clock_ticks(kind);
		uint64_t ns = clock_ns(CLOCK_MONOTONIC);
		uint64_t width = clock_ticks(kind) - before;

		if (width >= best)
			continue;
		best = width;
		pair->ticks = before + width / 2;
		pair->mono_ns = ns;
	}
}

void ticks_init(struct ticks *t, uint32_t kind)
{
	memset(t, 0, sizeof(*t));
	t->clock.kind = kind;
	t->clock.ns_per_tick = 1;
}

static const struct ticks_pair *ticks_oldest(const struct ticks *t)
{
	return &t->pair[t->count < TICKS_PAIRS ? 0 : t->next];
}

bool ticks_jumped(const struct ticks *t, const struct ticks_pair *now)
{
	double ns = (double)(int64_t)(now->mono_ns - t->clock.mono_ns);
	double predicted = (double)(int64_t)(now->ticks - t->clock.ticks) *
			   t->clock.ns_per_tick;

	if (t->count < 2)
		return false;
	return ns < 0 || predicted < 0 || fabs(predicted - ns) > ns * JUMP + JUMP_NS;
}

void ticks_observe(struct ticks *t, const struct ticks_pair *pair)
{
	const struct ticks_pair *first;

	if (ticks_jumped(t, pair)) {
		t->count = t->next = 0;		/* the old rate serves until the next pair */
		t->restarts++;
	}
	t->pair[t->next] = *pair;
	t->next = (t->next + 1) % TICKS_PAIRS;
	if (t->count < TICKS_PAIRS)
		t->count++;
	t->clock.ticks = pair->ticks;
	t->clock.mono_ns = pair->mono_ns;
	first = ticks_oldest(t);
	if (t->clock.kind == NCI_CLOCK_MONOTONIC || pair->ticks <= first->ticks ||
	    pair->mono_ns <= first->mono_ns)
		return;
	t->clock.span_ns = pair->mono_ns - first->mono_ns;
	t->clock.ns_per_tick = (double)t->clock.span_ns / (double)(pair->ticks - first->ticks);
}

void ticks_look(struct ticks *t)
{
	struct ticks_pair pair;

	ticks_read(t->clock.kind, &pair);
	ticks_observe(t, &pair);
}

void ticks_watch(struct ticks *t)
{
	struct ticks_pair pair;

	ticks_read(t->clock.kind, &pair);
	if (ticks_jumped(t, &pair))
		ticks_observe(t, &pair);
}

void ticks_start(struct ticks *t)
{
	const struct timespec wait = { .tv_nsec = TICKS_START_NS };

	ticks_init(t, ticks_hardware());
	ticks_look(t);
	nanosleep(&wait, NULL);
	ticks_look(t);
}

void ticks_reach_back(struct tick_clock *clock, const struct ticks_pair *first)
{
	double ns = (double)(clock->mono_ns - first->mono_ns);
	double ticks = (double)(clock->ticks - first->ticks);

	if (!first->mono_ns || first->mono_ns >= clock->mono_ns ||
	    first->ticks >= clock->ticks || clock->span_ns >= LONG_NS || ns < clock->span_ns)
		return;
	if (fabs(ns / ticks / clock->ns_per_tick - 1) <= JUMP)
		clock->ns_per_tick = ns / ticks;
}

uint64_t ticks_at(const struct tick_clock *clock, uint64_t mono_ns)
{
	double ticks = (double)(int64_t)(mono_ns - clock->mono_ns) / clock->ns_per_tick;

	return clock->ticks + (uint64_t)(int64_t)ticks;
}
