/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_AROUND_TURNS_H
#define NCCLINSPD_AROUND_TURNS_H

/*
 * Something that may hang, done again and again in a thread of its own, for which nobody waits.
 *
 *     turns_start(&turns, &work, state)
 *     turns_lock(), turns_unlock()	around what the thread shares with the loop
 *     turns_stop()			waits for a second at most
 */

#include <stdbool.h>
#include <stdint.h>

struct turns;

struct turns_work {
	const char *name;		/* the name for the log, if it hangs */
	uint64_t interval_ns;
	/* Under the lock: takes over what is wanted.  False: nothing is, and no turn is made. */
	bool (*prepare)(void *state);
	void (*turn)(void *state);	/* takes as long as it likes, without the lock */
	void (*tell)(void *state);	/* under the lock: hands over what came of it */
	void (*end)(void *state);	/* takes as long as it likes: nothing else uses the state */
};

/* 0, -ENOMEM, or why there is no thread: then the state is the caller's. */
int turns_start(struct turns **out, const struct turns_work *work, void *state);

/* A thread that hangs is left to itself.  All that follows, and this, takes NULL: there is none. */
void turns_stop(struct turns *t);

void turns_lock(struct turns *t);
void turns_unlock(struct turns *t);

/* Under the lock: what is wanted has changed. */
void turns_wake(struct turns *t);

/* Under the lock: for how long the present turn has gone on; 0: there is none. */
uint64_t turns_busy_ns(const struct turns *t, uint64_t now_ns);

#endif
