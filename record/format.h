/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECORD_FORMAT_H
#define RECORD_FORMAT_H

/*
 * A recording: every call that NCCL made to its profiler in one process, as it
 * was made.  Little endian; everything begins at a multiple of 8 bytes.
 *
 *     record_header | record | record | ... | zeros, or the end of the file
 *
 * A record is a record_head and what its verb brings:
 *
 *     THREAD     the thread's name               object: its number in the kernel
 *     INIT       record_init, name of the comm   object: the context given out
 *     START      context (8 bytes), descriptor   object: the handle given out
 *                as NCCL's version has it, its
 *                strings
 *     STATE      record_state                    object: the handle
 *     STOP       nothing                         object: the handle
 *     FINALIZE   nothing                         object: the context
 *
 * A descriptor's image are its 24 bytes of head and the union member of its type,
 * no more (record/shape.h), padded to 8 bytes.  Pointers in it are numbers.  The
 * strings follow, those that the shape names in its order: one byte with the
 * length and 1, or 0 for NULL, then the text without a NUL.  The names of
 * threads and communicators are written in the same way.
 *
 * A handle is the place of its record: the process id in the upper 24 bits, the
 * record's offset in the file, counted in 8 bytes, in the lower 40.  So numbers
 * of another process (PXN) are told from this one's, and from nonsense.
 *
 * Records lie in the order in which their calls were begun.  The first one whose
 * size is 0 ends the recording: there, it was full, its process was killed, or
 * nothing more came.
 */

#include <stddef.h>
#include <stdint.h>

#define RECORD_MAGIC		"ncclrec\n"
#define RECORD_VERSION		1
#define RECORD_STRING_MAX	63	/* longer ones are cut */

enum record_verb {
	RECORD_THREAD = 1,
	RECORD_INIT,
	RECORD_START,
	RECORD_STATE,
	RECORD_STOP,
	RECORD_FINALIZE,
	RECORD_VERBS
};

struct record_header {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes;	/* the first record begins there */
	uint32_t pid;
	uint32_t api;		/* version of NCCL's interface at the first init */
	uint64_t realtime_ns;	/* CLOCK_REALTIME, and */
	uint64_t monotonic_ns;	/* CLOCK_MONOTONIC, of the recording's time 0 */
	uint64_t lost;		/* calls that came when there was no room, or no communicator */
	char host[64];		/* ends in a NUL */
	char program[16];
	uint8_t zero[128];
};

struct record_head {
	uint16_t size;		/* the record's, head and padding included; written last */
	uint8_t verb;
	uint8_t api;		/* INIT, START, STATE: version of NCCL's interface; else 0 */
	uint32_t thread;	/* number of the thread: 1, 2, ... by first call */
	uint64_t time_ns;	/* time since the recording's time 0 */
	uint64_t object;
};

struct record_init {
	uint64_t comm_id;	/* this and the numbers below: 0 before version 4 */
	int32_t nnodes;
	int32_t nranks;
	int32_t rank;
	uint32_t mask;		/* events that were asked for */
};

struct record_state {
	int32_t state;
	/* 0: NULL.  Of states 23 and 24 only zeros are kept: nobody set them */
	uint32_t args_bytes;
	uint64_t args[2];
};

_Static_assert(sizeof(struct record_header) == 256, "recording: header");
_Static_assert(offsetof(struct record_header, lost) == 40, "recording: header");
_Static_assert(sizeof(struct record_head) == 24, "recording: head");
_Static_assert(sizeof(struct record_init) == 24, "recording: init");
_Static_assert(sizeof(struct record_state) == 24, "recording: state");

#define RECORD_OFFSET_BITS	40

static inline uint64_t record_handle(uint32_t pid, uint64_t offset)
{
	return (uint64_t)pid << RECORD_OFFSET_BITS | offset >> 3;
}

/* Place of its record, if this process gave the handle out; 0: it did not. */
static inline uint64_t record_offset(uint32_t pid, uint64_t handle)
{
	uint64_t place = handle & ((UINT64_C(1) << RECORD_OFFSET_BITS) - 1);

	return handle == record_handle(pid, place << 3) ? place << 3 : 0;
}

static inline uint32_t record_padded(uint32_t bytes)
{
	return (bytes + 7) & ~7u;
}

#endif
