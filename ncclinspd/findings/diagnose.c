/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of findings and the table of detectors: ids, lifetimes and room are dealt with
 * here once, so that a detector only reports what it sees.
 */
#include "ncclinspd/findings/diagnose.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/hang.h"
#include "ncclinspd/base/jobs.h"
#include "reader/base/accounts.h"
#include "reader/base/job.h"
#include "util/cleanup.h"
#include "util/list.h"

#define SECOND_NS	UINT64_C(1000000000)
#define STALL_MIN_NS	(10 * SECOND_NS)
#define STALL_MAX_NS	(60 * SECOND_NS)
#define KEEP_NS		(3600 * SECOND_NS)
#define FINDINGS	128
#define LEAST_MISSED	2	/* looks: on a busy machine one may be later than any hold_ns */

static const struct detector *const detectors[] = {
	&finding_died,
	&finding_loss,
	&finding_proxy_starved,
	&finding_slow_peer,
	&finding_regression,
	&finding_slow_compute,
	&finding_stall,
	&finding_straggler,
	&finding_unwritten,
	&finding_unwatched,
};

struct diagnose {
	struct diagnose_config config;
	struct diagnose_source source;
	void *state[ARRAY_LEN(detectors)];
	uint32_t op_taker[ARRAY_LEN(detectors)];	/* detectors that take operations in */
	uint32_t nop_takers;
	struct finding *findings;	/* id 0: unused */
	uint64_t last_id;
	uint64_t refused;
	uint32_t left_out;
};

/* ---- the store ----------------------------------------------------------- */

static void finding_tell(const struct diagnose *dg, struct finding *f, uint64_t now_ns)
{
	bool found = f->grade == FINDING_FOUND;

	if (dg->source.changed)
		dg->source.changed(dg->source.arg, f, now_ns);
	f->life.told |= found;
	f->life.alarmed |= found && f->severity == FINDING_CRITICAL;
}

static bool finding_is_active(const struct finding *f)
{
	return f->life.id && !f->life.until_ns;
}

static struct finding *finding_find(struct diagnose *dg, const struct detector *detector,
				    uint64_t key)
{
	for (uint32_t i = 0; i < dg->config.findings; i++) {
		struct finding *f = &dg->findings[i];

		if (finding_is_active(f) && f->life.detector == detector && f->life.key == key)
			return f;
	}
	return NULL;
}

/* Is its process alive, else a process with its communicator? */
static bool finding_is_of_living(const struct diagnose *dg, const struct finding *f)
{
	struct process *const *list;
	size_t n = dg->source.processes(dg->source.arg, &list);

	for (size_t i = 0; i < n; i++)
		if (list[i]->state == PROCESS_LIVE &&
		    (f->process_id ? list[i]->id == f->process_id :
		     list[i]->uid == f->uid && jobs_has_open(list[i], f->comm_id)))
			return true;
	return false;
}

/* It is over; one that was only suspected leaves nothing. */
static void finding_end(struct diagnose *dg, struct finding *f, uint64_t until_ns, uint64_t now_ns)
{
	f->life.until_ns = until_ns;
	finding_tell(dg, f, now_ns);
	if (f->grade == FINDING_SUSPECTED)
		f->life = (struct finding_life){ 0 };
}

static uid_t account_of(const struct diagnose *dg, const struct finding *f)
{
	return accounts_of(dg->config.accounts, f->uid);
}

/* Does the first make room before the second?  A later suspicion, then one of whoever has most. */
static bool finding_goes_before(const struct diagnose *dg, struct accounts_tally *of,
				const struct finding *a, const struct finding *b)
{
	uint32_t of_a = *accounts_count(of, account_of(dg, a));
	uint32_t of_b = *accounts_count(of, account_of(dg, b));

	if (a->grade != b->grade)
		return a->grade > b->grade;
	if (a->grade == FINDING_SUSPECTED)
		return a->life.id > b->life.id;
	return of_a != of_b ? of_a > of_b : a->life.until_ns < b->life.until_ns;
}

/*
 * An unused place; for what is found else that of the newest suspicion, else that of whatever
 * ended longest ago of the user who has most; NULL: all are active.
 */
static struct finding *findings_make_room(struct diagnose *dg, enum finding_grade grade,
					  uint64_t now_ns)
{
	struct accounts_tally of = { 0 };
	struct finding *first = NULL;

	for (uint32_t i = 0; i < dg->config.findings; i++) {
		if (!dg->findings[i].life.id)
			return &dg->findings[i];
		++*accounts_count(&of, account_of(dg, &dg->findings[i]));
	}
	for (uint32_t i = 0; grade == FINDING_FOUND && i < dg->config.findings; i++) {
		struct finding *f = &dg->findings[i];

		if ((f->grade > grade || f->life.until_ns) &&
		    (!first || finding_goes_before(dg, &of, f, first)))
			first = f;
	}
	if (first && first->grade == FINDING_SUSPECTED)
		finding_end(dg, first, now_ns, now_ns);
	return first;
}

