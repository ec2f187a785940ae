/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_NAMES_H
#define TESTS_SIM_NAMES_H

/* NCCL's names and numbers of functions, datatypes, algorithms and protocols. */

#include <stdbool.h>
#include <stdint.h>

enum sim_func {
	FUNC_ALL_REDUCE,
	FUNC_ALL_GATHER,
	FUNC_REDUCE_SCATTER,
	FUNC_BROADCAST,
	FUNC_REDUCE,
	FUNC_ALL_TO_ALL,
	FUNC_SEND,
	FUNC_RECV,
	FUNC_COUNT
};

struct names_func {
	const char *name;
	int code;		/* in v1 descriptors */
	bool scaled;		/* the larger buffer is nranks x count */
	bool bytes;		/* NCCL turns count and datatype into bytes */
};

struct names_entry {
	const char *name;	/* as NCCL prints it */
	const char *word;	/* as scenarios write it */
	int code;		/* in v1 descriptors */
	int size;		/* datatypes: bytes of one element */
};

enum names_kind { NAMES_DATATYPE, NAMES_ALGO, NAMES_PROTO };

const struct names_func *names_func(enum sim_func func);

/* The function of that name, in any case; -1 if there is none. */
int names_find_func(const char *word);

/* Row `index` of a table; index is what names_find() answered. */
const struct names_entry *names_get(enum names_kind kind, int index);

/* The row that a scenario's or NCCL's word means, in any case; -1 if none. */
int names_find(enum names_kind kind, const char *word);

#endif
