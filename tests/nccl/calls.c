/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is called depends on the seed alone, so that all ranks do the same; how often is
 * agreed on by a file, since clocks differ.
 */
#include "calls.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUND		64	/* calls between two looks at the time */
#define ROUNDS_MOST	10	/* all of whose operations the daemon tells in one answer */

static const struct world_options ordinary;

/* ---- two that are known -------------------------------------------------------------- */

static void broadcasts(struct world *w, int roots)
{
	world_group_start();
	for (int root = 0; root < roots; root++)
		world_call(w, 0, BROADCAST, 100, ncclInt8, root);
	world_group_end();
}

void calls_allgatherv(struct job *job)
{
	struct world *w = world_new(job, "allgatherv", ordinary);

	for (int i = 0; i < 40; i++) {
		world_call(w, 0, ALL_REDUCE, 100, ncclFloat32, 0);
		broadcasts(w, 2);
		world_call(w, 0, ALL_GATHER, 100, ncclInt8, 0);
		world_call(w, 0, REDUCE_SCATTER, 100, ncclInt8, 0);
	}
	world_destroy(w);
}

void calls_alltoall_once(struct job *job)
{
	struct world *w = world_new(job, "alltoall-once", ordinary);

	for (int i = 0; i < 1500; i++) {
		world_call(w, 0, ALL_REDUCE, 100, ncclFloat32, 0);
		if (i == 100)
			world_alltoall(w, 64, ncclFloat32, SELF_NATIVE);
		world_wait(w);
		usleep(3000);
	}
	world_destroy(w);
}

/* ---- any ------------------------------------------------------------------------------- */

static uint64_t state;

static unsigned int draw(unsigned int below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned int)(state >> 33) % below;
}

/* At least what one step of the played network moves. */
static size_t draw_count(unsigned int below)
{
	return 16 + draw(below);
}

static void collective(struct world *w)
{
	static const enum world_func any[] = { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, REDUCE };

	world_call(w, 0, any[draw(4)], draw_count(2000), ncclFloat32, 0);
}

static void ring(struct world *w)
{
	world_ring_call(w, 0, draw_count(2000), ncclInt8);
}

static void lone_broadcast(struct world *w)
{
	world_call(w, 0, BROADCAST, draw_count(2000), ncclInt8, (int)draw((unsigned int)w->ranks));
}

static void broadcasts_of_one(struct world *w)
{
	int root = (int)draw((unsigned int)w->ranks);

	world_group_start();
	for (unsigned int i = 2 + draw(3); i > 0; i--)
		world_call(w, 0, BROADCAST, draw_count(2000), ncclInt8, root);
	world_group_end();
}

static void broadcasts_of_several(struct world *w)
{
	broadcasts(w, w->ranks);
}

static void several_collectives(struct world *w)
{
	world_group_start();
	for (unsigned int i = 2 + draw(3); i > 0; i--)
		collective(w);
	world_group_end();
}

static void ring_among_collectives(struct world *w)
{
	world_group_start();
	collective(w);
	ring(w);
	collective(w);
	world_group_end();
}

/* For the plugin the group ends with the inner one, between a Send and its Recv. */
static void inner_end(struct world *w)
{
	world_group_start();
	world_send_call(w, 0, 100, ncclInt8);
	world_group_start();
	collective(w);
	world_group_end();
	world_recv_call(w, 0, 100, ncclInt8);
	world_group_end();
}

static void alltoall(struct world *w)
{
	world_alltoall(w, draw_count(200), ncclFloat32, SELF_NATIVE);
}

static void alltoall_in_place(struct world *w)
{
	world_alltoall(w, draw_count(200), ncclFloat32, SELF_IN_PLACE);
}

static void broadcasts_among_collectives(struct world *w)
{
	world_group_start();
	collective(w);
	for (int root = 0; root < w->ranks; root++)
		world_call(w, 0, BROADCAST, 100, ncclInt8, root);
	collective(w);
	world_group_end();
}

