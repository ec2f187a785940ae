/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCI_SEGMENT_H
#define NCI_SEGMENT_H

/*
 * One process's segment: a file "ncclinsp.<uid>.<pid>.<start-time>" in /dev/shm
 * (or NCCLINSP_SHM_DIR), mode 0600, made by the plugin and written by nobody
 * else.  <start-time> is field 22 of /proc/<pid>/stat.  Where somebody else has a
 * file of that name, ".<random>" follows, a decimal number.  A name proves nothing:
 * go by who holds the lock, and by who owns the file.
 *
 *   +---------------------------+ 0
 *   | struct nci_header         |   written before `ready`, never changed after,
   |                           |   but for its struct nci_steer
 *   +---------------------------+ live_offset
 *   | struct nci_live           |   counters and table sizes, changing
 *   | struct nci_lane [lanes]   |   the lane directory, right behind it
 *   +---------------------------+ comms_offset
 *   | struct nci_comm [comms]   |   published, and used again after their end
 *   +---------------------------+ strings_offset
 *   | struct nci_string [...]   |   published once each
 *   +---------------------------+ page-aligned; the file ends here at first
 *   | lane: ring, then pool     |   appended one by one, as threads appear
 *   | ...                       |
 *   +---------------------------+
 *
 * The file only grows.  While the process lives it holds a POSIX record lock
 * (F_WRLCK on the whole file), which the kernel drops on any kind of death; a
 * clean exit sets NCI_LIVE_EXITED and unlinks the file.
 */

#include <string.h>

#include "nci/lane.h"

#define NCI_FILE_PREFIX		"ncclinsp."
#define NCI_SHM_DIR		"/dev/shm"
#define NCI_PAGE		4096

#define NCI_CLOCK_TSC		1	/* x86 time stamp counter */
#define NCI_CLOCK_CNTVCT	2	/* Arm virtual counter */
#define NCI_CLOCK_MONOTONIC	3	/* CLOCK_MONOTONIC, ns */

#define NCI_LEVEL_OFF		0
#define NCI_LEVEL_OPS		1
#define NCI_LEVEL_KERNEL	2
#define NCI_LEVEL_NET		3
#define NCI_LEVEL_TRACE		4
#define NCI_LEVEL_MASK		5	/* a raw mask: the environment's, or somebody else's */
#define NCI_LEVELS		6

/* The times when kernels are timed (KernelCh is asked for), at a level that has it. */
#define NCI_MODE_BURST		1	/* bursts, or what `sample` says; not from NCCL 2.31 on */
#define NCI_MODE_FIRST		2	/* a time from the first work on, then never again */
#define NCI_MODE_ALWAYS		3
#define NCI_MODE_NEVER		4
#define NCI_MODES		5

/*
 * Reasons, seen in the process, why kernels are not timed as level, mode and sample say.
 * Bits, for ever.
 */
#define NCI_SEEN_API		0x001	/* none: the API is older than v5 */
#define NCI_SEEN_SCARCE		0x002	/* no more: not enough shared memory to spare */
#define NCI_SEEN_GRAPHS		0x004	/* stays as it is: CUDA graphs were captured */
#define NCI_SEEN_SENDERS	0x008	/* stays as it is: several threads send and receive */
#define NCI_SEEN_LIBRARIES	0x010	/* stays as it is: two NCCLs in the process */
#define NCI_SEEN_ALLGATHERV	0x020	/* none: a group had Broadcasts of several roots, or
					   Broadcasts beside sends, on NCCL 2.29 or newer */
#define NCI_SEEN_SELF		0x040	/* no more: a rank sent to itself */
#define NCI_SEEN_PAUSE		0x080	/* no more: calls were not watched for a while */
#define NCI_SEEN_END		0x100	/* no more: the time of NCI_MODE_FIRST is over */
#define NCI_SEEN_OUTSIDE	0x200	/* NCCL's mask was set by somebody else */

/* The operations that are timed in NCI_MODE_BURST. */
#define NCI_SAMPLE_BUDGET	1	/* bursts on the wall-clock grid */
#define NCI_SAMPLE_ALL		2

