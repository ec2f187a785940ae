/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callbacks of the progress thread, release by release: up to 2.26 an
 * operation has the states 0 to 7 and its steps bring no arguments; from 2.27
 * on it has state 19, and steps bring transSize, which is valid in two states.
 */
#include "tests/sim/proxy_play.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "nci/events.h"
#include "tests/sim/ring.h"

static bool member_is_old(const struct member *m)
{
	return m->player->scn->release <= 26;
}

/* Where a child may begin though its parent was refused (2.28), its states may not. */
static bool child_may_start(const struct member *m, const void *parent)
{
	return parent || m->player->scn->release >= 28;
}

static void event_fill(struct api_event *ev, uint64_t type, void *parent, int rank)
{
	memset(ev, 0xa5, sizeof(*ev));
	ev->descr.type = type;
	ev->descr.parentObj = parent;
	ev->descr.rank = rank;
}

void proxy_play_op_start(struct member *m, struct work_sub *sub)
{
	struct api_event ev;

	if (!(sub->mask & PLAYER_WANTS_OP) || !child_may_start(m, sub->parent))
		return;
	event_fill(&ev, NCCL_PROXY_OP, sub->parent, sub->rank);
	ev.descr.proxyOp = (struct nccl_proxy_op){
		.pid = sub->pid, .channelId = sub->channel, .peer = sub->peer,
		.nSteps = sub->nsteps,
		.chunkSize = sub->chunk,
		.isSend = sub->kind == WORK_SEND };
	api_start(&m->player->api, sub->context, &sub->handle, &ev);
}

/* The states 0 to 7 of old releases: cumulative sizes, never reset. */
static void old_op_state(struct member *m, struct work_sub *sub, int state)
{
	union nccl_args_v4 args = { .proxyStep = { sub->moved } };

	if ((sub->mask & PLAYER_WANTS_OP) && sub->handle)
		api_state(&m->player->api, sub->handle, state, &args, sub->steps_done);
}

static void action_progress(struct member *m, const struct work_action *a)
{
	union nccl_args_v4 args = { .proxyStep = { 0 } };
	struct work_sub *sub = a->sub;

	if (member_is_old(m))
		proxy_play_op_start(m, sub);
	else if ((sub->mask & PLAYER_WANTS_OP) && sub->handle)
		api_state(&m->player->api, sub->handle, NCCL_OP_IN_PROGRESS, &args, 0);
}

static void step_start(struct member *m, const struct work_action *a)
{
	struct work_sub *sub = a->sub;
	struct api_event ev;

	if (!(sub->mask & PLAYER_WANTS_STEP) || !child_may_start(m, sub->handle))
		return;
	event_fill(&ev, NCCL_PROXY_STEP, sub->handle, sub->rank);
	ev.descr.proxyStep = (struct nccl_proxy_step){ .step = a->step };
	api_start(&m->player->api, sub->context, &sub->step[a->step % WORK_SLOTS], &ev);
}

/* The operation's state that goes with a step's, up to 2.26. */
static void old_states_of_step(struct member *m, struct work_sub *sub, int state, uint64_t size)
{
	switch (state) {
	case NCCL_STEP_SEND_GPU_WAIT:
		old_op_state(m, sub, NCCL_OP_SEND_POSTED);
		break;
	case NCCL_STEP_SEND_WAIT:
		sub->moved += size;
		old_op_state(m, sub, NCCL_OP_SEND_TRANSMITTED);
		break;
	case NCCL_STEP_RECV_WAIT:
		old_op_state(m, sub, NCCL_OP_RECV_POSTED);
		break;
	case NCCL_STEP_RECV_FLUSH_WAIT:
		sub->moved += size;
		old_op_state(m, sub, NCCL_OP_RECV_RECEIVED);
		break;
	case NCCL_STEP_RECV_GPU_WAIT:
		old_op_state(m, sub, NCCL_OP_RECV_TRANSMITTED);
		break;
	}
}

/* ---- NetPlugin: what the network library tells through NCCL ---- */

/* A payload as its transport sets it: InfiniBand tells neither opcode nor size of a receive. */
union net_data {
	struct nccl_net_ib_v1 ib;
	struct nccl_net_socket_v1 socket;
};

static void net_fill(union net_data *data, const struct scenario *scn,
		     const struct work_action *a)
{
	bool send = a->sub->kind == WORK_SEND;
	int nth = a->sub->channel * scn->queues + a->step % scn->queues;
	int queue = 256 + 2 * nth + send;

	if (scn->net == NET_SOCKET)
		data->socket = (struct nccl_net_socket_v1){
			NCCL_NET_TYPE, { queue, !send, a->size } };
	else
		data->ib = (struct nccl_net_ib_v1){ NCCL_NET_TYPE, {
			0, (uint64_t)a->step & 0xff, send, queue, send ? a->size : 0 } };
}

