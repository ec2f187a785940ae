/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's public functions: one segment through all stages (follow.h), and each result
 * as a public struct, whose members never change place.
 */
#include "reader/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "reader/base/job.h"
#include "reader/base/process.h"
#include "reader/follow.h"
#include "reader/join/inflight.h"
#include "reader/read/decode.h"
#include "reader/read/life.h"
#include "reader/time/stamps.h"
#include "reader/time/ticks.h"
#include "reader/time/timeline.h"
#include "shmring/clock.h"
#include "util/cleanup.h"
#include "util/nccl_names.h"

_Static_assert(NCCLINSP_UNKNOWN == UNKNOWN_U64 && NCCLINSP_NONE == UNKNOWN_I32,
	       "what is not known is passed on as it is");
_Static_assert(NCCLINSP_LIVE == PROCESS_LIVE && NCCLINSP_EXITED == PROCESS_EXITED &&
	       NCCLINSP_DIED == PROCESS_DIED, "states are passed on as they are");

#define TICKS_NS	UINT64_C(1000000000)	/* between two pairs of tick and clock */

struct ncclinsp {
	struct ticks ticks;
	uint64_t ticks_ns;	/* when the next pair is due */
	struct names *names;
	struct segment *seg;
	struct drain *drain;
	struct reconstruct *rc;
	uint64_t opened_ns;
	uint64_t due_ns;	/* when the next poll is */
	uint64_t newest_ticks;	/* the newest moment in any record */
	bool was_live;
	int error;		/* poll has failed */
	struct inspect_hooks hooks;
	ncclinsp_operation_fn *on_operation;
	void *operation_arg;
	ncclinsp_record_fn *on_record;
	void *record_arg;
	/* the structs that were handed out last */
	struct ncclinsp_process process;
	struct ncclinsp_loss loss;
	struct ncclinsp_comm comm;
	struct ncclinsp_last last[RECONSTRUCT_FUNCS];
	char gpu_uuid[PROCESS_UUID_BYTES];
};

/* ---- operations ------------------------------------------------------------------ */

static struct ncclinsp_operation operation_of(const struct op *op)
{
	bool batch = op_ran_in_batch(op);

	return (struct ncclinsp_operation){
		.size = sizeof(struct ncclinsp_operation),
		.has_comm_id = op->has_comm_id,
		.comm_id = op->comm_id,
		.comm_name = op->comm_name,
		.rank = op->rank,
		.nranks = op->nranks,
		.pid = op->pid,
		.channels = op->channels,
		.token = op->token,
		.func = op->func,
		.seq = op->seq,
		.count = op->count,
		.datatype = op->datatype,
		.bytes = op->bytes,
		.root = op->root,
		.peer = op->peer,
		.algo = op->algo,
		.proto = op->proto,
		.graph = op->has_graph ? op->graph : NCCLINSP_NONE,
		.complete = op_end_is_known(op) ? op->complete : NCCLINSP_NONE,
		.enqueued_ns = op->enqueued_ns,
		.enqueue_ns = op->enqueue_ns,
		.queue_ns = op->queue_ns,
		.exec_ns = op->exec_ns,
		.exec_error_ns = op->exec_error_ns,
		.timing_source = timeline_source_text(op->source),
		.algbw_gbs = op->algbw_gbs,
		.busbw_gbs = op->busbw_gbs,
		.gpu_start_ns = op->gpu_start_mono_ns,
		.gpu_stop_ns = op->gpu_stop_mono_ns,
		.gpu_clock_error_ns = op->gpu_clock_error_ns,
		.fused = op_is_fused(op) ? op->fused : 0,
		.parts = op->parts,
		.batch = batch ? op->batch : 0,
		.batch_bytes = batch ? op->batch_bytes : UNKNOWN_U64,
		.batch_ns = batch ? op->batch_ns : UNKNOWN_U64,
		.batch_busbw_gbs = batch ? op->batch_busbw_gbs : -1,
		.skew = op->skew,
		.shift = op->shift,
		.sampled = op->sampled,
		.stamps_refused = op->stamps_refused,
		.stamps_why = stamps_fault_text(op->stamps_why),
		.tag = op->tag,
		.done_ns = op->done_ns,
		.tag_name = op->tag_name,
	};
}

static void inspect_op(const struct op *op, uint64_t now_ns, void *arg)
{
	struct ncclinsp *n = arg;
	struct ncclinsp_operation told;

	if (n->hooks.op)
		n->hooks.op(op, now_ns, n->hooks.arg);
	if (!n->on_operation)
		return;
	told = operation_of(op);
	n->on_operation(&told, n->operation_arg);
}