/* There is no room: the newest of its grade of whoever has more than this user; or NULL. */
static struct finding *take_from_others(struct diagnose *dg, const struct finding *news,
					uint64_t now_ns)
{
	struct accounts_tally of = { 0 };	/* findings of that grade */
	struct finding *taken = NULL;
	uint32_t most;

	for (uint32_t i = 0; i < dg->config.findings; i++)
		if (finding_is_active(&dg->findings[i]) && dg->findings[i].grade == news->grade)
			++*accounts_count(&of, account_of(dg, &dg->findings[i]));
	most = *accounts_count(&of, account_of(dg, news)) + 1;
	for (uint32_t i = 0; i < dg->config.findings; i++) {
		struct finding *f = &dg->findings[i];
		uint32_t n = *accounts_count(&of, account_of(dg, f));

		if (!finding_is_active(f) || f->grade != news->grade || n < most ||
		    (n == most && (!taken || taken->life.id > f->life.id)))
			continue;
		most = n;
		taken = f;
	}
	if (!taken)
		return NULL;
	dg->refused += news->grade == FINDING_FOUND;
	finding_end(dg, taken, now_ns, now_ns);
	return taken;
}

struct whom diagnose_whom(const struct diagnose *dg, const struct process *p,
			  const struct comm *c)
{
	return (struct whom){
		.rank = c ? c->rank : UNKNOWN_I32,
		.world_rank = job_world_rank(p, c), .pid = p->pid, .host = dg->source.host,
		.pci_bus_id = c && c->has_gpu ? c->pci_bus_id : NULL,
		.gpu_index = c && c->has_gpu ? c->gpu_index : UNKNOWN_I32,
	};
}

static void whom_take_gpu(struct finding_whom *w, const struct comm *c)
{
	snprintf(w->pci_bus_id, sizeof(w->pci_bus_id), "%s", c->has_gpu ? c->pci_bus_id : "");
	w->gpu_index = c->has_gpu ? c->gpu_index : UNKNOWN_I32;
}

/* A rank of this node tells who it is, and often also who those of other nodes are. */
static void finding_take_whom(struct finding *f, const struct process *p, const struct comm *c)
{
	for (uint32_t i = 0; i < f->nranks; i++) {
		struct finding_whom *w = &f->life.whom[i];

		if (w->rank == c->rank) {
			w->pid = p->pid;
			whom_take_gpu(w, c);
		}
		if (w->rank == c->rank || w->world_rank == UNKNOWN_I32)
			w->world_rank = job_world_rank_of(p, c, w->rank);
	}
}

/* The subject alone; without a communicator's id its ranks are that process's, too. */
static void finding_take_process(struct finding *f, const struct process *p)
{
	const struct comm *c = p->ncomms && !p->several_gpus ? &p->comms[0] : NULL;

	f->life.pid = p->pid;
	for (uint32_t i = 0; i < f->nranks && !f->has_comm_id; i++) {
		struct finding_whom *w = &f->life.whom[i];

		w->pid = p->pid;
		w->world_rank = job_world_rank(p, NULL);
		if (c && c->has_gpu)
			whom_take_gpu(w, c);
	}
}

static void finding_take_job(struct finding *f, const struct process *p)
{
	if (!*f->life.job)
		snprintf(f->life.job, sizeof(f->life.job), "%s", job_id(p) ?: "");
}

/* Ranks, and the job, as they come to be named: processes may be forgotten before a finding is. */
static void finding_name(const struct diagnose *dg, struct finding *f)
{
	struct process *const *list;
	size_t n = dg->source.processes(dg->source.arg, &list);

	for (uint32_t i = 0; i < f->nranks; i++)
		f->life.whom[i] = (struct finding_whom){ .rank = f->ranks[i], .pid = UNKNOWN_I32,
							 .world_rank = UNKNOWN_I32,
							 .gpu_index = UNKNOWN_I32 };
	for (size_t i = 0; i < n; i++) {
		if (f->process_id && list[i]->id == f->process_id) {
			finding_take_process(f, list[i]);
			finding_take_job(f, list[i]);
		}
		for (uint32_t k = 0; list[i]->uid == f->uid && k < list[i]->ncomms; k++) {
			const struct comm *c = &list[i]->comms[k];

			if (!f->has_comm_id || !c->has_id || c->id != f->comm_id)
				continue;
			finding_take_whom(f, list[i], c);
			finding_take_job(f, list[i]);
		}
	}
}

