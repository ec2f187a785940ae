/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/ranks: a row for each rank of this node in each of its communicators, with all that
 * the daemon knows of it, so that nobody has to join other answers.
 *
 * Sums and findings are fetched once and sorted; then one pass over processes and their
 * communicators picks its own from each, by numbers.  Rows stand by themselves, since a process
 * may be gone when the client takes its row.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/compare/straggler.h"
#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/serve/serve_parts.h"
#include "ncclinspd/sums/aggregate.h"
#include "reader/base/job.h"
#include "reader/join/inflight.h"
#include "reader/join/reconstruct.h"
#include "util/cleanup.h"
#include "util/list.h"

#define STALLED_NS	UINT64_C(1000000000)	/* time in flight that is trouble */
#define LEAST_NS	UINT64_C(50000000)	/* a share of less says nothing */

/* The classes of badness, the worst last: a row has one of them, plus less than 1. */
enum { BAD_BLAME, BAD_LATE, BAD_FOUND, BAD_STALLED, BAD_GUILTY, BAD_DIED };

struct rank_row {
	bool has_comm_id, has_gpu, has_lately, late, stalled;
	uint64_t comm_id;
	char comm_name[97];
	int32_t nranks, nnodes, rank, global_rank, world_rank;
	const char *host, *state, *level, *window;
	pid_t pid;
	uid_t uid;
	char user[40];
	char job[128];
	uint8_t gpu_uuid[16];
	char pci_bus_id[32];
	int32_t gpu_index;
	name_t phase;
	name_t tag_name;
	uint64_t tag, lost;
	name_t last_func;
	uint64_t last_seq, last_op_ns;
	uint32_t in_flight;
	uint64_t oldest_ns;
	struct diagnose_step step;
	double compared, wait, blame, last;
	struct straggler_lately lately;
	struct straggler_history history;
	uint64_t window_ns, ops, p50_ns, p99_ns;
	double ops_per_s, busbw_gbs, busbw_waitfree_gbs, share, idle;
	uint64_t finding_id;	/* 0: none is about it */
	name_t finding, grade, verdict, severity;
	double badness;
	uint64_t process_id;
	uint32_t comm_index;
};

struct ranks_total {
	uint64_t gpus_total, comms_total, ranks_total, in_flight_total;
};

/* Thousands of rows have them: whole numbers, such as 0, take a tenth of the time to write. */
static void rank_put_history(struct json *j, const double *history)
{
	bool known = false;

	for (int i = 0; i < STRAGGLER_HISTORY; i++)
		known = known || history[i] >= 0;
	if (!known) {
		json_put_null(j);
		return;
	}
	json_begin(j, '[');
	for (int i = 0; i < STRAGGLER_HISTORY; i++) {
		double value = history[i] < 10 ? round(history[i] * 100) / 100 : round(history[i]);

		if (value >= 0 && value == floor(value))
			json_put_u64(j, (uint64_t)value);
		else
			rows_put_rate(j, value);
	}
	json_end(j, ']');
}

#include "schema/rank.h"

/* ---- what is in flight --------------------------------------------------------- */

int serve_count_open(const struct request *r, struct process *p, struct open_ops *open)
{
	CLEANUP(inflights_deinit) struct inflights all = { 0 };

	serve_collect_inflight(r, p, &all);
	for (uint32_t i = 0; i < p->ncomms; i++)
		open[i] = (struct open_ops){ .oldest_ns = UNKNOWN_U64 };
	list_each(row, &all) {
		struct open_ops *of;

		if (!row->func || row->parent || row->comm_index >= p->ncomms)
			continue;
		of = &open[row->comm_index];
		of->n++;
		if (row->age_ns != UNKNOWN_U64 &&
		    (of->oldest_ns == UNKNOWN_U64 || row->age_ns > of->oldest_ns))
			of->oldest_ns = row->age_ns;
	}
	return all.error;
}

/* ---- sums ---------------------------------------------------------------------- */

/* The figures of one communicator of a process, in the order in which processes come. */
struct rank_sums {
	uint64_t process_id;
	uint32_t comm_index;
	uint64_t window_ns, ops, p50_ns, p99_ns;
	double busbw_gbs, busbw_waitfree_gbs, share;
};

struct rank_sums_list {
	LIST(struct rank_sums);
};

