/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/exemplars and /v1/exemplars/ID; and what is written into one. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/config/config.h"
#include "ncclinspd/keep/exemplars.h"
#include "ncclinspd/serve/serve_parts.h"
#include "ncclinspd/sums/oplog.h"
#include "ncclinspd/sums/transferlog.h"
#include "reader/time/timeline.h"
#include "tables/nearest.h"
#include "util/cleanup.h"

#define ROWS	2048	/* operations, transfers: the nearest to the slow one */
#define PIECE	256	/* rows of a log, looked at between two turns of what cannot wait */
#define BREATH	32	/* rows written between them */

/* ---- what is shown ------------------------------------------------------------------ */

/* Copies: what they are made of goes on meanwhile. */
struct exemplar_view {
	const struct request *request;
	const struct exemplar *exemplar;
	struct nearest ops;		/* struct op */
	struct nearest transfers;	/* struct transfer */
};

static void exemplar_view_deinit(struct exemplar_view *s)
{
	nearest_deinit(&s->ops);
	nearest_deinit(&s->transfers);
}

static uint64_t op_began_ns(const struct op *op)
{
	return op->enqueued_ns ? op->enqueued_ns : op->seen_ns;
}

/* Offer what was under way in the window, by how far it is from the slow one. */
static void *exemplar_offer(const struct exemplar *e, struct nearest *l, uint64_t from_ns,
			    uint64_t to_ns)
{
	if (from_ns > e->to_ns || to_ns < e->from_ns)
		return NULL;
	if (from_ns > e->op.done_ns)
		return nearest_offer(l, from_ns - e->op.done_ns);
	return nearest_offer(l, op_began_ns(&e->op) > to_ns ? op_began_ns(&e->op) - to_ns : 0);
}

static bool nearest_take_op(const struct op *op, void *arg)
{
	struct exemplar_view *s = arg;
	struct op *copy = exemplar_offer(s->exemplar, &s->ops, op_began_ns(op), op->done_ns);

	if (copy)
		*copy = *op;
	return true;
}

static void nearest_take_transfers(struct exemplar_view *s)
{
	const struct request *r = s->request;
	const struct transferlog *log = r->serve->source.transferlog;
	uint64_t serial = transferlog_newest(log);
	const struct transfer *t;

	for (; (t = transferlog_at(log, serial)); serial--) {
		struct transfer *copy = NULL;

		if (viewer_sees(&r->viewer, t->row.who.uid))
			copy = exemplar_offer(s->exemplar, &s->transfers, t->start_ns, t->stop_ns);
		if (copy)
			*copy = *t;
		if (serial % PIECE == 0)
			serve_meanwhile(r->serve);
	}
}

/* 0 or -ENOMEM. */
static int view_take(struct exemplar_view *s)
{
	if (nearest_init(&s->ops, ROWS, sizeof(struct op)) < 0 ||
	    nearest_init(&s->transfers, ROWS, sizeof(struct transfer)) < 0)
		return -ENOMEM;
	serve_visit_ops(s->request, nearest_take_op, s);
	nearest_take_transfers(s);
	return 0;
}

/* ---- what is written ------------------------------------------------------------------ */

static uint64_t part_time_ns(const struct serve *s, const struct op *op, uint64_t ticks)
{
	const struct viewer all = { .all = true };
	struct process *p;

	for (size_t i = 0; (p = serve_next_process(s, &all, &i));)
		if (p->id == op->process_id)
			return timeline_mono(&p->clock, ticks);
	return 0;
}

static bool op_is_placed(const struct op *op)
{
	return op->started_ns && op->exec_ns != UNKNOWN_U64;
}

static uint64_t op_start_ns(const struct op *op)
{
	return op_is_placed(op) ? op->started_ns : op_began_ns(op);
}

/* A post of a moment ago may be a moment ahead: a tick is a time only within its bound. */
static uint64_t op_stop_ns(const struct op *op)
{
	uint64_t start_ns = op_start_ns(op);

	if (op_is_placed(op))
		return start_ns + op->exec_ns;
	return op->done_ns > start_ns ? op->done_ns : start_ns;
}

#include "schema/exemplar.h"

static void exemplar_put_op(const struct request *r, struct json *j, const void *row)
{
	rows_put(&r->serve->writer, j, op_fields, row);
	rows_put(&r->serve->writer, j, parts_fields, row);
}

static void exemplar_put_transfer(const struct request *r, struct json *j, const void *row)
{
	rows_put(&r->serve->writer, j, transfer_fields, row);
}

static void exemplar_put_beyond(const struct request *r, struct json *j, const struct exemplar *e)
{
	json_begin_member(j, "beyond", '[');
	for (uint32_t i = 0; i < e->nbeyond; i++) {
		rows_put_object(&r->serve->writer, j, beyond_fields, &e->beyond[i]);
	}
	json_end(j, ']');
}

/* A row's place in the order of time. */
struct exemplar_place {
	uint64_t at_ns;
	const void *row;
};

static int rows_by_time(const void *left, const void *right)
{
	const struct exemplar_place *a = left, *b = right;

	return (a->at_ns > b->at_ns) - (a->at_ns < b->at_ns);
}

static uint64_t op_time(const void *row)
{
	return op_began_ns(row);
}

static uint64_t transfer_time(const void *row)
{
	return ((const struct transfer *)row)->start_ns;
}