/* ---- communicators --------------------------------------------------------------- */

const struct ncclinsp_comm *ncclinsp_comm(struct ncclinsp *n, uint32_t index)
{
	const struct process *p = &n->seg->process;
	const struct comm *c = index <= UINT16_MAX ? process_comm(p, (uint16_t)index) : NULL;
	struct comm_progress progress;

	if (!c)
		return NULL;
	reconstruct_progress(p, index, &progress);
	for (uint32_t i = 0; i < progress.nfuncs; i++)
		n->last[i] = (struct ncclinsp_last){ progress.last_seq[i].func,
						     progress.last_seq[i].seq };
	if (c->has_gpu)
		process_uuid_text(c->gpu_uuid, n->gpu_uuid);
	n->comm = (struct ncclinsp_comm){
		.size = sizeof(n->comm),
		.index = index,
		.has_id = c->has_id,
		.in_flight = progress.in_flight,
		.id = c->id,
		.name = *c->name ? c->name : NULL,
		.rank = c->rank,
		.nranks = c->has_id ? c->nranks : NCCLINSP_NONE,
		.nnodes = c->has_id ? c->nnodes : NCCLINSP_NONE,
		.nlast = progress.nfuncs,
		.last = n->last,
		.gpu_uuid = c->has_gpu ? n->gpu_uuid : NULL,
		.pci_bus_id = c->has_gpu && *c->pci_bus_id ? c->pci_bus_id : NULL,
		.init_ns = timeline_mono(&p->clock, c->init_ticks),
		.finalize_ns = timeline_mono(&p->clock, c->finalize_ticks),
		.last_op_ns = progress.last_op_ns,
		.tag = progress.tag,
		.tag_name = process_tag_name(p, progress.tag),
	};
	return &n->comm;
}

/* ---- records --------------------------------------------------------------------- */

static void tell_record(struct ncclinsp *n, const struct process *p, const struct event *ev)
{
	const struct nci_record *rec = ev->rec;
	struct ncclinsp_record told = {
		.size = sizeof(told),
		.type = rec->type,
		.type_name = nccl_event_name(rec->type),
		.comm = ev->comm ? ncclinsp_comm(n, rec->comm) : NULL,
		.func = decode_func(p, rec),
		.token = rec->token,
		.parent = rec->parent,
		.start_ns = timeline_mono(&p->clock, rec->start),
		.stop_ns = timeline_mono(&p->clock, rec->stop),
		.record = rec,
		.record_bytes = NCI_FORM_LINES(rec->form) * NCI_LINE_BYTES,
	};

	n->on_record(&told, n->record_arg);
}

static void inspect_event(void *arg, struct process *p, const struct event *event,
			  uint64_t now_ns)
{
	struct ncclinsp *n = arg;

	if (event->rec->stop > n->newest_ticks)
		n->newest_ticks = event->rec->stop;
	reconstruct_event(n->rc, p, event, now_ns);
	if (n->hooks.event)
		n->hooks.event(p, event, n->hooks.arg);
	if (n->on_record)
		tell_record(n, p, event);
}

/* ---- open and close -------------------------------------------------------------- */

CLEANUP_DEFINE(ncclinsp_close, struct ncclinsp)

static int reader_new_stages(struct ncclinsp *n)
{
	struct reconstruct_limits limits = { .processes = 1 };
	int r;

	if (getrandom(&limits.seed, sizeof(limits.seed), GRND_NONBLOCK) < 0)
		limits.seed = n->opened_ns;
	r = reconstruct_new(&n->rc, &limits, n->names, inspect_op, n);
	if (r == 0)
		r = drain_new(&n->drain, &n->ticks.clock, inspect_event, n);
	if (r == 0)
		r = drain_add(n->drain, n->seg);
	if (r == 0)
		r = reconstruct_attach(n->rc, &n->seg->process);
	return r;
}

/* A positive outcome as the errno that the header promises. */
static int error_of(int outcome)
{
	if (outcome == SEGMENT_NOT_READY)
		return -EAGAIN;
	if (outcome == SEGMENT_FOREIGN)
		return -EPROTONOSUPPORT;
	return outcome == SEGMENT_STALE ? -ESTALE : outcome;
}