/* The source of the level and the sampling in force. */
#define NCI_SOURCE_DEFAULT	1
#define NCI_SOURCE_ENVIRONMENT	2
#define NCI_SOURCE_CONTROL	3	/* the control file, see control.h */
#define NCI_SOURCE_OUTSIDE	4	/* NCCL's mask was set by somebody else (RAS) */

/* One tick at init on all clocks; a reader on the same machine calibrates better. */
struct nci_anchor {
	uint64_t ticks;
	uint64_t mono_ns;	/* CLOCK_MONOTONIC, read right after ticks */
	uint64_t real_ns;	/* CLOCK_REALTIME, read right after mono_ns */
};

/* Threads by what they do: NCCL's own, and all the others. */
#define NCI_THREADS_USER	0
#define NCI_THREADS_PROXY	1
#define NCI_THREAD_CLASSES	2

/* The cost of the plugin's own callbacks, measured on one of NCI_TIMED_ONE_IN. */
struct nci_timed {
	NCI_ATOMIC(uint64_t) count;	/* callbacks measured */
	NCI_ATOMIC(uint64_t) ticks;	/* time that they took, two looks at the clock included */
};

#define NCI_TIMED_ONE_IN	256

/*
 * The steering of events: the one part of the header's page that changes while the
 * process lives.  Every field is whole; two fields may be of different moments.  Kernels
 * are timed now if the mask (nci_live) has KernelCh.
 */
struct nci_steer {
	NCI_ATOMIC(uint64_t) sequence;	/* number of the control file in force; 0: none ever was */
	NCI_ATOMIC(uint64_t) since;	/* ticks when level, sample or source last changed */
	NCI_ATOMIC(uint64_t) until_mono_ns;	/* CLOCK_MONOTONIC when something in force ends
						   next; 0: never */
	NCI_ATOMIC(uint32_t) source;	/* NCI_SOURCE_* */
	NCI_ATOMIC(uint32_t) cause;	/* NCI_CAUSE_* of the last entry in force; 0: none */
	NCI_ATOMIC(uint32_t) sample;	/* NCI_SAMPLE_* */
	NCI_ATOMIC(uint32_t) mode;	/* NCI_MODE_* */
	NCI_ATOMIC(uint32_t) mode_s;	/* NCI_MODE_FIRST: seconds that it lasts */
	NCI_ATOMIC(uint32_t) nccl_version;	/* ncclGetVersion()'s number, 23007 for 2.30.7;
						   0: not known */
	NCI_ATOMIC(uint64_t) settles_mono_ns;	/* CLOCK_MONOTONIC before which kernels are not
						   timed, though they are to be: how the process
						   uses NCCL has yet to show; 0: it is not so */
	NCI_ATOMIC(uint64_t) stores;	/* stores into NCCL's mask since the first init */
	NCI_ATOMIC(uint64_t) switches;	/* stores that changed KernelCh */
	NCI_ATOMIC(uint64_t) switched;	/* ticks of the last of them; 0: none yet */
	NCI_ATOMIC(uint64_t) control_reads;	/* reads of the control file */
	NCI_ATOMIC(uint64_t) control_refused;	/* reads that gave something not whole, or not
						   ours */
	struct nci_timed timed[NCI_THREAD_CLASSES];	/* one for each NCI_THREADS_* */
	uint8_t zero[128];
};
NCI_ASSERT(sizeof(struct nci_steer) == 256, "ABI: what steers is four lines");
NCI_ASSERT(offsetof(struct nci_steer, settles_mono_ns) == 48, "ABI: settles_mono_ns moved");
NCI_ASSERT(offsetof(struct nci_steer, timed) == 96, "ABI: timed moved");

