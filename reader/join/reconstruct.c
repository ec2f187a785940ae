/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The half of reconstruct that is driven by time (join.c is the half that is
 * driven by records).
 *
 * Some operations never see a last record.  With KernelCh, a send or receive may
 * use fewer channels than planned, and older APIs give only an upper bound; with
 * ProxyOp alone nobody says how many there will be.  Those are settled: complete
 * when they have been quiet for a while and, after that, a look at the live slots
 * of their process (and of processes that do network work for others) shows no
 * child of theirs in flight.
 *
 * A communicator runs its operations in order.  So one that makes no progress
 * while a later one has completed, or although its communicator is finalized, has
 * lost records, and is given up; one that makes no progress while nothing later
 * completes hangs, and stays open.
 */
#include "reader/join/reconstruct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reader/base/memory.h"
#include "reader/join/join.h"
#include "reader/time/timeline.h"

#define MS UINT64_C(1000000)

/*
 * Compared by adding to the older time, never by subtracting: a record may have
 * been drained a moment after the poll's own time was taken.
 */
#define CHECK_NS	(50 * MS)	/* between two looks at what waits */
#define API_WAIT_NS	(50 * MS)	/* an API call on another lane comes within a poll */
#define QUIET_NS	(200 * MS)
#define GIVE_UP_NS	(1000 * MS)	/* superseded for so long */
#define ORPHAN_NS	(30000 * MS)	/* children whose head never came */

#define FIRST_API_WITH_CHANNELS	4	/* before, their number is an upper bound */

static const struct reconstruct_limits defaults = {
	.ops = 16384,
	.apis = 2048,
	.proxies = 1024,
	.plans = 1024,
	.spans = 65536,
	.groups = 512,
	.parts = 16384,
	.ended = 4096,
	.processes = 1536,
	.comms = 8192,
};

#define FULL_OF_USER	32	/* processes of one user that have all the room there is ... */
#define FULL		64	/* the same of all users; docs/SECURITY.md has what that comes to */
#define LESS		8	/* the other processes have one part in so many of it */

static void apply_limits(struct reconstruct_limits *to, const struct reconstruct_limits *from)
{
	*to = defaults;
	if (!from)
		return;
	to->ops = from->ops ? from->ops : to->ops;
	to->apis = from->apis ? from->apis : to->apis;
	to->proxies = from->proxies ? from->proxies : to->proxies;
	to->plans = from->plans ? from->plans : to->plans;
	to->spans = from->spans ? from->spans : to->spans;
	to->groups = from->groups ? from->groups : to->groups;
	to->parts = from->parts ? from->parts : to->parts;
	to->ended = from->ended ? from->ended : to->ended;
	to->processes = from->processes ? from->processes : to->processes;
	to->comms = from->comms ? from->comms : to->comms;
	to->seed = from->seed;
	to->memory = from->memory;
}

int reconstruct_new(struct reconstruct **rcp, const struct reconstruct_limits *limits,
		    struct names *names, reconstruct_done_fn *done, void *arg)
{
	struct reconstruct *rc = calloc(1, sizeof(*rc));

	if (!rc)
		return -ENOMEM;
	apply_limits(&rc->limits, limits);
	rc->room = (struct recon_room){ .most = rc->limits.comms,
					.refused = &rc->stats.comms_refused,
					.memory = rc->limits.memory, .gpus = &rc->gpus };
	rc->stats.comms_most = rc->limits.comms;
	rc->names = names;
	rc->done = done;
	rc->arg = arg;
	rc->recons = calloc(rc->limits.processes, sizeof(*rc->recons));
	rc->scratch = malloc(sizeof(*rc->scratch));
	if (!rc->recons || !rc->scratch ||
	    index_init(&rc->nonces, rc->limits.processes, rc->limits.seed)) {
		reconstruct_free(rc);
		return -ENOMEM;
	}
	*rcp = rc;
	return 0;
}

void reconstruct_free(struct reconstruct *rc)
{
	if (!rc)
		return;
	for (uint32_t i = 0; i < rc->nrecons; i++)
		if (rc->recons[i])
			reconstruct_detach(rc, rc->recons[i]->process);
	gpus_deinit(&rc->gpus);
	index_deinit(&rc->nonces);
	free(rc->recons);
	free(rc->scratch);
	free(rc);
}

void reconstruct_tell_moved(struct reconstruct *rc, reconstruct_moved_fn *moved)
{
	rc->moved = moved;
}

void reconstruct_tell_requests(struct reconstruct *rc, reconstruct_requested_fn *requested)
{
	rc->requested = requested;
}

static uint32_t places_free(const struct reconstruct *rc)
{
	uint32_t i = 0;

	while (i < rc->nrecons && rc->recons[i])
		i++;
	return i;
}

