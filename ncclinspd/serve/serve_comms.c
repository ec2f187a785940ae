/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/comms: communicators, each with the ranks that live on this node.
 *
 * Every rank's process made an entry of its own.  They belong together when id,
 * size and name agree; the id alone does not do (two shrinks of one parent share
 * it), and without an id (profiler API before v4) each stands alone.
 */
#include "ncclinspd/serve/serve_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/compare/straggler.h"
#include "ncclinspd/findings/stall.h"
#include "reader/base/job.h"
#include "reader/join/reconstruct.h"
#include "util/list.h"

/* One local rank. */
struct local_rank {
	const struct process *process;
	const struct comm *comm;
	uint32_t index;
	struct comm_progress progress;
};

struct local_ranks {
	LIST(struct local_rank);
};

static int numbers_order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int local_ranks_compare_groups(const struct local_rank *a, const struct local_rank *b)
{
	int r = numbers_order(b->comm->has_id, a->comm->has_id);

	if (!r && !a->comm->has_id)
		r = numbers_order(a->process->id, b->process->id);
	if (!r && !a->comm->has_id)
		return numbers_order(a->index, b->index);
	if (!r)
		r = numbers_order(a->comm->id, b->comm->id);
	if (!r)
		r = numbers_order((uint64_t)a->comm->nranks, (uint64_t)b->comm->nranks);
	return r ? r : strcmp(a->comm->name, b->comm->name);
}

static int local_ranks_compare(const void *one, const void *two)
{
	const struct local_rank *a = one, *b = two;
	int r = local_ranks_compare_groups(a, b);

	if (!r && a->comm->rank != b->comm->rank)
		r = a->comm->rank < b->comm->rank ? -1 : 1;
	return r ? r : numbers_order(a->process->id, b->process->id);
}

static uint32_t local_ranks_count(const struct request *r)
{
	struct process *p;
	uint32_t n = 0;

	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));)
		n += p->ncomms;
	return n;
}

static void local_ranks_collect(const struct request *r, struct local_ranks *ranks)
{
	struct process *p;

	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));) {
		for (uint32_t index = 0; index < p->ncomms; index++) {
			const struct comm *comm = process_comm(p, (uint16_t)index);

			if (comm)
				*list_must_add(ranks) = (struct local_rank){ p, comm, index,
									     { 0 } };
		}
	}
}

void serve_put_uuid(struct json *j, const uint8_t *u)
{
	char text[PROCESS_UUID_BYTES];

	if (!u) {
		json_put_null(j);
		return;
	}
	process_uuid_text(u, text);
	json_put_string(j, text);
}

static void comm_put_gpu_uuid(const struct serve *s, struct json *j, const void *row)
{
	const struct comm *c = ((const struct local_rank *)row)->comm;

	(void)s;
	serve_put_uuid(j, c->has_gpu ? c->gpu_uuid : NULL);
}

static void comm_put_last_seq(const struct serve *s, struct json *j, const void *row)
{
	const struct comm_progress *progress = &((const struct local_rank *)row)->progress;

	(void)s;
	json_begin(j, '{');
	for (uint32_t i = 0; i < progress->nfuncs; i++) {
		json_key(j, progress->last_seq[i].func);
		json_put_u64(j, progress->last_seq[i].seq);
	}
	json_end(j, '}');
}

struct waiting_row {
	struct straggler_sums sums;
	bool is_lately;
	struct straggler_lately lately;
};

const char *serve_member_state(const struct process *p, const struct comm *comm)
{
	bool finalized = p->state == PROCESS_LIVE && comm->finalize_ticks;

	return finalized ? "finalized" : process_state_text(p);
}

/* An operation whose end is not watched hangs when the rank has posted nothing for so long. */
static void put_quiet_limit(const struct serve *s, struct json *j, const void *row)
{
	const struct local_rank *l = row;

	if (s->source.diagnose)
		json_put_u64(j, stall_unwatched_limit_ns(s->source.diagnose, l->process->id));
	else
		json_put_null(j);
}

static field_put_fn put_newest_calls, comm_put_waiting;

#include "schema/comm.h"

/* They are compared where nothing is seen in flight. */
static void put_newest_calls(const struct serve *s, struct json *j, const void *row)
{
	const struct local_rank *l = row;
	const struct comm_progress *p = &l->progress;
	uint64_t n = p->calls < RECONSTRUCT_CALLS ? p->calls : RECONSTRUCT_CALLS;

	json_begin(j, '[');
	if (p->in_flight || !stuck_counts_calls(l->process, l->comm, p))
		n = 0;
	for (uint64_t i = RECONSTRUCT_CALLS - n; i < RECONSTRUCT_CALLS; i++)
		rows_put_object(s, j, call_fields, &p->call[i]);
	json_end(j, ']');
}

static void comm_put_waiting(const struct serve *s, struct json *j, const void *row)
{
	const struct straggler *straggler = s->source.straggler;
	const struct local_rank *l = row;
	struct waiting_row w;

	if (!straggler || !straggler_of(straggler, l->process->id, l->index, &w.sums)) {
		json_put_null(j);
		return;
	}
	w.is_lately = straggler_lately(straggler, l->process->id, l->index, &w.lately);
	rows_put_object(s, j, waiting_fields, &w);
}

const struct field_table comm_tables[] = {
	{ NULL, comm_fields },
	{ "local_ranks", local_rank_fields },
	{ NULL, NULL },
};

static void comm_put_local_ranks(const struct request *r, struct json *j, struct local_rank *at,
				 size_t n, unsigned first)
{
	json_key(j, "local_ranks");
	json_begin(j, '[');
	for (size_t i = 0; i < n; i++) {
		reconstruct_progress(at[i].process, at[i].index, &at[i].progress);
		json_begin(j, '{');
		rows_put_chosen(r->serve, j, local_rank_fields, &at[i], &r->chosen, first);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static size_t comm_put_group(const struct request *r, struct json *j, struct local_rank *at,
			     size_t n)
{
	unsigned first, end;
	size_t members = 1;

	while (members < n && !local_ranks_compare_groups(at, &at[members]))
		members++;
	json_begin(j, '{');
	first = rows_put_chosen(r->serve, j, comm_fields, at->comm, &r->chosen, 0);
	end = first + rows_count(local_rank_fields);
	if (chosen_wants_any(&r->chosen, first, end))
		comm_put_local_ranks(r, j, at, members, first);
	json_end(j, '}');
	return members;
}

void serve_comms(struct request *r, struct json *j)
{
	struct local_ranks ranks;

	if (list_init(&ranks, local_ranks_count(r)) < 0) {
		json_fail(j, -ENOMEM);
		return;
	}
	local_ranks_collect(r, &ranks);
	qsort(ranks.at, ranks.n, sizeof(*ranks.at), local_ranks_compare);
	json_key(j, "comms");
	json_begin(j, '[');
	for (uint32_t i = 0; i < ranks.n;)
		i += (uint32_t)comm_put_group(r, j, &ranks.at[i], ranks.n - i);
	json_end(j, ']');
	list_deinit(&ranks);
}
