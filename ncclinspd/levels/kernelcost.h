/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_LEVELS_KERNELCOST_H
#define NCCLINSPD_LEVELS_KERNELCOST_H

/*
 * The cost to a process of having its kernels timed.  That cost is NCCL's own, on the
 * host and on the GPU, so that no callback can measure it.  But operations of bursts and
 * those outside take turns: how much longer is it from one to the next of its like
 * inside?  Each burst gives one such ratio, against the operations just before it, so
 * that what drifts cancels; the median over the last bursts is the estimate.
 *
 * All ranks of a job wait for each other, so that all of them see the same; where
 * compute hides the cost, none is seen, and none is there.
 */

#include "reader/base/model.h"

#define KERNELCOST_BURSTS	32	/* bursts that are remembered */
#define KERNELCOST_ENOUGH	8	/* bursts for an estimate; as many operations for a ratio */
#define KERNELCOST_KINDS	8	/* kinds of operations of one process */

#define KERNELCOST_DEFAULT_NS	10000	/* value that plugins take when nobody tells */

struct kernelcost_side {
	uint32_t n;
	double sum_ns;
};

/* Operations of one communicator, function and size, that follow each other regularly. */
struct kernelcost_kind {
	uint32_t comm_index;
	name_t func;		/* NULL: not in use */
	uint64_t bytes;
	uint64_t seq, stride;	/* number of the newest; distance from the one before it */
	uint64_t posted_ns;
	bool inside;
	double usual_ns;	/* time from one to the next, smoothed */
	struct kernelcost_side in, out;
};

struct kernelcost {
	struct kernelcost_kind kind[KERNELCOST_KINDS];
	uint32_t n;		/* ratios ever seen */
	double slower[KERNELCOST_BURSTS];	/* part by which each was slower; 0: not at all */
};

struct kernelcost_estimate {
	bool known;
	uint32_t bursts;	/* bursts that it rests on */
	double slower;		/* part by which operations inside bursts are slower */
	double error;		/* standard error of `slower` */
};

/* An operation that finished, in the order in which they come. */
void kernelcost_op(struct kernelcost *k, const struct op *op);

void kernelcost_estimate(const struct kernelcost *k, struct kernelcost_estimate *out);

/*
 * The cost per group that bursts should be planned with.  The nodes of a job have to come
 * to the same one without a word, from estimates that differ.  All begin with the default;
 * it moves, by a factor of four at a time, when an estimate of `cost_ns` plus or minus
 * twice `error_ns` is above twice or below a third of `used_ns`.  The finer the steps, the
 * more often two nodes would lie on either side of a limit between them.
 */
uint32_t kernelcost_step(uint32_t used_ns, double cost_ns, double error_ns);

#endif