static void exemplar_put_rows(const struct request *r, struct json *j, const struct nearest *l,
			      uint64_t time_of(const void *row),
			      void put(const struct request *r, struct json *j, const void *row))
{
	CLEANUP(cleanup_freep) struct exemplar_place *order = malloc((l->n + 1) * sizeof(*order));

	json_begin(j, '[');
	if (!order)
		json_fail(j, -ENOMEM);
	for (uint32_t i = 0; order && i < l->n; i++)
		order[i] = (struct exemplar_place){ time_of(nearest_row(l, i)), nearest_row(l, i) };
	if (order)
		qsort(order, l->n, sizeof(*order), rows_by_time);
	for (uint32_t i = 0; order && i < l->n; i++) {
		if (i % BREATH == 0)
			serve_meanwhile(r->serve);
		json_begin(j, '{');
		put(r, j, order[i].row);
		json_end(j, '}');
	}
	json_end(j, ']');
}

int serve_exemplar_fill(struct serve *s, const struct exemplar *e, uint64_t now_ns,
			struct json *j)
{
	struct request r = { .serve = s, .viewer = { .uid = e->head.uid } };
	CLEANUP(exemplar_view_deinit) struct exemplar_view scene = { .request = &r, .exemplar = e };
	int err;

	query_init(&r.query);
	s->now_ns = now_ns;
	err = view_take(&scene);
	if (err < 0)
		return err;
	exemplar_head_begin(&e->head, j);
	rows_put_time(&s->writer, j, "written", now_ns);
	json_key(j, "window");
	rows_put_object(&s->writer, j, window_fields, &scene);
	json_begin_member(j, "operation", '{');
	exemplar_put_op(&r, j, &e->op);
	json_end(j, '}');
	exemplar_put_beyond(&r, j, e);
	json_key(j, "collectives");
	exemplar_put_rows(&r, j, &scene.ops, op_time, exemplar_put_op);
	json_key(j, "transfers");
	exemplar_put_rows(&r, j, &scene.transfers, transfer_time, exemplar_put_transfer);
	serve_state(&r, j);
	json_end(j, '}');
	json_newline(j);
	return json_error(j);
}

/* ---- for OpenTelemetry ----------------------------------------------------------------- */

struct span_search {
	const struct exemplar *exemplar;
	struct serve *serve;
	struct json *json;
	uint32_t n;
};

static bool beyond_is_op(const struct exemplar_beyond *b, const struct op *op)
{
	bool numbered = b->seq != UNKNOWN_U64;

	return b->has_comm_id && op->has_comm_id && b->comm_id == op->comm_id &&
	       b->func == op->func && b->seq == op->seq &&
	       (numbered || (b->rank == op->rank && b->done_ns == op->done_ns));
}

static bool span_put_if_meant(const struct op *op, void *arg)
{
	const struct config *config = ((struct span_search *)arg)->serve->source.config;
	struct span_search *s = arg;

	if (config && op->seq != UNKNOWN_U64 && otlp_traces(&config->otlp, op->seq))
		return true;	/* it was pushed when it ended */
	for (uint32_t i = 0; i < s->exemplar->nbeyond; i++)
		if (beyond_is_op(&s->exemplar->beyond[i], op)) {
			serve_put_span(s->serve, op, s->json);
			s->n++;
			break;
		}
	return true;
}

void serve_put_span(struct serve *s, const struct op *op, struct json *j)
{
	json_begin(j, '{');
	rows_put(&s->writer, j, span_fields, op);
	rows_put(&s->writer, j, op_fields, op);
	json_end(j, '}');
}

uint32_t serve_exemplar_spans(struct serve *s, const struct exemplar *e, struct json *j)
{
	struct request r = { .serve = s, .viewer = { .uid = e->head.uid } };
	struct span_search search = { e, s, j, 0 };

	query_init(&r.query);
	json_begin(j, '[');
	serve_visit_ops(&r, span_put_if_meant, &search);
	json_end(j, ']');
	return search.n;
}

/* ---- what there is ---------------------------------------------------------------------- */

struct list {
	const struct request *request;
	struct json *json;
};

static bool exemplar_put_head(const struct exemplar_head *h, uint64_t size, void *arg)
{
	const struct list *l = arg;

	if (!viewer_sees(&l->request->viewer, h->uid))
		return true;
	json_begin(l->json, '{');
	exemplar_head_put(h, l->json);
	json_member_u64(l->json, "size_bytes", size);
	json_end(l->json, '}');
	return true;
}

void serve_exemplars(struct request *r, struct json *j)
{
	struct list list = { r, j };

	json_begin_member(j, "exemplars", '[');
	if (r->serve->source.exemplars)
		exemplars_visit(r->serve->source.exemplars, exemplar_put_head, &list);
	json_end(j, ']');
}

struct exemplar_search_state {
	const struct request *request;
	bool found;
};

static bool heads_compare(const struct exemplar_head *h, uint64_t size, void *arg)
{
	struct exemplar_search_state *s = arg;

	s->found = viewer_sees(&s->request->viewer, h->uid) && !strcmp(h->id, s->request->tail);
	return !s->found;
}

/* Only what is listed for that user is opened: there is no path that leads elsewhere. */
int serve_exemplar(struct request *r, char **text, size_t *bytes)
{
	struct exemplar_search_state search = { .request = r };
	int error;

	if (!r->serve->source.exemplars)
		return -ENOENT;
	exemplars_visit(r->serve->source.exemplars, heads_compare, &search);
	if (!search.found)
		return -ENOENT;
	error = exemplars_read(r->serve->source.exemplars, r->tail, text, bytes);
	return error == -EAGAIN || error == -ENOMEM ? error : error < 0 ? -ENOENT : 0;
}
