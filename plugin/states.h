/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_STATES_H
#define PLUGIN_STATES_H

/*
 * NCCL's states: the event of each, the place of the span or the marks that it fills, when
 * the clock is looked at, and what it leaves.  emit.c makes a function of each row that
 * comes often, and a switch of all.
 *
 *   clocked  each time; the last one stays
 *   polled   comes at polling rate: the first is kept, the rest counted
 *   begun    NCCL tells it in one breath with the start: never
 *
 * Arguments are a union whose members all begin at its first byte, in every version: what
 * is read there depends on the state alone.  They may be NULL.
 */

#include <string.h>

#include "nci/events.h"
#include "plugin/process.h"

/*	  state, event, place, when, what */
#define STATES_OFTEN(X)									\
	X(STEP_SEND_GPU_WAIT,	PROXY_STEP, proxy_step, span[0], begun, span)		\
	X(STEP_SEND_PEER_WAIT,	PROXY_STEP, proxy_step, span[1], polled, span)		\
	X(STEP_SEND_WAIT,	PROXY_STEP, proxy_step, span[2], clocked, size)		\
	X(STEP_RECV_WAIT,	PROXY_STEP, proxy_step, span[0], clocked, span)		\
	X(STEP_RECV_FLUSH_WAIT,	PROXY_STEP, proxy_step, span[1], clocked, size)		\
	X(STEP_RECV_GPU_WAIT,	PROXY_STEP, proxy_step, span[2], clocked, span)		\
	X(OP_IN_PROGRESS,	PROXY_OP, proxy_op, progress_span, clocked, span)	\
	X(KERNEL_CH_STOP,	KERNEL_CH, kernel_ch, stop_span, clocked, gpu_stop)	\
	X(GROUP_API_START_STOP,	GROUP_API, group_api, begin_span, clocked, span)	\
	X(GROUP_API_END_START,	GROUP_API, group_api, end_span, clocked, span)

#define STATES_SELDOM(X)								\
	X(OP_SEND_POSTED,	PROXY_OP, proxy_op, state_span[0], clocked, total)	\
	X(OP_SEND_REM_FIFO_WAIT, PROXY_OP, proxy_op, state_span[1], clocked, total)	\
	X(OP_SEND_TRANSMITTED,	PROXY_OP, proxy_op, state_span[2], clocked, total)	\
	X(OP_SEND_DONE,		PROXY_OP, proxy_op, state_span[3], clocked, total)	\
	X(OP_RECV_POSTED,	PROXY_OP, proxy_op, state_span[0], clocked, total)	\
	X(OP_RECV_RECEIVED,	PROXY_OP, proxy_op, state_span[1], clocked, total)	\
	X(OP_RECV_TRANSMITTED,	PROXY_OP, proxy_op, state_span[2], clocked, total)	\
	X(OP_RECV_DONE,		PROXY_OP, proxy_op, state_span[3], clocked, total)	\
	X(CTRL_IDLE,		PROXY_CTRL, proxy_ctrl, marks, clocked, marks)		\
	X(CTRL_ACTIVE,		PROXY_CTRL, proxy_ctrl, marks, clocked, marks)		\
	X(CTRL_SLEEP,		PROXY_CTRL, proxy_ctrl, marks, clocked, marks)		\
	X(CTRL_WAKEUP,		PROXY_CTRL, proxy_ctrl, marks, clocked, marks)		\
	X(CTRL_APPEND,		PROXY_CTRL, proxy_ctrl, marks, clocked, marks)		\
	X(CTRL_APPEND_END,	PROXY_CTRL, proxy_ctrl, marks, clocked, appended)	\
	X(NET_PLUGIN_UPDATE,	NET_PLUGIN, net_plugin, marks, clocked, marks)		\
	X(CE_COLL_START,	CE_COLL, ce_coll, begin_span, clocked, span)		\
	X(CE_COLL_COMPLETE,	CE_COLL, ce_coll, end_span, clocked, span)		\
	X(CE_SYNC_START,	CE_SYNC, ce_sync, marks, clocked, marks)		\
	X(CE_SYNC_COMPLETE,	CE_SYNC, ce_sync, marks, clocked, marks)		\
	X(CE_BATCH_START,	CE_BATCH, ce_batch, marks, clocked, marks)		\
	X(CE_BATCH_COMPLETE,	CE_BATCH, ce_batch, marks, clocked, marks)

/*
 * A function that stores at `at` what a state leaves there, `span` after the event's start,
 * and what it tells beside it.
 */
typedef void states_fn(struct nci_record *rec, void *at, uint32_t state, uint32_t span,
		       const void *args);

#define STATES_FN(what)									\
	INLINE void states_##what(__attribute__((unused)) struct nci_record *rec, void *at, \
				  __attribute__((unused)) uint32_t state, uint32_t span, \
				  __attribute__((unused)) const void *args)

INLINE uint64_t states_word(const void *args)
{
	uint64_t value;

	memcpy(&value, args, sizeof(value));
	return value;
}

STATES_FN(span)
{
	*(uint32_t *)at = span;
}

STATES_FN(size)
{
	uint64_t bytes;

	states_span(rec, at, state, span, args);
	if (!args)
		return;
	bytes = states_word(args);
	((struct nci_ev_proxy_step *)rec)->bytes =
		likely(bytes < NCI_BYTES_UNKNOWN) ? (uint32_t)bytes : NCI_BYTES_UNKNOWN - 1;
}

STATES_FN(gpu_stop)
{
	states_span(rec, at, state, span, args);
	if (args)
		((struct nci_ev_kernel_ch *)rec)->gpu_stop = states_word(args);
}

/*
 * NCCL <= 2.26 gives a running total that begins anywhere: what it grows by
 * between the states of one operation is that operation's.
 */
STATES_FN(total)
{
	struct nci_ev_proxy_op *op = (struct nci_ev_proxy_op *)rec;
	uint32_t total;

	states_span(rec, at, state, span, args);
	if (!args)
		return;
	total = (uint32_t)states_word(args);
	if (op->has_total)
		op->bytes += total - op->last_total;
	op->last_total = total;
	op->has_total = 1;
}

STATES_FN(marks)
{
	struct nci_marks *marks = at;

	if (!marks->first_span) {
		marks->first_span = span;
		marks->first = (uint8_t)state;
	}
	marks->last_span = span;
	marks->last = (uint8_t)state;
	if (marks->count < UINT16_MAX)
		marks->count++;
}

STATES_FN(appended)
{
	states_marks(rec, at, state, span, args);
	if (args)
		memcpy(&((struct nci_ev_proxy_ctrl *)rec)->appended, args, sizeof(int32_t));
}

#endif
