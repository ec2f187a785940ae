/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/ranks_compare.h"

#include <stdlib.h>
#include <string.h>

#include "ncclinspd/ops.h"

static uint64_t inside_ns(const struct op *op)
{
	return op_is_fused(op) ? op->batch_ns : op->exec_ns;
}

bool ranks_is_timed(const struct op *op)
{
	return op->complete && op->source == TIMING_KERNEL_GPU && op->fused != OP_FUSED &&
	       inside_ns(op) != UNKNOWN_U64;
}

/* The longest inside came first. */
static int by_arrival(const void *left, const void *right)
{
	const struct op *a = *(const struct op *const *)left;
	const struct op *b = *(const struct op *const *)right;

	if (inside_ns(a) != inside_ns(b))
		return inside_ns(a) > inside_ns(b) ? -1 : 1;
	return (a->rank > b->rank) - (a->rank < b->rank);
}

bool ranks_are_alike(struct op *const *ops, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (ops[i]->fused != ops[0]->fused ||
		    (!ops[0]->parts && ops[i]->bytes != ops[0]->bytes))
			return false;
	return n > 1;
}

static void fill_waitfree(struct op *op, uint64_t least_ns)
{
	double bus = ops_bus_bytes(op);

	op->waitfree_ns = least_ns;
	if (!op_is_fused(op) && bus > 0 && least_ns)
		op->busbw_waitfree_gbs = bus / (double)least_ns;
}

void ranks_compare(struct op *const *ops, uint32_t n)
{
	struct op *order[OP_RANKS];

	memcpy(order, ops, n * sizeof(*ops));
	qsort(order, n, sizeof(*order), by_arrival);
	for (uint32_t i = 0; i < n; i++) {
		ops[i]->local_ranks = n;
		ops[i]->late_ns = inside_ns(order[0]) - inside_ns(ops[i]);
		for (uint32_t k = 0; k < n; k++)
			ops[i]->arrival[k] = order[k]->rank;
		fill_waitfree(ops[i], inside_ns(order[n - 1]));
	}
}
