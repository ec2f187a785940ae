/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHAIN_HANDLES_H
#define CHAIN_HANDLES_H

/*
 * The handles that two plugins gave for one event or communicator, by the one that NCCL was
 * given.  No call waits for another thread, and all may be made by any thread at any time.
 * NCCL never says that a handle is forgotten: children may name a parent long after it ended.
 * So the oldest of a set makes room, one that has ended first; those that had not are counted.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HANDLES_WAYS	4

struct handle_pair {
	uint64_t ours, others;
	bool flag;		/* the caller's */
};

struct handle_entry {
	_Atomic uint64_t key;	/* 0: empty; 1: being written */
	_Atomic uint64_t ours, others;
	_Atomic uint32_t age;
	_Atomic uint8_t flag, ended;
};

/* Zeroed: empty. */
struct handles {
	struct handle_entry (*set)[HANDLES_WAYS];
	uint32_t nsets;		/* a power of two */
	bool keeps;		/* nothing makes room */
	_Atomic uint32_t age;
	_Atomic uint64_t forgotten;	/* made room before they had ended, or found none */
};

/* `key` is above 1 and not in there.  False: no room, or other threads write to the whole set. */
bool handles_add(struct handles *h, uint64_t key, const struct handle_pair *pair);

/* False, and *pair is zeroed: it is not there, or no more. */
bool handles_find(const struct handles *h, uint64_t key, struct handle_pair *pair);

/* It has ended, and may be asked for still. */
void handles_end(struct handles *h, uint64_t key);

void handles_remove(struct handles *h, uint64_t key);

#endif
