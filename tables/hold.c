/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of rows take milliseconds, in which nobody else would be served. */
#include "tables/hold.h"

#include <errno.h>
#include <stdlib.h>

int hold_init(struct hold *h, uint32_t room, size_t entry_bytes,
	      void (*take_in)(const void *entry, void *arg), void *arg)
{
	*h = (struct hold){
		.entries = calloc(room, entry_bytes), .entry_bytes = entry_bytes, .room = room,
		.take_in = take_in, .arg = arg,
	};
	return h->entries ? 0 : -ENOMEM;
}

void hold_deinit(struct hold *h)
{
	free(h->entries);
}

size_t hold_bytes(const struct hold *h)
{
	return h->room * h->entry_bytes;
}

void *hold_wait(struct hold *h)
{
	if (h->n < h->room)
		return h->entries + h->n++ * h->entry_bytes;
	hold_end(h);
	return NULL;
}

void hold_begin(struct hold_reader *r, struct hold *h)
{
	h->holding = true;
	r->hold = h;
	r->ended = h->ended;
	r->steps = 0;
}

void hold_end(struct hold *h)
{
	h->holding = false;
	h->ended++;
	for (uint32_t i = 0; i < h->n; i++)
		h->take_in(h->entries + i * h->entry_bytes, h->arg);
	h->n = 0;
}

bool hold_breathe(struct hold_reader *r)
{
	r->steps = 0;
	if (!r->meanwhile)
		return true;
	r->meanwhile(r->arg);
	return r->hold->ended == r->ended;
}

bool hold_go_on(struct hold_reader *r, uint32_t steps)
{
	r->steps += steps;
	return r->steps < r->most || hold_breathe(r);
}
