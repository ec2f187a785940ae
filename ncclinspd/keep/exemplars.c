/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slow operation is told by what went on around it, which is gone a moment later:
 * windows decide which become files, and when.
 */
#include "ncclinspd/keep/exemplars.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/sums/oplog.h"
#include "reader/base/accounts.h"
#include "util/cleanup.h"
#include "util/json.h"
#include "util/list.h"
#include "util/log.h"

#define SAME_NS		UINT64_C(10000000000)	/* ranks of one operation end within it */
#define MINUTE_NS	UINT64_C(60000000000)
#define SETTLE_NS	UINT64_C(500000000)	/* all that ended in the window is known by then */
#define MOMENT_NS	UINT64_C(1000000)
#define HURRY_OPS	(OPLOG_DEFAULT / 2)	/* the log holds what came before so long */
#define FILE_BYTES	(16u << 20)
#define HEADS		(2 * EXEMPLARS_FILES)	/* heads, also of files that are being written */

/* The contents of one account's window, or of its last one: of one user id at a time. */
struct exemplar_watch {
	bool used;
	uid_t account;
	bool open;
	uint64_t due_ns;
	uint64_t first;				/* newest in the log when it opened */
	uint64_t opened_ns[EXEMPLARS_PER_MINUTE];	/* times at which the last windows opened */
	uint32_t windows;
	struct exemplar exemplar;
};

struct exemplars {
	struct archive *archive;
	exemplars_fill_fn *fill;
	void *arg;
	const struct accounts *accounts;
	struct exemplar_watch watches[EXEMPLARS_USERS];
	struct exemplar_head heads[HEADS];	/* newest last; some of files that are gone */
	uint32_t nheads;
	struct exemplar writing;		/* away from its watch: that may go on */
	uint64_t last_real_ns;			/* ids are of different moments */
	struct exemplars_stats stats;
};

/* ---- what is too slow ----------------------------------------------------------------- */

uint64_t exemplars_threshold_ns(const struct aggregate_usual *usual)
{
	uint64_t excess = usual->p999_ns / 10;

	if (usual->ops < EXEMPLARS_LEAST_OPS)
		return UNKNOWN_U64;
	return usual->p999_ns + (excess > EXEMPLARS_EXCESS_NS ? excess : EXEMPLARS_EXCESS_NS);
}

/* ---- windows ---------------------------------------------------------------------------- */

static uint64_t watch_last_opened(const struct exemplar_watch *w)
{
	return w->windows ? w->opened_ns[(w->windows - 1) % EXEMPLARS_PER_MINUTE] : 0;
}

/* Has the user had all that a minute may have? */
static bool watch_is_spent(const struct exemplar_watch *w, uint64_t now_ns)
{
	return w->windows >= EXEMPLARS_PER_MINUTE &&
	       now_ns < w->opened_ns[w->windows % EXEMPLARS_PER_MINUTE] + MINUTE_NS;
}

/* NULL: all are busy. */
static struct exemplar_watch *watch_find(struct exemplars *x, uid_t account, uint64_t now_ns)
{
	struct exemplar_watch *unused = NULL;

	for (size_t i = 0; i < EXEMPLARS_USERS; i++) {
		struct exemplar_watch *w = &x->watches[i];

		if (w->used && w->account == account)
			return w;
		if (!unused &&
		    (!w->used || (!w->open && now_ns >= watch_last_opened(w) + MINUTE_NS)))
			unused = w;
	}
	if (unused)
		*unused = (struct exemplar_watch){ .used = true, .account = account };
	return unused;
}

static bool op_is_same(const struct op *a, const struct op *b)
{
	return a->has_comm_id && b->has_comm_id && a->comm_id == b->comm_id &&
	       a->nranks == b->nranks && a->func == b->func && a->seq == b->seq &&
	       a->seq != UNKNOWN_U64;
}

static void exemplar_add_beyond(struct exemplar *e, const struct op *op,
				const struct aggregate_usual *usual, uint64_t threshold_ns)
{
	struct exemplar_beyond *beyond = array_add(e->beyond, &e->nbeyond);

	if (!beyond)
		return;
	*beyond = (struct exemplar_beyond){
		.has_comm_id = op->has_comm_id, .comm_id = op->comm_id,
		.comm_name = op->comm_name, .rank = op->rank, .pid = op->pid, .func = op->func,
		.seq = op->seq, .exec_ns = usual->taken_ns, .threshold_ns = threshold_ns,
		.done_ns = op->done_ns,
	};
}

