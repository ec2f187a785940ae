/* SPDX-License-Identifier: Apache-2.0 */
/* One form for who it is, in all sentences: numbers that can be typed into the next command. */
#include "judge/whom.h"

#include <inttypes.h>

#include "util/unknown.h"

void whom_add(struct phrase *text, const struct whom *w)
{
	const char *gap = " (";

	if (w->world_rank != UNKNOWN_I32 && w->world_rank != w->rank) {
		phrase_add(text, "%sglobal rank %" PRId32, gap, w->world_rank);
		gap = ", ";
	}
	if (w->pid) {
		phrase_add(text, "%spid %" PRId32, gap, w->pid);
		gap = ", ";
	}
	if (w->host) {
		phrase_add(text, "%s%s", gap, w->host);
		gap = ", ";
	}
	if (w->pci_bus_id && *w->pci_bus_id) {
		phrase_add(text, "%sGPU %s", gap, w->pci_bus_id);
		gap = ", ";
	}
	if (gap[0] == ',')
		phrase_add(text, ")");
}
