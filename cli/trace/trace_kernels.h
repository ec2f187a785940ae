/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRACE_TRACE_KERNELS_H
#define CLI_TRACE_TRACE_KERNELS_H

/* Kernels of a profiler's traces, drawn beside the operations that were read with them. */

#include "cli/trace/trace.h"

/* Reads the files; NULL: one cannot be used, which is told on stderr. */
struct trace_kernels *trace_kernels_new(const char *const *paths, uint32_t n);
void trace_kernels_free(struct trace_kernels *tk);

/*
 * Joins them with the rows of `root`, which outlives the drawing, and bounds the trace to their
 * time.  0, or -1 and *why: a file is not of these operations.
 */
int trace_kernels_join(struct trace *t, const json_t *root, const char **why);

void trace_kernels_draw(struct trace *t);

#endif
