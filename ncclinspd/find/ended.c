/* SPDX-License-Identifier: Apache-2.0 */
/* A dead process is kept for those that hang because of it; other dead ones make room. */
#include "ncclinspd/find/ended.h"

#define COMMS 16	/* communicators of a dead process, that are looked for */

static bool comm_is_open(const struct comm *comm)
{
	return comm->ready && comm->has_id && !comm->finalize_ticks;
}

static bool process_is_in(const struct process *p, const struct comm *comm)
{
	for (uint32_t i = 0; i < p->ncomms; i++)
		if (comm_is_open(&p->comms[i]) && p->comms[i].id == comm->id &&
		    p->comms[i].nranks == comm->nranks)
			return true;
	return false;
}

static bool comm_lives_elsewhere(struct process *const *all, uint32_t n, uid_t uid,
				 const struct comm *comm)
{
	for (uint32_t i = 0; i < n; i++)
		if (all[i]->state == PROCESS_LIVE && all[i]->uid == uid &&
		    process_is_in(all[i], comm))
			return true;
	return false;
}

bool ended_is_awaited(struct process *const *all, uint32_t n, const struct process *dead)
{
	uint32_t looked = 0;

	for (uint32_t k = 0; k < dead->ncomms && looked < COMMS; k++) {
		if (!comm_is_open(&dead->comms[k]))
			continue;
		looked++;
		if (comm_lives_elsewhere(all, n, dead->uid, &dead->comms[k]))
			return true;
	}
	return false;
}

static uint32_t account_count(struct process *const *all, uint32_t n, uid_t account)
{
	uint32_t ended = 0;

	for (uint32_t i = 0; i < n; i++)
		ended += all[i]->state != PROCESS_LIVE && all[i]->account == account;
	return ended;
}

/*
 * The only user that can have more than half of those that ended, if there is one: each
 * process of another user cancels one of theirs, and some are left.
 */
static uid_t account_majority(struct process *const *all, uint32_t n)
{
	uint32_t votes = 0;
	uid_t account = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (all[i]->state == PROCESS_LIVE)
			continue;
		if (!votes)
			account = all[i]->account;
		if (all[i]->account == account)
			votes++;
		else
			votes--;
	}
	return account;
}

uint32_t ended_first(struct process *const *all, uint32_t n, uint32_t most)
{
	uid_t account = account_majority(all, n);
	bool greedy = account_count(all, n, account) > most / 2;

	for (uint32_t i = 0; i < n; i++)
		if (all[i]->state != PROCESS_LIVE && (!greedy || all[i]->account == account))
			return i;
	return UINT32_MAX;
}
