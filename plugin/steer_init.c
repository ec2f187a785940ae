/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begin and end: what the environment says, and communicators that come and go.  All
 * of it runs under the lock of inits, beside callbacks of communicators that are open.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/process.h"
#include "plugin/steer_impl.h"

#define FRESH_GROUPS	16	/* of a new communicator, to be watched */
#define SETTLE_S	30
#define MOST_SETTLE_S	3600
#define PATIENCE	10000	/* looks at whether a callback is still deciding */

#define SET(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)
#define GET(field) atomic_load_explicit(&(field), memory_order_relaxed)

/* ---- the environment ---------------------------------------------------------------- */

static bool is_set(const char *text)
{
	return text && *text;
}

/* A decimal in millionths: "0.5" is 500000.  False: that is none, or more than `most`. */
static bool parse_millionths(const char *text, uint64_t most, uint64_t *value)
{
	uint64_t unit = 1000000;
	bool point = false;

	*value = 0;
	if (!*text || !strcmp(text, "."))
		return false;
	for (; *text; text++) {
		if (*text == '.' && !point) {
			point = true;
			continue;
		}
		if (*text < '0' || *text > '9')
			return false;
		if (point)
			unit /= 10;
		*value = point ? *value + unit * (uint64_t)(*text - '0') :
			 *value * 10 + unit * (uint64_t)(*text - '0');
		if (*value > most)
			return false;
	}
	return true;
}

static uint64_t number_from(struct steer *s, const char *name, uint64_t most_millionths,
			    uint64_t otherwise)
{
	const char *text = getenv(name);
	uint64_t value;

	if (!is_set(text))
		return otherwise;
	if (parse_millionths(text, most_millionths, &value))
		return value;
	s->misspelt = true;
	return otherwise;
}

/* One word of two: which one was named, if any. */
static bool says(struct steer *s, const char *name, const char *yes, const char *no)
{
	const char *text = getenv(name);

	if (!is_set(text) || strcmp(text, no) == 0)
		return false;
	if (strcmp(text, yes) == 0)
		return true;
	s->misspelt = true;
	return false;
}

static void read_environment(struct steer *s, int version, uint64_t spare_bytes)
{
	const char *level = getenv("NCCLINSP_LEVEL"), *mask = getenv("NCCL_PROFILE_EVENT_MASK");

	level_choose(&s->env, version, level, mask, spare_bytes);
	s->misspelt = s->env.misspelt;
	s->env_sample = says(s, "NCCLINSP_SAMPLE", "all", "budget") ? NCI_SAMPLE_ALL :
			NCI_SAMPLE_BUDGET;
	s->keeps_graphs = says(s, "NCCLINSP_GRAPHS", "kernel", "off");
	/* Percent, so 10^-6 of the figure is 10^-8 of the time: ten thousand make a ppm. */
	s->env_budget_ppm = (uint32_t)(number_from(s, "NCCLINSP_BUDGET", 100000000,
						   BURST_BUDGET_PPM * 100) / 100);
	s->settle_ns = number_from(s, "NCCLINSP_SETTLE", MOST_SETTLE_S * UINT64_C(1000000),
				   SETTLE_S * UINT64_C(1000000)) * 1000;
	s->from_environment = is_set(level) || is_set(mask) ||
			      is_set(getenv("NCCLINSP_SAMPLE"));
}

/* ---- begin and end -------------------------------------------------------------------- */

/* What two looks at the clock take when nothing is between them. */
static uint64_t clock_cost(uint32_t clock)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 32; i++) {
		uint64_t a = clock_ticks(clock), b = clock_ticks(clock);

		if (b - a < least)
			least = b - a;
	}
	return least;
}

