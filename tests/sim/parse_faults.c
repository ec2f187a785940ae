/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong in a scenario. */
#include "tests/sim/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/nccl_profiler.h"

static int new_fault(struct parser *p, enum sim_fault_kind kind, struct sim_fault **faultp)
{
	struct sim_fault *f = &p->scn->fault[p->scn->nfaults];

	if (p->scn->nfaults == SCENARIO_MAX_FAULTS)
		return lex_fail(&p->lex, "more than %d faults", SCENARIO_MAX_FAULTS);
	parse_lay_out(p);
	*f = (struct sim_fault){ .kind = kind, .rank = -1, .family = -1, .every = 1,
				 .until = UINT64_MAX, .state = NCCL_STEP_SEND_WAIT };
	p->scn->nfaults++;
	*faultp = f;
	return 0;
}

/* comm NAME op K: the operation that a fault hits. */
static int fault_place(struct parser *p, struct sim_fault *f)
{
	int r = lex_expect(&p->lex, "comm");

	if (!r)
		r = parse_family(p, &f->family);
	if (!r)
		r = lex_expect(&p->lex, "op");
	if (!r)
		r = lex_number(&p->lex, &f->from);
	f->until = f->from;
	return r;
}

static int fault_rank(struct parser *p, struct sim_fault *f)
{
	int r = lex_expect(&p->lex, "rank");

	return r ? r : lex_int(&p->lex, 0, p->scn->nranks - 1, &f->rank);
}

/* late rank R by D [host] [comm NAME] [every N] [from K] [until K] */
static int on_late(struct parser *p)
{
	struct sim_fault *f;
	int r = new_fault(p, FAULT_LATE, &f);

	if (!r)
		r = fault_rank(p, f);
	if (!r)
		r = lex_expect(&p->lex, "by");
	if (!r)
		r = lex_duration(&p->lex, &f->by_ns);
	while (!r && p->lex.at < p->lex.nwords) {
		if (lex_accept(&p->lex, "host"))
			f->host = true;
		else if (lex_accept(&p->lex, "comm"))
			r = parse_family(p, &f->family);
		else if (lex_accept(&p->lex, "every"))
			r = lex_number(&p->lex, &f->every);
		else if (lex_accept(&p->lex, "from"))
			r = lex_number(&p->lex, &f->from);
		else if (lex_accept(&p->lex, "until"))
			r = lex_number(&p->lex, &f->until);
		else
			r = lex_end(&p->lex);
	}
	if (!r && !f->every)
		return lex_fail(&p->lex, "every 0 is never");
	return r;
}

/* absent rank R comm NAME op K */
static int on_absent(struct parser *p)
{
	struct sim_fault *f;
	int r = new_fault(p, FAULT_ABSENT, &f);

	if (!r)
		r = fault_rank(p, f);
	return r ? r : fault_place(p, f);
}

static int stuck_state(struct parser *p, int *state)
{
	static const struct { const char *word; int state; } states[] = {
		{ "gpu", NCCL_STEP_SEND_GPU_WAIT },
		{ "peer", NCCL_STEP_SEND_PEER_WAIT },
		{ "net", NCCL_STEP_SEND_WAIT },
	};
	const char *w = lex_next(&p->lex);

	for (unsigned int i = 0; w && i < sizeof(states) / sizeof(states[0]); i++) {
		if (!strcmp(w, states[i].word)) {
			*state = states[i].state;
			return 0;
		}
	}
	return lex_fail(&p->lex, "'%s' is none of gpu, peer, net", w ? w : "");
}

/* stuck rank R comm NAME op K [step S] [state gpu|peer|net] */
static int on_stuck(struct parser *p)
{
	struct sim_fault *f;
	int r = new_fault(p, FAULT_STUCK, &f);

	if (!r)
		r = fault_rank(p, f);
	if (!r)
		r = fault_place(p, f);
	if (!r && lex_accept(&p->lex, "step"))
		r = lex_int(&p->lex, 0, 1000000, &f->step);
	if (!r && lex_accept(&p->lex, "state"))
		r = stuck_state(p, &f->state);
	return r;
}

/* kill process P comm NAME op K */
static int on_kill(struct parser *p)
{
	struct sim_fault *f;
	int r = new_fault(p, FAULT_KILL, &f);

	if (!r)
		r = lex_expect(&p->lex, "process");
	if (!r)
		r = lex_int(&p->lex, 0, p->scn->nprocesses - 1, &f->rank);
	return r ? r : fault_place(p, f);
}

/* abort comm NAME op K */
static int on_abort(struct parser *p)
{
	struct sim_fault *f;
	int r = new_fault(p, FAULT_ABORT, &f);

	return r ? r : fault_place(p, f);
}

const struct parse_word parse_faults[] = {
	{ "abort",	on_abort },
	{ "absent",	on_absent },
	{ "kill",	on_kill },
	{ "late",	on_late },
	{ "stuck",	on_stuck },
	{ NULL, NULL }
};
