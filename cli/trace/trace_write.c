/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of Chrome's trace events: the only file that knows the format. */
#include "cli/trace/trace_write.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/trace/trace_otf2.h"

#define EVENT_BYTES  (1u << 20)	/* none is larger */
#define DAY_NS	     UINT64_C(86400000000000)
#define EARLIER_DAYS 7		/* room for slices drawn later that began earlier */

/* Down, so that what nests or follows still does. */
static uint64_t us_on_grid(const struct trace_writer *w, uint64_t ns)
{
	return ns > w->zero_ns ? (ns - w->zero_ns) / TRACE_GRID_NS * TRACE_GRID_NS : 0;
}

static void write_put_us(struct json *j, const char *key, uint64_t ns)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));

	json_key(j, key);
	json_put_raw(j, text, (size_t)n);
}

static struct json *event_begin(struct trace_writer *w, const char *phase, struct trace_at at)
{
	json_clear(&w->j);
	json_begin(&w->j, '{');
	json_member_string(&w->j, "ph", phase);
	json_member_u64(&w->j, "pid", at.pid);
	json_member_u64(&w->j, "tid", at.tid);
	return &w->j;
}

/* An event that has no room in memory is left out: the file stays what it is. */
static void event_end(struct trace_writer *w)
{
	json_end(&w->j, '}');
	if (json_error(&w->j))
		return;
	if (w->otf2) {
		trace_otf2_event(w->otf2, w->j.text, w->j.bytes, w->start_ns, w->stop_ns);
		return;
	}
	trace_out_put(w->out, w->any ? ",\n" : "\n", w->any ? 2 : 1);
	trace_out_put(w->out, w->j.text, w->j.bytes);
	w->any = true;
}

/* Doubles hold 104 days of ns: of a node that has been up for longer, the last ones count. */
static void write_note_time(struct trace_writer *w, uint64_t from_ns, uint64_t to_ns)
{
	if (!w->first_ns && from_ns > EARLIER_DAYS * DAY_NS)
		w->zero_ns = (from_ns / DAY_NS - EARLIER_DAYS) * DAY_NS;
	if (!w->first_ns || from_ns < w->first_ns)
		w->first_ns = from_ns;
	if (to_ns > w->last_ns)
		w->last_ns = to_ns;
}

void trace_begin(struct trace_writer *w, struct trace_out *out)
{
	static const char head[] = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";

	*w = (struct trace_writer){ .out = out };
	json_init(&w->j, EVENT_BYTES);
	if (out)
		trace_out_put(out, head, sizeof(head) - 1);
}

void trace_end(struct trace_writer *w, const char *other, size_t bytes)
{
	static const char tail[] = "\n],\n\"otherData\":";

	if (w->otf2) {
		trace_otf2_describe(w->otf2, other, bytes);
	} else {
		trace_out_put(w->out, tail, sizeof(tail) - 1);
		trace_out_put(w->out, other, bytes);
		trace_out_put(w->out, "}\n", 2);
	}
	json_deinit(&w->j);
}

/* ---- slices ---------------------------------------------------------------------- */

/* An id local to its process: one of the whole trace would be drawn outside of all processes. */
static void write_put_async(struct json *j, uint64_t id)
{
	json_begin_member(j, "id2", '{');
	json_member_hex64(j, "local", id);
	json_end(j, '}');
}

struct json *trace_slice(struct trace_writer *w, struct trace_at at, const char *name,
			 const char *category, uint64_t start_ns, uint64_t stop_ns)
{
	struct json *j = event_begin(w, at.async ? "b" : "X", at);

	if (stop_ns < start_ns)
		stop_ns = start_ns;
	write_note_time(w, start_ns, stop_ns);
	w->at = at;
	w->start_ns = start_ns;
	w->stop_ns = stop_ns;
	w->category = category;
	snprintf(w->name, sizeof(w->name), "%s", name);
	json_member_string(j, "name", w->name);
	json_member_string(j, "cat", category);
	write_put_us(j, "ts", us_on_grid(w, start_ns));
	if (at.async)
		write_put_async(j, at.async);
	else
		write_put_us(j, "dur", us_on_grid(w, stop_ns) - us_on_grid(w, start_ns));
	json_begin_member(j, "args", '{');
	json_member_u64(j, "dur_ns", stop_ns - start_ns);
	return j;
}

void trace_slice_end(struct trace_writer *w)
{
	struct json *j = &w->j;

	json_end(j, '}');
	event_end(w);
	w->counts.slices++;
	if (!w->at.async)
		return;
	w->counts.overlapping++;
	j = event_begin(w, "e", w->at);
	json_member_string(j, "name", w->name);
	json_member_string(j, "cat", w->category);
	write_put_us(j, "ts", us_on_grid(w, w->stop_ns));
	write_put_async(j, w->at.async);
	event_end(w);
}

/* ---- arrows ---------------------------------------------------------------------- */

static void write_put_end(struct trace_writer *w, const char *phase, const char *name,
			  struct trace_at at, uint64_t ns)
{
	struct json *j = event_begin(w, phase, at);

	json_member_string(j, "name", name);
	json_member_string(j, "cat", "arrow");
	json_member_u64(j, "id", w->arrow);
	write_put_us(j, "ts", us_on_grid(w, ns));
	if (*phase == 'f')
		json_member_string(j, "bp", "e");	/* bound to the slice around it */
	event_end(w);
}

void trace_arrow(struct trace_writer *w, const char *name, struct trace_at from,
		 uint64_t from_ns, struct trace_at to, uint64_t to_ns)
{
	if (from.async || to.async || to_ns < from_ns)
		return;
	w->arrow++;
	w->counts.arrows++;
	write_put_end(w, "s", name, from, from_ns);
	write_put_end(w, "f", name, to, to_ns);
}

/* ---- marks and names ------------------------------------------------------------- */

struct json *trace_instant(struct trace_writer *w, uint32_t pid, const char *name,
			   const char *category, uint64_t ns)
{
	struct json *j = event_begin(w, "i", (struct trace_at){ .pid = pid });

	write_note_time(w, ns, ns);
	json_member_string(j, "name", name);
	json_member_string(j, "cat", category);
	json_member_string(j, "s", pid ? "p" : "g");
	write_put_us(j, "ts", us_on_grid(w, ns));
	json_begin_member(j, "args", '{');
	return j;
}

void trace_instant_end(struct trace_writer *w)
{
	json_end(&w->j, '}');
	event_end(w);
}

static struct json *trace_about(struct trace_writer *w, const char *what, struct trace_at at)
{
	struct json *j = event_begin(w, "M", at);

	json_member_string(j, "name", what);
	json_begin_member(j, "args", '{');
	return j;
}

void trace_name(struct trace_writer *w, const char *what, struct trace_at at, const char *name)
{
	json_member_string(trace_about(w, what, at), "name", name);
	trace_instant_end(w);
}

void trace_sort(struct trace_writer *w, const char *what, struct trace_at at, int64_t index)
{
	json_member_i64(trace_about(w, what, at), "sort_index", index);
	trace_instant_end(w);
}
