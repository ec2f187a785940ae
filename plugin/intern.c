/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries are added one after the other: whoever finds all entries so far ready
 * and different from its own name takes the next by compare-and-swap.  So two
 * threads never publish one name twice, and nobody ever holds a lock: one who
 * meets an entry in the making looks again a few times, then does without.
 */
#include "plugin/intern.h"

#include <string.h>

#define TRIES 64

static const char *const known[] = {
	"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "SendRecv",
	"Send", "Recv", "AlltoAll", "Scatter", "Gather", "AllGatherV", "PutSignal",
	"Signal", "WaitSignal", "Invalid",
	"ncclInt8", "ncclUint8", "ncclInt32", "ncclUint32", "ncclInt64", "ncclUint64",
	"ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3",
	"ncclFloat8e5m2", "Unknown",
	"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT",
	"LL", "LL128", "SIMPLE", "MC", "UC",
};

struct name {
	char text[sizeof(((struct nci_string *)0)->text)];
	uint32_t bytes;
};

static void name_cut(struct name *n, const char *text)
{
	n->bytes = (uint32_t)strnlen(text, sizeof(n->text));
	memcpy(n->text, text, n->bytes);
}

enum { ABSENT = 0, MAKING = -1 };

/* The id among the first n entries; ABSENT; MAKING: cannot tell yet. */
static int name_look_up(const struct nci_string *table, uint32_t n, const struct name *name)
{
	int r = ABSENT;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t bytes = atomic_load_explicit(&table[i].bytes, memory_order_acquire) &
				 ~NCI_STRING_TAG;

		if (!bytes)
			r = MAKING;
		else if (bytes - 1 == name->bytes &&
			 memcmp(table[i].text, name->text, name->bytes) == 0)
			return (int)i + 1;
	}
	return r;
}

static uint16_t name_find_or_add(struct shmring *ring, const struct name *name, uint32_t most,
				 uint32_t flag)
{
	_Atomic uint32_t *count = &ring->live->strings;

	for (int i = 0; i < TRIES; i++) {
		uint32_t n = atomic_load_explicit(count, memory_order_acquire);
		int id = name_look_up(ring->strings, n, name);

		if (id > 0)
			return (uint16_t)id;
		if (id == MAKING)
			continue;
		if (n >= most)
			break;
		if (!atomic_compare_exchange_strong_explicit(count, &n, n + 1,
							     memory_order_acq_rel,
							     memory_order_relaxed))
			continue;
		memcpy(ring->strings[n].text, name->text, name->bytes);
		atomic_store_explicit(&ring->strings[n].bytes, (name->bytes + 1) | flag,
				      memory_order_release);
		return (uint16_t)(n + 1);
	}
	return 0;
}

static void intern_remember(struct intern *in, const char *name, uint16_t id)
{
	uint32_t at = intern_hash(name);
	uint64_t entry = (uint64_t)(uintptr_t)name << 16 | id;

	for (uint32_t i = 0; i < INTERN_PROBES; i++) {
		uint64_t empty = 0;

		if (atomic_compare_exchange_strong_explicit(
				&in->place[(at + i) % INTERN_PLACES], &empty, entry,
				memory_order_relaxed, memory_order_relaxed))
			return;
	}
	atomic_store_explicit(&in->place[at % INTERN_PLACES], entry, memory_order_relaxed);
}

void intern_reset(struct intern *in)
{
	for (uint32_t i = 0; i < INTERN_PLACES; i++)
		atomic_store_explicit(&in->place[i], 0, memory_order_relaxed);
}

void intern_begin(struct intern *in, struct shmring *ring)
{
	for (uint32_t i = 0; i < INTERN_TAGS; i++)
		atomic_store_explicit(&in->tag[i], 0, memory_order_relaxed);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct name name;

		name_cut(&name, known[i]);
		name_find_or_add(ring, &name, SHMRING_STRINGS, 0);
	}
}

/* A full table is remembered too: the pointer then stands for id 0. */
uint16_t intern_slowly(struct intern *in, struct shmring *ring, const char *text)
{
	struct name name;
	uint16_t id;

	name_cut(&name, text);
	if (!name.bytes)
		return 0;
	id = name_find_or_add(ring, &name, SHMRING_STRINGS, 0);
	if (!id)
		atomic_fetch_add_explicit(&ring->live->no_string, 1, memory_order_relaxed);
	if (id || atomic_load_explicit(&ring->live->strings, memory_order_relaxed) >=
		  SHMRING_STRINGS)
		intern_remember(in, text, id);
	return id;
}

/* Looks for the tag, up to the first empty place; takes that if `add`. */
static bool intern_has_tag(struct intern *in, uint64_t tag, bool add)
{
	for (uint32_t i = 0; i < INTERN_TAGS; i++) {
		_Atomic uint64_t *place = &in->tag[(tag + i) % INTERN_TAGS];
		uint64_t seen = atomic_load_explicit(place, memory_order_relaxed);

		if (seen == tag)
			return true;
		if (seen)
			continue;
		if (!add)
			return false;
		if (atomic_compare_exchange_strong_explicit(place, &seen, tag,
							    memory_order_relaxed,
							    memory_order_relaxed) || seen == tag)
			return true;
	}
	return false;
}

uint64_t intern_tag(struct intern *in, struct shmring *ring, const char *text)
{
	const uint32_t most = SHMRING_STRINGS - INTERN_KEPT;
	struct name name;
	uint64_t tag;

	name_cut(&name, text);
	if (!name.bytes)
		return 0;
	tag = nci_tag_of_name(name.text, name.bytes);
	if (!ring || intern_has_tag(in, tag, false))
		return tag;
	/* A full table is not searched: all tags that are in it are known. */
	if (atomic_load_explicit(&ring->live->strings, memory_order_relaxed) >= most ||
	    !name_find_or_add(ring, &name, most, NCI_STRING_TAG)) {
		atomic_fetch_or_explicit(&ring->live->flags, NCI_LIVE_TAGS_FULL,
					 memory_order_relaxed);
		return 0;
	}
	intern_has_tag(in, tag, true);
	return tag;
}
