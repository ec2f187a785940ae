/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ranks do.  Blocks (loop, group, graph) are a stack of places where
 * the next statement goes.
 */
#include "tests/sim/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add_stmt(struct parser *p, enum sim_stmt_kind kind, struct sim_stmt **stp)
{
	struct sim_stmt *st;

	parse_lay_out(p);
	if (p->depth && p->block[p->depth] == STMT_GROUP && kind != STMT_OP)
		return lex_fail(&p->lex, "a group holds operations only");
	if (p->depth && p->block[p->depth] == STMT_GRAPH && kind != STMT_OP &&
	    kind != STMT_GROUP)
		return lex_fail(&p->lex, "a graph holds operations and groups only");
	st = calloc(1, sizeof(*st));
	if (!st)
		return -ENOMEM;
	st->kind = kind;
	st->times = 1;
	*p->tail[p->depth] = st;
	p->tail[p->depth] = &st->next;
	*stp = st;
	return 0;
}

static int open_block(struct parser *p, struct sim_stmt *st)
{
	if (p->depth + 1 == PARSE_MAX_DEPTH)
		return lex_fail(&p->lex, "blocks nest at most %d deep", PARSE_MAX_DEPTH - 1);
	p->depth++;
	p->block[p->depth] = st->kind;
	p->tail[p->depth] = &st->body;
	p->body[p->depth] = &st->body;
	return 0;
}

static int on_loop(struct parser *p)
{
	struct sim_stmt *st;
	int r = add_stmt(p, STMT_LOOP, &st);

	if (r)
		return r;
	if (lex_accept(&p->lex, "forever"))
		st->times = SCENARIO_FOREVER;
	else
		r = lex_number(&p->lex, &st->times);
	return r ? r : open_block(p, st);
}

/* NCCL nests groups without limit; to us one in another is a mark at an operation. */
static int on_group(struct parser *p)
{
	struct sim_stmt *st;
	int r;

	if (p->depth && p->block[p->depth] == STMT_GROUP) {
		p->inner++;
		p->opened++;
		return 0;
	}
	r = add_stmt(p, STMT_GROUP, &st);
	return r ? r : open_block(p, st);
}

static int find_graph(const struct scenario *s, const char *name)
{
	for (int i = 0; i < s->ngraphs; i++)
		if (!strcmp(s->graph[i], name))
			return i;
	return -1;
}

static int on_graph(struct parser *p)
{
	struct scenario *s = p->scn;
	struct sim_stmt *st;
	int r;

	if (s->ngraphs == SCENARIO_MAX_GRAPHS)
		return lex_fail(&p->lex, "more than %d graphs", SCENARIO_MAX_GRAPHS);
	r = lex_name(&p->lex, s->graph[s->ngraphs], sizeof(s->graph[0]));
	if (!r && find_graph(s, s->graph[s->ngraphs]) >= 0)
		return lex_fail(&p->lex, "graph '%s' exists already", s->graph[s->ngraphs]);
	if (!r)
		r = add_stmt(p, STMT_GRAPH, &st);
	if (r)
		return r;
	st->graph = s->ngraphs++;
	return open_block(p, st);
}

static int on_replay(struct parser *p)
{
	const char *w = lex_next(&p->lex);
	int graph = w ? find_graph(p->scn, w) : -1;
	struct sim_stmt *st;
	int r;

	if (graph < 0)
		return lex_fail(&p->lex, "no graph '%s' so far", w ? w : "");
	r = add_stmt(p, STMT_REPLAY, &st);
	if (r)
		return r;
	st->graph = graph;
	return p->lex.at < p->lex.nwords ? lex_number(&p->lex, &st->times) : 0;
}

static int on_block_end(struct parser *p)
{
	if (!p->depth)
		return lex_fail(&p->lex, "nothing is open that could end");
	if (p->opened || p->tail[p->depth] == p->body[p->depth])
		return lex_fail(&p->lex, "an empty block does nothing");
	if (p->inner) {
		p->inner--;
		p->last->closes++;
		return 0;
	}
	p->depth--;
	return 0;
}

static int on_sync(struct parser *p)
{
	struct sim_stmt *st;

	return add_stmt(p, STMT_SYNC, &st);
}

/* D [jitter N%] [rare D every N] [ranks LIST]: time that passes */
static int on_time(struct parser *p, enum sim_stmt_kind kind)
{
	struct sim_stmt *st = NULL;
	int r = add_stmt(p, kind, &st);

	if (!r)
		r = lex_duration(&p->lex, &st->ns);
	if (!r && lex_accept(&p->lex, "jitter"))
		r = lex_suffixed(&p->lex, "%", &st->jitter);
	if (!r)
		st->jitter /= 100;
	if (!r && lex_accept(&p->lex, "rare"))
		r = parse_rare(p, &st->rare_ns, &st->rare_every);
	return r ? r : parse_ranks(p, st->ranks);
}