static bool rank_sums_keep(const struct aggregate_row *row, void *arg)
{
	struct rank_sums_list *list = arg;
	const struct aggregate_times *times = row->exec.n ? &row->exec : &row->batch;
	struct rank_sums *sums = list_append(list);

	if (!sums)
		return false;
	*sums = (struct rank_sums){
		.process_id = row->process_id, .comm_index = row->comm_index,
		.window_ns = row->window_ns, .ops = row->ops,
		.p50_ns = times->p50_ns, .p99_ns = times->p99_ns,
		.busbw_gbs = row->busbw_mean_gbs,
		.busbw_waitfree_gbs = row->busbw_waitfree_gbs, .share = row->share,
	};
	return true;
}

static void rank_sums_drop(void *arg)
{
	((struct rank_sums_list *)arg)->n = 0;
}

/* The timing source that rests on most operations comes first. */
static int rank_sums_compare(const void *one, const void *two)
{
	const struct rank_sums *a = one, *b = two;
	int r = number_order(a->process_id, b->process_id);

	r = r ? r : number_order(a->comm_index, b->comm_index);
	return r ? r : number_order(b->ops, a->ops);
}

static int rank_sums_fetch(struct request *r, struct rank_sums_list *list)
{
	int err;

	r->query.windows = 1u << r->query.window;
	r->query.by = AGGREGATE_BY_MEMBER;
	err = serve_visit_sums(r, rank_sums_keep, rank_sums_drop, list);
	list_sort(list, rank_sums_compare);
	return err < 0 ? err : 0;
}

/* ---- findings ------------------------------------------------------------------ */

/* An active finding about one rank of a communicator, or (pid) about a whole process. */
struct rank_finding {
	uid_t uid;
	pid_t pid;		/* 0: a rank's */
	uint64_t comm_id;
	int32_t rank;
	enum finding_severity severity;
	enum finding_grade grade;
	enum finding_kind kind;
	uint32_t seen;		/* its place among all: the newest first */
	uint64_t id;
	name_t verdict;
};

struct rank_findings {
	LIST(struct rank_finding);
	const struct viewer *viewer;
	uint32_t seen;
	int error;
};

static void rank_findings_add(struct rank_findings *list, const struct finding *f, pid_t pid,
			      int32_t rank)
{
	struct rank_finding *about = list_append(list);

	if (!about) {
		list->error = -ENOMEM;
		return;
	}
	*about = (struct rank_finding){
		.uid = f->uid, .pid = pid, .comm_id = pid ? 0 : f->comm_id, .rank = rank,
		.severity = f->severity, .grade = f->grade, .kind = f->kind, .seen = list->seen,
		.id = f->life.id, .verdict = f->verdict,
	};
}

static void rank_findings_add_processes(struct rank_findings *list, const struct finding *f)
{
	json_t *evidence = json_loadb(f->evidence, f->evidence_bytes, 0, NULL), *process;
	size_t i;

	json_array_foreach(json_object_get(evidence, "processes"), i, process)
		rank_findings_add(list, f, (pid_t)json_integer_value(json_object_get(process,
										     "pid")),
				  UNKNOWN_I32);
	json_decref(evidence);
}

static bool rank_findings_take(const struct finding *f, void *arg)
{
	struct rank_findings *list = arg;

	list->seen++;
	if (f->life.until_ns || !viewer_sees(list->viewer, f->uid))
		return true;
	for (uint32_t i = 0; f->has_comm_id && i < f->nranks; i++)
		rank_findings_add(list, f, 0, f->ranks[i]);
	rank_findings_add_processes(list, f);
	return true;
}

static int rank_finding_compare_keys(const struct rank_finding *a, const struct rank_finding *b)
{
	int r = number_order(a->uid, b->uid);

	r = r ? r : number_order((uint64_t)a->pid, (uint64_t)b->pid);
	r = r ? r : number_order(a->comm_id, b->comm_id);
	return r ? r : number_order((uint32_t)a->rank, (uint32_t)b->rank);
}

/* The worst first, of these the surest, any before a loss of records, then the newest. */
static int rank_finding_compare(const void *one, const void *two)
{
	const struct rank_finding *a = one, *b = two;
	int r = rank_finding_compare_keys(a, b);

	r = r ? r : number_order(b->severity, a->severity);
	r = r ? r : number_order(a->grade, b->grade);
	r = r ? r : number_order(a->kind == FINDING_LOSS, b->kind == FINDING_LOSS);
	return r ? r : number_order(a->seen, b->seen);
}

