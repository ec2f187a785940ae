/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the scenario parser share. */
#include "tests/sim/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void parse_lay_out(struct parser *p)
{
	struct scenario *s = p->scn;

	s->nprocesses = s->nnodes * s->processes_per_node;
	s->nranks = s->nprocesses * s->gpus_per_process;
	p->laid_out = true;
}

int parse_ranks(struct parser *p, bool *ranks)
{
	int list[SCENARIO_MAX_RANKS], n, r;

	parse_lay_out(p);
	if (!lex_accept(&p->lex, "ranks")) {
		for (int i = 0; i < p->scn->nranks; i++)
			ranks[i] = true;
		return 0;
	}
	r = lex_list(&p->lex, p->scn->nranks, list, &n);
	for (int i = 0; !r && i < n; i++)
		ranks[list[i]] = true;
	return r;
}

int parse_find_family(const struct scenario *s, const char *name)
{
	for (int i = 0; i < s->nfamilies; i++)
		if (!strcmp(s->family[i].name, name))
			return i;
	return -1;
}

int parse_family(struct parser *p, int *family)
{
	const char *w = lex_next(&p->lex);

	if (!w)
		return lex_fail(&p->lex, "a communicator is missing");
	*family = parse_find_family(p->scn, w);
	return *family < 0 ? lex_fail(&p->lex, "no communicator '%s'", w) : 0;
}

static int word_of(struct parser *p, enum names_kind kind, const char *what, int *value)
{
	const char *w = lex_next(&p->lex);

	*value = w ? names_find(kind, w) : -1;
	return *value < 0 ? lex_fail(&p->lex, "'%s' is no %s", w ? w : "", what) : 0;
}

int parse_datatype(struct parser *p, int *datatype)
{
	return word_of(p, NAMES_DATATYPE, "datatype", datatype);
}

int parse_rare(struct parser *p, int64_t *ns, uint64_t *every)
{
	int r = lex_duration(&p->lex, ns);

	if (!r)
		r = lex_expect(&p->lex, "every");
	if (!r)
		r = lex_number(&p->lex, every);
	return r || *every ? r : lex_fail(&p->lex, "every 0 is never");
}

int parse_kernel_option(struct parser *p, int *channels, int *algo, int *proto)
{
	if (lex_accept(&p->lex, "channels"))
		return lex_int(&p->lex, 1, 64, channels);
	if (lex_accept(&p->lex, "algo"))
		return word_of(p, NAMES_ALGO, "algorithm", algo);
	if (lex_accept(&p->lex, "proto"))
		return word_of(p, NAMES_PROTO, "protocol", proto);
	return lex_end(&p->lex);
}
