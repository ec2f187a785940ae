/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_CE_H
#define TESTS_SIM_CE_H

/* A collective on copy engines: enqueued by the host, invisible afterwards. */

#include "tests/sim/hook.h"

void ce_run(struct task *task);

#endif
