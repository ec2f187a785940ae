/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/inflight: what has begun and not ended, oldest first.
 *
 * Two sources.  Operations that reconstruct holds open, and the handle slots
 * that are live in the segment right now: kernels on a channel, proxy operations,
 * network transfers.  A slot knows its parent's token only; which operation it
 * works for is found by following parents, through slots, up to an operation.
 */
#include "ncclinspd/serve_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "ncclinspd/reconstruct.h"
#include "util/cleanup.h"

#define MAX_DEPTH	4	/* step, proxy operation, operation, API call */

struct row {
	const struct process *process;
	uint64_t token;
	uint64_t parent;
	int32_t tid;
	bool has_comm_id;
	uint64_t comm_id;
	name_t comm_name;
	int32_t rank;
	name_t event_type;
	name_t func;
	uint64_t seq;
	uint64_t bytes;
	uint64_t age_ns;
	name_t state;
	name_t direction;
	int32_t channel;
	int32_t peer;
	int32_t step;
	int32_t steps;
	int32_t channels;
	int32_t kernel_started;
	int32_t kernel_stopped;
	int32_t proxy_ops;
	int32_t live_kernels;	/* its KernelCh slots that are live right now */
};

/* All rows; those of the process in hand begin at `mine`. */
struct rows {
	struct row *at;
	size_t n, room;
	size_t mine;
	const struct process *process;
	uint64_t now_ns;
	int error;
};

static struct row *rows_add(struct rows *rows)
{
	size_t room = rows->room ? rows->room * 2 : 256;
	struct row *at;

	if (rows->n == rows->room) {
		at = realloc(rows->at, room * sizeof(*at));
		if (!at) {
			rows->error = -ENOMEM;
			return NULL;
		}
		rows->at = at;
		rows->room = room;
	}
	rows->at[rows->n] = (struct row){
		.process = rows->process,
		.tid = UNKNOWN_I32, .rank = UNKNOWN_I32, .channel = UNKNOWN_I32,
		.peer = UNKNOWN_I32, .step = UNKNOWN_I32, .steps = UNKNOWN_I32,
		.channels = UNKNOWN_I32, .kernel_started = UNKNOWN_I32,
		.kernel_stopped = UNKNOWN_I32, .proxy_ops = UNKNOWN_I32,
		.seq = UNKNOWN_U64, .bytes = UNKNOWN_U64, .age_ns = UNKNOWN_U64,
	};
	return &rows->at[rows->n++];
}

/* ---- operations -------------------------------------------------------- */

static name_t op_type(const struct op *op)
{
	if (op->is_ce)
		return "CeColl";
	if (op->api_only)
		return op->is_p2p ? "P2pApi" : "CollApi";
	return op->is_p2p ? "P2p" : "Coll";
}

/* How far an operation got, as far as its children were asked for. */
static name_t op_state(const struct op *op)
{
	if (op->kernel_started > op->kernel_stopped)
		return "running";
	if (op->kernel_stopped)
		return op->kernel_stopped < op->channels ? "running" : "finishing";
	if (op->proxy_ops)
		return "running";
	return op->expects_kernel || op->expects_proxy ? "not_started" : "posted";
}

