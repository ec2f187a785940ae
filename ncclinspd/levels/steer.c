/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders, costs and the control file are modules of their own: they are brought together
 * here, once a second and when something changes.
 */
#include "ncclinspd/levels/steer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/base/finding.h"
#include "ncclinspd/base/jobs.h"
#include "reader/base/accounts.h"
#include "reader/base/job.h"
#include "reader/base/pool.h"
#include "util/cleanup.h"
#include "util/log.h"

#define PROCESSES 256
#define COST_LOOKS 10	/* looks from one step of a cost to the next */
#define PLAN_S UINT64_C(4)	/* all nodes plan at multiples of so many seconds */
#define ANEW_S UINT64_C(64)	/* seconds at whose multiples no plan before counts */
#define SECOND_NS UINT64_C(1000000000)

struct steer {
	struct levels *levels;
	struct control control;
	struct cost *costs;	/* PROCESSES of them */
	uint32_t looks;
	uint32_t budget_ppm;
	uint32_t cost_ns;	/* the node's; 0: estimated */
	uint64_t clock_ticks[NCI_CLOCK_MONOTONIC + 1];	/* ticks of two looks; 0: not measured */
	uint64_t planned_real_ns;	/* 0: never */
	struct control_node node;
};

static void steer_take_config(struct steer *st, const struct steer_config *config)
{
	st->budget_ppm = config->budget_ppm ? config->budget_ppm : BURST_BUDGET_PPM;
	st->cost_ns = config->kernel_cost_ns;
	st->node.mode = config->mode;
	st->node.mode_s = config->mode_s;
}

CLEANUP_DEFINE(steer_free, struct steer)

int steer_new(struct steer **sp, const struct steer_config *config, uint64_t now_ns)
{
	struct levels_config levels = config->levels;
	CLEANUP(steer_freep) struct steer *st = calloc(1, sizeof(*st));
	int r;

	if (!st)
		return -ENOMEM;
	st->control.fd = -1;
	st->costs = calloc(PROCESSES, sizeof(*st->costs));
	if (!st->costs)
		return -ENOMEM;
	levels.processes = PROCESSES;
	r = levels_new(&st->levels, &levels);
	if (r < 0)
		return r;
	steer_take_config(st, config);
	control_open(&st->control, config->control);
	control_restore(&st->control, levels_wishes(st->levels), now_ns);
	owners_restore(levels_owners(st->levels), config->control, st->control.boot_id, now_ns);
	*sp = DISOWN(st);
	return 0;
}

void steer_free(struct steer *st)
{
	if (!st)
		return;
	control_close(&st->control);
	levels_free(st->levels);
	free(st->costs);
	free(st);
}

void steer_set(struct steer *st, const struct steer_config *config)
{
	levels_set(st->levels, &config->levels);
	steer_take_config(st, config);
}

uint32_t steer_budget_ppm(const struct steer *st)
{
	return st->budget_ppm;
}

struct burst_plan steer_plan(const struct steer *st)
{
	return st->node.plan;
}

/* ---- what it costs ------------------------------------------------------------- */

static struct cost *cost_find(const struct steer *st, uint64_t process_id)
{
	for (uint32_t i = 0; i < PROCESSES; i++)
		if (st->costs[i].process_id == process_id)
			return &st->costs[i];
	return NULL;
}

const struct cost *steer_cost(const struct steer *st, const struct process *p)
{
	return cost_find(st, p->id);
}

void steer_op(struct steer *st, const struct op *op)
{
	struct cost *cost = cost_find(st, op->process_id);

	if (cost)
		kernelcost_op(&cost->kernels, op);
}

static uint64_t cost_job(const struct process *p)
{
	const char *id = job_id(p);
	char text[WISH_JOB_BYTES + sizeof(p->command)] = "";

	/* A launcher that gives no id: the command, which all ranks of a job share. */
	strncpy(text, id ? id : p->command, sizeof(text) - 8);
	return index_hash(0, text, sizeof(text) / 8 * 8);
}

static bool cost_is_of_job(const struct cost *cost, const struct cost *job)
{
	return cost->process_id && cost->job == job->job && cost->uid == job->uid;
}

/* NULL: more than there is room for; levels_stats() counts them. */
static struct cost *process_cost(struct steer *st, const struct process *p)
{
	struct cost *cost = cost_find(st, p->id);
	uint32_t own = 0, left = 0;

