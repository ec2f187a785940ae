/* SPDX-License-Identifier: Apache-2.0 */
/* The table of NCCL's events: for each, how it is drawn and which arguments it shows. */
#include "cli/trace/trace_look.h"

#include <string.h>

#include "util/nccl_names.h"

/* A record as its own type; who calls has checked its lines. */
#define AS(rec, name) ((const struct nci_ev_##name *)(const void *)(rec))

#define SEND_GPU_WAIT	8
#define SEND_WAIT	9
#define RECV_WAIT	10
#define RECV_FLUSH_WAIT	11
#define RECV_GPU_WAIT	12
#define SEND_PEER_WAIT	20

/* ---- arguments ------------------------------------------------------------------- */

static void look_put_name(struct json *j, const char *key, const struct process *p, uint16_t id)
{
	const char *name = process_name(p, id);

	if (!name)
		return;
	json_member_string(j, key, name);
}

static void look_put_state(struct json *j, const char *key, uint32_t state)
{
	json_member_string(j, key, nccl_state_name(state));
}

static void look_put_marks(struct json *j, const struct nci_marks *m)
{
	if (m->first_span)
		look_put_state(j, "first_state", m->first);
	if (m->last_span)
		look_put_state(j, "last_state", m->last);
	json_member_u64(j, "states", m->count);
}

typedef void put_fn(struct json *j, const struct process *p, const struct nci_record *rec);

static void look_put_coll(struct json *j, const struct process *p, const struct nci_record *rec)
{
	const struct nci_ev_coll *c = AS(rec, coll);

	json_member_u64(j, "seq", c->seq);
	json_member_u64(j, "count", c->count);
	look_put_name(j, "datatype", p, c->datatype);
	look_put_name(j, "algo", p, c->algo);
	look_put_name(j, "proto", p, c->proto);
	if (c->channels)
		json_member_u64(j, "nchannels", c->channels);
	if (c->warps)
		json_member_u64(j, "nwarps", c->warps);
	json_member_i64(j, "root", c->root);
	json_member_i64(j, "rank", c->rank);
}

static void look_put_p2p(struct json *j, const struct process *p, const struct nci_record *rec)
{
	const struct nci_ev_p2p *c = AS(rec, p2p);

	json_member_i64(j, "peer", c->peer);
	json_member_i64(j, "rank", c->rank);
	json_member_u64(j, "count", c->count);
	look_put_name(j, "datatype", p, c->datatype);
	if (c->channels)
		json_member_u64(j, "nchannels", c->channels);
}

static void look_put_proxy_op(struct json *j, const struct process *p,
			      const struct nci_record *rec)
{
	const struct nci_ev_proxy_op *c = AS(rec, proxy_op);

	json_member_i64(j, "peer", c->peer);
	json_member_u64(j, "channel", c->channel);
	json_member_u64(j, "bytes", c->bytes);
	json_member_i64(j, "nsteps", c->steps);
	json_member_u64(j, "steps_done", c->steps_done);
	json_member_i64(j, "chunk_bytes", c->chunk_bytes);
	json_member_string(j, "direction", rec->form & NCI_FORM_SEND ? "send" : "recv");
	if (rec->form & NCI_FORM_FOREIGN)
		json_member_i64(j, "issuer_pid", c->pid);
}

static void look_put_proxy_step(struct json *j, const struct process *p,
				const struct nci_record *rec)
{
	const struct nci_ev_proxy_step *c = AS(rec, proxy_step);

	json_member_i64(j, "step", c->step);
	if (c->bytes != NCI_BYTES_UNKNOWN)
		json_member_u64(j, "bytes", c->bytes);
	if (c->repeats)
		json_member_u64(j, "repeats", c->repeats);
}

static void look_put_proxy_ctrl(struct json *j, const struct process *p,
				const struct nci_record *rec)
{
	const struct nci_ev_proxy_ctrl *c = AS(rec, proxy_ctrl);

	look_put_marks(j, &c->marks);
	if (c->appended >= 0)
		json_member_i64(j, "appended", c->appended);
}

static void look_put_kernel_ch(struct json *j, const struct process *p,
			       const struct nci_record *rec)
{
	const struct nci_ev_kernel_ch *c = AS(rec, kernel_ch);

	json_member_u64(j, "channel", c->channel);
	json_member_u64(j, "ptimer_start", c->gpu_start);
	json_member_u64(j, "ptimer_stop", c->gpu_stop);
}

static void look_put_net_plugin(struct json *j, const struct process *p,
				const struct nci_record *rec)
{
	const struct nci_ev_net_plugin *c = AS(rec, net_plugin);
	bool send = rec->form & NCI_FORM_SEND;

	json_member_hex64(j, "id", (uint64_t)c->id);
	if (c->marks.count)
		look_put_marks(j, &c->marks);
	if (NCI_FORM_LINES(rec->form) < 2)
		return;
	json_member_i64(j, c->id == NCI_NET_IB_V1 ? "qp" : "socket", c->queue);
	if (c->id == NCI_NET_IB_V1) {
		json_member_i64(j, "nic", c->device);
		json_member_u64(j, "wr_id", c->request);
	}
	if (c->opcode >= 0)
		json_member_i64(j, "opcode", c->opcode);
	if (send || c->bytes)
		json_member_u64(j, "bytes", c->bytes);
	if (c->op) {
		json_member_i64(j, "peer", c->peer);
		json_member_u64(j, "channel", c->channel);
	}
	json_member_string(j, "direction", send ? "send" : "recv");
}

static void look_put_group_api(struct json *j, const struct process *p,
			       const struct nci_record *rec)
{
	json_member_i64(j, "depth", AS(rec, group_api)->depth);
}

