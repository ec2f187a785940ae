/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_BASE_MODEL_H
#define READER_BASE_MODEL_H

/*
 * The plain structs that the stages of the daemon, and those of the library, hand to each other.
 *
 *   discover -> drain -> decode -> reconstruct -> timeline -> aggregate -> serve
 *               struct process, struct event      struct op
 *
 * Units are part of the names.  "Not known" is told apart from 0 everywhere: a
 * NULL name, UNKNOWN_U64, UNKNOWN_I32, TIMING_NONE, or a has_ flag.  Times are
 * CLOCK_MONOTONIC nanoseconds unless the name says ticks (host counter) or gpu
 * (the GPU's own clock).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "nci/events.h"
#include "nci/segment.h"
#include "util/unknown.h"

enum process_state {
	PROCESS_LIVE,
	PROCESS_EXITED,		/* ended by itself: the plugin said so */
	PROCESS_DIED,		/* its lock fell without a word */
};

/* One communicator as one init of one process saw it: one local rank. */
struct comm {
	bool ready;		/* false: an init is at work on it; nothing below is set */
	bool has_id;		/* API v4 on: the four below come with it */
	uint64_t id;		/* ... API v1 to v3: with the first operation, these two alone */
	int32_t rank;		/* UNKNOWN_I32 until then */
	int32_t nranks;		/* UNKNOWN_I32 with API v1 to v3 */
	int32_t nnodes;
	bool has_gpu;
	uint8_t gpu_uuid[16];
	char pci_bus_id[32];
	int32_t gpu_index;	/* its number in nvidia-smi; UNKNOWN_I32: not known */
	char name[97];		/* "": none was given */
	uint64_t init_ticks;
	uint64_t finalize_ticks; /* 0: open */
	uint64_t drift_ticks;	/* NCCL's own count of its works is wrong since; 0: it is not */
};

/* The map of a process's ticks to CLOCK_MONOTONIC: ns = mono_ns + (t - ticks) * ns_per_tick. */
struct tick_clock {
	uint32_t kind;		/* NCI_CLOCK_* */
	uint64_t ticks;
	uint64_t mono_ns;
	double ns_per_tick;
	uint64_t span_ns;	/* time that the rate was taken over; 0: not known */
};

/* Losses of a process, by cause: every one of these is shown. */
struct loss {
	uint64_t overrun;	/* records overwritten before we read them */
	uint64_t before;	/* records overwritten before this daemon came */
	uint64_t pool;		/* events refused or pushed out: no free slot */
	uint64_t lane;		/* events refused: their thread has no lane */
	uint64_t string;	/* names that found the table full */
	uint64_t comm;		/* communicators that found the table full */
	uint64_t rejected;	/* records that decode refused */
	uint64_t unknown;	/* records of a type this daemon does not know */
	uint64_t evicted;	/* operations pushed out of the reconstruction unfinished */
};

/* NCCL's calls that a process's plugin could make nothing of, and left no record of. */
struct ignored {
	uint64_t event;		/* starts of an event that it does not know */
	uint64_t state;		/* a state that it does not know, or that the event has not */
	uint64_t finalized;	/* starts for a communicator that was finalized */
	uint64_t context;	/* starts with a context that it never gave */
	uint64_t handle;	/* states and stops of an event that is over, or never was */
};

/* Faults of a pair of GPU stamps, see stamps.h. */
#define STAMP_FAULTS(X)				\
	X(GOOD,       NULL)			\
	X(ZERO,       "zero")			\
	X(BACKWARDS,  "backwards")		\
	X(REPEATED,   "repeated")		\
	X(OVERRUN,    "overrun")		\
	X(DRIFTED,    "drifted")		\
	X(DISTRUSTED, "distrusted")

enum stamp_fault {
#define X(NAME, text) STAMP_##NAME,
	STAMP_FAULTS(X)
#undef X
	STAMP_FAULT_END
};

/* An event that had started and not stopped when drain copied its handle slot. */
struct live_slot {
	pid_t tid;		/* number of the lane's owner at that time, in its pid namespace */
	struct nci_slot slot;
};

