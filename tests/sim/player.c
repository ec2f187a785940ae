/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one simulated process: init, application threads, finalize. */
#include "tests/sim/player.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/sim/app.h"
#include "tests/sim/proxy.h"
#include "tests/sim/pxn.h"

/* What a thread is for, and how it went. */
struct worker {
	pthread_t thread;
	struct app_range range;
	int result;
};

/* NCCL prints what NCCL_DEBUG asks for. */
static void __attribute__((format(printf, 5, 6)))
log_line(int level, unsigned long subsystems, const char *file, int line, const char *format, ...)
{
	const char *debug = getenv("NCCL_DEBUG");
	char text[512];
	va_list ap;

	(void)subsystems;
	(void)file;
	(void)line;
	if (!debug || level > (strcasecmp(debug, "WARN") ? NCCL_LOG_INFO : NCCL_LOG_WARN))
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	fprintf(stderr, "nccl-sim: NCCL %s %s\n", level == NCCL_LOG_WARN ? "WARN" : "INFO", text);
}

struct member *player_member(struct player *player, const struct sim_comm *comm, int rank)
{
	for (int i = 0; i < player->nmembers; i++)
		if (player->member[i].comm == comm && player->member[i].rank == rank)
			return &player->member[i];
	return NULL;
}

static int find_members(struct player *p)
{
	int room = 0;

	for (int i = 0; i < p->scn->ncomms; i++)
		room += p->scn->comm[i].nranks;
	p->member = calloc(room + 1, sizeof(*p->member));
	if (!p->member)
		return -ENOMEM;
	for (int i = 0; i < p->scn->ncomms; i++) {
		const struct sim_comm *c = &p->scn->comm[i];

		for (int r = 0; r < c->nranks; r++)
			if (scenario_process_of(p->scn, c->world[r]) == p->process)
				p->member[p->nmembers++] = (struct member){
					.player = p, .comm = c, .rank = r,
					.world = c->world[r] };
	}
	return 0;
}

/* The name is the application's: it may be gone right after init. */
static void init_plugin(struct member *m)
{
	char *name = strdup(m->comm->name);
	struct api_comm comm = { .id = m->comm->id, .name = name, .nnodes = m->comm->nnodes,
				 .nranks = m->comm->nranks, .rank = m->rank,
				 .logger = log_line };

	api_init(&m->player->api, &m->context, &m->player->mask, &comm);
	if (name)
		memset(name, '#', strlen(name));
	free(name);
}

/* The communicators of one rank; ranks do this at the same time. */
static void *init_main(void *arg)
{
	struct worker *w = arg;
	struct player *p = w->range.player;

	for (int i = 0; i < p->nmembers && !w->result; i++) {
		struct member *m = &p->member[i];

		if (m->world != w->range.first)
			continue;
		if (p->api.ops)
			init_plugin(m);
		w->result = proxy_new(&m->proxy, m);
	}
	return NULL;
}

static void *app_main(void *arg)
{
	struct worker *w = arg;

	w->result = app_run(&w->range);
	return NULL;
}

/* One thread for each `count` ranks of this process; the worst result. */
static int run_threads(struct player *p, int count, void *(*main)(void *))
{
	struct worker worker[SCENARIO_MAX_RANKS];
	int n = p->scn->gpus_per_process / count, result = 0;

	for (int i = 0; i < n; i++) {
		worker[i] = (struct worker){ .range = {
			p, p->process * p->scn->gpus_per_process + i * count, count } };
		if (pthread_create(&worker[i].thread, NULL, main, &worker[i]))
			abort();
	}
	for (int i = 0; i < n; i++) {
		pthread_join(worker[i].thread, NULL);
		if (worker[i].result && result >= 0)
			result = worker[i].result;
	}
	return result;
}

static void finalize(struct player *p)
{
	hook_free(p->hook);
	for (int i = 0; i < p->nmembers; i++) {
		struct member *m = &p->member[i];

		if (m->aborted)
			continue;
		proxy_free(m->proxy);
		if (p->api.ops && (m->context || p->scn->release <= 27))
			api_finalize(&p->api, m->context);
	}
	free(p->member);
}

static void hold(const struct player *p, bool hangs)
{
	int64_t ns = p->scn->hold_ns;

	if (ns < 0)
		ns = hangs ? INT64_MAX : 0;
	pace_hold(&p->pace, ns);
}

int player_run(const struct scenario *scn, int process, const struct player_plugin *plugin,
	       const struct pace *pace, struct pxn *pxn)
{
	struct player p = { .scn = scn, .process = process, .pace = *pace, .pxn = pxn };
	int r;

	if (plugin->table)
		api_bind(&p.api, plugin->table, plugin->version, scn->release);
	r = find_members(&p);
	if (!r && scn->ngraphs)
		r = hook_new(&p.hook, &p);
	if (!r)
		r = run_threads(&p, 1, init_main);
	if (!r)
		r = run_threads(&p, scn->thread_per_process ? scn->gpus_per_process : 1, app_main);
	if (r < 0)
		return r;
	hold(&p, r);
	if (pxn)
		pxn_leave(pxn, scn);
	finalize(&p);
	return r;
}
