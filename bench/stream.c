/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/stream.h"

#include <unistd.h>

#include "shmring/clock.h"

#define INLINE static inline __attribute__((always_inline))

#define OPEN_STEPS	4	/* of one operation at a time */

struct player {
	const struct nccl_profiler_v6 *p;
	void *context;
	uint64_t *longest;	/* NULL: nobody asks */
	int32_t pid;
};

INLINE uint64_t before(const struct player *pl)
{
	return pl->longest ? clock_ticks(NCI_CLOCK_TSC) : 0;
}

INLINE void after(const struct player *pl, uint64_t from)
{
	uint64_t ticks;

	if (!pl->longest)
		return;
	ticks = clock_ticks(NCI_CLOCK_TSC) - from;
	if (ticks > *pl->longest)
		*pl->longest = ticks;
}

INLINE void *start(const struct player *pl, struct nccl_descr_v6 *d)
{
	uint64_t from = before(pl);
	void *handle;

	pl->p->startEvent(pl->context, &handle, d);
	after(pl, from);
	return handle;
}

INLINE void state(const struct player *pl, void *handle, int value, uint64_t word)
{
	union nccl_args_v4 args = { .kernelCh = { word } };
	uint64_t from;

	if (!handle)
		return;
	from = before(pl);
	pl->p->recordEventState(handle, value, &args);
	after(pl, from);
}

INLINE void stop(const struct player *pl, void *handle)
{
	uint64_t from;

	if (!handle)
		return;
	from = before(pl);
	pl->p->stopEvent(handle);
	after(pl, from);
}

/* One transfer of a channel's operation, sent or received. */
struct lane {
	void *op;
	void *step[STREAM_STEPS];
	int send;
};

INLINE void step_begin(const struct player *pl, struct lane *l, int i)
{
	struct nccl_descr_v6 d = { NCCL_PROXY_STEP, l->op, 0, .proxyStep = { i } };

	l->step[i] = start(pl, &d);
	state(pl, l->step[i], l->send ? NCCL_STEP_SEND_GPU_WAIT : NCCL_STEP_RECV_WAIT, 0);
}

INLINE void step_end(const struct player *pl, struct lane *l, int i)
{
	void *h = l->step[i];

	state(pl, h, l->send ? NCCL_STEP_SEND_PEER_WAIT : NCCL_STEP_RECV_FLUSH_WAIT, 65536);
	state(pl, h, l->send ? NCCL_STEP_SEND_WAIT : NCCL_STEP_RECV_GPU_WAIT, 65536);
	stop(pl, h);
}

INLINE void ctrl(const struct player *pl, int value)
{
	struct nccl_descr_v6 d = { .type = NCCL_PROXY_CTRL };
	void *h = start(pl, &d);

	state(pl, h, value, 0);
	stop(pl, h);
}

INLINE void *append(const struct player *pl, void *coll, struct lane *lanes)
{
	struct nccl_descr_v6 d = { .type = NCCL_PROXY_CTRL };
	void *h = start(pl, &d);

	state(pl, h, NCCL_CTRL_APPEND, 0);
	for (int i = 0; i < 2 * STREAM_CHANNELS; i++) {
		struct nccl_descr_v6 op = {
			NCCL_PROXY_OP, coll, 0,
			.proxyOp = { pl->pid, (uint8_t)(i / 2), 1, STREAM_STEPS, 65536, i % 2 },
		};

		lanes[i].send = i % 2;
		lanes[i].op = start(pl, &op);
	}
	state(pl, h, NCCL_CTRL_APPEND_END, 3 * STREAM_CHANNELS);
	return h;
}

/* The proxy thread's part. */
INLINE void progress(const struct player *pl, void *coll)
{
	struct lane lanes[2 * STREAM_CHANNELS];
	void *kernel[STREAM_CHANNELS];

	stop(pl, append(pl, coll, lanes));
	for (int i = 0; i < 2 * STREAM_CHANNELS; i++)
		state(pl, lanes[i].op, NCCL_OP_IN_PROGRESS, 0);
	for (int c = 0; c < STREAM_CHANNELS; c++) {
		struct nccl_descr_v6 d = { NCCL_KERNEL_CH, coll, 0,
					   .kernelCh = { (uint8_t)c, 1000000 } };

		kernel[c] = start(pl, &d);
	}
	ctrl(pl, NCCL_CTRL_ACTIVE);
	for (int s = 0; s < STREAM_STEPS + OPEN_STEPS; s++)
		for (int i = 0; i < 2 * STREAM_CHANNELS; i++) {
			if (s >= OPEN_STEPS)
				step_end(pl, &lanes[i], s - OPEN_STEPS);
			if (s < STREAM_STEPS)
				step_begin(pl, &lanes[i], s);
		}
	for (int i = 0; i < 2 * STREAM_CHANNELS; i++)
		stop(pl, lanes[i].op);
	for (int c = 0; c < STREAM_CHANNELS; c++) {
		state(pl, kernel[c], NCCL_KERNEL_CH_STOP, 2000000);
		stop(pl, kernel[c]);
	}
	ctrl(pl, NCCL_CTRL_IDLE);
}

/* Group API, collective API, launch, group, collective; the proxy's part within. */
INLINE void play(const struct player *pl, uint64_t seq)
{
	struct nccl_descr_v6 d = { NCCL_GROUP_API, NULL, 0, .groupApi = { false, 1 } };
	void *group_api = start(pl, &d), *coll_api, *launch, *group, *coll;

	state(pl, group_api, NCCL_GROUP_API_START_STOP, 0);
	d = (struct nccl_descr_v6){ NCCL_COLL_API, group_api, 0,
		.collApi = { "AllReduce", 1 << 20, "ncclFloat32", 0, NULL, false } };
	coll_api = start(pl, &d);
	stop(pl, coll_api);
	state(pl, group_api, NCCL_GROUP_API_END_START, 0);
	d = (struct nccl_descr_v6){ .type = NCCL_KERNEL_LAUNCH, .parentObj = group_api };
	launch = start(pl, &d);
	stop(pl, launch);
	d = (struct nccl_descr_v6){ .type = NCCL_GROUP };
	group = start(pl, &d);
	d = (struct nccl_descr_v6){ NCCL_COLL, coll_api, 0,
		.coll = { seq, "AllReduce", NULL, NULL, 1 << 20, 0, "ncclFloat32",
			  STREAM_CHANNELS, 16, "RING", "SIMPLE", group } };
	coll = start(pl, &d);
	stop(pl, coll);
	stop(pl, group);
	stop(pl, group_api);
	progress(pl, coll);
}

void stream_play(const struct nccl_profiler_v6 *p, void *context, uint64_t seq)
{
	static int32_t pid;	/* not a system call each time */

	if (!pid)
		pid = getpid();
	play(&(struct player){ p, context, NULL, pid }, seq);
}

void stream_play_timed(const struct nccl_profiler_v6 *p, void *context, uint64_t seq,
		       uint64_t *longest)
{
	play(&(struct player){ p, context, longest, getpid() }, seq);
}
