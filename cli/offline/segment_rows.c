/* SPDX-License-Identifier: Apache-2.0 */
/* Each row is a table of members, so that what a segment gives can be held against the API. */
#include "cli/offline/segment_rows.h"

#include <stdio.h>

#include "reader/time/stamps.h"
#include "reader/time/timeline.h"

enum kind {
	MEMBER_U64,	/* NCCLINSP_UNKNOWN: null */
	MEMBER_U32,
	MEMBER_U32_0,	/* 0: null */
	MEMBER_I32,	/* NCCLINSP_NONE: null */
	MEMBER_I32_0,	/* 0: null */
	MEMBER_YES,	/* int32_t: 1, 0, or NCCLINSP_NONE: null */
	MEMBER_TRUE,	/* uint32_t: not 0 */
	MEMBER_TEXT,	/* char *, NULL: null */
	MEMBER_HEX,
	MEMBER_HEX_0,	/* 0: null */
	MEMBER_RATE,	/* below 0: null */
	MEMBER_RATE_0,	/* not above 0: null */
	MEMBER_TIME,	/* a moment, 0: null; gives <name>_at and <name>_mono_ns */
	MEMBER_NULL,	/* a segment does not tell */
};

struct segment_member {
	const char *name;
	enum kind kind;
	size_t offset;
};

static void put_time(struct json *j, const char *name, uint64_t mono_ns, uint64_t real_ns)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_at", name);
	json_key(j, key);
	if (mono_ns)
		json_put_time(j, mono_ns + real_ns);
	else
		json_put_null(j);
	snprintf(key, sizeof(key), "%s_mono_ns", name);
	json_key(j, key);
	if (mono_ns)
		json_put_u64(j, mono_ns);
	else
		json_put_null(j);
}

static void put_u64(struct json *j, uint64_t value, uint64_t none)
{
	if (value == none)
		json_put_null(j);
	else
		json_put_u64(j, value);
}

static void put_i64(struct json *j, int64_t value, int64_t none)
{
	if (value == none)
		json_put_null(j);
	else
		json_put_i64(j, value);
}

static void put_hex(struct json *j, uint64_t value, bool known)
{
	if (known)
		json_put_hex64(j, value);
	else
		json_put_null(j);
}

static void put_rate(struct json *j, double value, bool known)
{
	if (known)
		json_put_rounded(j, value);
	else
		json_put_null(j);
}

static void put_yes(struct json *j, int32_t value)
{
	if (value == NCCLINSP_NONE)
		json_put_null(j);
	else
		json_put_bool(j, value);
}

static void put_value(struct json *j, enum kind kind, const void *at)
{
	switch (kind) {
	case MEMBER_U64:
		put_u64(j, *(const uint64_t *)at, NCCLINSP_UNKNOWN);
		break;
	case MEMBER_U32:
		json_put_u64(j, *(const uint32_t *)at);
		break;
	case MEMBER_U32_0:
		put_u64(j, *(const uint32_t *)at, 0);
		break;
	case MEMBER_I32:
		put_i64(j, *(const int32_t *)at, NCCLINSP_NONE);
		break;
	case MEMBER_I32_0:
		put_i64(j, *(const int32_t *)at, 0);
		break;
	case MEMBER_YES:
		put_yes(j, *(const int32_t *)at);
		break;
	case MEMBER_TRUE:
		json_put_bool(j, *(const uint32_t *)at);
		break;
	case MEMBER_TEXT:
		json_put_string(j, *(const char *const *)at);
		break;
	case MEMBER_HEX:
		json_put_hex64(j, *(const uint64_t *)at);
		break;
	case MEMBER_HEX_0:
		put_hex(j, *(const uint64_t *)at, *(const uint64_t *)at);
		break;
	case MEMBER_RATE:
		put_rate(j, *(const double *)at, *(const double *)at >= 0);
		break;
	case MEMBER_RATE_0:
		put_rate(j, *(const double *)at, *(const double *)at > 0);
		break;
	default:
		json_put_null(j);
	}
}

