/* SPDX-License-Identifier: Apache-2.0 */
/* All ranks compute longer between NCCL's operations: found by their median, and said. */
#include "judge/slow_compute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tables/stat.h"
#include "util/list.h"
#include "util/phrase.h"

#define LEAST_CHANGE	0.0953	/* difference of logarithms: ten percent */
#define LEAST_SIGMAS	4	/* standard deviations, in each of three windows */
#define LEAST_COST	0.02	/* part of an iteration that it takes longer, */
#define LEAST_PART	0.05	/* part that it took before: less is no computing */
#define OTHERS		12	/* windows: a minute */

/* ---- the ranks of a window -------------------------------------------------- */

static void case_measure(const struct compute_row *rows, uint32_t n, struct compute_case *out)
{
	double step[COMPUTE_RANKS], most[COMPUTE_RANKS], outside[COMPUTE_RANKS];
	double outside_most[COMPUTE_RANKS];
	uint32_t known = 0;

	out->ranks = n;
	out->inside_ns = out->compute_ns = UNKNOWN_U64;
	for (uint32_t i = 0; i < n; i++) {
		const struct compute_row *row = &rows[i];

		step[i] = (double)row->step_ns;
		most[i] = (double)row->most_ns;
		if (row->inside_ns == UNKNOWN_U64)
			continue;
		outside[known] = (double)(row->step_ns - row->inside_ns);
		outside_most[known++] = (double)(row->most_ns - row->inside_ns);
		if (row->inside_ns < out->inside_ns)
			out->inside_ns = row->inside_ns;
	}
	out->step_ns = (uint64_t)stat_median(step, n);
	out->step_most_ns = (uint64_t)stat_median(most, n);
	if (!known)
		return;
	out->compute_ns = (uint64_t)stat_median(outside, known);
	out->compute_most_ns = (uint64_t)stat_median(outside_most, known);
}

/* Is it so much longer than the usual, and than chance makes it, that it is worth to be told? */
static bool case_is_told(const struct compute_case *c)
{
	double compute = (double)c->compute_ns, usual = (double)c->usual_ns;
	double step = (double)c->step_ns;

	return log(compute / usual) >= fmax(LEAST_CHANGE, LEAST_SIGMAS * c->sigma) &&
	       usual >= LEAST_PART * step && compute - usual >= LEAST_COST * step;
}

/* ---- a young job ------------------------------------------------------------ */

static bool level_is_known(const struct compute_level *l)
{
	return l->windows >= COMPUTE_FIRST && l->iterations >= COMPUTE_ITERATIONS;
}

static void level_take(struct compute_level *l, const struct compute_quartiles *x,
		       double iterations)
{
	if (!l->windows)
		l->least = l->most = l->upper = x->lower;
	l->least = fmin(l->least, x->lower);
	l->most = fmax(l->most, x->lower);
	l->upper = fmax(l->upper, x->upper);
	l->windows++;
	l->iterations += iterations;
}

/* A job is slower while it warms up: what it does afterwards is the usual. */
static void level_start(struct compute_level *l, double iterations)
{
	l->windows = l->nlast = 0;
	l->iterations = 0;
	for (uint32_t i = 1; i <= COMPUTE_LASTS; i++)
		level_take(l, &l->last[i], iterations);
}

static void level_look(struct compute_level *l, double iterations, uint64_t now_ns)
{
	double least = l->last[1].lower, most = l->last[1].upper;

	for (uint32_t i = 2; i <= COMPUTE_LASTS; i++) {
		least = fmin(least, l->last[i].lower);
		most = fmax(most, l->last[i].upper);
	}
	if (l->above) {
		l->above = most >= l->upper + LEAST_CHANGE / 2;
	} else if (level_is_known(l) &&
		   least >= l->upper + fmax(LEAST_CHANGE, l->most - l->least)) {
		l->above = true;
		l->since_ns = now_ns - COMPUTE_LASTS * COMPUTE_WINDOW_NS;
	} else if (l->windows && most < l->least - LEAST_CHANGE) {
		level_start(l, iterations);
	}
}

static void level_add(struct compute_level *l, uint64_t lower_ns, uint64_t upper_ns,
		      double iterations, uint64_t now_ns)
{
	const struct compute_quartiles x = {
		log(fmax(1, (double)lower_ns)), log(fmax(1, (double)upper_ns)),
	};

	if (l->nlast > COMPUTE_LASTS) {
		if (!l->above)
			level_take(l, &l->last[0], iterations);
		memmove(l->last, l->last + 1, --l->nlast * sizeof(l->last[0]));
	}
	*array_must_add(l->last, &l->nlast) = x;
	if (l->nlast > COMPUTE_LASTS)
		level_look(l, iterations, now_ns);
}

/* It computes longer than that: certain for whole iterations as well. */
static bool level_tells(const struct compute_level *l, struct compute_case *out)
{
	if (!l->above || out->compute_ns == UNKNOWN_U64)
		return false;
	out->usual_ns = (uint64_t)exp(l->upper);
	out->at_most = true;
	out->sigma = -1;
	out->since_ns = l->since_ns;
	return case_is_told(out);
}

/* ---- a job of some minutes ---------------------------------------------------- */

