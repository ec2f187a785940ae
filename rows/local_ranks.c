/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rank's process made an entry of its own for a communicator.  They belong together when
 * id, size and name agree; the id alone does not do (two shrinks of one parent share it), and
 * without an id (profiler API before v4) each stands alone.
 */
#include "rows/local_ranks.h"

#include <string.h>

#include "util/list.h"

int local_ranks_add(struct local_ranks *ranks, const struct process *p)
{
	for (uint32_t index = 0; index < p->ncomms; index++) {
		const struct comm *comm = process_comm(p, (uint16_t)index);
		struct local_rank *l = comm ? list_append(ranks) : NULL;

		if (comm && !l)
			return -ENOMEM;
		if (!l)
			continue;
		*l = (struct local_rank){ p, comm, index, { 0 } };
		reconstruct_progress(p, index, &l->progress);
	}
	return 0;
}

const struct called *local_rank_calls(const struct local_rank *l, size_t *n)
{
	const struct comm_progress *p = &l->progress;

	*n = p->calls < RECONSTRUCT_CALLS ? p->calls : RECONSTRUCT_CALLS;
	if (p->in_flight || !reconstruct_counts_calls(l->process, l->comm, p))
		*n = 0;
	return &p->call[RECONSTRUCT_CALLS - *n];
}

static int local_ranks_compare_groups(const struct local_rank *a, const struct local_rank *b)
{
	int r = number_order(b->comm->has_id, a->comm->has_id);

	if (!r && !a->comm->has_id)
		r = number_order(a->process->id, b->process->id);
	if (!r && !a->comm->has_id)
		return number_order(a->index, b->index);
	if (!r)
		r = number_order(a->comm->id, b->comm->id);
	if (!r)
		r = number_order((uint64_t)a->comm->nranks, (uint64_t)b->comm->nranks);
	return r ? r : strcmp(a->comm->name, b->comm->name);
}

static int local_ranks_compare(const void *one, const void *two)
{
	const struct local_rank *a = one, *b = two;
	int r = local_ranks_compare_groups(a, b);

	if (!r && a->comm->rank != b->comm->rank)
		r = a->comm->rank < b->comm->rank ? -1 : 1;
	return r ? r : number_order(a->process->id, b->process->id);
}

/* The number of ranks from `at` on that are of one communicator. */
static size_t local_ranks_count_group(const struct local_rank *at, size_t n)
{
	size_t members = 1;

	while (members < n && !local_ranks_compare_groups(at, &at[members]))
		members++;
	return members;
}

static void local_rank_put(const struct rows_writer *w, struct json *j,
			   const struct local_rank *l, const struct field *fields,
			   const struct chosen *c, unsigned first)
{
	json_begin(j, '{');
	rows_put_chosen(w, j, fields, l, c, first);
	json_end(j, '}');
}

void local_ranks_put(const struct rows_writer *w, struct json *j, struct local_ranks *ranks,
		     const struct field *comm_fields, const struct field *rank_fields,
		     const struct chosen *c)
{
	unsigned first = rows_count(comm_fields), end = first + rows_count(rank_fields);
	struct local_rank *at = ranks->at;

	list_sort(ranks, local_ranks_compare);
	for (size_t i = 0, next; i < ranks->n; i = next) {
		if (w->meanwhile)
			w->meanwhile(w);
		next = i + local_ranks_count_group(&at[i], ranks->n - i);
		json_begin(j, '{');
		rows_put_chosen(w, j, comm_fields, at[i].comm, c, 0);
		if (chosen_wants_any(c, first, end)) {
			json_begin_member(j, "local_ranks", '[');
			for (; i < next; i++)
				local_rank_put(w, j, &at[i], rank_fields, c, first);
			json_end(j, ']');
		}
		json_end(j, '}');
	}
}
