/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/levels/overhead.h"

static double measured_ns(const struct process *p, const struct steering_timed *t)
{
	uint64_t clocks = t->count * p->steering.clock_ticks;

	return t->ticks > clocks ? (double)(t->ticks - clocks) * p->clock.ns_per_tick : 0;
}

/* A burst that is on counts as far as it has come. */
static double burst_ns(const struct process *p, uint64_t now_ns)
{
	const struct steering *s = &p->steering;
	double ns = (double)s->burst_ticks * p->clock.ns_per_tick, on_ns;

	if (!s->burst_start)
		return ns;
	on_ns = (double)(now_ns - p->clock.mono_ns) -
		(double)(int64_t)(s->burst_start - p->clock.ticks) * p->clock.ns_per_tick;
	return on_ns > 0 ? ns + on_ns : ns;
}

void overhead_see(struct overhead *o, const struct process *p, uint64_t now_ns)
{
	struct overhead_sample *to = &o->sample[o->n % OVERHEAD_SAMPLES];

	if (!p->steering.known)
		return;
	o->n++;
	*to = (struct overhead_sample){
		.at_ns = now_ns,
		.burst_ns = burst_ns(p, now_ns),
		.bursts = p->steering.bursts,
		.groups_inside = p->steering.groups_inside,
		.groups_outside = p->steering.groups_outside,
	};
	for (int i = 0; i < NCI_THREAD_CLASSES; i++) {
		to->timed[i] = p->steering.timed[i].count;
		to->timed_ns[i] = measured_ns(p, &p->steering.timed[i]);
	}
}

static const struct overhead_sample *back(const struct overhead *o, uint32_t samples)
{
	return &o->sample[(o->n - 1 - samples) % OVERHEAD_SAMPLES];
}

/* Counters of a process that lies may run backwards. */
static double passed(double from, double to)
{
	return to > from ? to - from : 0;
}

static void class_figures(const struct overhead_sample *from, const struct overhead_sample *to,
			  int class, struct overhead_class *out)
{
	double seconds = (double)(to->at_ns - from->at_ns) * 1e-9;
	double n = passed((double)from->timed[class], (double)to->timed[class]);
	double ns = passed(from->timed_ns[class], to->timed_ns[class]);

	out->per_s = n * NCI_TIMED_ONE_IN / seconds;
	out->mean_ns = n > 0 ? ns / n : -1;
	out->share = ns * NCI_TIMED_ONE_IN / (seconds * 1e9);
}

void overhead_figures(const struct overhead *o, uint32_t seconds, struct overhead_figures *out)
{
	uint32_t most = o->n < OVERHEAD_SAMPLES ? o->n : OVERHEAD_SAMPLES;
	const struct overhead_sample *from, *to;
	double outside, wall_ns;

	*out = (struct overhead_figures){ .duty = -1, .groups_per_s = -1,
					  .of = { { -1, -1, -1 }, { -1, -1, -1 } } };
	if (most < 2)
		return;
	from = back(o, seconds < most ? seconds : most - 1);
	to = back(o, 0);
	if (to->at_ns <= from->at_ns)
		return;
	out->window_ns = to->at_ns - from->at_ns;
	wall_ns = (double)out->window_ns;
	for (int i = 0; i < NCI_THREAD_CLASSES; i++)
		class_figures(from, to, i, &out->of[i]);
	out->duty = passed(from->burst_ns, to->burst_ns) / wall_ns;
	if (out->duty > 1)
		out->duty = 1;
	outside = passed((double)from->groups_outside, (double)to->groups_outside);
	out->groups_per_s = (outside + passed((double)from->groups_inside,
					      (double)to->groups_inside)) / (wall_ns * 1e-9);
	if (outside > 0)
		out->group_ns = (uint64_t)(wall_ns * (1 - out->duty) / outside);
}

double overhead_share(const struct overhead_figures *f)
{
	double user = f->of[NCI_THREADS_USER].share, proxy = f->of[NCI_THREADS_PROXY].share;

	return user > proxy ? user : proxy;
}