/* One class of threads: callbacks that were measured, and the ticks that they took. */
struct steering_timed {
	uint64_t count;
	uint64_t ticks;
};

/* Settings that steer a process's events: a copy of struct nci_steer. */
struct steering {
	bool known;		/* false: the plugin has not begun */
	uint64_t sequence;	/* number of the control file in force; 0: none ever was */
	uint64_t since_ticks;
	uint64_t until_ns;	/* 0: no end */
	uint64_t settles_ns;	/* kernels are not timed before it; 0: no such wait */
	uint32_t source;	/* NCI_SOURCE_* */
	uint32_t cause;		/* NCI_CAUSE_* */
	uint32_t sample;	/* NCI_SAMPLE_* */
	uint32_t mode, mode_s;	/* NCI_MODE_*; NCI_MODE_FIRST: for so many seconds */
	uint32_t nccl_version;	/* number that ncclGetVersion() gives; 0: not known */
	uint64_t stores;	/* into NCCL's mask */
	uint64_t switches;	/* stores of KernelCh among these */
	uint64_t control_reads, control_refused;
	struct steering_timed timed[NCI_THREAD_CLASSES];
};

/*
 * One process that writes, or wrote, a segment.  discover makes and ends it;
 * drain keeps the copied part up to date; later stages only read it.
 */
/* The phase that people say a process is at (phase.h).  All zero: nobody has said anything. */
struct phase {
	name_t name;		/* NULL: none */
	name_t before;		/* phase until since_ns */
	uint64_t since_ns;
};

struct process {
	uint64_t id;		/* ours: 1, 2, ...; never used twice */
	char file[80];		/* name of the segment's file */
	uint64_t instance;
	uint32_t nonce;		/* mark of its context tokens: PXN records name the process by it */
	pid_t pid;		/* here, as its lock tells; else as it calls itself */
	pid_t ns_pid;		/* number it calls itself by, in its own pid namespace */
	bool proven;		/* it is process `pid` here by the kernel's word (read/life.c) */
	uid_t uid;		/* owner of its file, by the kernel's word */
	uid_t account;		/* account whose quotas it counts against (accounts.h) */
	bool contained;		/* it has a pid namespace, or shared memory, of its own */
	char container[65];	/* its id, or name, as its cgroup says; "": not known */
	char pod_uid[37];	/* id of its Kubernetes pod, likewise */
	char command[64];
	char plugin_version[32];
	char env[1820];		/* "NAME=VALUE\0" pairs, env_bytes of them */
	uint32_t env_bytes;
	enum process_state state;
	uint32_t api_version;	/* 0: no init yet */
	bool tags_full;		/* names of tags found no room */
	bool is_rccl;		/* AMD's: its stamps are of an unknown unit, and left out */
	uint32_t level;		/* NCI_LEVEL_* */
	uint32_t mask;
	uint32_t seen;		/* NCI_SEEN_* */
	struct steering steering;
	uint64_t groups_inside, groups_outside;	/* API groups, as recorded: with an operation
						   that was posted with KernelCh, and without */
	bool group_inside;	/* such a one has come since the last group */
	uint64_t ops_inside, ops_outside;	/* posted with, and without, KernelCh */
	struct phase phase;
	uint32_t lanes;
	uint64_t records;
	uint64_t bytes;
	struct loss loss;
	struct ignored ignored;
	uint64_t stamps_refused[STAMP_FAULT_END];	/* counts by enum stamp_fault */
	struct tick_clock clock;
	uint64_t first_ticks;	/* time the segment was made: no stamp is older */
	uint64_t first_mono_ns;	/* the same moment, as the process says; 0: not known */
	uint64_t first_seen_ns;
	uint64_t last_record_ns; /* 0: none yet; when it was drained */
	uint64_t ended_ns;	/* 0: alive */
	uint64_t awaited_ns;	/* when others were last found to need it; 0: never */
	struct comm *comms;	/* table by a record's comm, a number; owned by the process */
	uint32_t ncomms;
	uint32_t world;		/* number + 1 of its largest communicator; 0: none is told of */
	uint32_t job_rank;	/* its rank in the job + 1; 0: not told, or it has several GPUs */
	bool several_gpus;	/* it has several ranks, too */
	name_t *strings;	/* string id - 1 -> name; owned, the names are not */
	uint64_t *tags;		/* string id - 1 -> its tag (nci_tag_of_name()); owned */
	uint32_t nstrings;
	struct recon *recon;	/* state that reconstruct keeps for it, or NULL */
	struct cpuwait *cpuwait;	/* the kernel's word on its progress threads, or NULL */
	struct cpuwait *calling;	/* ... on those that call NCCL, or NULL */
	struct resources_watch *resources;	/* the resources that it has of the node, or NULL */
	bool has_pidfd;
	int pidfd;		/* the daemon's, to learn how it ended */
	struct live_slot *last_slots;	/* events in flight when it ended; owned; NULL: alive */
	uint32_t nlast_slots;
};

