/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/stream.h"

#include <unistd.h>

#include "shmring/clock.h"

#define INLINE static inline __attribute__((always_inline))

#define OPEN_STEPS	4	/* of one operation at a time */

struct stream_player {
	const struct nccl_profiler_v6 *p;
	void *context;
	uint64_t *longest;	/* NULL: nobody asks */
	int32_t pid;
};

INLINE uint64_t call_begin(const struct stream_player *pl)
{
	return pl->longest ? clock_ticks(NCI_CLOCK_TSC) : 0;
}

INLINE void call_end(const struct stream_player *pl, uint64_t from)
{
	uint64_t ticks;

	if (!pl->longest)
		return;
	ticks = clock_ticks(NCI_CLOCK_TSC) - from;
	if (ticks > *pl->longest)
		*pl->longest = ticks;
}

INLINE void *stream_start(const struct stream_player *pl, struct nccl_descr_v6 *d)
{
	uint64_t from = call_begin(pl);
	void *handle;

	pl->p->startEvent(pl->context, &handle, d);
	call_end(pl, from);
	return handle;
}

INLINE void stream_state(const struct stream_player *pl, void *handle, int value, uint64_t word)
{
	union nccl_args_v4 args = { .kernelCh = { word } };
	uint64_t from;

	if (!handle)
		return;
	from = call_begin(pl);
	pl->p->recordEventState(handle, value, &args);
	call_end(pl, from);
}

INLINE void stream_stop(const struct stream_player *pl, void *handle)
{
	uint64_t from;

	if (!handle)
		return;
	from = call_begin(pl);
	pl->p->stopEvent(handle);
	call_end(pl, from);
}

/* One transfer of a channel's operation, sent or received. */
struct stream_lane {
	void *op;
	void *step[STREAM_STEPS];
	int send;
};

INLINE void stream_step_begin(const struct stream_player *pl, struct stream_lane *l, int i)
{
	struct nccl_descr_v6 d = { NCCL_PROXY_STEP, l->op, 0, .proxyStep = { i } };

	l->step[i] = stream_start(pl, &d);
	stream_state(pl, l->step[i], l->send ? NCCL_STEP_SEND_GPU_WAIT : NCCL_STEP_RECV_WAIT, 0);
}

INLINE void stream_step_end(const struct stream_player *pl, struct stream_lane *l, int i)
{
	void *h = l->step[i];

	stream_state(pl, h, l->send ? NCCL_STEP_SEND_PEER_WAIT : NCCL_STEP_RECV_FLUSH_WAIT, 65536);
	stream_state(pl, h, l->send ? NCCL_STEP_SEND_WAIT : NCCL_STEP_RECV_GPU_WAIT, 65536);
	stream_stop(pl, h);
}

INLINE void stream_ctrl(const struct stream_player *pl, int value)
{
	struct nccl_descr_v6 d = { .type = NCCL_PROXY_CTRL };
	void *h = stream_start(pl, &d);

	stream_state(pl, h, value, 0);
	stream_stop(pl, h);
}

INLINE void *stream_append(const struct stream_player *pl, void *coll, struct stream_lane *lanes)
{
	struct nccl_descr_v6 d = { .type = NCCL_PROXY_CTRL };
	void *h = stream_start(pl, &d);

	stream_state(pl, h, NCCL_CTRL_APPEND, 0);
	for (int i = 0; i < 2 * STREAM_CHANNELS; i++) {
		struct nccl_descr_v6 op = {
			NCCL_PROXY_OP, coll, 0,
			.proxyOp = { pl->pid, (uint8_t)(i / 2), 1, STREAM_STEPS, 65536, i % 2 },
		};

		lanes[i].send = i % 2;
		lanes[i].op = stream_start(pl, &op);
	}
	stream_state(pl, h, NCCL_CTRL_APPEND_END, 3 * STREAM_CHANNELS);
	return h;
}

/* The proxy thread's part. */
INLINE void stream_progress(const struct stream_player *pl, void *coll)
{
	struct stream_lane lanes[2 * STREAM_CHANNELS];
	void *kernel[STREAM_CHANNELS];

	stream_stop(pl, stream_append(pl, coll, lanes));
	for (int i = 0; i < 2 * STREAM_CHANNELS; i++)
		stream_state(pl, lanes[i].op, NCCL_OP_IN_PROGRESS, 0);
	for (int c = 0; c < STREAM_CHANNELS; c++) {
		struct nccl_descr_v6 d = { NCCL_KERNEL_CH, coll, 0,
					   .kernelCh = { (uint8_t)c, 1000000 } };

		kernel[c] = stream_start(pl, &d);
	}
	stream_ctrl(pl, NCCL_CTRL_ACTIVE);
	for (int s = 0; s < STREAM_STEPS + OPEN_STEPS; s++)
		for (int i = 0; i < 2 * STREAM_CHANNELS; i++) {
			if (s >= OPEN_STEPS)
				stream_step_end(pl, &lanes[i], s - OPEN_STEPS);
			if (s < STREAM_STEPS)
				stream_step_begin(pl, &lanes[i], s);
		}
	for (int i = 0; i < 2 * STREAM_CHANNELS; i++)
		stream_stop(pl, lanes[i].op);
	for (int c = 0; c < STREAM_CHANNELS; c++) {
		stream_state(pl, kernel[c], NCCL_KERNEL_CH_STOP, 2000000);
		stream_stop(pl, kernel[c]);
	}
	stream_ctrl(pl, NCCL_CTRL_IDLE);
}

/* Group API, collective API, launch, group, collective; the proxy's part within. */
INLINE void stream_operation(const struct stream_player *pl, uint64_t seq)
{
	struct nccl_descr_v6 d = { NCCL_GROUP_API, NULL, 0, .groupApi = { false, 1 } };
	void *group_api = stream_start(pl, &d), *coll_api, *launch, *group, *coll;

	stream_state(pl, group_api, NCCL_GROUP_API_START_STOP, 0);
	d = (struct nccl_descr_v6){ NCCL_COLL_API, group_api, 0,
		.collApi = { "AllReduce", 1 << 20, "ncclFloat32", 0, NULL, false } };
	coll_api = stream_start(pl, &d);
	stream_stop(pl, coll_api);
	stream_state(pl, group_api, NCCL_GROUP_API_END_START, 0);
	d = (struct nccl_descr_v6){ .type = NCCL_KERNEL_LAUNCH, .parentObj = group_api };
	launch = stream_start(pl, &d);
	stream_stop(pl, launch);
	d = (struct nccl_descr_v6){ .type = NCCL_GROUP };
	group = stream_start(pl, &d);
	d = (struct nccl_descr_v6){ NCCL_COLL, coll_api, 0,
		.coll = { seq, "AllReduce", NULL, NULL, 1 << 20, 0, "ncclFloat32",
			  STREAM_CHANNELS, 16, "RING", "SIMPLE", group } };
	coll = stream_start(pl, &d);
	stream_stop(pl, coll);
	stream_stop(pl, group);
	stream_stop(pl, group_api);
	stream_progress(pl, coll);
}

void stream_play(const struct nccl_profiler_v6 *p, void *context, uint64_t seq)
{
	static int32_t pid;	/* not a system call each time */

	if (!pid)
		pid = getpid();
	stream_operation(&(struct stream_player){ p, context, NULL, pid }, seq);
}

void stream_play_timed(const struct nccl_profiler_v6 *p, void *context, uint64_t seq,
		       uint64_t *longest)
{
	stream_operation(&(struct stream_player){ p, context, longest, getpid() }, seq);
}