static int rank_findings_fetch(const struct request *r, struct rank_findings *list)
{
	list->viewer = &r->viewer;
	diagnose_visit(r->serve->source.diagnose, rank_findings_take, list);
	list_sort(list, rank_finding_compare);
	return list->error;
}

/* The first one with these keys; NULL: none. */
static const struct rank_finding *rank_findings_find(const struct rank_findings *list,
						     const struct rank_finding *key)
{
	uint32_t from = 0, to = list->n;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (rank_finding_compare_keys(&list->at[middle], key) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from < list->n && !rank_finding_compare_keys(&list->at[from], key) ?
	       &list->at[from] : NULL;
}

static const struct rank_finding *rank_findings_about(const struct rank_findings *list,
						      const struct rank_row *row)
{
	const struct rank_finding rank = { .uid = row->uid, .comm_id = row->comm_id,
					   .rank = row->rank };
	const struct rank_finding process = { .uid = row->uid, .pid = row->pid,
					      .rank = UNKNOWN_I32 };
	const struct rank_finding *found = NULL;

	if (row->has_comm_id && row->rank != UNKNOWN_I32)
		found = rank_findings_find(list, &rank);
	return found ? found : rank_findings_find(list, &process);
}

/* ---- one row ------------------------------------------------------------------- */

/* All that rows are made of. */
struct rank_table {
	LIST(struct rank_row);
	struct request *request;
	struct rank_sums_list sums;
	uint32_t next_sums;	/* the first of those of processes that are still to come */
	struct rank_findings findings;
};

static void rank_copy_text(char *to, size_t bytes, const char *from)
{
	snprintf(to, bytes, "%s", from ? from : "");
}

/* The members that all rows of a process have in common. */
static struct rank_row rank_row_begin(const struct request *r, const struct process *p)
{
	struct rank_row row = {
		.step = { .nccl = -1, .exposed = -1 },
		.host = r->serve->host, .pid = p->pid, .uid = p->uid,
		.global_rank = job_number(job_rank(p)), .level = process_level(p),
		.phase = p->phase.name, .lost = process_lost(p), .process_id = p->id,
	};

	if (r->serve->source.diagnose)
		row.step = diagnose_step(r->serve->source.diagnose, p->id, r->serve->now_ns);
	rank_copy_text(row.user, sizeof(row.user), serve_user_name(r->serve, p->uid));
	rank_copy_text(row.job, sizeof(row.job), job_id(p));
	return row;
}

static void rank_row_put_comm(struct rank_row *row, const struct process *p,
			      const struct comm *c)
{
	row->has_comm_id = c->has_id;
	row->comm_id = c->has_id ? c->id : 0;
	row->nranks = c->has_id ? c->nranks : UNKNOWN_I32;
	row->nnodes = c->has_id ? c->nnodes : UNKNOWN_I32;
	row->rank = c->rank;
	row->world_rank = job_world_rank(p, c);
	row->has_gpu = c->has_gpu;
	memcpy(row->gpu_uuid, c->gpu_uuid, sizeof(row->gpu_uuid));
	rank_copy_text(row->pci_bus_id, sizeof(row->pci_bus_id), c->has_gpu ? c->pci_bus_id : NULL);
	row->gpu_index = c->has_gpu ? c->gpu_index : UNKNOWN_I32;
	rank_copy_text(row->comm_name, sizeof(row->comm_name), c->name);
	row->state = process_comm_state(p, c);
}

static void rank_row_put_progress(struct rank_row *row, const struct process *p)
{
	struct comm_progress progress;

	reconstruct_progress(p, row->comm_index, &progress);
	row->tag = progress.tag;
	row->tag_name = process_tag_name(p, progress.tag);
	row->last_op_ns = progress.last_op_ns;
	row->last_func = progress.last_func;
	row->last_seq = progress.last_func ? progress.last_func_seq : UNKNOWN_U64;
}

/* Share of the time; < 0: too little time is known. */
static double rank_share(uint64_t ns, uint64_t window_ns)
{
	double share = window_ns < LEAST_NS ? -1 : (double)ns / (double)window_ns;

	return share < 1 ? share : 1;
}

static void rank_row_put_waiting(struct rank_row *row, const struct request *r)
{
	const struct straggler *s = r->serve->source.straggler;
	struct straggler_recent recent;

	row->compared = row->wait = row->blame = row->last = -1;
	row->lately.late_ns = UNKNOWN_U64;
	straggler_history(s, row->process_id, row->comm_index, r->serve->now_ns, &row->history);
	if (!s)
		return;
	if (!straggler_recent(s, row->process_id, row->comm_index, r->serve->now_ns, &recent))
		recent = (struct straggler_recent){ 0 };
	if (recent.ended)
		row->compared = (double)recent.timed / (double)recent.ended;
	if (recent.ops) {
		row->blame = rank_share(recent.blame_ns, recent.window_ns);
		row->wait = rank_share(recent.wait_ns, recent.window_ns);
	}
	row->has_lately = straggler_lately(s, row->process_id, row->comm_index, &row->lately);
	if (!row->has_lately)
		return;
	row->late = row->lately.late && !strcmp(row->state, "live");
	if (row->lately.judged)
		row->last = (double)row->lately.last / (double)row->lately.judged;
}

static void rank_row_put_sums(struct rank_row *row, struct rank_table *t)
{
	const struct rank_sums key = { .process_id = row->process_id,
				       .comm_index = row->comm_index, .ops = UINT64_MAX };
	const struct rank_sums *sums;

	row->window_ns = row->ops = row->p50_ns = row->p99_ns = UNKNOWN_U64;
	row->ops_per_s = row->busbw_gbs = row->busbw_waitfree_gbs = row->share = row->idle = -1;
	while (t->next_sums < t->sums.n &&
	       rank_sums_compare(&t->sums.at[t->next_sums], &key) < 0)
		t->next_sums++;
	sums = t->next_sums < t->sums.n ? &t->sums.at[t->next_sums] : NULL;
	if (!sums || sums->process_id != key.process_id || sums->comm_index != key.comm_index)
		return;
	if (row->wait < 0 && row->compared < 0)
		row->compared = 0;	/* it has operations, and none ever was */
	row->window_ns = sums->window_ns;
	row->ops = sums->ops;
	row->p50_ns = sums->p50_ns;
	row->p99_ns = sums->p99_ns;
	row->busbw_gbs = sums->busbw_gbs;
	row->busbw_waitfree_gbs = sums->busbw_waitfree_gbs;
	row->share = sums->share;
	row->idle = sums->share < 0 ? -1 : sums->share < 1 ? 1 - sums->share : 0;
	if (sums->window_ns)
		row->ops_per_s = (double)sums->ops * 1e9 / (double)sums->window_ns;
}

/* Has it been inside one operation for long? */
static bool rank_row_is_inside(const struct rank_row *row)
{
	return row->oldest_ns != UNKNOWN_U64 && row->oldest_ns >= STALLED_NS;
}

/*
 * Ranks found guilty of a hang come before those that hang because of it, though they may have
 * nothing in flight themselves; of those that are well, the one the others wait for most comes
 * first.
 */
static void rank_row_put_badness(struct rank_row *row)
{
	double blame = row->blame < 0 ? 0 : row->blame * 0.999;

	if (!strcmp(row->state, "died"))
		row->badness = BAD_DIED;
	else if (row->finding_id && row->severity == finding_severity_name(FINDING_CRITICAL))
		row->badness = BAD_GUILTY;
	else if (rank_row_is_inside(row))
		row->badness = BAD_STALLED + 1 - (double)STALLED_NS / (double)row->oldest_ns;
	else
		row->badness = (row->finding_id ? BAD_FOUND : row->late ? BAD_LATE : BAD_BLAME) +
			       blame;
}

static void rank_row_put_finding(struct rank_row *row, const struct rank_findings *findings)
{
	const struct rank_finding *found = rank_findings_about(findings, row);

	if (found) {
		row->finding_id = found->id;
		row->finding = finding_kind_name(found->kind);
		row->grade = finding_grade_name(found->grade);
		row->verdict = found->verdict;
		row->severity = finding_severity_name(found->severity);
	}
}

/* Ended as it should, with nothing left behind: no longer of interest. */
static bool rank_row_is_over(const struct rank_row *row)
{
	return !strcmp(row->state, "exited") ||
	       (!strcmp(row->state, "finalized") && !row->in_flight);
}

static bool rank_row_is_wanted(const struct rank_row *row, const struct query *q)
{
	return query_wants(q, &(struct query_rank){
		.has_comm_id = row->has_comm_id, .comm_id = row->comm_id,
		.comm_name = row->comm_name, .nranks = row->nranks, .rank = row->rank,
		.pid = row->pid,
	});
}

/* ---- the table ------------------------------------------------------------------ */

static int rank_table_add(struct rank_table *t, const struct process *p, struct rank_row row,
			  const struct open_ops *open)
{
	const struct comm *c = process_comm(p, (uint16_t)row.comm_index);
	struct rank_row *place;

	if (!c)
		return 0;
	rank_row_put_comm(&row, p, c);
	row.window = aggregate_windows[t->request->query.window];
	row.in_flight = open->n;
	row.oldest_ns = open->oldest_ns;
	if (rank_row_is_over(&row) || !rank_row_is_wanted(&row, &t->request->query))
		return 0;
	rank_row_put_progress(&row, p);
	rank_row_put_waiting(&row, t->request);
	rank_row_put_sums(&row, t);
	rank_row_put_finding(&row, &t->findings);
	place = list_append(t);
	if (!place)
		return -ENOMEM;
	*place = row;
	return 0;
}

static int rank_table_add_process(struct rank_table *t, struct process *p)
{
	CLEANUP(cleanup_freep) struct open_ops *open = calloc(p->ncomms + 1, sizeof(*open));
	struct rank_row row = rank_row_begin(t->request, p);
	int err = open ? serve_count_open(t->request, p, open) : -ENOMEM;

	for (uint32_t i = 0; !err && i < p->ncomms; i++) {
		row.comm_index = i;
		err = rank_table_add(t, p, row, &open[i]);
	}
	return err;
}

/* Compares by communicator, as in /v1/comms; one without an id stands alone. */
static int rank_row_compare_comms(const void *one, const void *two)
{
	const struct rank_row *a = *(const struct rank_row *const *)one;
	const struct rank_row *b = *(const struct rank_row *const *)two;
	int r = number_order(b->has_comm_id, a->has_comm_id);

	if (!r && !a->has_comm_id)
		r = number_order(a->process_id, b->process_id);
	if (!r && !a->has_comm_id)
		return number_order(a->comm_index, b->comm_index);
	r = r ? r : number_order(a->comm_id, b->comm_id);
	r = r ? r : number_order((uint64_t)a->nranks, (uint64_t)b->nranks);
	return r ? r : strcmp(a->comm_name, b->comm_name);
}

/* The same, and no other user's: ids can be forged. */
static int rank_row_compare_own_comms(const void *one, const void *two)
{
	const struct rank_row *a = *(const struct rank_row *const *)one;
	const struct rank_row *b = *(const struct rank_row *const *)two;
	int r = rank_row_compare_comms(one, two);

	return r ? r : number_order(a->uid, b->uid);
}

static int rank_row_compare_gpus(const void *one, const void *two)
{
	const struct rank_row *a = *(const struct rank_row *const *)one;
	const struct rank_row *b = *(const struct rank_row *const *)two;

	return memcmp(a->gpu_uuid, b->gpu_uuid, sizeof(a->gpu_uuid));
}

/* The worst first; else by communicator and rank. */
static int rank_row_compare(const void *one, const void *two)
{
	const struct rank_row *a = *(const struct rank_row *const *)one;
	const struct rank_row *b = *(const struct rank_row *const *)two;
	int r = (a->badness < b->badness) - (a->badness > b->badness);

	r = r ? r : rank_row_compare_comms(one, two);
	r = r ? r : (a->rank > b->rank) - (a->rank < b->rank);
	r = r ? r : number_order(a->process_id, b->process_id);
	return r ? r : number_order(a->comm_index, b->comm_index);
}

/* Sorts rows, and tells how many differ. */
static uint64_t rank_rows_count(const struct rank_row **rows, uint32_t n,
				int compare(const void *one, const void *two))
{
	uint64_t differ = n > 0;

	qsort(rows, n, sizeof(*rows), compare);
	for (uint32_t i = 1; i < n; i++)
		differ += compare(&rows[i - 1], &rows[i]) != 0;
	return differ;
}

/*
 * Marks the ranks of communicators with an operation that goes on: nobody knows yet how much of
 * it is waiting, and for which of the others.
 */
static void rank_table_mark_stalled(const struct rank_table *t, const struct rank_row **rows)
{
	bool stalled = false;

	for (uint32_t i = 0; i < t->n; i++)
		rows[i] = &t->at[i];
	qsort(rows, t->n, sizeof(*rows), rank_row_compare_own_comms);
	for (uint32_t first = 0, end = 0; first < t->n; first = end, stalled = false) {
		for (; end < t->n && !rank_row_compare_own_comms(&rows[first], &rows[end]);
		     end++)
			stalled |= rank_row_is_inside(rows[end]);
		for (uint32_t i = first; stalled && i < end; i++) {
			struct rank_row *row = &t->at[rows[i] - t->at];

			row->stalled = true;
			row->wait = row->blame = -1;
			row->idle = rank_row_is_inside(row) ? -1 : row->idle;
		}
	}
	for (uint32_t i = 0; i < t->n; i++)
		rank_row_put_badness(&t->at[i]);
}

static void rank_table_put_totals(const struct rank_table *t, const struct rank_row **rows,
				  struct json *j)
{
	struct ranks_total total = { .ranks_total = t->n };
	uint32_t with_gpu = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		total.in_flight_total += t->at[i].in_flight;
		if (t->at[i].has_gpu)
			rows[with_gpu++] = &t->at[i];
	}
	total.gpus_total = rank_rows_count(rows, with_gpu, rank_row_compare_gpus);
	for (uint32_t i = 0; i < t->n; i++)
		rows[i] = &t->at[i];
	total.comms_total = rank_rows_count(rows, t->n, rank_row_compare_comms);
	rows_put(&t->request->serve->writer, j, rank_totals_fields, &total);
}

