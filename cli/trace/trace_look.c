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

static void look_put_number(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_put_u64(j, value);
}

static void look_put_signed(struct json *j, const char *key, int64_t value)
{
	json_key(j, key);
	json_put_i64(j, value);
}

static void look_put_name(struct json *j, const char *key, const struct process *p, uint16_t id)
{
	const char *name = process_name(p, id);

	if (!name)
		return;
	json_key(j, key);
	json_put_string(j, name);
}

static void look_put_state(struct json *j, const char *key, uint32_t state)
{
	json_key(j, key);
	json_put_string(j, nccl_state_name(state));
}

static void look_put_marks(struct json *j, const struct nci_marks *m)
{
	if (m->first_span)
		look_put_state(j, "first_state", m->first);
	if (m->last_span)
		look_put_state(j, "last_state", m->last);
	look_put_number(j, "states", m->count);
}

typedef void put_fn(struct json *j, const struct process *p, const struct nci_record *rec);

static void look_put_coll(struct json *j, const struct process *p, const struct nci_record *rec)
{
	const struct nci_ev_coll *c = AS(rec, coll);

	look_put_number(j, "seq", c->seq);
	look_put_number(j, "count", c->count);
	look_put_name(j, "datatype", p, c->datatype);
	look_put_name(j, "algo", p, c->algo);
	look_put_name(j, "proto", p, c->proto);
	if (c->channels)
		look_put_number(j, "nchannels", c->channels);
	if (c->warps)
		look_put_number(j, "nwarps", c->warps);
	look_put_signed(j, "root", c->root);
	look_put_signed(j, "rank", c->rank);
}

static void look_put_p2p(struct json *j, const struct process *p, const struct nci_record *rec)
{
	const struct nci_ev_p2p *c = AS(rec, p2p);

	look_put_signed(j, "peer", c->peer);
	look_put_signed(j, "rank", c->rank);
	look_put_number(j, "count", c->count);
	look_put_name(j, "datatype", p, c->datatype);
	if (c->channels)
		look_put_number(j, "nchannels", c->channels);
}

static void look_put_proxy_op(struct json *j, const struct process *p,
			      const struct nci_record *rec)
{
	const struct nci_ev_proxy_op *c = AS(rec, proxy_op);

	(void)p;
	look_put_signed(j, "peer", c->peer);
	look_put_number(j, "channel", c->channel);
	look_put_number(j, "bytes", c->bytes);
	look_put_signed(j, "nsteps", c->steps);
	look_put_number(j, "steps_done", c->steps_done);
	look_put_signed(j, "chunk_bytes", c->chunk_bytes);
	json_key(j, "direction");
	json_put_string(j, rec->form & NCI_FORM_SEND ? "send" : "recv");
	if (rec->form & NCI_FORM_FOREIGN)
		look_put_signed(j, "issuer_pid", c->pid);
}

static void look_put_proxy_step(struct json *j, const struct process *p,
				const struct nci_record *rec)
{
	const struct nci_ev_proxy_step *c = AS(rec, proxy_step);

	(void)p;
	look_put_signed(j, "step", c->step);
	if (c->bytes != NCI_BYTES_UNKNOWN)
		look_put_number(j, "bytes", c->bytes);
	if (c->repeats)
		look_put_number(j, "repeats", c->repeats);
}

static void look_put_proxy_ctrl(struct json *j, const struct process *p,
				const struct nci_record *rec)
{
	const struct nci_ev_proxy_ctrl *c = AS(rec, proxy_ctrl);

	(void)p;
	look_put_marks(j, &c->marks);
	if (c->appended >= 0)
		look_put_signed(j, "appended", c->appended);
}

static void look_put_kernel_ch(struct json *j, const struct process *p,
			       const struct nci_record *rec)
{
	const struct nci_ev_kernel_ch *c = AS(rec, kernel_ch);

	(void)p;
	look_put_number(j, "channel", c->channel);
	look_put_number(j, "ptimer_start", c->gpu_start);
	look_put_number(j, "ptimer_stop", c->gpu_stop);
}

static void look_put_net_plugin(struct json *j, const struct process *p,
				const struct nci_record *rec)
{
	(void)p;
	look_put_signed(j, "id", AS(rec, net_plugin)->id);
	look_put_marks(j, &AS(rec, net_plugin)->marks);
}

static void look_put_group_api(struct json *j, const struct process *p,
			       const struct nci_record *rec)
{
	(void)p;
	look_put_signed(j, "depth", AS(rec, group_api)->depth);
}

static void look_put_coll_api(struct json *j, const struct process *p,
			      const struct nci_record *rec)
{
	const struct nci_ev_coll_api *c = AS(rec, coll_api);

	look_put_number(j, "count", c->count);
	look_put_name(j, "datatype", p, c->datatype);
	look_put_signed(j, "root", c->root);
}

static void look_put_p2p_api(struct json *j, const struct process *p,
			     const struct nci_record *rec)
{
	look_put_number(j, "count", AS(rec, p2p_api)->count);
	look_put_name(j, "datatype", p, AS(rec, p2p_api)->datatype);
}

static void look_put_ce_coll(struct json *j, const struct process *p,
			     const struct nci_record *rec)
{
	const struct nci_ev_ce_coll *c = AS(rec, ce_coll);

	look_put_number(j, "seq", c->seq);
	look_put_number(j, "count", c->count);
	look_put_name(j, "datatype", p, c->datatype);
	look_put_name(j, "sync", p, c->sync);
}

static void look_put_ce_sync(struct json *j, const struct process *p,
			     const struct nci_record *rec)
{
	(void)p;
	look_put_marks(j, &AS(rec, ce_sync)->marks);
}

static void look_put_ce_batch(struct json *j, const struct process *p,
			      const struct nci_record *rec)
{
	(void)p;
	look_put_number(j, "bytes", AS(rec, ce_batch)->bytes);
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
	[NCI_EV_NET_PLUGIN] = { look_put_net_plugin, LANE },
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
		json_key(j, "unstopped");
		json_put_bool(j, true);
	}
	json_key(j, "token");
	json_put_hex64(j, rec->token);
	if (rec->parent) {
		json_key(j, "parent");
		json_put_hex64(j, rec->parent);
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

	look_put_number(j, "timed_steps", sums->steps);
	json_key(j, "ns_in_state");
	json_begin(j, '{');
	for (int i = 0; i < TRACE_STAYS; i++)
		look_put_number(j, nccl_state_name(state[i]),
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