struct nci_header {
	uint64_t magic;			/* NCI_MAGIC */
	uint16_t abi_major;		/* layout; leave other majors alone */
	uint16_t abi_minor;		/* additions */
	NCI_ATOMIC(uint32_t) ready;	/* 1, stored with release, when everything above and below
					   is written; 0 before */
	uint64_t live_offset;		/* place of struct nci_live in the file */
	uint64_t comms_offset;
	uint64_t strings_offset;
	uint32_t lanes;			/* capacity of the directory */
	uint32_t comms;			/* capacity of the communicator table */
	uint32_t strings;		/* capacity of the string table */
	uint16_t live_bytes;		/* size of struct nci_live; the lane directory follows it */
	uint16_t lane_bytes;		/* size of an entry of the directory */
	uint16_t comm_bytes;		/* size of an entry of the communicator table */
	uint16_t string_bytes;		/* size of an entry of the string table */
	uint32_t zero;
	uint64_t start_time;		/* field 22 of /proc/self/stat, clock ticks since boot */
	uint64_t instance;		/* random, tells this process from every other */
	uint8_t boot_id[16];		/* the kernel's boot id, binary; zeros: not readable */
	uint32_t pid;			/* the process's, in its own pid namespace */
	uint32_t uid;
	uint32_t nonce;			/* upper half of this process's context tokens, never 0 */
	uint32_t clock;			/* NCI_CLOCK_*: what a tick is */
	struct nci_anchor anchor;	/* one tick paired with both clocks, at init */
	char plugin_version[32];	/* text, zero-terminated */
	char command[64];		/* program's name, zero-terminated */
	uint32_t env_bytes;		/* used bytes of env */
	char env[1812];			/* "NAME=VALUE\0" of the allow-listed job variables */
	struct nci_steer steer;		/* changes */
	uint8_t zero1[1792];
};
NCI_ASSERT(sizeof(struct nci_header) == NCI_PAGE, "ABI: the header is one page");
NCI_ASSERT(offsetof(struct nci_header, ready) == 12, "ABI: ready moved");
NCI_ASSERT(offsetof(struct nci_header, live_bytes) == 52, "ABI: live_bytes moved");
NCI_ASSERT(offsetof(struct nci_header, instance) == 72, "ABI: instance moved");
NCI_ASSERT(offsetof(struct nci_header, anchor) == 112, "ABI: anchor moved");
NCI_ASSERT(offsetof(struct nci_header, env) == 236, "ABI: env moved");
NCI_ASSERT(offsetof(struct nci_header, steer) == 2048, "ABI: steer moved");

#define NCI_LIVE_EXITED		0x1	/* the process ended by exit() or return from main() */
#define NCI_LIVE_RCCL		0x2	/* RCCL calls: stamps of KernelCh are no ns, but ticks of
					   AMD's wall clock, whose rate RCCL does not tell */
#define NCI_LIVE_TAGS_FULL	0x4	/* a tag's name found the table full: the operations have
					   the tag of before */

/*
 * State that changes while the process lives, apart from the lanes.  Any of its threads
 * writes it, on rare paths only.  128 bytes; the lane directory follows, so that one read
 * of a few KiB tells everything that is new.
 */
struct nci_live {
	NCI_ALIGNED(NCI_LINE_BYTES)
	NCI_ATOMIC(uint32_t) lanes;	/* lanes in use or refused, the first of the directory */
	NCI_ATOMIC(uint32_t) comms;	/* the next communicator's number, not wrapped: those
					   before it lie in the table, have left it, or never
					   were; only the last may yet have to be published */
	NCI_ATOMIC(uint32_t) strings;	/* names begun; each entry has its own `bytes` */
	NCI_ATOMIC(uint32_t) flags;	/* NCI_LIVE_* */
	NCI_ATOMIC(uint32_t) api_version;	/* profiler API in use, 1 to 7; 0: no init yet */
	NCI_ATOMIC(uint32_t) level;	/* NCI_LEVEL_* */
	NCI_ATOMIC(uint32_t) mask;	/* events that NCCL was asked for last */
	NCI_ATOMIC(uint32_t) seen;	/* NCI_SEEN_* */
	NCI_ATOMIC(uint32_t) comms_open;	/* communicators initialised and not finalized */
	NCI_ATOMIC(uint32_t) comms_ended;	/* counts `finalize` that were stored, wrapping;
						   with release, after them */
	NCI_ATOMIC(uint64_t) no_lane;	/* events refused because their thread has no lane */
	NCI_ATOMIC(uint64_t) no_comm;	/* communicators that found the table full of open ones */
	NCI_ATOMIC(uint64_t) no_string;	/* names that found the table full */
	NCI_ATOMIC(uint64_t) unknown_event;	/* starts refused: a type that this plugin does
						   not know */
	NCI_ATOMIC(uint64_t) unknown_state;	/* states ignored: not known, or not of that
						   event */
	NCI_ATOMIC(uint64_t) foreign;	/* events issued by another process (PXN) */
	NCI_ATOMIC(uint64_t) closed_comm;	/* events on a communicator that was finalized */
	NCI_ATOMIC(uint64_t) bad_context;	/* events whose context was not given by any init */
	NCI_ATOMIC(uint32_t) comms_drifted;	/* counts `drift` likewise, before any record of
						   an operation that it concerns */
	uint8_t zero[20];
};
NCI_ASSERT(sizeof(struct nci_live) == 128, "ABI: the live block is two lines");
NCI_ASSERT(offsetof(struct nci_live, comms_open) == 32, "ABI: comms_open moved");
NCI_ASSERT(offsetof(struct nci_live, no_lane) == 40, "ABI: no_lane moved");