static bool net_reports(const struct member *m)
{
	return m->player->scn->net != NET_SILENT && m->player->scn->release >= 26;
}

/* A request was accepted.  Its data are gone when the call returns. */
static void net_start(struct member *m, const struct work_action *a)
{
	struct work_sub *sub = a->sub;
	void *parent = sub->step[a->step % WORK_SLOTS];
	static const int64_t ids[] = { [NET_IB] = NCI_NET_IB_V1,
				       [NET_SOCKET] = NCI_NET_SOCKET_V1,
				       [NET_EXTERNAL] = 0x7fff0001 };
	enum sim_net net = m->player->scn->net;
	union net_data data;
	struct api_event ev;

	if (!net_reports(m) || !(sub->mask & NCCL_NET_PLUGIN) || !child_may_start(m, parent))
		return;
	event_fill(&ev, NCCL_NET_PLUGIN, parent, sub->rank);
	ev.descr.netPlugin = (struct nccl_net_plugin){
		.id = ids[net], .data = &data };
	net_fill(&data, m->player->scn, a);
	api_start(&m->player->api, sub->context, &sub->net[a->step % WORK_SLOTS], &ev);
}

/*
 * A request is complete.  Nobody asks for the mask or the handle any more: NULL
 * goes out, and InfiniBand stops at the completion and at the request's end.
 */
static void net_stop(struct member *m, const struct work_action *a)
{
	void *handle = a->sub->net[a->step % WORK_SLOTS];
	union nccl_args_v4 args = { .netPlugin = { &args } };

	if (!net_reports(m))
		return;
	if (m->player->scn->net == NET_IB)
		api_stop(&m->player->api, handle);
	else if (m->player->scn->net == NET_EXTERNAL)
		api_state(&m->player->api, handle, NCCL_NET_PLUGIN_UPDATE, &args, 0);
	api_stop(&m->player->api, handle);
}

static void step_state(struct member *m, const struct work_action *a)
{
	union nccl_args_v4 args = { .proxyStep = { a->size } };
	struct work_sub *sub = a->sub;
	void *handle = sub->step[a->step % WORK_SLOTS];

	if (a->state == NCCL_STEP_SEND_WAIT || a->state == NCCL_STEP_RECV_WAIT)
		net_start(m, a);
	if (a->state == NCCL_STEP_RECV_FLUSH_WAIT)
		net_stop(m, a);
	if (member_is_old(m))
		old_states_of_step(m, sub, a->state, a->size);
	if (member_is_old(m) && a->state == NCCL_STEP_SEND_PEER_WAIT)
		return;
	if (!(sub->mask & PLAYER_WANTS_STEP) || !sub->handle || !handle)
		return;
	api_state(&m->player->api, handle, a->state, &args, 0);
}

/* From 2.24 to 2.26 a receive's stop is looked for in the wrong slot: most find none. */
static bool step_is_missed(const struct member *m, const struct work_action *a)
{
	int release = m->player->scn->release;

	return a->sub->kind == WORK_RECV && release >= 24 && release <= 26 &&
	       a->step % WORK_SLOTS;
}

static void step_stop(struct member *m, const struct work_action *a)
{
	struct work_sub *sub = a->sub;
	void *handle = sub->step[a->step % WORK_SLOTS];

	sub->steps_done++;
	if (sub->kind == WORK_SEND)
		net_stop(m, a);
	if (member_is_old(m))
		old_op_state(m, sub, sub->kind == WORK_SEND ? NCCL_OP_SEND_DONE :
							      NCCL_OP_RECV_DONE);
	if ((sub->mask & PLAYER_WANTS_STEP) && child_may_start(m, sub->handle) && handle &&
	    !step_is_missed(m, a))
		api_stop(&m->player->api, handle);
}

static void op_stop(struct member *m, const struct work_action *a)
{
	struct work_sub *sub = a->sub;

	if ((sub->mask & PLAYER_WANTS_OP) && child_may_start(m, sub->parent) && sub->handle)
		api_stop(&m->player->api, sub->handle);
}

static void op_end(struct member *m, const struct work_action *a)
{
	(void)m;
	(void)a;
}

