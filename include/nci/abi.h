/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCI_ABI_H
#define NCI_ABI_H

/*
 * The contract between the plugin, which writes a segment, and everyone who
 * reads one.  This folder holds layouts and constants only; nci-abi(7) tells
 * the same story for people who write other readers.
 *
 * Rules for changing anything here:
 *
 *  1. Fields never move and never change meaning.  A new field takes the place
 *     of `zero` bytes; a reader treats 0 there as "not known".
 *  2. Event ids, state ids and flag bits are for ever.  A new event is a line
 *     in events.h.  A reader skips a type it does not know, and counts it.
 *  3. Additions that old readers survive raise NCI_ABI_MINOR.  Anything else
 *     raises NCI_ABI_MAJOR, and a reader leaves a foreign major alone.
 *  4. Offsets of the tables, their numbers of entries and the size of each entry
 *     stand in the header: a reader uses those, not its own idea of them, after
 *     checking them against the file's size.  A longer entry begins with the one
 *     described here.
 *  5. Only fixed-width integers in natural alignment and explicit zero padding:
 *     no bool, enum, long, bit-field, pointer or packed struct.
 *  6. Byte order is the machine's: a segment never leaves its machine.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * C++ spells these words otherwise, or has them as templates: there, integers that
 * change are plain ones of the same size and place, to be read with __atomic_load_n().
 */
#ifdef __cplusplus
#include <atomic>
#define NCI_ATOMIC(type)	type
#define NCI_ALIGNED(bytes)	alignas(bytes)
#define NCI_ASSERT(what, text)	static_assert(what, text)
#else
#include <stdatomic.h>
#define NCI_ATOMIC(type)	_Atomic(type)
#define NCI_ALIGNED(bytes)	_Alignas(bytes)
#define NCI_ASSERT(what, text)	_Static_assert(what, text)
#endif

#define NCI_MAGIC	UINT64_C(0x0a70736e696c6363)	/* bytes "cclinsp\n" on little-endian */
#define NCI_ABI_MAJOR	2
#define NCI_ABI_MINOR	1

/* All cursors count lines: one cache line, the unit of every record. */
#define NCI_LINE_BYTES	64

NCI_ASSERT(ATOMIC_LLONG_LOCK_FREE == 2, "a lock would not cross processes");
NCI_ASSERT(ATOMIC_INT_LOCK_FREE == 2, "a lock would not cross processes");
NCI_ASSERT(sizeof(void *) == 8, "tokens are handed out as pointers");

#endif
