/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool is copied three times, and a slot whose token is the same and live in
 * all three is whole in the second copy (shmring_slot_settled()).
 *
 * Slots are taken lowest first, so those that were ever used are a prefix of the
 * pool: the copies end behind it.
 */
#include "reader/read/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reader/read/decode.h"

#define POOL_SLOTS	(1u << NCI_TOKEN_SLOT_BITS)
#define STEP_SLOTS	64
#define MAX_LIVE	65536	/* slots of one process: 12 MiB */
#define MAX_KEPT	2048	/* slots of one that ended */

void slots_deinit(struct slots *s)
{
	for (int i = 0; i < 3; i++)
		free(s->pool[i]);
	free(s->at);
	memset(s, 0, sizeof(*s));
}

static int slots_make_pools(struct slots *s)
{
	for (int i = 0; i < 3; i++) {
		if (!s->pool[i])
			s->pool[i] = aligned_alloc(NCI_LINE_BYTES, POOL_SLOTS * NCI_SLOT_BYTES);
		if (!s->pool[i])
			return -ENOMEM;
	}
	return 0;
}

static struct live_slot *slots_alloc(uint32_t n)
{
	return aligned_alloc(_Alignof(struct live_slot), n * sizeof(struct live_slot));
}

static int slots_grow(struct slots *s)
{
	uint32_t room = s->room ? s->room * 2 : 256;
	struct live_slot *at = slots_alloc(room);

	if (!at)
		return -ENOMEM;
	if (s->n)
		memcpy(at, s->at, s->n * sizeof(*at));
	free(s->at);
	s->at = at;
	s->room = room;
	return 0;
}

static uint64_t slot_token(const struct nci_slot *slot)
{
	return ((const struct nci_record *)slot)->token;
}

static int read_pool(const struct segment *seg, const struct segment_lane *lane,
		     struct nci_slot *to, uint32_t slots)
{
	uint64_t offset = lane->reader.offset + (uint64_t)lane->reader.lines * NCI_LINE_BYTES;

	atomic_thread_fence(memory_order_acquire);	/* each copy is younger than the last */
	return segment_read(seg, to, (size_t)slots * NCI_SLOT_BYTES, offset);
}

/* The first copy, of all slots that were ever used.  lane->used keeps their number. */
static int read_used(const struct segment *seg, struct segment_lane *lane, struct nci_slot *to)
{
	uint32_t all = lane->reader.slots;
	uint32_t n = lane->used + STEP_SLOTS;

	for (;; n *= 2) {
		int r;

		if (n > all)
			n = all;
		r = read_pool(seg, lane, to, n);
		if (r < 0)
			return r;
		if (n == all || nci_token_generation(slot_token(&to[n - 1])) == 0)
			break;
	}
	while (n > lane->used && nci_token_generation(slot_token(&to[n - 1])) == 0)
		n--;
	lane->used = n;
	return 0;
}

static uint32_t live_prefix(const struct nci_slot *slot, uint32_t n)
{
	while (n && (slot_token(&slot[n - 1]) == 0 || slot_token(&slot[n - 1]) & NCI_TOKEN_FREE))
		n--;
	return n;
}

static int slots_take(struct slots *s, const struct nci_slot *slot, uint32_t tid)
{
	struct live_slot *live;

	if (s->n == s->room && s->room < MAX_LIVE) {
		int r = slots_grow(s);

		if (r < 0)
			return r;
	}
	live = list_add(s);
	if (live) {
		live->tid = (pid_t)tid;
		live->slot = *slot;
	}
	return 0;
}

static int slots_copy_lane(struct slots *s, struct segment *seg, uint32_t index, uint32_t tid,
			   uint64_t latest_ticks)
{
	struct segment_lane *lane = &seg->lane[index];
	struct event event;
	uint32_t n;
	int r = read_used(seg, lane, s->pool[0]);

	n = r < 0 ? 0 : live_prefix(s->pool[0], lane->used);
	for (int i = 1; i < 3 && n && r == 0; i++)
		r = read_pool(seg, lane, s->pool[i], n);
	for (uint32_t i = 0; i < n && r == 0; i++) {
		uint64_t token = slot_token(&s->pool[1][i]);

		if (shmring_slot_settled(&s->pool[0][i], &s->pool[1][i], &s->pool[2][i]) &&
		    nci_token_lane(token) == index && nci_token_slot(token) == i &&
		    decode_slot(&seg->process, &s->pool[1][i], latest_ticks,
				&event) == DECODE_OK)
			r = slots_take(s, &s->pool[1][i], tid);
	}
	return r;
}

int slots_copy(struct slots *s, const struct attached *a)
{
	int r = slots_make_pools(s);

	s->n = 0;
	for (uint32_t i = 0; i < a->seg->nlanes && r == 0; i++)
		if (a->seg->lane[i].open)
			r = slots_copy_lane(s, a->seg, i,
					    atomic_load_explicit(&look_lane(a, i)->tid,
								 memory_order_relaxed),
					    a->latest_ticks);
	return r;
}

int slots_keep(const struct slots *s, struct process *p)
{
	uint32_t n = s->n < MAX_KEPT ? s->n : MAX_KEPT;
	struct live_slot *kept = slots_alloc(n ? n : 1);

	if (!kept)
		return -ENOMEM;
	if (n)
		memcpy(kept, s->at, n * sizeof(*kept));
	free(p->last_slots);
	p->last_slots = kept;
	p->nlast_slots = n;
	return 0;
}
