/* SPDX-License-Identifier: Apache-2.0 */
/* What a scenario is made of: sizes, pace, clocks, links, communicators. */
#include "tests/sim/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int on_dimension(struct parser *p, int *value)
{
	struct scenario *s = p->scn;
	int r;

	if (p->laid_out)
		return lex_fail(&p->lex, "too late: ranks were named already");
	r = lex_int(&p->lex, 1, SCENARIO_MAX_RANKS, value);
	if (!r && (long)s->nnodes * s->processes_per_node * s->gpus_per_process >
		  SCENARIO_MAX_RANKS)
		return lex_fail(&p->lex, "more than %d ranks", SCENARIO_MAX_RANKS);
	return r;
}

static int on_nodes(struct parser *p)
{
	return on_dimension(p, &p->scn->nnodes);
}

static int on_processes(struct parser *p)
{
	return on_dimension(p, &p->scn->processes_per_node);
}

static int on_gpus(struct parser *p)
{
	return on_dimension(p, &p->scn->gpus_per_process);
}

static int on_seed(struct parser *p)
{
	return lex_number(&p->lex, &p->scn->seed);
}

static int on_nccl(struct parser *p)
{
	const char *w = lex_next(&p->lex);
	int minor, used = 0;

	if (!w || sscanf(w, "2.%d%n", &minor, &used) != 1 || w[used] || minor < 23 || minor > 31)
		return lex_fail(&p->lex, "'%s' is no release from 2.23 to 2.31", w ? w : "");
	p->scn->release = minor;
	return 0;
}

static int on_threads(struct parser *p)
{
	p->scn->thread_per_process = lex_accept(&p->lex, "process");
	return p->scn->thread_per_process ? 0 : lex_expect(&p->lex, "rank");
}

static int on_peers(struct parser *p)
{
	p->scn->together = !lex_accept(&p->lex, "apart");
	return p->scn->together ? lex_expect(&p->lex, "together") : 0;
}

static int on_allgatherv(struct parser *p)
{
	p->scn->agv = lex_accept(&p->lex, "on");
	return p->scn->agv ? 0 : lex_expect(&p->lex, "off");
}

static int on_netplugin(struct parser *p)
{
	static const char *const words[] = {
		[NET_SILENT] = "off", [NET_IB] = "ib", [NET_SOCKET] = "socket",
		[NET_EXTERNAL] = "external",
	};
	const char *w = lex_next(&p->lex);

	for (unsigned int i = 0; w && i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcmp(w, words[i])) {
			p->scn->net = i;
			return lex_accept(&p->lex, "queues") ?
				lex_int(&p->lex, 1, SCENARIO_MAX_QUEUES, &p->scn->queues) : 0;
		}
	}
	return lex_fail(&p->lex, "'%s' is none of off, ib, socket, external", w ? w : "");
}

static int on_pace(struct parser *p)
{
	int factor, r;

	if (lex_accept(&p->lex, "none")) {
		p->scn->pace = 0;
		return 0;
	}
	p->scn->pace = 1;
	if (lex_accept(&p->lex, "real"))
		return 0;
	r = lex_int(&p->lex, 1, 1000, &factor);
	p->scn->pace = factor;
	return r;
}

static int on_hold(struct parser *p)
{
	if (!lex_accept(&p->lex, "forever"))
		return lex_duration(&p->lex, &p->scn->hold_ns);
	p->scn->hold_ns = INT64_MAX;
	return 0;
}

static int on_chunk(struct parser *p)
{
	int r = lex_number(&p->lex, &p->scn->chunk_bytes);

	if (!r && !p->scn->chunk_bytes)
		return lex_fail(&p->lex, "a chunk has at least 1 byte");
	return r;
}

static int on_launch(struct parser *p)
{
	int r = lex_duration(&p->lex, &p->scn->launch_ns);

	if (!r && lex_accept(&p->lex, "spacing"))
		r = lex_duration(&p->lex, &p->scn->spacing_ns);
	p->scn->forward = !r && lex_accept(&p->lex, "forward");
	return r;
}

/* [minus] D */
static int signed_duration(struct parser *p, int64_t *ns)
{
	bool back = lex_accept(&p->lex, "minus");
	int r = lex_duration(&p->lex, ns);

	if (back)
		*ns = -*ns;
	return r;
}