static void finding_refresh(struct diagnose *dg, struct finding *f, const struct finding *news,
			    uint64_t now_ns)
{
	bool changed = f->kind != news->kind || f->verdict != news->verdict ||
		       f->severity != news->severity || f->nranks != news->nranks ||
		       f->grade != news->grade;
	struct finding_life life = f->life;
	uint64_t since_ns = f->since_ns;
	bool same = f->nranks == news->nranks &&
		    !memcmp(f->ranks, news->ranks, f->nranks * sizeof(f->ranks[0]));

	*f = *news;
	f->life = life;
	if (!same)
		finding_name(dg, f);
	f->life.seen_ns = now_ns;
	f->life.missed = 0;
	if (!life.found_ns && f->grade == FINDING_FOUND)
		f->life.found_ns = now_ns;
	if (since_ns < f->since_ns)
		f->since_ns = since_ns;
	if (changed)
		finding_tell(dg, f, now_ns);
}

void diagnose_report(struct diagnose *dg, const struct detector *detector, uint64_t key,
		     const struct finding *news, uint64_t now_ns)
{
	struct finding *f = finding_find(dg, detector, key);

	if (detector->of_living && !finding_is_of_living(dg, news))
		return;
	if (f && news->grade > f->grade)
		return;		/* a found one is not taken back: it ends first */
	if (f) {
		finding_refresh(dg, f, news, now_ns);
		return;
	}
	f = findings_make_room(dg, news->grade, now_ns);
	if (!f)
		f = take_from_others(dg, news, now_ns);
	if (!f) {
		dg->refused += news->grade == FINDING_FOUND;
		return;
	}
	*f = *news;
	f->life = (struct finding_life){
		.id = ++dg->last_id,
		.detector = detector,
		.key = key,
		.found_ns = news->grade == FINDING_FOUND ? now_ns : 0,
		.seen_ns = now_ns,
		.pid = UNKNOWN_I32,
	};
	finding_name(dg, f);
	finding_tell(dg, f, now_ns);
}

bool diagnose_renew(struct diagnose *dg, const struct detector *detector, uint64_t key,
		    uint64_t now_ns)
{
	struct finding *f = finding_find(dg, detector, key);

	if (!f)
		return false;
	f->life.seen_ns = now_ns;
	f->life.missed = 0;
	return true;
}

static bool finding_is_over(const struct diagnose *dg, struct finding *f, uint64_t now_ns)
{
	bool missed = f->life.seen_ns != now_ns && ++f->life.missed >= LEAST_MISSED;

	f->life.with_job = f->life.detector->of_living && !finding_is_of_living(dg, f);
	return f->life.with_job ||
	       (missed && now_ns - f->life.seen_ns > f->life.detector->hold_ns);
}

static void end_unseen(struct diagnose *dg, uint64_t now_ns)
{
	for (uint32_t i = 0; i < dg->config.findings; i++) {
		struct finding *f = &dg->findings[i];

		if (finding_is_active(f) && finding_is_over(dg, f, now_ns)) {
			uint64_t seen_ns = f->life.seen_ns;

			finding_end(dg, f, seen_ns > f->since_ns ? seen_ns : f->since_ns, now_ns);
		} else if (f->life.until_ns && now_ns - f->life.until_ns > dg->config.keep_ns) {
			f->life.id = 0;
			f->life.until_ns = 0;
		}
	}
}

void diagnose_visit(const struct diagnose *dg, diagnose_visit_fn *visit, void *arg)
{
	uint64_t below = UINT64_MAX;

	for (;;) {
		const struct finding *next = NULL;

		for (uint32_t i = 0; i < dg->config.findings; i++) {
			const struct finding *f = &dg->findings[i];

			if (f->life.id && f->life.id < below &&
			    (!next || f->life.id > next->life.id))
				next = f;
		}
		if (!next || !visit(next, arg))
			return;
		below = next->life.id;
	}
}

const struct finding *diagnose_gather(struct diagnose *dg, uint64_t id,
				      const char lines[FINDING_GATHERED][FINDING_LINE],
				      uint64_t now_ns)
{
	for (uint32_t i = 0; id && i < dg->config.findings; i++) {
		struct finding *f = &dg->findings[i];

		if (f->life.id != id)
			continue;
		memcpy(f->life.gathered, lines, sizeof(f->life.gathered));
		if (dg->source.gathered)
			dg->source.gathered(dg->source.arg, f, now_ns);
		return f;
	}
	return NULL;
}

