/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentences on what is wrong: the daemon's findings, in the one order in which all commands
 * show them.  Nothing is judged here.
 */
#include "cli/view/verdict.h"

#include <stdio.h>

#include "cli/base/member.h"
#include "cli/common/prose.h"
#include "cli/view/findings.h"
#include "util/phrase.h"

#define TOLD_MOST 3	/* findings of one standing that are told */
#define SECOND_NS UINT64_C(1000000000)

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
		return member_is(row, "severity", "critical") ? LINE_BAD : LINE_WARN;
	default:
		return LINE_WARN;
	}
}

static void finding_put(struct frame *frame, const struct view *view, const json_t *row, bool last)
{
	char sentence[FINDINGS_SENTENCE], due[FINDINGS_DUE];
	char line[LINE_BYTES];
	struct phrase text;

	phrase_start(&text, line, sizeof(line));
	finding_headline(row, sentence);
	finding_due(row, view->now_ns, due);
	phrase_add(&text, "%s%s", standings[finding_standing(row)].mark, sentence);
	if (finding_has_age(row)) {
		phrase_add(&text, "; it began ");
		phrase_add_duration(&text, finding_age_ns(row, view->now_ns));
		phrase_add(&text, " ago%s", due);
	}
	phrase_add(&text, "%s", last ? " (more: ncclinsp diagnose)" : "");
	prose_put(frame, verdict_attr(row), 0, 2, line);
}

/* Puts the worst of `count` rows of one standing, [first, first + count), and counts the rest. */
static void standing_put(struct frame *frame, const struct view *view,
			 enum finding_standing standing, size_t first, size_t count)
{
	size_t told = standing != FINDING_IS_NOTE ? TOLD_MOST : count == 1;
	char more[LINE_BYTES];

	for (size_t i = 0; i < count && i < told; i++)
		finding_put(frame, view, json_array_get(view->findings, first + i), i + 1 == count);
	if (count <= told)
		return;
	snprintf(more, sizeof(more), "%s%zu%s", standings[standing].begin, count - told,
		 standings[standing].more);
	prose_put(frame, verdict_attr(json_array_get(view->findings, first + told)), 0, 2, more);
}

/* ---- what is well ------------------------------------------------------------ */

static long long watched_number(const json_t *row, const char *key)
{
	return (long long)json_integer_value(json_object_get(row, key));
}

/* Faults may not show where kernels are not timed, yet or at all.  False: they all are. */
static bool watched_say_unseen(struct phrase *text, const json_t *watched, uint64_t now_ns)
{
	uint64_t at_ns = (uint64_t)watched_number(watched, "settles_mono_ns");
	uint64_t left_ns = at_ns > now_ns ? at_ns - now_ns : 0;

	if (watched_number(watched, "unseen")) {
		phrase_add(text, "; but the kernels of %lld of %lld processes are not seen, so a "
			   "hang may not show (why: ncclinsp level)",
			   watched_number(watched, "unseen"), watched_number(watched, "live"));
	} else if (watched_number(watched, "settling")) {
		phrase_add(text, "; settling: the kernels of %lld of %lld processes are timed ",
			   watched_number(watched, "settling"), watched_number(watched, "live"));
		phrase_add(text, left_ns ? "in " : "from their next operation on");
		if (left_ns)
			phrase_add_duration(text,
					    (left_ns + SECOND_NS - 1) / SECOND_NS * SECOND_NS);
	} else if (watched_number(watched, "unled")) {
		phrase_add(text, "; but %lld of %lld processes do not see the daemon's control "
			   "file: their kernels are timed for 0.5 %% of the time, and a late rank "
			   "is found later (ncclinsp doctor)",
			   watched_number(watched, "unled"), watched_number(watched, "live"));
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
	char line[LINE_BYTES];
	struct phrase text;

	phrase_start(&text, line, sizeof(line));
	if (watched && !live) {
		phrase_add(&text, "no live process uses NCCL with the plugin; ncclinsp doctor "
			   "shows those without it");
		attr = LINE_PLAIN;
	} else {
		phrase_add(&text, "no fault is found or suspected");
		if (watched)
			phrase_add(&text, " in %lld live process%s", live, live == 1 ? "" : "es");
		if (watched_say_unseen(&text, watched, now_ns))
			attr = LINE_PLAIN;
	}
	prose_put(frame, attr, 0, 2, line);
}

void verdicts_put(struct frame *frame, const struct view *view)
{
	size_t count[FINDING_STANDINGS] = { 0 }, first = 0;
	bool calm = true;

	json_each(row, view->findings) {
		count[finding_standing(row)]++;
		calm = calm && member_is(row, "grade", "found") &&
		       finding_standing(row) == FINDING_IS_NOTE;
	}
	for (int standing = 0; standing < FINDING_STANDINGS; standing++) {
		if (standing == FINDING_IS_NOTE && calm)
			verdicts_put_calm(frame, view->built.findings, view->now_ns);
		standing_put(frame, view, (enum finding_standing)standing, first, count[standing]);
		first += count[standing];
	}
}
