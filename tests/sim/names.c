/* SPDX-License-Identifier: Apache-2.0 */
/* The tables behind names.h; numbers are those of NCCL's own enums. */
#include "tests/sim/names.h"

#include <assert.h>
#include <stddef.h>
#include <strings.h>

static const struct names_func funcs[FUNC_COUNT] = {
	[FUNC_ALL_REDUCE]	= { "AllReduce",	4, false, false },
	[FUNC_ALL_GATHER]	= { "AllGather",	2, true,  true },
	[FUNC_REDUCE_SCATTER]	= { "ReduceScatter",	3, true,  false },
	[FUNC_BROADCAST]	= { "Broadcast",	0, false, true },
	[FUNC_REDUCE]		= { "Reduce",		1, false, false },
	[FUNC_ALL_TO_ALL]	= { "AlltoAll",		8, true,  false },
	[FUNC_SEND]		= { "Send",		6, false, false },
	[FUNC_RECV]		= { "Recv",		7, false, false },
};

static const struct names_entry datatypes[] = {
	{ "ncclInt8",		"int8",		0,  1 },
	{ "Unknown",		"uint8",	1,  1 },	/* NCCL's own gap */
	{ "ncclInt32",		"int32",	2,  4 },
	{ "ncclUint32",		"uint32",	3,  4 },
	{ "ncclInt64",		"int64",	4,  8 },
	{ "ncclUint64",		"uint64",	5,  8 },
	{ "ncclFloat16",	"float16",	6,  2 },
	{ "ncclFloat32",	"float32",	7,  4 },
	{ "ncclFloat64",	"float64",	8,  8 },
	{ "ncclBfloat16",	"bfloat16",	9,  2 },
	{ "ncclFloat8e4m3",	"float8e4m3",	10, 1 },
	{ "ncclFloat8e5m2",	"float8e5m2",	11, 1 },
	{ NULL, NULL, 0, 0 }
};

static const struct names_entry algos[] = {
	{ "TREE",		"tree",			0, 0 },
	{ "RING",		"ring",			1, 0 },
	{ "COLLNET_DIRECT",	"collnet_direct",	2, 0 },
	{ "COLLNET_CHAIN",	"collnet_chain",	3, 0 },
	{ "NVLS",		"nvls",			4, 0 },
	{ "NVLS_TREE",		"nvls_tree",		5, 0 },
	{ "PAT",		"pat",			6, 0 },
	{ NULL, NULL, 0, 0 }
};

static const struct names_entry protos[] = {
	{ "LL",		"ll",		0, 0 },
	{ "LL128",	"ll128",	1, 0 },
	{ "SIMPLE",	"simple",	2, 0 },
	{ NULL, NULL, 0, 0 }
};

static const struct names_entry *const tables[] = {
	[NAMES_DATATYPE]	= datatypes,
	[NAMES_ALGO]		= algos,
	[NAMES_PROTO]		= protos,
};

const struct names_func *names_func(enum sim_func func)
{
	assert(func < FUNC_COUNT);
	return &funcs[func];
}

int names_find_func(const char *word)
{
	for (int i = 0; i < FUNC_COUNT; i++)
		if (!strcasecmp(funcs[i].name, word))
			return i;
	return -1;
}

const struct names_entry *names_get(enum names_kind kind, int index)
{
	return &tables[kind][index];
}

int names_find(enum names_kind kind, const char *word)
{
	const struct names_entry *table = tables[kind];

	for (int i = 0; table[i].name; i++)
		if (!strcasecmp(table[i].word, word) || !strcasecmp(table[i].name, word))
			return i;
	return -1;
}
