/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_INTERN_H
#define PLUGIN_INTERN_H

/*
 * NCCL's names -> ids in the segment's string table.  A name is known by its
 * pointer after the first sight, since NCCL passes literals.
 */

#include "shmring/producer.h"

#define INTERN_PLACES	256	/* a power of two */
#define INTERN_PROBES	4
#define INTERN_TAGS	512	/* a power of two, more than twice the names that tags may have */
#define INTERN_KEPT	64	/* names that tags leave to NCCL */

/* Zeroed storage is an empty cache.  Each entry: pointer << 16 | id; 0: empty. */
struct intern {
	_Atomic uint64_t place[INTERN_PLACES];
	_Atomic uint64_t tag[INTERN_TAGS];	/* tags whose names are in the table */
};

/* Forget all pointers: libnccl may have been mapped anew, with other names there. */
void intern_reset(struct intern *in);

/* A new segment: publish the names that NCCL is known to use, so that no callback has to. */
void intern_begin(struct intern *in, struct shmring *ring);

/* First sight: compares, and publishes what is new.  0: the table is full. */
uint16_t intern_slowly(struct intern *in, struct shmring *ring, const char *name);

/*
 * The tag of a name, which is in the table then, cut to fit.  0: it is empty, or there is no
 * room for it, which NCI_LIVE_TAGS_FULL tells.  Without a ring the name is in no table yet.
 * The text is looked at each time: it may be temporary.
 */
uint64_t intern_tag(struct intern *in, struct shmring *ring, const char *name);

static inline uint32_t intern_hash(const char *name)
{
	return (uint32_t)((uintptr_t)name * UINT64_C(0x9e3779b97f4a7c15) >> 40);
}

/* Any thread, no lock.  0 for NULL. */
static inline uint16_t intern_id(struct intern *in, struct shmring *ring, const char *name)
{
	uint32_t at = intern_hash(name);

	if (!name)
		return 0;
	for (uint32_t i = 0; i < INTERN_PROBES; i++) {
		uint64_t seen = atomic_load_explicit(&in->place[(at + i) % INTERN_PLACES],
						     memory_order_relaxed);

		if (seen >> 16 == (uintptr_t)name)
			return (uint16_t)seen;
	}
	return intern_slowly(in, ring, name);
}

#endif