static bool add_op(const struct op *op, void *arg)
{
	struct rows *rows = arg;
	struct row *row = rows_add(rows);

	if (!row)
		return false;
	row->token = op->token;
	row->has_comm_id = op->has_comm_id;
	row->comm_id = op->comm_id;
	row->comm_name = op->comm_name;
	row->rank = op->rank;
	row->event_type = op_type(op);
	row->func = op->func;
	row->seq = op->seq;
	row->bytes = op->bytes;
	row->peer = op->peer;
	row->state = op_state(op);
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
static int32_t known(int32_t rank)
{
	return rank < 0 ? UNKNOWN_I32 : rank;
}

static void from_coll(struct row *row, const struct event *ev)
{
	const struct nci_ev_coll *c = EVENT(ev, coll);

	row->func = process_name(row->process, c->func);
	row->seq = c->seq;
	if (c->channels)
		row->channels = c->channels;
}

static void from_p2p(struct row *row, const struct event *ev)
{
	const struct nci_ev_p2p *p = EVENT(ev, p2p);

	row->func = process_name(row->process, p->func);
	row->peer = known(p->peer);
	if (p->channels)
		row->channels = p->channels;
}

static void from_coll_api(struct row *row, const struct event *ev)
{
	row->func = process_name(row->process, EVENT(ev, coll_api)->func);
}

static void from_p2p_api(struct row *row, const struct event *ev)
{
	row->func = process_name(row->process, EVENT(ev, p2p_api)->func);
}

static void from_ce_coll(struct row *row, const struct event *ev)
{
	row->func = process_name(row->process, EVENT(ev, ce_coll)->func);
}

static void from_kernel_ch(struct row *row, const struct event *ev)
{
	row->channel = EVENT(ev, kernel_ch)->channel;
}

static void from_proxy_op(struct row *row, const struct event *ev)
{
	const struct nci_ev_proxy_op *p = EVENT(ev, proxy_op);

	row->channel = p->channel;
	row->peer = known(p->peer);
	row->step = (int32_t)p->steps_done;
	row->steps = p->steps;
	row->bytes = p->bytes;
}

static void from_proxy_step(struct row *row, const struct event *ev)
{
	row->step = EVENT(ev, proxy_step)->step;
}

static const struct {
	name_t name;
	bool is_proxy;		/* NCI_FORM_SEND tells its direction */
	void (*read)(struct row *row, const struct event *ev);
} types[NCI_EV_END] = {
	[NCI_EV_GROUP] = { "Group", false, NULL },
	[NCI_EV_COLL] = { "Coll", false, from_coll },
	[NCI_EV_P2P] = { "P2p", false, from_p2p },
	[NCI_EV_PROXY_OP] = { "ProxyOp", true, from_proxy_op },
	[NCI_EV_PROXY_STEP] = { "ProxyStep", true, from_proxy_step },
	[NCI_EV_PROXY_CTRL] = { "ProxyCtrl", false, NULL },
	[NCI_EV_KERNEL_CH] = { "KernelCh", false, from_kernel_ch },
	[NCI_EV_NET_PLUGIN] = { "NetPlugin", false, NULL },
	[NCI_EV_GROUP_API] = { "GroupApi", false, NULL },
	[NCI_EV_COLL_API] = { "CollApi", false, from_coll_api },
	[NCI_EV_P2P_API] = { "P2pApi", false, from_p2p_api },
	[NCI_EV_KERNEL_LAUNCH] = { "KernelLaunch", false, NULL },
	[NCI_EV_CE_COLL] = { "CeColl", false, from_ce_coll },
	[NCI_EV_CE_SYNC] = { "CeSync", false, NULL },
	[NCI_EV_CE_BATCH] = { "CeBatch", false, NULL },
};

/* NCCL's state values, by their number. */
static const name_t states[] = {
	"SendPosted", "SendRemFifoWait", "SendTransmitted", "SendDone",
	"RecvPosted", "RecvReceived", "RecvTransmitted", "RecvDone",
	"SendGPUWait", "SendWait", "RecvWait", "RecvFlushWait", "RecvGPUWait",
	"Idle", "Active", "Sleep", "Wakeup", "Append", "AppendEnd",
	"InProgress", "SendPeerWait", "Update", "KernelChStop",
	"GroupStartApiStop", "GroupEndApiStart",
};

/* Of an ended process: as old as it was at the end. */
static uint64_t slot_age_ns(const struct rows *rows, uint64_t start_ticks)
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

static void add_slot(struct rows *rows, const struct live_slot *slot)
{
	const struct event ev = { .rec = (const struct nci_record *)&slot->slot };
	const struct comm *comm;
	struct row *row;

	if (ev.rec->type >= NCI_EV_END || !types[ev.rec->type].name)
		return;
	row = rows_add(rows);
	if (!row)
		return;
	row->token = ev.rec->token;
	row->parent = ev.rec->parent;
	row->tid = slot->tid;
	row->event_type = types[ev.rec->type].name;
	row->age_ns = slot_age_ns(rows, ev.rec->start);
	comm = process_comm(rows->process, ev.rec->comm);
	if (comm) {
		row->has_comm_id = comm->has_id;
		row->comm_id = comm->id;
		row->comm_name = *comm->name ? comm->name : NULL;
		row->rank = comm->rank;
	}
	if (ev.rec->serial && ev.rec->serial <= sizeof(states) / sizeof(states[0]))
		row->state = states[ev.rec->serial - 1];
	if (types[ev.rec->type].is_proxy)
		row->direction = ev.rec->form & NCI_FORM_SEND ? "send" : "recv";
	if (types[ev.rec->type].read)
		types[ev.rec->type].read(row, &ev);
}

/* ---- whose slot is it -------------------------------------------------- */

static int compare_tokens(const void *one, const void *two)
{
	const struct row *a = one, *b = two;

	return a->token < b->token ? -1 : a->token > b->token;
}

static struct row *find(const struct rows *rows, uint64_t token)
{
	struct row key = { .token = token };

	return bsearch(&key, rows->at + rows->mine, rows->n - rows->mine, sizeof(key),
		       compare_tokens);
}

/* A transfer has the channel and peer of its proxy operation, and so on upwards. */
static void inherit(struct row *row, const struct row *from)
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
	}
	if (!row->has_comm_id && from->has_comm_id) {
		row->has_comm_id = true;
		row->comm_id = from->comm_id;
		row->comm_name = from->comm_name;
	}
	if (row->rank == UNKNOWN_I32)
		row->rank = from->rank;
}

