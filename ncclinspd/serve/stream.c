/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers without an end.  Each client has a queue of whole lines; one whose
 * queue is full loses lines, and is told how many as soon as it has caught up
 * by half.
 */
#include "ncclinspd/serve/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/base/finding.h"
#include "ncclinspd/serve/serve_parts.h"

#define STREAM_BYTES	(1u << 20)
#define ANY_PID	0	/* a pid for several processes, or for none */

static void stream_append_text(struct stream *st, const char *text, size_t bytes)
{
	size_t at = (st->first + st->used) % st->room;
	size_t part = bytes < st->room - at ? bytes : st->room - at;

	memcpy(st->ring + at, text, part);
	memcpy(st->ring, text + part, bytes - part);
	st->used += bytes;
}

static void stream_append_lost(struct stream *st)
{
	char text[64];
	int bytes;

	bytes = snprintf(text, sizeof(text), "{\"kind\":\"lost\",\"n\":%" PRIu64 "}\n", st->lost);
	stream_append_text(st, text, (size_t)bytes);
	st->lost = 0;
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
		stream_append_lost(st);	/* fits: half the ring is free, and a line is short */
	stream_append_text(st, line->text, line->bytes);
	client_wake(st->client);
	return true;
}

static ssize_t stream_read_queue(void *arg, char *buf, size_t max)
{
	struct stream *st = arg;
	size_t bytes, part;

	if (!st->used && st->lost)
		stream_append_lost(st);
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
static struct stream *stream_new(struct request *r, struct batch *batch)
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
		.client = r->client,
		.viewer = r->viewer,
		.kinds = r->query.kinds,
		.npids = r->query.npids,
		.batch = batch,
		.room = room,
	};
	memcpy(st->pid, r->query.pid, sizeof(st->pid));
	if (st->next)
		st->next->prev = &st->next;
	s->streams = st;
	s->tracing += !!batch;
	return st;
}

int stream_open(struct request *r, struct answer *a)
{
	bool records = r->query.kinds & 1u << STREAM_RECORD;
	struct batch *batch = NULL;
	struct stream *st;

	if (records && r->serve->tracing == STREAM_RECORD_CLIENTS)
		return serve_refuse(r, -ENOSPC, "%d traces are running, and no more can: try again "
				    "when one of them has ended", STREAM_RECORD_CLIENTS);
	if (records) {
		batch = batch_new();
		if (!batch)
			return -ENOMEM;
	}
	st = stream_new(r, batch);
	if (!st)
		return -ENOMEM;
	*a = (struct answer){ .status = 200, .read = stream_read_queue, .free = stream_free,
			      .arg = st };
	return 0;
}

/* A line is written once, and only when somebody is there to read it. */
static void streams_tell(struct serve *s, enum stream_kind kind, uid_t uid, pid_t pid,
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
			json_member_string(&s->line, "kind", names[kind]);
			rows_put(&s->writer, &s->line, fields, row);
			json_end(&s->line, '}');
			json_newline(&s->line);
		}
		stream_enqueue(st, &s->line);
	}
}

void serve_op(struct serve *s, const struct op *op)
{
	if (s->streams)
		streams_tell(s, STREAM_COLLECTIVE, op->uid, op->pid, op_fields, op);
}

void serve_process(struct serve *s, const struct process *p)
{
	serve_flush_records(s);		/* they were before */
	if (s->streams)
		streams_tell(s, STREAM_PROCESS, p->uid, p->pid, process_fields, p);
}

void serve_finding(struct serve *s, const struct finding *f)
{
	if (s->streams)
		streams_tell(s, STREAM_FINDING, f->uid, ANY_PID, finding_line_fields, f);
}
