/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_LIST_H
#define UTIL_LIST_H

/*
 * Tables that are never written behind their end, whoever has counted wrong:
 *
 *	LIST(struct file) files;		its room is given by list_init()
 *	struct held held[HELD]; uint32_t nheld;	its room is the array's: array_add(held, &nheld)
 *
 * Adding gives the place of a new item, whose bytes are not cleared, or NULL: the table is
 * full, and the caller says what happens then.  A table is walked by at[0] to at[n - 1].
 *
 * Invariant: n <= room.
 */

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* gcc warns of a pointer here. */
#define ARRAY_LEN(array)	(sizeof(array) / sizeof((array)[0]))

/* A member with a name, or the members of the struct it stands in; zeroed: no room. */
#define LIST(type)		struct { type *at; uint32_t n, room; }

/* Room for `most`, cleared.  0 or -ENOMEM. */
#define list_init(l, most)						\
	((l)->n = 0, (l)->room = (most),				\
	 (l)->at = calloc((l)->room, sizeof(*(l)->at)),			\
	 (l)->at ? 0 : ((l)->room = 0, -ENOMEM))

#define list_deinit(l)	(free((l)->at), (l)->at = NULL, (l)->n = (l)->room = 0)

#define list_add(l)							\
	((__typeof__((l)->at))list_take((l)->at, &(l)->n, (l)->room, sizeof(*(l)->at)))

#define array_add(array, n)						\
	((__typeof__(&(array)[0]))list_take((array), (n), ARRAY_LEN(array), sizeof((array)[0])))

/* The same where the table cannot be full: if it is, the program ends here. */
#define list_must_add(l)	((__typeof__((l)->at))list_must(list_add(l)))
#define array_must_add(array, n)					\
	((__typeof__(&(array)[0]))list_must(array_add(array, n)))

/* The same for a list without a bound; NULL: no memory. */
#define list_append(l)							\
	((__typeof__((l)->at))list_grow((void **)&(l)->at, &(l)->n, &(l)->room,	\
					sizeof(*(l)->at)))

/* Remove item i: all behind it move up. */
#define list_remove(l, i)	list_close((l)->at, &(l)->n, (i), sizeof(*(l)->at))
#define array_remove(array, n, i)	list_close((array), (n), (i), sizeof((array)[0]))

/* A loop over the items, with break and continue, which must not add any. */
#define list_each(item, l)						\
	for (__typeof__(*(l)->at) *item = (l)->at; item && item < (l)->at + (l)->n; item++)

/* Calls qsort(), which takes no NULL; an empty list is one. */
#define list_sort(l, compare)						\
	((l)->n ? qsort((l)->at, (l)->n, sizeof(*(l)->at), (compare)) : (void)0)

/* The order of two numbers, for a function that compares. */
static inline int number_order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static inline __attribute__((warn_unused_result))
void *list_take(void *at, uint32_t *n, size_t room, size_t bytes)
{
	return *n < room ? (char *)at + (*n)++ * bytes : NULL;
}

static inline void *list_must(void *place)
{
	assert(place);
	return place;
}

static inline __attribute__((warn_unused_result))
void *list_grow(void **at, uint32_t *n, uint32_t *room, size_t bytes)
{
	if (*n == *room) {
		uint32_t more = *room ? 2 * *room : 16;
		void *grown = more > *room ? reallocarray(*at, more, bytes) : NULL;

		if (!grown)
			return NULL;
		*at = grown;
		*room = more;
	}
	return list_take(*at, n, *room, bytes);
}

static inline void list_close(void *at, uint32_t *n, uint32_t i, size_t bytes)
{
	char *item = (char *)at + i * bytes;

	assert(i < *n);
	memmove(item, item + bytes, (--*n - i) * bytes);
}

#endif
