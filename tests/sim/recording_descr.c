/* SPDX-License-Identifier: Apache-2.0 */
/* One row per event type and one per state. */
#include "tests/sim/recording_descr.h"

#include <string.h>

#include "tests/sim/field.h"
#include "tests/sim/recording.h"

const char *recording_name(struct recording_names *names, const json_t *obj, const char *key)
{
	const char *s = json_string_value(json_object_get(obj, key));

	return s ? recording_intern(names, s, strlen(s)) : NULL;
}

static void descr_fill_nothing(struct recording_names *names, const json_t *d,
			       struct nccl_descr_v7 *to)
{
	(void)names;
	(void)d;
	(void)to;
}

static void descr_fill_group_api(struct recording_names *names, const json_t *d,
				 struct nccl_descr_v7 *to)
{
	(void)names;
	to->groupApi.graphCaptured = json_is_true(json_object_get(d, "graphCaptured"));
	to->groupApi.groupDepth = (int)field_int(d, "depth");
}

static void descr_fill_coll_api(struct recording_names *names, const json_t *d,
				struct nccl_descr_v7 *to)
{
	to->collApi = (struct nccl_coll_api_v7){
		.func = recording_name(names, d, "func"), .count = field_int(d, "count"),
		.datatype = recording_name(names, d, "dtype"), .root = (int)field_int(d, "root"),
		.stream = field_pointer(d, "stream"),
		.graphCaptured = json_is_true(json_object_get(d, "graphCaptured")) };
}

static void descr_fill_p2p_api(struct recording_names *names, const json_t *d,
			       struct nccl_descr_v7 *to)
{
	to->p2pApi = (struct nccl_p2p_api_v7){
		.func = recording_name(names, d, "func"), .count = field_int(d, "count"),
		.datatype = recording_name(names, d, "dtype"), .stream = field_pointer(d, "stream"),
		.graphCaptured = json_is_true(json_object_get(d, "graphCaptured")) };
}

static void descr_fill_launch(struct recording_names *names, const json_t *d,
			      struct nccl_descr_v7 *to)
{
	(void)names;
	to->kernelLaunch.stream = field_pointer(d, "stream");
}

static void descr_fill_coll(struct recording_names *names, const json_t *d,
			    struct nccl_descr_v7 *to)
{
	to->coll = (struct nccl_coll_v7){
		.seqNumber = field_int(d, "seq"), .func = recording_name(names, d, "func"),
		.sendBuff = field_pointer(d, "sendBuff"), .recvBuff = field_pointer(d, "recvBuff"),
		.count = field_int(d, "count"), .root = (int)field_int(d, "root"),
		.datatype = recording_name(names, d, "dtype"),
		.nChannels = field_int(d, "channels"), .nWarps = field_int(d, "warps"),
		.algo = recording_name(names, d, "algo"),
		.proto = recording_name(names, d, "proto") };
}

static void descr_fill_p2p(struct recording_names *names, const json_t *d, struct nccl_descr_v7 *to)
{
	to->p2p = (struct nccl_p2p_v7){
		.func = recording_name(names, d, "func"), .buff = field_pointer(d, "buff"),
		.datatype = recording_name(names, d, "dtype"), .count = field_int(d, "count"),
		.peer = (int)field_int(d, "peer"), .nChannels = field_int(d, "channels") };
}

static void descr_fill_proxy_op(struct recording_names *names, const json_t *d,
				struct nccl_descr_v7 *to)
{
	(void)names;
	to->proxyOp = (struct nccl_proxy_op){
		.pid = (int32_t)field_int(d, "pid"), .channelId = field_int(d, "channel"),
		.peer = (int)field_int(d, "peer"), .nSteps = (int)field_int(d, "steps"),
		.chunkSize = (int)field_int(d, "chunkSize"),
		.isSend = (int)field_int(d, "isSend") };
}

static void descr_fill_proxy_step(struct recording_names *names, const json_t *d,
				  struct nccl_descr_v7 *to)
{
	(void)names;
	to->proxyStep.step = (int)field_int(d, "step");
}

