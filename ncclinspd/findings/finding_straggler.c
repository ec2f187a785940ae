/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that make the others wait: what the statistics of straggler.c say, as findings. */
#include <string.h>

#include "ncclinspd/compare/straggler.h"
#include "ncclinspd/base/jobs.h"
#include "ncclinspd/findings/around.h"
#include "ncclinspd/findings/cpuwait.h"
#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/findings/resources.h"
#include "judge/late.h"
#include "reader/base/accounts.h"
#include "util/words.h"

#define SECOND_NS	UINT64_C(1000000000)
#define CASES		64	/* reported at once; of one user three quarters at most */

struct straggler_context {
	struct diagnose *dg;
	const struct straggler_case *c;
	struct straggler_case told;	/* the same, with its causes */
	struct gpu_cause gpu;
	struct cpuwait_sums cpu;
	struct late_caller caller;
	struct resources resources;
	uint32_t looks;		/* looks at resources that may still be made */
	const struct process *process;
	const struct comm *comm;
	uint64_t now_ns;
};

/* ---- kinds ---------------------------------------------------------------- */

static bool is_of_a_rank(const struct straggler_case *c)
{
	return c->said.verdict == VERDICT_STEADY || c->said.verdict == VERDICT_INTERMITTENT;
}

#include "schema/straggler_evidence.h"

static void set_text(struct finding *f, const struct straggler_context *s)
{
	struct late_case said = s->told.said;

	said.comm_name = s->comm->name;
	said.comm_id = s->comm->id;
	said.who = diagnose_whom(s->dg, s->process, s->comm);
	late_say(&said, f->text, sizeof(f->text));
}

static bool find_who(struct straggler_context *s)
{
	const struct diagnose_source *source = diagnose_source(s->dg);
	struct process *const *list;
	size_t n = source->processes(source->arg, &list);

	s->process = jobs_process(list, n, s->c->who.process_id);
	if (!s->process)
		return false;
	s->comm = process_comm(s->process, (uint16_t)s->c->who.comm_index);
	return s->comm && !s->comm->finalize_ticks && s->process->state == PROCESS_LIVE;
}

static bool straggler_find_caller(struct straggler_context *s)
{
	const struct cpuwait_sums *cpu = &s->cpu;

	/* It is not known which of several threads calls for this rank. */
	if (s->process->several_gpus)
		return false;
	if (!cpuwait_tell_busiest(s->process->calling, s->now_ns, &s->cpu))
		return false;
	s->caller = (struct late_caller){
		.tid = cpu->tid,
		.ran = (double)cpu->ran_ns / (double)cpu->watched_ns,
		.waited = (double)cpu->wait_ns / (double)cpu->watched_ns,
		.taker = cpu->taker.pid, .taker_command = cpu->taker.command,
		.taker_share = cpuwait_taker_share(cpu),
	};
	return true;
}

/* The case, with what is known of its GPU, its thread and what its node gives it. */
static void straggler_add_causes(struct straggler_context *s)
{
	pid_t tid;

	s->told = *s->c;
	if (!is_of_a_rank(s->c))
		return;
	if (around_find_gpu(s->dg, s->comm, s->now_ns, &s->gpu))
		s->told.said.gpu = &s->gpu;
	if (straggler_find_caller(s))
		s->told.said.caller = &s->caller;
	tid = s->told.said.caller ? s->caller.tid : 0;
	resources_look(s->process->resources, tid, s->now_ns, &s->looks);
	if (resources_tell(s->process->resources, tid,
			   s->comm->has_gpu ? s->comm->pci_bus_id : "", s->now_ns, &s->resources))
		s->told.said.resources = &s->resources;
}

/* A process or communicator that has ended is not reported any more. */
static void straggler_report(struct straggler_context *s)
{
	const struct straggler_case *c = s->c;
	struct finding f = { .kind = FINDING_STRAGGLER, .peer = UNKNOWN_I32 };

	if (!find_who(s))
		return;
	straggler_add_causes(s);
	f.grade = c->said.suspected_window_ns ? FINDING_SUSPECTED : FINDING_FOUND;
	f.severity = is_of_a_rank(c) ? FINDING_WARNING : FINDING_INFO;
	f.verdict = words_verdict(c->said.verdict)->name;
	f.uid = s->process->uid;
	f.process_id = is_of_a_rank(c) ? s->process->id : 0;
	f.has_comm_id = s->comm->has_id;
	f.comm_id = s->comm->id;
	memcpy(f.comm_name, s->comm->name, sizeof(f.comm_name));
	f.since_ns = c->since_ns;
	if (is_of_a_rank(c))
		finding_add_rank(&f, c->who.rank);
	set_text(&f, s);
	finding_set_evidence(&f, straggler_evidence_fields, &s->told);
	diagnose_report(s->dg, &finding_straggler, c->key, &f, s->now_ns);
}

/* ---- the detector ---------------------------------------------------------- */

struct cases {
	struct straggler_case at[CASES];
	uint32_t n;
};

static bool case_goes_before(const struct straggler_case *a, const struct straggler_case *b)
{
	bool one = a->said.suspected_window_ns, other = b->said.suspected_window_ns;

	return one == other ? a->said.blame_ns > b->said.blame_ns : other;
}

/* A late rank is late wherever it comes: one finding, of where it is surest and costs most. */
static void straggler_collect(const struct straggler_case *c, void *arg)
{
	struct cases *cases = arg;
	uint32_t i = 0, own = 0;

	while (i < cases->n && (cases->at[i].key != c->key ||
				is_of_a_rank(&cases->at[i]) != is_of_a_rank(c)))
		own += cases->at[i++].who.account == c->who.account;
	if (i < cases->n ? !case_goes_before(c, &cases->at[i]) :
			   !accounts_leave_room(own, CASES - cases->n))
		return;
	cases->at[i] = *c;
	cases->n += i == cases->n;
}

static void straggler_look(struct diagnose *dg, void *state, uint64_t now_ns)
{
	struct straggler_context s = { .dg = dg, .now_ns = now_ns,
				       .looks = RESOURCES_LOOKS };
	uint32_t *next = state, first = *next;	/* the one after that which had the last look */
	struct cases cases;

	cases.n = 0;
	if (diagnose_source(dg)->straggler)
		straggler_visit(diagnose_source(dg)->straggler, straggler_collect, &cases);
	for (uint32_t i = 0; i < cases.n; i++) {
		bool had = s.looks;

		s.c = &cases.at[(first + i) % cases.n];
		straggler_report(&s);
		if (had && !s.looks)
			*next = (first + i + 1) % cases.n;
	}
}

const struct detector finding_straggler = {
	.name = "straggler",
	.state_bytes = sizeof(uint32_t),
	.hold_ns = 3 * SECOND_NS,
	.look = straggler_look,
};
