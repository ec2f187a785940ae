/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FX_TRACE_H
#define TESTS_FX_TRACE_H

/*
 * Traces of lines that are made here, and what became of them.  A tick is a µs, and the
 * first one at FX_BEGAN_NS.
 */

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/trace/trace_file.h"
#include "nci/events.h"
#include "nci/token.h"
#include "tests/fixture.h"

#define FX_BEGAN_NS UINT64_C(5000000000000)
#define FX_TICK_NS  1000
#define FX_COMM	    "0xd00dfeedcafe0001"

static struct trace fx_t;
static struct trace_out *fx_out;
static char fx_path[128];

static inline void fx_trace_begin(bool live)
{
	snprintf(fx_path, sizeof(fx_path), "%s/trace.json", fx_tmpdir());
	ck_assert_int_eq(trace_out_open(&fx_out, fx_path), 0);
	trace_init(&fx_t, fx_out, live);
}

/* The file as it was written. */
static inline json_t *fx_trace_end(void)
{
	json_error_t error;
	json_t *root;

	trace_finish(&fx_t, "test");
	ck_assert_int_eq(trace_out_close(fx_out), 0);
	root = json_load_file(fx_path, 0, &error);
	ck_assert_msg(root, "%s: line %d", error.text, error.line);
	return root;
}

/* ---- lines ------------------------------------------------------------------------------ */

static inline void fx_line(const char *format, ...)
{
	va_list args;
	json_error_t error;
	json_t *line;

	va_start(args, format);
	line = json_vpack_ex(&error, 0, format, args);
	va_end(args);
	ck_assert_msg(line, "%s", error.text);
	trace_take_line(&fx_t, line);
	json_decref(line);
}

/* Process `pid` is rank `rank` of four; name 1 is AllReduce. */
static inline void fx_source(int pid, int rank)
{
	fx_line("{s:s, s:i, s:s, s:i, s:[s], s:[{s:i, s:s, s:s, s:i, s:i}]}", "kind", "source",
		"pid", pid, "instance", "0x0000000000000001", "nonce", pid, "names", "AllReduce",
		"comms", "index", 0, "comm_id", FX_COMM, "name", "dp", "rank", rank, "nranks", 4);
}

static inline size_t fx_base64(const void *bytes, size_t n, char *to)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789+/";
	const uint8_t *from = bytes;
	size_t used = 0;

	for (size_t bit = 0; bit < 8 * n; bit += 6) {
		unsigned value = from[bit / 8] << 8 | (bit / 8 + 1 < n ? from[bit / 8 + 1] : 0);

		to[used++] = letters[value >> (10 - bit % 8) & 63];
	}
	to[used] = '\0';
	return used;
}

/* Records that follow each other in memory; the first of them is `process`'s number `first`. */
static inline void fx_records(int pid, uint64_t first, uint64_t n, uint64_t lost,
			      const void *records, size_t bytes, json_t *kernels)
{
	char *text = malloc(bytes * 4 / 3 + 8);

	fx_base64(records, bytes, text);
	fx_line("{s:s, s:i, s:s, s:I, s:I, s:I, s:i, s:I, s:f, s:o, s:s}", "kind", "records", "pid",
		pid, "instance", "0x0000000000000001", "first", (json_int_t)first, "n",
		(json_int_t)n, "lost", (json_int_t)lost, "ticks", 0, "mono_ns",
		(json_int_t)FX_BEGAN_NS, "ns_per_tick", (double)FX_TICK_NS, "kernels",
		kernels ? kernels : json_array(), "data", text);
	free(text);
}

/* ---- what was drawn --------------------------------------------------------------------- */

static inline json_t *fx_events(const json_t *root)
{
	return json_object_get(root, "traceEvents");
}

static inline const char *fx_word(const json_t *event, const char *key)
{
	return json_string_value(json_object_get(event, key)) ?: "";
}

/* A time of it: "ts", as a tick, or "dur", in ticks. */
static inline int64_t fx_ticks(const json_t *event, const char *key)
{
	double us = json_number_value(json_object_get(event, key));

	return (int64_t)us - (strcmp(key, "ts") ? 0 : (int64_t)FX_BEGAN_NS / FX_TICK_NS);
}

/* The `nth` event of that phase whose name begins so; NULL: there are not so many. */
static inline json_t *fx_find(const json_t *root, const char *phase, const char *name, int nth)
{
	json_t *event;
	size_t i;

	json_array_foreach(fx_events(root), i, event)
		if (!strcmp(fx_word(event, "ph"), phase) &&
		    !strncmp(fx_word(event, "name"), name, strlen(name)) && !nth--)
			return event;
	return NULL;
}

static inline json_t *fx_slice(const json_t *root, const char *name)
{
	json_t *event = fx_find(root, "X", name, 0);

	ck_assert_msg(event, "no slice '%s'", name);
	return event;
}

static inline size_t fx_count(const json_t *root, const char *phase, const char *name)
{
	size_t n = 0;

	while (fx_find(root, phase, name, (int)n))
		n++;
	return n;
}

static inline bool fx_same_thread(const json_t *a, const json_t *b)
{
	return json_equal(json_object_get(a, "pid"), json_object_get(b, "pid")) &&
	       json_equal(json_object_get(a, "tid"), json_object_get(b, "tid"));
}

static inline int64_t fx_end(const json_t *slice)
{
	return fx_ticks(slice, "ts") + fx_ticks(slice, "dur");
}

static inline bool fx_is_in(const json_t *inner, const json_t *outer)
{
	return fx_same_thread(inner, outer) && fx_ticks(inner, "ts") >= fx_ticks(outer, "ts") &&
	       fx_end(inner) <= fx_end(outer);
}

/* No two slices of a thread overlap but one inside of the other. */
static inline void fx_assert_nested(const json_t *root)
{
	json_t *a, *b;
	size_t i, k;

	json_array_foreach(fx_events(root), i, a)
		json_array_foreach(fx_events(root), k, b) {
			if (i >= k || strcmp(fx_word(a, "ph"), "X") ||
			    strcmp(fx_word(b, "ph"), "X") || !fx_same_thread(a, b))
				continue;
			ck_assert_msg(fx_is_in(a, b) || fx_is_in(b, a) ||
				      fx_end(a) <= fx_ticks(b, "ts") ||
				      fx_end(b) <= fx_ticks(a, "ts"),
				      "%s and %s overlap", fx_word(a, "name"), fx_word(b, "name"));
		}
}

#endif