void steer_begin(struct process *p, int version, uint64_t spare_bytes)
{
	struct steer *s = &p->steer;
	struct steer_moment now = {
		.mono_ns = clock_ns(CLOCK_MONOTONIC), .real_ns = clock_ns(CLOCK_REALTIME),
		.ticks = clock_ticks(p->clock), .outermost = true,
	};
	uint32_t epoch = GET(s->epoch) + 1;

	if (epoch > 1)
		orders_close(&s->orders);
	memset(s, 0, sizeof(*s));
	SET(s->epoch, epoch ? epoch : 1);
	s->version = version;
	s->scarce = spare_bytes < LEVEL_SPARE_BYTES;
	read_environment(s, version, spare_bytes);
	s->now = s->env;
	orders_init(&s->orders, getenv("NCCLINSP_CONTROL"), p->ring.header->boot_id,
		     now.mono_ns);
	SET(s->fresh, FRESH_GROUPS);
	SET(p->wanted, 0);
	SET(p->ring.header->steer.clock_ticks, clock_cost(p->clock));
	SET(s->usual[NCI_THREADS_USER], GET(p->ring.header->steer.clock_ticks) + 1);
	SET(s->usual[NCI_THREADS_PROXY], GET(p->ring.header->steer.clock_ticks) + 1);
	SET(p->ring.live->api_version, (uint32_t)version);
	p->group = version >= 5 ? NCI_EV_GROUP_API : NCI_EV_GROUP;
	steer_start(p, &now);
}

void steer_forget(struct process *p)
{
	struct steer *s = &p->steer;

	atomic_store_explicit(&s->mask, NULL, memory_order_relaxed);
	SET(s->busy, 0);
	SET(s->value, 0);
	process_thread.steer = (struct steer_thread){ .open = false };
	orders_close(&s->orders);
}

/* Callbacks decide within microseconds, if they are let run. */
static bool wait_for(struct steer *s)
{
	for (int i = 0; i < PATIENCE; i++) {
		if (steer_try(s))
			return true;
		sched_yield();
	}
	return false;
}

void steer_end(struct process *p)
{
	struct steer *s = &p->steer;

	atomic_store_explicit(&s->mask, NULL, memory_order_release);
	if (wait_for(s))	/* who has begun to decide still has the pointer */
		steer_leave(s);
}

/* ---- one more communicator --------------------------------------------------------------- */

bool steer_comm(struct process *p, uint64_t spare_bytes, struct steer_company company)
{
	struct steer *s = &p->steer;
	struct steer_moment now = {
		.mono_ns = clock_ns(CLOCK_MONOTONIC), .real_ns = clock_ns(CLOCK_REALTIME),
		.ticks = clock_ticks(p->clock),
	};
	bool gone = false;

	if (!wait_for(s))
		return false;
	if (spare_bytes < LEVEL_SPARE_BYTES && !s->scarce) {
		s->scarce = true;
		gone = level_shrink(&s->now, 0);
	}
	s->fresh_ns = 0;
	SET(s->fresh, FRESH_GROUPS);
	s->unsettled = s->unsettled || (company.twins && !GET(s->sender));
	if (gone || s->unsettled)
		steer_decide(p, &now);
	if (company.twins && !company.others)
		SET(s->switched, 0);	/* as if at the first one: nobody has read the mask */
	SET(s->quiet_ns, 0);
	steer_leave(s);
	return gone;
}

bool steer_mask(struct process *p, int version, int *mask)
{
	struct steer *s = &p->steer;
	int *known = GET(s->mask);
	uint32_t value;

	if (!known && !(GET(s->flags) & STEER_LIBRARIES)) {
		__atomic_store_n(mask, (int)GET(s->value), __ATOMIC_RELAXED);
		atomic_store_explicit(&s->mask, mask, memory_order_release);
		return true;
	}
	if (known == mask && version == s->version)
		return true;	/* it holds what is in force; groups may be under way */
	atomic_fetch_or_explicit(&s->flags, STEER_LIBRARIES, memory_order_relaxed);
	value = level_mask(&s->env, version);
	if (s->env_sample == NCI_SAMPLE_BUDGET && !s->env.by_name)
		value &= ~(uint32_t)NCCL_KERNEL_CH;
	__atomic_store_n(mask, (int)value, __ATOMIC_RELAXED);
	return known == mask;
}