static void kernel_start(struct member *m, const struct work_action *a)
{
	struct work_sub *sub = a->sub;
	struct api_event ev;

	if (m->player->scn->release < 26 || !child_may_start(m, sub->parent))
		return;
	event_fill(&ev, NCCL_KERNEL_CH, sub->parent, 0);
	ev.descr.kernelCh.channelId = sub->channel;
	if (sub->ring)
		sub->gpu_start = ring_stamp(sub->ring, sub->channel, sub->count, false, a->at);
	ev.descr.kernelCh.pTimer = sub->gpu_start;
	api_start(&m->player->api, sub->context, &sub->handle, &ev);
}

/*
 * A kernel's phases, told when it has ended, those of no length left out.  Only a symmetric
 * one waits for the other ranks before it begins.
 */
static void tell_phases(struct member *m, const struct work_sub *sub)
{
	uint64_t open = sub->gpu_start + (sub->wait_ns ? sub->wait_ns : 32);
	const struct { const char *name; uint64_t start, stop; } phases[] = {
		{ "initial_sync", sub->gpu_start, open }, { "compute", open, sub->gpu_stop },
	};

	for (int i = 0; i < 2; i++) {
		union nccl_args_v4 args = { .kernelCh = { .pTimer = phases[i].stop } };
		struct api_event ev;
		void *handle = NULL;

		if (phases[i].start >= phases[i].stop)
			continue;
		event_fill(&ev, NCCL_KERNEL_PHASE, sub->handle, 0);
		ev.descr.kernelPhase = (struct nccl_kernel_phase){
			.channelId = sub->channel, .phaseId = i, .phaseName = phases[i].name,
			.pTimer = phases[i].start };
		api_start(&m->player->api, sub->context, &handle, &ev);
		if (!handle)
			continue;
		api_state(&m->player->api, handle, NCCL_KERNEL_PHASE_STOP, &args, 0);
		api_stop(&m->player->api, handle);
	}
}

static void kernel_stop(struct member *m, const struct work_action *a)
{
	union nccl_args_v4 args;
	struct work_sub *sub = a->sub;

	if (sub->ring)
		sub->gpu_stop = ring_stamp(sub->ring, sub->channel, sub->count, true, a->at);
	args.kernelCh.pTimer = sub->gpu_stop;
	if (m->player->scn->release < 26 || !child_may_start(m, sub->parent) || !sub->handle)
		return;
	if (m->player->scn->release >= 31 && sub->mask & NCCL_KERNEL_PHASE)
		tell_phases(m, sub);
	if (m->player->scn->release > 26)
		api_state(&m->player->api, sub->handle, NCCL_KERNEL_CH_STOP, &args, 0);
	api_stop(&m->player->api, sub->handle);
}

static void kill_self(struct member *m, const struct work_action *a)
{
	(void)m;
	(void)a;
	kill(getpid(), SIGKILL);
}

void proxy_play_action(struct member *m, const struct work_action *action)
{
	static void (*const play[])(struct member *, const struct work_action *) = {
		[WORK_PROGRESS] = action_progress,
		[WORK_STEP_START] = step_start,
		[WORK_STEP_STATE] = step_state,
		[WORK_STEP_STOP] = step_stop,
		[WORK_OP_STOP] = op_stop,
		[WORK_OP_END] = op_end,
		[WORK_KERNEL_START] = kernel_start,
		[WORK_KERNEL_STOP] = kernel_stop,
		[WORK_KILL] = kill_self,
	};

	play[action->verb](m, action);
}

/* ---- ProxyCtrl: its bit is looked at anew at each call ---- */

static bool ctrl_wanted(struct member *m)
{
	return player_mask(m->player) & NCCL_PROXY_CTRL;
}

void proxy_play_ctrl_open(struct member *m, void **slot, int state)
{
	union nccl_args_v4 args = { .proxyCtrl = { 0 } };
	struct api_event ev;

	*slot = PLAYER_GARBAGE;
	if (!ctrl_wanted(m)) {
		*slot = NULL;
		return;
	}
	event_fill(&ev, NCCL_PROXY_CTRL, NULL, 0);
	api_start(&m->player->api, m->context, slot, &ev);
	if (ctrl_wanted(m) && *slot)
		api_state(&m->player->api, *slot, state, &args, 0);
}

void proxy_play_ctrl_close(struct member *m, void **slot, int state, int appended)
{
	union nccl_args_v4 args = { .proxyCtrl = { 0 } };

	args.proxyCtrl.appendedProxyOps = appended;
	if (!*slot)
		return;
	if (ctrl_wanted(m))
		api_state(&m->player->api, *slot, state, &args, 0);
	api_stop(&m->player->api, *slot);
}

void proxy_play_ctrl(struct member *m, int state)
{
	void *slot;

	proxy_play_ctrl_open(m, &slot, state);
	if (slot)
		api_stop(&m->player->api, slot);
}
