/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations and live slots are known in two places: here they become rows of one table,
 * each slot under the operation that it works for.
 */
#include "reader/join/inflight.h"

#include <errno.h>
#include <stdlib.h>

#include "reader/join/reconstruct.h"
#include "util/nccl_names.h"

#define MAX_DEPTH	4	/* step, proxy operation, operation, API call */

static struct inflight *rows_add(struct inflights *rows)
{
	struct inflight *row = list_append(rows);

	if (!row) {
		rows->error = -ENOMEM;
		return NULL;
	}
	*row = (struct inflight){
		.process = rows->process, .comm_index = NCI_COMM_NONE,
		.count = UNKNOWN_U64, .root = UNKNOWN_I32,
		.tid = UNKNOWN_I32, .rank = UNKNOWN_I32, .channel = UNKNOWN_I32,
		.peer = UNKNOWN_I32, .step = UNKNOWN_I32, .steps = UNKNOWN_I32,
		.channels = UNKNOWN_I32, .kernel_started = UNKNOWN_I32,
		.kernel_stopped = UNKNOWN_I32, .proxy_ops = UNKNOWN_I32,
		.seq = UNKNOWN_U64, .bytes = UNKNOWN_U64, .age_ns = UNKNOWN_U64,
	};
	return row;
}

/* ---- operations -------------------------------------------------------- */

static name_t op_type(const struct op *op)
{
	if (op->is_ce)
		return nccl_event_name(NCI_EV_CE_COLL);
	if (op->api_only)
		return nccl_event_name(op->is_p2p ? NCI_EV_P2P_API : NCI_EV_COLL_API);
	return nccl_event_name(op->is_p2p ? NCI_EV_P2P : NCI_EV_COLL);
}

name_t inflight_op_state(enum op_state state)
{
	static const name_t names[] = {
#define X(NAME, text) [OP_STATE_##NAME] = text,
		OP_STATES(X)
#undef X
	};

	return names[state];
}

enum op_state inflight_state_of(const struct op *op)
{
	if (op->kernel_started > op->kernel_stopped)
		return OP_STATE_RUNNING;
	if (op->kernel_stopped)
		return op->kernel_stopped < op->channels ? OP_STATE_RUNNING : OP_STATE_FINISHING;
	if (op->proxy_ops)
		return OP_STATE_RUNNING;
	return op->expects_kernel || op->expects_proxy ? OP_STATE_NOT_STARTED : OP_STATE_POSTED;
}

static bool inflight_add_op(const struct op *op, void *arg)
{
	struct inflights *rows = arg;
	struct inflight *row = rows_add(rows);

	if (!row)
		return false;
	row->token = op->token;
	row->is_op = true;
	row->may_be_over = op->complete;
	row->is_p2p = op->is_p2p;
	row->comm_index = op->comm_index;
	row->has_comm_id = op->has_comm_id;
	row->comm_id = op->comm_id;
	row->comm_name = op->comm_name;
	row->rank = op->rank;
	row->event_type = op_type(op);
	row->func = op->func;
	row->seq = op->seq;
	row->bytes = op->bytes;
	row->count = op->count;
	row->datatype = op->datatype;
	row->algo = op->algo;
	row->proto = op->proto;
	row->root = op->root;
	row->proxy_steps = op->proxy_steps;
	row->peer = op->peer;
	row->tag = op->tag;
	row->state = inflight_op_state(inflight_state_of(op));
	if (op->enqueued_ns)
		row->age_ns = rows->now_ns > op->enqueued_ns ? rows->now_ns - op->enqueued_ns : 0;
	if (op->channels)
		row->channels = (int32_t)op->channels;
	if (op->expects_kernel) {
		row->kernel_started = (int32_t)op->kernel_started;
		row->kernel_stopped = (int32_t)op->kernel_stopped;
	}
	if (op->expects_proxy)
		row->proxy_ops = (int32_t)op->proxy_ops;
	return true;
}

/* ---- slots ------------------------------------------------------------- */

/* Peers are -1 in a record when NCCL did not say. */
static int32_t rank_or_unknown(int32_t rank)
{
	return rank < 0 ? UNKNOWN_I32 : rank;
}

