/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSP_NCCLINSP_H
#define NCCLINSP_NCCLINSP_H

/*
 * libncclinsp: one process's segment, read without a daemon.  The plugin in the process
 * writes records into shared memory; this library checks them and puts them together to
 * operations with times.
 *
 *     struct ncclinsp *reader;
 *     int r = ncclinsp_open(&reader, "/dev/shm/ncclinsp.1000.4711.8236121");
 *
 *     if (r < 0)
 *             errx(1, "%s", ncclinsp_reason(r));
 *     ncclinsp_on_operation(reader, print_operation, NULL);
 *     while ((r = ncclinsp_poll(reader)) > 0)
 *             sleep for ncclinsp_wait_ns(reader);
 *     ncclinsp_inflight(reader, print_inflight, NULL);
 *     ncclinsp_close(reader);
 *
 * The segment may be of a process that runs, that has ended while it was open, or that was
 * killed, and it may be a copy of such a file.  Nothing in it is believed: each value is
 * checked in a private copy, nothing is mapped, and a file that is cut short or changed under
 * the reader gives an error.
 *
 * Values.  Times are CLOCK_MONOTONIC in ns where the name ends in _ns and is a moment; else
 * _ns is a duration.  Not known is NCCLINSP_UNKNOWN in 64 bits, NCCLINSP_NONE in 32, NULL as a
 * text, and a negative rate; a moment that is not known is 0.  Texts are UTF-8.
 *
 * Ownership.  Everything that a function hands out belongs to the reader.  It holds during
 * the callback, or until the next call of the same function with the same reader; names of
 * functions, types and communicators hold until ncclinsp_close().  A callback does not call into its reader.
 *
 * Growth.  A struct that is handed out begins with its size: later versions put members behind
 * the last one and change none.  A program that also runs with older versions asks
 * NCCLINSP_HAS(operation, member) first.  No program makes such structs, or copies more of one
 * than the members that it knows.  The shared library's name is libncclinsp.so.0 as long as
 * this holds, and a function keeps the version node that it came with (NCCLINSP_0).
 *
 * Threads.  A reader is used by one thread at a time; different readers are independent.  The
 * library starts no thread, opens no socket, writes no file, handles no signal, and takes
 * about 2 MiB a reader, and what the process has in flight.
 *
 * Errors are negative errno values; ncclinsp_reason() says each in words:
 *     -EAGAIN           the process is still at work on its segment: try again in a moment
 *     -EPROTO           no segment, or its contents cannot be true
 *     -EPROTONOSUPPORT  another version's format
 *     -ESTALE           made in another boot of this machine, or on another one
 *     -EDEADLK          the calling process's own segment: to close it would drop the lock by
 *                       which others see that the process lives
 *     -EPERM            no regular file
 *     -ENOMEM, and what open(2) gives
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NCCLINSP_API __attribute__((visibility("default")))

#define NCCLINSP_UNKNOWN UINT64_MAX
#define NCCLINSP_NONE	 INT32_MIN

/* The struct at `p`, which this library handed out, has the member. */
#define NCCLINSP_HAS(p, member)                                                               \
	((p)->size >= (size_t)((const char *)&(p)->member - (const char *)(p)) +              \
			      sizeof((p)->member))

struct ncclinsp;

/* ---- the process ----------------------------------------------------------------- */

#define NCCLINSP_LIVE	0
#define NCCLINSP_EXITED 1	/* ended by itself, and said so */
#define NCCLINSP_DIED	2	/* was killed, or crashed */

struct ncclinsp_process {
	uint32_t size;
	uint32_t state;			/* NCCLINSP_LIVE and so on */
	const char *state_text;		/* "live", "exited", "died" */
	int32_t pid;			/* here, as far as the kernel tells; else as ns_pid */
	int32_t ns_pid;			/* number it calls itself by, in its own pid namespace */
	uint32_t uid;			/* owner of the file */
	uint32_t proven;		/* 1: the kernel confirms that the file is that process's */
	const char *command;
	const char *segment;		/* the file's name */
	uint64_t instance;		/* random, tells it from every other process */
	const char *plugin_version;
	uint32_t api_version;		/* NCCL's profiler interface; 0: NCCL has not begun */
	uint32_t nccl_version;		/* NCCL itself, 23007 for 2.30.7; 0: not known */
	const char *level;		/* amount that it records: "off", "ops", "kernel", "net", ... */
	uint32_t event_mask;		/* events that NCCL was asked for */
	uint32_t reserved;
	uint32_t lanes;			/* threads that record, or did */
	uint32_t comms;			/* communicators have numbers below this */
	uint32_t comms_open;		/* communicators that are not finalized */
	uint64_t records;		/* read so far */
	uint64_t bytes;			/* bytes of these records */
	uint64_t began_ns;		/* when it made its segment */
	uint64_t opened_ns;
	uint64_t last_record_ns;	/* when its newest record was read */
	/*
	 * The time when it was seen to have ended.  Where it had ended before it was opened: the
	 * newest moment that it recorded, until which it lived at least.
	 */
	uint64_t ended_ns;
	const char *job_scheduler;	/* its launcher: "slurm" ... */
	const char *job_id;
	int32_t job_rank, job_local_rank, job_world_size;
	uint32_t environment_bytes;	/* "NAME=VALUE\0" pairs of these launchers */
	const char *environment;
};

