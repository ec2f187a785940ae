/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records hold NCCL's events and states as numbers: people look for the names that NCCL's
 * own sources have.
 */
#include "util/nccl_names.h"

#include <stddef.h>

#include "nci/events.h"

static const char *const events[NCI_EV_END] = {
	[NCI_EV_GROUP] = "Group",
	[NCI_EV_COLL] = "Coll",
	[NCI_EV_P2P] = "P2p",
	[NCI_EV_PROXY_OP] = "ProxyOp",
	[NCI_EV_PROXY_STEP] = "ProxyStep",
	[NCI_EV_PROXY_CTRL] = "ProxyCtrl",
	[NCI_EV_KERNEL_CH] = "KernelCh",
	[NCI_EV_NET_PLUGIN] = "NetPlugin",
	[NCI_EV_GROUP_API] = "GroupApi",
	[NCI_EV_COLL_API] = "CollApi",
	[NCI_EV_P2P_API] = "P2pApi",
	[NCI_EV_KERNEL_LAUNCH] = "KernelLaunch",
	[NCI_EV_CE_COLL] = "CeColl",
	[NCI_EV_CE_SYNC] = "CeSync",
	[NCI_EV_CE_BATCH] = "CeBatch",
};

static const char *const states[] = {
	"SendPosted", "SendRemFifoWait", "SendTransmitted", "SendDone",
	"RecvPosted", "RecvReceived", "RecvTransmitted", "RecvDone",
	"SendGPUWait", "SendWait", "RecvWait", "RecvFlushWait", "RecvGPUWait",
	"Idle", "Active", "Sleep", "Wakeup", "Append", "AppendEnd",
	"InProgress", "SendPeerWait", "Update", "KernelChStop",
	"GroupStartApiStop", "GroupEndApiStart",
};

const char *nccl_event_name(uint32_t event)
{
	return event < NCI_EV_END ? events[event] : NULL;
}

const char *nccl_state_name(uint32_t state)
{
	return state < sizeof(states) / sizeof(states[0]) ? states[state] : NULL;
}
