/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TABLE_FIELDS_H
#define CLI_TABLE_FIELDS_H

/*
 * The columns of a report that are wanted.  A field answers to its name, and to what stands
 * above its column without the unit, in whichever case: "p50_ns" and "P50" may both be there,
 * the one in nanoseconds, the other in what its column shows.
 */

#include "cli/table/report.h"

#define FIELD_NAME 48

struct fields {
	struct column columns[REPORT_COLUMNS];
	size_t count;
	/* headers and names that were made up for columns that have none */
	char made[REPORT_COLUMNS][FIELD_NAME];
};

/*
 * NULL: there is no such field.  *raw: the name says the unit of the API's values, "_ns" or
 * "_fraction"; else a number beside it is in what the column shows.
 */
const struct column *fields_find(const struct column *columns, size_t count, const char *name,
				 bool *raw);

/*
 * The columns of "a,b,c", in that order, each with a name and a header, none left
 * out.  Returns 0; -ENOENT: no field is called as *unknown says (to be freed);
 * -E2BIG: more than a report can have.
 */
int fields_select(struct fields *fields, const struct column *columns, size_t count,
		  const char *list, char **unknown);

/* All there is to show, each once; those that no column showed come last. */
void fields_widen(struct fields *fields, const struct column *columns, size_t count);

/* Writes that no field has that name, and which one was meant, if one is like it. */
void fields_unknown(const struct column *columns, size_t count, const char *name, char *why,
		    size_t size);

/* One line for each field: what --fields, -s and -f may name, and its header if wanted. */
void fields_list(const struct column *columns, size_t count, bool with_header, FILE *out);

#endif
