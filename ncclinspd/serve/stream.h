/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SERVE_STREAM_H
#define NCCLINSPD_SERVE_STREAM_H

/*
 * The interface between the two halves of /v1/stream: stream.c has the clients and their
 * queues, stream_records.c what is told of single records.
 */

#include "ncclinspd/serve/serve_client.h"
#include "ncclinspd/serve/serve_query.h"

#define STREAM_RECORD_BYTES	(8u << 20)	/* bytes that wait for one that takes records */
#define STREAM_RECORD_CLIENTS	4		/* clients that take records, at the same time */

struct batch;

struct stream {
	struct serve *serve;
	struct stream *next, **prev;
	struct serve_client *client;
	struct viewer viewer;
	uint32_t kinds;
	uint32_t npids;		/* 0: all */
	pid_t pid[SERVE_PIDS_MAX];
	struct batch *batch;	/* NULL: takes no records */
	uint64_t lost;		/* lines, since the last one that was queued */
	size_t first, used;	/* the waiting bytes, in a ring of `room` */
	size_t room;
	char ring[];
};

bool stream_wants(const struct stream *st, enum stream_kind kind, uid_t uid, pid_t pid);

/* Queue a whole line.  False: it is lost, and counted. */
bool stream_enqueue(struct stream *st, const struct json *line);

/* Room for records that are told together.  NULL: no memory. */
struct batch *batch_new(void);
void batch_free(struct batch *b);

#endif
