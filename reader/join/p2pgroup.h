/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_JOIN_P2PGROUP_H
#define READER_JOIN_P2PGROUP_H

/*
 * The meaning of the sends and receives of one group, as one rank sees it.
 *
 *     from and to all others         AlltoAll; AlltoAllv if not all are of one size, or
 *                                    if they are only half of the others, and three
 *     from all, or to all            Gather, Scatter (at its root: a leaf's one transfer
 *                                    looks like any other)
 *     to rank + k, from rank - k     Shift
 *     any other, in both directions  SendRecv
 *
 * Neighbours in a pipeline also talk to all others where there are few ranks: with
 * one or two other ranks the first two rows also need a transfer to oneself, which a
 * pipeline does not have and which a complete exchange always has.
 */

#include "reader/base/model.h"

struct p2p_part {
	int32_t peer;
	bool is_send;
	uint64_t bytes;		/* UNKNOWN_U64 */
};

enum p2p_class {
	P2P_NONE,		/* nothing that has a name of its own */
	P2P_ALLTOALL,
	P2P_ALLTOALLV,
	P2P_GATHER,
	P2P_SCATTER,
	P2P_SHIFT,
	P2P_SENDRECV,
	P2P_CLASSES
};

struct p2p_shape {
	enum p2p_class class;
	int32_t shift;		/* distance of a Shift, the shorter way round; else 0 */
	uint64_t bytes;		/* nccl-tests' size for one rank, or UNKNOWN_U64 */
	uint64_t bus_bytes;	/* to other ranks (Gather: from them); UNKNOWN_U64 */
	double skew;		/* largest over mean of the bytes per peer; 0: not known */
};

/* The name in rows; NULL for P2P_NONE. */
const char *p2pgroup_name(enum p2p_class class);

/*
 * Sorts `parts`.  `silent` transfers were called for and raised no event: those to
 * oneself in place, of which nothing but their number is known.
 */
void p2pgroup_shape(struct p2p_part *parts, uint32_t n, int32_t rank, int32_t nranks,
		    uint32_t silent, struct p2p_shape *shape);

#endif
