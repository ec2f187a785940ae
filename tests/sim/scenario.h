/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_SCENARIO_H
#define TESTS_SIM_SCENARIO_H

/*
 * A scenario: which processes and communicators there are, what they do, and
 * what goes wrong.  README.md beside this file has the grammar.
 *
 * World ranks count GPUs: node by node, process by process.
 */

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/names.h"

#define SCENARIO_MAX_RANKS	128	/* GPUs of a scenario */
#define SCENARIO_MAX_COMMS	128
#define SCENARIO_MAX_FAMILIES	16
#define SCENARIO_MAX_LINKS	64
#define SCENARIO_MAX_QUEUES	8	/* queue pairs of a connection */
#define SCENARIO_MAX_FAULTS	32
#define SCENARIO_MAX_GRAPHS	8
#define SCENARIO_MAX_RAS	8
#define SCENARIO_FOREVER	UINT64_MAX

/* One communicator.  Those of one `comm` line share a name, as in real jobs. */
struct sim_comm {
	const char *name;	/* its family's */
	uint64_t id;		/* what NCCL calls commId or commHash */
	int index;
	int family;
	int nranks, nnodes;
	int world[SCENARIO_MAX_RANKS];	/* rank -> world rank */
	bool pxn;		/* sends to other nodes go through the next local rank */
	bool nonblocking;	/* a thread of its own launches each group */
	int shares;		/* the progress threads of this family; -1: its own */
};

struct sim_family {
	char name[32];
	int first, ncomms;
	int channels, algo, proto;	/* for operations that say nothing else */
	bool pxn, nonblocking;
	int shares;
};

struct sim_op {
	enum sim_func func;	/* never FUNC_RECV: a Send stands for both sides */
	int family;
	uint64_t count;
	int datatype, algo, proto;
	int channels;
	int root;
	int src, dst;		/* Send: ranks of the communicator */
	bool ce;		/* runs on copy engines */
	bool symmetric;		/* symmetric-memory kernel: before 2.31 the API events are all */
	bool inplace;		/* AlltoAll: nothing moves within a rank */
	uint64_t tag;		/* the application's, told from 2.31 on */
	int opens, closes;	/* groups within a group that begin before and end after it */
	double uneven;		/* AlltoAll: share by which counts differ, by chance */
};

enum sim_stmt_kind {
	STMT_OP,
	STMT_LOOP,
	STMT_GROUP,
	STMT_GRAPH,
	STMT_REPLAY,
	STMT_COMPUTE,		/* the GPU is busy */
	STMT_IDLE,		/* the host is away */
	STMT_SYNC,
};

struct sim_stmt {
	enum sim_stmt_kind kind;
	struct sim_stmt *next, *body;
	uint64_t times;			/* loop, replay */
	int graph;			/* graph, replay */
	int64_t ns;			/* compute, idle */
	double jitter;			/* share of ns */
	int64_t rare_ns;		/* one time in rare_every, so much longer */
	uint64_t rare_every;		/* 0: never */
	bool ranks[SCENARIO_MAX_RANKS];	/* which world ranks */
	struct sim_op op;
};

struct sim_link {
	int from, to;		/* world ranks */
	int64_t latency_ns;
	double rate;		/* bytes per ns, which is GB/s */
};

/* Whether and how the network library reports its own work through NCCL. */
enum sim_net {
	NET_SILENT,
	NET_IB,			/* NCCL's InfiniBand transport, compiled to profile */
	NET_SOCKET,		/* its sockets, without helper threads, the same */
	NET_EXTERNAL,		/* a library of somebody else's */
};

struct sim_clock {
	int64_t offset_ns;
	double drift_ppm;
	int64_t step_ns, step_at_ns;	/* from then on it reads so much more */
	int64_t tick_ns;		/* what stamps are multiples of */
};

/* How long after a channel begins or ends the progress thread sees it. */
struct sim_poll {
	int64_t least_ns, mean_ns;	/* at least; more on average, exponential */
	int64_t rare_ns;		/* one in rare_every takes so much longer */
	uint64_t rare_every;		/* 0: none does */
};

enum sim_fault_kind {
	FAULT_LATE,		/* a rank reaches an operation late */
	FAULT_ABSENT,		/* a rank never joins an operation */
	FAULT_STUCK,		/* a network transfer of an operation never ends */
	FAULT_KILL,		/* a process dies in the middle of an operation */
	FAULT_ABORT,		/* a communicator is aborted in an operation */
	FAULT_STARVE,		/* a progress thread gets no CPU for a while */
	FAULT_FREEZE,		/* a GPU begins an operation and does nothing more */
	FAULT_MISMATCH,		/* a rank passes other arguments than the rest */
	FAULT_SWAP,		/* a rank makes two calls in the other order */
	FAULT_PAUSE,		/* the program stops between two operations */
	FAULT_SLOW_LINK,
	FAULT_SLOW_CHANNEL,
	FAULT_KINDS
};

