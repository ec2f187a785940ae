/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_BASE_LOOP_H
#define NCCLINSPD_BASE_LOOP_H

/*
 * The daemon's one thread: descriptors, timers and signals.  Everything is called on the
 * thread that calls loop_run().
 *
 * Callbacks get the time at which their round began, CLOCK_MONOTONIC in ns, and
 * may add, remove, arm and cancel anything, themselves included.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct loop;
typedef void loop_fn(void *arg, uint64_t now_ns);

int loop_new(struct loop **out);
void loop_free(struct loop *loop);

/* Runs until loop_stop().  Returns 0, or a negative errno of epoll. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* One round: wait at most until `until_ns` (0: do not wait), then what is due. */
int loop_once(struct loop *loop, uint64_t until_ns);

/* The clock itself; callbacks that only need to know the round's time have it. */
uint64_t loop_clock_ns(void);

#define LOOP_TURN_NS	UINT64_C(100000000)

/* Timers that come about every LOOP_TURN_NS come together: one wake-up for all. */
static inline uint64_t loop_next_turn_ns(uint64_t now_ns)
{
	return (now_ns / LOOP_TURN_NS + 1) * LOOP_TURN_NS;
}

/*
 * Call `fn` whenever `fd` is readable (or has hung up), again and again as long
 * as it stays so.  The descriptor stays the caller's; remove it before closing.
 * -EEXIST, -ENOSPC or epoll's errno.
 */
int loop_add(struct loop *loop, int fd, loop_fn *fn, void *arg);
void loop_remove(struct loop *loop, int fd);

/* A one-shot timer in the caller's storage; zeroed but for fn and arg to begin. */
struct loop_timer {
	loop_fn *fn;
	void *arg;
	uint64_t at_ns;
	bool armed;
	struct loop_timer *next;	/* the loop's */
};

/* Arm or re-arm; a time that has passed means the next round. */
void loop_arm(struct loop *loop, struct loop_timer *timer, uint64_t at_ns);
void loop_cancel(struct loop *loop, struct loop_timer *timer);

/* Block the signal and call `fn` when it arrives.  0 or a negative errno. */
int loop_signal(struct loop *loop, int signo, loop_fn *fn, void *arg);

/* Call `fn` at the end of every round, before the loop waits again. */
void loop_hook(struct loop *loop, loop_fn *fn, void *arg);

#endif
