/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/exemplars and /v1/exemplars/ID; and what is written into one. */
#include "ncclinspd/serve_impl.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ncclinspd/exemplars.h"
#include "ncclinspd/oplog.h"
#include "ncclinspd/timeline.h"
#include "ncclinspd/transferlog.h"
#include "util/cleanup.h"

#define ROWS	2048	/* operations, transfers: the nearest to the slow one */
#define BREATH	256	/* rows between two turns of who cannot wait */

/* ---- what is shown ------------------------------------------------------------------ */

struct shown {
	struct op op;
	uint64_t proxy_start_ns, proxy_stop_ns;	/* 0: not known */
};

/* Copies, in the order of time: what they are made of goes on meanwhile. */
struct scene {
	const struct request *request;
	const struct exemplar *exemplar;
	struct shown *ops;
	struct transfer *transfers;
	size_t nops, ntransfers;
	uint64_t left_out, transfers_left_out;
};

static void scene_deinit(struct scene *s)
{
	free(s->ops);
	free(s->transfers);
}

/* One of a log's. */
struct near {
	const void *what;
	uint64_t apart_ns;	/* from the slow one */
};

static uint64_t began_ns(const struct op *op)
{
	return op->enqueued_ns ? op->enqueued_ns : op->seen_ns;
}

/* Adds what was under way in the window. */
static void add_near(const struct scene *s, struct near *near, size_t *n, const void *what,
		     uint64_t from_ns, uint64_t to_ns)
{
	const struct op *slow = &s->exemplar->op;
	uint64_t apart_ns = 0;

	if (from_ns > s->exemplar->to_ns || to_ns < s->exemplar->from_ns)
		return;
	if (from_ns > slow->done_ns)
		apart_ns = from_ns - slow->done_ns;
	else if (began_ns(slow) > to_ns)
		apart_ns = began_ns(slow) - to_ns;
	near[(*n)++] = (struct near){ what, apart_ns };
}

static int by_distance(const void *left, const void *right)
{
	const struct near *a = left, *b = right;

	return (a->apart_ns > b->apart_ns) - (a->apart_ns < b->apart_ns);
}

/* Returns how many are kept. */
static size_t keep_nearest(struct near *near, size_t found, uint64_t *left_out)
{
	size_t n = found < ROWS ? found : ROWS;

	qsort(near, found, sizeof(*near), by_distance);
	*left_out = found - n;
	return n;
}

static size_t find_ops(const struct scene *s, struct near *near, size_t room)
{
	const struct viewer *viewer = &s->request->viewer;
	const struct oplog_filter filter = {
		.all_users = viewer->all, .uid = viewer->uid, .rank = UNKNOWN_I32,
		.nranks = UNKNOWN_I32,
	};
	const struct oplog *log = s->request->serve->source.oplog;
	uint32_t budget = UINT32_MAX;
	struct oplog_visit visit;
	const struct op *op;
	size_t n = 0;

	oplog_begin(&visit, log, &filter);
	while (n < room && (op = oplog_next(&visit, log, &budget)))
		add_near(s, near, &n, op, began_ns(op), op->done_ns);
	return n;
}

static size_t find_transfers(const struct scene *s, struct near *near, size_t room)
{
	const struct transferlog *log = s->request->serve->source.transferlog;
	const struct transfer *t;
	size_t n = 0;

	for (uint32_t i = 0; n < room && (t = transferlog_at(log, i)); i++)
		if (viewer_sees(&s->request->viewer, t->row.who.uid))
			add_near(s, near, &n, t, t->start_ns, t->stop_ns);
	return n;
}

static const struct process *find_process(const struct request *r, uint64_t id)
{
	struct process *p;

	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));)
		if (p->id == id)
			return p;
	return NULL;
}

static void copy_op(const struct request *r, struct shown *to, const struct op *op)
{
	const struct process *p = find_process(r, op->process_id);

	*to = (struct shown){ .op = *op };
	if (!p)
		return;
	to->proxy_start_ns = timeline_mono(&p->clock, op->proxy_start_ticks);
	to->proxy_stop_ns = timeline_mono(&p->clock, op->proxy_stop_ticks);
}

