/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentences on what is wrong: made from the daemon's findings and from operations that are
 * in flight for long.
 */
#include "cli/view/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/prose.h"
#include "cli/view/findings.h"
#include "util/list.h"
#include "util/text.h"

#define LONG_NS	   UINT64_C(1000000000)	/* time in flight beyond which it is worth a word */
#define STALL_NS   UINT64_C(10000000000)
#define NAMED_MOST 3	/* absent ranks that are named */
#define FOUND_MOST 3	/* findings that are told */
#define LATE_MOST  2	/* late ranks that are told */
#define LATE_SEEN  64	/* late ranks that are looked at */

/* ---- text ------------------------------------------------------------------ */

struct text {
	size_t used;
	char at[LINE_BYTES];
};

__attribute__((format(printf, 2, 3)))
static void say(struct text *text, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text->at + text->used, sizeof(text->at) - text->used, format, args);
	va_end(args);
	text->used += n < 0 ? 0 : (size_t)n;
	if (text->used >= sizeof(text->at))
		text->used = sizeof(text->at) - 1;
}

static void put(struct frame *frame, enum line_attr attr, const struct text *text)
{
	prose_put(frame, attr, 0, 2, text->at);
}

/* ---- what a row is about --------------------------------------------------- */

static const char *name_of(const json_t *row, const char *path, const char *otherwise)
{
	return json_string_value(report_get(row, path)) ?: otherwise;
}

static bool same(const json_t *a, const json_t *b, const char *path)
{
	const json_t *left = report_get(a, path), *right = report_get(b, path);

	return left == right || (left && right && json_equal(left, right));
}

/* Two rows of /v1/inflight: one operation, of whichever rank. */
static bool same_operation(const json_t *a, const json_t *b)
{
	return same(a, b, "comm_id") && same(a, b, "comm_name") && same(a, b, "func") &&
	       same(a, b, "seq");
}

static bool same_rank(const json_t *a, const json_t *b)
{
	return same(a, b, "pid") && same(a, b, "rank");
}

/* "AllReduce #12 on dp" */
static void say_operation(struct text *text, const json_t *row)
{
	const json_t *seq = report_get(row, "seq");

	say(text, "%s", name_of(row, "func|event_type", "an operation"));
	if (json_is_integer(seq))
		say(text, " #%lld", (long long)json_integer_value(seq));
	say(text, " on %s", name_of(row, "comm_label|comm_id", "an unknown communicator"));
}

/* "rank 3 (pid 4711)" */
static void say_rank(struct text *text, const json_t *row)
{
	const json_t *rank = report_get(row, "rank");

	if (json_is_integer(rank))
		say(text, "rank %lld", (long long)json_integer_value(rank));
	else
		say(text, "a rank");
	say(text, " (pid %lld)", (long long)json_integer_value(report_get(row, "pid")));
}

static void say_duration(struct text *text, uint64_t ns)
{
	char duration[TEXT_MAX];

	text_duration(duration, sizeof(duration), ns);
	say(text, "%s", duration);
}

/*
 * The oldest of the processes in that state; an operation rather than a part of
 * one, or the group that it stands in.
 */
static const json_t *oldest_of(const struct view *view, const char *state)
{
	const json_t *oldest = NULL;
	json_t *row;
	size_t i;

	json_array_foreach(view->rows[VIEW_INFLIGHT], i, row) {
		if (strcmp(name_of(row, "process_state", "live"), state))
			continue;
		if (report_get(row, "func"))
			return row;
		oldest = oldest ?: row;
	}
	return oldest;
}

/* ---- who did not come ------------------------------------------------------ */

/* The communicator, of /v1/comms, that an operation in flight is of. */
static const json_t *comm_of(const struct view *view, const json_t *operation)
{
	json_t *comm, *member;
	size_t i, k;

	json_array_foreach(view->all_comms, i, comm) {
		if (!same(comm, operation, "comm_id"))
			continue;
		json_array_foreach(json_object_get(comm, "local_ranks"), k, member)
			if (same_rank(member, operation))
				return comm;
	}
	return NULL;
}