static void from_coll(struct inflight *row, const struct event *ev)
{
	const struct nci_ev_coll *c = EVENT(ev, coll);

	row->func = process_name(row->process, c->func);
	row->seq = c->seq;
	row->tag = c->tag;
	if (c->channels)
		row->channels = c->channels;
}

static void from_p2p(struct inflight *row, const struct event *ev)
{
	const struct nci_ev_p2p *p = EVENT(ev, p2p);

	row->func = process_name(row->process, p->func);
	row->peer = rank_or_unknown(p->peer);
	row->tag = p->tag;
	if (p->channels)
		row->channels = p->channels;
}

static void from_coll_api(struct inflight *row, const struct event *ev)
{
	row->func = process_name(row->process, EVENT(ev, coll_api)->func);
}

static void from_p2p_api(struct inflight *row, const struct event *ev)
{
	row->func = process_name(row->process, EVENT(ev, p2p_api)->func);
}

static void from_ce_coll(struct inflight *row, const struct event *ev)
{
	row->func = process_name(row->process, EVENT(ev, ce_coll)->func);
}

static void from_kernel_ch(struct inflight *row, const struct event *ev)
{
	row->channel = EVENT(ev, kernel_ch)->channel;
}

static void from_proxy_op(struct inflight *row, const struct event *ev)
{
	const struct nci_ev_proxy_op *p = EVENT(ev, proxy_op);

	row->channel = p->channel;
	row->peer = rank_or_unknown(p->peer);
	row->step = (int32_t)p->steps_done;
	row->steps = p->steps;
	row->bytes = p->bytes;
}

static void from_proxy_step(struct inflight *row, const struct event *ev)
{
	row->step = EVENT(ev, proxy_step)->step;
}

static bool type_is_proxy(uint32_t type)
{
	return type == NCI_EV_PROXY_OP || type == NCI_EV_PROXY_STEP;
}

static void (*const readers[NCI_EV_END])(struct inflight *row, const struct event *ev) = {
	[NCI_EV_COLL] = from_coll,
	[NCI_EV_P2P] = from_p2p,
	[NCI_EV_PROXY_OP] = from_proxy_op,
	[NCI_EV_PROXY_STEP] = from_proxy_step,
	[NCI_EV_KERNEL_CH] = from_kernel_ch,
	[NCI_EV_COLL_API] = from_coll_api,
	[NCI_EV_P2P_API] = from_p2p_api,
	[NCI_EV_CE_COLL] = from_ce_coll,
};

/* The age of a slot; for an ended process, its age at the end. */
static uint64_t slot_age_ns(const struct inflights *rows, uint64_t start_ticks)
{
	const struct tick_clock *c = &rows->process->clock;
	uint64_t end_ns = rows->process->ended_ns ? rows->process->ended_ns : rows->now_ns;
	double age;

	if (c->ns_per_tick <= 0)
		return UNKNOWN_U64;
	age = (double)(int64_t)(end_ns - c->mono_ns) -
	      (double)(int64_t)(start_ticks - c->ticks) * c->ns_per_tick;
	return age > 0 ? (uint64_t)age : 0;
}

static void add_slot(struct inflights *rows, const struct live_slot *slot)
{
	const struct event ev = { .rec = (const struct nci_record *)&slot->slot };
	const struct comm *comm;
	struct inflight *row;

	if (!nccl_event_name(ev.rec->type))
		return;
	row = rows_add(rows);
	if (!row)
		return;
	row->token = ev.rec->token;
	row->parent = ev.rec->parent;
	row->tid = slot->tid;
	row->event_type = nccl_event_name(ev.rec->type);
	row->age_ns = slot_age_ns(rows, ev.rec->start);
	comm = process_comm(rows->process, ev.rec->comm);
	if (comm) {
		row->comm_index = ev.rec->comm;
		row->has_comm_id = comm->has_id;
		row->comm_id = comm->id;
		row->comm_name = *comm->name ? comm->name : NULL;
		row->rank = comm->rank;
	}
	if (ev.rec->serial)
		row->state = nccl_state_name(ev.rec->serial - 1u);
	if (type_is_proxy(ev.rec->type))
		row->direction = ev.rec->form & NCI_FORM_SEND ? "send" : "recv";
	if (readers[ev.rec->type])
		readers[ev.rec->type](row, &ev);
}

/* ---- whose slot is it -------------------------------------------------- */

