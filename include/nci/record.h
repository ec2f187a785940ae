/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCI_RECORD_H
#define NCI_RECORD_H

/*
 * The head of every record, in a ring and in a handle slot alike: a slot holds the
 * record that it is going to become.
 *
 * Fields that a record of one line lacks, of a type that has two, are zeros.
 *
 * A record of two lines goes on at offset 64, whose first byte is NCI_LINE_CONT,
 * so that a reader that was lapped finds the next head by itself.  Records never
 * wrap: a ring's last line is filled with an NCI_LINE_PAD when two are needed.
 * A pad has no serial and is not a record.
 *
 * Short times are spans: ticks since `start` in 32 bits.  0: the state was never
 * seen.  Bit 31 clear: ticks, exact.  Bit 31 set: the other 31 bits count units
 * of 2^20 ticks (0.35 ms at 3 GHz), rounded down.
 */

#include "nci/abi.h"

#define NCI_LINE_PAD		0xfe	/* first byte of a line that holds nothing */
#define NCI_LINE_CONT		0xff	/* first byte of a record's second line */

#define NCI_FORM_LINES(form)	((form) & 0x0f)
#define NCI_FORM_FOREIGN	0x10	/* another process's (PXN): so are parent and origin */
#define NCI_FORM_UNSTOPPED	0x20	/* NCCL never stopped it: closed by us, stop is when */
#define NCI_FORM_GRAPH		0x40	/* API events: posted under CUDA graph capture */
#define NCI_FORM_SEND		0x80	/* proxy events: the sending side */
#define NCI_FORM_WATCHED	0x80	/* Coll, P2p: posted with KernelCh asked for, for sure */

#define NCI_COMM_NONE		0xffff	/* the communicator found no room in the table */

#define NCI_SPAN_COARSE		UINT32_C(0x80000000)
#define NCI_SPAN_SHIFT		20

struct nci_record {
	uint8_t type;		/* NCI_EV_* */
	uint8_t form;		/* bits 0-3: lines, 1 or 2; bits 4-7: NCI_FORM_* */
	uint16_t comm;		/* number of the communicator, or NCI_COMM_NONE */
	uint32_t serial;	/* number of the record in its lane, from 1, wrapping; in a live
				   slot: last NCCL state seen + 1, or 0 */
	uint64_t token;		/* the event's token; has NCI_TOKEN_FREE while a slot is empty */
	uint64_t parent;	/* the parent that NCCL passed: a token, of this process unless
				   NCI_FORM_FOREIGN; or 0 */
	uint64_t start;		/* ticks when NCCL started it */
	uint64_t stop;		/* ticks when NCCL stopped it; in a live slot: ticks of the last
				   state, or 0 */
	uint8_t body[24];	/* the type's own fields */
};
NCI_ASSERT(sizeof(struct nci_record) == NCI_LINE_BYTES, "ABI: a record is whole lines");
NCI_ASSERT(offsetof(struct nci_record, token) == 8, "ABI: token moved");
NCI_ASSERT(offsetof(struct nci_record, stop) == 32, "ABI: stop moved");
NCI_ASSERT(offsetof(struct nci_record, body) == 40, "ABI: body moved");

/* One line of a ring, and two: the room of a handle slot. */
struct nci_line {
	NCI_ALIGNED(NCI_LINE_BYTES) uint64_t word[8];
};
NCI_ASSERT(sizeof(struct nci_line) == NCI_LINE_BYTES, "ABI: a line");

/* A span that is never 0 for a state that was seen (ticks may stand still). */
static inline uint32_t nci_span(uint64_t start, uint64_t now)
{
	uint64_t ticks = now - start;

	if (ticks - 1 < NCI_SPAN_COARSE - 1)
		return (uint32_t)ticks;
	if ((int64_t)ticks <= 0)
		return 1;
	ticks >>= NCI_SPAN_SHIFT;
	return NCI_SPAN_COARSE |
	       (uint32_t)(ticks < NCI_SPAN_COARSE ? ticks : NCI_SPAN_COARSE - 1);
}

static inline uint64_t nci_span_ticks(uint32_t span)
{
	if (span & NCI_SPAN_COARSE)
		return (uint64_t)(span & ~NCI_SPAN_COARSE) << NCI_SPAN_SHIFT;
	return span;
}

#endif