/* Has this member certainly not posted the operation?  Then *last is its last; -1: none. */
static bool is_absent(const json_t *member, const json_t *operation, long long *last)
{
	const json_t *all = report_get(member, "last_seq"), *seq = report_get(operation, "seq");
	const json_t *have = json_object_get(all, name_of(operation, "func", ""));

	*last = json_is_integer(have) ? json_integer_value(have) : -1;
	return json_is_object(all) && json_is_integer(seq) && *last < json_integer_value(seq);
}

static void say_absent(struct text *text, const json_t *member, long long last)
{
	const char *state = name_of(member, "state", "live");

	say_rank(text, member);
	say(text, " has not come to it");
	if (last >= 0)
		say(text, ", its last is #%lld", last);
	if (strcmp(state, "live"))
		say(text, ", and is %s", state);
}

/* Names this node's ranks that have not posted it; returns how many. */
static int say_all_absent(struct text *text, const json_t *comm, const json_t *operation)
{
	long long last, pid = 0;
	json_t *member;
	int count = 0;
	size_t i;

	json_array_foreach(json_object_get(comm, "local_ranks"), i, member) {
		if (!is_absent(member, operation, &last) || count++ >= NAMED_MOST)
			continue;
		say(text, "%s", count > 1 ? "; " : ": ");
		say_absent(text, member, last);
		pid = pid ?: json_integer_value(report_get(member, "pid"));
	}
	if (count > NAMED_MOST)
		say(text, "; and %d more", count - NAMED_MOST);
	if (count)
		say(text, "; see what that process does: gdb -p %lld, py-spy dump -p %lld", pid,
		    pid);
	return count;
}

/* ---- what it waits for ----------------------------------------------------- */

/*
 * A transfer's states, the likeliest to be the cause first: what waits for its own
 * GPU mostly waits for another transfer.
 */
static const struct {
	const char *state;
	const char *advice;
} blame[] = {
	{ "SendWait", "check the network between the two" },
	{ "SendTransmitted", "check the network between the two" },
	{ "RecvFlushWait", "check this GPU and its PCIe path" },
	{ "RecvReceived", "check this GPU and its PCIe path" },
	{ "SendPeerWait", "see why that rank takes nothing" },
	{ "SendRemFifoWait", "see why that rank takes nothing" },
	{ "RecvWait", "see why that rank sends nothing" },
	{ "RecvPosted", "see why that rank sends nothing" },
	{ "RecvGPUWait", "see what this rank's GPU does" },
	{ "RecvTransmitted", "see what this rank's GPU does" },
	{ "SendGPUWait", "see what this rank's GPU does" },
	{ "SendPosted", "see what this rank's GPU does" },
};

static size_t blame_of(const json_t *row)
{
	const char *state = name_of(row, "state", "");
	size_t i = 0;

	while (i < ARRAY_LEN(blame) && strcmp(blame[i].state, state))
		i++;
	return i;
}

static bool is_worse(const json_t *row, const json_t *than)
{
	size_t a = blame_of(row), b = blame_of(than);

	if (a != b)
		return a < b;
	return json_integer_value(report_get(row, "step")) <
	       json_integer_value(report_get(than, "step"));
}

/* The transfer of that operation, at any rank here, that most likely holds it up. */
static const json_t *culprit(const struct view *view, const json_t *operation)
{
	const json_t *worst = NULL;
	json_t *row;
	size_t i;

	json_array_foreach(view->rows[VIEW_INFLIGHT], i, row) {
		if (strcmp(name_of(row, "event_type", ""), "ProxyStep") ||
		    strcmp(name_of(row, "process_state", "live"), "live") ||
		    !same_operation(row, operation))
			continue;
		if (!worst || is_worse(row, worst))
			worst = row;
	}
	return worst;
}

static void say_transfer(struct text *text, const json_t *row)
{
	size_t i = blame_of(row);

	say(text, ": ");
	say_rank(text, row);
	say(text, ", %s", name_of(row, "progress", "in a transfer"));
	if (i < ARRAY_LEN(blame))
		say(text, "; %s", blame[i].advice);
}

