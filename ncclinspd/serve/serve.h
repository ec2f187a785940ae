/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SERVE_SERVE_H
#define NCCLINSPD_SERVE_SERVE_H

/*
 * The socket API (docs/api.md): HTTP/1.1 and JSON on a Unix socket, the last
 * stage.  It only reads what the other stages hold, and only inside serve_run(),
 * so that every answer shows one state of the daemon.
 *
 * It never blocks.  The caller watches serve_fd() for reading, calls serve_run()
 * when it is ready, and at the latest when serve_timeout_ns() has passed.
 *
 *     serve_open(&serve, &config, &source)
 *     loop: serve_fd() readable, or timeout -> serve_run(serve, mono, real)
 *     as things happen: serve_op(), serve_process(), serve_finding()  feed /v1/stream
 *     serve_close(serve)
 */

#include "reader/base/model.h"

struct containers_stats;
struct exemplar;
struct finding;
struct json;
struct serve;

struct serve_config {
	int listen_fd;		/* bound, listening, non-blocking; the server's from then on */
	const char *host;	/* the texts are copied */
	const char *boot_id;	/* NULL: not readable */
	const char *group;	/* the group whose members see everything; NULL: "ncclinsp" */
	/*
	 * Serve /metrics of everything, and nothing else: over TCP nobody knows who asks.
	 * The address decides who may connect.
	 */
	bool metrics_only;
	uid_t raiser;		/* may have all users' ranks timed in detail; 0: nobody else */
	uint64_t started_mono_ns;
	uint64_t started_real_ns;
	uint64_t request_ns;	/* to receive a request; 0: the 5 s that are promised */
	uint32_t connections;	/* the most at the same time; 0: the 64 that are promised */
	uint32_t stream_bytes;	/* the most that wait for a slow client; 0: 1 MiB, of records 8 */
};

/* The sums of /v1/status that hold since the daemon's start, ended processes included. */
struct serve_ingest {
	uint64_t records;
	uint64_t bytes;
	uint64_t lost;		/* records lost since they are read, of every cause; exact */
	uint64_t before;	/* overwritten before they could be read for the first time */
	uint64_t rejected;	/* records refused, and segments that lied */
	uint32_t segments;	/* attached now */
	uint64_t poll_interval_ns;
};

/* One way of telling others, as /v1/status has it. */
struct serve_exporter {
	const char *kind;
	const char *at;		/* the place; holds until the daemon's next step */
	uint64_t done;		/* answers, files */
	uint64_t failed;	/* UNKNOWN_U64: does not apply */
	uint64_t last_ns;	/* 0: none yet */
	int error;		/* a negative errno: why it does not work; 0: it does */
};

#define SERVE_EXPORTERS 9

/*
 * The source of the answers.  The pointers hold for the server's life; what
 * the functions give holds until the daemon's next step.
 */
