/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_BASE_SETS_H
#define READER_BASE_SETS_H

/*
 * Things with numbers, put together set by set.  set[i] leads to the lowest number of i's
 * set, which names it; each begins as set[i] = i.
 */

#include <stdint.h>

/* The root of i's set.  Each entry passed on the way gets nearer to it. */
static inline uint32_t sets_root(uint32_t *set, uint32_t i)
{
	while (set[i] != i) {
		set[i] = set[set[i]];
		i = set[i];
	}
	return i;
}

static inline void sets_unite(uint32_t *set, uint32_t a, uint32_t b)
{
	a = sets_root(set, a);
	b = sets_root(set, b);
	if (a < b)
		set[b] = a;
	else
		set[a] = b;
}

#endif