static int compare_tokens(const void *one, const void *two)
{
	const struct inflight *a = one, *b = two;

	return a->token < b->token ? -1 : a->token > b->token;
}

static struct inflight *inflight_find(const struct inflights *rows, uint64_t token)
{
	struct inflight key = { .token = token };

	return bsearch(&key, rows->at + rows->mine, rows->n - rows->mine, sizeof(key),
		       compare_tokens);
}

/* A transfer has the channel and peer of its proxy operation, and so on upwards. */
static void inflight_inherit(struct inflight *row, const struct inflight *from)
{
	if (row->channel == UNKNOWN_I32)
		row->channel = from->channel;
	if (row->peer == UNKNOWN_I32)
		row->peer = from->peer;
	if (row->steps == UNKNOWN_I32)
		row->steps = from->steps;
	if (!row->func) {
		row->func = from->func;
		row->seq = from->seq;
		row->tag = from->tag;
	}
	if (row->comm_index == NCI_COMM_NONE)
		row->comm_index = from->comm_index;
	if (!row->has_comm_id && from->has_comm_id) {
		row->has_comm_id = true;
		row->comm_id = from->comm_id;
		row->comm_name = from->comm_name;
	}
	if (row->rank == UNKNOWN_I32)
		row->rank = from->rank;
}

/*
 * Work in flight on a channel is work begun, though its record comes at its end.
 * Proxies are there before the kernel is: where kernels are watched, they tell
 * nothing before the first transfer is done.
 */
static void count_live_child(struct inflight *op, const struct inflight *child)
{
	bool kernel = child->event_type == nccl_event_name(NCI_EV_KERNEL_CH);

	if (op->kernel_stopped == UNKNOWN_I32 && op->proxy_ops == UNKNOWN_I32)
		return;		/* no operation, or one whose children nobody asked for */
	if (kernel || op->kernel_stopped == UNKNOWN_I32 ||
	    (child->event_type == nccl_event_name(NCI_EV_PROXY_OP) && child->step > 0))
		op->state = inflight_op_state(OP_STATE_RUNNING);
	if (!kernel || op->kernel_stopped == UNKNOWN_I32)
		return;
	op->live_kernels++;
	if (op->kernel_started < op->kernel_stopped + op->live_kernels)
		op->kernel_started = op->kernel_stopped + op->live_kernels;
}

static void join_parents(struct inflights *rows)
{
	if (rows->n == rows->mine)
		return;
	qsort(rows->at + rows->mine, rows->n - rows->mine, sizeof(*rows->at), compare_tokens);
	for (size_t i = rows->mine; i < rows->n; i++) {
		struct inflight *row = &rows->at[i];
		const struct inflight *from = row;

		for (int depth = 0; depth < MAX_DEPTH && from->parent; depth++) {
			struct inflight *parent = inflight_find(rows, from->parent);

			if (!parent || parent == row)
				break;
			parent->may_be_over = false;
			if (!depth)
				count_live_child(parent, row);
			inflight_inherit(row, parent);
			from = parent;
		}
	}
}

/* Operations of which nothing is live any more only wait for what may still be told of them. */
static void drop_settling(struct inflights *rows)
{
	size_t kept = rows->mine;

	for (size_t i = rows->mine; i < rows->n; i++)
		if (!rows->at[i].may_be_over)
			rows->at[kept++] = rows->at[i];
	rows->n = (typeof(rows->n))kept;
}

void inflights_add(struct inflights *rows, struct reconstruct *rc, const struct process *p,
		   const struct live_slot *slots, size_t n, uint64_t now_ns)
{
	rows->process = p;
	rows->mine = rows->n;
	rows->now_ns = p->ended_ns ? p->ended_ns : now_ns;
	reconstruct_open(rc, p, inflight_add_op, rows);
	for (size_t i = 0; i < n; i++)
		add_slot(rows, &slots[i]);
	join_parents(rows);
	drop_settling(rows);
}

static int compare_ages(const void *one, const void *two)
{
	uint64_t a = inflight_age_ns(one), b = inflight_age_ns(two);

	if (a != b)
		return a > b ? -1 : 1;
	return compare_tokens(one, two);
}

void inflights_sort(struct inflights *rows)
{
	list_sort(rows, compare_ages);
}

void inflights_deinit(struct inflights *rows)
{
	list_deinit(rows);
	*rows = (struct inflights){ 0 };
}
