/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TABLES_HOLD_H
#define TABLES_HOLD_H

/*
 * A table that is read in pieces, with other work between them, and yet as of one moment:
 * what comes meanwhile waits, in order.  More than can wait ends the reading early, since
 * nobody who adds can wait for a reader: what it found out is void then.
 *
 *     hold_begin ─ look ─ hold_go_on ─ look ─ hold_go_on ─ ... ─ hold_end
 *                              │ meanwhile
 *                              └─► hold_place: an entry waits      └─► it is taken in
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hold {
	char *entries;
	size_t entry_bytes;
	uint32_t n, room;
	bool holding;
	uint64_t ended;		/* readings so far */
	void (*take_in)(const void *entry, void *arg);
	void *arg;
};

/* Returns 0 or -ENOMEM.  A zeroed one may be deinitialised, which drops what waits. */
int hold_init(struct hold *h, uint32_t room, size_t entry_bytes,
	      void (*take_in)(const void *entry, void *arg), void *arg);
void hold_deinit(struct hold *h);
size_t hold_bytes(const struct hold *h);

/* The place to copy an entry to that has to wait; NULL: nobody reads, take it in at once. */
void *hold_wait(struct hold *h);
static inline void *hold_place(struct hold *h)
{
	return h->holding ? hold_wait(h) : NULL;
}

/* One reading. */
struct hold_reader {
	struct hold *hold;
	uint64_t ended;		/* the hold's when it began */
	uint32_t steps, most;	/* steps since the last turn, and of how many there is one */
	void (*meanwhile)(void *arg);	/* NULL: it is done in one go */
	void *arg;
};

void hold_begin(struct hold_reader *r, struct hold *h);
void hold_end(struct hold *h);

/*
 * Count so many steps as done; after enough of them others have their turn, and after a
 * hold_breathe() at once.  False: it has ended.
 */
bool hold_go_on(struct hold_reader *r, uint32_t steps);
bool hold_breathe(struct hold_reader *r);

#endif
