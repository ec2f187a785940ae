/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records as they are read, for who takes a trace: some hundred in a line, as they lie in
 * the segment (base64), since to write each as text would cost more than to read it.
 * What is needed to read them comes along: names and communicators when there are new
 * ones, what a tick is with every line, and where the GPU's own times lie on our clock.
 */
#include "ncclinspd/serve/stream.h"

#include <stdlib.h>
#include <string.h>

#include "reader/join/reconstruct.h"
#include "util/list.h"

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

struct batch *batch_new(void)
{
	return calloc(1, sizeof(struct batch));
}

void batch_free(struct batch *b)
{
	free(b);
}

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

/* ---- what records refer to ---------------------------------------------------------- */

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

	(void)w;
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

	(void)w;
	text[0] = '"';
	n += bytes_to_base64((const uint8_t *)b->line, b->lines * sizeof(b->line[0]), text + 1);
	text[n++] = '"';
	json_put_raw(j, text, n);
}

static void records_put_kernels(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct batch *b = ((const struct records_line *)row)->batch;

	(void)w;
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
		if (k->error_ns == UNKNOWN_U64)
			json_put_null(j);
		else
			json_put_u64(j, k->error_ns);
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
