/* SPDX-License-Identifier: Apache-2.0 */
/* The end of each poll, in which records alone do not tell whether an operation is over. */
#include "reader/follow.h"

void follow_settle(struct drain *drain, struct reconstruct *rc, struct process *const *list,
		   size_t n, uint64_t now_ns)
{
	for (size_t i = 0; i < n; i++) {
		const struct live_slot *slots;
		int count;

		if (list[i]->state != PROCESS_LIVE ||
		    !reconstruct_wants_slots(rc, list[i], now_ns))
			continue;
		count = drain_slots(drain, list[i], &slots);
		if (count >= 0)
			reconstruct_settle(rc, list[i], slots, (size_t)count, now_ns);
	}
	reconstruct_flush(rc, now_ns);
}
