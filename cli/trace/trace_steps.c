/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that wait for their ProxyOp: a pool of fixed size, found by token and by age. */
#include "cli/trace/trace_steps.h"

#include <stdbool.h>
#include <stdlib.h>

#include "cli/base/must.h"

#define BUCKETS 8192

/* One ProxyOp's; in its bucket's list, and in that of all by age. */
struct bundle {
	uint64_t token;
	uint32_t source;
	uint32_t first;		/* step, plus one */
	uint32_t n;
	struct bundle *next;	/* the next of its bucket */
	struct bundle *newer, *older;
};

struct step {
	struct nci_record rec;
	uint32_t next;		/* plus one */
};

struct trace_steps {
	struct bundle *bucket[BUCKETS];
	struct bundle *oldest, *newest;
	struct step *step;
	uint32_t unused;	/* plus one */
	uint32_t fresh;		/* never used from here on */
	struct nci_record *taken;
	size_t room;
};

struct trace_steps *trace_steps_new(void)
{
	struct trace_steps *s = must(calloc(1, sizeof(*s)));

	s->step = must(malloc(TRACE_STEPS * sizeof(*s->step)));
	return s;
}

void trace_steps_free(struct trace_steps *s)
{
	struct bundle *b = s ? s->oldest : NULL;

	while (b) {
		struct bundle *newer = b->newer;

		free(b);
		b = newer;
	}
	if (s) {
		free(s->step);
		free(s->taken);
	}
	free(s);
}

static struct bundle **bundle_find(struct trace_steps *s, uint32_t source, uint64_t token)
{
	uint64_t hash = (token ^ (uint64_t)source << 48) * UINT64_C(0x9e3779b97f4a7c15);
	struct bundle **at = &s->bucket[(hash >> 32) % BUCKETS];

	while (*at && ((*at)->token != token || (*at)->source != source))
		at = &(*at)->next;
	return at;
}

static struct bundle *bundle_add(struct trace_steps *s, struct bundle **at, uint32_t source,
				 uint64_t token)
{
	struct bundle *b = must(malloc(sizeof(*b)));

	*b = (struct bundle){ .token = token, .source = source, .older = s->newest };
	*(s->newest ? &s->newest->newer : &s->oldest) = b;
	s->newest = b;
	*at = b;
	return b;
}

bool trace_steps_is_full(const struct trace_steps *s)
{
	return !s->unused && s->fresh == TRACE_STEPS;
}

void trace_steps_add(struct trace_steps *s, uint32_t source, const struct nci_record *rec)
{
	struct bundle **at = bundle_find(s, source, rec->parent);
	struct bundle *b = *at ? *at : bundle_add(s, at, source, rec->parent);
	uint32_t i = s->unused ? s->unused - 1 : s->fresh++;

	if (s->unused)
		s->unused = s->step[i].next;
	s->step[i].rec = *rec;
	s->step[i].next = b->first;
	b->first = i + 1;
	b->n++;
}

static int steps_by_start(const void *a, const void *b)
{
	const struct nci_record *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->stop > y->stop) - (x->stop < y->stop);
}

static void bundle_drop(struct trace_steps *s, struct bundle **at)
{
	struct bundle *b = *at;

	*at = b->next;
	*(b->newer ? &b->newer->older : &s->newest) = b->older;
	*(b->older ? &b->older->newer : &s->oldest) = b->newer;
	free(b);
}

size_t trace_steps_take(struct trace_steps *s, uint32_t source, uint64_t token,
			const struct nci_record **out)
{
	struct bundle **at = bundle_find(s, source, token);
	size_t n = 0;

	if (!*at)
		return 0;
	if (s->room < (*at)->n) {
		s->room = (*at)->n;
		s->taken = must(realloc(s->taken, s->room * sizeof(*s->taken)));
	}
	for (uint32_t next = (*at)->first; next;) {
		struct step *step = &s->step[next - 1];
		uint32_t after = step->next;

		s->taken[n++] = step->rec;
		step->next = s->unused;
		s->unused = next;
		next = after;
	}
	bundle_drop(s, at);
	qsort(s->taken, n, sizeof(*s->taken), steps_by_start);
	*out = s->taken;
	return n;
}

size_t trace_steps_take_oldest(struct trace_steps *s, uint32_t *source, uint64_t *token,
			       const struct nci_record **out)
{
	if (!s->oldest)
		return 0;
	*source = s->oldest->source;
	*token = s->oldest->token;
	return trace_steps_take(s, *source, *token, out);
}
