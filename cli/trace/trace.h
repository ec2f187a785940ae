/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRACE_TRACE_H
#define CLI_TRACE_TRACE_H

/*
 * A trace in the making: what the daemon told, live or in a file, becomes slices and
 * arrows.  Memory is bounded whatever comes, and however much.
 *
 *   trace_ops.c      operations, transfers, what is in flight: rows of the API
 *   trace_joint.c    ... of several ranks, side by side
 *   trace_kernels.c  ... and the kernels that a profiler saw beside them
 *   trace_records.c  single records of the stream
 *   trace_net.c      ... of the network
 *   trace_look.c     what these are called, and their arguments
 */

#include <jansson.h>

#include "cli/trace/trace_heads.h"
#include "cli/trace/trace_rows.h"
#include "cli/trace/trace_who.h"

struct trace_joints;
struct trace_records;

struct trace {
	struct trace_writer w;
	struct trace_rows *rows;
	struct trace_who *who;
	struct trace_heads *heads;
	struct trace_joints *joints;
	struct trace_records *records;
	struct trace_kernels *kernels;	/* the caller's; NULL: none */
	bool live;		/* records come: calls are drawn from these, not from rows */
	uint64_t from_ns;	/* start: what was over before is not drawn; 0: all is */
	uint64_t until_ns;	/* end: what was posted later is not drawn; 0: all is */
	char host[64];		/* the node, as a document tells it; "": it does not */
	uint64_t nrecords, lost, operations, malformed;
};

/* The file stays the caller's.  Exits when memory runs out. */
void trace_init(struct trace *t, struct trace_out *out, bool live);

/* All that is still waiting is drawn, and the file is complete; `what` it is made from. */
void trace_finish(struct trace *t, const char *what);

/* A line of /v1/stream, as an object: records, operations, processes, findings, losses. */
void trace_take_line(struct trace *t, const json_t *line);

/* Rows as in /v1/collectives, of an exemplar's transfers, in /v1/findings. */
void trace_operation(struct trace *t, const json_t *row);
void trace_transfer(struct trace *t, const json_t *row);
void trace_finding(struct trace *t, const json_t *row);

/* An operation of /v1/inflight: it has not ended at that moment. */
void trace_inflight(struct trace *t, const json_t *row, uint64_t until_ns);

/* `n` lines or records are missing, since the moment before in that process (0: in all). */
void trace_loss(struct trace *t, uint32_t pid, uint64_t n, uint64_t from_ns, uint64_t to_ns,
		const char *why);

/* ---- what the parts have in common ------------------------------------------------- */

/* Members of the row, as they are, into the open object; NULL at the end of `keys`. */
void trace_copy(struct json *j, const json_t *row, const char *const *keys);

/* One direction of one channel to one peer. */
struct trace_link {
	int32_t channel, peer;	/* -1: not known */
	bool send;
	bool beside;		/* the track for what overlaps on the link's own */
};

/* Tracks of a communicator that is called `label`, `comm` being its number. */
uint32_t trace_link(struct trace *t, uint32_t pid, uint64_t comm, const char *label,
		    struct trace_link link);
uint32_t trace_channel(struct trace *t, uint32_t pid, uint64_t comm, const char *label,
		       uint32_t channel);

/* Ranks of one operation, side by side, once all of this node are drawn. */
struct trace_joints *trace_joints_new(void);
void trace_joints_free(struct trace_joints *joints);
void trace_joints_add(struct trace *t, const json_t *row, struct trace_at at,
		      uint64_t start_ns, uint64_t stop_ns);

struct trace_records *trace_records_new(void);
void trace_records_free(struct trace_records *r);
void trace_records_source(struct trace *t, const json_t *line);
void trace_records_batch(struct trace *t, const json_t *line);

/* A record as a segment gives it, checked. */
struct event;
struct process;
void trace_records_event(struct trace *t, const struct process *p, const struct event *ev);

/* A ProxyOp that has not ended: its steps are drawn beside it. */
void trace_records_open_proxy(struct trace *t, uint32_t source, uint64_t token,
			      struct trace_at at);

/* Steps whose ProxyOp never came. */
void trace_records_flush(struct trace *t);

#endif
