/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_COMPARE_RANKS_COMPARE_H
#define NCCLINSPD_COMPARE_RANKS_COMPARE_H

/* One operation as several ranks did it: which came when, and what the transfer alone takes. */

#include "reader/base/model.h"

/* Is it known for how long that rank was inside, by its GPU's clock? */
static inline bool ranks_is_timed(const struct op *op)
{
	return op->complete && op->source == TIMING_KERNEL_GPU && op->fused != OP_FUSED &&
	       op_inside_ns(op) != UNKNOWN_U64;
}

/* Two of a joint, neither put together from parts: they differ in nothing but their rank. */
static inline bool ranks_do_the_same(const struct op *a, const struct op *b)
{
	return a->func == b->func && a->bytes == b->bytes && !a->parts && !b->parts;
}

/*
 * Each rank needs all the others' data there, and is numbered as they are: so that the one
 * inside for the least time came last, on whatever node.
 */
bool ranks_are_told_apart_by(const struct op *op);

/* False: these n ranks did not do the same, or are one alone: nothing to compare. */
bool ranks_are_alike(struct op *const *ops, uint32_t n);

/*
 * The order is that of the kernels' starts on the host's clock where that is certain: no
 * bracket reaches the start before it, none is wider than ranks may leave apart, and by
 * these clocks they left no further apart.  Else that of the times inside: the one
 * inside for longest came first.
 */
const char *ranks_arrival_text(enum arrival_source source);

/* Fill in what struct op has beside other ranks; timed and alike, n <= OP_RANKS. */
void ranks_compare(struct op *const *ops, uint32_t n);

#endif
