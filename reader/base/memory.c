/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon that is killed for its memory has lost everything, so it counts instead of
 * asking the kernel: that tells too late, and on many cores not exactly.
 */
#include "reader/base/memory.h"

static uint64_t *memory_of_user(struct memory *memory, uid_t account)
{
	return &memory->of_user[account % ACCOUNTS_TALLY];
}

void memory_init(struct memory *memory, uint64_t daemon_bytes)
{
	*memory = (struct memory){ .most = (daemon_bytes ?: MEMORY_DEFAULT) - MEMORY_OWN };
}

/* All that there may be, in eighths; the user's part is three quarters of that. */
static bool memory_fits(struct memory *memory, uid_t account, uint64_t bytes, unsigned eighths)
{
	uint64_t most = memory->most / 8 * eighths;

	return memory->taken <= most && bytes <= most - memory->taken &&
	       *memory_of_user(memory, account) <= most / 4 * 3 &&
	       bytes <= most / 4 * 3 - *memory_of_user(memory, account);
}

bool memory_has(struct memory *memory, uid_t account, uint64_t bytes)
{
	return !memory || memory_fits(memory, account, bytes, 8);
}

void memory_add(struct memory *memory, uid_t account, uint64_t bytes)
{
	if (!memory)
		return;
	memory->taken += bytes;
	*memory_of_user(memory, account) += bytes;
}

bool memory_take(struct memory *memory, uid_t account, uint64_t bytes)
{
	if (!memory)
		return true;
	if (!memory_fits(memory, account, bytes, 7)) {
		memory->tight = true;
		memory->tight_account = account;
	}
	if (!memory_fits(memory, account, bytes, 8)) {
		memory->refused++;
		return false;
	}
	memory_add(memory, account, bytes);
	return true;
}

void memory_give(struct memory *memory, uid_t account, uint64_t bytes)
{
	if (!memory)
		return;
	memory->taken -= bytes;
	*memory_of_user(memory, account) -= bytes;
}
