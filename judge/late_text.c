/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that make the others wait, in words: one row for each verdict. */
#include "judge/late.h"

#include <inttypes.h>
#include <math.h>

#include "judge/whom.h"
#include "util/phrase.h"

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void add_cost(struct phrase *text, const struct late_case *c, const char *whom)
{
	phrase_add(text, "which costs %s", whom);
	phrase_add_duration(text, c->blame_ns);
	phrase_add(text, " in ");
	phrase_add_duration(text, c->wall_ns);
	phrase_add(text, " (%.1f %%)", percent(c->blame_ns, c->wall_ns));
	if (c->gpu) {
		phrase_add(text, ": ");
		gpu_say_cause(text, c->gpu);
	}
}

/* "rank 3 of dp (pid 4711, GPU 0000:3b:00.0)" */
static void late_add_rank(struct phrase *text, const struct late_case *c)
{
	phrase_add(text, "rank %" PRId32 " of ", c->who.rank);
	whom_add_comm(text, c->comm_name, c->comm_id);
	whom_add(text, &c->who);
}

static void add_scope(struct phrase *text, const struct late_case *c)
{
	if ((int32_t)c->seen < c->nranks)
		phrase_add(text, " among the %" PRIu32 " of %" PRId32 " ranks that are on %s",
			   c->seen, c->nranks, c->here);
}

static void add_moved(struct phrase *text, const struct late_case *c)
{
	if (!c->moved_ns)
		return;
	phrase_add(text, " Of this, ");
	phrase_add_duration(text, c->moved_ns);
	phrase_add(text, " was lost in other communicators: ranks that had waited for this one "
		   "came late there.");
}

static void add_others(struct phrase *text, const struct late_case *c)
{
	if (c->others)
		phrase_add(text, " %" PRIu32 " more %s late as well; the cost is divided among "
			   "them.", c->others, c->others == 1 ? "rank comes" : "ranks come");
}

static void add_grade(struct phrase *text, const struct late_case *c)
{
	if (!c->suspected_window_ns)
		return;
	phrase_add(text, " It is suspected, and will be found if it lasts for three windows of ");
	phrase_add_duration(text, c->suspected_window_ns);
	phrase_add(text, ".");
}

#define MOSTLY		0.5
#define LEAST_TAKEN	0.3	/* part of the wait that one process had */

/* The part of the time that it costs. */
static double late_cost(const struct late_case *c)
{
	return c->wall_ns ? (double)c->blame_ns / (double)c->wall_ns : 0;
}

static bool caller_waits(const struct late_case *c)
{
	const struct late_caller *t = c->caller;

	return t && resources_explain(t->waited, late_cost(c));
}

static void say_caller_waits(struct phrase *text, const struct late_case *c)
{
	const struct late_caller *t = c->caller;

	phrase_add(text, " Its thread that calls NCCL (tid %" PRId32 ") was ready to run, but "
		   "waited for a CPU for %.0f %% of the time", t->tid, 100 * t->waited);
	if (t->taker && t->taker_share >= LEAST_TAKEN) {
		phrase_add(text, ", most of it for ");
		whom_add_taker(text, &c->who, t->taker, t->taker_command);
	}
	phrase_add(text, ". See what else runs on its CPUs (taskset -cp %" PRId32 "), and whether "
		   "its cgroup has a CPU limit.", t->tid);
}

/* A limit of its group costs nothing where its thread did not wait for a CPU. */
static bool late_is_throttled(const struct late_case *c)
{
	return c->resources && resources_explain(c->resources->throttled, late_cost(c)) &&
	       (!c->caller || caller_waits(c));
}

/* The node does not give its process what it needs. */
static bool late_lacks(const struct late_case *c)
{
	return late_is_throttled(c) || caller_waits(c) ||
	       (c->resources && resources_explain(c->resources->memory_stalled, late_cost(c)));
}

static void late_say_lack(struct phrase *text, const struct late_case *c)
{
	bool throttled = late_is_throttled(c);

	if (!throttled && caller_waits(c)) {
		say_caller_waits(text, c);
		return;
	}
	phrase_add(text, " The cause is on its node: ");
	(throttled ? resources_say_throttled : resources_say_memory)(text, c->resources);
	phrase_add(text, ".");
}

