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
 *   | struct nci_comm [comms]   |   published once each
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
#define NCI_LEVEL_MASK		5	/* a raw mask from NCCL_PROFILE_EVENT_MASK */
#define NCI_LEVEL_END		6

/* Why the mask is not what the level asks for; all are about KernelCh. */
#define NCI_REASON_NONE		0
#define NCI_REASON_API		1	/* none: the API is older than v5 */
#define NCI_REASON_SHM		2	/* none: not enough shared memory to spare */
#define NCI_REASON_GRAPHS	3	/* none: the process captures CUDA graphs (ABI 1.2) */
#define NCI_REASON_THREADS	4	/* stays as it is: several threads send and receive (1.2) */
#define NCI_REASON_LIBRARIES	5	/* stays as it is: two NCCLs in the process (1.2) */
#define NCI_REASON_SETTLING	6	/* none for a while: see settles_mono_ns (1.3) */

/* Which operations are watched by KernelCh, where the level asks for it. */
#define NCI_SAMPLE_BUDGET	1	/* bursts on the wall-clock grid, as the budget allows */
#define NCI_SAMPLE_ALL		2

/* Where the level and the sampling in force come from. */
#define NCI_SOURCE_DEFAULT	1
#define NCI_SOURCE_ENVIRONMENT	2
#define NCI_SOURCE_CONTROL	3	/* the control file, see control.h */

#define NCI_KERNELS_NEVER	1	/* the level asks for none, or there is a reason */
#define NCI_KERNELS_ALWAYS	2
#define NCI_KERNELS_OUTSIDE	3	/* now: outside a burst */
#define NCI_KERNELS_INSIDE	4	/* now: inside a burst */

/* What one tick was at init; a reader on the same machine calibrates better. */
struct nci_anchor {
	uint64_t ticks;
	uint64_t mono_ns;	/* CLOCK_MONOTONIC, read right after ticks */
	uint64_t real_ns;	/* CLOCK_REALTIME, read right after mono_ns */
};

/* Threads by what they do: NCCL's proxy threads, and all the others. */
#define NCI_THREADS_USER	0
#define NCI_THREADS_PROXY	1
#define NCI_THREAD_CLASSES	2

/* What the plugin's own callbacks cost, measured on one of NCI_TIMED_ONE_IN. */
struct nci_timed {
	_Atomic uint64_t count;		/* callbacks measured */
	_Atomic uint64_t ticks;		/* that they took, two looks at the clock included */
};

#define NCI_TIMED_ONE_IN	256

/*
 * What steers the events, and what it came to (ABI 1.2; zeros before).  The one part
 * of the header's page that changes while the process lives.  Every field is whole;
 * two fields may be of different moments.  Operations are API calls that post one.
 *
 *   offset  size  field            meaning
 *        0     8  sequence         of the control file that is in force; 0: none ever was
 *        8     8  since            ticks when level or sample last changed
 *       16     8  until_mono_ns    CLOCK_MONOTONIC when an entry in force ends next; 0: none
 *       24     4  source           NCI_SOURCE_*
 *       28     4  wish             NCI_WISH_* of the last entry in force; 0: none
 *       32     4  sample           NCI_SAMPLE_*
 *       36     4  kernels          NCI_KERNELS_*
 *       40     4  budget_ppm       of wall time that KernelCh may cost
 *       44     4  kernel_cost_ns   what it is taken to cost per group
 *       48     4  burst_period_ms  as planned last; 0: no plan yet
 *       52     4  burst_length_ms  as planned last; equal to the period: always on
 *       56     8  bursts           begun
 *       64     8  burst_ticks      time in bursts that have ended
 *       72     8  burst_start      ticks when the one that is on began; 0: none is
 *       80     8  groups_inside    groups whose operations KernelCh watched
 *       88     8  groups_outside
 *       96     8  ops_inside       operations of these groups
 *      104     8  ops_outside
 *      112     8  switches         stores into NCCL's mask since the first init
 *      120     8  control_reads    of the control file
 *      128     8  control_refused  of these: what was read was not whole, or not ours
 *      136     8  clock_ticks      two looks at the clock with nothing between them
 *      144    32  timed            by NCI_THREADS_*
 *      176     8  settles_mono_ns  CLOCK_MONOTONIC until which KernelCh is off though it is
 *                                  asked for: who sends has yet to show up; 0: it is not
 *                                  so, or not known (before 1.3)
 *      184    72  zero
 */