static void broadcasts_beside_a_ring(struct world *w)
{
	world_group_start();
	ring(w);
	for (int root = 0; root < w->ranks; root++)
		world_call(w, 0, BROADCAST, 100, ncclInt8, root);
	world_group_end();
}

static void broadcast_beside_a_ring(struct world *w)
{
	world_group_start();
	lone_broadcast(w);
	ring(w);
	world_group_end();
}

static const struct form {
	char letter;
	void (*play)(struct world *w);
} forms[] = {
	{ 'c', collective }, { 'r', ring }, { 'b', lone_broadcast },
	{ 'o', broadcasts_of_one }, { 'v', broadcasts_of_several }, { 'C', several_collectives },
	{ 'R', ring_among_collectives }, { 'i', inner_end }, { 'a', alltoall },
	{ 'p', alltoall_in_place }, { 'V', broadcasts_among_collectives },
	{ 's', broadcasts_beside_a_ring }, { 'B', broadcast_beside_a_ring },
};
#define FORMS (sizeof(forms) / sizeof(forms[0]))

/* What this job is like. */
struct habit {
	const struct form *form[FORMS];
	unsigned int nforms;
	unsigned int waits, rests_us;	/* one call in so many is waited for, and then it rests */
	unsigned int worlds;
};

static struct habit draw_habit(void)
{
	const char *leave = getenv("CALLS_LEAVE");
	struct habit h = { .waits = 1 + draw(8),
			   .rests_us = (10 + draw(50)) * 1000, .worlds = 1 + draw(2) };

	for (size_t i = 0; i < FORMS; i++)
		if (draw(3) == 0 && !(leave && strchr(leave, forms[i].letter)))
			h.form[h.nforms++] = &forms[i];
	if (!h.nforms)
		h.form[h.nforms++] = &forms[0];
	return h;
}

static void play_round(const struct habit *h, struct world *const *w)
{
	for (int i = 0; i < ROUND; i++) {
		struct world *at = w[draw(h->worlds)];

		h->form[draw(h->nforms)]->play(at);
		if (draw(h->waits))
			continue;
		world_wait(at);
		usleep(h->rests_us);
	}
}

/* The first rank says how many rounds there are, when it has seen enough. */
static bool goes_on(struct job *job, unsigned int round, double until_s)
{
	char path[4096], next[4200];
	struct timespec now;
	FILE *f;
	int go;

	snprintf(path, sizeof(path), "%s/round.%u", job->directory, round);
	if (job->first == 0) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		snprintf(next, sizeof(next), "%s.next", path);
		f = fopen(next, "we");
		go = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 < until_s;
		fprintf(f, "%d\n", go);
		fclose(f);
		rename(next, path);
		return go;
	}
	while (!(f = fopen(path, "re")))
		usleep(500);
	if (fscanf(f, "%d", &go) != 1)
		go = 0;
	fclose(f);
	return go;
}

void calls_random(struct job *job)
{
	const char *seed = getenv("CALLS_SEED"), *seconds = getenv("CALLS_S");
	struct world *w[2];
	struct timespec now;
	struct habit h;
	double until_s;

	state = (seed ? strtoull(seed, NULL, 10) : 1) * UINT64_C(0x9e3779b97f4a7c15) + 1;
	h = draw_habit();
	clock_gettime(CLOCK_MONOTONIC, &now);
	for (unsigned int i = 0; i < h.worlds; i++)
		w[i] = world_new(job, i ? "calls-too" : "calls", ordinary);
	for (unsigned int i = 0; i < h.nforms; i++)
		h.form[i]->play(w[0]);
	until_s = (double)now.tv_sec + (seconds ? atof(seconds) : 5);
	for (unsigned int i = 0; i < ROUNDS_MOST && goes_on(job, i, until_s); i++)
		play_round(&h, w);
	for (unsigned int i = 0; i < h.worlds; i++)
		world_destroy(w[i]);
}