static int reader_open(struct ncclinsp **out, int fd, const char *name)
{
	CLEANUP(ncclinsp_closep) struct ncclinsp *n = calloc(1, sizeof(*n));
	int r;

	if (!n)
		return -ENOMEM;
	r = names_new(&n->names, NAMES_DEFAULT);
	if (r == 0)
		r = segment_open_chosen(&n->seg, fd, name, n->names);
	if (r == 0)
		r = error_of(segment_check(n->seg));
	if (r < 0)
		return r;
	n->opened_ns = n->seg->process.first_seen_ns = clock_ns(CLOCK_MONOTONIC);
	n->seg->process.id = 1;
	ticks_start(&n->ticks);
	r = reader_new_stages(n);
	if (r < 0)
		return r;
	*out = DISOWN(n);
	return 0;
}

static const char *name_in(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int ncclinsp_open(struct ncclinsp **out, const char *path)
{
	const char *file = name_in(path);
	struct segment_name name;
	/* a FIFO would wait for its writer */
	CLEANUP(cleanup_closep) int fd = -1;

	if (segment_parse_name(file, &name) && name.pid == getpid())
		return -EDEADLK;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : reader_open(out, fd, file);
}

/* The kernel knows under which name it was opened. */
int ncclinsp_open_fd(struct ncclinsp **out, int fd)
{
	char link[32], path[4096];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	return reader_open(out, fd, name_in(path));
}

void ncclinsp_close(struct ncclinsp *n)
{
	if (!n)
		return;
	reconstruct_free(n->rc);
	drain_free(n->drain);
	segment_free(n->seg);
	names_free(n->names);
	free(n);
}

void ncclinsp_on_operation(struct ncclinsp *n, ncclinsp_operation_fn *fn, void *arg)
{
	n->on_operation = fn;
	n->operation_arg = arg;
}

void ncclinsp_on_record(struct ncclinsp *n, ncclinsp_record_fn *fn, void *arg)
{
	n->on_record = fn;
	n->record_arg = arg;
}

void inspect_hook(struct ncclinsp *n, const struct inspect_hooks *hooks)
{
	n->hooks = *hooks;
}

const struct process *inspect_process(const struct ncclinsp *n)
{
	return &n->seg->process;
}

/* ---- poll ------------------------------------------------------------------------ */

static void look_at_ticks(struct ncclinsp *n, uint64_t now_ns)
{
	ticks_watch(&n->ticks);
	if (now_ns < n->ticks_ns)
		return;
	ticks_look(&n->ticks);
	n->ticks_ns = now_ns + TICKS_NS;
}

/* The newest moment that the process has told of. */
static uint64_t newest_ns(const struct ncclinsp *n)
{
	const struct process *p = &n->seg->process;
	uint64_t ticks = n->newest_ticks, ns;

	for (uint32_t i = 0; i < p->nlast_slots; i++) {
		const struct nci_record *rec = (const void *)&p->last_slots[i].slot;

		if (rec->start > ticks)
			ticks = rec->start;
	}
	ns = timeline_mono(&p->clock, ticks);
	return ns ? ns : p->first_mono_ns;
}

static int reader_finish(struct ncclinsp *n, enum life life, uint64_t now_ns)
{
	struct process *p = &n->seg->process;

	drain_finish(n->drain, n->seg);
	if (n->seg->lies)
		return n->error = -EPROTO;
	p->state = life == LIFE_DIED ? PROCESS_DIED : PROCESS_EXITED;
	p->ended_ns = n->was_live ? now_ns : newest_ns(n);
	reconstruct_end(n->rc, p, now_ns);
	return 0;
}

/* Asked first: what was written before its end is there to be read. */
int ncclinsp_poll(struct ncclinsp *n)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	struct process *p = &n->seg->process;
	enum life life;

	if (n->error || p->state != PROCESS_LIVE)
		return n->error;
	look_at_ticks(n, now_ns);
	life = life_of(n->seg);
	if (life != LIFE_ALIVE)
		return reader_finish(n, life, now_ns);
	n->was_live = true;
	n->due_ns = drain_poll(n->drain, now_ns);
	if (n->seg->lies)
		return n->error = -EPROTO;
	follow_settle(n->drain, n->rc, &p, 1, now_ns);
	return 1;
}

uint64_t ncclinsp_wait_ns(const struct ncclinsp *n)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	return n->due_ns > now_ns ? n->due_ns - now_ns : 0;
}

/* ---- what is in flight ----------------------------------------------------------- */

