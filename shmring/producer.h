/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHMRING_PRODUCER_H
#define SHMRING_PRODUCER_H

/*
 * The writing side of a segment.  It knows lanes, slots and records, and nothing
 * of NCCL.  The functions that run for every event stand here, inline; they
 * allocate nothing, wait for nothing, loop over nothing and make no system call.
 *
 *     start:  rec = shmring_take(lane, &token)     a slot, not yet visible
 *             ... fill rec, except its token ...
 *             shmring_open(rec, token)             in flight from here on
 *     state:  rec = shmring_find(ring, token)      NULL: stale or foreign
 *     stop:   shmring_close(ring, lane, token, ticks)   one record, slot free again
 */

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "nci/segment.h"
#include "shmring/testpoint.h"

#define SHMRING_LINES	4096	/* ring of one lane: 256 KiB */
#define SHMRING_SLOTS	1024	/* pool of one lane: 128 KiB */
#define SHMRING_COMMS	1024
#define SHMRING_STRINGS	256
#define SHMRING_NO_SLOT	UINT32_MAX

#define SHMRING_LANE_SLOTS	(1u << NCI_TOKEN_SLOT_BITS)	/* kept for a lane's pool */

/*
 * What the owner of a lane needs where an event leaves a record; lives in the process's own
 * memory, on a cache line that no other lane's thread writes.
 */
struct shmring_out {
	_Alignas(NCI_LINE_BYTES) struct nci_lane *line;
	struct nci_line *ring;
	uint64_t next;			/* lines written; equals line->end */
	uint32_t serial;		/* the last record's */
	uint32_t look;			/* start of the next look for empty slots */
	uint32_t refuse;		/* starts to refuse before it */
};

/*
 * One lane as its owner sees it, which may have a copy in its thread's own memory: starts need
 * nothing else but the slot.  The next owner begins with the list of when the lane was made, or
 * what is left of it.
 *
 * Empty slots are a list, the one that was emptied last (the warmest) first: each has the
 * number of the next one in its parent's place, which nobody reads of an empty slot.
 *
 * Invariant: a slot of the list is empty, or the list ends before it.  (A slot that another
 * thread emptied is in no list until the owner runs out and looks.)
 */
struct shmring_lane {
	struct nci_slot *pool;
	struct shmring_out *out;
	uint32_t free;			/* first empty slot, or SHMRING_NO_SLOT */
	uint32_t index;
};

/*
 * One process's segment.  shmring_forget() makes zeroed storage a closed one, which
 * shmring_create() opens.
 *
 * Pools lie where a token's lane and slot point to: room for all of them is kept from the
 * beginning, so that any number leads to memory that can be read.  Where no pool is, it
 * holds zeros, and for a lane's slot 0 that no number passes for.
 */
struct shmring {
	struct nci_header *header;
	struct nci_live *live;
	struct nci_lane *directory;
	struct nci_comm *comms;
	struct nci_string *strings;
	int fd;
	dev_t dev;	/* dev, ino: by which fd is known to be still the segment's */
	ino_t ino;
	pid_t pid;
	size_t tables_bytes;
	_Atomic uint32_t most;		/* lanes: no more are made */
	_Atomic uint64_t refused_ns;	/* CLOCK_MONOTONIC when a lane found no space; 0: none */
	_Atomic uint32_t probe;		/* start of the next look for a lane of a dead thread */
	struct nci_slot *slots;		/* the slots, by nci_token_lane() and nci_token_slot() */
	uint32_t slot_mask;		/* bits of a token that count there */
	struct shmring_lane lane[NCI_MAX_LANES];
	struct shmring_out out[NCI_MAX_LANES];
};

/*
 * Make the segment `name` in the directory `dir`, take its lock, and fill in
 * what concerns the layout; all else in ring->header is the caller's to write
 * before shmring_ready().  Space is really allocated.  An existing file of that
 * name that nobody holds is replaced: it is our own from before an exec.
 *
 * 0, or a negative errno with nothing left behind: -ENOSPC, -ENOENT, -EROFS,
 * -EACCES ... as the file system says; -EFBIG: over the process's own limit;
 * -EEXIST: somebody else has that name: a process of another pid namespace, or whoever
 * left there what is not ours to remove.  Take another one.
 */
__attribute__((cold))
int shmring_create(struct shmring *ring, const char *dir, const char *name);

/*
 * Keep a file of ours from becoming the standard output that the job has closed.  Returns
 * the descriptor, or another one of the same file in its place; or a negative errno.
 */
int shmring_move_up(int fd);

/*
 * Whether a file of ours may have so many bytes: growing it past the process's own limit would
 * not only fail, SIGXFSZ would kill the job.
 */
bool shmring_may_have(uint64_t bytes);