static void say_caller_works(struct phrase *text, const struct late_case *c)
{
	const struct late_caller *t = c->caller;
	double sleeps = fmax(1 - t->ran - t->waited, 0);

	if (sleeps >= MOSTLY) {
		phrase_add(text, " The thread that calls NCCL (tid %" PRId32 ") sleeps for %.0f %% "
			   "of the time: ", t->tid, 100 * sleeps);
		if (!c->resources || !resources_say_sleep(text, c->resources, sleeps))
			phrase_add(text, "it waits for input, a lock or a device");
	} else {
		phrase_add(text, " The thread that calls NCCL (tid %" PRId32 ") runs for %.0f %% "
			   "of the time: it computes, or polls until something is done", t->tid,
			   100 * t->ran);
	}
	phrase_add(text, " (py-spy dump -p %d).", (int)c->who.pid);
}

/* The waiting of other processes of its node need not concern it. */
static void late_add_pressure(struct phrase *text, const struct late_case *c)
{
	if (c->resources && resources_say_node(text, c->resources, late_cost(c), " Meanwhile "))
		phrase_add(text, ".");
}

static void why_add_unknown(struct phrase *text, const struct late_case *c)
{
	if (late_lacks(c)) {
		late_say_lack(text, c);
		return;
	}
	phrase_add(text, " See that GPU's clock and temperature (nvidia-smi -q -d PERFORMANCE), "
		   "its CPU and its input pipeline (py-spy dump -p %d).", (int)c->who.pid);
	late_add_pressure(text, c);
}

static void why_add_gpu(struct phrase *text, const struct late_case *c)
{
	(void)c;
	phrase_add(text, " It calls NCCL in time, but its GPU is still busy with earlier work: "
		   "see that GPU's clock, power and temperature (nvidia-smi -q -d PERFORMANCE), "
		   "and its share of the work.");
}

static void why_add_host(struct phrase *text, const struct late_case *c)
{
	phrase_add(text, " Its GPU starts at once, but its process calls NCCL late%s",
		   c->caller || late_lacks(c) ? "." : ":");
	if (late_lacks(c))
		late_say_lack(text, c);
	else if (c->caller)
		say_caller_works(text, c);
	else
		phrase_add(text, " see the process's input pipeline and its CPU (py-spy dump -p "
			   "%d).", (int)c->who.pid);
	if (!late_lacks(c))
		late_add_pressure(text, c);
}

static void why_add_launches(struct phrase *text, const struct late_case *c)
{
	phrase_add(text, " Its process launches its %" PRIu32 " ranks one after another, and that "
		   "explains the delay: give each GPU its own process, or at least its own thread.",
		   c->launched);
}

static void why_add_slow_gpu(struct phrase *text, const struct late_case *c)
{
	const char *advice = gpu_limit_advice(c->gpu->limit);

	if (c->gpu->gpu.lost)
		phrase_add(text, " See the kernel's log (dmesg | grep NVRM); the GPU needs "
			   "a reset.");
	else
		phrase_add(text, " See %s.",
			   advice ?: "its clocks (nvidia-smi -q -d CLOCK,PERFORMANCE)");
}

/* The cause, as far as it is known, and what to do. */
static void (*const add_why[LATE_WHY_END])(struct phrase *text, const struct late_case *c) = {
	[LATE_WHY_UNKNOWN] = why_add_unknown,
	[LATE_WHY_GPU] = why_add_gpu,
	[LATE_WHY_HOST] = why_add_host,
	[LATE_WHY_LAUNCHES] = why_add_launches,
};

/* A slow GPU explains all but ranks that are launched one after another. */
static void late_add_why(struct phrase *text, const struct late_case *c)
{
	if (c->gpu && c->why != LATE_WHY_LAUNCHES)
		why_add_slow_gpu(text, c);
	else
		add_why[c->why](text, c);
	if (c->resources && c->resources->apart && c->why != LATE_WHY_GPU) {
		phrase_add(text, " Its %s thread ", c->caller ? "calling" : "main");
		placement_say(text, &c->resources->placement);
		phrase_add(text, ": bind it there (numactl, srun --cpu-bind).");
	}
}

