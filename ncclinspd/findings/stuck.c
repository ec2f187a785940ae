/* SPDX-License-Identifier: Apache-2.0 */
/* Makes rows for judge/ of what the processes of this node are in. */
#include "ncclinspd/findings/stuck.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ncclinspd/findings/diagnose.h"
#include "reader/base/accounts.h"
#include "reader/base/job.h"
#include "reader/base/pool.h"
#include "reader/join/inflight.h"
#include "reader/read/life.h"
#include "shmring/clock.h"
#include "util/cleanup.h"

_Static_assert(HANG_FUNCS == RECONSTRUCT_FUNCS, "what was posted last is copied whole");
_Static_assert(HANG_CALLS == RECONSTRUCT_CALLS, "calls are copied whole");

#define KEY_BITS	16	/* bits of a communicator's index */
#define SILENT_NS	UINT64_C(200000000)
#define LOOKING_NS	UINT64_C(20000000000)	/* evidence.sh gives a debugger 15 s */

/* Keys are in the order of a process's communicators. */
static uint64_t rank_key(const struct process *p, uint32_t comm_index)
{
	return p->id << KEY_BITS | comm_index;
}

/* ---- ranks ---------------------------------------------------------------------- */

/* NULL: not made yet, or not open any more. */
static const struct comm *process_open_comm(const struct process *p, uint32_t index)
{
	const struct comm *comm = process_comm(p, (uint16_t)index);

	return comm && !comm->finalize_ticks ? comm : NULL;
}

static uint64_t comm_gpu(const struct comm *comm)
{
	uint64_t words[2];

	memcpy(words, comm->gpu_uuid, sizeof(words));
	return comm->has_gpu ? index_mix(words[0], words[1]) | 1 : 0;
}

static void rank_take_progress(struct hang_rank *r, const struct process *p, uint32_t index)
{
	struct comm_progress progress;

	reconstruct_progress(p, index, &progress);
	r->last_op_ns = progress.last_op_ns;
	r->last_unwatched = progress.last_unwatched;
	r->nlast = progress.nfuncs;
	for (uint32_t i = 0; i < progress.nfuncs; i++) {
		r->last[i].func = progress.last_seq[i].func;
		r->last[i].seq = progress.last_seq[i].seq;
	}
	r->counts_calls = reconstruct_counts_calls(p, &p->comms[index], &progress);
	r->calls = progress.calls;
	for (uint32_t i = 0; i < HANG_CALLS; i++)
		r->call[i] = (struct hang_call){
			.func = progress.call[i].func, .datatype = progress.call[i].datatype,
			.count = progress.call[i].count, .root = progress.call[i].root,
			.at_ns = progress.call[i].start_ns,
		};
}

static const struct diagnose_source *stuck_source(const struct hang *h)
{
	return h->arg;
}

static void rank_add(struct hang *h, const struct process *p, const struct comm *comm,
		     uint32_t index, const struct hang_halt *halt)
{
	struct hang_rank *r = list_must_add(&h->ranks);

	*r = (struct hang_rank){
		.has_id = comm->has_id, .id = comm->id, .nranks = comm->nranks, .user = p->uid,
		.name = comm->name, .key = rank_key(p, index), .rank = comm->rank,
		.process = p->id, .pid = p->pid, .world_rank = job_world_rank(p, comm),
		.pci_bus_id = comm->has_gpu ? comm->pci_bus_id : NULL,
		.gpu_index = comm->gpu_index, .host = stuck_source(h)->host,
		.gpu = comm_gpu(comm), .owner = p,
		.seen_ns = UINT64_MAX, .ended = p->state != PROCESS_LIVE, .halt = *halt,
		.counts = reconstruct_counts(p, comm),
		.may_be_silenced = process_counts_less(p),
	};
	rank_take_progress(r, p, index);
}

