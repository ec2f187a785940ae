/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong in a scenario. */
#include "tests/sim/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/profiler.h"

static int new_fault(struct parser *p, enum sim_fault_kind kind, struct sim_fault **faultp)
{
	struct sim_fault *f = &p->scn->fault[p->scn->nfaults];

	if (p->scn->nfaults == SCENARIO_MAX_FAULTS)
		return lex_fail(&p->lex, "more than %d faults", SCENARIO_MAX_FAULTS);
	parse_lay_out(p);
	*f = (struct sim_fault){ .kind = kind, .rank = -1, .family = -1, .every = 1,
				 .burst = 1, .until = UINT64_MAX, .factor = 1, .peer = -1,
				 .channel = -1, .queue = -1, .datatype = -1, .root = -1,
				 .state = NCCL_STEP_SEND_WAIT };
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

/* every N [for M]: of N operations the first M */
static int fault_every(struct parser *p, struct sim_fault *f)
{
	int r = lex_number(&p->lex, &f->every);

	if (!r && !f->every)
		return lex_fail(&p->lex, "every 0 is never");
	if (r || !lex_accept(&p->lex, "for"))
		return r;
	r = lex_number(&p->lex, &f->burst);
	return r || f->burst ? r : lex_fail(&p->lex, "for 0 is never");
}

/* [comm NAME] [every N [for M]] [from K] [until K], one at a time: which operations. */
static int fault_range(struct parser *p, struct sim_fault *f)
{
	if (lex_accept(&p->lex, "comm"))
		return parse_family(p, &f->family);
	if (lex_accept(&p->lex, "from"))
		return lex_number(&p->lex, &f->from);
	if (lex_accept(&p->lex, "until"))
		return lex_number(&p->lex, &f->until);
	return lex_accept(&p->lex, "every") ? fault_every(p, f) : lex_end(&p->lex);
}

static int fault_ranges(struct parser *p, struct sim_fault *f)
{
	int r = 0;

	while (!r && p->lex.at < p->lex.nwords)
		r = fault_range(p, f);
	return r;
}

/* rank R by D, and then which operations */
static int fault_delay(struct parser *p, enum sim_fault_kind kind)
{
	struct sim_fault *f;
	int r = new_fault(p, kind, &f);

	if (!r)
		r = fault_rank(p, f);
	if (!r)
		r = lex_expect(&p->lex, "by");
	if (!r)
		r = lex_duration(&p->lex, &f->by_ns);
	if (!r && kind == FAULT_LATE)
		f->host = lex_accept(&p->lex, "host");
	if (!r && kind == FAULT_STARVE)
		f->busy = lex_accept(&p->lex, "busy");
	return r ? r : fault_ranges(p, f);
}

/* late rank R by D [host] [comm NAME] [every N [for M]] [from K] [until K] */
static int on_late(struct parser *p)
{
	return fault_delay(p, FAULT_LATE);
}

/* starve rank R by D [busy] [comm NAME] [every N [for M]] [from K] [until K] */
static int on_starve(struct parser *p)
{
	return fault_delay(p, FAULT_STARVE);
}

/* rank R comm NAME op K */
static int fault_at(struct parser *p, enum sim_fault_kind kind, struct sim_fault **faultp)
{
	int r = new_fault(p, kind, faultp);

	if (!r)
		r = fault_rank(p, *faultp);
	return r ? r : fault_place(p, *faultp);
}

static int on_absent(struct parser *p)
{
	struct sim_fault *f;

	return fault_at(p, FAULT_ABSENT, &f);
}

static int on_freeze(struct parser *p)
{
	struct sim_fault *f;

	return fault_at(p, FAULT_FREEZE, &f);
}

/* mismatch rank R comm NAME op K count N | datatype T | root R */
static int on_mismatch(struct parser *p)
{
	struct sim_fault *f;
	int r = fault_at(p, FAULT_MISMATCH, &f);

	if (r)
		return r;
	if (lex_accept(&p->lex, "datatype"))
		return parse_datatype(p, &f->datatype);
	if (lex_accept(&p->lex, "root"))
		return lex_int(&p->lex, 0, SCENARIO_MAX_RANKS - 1, &f->root);
	r = lex_expect(&p->lex, "count");
	if (!r)
		r = lex_number(&p->lex, &f->count);
	return r || f->count ? r : lex_fail(&p->lex, "a count of 0 is no call");
}

/* swap rank R comm NAME op K [comm NAME op K]: the second call comes first */
static int on_swap(struct parser *p)
{
	struct sim_fault *f, other = { .kind = FAULT_SWAP };
	int r = fault_at(p, FAULT_SWAP, &f);

	if (r)
		return r;
	other.family = f->family;
	other.from = f->from + 1;
	if (p->lex.at < p->lex.nwords)
		r = fault_place(p, &other);
	f->other_family = other.family;
	f->other_op = other.from;
	if (!r && other.family == f->family && other.from <= f->from)
		return lex_fail(&p->lex, "the call that comes first must be a later one");
	return r;
}

/* pause comm NAME op K */
static int on_pause(struct parser *p)
{
	struct sim_fault *f;
	int r = new_fault(p, FAULT_PAUSE, &f);

	return r ? r : fault_place(p, f);
}

/* by Xx */
static int fault_factor(struct parser *p, struct sim_fault *f)
{
	int r = lex_expect(&p->lex, "by");

	if (!r)
		r = lex_suffixed(&p->lex, "x", &f->factor);
	return r || f->factor >= 1 ? r : lex_fail(&p->lex, "a factor is at least 1x");
}

/* slow link A to B by Xx ... | slow channel C [queue Q] rank R by Xx [which operations] */
static int on_slow(struct parser *p)
{
	bool link = lex_accept(&p->lex, "link");
	struct sim_fault *f;
	int r = link ? 0 : lex_expect(&p->lex, "channel");

	if (!r)
		r = new_fault(p, link ? FAULT_SLOW_LINK : FAULT_SLOW_CHANNEL, &f);
	if (r)
		return r;
	if (link) {
		r = lex_int(&p->lex, 0, p->scn->nranks - 1, &f->rank);
		if (!r)
			r = lex_expect(&p->lex, "to");
		if (!r)
			r = lex_int(&p->lex, 0, p->scn->nranks - 1, &f->peer);
	} else {
		r = lex_int(&p->lex, 0, 63, &f->channel);
		if (!r && lex_accept(&p->lex, "queue"))
			r = lex_int(&p->lex, 0, SCENARIO_MAX_QUEUES - 1, &f->queue);
		if (!r)
			r = fault_rank(p, f);
	}
	if (!r)
		r = fault_factor(p, f);
	return r ? r : fault_ranges(p, f);
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
	int r = fault_at(p, FAULT_STUCK, &f);

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
	{ "freeze",	on_freeze },
	{ "kill",	on_kill },
	{ "late",	on_late },
	{ "mismatch",	on_mismatch },
	{ "pause",	on_pause },
	{ "slow",	on_slow },
	{ "starve",	on_starve },
	{ "stuck",	on_stuck },
	{ "swap",	on_swap },
	{ NULL, NULL }
};