static void say_stage(struct phrase *text, const struct late_case *c)
{
	late_add_rank(text, c);
	phrase_add(text, " is the pipeline stage that the others wait for");
	add_scope(text, c);
	phrase_add(text, ", ");
	add_cost(text, c, "the others ");
	phrase_add(text, ". It waits ");
	phrase_add_duration(text, c->late_ns);
	phrase_add(text, " less in each second than the stage that waits longest.");
	add_others(text, c);
	add_grade(text, c);
	phrase_add(text, " It takes longer than the others between receiving and sending: see its "
		   "share of the model.");
	late_add_why(text, c);
}

static void say_steady(struct phrase *text, const struct late_case *c)
{
	bool last = 2 * c->last >= c->times;

	late_add_rank(text, c);
	phrase_add(text, last ? " comes last" : " comes late");
	add_scope(text, c);
	phrase_add(text, " in %.0f %% of %s, ", percent(last ? c->last : c->times, c->ops),
		   c->func);
	phrase_add_duration(text, c->late_ns);
	phrase_add(text, " after the first, ");
	add_cost(text, c, "the others ");
	phrase_add(text, ". It was last in %" PRIu64 " of the %" PRIu64 " operations in which any "
		   "rank was late (of %" PRIu64 " in all).", c->last, c->judged, c->ops);
	add_others(text, c);
	add_grade(text, c);
	add_moved(text, c);
	late_add_why(text, c);
}

static void say_intermittent(struct phrase *text, const struct late_case *c)
{
	late_add_rank(text, c);
	phrase_add(text, " comes very late");
	add_scope(text, c);
	phrase_add(text, " to %.1f %% of %s, ", percent(c->times, c->ops), c->func);
	add_cost(text, c, "the others ");
	phrase_add(text, ". It was late in about %" PRIu64 " of %" PRIu64 " operations, by ",
		   c->times, c->ops);
	phrase_add_duration(text, c->late_ns);
	phrase_add(text, " on average.");
	add_others(text, c);
	add_grade(text, c);
	add_moved(text, c);
	phrase_add(text, " Something stops it now and then: garbage collection, input, "
		   "another process, clock throttling.");
	late_add_why(text, c);
}

static void say_elsewhere(struct phrase *text, const struct late_case *c)
{
	phrase_add(text, "the ranks of ");
	whom_add_comm(text, c->comm_name, c->comm_id);
	phrase_add(text, " on this node (%" PRIu32 " of %" PRId32 ") wait for a rank on another "
		   "node in %.0f %% of %s, ", c->seen, c->nranks, percent(c->last, c->judged),
		   c->func);
	add_cost(text, c, "them ");
	phrase_add(text, ". ncclinsp -H HOSTS diagnose names the late rank (on its node, "
		   "remote_wait_ns in /v1/comms is near zero).");
}

static void say_slower(struct phrase *text, const struct late_case *c)
{
	phrase_add(text, "%s on ", c->func);
	whom_add_comm(text, c->comm_name, c->comm_id);
	phrase_add(text, " takes ");
	phrase_add_duration(text, c->late_ns);
	phrase_add(text, " longer than it used to, in %.0f %% of operations, ",
		   percent(c->last, c->judged));
	add_cost(text, c, "");
	if ((int32_t)c->seen < c->nranks)
		phrase_add(text, ". All ranks on this node wait equally long: either the network "
			   "is slower, or a rank on another node is late each time. If "
			   "remote_wait_ns in /v1/comms of some node does not grow, that node has "
			   "the late rank; else the network is slower.");
	else
		phrase_add(text, ". All its ranks are on this node, and the last one takes longer "
			   "as well: the transfer itself is slower. See ncclinsp peers, and what "
			   "else uses the links.");
}

static void (*const sayings[VERDICT_END])(struct phrase *text, const struct late_case *c) = {
	[VERDICT_STEADY] = say_steady,
	[VERDICT_INTERMITTENT] = say_intermittent,
	[VERDICT_ELSEWHERE] = say_elsewhere,
	[VERDICT_SLOWER] = say_slower,
};

void late_say(const struct late_case *c, char *text, size_t size)
{
	struct phrase phrase;

	phrase_start(&phrase, text, size);
	if (c->stage)
		say_stage(&phrase, c);
	else
		sayings[c->verdict](&phrase, c);
}