uint64_t diagnose_refused(const struct diagnose *dg)
{
	return dg->refused;
}

uint32_t diagnose_left_out(const struct diagnose *dg)
{
	return dg->left_out;
}

void diagnose_leave_out(struct diagnose *dg, uint32_t comms)
{
	dg->left_out = comms;
}

/* ---- detectors ------------------------------------------------------------ */

void *diagnose_state(const struct diagnose *dg, const struct detector *detector)
{
	for (size_t i = 0; i < ARRAY_LEN(detectors); i++)
		if (detectors[i] == detector)
			return dg->state[i];
	return NULL;
}

void diagnose_ops(struct diagnose *dg, const struct op *const *ops, uint32_t n, uint64_t now_ns)
{
	for (uint32_t i = 0; i < dg->nop_takers; i++) {
		uint32_t taker = dg->op_taker[i];

		detectors[taker]->ops(dg, dg->state[taker], ops, n, now_ns);
	}
}

void diagnose_ended(struct diagnose *dg, struct process *p, uint64_t now_ns)
{
	for (size_t i = 0; i < ARRAY_LEN(detectors); i++)
		if (detectors[i]->ended)
			detectors[i]->ended(dg, dg->state[i], p, now_ns);
}

void diagnose_forgotten(struct diagnose *dg, const struct process *p)
{
	for (size_t i = 0; i < ARRAY_LEN(detectors); i++)
		if (detectors[i]->forgotten)
			detectors[i]->forgotten(dg, dg->state[i], p);
}

void diagnose_look(struct diagnose *dg, uint64_t now_ns)
{
	for (size_t i = 0; i < ARRAY_LEN(detectors); i++)
		if (detectors[i]->look)
			detectors[i]->look(dg, dg->state[i], now_ns);
	end_unseen(dg, now_ns);
}

void diagnose_meanwhile(const struct diagnose *dg)
{
	if (dg->source.meanwhile)
		dg->source.meanwhile(dg->source.arg);
}

const struct diagnose_config *diagnose_settings(const struct diagnose *dg)
{
	return &dg->config;
}

const struct diagnose_source *diagnose_source(const struct diagnose *dg)
{
	return &dg->source;
}

void diagnose_set_times(struct diagnose *dg, const struct diagnose_times *times)
{
	dg->config.times = (struct diagnose_times){
		.stall_min_ns = times->stall_min_ns ?: STALL_MIN_NS,
		.stall_max_ns = times->stall_max_ns ?: STALL_MAX_NS,
		.not_joined_critical_ns = times->not_joined_critical_ns ?: HANG_NOT_JOINED_NS,
	};
}

/* ---- life ----------------------------------------------------------------- */

CLEANUP_DEFINE(diagnose_free, struct diagnose)

static int start_detectors(struct diagnose *dg)
{
	for (size_t i = 0; i < ARRAY_LEN(detectors); i++) {
		int r = 0;

		if (detectors[i]->ops)
			*array_must_add(dg->op_taker, &dg->nop_takers) = (uint32_t)i;
		dg->state[i] = calloc(1, detectors[i]->state_bytes + 1);
		if (!dg->state[i])
			return -ENOMEM;
		if (detectors[i]->init)
			r = detectors[i]->init(dg, dg->state[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

int diagnose_new(struct diagnose **dgp, const struct diagnose_config *config,
		 const struct diagnose_source *source)
{
	CLEANUP(diagnose_freep) struct diagnose *dg = calloc(1, sizeof(*dg));
	int r;

	if (!dg)
		return -ENOMEM;
	dg->config = *config;
	dg->source = *source;
	diagnose_set_times(dg, &config->times);
	if (!dg->config.keep_ns)
		dg->config.keep_ns = KEEP_NS;
	if (!dg->config.findings)
		dg->config.findings = FINDINGS;
	dg->findings = calloc(dg->config.findings, sizeof(*dg->findings));
	if (!dg->findings)
		return -ENOMEM;
	r = start_detectors(dg);
	if (r < 0)
		return r;
	*dgp = DISOWN(dg);
	return 0;
}

void diagnose_free(struct diagnose *dg)
{
	if (!dg)
		return;
	for (size_t i = 0; i < ARRAY_LEN(detectors); i++) {
		if (dg->state[i] && detectors[i]->deinit)
			detectors[i]->deinit(dg->state[i]);
		free(dg->state[i]);
	}
	free(dg->findings);
	free(dg);
}
