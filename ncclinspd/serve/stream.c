/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers without an end.  Each client has a queue of whole lines; one whose
 * queue is full loses lines, and is told how many as soon as it has caught up
 * by half.
 *
 * Records as they are read, for who takes a trace: some hundred in a line, as they lie in
 * the segment (base64), since to write each as text would cost more than to read it.
 * What is needed to read them comes along: names and communicators when there are new
 * ones, what a tick is with every line, and where the GPU's own times lie on our clock.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/base/finding.h"
#include "ncclinspd/serve/serve_client.h"
#include "ncclinspd/serve/serve_parts.h"
#include "ncclinspd/serve/serve_query.h"
#include "reader/join/reconstruct.h"
#include "util/list.h"

#define STREAM_BYTES	(1u << 20)
#define ANY_PID	0	/* a pid for several processes, or for none */
#define STREAM_RECORD_BYTES	(8u << 20)	/* bytes that wait for one that takes records */
#define STREAM_RECORD_CLIENTS	4		/* clients that take records, at the same time */
#define BATCH_LINES	256	/* lines of 64 bytes */
#define TOLD		256	/* processes whose names a client has; beyond, told again */

/* The things that a client knows of a process. */
struct stream_told {
	uint64_t process_id;	/* 0: not in use */
	uint32_t names, comms;
	uint64_t records;	/* records for that client, lost ones included */
};

struct batch {
	struct stream_told told[TOLD];
	uint32_t next;		/* place that is used again when all are taken */
	const struct process *process;
	uint32_t records, lines, kernels;
	struct reconstruct_kernel kernel[BATCH_LINES];	/* start_ns 0: not known */
	struct nci_line line[BATCH_LINES];
};

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

/* ---- clients and their queues ---------------------------------------------------- */

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

static bool stream_wants(const struct stream *st, enum stream_kind kind, uid_t uid, pid_t pid)
{
	bool wants = !st->npids || pid == ANY_PID;

	if (!(st->kinds & 1u << kind) || !viewer_sees(&st->viewer, uid))
		return false;
	for (uint32_t i = 0; i < st->npids && !wants; i++)
		wants = st->pid[i] == pid;
	return wants;
}

/* Queue a whole line.  False: it is lost, and counted. */
static bool stream_enqueue(struct stream *st, const struct json *line)
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
	free(st->batch);
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
		free(batch);
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

/* One user has half of the traces, and one is kept for who sees everything. */
static bool stream_may_trace(const struct serve_client *c)
{
	uint32_t own = 0, of_users = 0;

	for (const struct stream *st = c->serve->streams; st; st = st->next) {
		own += st->batch && st->client->account == c->account;
		of_users += st->batch && !st->viewer.all;
	}
	return c->serve->tracing < STREAM_RECORD_CLIENTS &&
	       (c->viewer.all || (own < STREAM_RECORD_CLIENTS / 2 &&
				  of_users < STREAM_RECORD_CLIENTS - 1));
}

int stream_open(struct request *r, struct answer *a)
{
	bool records = r->query.kinds & 1u << STREAM_RECORD;
	struct batch *batch = NULL;
	struct stream *st;

	if (records && !stream_may_trace(r->client))
		return serve_refuse(r, -ENOSPC, "too many traces are running: %d can, %d of one "
				    "user; try again when one of them has ended",
				    STREAM_RECORD_CLIENTS, STREAM_RECORD_CLIENTS / 2);
	if (records) {
		batch = calloc(1, sizeof(*batch));
		if (!batch)
			return -ENOMEM;
	}
	st = stream_new(r, batch);
	if (!st)
		return -ENOMEM;
	*a = (struct answer){ .status = 200, .read = stream_read_queue, .free = stream_free,
			      .arg = st, .bytes = st->room };
	return 0;
}

/* ---- records: names and communicators that they refer to --------------------------- */

static struct stream_told *told_find(struct batch *b, uint64_t process_id)
{
	struct stream_told *told;

	for (uint32_t i = 0; i < TOLD; i++)
		if (b->told[i].process_id == process_id)
			return &b->told[i];
	told = &b->told[b->next++ % TOLD];
	*told = (struct stream_told){ .process_id = process_id };
	return told;
}

/* Grows with each communicator, and when its rank becomes known. */
static uint32_t comms_count_of(const struct process *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->ncomms; i++)
		n += p->comms[i].ready + (p->comms[i].ready && p->comms[i].rank != UNKNOWN_I32);
	return n;
}

/* A communicator as in /v1/comms, with the number that records have it by. */
struct stream_comm {
	const struct comm *comm;
	uint32_t index;
};

struct records_line {
	const struct process *process;
	const struct batch *batch;
	uint64_t first;
};

static field_put_fn source_put_names, source_put_comms, records_put_kernels, records_put_data;

#include "schema/stream.h"