static void head_fill(struct exemplar_head *h, const struct op *op,
		      const struct aggregate_usual *usual, uint64_t threshold_ns)
{
	*h = (struct exemplar_head){
		.uid = op->uid,
		.at_mono_ns = op->done_ns,
		.reason = "beyond_p999",
		.has_comm_id = op->has_comm_id,
		.comm_id = op->comm_id,
		.rank = op->rank,
		.nranks = op->nranks,
		.pid = op->pid,
		.seq = op->seq,
		.bytes = op->bytes,
		.exec_ns = usual->taken_ns,
		.threshold_ns = threshold_ns,
		.p999_ns = usual->p999_ns,
		.p50_ns = usual->p50_ns,
		.ops = usual->ops,
	};
	snprintf(h->comm_name, sizeof(h->comm_name), "%s", op->comm_name ? op->comm_name : "");
	snprintf(h->func, sizeof(h->func), "%s", op->func ? op->func : "");
}

static void watch_open_window(struct exemplar_watch *w, const struct op *op,
			      const struct aggregate_usual *usual, uint64_t threshold_ns,
			      uint64_t newest, uint64_t now_ns)
{
	struct exemplar *e = &w->exemplar;
	uint64_t began_ns = op->enqueued_ns ? op->enqueued_ns : now_ns;

	head_fill(&e->head, op, usual, threshold_ns);
	e->op = *op;
	e->from_ns = began_ns > EXEMPLARS_BEFORE_NS ? began_ns - EXEMPLARS_BEFORE_NS : 1;
	e->to_ns = now_ns + EXEMPLARS_AFTER_NS;
	e->nbeyond = 0;
	w->open = true;
	w->due_ns = e->to_ns + SETTLE_NS;
	w->first = newest;
	w->opened_ns[w->windows++ % EXEMPLARS_PER_MINUTE] = now_ns;
}

void exemplars_op(struct exemplars *x, const struct op *op, const struct aggregate_usual *usual,
		  uint64_t newest, uint64_t now_ns)
{
	uint64_t threshold_ns = exemplars_threshold_ns(usual);
	struct exemplar_watch *w;
	bool others;	/* the window is another user id's of that account */

	if (usual->taken_ns <= threshold_ns)
		return;
	x->stats.beyond++;
	w = watch_find(x, accounts_of(x->accounts, op->uid), now_ns);
	others = w && w->windows && w->exemplar.head.uid != op->uid;
	if (w && w->windows && !others &&
	    (w->open ||
	     (op_is_same(op, &w->exemplar.op) && now_ns < watch_last_opened(w) + SAME_NS))) {
		x->stats.merged++;
		w->exemplar.head.merged++;
	} else if (!w || watch_is_spent(w, now_ns) || (others && w->open)) {
		x->stats.skipped++;
		return;
	} else {
		watch_open_window(w, op, usual, threshold_ns, newest, now_ns);
	}
	exemplar_add_beyond(&w->exemplar, op, usual, threshold_ns);
}

/* ---- files --------------------------------------------------------------------------------- */

static void head_add(struct exemplars *x, const struct exemplar_head *h)
{
	if (x->nheads == HEADS)
		array_remove(x->heads, &x->nheads, 0);
	*array_must_add(x->heads, &x->nheads) = *h;
}

static int exemplar_write(struct exemplars *x, struct exemplar *e, uint64_t now_ns,
			  uint64_t real_ns)
{
	CLEANUP(json_deinit) struct json j;
	uint64_t bytes, id_ns = real_ns;
	int r;

	if (x->last_real_ns - id_ns < MOMENT_NS)
		id_ns = x->last_real_ns + 1;
	x->last_real_ns = id_ns;
	archive_make_id(e->head.id, id_ns, NULL);
	e->head.at_real_ns = real_ns - (now_ns - e->head.at_mono_ns);
	json_init(&j, FILE_BYTES);
	r = x->fill(x->arg, e, now_ns, &j);
	if (r == 0)
		r = archive_put(x->archive, e->head.id, real_ns, &j, &bytes);
	if (r < 0)
		return r;
	head_add(x, &e->head);
	log_say(LOG_INFO, "exemplar id=%s pid=%d exec_ns=%" PRIu64 " threshold_ns=%" PRIu64
		" bytes=%" PRIu64, e->head.id, (int)e->head.pid, e->head.exec_ns,
		e->head.threshold_ns, bytes);
	return 0;
}

/* Does the log forget what was before? */
static bool watch_is_pressing(const struct exemplar_watch *w, uint64_t newest)
{
	return newest - w->first >= HURRY_OPS;
}

