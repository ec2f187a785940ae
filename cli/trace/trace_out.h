/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRACE_TRACE_OUT_H
#define CLI_TRACE_TRACE_OUT_H

/*
 * A file that is written piece by piece and is there whole or not at all: under another
 * name until it is closed.  A name that ends in .gz or .zst is compressed on the way; "-"
 * is stdout, and a device, a pipe or what a link leads to is written as it is.
 */

#include <stddef.h>
#include <stdint.h>

struct trace_out;

/* Returns 0 or a negative errno. */
int trace_out_open(struct trace_out **op, const char *path);

/* Errors are remembered, and told by trace_out_error() and trace_out_close(). */
void trace_out_put(struct trace_out *o, const char *text, size_t n);
int trace_out_error(const struct trace_out *o);

/* Bytes so far, before compression. */
uint64_t trace_out_bytes(const struct trace_out *o);

/* All of it is on disk under its name: 0; else a negative errno, and nothing is left. */
int trace_out_close(struct trace_out *o);

/* Nothing is left of it.  NULL is fine. */
void trace_out_drop(struct trace_out *o);

#endif
