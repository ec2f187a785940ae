/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FIXTURE_RING_H
#define TESTS_FIXTURE_RING_H

/*
 * A segment with one lane and a reader of it, and records that prove whether
 * they are whole: every byte follows from the record's number.
 */

#include "shmring/consumer.h"
#include "shmring/producer.h"

/* How the reader gets at the bytes. */
enum fx_copy {
	FX_PREAD,	/* from the file, as the daemon does */
	FX_WORDS,	/* word by word from the mapping, unseen by TSan: may be torn */
	FX_PLAIN,	/* from the mapping, seen by TSan: only if nothing overwrites */
};

struct fx_lane {
	struct shmring ring;
	struct shmring_lane *lane;	/* of the thread that called fx_lane_open() */
	struct shmring_reader reader;
	enum fx_copy copy;
	int fd;				/* read-only, the reader's */
	uint32_t room;			/* lines copied at once, at most SHMRING_LINES */
	struct nci_line buf[SHMRING_LINES];
};

/* In the test's own directory, as "segment", ready; the reader comes at once. */
void fx_lane_open(struct fx_lane *fx);
void fx_lane_close(struct fx_lane *fx);

/* One more lane, of a thread that lives as long as the caller; NULL: refused. */
struct shmring_lane *fx_lane_more(struct shmring *ring);

/* The reader comes (again), to the lane of this index. */
void fx_lane_attach(struct fx_lane *fx, uint32_t lane);

/* Publish record number n, of 1 or 2 lines. */
void fx_publish(struct shmring_lane *lane, uint64_t n, uint32_t lines);
void fx_publish_many(struct shmring_lane *lane, uint64_t from, uint64_t to, uint32_t lines);

/* 1 or 2, by chance, the same for the same number. */
uint32_t fx_lines(uint64_t n);
uint64_t fx_mix(uint64_t n);

/* Fill all of a slot but its token with event number n. */
void fx_fill(struct nci_record *rec, uint64_t n, uint32_t lines);

/* Start event number n; its token, or 0: no slot is free. */
uint64_t fx_start(struct shmring_lane *lane, uint64_t n, uint32_t lines);

#define FX_TORN UINT64_MAX

/* The number of a record as published, or FX_TORN. */
uint64_t fx_number(const struct nci_record *rec);

/* The number of a copied live slot, or FX_TORN. */
uint64_t fx_live_number(const struct nci_record *rec);

/* Bytes of the lane that the reader is attached to, by fx->copy. */
void fx_copy_bytes(struct fx_lane *fx, uint64_t offset, void *to, size_t bytes);
void fx_copy_line(struct fx_lane *fx, struct nci_lane *line);

/* The two halves of one round, so that a test may let something happen between. */
int fx_lane_copy(struct fx_lane *fx);
int fx_lane_settle(struct fx_lane *fx);

/* The next record, with as many rounds as it takes; NULL: nothing new.  Fails on -EPROTO. */
const struct nci_record *fx_lane_next(struct fx_lane *fx);

/*
 * Read all there is: each record must be whole and follow the one before, loss
 * apart.  Returns how many, and leaves the last one's number in *last.
 */
uint64_t fx_lane_drain(struct fx_lane *fx, uint64_t *last);

#endif