static uint32_t limit_less(uint32_t n)
{
	return n > LESS ? n / LESS : n;
}

/* Sixteen MiB for each of hundreds of processes would be too much. */
static struct reconstruct_limits memory_limits(const struct reconstruct *rc, uid_t account)
{
	struct reconstruct_limits limits = rc->limits;
	uint32_t same = 0, full = 0;

	for (uint32_t i = 0; i < rc->nrecons; i++) {
		const struct recon *r = rc->recons[i];

		same += r && r->process->account == account;
		full += r && r->ops.capacity == limits.ops;
	}
	if (same < FULL_OF_USER && full < FULL)
		return limits;
	limits.ops = limit_less(limits.ops);
	limits.apis = limit_less(limits.apis);
	limits.proxies = limit_less(limits.proxies);
	limits.plans = limit_less(limits.plans);
	limits.spans = limit_less(limits.spans);
	limits.groups = limit_less(limits.groups);
	limits.parts = limit_less(limits.parts);
	limits.ended = limit_less(limits.ended);
	return limits;
}

int reconstruct_attach(struct reconstruct *rc, struct process *process)
{
	const struct reconstruct_limits limits = memory_limits(rc, process->account);
	uint64_t key = join_nonce_key(process->uid, process->nonce);
	uint32_t place = places_free(rc);
	int err;

	if (place == rc->limits.processes)
		return -ENOSPC;
	err = recon_new(&process->recon, process, &limits, &rc->room);
	if (err)
		return err;
	rc->recons[place] = process->recon;
	if (place == rc->nrecons)
		rc->nrecons++;
	/* A second process with a nonce cannot take over the first one's. */
	if (index_find(&rc->nonces, key) == POOL_NONE)
		index_set(&rc->nonces, key, place);
	return 0;
}

void reconstruct_detach(struct reconstruct *rc, struct process *process)
{
	uint64_t key = join_nonce_key(process->uid, process->nonce);
	uint32_t place = 0;

	if (!process->recon)
		return;
	while (rc->recons[place] != process->recon)
		place++;
	if (index_find(&rc->nonces, key) == place)
		index_remove(&rc->nonces, key);
	rc->recons[place] = NULL;
	recon_free(process->recon);
	process->recon = NULL;
}

/* ---- what is in flight --------------------------------------------------- */

bool reconstruct_wants_slots(const struct reconstruct *rc, const struct process *process,
			     uint64_t now_ns)
{
	const struct recon *r = process->recon;

	return rc->wanted && r && !r->ended && now_ns >= r->slots_ns + CHECK_NS &&
	       (r->wants || r->serves);
}

static void see_alive(struct open_op *o, bool kernel, uint64_t now_ns)
{
	if (o->alive_ns != now_ns) {
		o->alive_ns = now_ns;
		o->live_kernels = 0;
	}
	o->live_kernels += kernel;
	o->op.kernel_started = o->op.kernel_stopped + o->live_kernels;
}

void reconstruct_settle(struct reconstruct *rc, struct process *process,
			const struct live_slot *slots, size_t n, uint64_t now_ns)
{
	struct recon *r = process->recon;

	if (!r || r->ended)
		return;
	r->slots_ns = now_ns;
	for (size_t i = 0; i < n; i++) {
		const struct nci_record *rec = (const void *)&slots[i].slot;
		struct open_op *o = join_live_parent(rc, r, rec);

		if (o)
			see_alive(o, rec->type == NCI_EV_KERNEL_CH, now_ns);
	}
}

/* ---- what has waited long enough ----------------------------------------- */

static void flush_waiting(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	for (struct open_op *next, *o = r->waiting.first; o; o = next) {
		next = pool_list_next(&r->waiting, o);
		if (join_api(r, o) || now_ns >= o->head_ns + API_WAIT_NS)
			join_stop_waiting(rc, r, o, now_ns);
	}
}

static bool op_may_settle(const struct recon *r, const struct op *op)
{
	if (!op->expects_kernel)
		return true;
	return op->kernel_stopped && (op->is_p2p || !op->channels ||
				      r->process->api_version < FIRST_API_WITH_CHANNELS);
}

static bool op_is_finalized(const struct recon *r, const struct op *op)
{
	const struct comm *comm = process_comm(r->process, (uint16_t)op->comm_index);

	return comm && comm->finalize_ticks;
}

/* Nothing more will come of it: a later one has completed, or the communicator is gone. */
static bool op_is_superseded(struct recon *r, const struct op *op)
{
	const struct recon_comm *rcomm = recon_comm(r, (uint16_t)op->comm_index);

	return op_is_finalized(r, op) || (rcomm && rcomm->newest_done > op->start_ticks);
}

