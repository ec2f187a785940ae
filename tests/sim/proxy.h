/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_PROXY_H
#define TESTS_SIM_PROXY_H

/*
 * NCCL's proxy progress thread, one per communicator and local rank: it takes
 * posted work, moves data over the network step by step and polls the GPU's
 * channels, all at the times that the plan has for it.
 */

#include "tests/sim/hook.h"

struct proxy;

int proxy_new(struct proxy **proxyp, struct member *member);	/* waits until it idles */

/* End the thread after all work that ends.  What hangs is left without a stop. */
void proxy_free(struct proxy *proxy);

/* Hand over one launch; copies the tasks. */
void proxy_post(struct proxy *proxy, const struct task *task, int ntasks);

/* Wait until everything posted so far has been played as far as it goes. */
void proxy_drain(struct proxy *proxy);

/* Whether this rank's data goes over the network in this operation. */
bool proxy_has_net(const struct task *task);

#endif
