/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentences on what is wrong: the daemon's findings, in the one order in which all commands
 * show them.  Nothing is judged here.
 */
#include "cli/view/verdict.h"

#include <stdarg.h>
#include <stdio.h>

#include "cli/common/prose.h"
#include "cli/view/findings.h"
#include "util/text.h"

#define TOLD_MOST 3	/* findings of one standing that are told */
#define SECOND_NS UINT64_C(1000000000)

/* ---- text ------------------------------------------------------------------ */

struct text {
	size_t used;
	char at[LINE_BYTES];
};

__attribute__((format(printf, 2, 3)))
static void text_say(struct text *text, const char *format, ...)
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

static void text_put(struct frame *frame, enum line_attr attr, const struct text *text)
{
	prose_put(frame, attr, 0, 2, text->at);
}

static void text_say_duration(struct text *text, uint64_t ns)
{
	char duration[TEXT_MAX];

	text_duration(duration, sizeof(duration), ns);
	text_say(text, "%s", duration);
}

/* ---- what is wrong ---------------------------------------------------------- */

/* Notes, which ask for nothing to be done, have no mark; what is suspected says so. */
static const struct {
	const char *mark, *begin, *more;
} standings[FINDING_STANDINGS] = {
	[FINDING_IS_FOUND] = { "! ", "! ", " more found: ncclinsp diagnose" },
	[FINDING_IS_SUSPECTED] = { "! suspected: ", "! ", " more suspected: ncclinsp diagnose" },
	[FINDING_IS_NOTE] = { "", "", " notes: ncclinsp diagnose" },
};

enum line_attr verdict_attr(const json_t *row)
{
	switch (finding_standing(row)) {
	case FINDING_IS_NOTE:
		return LINE_PLAIN;
	case FINDING_IS_FOUND:
		return finding_is(row, "severity", "critical") ? LINE_BAD : LINE_WARN;
	default:
		return LINE_WARN;
	}
}

static void finding_put(struct frame *frame, const struct view *view, const json_t *row, bool last)
{
	char sentence[FINDINGS_SENTENCE], due[FINDINGS_DUE];
	struct text text = { 0 };

	finding_headline(row, sentence);
	finding_due(row, view->now_ns, due);
	text_say(&text, "%s%s", standings[finding_standing(row)].mark, sentence);
	if (finding_has_age(row)) {
		text_say(&text, "; it began ");
		text_say_duration(&text, finding_age_ns(row, view->now_ns));
		text_say(&text, " ago%s", due);
	}
	text_say(&text, "%s", last ? " (more: ncclinsp diagnose)" : "");
	text_put(frame, verdict_attr(row), &text);
}

/* Puts the worst of `count` rows of one standing, [first, first + count), and counts the rest. */
static void standing_put(struct frame *frame, const struct view *view,
			 enum finding_standing standing, size_t first, size_t count)
{
	size_t told = standing != FINDING_IS_NOTE ? TOLD_MOST : count == 1;
	struct text text = { 0 };

	for (size_t i = 0; i < count && i < told; i++)
		finding_put(frame, view, json_array_get(view->findings, first + i), i + 1 == count);
	if (count <= told)
		return;
	text_say(&text, "%s%zu%s", standings[standing].begin, count - told,
		 standings[standing].more);
	text_put(frame, verdict_attr(json_array_get(view->findings, first + told)), &text);
}

/* ---- what is well ------------------------------------------------------------ */

static long long watched_number(const json_t *row, const char *key)
{
	return (long long)json_integer_value(json_object_get(row, key));
}

/* Faults may not show where kernels are not timed, yet or at all.  False: they all are. */
static bool watched_say_unseen(struct text *text, const json_t *watched, uint64_t now_ns)
{
	uint64_t at_ns = (uint64_t)watched_number(watched, "settles_mono_ns");
	uint64_t left_ns = at_ns > now_ns ? at_ns - now_ns : 0;

	if (watched_number(watched, "unseen")) {
		text_say(text, "; but the kernels of %lld of %lld processes are not seen, so a "
			 "hang may not show (why: ncclinsp level)",
			 watched_number(watched, "unseen"), watched_number(watched, "live"));
	} else if (watched_number(watched, "settling")) {
		text_say(text, "; settling: the kernels of %lld of %lld processes are timed ",
			 watched_number(watched, "settling"), watched_number(watched, "live"));
		text_say(text, left_ns ? "in " : "from their next operation on");
		if (left_ns)
			text_say_duration(text, (left_ns + SECOND_NS - 1) / SECOND_NS * SECOND_NS);
	} else {
		return false;
	}
	return true;
}

void verdicts_put_calm(struct frame *frame, const json_t *answer, uint64_t now_ns)
{
	const json_t *watched = json_object_get(answer, "watched");
	long long live = watched_number(watched, "live");
	enum line_attr attr = LINE_GOOD;
	struct text text = { 0 };

	if (watched && !live) {
		text_say(&text, "no live process uses NCCL");
		attr = LINE_PLAIN;
	} else {
		text_say(&text, "no fault is found or suspected");
		if (watched)
			text_say(&text, " in %lld live process%s", live, live == 1 ? "" : "es");
		if (watched_say_unseen(&text, watched, now_ns))
			attr = LINE_PLAIN;
	}
	text_put(frame, attr, &text);
}

void verdicts_put(struct frame *frame, const struct view *view)
{
	size_t count[FINDING_STANDINGS] = { 0 }, first = 0, i;
	bool calm = true;
	json_t *row;

	json_array_foreach(view->findings, i, row) {
		count[finding_standing(row)]++;
		calm = calm && finding_is(row, "grade", "found") &&
		       finding_standing(row) == FINDING_IS_NOTE;
	}
	for (int standing = 0; standing < FINDING_STANDINGS; standing++) {
		if (standing == FINDING_IS_NOTE && calm)
			verdicts_put_calm(frame, view->built.findings, view->now_ns);
		standing_put(frame, view, (enum finding_standing)standing, first, count[standing]);
		first += count[standing];
	}
}