struct nci_steer {
	_Atomic uint64_t sequence;
	_Atomic uint64_t since;
	_Atomic uint64_t until_mono_ns;
	_Atomic uint32_t source;
	_Atomic uint32_t wish;
	_Atomic uint32_t sample;
	_Atomic uint32_t kernels;
	_Atomic uint32_t budget_ppm;
	_Atomic uint32_t kernel_cost_ns;
	_Atomic uint32_t burst_period_ms;
	_Atomic uint32_t burst_length_ms;
	_Atomic uint64_t bursts;
	_Atomic uint64_t burst_ticks;
	_Atomic uint64_t burst_start;
	_Atomic uint64_t groups_inside;
	_Atomic uint64_t groups_outside;
	_Atomic uint64_t ops_inside;
	_Atomic uint64_t ops_outside;
	_Atomic uint64_t switches;
	_Atomic uint64_t control_reads;
	_Atomic uint64_t control_refused;
	_Atomic uint64_t clock_ticks;
	struct nci_timed timed[NCI_THREAD_CLASSES];
	_Atomic uint64_t settles_mono_ns;
	uint8_t zero[72];
};
_Static_assert(sizeof(struct nci_steer) == 256, "ABI: what steers is four lines");
_Static_assert(offsetof(struct nci_steer, bursts) == 56, "ABI: bursts moved");
_Static_assert(offsetof(struct nci_steer, timed) == 144, "ABI: timed moved");
_Static_assert(offsetof(struct nci_steer, settles_mono_ns) == 176, "ABI: settles_mono_ns moved");

/*
 *   offset  size  field            meaning
 *        0     8  magic            NCI_MAGIC
 *        8     2  abi_major        layout; leave other majors alone
 *       10     2  abi_minor        additions
 *       12     4  ready            0 until everything above and below is written; then 1,
 *                                  stored with release
 *       16     8  live_offset      where struct nci_live and the lane directory lie
 *       24     8  comms_offset
 *       32     8  strings_offset
 *       40     4  lanes            capacity of the directory
 *       44     4  comms            capacity of the communicator table
 *       48     4  strings          capacity of the string table
 *       52     4  pid              in the process's own pid namespace
 *       56     8  start_time       field 22 of /proc/self/stat, clock ticks since boot
 *       64     4  uid
 *       68     4  nonce            upper half of this process's context tokens, never 0
 *       72     8  instance         random, tells this process from every other
 *       80    16  boot_id          of the kernel, binary; zeros: not readable
 *       96     4  clock            NCI_CLOCK_*: what a tick is
 *      100     4  zero
 *      104    24  anchor           one tick paired with both clocks, at init
 *      128    32  plugin_version   text, zero-terminated
 *      160    64  command          program's name, zero-terminated
 *      224     4  env_bytes        used bytes of env
 *      228  1820  env              "NAME=VALUE\0" of the allow-listed job variables
 *     2048   256  steer            changes
 *     2304  1792  zero1
 */
struct nci_header {
	uint64_t magic;
	uint16_t abi_major;
	uint16_t abi_minor;
	_Atomic uint32_t ready;
	uint64_t live_offset;
	uint64_t comms_offset;
	uint64_t strings_offset;
	uint32_t lanes;
	uint32_t comms;
	uint32_t strings;
	uint32_t pid;
	uint64_t start_time;
	uint32_t uid;
	uint32_t nonce;
	uint64_t instance;
	uint8_t boot_id[16];
	uint32_t clock;
	uint32_t zero;
	struct nci_anchor anchor;
	char plugin_version[32];
	char command[64];
	uint32_t env_bytes;
	char env[1820];
	struct nci_steer steer;
	uint8_t zero1[1792];
};
_Static_assert(sizeof(struct nci_header) == NCI_PAGE, "ABI: the header is one page");
_Static_assert(offsetof(struct nci_header, ready) == 12, "ABI: ready moved");
_Static_assert(offsetof(struct nci_header, instance) == 72, "ABI: instance moved");
_Static_assert(offsetof(struct nci_header, anchor) == 104, "ABI: anchor moved");
_Static_assert(offsetof(struct nci_header, env) == 228, "ABI: env moved");
_Static_assert(offsetof(struct nci_header, steer) == 2048, "ABI: steer moved");

#define NCI_LIVE_EXITED		0x1	/* the process ended by exit() or return from main() */