	if (cost)
		return cost;
	for (uint32_t i = 0; i < PROCESSES; i++) {
		left += !st->costs[i].process_id;
		own += st->costs[i].process_id && st->costs[i].account == p->account;
	}
	if (!accounts_leave_room(own, left))
		return NULL;
	cost = cost_find(st, 0);
	*cost = (struct cost){ .job = cost_job(p), .uid = p->uid, .account = p->account,
			       .used_ns = st->cost_ns ? st->cost_ns : KERNELCOST_DEFAULT_NS };
	for (uint32_t i = 0; i < PROCESSES; i++)
		if (cost_is_of_job(&st->costs[i], cost))
			cost->used_ns = st->costs[i].used_ns;
	cost->process_id = p->id;
	return cost;
}

static void costs_forget(struct steer *st, struct process *const *list, size_t n)
{
	for (uint32_t i = 0; i < PROCESSES; i++)
		if (st->costs[i].process_id && !jobs_process(list, n, st->costs[i].process_id))
			st->costs[i].process_id = 0;
}

static void cost_tell_step(const struct steer *st, const struct process *p, double budget)
{
	const struct thrift *t = levels_thrift(st->levels, p);

	if (t->raised_ns)
		log_say(LOG_INFO, "level restored, callbacks cost less than half of their budget "
			"pid=%d budget=%.3g%%", (int)p->pid, budget * 100);
	else
		log_say(LOG_WARN, "level lowered pid=%d to=%s callbacks=%.3g%% budget=%.3g%%",
			(int)p->pid, t->cap == NCI_LEVEL_OPS ? "ops" : "kernel", t->cost * 100,
			budget * 100);
}

static uint64_t process_clock_ticks(struct steer *st, const struct process *p)
{
	uint64_t *ticks = &st->clock_ticks[p->clock.kind];

	if (!*ticks)
		*ticks = overhead_clock_ticks(p->clock.kind);
	return *ticks;
}

static void steer_look_at(struct steer *st, const struct process *p, uint64_t now_ns)
{
	struct cost *cost = process_cost(st, p);
	struct thrift_look look = { .level = p->level, .budget = st->budget_ppm * 1e-6 };
	struct overhead_figures figures;

	if (!cost)
		return;
	overhead_see(&cost->overhead, p, process_clock_ticks(st, p), now_ns);
	overhead_figures(&cost->overhead, 1, &figures);
	look.share = overhead_share(&figures);
	if (levels_look(st->levels, p, look, now_ns))
		cost_tell_step(st, p, look.budget);
}

bool steer_kernel_cost(const struct cost *cost, double *ns, double *error_ns)
{
	struct kernelcost_estimate estimate;
	struct overhead_figures figures;
	double group_ns;

	kernelcost_estimate(&cost->kernels, &estimate);
	overhead_figures(&cost->overhead, OVERHEAD_SAMPLES - 1, &figures);
	if (!estimate.known || !figures.group_ns)
		return false;
	/* The time of a group outside bursts; the window has some of both. */
	group_ns = (double)figures.group_ns / (1 + (figures.duty > 0 ? figures.duty : 0) *
					       estimate.slower);
	*ns = estimate.slower * group_ns;
	*error_ns = estimate.error * group_ns;
	return true;
}

/* The same step for all ranks of a job here, by the mean of what they see. */
static void job_step(struct steer *st, const struct cost *first)
{
	double sum_ns = 0, sum_error_ns = 0, ns, error_ns;
	uint32_t n = 0, used_ns = first->used_ns;

	for (uint32_t i = 0; i < PROCESSES; i++) {
		struct cost *cost = &st->costs[i];

		if (!cost_is_of_job(cost, first) || !steer_kernel_cost(cost, &ns, &error_ns))
			continue;
		n++;
		sum_ns += ns;
		sum_error_ns += error_ns;
	}
	if (n)
		used_ns = kernelcost_step(used_ns, sum_ns / n, sum_error_ns / n);
	for (uint32_t i = 0; i < PROCESSES; i++)
		if (cost_is_of_job(&st->costs[i], first))
			st->costs[i].used_ns = used_ns;
}

static bool cost_is_first_of_job(const struct steer *st, uint32_t at)
{
	for (uint32_t i = 0; i < at; i++)
		if (cost_is_of_job(&st->costs[i], &st->costs[at]))
			return false;
	return st->costs[at].process_id;
}

static void costs_step(struct steer *st)
{
	for (uint32_t i = 0; i < PROCESSES && !st->cost_ns; i++)
		if (cost_is_first_of_job(st, i))
			job_step(st, &st->costs[i]);
}

/* ---- bursts ---------------------------------------------------------------------- */