/* Work in flight on a channel is work begun, though its record comes at its end. */
static void count_live_child(struct row *op, const struct row *child)
{
	if (op->kernel_stopped == UNKNOWN_I32 && op->proxy_ops == UNKNOWN_I32)
		return;		/* no operation, or one whose children nobody asked for */
	op->state = "running";
	if (op->kernel_stopped == UNKNOWN_I32 || child->event_type != types[NCI_EV_KERNEL_CH].name)
		return;
	op->live_kernels++;
	if (op->kernel_started < op->kernel_stopped + op->live_kernels)
		op->kernel_started = op->kernel_stopped + op->live_kernels;
}

static void join_parents(struct rows *rows)
{
	if (rows->n == rows->mine)
		return;
	qsort(rows->at + rows->mine, rows->n - rows->mine, sizeof(*rows->at), compare_tokens);
	for (size_t i = rows->mine; i < rows->n; i++) {
		struct row *row = &rows->at[i];
		const struct row *from = row;

		for (int depth = 0; depth < MAX_DEPTH && from->parent; depth++) {
			struct row *parent = find(rows, from->parent);

			if (!parent || parent == row)
				break;
			if (!depth)
				count_live_child(parent, row);
			inherit(row, parent);
			from = parent;
		}
	}
}

/* ---- the answer -------------------------------------------------------- */

static void collect(const struct request *r, struct process *p, struct rows *rows)
{
	const struct serve *s = r->serve;
	const struct live_slot *slots = p->last_slots;
	int n = (int)p->nlast_slots;

	rows->process = p;
	rows->mine = rows->n;
	rows->now_ns = p->ended_ns ? p->ended_ns : s->now_ns;
	reconstruct_open(s->source.reconstruct, p, add_op, rows);
	if (p->state == PROCESS_LIVE)
		n = s->source.slots(s->source.arg, p, &slots);
	for (int i = 0; i < n; i++)
		add_slot(rows, &slots[i]);
	join_parents(rows);
}

/* An age that is not known sorts, and is filtered, as the youngest. */
static uint64_t age_at_least(const struct row *row)
{
	return row->age_ns == UNKNOWN_U64 ? 0 : row->age_ns;
}

static int compare_ages(const void *one, const void *two)
{
	uint64_t a = age_at_least(one), b = age_at_least(two);

	if (a != b)
		return a > b ? -1 : 1;
	return compare_tokens(one, two);
}

static void put_pid(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_i64(j, ((const struct row *)row)->process->pid);
}

static void put_comm_id(const struct serve *s, struct json *j, const void *row)
{
	const struct row *r = row;

	(void)s;
	if (r->has_comm_id)
		json_put_hex64(j, r->comm_id);
	else
		json_put_null(j);
}

static void put_state_of_process(const struct serve *s, struct json *j, const void *row)
{
	put_process_state(s, j, ((const struct row *)row)->process);
}

static const struct field fields[] = {
#define F(name, kind) { #name, kind, offsetof(struct row, name), NULL }
	{ "pid", FIELD_PUT, 0, put_pid },
	F(tid, FIELD_I32),
	{ "process_state", FIELD_PUT, 0, put_state_of_process },
	{ "comm_id", FIELD_PUT, 0, put_comm_id },
	F(comm_name, FIELD_NAME),
	F(rank, FIELD_I32),
	F(event_type, FIELD_NAME),
	F(func, FIELD_NAME),
	F(seq, FIELD_U64),
	F(bytes, FIELD_U64),
	F(age_ns, FIELD_U64),
	F(state, FIELD_NAME),
	F(direction, FIELD_NAME),
	F(channel, FIELD_I32),
	F(peer, FIELD_I32),
	F(step, FIELD_I32),
	F(steps, FIELD_I32),
	F(channels, FIELD_I32),
	F(kernel_started, FIELD_I32),
	F(kernel_stopped, FIELD_I32),
	F(proxy_ops, FIELD_I32),
	F(token, FIELD_HEX),
	F(parent, FIELD_HEX_0),
#undef F
	{ NULL, 0, 0, NULL },
};

static void put_rows(const struct request *r, struct json *j, const struct rows *rows)
{
	size_t n = 0;

	json_key(j, "inflight");
	json_begin(j, '[');
	for (size_t i = 0; i < rows->n && n < SERVE_ROWS_MAX; i++) {
		if (age_at_least(&rows->at[i]) < r->query.older_than_ns)
			break;
		json_begin(j, '{');
		rows_put(r->serve, j, fields, &rows->at[i]);
		json_end(j, '}');
		n++;
	}
	json_end(j, ']');
}

void serve_inflight(struct request *r, struct json *j)
{
	CLEANUP(cleanup_freep) struct row *at = NULL;
	const struct serve_source *source = &r->serve->source;
	struct rows rows = { 0 };
	struct process *p;

	if (source->catch_up)
		source->catch_up(source->arg);
	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));)
		collect(r, p, &rows);
	at = rows.at;
	if (rows.error) {
		json_fail(j, rows.error);
		return;
	}
	if (rows.n)
		qsort(rows.at, rows.n, sizeof(*rows.at), compare_ages);
	put_rows(r, j, &rows);
}
