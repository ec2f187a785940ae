/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TABLE_FILTER_H
#define CLI_TABLE_FILTER_H

/*
 * -f EXPR: "FIELD OP VALUE", where OP is one of = != < <= > >= ~ !~ (contains,
 * contains not), or fixed strings, "a|b": rows that show one of them anywhere.
 * Letters' case does not matter.  VALUE "-" is what is not known.
 */

#include "cli/table/report.h"

#define FILTERS 8

struct filter_term {
	const char *text;		/* fixed strings, or the value as it was given */
	const struct column *column;	/* NULL: any */
	const struct filter_op *op;
	double number;			/* the value in base units */
};

struct filter {
	const struct column *columns;
	size_t count;
	struct filter_term terms[FILTERS];	/* all must hold */
	uint32_t used;
};

void filter_init(struct filter *filter, const struct column *columns, size_t count);

/*
 * Add an expression, which must outlive the filter.  Returns 0, or -EINVAL with what
 * is wrong in `why`; -E2BIG: there are FILTERS already.
 */
int filter_add(struct filter *filter, const char *expression, char *why, size_t size);

bool filter_wants(const struct filter *filter, const json_t *row,
		  const struct report_style *style);

/* Do the table's cells show one of "a|b"? */
bool filter_shows(const struct column *columns, size_t count, const json_t *row,
		  const struct report_style *style, const char *strings);

#endif
