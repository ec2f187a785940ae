/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_MEANT_H
#define UTIL_MEANT_H

/* The one of several words that was meant, when what was written is none of them. */

/* Begin with { .wanted = what was written }; then offer the words. */
struct meant {
	const char *wanted;
	const char *best;	/* NULL: none is like it */
	unsigned away;
};

void meant_offer(struct meant *m, const char *word);

/*
 * Letters to add, drop or replace to make one of the other, whatever their case; UINT_MAX:
 * far too many.
 */
unsigned meant_distance(const char *a, const char *b);

#endif