uint64_t exemplars_due_ns(const struct exemplars *x, uint64_t newest)
{
	uint64_t due_ns = UINT64_MAX;

	for (size_t i = 0; i < EXEMPLARS_USERS; i++) {
		const struct exemplar_watch *w = &x->watches[i];

		if (w->open && watch_is_pressing(w, newest))
			return 0;
		if (w->open && w->due_ns < due_ns)
			due_ns = w->due_ns;
	}
	return due_ns;
}

void exemplars_run(struct exemplars *x, uint64_t newest, uint64_t now_ns, uint64_t real_ns)
{
	for (size_t i = 0; i < EXEMPLARS_USERS; i++) {
		struct exemplar_watch *w = &x->watches[i];
		int r;

		if (!w->open || (now_ns < w->due_ns && !watch_is_pressing(w, newest)))
			continue;
		w->open = false;
		x->writing = w->exemplar;
		if (now_ns < x->writing.to_ns)
			x->writing.to_ns = now_ns;
		r = exemplar_write(x, &x->writing, now_ns, real_ns);
		if (r == 0)
			continue;
		x->stats.failed++;
		log_say(LOG_WARN, "exemplar not written error=\"%s\"", strerror(-r));
	}
}

/* ---- what there is ------------------------------------------------------------------------- */

void exemplars_visit(struct exemplars *x, exemplars_visit_fn *visit, void *arg)
{
	for (uint32_t i = x->nheads; i-- > 0;) {
		uint64_t size = archive_holds(x->archive, x->heads[i].id);

		if (size && !visit(&x->heads[i], size, arg))
			return;
	}
}

int exemplars_read(struct exemplars *x, const char *id, char **text, size_t *bytes)
{
	return archive_read(x->archive, id, FILE_BYTES, text, bytes);
}

void exemplars_watch(struct exemplars *x, uint64_t now_ns, struct writer_output *out)
{
	archive_watch(x->archive, now_ns, out);
}

static void exemplars_count_file(void *arg, const char *id, uint64_t bytes)
{
	struct exemplars_stats *stats = arg;

	stats->files++;
	stats->bytes += bytes;
}

void exemplars_read_stats(struct exemplars *x, struct exemplars_stats *out)
{
	struct writer_stats files;

	writer_read_stats(archive_writer(x->archive), &files);
	*out = x->stats;
	out->written = files.written;
	out->failed += files.failed;
	archive_visit(x->archive, exemplars_count_file, out);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct exemplar_file {
	char id[EXEMPLARS_FILES][ARCHIVE_ID];
	uint32_t n;
};

static void exemplars_note_file(void *arg, const char *id, uint64_t bytes)
{
	struct exemplar_file *found = arg;
	void *place = array_add(found->id, &found->n);

	if (place)
		memcpy(place, id, ARCHIVE_ID);
}

static int heads_by_age(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The beginning of a file tells what it is; one that is not ours is left alone. */
static void exemplars_find_files(struct exemplars *x)
{
	struct exemplar_file found = { .n = 0 };
	struct exemplar_head head;

	archive_visit(x->archive, exemplars_note_file, &found);
	qsort(found.id, found.n, sizeof(found.id[0]), heads_by_age);
	for (uint32_t i = 0; i < found.n; i++) {
		CLEANUP(cleanup_freep) char *text = NULL;
		size_t bytes;

		if (archive_read(x->archive, found.id[i], EXEMPLAR_HEAD_BYTES, &text,
				 &bytes) == 0 &&
		    exemplar_head_read(&head, found.id[i], text, bytes))
			head_add(x, &head);
	}
}

CLEANUP_DEFINE(exemplars_free, struct exemplars)

int exemplars_new(struct exemplars **xp, const char *state_dir, exemplars_fill_fn *fill,
		  void *arg, const struct accounts *accounts)
{
	static const struct writer_limits limits = { .files = EXEMPLARS_FILES,
						     .bytes = EXEMPLARS_BYTES };
	CLEANUP(exemplars_freep) struct exemplars *x = calloc(1, sizeof(*x));
	int r;

	if (!x)
		return -ENOMEM;
	x->fill = fill;
	x->arg = arg;
	x->accounts = accounts;
	r = archive_new(&x->archive, state_dir, "exemplars", "exemplars", &limits);
	if (r < 0)
		return r;
	exemplars_find_files(x);
	*xp = DISOWN(x);
	return 0;
}

void exemplars_free(struct exemplars *x)
{
	if (!x)
		return;
	archive_free(x->archive);
	free(x);
}