static void look_put_coll_api(struct json *j, const struct process *p,
			      const struct nci_record *rec)
{
	const struct nci_ev_coll_api *c = AS(rec, coll_api);

	json_member_u64(j, "count", c->count);
	look_put_name(j, "datatype", p, c->datatype);
	json_member_i64(j, "root", c->root);
}

static void look_put_p2p_api(struct json *j, const struct process *p,
			     const struct nci_record *rec)
{
	json_member_u64(j, "count", AS(rec, p2p_api)->count);
	look_put_name(j, "datatype", p, AS(rec, p2p_api)->datatype);
}

static void look_put_ce_coll(struct json *j, const struct process *p,
			     const struct nci_record *rec)
{
	const struct nci_ev_ce_coll *c = AS(rec, ce_coll);

	json_member_u64(j, "seq", c->seq);
	json_member_u64(j, "count", c->count);
	look_put_name(j, "datatype", p, c->datatype);
	look_put_name(j, "sync", p, c->sync);
}

static void look_put_ce_sync(struct json *j, const struct process *p,
			     const struct nci_record *rec)
{
	look_put_marks(j, &AS(rec, ce_sync)->marks);
}

static void look_put_ce_batch(struct json *j, const struct process *p,
			      const struct nci_record *rec)
{
	json_member_u64(j, "bytes", AS(rec, ce_batch)->bytes);
	look_put_marks(j, &AS(rec, ce_batch)->marks);
}

/* ---- kinds ----------------------------------------------------------------------- */

enum {
	LANE = 1,	/* drawn on its lane */
	HEAD = 2,	/* others belong to it */
	CALLER = 4,	/* the thread that calls NCCL makes it */
};

static const struct {
	put_fn *put;
	unsigned what;
} looks[NCI_EV_END] = {
	[NCI_EV_GROUP] = { NULL, LANE | HEAD | CALLER },
	[NCI_EV_COLL] = { look_put_coll, LANE | HEAD | CALLER },
	[NCI_EV_P2P] = { look_put_p2p, LANE | HEAD | CALLER },
	[NCI_EV_PROXY_OP] = { look_put_proxy_op, 0 },
	[NCI_EV_PROXY_STEP] = { look_put_proxy_step, 0 },
	[NCI_EV_PROXY_CTRL] = { look_put_proxy_ctrl, LANE },
	[NCI_EV_KERNEL_CH] = { look_put_kernel_ch, 0 },
	[NCI_EV_NET_PLUGIN] = { look_put_net_plugin, 0 },
	[NCI_EV_GROUP_API] = { look_put_group_api, LANE | HEAD | CALLER },
	[NCI_EV_COLL_API] = { look_put_coll_api, LANE | HEAD | CALLER },
	[NCI_EV_P2P_API] = { look_put_p2p_api, LANE | HEAD | CALLER },
	[NCI_EV_KERNEL_LAUNCH] = { NULL, LANE | CALLER },
	[NCI_EV_CE_COLL] = { look_put_ce_coll, LANE | HEAD | CALLER },
	[NCI_EV_CE_SYNC] = { look_put_ce_sync, LANE | CALLER },
	[NCI_EV_CE_BATCH] = { look_put_ce_batch, LANE | CALLER },
};

bool trace_is_of_lane(uint8_t type)
{
	return looks[type].what & LANE;
}

bool trace_is_head(uint8_t type)
{
	return looks[type].what & HEAD;
}

bool trace_is_of_caller(uint8_t type)
{
	return looks[type].what & CALLER;
}

uint64_t trace_seq_of(const struct nci_record *rec)
{
	return rec->type == NCI_EV_COLL ? AS(rec, coll)->seq : UINT64_MAX;
}

void trace_put_args(struct json *j, const struct process *p, const struct nci_record *rec)
{
	if (looks[rec->type].put)
		looks[rec->type].put(j, p, rec);
	if (rec->form & NCI_FORM_UNSTOPPED) {
		json_member_bool(j, "unstopped", true);
	}
	json_member_hex64(j, "token", rec->token);
	if (rec->parent) {
		json_member_hex64(j, "parent", rec->parent);
	}
}

/* ---- states ---------------------------------------------------------------------- */

static const uint8_t states[2][TRACE_STAYS] = {
	{ RECV_WAIT, RECV_FLUSH_WAIT, RECV_GPU_WAIT },
	{ SEND_GPU_WAIT, SEND_PEER_WAIT, SEND_WAIT },
};

void trace_put_sums(struct json *j, const struct nci_ev_proxy_sums *sums, double ns_per_tick)
{
	const uint8_t *state = states[!!(sums->form & NCI_FORM_SEND)];

	json_member_u64(j, "timed_steps", sums->steps);
	json_begin_member(j, "ns_in_state", '{');
	for (int i = 0; i < TRACE_STAYS; i++)
		json_member_u64(j, nccl_state_name(state[i]),
				(uint64_t)((double)sums->ticks[i] * ns_per_tick));
	json_end(j, '}');
}

int trace_stays(const struct nci_ev_proxy_step *step, struct trace_stay stay[TRACE_STAYS])
{
	const uint8_t *state = states[!!(step->form & NCI_FORM_SEND)];
	uint64_t end = step->stop - step->start;
	int n = 0;

	for (int i = 0; i < TRACE_STAYS; i++) {
		uint64_t from = nci_span_ticks(step->span[i]);

		if (!step->span[i] || from > end || (n && from < stay[n - 1].from))
			continue;
		if (step->form & NCI_FORM_SEND && !i)
			from = 0;	/* comes in one breath with the start */
		if (n)
			stay[n - 1].to = from;
		stay[n++] = (struct trace_stay){ nccl_state_name(state[i]), from, end };
	}
	return n;
}