/* The worst rows go into the listing, as many as are wanted. */
static int rank_table_list(const struct rank_table *t, struct sent_listing *l)
{
	const uint32_t most = t->request->query.limit ? t->request->query.limit : SERVE_ROWS_MAX;
	CLEANUP(cleanup_freep) const struct rank_row **sorted = calloc(t->n + 1,
								       sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	rank_table_mark_stalled(t, sorted);
	serve_meanwhile(t->request->serve);
	rank_table_put_totals(t, sorted, listing_head(l));
	serve_meanwhile(t->request->serve);
	qsort(sorted, t->n, sizeof(*sorted), rank_row_compare);
	for (uint32_t i = 0; i < t->n && i < most; i++) {
		struct rank_row *row = listing_add(l);

		if (!row)
			return -ENOMEM;
		*row = *sorted[i];
	}
	return 0;
}

static void rank_table_deinit(struct rank_table *t)
{
	list_deinit(&t->sums);
	list_deinit(&t->findings);
	list_deinit(t);
}

/* ---- fields --------------------------------------------------------------------- */

static void put_rank_row(const struct serve *s, struct json *j, const void *row,
			 const struct chosen *chosen)
{
	unsigned n = rows_put_chosen(&s->writer, j, rank_fields, row, chosen, 0);

	rows_put_chosen(&s->writer, j, rank_sums_fields, row, chosen, n);
}

/* ---- answers ---------------------------------------------------------------------- */

struct sent_listing *serve_new_ranks(const struct serve *s, const struct chosen *chosen)
{
	return listing_new(s, "ranks", sizeof(struct rank_row), put_rank_row, chosen);
}

static bool ranks_want_sums(const struct request *r)
{
	unsigned first = rows_count(rank_fields);

	return chosen_wants_any(&r->chosen, first, first + rows_count(rank_sums_fields));
}

int serve_take_ranks(struct request *r, struct sent_listing *l)
{
	CLEANUP(rank_table_deinit) struct rank_table t = { .request = r };
	const struct serve_source *source = &r->serve->source;
	struct process *p;
	int err = ranks_want_sums(r) ? rank_sums_fetch(r, &t.sums) : 0;

	if (source->catch_up)
		source->catch_up(source->arg);
	err = err ? err : rank_findings_fetch(r, &t.findings);
	for (size_t i = 0; !err && (p = serve_next_process(r->serve, &r->viewer, &i));) {
		err = rank_table_add_process(&t, p);
		serve_meanwhile(r->serve);
	}
	return err ? err : rank_table_list(&t, l);
}

int serve_ranks(struct request *r, struct answer *a)
{
	struct sent_listing *l = serve_new_ranks(r->serve, &r->chosen);

	return listing_answer(l, l ? serve_take_ranks(r, l) : 0, a);
}