static void say_reason(struct text *text, const struct view *view, const json_t *row)
{
	const json_t *dead = oldest_of(view, "died"), *comm = comm_of(view, row);
	const json_t *transfer = culprit(view, row);
	size_t here = json_array_size(report_get(comm, "local_ranks"));

	if (dead && same_operation(dead, row)) {
		say(text, ", because of that");
	} else if (say_all_absent(text, comm, row)) {
		return;
	} else if (transfer) {
		say_transfer(text, transfer);
	} else {
		say(text, ", %s", name_of(row, "progress", "and nothing tells why"));
		if ((size_t)json_integer_value(report_get(comm, "nranks")) > here && here)
			say(text, "; this node's ranks are in it, look at the other nodes");
	}
}

/* ---- verdicts -------------------------------------------------------------- */

/* True: a process died in the middle of something. */
static bool put_died(struct frame *frame, const struct view *view)
{
	const json_t *row = oldest_of(view, "died");
	uint64_t ended_ns = (uint64_t)json_integer_value(report_get(row, "ended_mono_ns"));
	struct text text = { 0 };

	if (!row)
		return false;
	say(&text, "! process %lld died ", (long long)json_integer_value(report_get(row, "pid")));
	if (ended_ns && ended_ns <= view->now_ns) {
		say_duration(&text, view->now_ns - ended_ns);
		say(&text, " ago ");
	}
	say(&text, "in the middle of ");
	say_operation(&text, row);
	if (json_is_integer(report_get(row, "rank")))
		say(&text, ", rank %lld", (long long)json_integer_value(report_get(row, "rank")));
	say(&text, "; see its log, and dmesg for OOM or Xid");
	put(frame, LINE_BAD, &text);
	return true;
}

/* False: nothing hangs, as far as is seen. */
static bool put_oldest(struct frame *frame, const struct view *view)
{
	const json_t *row = oldest_of(view, "live");
	json_int_t age = row ? json_integer_value(report_get(row, "age_ns")) : 0;
	struct text text = { 0 };

	if (age < (json_int_t)LONG_NS)
		return false;
	say(&text, "! ");
	say_operation(&text, row);
	say(&text, " hangs for ");
	say_duration(&text, (uint64_t)age);
	say_reason(&text, view, row);
	put(frame, age >= (json_int_t)STALL_NS ? LINE_BAD : LINE_WARN, &text);
	return true;
}

static void put_calm(struct frame *frame, const struct view *view, bool died)
{
	struct text text = { 0 };
	char unseen[256];

	if (!view->live && !oldest_of(view, "live")) {
		if (died)
			return;
		say(&text, "no live process uses NCCL");
		put(frame, LINE_PLAIN, &text);
		return;
	}
	say(&text, "nothing in flight longer than 1s");
	if (view_unseen(view, unseen, sizeof(unseen)))
		say(&text, "; %s", unseen);
	put(frame, *unseen ? LINE_PLAIN : LINE_GOOD, &text);
}

static bool has_finding(const struct view *view, const char *kind)
{
	json_t *row;
	size_t i;

	json_array_foreach(view->findings, i, row)
		if (finding_is(row, "kind", kind))
			return true;
	return false;
}

/* Notes, which ask for nothing to be done, are behind all that does. */
static size_t count_notes(const struct view *view)
{
	return (size_t)findings_count(view->findings, "info");
}

static void put_finding(struct frame *frame, const struct view *view, const json_t *row, bool last)
{
	bool note = finding_is(row, "severity", "info");
	bool bad = finding_is(row, "severity", "critical");
	char sentence[FINDINGS_SENTENCE];
	struct text text = { 0 };

	finding_sentence(row, sentence);
	say(&text, "%s%s; it began ", note ? "" : "! ", sentence);
	say_duration(&text, finding_age_ns(row, view->now_ns));
	say(&text, " ago%s", last ? " (more: ncclinsp diagnose)" : "");
	put(frame, note ? LINE_PLAIN : bad ? LINE_BAD : LINE_WARN, &text);
}

/* The daemon's findings, which know more than one look can tell; the worst come first. */
static void put_findings(struct frame *frame, const struct view *view)
{
	size_t count = json_array_size(view->findings) - count_notes(view);
	struct text text = { 0 };

	for (size_t i = 0; i < count && i < FOUND_MOST; i++)
		put_finding(frame, view, json_array_get(view->findings, i), i + 1 == count);
	if (count <= FOUND_MOST)
		return;
	say(&text, "! %zu more finding%s: ncclinsp diagnose", count - FOUND_MOST,
	    count - FOUND_MOST == 1 ? "" : "s");
	put(frame, finding_is(json_array_get(view->findings, FOUND_MOST), "severity", "critical")
			   ? LINE_BAD : LINE_WARN, &text);
}

