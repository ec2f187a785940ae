/* SPDX-License-Identifier: Apache-2.0 */
/* The questions to many nodes at once: a thread for each of the few that are asked at a time. */
#include "cli/offline/nodes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/client.h"
#include "cli/base/must.h"
#include "cli/offline/offline.h"

#define AT_A_TIME 64
#define ANSWER_MS 4300	/* time in which a node has to connect and answer: all do in 5 s */

struct nodes {
	const struct hosts *hosts;
	struct client **clients;	/* one per host, as all here */
	json_t **answers;		/* NULL: none */
	char target[64];		/* the question */
	const char *window;
	bool tells;			/* on stderr who does not answer */
	atomic_uint next;		/* the next to be asked */
	struct offline_live live;
};

struct nodes *nodes_open(const struct hosts *hosts, const char *socket, const char *window,
			 bool tells)
{
	struct nodes *n = must(calloc(1, sizeof(*n)));
	uint32_t count = hosts->names.n;

	json_object_seed(0);
	n->hosts = hosts;
	n->window = window ?: "10s";
	n->tells = tells;
	n->clients = must(calloc(count, sizeof(*n->clients)));
	n->answers = must(calloc(count, sizeof(*n->answers)));
	for (uint32_t i = 0; i < count; i++) {
		n->clients[i] = client_new(NULL, ANSWER_MS);
		client_set_host(n->clients[i], hosts->names.at[i], socket, false);
	}
	return n;
}

void nodes_free(struct nodes *n)
{
	if (!n)
		return;
	offline_live_deinit(&n->live);
	for (uint32_t i = 0; i < n->hosts->names.n; i++)
		client_free(n->clients[i]);
	free(n->clients);
	free(n->answers);
	free(n);
}

static void *nodes_work(void *arg)
{
	struct nodes *n = arg;
	uint32_t i;

	while ((i = atomic_fetch_add(&n->next, 1)) < n->hosts->names.n)
		if (client_get(n->clients[i], n->target, &n->answers[i]))
			n->answers[i] = NULL;
	return NULL;
}

/* Why it did not answer, without its name, which whoever tells it says. */
static const char *nodes_why(const struct nodes *n, uint32_t i)
{
	size_t named = strlen(n->hosts->names.at[i]);
	const char *why = client_error(n->clients[i]);

	if (!strncmp(why, n->hosts->names.at[i], named))
		why += named + strspn(why + named, ": ");
	return why;
}

void nodes_ask(struct nodes *n, struct joint *joint)
{
	pthread_t threads[AT_A_TIME];
	uint32_t hosts = n->hosts->names.n, started = 0;

	snprintf(n->target, sizeof(n->target), "/v1/snapshot?window=%s", n->window);
	atomic_store(&n->next, 0);
	while (started + 1 < AT_A_TIME && started + 1 < hosts &&
	       !pthread_create(&threads[started], NULL, nodes_work, n))
		started++;
	nodes_work(n);
	for (uint32_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < hosts; i++) {
		shots_add_answer(&joint->shots, n->hosts->names.at[i],
				 n->answers[i] ? client_body(n->clients[i]) : NULL,
				 nodes_why(n, i));
		json_decref(n->answers[i]);
		n->answers[i] = NULL;
	}
}

/* Once, where no finding will say it. */
static void nodes_tell_silent(struct nodes *n, const struct shots *s)
{
	const char *name;
	json_t *why;

	if (!n->tells)
		return;
	n->tells = false;
	json_object_foreach(s->silent, name, why)
		fprintf(stderr, "ncclinsp: %s: %s\n", name, json_string_value(why));
}

static void nodes_sample(void *arg, struct joint *joint)
{
	struct nodes *n = arg;

	nodes_ask(n, joint);
	nodes_tell_silent(n, &joint->shots);
}

json_t *nodes_answer(void *arg, const char *target)
{
	struct nodes *n = arg;

	n->live.ask = nodes_sample;
	n->live.arg = n;
	return offline_live_answer(&n->live, target);
}
