/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHAIN_HANDLES_H
#define CHAIN_HANDLES_H

/*
 * The handles that two plugins gave for one event or communicator, by the one that NCCL was
 * given.  No call waits for another thread, and all may be made by any thread at any time.
 * NCCL never says that a handle is forgotten: children may name a parent long after it ended.
 * So the oldest of a set makes room, and what is not found any more is the caller's to count.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HANDLES_WAYS	4

struct handle_pair {
	uint64_t ours, others;
	bool leaf;		/* nothing names it once it has ended */
};

struct handle_entry {
	_Atomic uint64_t key;	/* 0: empty; 1: being written */
	_Atomic uint64_t ours, others;
	_Atomic uint32_t age;
	_Atomic uint32_t leaf;
};

/* Zeroed: empty. */
struct handles {
	struct handle_entry (*set)[HANDLES_WAYS];
	uint32_t nsets;		/* a power of two */
	_Atomic uint32_t age;
};

/* `key` is above 1 and not in there.  False: other threads are writing to the whole set. */
bool handles_add(struct handles *h, uint64_t key, const struct handle_pair *pair);

/* False, and *pair is zeroed: it is not there, or no more. */
bool handles_find(const struct handles *h, uint64_t key, struct handle_pair *pair);

void handles_remove(struct handles *h, uint64_t key);

#endif
