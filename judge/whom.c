/* SPDX-License-Identifier: Apache-2.0 */
/* One form for who it is, in all sentences: numbers that can be typed into the next command. */
#include "judge/whom.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "util/list.h"
#include "util/unknown.h"

#define NAMED	32	/* ranks whose numbers a sentence has */

void whom_add_comm(struct phrase *text, const char *name, uint64_t comm_id)
{
	if (name && *name)
		phrase_add(text, "%s", name);
	else if (comm_id)
		phrase_add(text, "communicator 0x%016" PRIx64, comm_id);
	else
		phrase_add(text, "its communicator");
}

/* The text in the parentheses. */
struct whom_text {
	struct phrase *text;
	const char *gap;	/* before the next word */
	bool world;		/* numbers in the job are told */
};

static void whom_add_text(struct whom_text *t, const char *before, const char *what)
{
	if (!what || !*what)
		return;
	phrase_add(t->text, "%s%s%s", t->gap, before, what);
	t->gap = ", ";
}

/* "pid 4711", "pids 4711,4713" */
static void whom_add_numbers(struct whom_text *t, const char *name, const int32_t *numbers,
			     uint32_t n)
{
	if (!n)
		return;
	phrase_add(t->text, "%s%s%s", t->gap, name, n > 1 ? "s " : " ");
	phrase_add_list(t->text, numbers, n);
	t->gap = ", ";
}

static bool whom_has_gpu(const struct whom *w)
{
	return w->pci_bus_id && *w->pci_bus_id && w->gpu_index != UNKNOWN_I32;
}

/* Ranks of one node. */
static void whom_add_node(struct whom_text *t, const struct whom *w, uint32_t n)
{
	int32_t world[NAMED], pids[NAMED], gpus[NAMED];
	uint32_t nworld = 0, npids = 0, ngpus = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (t->world && w[i].world_rank != UNKNOWN_I32)
			*array_must_add(world, &nworld) = w[i].world_rank;
		if (w[i].pid)
			*array_must_add(pids, &npids) = w[i].pid;
		if (whom_has_gpu(&w[i]))
			*array_must_add(gpus, &ngpus) = w[i].gpu_index;
	}
	whom_add_numbers(t, "global rank", world, nworld);
	whom_add_numbers(t, "pid", pids, npids);
	whom_add_text(t, "", n == 1 ? w->command : NULL);
	whom_add_text(t, "", w->host);
	whom_add_numbers(t, "GPU", gpus, ngpus);
	if (n == 1 && !ngpus)
		whom_add_text(t, "GPU ", w->pci_bus_id);
}

static bool whom_share_host(const struct whom *a, const struct whom *b)
{
	return a->host && b->host ? !strcmp(a->host, b->host) : a->host == b->host;
}

void whom_add_several(struct phrase *text, const struct whom *w, uint32_t n)
{
	struct whom_text t = { .text = text, .gap = " (" };
	uint32_t first = 0;

	n = n < NAMED ? n : NAMED;
	for (uint32_t i = 0; i < n; i++)
		t.world |= w[i].world_rank != UNKNOWN_I32 && w[i].world_rank != w[i].rank;
	for (uint32_t i = 1; i <= n; i++) {
		if (i < n && whom_share_host(&w[first], &w[i]))
			continue;
		whom_add_node(&t, &w[first], i - first);
		t.gap = i < n && t.gap[0] == ',' ? "; " : t.gap;
		first = i;
	}
	if (t.gap[0] != ' ')
		phrase_add(text, ")");
}

void whom_add(struct phrase *text, const struct whom *w)
{
	whom_add_several(text, w, 1);
}

void whom_add_taker(struct phrase *text, const struct whom *w, int32_t taker,
		    const char *command)
{
	if (taker == w->pid)
		phrase_add(text, "other threads of its process (%s)", command);
	else
		phrase_add(text, "pid %" PRId32 " (%s)", taker, command);
}
