/* SPDX-License-Identifier: Apache-2.0 */
/* One form for who it is, in all sentences: numbers that can be typed into the next command. */
#include "judge/whom.h"

#include <inttypes.h>
#include <stdbool.h>

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

static bool whom_has_other_number(const struct whom *w)
{
	return w->world_rank != UNKNOWN_I32 && w->world_rank != w->rank;
}

/* The gap before a word in the parentheses. */
static const char *whom_gap(bool *open)
{
	bool first = !*open;

	*open = true;
	return first ? " (" : ", ";
}

static void whom_add_text(struct phrase *text, bool *open, const char *before, const char *what)
{
	if (what && *what)
		phrase_add(text, "%s%s%s", whom_gap(open), before, what);
}

void whom_add(struct phrase *text, const struct whom *w)
{
	bool open = false;

	if (whom_has_other_number(w))
		phrase_add(text, "%sglobal rank %" PRId32, whom_gap(&open), w->world_rank);
	if (w->pid)
		phrase_add(text, "%spid %" PRId32, whom_gap(&open), w->pid);
	whom_add_text(text, &open, "", w->command);
	whom_add_text(text, &open, "", w->host);
	whom_add_text(text, &open, "GPU ", w->pci_bus_id);
	if (open)
		phrase_add(text, ")");
}

void whom_add_several(struct phrase *text, const struct whom *w, uint32_t n)
{
	int32_t world[NAMED], pids[NAMED];
	uint32_t nworld = 0, npids = 0;
	bool open = false, other = false;

	for (uint32_t i = 0; i < n && i < NAMED; i++) {
		other = other || whom_has_other_number(&w[i]);
		if (w[i].world_rank != UNKNOWN_I32)
			*array_must_add(world, &nworld) = w[i].world_rank;
		if (w[i].pid)
			*array_must_add(pids, &npids) = w[i].pid;
	}
	if (other) {
		phrase_add(text, "%sglobal ranks ", whom_gap(&open));
		phrase_add_list(text, world, nworld);
	}
	if (npids) {
		phrase_add(text, "%spids ", whom_gap(&open));
		phrase_add_list(text, pids, npids);
	}
	if (open)
		phrase_add(text, ")");
}
