/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers without an end.  Each client has a queue of whole lines; one whose
 * queue is full loses lines, and is told how many as soon as it has caught up
 * by half.  With nothing to send its connection sleeps (is suspended), and the
 * library does not watch a sleeping one: streams_check() does.
 */
#include "ncclinspd/serve/stream.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/findings/diagnose.h"

#define CHECK_NS	UINT64_C(1000000000)
#define STREAM_BYTES	(1u << 20)
#define ANY_PID	0	/* of several processes, or of none */

static void append(struct stream *st, const char *text, size_t bytes)
{
	size_t at = (st->first + st->used) % st->room;
	size_t part = bytes < st->room - at ? bytes : st->room - at;

	memcpy(st->ring + at, text, part);
	memcpy(st->ring, text + part, bytes - part);
	st->used += bytes;
}

static void append_lost(struct stream *st)
{
	char text[64];
	int bytes;

	bytes = snprintf(text, sizeof(text), "{\"kind\":\"lost\",\"n\":%" PRIu64 "}\n", st->lost);
	append(st, text, (size_t)bytes);
	st->lost = 0;
}

static void wake(struct stream *st)
{
	if (!st->asleep)
		return;
	st->asleep = false;
	st->serve->woken = true;
	MHD_resume_connection(st->connection);
}

bool stream_wants(const struct stream *st, enum stream_kind kind, uid_t uid, pid_t pid)
{
	bool wants = !st->npids || pid == ANY_PID;

	if (!(st->kinds & 1u << kind) || !viewer_sees(&st->viewer, uid))
		return false;
	for (uint32_t i = 0; i < st->npids && !wants; i++)
		wants = st->pid[i] == pid;
	return wants;
}

bool stream_enqueue(struct stream *st, const struct json *line)
{
	size_t free_bytes = st->room - st->used;

	if (json_error(line) || free_bytes < line->bytes ||
	    (st->lost && st->used > st->room / 2)) {
		st->lost++;
		return false;
	}
	if (st->lost)
		append_lost(st);	/* fits: half the ring is free, and a line is short */
	append(st, line->text, line->bytes);
	wake(st);
	return true;
}

/* The library wants up to `max` bytes to send. */
static ssize_t read_queue(void *arg, uint64_t pos, char *buf, size_t max)
{
	struct stream *st = arg;
	size_t bytes, part;

	(void)pos;
	if (st->gone)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (!st->used && st->lost)
		append_lost(st);
	if (!st->used) {
		st->asleep = true;
		MHD_suspend_connection(st->connection);
		return 0;
	}
	bytes = st->used < max ? st->used : max;
	part = bytes < st->room - st->first ? bytes : st->room - st->first;
	memcpy(buf, st->ring + st->first, part);
	memcpy(buf + part, st->ring, bytes - part);
	st->first = (st->first + bytes) % st->room;
	st->used -= bytes;
	return (ssize_t)bytes;
}

static void stream_free(void *arg)
{
	struct stream *st = arg;

	*st->prev = st->next;
	if (st->next)
		st->next->prev = st->prev;
	st->serve->tracing -= !!st->batch;
	batch_free(st->batch);
	free(st);
}

/* Takes the batch over.  NULL: no memory. */
static struct stream *stream_new(struct request *r, struct MHD_Connection *connection,
				 struct batch *batch)
{
	struct serve *s = r->serve;
	size_t room = batch && !s->config.stream_bytes ? STREAM_RECORD_BYTES : STREAM_BYTES;
	struct stream *st;

	if (s->config.stream_bytes)
		room = s->config.stream_bytes;
	st = malloc(sizeof(*st) + room);
	if (!st) {
		batch_free(batch);
		return NULL;
	}
	*st = (struct stream){
		.serve = s,
		.next = s->streams,
		.prev = &s->streams,
		.connection = connection,
		.viewer = r->viewer,
		.kinds = r->query.kinds,
		.npids = r->query.npids,
		.batch = batch,
		.fd = client_of(connection)->fd,
		.room = room,
	};
	memcpy(st->pid, r->query.pid, sizeof(st->pid));
	if (st->next)
		st->next->prev = &st->next;
	s->streams = st;
	s->tracing += !!batch;
	return st;
}

struct MHD_Response *stream_open(struct request *r, struct MHD_Connection *connection)
{
	bool records = r->query.kinds & 1u << STREAM_RECORD;
	struct MHD_Response *response;
	struct batch *batch = NULL;
	struct stream *st;

	if (records && r->serve->tracing == STREAM_RECORD_CLIENTS) {
		snprintf(r->why, sizeof(r->why), "%d clients are told records already: try again "
			 "when one of these traces is over", STREAM_RECORD_CLIENTS);
		return NULL;
	}
	if (records) {
		batch = batch_new();
		if (!batch)
			return NULL;
	}
	st = stream_new(r, connection, batch);
	if (!st)
		return NULL;
	client_enter(client_of(connection), CLIENT_STREAMING);
	response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, SERVE_BLOCK_BYTES,
						     read_queue, st, stream_free);
	if (!response)
		stream_free(st);
	return response;
}

void streams_check(struct serve *s)
{
	if (s->now_ns - s->streams_checked_ns < CHECK_NS)
		return;
	s->streams_checked_ns = s->now_ns;
	for (struct stream *st = s->streams; st; st = st->next) {
		struct pollfd fd = { .fd = st->fd, .events = POLLRDHUP };

		if (!st->asleep || poll(&fd, 1, 0) <= 0)
			continue;
		st->gone = true;
		wake(st);
	}
}

uint64_t streams_deadline(const struct serve *s)
{
	return s->streams ? s->streams_checked_ns + CHECK_NS : UINT64_MAX;
}

void streams_end(struct serve *s)
{
	for (struct stream *st = s->streams; st; st = st->next) {
		st->gone = true;
		wake(st);
	}
}

/* A line is written once, and only when somebody is there to read it. */
static void tell(struct serve *s, enum stream_kind kind, uid_t uid, pid_t pid,
		 const struct field *fields, const void *row)
{
	static const char *const names[] = {
		[STREAM_COLLECTIVE] = "collective", [STREAM_PROCESS] = "process",
		[STREAM_FINDING] = "finding",
	};

	json_clear(&s->line);
	for (struct stream *st = s->streams; st; st = st->next) {
		if (!stream_wants(st, kind, uid, pid))
			continue;
		if (!s->line.bytes) {
			json_begin(&s->line, '{');
			json_key(&s->line, "kind");
			json_put_string(&s->line, names[kind]);
			rows_put(s, &s->line, fields, row);
			json_end(&s->line, '}');
			json_newline(&s->line);
		}
		stream_enqueue(st, &s->line);
	}
}

void serve_op(struct serve *s, const struct op *op)
{
	if (s->streams)
		tell(s, STREAM_COLLECTIVE, op->uid, op->pid, op_fields, op);
}

void serve_process(struct serve *s, const struct process *p)
{
	serve_flush_records(s);		/* they were before */
	if (s->streams)
		tell(s, STREAM_PROCESS, p->uid, p->pid, process_fields, p);
}

void serve_finding(struct serve *s, const struct finding *f)
{
	if (s->streams)
		tell(s, STREAM_FINDING, f->uid, ANY_PID, finding_fields, f);
}
