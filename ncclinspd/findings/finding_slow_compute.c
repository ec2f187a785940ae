/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterations of which all ranks compute longer.  The largest communicator of a job gives its
 * processes' iterations to judge/ once in 5 s, which tells whether they have changed.
 */
#include <math.h>
#include <string.h>

#include "judge/slow_compute.h"
#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/findings/stall.h"
#include "reader/base/accounts.h"
#include "reader/base/job.h"
#include "tables/keyed.h"
#include "rows/rows.h"
#include "util/list.h"

#define HOLD_NS		(6 * COMPUTE_WINDOW_NS)
#define WEEK_WINDOWS	120960.0
#define USUAL_NS	(720 * COMPUTE_WINDOW_NS)	/* then it is the new way of things */
#define JOBS		128

struct compute_job_key {
	uint64_t comm_id, uid;
};

/* The largest communicator of a job's processes. */
struct compute_job {
	struct keyed_head head;
	struct compute_job_key key;
	struct compute_series series;
	char comm_name[97];
	struct compute_row rows[COMPUTE_RANKS];	/* rows of this look */
	uint32_t nrows;
};

struct computes {
	uint64_t window;
	struct keyed jobs;
};

/* False: its iteration is not known. */
static bool compute_row_of(const struct diagnose *dg, uint64_t process_id, uint64_t now_ns,
			   struct compute_row *row)
{
	struct period_step step;

	struct period_quartiles steps = stall_steps_since(dg, process_id,
							  now_ns - COMPUTE_WINDOW_NS);

	if (!steps.lower_ns || !stall_step(dg, process_id, now_ns, &step))
		return false;
	*row = (struct compute_row){
		.step_ns = steps.lower_ns, .most_ns = steps.upper_ns, .kind = step.kind,
		.inside_ns = step.inside_ns < 0 ? UNKNOWN_U64 :
			     (uint64_t)fmin(step.inside_ns, (double)steps.lower_ns),
	};
	return true;
}

static void compute_take_process(struct diagnose *dg, struct computes *cs,
				 const struct process *p, uint64_t now_ns)
{
	const struct comm *comm = job_largest_comm(p);
	struct compute_job_key key = { .uid = p->uid };
	struct compute_job *job;
	struct compute_row row, *place;
	bool made;

	if (!comm || p->state != PROCESS_LIVE || !compute_row_of(dg, p->id, now_ns, &row))
		return;
	key.comm_id = comm->id;
	job = keyed_use(&cs->jobs, &key, accounts_of(diagnose_settings(dg)->accounts, p->uid),
			&made);
	if (!job)
		return;
	memcpy(job->comm_name, comm->name, sizeof(job->comm_name));
	place = array_add(job->rows, &job->nrows);
	if (place)
		*place = row;
}

#include "schema/slow_compute_evidence.h"

static void compute_look_at(struct diagnose *dg, struct compute_job *job, double h,
			    uint64_t now_ns)
{
	struct compute_case c = { .comm_name = job->comm_name };
	struct finding f = {
		.kind = FINDING_SLOW_COMPUTE, .severity = FINDING_INFO, .uid = (uid_t)job->key.uid,
		.has_comm_id = true, .comm_id = job->key.comm_id, .peer = UNKNOWN_I32,
	};

	if (!compute_judge(&job->series, h, job->rows, job->nrows, now_ns, &c))
		return;
	if (now_ns - c.since_ns > USUAL_NS)
		compute_accept(&job->series);
	f.since_ns = c.since_ns;
	memcpy(f.comm_name, job->comm_name, sizeof(f.comm_name));
	compute_say(&c, now_ns, f.text, sizeof(f.text));
	finding_set_evidence(&f, slow_compute_evidence_fields, &c);
	diagnose_report(dg, &finding_slow_compute, index_mix(job->key.comm_id, job->key.uid), &f,
			now_ns);
}

static void compute_look(struct diagnose *dg, void *state, uint64_t now_ns)
{
	struct computes *cs = state;
	struct process *const *list;
	struct compute_job *job = NULL;
	uint32_t jobs = 1;
	double h;
	size_t n;

	if (now_ns / COMPUTE_WINDOW_NS == cs->window)
		return;
	cs->window = now_ns / COMPUTE_WINDOW_NS;
	while ((job = keyed_next(&cs->jobs, job))) {
		job->nrows = 0;
		jobs++;
	}
	n = diagnose_source(dg)->processes(diagnose_source(dg)->arg, &list);
	for (size_t i = 0; i < n; i++)
		compute_take_process(dg, cs, list[i], now_ns);
	h = cusum_limit(WEEK_WINDOWS * jobs);
	while ((job = keyed_next(&cs->jobs, job)))
		if (job->nrows)
			compute_look_at(dg, job, h, now_ns);
}

static void compute_deinit(void *state)
{
	keyed_deinit(&((struct computes *)state)->jobs);
}

static int compute_init(struct diagnose *dg, void *state)
{
	return keyed_init(&((struct computes *)state)->jobs,
			  &KEYED_CONFIG(struct compute_job, key, JOBS));
}

const struct detector finding_slow_compute = {
	.name = "slow_compute",
	.state_bytes = sizeof(struct computes),
	.hold_ns = HOLD_NS,
	.of_living = true,
	.init = compute_init,
	.deinit = compute_deinit,
	.look = compute_look,
};
