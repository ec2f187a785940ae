/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_BASE_MEMORY_H
#define READER_BASE_MEMORY_H

/*
 * The account of what jobs can have the daemon keep, and its ceiling.  Whoever makes
 * something for a process takes its bytes here first.
 *
 * Nobody may take more than all of it, and no user more than three quarters.  Before that
 * is reached it is tight: what can be spared is given up, the oldest first.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "reader/base/accounts.h"

#define MEMORY_DEFAULT	(UINT64_C(256) << 20)
#define MEMORY_OWN	(UINT64_C(160) << 20)	/* tables that all jobs share, when full; answers */
#define MEMORY_LEAST	(MEMORY_OWN + (UINT64_C(16) << 20))

struct memory {
	uint64_t most, taken;
	uint64_t of_user[ACCOUNTS_TALLY];	/* part by account modulo: a collision shares it */
	bool tight;			/* one account is short of room; giving up clears it */
	uid_t tight_account;
	uint64_t refused;		/* things that there was no room for */
	uint64_t forgotten;		/* ended processes, to make room */
};

/* A ceiling for the whole daemon; 0: MEMORY_DEFAULT. */
void memory_init(struct memory *memory, uint64_t daemon_bytes);

/* False: refused, and counted; memory_has() only asks.  A memory that is NULL has no end. */
bool memory_take(struct memory *memory, uid_t account, uint64_t bytes);
bool memory_has(struct memory *memory, uid_t account, uint64_t bytes);

/* It is tight, for this account or for one that shares its part. */
static inline bool memory_is_tight_for(const struct memory *memory, uid_t account)
{
	return memory && memory->tight && accounts_are_same(account, memory->tight_account);
}

/* Counts bytes that are there already, refusing none; memory_give() takes them off. */
void memory_add(struct memory *memory, uid_t account, uint64_t bytes);
void memory_give(struct memory *memory, uid_t account, uint64_t bytes);

#endif
