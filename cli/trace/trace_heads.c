/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operations and calls by token, of fixed size: the oldest entry makes room. */
#include "cli/trace/trace_heads.h"

#include <stdlib.h>

#include "cli/base/must.h"
#include "tables/keyed.h"

struct heads_key {
	uint64_t source, token;
};

struct heads_entry {
	struct keyed_head keyed;
	struct heads_key key;
	bool drawn;		/* `head` is its slice; false: only children have come */
	uint32_t waiting;	/* the first, plus one */
	struct trace_head head;
};

struct waiting {
	struct trace_at at;
	uint64_t start_ns;
	uint32_t next;		/* plus one */
	uint32_t entry;		/* plus one; 0: not in use */
};

struct trace_heads {
	struct trace_writer *w;
	struct keyed entries;
	uint32_t waiting_turn;
	struct waiting waiting[TRACE_WAITING];
};

static void heads_drop_waiting(void *item, void *heads)
{
	struct heads_entry *e = item;
	struct trace_heads *h = heads;

	for (uint32_t next = e->waiting; next; next = h->waiting[next - 1].next)
		h->waiting[next - 1].entry = 0;
	e->waiting = 0;
}

struct trace_heads *trace_heads_new(struct trace_writer *w)
{
	struct trace_heads *h = must(calloc(1, sizeof(*h)));

	h->w = w;
	must(keyed_init(&h->entries, &KEYED_CONFIG(struct heads_entry, key, TRACE_HEADS,
		.seed = (uintptr_t)h, .gone = heads_drop_waiting, .arg = h)) ? NULL : h);
	return h;
}

void trace_heads_free(struct trace_heads *h)
{
	if (h)
		keyed_deinit(&h->entries);
	free(h);
}

static struct heads_entry *heads_find(struct trace_heads *h, uint32_t source, uint64_t token)
{
	return keyed_find(&h->entries, &(struct heads_key){ source, token });
}

static struct heads_entry *heads_find_or_add(struct trace_heads *h, uint32_t source, uint64_t token)
{
	bool made;

	return heads_find(h, source, token) ?:
	       must(keyed_use(&h->entries, &(struct heads_key){ source, token }, 0, &made));
}

static void heads_draw(struct trace_heads *h, const struct heads_entry *e, struct trace_at at,
		       uint64_t start_ns)
{
	uint64_t from_ns = start_ns;

	if (e->head.at.pid == at.pid && e->head.at.tid == at.tid)
		return;
	if (from_ns > e->head.stop_ns)
		from_ns = e->head.stop_ns;
	if (from_ns < e->head.start_ns)
		return;		/* a child that began before: GPU's clock against the host's */
	trace_arrow(h->w, "child", e->head.at, from_ns, at, start_ns);
}

void trace_heads_add(struct trace_heads *h, uint32_t source, uint64_t token,
		     const struct trace_head *head)
{
	struct heads_entry *e = heads_find_or_add(h, source, token);
	uint64_t first_ns = e->head.first_ns, last_ns = e->head.last_ns;

	e->head = *head;
	e->head.first_ns = first_ns;
	e->head.last_ns = last_ns;
	e->drawn = true;
	for (uint32_t next = e->waiting; next; next = h->waiting[next - 1].next)
		heads_draw(h, e, h->waiting[next - 1].at, h->waiting[next - 1].start_ns);
	heads_drop_waiting(e, h);
}

const struct trace_head *trace_heads_find(struct trace_heads *h, uint32_t source, uint64_t token)
{
	const struct heads_entry *e = heads_find(h, source, token);

	return e && e->drawn ? &e->head : NULL;
}

/* Takes the oldest one's place, should all be taken: its arrow is not drawn. */
static void heads_wait_for(struct trace_heads *h, struct heads_entry *e, struct trace_at at,
			   uint64_t start_ns)
{
	struct waiting *w = &h->waiting[h->waiting_turn++ % TRACE_WAITING];

	if (w->entry)
		heads_drop_waiting(keyed_at(&h->entries, w->entry - 1), h);
	*w = (struct waiting){ .at = at, .start_ns = start_ns, .next = e->waiting,
			       .entry = keyed_number(e) + 1 };
	e->waiting = (uint32_t)(w - h->waiting) + 1;
}

void trace_heads_child(struct trace_heads *h, uint32_t source, uint64_t token,
		       struct trace_at at, uint64_t start_ns, uint64_t stop_ns)
{
	struct heads_entry *e;

	if (!token)
		return;
	e = heads_find_or_add(h, source, token);
	if (!e->head.first_ns || start_ns < e->head.first_ns)
		e->head.first_ns = start_ns;
	if (stop_ns > e->head.last_ns)
		e->head.last_ns = stop_ns;
	if (e->drawn)
		heads_draw(h, e, at, start_ns);
	else
		heads_wait_for(h, e, at, start_ns);
}

bool trace_heads_extent(struct trace_heads *h, uint32_t source, uint64_t token,
			uint64_t *first_ns, uint64_t *last_ns)
{
	const struct heads_entry *e = heads_find(h, source, token);

	if (!e || !e->head.first_ns)
		return false;
	*first_ns = e->head.first_ns;
	*last_ns = e->head.last_ns;
	return true;
}