/*
 * Decide about one quiet operation by a look at live slots taken at evidence_ns.
 * True: it still needs a (newer) look.
 */
static bool op_settle(struct reconstruct *rc, struct recon *r, struct open_op *o,
		      uint64_t evidence_ns, uint64_t now_ns)
{
	bool complete = op_may_settle(r, &o->op);
	uint64_t due_ns = o->touched_ns + (complete ? QUIET_NS : GIVE_UP_NS);

	if (!complete && !op_is_superseded(r, &o->op))
		return false;
	if (evidence_ns < due_ns || evidence_ns <= o->alive_ns)
		return true;
	join_finish(rc, r, o, complete, now_ns);
	return false;
}

static void settle_quiet(struct reconstruct *rc, struct recon *r, uint64_t evidence_ns,
			 uint64_t now_ns)
{
	if (r->slots_ns < evidence_ns)
		evidence_ns = r->slots_ns;
	r->wants = false;
	for (struct open_op *next, *o = r->open.first; o; o = next) {
		next = pool_list_next(&r->open, o);
		if (now_ns < o->touched_ns + QUIET_NS)
			break;
		if (!o->waits && op_settle(rc, r, o, evidence_ns, now_ns))
			r->wants = true;
	}
}

static void drop_orphans(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	struct step_sums *steps;
	struct open_op *o;

	while ((o = r->headless.first) && now_ns >= o->touched_ns + ORPHAN_NS) {
		rc->stats.orphans++;
		recon_drop_op(r, o);
	}
	while ((steps = r->step_list.first) && now_ns >= steps->seen_ns + ORPHAN_NS)
		recon_drop_steps(r, steps);
}

/* The time when all processes that do network work for others were last looked at. */
static uint64_t servers_seen_ns(const struct reconstruct *rc)
{
	uint64_t oldest = UINT64_MAX;

	for (uint32_t i = 0; i < rc->nrecons; i++) {
		const struct recon *r = rc->recons[i];

		if (r && r->serves && !r->ended && r->slots_ns < oldest)
			oldest = r->slots_ns;
	}
	return oldest;
}

/* Nothing is lost with what is empty. */
static void trim_where_tight(struct reconstruct *rc)
{
	const struct memory *memory = rc->limits.memory;

	for (uint32_t i = 0; memory && memory->tight && i < rc->nrecons; i++)
		if (rc->recons[i] && memory_is_tight_for(memory, rc->recons[i]->process->account))
			recon_trim(rc->recons[i]);
}

void reconstruct_flush(struct reconstruct *rc, uint64_t now_ns)
{
	bool check = now_ns >= rc->checked_ns + CHECK_NS;
	uint64_t evidence_ns = check ? servers_seen_ns(rc) : 0;

	if (check) {
		rc->checked_ns = now_ns;
		rc->wanted = false;
	}
	for (uint32_t i = 0; i < rc->nrecons; i++) {
		struct recon *r = rc->recons[i];

		if (!r || r->ended)
			continue;
		join_put_call_away(rc, r, now_ns);
		flush_waiting(rc, r, now_ns);
		join_settle_plans(rc, r, now_ns);
		if (!check)
			continue;
		settle_quiet(rc, r, evidence_ns, now_ns);
		join_finish_calls(rc, r, now_ns);
		join_finish_plans(rc, r, now_ns);
		join_finish_groups(rc, r, now_ns);
		drop_orphans(rc, r, now_ns);
		rc->wanted |= r->wants;
	}
	trim_where_tight(rc);
}

/* ---- the end, and questions ---------------------------------------------- */

static void end_waiting(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	for (struct open_op *o; (o = r->waiting.first);) {
		join_api(r, o);
		join_stop_waiting(rc, r, o, now_ns);
	}
}

/* Does anything tell its end?  On one node and with no kernel that is watched, nothing does. */
static bool op_end_is_seen(const struct recon *r, const struct op *op)
{
	const struct recon_comm *rcomm = recon_seen_comm(r, op->comm_index);

	return op->expects_kernel || (rcomm && rcomm->proxy_seen);
}

/*
 * All children of an operation are in flight together: one gone and none left
 * means done.  So does a communicator that was finalized: that waits for its
 * operations, and what it aborts stays in flight for ever.
 */
static bool op_has_ended(const struct recon *r, const struct open_op *o, uint64_t now_ns)
{
	if (o->alive_ns == now_ns || !op_may_settle(r, &o->op))
		return false;
	return o->op.kernel_stopped || o->op.proxy_ops || op_is_finalized(r, &o->op);
}

