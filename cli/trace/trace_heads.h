/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRACE_TRACE_HEADS_H
#define CLI_TRACE_TRACE_HEADS_H

/*
 * Operations and calls, to which other slices belong, by their token.  Children come before or
 * after them; arrows are drawn when both are known.  The past is kept as far as it fits.
 */

#include <stdbool.h>

#include "cli/trace/trace_write.h"

#define TRACE_HEADS	32768
#define TRACE_WAITING	32768	/* children whose head has not come */

struct trace_head {
	struct trace_at at;
	uint64_t start_ns, stop_ns;	/* the times of its slice */
	uint64_t first_ns, last_ns;	/* the times of all children so far; 0: none */
	const char *func;		/* lives as long as the trace; NULL: not known */
	uint64_t seq;			/* UINT64_MAX: none */
};

struct trace_heads;

/* Exits when memory runs out. */
struct trace_heads *trace_heads_new(struct trace_writer *w);
void trace_heads_free(struct trace_heads *h);

/* A head's slice was drawn; the arrows to what waited for it are, too. */
void trace_heads_add(struct trace_heads *h, uint32_t source, uint64_t token,
		     const struct trace_head *head);

/* NULL: its slice was not drawn, or long ago.  Valid until the next call. */
const struct trace_head *trace_heads_find(struct trace_heads *h, uint32_t source,
					  uint64_t token);

/* A child's slice was drawn: an arrow to it, now or later, unless it is on its head's thread. */
void trace_heads_child(struct trace_heads *h, uint32_t source, uint64_t token,
		       struct trace_at at, uint64_t start_ns, uint64_t stop_ns);

/* The time from begin to end of all that belongs to that token.  False: not known. */
bool trace_heads_extent(struct trace_heads *h, uint32_t source, uint64_t token,
			uint64_t *first_ns, uint64_t *last_ns);

#endif