static void source_put_names(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct process *p = row;

	json_begin(j, '[');
	for (uint32_t i = 0; i < p->nstrings; i++)
		json_put_string(j, p->strings[i]);
	json_end(j, ']');
}

static void source_put_comms(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct process *p = row;

	json_begin(j, '[');
	for (uint32_t i = 0; i < p->ncomms; i++)
		if (p->comms[i].ready)
			rows_put_object(w, j, stream_comm_fields,
					&(struct stream_comm){ &p->comms[i], i });
	json_end(j, ']');
}

static void line_put(struct stream *st, const struct field *fields, const void *row)
{
	struct json *j = &st->serve->line;

	json_clear(j);
	rows_put_object(&st->serve->writer, j, fields, row);
	json_newline(j);
}

/* False: the client does not know them, and records would tell him nothing. */
static bool batch_tell_source(struct stream *st, struct stream_told *told, const struct process *p)
{
	uint32_t comms = comms_count_of(p);

	if (told->names == p->nstrings && told->comms == comms)
		return true;
	line_put(st, source_line_fields, p);
	if (!stream_enqueue(st, &st->serve->line))
		return false;
	told->names = p->nstrings;
	told->comms = comms;
	return true;
}

/* ---- records ---------------------------------------------------------------------------- */

/* RFC 4648, into `to`: four letters for each three bytes. */
static size_t bytes_to_base64(const uint8_t *from, size_t bytes, char *to)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789+/";
	char *at = to;

	for (size_t i = 0; i < bytes; i += 3) {
		size_t left = bytes - i;
		uint32_t three = (uint32_t)from[i] << 16 |
				 (left > 1 ? (uint32_t)from[i + 1] << 8 : 0) |
				 (left > 2 ? from[i + 2] : 0u);

		*at++ = letters[three >> 18];
		*at++ = letters[three >> 12 & 63];
		*at++ = left > 1 ? letters[three >> 6 & 63] : '=';
		*at++ = left > 2 ? letters[three & 63] : '=';
	}
	return (size_t)(at - to);
}

static void records_put_data(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct batch *b = ((const struct records_line *)row)->batch;
	char text[(sizeof(b->line) + 2) / 3 * 4 + 2];
	size_t n = 1;

	text[0] = '"';
	n += bytes_to_base64((const uint8_t *)b->line, b->lines * sizeof(b->line[0]), text + 1);
	text[n++] = '"';
	json_put_raw(j, text, n);
}

static void records_put_kernels(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct batch *b = ((const struct records_line *)row)->batch;

	json_begin(j, '[');
	for (uint32_t i = 0; i < b->kernels; i++) {
		const struct reconstruct_kernel *k = &b->kernel[i];

		if (!k->start_ns) {
			json_put_null(j);
			continue;
		}
		json_begin(j, '[');
		json_put_u64(j, k->start_ns);
		json_put_u64(j, k->stop_ns);
		rows_put_u64(j, k->error_ns);
		json_end(j, ']');
	}
	json_end(j, ']');
}

static void batch_flush(struct stream *st)
{
	struct batch *b = st->batch;
	struct stream_told *told;

	if (!b->records)
		return;
	told = told_find(b, b->process->id);
	if (batch_tell_source(st, told, b->process)) {
		line_put(st, records_line_fields,
			 &(struct records_line){ b->process, b, told->records });
		stream_enqueue(st, &st->serve->line);
	}
	told->records += b->records;
	b->records = b->lines = b->kernels = 0;
	b->process = NULL;
}

static void batch_add(struct batch *b, const struct process *p, const struct event *ev)
{
	uint32_t lines = NCI_FORM_LINES(ev->rec->form);

	assert(b->lines + lines <= BATCH_LINES);
	memcpy(&b->line[b->lines], ev->rec, lines * sizeof(b->line[0]));
	b->process = p;
	b->lines += lines;
	b->records++;
	if (ev->rec->type == NCI_EV_KERNEL_CH) {
		struct reconstruct_kernel *k = array_must_add(b->kernel, &b->kernels);

		if (!reconstruct_kernel(p, EVENT(ev, kernel_ch), k))
			k->start_ns = 0;
	}
}

void serve_record(struct serve *s, const struct process *p, const struct event *ev)
{
	if (!s->tracing)
		return;
	for (struct stream *st = s->streams; st; st = st->next) {
		if (!st->batch || !stream_wants(st, STREAM_RECORD, p->uid, p->pid))
			continue;
		if ((st->batch->process && st->batch->process != p) ||
		    st->batch->lines + NCI_RECORD_MAX_LINES > BATCH_LINES)
			batch_flush(st);
		batch_add(st->batch, p, ev);
	}
}

void serve_flush_records(struct serve *s)
{
	if (!s->tracing)
		return;
	for (struct stream *st = s->streams; st; st = st->next)
		if (st->batch)
			batch_flush(st);
}

/* ---- operations, processes, findings ------------------------------------------------ */

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
