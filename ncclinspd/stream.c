/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers without an end.  Each client has a queue of whole lines; one whose
 * queue is full loses lines, and is told how many as soon as it has caught up
 * by half.  With nothing to send its connection sleeps (is suspended), and the
 * library does not watch a sleeping one: streams_check() does.
 */
#include "ncclinspd/serve_impl.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/diagnose.h"

#define CHECK_NS	UINT64_C(1000000000)

struct stream {
	struct serve *serve;
	struct stream *next, **prev;
	struct MHD_Connection *connection;
	struct viewer viewer;
	uint32_t kinds;
	int fd;
	bool asleep;
	bool gone;		/* the client hung up, or the server ends */
	uint64_t lost;		/* lines, since the last one that was queued */
	size_t first, used;	/* the waiting bytes, in a ring of `room` */
	size_t room;
	char ring[];
};

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

static void enqueue(struct stream *st, const struct json *line)
{
	size_t free_bytes = st->room - st->used;

	if (free_bytes < line->bytes || (st->lost && st->used > st->room / 2)) {
		st->lost++;
		return;
	}
	if (st->lost)
		append_lost(st);	/* fits: half the ring is free, and a line is short */
	append(st, line->text, line->bytes);
	wake(st);
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
	free(st);
}

struct MHD_Response *stream_open(struct request *r, struct MHD_Connection *connection)
{
	struct serve *s = r->serve;
	struct MHD_Response *response;
	struct stream *st = malloc(sizeof(*st) + s->config.stream_bytes);

	if (!st)
		return NULL;
	client_enter(client_of(connection), CLIENT_STREAMING);
	*st = (struct stream){
		.serve = s,
		.next = s->streams,
		.prev = &s->streams,
		.connection = connection,
		.viewer = r->viewer,
		.kinds = r->query.kinds,
		.fd = client_of(connection)->fd,
		.room = s->config.stream_bytes,
	};
	if (st->next)
		st->next->prev = &st->next;
	s->streams = st;
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
static void tell(struct serve *s, enum stream_kind kind, uid_t uid, const char *kind_name,
		 const struct field *fields, const void *row)
{
	json_clear(&s->line);
	for (struct stream *st = s->streams; st; st = st->next) {
		if (!(st->kinds & 1u << kind) || !viewer_sees(&st->viewer, uid))
			continue;
		if (!s->line.bytes) {
			json_begin(&s->line, '{');
			json_key(&s->line, "kind");
			json_put_string(&s->line, kind_name);
			rows_put(s, &s->line, fields, row);
			json_end(&s->line, '}');
			json_newline(&s->line);
		}
		if (json_error(&s->line))
			st->lost++;
		else
			enqueue(st, &s->line);
	}
}

void serve_op(struct serve *s, const struct op *op)
{
	if (s->streams)
		tell(s, STREAM_COLLECTIVE, op->uid, "collective", op_fields, op);
}

void serve_process(struct serve *s, const struct process *p)
{
	if (s->streams)
		tell(s, STREAM_PROCESS, p->uid, "process", process_fields, p);
}

void serve_finding(struct serve *s, const struct finding *f)
{
	if (s->streams)
		tell(s, STREAM_FINDING, f->uid, "finding", finding_fields, f);
}