/* A process whose segment is in a format of another major version: nothing of it is read. */
struct foreign {
	pid_t pid;		/* here, as its lock tells; else as the file's name says */
	char file[64];		/* name of the segment's file */
	pid_t host_pid;		/* number in our pid namespace */
	uid_t uid;
	uint64_t start_time;	/* clock ticks since boot */
	uint32_t abi_major, abi_minor;
};

/* Records that nobody will ever see. */
static inline uint64_t process_lost(const struct process *p)
{
	return p->loss.overrun + p->loss.pool + p->loss.lane;
}

/*
 * Its NCCL is 2.31 or newer: that counts the works that it watches, the GPU counts all.
 * Its RAS can set from outside what is recorded.
 */
static inline bool process_counts_less(const struct process *p)
{
	return p->api_version >= 7 || p->steering.nccl_version > 23100;
}

static inline name_t process_name(const struct process *p, uint16_t id)
{
	return id && id <= p->nstrings ? p->strings[id - 1] : NULL;
}

/* The name that the application gave a tag; NULL: a number, or none. */
name_t process_tag_name(const struct process *p, uint64_t tag);

static inline struct comm *process_comm(const struct process *p, uint16_t index)
{
	return index < p->ncomms && p->comms[index].ready ? &p->comms[index] : NULL;
}

/* A record that decode found sound: type known, size right, indices in range. */
struct event {
	const struct nci_record *rec;
	const struct comm *comm;	/* NULL: not in the table, or another process's */
};

/*
 * A record as its own type: const struct nci_ev_coll *c = EVENT(ev, coll).
 * decode has checked that the record has that type, and all lines that the type must
 * have: EVENT_LINES(ev) tells of the second one of those that may lack it.
 */
#define EVENT_LINES(ev)	NCI_FORM_LINES((ev)->rec->form)
#define EVENT(ev, name) ((const struct nci_ev_##name *)(const void *)(ev)->rec)

/*
 * The network transfers of one ProxyOp: of one operation, channel, peer and direction.
 * With PXN another process carries them out than the one whose communicator it is.
 */
struct transfers {
	const struct process *issuer;	/* process of op->parent's token, and of comm_index */
	const struct process *executor;	/* process whose clock the ticks are of */
	uint16_t comm_index;
	name_t comm_name;	/* NULL: none */
	const struct op *parent;	/* the operation it is part of; NULL: not open (any more) */
	const struct nci_ev_proxy_op *op;
	const struct nci_ev_proxy_sums *sums;	/* NULL: no times are known */
	uint64_t data_ticks;	/* its first step had its data, or it had come; 0: not told */
};

/* A request of the network plugin, on a queue pair or a socket, that is complete. */
struct net_request {
	const struct process *issuer, *executor;	/* the same as of transfers */
	uint16_t comm_index;
	name_t comm_name;	/* NULL: none */
	const struct nci_ev_net_plugin *ev;	/* a record of two lines */
};

/* Sources of a duration, the best first.  Never mixed in one histogram. */
#define TIMING_SOURCES(X)		\
	X(NONE,        NULL)		\
	X(KERNEL_GPU,  "kernel_gpu")	\
	X(KERNEL_CPU,  "kernel_cpu")	\
	X(PROXY_CPU,   "proxy_cpu")	\
	X(ENQUEUE_CPU, "enqueue_cpu")

