/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRACE_TRACE_ROWS_H
#define CLI_TRACE_TRACE_ROWS_H

/*
 * The thread of the trace on which a slice is drawn.  A track (a lane, a channel, the
 * operations of a communicator) is one thread as long as its slices nest; what would overlap
 * goes on the track's next row, a thread below.  Slices come roughly in the order of their
 * ends, so that little of the past has to be remembered.
 */

#include "cli/trace/trace_write.h"

#define TRACE_TRACKS	16384	/* more: slices are drawn as overlapping ones */
#define TRACE_NAME	96	/* bytes of a track's: longer ones are cut */
#define TRACE_ROWS	24	/* most of a track: slices of more overlap */

enum trace_kind {	/* the order from top to bottom */
	TRACE_LOSSES,
	TRACE_OPS,
	TRACE_STREAM,
	TRACE_LANE,
	TRACE_GPU,
	TRACE_NET,
	TRACE_QUEUE,
};

struct trace_rows;

/* Exits when memory runs out. */
struct trace_rows *trace_rows_new(void);
void trace_rows_free(struct trace_rows *rows);

/* The track's number, which is the same for the same pid, kind and key. */
uint32_t trace_rows_track(struct trace_rows *rows, uint32_t pid, enum trace_kind kind,
			  uint64_t key, const char *name);

/* The highest row of it on which that nests with what is there. */
struct trace_at trace_rows_place(struct trace_rows *rows, uint32_t track, uint64_t start_ns,
				 uint64_t stop_ns);

/* Write the threads' names and order. */
void trace_rows_tell(const struct trace_rows *rows, struct trace_writer *w);

#endif