struct serve_source {
	void *arg;	/* the functions' argument */
	/* All processes, alive and lately ended, in the order of their ids; returns how many. */
	size_t (*processes)(void *arg, struct process *const **list);
	/* The same as discover_next_foreign().  NULL: there are none. */
	const struct foreign *(*next_foreign)(void *arg, size_t *i);
	/*
	 * Copy now what is in flight in a live process.  Returns how many, or a
	 * negative errno; *slots holds until the next call.  (An ended process has
	 * last_slots.)
	 */
	int (*slots)(void *arg, struct process *p, const struct live_slot **slots);
	void (*ingest)(void *arg, struct serve_ingest *ingest);
	/* The state of containers.  NULL: they are not looked for. */
	void (*containers)(void *arg, struct containers_stats *stats);
	/*
	 * The same as discover_next_waiting(), and the times that a file had no row.
	 * NULL: nothing waits.
	 */
	bool (*next_waiting)(void *arg, size_t *i, uid_t *uid);
	uint64_t (*no_row)(void *arg);
	/*
	 * Called before each answer, and each part of a long one, is made: what must
	 * not wait until many have been.  serve_op() may be called from it.  NULL: nothing.
	 */
	void (*meanwhile)(void *arg);
	/* The time now, by which turns of clients are measured.  NULL: they are not. */
	uint64_t (*clock_ns)(void *arg);
	/*
	 * Read all that was published so far, so that what is in flight finds the
	 * operation it belongs to.  serve_op() may be called from it.  NULL: nothing.
	 */
	void (*catch_up)(void *arg);
	/*
	 * Have a snapshot written: 0, its path (PATH_MAX) and size, or a negative errno,
	 * -EBUSY if too many are on their way.  NULL: there is no place for one.  What came
	 * of it: 0, it is there; -EAGAIN: not yet; or why it is not.
	 */
	int (*snapshot)(void *arg, uint64_t now_ns, char *path, uint64_t *bytes,
			uint64_t *ticket);
	int (*snapshot_outcome)(void *arg, uint64_t ticket);
	/*
	 * Called when what is wanted of jobs has changed: 0, or a negative errno: why
	 * they cannot be told.
	 */
	int (*steered)(void *arg, uint64_t now_ns);
	/* Fills in what is configured, and says how many that are.  NULL: nothing is. */
	size_t (*exporters)(void *arg, struct serve_exporter out[SERVE_EXPORTERS]);
	struct steer *steer;	/* NULL: nothing can be wanted of jobs */
	struct marks *marks;	/* NULL: what people say is not kept */
	const struct memory *memory;	/* NULL: there is no ceiling */
	struct reconstruct *reconstruct;
	struct ranks *ranks;	/* NULL: no ranks are compared */
	const struct straggler *straggler;	/* NULL: nor is waiting added up */
	struct sensors *sensors;	/* NULL: nothing is known about the machine */
	struct nics *nics;		/* NULL: nothing is known about interfaces */
	struct oplog *oplog;
	struct aggregate *aggregate;
	struct links *links;
	struct queues *queues;
	const struct transferlog *transferlog;
	struct names *names;	/* takes what people call things, charged to them */
	const struct accounts *accounts;	/* NULL: each uid is one */
	struct diagnose *diagnose;
	const struct metrics *metrics;
	struct exemplars *exemplars;	/* NULL: there is no place for any */
	const struct probelink *probe;	/* NULL: none is asked */
	const struct config *config;	/* NULL: nothing is configured */
	const struct config_reading *reading;	/* the last reading of its file */
};

/* Returns 0 or a negative errno; listen_fd is closed by serve_close() or on failure. */
int serve_open(struct serve **sp, const struct serve_config *config,
	       const struct serve_source *source);
void serve_close(struct serve *s);

/* The descriptor to watch for reading (an epoll set); stays the server's. */
int serve_fd(const struct serve *s);

/* The time to sleep at most, from `now_ns` (CLOCK_MONOTONIC), in ns; UINT64_MAX: for ever. */
uint64_t serve_timeout_ns(struct serve *s, uint64_t now_ns);

/* Do all that can be done without waiting.  The same moment on both clocks. */
void serve_run(struct serve *s, uint64_t now_ns, uint64_t real_ns);

/* Answers of /metrics so far, and when the last was given; 0: none was. */
uint64_t serve_collected(const struct serve *s, uint64_t *last_ns);

/*
 * All that root could be told now, as one object and a line.  `reason` NULL: it is time
 * for one; the next is compared with it, and single operations are left out.  0 or a
 * negative errno.
 */
int serve_snapshot(struct serve *s, const char *reason, uint64_t now_ns, struct json *j);

/* An exemplar: its user's part of that, and what was under way in its window.  As above. */
int serve_exemplar_fill(struct serve *s, const struct exemplar *e, uint64_t now_ns,
			struct json *j);

/* A finding as /v1/findings has it; an operation with its times as a span's. */
void serve_put_finding(struct serve *s, const struct finding *f, struct json *j);
void serve_put_span(struct serve *s, const struct op *op, struct json *j);

/*
 * The spans of all ranks of an exemplar's operations, as an array of rows: how many there are.
 */
uint32_t serve_exemplar_spans(struct serve *s, const struct exemplar *e, struct json *j);

/*
 * Something happened that a stream may tell: an operation finished; a process
 * appeared, exited or died (p->state says which); a finding began, changed or ended.
 * Costs a comparison when nobody listens; never waits for who does.
 */
void serve_op(struct serve *s, const struct op *op);
void serve_process(struct serve *s, const struct process *p);
void serve_finding(struct serve *s, const struct finding *f);

/*
 * A record was read, and reconstructed.  Several are told together: serve_flush_records()
 * tells what is left, at the end of a poll, and before a process is forgotten.
 */
void serve_record(struct serve *s, const struct process *p, const struct event *ev);
void serve_flush_records(struct serve *s);

#endif