static int by_posting(const void *left, const void *right)
{
	const struct shown *a = left, *b = right;

	return (began_ns(&a->op) > began_ns(&b->op)) - (began_ns(&a->op) < began_ns(&b->op));
}

static int by_start(const void *left, const void *right)
{
	const struct transfer *a = left, *b = right;

	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static int take_ops(struct scene *s, struct near *near, size_t room)
{
	s->nops = keep_nearest(near, find_ops(s, near, room), &s->left_out);
	s->ops = malloc((s->nops + 1) * sizeof(*s->ops));
	if (!s->ops)
		return -ENOMEM;
	for (size_t i = 0; i < s->nops; i++)
		copy_op(s->request, &s->ops[i], near[i].what);
	qsort(s->ops, s->nops, sizeof(*s->ops), by_posting);
	return 0;
}

static int take_transfers(struct scene *s, struct near *near, size_t room)
{
	s->ntransfers = keep_nearest(near, find_transfers(s, near, room), &s->transfers_left_out);
	s->transfers = malloc((s->ntransfers + 1) * sizeof(*s->transfers));
	if (!s->transfers)
		return -ENOMEM;
	for (size_t i = 0; i < s->ntransfers; i++)
		s->transfers[i] = *(const struct transfer *)near[i].what;
	qsort(s->transfers, s->ntransfers, sizeof(*s->transfers), by_start);
	return 0;
}

/* 0 or -ENOMEM. */
static int scene_take(struct scene *s)
{
	const size_t room = OPLOG_DEFAULT + OPLOG_DEFAULT / OPLOG_RESERVE + 1;
	CLEANUP(cleanup_freep) struct near *near = malloc(room * sizeof(*near));
	int r = near ? take_ops(s, near, room) : -ENOMEM;

	return r < 0 ? r : take_transfers(s, near, room);
}

/* ---- what is written ------------------------------------------------------------------ */

/* How far its parts got, beside what /v1/collectives tells. */
static const struct field part_fields[] = {
#define F(name, kind) { #name, kind, offsetof(struct shown, op.name), NULL }
	F(kernel_started, FIELD_U32),
	F(kernel_stopped, FIELD_U32),
	F(proxy_ops, FIELD_U32),
	F(proxy_steps, FIELD_U32),
	F(proxy_bytes, FIELD_U64),
#undef F
	{ "proxy_start", FIELD_TIME, offsetof(struct shown, proxy_start_ns), NULL },
	{ "proxy_stop", FIELD_TIME, offsetof(struct shown, proxy_stop_ns), NULL },
	{ NULL, 0, 0, NULL },
};

static void put_op(const struct request *r, struct json *j, const struct shown *row)
{
	json_begin(j, '{');
	rows_put(r->serve, j, op_fields, &row->op);
	rows_put(r->serve, j, part_fields, row);
	json_end(j, '}');
}

static void put_comm_id(const struct serve *s, struct json *j, const void *row)
{
	const struct exemplar_beyond *b = row;

	(void)s;
	if (b->has_comm_id)
		json_put_hex64(j, b->comm_id);
	else
		json_put_null(j);
}

static const struct field beyond_fields[] = {
#define F(name, kind) { #name, kind, offsetof(struct exemplar_beyond, name), NULL }
	{ "comm_id", FIELD_PUT, 0, put_comm_id },
	F(comm_name, FIELD_NAME),
	F(rank, FIELD_I32),
	F(pid, FIELD_I32),
	F(func, FIELD_NAME),
	F(seq, FIELD_U64),
	F(exec_ns, FIELD_U64),
	F(threshold_ns, FIELD_U64),
	{ "done", FIELD_TIME, offsetof(struct exemplar_beyond, done_ns), NULL },
#undef F
	{ NULL, 0, 0, NULL },
};

static void put_beyond(const struct request *r, struct json *j, const struct exemplar *e)
{
	json_key(j, "beyond");
	json_begin(j, '[');
	for (uint32_t i = 0; i < e->nbeyond; i++) {
		json_begin(j, '{');
		rows_put(r->serve, j, beyond_fields, &e->beyond[i]);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_window(const struct scene *scene, struct json *j)
{
	const struct serve_source *source = &scene->request->serve->source;
	const struct exemplar *e = scene->exemplar;

	json_key(j, "window");
	json_begin(j, '{');
	rows_put_time(scene->request->serve, j, "from", e->from_ns);
	rows_put_time(scene->request->serve, j, "to", e->to_ns);
	json_key(j, "whole");	/* else a log had forgotten what ended first */
	json_put_bool(j, oplog_since_ns(source->oplog) <= e->from_ns);
	json_key(j, "left_out");
	json_put_u64(j, scene->left_out);
	json_key(j, "transfers_whole");
	json_put_bool(j, transferlog_since_ns(source->transferlog) <= e->from_ns);
	json_key(j, "transfers_left_out");
	json_put_u64(j, scene->transfers_left_out);
	json_end(j, '}');
}

/* Now and then whoever cannot wait has his turn. */
static void breathe(const struct request *r, size_t i)
{
	if (i % BREATH == BREATH - 1)
		serve_meanwhile(r->serve);
}

static void put_ops(const struct scene *s, struct json *j)
{
	json_key(j, "collectives");
	json_begin(j, '[');
	for (size_t i = 0; i < s->nops; i++) {
		breathe(s->request, i);
		put_op(s->request, j, &s->ops[i]);
	}
	json_end(j, ']');
}

static void put_transfers(const struct scene *s, struct json *j)
{
	json_key(j, "transfers");
	json_begin(j, '[');
	for (size_t i = 0; i < s->ntransfers; i++) {
		breathe(s->request, i);
		json_begin(j, '{');
		rows_put(s->request->serve, j, transfer_fields, &s->transfers[i]);
		json_end(j, '}');
	}
	json_end(j, ']');
}

int serve_exemplar_fill(struct serve *s, const struct exemplar *e, uint64_t now_ns,
			struct json *j)
{
	struct request r = { .serve = s, .viewer = { .uid = e->head.uid } };
	CLEANUP(scene_deinit) struct scene scene = { .request = &r, .exemplar = e };
	struct shown slow;
	int err;

	query_init(&r.query);
	s->now_ns = now_ns;
	err = scene_take(&scene);	/* before anything makes the logs go on */
	if (err < 0)
		return err;
	copy_op(&r, &slow, &e->op);
	exemplar_head_begin(&e->head, j);
	rows_put_time(s, j, "written", now_ns);
	put_window(&scene, j);
	json_key(j, "operation");
	put_op(&r, j, &slow);
	put_beyond(&r, j, e);
	put_ops(&scene, j);
	put_transfers(&scene, j);
	serve_state(&r, j);
	json_end(j, '}');
	json_newline(j);
	return json_error(j);
}

/* ---- what there is ---------------------------------------------------------------------- */

struct list {
	const struct request *request;
	struct json *json;
};

static bool put_head(const struct exemplar_head *h, uint64_t size, void *arg)
{
	const struct list *l = arg;

	if (!viewer_sees(&l->request->viewer, h->uid))
		return true;
	json_begin(l->json, '{');
	exemplar_head_put(h, l->json);
	json_key(l->json, "size_bytes");
	json_put_u64(l->json, size);
	json_end(l->json, '}');
	return true;
}

void serve_exemplars(struct request *r, struct json *j)
{
	struct list list = { r, j };

	json_key(j, "exemplars");
	json_begin(j, '[');
	if (r->serve->source.exemplars)
		exemplars_visit(r->serve->source.exemplars, put_head, &list);
	json_end(j, ']');
}

struct search {
	const struct request *request;
	bool found;
};

static bool compare(const struct exemplar_head *h, uint64_t size, void *arg)
{
	struct search *s = arg;

	(void)size;
	s->found = viewer_sees(&s->request->viewer, h->uid) && !strcmp(h->id, s->request->tail);
	return !s->found;
}

/* Only what is listed for that user is opened: there is no path that leads elsewhere. */
int serve_exemplar(struct request *r, uint64_t *bytes)
{
	struct search search = { .request = r };
	struct stat st;
	int fd;

	if (!r->serve->source.exemplars)
		return -ENOENT;
	exemplars_visit(r->serve->source.exemplars, compare, &search);
	if (!search.found)
		return -ENOENT;
	fd = exemplars_open(r->serve->source.exemplars, r->tail);
	if (fd < 0)
		return -ENOENT;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -ENOENT;
	}
	*bytes = (uint64_t)st.st_size;
	return fd;
}