struct sim_fault {
	enum sim_fault_kind kind;
	int rank;		/* world rank; kill: the process; -1: all */
	int family;		/* -1: any */
	uint64_t from, until;	/* operations of the communicator, inclusive */
	uint64_t every, burst;	/* of `every` operations the first `burst` */
	int64_t by_ns;
	double factor;		/* slow link, slow channel: so many times slower */
	int peer;		/* slow link: the world rank at its end */
	int channel;		/* slow channel */
	int queue;		/* of that one alone; -1: of all */
	int other_family;	/* swap: the call that comes before its time, */
	uint64_t other_op;	/* and which one of its communicator */
	uint64_t count;		/* mismatch: 0 and -1 as with the others */
	int datatype, root;
	bool host;		/* late: the host is late, not the GPU */
	bool busy;		/* starve: others have the CPU, and the thread wants it */
	int step;		/* stuck */
	int state;		/* stuck: 8, 9 or 20 (nccl/profiler.h) */
};

/* NCCL's RAS sets the mask of all processes. */
struct sim_ras {
	int family;
	uint64_t op;		/* at this call of a communicator of that name */
	int mask;
};

struct scenario {
	uint64_t seed;
	uint64_t salt;		/* from the file's name */
	int release;		/* NCCL 2.x is x */
	int nnodes, processes_per_node, gpus_per_process;
	int nranks, nprocesses;
	bool thread_per_process;
	bool together;		/* who waits for its GPU waits for the launches of its peers */
	enum sim_net net;
	int queues;		/* queue pairs of a connection, used in turn, step by step */
	bool agv;		/* Broadcast runs as AllGatherV, invisible from 2.29 on */
	double pace;		/* 0: as fast as can be; 1: real; 10: tenfold */
	int64_t hold_ns;	/* stay when there is nothing more to do; -1: unset */
	int64_t launch_ns;	/* host time of a kernel launch */
	int64_t spacing_ns;	/* between the launches of one thread's ranks */
	bool forward;		/* a thread's launches run from its first rank to its last */
	uint64_t chunk_bytes;	/* largest network transfer */
	bool ring_stamps;	/* KernelCh is told what NCCL's counters find */
	struct sim_poll poll;

	struct sim_clock clock[SCENARIO_MAX_RANKS];
	struct sim_link class_link[2];	/* within a node, between nodes */
	struct sim_link link[SCENARIO_MAX_LINKS];	/* pairs that differ */
	int nlinks;
	struct sim_family family[SCENARIO_MAX_FAMILIES];
	int nfamilies;
	struct sim_comm comm[SCENARIO_MAX_COMMS];
	int ncomms;
	struct sim_fault fault[SCENARIO_MAX_FAULTS];
	int nfaults;
	struct sim_ras ras[SCENARIO_MAX_RAS];
	int nras;
	char graph[SCENARIO_MAX_GRAPHS][32];
	int ngraphs;
	struct sim_stmt *program;
};

/*
 * Read a scenario from text; `name` is how messages call the file.  Returns 0
 * and a scenario for scenario_free(), or -EINVAL with one line in err that says
 * where, what and why, or -ENOMEM.
 */
int scenario_parse(struct scenario **scnp, const char *name, const char *text,
		   char *err, unsigned int err_size);

/* The same from a file; also the errno of reading it. */
int scenario_load(struct scenario **scnp, const char *path, char *err, unsigned int err_size);

/* Another seed, as if the text had said so. */
void scenario_reseed(struct scenario *scn, uint64_t seed);

void scenario_free(struct scenario *scn);	/* NULL is fine */

/* Whether it has a loop without an end. */
bool scenario_is_endless(const struct scenario *scn);

/* Where a world rank lives. */
int scenario_process_of(const struct scenario *scn, int world);
int scenario_node_of(const struct scenario *scn, int world);

/* The link that data takes from one world rank to another. */
const struct sim_link *scenario_link(const struct scenario *scn, int from, int to);

/* Whether a fault of this kind is in store for this world rank. */
bool scenario_has_fault(const struct scenario *scn, enum sim_fault_kind kind, int world);

#endif
