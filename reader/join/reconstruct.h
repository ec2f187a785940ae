/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_JOIN_RECONSTRUCT_H
#define READER_JOIN_RECONSTRUCT_H

/*
 * Events -> operations.  Records come in any order across lanes; children are
 * joined to their operation by token, and an operation is handed on once: when
 * it is complete, when nothing more can be learned of it, or when its process
 * has ended.
 *
 *     for every process:   reconstruct_attach(rc, process)
 *     every poll:          reconstruct_event() for every record of the poll
 *                          if (reconstruct_wants_slots(rc, process, now_ns))
 *                                  reconstruct_settle() with copies of its live slots
 *                          reconstruct_flush(rc, now_ns), once
 *     when it has ended:   reconstruct_end() after its last record
 *     when it is forgotten: reconstruct_detach()
 *
 * Times are CLOCK_MONOTONIC ns; the calls of one poll may be a little out of
 * order.  Memory per process is fixed at attach; what is pushed out is counted in
 * process->loss.evicted.
 */

#include "reader/base/model.h"
#include "reader/base/names.h"

struct memory;
struct reconstruct;
struct gpus;

/* An operation is finished.  `op` is valid during the call only. */
typedef void reconstruct_done_fn(const struct op *op, uint64_t now_ns, void *arg);

/* A ProxyOp has stopped.  `t` and what it points to are valid during the call only. */
typedef void reconstruct_moved_fn(const struct transfers *t, uint64_t now_ns, void *arg);

/* A request of a network plugin is complete whose payload is read; likewise. */
typedef void reconstruct_requested_fn(const struct net_request *request, uint64_t now_ns,
				      void *arg);

/*
 * Zero means the default.  Processes of one user beyond the first 32 that are attached
 * have an eighth of each per process, so that no user takes all memory.
 */
struct reconstruct_limits {
	uint32_t ops;		/* open operations per process (16384) */
	uint32_t apis;		/* API calls waiting for their operation (2048) */
	uint32_t proxies;	/* proxy operations whose steps came first (1024) */
	uint32_t plans;		/* launches in flight, of more than one operation (1024) */
	uint32_t spans;		/* channels of operations in flight (65536) */
	uint32_t groups;	/* groups of sends and receives in flight (512) */
	uint32_t parts;		/* sends and receives in these (16384) */
	uint32_t ended;		/* groups of API calls remembered, once they have ended (4096) */
	uint32_t processes;	/* attached at once, or kept (1536) */
	uint32_t comms;		/* followed in all processes, half by one user (8192) */
	uint64_t seed;		/* seed of the index tables: should be random */
	struct memory *memory;	/* all is taken of it; NULL: no ceiling */
};

/* Counts of what did not fit into an operation, over all processes. */
struct reconstruct_stats {
	uint64_t records;	/* taken in */
	uint64_t finished;	/* operations handed on */
	uint64_t orphans;	/* children whose operation never came */
	uint64_t foreign;	/* children from another process (PXN) that were joined */
	uint64_t foreign_orphans; /* children from another process, unknown to us */
	uint64_t late;		/* children that came after their operation was handed on */
	uint64_t unbatched;	/* operations of which nobody knows whether they ran alone */
	uint64_t unnamed;	/* groups of transfers that lack something: not told */
	uint64_t comms_refused;	/* communicators that are not followed: too many */
	uint32_t comms_most;	/* the most communicators that are followed */
	uint64_t stamps_refused; /* GPU stamps that cannot be true, or are not believed */
	uint64_t stamps_refused_by[STAMP_FAULT_END];
};

#define RECONSTRUCT_FUNCS 12
/* A collective as the application called it. */
struct called {
	uint64_t start_ns;
	name_t func, datatype;
	uint64_t count;
	int32_t root;		/* UNKNOWN_I32 where the function has none */
};

#define RECONSTRUCT_CALLS 8
/* The progress of one communicator of one process (one local rank) so far. */
struct comm_progress {
	uint32_t in_flight;	/* open operations */
	uint64_t last_op_ns;	/* when its last operation was posted, CLOCK_MONOTONIC; 0: none */
	name_t last_func;	/* the function of that one; NULL: not known */
	uint64_t last_func_seq;	/* its number; UNKNOWN_U64: it has none */
	bool last_unwatched;	/* nothing tells its end: no kernel, no network */
	uint32_t nfuncs;
	struct {
		name_t func;
		uint64_t seq;	/* newest posted */
	} last_seq[RECONSTRUCT_FUNCS];
	uint64_t tag;		/* tag of the newest that was posted; 0: none */
	bool has_calls;		/* all calls are counted: it was seen from its begin, and whole */
	uint64_t calls;		/* calls of collectives */
	struct called call[RECONSTRUCT_CALLS];	/* the newest, in order, the last one at the end */
};

