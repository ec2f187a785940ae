/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The io_uring backend.
 *
 * A poll request fires once; it is put in again before the next wait, which
 * makes it level-triggered, as the other backend is.  (A multishot poll only
 * tells of what is new.)
 */
#include "ncclinspd/base/loop_backend.h"

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdlib.h>

struct uring_poll {
	int fd;			/* -1: none */
	uint32_t generation;	/* a completion of an earlier watch is not ours */
	bool armed;
};

struct uring {
	struct io_uring polls;
	struct uring_poll watch[LOOP_FDS];
};

/* The flags save interrupts where they are known: Linux 6.1. */
static int ring_open(struct io_uring *ring, unsigned entries)
{
	int r = io_uring_queue_init(entries, ring,
				    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);

	return r == -EINVAL ? io_uring_queue_init(entries, ring, 0) : r;
}

/* Finds out whether a ring that could be made may also be used, while there is another way. */
static int ring_try(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	int r;

	io_uring_prep_nop(io_uring_get_sqe(ring));
	r = io_uring_submit_and_wait(ring, 1);
	if (r >= 0)
		r = io_uring_peek_cqe(ring, &cqe);
	if (r == 0)
		io_uring_cqe_seen(ring, cqe);
	return r;
}

static int uring_open(void **state)
{
	struct uring *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return -ENOMEM;
	r = ring_open(&u->polls, LOOP_FDS * 2);
	if (r < 0)
		goto free_state;
	r = ring_try(&u->polls);
	if (r < 0)
		goto close_polls;
	for (int i = 0; i < LOOP_FDS; i++)
		u->watch[i].fd = -1;
	*state = u;
	return 0;

close_polls:
	io_uring_queue_exit(&u->polls);
free_state:
	free(u);
	return r;
}

static void uring_close(void *state)
{
	struct uring *u = state;

	io_uring_queue_exit(&u->polls);
	free(u);
}

static struct uring_poll *uring_find(struct uring *u, int fd)
{
	for (int i = 0; i < LOOP_FDS; i++)
		if (u->watch[i].fd == fd)
			return &u->watch[i];
	return NULL;
}

static uint64_t watch_key(const struct uring *u, const struct uring_poll *w)
{
	return (uint64_t)(w - u->watch) << 32 | w->generation;
}

/* The queue has room for all watches twice; when it is full, hand it over. */
static struct io_uring_sqe *ring_next_sqe(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (sqe)
		return sqe;
	io_uring_submit(ring);
	return io_uring_get_sqe(ring);
}

static int uring_watch(void *state, int fd)
{
	struct uring_poll *w = uring_find(state, -1);

	if (!w)
		return -ENOSPC;
	w->fd = fd;
	w->generation++;
	w->armed = false;
	return 0;
}

static void uring_unwatch(void *state, int fd)
{
	struct uring *u = state;
	struct uring_poll *w = uring_find(u, fd);
	struct io_uring_sqe *sqe;

	if (!w)
		return;
	sqe = w->armed ? ring_next_sqe(&u->polls) : NULL;
	if (sqe) {
		io_uring_prep_poll_remove(sqe, watch_key(u, w));
		io_uring_sqe_set_data64(sqe, UINT64_MAX);
		io_uring_submit(&u->polls);
	}
	w->fd = -1;
	w->generation++;
}

static void uring_arm(struct uring *u)
{
	for (int i = 0; i < LOOP_FDS; i++) {
		struct uring_poll *w = &u->watch[i];
		struct io_uring_sqe *sqe;

		if (w->fd < 0 || w->armed)
			continue;
		sqe = ring_next_sqe(&u->polls);
		if (!sqe)
			return;
		io_uring_prep_poll_add(sqe, w->fd, POLLIN);
		io_uring_sqe_set_data64(sqe, watch_key(u, w));
		w->armed = true;
	}
}

static int uring_collect(struct uring *u, int ready[LOOP_FDS])
{
	struct io_uring_cqe *cqe;
	unsigned head, seen = 0;
	int n = 0;

	io_uring_for_each_cqe(&u->polls, head, cqe) {
		uint64_t i = cqe->user_data >> 32;

		seen++;
		if (i >= LOOP_FDS || watch_key(u, &u->watch[i]) != cqe->user_data)
			continue;
		u->watch[i].armed = cqe->res < 0;	/* it cannot be watched: do not spin */
		if (cqe->res > 0 && n < LOOP_FDS)
			ready[n++] = u->watch[i].fd;
	}
	io_uring_cq_advance(&u->polls, seen);
	return n;
}

static int uring_wait(void *state, uint64_t wait_ns, int ready[LOOP_FDS])
{
	struct uring *u = state;
	struct io_uring_cqe *cqe;
	struct __kernel_timespec ts = {
		.tv_sec = (int64_t)(wait_ns / 1000000000),
		.tv_nsec = (long long)(wait_ns % 1000000000),
	};
	int r;

	uring_arm(u);
	r = io_uring_submit_and_wait_timeout(&u->polls, &cqe, 1,
					     wait_ns == UINT64_MAX ? NULL : &ts, NULL);
	if (r < 0 && r != -ETIME && r != -EINTR && r != -EAGAIN && r != -EBUSY)
		return r;
	return uring_collect(u, ready);
}

const struct loop_ops loop_uring = {
	.name = "io_uring",
	.open = uring_open,
	.close = uring_close,
	.watch = uring_watch,
	.unwatch = uring_unwatch,
	.wait = uring_wait,
};