/* One that began to look a moment ago stops it for that, and is no cause of anything. */
static bool debugger_only_looks(pid_t debugger)
{
	uint64_t began = life_start_time(LIFE_PROC, debugger);

	return began && clock_ns(CLOCK_BOOTTIME) < LOOKING_NS +
		began * (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
}

/*
 * The kernel's word on a process that has recorded nothing for a while, which one that is
 * stopped cannot.
 */
static struct hang_halt process_halt(const struct process *p, uint64_t now_ns)
{
	struct hang_halt halt = { 0 };

	if (p->state == PROCESS_LIVE && p->proven && now_ns > p->last_record_ns + SILENT_NS)
		halt.stopped = life_is_stopped(LIFE_PROC, p->pid, &halt.tracer, halt.tracer_name);
	if (halt.tracer > 0 && debugger_only_looks(halt.tracer))
		return (struct hang_halt){ 0 };
	return halt;
}

/* Add open communicators of `p`: at most `room`, the newest; returns how many are left out. */
static uint32_t process_add_ranks(struct hang *h, const struct process *p, uint32_t room)
{
	const struct hang_halt halt = process_halt(p, h->now_ns);
	uint32_t first = p->ncomms, left_out = 0;

	for (uint32_t n = 0; first && n < room; first--)
		n += process_open_comm(p, first - 1) != NULL;
	for (uint32_t i = 0; i < first; i++)
		left_out += process_open_comm(p, i) != NULL;
	for (uint32_t i = first; i < p->ncomms; i++)
		if (process_open_comm(p, i))
			rank_add(h, p, process_open_comm(p, i), i, &halt);
	return left_out;
}

/* ---- the oldest of each ------------------------------------------------------------ */

/* The ranks of one process, as they were added: by their keys. */
struct stuck_walk {
	const struct process *process;
	struct hang_rank *ranks;
	size_t n;
};

static int rank_by_key(const void *key, const void *rank)
{
	uint64_t a = *(const uint64_t *)key, b = ((const struct hang_rank *)rank)->key;

	return a < b ? -1 : a > b;
}

static struct hang_row row_of_op(const struct op *op)
{
	return (struct hang_row){
		.token = op->token, .is_op = true, .is_p2p = op->is_p2p, .func = op->func,
		.comm_name = op->comm_name, .seq = op->seq, .bytes = op->bytes,
		.count = op->count, .root = op->root, .peer = op->peer, .rank = op->rank,
		.enqueued_ns = op->enqueued_ns,
		.kernel_started = op->expects_kernel ? (int32_t)op->kernel_started : UNKNOWN_I32,
	};
}

static bool walk_take_op(const struct op *op, void *arg)
{
	const struct stuck_walk *w = arg;
	const uint64_t key = rank_key(w->process, op->comm_index);
	struct hang_rank *r = bsearch(&key, w->ranks, w->n, sizeof(*r), rank_by_key);
	struct hang_row row;

	if (!r)
		return true;
	row = row_of_op(op);
	row.key = key;
	hang_rank_see(r, &row);
	return true;
}

/* ---- an operation that a rank may have in flight ------------------------------------ */

struct pending {
	uint64_t key;
	const struct process *process;
	const struct hang_row *op;
	bool found;
};

static bool pending_take_op(const struct op *op, void *arg)
{
	struct pending *p = arg;

	p->found = !op->is_p2p && op->func == p->op->func && op->seq == p->op->seq &&
		   rank_key(p->process, op->comm_index) == p->key;
	return !p->found;
}

static bool stuck_rank_has_open(void *arg, const struct hang_rank *r, const struct hang_row *op)
{
	const struct diagnose_source *source = arg;
	struct pending p = { .key = r->key, .process = stuck_process(r), .op = op };

	reconstruct_open(source->reconstruct, p.process, pending_take_op, &p);
	return p.found;
}

/* The communicators of a process that are looked at: a share of its user's. */
static uint32_t stuck_room(struct accounts_tally *of, uint32_t users, const struct process *p)
{
	uint32_t room = STUCK_RANKS / users / *accounts_count(of, p->account);

	return room ? room : 1;
}

int stuck_init(struct hang *h, const struct diagnose_source *source, uint64_t now_ns,
	       uint32_t *left_out)
{
	struct process *const *list;
	size_t n = source->processes(source->arg, &list);
	struct accounts_tally of = { 0 };	/* processes */
	uint32_t comms = 0, users = 0;

	for (size_t i = 0; i < n; i++)
		users += !(*accounts_count(&of, list[i]->account))++;
	for (size_t i = 0; i < n; i++) {
		uint32_t room = stuck_room(&of, users, list[i]);

		comms += list[i]->ncomms < room ? list[i]->ncomms : room;
	}
	*h = (struct hang){ .now_ns = now_ns, .most = STUCK_LOCAL, .is_open = stuck_rank_has_open,
			    .arg = (void *)source };
	if (list_init(&h->ranks, comms) < 0)
		return -ENOMEM;
	*left_out = 0;
	for (size_t i = 0; i < n; i++) {
		struct stuck_walk w = { .process = list[i], .ranks = &h->ranks.at[h->ranks.n] };

		*left_out += process_add_ranks(h, list[i], stuck_room(&of, users, list[i]));
		w.n = (size_t)(&h->ranks.at[h->ranks.n] - w.ranks);
		reconstruct_open(source->reconstruct, list[i], walk_take_op, &w);
	}
	if (hang_ready(h) < 0) {
		hang_deinit(h);
		return -ENOMEM;
	}
	hang_find(h);
	return 0;
}

/* ---- all that is in flight ----------------------------------------------------------- */

/* The age of an ended process's is that at its end. */
static struct hang_row row_of_inflight(const struct inflight *row, uint64_t now_ns)
{
	uint64_t age_ns = row->age_ns;

	return (struct hang_row){
		.key = rank_key(row->process, row->comm_index), .rank = row->rank,
		.token = row->token, .type = row->event_type, .is_op = row->is_op,
		.is_p2p = row->is_p2p, .comm_name = row->comm_name, .func = row->func,
		.seq = row->seq, .bytes = row->bytes, .count = row->count,
		.datatype = row->datatype, .algo = row->algo, .proto = row->proto,
		.root = row->root, .peer = row->peer,
		.channels = row->channels > 0 ? (uint32_t)row->channels : 0,
		.enqueued_ns = age_ns == UNKNOWN_U64 || age_ns > now_ns ? 0 : now_ns - age_ns,
		.kernel_started = row->kernel_started, .kernel_stopped = row->kernel_stopped,
		.proxy_steps = row->proxy_steps, .state = row->state,
		.direction = row->direction, .channel = row->channel, .step = row->step,
		.steps = row->steps,
	};
}

int stuck_look_closer(struct hang *h, const struct diagnose_source *source)
{
	CLEANUP(inflights_deinit) struct inflights rows = { 0 };
	struct process *const *list;
	size_t n = source->processes(source->arg, &list);

	for (size_t i = 0; i < n; i++) {
		const struct live_slot *slots = list[i]->last_slots;
		int count = (int)list[i]->nlast_slots;

		if (list[i]->state == PROCESS_LIVE)
			count = source->slots(source->arg, list[i], &slots);
		inflights_add(&rows, source->reconstruct, list[i], slots,
			      count > 0 ? (size_t)count : 0, h->now_ns);
	}
	for (uint32_t i = 0; i < rows.n; i++) {
		const struct process *p = rows.at[i].process;
		struct hang_row *row = list_append(&h->rows);

		if (!row)
			return -ENOMEM;
		*row = row_of_inflight(&rows.at[i], p->ended_ns ? p->ended_ns : h->now_ns);
	}
	hang_take_rows(h);
	hang_place(h);
	return rows.error;
}

/* ---- back to what the daemon keeps --------------------------------------------------- */

static const struct hang_rank *group_find_key(const struct hang *h, const struct hang_group *g,
					      uint64_t key)
{
	uint32_t i = g->first;

	while (i < g->first + g->n - 1 && h->ranks.at[i].key != key)
		i++;
	return &h->ranks.at[i];
}

void stuck_op(const struct hang *h, const struct hang_group *g, struct op *op)
{
	const struct hang_rank *r = group_find_key(h, g, g->op.key);
	const struct process *p = stuck_process(r);

	*op = (struct op){
		.process_id = p->id, .uid = p->uid, .has_comm_id = r->has_id, .comm_id = r->id,
		.comm_name = g->op.comm_name, .nranks = r->nranks, .func = g->op.func,
		.seq = g->op.seq, .bytes = g->op.bytes,
		.comm_index = (uint32_t)(r->key - rank_key(p, 0)),
	};
}
