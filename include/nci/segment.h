/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCI_SEGMENT_H
#define NCI_SEGMENT_H

/*
 * One process's segment: a file "ncclinsp.<uid>.<pid>.<start-time>" in /dev/shm
 * (or NCCLINSP_SHM_DIR), mode 0600, made by the plugin and written by nobody
 * else.  <start-time> is field 22 of /proc/<pid>/stat.
 *
 *   +---------------------------+ 0
 *   | struct nci_header         |   written before `ready`, never changed after
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

/* Why the mask is less than what the level asks for. */
#define NCI_REASON_NONE		0
#define NCI_REASON_API		1	/* no KernelCh: the API is older than v5 */
#define NCI_REASON_SHM		2	/* no KernelCh: not enough shared memory to spare */

/* What one tick was at init; a reader on the same machine calibrates better. */
struct nci_anchor {
	uint64_t ticks;
	uint64_t mono_ns;	/* CLOCK_MONOTONIC, read right after ticks */
	uint64_t real_ns;	/* CLOCK_REALTIME, read right after mono_ns */
};

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
 *     2048  2048  zero1
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
	uint8_t zero1[2048];
};
_Static_assert(sizeof(struct nci_header) == NCI_PAGE, "ABI: the header is one page");
_Static_assert(offsetof(struct nci_header, ready) == 12, "ABI: ready moved");
_Static_assert(offsetof(struct nci_header, instance) == 72, "ABI: instance moved");
_Static_assert(offsetof(struct nci_header, anchor) == 104, "ABI: anchor moved");
_Static_assert(offsetof(struct nci_header, env) == 228, "ABI: env moved");

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
 *       32     4  comms_open     communicators initialised and not finalized
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
