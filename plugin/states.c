/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments are a union whose members all begin at its first byte, in every
 * version: what is read there depends on the state alone.
 */
#include "plugin/states.h"

#include <string.h>

static void states_take_marks(struct nci_record *rec, uint8_t state, uint8_t offset, uint64_t ticks,
			      const void *args)
{
	struct nci_marks *marks = (struct nci_marks *)((uint8_t *)rec + offset);
	uint32_t span = nci_span(rec->start, ticks);

	(void)args;
	if (!marks->first_span) {
		marks->first_span = span;
		marks->first = state;
	}
	marks->last_span = span;
	marks->last = state;
	if (marks->count < UINT16_MAX)
		marks->count++;
}

static void states_take_appended(struct nci_record *rec, uint8_t state, uint8_t offset,
				 uint64_t ticks, const void *args)
{
	states_take_marks(rec, state, offset, ticks, args);
	if (args)
		memcpy(&((struct nci_ev_proxy_ctrl *)rec)->appended, args, sizeof(int32_t));
}

static uint64_t states_word(const void *args)
{
	uint64_t value;

	memcpy(&value, args, sizeof(value));
	return value;
}

static void states_take_size(struct nci_record *rec, uint8_t state, uint8_t offset, uint64_t ticks,
			     const void *args)
{
	uint64_t bytes;

	(void)state;
	(void)offset;
	(void)ticks;
	if (!args)
		return;
	bytes = states_word(args);
	((struct nci_ev_proxy_step *)rec)->bytes =
		bytes < NCI_BYTES_UNKNOWN ? (uint32_t)bytes : NCI_BYTES_UNKNOWN - 1;
}

static void states_take_gpu_stop(struct nci_record *rec, uint8_t state, uint8_t offset,
				 uint64_t ticks, const void *args)
{
	(void)state;
	(void)offset;
	(void)ticks;
	if (args)
		((struct nci_ev_kernel_ch *)rec)->gpu_stop = states_word(args);
}

/*
 * NCCL <= 2.26 gives a running total that begins anywhere: what it grows by
 * between the states of one operation is that operation's.
 */
static void states_take_total(struct nci_record *rec, uint8_t state, uint8_t offset, uint64_t ticks,
			      const void *args)
{
	struct nci_ev_proxy_op *op = (struct nci_ev_proxy_op *)rec;
	uint32_t total;

	(void)state;
	(void)offset;
	(void)ticks;
	if (!args)
		return;
	total = (uint32_t)states_word(args);
	if (op->has_total)
		op->bytes += total - op->last_total;
	op->last_total = total;
	op->has_total = 1;
}

#define AT(name, field) offsetof(struct nci_ev_##name, field)
#define OP(i) \
	{ NCI_EV_PROXY_OP, AT(proxy_op, state_span) + (i) * 4, true, STATES_ANY, states_take_total }
#define STEP(i, when, fn) \
	{ NCI_EV_PROXY_STEP, AT(proxy_step, span) + (i) * 4, true, STATES_##when, fn }
#define CTRL(fn) { NCI_EV_PROXY_CTRL, AT(proxy_ctrl, marks), false, STATES_ANY, fn }

const struct states_row states_rows[NCCL_STATE_END] = {
	[NCCL_OP_SEND_POSTED]		= OP(0),
	[NCCL_OP_SEND_REM_FIFO_WAIT]	= OP(1),
	[NCCL_OP_SEND_TRANSMITTED]	= OP(2),
	[NCCL_OP_SEND_DONE]		= OP(3),
	[NCCL_OP_RECV_POSTED]		= OP(0),
	[NCCL_OP_RECV_RECEIVED]		= OP(1),
	[NCCL_OP_RECV_TRANSMITTED]	= OP(2),
	[NCCL_OP_RECV_DONE]		= OP(3),
	[NCCL_STEP_SEND_GPU_WAIT]	= STEP(0, STARTED, NULL),
	[NCCL_STEP_SEND_PEER_WAIT]	= STEP(1, FIRST, NULL),
	[NCCL_STEP_SEND_WAIT]		= STEP(2, ANY, states_take_size),
	[NCCL_STEP_RECV_WAIT]		= STEP(0, ANY, NULL),
	[NCCL_STEP_RECV_FLUSH_WAIT]	= STEP(1, ANY, states_take_size),
	[NCCL_STEP_RECV_GPU_WAIT]	= STEP(2, ANY, NULL),
	[NCCL_CTRL_IDLE]		= CTRL(states_take_marks),
	[NCCL_CTRL_ACTIVE]		= CTRL(states_take_marks),
	[NCCL_CTRL_SLEEP]		= CTRL(states_take_marks),
	[NCCL_CTRL_WAKEUP]		= CTRL(states_take_marks),
	[NCCL_CTRL_APPEND]		= CTRL(states_take_marks),
	[NCCL_CTRL_APPEND_END]		= CTRL(states_take_appended),
	[NCCL_OP_IN_PROGRESS] = { NCI_EV_PROXY_OP, AT(proxy_op, progress_span),
		true, STATES_ANY, NULL },
	[NCCL_NET_PLUGIN_UPDATE] = { NCI_EV_NET_PLUGIN, AT(net_plugin, marks),
		false, STATES_ANY, states_take_marks },
	[NCCL_KERNEL_CH_STOP] = { NCI_EV_KERNEL_CH, AT(kernel_ch, stop_span),
		true, STATES_ANY, states_take_gpu_stop },
	[NCCL_GROUP_API_START_STOP] = { NCI_EV_GROUP_API, AT(group_api, begin_span),
		true, STATES_ANY, NULL },
	[NCCL_GROUP_API_END_START] = { NCI_EV_GROUP_API, AT(group_api, end_span),
		true, STATES_ANY, NULL },
	[NCCL_CE_COLL_START] = { NCI_EV_CE_COLL, AT(ce_coll, begin_span),
		true, STATES_ANY, NULL },
	[NCCL_CE_COLL_COMPLETE] = { NCI_EV_CE_COLL, AT(ce_coll, end_span),
		true, STATES_ANY, NULL },
	[NCCL_CE_SYNC_START] = { NCI_EV_CE_SYNC, AT(ce_sync, marks),
		false, STATES_ANY, states_take_marks },
	[NCCL_CE_SYNC_COMPLETE] = { NCI_EV_CE_SYNC, AT(ce_sync, marks),
		false, STATES_ANY, states_take_marks },
	[NCCL_CE_BATCH_START] = { NCI_EV_CE_BATCH, AT(ce_batch, marks),
		false, STATES_ANY, states_take_marks },
	[NCCL_CE_BATCH_COMPLETE] = { NCI_EV_CE_BATCH, AT(ce_batch, marks),
		false, STATES_ANY, states_take_marks },
};