/* Losses by cause; they count records unless said otherwise. */
struct ncclinsp_loss {
	uint32_t size;
	uint32_t reserved;
	uint64_t overrun;	/* overwritten before they were read */
	uint64_t before;	/* overwritten before the segment was opened */
	uint64_t pool;		/* never made: no free slot for the event */
	uint64_t lane;		/* never made: no lane for the thread */
	uint64_t string;	/* names that found their table full */
	uint64_t comm;		/* communicators that found their table full */
	uint64_t rejected;	/* their contents cannot be true */
	uint64_t unknown;	/* records of a type that this library does not know */
	uint64_t evicted;	/* operations pushed out unfinished: too many were open */
};

struct ncclinsp_last {
	const char *func;
	uint64_t seq;		/* newest that was posted */
};

/* One communicator as the process sees it: one rank of it. */
struct ncclinsp_comm {
	uint32_t size;
	uint32_t index;		/* its number in the process */
	uint32_t has_id;	/* 0: NCCL's interface is too old to tell */
	uint32_t in_flight;	/* operations open now */
	uint64_t id;
	const char *name;	/* name that the application gave it */
	int32_t rank, nranks, nnodes;
	uint32_t nlast;		/* functions in `last` */
	const struct ncclinsp_last *last;
	const char *gpu_uuid;	/* "GPU-..." */
	const char *pci_bus_id;
	uint64_t init_ns;
	uint64_t finalize_ns;	/* 0: open */
	uint64_t last_op_ns;	/* when its newest operation was posted */
	uint64_t tag;		/* tag of that operation; 0: none */
	const char *tag_name;	/* its name, if it was given as one */
};

/* ---- operations ------------------------------------------------------------------ */

/* One operation of one rank: a collective, a send or a receive. */
struct ncclinsp_operation {
	uint32_t size;
	uint32_t has_comm_id;
	uint64_t comm_id;
	const char *comm_name;
	int32_t rank, nranks;
	int32_t pid;
	uint32_t channels;		/* 0: not known */
	uint64_t token;			/* token of its event */
	const char *func;		/* "AllReduce" */
	uint64_t seq;			/* number in its communicator; sends have none */
	uint64_t count;			/* elements, as the application passed it */
	const char *datatype;
	uint64_t bytes;			/* size as nccl-tests counts it for one rank */
	int32_t root;			/* NCCLINSP_NONE: the function has none */
	int32_t peer;			/* NCCLINSP_NONE: no send or receive */
	const char *algo, *proto;
	int32_t graph;			/* 1: captured in a CUDA graph, 0: not, or NCCLINSP_NONE */
	int32_t complete;		/* whether it is over: 1, 0, or NCCLINSP_NONE: its end cannot be watched */
	uint64_t enqueued_ns;		/* moment */
	uint64_t enqueue_ns;		/* duration of the call */
	uint64_t queue_ns;		/* duration from call to kernel */
	uint64_t exec_ns;		/* duration of the kernel; of a batch see batch_ns */
	uint64_t exec_error_ns;		/* exec_ns is wrong by no more */
	const char *timing_source;	/* "kernel_gpu", "kernel_cpu", "proxy_cpu", "enqueue_cpu" */
	double algbw_gbs, busbw_gbs;	/* 10^9 bytes/s, as nccl-tests has them */
	uint64_t gpu_start_ns, gpu_stop_ns;	/* moments: no later than these ... */
	uint64_t gpu_clock_error_ns;		/* ... nor earlier by more */
	uint32_t fused;			/* operations that ran in one kernel; 0: it ran alone;
					   UINT32_MAX: perhaps not alone */
	uint32_t parts;			/* made of so many sends and receives; 0: it is itself */
	uint64_t batch;			/* token of the first of them */
	uint64_t batch_bytes, batch_ns;	/* size and duration of the batch */
	double batch_busbw_gbs;
	double skew;			/* largest over mean of the bytes per peer; 0: not known */
	int32_t shift;			/* data goes to rank + shift; 0: no shift */
	uint32_t sampled;		/* 1: it was timed */
	uint32_t stamps_refused;	/* GPU stamps that cannot be true */
	uint32_t reserved;
	const char *stamps_why;		/* fault of the first of them */
	uint64_t tag;			/* tag of the application; 0: none */
	uint64_t done_ns;		/* when this reader knew that it is complete */
	const char *tag_name;		/* name of the tag, if it was given as one */
};