enum timing_source {
#define X(NAME, text) TIMING_##NAME,
	TIMING_SOURCES(X)
#undef X
	TIMING_END
};

/* Sources of the order in which ranks came. */
#define ARRIVAL_SOURCES(X)		\
	X(NONE,      NULL)		\
	X(DURATION,  "duration")	\
	X(GPU_CLOCK, "gpu_clock")	\
	X(SYNC,      "initial_sync")

enum arrival_source {
#define X(NAME, text) ARRIVAL_##NAME,
	ARRIVAL_SOURCES(X)
#undef X
	ARRIVAL_END
};

#define OP_RANKS 16		/* ranks of one node that are compared */
#define OP_FUSED UINT32_MAX	/* perhaps in a batch: records that would tell are missing */

/* One operation of one rank: a collective, a send or a receive. */
struct op {
	/* identity */
	uint64_t process_id;
	pid_t pid;
	uid_t uid, account;	/* those of its process */
	uint32_t comm_index;	/* NCI_COMM_NONE: not known */
	uint64_t comm_id;
	name_t comm_name;	/* NULL: none */
	int32_t rank;
	int32_t nranks;
	bool has_comm_id;
	/* the operation itself */
	bool is_p2p;
	bool is_ce;		/* done by copy engines: only its enqueue is known */
	bool api_only;		/* nothing but the API call was seen of it */
	uint64_t token;		/* token of the Coll, P2p or CeColl event, or the API event's */
	name_t func;
	uint64_t seq;		/* UNKNOWN_U64: has none (send, receive, API event only) */
	uint64_t count;		/* number the application passed, or UNKNOWN_U64 */
	name_t datatype;	/* type the application passed, or NULL */
	uint64_t bytes;		/* nccl-tests' size for one rank, or UNKNOWN_U64 */
	int32_t root;		/* UNKNOWN_I32: the function has none */
	int32_t peer;		/* UNKNOWN_I32: no send or receive */
	name_t algo;
	name_t proto;
	uint32_t channels;	/* 0: not known */
	bool graph;		/* captured; only API events can tell */
	bool has_graph;
	uint64_t tag;		/* 0: none */
	name_t tag_name;	/* NULL: a number, or none */
	name_t phase;		/* its process's when it was posted; NULL: none */
	uint64_t group;		/* token of the Group event that posted it; 0: not known */
	/* progress: records seen so far, and for kernel_started live slots */
	uint32_t kernel_started;
	uint32_t kernel_stopped;
	uint32_t proxy_ops;
	uint32_t proxy_steps;		/* network transfers done */
	uint64_t proxy_bytes;		/* bytes on the wire in these */
	uint32_t stamps_refused;
	enum stamp_fault stamps_why;	/* fault of the first that was refused */
	uint64_t nth;			/* place among what its communicator posted (stamps.h) */
	bool expects_kernel;	/* KernelCh was asked for when it was posted */
	bool expects_proxy;
	bool complete;
	bool sampled;		/* timed at all */
	/* when, as recorded */
	uint64_t api_start_ticks;	/* 0: no API event */
	uint64_t start_ticks;		/* time of the Coll or P2p event: posting began */
	uint64_t stop_ticks;
	uint64_t proxy_start_ticks;	/* its first step had its data; 0: nobody told */
	uint64_t proxy_stop_ticks;	/* last proxy stop */
	uint64_t kernel_start_ticks;	/* first KernelCh start as the host saw it; 0: none */
	uint64_t kernel_stop_ticks;
	uint64_t gpu_start_ns;		/* first ptimer start, GPU clock; 0: none */
	uint64_t gpu_stop_ns;		/* last ptimer stop */
	uint64_t seen_ns;		/* when the first record of it was drained */
	/* when, as placed by timeline */
	uint64_t enqueued_ns;		/* CLOCK_MONOTONIC */
	uint64_t enqueue_ns;		/* duration of the posting; UNKNOWN_U64 */
	uint64_t queue_ns;		/* enqueue to kernel start; UNKNOWN_U64 */
	uint64_t exec_ns;		/* UNKNOWN_U64 */
	uint64_t exec_error_ns;		/* UNKNOWN_U64 */
	enum timing_source source;
	uint64_t started_ns;	/* CLOCK_MONOTONIC: beginning of exec_ns; 0: not known */
	/*
	 * The GPU's times as gpuclock maps them: no moment is later than these, nor earlier
	 * by more than the error.  0: not known.
	 */
	uint64_t gpu_start_mono_ns, gpu_stop_mono_ns;
	uint64_t gpu_clock_error_ns;	/* UNKNOWN_U64: nobody told when it was launched */
	uint64_t unseen_ns;	/* least time it ran before NCCL's progress thread saw it */
	uint64_t done_ns;		/* when we knew it was complete */
	bool predates;	/* posted long before its process was seen: done_ns is not its end */
	/* derived from these */
	double algbw_gbs;		/* < 0: not known */
	double busbw_gbs;		/* < 0: not known */
	/* batch: all that ran in the same kernel (batch.h); fused 0: alone */
	uint32_t fused;		/* operations in its batch, this one included, or OP_FUSED */
	bool end_unstamped;	/* its kernel stamped another one's end, or may have (batch.h) */
	bool batch_head;	/* stands for the batch in sums: its time counts once */
	uint64_t batch;		/* token of the head: the same for all members */
	uint64_t batch_ns;	/* time from the first start to the last stop; UNKNOWN_U64 */
	uint64_t batch_bytes;	/* UNKNOWN_U64: of some member not known */
	double batch_busbw_gbs;	/* < 0: not known */
	/*
	 * Put together from `parts` sends and receives of one group (p2pgroup.h); 0: not.
	 * Each part is an operation of its own too: a sum over all functions leaves out
	 * one or the other.
	 */
	uint32_t parts;
	int32_t shift;		/* data is sent to rank + shift; 0: no shift */
	uint64_t bus_bytes;	/* to other ranks, or from them; UNKNOWN_U64 */
	double skew;		/* largest over mean of the bytes per peer; 0: not known */
	/* comparison with other ranks' same operation here (ranks.h); local_ranks 0: none */
	uint32_t local_ranks;	/* ranks that were compared, this one included */
	int32_t arrival[OP_RANKS];	/* their ranks, the first to come first */
	enum arrival_source arrival_source;
	bool symmetric;		/* its kernel waits for the other ranks' before all else */
	bool has_sync;		/* its kernel has told of its phases (KernelPhase) */
	uint64_t sync_ns;	/* time its kernel waited.  Says nothing of other kernels */
	uint64_t late_ns;	/* time by which it came after the first */
	uint64_t waitfree_ns;	/* inside, of the one that came last: it waited for nobody */
	double busbw_waitfree_gbs;	/* over that; <= 0: not known */
};

/* Has it a kernel that may be timed?  Not by copy engines, nor within a rank. */
static inline bool op_may_be_timed(const struct op *op)
{
	return !op->is_ce && !op->api_only && !(op->is_p2p && op->peer == op->rank);
}

/* Ran in a kernel with others, or may have: its time is the batch's, counted by the head. */
static inline bool op_is_fused(const struct op *op)
{
	return op->fused > 1;
}

/* Nobody knows the batch of one whose records of the launch are missing. */
static inline bool op_ran_in_batch(const struct op *op)
{
	return op_is_fused(op) && op->fused != OP_FUSED;
}

/*
 * An operation of which nothing but its posting can be watched (an old API within a node,
 * copy engines, level ops) counts as complete at once; whether it is over, nobody knows.
 */
static inline bool op_end_is_known(const struct op *op)
{
	return !op->complete || op->kernel_stopped || op->proxy_ops;
}

/* Its time on the GPU, of a batch all of it; UNKNOWN_U64: not known. */
static inline uint64_t op_inside_ns(const struct op *op)
{
	return op_is_fused(op) ? op->batch_ns : op->exec_ns;
}

#endif
