/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_JOIN_OPS_H
#define READER_JOIN_OPS_H

/*
 * Facts about NCCL's operations and datatypes, as tables: sizes as nccl-tests prints them,
 * and its factors from algorithm to bus bandwidth.
 */

#include "reader/base/model.h"

struct op_facts {
	const char *func;
	bool per_rank;		/* size: nranks x count x type; else count x type */
	bool has_root;
	bool as_bytes;		/* Coll descriptor: NCCL has turned count into int8 bytes */
	unsigned joint;		/* not 0: each rank needs every other's data; same: same thing */
	double (*busbw)(int32_t nranks);	/* factor on algorithm bandwidth */
};

/* NULL: a function we know nothing about.  `func` may be NULL. */
const struct op_facts *ops_facts(name_t func);

/* Bytes of one element, or 0: not known ("ncclUint8" prints as "Unknown"). */
uint32_t ops_datatype_bytes(name_t datatype);

/* The datatype, or NULL if its size is not known: NCCL's word for it may be wrong. */
name_t ops_known_type(name_t datatype);

/* The root, or UNKNOWN_I32 for a function that has none. */
int32_t ops_root(name_t func, int32_t root);

/*
 * nccl-tests' size for one rank, or UNKNOWN_U64: the function, the type's size
 * or a number of ranks that matters is not known, or the product overflows.
 */
uint64_t ops_size(const struct op_facts *facts, uint64_t count, uint32_t type_bytes,
		  int32_t nranks);

/* nccl-tests' bus bandwidth times the duration; < 0: not known. */
double ops_bus_bytes(const struct op *op);

bool ops_is_send(name_t func);

/*
 * op->bytes over op->exec_ns into op->algbw_gbs and op->busbw_gbs; -1: not known, as
 * for a member of a batch.
 */
void ops_bandwidth(struct op *op);

#endif