/*
 * What changes while the process lives, beside the lanes.  Written by any of its
 * threads, on rare paths only.  128 bytes; the lane directory follows, so that
 * one read of a few KiB tells everything that is new.
 *
 *   offset  size  field          meaning
 *        0     4  lanes          lines of the directory in use or refused (a prefix)
 *        4     4  comms          communicators begun; each entry has its own ready
 *        8     4  strings        names begun; each entry has its own ready
 *       12     4  flags          NCI_LIVE_*
 *       16     4  api_version    profiler API in use, 1 to 6; 0: no init yet
 *       20     4  level          NCI_LEVEL_*
 *       24     4  mask           what NCCL was asked for last
 *       28     4  reason         NCI_REASON_*
 *       32     4  comms_open     communicators initialised and not finalized, stored
 *                               with release, after the `finalize` of who is not
 *       36     4  zero
 *       40     8  no_lane        events refused because their thread has no lane
 *       48     8  no_comm        communicators that found the table full
 *       56     8  no_string      names that found the table full
 *       64     8  unknown_event  starts refused: a type that this plugin does not know
 *       72     8  unknown_state  states ignored: not known, or not of that event
 *       80     8  foreign        events issued by another process (PXN)
 *       88     8  closed_comm    events on a communicator that was finalized
 *       96     8  bad_context    events whose context was not given by any init
 *      104    24  zero1
 */
struct nci_live {
	_Alignas(NCI_LINE_BYTES) _Atomic uint32_t lanes;
	_Atomic uint32_t comms;
	_Atomic uint32_t strings;
	_Atomic uint32_t flags;
	_Atomic uint32_t api_version;
	_Atomic uint32_t level;
	_Atomic uint32_t mask;
	_Atomic uint32_t reason;
	_Atomic uint32_t comms_open;
	uint32_t zero;
	_Atomic uint64_t no_lane;
	_Atomic uint64_t no_comm;
	_Atomic uint64_t no_string;
	_Atomic uint64_t unknown_event;
	_Atomic uint64_t unknown_state;
	_Atomic uint64_t foreign;
	_Atomic uint64_t closed_comm;
	_Atomic uint64_t bad_context;
	uint8_t zero1[24];
};
_Static_assert(sizeof(struct nci_live) == 128, "ABI: the live block is two lines");
_Static_assert(offsetof(struct nci_live, comms_open) == 32, "ABI: comms_open moved");
_Static_assert(offsetof(struct nci_live, no_lane) == 40, "ABI: no_lane moved");

#define NCI_COMM_HAS_ID		0x1	/* comm_id, nranks, nnodes, rank are given (API v4 on) */
#define NCI_COMM_HAS_GPU	0x2	/* gpu_uuid, pci_bus_id are given */

/*
 * One communicator, as one init saw it.  The index is its key in this process;
 * comm_id alone is not (two shrinks of one parent share it).
 *
 *   offset  size  field         meaning
 *        0     4  ready         1 when published, stored with release
 *        4     4  flags         NCI_COMM_HAS_*
 *        8     8  comm_id       NCCL's 64-bit hash
 *       16     4  rank          of this process's member
 *       20     4  nranks
 *       24     4  nnodes
 *       28     4  name_bytes    of name, 0: none was given
 *       32     8  init          ticks
 *       40     8  finalize      ticks, 0 while open: the one field that changes
 *       48    16  gpu_uuid      binary
 *       64    32  pci_bus_id    text, zero-terminated
 *       96    96  name          UTF-8 as the application gave it, cut to fit
 */
struct nci_comm {
	_Alignas(NCI_LINE_BYTES) _Atomic uint32_t ready;
	uint32_t flags;
	uint64_t comm_id;
	int32_t rank;
	int32_t nranks;
	int32_t nnodes;
	uint32_t name_bytes;
	uint64_t init;
	_Atomic uint64_t finalize;
	uint8_t gpu_uuid[16];
	char pci_bus_id[32];
	char name[96];
};
_Static_assert(sizeof(struct nci_comm) == 192, "ABI: a communicator is three lines");
_Static_assert(offsetof(struct nci_comm, finalize) == 40, "ABI: finalize moved");
_Static_assert(offsetof(struct nci_comm, name) == 96, "ABI: name moved");

/*
 * One name.  Id i is entry i - 1; id 0 means no name.
 *
 *   offset  size  field  meaning
 *        0     4  bytes  length of text plus one when published, stored with
 *                        release; 0 before
 *        4    60  text   not terminated; longer names are cut
 */
struct nci_string {
	_Alignas(NCI_LINE_BYTES) _Atomic uint32_t bytes;
	char text[60];
};
_Static_assert(sizeof(struct nci_string) == NCI_LINE_BYTES, "ABI: a name is one line");

#endif
