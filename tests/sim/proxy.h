/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_PROXY_H
#define TESTS_SIM_PROXY_H

/*
 * NCCL's proxy progress thread, one per communicator and local rank, unless
 * communicators share it: it takes posted work, moves data over the network step
 * by step and polls the GPU's channels, all at the times that the plan has for it.
 * From 2.31 on the channels are polled by a second thread of the same kind.
 */

#include "tests/sim/hook.h"

struct proxy;

/* Give a member its connections and a thread; waits until that idles.  0 or -errno. */
int proxy_new(struct member *member);

/* The same, but the thread is that of another member. */
int proxy_share(struct member *member, const struct member *owner);

/*
 * The member is gone; the last one ends the thread after all work that ends.  What
 * hangs is left without a stop.  Connections live on until proxy_disconnect().
 */
void proxy_leave(struct member *member);
void proxy_disconnect(struct member *member);

/*
 * Hand over one launch; copies the tasks.  `counted`: NCCL adds their works to
 * what it believes the GPU has counted (KernelCh).
 */
void proxy_post(struct member *member, const struct task *task, int ntasks, bool counted);

/* The mask that the member's next call has read, and when. */
void proxy_note_mask(struct member *member, int64_t enqueued, int mask);

/* A launch, and how far behind the model it is. */
void proxy_note_launch(struct member *member, int64_t launched, int64_t late_ns);

/* Wait until everything posted so far has been played as far as it goes. */
void proxy_drain(struct member *member);

/* How many kernels are waited for whose stamps never come, as ncclCommDestroy would. */
int proxy_waits(const struct member *member);

/* Whether this rank's data goes over the network in this operation. */
bool proxy_has_net(const struct task *task);

#endif