static void end_open(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	for (struct open_op *next, *o = r->open.first; o; o = next) {
		next = pool_list_next(&r->open, o);
		if (op_has_ended(r, o, now_ns))
			join_finish(rc, r, o, true, now_ns);
		else
			join_deliver(rc, r, &o->op, o->facts, false, now_ns);
	}
}

void reconstruct_end(struct reconstruct *rc, struct process *process, uint64_t now_ns)
{
	struct recon *r = process->recon;

	if (!r || r->ended)
		return;
	reconstruct_settle(rc, process, process->last_slots, process->nlast_slots, now_ns);
	join_put_call_away(rc, r, now_ns);
	end_waiting(rc, r, now_ns);
	end_open(rc, r, now_ns);
	join_end_plans(rc, r, now_ns);
	join_end_groups(rc, r, now_ns);
	join_end_calls(rc, r, now_ns);
	rc->stats.orphans += r->headless.count;
	r->ended = true;
}

/*
 * All children of an operation are in flight together: it is over if none is now, and only
 * settles.  A second after its last record that is no more to be expected.
 */
static bool op_may_be_over(const struct reconstruct *rc, const struct recon *r,
			   const struct open_op *o)
{
	return !r->ended &&
	       (o->op.kernel_stopped || o->op.proxy_ops || !op_end_is_seen(r, &o->op)) &&
	       op_may_settle(r, &o->op) &&
	       rc->checked_ns < o->touched_ns + GIVE_UP_NS;
}

static bool visit_op(const struct recon *r, struct op op, bool over, reconstruct_open_fn *visit,
		     void *arg)
{
	op.complete = over;
	timeline_place(&r->process->clock, join_gpu(r, op.comm_index), &op);
	return visit(&op, arg);
}

void reconstruct_open(struct reconstruct *rc, const struct process *process,
		      reconstruct_open_fn *visit, void *arg)
{
	struct recon *r = process->recon;
	struct api_call *api;
	struct open_op *o;
	struct op op;

	if (!r)
		return;
	join_put_call_away(rc, r, r->newest_call.seen_ns);
	for (o = r->open.first; o; o = pool_list_next(&r->open, o))
		if (!visit_op(r, o->op, op_may_be_over(rc, r, o), visit, arg))
			return;
	for (api = r->calls.first; api; api = pool_list_next(&r->calls, api)) {
		if (join_has_returned(r, api))
			continue;
		join_op_from_api(rc, r, api, &op);
		if (!visit_op(r, op, false, visit, arg))
			return;
	}
}

/* All its calls are counted: it was seen from its begin, and nothing was lost since. */
static bool comm_has_calls(const struct process *p, uint32_t comm_index,
			   const struct recon_comm *rcomm)
{
	const struct comm *comm = process_comm(p, (uint16_t)comm_index);

	return comm && rcomm->progress.calls && process_lost(p) == rcomm->lost_at_first &&
	       (!p->loss.before ||
		timeline_mono(&p->clock, comm->init_ticks) > p->first_seen_ns);
}

bool reconstruct_progress(const struct process *process, uint32_t comm_index,
			  struct comm_progress *progress)
{
	const struct recon_comm *rcomm;

	memset(progress, 0, sizeof(*progress));
	rcomm = process->recon ? recon_seen_comm(process->recon, comm_index) : NULL;
	if (!rcomm)
		return false;
	*progress = rcomm->progress;
	progress->has_calls = comm_has_calls(process, comm_index, rcomm);
	for (uint32_t i = 0; i < RECONSTRUCT_CALLS; i++) {
		struct called *called = &progress->call[i];

		*called = rcomm->progress.call[(rcomm->next_call + i) % RECONSTRUCT_CALLS];
		called->root = ops_root(ops_facts(called->func), called->root);
	}
	return true;
}

const struct reconstruct_stats *reconstruct_stats(const struct reconstruct *rc)
{
	return &rc->stats;
}

const struct gpus *reconstruct_gpus(const struct reconstruct *rc)
{
	return &rc->gpus;
}

bool reconstruct_kernel(const struct process *p, const struct nci_ev_kernel_ch *c,
			struct reconstruct_kernel *out)
{
	const struct gpu *gpu = p->recon ? join_gpu(p->recon, c->comm) : NULL;
	uint64_t start_ns, stop_ns, error_ns;

	if (!gpu || !timeline_stamps_sane(c->gpu_start, c->gpu_stop) ||
	    !gpus_map(gpu, &p->clock, c->gpu_start, &start_ns, &error_ns) ||
	    !gpus_map(gpu, &p->clock, c->gpu_stop, &stop_ns, &error_ns))
		return false;
	*out = (struct reconstruct_kernel){ start_ns, stop_ns, error_ns };
	return true;
}
