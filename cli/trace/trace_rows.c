/* SPDX-License-Identifier: Apache-2.0 */
/* The tracks of a trace and their rows: each slice gets the first row in which it nests. */
#include "cli/trace/trace_rows.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/must.h"
#include "util/list.h"

#define BUCKETS	4096
#define SPANS	48	/* spans of a row that are remembered */
#define NO_TRACK UINT32_MAX

struct span {
	uint64_t start_ns, stop_ns;
};

/* Invariant: spans are disjoint and in order; nothing new may begin before `forgotten_ns`. */
struct trace_row {
	uint32_t tid;
	uint32_t n, room;
	uint64_t forgotten_ns;	/* end of what is no longer remembered */
	struct span *span;
};

struct trace_track {
	uint32_t pid;
	enum trace_kind kind;
	uint64_t key;
	uint32_t next;		/* the next of its bucket, plus one */
	LIST(struct trace_row) row;
	char name[TRACE_NAME];
};

struct trace_rows {
	LIST(struct trace_track) track;
	uint32_t bucket[BUCKETS];	/* plus one */
	uint32_t tids;
	uint64_t async;
};

struct trace_rows *trace_rows_new(void)
{
	return must(calloc(1, sizeof(struct trace_rows)));
}

void trace_rows_free(struct trace_rows *rows)
{
	if (!rows)
		return;
	list_each(t, &rows->track) {
		for (uint32_t k = 0; k < t->row.n; k++)
			free(t->row.at[k].span);
		list_deinit(&t->row);
	}
	list_deinit(&rows->track);
	free(rows);
}

/* ---- tracks ---------------------------------------------------------------------- */

static uint32_t track_bucket(uint32_t pid, enum trace_kind kind, uint64_t key)
{
	uint64_t hash = (key ^ (uint64_t)pid << 32 ^ (uint64_t)kind << 56) *
			UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(hash >> 32) % BUCKETS;
}

uint32_t trace_rows_track(struct trace_rows *rows, uint32_t pid, enum trace_kind kind,
			  uint64_t key, const char *name)
{
	uint32_t *bucket = &rows->bucket[track_bucket(pid, kind, key)];
	struct trace_track *t;

	for (uint32_t next = *bucket; next; next = rows->track.at[next - 1].next) {
		t = &rows->track.at[next - 1];
		if (t->pid == pid && t->kind == kind && t->key == key)
			return next - 1;
	}
	if (rows->track.n == TRACE_TRACKS)
		return NO_TRACK;
	t = must(list_append(&rows->track));
	*t = (struct trace_track){ .pid = pid, .kind = kind, .key = key, .next = *bucket };
	snprintf(t->name, sizeof(t->name), "%s", name);
	*bucket = rows->track.n;
	return rows->track.n - 1;
}

/* ---- rows ------------------------------------------------------------------------ */

static void rows_forget_oldest(struct trace_row *r)
{
	r->forgotten_ns = r->span[0].stop_ns;
	memmove(r->span, r->span + 1, --r->n * sizeof(*r->span));
}

/* Put it in place of those from `first` to before `last`, which it contains. */
static void row_put(struct trace_row *r, uint32_t first, uint32_t last, struct span span)
{
	if (first == last && r->n == SPANS) {
		rows_forget_oldest(r);
		first = last = first ? first - 1 : 0;
	}
	if (first == last && r->n == r->room) {
		r->room = r->room ? 4 * r->room : 3;
		r->span = must(realloc(r->span, r->room * sizeof(*r->span)));
	}
	memmove(r->span + first + 1, r->span + last, (r->n - last) * sizeof(*r->span));
	r->span[first] = span;
	r->n += 1 - (last - first);
}

/* True: it nests with all that is on the row, and is on it now. */
static bool row_take(struct trace_row *r, struct span span)
{
	uint32_t first = r->n, last = r->n;

	if (span.start_ns < r->forgotten_ns)
		return false;
	while (last && r->span[last - 1].start_ns >= span.stop_ns &&
	       r->span[last - 1].stop_ns > span.start_ns)
		last--;
	for (first = last; first && r->span[first - 1].stop_ns > span.start_ns; first--)
		if (r->span[first - 1].start_ns < span.start_ns ||
		    r->span[first - 1].stop_ns > span.stop_ns)
			return false;
	if (first == 0 && r->n == SPANS && first == last)
		return false;		/* older than all: not worth forgetting them */
	row_put(r, first, last, span);
	return true;
}

static struct trace_row *rows_add_row(struct trace_rows *rows, struct trace_track *t)
{
	struct trace_row *r = must(list_append(&t->row));

	*r = (struct trace_row){ .tid = ++rows->tids };
	return r;
}

struct trace_at trace_rows_place(struct trace_rows *rows, uint32_t track, uint64_t start_ns,
				 uint64_t stop_ns)
{
	const struct span span = { start_ns, stop_ns > start_ns ? stop_ns : start_ns };
	struct trace_track *t = track == NO_TRACK ? NULL : &rows->track.at[track];
	struct trace_at at = { .pid = t ? t->pid : 0 };

	for (uint32_t i = 0; t && i < TRACE_ROWS; i++) {
		struct trace_row *r = i < t->row.n ? &t->row.at[i] : rows_add_row(rows, t);

		if (row_take(r, span)) {
			at.tid = r->tid;
			return at;
		}
	}
	at.tid = t ? t->row.at[0].tid : 0;
	at.async = ++rows->async;
	return at;
}

/* ---- names ----------------------------------------------------------------------- */

static int tracks_by_place(const void *a, const void *b)
{
	const struct trace_track *x = *(const struct trace_track *const *)a;
	const struct trace_track *y = *(const struct trace_track *const *)b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->key > y->key) - (x->key < y->key);
}

void trace_rows_tell(const struct trace_rows *rows, struct trace_writer *w)
{
	const struct trace_track **order = must(calloc(rows->track.n + 1, sizeof(const void *)));
	int64_t index = 0;

	for (uint32_t i = 0; i < rows->track.n; i++)
		order[i] = &rows->track.at[i];
	qsort(order, rows->track.n, sizeof(*order), tracks_by_place);
	for (uint32_t i = 0; i < rows->track.n; i++)
		for (uint32_t k = 0; k < order[i]->row.n; k++) {
			struct trace_at at = { .pid = order[i]->pid,
					       .tid = order[i]->row.at[k].tid };
			char name[TRACE_NAME + 16];

			snprintf(name, sizeof(name), k ? "%s (%u)" : "%s", order[i]->name, k + 1);
			trace_name(w, "thread_name", at, name);
			trace_sort(w, "thread_sort_index", at, ++index);
		}
	free(order);
}
