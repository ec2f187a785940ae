/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRACE_TRACE_OTF2_H
#define CLI_TRACE_TRACE_OTF2_H

/*
 * The same events as an OTF2 archive, as Score-P writes it: a directory with traces.otf2 in
 * it, which is there whole or not at all.  OTF2 wants each location's events in order, so
 * slices are kept in memory until the end; what has no room there is counted.
 */

#include <stddef.h>
#include <stdint.h>

#define TRACE_OTF2_SLICES (1u << 21)	/* most that are kept: some 500 MB */

struct trace_otf2;

/* Returns 0 or a negative errno, and *why then tells. */
int trace_otf2_open(struct trace_otf2 **op, const char *path, char why[256]);

/* One of Chrome's trace events; a slice's times are the exact ones. */
void trace_otf2_event(struct trace_otf2 *o, const char *text, size_t bytes, uint64_t start_ns,
		      uint64_t stop_ns);

/* The description of the archive: facts about the trace, as JSON. */
void trace_otf2_describe(struct trace_otf2 *o, const char *text, size_t bytes);

/*
 * All of it is on disk: 0; else a negative errno, and nothing is left.  `host` is the node;
 * `wall_ns` is what CLOCK_REALTIME is ahead of CLOCK_MONOTONIC (0: not known); *left_out,
 * how many slices had no room.
 */
int trace_otf2_close(struct trace_otf2 *o, const char *host, uint64_t wall_ns, char why[256],
		     uint64_t *left_out);

/* Nothing is left of it.  NULL is fine. */
void trace_otf2_drop(struct trace_otf2 *o);

#endif
