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

/* The name of a number of ncclDataType_t, or NULL: not known. */
name_t ops_datatype_name(uint64_t number);

/*
 * Both at once for a stage that asks again and again, of names that are kept once (names.h), and
 * no shorter than this: equal ones are one pointer.  Zeroed is new.  To look one up that has no
 * place costs a thousand instructions.
 */
#define OPS_WORDS 64

struct ops_word {
	name_t name;
	const struct op_facts *facts;	/* NULL: no function that is known */
	uint32_t type_bytes;		/* 0: no datatype that is known */
};

struct ops_words {
	struct ops_word at[OPS_WORDS];
};

/* A word that is not at its home: it is near, or gets a place. */
const struct ops_word *ops_word_near(struct ops_words *words, name_t name, uint32_t home);

static inline const struct ops_word *ops_word(struct ops_words *words, name_t name)
{
	uint32_t home = (uintptr_t)name >> 5 & (OPS_WORDS - 1);

	return words->at[home].name == name ? &words->at[home] : ops_word_near(words, name, home);
}

/* The datatype, or NULL if its size is not known: NCCL's word for it may be wrong. */
static inline name_t ops_known_type(const struct ops_word *datatype)
{
	return datatype->type_bytes ? datatype->name : NULL;
}

/* The root, or UNKNOWN_I32 for a function that has none. */
static inline int32_t ops_root(const struct op_facts *facts, int32_t root)
{
	return facts && facts->has_root && root >= 0 ? root : UNKNOWN_I32;
}

/*
 * nccl-tests' size for one rank, or UNKNOWN_U64: the function, the type's size
 * or a number of ranks that matters is not known, or the product overflows.
 */
uint64_t ops_size(const struct op_facts *facts, uint64_t count, uint32_t type_bytes,
		  int32_t nranks);

/* nccl-tests' bus bandwidth times the duration; < 0: not known. */
double ops_bus_bytes(const struct op *op);
double ops_bus_bytes_by(const struct op_facts *facts, const struct op *op);	/* of op->func */

bool ops_is_send(name_t func);

/*
 * op->bytes over op->exec_ns into op->algbw_gbs and op->busbw_gbs; -1: not known, as
 * for a member of a batch.
 */
void ops_bandwidth(struct op *op);
void ops_bandwidth_by(const struct op_facts *facts, struct op *op);	/* facts of op->func */

#endif
