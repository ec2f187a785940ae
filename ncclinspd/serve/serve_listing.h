/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SERVE_SERVE_LISTING_H
#define NCCLINSPD_SERVE_SERVE_LISTING_H

/*
 * An answer of many rows, {"name":[...]}: they are put in first, and become text as
 * the client takes it.
 */

#include "ncclinspd/serve/serve_answer.h"
#include "rows/rows.h"

struct sent_listing;
struct serve;
typedef void listing_put(const struct serve *s, struct json *j, const void *row,
			 const struct chosen *chosen);

/* `put` writes those of a row's members that are wanted; NULL: all.  NULL: no memory. */
struct sent_listing *listing_new(const struct serve *s, const char *name, size_t row_bytes,
				 listing_put *put, const struct chosen *chosen);
void listing_free(struct sent_listing *l);

/* The answer's open object, for members that stand before the rows; before listing_answer(). */
struct json *listing_head(struct sent_listing *l);

/* Room for another row.  NULL: no memory. */
void *listing_add(struct sent_listing *l);
void listing_clear(struct sent_listing *l);

/* All rows as an array, and none left. */
void listing_put_all(struct sent_listing *l, struct json *j);

/*
 * The answer, unless its rows could not be had (`error` < 0), or there is none: 0 or -ENOMEM.  The
 * listing is not the caller's any more.
 */
int listing_answer(struct sent_listing *l, int error, struct answer *a);

#endif
