/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCI_LANE_H
#define NCI_LANE_H

/*
 * A lane belongs to one producing thread at a time: a handle pool and a ring.
 *
 * The lane's line in the directory.  Only its thread writes it (stale and
 * reclaimed too: they count what that thread met); readers are other processes.
 * Both cursors count 64-byte lines since the lane was made.
 *
 * Line i of the ring is at offset + (i mod lines) * 64; slot i of the pool at
 * offset + lines * 64 + i * 128.
 *
 * Invariant: end <= begin <= end + 2 (the longest record has two lines).
 *
 *     producer                     reader
 *     store begin       (W1)       acquire end       (R1)
 *     release fence     (W2)       copy the lines
 *     fill the lines               acquire fence     (R2)
 *     release end       (W3)       load begin        (R3)
 *
 * W3 -> R1: who sees the new end sees the whole record.
 * W2 -> R2: who copied a byte of an overwriting record sees its begin at R3;
 *           hence lines before begin - lines are torn, dropped and counted as lost.
 *
 * Records carry a serial number, so that a reader that was lapped knows how many
 * records it missed, not only how many lines.
 *
 * A writer killed between W1 and W3 leaves begin > end: those lines stay torn
 * for ever, and the lane is never written again.
 *
 * A pool slot is two lines that hold the record which its event is going to
 * become (record.h); its token says whether it is live.
 *
 *     producer, start              producer, stop                reader
 *     (token has the free bit)     copy the slot to the ring     load token       (R4)
 *     release fence     (W4)       release token | free  (W6)    copy the slot
 *     fill the slot                release fence         (W7)    acquire fence
 *     release token     (W5)       note the next empty slot      load token again (R5)
 *                                  in the parent's place
 *
 * The copy is whole if R4 and R5 give the same token without the free bit.
 * Fields that states change (serial, stop, spans, bytes) are then each valid,
 * though not all of the same moment.
 */

#include "nci/abi.h"
#include "nci/record.h"
#include "nci/token.h"

#define NCI_MAX_LANES		128	/* fits NCI_TOKEN_LANE_BITS */
#define NCI_RECORD_MAX_LINES	2
#define NCI_SLOT_BYTES		(NCI_RECORD_MAX_LINES * NCI_LINE_BYTES)

#define NCI_LANE_UNUSED		0	/* never made: the rest of the line means nothing */
#define NCI_LANE_MAKING		1
#define NCI_LANE_READY		2
#define NCI_LANE_REFUSED	3	/* no space was left for it; it is tried again: MAKING */
#define NCI_LANE_SPARE		4	/* made ahead, nobody's yet; then MAKING, READY */

struct nci_lane {
	NCI_ALIGNED(NCI_LINE_BYTES)
	NCI_ATOMIC(uint64_t) begin;	/* lines whose writing has begun */
	NCI_ATOMIC(uint64_t) end;	/* lines that are complete */
	uint64_t offset;		/* place of the ring in the file; the pool follows it */
	NCI_ATOMIC(uint64_t) pool_full;	/* starts refused because no slot was free */
	NCI_ATOMIC(uint64_t) stale;	/* handles refused: stopped before, or never ours */
	NCI_ATOMIC(uint32_t) tid;	/* id of the owner, in its pid namespace; 0: it changes */
	NCI_ATOMIC(uint32_t) state;	/* NCI_LANE_*; stored last, with release */
	uint32_t lines;			/* capacity of the ring, a power of two */
	uint32_t slots;			/* capacity of the pool, a power of two */
	NCI_ATOMIC(uint32_t) reclaimed;	/* events pushed out of their slot unstopped */
	NCI_ATOMIC(uint32_t) owners;	/* threads that have owned the lane so far */
};
NCI_ASSERT(sizeof(struct nci_lane) == NCI_LINE_BYTES, "ABI: one lane, one cache line");
NCI_ASSERT(offsetof(struct nci_lane, end) == 8, "ABI: end moved");
NCI_ASSERT(offsetof(struct nci_lane, offset) == 16, "ABI: offset moved");
NCI_ASSERT(offsetof(struct nci_lane, state) == 44, "ABI: state moved");
NCI_ASSERT(NCI_MAX_LANES <= 1 << NCI_TOKEN_LANE_BITS, "ABI: a lane does not fit a token");

struct nci_slot {
	struct nci_line line[NCI_RECORD_MAX_LINES];
};
NCI_ASSERT(sizeof(struct nci_slot) == NCI_SLOT_BYTES, "ABI: one slot, two lines");

#endif