/* fstat() as the kernel has it: the C library's has a new version.  False: fd is none. */
bool shmring_stat(int fd, struct stat *st);

/*
 * Whether fd still is the file of that device and inode: a job that closes every descriptor
 * it can think of closes ours, and the number comes back as a file of its own.
 */
bool shmring_is_file(int fd, dev_t dev, ino_t ino, struct stat *st);

/* Whether another process holds the lock of the segment that is open at `fd`, or may. */
bool shmring_is_held(int fd);

/* Everything is in place: readers may look. */
void shmring_ready(struct shmring *ring);

/*
 * Let go of the parent's segment without touching it, in a forked child; or make zeroed
 * storage a closed ring.
 */
void shmring_forget(struct shmring *ring);

/*
 * `room` bytes are free: all lanes together may take an eighth of that and of what they
 * have.  Some are made ahead until there are `lanes`, which is slow; a thread's first call
 * finds them ready.
 */
__attribute__((cold))
void shmring_prepare(struct shmring *ring, uint64_t room, uint32_t lanes);

/*
 * A lane for the calling thread, `tid`: its own from before, one made ahead, one whose
 * thread is gone, or a new one, which is slow (system calls, page faults).  NULL: none was
 * found among the few that are looked at in a call, or there is no room; the caller counts
 * what it drops, and may ask again.
 */
__attribute__((cold))
struct shmring_lane *shmring_lane_new(struct shmring *ring, pid_t tid);

/*
 * Take a slot where shmring_take() found none: look through a bounded number of
 * slots for empties that other threads left and for events that `abandoned` gives
 * up.  The pushed-out event is counted in the lane and its token goes
 * stale.  NULL: count it and refuse.
 */
struct nci_record *shmring_take_slowly(struct shmring_lane *lane, uint64_t *token,
				       bool (*abandoned)(const struct nci_record *, void *),
				       void *arg);

static inline _Atomic uint64_t *shmring_token(struct nci_record *rec)
{
	return (_Atomic uint64_t *)&rec->token;
}

static inline struct nci_record *shmring_slot(struct nci_slot *pool, uint32_t slot)
{
	struct nci_record *rec = (struct nci_record *)&pool[slot];

	if (!rec)
		__builtin_unreachable();	/* callers need not ask again */
	return rec;
}

