/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHMRING_CONSUMER_H
#define SHMRING_CONSUMER_H

/*
 * The reading side: copies out what is new in one lane and counts what was lost.
 * It opens, maps and trusts nothing: the caller brings copies of shared bytes
 * (however it reads them: pread, a buffer of a test) and every one of
 * them is checked.
 *
 *     seen = copy of the lane's line                                  (R1)
 *     n = shmring_want(reader, &seen, buf, room, span)   which bytes to copy
 *     copy span[0..n-1] into where span says
 *     again = copy of the lane's line, taken after those copies ended (R2, R3)
 *     shmring_settle(reader, &again)             torn lines drop out
 *     while (shmring_next(reader, &rec) > 0)     rec lies in buf
 */

#include <stdbool.h>
#include <sys/types.h>

#include "nci/lane.h"

struct shmring_reader {
	uint64_t offset;	/* the ring's in the segment */
	uint32_t lines;		/* capacity of the ring */
	uint32_t slots;		/* capacity of the pool, which follows the ring */
	uint64_t next;		/* first line that was not delivered */
	uint64_t records;	/* delivered */
	uint64_t lost;		/* records overwritten before they were read */
	uint64_t before;	/* records overwritten before this reader came */
	uint32_t serial;	/* the last delivered record's */
	bool met;		/* a record was delivered before */
	bool resync;		/* `next` may lie inside a record */
	/* The copy in hand: lines [first, to) of the ring, of which [next, to) wait. */
	struct nci_line *buf;
	uint64_t first, to, end;
};

/* Bytes to copy from the segment: `bytes` at `offset` into `to`. */
struct shmring_span {
	uint64_t offset;
	size_t bytes;
	void *to;
};

/*
 * Prepare to read the lane whose line was copied to `line`, in a segment of
 * `segment_bytes`.  -EPROTO: the line lies about its place or size.
 */
int shmring_reader_init(struct shmring_reader *r, const struct nci_lane *line,
			uint64_t segment_bytes);

/*
 * Plan a copy of at most `room` lines (2 or more) into `buf`, which stays the
 * caller's and must stay untouched until the last shmring_next().  0: nothing
 * new; 1 or 2: spans; -EPROTO: the cursors lie, do not read this segment again.
 */
int shmring_want(struct shmring_reader *r, const struct nci_lane *seen,
		 struct nci_line *buf, uint32_t room, struct shmring_span span[2]);

/* Lines that wait, in percent of the ring's capacity; 100 and more: lapped. */
unsigned shmring_fill_percent(const struct shmring_reader *r, const struct nci_lane *seen);

/* The planned copy has ended and `again` was copied after it.  0 or -EPROTO. */
int shmring_settle(struct shmring_reader *r, const struct nci_lane *again);

/*
 * 1: *rec is the next record, in buf, all its lines contiguous.  0: none left
 * (if more than `room` lines were new, plan again).  -EPROTO: that is no record.
 */
int shmring_next(struct shmring_reader *r, const struct nci_record **rec);

/*
 * Tell what is in flight from three copies of one slot, each begun after the one
 * before had ended.  True: `copy`, the second, holds a whole live event.
 */
bool shmring_slot_settled(const struct nci_slot *before, const struct nci_slot *copy,
			  const struct nci_slot *after);

#endif
