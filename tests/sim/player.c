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
#include "tests/sim/meet.h"
#include "tests/sim/proxy.h"
#include "tests/sim/pxn.h"

/* What a thread is for, and how it went. */
struct player_worker {
	pthread_t thread;
	struct app_range range;
	pthread_barrier_t *ready;	/* nobody goes on before all communicators are there */
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
	if (player_mask(m->player) & NCCL_KERNEL_PHASE)		/* which brings its parent along */
		__atomic_fetch_or(&m->player->mask, NCCL_KERNEL_CH, __ATOMIC_RELAXED);
	if (name)
		memset(name, '#', strlen(name));
	free(name);
}

/* Whose progress thread this member shares; NULL: it has its own. */
static const struct member *sharer_of(const struct member *m)
{
	for (const struct member *o = m->player->member; o < m; o++)
		if (o->comm->family == m->comm->shares && o->world == m->world)
			return o;
	return NULL;
}

/* The communicators of one rank; ranks do this at the same time. */
static void *init_main(void *arg)
{
	struct player_worker *w = arg;
	struct player *p = w->range.player;
	const struct member *owner;

	for (int i = 0; i < p->nmembers && !w->result; i++) {
		struct member *m = &p->member[i];

		if (m->world != w->range.first)
			continue;
		if (p->api.ops)
			init_plugin(m);
		owner = sharer_of(m);
		w->result = owner ? proxy_share(m, owner) : proxy_new(m);
	}
	return NULL;
}

/* Ranks of one thread get their communicators in a group, which starts a thread for each. */
static int init_group(const struct player_worker *w)
{
	struct player_worker rank[SCENARIO_MAX_RANKS];
	int r = 0;

	for (int i = 0; i < w->range.count; i++) {
		rank[i] = (struct player_worker){ .range = { w->range.player, w->range.first + i,
							     1 } };
		if (pthread_create(&rank[i].thread, NULL, init_main, &rank[i]))
			abort();
	}
	for (int i = 0; i < w->range.count; i++) {
		pthread_join(rank[i].thread, NULL);
		r = rank[i].result ? rank[i].result : r;
	}
	return r;
}

static void *app_main(void *arg)
{
	struct player_worker *w = arg;

	if (w->range.count == 1)
		init_main(w);
	else
		w->result = init_group(w);
	pthread_barrier_wait(w->ready);
	if (!w->result)
		w->result = app_run(&w->range);
	meet_leave(w->range.player->meet, w->range.first);
	return NULL;
}

/* The application's threads, for all ranks of this process or each; the worst result. */
static int run_threads(struct player *p)
{
	int count = p->scn->thread_per_process ? p->scn->gpus_per_process : 1;
	int n = p->scn->gpus_per_process / count, result = 0;
	struct player_worker worker[SCENARIO_MAX_RANKS];
	pthread_barrier_t ready;

	pthread_barrier_init(&ready, NULL, n);
	for (int i = 0; i < n; i++) {
		worker[i] = (struct player_worker){ .ready = &ready, .range = {
			p, p->process * p->scn->gpus_per_process + i * count, count } };
		if (pthread_create(&worker[i].thread, NULL, app_main, &worker[i]))
			abort();
	}
	for (int i = 0; i < n; i++) {
		pthread_join(worker[i].thread, NULL);
		if (worker[i].result && result >= 0)
			result = worker[i].result;
	}
	pthread_barrier_destroy(&ready);
	return result;
}

/* Before 2.31 a communicator is destroyed once all of its kernels' stamps have come. */
static void wait_for_stamps(const struct member *m)
{
	if (m->player->scn->release >= 31 || !proxy_waits(m))
		return;
	fprintf(stderr, "nccl-sim: %s, rank %d: ncclCommDestroy waits for ever for the stamps of "
		"%d kernels\n", m->comm->name, m->rank, proxy_waits(m));
	pace_hold(&m->player->pace, INT64_MAX);
}

static void player_finalize(struct player *p)
{
	hook_free(p->hook);
	for (int i = 0; i < p->nmembers; i++) {
		struct member *m = &p->member[i];

		asked_end(p->asked_fd, m);
		if (m->aborted)
			continue;
		wait_for_stamps(m);
		proxy_leave(m);
		if (p->api.ops && (m->context || p->scn->release <= 27))
			api_finalize(&p->api, m->context);
	}
	for (int i = 0; i < p->nmembers; i++)
		proxy_disconnect(&p->member[i]);
	free(p->member);
}

static void player_hold(const struct player *p, bool hangs)
{
	int64_t ns = p->scn->hold_ns;

	if (ns < 0)
		ns = hangs ? INT64_MAX : 0;
	pace_hold(&p->pace, ns);
}

int player_run(const struct scenario *scn, int process, const struct player_plugin *plugin,
	       const struct pace *pace, const struct player_shared *shared)
{
	struct player p = { .scn = scn, .process = process, .pace = *pace, .pxn = shared->pxn,
			    .meet = shared->meet, .asked_fd = shared->asked_fd };
	int r;

	if (plugin->table)
		api_bind(&p.api, plugin->table, plugin->version, scn->release);
	r = find_members(&p);
	if (!r && scn->ngraphs)
		r = hook_new(&p.hook, &p);
	if (!r)
		r = run_threads(&p);
	if (r < 0)
		return r;
	player_hold(&p, r);
	if (p.pxn)
		pxn_leave(p.pxn, scn);
	player_finalize(&p);
	return r;
}