static void put_members(struct json *j, const struct segment_member *members, const void *row,
			uint64_t real_ns)
{
	for (const struct segment_member *m = members; m->name; m++) {
		const void *at = (const char *)row + m->offset;

		if (m->kind == MEMBER_TIME) {
			put_time(j, m->name, *(const uint64_t *)at, real_ns);
			continue;
		}
		json_key(j, m->name);
		put_value(j, m->kind, at);
	}
}

static void put_object(struct json *j, const char *name, const struct segment_member *members,
		       const void *row)
{
	json_key(j, name);
	json_begin(j, '{');
	put_members(j, members, row, 0);
	json_end(j, '}');
}

static void put_id(struct json *j, const char *name, bool known, uint64_t id)
{
	json_key(j, name);
	put_hex(j, id, known);
}

#define END { NULL, MEMBER_NULL, 0 }
#define N(name) { name, MEMBER_NULL, 0 }

/* ---- operations ------------------------------------------------------------------ */

#define M(name, kind, member) { name, MEMBER_##kind, offsetof(struct ncclinsp_operation, member) }
#define O(name, kind) M(#name, kind, name)

static const struct segment_member operation_members[] = {
	O(comm_name, TEXT),
	O(rank, I32),
	O(nranks, I32),
	O(pid, I32),
	O(token, HEX),
	O(func, TEXT),
	O(seq, U64),
	O(count, U64),
	O(datatype, TEXT),
	O(bytes, U64),
	O(root, I32),
	O(peer, I32),
	O(algo, TEXT),
	O(proto, TEXT),
	O(channels, U32_0),
	O(graph, YES),
	M("enqueued", TIME, enqueued_ns),
	O(enqueue_ns, U64),
	O(queue_ns, U64),
	O(exec_ns, U64),
	O(timing_source, TEXT),
	O(exec_error_ns, U64),
	O(algbw_gbs, RATE),
	O(busbw_gbs, RATE),
	M("gpu_start", TIME, gpu_start_ns),
	M("gpu_stop", TIME, gpu_stop_ns),
	O(gpu_clock_error_ns, U64),
	N("arrival_rank_order"),
	N("arrival_source"),
	N("late_ns"),
	N("busbw_waitfree_gbs"),
	M("derived", TRUE, parts),
	O(parts, U32_0),
	O(shift, I32_0),
	O(skew, RATE_0),
	O(sampled, TRUE),
	O(complete, YES),
	O(stamps_refused, U32),
	O(stamps_why, TEXT),
	O(tag, HEX_0),
	N("phase"),
	M("done", TIME, done_ns),
	END,
};

static const struct segment_member batch_members[] = {
	M("token", HEX, batch),
	M("ops", U32, fused),
	M("bytes", U64, batch_bytes),
	M("exec_ns", U64, batch_ns),
	M("busbw_gbs", RATE, batch_busbw_gbs),
	END,
};
#undef O
#undef M

void segment_rows_operation(struct json *j, const struct ncclinsp_operation *op, uint64_t real_ns)
{
	bool batch = op->fused && op->fused != UINT32_MAX;

	put_id(j, "comm_id", op->has_comm_id, op->comm_id);
	put_members(j, operation_members, op, real_ns);
	json_key(j, "fused");
	put_u64(j, batch ? op->fused : 0, 0);
	if (batch) {
		put_object(j, "batch", batch_members, op);
	} else {
		json_key(j, "batch");
		json_put_null(j);
	}
}

/* ---- what is in flight ----------------------------------------------------------- */

#define I(name, kind) { #name, MEMBER_##kind, offsetof(struct ncclinsp_inflight, name) }

