/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/find/ended.h"

#define COMMS 16	/* of who died, that are looked for */

static bool is_open(const struct comm *comm)
{
	return comm->ready && comm->has_id && !comm->finalize_ticks;
}

static bool is_in(const struct process *p, const struct comm *comm)
{
	for (uint32_t i = 0; i < p->ncomms; i++)
		if (is_open(&p->comms[i]) && p->comms[i].id == comm->id &&
		    p->comms[i].nranks == comm->nranks)
			return true;
	return false;
}

static bool lives_another(struct process *const *all, uint32_t n, uid_t uid,
			  const struct comm *comm)
{
	for (uint32_t i = 0; i < n; i++)
		if (all[i]->state == PROCESS_LIVE && all[i]->uid == uid && is_in(all[i], comm))
			return true;
	return false;
}

bool ended_is_awaited(struct process *const *all, uint32_t n, const struct process *dead)
{
	uint32_t looked = 0;

	for (uint32_t k = 0; k < dead->ncomms && looked < COMMS; k++) {
		if (!is_open(&dead->comms[k]))
			continue;
		looked++;
		if (lives_another(all, n, dead->uid, &dead->comms[k]))
			return true;
	}
	return false;
}

static uint32_t count(struct process *const *all, uint32_t n, uid_t account)
{
	uint32_t ended = 0;

	for (uint32_t i = 0; i < n; i++)
		ended += all[i]->state != PROCESS_LIVE && all[i]->account == account;
	return ended;
}

uint32_t ended_first(struct process *const *all, uint32_t n, uint32_t most)
{
	uint32_t first = UINT32_MAX;

	for (uint32_t i = 0; i < n; i++) {
		if (all[i]->state == PROCESS_LIVE)
			continue;
		if (count(all, n, all[i]->account) > most / 2)
			return i;
		first = first < i ? first : i;
	}
	return first;
}
