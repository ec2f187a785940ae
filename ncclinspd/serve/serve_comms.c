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

static int order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_groups(const struct local_rank *a, const struct local_rank *b)
{
	int r = order(b->comm->has_id, a->comm->has_id);

	if (!r && !a->comm->has_id)
		r = order(a->process->id, b->process->id);
	if (!r && !a->comm->has_id)
		return order(a->index, b->index);
	if (!r)
		r = order(a->comm->id, b->comm->id);
	if (!r)
		r = order((uint64_t)a->comm->nranks, (uint64_t)b->comm->nranks);
	return r ? r : strcmp(a->comm->name, b->comm->name);
}

static int compare(const void *one, const void *two)
{
	const struct local_rank *a = one, *b = two;
	int r = compare_groups(a, b);

	if (!r && a->comm->rank != b->comm->rank)
		r = a->comm->rank < b->comm->rank ? -1 : 1;
	return r ? r : order(a->process->id, b->process->id);
}

static uint32_t count_comms(const struct request *r)
{
	struct process *p;
	uint32_t n = 0;

	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));)
		n += p->ncomms;
	return n;
}

static void collect(const struct request *r, struct local_ranks *ranks)
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

static void put_gpu_uuid(const struct serve *s, struct json *j, const void *row)
{
	const struct comm *c = ((const struct local_rank *)row)->comm;

	(void)s;
	serve_put_uuid(j, c->has_gpu ? c->gpu_uuid : NULL);
}

static void put_pci_bus_id(const struct serve *s, struct json *j, const void *row)
{
	const struct comm *c = ((const struct local_rank *)row)->comm;

	(void)s;
	json_put_string(j, c->has_gpu && *c->pci_bus_id ? c->pci_bus_id : NULL);
}

static void put_rank(const struct serve *s, struct json *j, const void *row)
{
	int32_t rank = ((const struct local_rank *)row)->comm->rank;

	(void)s;
	if (rank == UNKNOWN_I32)
		json_put_null(j);
	else
		json_put_i64(j, rank);
}

static void put_pid(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_i64(j, ((const struct local_rank *)row)->process->pid);
}

static void put_last_seq(const struct serve *s, struct json *j, const void *row)
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

static const struct field waiting_fields[] = {
#define F(name) { #name, FIELD_U64, offsetof(struct straggler_sums, name), NULL }
	F(ops),
	F(judged),
	F(last),
	F(wait_ns),
	F(remote_wait_ns),
	F(blame_ns),
#undef F
	{ NULL, 0, 0, NULL },
};

const struct field lately_fields[] = {
#define F(name, kind) { #name, kind, offsetof(struct straggler_lately, name), NULL }
	F(func, FIELD_NAME),
	F(window_ns, FIELD_U64),
	F(ops, FIELD_U64),
	F(judged, FIELD_U64),
	F(last, FIELD_U64),
	F(late_ns, FIELD_U64),
	F(blame_ns, FIELD_U64),
	F(late, FIELD_BOOL),
#undef F
	{ NULL, 0, 0, NULL },
};

static void put_lately(const struct serve *s, struct json *j, const struct local_rank *l)
{
	struct straggler_lately lately;

	json_key(j, "lately");
	if (!straggler_lately(s->source.straggler, l->process->id, l->index, &lately)) {
		json_put_null(j);
		return;
	}
	json_begin(j, '{');
	rows_put(s, j, lately_fields, &lately);
	json_end(j, '}');
}

static void put_waiting(const struct serve *s, struct json *j, const void *row)
{
	const struct local_rank *l = row;
	struct straggler_sums sums;

	if (!s->source.straggler ||
	    !straggler_of(s->source.straggler, l->process->id, l->index, &sums)) {
		json_put_null(j);
		return;
	}
	json_begin(j, '{');
	rows_put(s, j, waiting_fields, &sums);
	put_lately(s, j, l);
	json_end(j, '}');
}

const char *serve_member_state(const struct process *p, const struct comm *comm)
{
	bool finalized = p->state == PROCESS_LIVE && comm->finalize_ticks;

	return finalized ? "finalized" : process_state_text(p);
}

static void put_state(const struct serve *s, struct json *j, const void *row)
{
	const struct local_rank *l = row;

	(void)s;
	json_put_string(j, serve_member_state(l->process, l->comm));
}

static void put_phase(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_string(j, ((const struct local_rank *)row)->process->phase.name);
}

static void put_job(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_string(j, job_id(((const struct local_rank *)row)->process));
}

static void put_left(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_bool(j, ((const struct local_rank *)row)->comm->finalize_ticks);
}

static void put_counted(const struct serve *s, struct json *j, const void *row)
{
	const struct local_rank *l = row;

	(void)s;
	json_put_bool(j, stuck_counts(l->process, l->comm));
}

static void put_silenceable(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_bool(j, process_counts_less(((const struct local_rank *)row)->process));
}

static void put_calls(const struct serve *s, struct json *j, const void *row)
{
	const struct local_rank *l = row;

	(void)s;
	if (stuck_counts_calls(l->process, l->comm, &l->progress))
		json_put_u64(j, l->progress.calls);
	else
		json_put_null(j);
}

