/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NCCL_CONN_H
#define TESTS_NCCL_CONN_H

/* The GPU's ends of a communicator's network connections. */

#include <stdbool.h>

/*
 * Hand over everything that may be sent, `step_bytes` per step, and take
 * everything that has arrived; whether there was anything.  `comm` is NCCL's
 * ncclKernelComm.
 */
bool conn_serve(char *comm, long step_bytes);

#endif
