/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libbpf is called here and nowhere else.  A set of numbers is compared with the one before, so
 * that what stays watched keeps its state in the kernel.
 */
#include "probe/watching.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probe/resent.h"
#include "probe/watch.skel.h"

#define FILTER_BITS	(8 * sizeof(((struct watch_bpf *)NULL)->bss->hot.filter))

struct number_filter {
	unsigned long long word[FILTER_BITS / 64];
};

struct number_set {
	int32_t at[PROBE_THREADS];
	uint32_t n;
};

struct watching {
	struct watch_bpf *kernel;
	struct ring_buffer *ring;
	struct number_set processes, threads;
	watching_fn *fn;
	void *arg;
};

/* ---- numbers -------------------------------------------------------------------- */

static int numbers_by_size(const void *a, const void *b)
{
	const int32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void filter_add(struct number_filter *filter, const struct number_set *set)
{
	for (uint32_t i = 0; i < set->n; i++) {
		uint32_t bit = (uint32_t)set->at[i] % FILTER_BITS;

		filter->word[bit / 64] |= 1ull << bit % 64;
	}
}

/* Word by word: of what stays watched no event is missed meanwhile. */
static void watching_filter(struct watching *w)
{
	struct number_filter filter = { 0 };

	filter_add(&filter, &w->processes);
	filter_add(&filter, &w->threads);
	for (uint32_t i = 0; i < FILTER_BITS / 64; i++)
		__atomic_store_n(&w->kernel->bss->hot.filter[i], filter.word[i], __ATOMIC_RELAXED);
}

/* Both are in order: what only one of them has goes, or comes. */
static void numbers_replace(struct number_set *set, const struct bpf_map *map, int32_t *numbers,
			    uint32_t n)
{
	static const char nothing[256];
	uint32_t had = 0, has = 0;
	int fd = bpf_map__fd(map);

	if (n)
		qsort(numbers, n, sizeof(*numbers), numbers_by_size);
	while (had < set->n || has < n) {
		if (has == n || (had < set->n && set->at[had] < numbers[has])) {
			bpf_map_delete_elem(fd, &set->at[had++]);
		} else if (had == set->n || numbers[has] < set->at[had]) {
			bpf_map_update_elem(fd, &numbers[has++], nothing, BPF_NOEXIST);
		} else {
			had++;
			has++;
		}
	}
	if (n)
		memcpy(set->at, numbers, n * sizeof(*numbers));
	set->n = n;
}

static bool numbers_have(const struct number_set *set, int32_t number)
{
	return set->n && bsearch(&number, set->at, set->n, sizeof(number), numbers_by_size);
}

/* Credentials of processes that are not watched any more go. */
static void owners_forget(const struct watching *w)
{
	int fd = bpf_map__fd(w->kernel->maps.owners);
	struct { int32_t pid; uint32_t uid; } owner;
	uint64_t key, next;
	bool more = bpf_map_get_next_key(fd, NULL, &next) == 0;

	while (more) {
		key = next;
		more = bpf_map_get_next_key(fd, &key, &next) == 0;
		if (bpf_map_lookup_elem(fd, &key, &owner) == 0 &&
		    !numbers_have(&w->processes, owner.pid))
			bpf_map_delete_elem(fd, &key);
	}
}

void watching_set(struct watching *w, int32_t *processes, uint32_t nprocesses,
		  int32_t *threads, uint32_t nthreads)
{
	numbers_replace(&w->processes, w->kernel->maps.processes, processes, nprocesses);
	numbers_replace(&w->threads, w->kernel->maps.threads, threads, nthreads);
	watching_filter(w);
	owners_forget(w);
}

/* ---- events --------------------------------------------------------------------- */

static int watching_on_event(void *arg, void *data, size_t bytes)
{
	const struct watching *w = arg;

	if (bytes >= sizeof(struct probe_event))
		w->fn(data, w->arg);
	return 0;
}

int watching_fd(const struct watching *w)
{
	return ring_buffer__epoll_fd(w->ring);
}

void watching_read(struct watching *w)
{
	ring_buffer__poll(w->ring, 0);
}

/* The program counts in one turn, while nothing happens to the other: no segment is lost. */
void watching_tell(struct watching *w)
{
	int fd = bpf_map__fd(w->kernel->maps.resent);
	struct probe_event e = { .kind = PROBE_RESENT };
	struct resent_key key, next;
	struct timespec now;
	bool more = bpf_map_get_next_key(fd, NULL, &next) == 0;

	clock_gettime(CLOCK_MONOTONIC, &now);
	e.at_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	while (more) {
		key = next;
		more = bpf_map_get_next_key(fd, &key, &next) == 0;
		if (key.turn == w->kernel->bss->turn ||
		    bpf_map_lookup_elem(fd, &key, &e.resent.segments))
			continue;
		e.number = key.pid;
		memcpy(e.resent.address, key.address, sizeof(key.address));
		w->fn(&e, w->arg);
		bpf_map_delete_elem(fd, &key);
	}
	w->kernel->bss->turn ^= 1;
}

uint64_t watching_lost(const struct watching *w)
{
	return w->kernel->bss->lost;
}

/* ---- life ------------------------------------------------------------------------ */

static int watching_say(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

int watching_begin(struct watching *w)
{
	w->kernel->bss->lost = 0;
	return watch_bpf__attach(w->kernel);
}

void watching_end(struct watching *w)
{
	watch_bpf__detach(w->kernel);
	watching_set(w, NULL, 0, NULL, 0);
	watching_read(w);
	for (int turns = 0; turns < 2; turns++)
		watching_tell(w);	/* the next client would take them for new */
}

int watching_new(struct watching **out, watching_fn *fn, void *arg)
{
	struct watching *w = calloc(1, sizeof(*w));
	int r = 0;

	if (!w)
		return -ENOMEM;
	w->fn = fn;
	w->arg = arg;
	libbpf_set_print(watching_say);
	w->kernel = watch_bpf__open_and_load();
	if (w->kernel)
		w->ring = ring_buffer__new(bpf_map__fd(w->kernel->maps.events), watching_on_event,
					   w, NULL);
	if (!w->ring) {
		r = -errno;
		watching_free(w);
		return r ?: -EIO;
	}
	*out = w;
	return 0;
}

void watching_free(struct watching *w)
{
	if (!w)
		return;
	ring_buffer__free(w->ring);
	watch_bpf__destroy(w->kernel);
	free(w);
}
