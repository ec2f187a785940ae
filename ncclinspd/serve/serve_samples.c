/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of each rank that its number draws, one in a power of two: daemons that
 * know nothing of each other keep the same ones, also some time apart, and who reads them
 * can compare the ranks of all nodes in one operation.
 */
#include <errno.h>
#include <stdlib.h>

#include "ncclinspd/compare/ranks_compare.h"
#include "ncclinspd/compare/straggler.h"
#include "ncclinspd/serve/serve_parts.h"
#include "util/cleanup.h"
#include "util/list.h"

/* The most of all users, who have equal shares. */
#define SERIES	512	/* one rank's operations of one function on one communicator */
#define KEPT	64	/* most of each series; at least half of it where there are so many */
#define ROWS	8192

struct samples_series {
	uint64_t process_id;
	uint32_t comm_index;
	name_t func;
	uint64_t least_seq, most_seq;
	unsigned halvings;	/* one in 2^halvings is kept */
	bool kept;
};

/* One operation, and what its GPU did before it. */
struct samples_row {
	uint64_t gpu, start_ns;
	uint64_t process_id;
	uint32_t comm_index;
	name_t func;
	uint64_t seq;
	uint64_t inside_ns;
	/* time in operations of other communicators since the last one on its own; UNKNOWN_U64 */
	uint64_t before_ns;
};

struct samples {
	LIST(struct samples_row) all;
	int error;
	struct request *request;
	struct json *json;
	struct samples_series series[SERIES];
	uint32_t nseries;
	uint32_t users;
	struct accounts_tally series_of, rows_of;
};

/* NULL: no room for another. */
static struct samples_series *samples_series_of(struct samples *s, const struct op *op)
{
	struct samples_series *l;

	for (uint32_t i = 0; i < s->nseries; i++) {
		l = &s->series[i];
		if (l->process_id == op->process_id && l->comm_index == op->comm_index &&
		    l->func == op->func)
			return l;
	}
	if (*accounts_count(&s->series_of, op->account) >= SERIES / s->users)
		return NULL;
	l = array_add(s->series, &s->nseries);
	if (!l)
		return NULL;
	++*accounts_count(&s->series_of, op->account);
	*l = (struct samples_series){ .process_id = op->process_id, .comm_index = op->comm_index,
				      .func = op->func, .least_seq = op->seq, .most_seq = op->seq };
	return l;
}

/* The head of a batch stands for all of it. */
static bool sample_add(struct samples *s, const struct op *op)
{
	const struct serve_source *source = &s->request->serve->source;
	struct process *const *list;
	size_t n = source->processes(source->arg, &list);
	struct samples_row *sample;

	if (!source->straggler || (op_is_fused(op) && !op->batch_head))
		return true;
	sample = list_append(&s->all);
	if (!sample) {
		s->error = -ENOMEM;
		return false;
	}
	*sample = (struct samples_row){
		.gpu = straggler_gpu(source->straggler, op, list, n), .start_ns = op->gpu_start_ns,
		.process_id = op->process_id, .comm_index = op->comm_index, .func = op->func,
		.seq = op->seq, .inside_ns = op_inside_ns(op), .before_ns = UNKNOWN_U64,
	};
	return true;
}

static bool samples_measure(const struct op *op, void *arg)
{
	struct samples_series *l = ranks_are_told_apart_by(op) ? samples_series_of(arg, op) : NULL;

	if (!l)
		return true;
	if (!sample_add(arg, op))
		return false;
	if (op->seq < l->least_seq)
		l->least_seq = op->seq;
	if (op->seq > l->most_seq)
		l->most_seq = op->seq;
	return true;
}

/* ---- what a GPU did before ------------------------------------------------------------ */

#define HOPS	64	/* operations on other communicators, before one that is left out */

static int by_start(const void *one, const void *two)
{
	const struct samples_row *a = one, *b = two;

	return a->gpu != b->gpu ? number_order(a->gpu, b->gpu) :
				  number_order(a->start_ns, b->start_ns);
}

