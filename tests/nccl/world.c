/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of calls nest, so every call that may have several ranks in one thread
 * opens one.  Nonblocking communicators are waited for after each outermost call.
 */
#include "world.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "fake.h"

#define ID_POLLS	30000

static _Thread_local int group_depth;

void world_require(int result, const char *what)
{
	if (result == ncclSuccess || result == ncclInProgress)
		return;
	fprintf(stderr, "%s: %s (%s)\n", what, ncclGetErrorString(result), ncclGetLastError(NULL));
	exit(1);
}

static void sleep_us(long us)
{
	const struct timespec t = { .tv_nsec = us * 1000 };

	nanosleep(&t, NULL);
}

void world_settle(struct world *w)
{
	if (!w->nonblocking || group_depth)
		return;
	for (int i = 0; i < w->local; i++) {
		int result = ncclInProgress;

		while (w->comm[i] && result == ncclInProgress) {
			sleep_us(50);
			WORLD_REQUIRE(ncclCommGetAsyncError(w->comm[i], &result));
		}
		world_require(result, "asynchronous error");
	}
}

void world_group_start(void)
{
	group_depth++;
	WORLD_REQUIRE(ncclGroupStart());
}

void world_group_end(void)
{
	WORLD_REQUIRE(ncclGroupEnd());
	group_depth--;
}

struct errand {
	struct world *world;
	int local;
	void (*run)(struct world *w, int local);
};

static void *run_errand(void *arg)
{
	const struct errand *e = arg;

	e->run(e->world, e->local);
	return NULL;
}

void world_each(struct world *w, void (*run)(struct world *w, int local))
{
	struct errand errands[WORLD_LOCAL];
	pthread_t threads[WORLD_LOCAL];

	for (int i = 0; i < w->local; i++) {
		errands[i] = (struct errand){ w, i, run };
		if (pthread_create(&threads[i], NULL, run_errand, &errands[i]))
			abort();
	}
	for (int i = 0; i < w->local; i++)
		pthread_join(threads[i], NULL);
}

/* ---- communicators ---- */

static void write_id(const char *path, const struct nccl_unique_id *id)
{
	char unready[4096];
	FILE *file;

	snprintf(unready, sizeof(unready), "%s.unready", path);
	file = fopen(unready, "w");
	if (!file || fwrite(id, sizeof(*id), 1, file) != 1 || fclose(file) ||
	    rename(unready, path)) {
		perror(path);
		exit(1);
	}
}

static void read_id(const char *path, struct nccl_unique_id *id)
{
	FILE *file = fopen(path, "r");

	for (int i = 0; !file && i < ID_POLLS; i++) {
		sleep_us(1000);
		file = fopen(path, "r");
	}
	if (!file || fread(id, sizeof(*id), 1, file) != 1) {
		perror(path);
		exit(1);
	}
	fclose(file);
}

static void agree_on_id(const struct job *job, const char *name, struct nccl_unique_id *id)
{
	char path[4000];

	snprintf(path, sizeof(path), "%s/id.%s", job->directory, name);
	if (job->first) {
		read_id(path, id);
	} else {
		WORLD_REQUIRE(ncclGetUniqueId(id));
		write_id(path, id);
	}
}

static struct world *world_alloc(struct job *job, const char *name, bool nonblocking)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->job = job;
	w->local = job->local;
	w->nonblocking = nonblocking;
	snprintf(w->name, sizeof(w->name), "%s", name);
	for (int i = 0; i < w->local; i++) {
		cudaSetDevice(i);
		cudaStreamCreateWithFlags(&w->stream[i], 0);
	}
	return w;
}

static struct nccl_config config_of(struct world *w, bool share)
{
	struct nccl_config config = NCCL_CONFIG;

	config.comm_name = w->name;
	config.blocking = !w->nonblocking;
	config.split_share = share;
	config.shrink_share = share;
	return config;
}

static void join_world(struct world *w, int local)
{
	struct nccl_config config = config_of(w, false);

	w->rank[local] = w->job->first + local;
	cudaSetDevice(local);
	WORLD_REQUIRE(ncclCommInitRankConfig(&w->comm[local], w->ranks, w->id, w->rank[local],
					     &config));
}

struct world *world_new(struct job *job, const char *name, struct world_options options)
{
	struct world *w = world_alloc(job, name, options.nonblocking);

	agree_on_id(job, name, &w->id);
	w->ranks = job->ranks;
	w->nodes = job->ranks / job->local;
	if (options.single) {
		world_each(w, join_world);
		return w;
	}
	world_group_start();
	for (int i = 0; i < w->local; i++)
		join_world(w, i);
	world_group_end();
	world_settle(w);
	return w;
}

struct world *world_split(struct world *parent, int colors, const char *name,
			  struct world_options options)
{
	struct world *w = world_alloc(parent->job, name, options.nonblocking);
	struct nccl_config config = config_of(w, options.share);

	if (w->local > 1)
		colors = 1;
	w->ranks = (parent->ranks + colors - 1 - parent->rank[0] % colors) / colors;
	w->nodes = w->ranks / w->local;
	world_group_start();
	for (int i = 0; i < w->local; i++) {
		w->rank[i] = parent->rank[i] / colors;
		cudaSetDevice(i);
		WORLD_REQUIRE(ncclCommSplit(parent->comm[i], parent->rank[i] % colors, w->rank[i],
				      &w->comm[i], &config));
	}
	world_group_end();
	world_settle(parent);
	world_settle(w);
	return w;
}

struct world *world_shrink(struct world *parent, const char *name, int flags)
{
	struct world *w = world_alloc(parent->job, name, parent->nonblocking);
	struct nccl_config config = config_of(w, false);
	int last = parent->ranks - 1;

	w->ranks = last;
	w->nodes = (last + w->local - 1) / w->local;
	if (parent->rank[w->local - 1] == last)
		w->local--;
	world_group_start();
	for (int i = 0; i < w->local; i++) {
		w->rank[i] = parent->rank[i];
		cudaSetDevice(i);
		WORLD_REQUIRE(ncclCommShrink(parent->comm[i], &last, 1, &w->comm[i], &config,
					     flags));
	}
	world_group_end();
	world_settle(w);
	if (w->local)
		return w;
	free(w);
	return NULL;
}

void world_wait(struct world *w)
{
	for (int i = 0; i < w->local; i++)
		cudaStreamSynchronize(w->stream[i]);
}

void world_destroy(struct world *w)
{
	world_wait(w);
	for (int i = 0; i < w->local && w->nonblocking; i++)
		WORLD_REQUIRE(ncclCommFinalize(w->comm[i]));
	world_settle(w);
	for (int i = 0; i < w->local; i++)
		WORLD_REQUIRE(ncclCommDestroy(w->comm[i]));
	free(w);
}

void world_abort(struct world *w)
{
	for (int i = 0; i < w->local; i++)
		WORLD_REQUIRE(ncclCommAbort(w->comm[i]));
	free(w);
}