static const struct field call_fields[] = {
#define F(name, kind) { #name, kind, offsetof(struct called, name), NULL }
	F(func, FIELD_NAME),
	F(count, FIELD_U64),
	F(datatype, FIELD_NAME),
	F(root, FIELD_I32),
#undef F
	{ NULL, 0, 0, NULL },
};

/* An operation whose end is not watched hangs when the rank has posted nothing for so long. */
static void put_quiet_limit(const struct serve *s, struct json *j, const void *row)
{
	const struct local_rank *l = row;

	if (s->source.diagnose)
		json_put_u64(j, stall_unwatched_limit_ns(s->source.diagnose, l->process->id));
	else
		json_put_null(j);
}

/* They are compared where nothing is seen in flight. */
static void put_newest_calls(const struct serve *s, struct json *j, const void *row)
{
	const struct local_rank *l = row;
	const struct comm_progress *p = &l->progress;
	uint64_t n = p->calls < RECONSTRUCT_CALLS ? p->calls : RECONSTRUCT_CALLS;

	json_begin(j, '[');
	if (p->in_flight || !stuck_counts_calls(l->process, l->comm, p))
		n = 0;
	for (uint64_t i = RECONSTRUCT_CALLS - n; i < RECONSTRUCT_CALLS; i++) {
		json_begin(j, '{');
		rows_put(s, j, call_fields, &p->call[i]);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_uid(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_u64(j, ((const struct local_rank *)row)->process->uid);
}

static const struct field local_rank_fields[] = {
	{ "rank", FIELD_PUT, 0, put_rank },
	{ "pid", FIELD_PUT, 0, put_pid },
	{ "gpu_uuid", FIELD_PUT, 0, put_gpu_uuid },
	{ "pci_bus_id", FIELD_PUT, 0, put_pci_bus_id },
	{ "last_seq", FIELD_PUT, 0, put_last_seq },
	{ "in_flight", FIELD_U32, offsetof(struct local_rank, progress.in_flight), NULL },
	{ "last_op", FIELD_TIME, offsetof(struct local_rank, progress.last_op_ns), NULL },
	{ "state", FIELD_PUT, 0, put_state },
	{ "phase", FIELD_PUT, 0, put_phase },
	{ "tag", FIELD_HEX_0, offsetof(struct local_rank, progress.tag), NULL },
	{ "job", FIELD_PUT, 0, put_job },
	{ "left", FIELD_PUT, 0, put_left },
	{ "counted", FIELD_PUT, 0, put_counted },
	{ "silenceable", FIELD_PUT, 0, put_silenceable },
	{ "calls", FIELD_PUT, 0, put_calls },
	{ "quiet_limit_ns", FIELD_PUT, 0, put_quiet_limit },
	{ "newest_calls", FIELD_PUT, 0, put_newest_calls },
	{ "uid", FIELD_PUT, 0, put_uid },
	{ "waiting", FIELD_PUT, 0, put_waiting },
	{ NULL, 0, 0, NULL },
};

static void put_comm_id(const struct serve *s, struct json *j, const void *row)
{
	const struct comm *c = row;

	(void)s;
	if (c->has_id)
		json_put_hex64(j, c->id);
	else
		json_put_null(j);
}

static void put_nranks(const struct serve *s, struct json *j, const void *row)
{
	const struct comm *c = row;

	(void)s;
	if (c->has_id)
		json_put_i64(j, c->nranks);
	else
		json_put_null(j);
}

static void put_nnodes(const struct serve *s, struct json *j, const void *row)
{
	const struct comm *c = row;

	(void)s;
	if (c->has_id)
		json_put_i64(j, c->nnodes);
	else
		json_put_null(j);
}

static const struct field comm_fields[] = {
	{ "comm_id", FIELD_PUT, 0, put_comm_id },
	{ "name", FIELD_TEXT, offsetof(struct comm, name), NULL },
	{ "nranks", FIELD_PUT, 0, put_nranks },
	{ "nnodes", FIELD_PUT, 0, put_nnodes },
	{ NULL, 0, 0, NULL },
};

const struct field_table comm_tables[] = {
	{ NULL, comm_fields },
	{ "local_ranks", local_rank_fields },
	{ NULL, NULL },
};

static void put_local_ranks(const struct request *r, struct json *j, struct local_rank *at,
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

static size_t put_group(const struct request *r, struct json *j, struct local_rank *at, size_t n)
{
	unsigned first, end;
	size_t members = 1;

	while (members < n && !compare_groups(at, &at[members]))
		members++;
	json_begin(j, '{');
	first = rows_put_chosen(r->serve, j, comm_fields, at->comm, &r->chosen, 0);
	end = first + rows_count(local_rank_fields);
	if (chosen_wants_any(&r->chosen, first, end))
		put_local_ranks(r, j, at, members, first);
	json_end(j, '}');
	return members;
}

void serve_comms(struct request *r, struct json *j)
{
	struct local_ranks ranks;

	if (list_init(&ranks, count_comms(r)) < 0) {
		json_fail(j, -ENOMEM);
		return;
	}
	collect(r, &ranks);
	qsort(ranks.at, ranks.n, sizeof(*ranks.at), compare);
	json_key(j, "comms");
	json_begin(j, '[');
	for (uint32_t i = 0; i < ranks.n;)
		i += (uint32_t)put_group(r, j, &ranks.at[i], ranks.n - i);
	json_end(j, ']');
	list_deinit(&ranks);
}