/* One plan for the node, by the process to which it would cost most. */
static void bursts_plan(struct steer *st, struct process *const *list, size_t n, uint64_t real_ns)
{
	const struct burst_plan none = { 0 };
	uint64_t last_ns = st->planned_real_ns;
	double most = 0, rate = 0;
	uint32_t cost_ns = 0;
	bool anew;

	if (last_ns && real_ns / (PLAN_S * SECOND_NS) == last_ns / (PLAN_S * SECOND_NS))
		return;
	for (size_t i = 0; i < n; i++) {
		const struct cost *cost = cost_find(st, list[i]->id);
		struct overhead_figures f;

		if (!cost || list[i]->state != PROCESS_LIVE ||
		    list[i]->steering.mode != NCI_MODE_BURST)
			continue;
		overhead_figures(&cost->overhead, OVERHEAD_SAMPLES - 1, &f);
		if (f.groups_per_s * cost->used_ns <= most)
			continue;
		most = f.groups_per_s * cost->used_ns;
		rate = f.groups_per_s;
		cost_ns = cost->used_ns;
	}
	anew = real_ns / (ANEW_S * SECOND_NS) != last_ns / (ANEW_S * SECOND_NS);
	st->node.plan = burst_choose(anew ? none : st->node.plan, (uint64_t)(rate * 1000),
				     cost_ns, st->budget_ppm);
	st->planned_real_ns = real_ns;
}

/* ---- what happens ---------------------------------------------------------------- */

int steer_changed(struct steer *st, struct process *const *list, size_t n, uint64_t now_ns)
{
	struct nci_control_entry entry[NCI_CONTROL_ENTRIES];
	uint32_t count;

	levels_tidy(st->levels, list, n, now_ns);
	count = levels_entries(st->levels, list, n, now_ns, entry);
	if (st->control.fd >= 0)
		owners_save(levels_owners(st->levels), st->control.path, st->control.boot_id);
	control_publish(&st->control, entry, count, &st->node, now_ns);
	control_save(&st->control, levels_wishes(st->levels));
	return st->control.error;
}

void steer_look(struct steer *st, struct process *const *list, size_t n, uint64_t now_ns,
		uint64_t real_ns)
{
	costs_forget(st, list, n);
	for (size_t i = 0; i < n; i++)
		if (list[i]->state == PROCESS_LIVE)
			steer_look_at(st, list[i], now_ns);
	if (st->looks++ % COST_LOOKS == 0)
		costs_step(st);
	bursts_plan(st, list, n, real_ns);
	steer_changed(st, list, n, now_ns);
}

static bool finding_concerns(const struct finding *f, const struct process *p)
{
	if (p->state != PROCESS_LIVE || p->uid != f->uid)
		return false;
	for (uint32_t i = 0; i < p->ncomms; i++) {
		const struct comm *c = &p->comms[i];

		if (c->ready && c->has_id == f->has_comm_id && !c->finalize_ticks &&
		    (!c->has_id || c->id == f->comm_id))
			return true;
	}
	return false;
}

static bool finding_wants_detail(const struct finding *f)
{
	return (f->kind == FINDING_STRAGGLER || f->kind == FINDING_SLOW_PEER) &&
	       f->grade == FINDING_FOUND && !f->life.told && !f->life.until_ns;
}

/* All ranks, not only the one that is named: a late one shows beside the others. */
uint32_t steer_finding(struct steer *st, const struct finding *f, struct process *const *list,
		       size_t n, uint64_t now_ns)
{
	uint32_t raised = 0;

	if (!finding_wants_detail(f))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (finding_concerns(f, list[i]))
			raised += levels_detail(st->levels, list[i], UINT64_MAX, now_ns);
	if (!raised)
		return 0;
	log_say(LOG_INFO, "every operation is timed for 10 s processes=%u finding=%llu kind=%s",
		raised, (unsigned long long)f->life.id, finding_kind_name(f->kind));
	steer_changed(st, list, n, now_ns);
	return raised;
}

uint32_t steer_detail(struct steer *st, const struct wish *whom, struct process *const *list,
		      size_t n, uint64_t now_ns)
{
	uint32_t raised = 0;

	for (size_t i = 0; i < n; i++)
		if (list[i]->state == PROCESS_LIVE && wish_covers(whom, list[i]))
			raised += levels_detail(st->levels, list[i], whom->until_ns, now_ns);
	if (raised)
		log_say(LOG_INFO, "every operation is timed for up to 10 s, another node asked for "
			"it processes=%u comm=0x%016llx uid=%u", raised,
			(unsigned long long)whom->id, whom->uid);
	return raised;
}

uint64_t steer_next_end(const struct steer *st, uint64_t now_ns)
{
	return levels_next_end(st->levels, now_ns);
}

struct levels *steer_levels(struct steer *st)
{
	return st->levels;
}

const struct control *steer_control(const struct steer *st)
{
	return &st->control;
}