/* A job that became faster, and has stayed so, is compared with that. */
static void series_accept_faster(struct compute_series *s)
{
	struct cusum *c = &s->cusum;

	if (c->alarm < 0 && fabs(c->mean - c->before) > 0)
		cusum_start(c, c->mean, c->sigma, CUSUM_STEADY);
}

/* One long pause is no change: by itself it makes half of an alarm at most. */
static double series_bound(const struct compute_series *s, double x, double h)
{
	const struct cusum *c = &s->cusum;

	return cusum_is_known(c) && !c->alarm ? fmin(x, c->mean + c->sigma * h / 2) : x;
}

static bool series_tells(struct compute_series *s, double h, uint64_t now_ns,
			 struct compute_case *out)
{
	int alarm;

	if (out->compute_ns == UNKNOWN_U64 || s->iterations < COMPUTE_ITERATIONS)
		return false;
	alarm = cusum_add(&s->cusum, series_bound(s, log(fmax(1, (double)out->compute_ns)), h), h);
	out->usual_ns = (uint64_t)exp(alarm ? s->cusum.before : s->cusum.mean);
	out->at_most = false;
	out->sigma = s->cusum.sigma;
	s->slow = cusum_is_known(&s->cusum) && case_is_told(out) ? s->slow + 1 : 0;
	if (s->slow == 1 && !s->told)
		s->since_ns = now_ns - COMPUTE_WINDOW_NS;
	s->told = alarm > 0 && (s->told || s->slow >= COMPUTE_LASTS);
	out->since_ns = s->since_ns;
	series_accept_faster(s);
	return alarm > 0 && s->slow >= COMPUTE_LASTS;
}

/* Keeps the young job's levels, for what they have told, also when it is known well. */
static void series_add_levels(struct compute_series *s, const struct compute_case *c,
			      double iterations, uint64_t now_ns)
{
	bool known = cusum_is_known(&s->cusum);

	if (!known || s->steps.above)
		level_add(&s->steps, c->step_ns, c->step_most_ns, iterations, now_ns);
	if (c->compute_ns != UNKNOWN_U64 && (!known || s->computing.above))
		level_add(&s->computing, c->compute_ns, c->compute_most_ns, iterations, now_ns);
}

/* False: its iterations are of another kind, or it has only begun. */
static bool series_takes(struct compute_series *s, const struct compute_row *rows, uint32_t n)
{
	uint64_t kind = n;

	for (uint32_t i = 0; i < n; i++)
		kind += rows[i].kind;
	if (kind == s->kind) {
		s->others = 0;
		return ++s->windows > 1;
	}
	if (s->windows > COMPUTE_FIRST && ++s->others < OTHERS)
		return false;
	*s = (struct compute_series){ .kind = kind, .windows = 1 };
	return false;
}

bool compute_judge(struct compute_series *s, double h, const struct compute_row *rows, uint32_t n,
		   uint64_t now_ns, struct compute_case *out)
{
	double iterations;

	case_measure(rows, n, out);
	if (!series_takes(s, rows, n))
		return false;
	iterations = (double)COMPUTE_WINDOW_NS / (double)out->step_ns;
	series_add_levels(s, out, iterations, now_ns);
	s->iterations += iterations;
	return series_tells(s, h, now_ns, out) || level_tells(&s->computing, out) ||
	       level_tells(&s->steps, out);
}

void compute_accept(struct compute_series *s)
{
	s->steps = s->computing = (struct compute_level){ 0 };
	s->slow = 0;
	if (cusum_is_known(&s->cusum))
		cusum_start(&s->cusum, s->cusum.recent, s->cusum.sigma, CUSUM_STEADY);
}

/* ---- words -------------------------------------------------------------------- */

void compute_say(const struct compute_case *c, uint64_t now_ns, char *text, size_t size)
{
	struct phrase phrase;

	phrase_start(&phrase, text, size);
	phrase_add(&phrase, c->ranks > 1 ? "the ranks" : "the rank");
	phrase_add(&phrase, " of %s on this node compute%s %s%.0f %% longer between NCCL's "
		   "operations than %s: ",
		   c->comm_name && *c->comm_name ? c->comm_name : "its communicator",
		   c->ranks > 1 ? "" : "s", c->at_most ? "at least " : "",
		   100 * ((double)c->compute_ns / (double)c->usual_ns - 1),
		   c->at_most ? "at first" : "usual");
	phrase_add_duration(&phrase, c->compute_ns);
	phrase_add(&phrase, " of an iteration instead of %s", c->at_most ? "at most " : "");
	phrase_add_duration(&phrase, c->usual_ns);
	phrase_add(&phrase, ", for ");
	phrase_add_duration(&phrase, now_ns - c->since_ns);
	phrase_add(&phrase, ". NCCL itself takes ");
	phrase_add_duration(&phrase, c->inside_ns);
	phrase_add(&phrase, " of the iteration's ");
	phrase_add_duration(&phrase, c->step_ns);
	phrase_add(&phrase, " and is not the cause. See the GPUs' clocks (nvidia-smi -q -d "
		   "PERFORMANCE), and what else changed then: the model's step, batches, input, "
		   "other jobs on the node.");
}
