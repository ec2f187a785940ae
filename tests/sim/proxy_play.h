/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_PROXY_PLAY_H
#define TESTS_SIM_PROXY_PLAY_H

/* From actions of the proxy's work to calls of the profiler. */

#include "tests/sim/work.h"

/* A ProxyOp begins: when the op is taken, or, up to 2.26, when it is first touched. */
void proxy_play_op_start(struct member *member, struct work_sub *sub);

void proxy_play_action(struct member *member, const struct work_action *action);

/* A ProxyCtrl event: start, this state, and with `close` its end. */
void proxy_play_ctrl_open(struct member *member, void **slot, int state);
void proxy_play_ctrl_close(struct member *member, void **slot, int state, int appended);
void proxy_play_ctrl(struct member *member, int state);

#endif
