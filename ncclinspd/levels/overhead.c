/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A budget is a share of wall time, but plugins tell of sums since they began: samples,
 * one a second, make a window of the last ten.
 */
#include "ncclinspd/levels/overhead.h"

#include "shmring/clock.h"

#define CLOCK_LOOKS	64

uint64_t overhead_clock_ticks(uint32_t kind)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < CLOCK_LOOKS; i++) {
		uint64_t a = clock_ticks(kind), b = clock_ticks(kind);

		if (b - a < least)
			least = b - a;
	}
	return least;
}

static double steering_measured_ns(const struct process *p, const struct steering_timed *t,
				   uint64_t clock_ticks)
{
	uint64_t clocks = t->count * clock_ticks;

	return t->ticks > clocks ? (double)(t->ticks - clocks) * p->clock.ns_per_tick : 0;
}

void overhead_see(struct overhead *o, const struct process *p, uint64_t clock_ticks,
		  uint64_t now_ns)
{
	struct overhead_sample *to = &o->sample[o->n % OVERHEAD_SAMPLES];

	if (!p->steering.known)
		return;
	o->n++;
	*to = (struct overhead_sample){
		.at_ns = now_ns,
		.groups = p->groups_inside + p->groups_outside,
		.ops_inside = p->ops_inside,
		.ops_outside = p->ops_outside,
	};
	for (int i = 0; i < NCI_THREAD_CLASSES; i++) {
		to->timed[i] = p->steering.timed[i].count;
		to->timed_ns[i] = steering_measured_ns(p, &p->steering.timed[i], clock_ticks);
	}
}

static const struct overhead_sample *sample_back(const struct overhead *o, uint32_t samples)
{
	return &o->sample[(o->n - 1 - samples) % OVERHEAD_SAMPLES];
}

/* Counters of a process that lies may run backwards. */
static double counter_increase(double from, double to)
{
	return to > from ? to - from : 0;
}

static void sample_class_figures(const struct overhead_sample *from,
				 const struct overhead_sample *to,
				 int class, struct overhead_class *out)
{
	double seconds = (double)(to->at_ns - from->at_ns) * 1e-9;
	double n = counter_increase((double)from->timed[class], (double)to->timed[class]);
	double ns = counter_increase(from->timed_ns[class], to->timed_ns[class]);

	out->per_s = n * NCI_TIMED_ONE_IN / seconds;
	out->mean_ns = n > 0 ? ns / n : -1;
	out->share = ns * NCI_TIMED_ONE_IN / (seconds * 1e9);
}

void overhead_figures(const struct overhead *o, uint32_t seconds, struct overhead_figures *out)
{
	uint32_t most = o->n < OVERHEAD_SAMPLES ? o->n : OVERHEAD_SAMPLES;
	const struct overhead_sample *from, *to;
	double groups, inside, ops, wall_ns;

	*out = (struct overhead_figures){ .duty = -1, .groups_per_s = -1,
					  .of = { { -1, -1, -1 }, { -1, -1, -1 } } };
	if (most < 2)
		return;
	from = sample_back(o, seconds < most ? seconds : most - 1);
	to = sample_back(o, 0);
	if (to->at_ns <= from->at_ns)
		return;
	out->window_ns = to->at_ns - from->at_ns;
	wall_ns = (double)out->window_ns;
	for (int i = 0; i < NCI_THREAD_CLASSES; i++)
		sample_class_figures(from, to, i, &out->of[i]);
	inside = counter_increase((double)from->ops_inside, (double)to->ops_inside);
	ops = inside + counter_increase((double)from->ops_outside, (double)to->ops_outside);
	if (ops > 0)
		out->duty = inside / ops;
	groups = counter_increase((double)from->groups, (double)to->groups);
	out->groups_per_s = groups / (wall_ns * 1e-9);
	if (groups > 0)
		out->group_ns = (uint64_t)(wall_ns / groups);
}

double overhead_share(const struct overhead_figures *f)
{
	double user = f->of[NCI_THREADS_USER].share, proxy = f->of[NCI_THREADS_PROXY].share;

	return user > proxy ? user : proxy;
}
