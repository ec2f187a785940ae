/* SPDX-License-Identifier: Apache-2.0 */
/* All ranks compute longer between NCCL's operations: found by their median, and said. */
#include "judge/slow_compute.h"

#include <math.h>
#include <stdlib.h>

#include "tables/stat.h"
#include "util/phrase.h"

#define LEAST_CHANGE	0.0953	/* difference of logarithms: ten percent */
#define LEAST_COST	0.02	/* part of an iteration that it takes longer, */
#define LEAST_PART	0.05	/* ... and that it took before: less is no computing */

bool compute_judge(struct cusum *series, double h, const struct compute_row *rows, uint32_t n,
		   struct compute_case *out)
{
	double step[COMPUTE_RANKS], outside[COMPUTE_RANKS];
	int alarm;

	out->inside_ns = UINT64_MAX;
	for (uint32_t i = 0; i < n; i++) {
		step[i] = (double)rows[i].step_ns;
		outside[i] = (double)(rows[i].step_ns - rows[i].inside_ns);
		if (rows[i].inside_ns < out->inside_ns)
			out->inside_ns = rows[i].inside_ns;
	}
	out->ranks = n;
	out->step_ns = (uint64_t)stat_median(step, n);
	out->compute_ns = (uint64_t)stat_median(outside, n);
	alarm = cusum_add(series, log(fmax(1, (double)out->compute_ns)), h);
	out->usual_ns = (uint64_t)exp(alarm ? series->before : series->mean);
	return alarm > 0 && cusum_change(series) >= LEAST_CHANGE &&
	       (double)out->usual_ns >= LEAST_PART * (double)out->step_ns &&
	       (double)out->compute_ns - (double)out->usual_ns >= LEAST_COST * (double)out->step_ns;
}

void compute_say(const struct compute_case *c, uint64_t now_ns, char *text, size_t size)
{
	struct phrase phrase;

	phrase_start(&phrase, text, size);
	phrase_add(&phrase, c->ranks > 1 ? "the ranks" : "the rank");
	phrase_add(&phrase, " of %s on this node compute%s %.0f %% longer between NCCL's "
		   "operations than usual: ",
		   c->comm_name && *c->comm_name ? c->comm_name : "its communicator",
		   c->ranks > 1 ? "" : "s",
		   100 * ((double)c->compute_ns / (double)c->usual_ns - 1));
	phrase_add_duration(&phrase, c->compute_ns);
	phrase_add(&phrase, " of an iteration instead of ");
	phrase_add_duration(&phrase, c->usual_ns);
	phrase_add(&phrase, ", for ");
	phrase_add_duration(&phrase, now_ns - c->since_ns);
	phrase_add(&phrase, ". NCCL itself takes ");
	phrase_add_duration(&phrase, c->inside_ns);
	phrase_add(&phrase, " of the iteration's ");
	phrase_add_duration(&phrase, c->step_ns);
	phrase_add(&phrase, " and is not the cause. See the GPUs' clocks (nvidia-smi -q -d "
		   "PERFORMANCE), and what else changed then: the model's own step, batches, "
		   "input, neighbours.");
}
