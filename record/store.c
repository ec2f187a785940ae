/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is mapped once and for ever, at its full size.  Threads take their room
 * by moving `next` on; who takes room beyond `ready` has the file system give
 * blocks first, so that a full disk is an error here and no SIGBUS later.
 *
 * Closing puts `next` beyond every limit and learns in the same step how far it
 * had come: all room given out lies before that, none is given out after it, and
 * the file can be cut there under threads that still write.
 */
#include "record/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/format.h"
#include "shmring/clock.h"
#include "shmring/producer.h"

#define CLOSED		(UINT64_C(1) << 62)
#define CHUNK_BYTES	(UINT64_C(1) << 20)
#define PAGE_BYTES	UINT64_C(4096)

static struct {
	struct record_header *header;	/* NULL: there is no file */
	uint64_t limit;
	uint64_t end;			/* the last cut's place; a thread that still asks for blocks
					   may have made the file longer since */
	_Atomic uint64_t next;		/* offset of the next record */
	_Atomic uint64_t ready;		/* blocks are there up to here */
	int fd;
	dev_t dev;			/* dev, ino: by which fd is known to be still the file's */
	ino_t ino;
	pid_t pid;			/* the process that made it */
	bool is_open;
	bool has_hole;			/* room was given out that the disk had not */
	char path[512];
} store = { .next = CLOSED, .fd = -1 };

/* A job that closes every descriptor it can think of has a file of its own there later. */
static bool store_has_file(void)
{
	struct stat st;

	return store.fd >= 0 && shmring_is_file(store.fd, store.dev, store.ino, &st);
}

/* In a child of a fork that ran no handlers. */
static bool store_is_parents(void)
{
	return store.header && store.pid != getpid();
}

void store_forget(void)
{
	store.header = NULL;
	store.is_open = false;
	atomic_store_explicit(&store.next, CLOSED, memory_order_relaxed);
	if (store_has_file())
		close(store.fd);
	store.fd = -1;
}

__attribute__((destructor))
static void store_leave(void)
{
	store_close();
}

/* ---- making the file ---- */

/* The text that %c stands for; NULL: none. */
static const char *pattern_expansion(char c, const char *pid, const char *host)
{
	switch (c) {
	case 'p': return pid;
	case 'h': return host;
	case '%': return "%";
	}
	return NULL;
}

static int pattern_expand(char *to, size_t room, const char *pattern)
{
	char pid[16], host[64] = "";
	size_t n = 0;

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	gethostname(host, sizeof(host) - 1);
	for (; *pattern; pattern++) {
		char one[2] = { *pattern };
		const char *part = *pattern == '%' ? pattern_expansion(*++pattern, pid, host) : one;

		if (!part)
			return -EINVAL;
		if (strlen(part) >= room - n)
			return -ENAMETOOLONG;
		n += strlen(strcpy(to + n, part));
	}
	return n ? 0 : -EINVAL;
}

static int store_get_blocks(uint64_t from, uint64_t to)
{
	int saved = errno, r;

	do
		r = !store_has_file() ? -EBADF :
		    fallocate(store.fd, 0, (off_t)from, (off_t)(to - from)) < 0 ? -errno : 0;
	while (r == -EINTR);
	errno = saved;		/* the application's */
	return r;
}

static void store_read_program(char *to, size_t room)
{
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, to, room - 1);

	if (fd >= 0)
		close(fd);
	to[n > 0 ? n - 1 : 0] = 0;	/* cuts off the line's end */
}

static void store_fill_header(struct record_header *h, int api)
{
	memcpy(h->magic, RECORD_MAGIC, sizeof(h->magic));
	h->version = RECORD_VERSION;
	h->header_bytes = sizeof(*h);
	h->pid = (uint32_t)getpid();
	h->api = (uint32_t)api;
	h->realtime_ns = clock_ns(CLOCK_REALTIME);
	h->monotonic_ns = clock_ns(CLOCK_MONOTONIC);
	gethostname(h->host, sizeof(h->host) - 1);
	store_read_program(h->program, sizeof(h->program));
}

/* The file's size while it is open. */
static int store_make_long(uint64_t limit)
{
	if (!store_has_file())
		return -EBADF;
	if (!shmring_may_have(limit))
		return -EFBIG;
	return ftruncate(store.fd, (off_t)limit) < 0 ? -errno : 0;
}