/* Returns 0 or -ENOMEM.  `limits` may be NULL; `names` stays the caller's and outlives it. */
int reconstruct_new(struct reconstruct **rcp, const struct reconstruct_limits *limits,
		    struct names *names, reconstruct_done_fn *done, void *arg);
/* Detaches whatever is still attached. */
void reconstruct_free(struct reconstruct *rc);

/* Network transfers, and requests, are told as well, with the same `arg`; NULL: they are not. */
void reconstruct_tell_moved(struct reconstruct *rc, reconstruct_moved_fn *moved);
void reconstruct_tell_requests(struct reconstruct *rc, reconstruct_requested_fn *requested);

/* Makes process->recon.  -ENOMEM, or -ENOSPC: too many processes. */
int reconstruct_attach(struct reconstruct *rc, struct process *process);
void reconstruct_detach(struct reconstruct *rc, struct process *process);

/* One sound record.  A process without recon is ignored. */
void reconstruct_event(struct reconstruct *rc, struct process *process,
		       const struct event *ev, uint64_t now_ns);

/*
 * True: something in it (or in a process that it works for, PXN) can only be
 * decided by what is in flight right now.
 */
bool reconstruct_wants_slots(const struct reconstruct *rc, const struct process *process,
			     uint64_t now_ns);

/* All live slots of the process, copied after every record given so far. */
void reconstruct_settle(struct reconstruct *rc, struct process *process,
			const struct live_slot *slots, size_t n, uint64_t now_ns);

/* Hand on what has waited long enough; called after each poll.  Cheap when nothing has. */
void reconstruct_flush(struct reconstruct *rc, uint64_t now_ns);

/*
 * No more records will come, and process->last_slots is what was in flight.  What
 * is open is handed on: as complete if none of its children was in flight and some
 * have stopped or its communicator was finalized; else with complete = false, and
 * then it stays listed by reconstruct_open() until reconstruct_detach().
 */
void reconstruct_end(struct reconstruct *rc, struct process *process, uint64_t now_ns);

/*
 * Every operation of the process that is not finished, and every API call whose
 * operation may still come (op->api_only), in no order.  Only what is recorded,
 * op->enqueued_ns and op->enqueue_ns are filled in.  op->complete: it is over if no child of it is
 * live now, and only settles.  `visit` returns false to stop.
 */
typedef bool reconstruct_open_fn(const struct op *op, void *arg);
void reconstruct_open(struct reconstruct *rc, const struct process *process,
		      reconstruct_open_fn *visit, void *arg);

/* False: nothing known about that communicator yet; *progress is zeroed. */
bool reconstruct_progress(const struct process *process, uint32_t comm_index,
			  struct comm_progress *progress);

/* Are the newest numbers of that rank all that it has posted? */
static inline bool reconstruct_counts(const struct process *p, const struct comm *comm)
{
	return p->state == PROCESS_LIVE && comm->has_id && p->mask & NCI_EVENT_BIT(NCI_EV_COLL);
}

/* Are all its calls of collectives counted? */
static inline bool reconstruct_counts_calls(const struct process *p, const struct comm *comm,
				      const struct comm_progress *progress)
{
	return reconstruct_counts(p, comm) && progress->has_calls &&
	       !(p->seen & (NCI_SEEN_PAUSE | NCI_SEEN_OUTSIDE));
}

/* Times of a kernel as its stamps, placed on our clock. */
struct reconstruct_kernel {
	uint64_t start_ns, stop_ns;	/* no later than these ... */
	uint64_t error_ns;		/* ... nor earlier by more; UNKNOWN_U64 */
};

/* False: the stamps cannot be true, or nothing is known of the GPU's clock yet. */
bool reconstruct_kernel(const struct process *p, const struct nci_ev_kernel_ch *c,
			struct reconstruct_kernel *out);

/* The clocks of the GPUs that were seen in use. */
const struct gpus *reconstruct_gpus(const struct reconstruct *rc);

const struct reconstruct_stats *reconstruct_stats(const struct reconstruct *rc);

#endif
