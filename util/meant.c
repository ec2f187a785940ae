/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A typing error in a command, an option, a field or a setting is answered with the word
 * that was meant: the nearest one, by letters that differ.
 */
#include "util/meant.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#define LONGEST 32	/* a word that is compared with another */
#define FAR	4	/* letters that differ: with so many it is another word */

static unsigned meant_least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static bool meant_same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Levenshtein's, row by row: row[j] is that of the first i of `a` and the first j of `b`. */
unsigned meant_distance(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b);
	unsigned row[LONGEST + 1];

	if (na > LONGEST || nb > LONGEST)
		return UINT_MAX;
	for (unsigned j = 0; j <= nb; j++)
		row[j] = j;
	for (unsigned i = 1; i <= na; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= nb; j++) {
			unsigned above = row[j];

			row[j] = meant_least(meant_least(above, row[j - 1]) + 1,
					     diagonal + !meant_same(a[i - 1], b[j - 1]));
			diagonal = above;
		}
	}
	return row[nb];
}

void meant_offer(struct meant *m, const char *word)
{
	unsigned away = meant_distance(m->wanted, word);
	size_t longer = strlen(word);

	if (strlen(m->wanted) > longer)
		longer = strlen(m->wanted);
	if (away >= (m->best ? m->away : FAR) || away >= (longer + 1) / 2)
		return;
	m->best = word;
	m->away = away;
}
