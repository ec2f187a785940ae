/* SPDX-License-Identifier: Apache-2.0 */
/* What was posted becomes subs, their events and their future. */
#include "tests/sim/proxy_state.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/proxy_play.h"

/* Whether two tasks are the send and the receive of one round of the p2p schedule. */
static bool share_round(const struct task *send, const struct task *recv)
{
	return send->side.func == FUNC_SEND && recv->side.func == FUNC_RECV &&
	       send->op.round == recv->op.round &&
	       send->op.nchannels == recv->op.nchannels;
}

int proxy_work_size(const struct task *task, int i, int ntasks)
{
	return i + 1 < ntasks && share_round(&task[i], &task[i + 1]) ? 2 : 1;
}

void proxy_count_work(uint64_t *count, const struct task *task, bool counted)
{
	if (task->member->player->scn->release >= 31)
		counted = task->mask & NCCL_KERNEL_CH;
	for (int c = 0; c < task->op.nchannels && counted; c++)
		if (!task->hidden && !task->op.spec->symmetric &&
		    task->side.peer != task->side.rank)
			count[plan_channel_number(&task->op, c)]++;
}

static struct work_sub *alloc_sub(void *arg)
{
	struct proxy *p = arg;
	struct work_sub *sub = p->spare;

	p->open++;
	if (sub) {
		p->spare = sub->next;
		return sub;
	}
	sub = calloc(1, sizeof(*sub));
	if (sub) {
		sub->older = p->all;
		p->all = sub;
	}
	return sub;
}

void proxy_free_sub(struct proxy *p, struct work_sub *sub)
{
	sub->next = p->spare;
	p->spare = sub;
	p->open--;
}

/* The subs of one work that stop together: those of a shared connection. */
struct joined {
	struct work_sub *sub[2 * 64];
	int n;
	int64_t done;
};

/* Where NCCL keeps helpers of a channel: receives here, all else there, each in order. */
static int64_t *sub_queue(struct conn *c, const struct work_sub *sub, const struct task *task)
{
	return &c->polled[sub->channel][task->side.func == FUNC_RECV];
}

static void append_helper(struct proxy *p, struct conn *conn, const struct task *task,
			  struct work_sub *sub, const uint64_t *count)
{
	int64_t *polled = sub_queue(conn, sub, task), at_will = 0;

	sub->ring = task->op.spec->symmetric ? NULL : conn->ring;
	sub->count = count[sub->channel];
	if (p->profiler)
		polled = &at_will;	/* it looks at all of them */
	work_plan(&p->work, task, sub, *polled, polled);
	conn->waits += sub->ring && *polled == PLAN_NEVER && !task->op.fault;
}

static void append_transfer(struct proxy *p, struct conn *conn, const struct task *task,
			    struct work_sub *sub, int64_t *donep, struct joined *joined)
{
	int64_t done;

	if (p->member->player->scn->release > 26)
		proxy_play_op_start(p->member, sub);
	if (sub->silent) {
		work_add(&p->work, &(struct work_action){ .at = task->side.stop, .sub = sub,
							  .verb = WORK_OP_END, .last = true });
		return;
	}
	work_plan(&p->work, task, sub, conn->busy_ns, &done);
	if (done > *donep)
		*donep = done;
	if (sub->joint_stop && joined->n < 2 * 64) {
		joined->done = done > joined->done ? done : joined->done;
		joined->sub[joined->n++] = sub;
		return;
	}
	work_add(&p->work, &(struct work_action){ .at = done, .verb = WORK_OP_STOP,
						  .sub = sub, .last = true });
}

/* One task's subs of one channel: their events begin now, their actions are planned. */
static int append_channel(struct proxy *p, const struct job *job, const struct task *task,
			  int channel, const uint64_t *count, int64_t *donep,
			  struct joined *joined)
{
	struct work_sub *sub[WORK_MAX_SUBS];
	bool split = p->member->player->scn->release >= 31;
	int n = work_subs(task, channel, job->foreign, sub, alloc_sub, p), taken = 0;

	for (int i = 0; i < n; i++) {
		if (split && p->profiler != (sub[i]->kind == WORK_KERNEL_CH)) {
			proxy_free_sub(p, sub[i]);
			continue;
		}
		taken++;
		sub[i]->context = job->context;
		sub[i]->pid = job->pid;
		if (sub[i]->kind == WORK_KERNEL_CH)
			append_helper(p, job->conn, task, sub[i], count);
		else
			append_transfer(p, job->conn, task, sub[i], donep, joined);
	}
	return taken;
}

/*
 * All channels of a task, or of the two of one round: on each channel the
 * receive comes first.
 */
static int append_tasks(struct proxy *p, const struct job *job, const struct task *task,
			int ntasks, const uint64_t *count, int64_t *donep)
{
	struct joined joined = { .n = 0 };
	int n = 0;

	for (int c = 0; c < task->op.nchannels; c++)
		for (int i = ntasks - 1; i >= 0 && !task->hidden; i--)
			n += append_channel(p, job, &task[i], c, count, donep, &joined);
	for (int i = 0; i < joined.n; i++)
		work_add(&p->work, &(struct work_action){ .at = joined.done, .last = true,
							  .verb = WORK_OP_STOP,
							  .sub = joined.sub[i] });
	return n;
}

int proxy_append_job(struct proxy *p, const struct job *job)
{
	uint64_t count[RING_CHANNELS];
	int64_t done = job->conn->busy_ns;
	int n = 0, k;

	memcpy(count, job->count, sizeof(count));
	for (int i = 0; i < job->ntasks; i += k) {
		k = proxy_work_size(job->task, i, job->ntasks);
		proxy_count_work(count, &job->task[i], job->counted);
		n += append_tasks(p, job, &job->task[i], k, count, &done);
	}
	for (int i = 0; i < job->ntasks; i++)
		if (hook_kills_us(&job->task[i]) && !job->foreign && !p->profiler) {
			work_add(&p->work, &(struct work_action){
				.at = job->task[i].op.cut_ns, .verb = WORK_KILL });
			break;
		}
	if (!p->profiler)
		job->conn->busy_ns = done;
	return n;
}