static int on_compute(struct parser *p)
{
	return on_time(p, STMT_COMPUTE);
}

static int on_idle(struct parser *p)
{
	return on_time(p, STMT_IDLE);
}

static int operation_defaults(struct parser *p, enum sim_func func, struct sim_op *op)
{
	const struct sim_family *fam;
	int r;

	*op = (struct sim_op){ .func = func };
	r = parse_family(p, &op->family);
	if (r)
		return r;
	fam = &p->scn->family[op->family];
	op->channels = fam->channels;
	op->algo = fam->algo;
	op->proto = fam->proto;
	r = lex_number(&p->lex, &op->count);
	return r ? r : parse_datatype(p, &op->datatype);
}

/* The smallest communicator of a name: what all of them have ranks for. */
static int family_smallest(const struct scenario *s, int family)
{
	const struct sim_family *fam = &s->family[family];
	int n = SCENARIO_MAX_RANKS;

	for (int i = 0; i < fam->ncomms; i++)
		if (s->comm[fam->first + i].nranks < n)
			n = s->comm[fam->first + i].nranks;
	return n;
}

/* X%, by which the counts of an AlltoAll's pairs differ */
static int uneven_share(struct parser *p, double *share)
{
	int r = lex_suffixed(&p->lex, "%", share);

	*share /= 100;
	return r || (*share >= 0 && *share <= 1) ? r :
	       lex_fail(&p->lex, "counts differ by 0%% to 100%%");
}

static int operation_option(struct parser *p, struct sim_op *op)
{
	static const enum sim_func ce_funcs[] = { FUNC_ALL_GATHER, FUNC_ALL_TO_ALL };

	if (lex_accept(&p->lex, "root"))
		return lex_int(&p->lex, 0, family_smallest(p->scn, op->family) - 1, &op->root);
	if (lex_accept(&p->lex, "tag"))
		return lex_number(&p->lex, &op->tag);
	if (lex_accept(&p->lex, "symmetric")) {
		op->symmetric = true;
		return 0;
	}
	if (lex_accept(&p->lex, "inplace")) {
		op->inplace = true;
		return 0;
	}
	if (lex_accept(&p->lex, "uneven")) {
		if (op->func != FUNC_ALL_TO_ALL)
			return lex_fail(&p->lex, "only an AlltoAll can be uneven");
		return uneven_share(p, &op->uneven);
	}
	if (lex_accept(&p->lex, "ce")) {
		op->ce = true;
		if (op->func != ce_funcs[0] && op->func != ce_funcs[1])
			return lex_fail(&p->lex, "copy engines run AllGather and AlltoAll only");
		return 0;
	}
	return parse_kernel_option(p, &op->channels, &op->algo, &op->proto);
}

/* from A to B */
static int send_ends(struct parser *p, struct sim_op *op)
{
	int last = family_smallest(p->scn, op->family) - 1;
	int r = lex_expect(&p->lex, "from");

	if (!r)
		r = lex_int(&p->lex, 0, last, &op->src);
	if (!r)
		r = lex_expect(&p->lex, "to");
	if (!r)
		r = lex_int(&p->lex, 0, last, &op->dst);
	return r;
}

/* FUNC COMM COUNT DATATYPE [from A to B] [options] */
int parse_operation(struct parser *p, enum sim_func func)
{
	struct sim_stmt *st;
	struct sim_op op;
	int r;

	if (func == FUNC_RECV)
		return lex_fail(&p->lex, "a Send stands for both sides");
	r = operation_defaults(p, func, &op);
	if (!r && func == FUNC_SEND)
		r = send_ends(p, &op);
	while (!r && p->lex.at < p->lex.nwords)
		r = operation_option(p, &op);
	if (!r)
		r = add_stmt(p, STMT_OP, &st);
	if (r)
		return r;
	op.opens = p->opened;
	p->opened = 0;
	st->op = op;
	p->last = &st->op;
	return 0;
}

const struct parse_word parse_program[] = {
	{ "compute",	on_compute },
	{ "end",	on_block_end },
	{ "graph",	on_graph },
	{ "group",	on_group },
	{ "idle",	on_idle },
	{ "loop",	on_loop },
	{ "replay",	on_replay },
	{ "sync",	on_sync },
	{ NULL, NULL }
};
