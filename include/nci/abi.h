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
 *  4. Offsets and sizes of the tables stand in the header: a reader uses those,
 *     not its own idea of them, after checking them against the file's size.
 *  5. Only fixed-width integers in natural alignment and explicit zero padding:
 *     no bool, enum, long, bit-field, pointer or packed struct.
 *  6. Byte order is the machine's: a segment never leaves its machine.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * For C++, which spells these words otherwise or has them as templates: plain integers of
 * the same size and place.  Read what changes with __atomic_load_n().
 */
#ifdef __cplusplus
#include <atomic>
#define _Atomic
#define _Alignas	alignas
#define _Static_assert	static_assert
#else
#include <stdatomic.h>
#endif

#define NCI_MAGIC	UINT64_C(0x0a70736e696c6363)	/* bytes "cclinsp\n" on little-endian */
#define NCI_ABI_MAJOR	1
#define NCI_ABI_MINOR	3

/* All cursors count lines: one cache line, the unit of every record. */
#define NCI_LINE_BYTES	64

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "a lock would not cross processes");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a lock would not cross processes");
_Static_assert(sizeof(void *) == 8, "tokens are handed out as pointers");

#endif