/* step [minus] D at T */
static int clock_step(struct parser *p, struct sim_clock *clock)
{
	int r = signed_duration(p, &clock->step_ns);

	if (!r)
		r = lex_expect(&p->lex, "at");
	return r ? r : lex_duration(&p->lex, &clock->step_at_ns);
}

static int clock_tick(struct parser *p, struct sim_clock *clock)
{
	int r = lex_duration(&p->lex, &clock->tick_ns);

	if (!r && clock->tick_ns < 1)
		return lex_fail(&p->lex, "a tick lasts at least 1ns");
	return r;
}

/* clock [offset [minus] D] [drift Xppm] [step [minus] D at T] [tick D] [ranks LIST] */
static int on_clock(struct parser *p)
{
	bool ranks[SCENARIO_MAX_RANKS] = { false };
	struct sim_clock clock = { .tick_ns = 32 };
	int r = 0;

	if (lex_accept(&p->lex, "offset"))
		r = signed_duration(p, &clock.offset_ns);
	if (!r && lex_accept(&p->lex, "drift"))
		r = lex_suffixed(&p->lex, "ppm", &clock.drift_ppm);
	if (!r && lex_accept(&p->lex, "step"))
		r = clock_step(p, &clock);
	if (!r && lex_accept(&p->lex, "tick"))
		r = clock_tick(p, &clock);
	if (!r)
		r = parse_ranks(p, ranks);
	for (int i = 0; !r && i < p->scn->nranks; i++)
		if (ranks[i])
			p->scn->clock[i] = clock;
	return r;
}

/* stamps exact | ring */
static int on_stamps(struct parser *p)
{
	p->scn->ring_stamps = lex_accept(&p->lex, "ring");
	return p->scn->ring_stamps ? 0 : lex_expect(&p->lex, "exact");
}

/* poll [least D] [mean D] [rare D every N] */
static int on_poll(struct parser *p)
{
	struct sim_poll *poll = &p->scn->poll;
	int r = 0;

	if (lex_accept(&p->lex, "least"))
		r = lex_duration(&p->lex, &poll->least_ns);
	if (!r && lex_accept(&p->lex, "mean"))
		r = lex_duration(&p->lex, &poll->mean_ns);
	if (r || !lex_accept(&p->lex, "rare"))
		return r;
	return parse_rare(p, &poll->rare_ns, &poll->rare_every);
}

/* The class's link, or a new one for a pair of ranks that starts as its class's. */
static int link_named(struct parser *p, struct sim_link **linkp)
{
	struct scenario *s = p->scn;
	struct sim_link *link = &s->link[s->nlinks];
	int from, to, r;

	for (int net = 0; net < 2; net++) {
		if (lex_accept(&p->lex, net ? "net" : "intra")) {
			*linkp = &s->class_link[net];
			return 0;
		}
	}
	if (s->nlinks == SCENARIO_MAX_LINKS)
		return lex_fail(&p->lex, "more than %d links", SCENARIO_MAX_LINKS);
	parse_lay_out(p);
	r = lex_int(&p->lex, 0, s->nranks - 1, &from);
	if (!r)
		r = lex_expect(&p->lex, "to");
	if (!r)
		r = lex_int(&p->lex, 0, s->nranks - 1, &to);
	if (r)
		return r;
	*link = *scenario_link(s, from, to);
	link->from = from;
	link->to = to;
	s->nlinks++;
	*linkp = link;
	return 0;
}

/* link net | intra | A to B [latency D] [rate R] */
static int on_link(struct parser *p)
{
	struct sim_link *link = NULL;
	int r = link_named(p, &link);

	if (!r && lex_accept(&p->lex, "latency"))
		r = lex_duration(&p->lex, &link->latency_ns);
	if (!r && lex_accept(&p->lex, "rate"))
		r = lex_rate(&p->lex, &link->rate);
	return r;
}