#define NCI_COMM_HAS_ID		0x1	/* comm_id, nranks, nnodes, rank are given (API v4 on) */
#define NCI_COMM_HAS_GPU	0x2	/* gpu_uuid, pci_bus_id are given */

/* Numbers of communicators wrap here, so that a record has room for one. */
#define NCI_COMM_NUMBERS	64512u	/* a multiple of the table's capacity */

/*
 * One communicator, as one init saw it.  Its number, the how many-th of its process, is
 * its key there; comm_id alone is not (two shrinks of one parent share it).  It lies in
 * the entry with the index number modulo capacity, until another one needs it after its
 * end; numbers whose entry still is in use are left out.
 */
struct nci_comm {
	NCI_ALIGNED(NCI_LINE_BYTES)
	NCI_ATOMIC(uint32_t) published;	/* its number modulo NCI_COMM_NUMBERS, plus 1, stored
					   with release; 0: nothing is here yet */
	uint32_t flags;			/* NCI_COMM_HAS_* */
	uint64_t comm_id;		/* NCCL's 64-bit hash */
	int32_t rank;			/* rank of this process's member */
	int32_t nranks;
	int32_t nnodes;
	uint32_t name_bytes;		/* length of name, 0: none was given */
	uint64_t init;			/* ticks */
	NCI_ATOMIC(uint64_t) finalize;	/* ticks, 0 while open; changes */
	NCI_ATOMIC(uint64_t) drift;	/* ticks; 0: not known to.  NCCL's own count of this
					   communicator's works is wrong from then on: it waits
					   for the stamps of other kernels.  Changes */
	uint8_t gpu_uuid[16];		/* binary */
	char pci_bus_id[32];		/* text, zero-terminated */
	char name[96];			/* UTF-8 as the application gave it, cut to fit */
	uint8_t zero[56];
};
NCI_ASSERT(sizeof(struct nci_comm) == 256, "ABI: a communicator is four lines");
NCI_ASSERT(offsetof(struct nci_comm, finalize) == 40, "ABI: finalize moved");
NCI_ASSERT(offsetof(struct nci_comm, name) == 104, "ABI: name moved");

/* One name.  Id i is entry i - 1; id 0 means no name. */
struct nci_string {
	NCI_ALIGNED(NCI_LINE_BYTES)
	NCI_ATOMIC(uint32_t) bytes;	/* length of text plus one when published, stored with
					   release, and NCI_STRING_TAG; 0 before */
	char text[60];			/* filled up with zeros; longer names are cut */
};
#define NCI_STRING_TAG		0x80000000u	/* a tag's name: maybe nothing else has it */
NCI_ASSERT(sizeof(struct nci_string) == NCI_LINE_BYTES, "ABI: a name is one line");

/*
 * The tag of operations that the application gives a name instead of a number: made of the
 * name as it stands in the table, filled up with zeros, in words of 8 bytes.  The same name
 * has the same tag in all processes.  Never 0.
 */
static inline uint64_t nci_tag_of_name(const char *text, uint32_t bytes)
{
	uint64_t word[8] = { 0 }, tag = UINT64_C(0xcbf29ce484222325);

	memcpy(word, text, bytes < sizeof(word) ? bytes : sizeof(word));
	for (uint32_t i = 0; i < (bytes + 7) / 8 && i < 8; i++) {
		tag = (tag ^ word[i]) * UINT64_C(0x9e3779b97f4a7c15);
		tag ^= tag >> 29;
	}
	return tag ? tag : 1;
}

#endif
