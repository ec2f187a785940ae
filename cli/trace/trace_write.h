/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRACE_TRACE_WRITE_H
#define CLI_TRACE_TRACE_WRITE_H

/*
 * Chrome's trace events, one per line, as Perfetto's UI, chrome://tracing and speedscope
 * read them: {"displayTimeUnit":"ns","traceEvents":[...],"otherData":{...}}.
 *
 * Times are CLOCK_MONOTONIC ns.  They are written in µs, down to TRACE_GRID_NS: readers
 * keep them as doubles, add a start and a duration, and some multiply by a thousand.  Only
 * what is a whole number of eighths of a µs survives that as it is, so that slices nest
 * there as they do here.  The exact duration is an argument, dur_ns.
 */

#include "cli/trace/trace_out.h"
#include "util/json.h"

#define TRACE_GRID_NS	125

/* A place on the screen: Chrome's process and thread, which are numbers of our own making. */
struct trace_at {
	uint32_t pid, tid;
	uint64_t async;		/* 0: slices there nest; else it overlaps, and this is its id */
};

/* Counts of what was written. */
struct trace_counts {
	uint64_t slices, arrows;
	uint64_t overlapping;	/* slices that no thread had room for */
};

struct trace_writer {
	struct trace_out *out;	/* NULL: the events go to `otf2` */
	struct trace_otf2 *otf2;
	struct json j;
	struct trace_at at;	/* place of the slice that is open */
	uint64_t start_ns, stop_ns;
	const char *category;
	char name[96];
	uint64_t first_ns, last_ns;	/* bounds of all that was written; 0: nothing was */
	uint64_t zero_ns;	/* the time that is written as 0 */
	uint64_t arrow;		/* id of the newest */
	bool any;
	struct trace_counts counts;
};

/* The file stays the caller's. */
void trace_begin(struct trace_writer *w, struct trace_out *out);

/* The end; `other` is the text of an object. */
void trace_end(struct trace_writer *w, const char *other, size_t bytes);

/*
 * A slice from start_ns to stop_ns.  Returns where its arguments are to be put, as members
 * of an open object, before trace_slice_end().
 */
struct json *trace_slice(struct trace_writer *w, struct trace_at at, const char *name,
			 const char *category, uint64_t start_ns, uint64_t stop_ns);
void trace_slice_end(struct trace_writer *w);

/*
 * An arrow from a moment within one slice to one within another, neither of which
 * overlaps.  It does not go back in time: then it is left out.
 */
void trace_arrow(struct trace_writer *w, const char *name, struct trace_at from,
		 uint64_t from_ns, struct trace_at to, uint64_t to_ns);

/* A mark; pid 0: of all processes.  As trace_slice(), ended by trace_instant_end(). */
struct json *trace_instant(struct trace_writer *w, uint32_t pid, const char *name,
			   const char *category, uint64_t ns);
void trace_instant_end(struct trace_writer *w);

/* Names and order; "process_name", "thread_name". */
void trace_name(struct trace_writer *w, const char *what, struct trace_at at, const char *name);
void trace_sort(struct trace_writer *w, const char *what, struct trace_at at, int64_t index);

#endif
