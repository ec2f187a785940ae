/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operations and calls by token, of fixed size: the oldest entry makes room. */
#include "cli/trace/trace_heads.h"

#include <stdlib.h>

#include "cli/base/must.h"

#define BUCKETS 8192

/* A place that is used again, the oldest first. */
struct heads_entry {
	uint64_t token;
	uint32_t source;
	bool used;
	bool drawn;		/* `head` is its slice; false: only children have come */
	uint32_t next;		/* the next of its bucket, plus one */
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
	uint32_t bucket[BUCKETS];	/* plus one */
	uint32_t turn, waiting_turn;
	struct heads_entry entry[TRACE_HEADS];
	struct waiting waiting[TRACE_WAITING];
};

struct trace_heads *trace_heads_new(struct trace_writer *w)
{
	struct trace_heads *h = must(calloc(1, sizeof(*h)));

	h->w = w;
	return h;
}

void trace_heads_free(struct trace_heads *h)
{
	free(h);
}

static uint32_t *heads_bucket(struct trace_heads *h, uint32_t source, uint64_t token)
{
	uint64_t hash = (token ^ (uint64_t)source << 48) * UINT64_C(0x9e3779b97f4a7c15);

	return &h->bucket[(hash >> 32) % BUCKETS];
}

static struct heads_entry *heads_find(struct trace_heads *h, uint32_t source, uint64_t token)
{
	for (uint32_t next = *heads_bucket(h, source, token); next; next = h->entry[next - 1].next)
		if (h->entry[next - 1].token == token && h->entry[next - 1].source == source)
			return &h->entry[next - 1];
	return NULL;
}

static void heads_drop_waiting(struct trace_heads *h, struct heads_entry *e)
{
	for (uint32_t next = e->waiting; next; next = h->waiting[next - 1].next)
		h->waiting[next - 1].entry = 0;
	e->waiting = 0;
}

static void heads_unlink(struct trace_heads *h, struct heads_entry *e)
{
	uint32_t *link = heads_bucket(h, e->source, e->token);
	uint32_t self = (uint32_t)(e - h->entry) + 1;

	while (*link != self)
		link = &h->entry[*link - 1].next;
	*link = e->next;
}

static struct heads_entry *heads_find_or_add(struct trace_heads *h, uint32_t source, uint64_t token)
{
	struct heads_entry *e = heads_find(h, source, token);
	uint32_t *bucket;

	if (e)
		return e;
	e = &h->entry[h->turn++ % TRACE_HEADS];
	if (e->used) {
		heads_drop_waiting(h, e);
		heads_unlink(h, e);
	}
	bucket = heads_bucket(h, source, token);
	*e = (struct heads_entry){ .token = token, .source = source, .used = true,
				   .next = *bucket };
	*bucket = (uint32_t)(e - h->entry) + 1;
	return e;
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
	heads_drop_waiting(h, e);
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
		heads_drop_waiting(h, &h->entry[w->entry - 1]);
	*w = (struct waiting){ .at = at, .start_ns = start_ns, .next = e->waiting,
			       .entry = (uint32_t)(e - h->entry) + 1 };
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
