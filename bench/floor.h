/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

/*
 * What we are measured against.  The floor does the least that a profiler can do
 * with every callback: it reads the tick and stores one 64-byte record.  The
 * empty one refuses every event.
 */

#include "nccl/profiler.h"

extern const struct nccl_profiler_v6 floor_plugin;
extern const struct nccl_profiler_v6 empty_plugin;

#endif