static void descr_fill_kernel_ch(struct recording_names *names, const json_t *d,
				 struct nccl_descr_v7 *to)
{
	(void)names;
	to->kernelCh = (struct nccl_kernel_ch){ .channelId = field_int(d, "channel"),
						.pTimer = field_int(d, "pTimer") };
}

static const struct event_kind {
	const char *name;
	uint64_t type;
	void (*fill)(struct recording_names *names, const json_t *d, struct nccl_descr_v7 *to);
} event_kinds[] = {
	{ "ncclProfileGroup",		NCCL_GROUP,		descr_fill_nothing },
	{ "ncclProfileColl",		NCCL_COLL,		descr_fill_coll },
	{ "ncclProfileP2p",		NCCL_P2P,		descr_fill_p2p },
	{ "ncclProfileProxyOp",		NCCL_PROXY_OP,		descr_fill_proxy_op },
	{ "ncclProfileProxyStep",	NCCL_PROXY_STEP,	descr_fill_proxy_step },
	{ "ncclProfileProxyCtrl",	NCCL_PROXY_CTRL,	descr_fill_nothing },
	{ "ncclProfileKernelCh",	NCCL_KERNEL_CH,		descr_fill_kernel_ch },
	{ "ncclProfileGroupApi",	NCCL_GROUP_API,		descr_fill_group_api },
	{ "ncclProfileCollApi",		NCCL_COLL_API,		descr_fill_coll_api },
	{ "ncclProfileP2pApi",		NCCL_P2P_API,		descr_fill_p2p_api },
	{ "ncclProfileKernelLaunch",	NCCL_KERNEL_LAUNCH,	descr_fill_launch },
};

/*
 * States go by name.  What the recorder calls EndGroupApiStart came right after
 * the start, BeginGroupApiEnd before the launches.
 */
static const struct { const char *name; int state; } states[] = {
	{ "EndGroupApiStart",	NCCL_GROUP_API_START_STOP },
	{ "BeginGroupApiEnd",	NCCL_GROUP_API_END_START },
	{ "ProxyCtrlIdle",	NCCL_CTRL_IDLE },
	{ "ProxyCtrlActive",	NCCL_CTRL_ACTIVE },
	{ "ProxyCtrlSleep",	NCCL_CTRL_SLEEP },
	{ "ProxyCtrlWakeup",	NCCL_CTRL_WAKEUP },
	{ "ProxyCtrlAppend",	NCCL_CTRL_APPEND },
	{ "ProxyCtrlAppendEnd",	NCCL_CTRL_APPEND_END },
	{ "KernelChStop",	NCCL_KERNEL_CH_STOP },
	{ "ProxyOpInProgress",	NCCL_OP_IN_PROGRESS },
	{ "ProxyStepSendGPUWait",	NCCL_STEP_SEND_GPU_WAIT },
	{ "ProxyStepSendPeerWait",	NCCL_STEP_SEND_PEER_WAIT },
	{ "ProxyStepSendWait",		NCCL_STEP_SEND_WAIT },
	{ "ProxyStepRecvWait",		NCCL_STEP_RECV_WAIT },
	{ "ProxyStepRecvFlushWait",	NCCL_STEP_RECV_FLUSH_WAIT },
	{ "ProxyStepRecvGPUWait",	NCCL_STEP_RECV_GPU_WAIT },
};

bool recording_descr(struct recording_names *names, const json_t *line,
		     struct nccl_descr_v7 *to)
{
	for (size_t i = 0; i < sizeof(event_kinds) / sizeof(*event_kinds); i++) {
		if (!field_is(line, "type", event_kinds[i].name))
			continue;
		to->type = event_kinds[i].type;
		event_kinds[i].fill(names, field_details(line), to);
		return true;
	}
	return false;
}

int recording_state(const char *name)
{
	for (size_t i = 0; name && i < sizeof(states) / sizeof(*states); i++)
		if (!strcmp(states[i].name, name))
			return states[i].state;
	return -1;
}
