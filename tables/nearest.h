/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TABLES_NEAREST_H
#define TABLES_NEAREST_H

/*
 * Copies of the rows that are nearest to something, of many that come one after another, in
 * fixed memory.
 */

#include <stddef.h>
#include <stdint.h>

#include "util/list.h"

struct nearest_place {
	uint64_t apart;
	uint32_t row;
};

/* Rows are valid until the next offer.  A zeroed one may be deinitialised. */
struct nearest {
	char *rows;
	size_t row_bytes;
	LIST(struct nearest_place);	/* a heap, the farthest first */
	uint64_t left_out;		/* offered, and not or no more among them */
};

/* 0 or -ENOMEM. */
int nearest_init(struct nearest *l, uint32_t room, size_t row_bytes);
void nearest_deinit(struct nearest *l);

/* The place to copy a row to that is so far away; NULL: there are nearer ones enough. */
void *nearest_offer(struct nearest *l, uint64_t apart);

/* The row in that place of no order, from 0 to n - 1. */
static inline void *nearest_row(const struct nearest *l, uint32_t i)
{
	return l->rows + (size_t)i * l->row_bytes;
}

#endif
