/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of timing kernels is found by comparison: operations inside bursts are held
 * against those of their kind just before.
 */
#include "ncclinspd/levels/kernelcost.h"

#include <math.h>
#include <string.h>

#include "tables/stat.h"

#define STRIDE_MOST	64	/* other operations between two of a kind */
#define PAUSE		4	/* times the usual: something else happened in between */
#define SMOOTH		0.125
#define LEAST_NS	2500	/* below that it is the estimate's noise that decides */
#define MOST_NS		160000
#define STEP		4
#define ABOVE		2.0	/* times the value in use: a step up */
#define BELOW		3.0	/* part of it: a step down, below ABOVE of that one */

/* The kind's place, or that of the one that was idle for longest. */
static struct kernelcost_kind *kernelcost_kind_of(struct kernelcost *k, const struct op *op)
{
	struct kernelcost_kind *oldest = &k->kind[0];

	for (int i = 0; i < KERNELCOST_KINDS; i++) {
		struct kernelcost_kind *kind = &k->kind[i];

		if (kind->func == op->func && kind->comm_index == op->comm_index &&
		    kind->bytes == op->bytes)
			return kind;
		if (kind->posted_ns < oldest->posted_ns)
			oldest = kind;
	}
	*oldest = (struct kernelcost_kind){ .func = op->func, .comm_index = op->comm_index,
					    .bytes = op->bytes, .seq = op->seq,
					    .posted_ns = op->enqueued_ns };
	return oldest;
}

static double side_mean(const struct kernelcost_side *side)
{
	return side->sum_ns / side->n;
}

/* A burst is over when there are operations on both sides of its end. */
static void burst_close(struct kernelcost *k, struct kernelcost_kind *kind)
{
	if (kind->in.n < KERNELCOST_ENOUGH || kind->out.n < KERNELCOST_ENOUGH)
		return;
	k->slower[k->n++ % KERNELCOST_BURSTS] = side_mean(&kind->in) / side_mean(&kind->out) - 1;
	kind->in = kind->out = (struct kernelcost_side){ 0, 0 };
}

static void burst_add(struct kernelcost *k, struct kernelcost_kind *kind, double ns)
{
	bool pause = kind->usual_ns > 0 && ns > PAUSE * kind->usual_ns;
	struct kernelcost_side *side = kind->inside ? &kind->in : &kind->out;

	kind->usual_ns += kind->usual_ns > 0 ? SMOOTH * (ns - kind->usual_ns) : ns;
	if (pause)
		return;
	if (!kind->inside)
		burst_close(k, kind);
	side->n++;
	side->sum_ns += ns;
}

/* Copy engines have no kernel, a graph is not posted; sends and receives are not counted. */
static bool op_tells_cost(const struct op *op)
{
	return op->func && op->enqueued_ns && op->seq != UNKNOWN_U64 && !op->is_ce &&
	       !op->graph && !op->api_only && !op->parts;
}

void kernelcost_op(struct kernelcost *k, const struct op *op)
{
	struct kernelcost_kind *kind;
	bool inside = op->kernel_stopped > 0, follows;
	uint64_t stride, from_ns;

	if (!op_tells_cost(op))
		return;
	kind = kernelcost_kind_of(k, op);
	if (op->enqueued_ns <= kind->posted_ns)
		return;		/* the first of its kind, or it was overtaken */
	stride = op->seq > kind->seq ? op->seq - kind->seq : 0;
	follows = stride && stride == kind->stride && stride <= STRIDE_MOST &&
		  inside == kind->inside;
	from_ns = kind->posted_ns;
	kind->seq = op->seq;
	kind->stride = stride;
	kind->posted_ns = op->enqueued_ns;
	kind->inside = inside;
	if (follows)
		burst_add(k, kind, (double)(op->enqueued_ns - from_ns));
}

/* ---- the estimate ------------------------------------------------------------------ */

/* The error of a median, from the median of the distances to it. */
void kernelcost_estimate(const struct kernelcost *k, struct kernelcost_estimate *out)
{
	uint32_t n = k->n < KERNELCOST_BURSTS ? k->n : KERNELCOST_BURSTS;
	double values[KERNELCOST_BURSTS];

	*out = (struct kernelcost_estimate){ .known = n >= KERNELCOST_ENOUGH, .bursts = n };
	if (!out->known)
		return;
	memcpy(values, k->slower, n * sizeof(values[0]));
	out->slower = stat_median(values, n);
	out->error = 1.858 * stat_mad(values, n, out->slower) / sqrt(n);
}

uint32_t kernelcost_step(uint32_t used_ns, double cost_ns, double error_ns)
{
	if (cost_ns - 2 * error_ns > used_ns * ABOVE && used_ns < MOST_NS)
		return used_ns * STEP;
	if (cost_ns + 2 * error_ns < used_ns / BELOW && used_ns > LEAST_NS)
		return used_ns / STEP;
	return used_ns;
}
