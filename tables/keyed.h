/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TABLES_KEYED_H
#define TABLES_KEYED_H

/*
 * Items that are found by a key, in memory whose bound is given at start.  When all are taken,
 * a new one is refused, or the one that was not used for longest makes room: of the account that
 * has most, and of its own if no other has more, so that nobody pushes out what others have by
 * having more and more.  Where all are of one account, the oldest of all goes.
 *
 * An item that is used again before another one is made keeps its place in that order, which is
 * cheap: none that was used since the last one was made makes room before one that was not.
 *
 *     struct link {
 *             struct keyed_head head;
 *             struct link_key key;    a whole number of 64-bit words without padding: it is
 *             ...                     compared and hashed as bytes
 *     };
 *
 * An item stays where it is until it makes room or is dropped.  Its number is another name for
 * it, to be kept where a pointer is too long, and may be another item's later.
 */

#include "reader/base/accounts.h"
#include "reader/base/pool.h"

struct keyed_config {
	uint32_t capacity;
	size_t item_bytes, key_bytes;
	uint64_t seed;		/* keys come from jobs: see struct index */
	bool lately;		/* numbers are kept for marks: keyed_use_lately() */
	bool refuses;		/* a new item, when all are taken */
	/* NULL, or: it is about to make room or to be dropped; the table must not change. */
	void (*gone)(void *item, void *arg);
	void *arg;
};

/* The beginning of each item; the table's own. */
struct keyed_head {
	struct pool_link link;
	uint64_t place;		/* its key in the index */
	uint32_t number;
	uid_t account;
	uint32_t made;		/* the table's when it was used */
};

struct keyed {
	struct keyed_config config;
	struct pool pool;
	struct index index;		/* hash of a key -> item */
	struct pool_list of[ACCOUNTS_TALLY];	/* items by account, least recently used first */
	uint64_t filled[ACCOUNTS_TALLY / 64];	/* a bit for each that is not empty */
	uint32_t *lately;		/* KEYED_LATELY numbers of items; NULL: not used */
	uint32_t latest;		/* the item used last, unless that is gone */
	uint32_t made;			/* items made so far, modulo 2^32 */
	uint64_t evicted;		/* items that made room */
	uint64_t gone;			/* these, and items that were dropped: as long as it is the
					   same, a number leads to the item that had it */
};

/* The config of n items of a type with that key, and the other members as they are given. */
#define KEYED_CONFIG(type, key_member, n, ...)						\
	(struct keyed_config){								\
		.capacity = (n),							\
		.item_bytes = sizeof(type),						\
		.key_bytes = sizeof(((type *)0)->key_member) + 0 * sizeof(struct {	\
			_Static_assert(offsetof(type, key_member) ==			\
				       sizeof(struct keyed_head), "a key is behind the head");	\
			char zero;							\
		}),									\
		__VA_ARGS__								\
	}

/* Returns 0 or -ENOMEM.  A zeroed one is empty, and may be deinitialised: no item is told. */
int keyed_init(struct keyed *t, const struct keyed_config *config);
void keyed_deinit(struct keyed *t);
size_t keyed_bytes(const struct keyed *t);	/* when it is full */

/* The item of that key as it stands, or NULL. */
void *keyed_find(const struct keyed *t, const void *key);

/*
 * The same.  If there is none it is made: *made is true, and it is zeroed but for its key.  NULL:
 * refused, or no memory.  `account` is a new one's.
 */
void *keyed_get(struct keyed *t, const void *key, uid_t account, bool *made);

/* The same, from now on the one used last. */
void *keyed_use(struct keyed *t, const void *key, uid_t account, bool *made);

/* The same, quickly if it still has the number that it had at the last use. */
void *keyed_use_again(struct keyed *t, uint32_t number, const void *key, uid_t account,
		      bool *made);

/*
 * The same, by the number that whichever key with this `mark` had at its last use: any number
 * made of a few of the key's words that tells it from most others that are in use.
 */
#define KEYED_LATELY	1024
void *keyed_use_lately(struct keyed *t, uint64_t mark, const void *key, uid_t account,
		       bool *made);

void keyed_drop(struct keyed *t, void *item);

/*
 * The item that makes room for one of that account: the account with most gives one up, among
 * equals that account itself.  There is one at least.
 */
void *keyed_first_to_go(const struct keyed *t, uid_t account);

/* The first item of the lists from that one on, or NULL. */
void *keyed_first(const struct keyed *t, uint32_t list);

/*
 * The item of its account used after this one, then the next account's; NULL: the one not used
 * for longest of the first, and the end.
 */
static inline void *keyed_next(const struct keyed *t, const void *item)
{
	const struct keyed_head *head = item;

	if (head && head->link.next)
		return head->link.next;
	return keyed_first(t, head ? head->account % ACCOUNTS_TALLY + 1 : 0);
}

/* From now on it is the one used last. */
void keyed_move(struct keyed *t, struct keyed_head *head);
static inline void keyed_touch(struct keyed *t, void *item)
{
	struct keyed_head *head = item;

	t->latest = head->number;
	if (head->made != t->made)
		keyed_move(t, head);
}

/* The item of that number as it stands, whatever its key; NULL: there is none. */
static inline void *keyed_taken(const struct keyed *t, uint32_t number)
{
	return pool_is_taken(&t->pool, number) ? pool_at(&t->pool, number) : NULL;
}

/* The place of the number that is kept for this mark, whoever's it is. */
static inline uint32_t *keyed_lately_place(const struct keyed *t, uint64_t mark)
{
	_Static_assert(KEYED_LATELY == UINT64_C(1) << (64 - 54), "the mark has this range");
	return &t->lately[mark * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

/* The item that keyed_use_lately() gave last for this mark, as it stands; NULL: it is gone. */
static inline void *keyed_lately(const struct keyed *t, uint64_t mark)
{
	return keyed_taken(t, *keyed_lately_place(t, mark));
}

static inline uint32_t keyed_number(const void *item)
{
	return ((const struct keyed_head *)item)->number;
}

static inline void *keyed_at(const struct keyed *t, uint32_t number)
{
	return pool_at(&t->pool, number);
}

static inline uint32_t keyed_count(const struct keyed *t)
{
	return t->pool.used;
}

#endif
