/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of many rows.  Ten thousand of them take longer to write than a busy
 * lane takes to fill, and nobody drains meanwhile: so they become text as the
 * client takes it.
 */
#include "ncclinspd/serve/serve_listing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/serve/server.h"

#define BLOCK_BYTES	65536	/* bytes of rows, allocated and freed in one go */
#define BREATH		32	/* rows written between two turns of what cannot wait */

struct block {
	struct block *next;
	uint32_t n;
	_Alignas(16) char rows[BLOCK_BYTES];
};

struct sent_listing {
	const struct serve *serve;
	const char *name;
	listing_put *put;
	struct chosen chosen;
	size_t row_bytes;
	struct block *first, *last;	/* not yet all text */
	size_t bytes;			/* memory of all blocks so far */
	uint32_t next;			/* row of the first */
	struct json text;
	size_t sent;			/* bytes of text */
	bool ended;
};

struct sent_listing *listing_new(const struct serve *s, const char *name, size_t row_bytes,
				 listing_put *put, const struct chosen *chosen)
{
	struct sent_listing *l = malloc(sizeof(*l));

	if (!l)
		return NULL;
	*l = (struct sent_listing){ .serve = s, .name = name, .put = put, .row_bytes = row_bytes };
	if (chosen)
		l->chosen = *chosen;
	json_init(&l->text, SERVE_ANSWER_BYTES);
	json_begin(&l->text, '{');
	return l;
}

struct json *listing_head(struct sent_listing *l)
{
	return &l->text;
}

static struct block *listing_add_block(struct sent_listing *l)
{
	struct block *b = malloc(sizeof(*b));

	if (!b)
		return NULL;
	l->bytes += sizeof(*b);
	b->next = NULL;
	b->n = 0;
	*(l->first ? &l->last->next : &l->first) = b;
	l->last = b;
	return b;
}

void *listing_add(struct sent_listing *l)
{
	struct block *b = l->first ? l->last : NULL;

	if (!b || b->n == BLOCK_BYTES / l->row_bytes)
		b = listing_add_block(l);
	return b ? b->rows + b->n++ * l->row_bytes : NULL;
}

static void listing_drop_first(struct sent_listing *l)
{
	struct block *b = l->first;

	l->first = b->next;
	l->next = 0;
	free(b);
}

void listing_clear(struct sent_listing *l)
{
	while (l->first)
		listing_drop_first(l);
}

void listing_free(struct sent_listing *l)
{
	if (!l)
		return;
	listing_clear(l);
	json_deinit(&l->text);
	free(l);
}

static void listing_write_row(struct sent_listing *l, struct json *j)
{
	json_begin(j, '{');
	l->put(l->serve, j, l->first->rows + l->next++ * l->row_bytes, &l->chosen);
	json_end(j, '}');
	if (l->next == l->first->n)
		listing_drop_first(l);
}

void listing_put_all(struct sent_listing *l, struct json *j)
{
	json_begin(j, '[');
	for (uint32_t n = 0; l->first; n++) {
		if (n % BREATH == 0)
			serve_meanwhile(l->serve);
		listing_write_row(l, j);
	}
	json_end(j, ']');
}

/* Write at least `bytes` of text, unless the rows end before. */
static void listing_write_rows(struct sent_listing *l, size_t bytes)
{
	struct json *j = &l->text;

	while (l->first && j->bytes < bytes)
		listing_write_row(l, j);
	if (l->first || l->ended)
		return;
	json_end(j, ']');
	json_end(j, '}');
	json_newline(j);
	l->ended = true;
}

/* Drop what was sent; the last byte stays, since commas depend on it. */
static void listing_drop_sent(struct sent_listing *l)
{
	l->text.text[0] = l->text.text[l->text.bytes - 1];
	l->text.bytes = 1;
	l->sent = 1;
}

static ssize_t listing_read(void *arg, char *buf, size_t max)
{
	struct sent_listing *l = arg;
	size_t bytes;

	if (!json_error(&l->text) && l->sent == l->text.bytes) {
		if (l->ended)
			return ANSWER_END;
		serve_meanwhile(l->serve);
		listing_drop_sent(l);
		listing_write_rows(l, max);
	}
	if (json_error(&l->text))
		return ANSWER_BROKEN;
	bytes = l->text.bytes - l->sent < max ? l->text.bytes - l->sent : max;
	memcpy(buf, l->text.text + l->sent, bytes);
	l->sent += bytes;
	return (ssize_t)bytes;
}

static void sent_free(void *arg)
{
	listing_free(arg);
}

int listing_answer(struct sent_listing *l, int error, struct answer *a)
{
	if (!l || error < 0) {
		listing_free(l);
		return -ENOMEM;
	}
	json_begin_member(&l->text, l->name, '[');
	*a = (struct answer){ .status = 200, .type = SERVE_JSON, .read = listing_read,
			      .free = sent_free, .arg = l, .bytes = l->bytes };
	return 0;
}