static int one_comm(struct parser *p, struct sim_family *fam)
{
	struct scenario *s = p->scn;
	struct sim_comm *c = &s->comm[s->ncomms];
	bool seen[SCENARIO_MAX_RANKS] = { false };
	int r;

	if (s->ncomms == SCENARIO_MAX_COMMS)
		return lex_fail(&p->lex, "more than %d communicators", SCENARIO_MAX_COMMS);
	r = lex_list(&p->lex, s->nranks, c->world, &c->nranks);
	if (r)
		return r;
	for (int i = 0; i < c->nranks; i++) {
		if (seen[c->world[i]])
			return lex_fail(&p->lex, "rank %d is named twice", c->world[i]);
		seen[c->world[i]] = true;
	}
	c->name = fam->name;
	c->index = s->ncomms++;
	c->family = (int)(fam - s->family);
	fam->ncomms++;
	return 0;
}

/* share NAME: the progress threads of communicators that are there already */
static int on_share(struct parser *p, struct sim_family *fam)
{
	int r = parse_family(p, &fam->shares);

	return r || !fam->pxn ? r : lex_fail(&p->lex, "pxn needs progress threads of its own");
}

/*
 * comm NAME ranks LIST [ranks LIST]... [channels N] [algo A] [proto P] [pxn] [nonblocking]
 * [share NAME]
 */
static int on_comm(struct parser *p)
{
	struct scenario *s = p->scn;
	struct sim_family *fam = &s->family[s->nfamilies];
	int r;

	if (s->nfamilies == SCENARIO_MAX_FAMILIES)
		return lex_fail(&p->lex, "more than %d names", SCENARIO_MAX_FAMILIES);
	*fam = (struct sim_family){ .first = s->ncomms, .channels = 4, .shares = -1,
				    .algo = names_find(NAMES_ALGO, "ring"),
				    .proto = names_find(NAMES_PROTO, "simple") };
	parse_lay_out(p);
	r = lex_name(&p->lex, fam->name, sizeof(fam->name));
	if (!r && parse_find_family(s, fam->name) >= 0)
		return lex_fail(&p->lex, "communicator '%s' exists already", fam->name);
	if (!r)
		r = lex_expect(&p->lex, "ranks");
	if (!r)
		r = one_comm(p, fam);
	while (!r && lex_accept(&p->lex, "ranks"))
		r = one_comm(p, fam);
	while (!r && p->lex.at < p->lex.nwords) {
		if (lex_accept(&p->lex, "pxn"))
			fam->pxn = true;
		else if (lex_accept(&p->lex, "nonblocking"))
			fam->nonblocking = true;
		else if (lex_accept(&p->lex, "share"))
			r = on_share(p, fam);
		else
			r = parse_kernel_option(p, &fam->channels, &fam->algo, &fam->proto);
	}
	if (!r)
		s->nfamilies++;
	return r;
}

/* ras MASK comm NAME op K */
static int on_ras(struct parser *p)
{
	struct sim_ras *ras = &p->scn->ras[p->scn->nras];
	int r;

	if (p->scn->nras == SCENARIO_MAX_RAS)
		return lex_fail(&p->lex, "more than %d changes of the mask", SCENARIO_MAX_RAS);
	r = lex_int(&p->lex, 0, 0xffff, &ras->mask);
	if (!r)
		r = lex_expect(&p->lex, "comm");
	if (!r)
		r = parse_family(p, &ras->family);
	if (!r)
		r = lex_expect(&p->lex, "op");
	p->scn->nras++;
	return r ? r : lex_number(&p->lex, &ras->op);
}

const struct parse_word parse_settings[] = {
	{ "allgatherv",	on_allgatherv },
	{ "chunk",	on_chunk },
	{ "clock",	on_clock },
	{ "comm",	on_comm },
	{ "gpus",	on_gpus },
	{ "hold",	on_hold },
	{ "launch",	on_launch },
	{ "link",	on_link },
	{ "nccl",	on_nccl },
	{ "netplugin",	on_netplugin },
	{ "nodes",	on_nodes },
	{ "pace",	on_pace },
	{ "peers",	on_peers },
	{ "poll",	on_poll },
	{ "processes",	on_processes },
	{ "ras",	on_ras },
	{ "seed",	on_seed },
	{ "stamps",	on_stamps },
	{ "threads",	on_threads },
	{ NULL, NULL }
};
