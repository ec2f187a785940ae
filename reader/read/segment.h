/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_READ_SEGMENT_H
#define READER_READ_SEGMENT_H

/*
 * One process's segment, opened and checked: the only place that knows where
 * in the file things lie.  Nothing is mapped; what is used was copied first.
 */

#include "reader/base/model.h"
#include "shmring/consumer.h"

struct names;

#define SEGMENT_MAX_LANES	(1u << NCI_TOKEN_LANE_BITS)

/* Outcomes of segment_check() that are no failure. */
enum segment_outcome {
	SEGMENT_OK = 0,
	SEGMENT_NOT_READY,	/* its process is still at work on it: try again */
	SEGMENT_FOREIGN,	/* another ABI major, told in `foreign`: leave it alone */
	SEGMENT_STALE,		/* made in another boot: leave it alone */
	SEGMENT_STRANGER,	/* names a process of another user than its own */
};

/* The parts of a file's name. */
struct segment_name {
	uid_t uid;
	pid_t pid;
	uint64_t start_time;
};

/* Threads that are told apart by what they write. */
enum segment_thread {
	SEGMENT_PROGRESS,	/* NCCL's own, which poll kernels and the network */
	SEGMENT_CALLING,	/* the application's, which call NCCL (version 5 and newer) */
	SEGMENT_THREADS
};

struct segment_lane {
	struct shmring_reader reader;
	bool open;		/* reader is initialised */
	bool refused;		/* it will never be */
	uint32_t used;		/* slots of the pool that were ever used, as last seen */
	pid_t tid[SEGMENT_THREADS];	/* the thread of records that only its kind writes; or 0 */
};

struct segment {
	struct process process;	/* first: process_segment() */
	int fd;
	ino_t ino;
	struct foreign foreign;	/* filled in where the format is not ours */
	uint64_t start_time;
	pid_t host_pid;		/* number in our pid namespace; 0: not known, or not below ours */
	bool locked;		/* a process held the lock when it was last asked for */
	uint64_t bytes;		/* size of the file as last seen */
	uint64_t live_offset, comms_offset, strings_offset;
	uint32_t live_bytes, lane_bytes, comm_bytes, string_bytes;
	uint32_t max_lanes, max_comms, max_strings;	/* entries of the tables */
	uint32_t clock;		/* NCI_CLOCK_* */
	uint32_t comms_begun;	/* numbers before this are copied, gone, or never were */
	uint32_t comms_ended, comms_drifted;	/* counts at the last look at the whole table */
	uint32_t strings_ready;
	bool settled;		/* nothing of the tables was begun and not yet there */
	uint32_t nlanes;	/* prefix of lane[] that the process uses, as last seen */
	struct segment_lane *lane;	/* max_lanes */
	void *tables;		/* these, and the process's */
	size_t tables_bytes;
	struct memory *memory;	/* ceiling for the communicators; NULL: none */
	uint64_t taken;
	struct names *names;
	bool lies;		/* was caught: never read again */
	bool chosen;		/* the caller has chosen this file: its name proves nothing */
};

static inline struct segment *process_segment(struct process *p)
{
	return (struct segment *)p;
}

/* "ncclinsp.<uid>.<pid>.<start>", perhaps with ".<random>", in canonical form, else false. */
bool segment_parse_name(const char *file, struct segment_name *name);

/*
 * Open the segment `file` in `dirfd`.  0 and *out, or a negative errno: -EPERM
 * when it is no plain file or others may write it, -ENOENT, -EACCES ...
 * What is open can be read to its end also when its process exits meanwhile.
 */
int segment_open(struct segment **out, int dirfd, const char *file, struct names *names);

/*
 * The same for a file that the caller has chosen and opened, as a copy of a segment: under any
 * name, of any owner and mode.  `fd` stays the caller's; `name` is what the process's file is
 * called.
 */
int segment_open_chosen(struct segment **out, int fd, const char *name, struct names *names);

/*
 * Check an opened segment, until it is ready.  0: from now on it can be drained;
 * a positive outcome; or a negative errno: -EPROTO, its contents cannot be.
 */
int segment_check(struct segment *seg);

/* The outcome of segment_open() or segment_check() may be another one in a while. */
bool segment_is_passing(int outcome);

/* The outcome in words; the outcome 0 has none. */
const char *segment_reason(int outcome);

/* Closes the descriptor only: what was copied stays. */
void segment_close(struct segment *seg);
void segment_free(struct segment *seg);

/* Communicators that were begun, and which to look at again for their end. */
enum segment_tables {
	TABLES_NEW,		/* none */
	TABLES_CHANGED,		/* all, if one of them has changed since the last time */
	TABLES_ALL,
};

/*
 * Copy what is new in the tables, `live` being a private copy of the live block.
 * 0 or a negative errno.
 */
int segment_tables(struct segment *seg, const struct nci_live *live, enum segment_tables which);

/* Read exactly; a short read is -EPROTO: the file was truncated. */
int segment_read(const struct segment *seg, void *buf, size_t bytes, uint64_t offset);

/* Get ready to read lane i, whose line was copied to `line`.  0 or -EPROTO. */
int segment_lane_open(struct segment *seg, uint32_t i, const struct nci_lane *line);

#endif
