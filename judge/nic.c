/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces that fail.  One that never was up is not in use, and none of our business. */
#include "judge/nic.h"

#include <inttypes.h>

const struct nic_count nic_counts[NIC_COUNT] = {
#define X(rdma, directory, name, least) { rdma, directory, name, least },
	NIC_COUNTS(X)
#undef X
};

/* The first that is worth a word, as they stand in NIC_COUNTS; NIC_COUNT: none. */
static uint32_t counted(const struct nic_health *nic)
{
	uint32_t i = 0;

	while (i < NIC_COUNT && (nic->lately[i] == UNKNOWN_U64 ||
				 nic->lately[i] < nic_counts[i].least))
		i++;
	return i;
}

static enum nic_fault fault_of(const struct nic_health *nic)
{
	if (nic->down_ns)
		return NIC_DOWN;
	if (!nic->up)
		return NIC_WELL;
	if (nic->rate_mbps != UNKNOWN_U64 && nic->rate_mbps < nic->most_mbps)
		return NIC_SLOWER;
	return counted(nic) < NIC_COUNT ? NIC_COUNTS_ERRORS : NIC_WELL;
}

bool nic_find_cause(const struct nic_health *all, uint32_t n, struct nic_cause *cause)
{
	*cause = (struct nic_cause){ .fault = NIC_WELL };
	for (uint32_t i = 0; i < n; i++) {
		enum nic_fault fault = fault_of(&all[i]);

		if (fault <= cause->fault)
			continue;
		*cause = (struct nic_cause){ .nic = all[i], .fault = fault,
					     .count = counted(&all[i]) };
	}
	return cause->fault != NIC_WELL;
}

void nic_say_cause(struct phrase *text, const struct nic_cause *cause)
{
	const struct nic_health *nic = &cause->nic;

	phrase_add(text, "%s", nic->name);
	if (cause->fault == NIC_DOWN)
		phrase_add(text, " is down%s%s", *cause->since ? " since " : "", cause->since);
	else if (cause->fault == NIC_SLOWER)
		phrase_add(text, " runs at %g of %g Gb/s", (double)nic->rate_mbps / 1000,
			   (double)nic->most_mbps / 1000);
	else
		phrase_add(text, " counted %" PRIu64 " %s in the last minute",
			   nic->lately[cause->count], nic_counts[cause->count].name);
}

name_t nic_fault_text(enum nic_fault fault)
{
	static const name_t texts[] = { NULL, "errors", "slower", "down" };

	return texts[fault];
}