static struct ncclinsp_inflight inflight_of(const struct inflight *row)
{
	return (struct ncclinsp_inflight){
		.size = sizeof(struct ncclinsp_inflight),
		.has_comm_id = row->has_comm_id,
		.comm_id = row->comm_id,
		.comm_name = row->comm_name,
		.rank = row->rank,
		.tid = row->tid,
		.event_type = row->event_type,
		.func = row->func,
		.seq = row->seq,
		.bytes = row->bytes,
		.age_ns = row->age_ns,
		.state = row->state,
		.tag = row->tag,
		.tag_name = process_tag_name(row->process, row->tag),
		.direction = row->direction,
		.channel = row->channel,
		.peer = row->peer,
		.step = row->step,
		.steps = row->steps,
		.channels = row->channels,
		.kernel_started = row->kernel_started,
		.kernel_stopped = row->kernel_stopped,
		.proxy_ops = row->proxy_ops,
		.token = row->token,
		.parent = row->parent,
	};
}

int inspect_inflight(struct ncclinsp *n, struct inflights *rows)
{
	struct process *p = &n->seg->process;
	const struct live_slot *slots = p->last_slots;
	int count = (int)p->nlast_slots;

	if (n->error)
		return n->error;
	if (p->state == PROCESS_LIVE)
		count = drain_slots(n->drain, p, &slots);
	if (count < 0)
		return count;
	inflights_add(rows, n->rc, p, slots, (size_t)count, clock_ns(CLOCK_MONOTONIC));
	inflights_sort(rows);
	return rows->error;
}

int ncclinsp_inflight(struct ncclinsp *n, ncclinsp_inflight_fn *fn, void *arg)
{
	CLEANUP(inflights_deinit) struct inflights rows = { 0 };
	int r = inspect_inflight(n, &rows);

	if (r < 0)
		return r;
	for (size_t i = 0; i < rows.n; i++) {
		struct ncclinsp_inflight told = inflight_of(&rows.at[i]);

		fn(&told, arg);
	}
	return (int)rows.n;
}

/* ---- the process ----------------------------------------------------------------- */

const struct ncclinsp_process *ncclinsp_process(struct ncclinsp *n)
{
	const struct process *p = &n->seg->process;

	n->process = (struct ncclinsp_process){
		.size = sizeof(n->process),
		.state = p->state,
		.state_text = process_state_text(p),
		.pid = p->pid,
		.ns_pid = p->ns_pid,
		.uid = p->uid,
		.proven = p->proven,
		.command = p->command,
		.segment = p->file,
		.instance = p->instance,
		.plugin_version = p->plugin_version,
		.api_version = p->api_version,
		.nccl_version = p->steering.nccl_version,
		.level = process_level(p),
		.event_mask = p->mask,
		.lanes = p->lanes,
		.comms = p->ncomms,
		.comms_open = process_comms_open(p),
		.records = p->records,
		.bytes = p->bytes,
		.began_ns = p->first_mono_ns,
		.opened_ns = n->opened_ns,
		.last_record_ns = p->last_record_ns,
		.ended_ns = p->ended_ns,
		.job_scheduler = job_scheduler(p),
		.job_id = job_id(p),
		.job_rank = job_number(job_rank(p)),
		.job_local_rank = job_number(job_local_rank(p)),
		.job_world_size = job_number(job_world_size(p)),
		.environment_bytes = p->env_bytes,
		.environment = p->env,
	};
	return &n->process;
}

const struct ncclinsp_loss *ncclinsp_loss(struct ncclinsp *n)
{
	const struct loss *loss = &n->seg->process.loss;

	n->loss = (struct ncclinsp_loss){
		.size = sizeof(n->loss),
		.overrun = loss->overrun,
		.before = loss->before,
		.pool = loss->pool,
		.lane = loss->lane,
		.string = loss->string,
		.comm = loss->comm,
		.rejected = loss->rejected,
		.unknown = loss->unknown,
		.evicted = loss->evicted,
	};
	return &n->loss;
}

const char *ncclinsp_name(const struct ncclinsp *n, uint16_t id)
{
	return process_name(&n->seg->process, id);
}

const char *ncclinsp_version(void)
{
	return NCCLINSP_VERSION;
}

const char *ncclinsp_reason(int error)
{
	switch (error) {
	case -EAGAIN:
		return "the process is still at work on its segment, try again";
	case -EPROTO:
		return "not a segment of ncclinsp, or damaged";
	case -EPROTONOSUPPORT:
		return "of another version's format: read it with that version";
	case -ESTALE:
		return "made in another boot of this machine, or on another machine";
	case -EDEADLK:
		return "the calling process's own segment cannot be read by itself";
	case -EPERM:
		return "not a regular file, or not permitted";
	default:
		return error < 0 ? strerror(-error) : "no error";
	}
}
