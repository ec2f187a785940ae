/* SPDX-License-Identifier: Apache-2.0 */
/* From text to a scenario, line by line; the parse_*.c files understand them. */
#include "tests/sim/scenario.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/parse.h"

#define MAX_TEXT	(1 << 20)

static void set_defaults(struct scenario *s)
{
	*s = (struct scenario){
		.seed = 1,
		.release = 30,
		.nnodes = 1, .processes_per_node = 1, .gpus_per_process = 1,
		.agv = true,
		.pace = 1,
		.together = true,
		.hold_ns = -1,
		.launch_ns = 6000,
		.chunk_bytes = 512 << 10,
		.queues = 1,
		.poll = { .least_ns = 500, .mean_ns = 4000 },
		.class_link = {
			{ -1, -1, 2000, 200.0 },
			{ -1, -1, 8000, 25.0 },
		},
	};
}

static void set_clocks(struct scenario *s)
{
	for (int i = 0; i < SCENARIO_MAX_RANKS; i++)
		s->clock[i].tick_ns = 32;
}

static int parse_line(struct parser *p, char *line)
{
	static const struct parse_word *const tables[] = {
		parse_settings, parse_faults, parse_program
	};
	int r = lex_split(&p->lex, line), func;
	const char *w;

	if (r || !p->lex.nwords)
		return r;
	w = lex_next(&p->lex);
	func = names_find_func(w);
	if (func >= 0)
		return parse_operation(p, func);
	for (unsigned int t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
		for (const struct parse_word *row = tables[t]; row->word; row++) {
			if (strcmp(row->word, w))
				continue;
			r = row->parse(p);
			return r ? r : lex_end(&p->lex);
		}
	}
	return lex_fail(&p->lex, "'%s' is no statement", w);
}

static uint64_t comm_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* An id that differs between communicators, seeds and files, as those of two jobs do. */
static uint64_t comm_id(const struct scenario *s, int index)
{
	return comm_mix(s->salt + s->seed * 0x9e3779b97f4a7c15ull + (uint64_t)index + 1);
}

static uint64_t salt_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	uint64_t salt = 0;

	for (const char *c = slash ? slash + 1 : path; *c; c++)
		salt = comm_mix(salt + (unsigned char)*c);
	return salt;
}

static void finish_comm(struct scenario *s, struct sim_comm *c)
{
	bool node[SCENARIO_MAX_RANKS] = { false };

	c->id = comm_id(s, c->index);
	c->pxn = s->family[c->family].pxn;
	c->nonblocking = s->family[c->family].nonblocking;
	c->shares = s->family[c->family].shares;
	for (int i = 0; i < c->nranks; i++) {
		int n = scenario_node_of(s, c->world[i]);

		c->nnodes += !node[n];
		node[n] = true;
	}
}

static int parse_lines(struct parser *p, char *text)
{
	int r = 0;

	for (char *next; text && *text && !r; text = next) {
		next = strchr(text, '\n');
		if (next)
			*next++ = '\0';
		p->lex.line++;
		r = parse_line(p, text);
	}
	if (!r && p->depth)
		return lex_fail(&p->lex, "a block is not ended");
	return r;
}

void scenario_reseed(struct scenario *scn, uint64_t seed)
{
	scn->seed = seed;
	for (int i = 0; i < scn->ncomms; i++)
		scn->comm[i].id = comm_id(scn, i);
}

int scenario_parse(struct scenario **scnp, const char *name, const char *text,
		   char *err, unsigned int err_size)
{
	struct scenario *s = malloc(sizeof(*s));
	char *copy = strdup(text);
	struct parser p = { .lex = { .file = name, .err = err, .err_size = err_size },
			    .scn = s };
	int r = -ENOMEM;

	err[0] = '\0';
	if (s) {
		set_defaults(s);
		set_clocks(s);
		s->salt = salt_of(name);
	}
	if (s && copy) {
		p.tail[0] = &s->program;
		r = parse_lines(&p, copy);
	}
	free(copy);
	if (r) {
		scenario_free(s);
		return r;
	}
	parse_lay_out(&p);
	for (int i = 0; i < s->ncomms; i++)
		finish_comm(s, &s->comm[i]);
	*scnp = s;
	return 0;
}

static int scenario_read_text(const char *path, char **textp)
{
	FILE *f = fopen(path, "re");
	char *text;
	size_t n;

	if (!f)
		return -errno;
	text = malloc(MAX_TEXT);
	if (!text) {
		fclose(f);
		return -ENOMEM;
	}
	n = fread(text, 1, MAX_TEXT - 1, f);
	text[n] = '\0';
	n = !feof(f);
	fclose(f);
	if (n) {
		free(text);
		return -EFBIG;
	}
	*textp = text;
	return 0;
}

int scenario_load(struct scenario **scnp, const char *path, char *err, unsigned int err_size)
{
	char *text = NULL;
	int r = scenario_read_text(path, &text);

	if (r) {
		snprintf(err, err_size, "%s: %s", path, strerror(-r));
		return r;
	}
	r = scenario_parse(scnp, path, text, err, err_size);
	free(text);
	return r;
}

static void free_stmts(struct sim_stmt *st)
{
	while (st) {
		struct sim_stmt *next = st->next;

		free_stmts(st->body);
		free(st);
		st = next;
	}
}

void scenario_free(struct scenario *scn)
{
	if (!scn)
		return;
	free_stmts(scn->program);
	free(scn);
}

static bool any_endless(const struct sim_stmt *st)
{
	for (; st; st = st->next)
		if ((st->kind == STMT_LOOP && st->times == SCENARIO_FOREVER) ||
		    any_endless(st->body))
			return true;
	return false;
}

bool scenario_is_endless(const struct scenario *scn)
{
	return any_endless(scn->program);
}

int scenario_process_of(const struct scenario *scn, int world)
{
	return world / scn->gpus_per_process;
}

int scenario_node_of(const struct scenario *scn, int world)
{
	return world / (scn->gpus_per_process * scn->processes_per_node);
}

const struct sim_link *scenario_link(const struct scenario *scn, int from, int to)
{
	for (int i = 0; i < scn->nlinks; i++)
		if (scn->link[i].from == from && scn->link[i].to == to)
			return &scn->link[i];
	return &scn->class_link[scenario_node_of(scn, from) != scenario_node_of(scn, to)];
}

bool scenario_has_fault(const struct scenario *scn, enum sim_fault_kind kind, int world)
{
	for (int i = 0; i < scn->nfaults; i++)
		if (scn->fault[i].kind == kind && scn->fault[i].rank == world)
			return true;
	return false;
}