static int store_map_file(uint64_t limit)
{
	struct stat st;
	void *at;
	int r;

	if (!shmring_stat(store.fd, &st))
		return -errno;
	store.dev = st.st_dev;
	store.ino = st.st_ino;
	r = store_make_long(limit);
	if (!r)
		r = store_get_blocks(0, CHUNK_BYTES);
	if (r)
		return r;
	at = mmap(NULL, limit, PROT_READ | PROT_WRITE, MAP_SHARED, store.fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	store.header = at;
	return 0;
}

static int store_make_file(const char *pattern, uint64_t limit, int api)
{
	int r = pattern_expand(store.path, sizeof(store.path), pattern);

	if (r)
		return r;
	store.fd = open(store.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (store.fd < 0)
		return -errno;
	store.fd = shmring_move_up(store.fd);
	r = store.fd < 0 ? store.fd : store_map_file(limit);
	if (r) {
		unlink(store.path);
		close(store.fd);
		store.fd = -1;
		return r;
	}
	store.limit = limit;
	store.pid = getpid();
	store_fill_header(store.header, api);
	atomic_store_explicit(&store.ready, CHUNK_BYTES, memory_order_relaxed);
	atomic_store_explicit(&store.next, sizeof(*store.header), memory_order_release);
	return 0;
}

/* ---- open and close ---- */

/* Go on where the file was cut; the blocks behind it are gone. */
static int store_go_on(void)
{
	int r = store_make_long(store.limit);

	if (r)
		return r;
	atomic_store_explicit(&store.ready, store.end & ~(PAGE_BYTES - 1),
			      memory_order_relaxed);
	atomic_store_explicit(&store.next, store.end, memory_order_release);
	return 0;
}

int store_open(const char *pattern, uint64_t limit_bytes, int api)
{
	int r;

	if (store_is_parents())
		store_forget();
	if (store.is_open)
		return 0;
	if (store.has_hole)
		return -ENOSPC;
	if (limit_bytes < CHUNK_BYTES)
		limit_bytes = CHUNK_BYTES;
	r = store.header ? store_go_on() : store_make_file(pattern, limit_bytes, api);
	store.is_open = r == 0;
	return r;
}

void store_close(void)
{
	uint64_t end;

	if (!store.is_open || store_is_parents())
		return;
	store.is_open = false;
	end = atomic_exchange_explicit(&store.next, CLOSED, memory_order_acq_rel);
	store.has_hole = end & CLOSED;
	end &= ~CLOSED;
	if (end > store.limit)
		end = store.limit;
	store.end = end;
	if (!store_has_file() || ftruncate(store.fd, (off_t)end) < 0)
		return;		/* it stays long, and is read all the same */
}

/* ---- records ---- */

/* Several threads may ask for overlapping blocks: the file system does not mind. */
static bool store_grow(uint64_t end)
{
	uint64_t had = atomic_load_explicit(&store.ready, memory_order_relaxed), want;

	want = (end + CHUNK_BYTES - 1) & ~(CHUNK_BYTES - 1);
	if (want > store.limit)
		want = store.limit;
	if (had >= want)
		return true;		/* another thread has just had them given */
	if (store_get_blocks(had, want))
		return false;
	while (had < want && !atomic_compare_exchange_weak_explicit(
			&store.ready, &had, want, memory_order_relaxed, memory_order_relaxed))
		;
	return true;
}

static void *store_lose(void)
{
	if (store.header)
		__atomic_fetch_add(&store.header->lost, 1, __ATOMIC_RELAXED);
	return NULL;
}

void *store_take(uint32_t bytes, uint64_t *offset)
{
	uint64_t at = atomic_fetch_add_explicit(&store.next, bytes, memory_order_acquire);

	if (at >= CLOSED || at > store.limit - bytes)
		return store_lose();
	if (at + bytes > atomic_load_explicit(&store.ready, memory_order_relaxed) &&
	    !store_grow(at + bytes)) {
		atomic_fetch_or_explicit(&store.next, CLOSED, memory_order_relaxed);
		return store_lose();
	}
	*offset = at;
	return (char *)store.header + at;
}

uint64_t store_time(void)
{
	return clock_ns(CLOCK_MONOTONIC) - store.header->monotonic_ns;
}

uint64_t store_handle(uint64_t offset)
{
	return record_handle(store.header->pid, offset);
}

const char *store_path(void)
{
	return store.path;
}