static int by_name(const void *one, const void *two)
{
	const struct samples_row *a = one, *b = two;
	int r = number_order(a->process_id, b->process_id);

	r = r ? r : number_order(a->comm_index, b->comm_index);
	r = r ? r : number_order((uintptr_t)a->func, (uintptr_t)b->func);
	return r ? r : number_order(a->seq, b->seq);
}

static bool sample_is_same_comm(const struct samples_row *a, const struct samples_row *b)
{
	return a->process_id == b->process_id && a->comm_index == b->comm_index;
}

static void samples_find_before(struct samples *s)
{
	for (uint32_t i = 0; i < s->all.n; i++) {
		struct samples_row *at = &s->all.at[i];
		uint64_t sum_ns = 0;

		for (uint32_t k = i; k-- && i - k <= HOPS && s->all.at[k].gpu == at->gpu;) {
			if (sample_is_same_comm(&s->all.at[k], at)) {
				at->before_ns = sum_ns;
				break;
			}
			sum_ns += s->all.at[k].inside_ns;
		}
	}
}

static void samples_follow(struct samples *s)
{
	if (!s->all.n)
		return;
	list_sort(&s->all, by_start);
	samples_find_before(s);
	list_sort(&s->all, by_name);
}

/* NULL: it came after the others were looked through. */
static const struct samples_row *sample_of(const struct samples *s, const struct op *op)
{
	const struct samples_row key = { .process_id = op->process_id, .comm_index = op->comm_index,
					 .func = op->func, .seq = op->seq };

	return s->all.n ? bsearch(&key, s->all.at, s->all.n, sizeof(key), by_name) : NULL;
}

/* ---- rows ----------------------------------------------------------------------------- */

struct sample_row {
	const struct op *op;
	uint64_t before_ns;
};

#include "schema/sample.h"

/*
 * One in 2^halvings, evenly (Fibonacci hashing), and those of more halvings among them.  Every
 * 2^halvings-th would always meet the same step of an iteration of two or four.
 */
static bool seq_is_drawn(uint64_t seq, unsigned halvings)
{
	return !halvings || !(seq * UINT64_C(0x9e3779b97f4a7c15) >> (64 - halvings));
}

static bool sample_put(const struct op *op, void *arg)
{
	struct samples *s = arg;
	const struct samples_series *l = ranks_are_told_apart_by(op) ?
		samples_series_of(s, op) : NULL;
	const struct samples_row *sample;

	if (!l || !l->kept || !seq_is_drawn(op->seq, l->halvings))
		return true;
	if ((*accounts_count(&s->rows_of, op->account))++ >= ROWS / s->users)
		return true;
	sample = sample_of(s, op);
	rows_put_object(&s->request->serve->writer, s->json, sample_fields,
			&(struct sample_row){ op, sample ? sample->before_ns : UNKNOWN_U64 });
	return true;
}

static void samples_choose_strides(struct samples *s)
{
	for (uint32_t i = 0; i < s->nseries; i++) {
		struct samples_series *l = &s->series[i];

		l->kept = true;
		while ((l->most_seq - l->least_seq) >> l->halvings >= KEPT)
			l->halvings++;
	}
}

void serve_samples(struct request *r, struct json *j)
{
	CLEANUP(cleanup_freep) struct samples *s = calloc(1, sizeof(*s));

	if (!s) {
		json_fail(j, -ENOMEM);
		return;
	}
	s->request = r;
	s->json = j;
	s->users = serve_count_users(r->serve, &r->viewer);
	serve_visit_ops(r, samples_measure, s);
	samples_choose_strides(s);
	samples_follow(s);
	if (s->error)
		json_fail(j, s->error);
	json_begin_member(j, "samples", '[');
	serve_visit_ops(r, sample_put, s);
	json_end(j, ']');
	list_deinit(&s->all);
}