static const struct segment_member inflight_members[] = {
	I(tid, I32),
	I(comm_name, TEXT),
	I(rank, I32),
	I(event_type, TEXT),
	I(func, TEXT),
	I(seq, U64),
	I(bytes, U64),
	I(age_ns, U64),
	I(state, TEXT),
	N("phase"),
	I(tag, HEX_0),
	I(direction, TEXT),
	I(channel, I32),
	I(peer, I32),
	I(step, I32),
	I(steps, I32),
	I(channels, I32),
	I(kernel_started, I32),
	I(kernel_stopped, I32),
	I(proxy_ops, I32),
	I(token, HEX),
	I(parent, HEX_0),
	END,
};
#undef I

void segment_rows_inflight(struct json *j, const struct ncclinsp_inflight *row,
			   const struct ncclinsp_process *p)
{
	json_key(j, "pid");
	json_put_i64(j, p->pid);
	json_key(j, "process_state");
	json_put_string(j, p->state_text);
	put_id(j, "comm_id", row->has_comm_id, row->comm_id);
	put_members(j, inflight_members, row, 0);
}

/* ---- the process ----------------------------------------------------------------- */

#define M(name, kind, member) { name, MEMBER_##kind, offsetof(struct ncclinsp_process, member) }
#define P(name, kind) M(#name, kind, name)

static const struct segment_member process_members[] = {
	P(pid, I32),
	P(ns_pid, I32),
	N("container"),
	P(uid, U32),
	N("user"),
	P(command, TEXT),
	M("state", TEXT, state_text),
	P(segment, TEXT),
	P(instance, HEX),
	P(api_version, U32_0),
	P(plugin_version, TEXT),
	P(level, TEXT),
	N("level_reason"),
	N("sampling"),
	N("steering"),
	N("wanted"),
	P(event_mask, U32),
	N("phase"),
	N("phase_since_at"),
	N("phase_since_mono_ns"),
	P(lanes, U32),
	P(records, U64),
	P(bytes, U64),
	M("comms", U32, comms_open),
	M("first_seen", TIME, began_ns),
	M("last_record", TIME, last_record_ns),
	M("ended", TIME, ended_ns),
	END,
};

static const struct segment_member job_members[] = {
	M("scheduler", TEXT, job_scheduler),
	M("id", TEXT, job_id),
	M("rank", I32, job_rank),
	M("local_rank", I32, job_local_rank),
	M("world_size", I32, job_world_size),
	END,
};
#undef P
#undef M

#define L(name) { #name, MEMBER_U64, offsetof(struct ncclinsp_loss, name) }

static const struct segment_member loss_members[] = {
	L(overrun), L(before), L(pool), L(lane), L(string), L(comm), L(rejected), L(unknown),
	L(evicted), END,
};
#undef L

#define G(name) { #name, MEMBER_U64, offsetof(struct ignored, name) }

static const struct segment_member ignored_members[] = {
	G(event), G(state), G(finalized), G(context), G(handle), END,
};
#undef G

static void put_refused(struct json *j, const uint64_t refused[STAMP_FAULT_END])
{
	uint64_t sum = 0;

	json_key(j, "stamps_refused_by");
	json_begin(j, '{');
	for (int fault = 0; fault < STAMP_FAULT_END; fault++) {
		const char *text = stamps_fault_text((enum stamp_fault)fault);

		sum += refused[fault];
		if (!text)
			continue;
		json_key(j, text);
		json_put_u64(j, refused[fault]);
	}
	json_end(j, '}');
	json_key(j, "stamps_refused");
	json_put_u64(j, sum);
}

void segment_rows_process(struct json *j, const struct ncclinsp_process *p,
			  const struct ncclinsp_loss *loss, const struct process *inside,
			  uint64_t real_ns)
{
	put_members(j, process_members, p, real_ns);
	put_object(j, "job", job_members, p);
	put_object(j, "lost", loss_members, loss);
	put_object(j, "ignored", ignored_members, &inside->ignored);
	put_refused(j, inside->stamps_refused);
	json_key(j, "steerable");
	json_put_bool(j, true);
}

/* ---- communicators --------------------------------------------------------------- */

#define C(name, kind) { #name, MEMBER_##kind, offsetof(struct ncclinsp_comm, name) }

