/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes and bus bandwidth mean something else for each of NCCL's operations: one row for
 * each.
 */
#include "reader/join/ops.h"

#include <string.h>

#define OPS_NEAR 7	/* places behind its home where a word may be */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static double factor_one(int32_t nranks)
{
	(void)nranks;
	return 1;
}

/* Everything but what a rank keeps for itself crosses a wire once. */
static double factor_others(int32_t nranks)
{
	return nranks > 0 ? (nranks - 1) / (double)nranks : -1;
}

/* Twice as much crosses a wire where it comes back reduced. */
static double factor_others_twice(int32_t nranks)
{
	return nranks > 0 ? 2.0 * (nranks - 1) / nranks : -1;
}

/* AlltoAllv's parts alone tell what it carries: no factor makes a bandwidth of it. */
static double factor_unknown(int32_t nranks)
{
	(void)nranks;
	return -1;
}

static const struct op_facts table[] = {
	/* func            per_rank has_root as_bytes joint busbw */
	{ "AllReduce",     false,   false,   false,   1,    factor_others_twice },
	{ "AllGather",     true,    false,   true,    2,    factor_others },
	{ "ReduceScatter", true,    false,   false,   3,    factor_others },
	{ "Send",          false,   false,   false,   0,    factor_one },
	{ "Recv",          false,   false,   false,   0,    factor_one },
	{ "Broadcast",     false,   true,    true,    0,    factor_one },
	{ "Reduce",        false,   true,    false,   0,    factor_one },
	{ "AlltoAll",      true,    false,   false,   4,    factor_others },
	{ "AlltoAllv",     true,    false,   false,   4,    factor_unknown },
	{ "Gather",        true,    true,    false,   0,    factor_others },
	{ "Scatter",       true,    true,    false,   0,    factor_others },
	{ "Shift",         false,   false,   false,   0,    factor_one },
	{ "SendRecv",      false,   false,   false,   0,    factor_one },
};

/* The index is NCCL's number. */
static const struct {
	const char *name;
	uint32_t bytes;
} datatypes[] = {
	{ "ncclInt8",       1 },
	{ "ncclUint8",      1 },
	{ "ncclInt32",      4 },
	{ "ncclUint32",     4 },
	{ "ncclInt64",      8 },
	{ "ncclUint64",     8 },
	{ "ncclFloat16",    2 },
	{ "ncclFloat32",    4 },
	{ "ncclFloat64",    8 },
	{ "ncclBfloat16",   2 },
	{ "ncclFloat8e4m3", 1 },
	{ "ncclFloat8e5m2", 1 },
};

const struct op_facts *ops_facts(name_t func)
{
	for (size_t i = 0; func && i < ARRAY_SIZE(table); i++)
		if (!strcmp(table[i].func, func))
			return &table[i];
	return NULL;
}

uint32_t ops_datatype_bytes(name_t datatype)
{
	for (size_t i = 0; datatype && i < ARRAY_SIZE(datatypes); i++)
		if (!strcmp(datatypes[i].name, datatype))
			return datatypes[i].bytes;
	return 0;
}

const struct ops_word *ops_word_near(struct ops_words *words, name_t name, uint32_t home)
{
	struct ops_word *place = &words->at[home];

	for (uint32_t i = 1; i <= OPS_NEAR && place->name; i++) {
		struct ops_word *at = &words->at[(home + i) % OPS_WORDS];

		if (at->name == name)
			return at;
		if (!at->name || i == OPS_NEAR)
			place = at;
	}
	*place = (struct ops_word){ name, ops_facts(name), ops_datatype_bytes(name) };
	return place;
}

name_t ops_datatype_name(uint64_t number)
{
	return number < ARRAY_SIZE(datatypes) ? datatypes[number].name : NULL;
}

uint64_t ops_size(const struct op_facts *facts, uint64_t count, uint32_t type_bytes,
		  int32_t nranks)
{
	uint64_t bytes;

	if (!facts || !type_bytes || count == UNKNOWN_U64)
		return UNKNOWN_U64;
	if (__builtin_mul_overflow(count, type_bytes, &bytes))
		return UNKNOWN_U64;
	if (!facts->per_rank)
		return bytes;
	if (nranks <= 0 || __builtin_mul_overflow(bytes, (uint64_t)nranks, &bytes))
		return UNKNOWN_U64;
	return bytes;
}

double ops_bus_bytes_by(const struct op_facts *facts, const struct op *op)
{
	double factor = facts ? facts->busbw(op->nranks) : -1;

	if (op->parts)
		return op->bus_bytes == UNKNOWN_U64 ? -1 : (double)op->bus_bytes;
	return factor < 0 || op->bytes == UNKNOWN_U64 ? -1 : factor * (double)op->bytes;
}

double ops_bus_bytes(const struct op *op)
{
	return ops_bus_bytes_by(ops_facts(op->func), op);
}

bool ops_is_send(name_t func)
{
	return func && !strcmp(func, "Send");
}

void ops_bandwidth_by(const struct op_facts *facts, struct op *op)
{
	double bus = ops_bus_bytes_by(facts, op);

	op->algbw_gbs = -1;
	op->busbw_gbs = -1;
	if (op->bytes == UNKNOWN_U64 || op->exec_ns == UNKNOWN_U64 || !op->exec_ns ||
	    op_is_fused(op))
		return;
	op->algbw_gbs = (double)op->bytes / (double)op->exec_ns;
	if (bus >= 0)
		op->busbw_gbs = bus / (double)op->exec_ns;
}

void ops_bandwidth(struct op *op)
{
	ops_bandwidth_by(ops_facts(op->func), op);
}