/* Counters have one writer: no need for a locked instruction. */
static inline void shmring_count(_Atomic uint64_t *counter)
{
	atomic_store_explicit(counter,
			      atomic_load_explicit(counter, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/*
 * The slot that was emptied last, or NULL.  Owner only.  A list in disorder, after a signal's
 * own call or a state that came while its event stopped, ends where a slot is not empty.
 */
static inline struct nci_record *shmring_take(struct shmring_lane *lane, uint64_t *token)
{
	struct nci_record *rec;
	uint64_t seen;

	if (__builtin_expect(lane->free >= SHMRING_SLOTS, 0))
		return NULL;
	rec = shmring_slot(lane->pool, lane->free);
	seen = atomic_load_explicit(shmring_token(rec), memory_order_relaxed);
	if (__builtin_expect(!(seen & NCI_TOKEN_FREE), 0))
		return NULL;
	lane->free = (uint32_t)rec->parent;
	*token = (seen & ~NCI_TOKEN_FREE) + NCI_TOKEN_GEN_ONE;
	atomic_thread_fence(memory_order_release);				/* W4 */
	SHMRING_TESTPOINT(taken);
	return rec;
}

static inline void shmring_open(struct nci_record *rec, uint64_t token)
{
	SHMRING_TESTPOINT(unfilled);
	atomic_store_explicit(shmring_token(rec), token, memory_order_release);	/* W5 */
}

static inline bool shmring_has(struct nci_record *rec, uint64_t token)
{
	return __builtin_expect(atomic_load_explicit(shmring_token(rec),
						     memory_order_acquire) == token, 1);
}

/* The same for any number: it may be what an empty slot has. */
static inline bool shmring_has_event(struct nci_record *rec, uint64_t number)
{
	uint64_t seen = atomic_load_explicit(shmring_token(rec), memory_order_acquire);

	if (__builtin_expect(seen != number, 0))
		return false;
	return __builtin_expect(!(seen & NCI_TOKEN_NO_EVENT), 1);
}

/* The live event of a token, or NULL.  Any thread, any number. */
static inline struct nci_record *shmring_find(struct shmring *ring, uint64_t token)
{
	struct nci_record *rec = shmring_slot(ring->slots, (uint32_t)token & ring->slot_mask);

	return shmring_has_event(rec, token) ? rec : NULL;
}

/* The same, but only of the calling thread's own lane: no slot of it has another's token. */
static inline struct nci_record *shmring_find_own(struct shmring_lane *lane, uint64_t token)
{
	struct nci_record *rec = shmring_slot(lane->pool, token & (SHMRING_SLOTS - 1));

	return shmring_has_event(rec, token) ? rec : NULL;
}

/* The number of the line behind them, for shmring_end(). */
static inline uint64_t shmring_begin(struct shmring_out *out, uint32_t lines)
{
	uint64_t next = out->next + lines;

	atomic_store_explicit(&out->line->begin, next, memory_order_relaxed);	/* W1 */
	atomic_thread_fence(memory_order_release);				/* W2 */
	SHMRING_TESTPOINT(begun);
	return next;
}

static inline void shmring_end(struct shmring_out *out, uint64_t next)
{
	SHMRING_TESTPOINT(written);
	out->next = next;
	atomic_store_explicit(&out->line->end, next, memory_order_release);	/* W3 */
}

/*
 * Always succeeds: the oldest record makes room, the reader finds out at R3.
 * `rec` has the lines its form says, and every field but serial and stop.
 */
static inline __attribute__((always_inline))
void shmring_publish(struct shmring_lane *lane, const struct nci_record *rec, uint64_t stop)
{
	uint32_t lines = NCI_FORM_LINES(rec->form);
	struct shmring_out *out = lane->out;
	struct nci_record *copy;
	uint64_t next;

	if (__builtin_expect(lines == 2 && ~out->next % SHMRING_LINES == 0, 0)) {
		next = shmring_begin(out, 1);
		out->ring[SHMRING_LINES - 1].word[0] = NCI_LINE_PAD;
		shmring_end(out, next);
	}
	next = shmring_begin(out, lines);
	copy = (struct nci_record *)&out->ring[(next - lines) % SHMRING_LINES];
	memcpy(copy, rec, offsetof(struct nci_record, stop));
	copy->stop = stop;
	memcpy(copy->body, rec->body, sizeof(rec->body));
	copy->serial = ++out->serial;
	SHMRING_TESTPOINT(half);
	if (lines == 2)
		((struct nci_slot *)copy)->line[1] = ((const struct nci_slot *)rec)->line[1];
	shmring_end(out, next);
}

/*
 * End the event of a token that shmring_find() just gave: publish its record in
 * the calling thread's lane and empty the slot.  The owner of the slot's lane is
 * the only one who ever fills it again, so for it a plain store is safe; another
 * thread must win the slot first, or somebody else has ended the event.
 * `rec` may be altered up to this call (by the owner), `copy` is taken of it.
 */
bool shmring_close_elsewhere(struct shmring_lane *lane, struct nci_record *rec,
			     uint64_t token, uint64_t stop);

/*
 * A slot that is empty may be taken again.  Owner only.  A reader that sees the link, in the
 * parent's place, sees that the slot is empty.
 */
static inline void shmring_put(struct shmring_lane *lane, struct nci_record *rec, uint32_t slot)
{
	atomic_thread_fence(memory_order_release);				/* W7 */
	rec->parent = lane->free;
	lane->free = slot;
}

/* Owner only. */
static inline void shmring_empty(struct shmring_lane *lane, struct nci_record *rec,
				 uint64_t token)
{
	atomic_store_explicit(shmring_token(rec), token | NCI_TOKEN_FREE,
			      memory_order_release);				/* W6 */
	shmring_put(lane, rec, nci_token_slot(token));
}

/* shmring_close() of an event that shmring_find_own() gave. */
static inline __attribute__((always_inline))
void shmring_close_own(struct shmring_lane *lane, struct nci_record *rec, uint64_t token,
		       uint64_t stop)
{
	shmring_publish(lane, rec, stop);
	SHMRING_TESTPOINT(freeing);
	shmring_empty(lane, rec, token);
}

static inline bool shmring_close(struct shmring_lane *lane, struct nci_record *rec,
				 uint64_t token, uint64_t stop)
{
	if (__builtin_expect(nci_token_lane(token) != lane->index, 0))
		return shmring_close_elsewhere(lane, rec, token, stop);
	shmring_close_own(lane, rec, token, stop);
	return true;
}

/* Empty a slot that another thread owns; false: somebody else was first. */
static inline bool shmring_empty_elsewhere(struct nci_record *rec, uint64_t token)
{
	return atomic_compare_exchange_strong_explicit(shmring_token(rec), &token,
						       token | NCI_TOKEN_FREE,
						       memory_order_acq_rel,
						       memory_order_relaxed);
}

/* The same as shmring_close(), but for the record: there is none. */
static inline bool shmring_discard(struct shmring_lane *lane, struct nci_record *rec,
				   uint64_t token)
{
	if (__builtin_expect(nci_token_lane(token) != lane->index, 0))
		return shmring_empty_elsewhere(rec, token);
	shmring_empty(lane, rec, token);
	return true;
}

#endif