static const struct segment_member comm_members[] = {
	C(name, TEXT), C(nranks, I32), C(nnodes, I32), END,
};

static const struct segment_member rank_members[] = {
	C(rank, I32),
	C(gpu_uuid, TEXT),
	C(pci_bus_id, TEXT),
	C(in_flight, U32),
	{ "last_op", MEMBER_TIME, offsetof(struct ncclinsp_comm, last_op_ns) },
	C(tag, HEX_0),
	N("phase"),
	N("waiting"),
	END,
};
#undef C

void segment_rows_comm(struct json *j, const struct ncclinsp_comm *comm)
{
	put_id(j, "comm_id", comm->has_id, comm->id);
	put_members(j, comm_members, comm, 0);
}

void segment_rows_local_rank(struct json *j, const struct ncclinsp_comm *comm,
			     const struct ncclinsp_process *p, uint64_t real_ns)
{
	json_key(j, "pid");
	json_put_i64(j, p->pid);
	put_members(j, rank_members, comm, real_ns);
	json_key(j, "last_seq");
	json_begin(j, '{');
	for (uint32_t i = 0; i < comm->nlast; i++) {
		json_key(j, comm->last[i].func);
		json_put_u64(j, comm->last[i].seq);
	}
	json_end(j, '}');
	json_key(j, "state");
	json_put_string(j, p->state == NCCLINSP_LIVE && comm->finalize_ns ? "finalized"
									    : p->state_text);
	json_key(j, "job");
	json_put_string(j, p->job_id);
}

/* ---- sums ------------------------------------------------------------------------ */

#define S(name, kind) { #name, MEMBER_##kind, offsetof(struct aggregate_row, name) }
#define T(name) { #name, MEMBER_U64, offsetof(struct aggregate_times, name) }

static const struct segment_member key_members[] = {
	S(comm_name, TEXT), S(nranks, I32), S(func, TEXT), S(algo, TEXT), S(proto, TEXT),
	S(size_class, U64), S(tag, HEX_0), S(phase, TEXT), END,
};

static const struct segment_member rank_member[] = { S(rank, I32), END };

static const struct segment_member sum_members[] = {
	S(window_ns, U64),
	S(ops, U64),
	S(fused, U64),
	S(derived, U64),
	S(algbw_gbs, RATE),
	S(busbw_waitfree_gbs, RATE),
	S(wait_fraction, RATE),
	S(share, RATE),
	S(sampled_fraction, RATE),
	S(lost_fraction, RATE),
	END,
};

static const struct segment_member times_members[] = {
	T(n), T(mean_ns), T(p50_ns), T(p90_ns), T(p95_ns), T(p99_ns), T(max_ns), END,
};

static const struct segment_member busbw_members[] = {
	{ "mean", MEMBER_RATE, offsetof(struct aggregate_row, busbw_mean_gbs) },
	{ "p50", MEMBER_RATE, offsetof(struct aggregate_row, busbw_p50_gbs) },
	{ "min", MEMBER_RATE, offsetof(struct aggregate_row, busbw_min_gbs) },
	END,
};
#undef S
#undef T

void segment_rows_summary(struct json *j, const struct aggregate_row *row)
{
	json_key(j, "window");
	json_put_string(j, "all");
	put_id(j, "comm_id", row->has_comm_id, row->comm_id);
	put_members(j, key_members, row, 0);
	if (row->by & AGGREGATE_BY_RANK)
		put_members(j, rank_member, row, 0);
	put_members(j, sum_members, row, 0);
	json_key(j, "bytes");
	put_u64(j, row->sized_ops || !row->ops ? row->bytes : NCCLINSP_UNKNOWN, NCCLINSP_UNKNOWN);
	put_object(j, "exec", times_members, &row->exec);
	put_object(j, "batch", times_members, &row->batch);
	put_object(j, "queue", times_members, &row->queue);
	put_object(j, "busbw_gbs", busbw_members, row);
	json_key(j, "timing_source");
	json_put_string(j, timeline_source_text(row->source));
}
