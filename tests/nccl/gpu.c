/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels and data do not wait for each other: a kernel lasts as long as it is
 * told, and whatever the proxies want to move is there at once.
 */
#include "gpu.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "conn.h"
#include "fake.h"
#include "kernel.h"

#define QUEUE		1000
#define COMMS		256
#define BETWEEN_NS	5000	/* two kernels of a stream */
#define REST_NS		20000	/* between two passes, and twice as long after each */
#define LONGEST_REST_NS	1000000	/* that found nothing to do: others need the cores */

struct stream {
	struct stream *next;	/* of those that have kernels */
	struct kernel *first, **last;
	uint64_t launched, ended;	/* also read without the lock */
	unsigned int part;		/* of the first kernel, counted from 1; 0: not begun */
	uint64_t due_ns;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t progress;
	bool running;
	struct stream *streams;
	char *comms[COMMS];
	uint64_t part_ns;
	long step_bytes;
	bool sync;
	FILE *diary;		/* or NULL */
} gpu = { .lock = PTHREAD_MUTEX_INITIALIZER, .progress = PTHREAD_COND_INITIALIZER };

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void write_diary(const struct stream *s, const struct kernel *k)
{
	if (!gpu.diary)
		return;
	fprintf(gpu.diary, "{\"stream\":\"%d.%p\",\"launched_ns\":%" PRIu64, getpid(),
		(const void *)s, k->launched_ns);
	fprintf(gpu.diary, ",\"begin_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64 "}\n", k->begin_ns,
		now_ns());
}

static void end_kernel(struct stream *s)
{
	struct kernel *k = s->first;

	s->first = k->next;
	if (!s->first)
		s->last = &s->first;
	free(k);
	s->part = 0;
	__atomic_add_fetch(&s->ended, 1, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&gpu.progress);
}

/* One part ends, the next begins, or the kernel is over. */
static void advance(struct stream *s)
{
	struct kernel *k = s->first;
	bool aborted = kernel_aborted(k);

	if (s->part && !aborted)
		kernel_end(k, s->part - 1);
	if (s->part == k->parts || aborted) {
		write_diary(s, k);
		end_kernel(s);
		s->due_ns = now_ns() + BETWEEN_NS;
		return;
	}
	if (!s->part)
		k->begin_ns = now_ns();
	kernel_begin(k, s->part++);
	s->due_ns = now_ns() + k->part_ns;
}

static bool serve_comms(void)
{
	bool moved = false;

	for (int i = 0; i < COMMS; i++)
		if (gpu.comms[i])
			moved |= conn_serve(gpu.comms[i], gpu.step_bytes);
	return moved;
}

static bool run_kernels(void)
{
	struct stream **link = &gpu.streams;
	bool found = *link;

	while (*link) {
		struct stream *s = *link;

		while (s->first && (now_ns() >= s->due_ns || kernel_aborted(s->first)))
			advance(s);
		if (s->first)
			link = &s->next;
		else
			*link = s->next;
	}
	return found;
}

static void *run(void *unused)
{
	struct timespec rest = { .tv_nsec = REST_NS };

	for (;;) {
		bool moved, ran;

		pthread_mutex_lock(&gpu.lock);
		moved = serve_comms();
		ran = run_kernels();
		pthread_mutex_unlock(&gpu.lock);
		if (moved || ran)
			rest.tv_nsec = REST_NS;
		else if (rest.tv_nsec < LONGEST_REST_NS)
			rest.tv_nsec *= 2;
		nanosleep(&rest, NULL);
	}
	return unused;
}

static void lock(void)
{
	pthread_mutex_lock(&gpu.lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&gpu.lock);
}

/* A child has no GPU, and none of its parent's work. */
static void forget_parent(void)
{
	gpu.running = false;
	for (int i = 0; i < COMMS; i++)
		gpu.comms[i] = NULL;
	for (struct stream *s = gpu.streams; s; s = s->next)
		while (s->first)
			end_kernel(s);
	gpu.streams = NULL;
	unlock();
}

__attribute__((constructor)) static void set_up(void)
{
	gpu.part_ns = (uint64_t)fake_setting("FAKE_GPU_KERNEL_US", 40) * 1000;
	gpu.step_bytes = fake_setting("FAKE_GPU_STEP_BYTES", 8);
	gpu.sync = fake_setting("FAKE_GPU_SYNC", 0);
	if (getenv("FAKE_GPU_DIARY"))
		gpu.diary = fopen(getenv("FAKE_GPU_DIARY"), "we");
	if (gpu.diary)
		setlinebuf(gpu.diary);
	pthread_atfork(lock, unlock, forget_parent);
}

static void start(void)
{
	pthread_t thread;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, run, NULL))
		abort();
	pthread_setname_np(thread, "fake-gpu");
	pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	gpu.running = true;
}

static void know(char *comm)
{
	int unused = -1;

	for (int i = 0; i < COMMS; i++) {
		if (gpu.comms[i] == comm)
			return;
		if (!gpu.comms[i] && unused < 0)
			unused = i;
	}
	if (unused < 0)
		abort();
	gpu.comms[unused] = comm;
}

void gpu_forget(const void *comm)
{
	lock();
	for (int i = 0; i < COMMS; i++)
		if (gpu.comms[i] == comm)
			gpu.comms[i] = NULL;
	unlock();
}

struct stream *gpu_stream_new(void)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->last = &s->first;
	return s;
}

static void play_now(struct stream *s, struct kernel *k)
{
	for (unsigned int part = 0; part < k->parts; part++) {
		kernel_begin(k, part);
		kernel_end(k, part);
	}
	free(k);
	s->launched++;
	s->ended++;
}

void gpu_launch(struct stream *s, const char *args)
{
	struct kernel *k = kernel_new(args);

	if (gpu.sync) {
		play_now(s, k);
		return;
	}
	lock();
	if (!gpu.running)
		start();
	know(k->comm);
	k->part_ns = gpu.part_ns;
	k->launched_ns = now_ns();
	while (s->launched - s->ended >= QUEUE)
		pthread_cond_wait(&gpu.progress, &gpu.lock);
	if (!s->first) {
		if (s->due_ns < now_ns() + BETWEEN_NS)
			s->due_ns = now_ns() + BETWEEN_NS;
		s->next = gpu.streams;
		gpu.streams = s;
	}
	*s->last = k;
	s->last = &k->next;
	__atomic_add_fetch(&s->launched, 1, __ATOMIC_RELEASE);
	unlock();
}

void fake_kernels_last(long us)
{
	lock();
	gpu.part_ns = (uint64_t)us * 1000;
	unlock();
}

uint64_t gpu_launched(struct stream *s)
{
	return __atomic_load_n(&s->launched, __ATOMIC_ACQUIRE);
}

uint64_t gpu_ended(struct stream *s)
{
	return __atomic_load_n(&s->ended, __ATOMIC_ACQUIRE);
}

void gpu_wait(struct stream *s, uint64_t kernels)
{
	lock();
	while (s->ended < kernels)
		pthread_cond_wait(&gpu.progress, &gpu.lock);
	unlock();
}