/* One thing that has begun and not ended. */
struct ncclinsp_inflight {
	uint32_t size;
	uint32_t has_comm_id;
	uint64_t comm_id;
	const char *comm_name;
	int32_t rank;
	int32_t tid;			/* thread, in the process's pid namespace */
	const char *event_type;		/* "Coll", "KernelCh", "ProxyOp" ... */
	const char *func;
	uint64_t seq, bytes;
	uint64_t age_ns;		/* duration until now, or until ended_ns of the process */
	const char *state;		/* "posted", "not_started", "running", "finishing"; of a
					   transfer NCCL's word */
	uint64_t tag;			/* 0: none */
	const char *direction;		/* "send", "recv" */
	int32_t channel, peer, step, steps, channels, kernel_started, kernel_stopped, proxy_ops;
	uint64_t token;
	uint64_t parent;		/* 0: none */
	const char *tag_name;		/* NULL: a number, or none */
};

/* One event as the process recorded it, checked. */
struct ncclinsp_record {
	uint32_t size;
	uint32_t type;			/* NCI_EV_* of nci/events.h */
	const char *type_name;		/* "Coll"; NULL: no event of NCCL's */
	const struct ncclinsp_comm *comm;	/* NULL: none, or another process's */
	const char *func;
	uint64_t token;
	uint64_t parent;		/* token; 0: none */
	uint64_t start_ns, stop_ns;	/* moments */
	/* All of it, of the type that nci/events.h has for it; 64 or 128 bytes. */
	const void *record;
	uint64_t record_bytes;
};

/* ---- a reader -------------------------------------------------------------------- */

/* The version of the library that runs, "0.1.0". */
NCCLINSP_API const char *ncclinsp_version(void);

/* An error in words, for ever; `error` as returned. */
NCCLINSP_API const char *ncclinsp_reason(int error);

/*
 * Opens a segment.  0 and *out, or a negative errno.  Sleeps for 5 ms, in which the machine's
 * counter is compared with its clock.
 */
NCCLINSP_API int ncclinsp_open(struct ncclinsp **out, const char *path);

/* The same by a descriptor open for reading, which stays the caller's. */
NCCLINSP_API int ncclinsp_open_fd(struct ncclinsp **out, int fd);

/* NULL is fine. */
NCCLINSP_API void ncclinsp_close(struct ncclinsp *reader);

/*
 * Functions that ncclinsp_poll() calls: for each operation that is finished, or that nothing
 * more can be learned of, once; and for each record.  NULL: none.
 */
typedef void ncclinsp_operation_fn(const struct ncclinsp_operation *operation, void *arg);
typedef void ncclinsp_record_fn(const struct ncclinsp_record *record, void *arg);
NCCLINSP_API void ncclinsp_on_operation(struct ncclinsp *reader, ncclinsp_operation_fn *fn,
					void *arg);
NCCLINSP_API void ncclinsp_on_record(struct ncclinsp *reader, ncclinsp_record_fn *fn, void *arg);

/*
 * Reads all that is new.  1: the process lives, more may come; 0: it has ended and everything
 * has been handed out, what it left unfinished included; or a negative errno, after which
 * nothing more is read.
 */
NCCLINSP_API int ncclinsp_poll(struct ncclinsp *reader);

/* Time from now until the next poll is due, so that nothing is overwritten unread. */
NCCLINSP_API uint64_t ncclinsp_wait_ns(const struct ncclinsp *reader);

/*
 * Visits all that had begun and not ended at the last poll, in a process that runs all that is
 * in flight now, the oldest first.  Returns how many, or a negative errno.
 */
typedef void ncclinsp_inflight_fn(const struct ncclinsp_inflight *inflight, void *arg);
NCCLINSP_API int ncclinsp_inflight(struct ncclinsp *reader, ncclinsp_inflight_fn *fn, void *arg);

/* A communicator as of the last poll, by its number; NULL: nothing is known of it (any more). */
NCCLINSP_API const struct ncclinsp_comm *ncclinsp_comm(struct ncclinsp *reader, uint32_t index);

/* The process and its losses as of the last poll. */
NCCLINSP_API const struct ncclinsp_process *ncclinsp_process(struct ncclinsp *reader);
NCCLINSP_API const struct ncclinsp_loss *ncclinsp_loss(struct ncclinsp *reader);

/* A name that a record holds by its number, as datatype in struct nci_ev_coll; NULL: none. */
NCCLINSP_API const char *ncclinsp_name(const struct ncclinsp *reader, uint16_t id);

#ifdef __cplusplus
}
#endif

#endif