static void put_notes(struct frame *frame, const struct view *view)
{
	size_t count = count_notes(view);
	struct text text = { 0 };

	if (count == 1) {
		put_finding(frame, view,
			    json_array_get(view->findings, json_array_size(view->findings) - 1),
			    true);
	} else if (count) {
		say(&text, "%zu notes: ncclinsp diagnose", count);
		put(frame, LINE_PLAIN, &text);
	}
}

/* ---- who is late, before it has lasted long enough to be a finding ------------ */

struct late {
	const json_t *comm, *member, *lately;
};

static json_int_t number(const json_t *row, const char *path)
{
	return json_integer_value(report_get(row, path));
}

/* The daemon has found it: its text knows more. */
static bool is_found(const struct view *view, const json_t *member)
{
	json_t *row;
	size_t i;

	json_array_foreach(view->findings, i, row)
		if (finding_is(row, "kind", "straggler") &&
		    number(row, "evidence.pid") == number(member, "pid"))
			return true;
	return false;
}

static int compare_late(const void *one, const void *two)
{
	json_int_t a = number(((const struct late *)one)->lately, "blame_ns");
	json_int_t b = number(((const struct late *)two)->lately, "blame_ns");

	return (a < b) - (a > b);
}

/* Lists the ranks the daemon calls late and has no finding of, the costliest first. */
static int list_late(const struct view *view, struct late late[LATE_SEEN])
{
	json_t *comm, *member;
	size_t i, k;
	int n = 0;

	json_array_foreach(view->all_comms, i, comm)
		json_array_foreach(json_object_get(comm, "local_ranks"), k, member) {
			const json_t *lately = ranks_lateness(member);

			if (lately && n < LATE_SEEN && !is_found(view, member))
				late[n++] = (struct late){ comm, member, lately };
		}
	qsort(late, (size_t)n, sizeof(*late), compare_late);
	return n;
}

static void put_late(struct frame *frame, const struct late *late)
{
	const json_t *comm = late->comm, *lately = late->lately;
	bool whole = (size_t)number(comm, "nranks") ==
		     json_array_size(json_object_get(comm, "local_ranks"));
	struct text text = { 0 };

	say(&text, "! rank %lld of %s (pid %lld) comes last%s in %lld of %lld %s, ",
	    (long long)number(late->member, "rank"),
	    name_of(comm, "comm_label|name|comm_id", "a communicator"),
	    (long long)number(late->member, "pid"), whole ? "" : " of this node's",
	    (long long)number(lately, "last"), (long long)number(lately, "ops"),
	    name_of(lately, "func", "operations"));
	say_duration(&text, (uint64_t)number(lately, "late_ns"));
	say(&text, " after the first; it costs the others ");
	say_duration(&text, (uint64_t)number(lately, "blame_ns"));
	say(&text, " in ");
	say_duration(&text, (uint64_t)number(lately, "window_ns"));
	say(&text, "; see its GPU's clock, CPU, input");
	put(frame, LINE_WARN, &text);
}

void verdicts_put_late(struct frame *frame, const struct view *view)
{
	struct late late[LATE_SEEN];
	struct text text = { 0 };
	int n = list_late(view, late);

	for (int i = 0; i < n && i < LATE_MOST; i++)
		put_late(frame, &late[i]);
	if (n <= LATE_MOST)
		return;
	if (n - LATE_MOST == 1)
		say(&text, "! 1 more rank comes late");
	else
		say(&text, "! %d more ranks come late", n - LATE_MOST);
	put(frame, LINE_WARN, &text);
}

void verdicts_put(struct frame *frame, const struct view *view)
{
	bool died = has_finding(view, "died"), hangs;

	put_findings(frame, view);
	if (!died)
		died = put_died(frame, view);
	hangs = has_finding(view, "stall") || has_finding(view, "desync") ||
		put_oldest(frame, view);
	verdicts_put_late(frame, view);
	if (!hangs)
		put_calm(frame, view, died);
	put_notes(frame, view);
}
