/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are not written: what was to be kept for later is missing then, though
 * nothing that is shown now is wrong.  All directories are one finding, since they have
 * one cause as a rule.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "ncclinspd/findings/diagnose.h"
#include "rows/rows.h"
#include "util/list.h"
#include "util/phrase.h"

#define SECOND_NS	UINT64_C(1000000000)
#define HOLD_NS		(2 * SECOND_NS)
#define OUTPUTS		8
#define KEY		1

/* Rows by place in the list of outputs, which stays in order. */
struct unwritten {
	struct {
		uint64_t since_ns;	/* 0: it is written */
		uint64_t before;	/* files that were missing by then */
	} of[OUTPUTS];
};

static const struct action {
	int error;
	const char *what;
} actions[] = {
	{ -ENOSPC, "Make room there: df -h" },
	{ -EDQUOT, "Make room there, or have the quota raised: quota" },
	{ -EROFS, "Have it mounted for writing: findmnt -T" },
	{ -EACCES, "Let the daemon's user write there: namei -l" },
	{ -EPERM, "Let the daemon's user write there: namei -l" },
	{ -EIO, "See the disk: dmesg" },
	{ -ETIMEDOUT, "It has not answered for ten seconds: see what is mounted there (findmnt "
		      "-T) and whether its server lives; nothing here waits for it" },
};

static const char *error_action(int error)
{
	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		if (actions[i].error == error)
			return actions[i].what;
	return "See what is there: ls -ld, findmnt -T";
}

/* One place that files are not written to. */
struct unwritten_output {
	const char *what, *dir, *error;
	uint64_t missing;
};

struct unwritten_case {
	struct unwritten_output at[OUTPUTS];
	uint32_t n;
	const char *action;	/* the action for the first */
};

#include "schema/unwritten_evidence.h"

static void unwritten_say(const struct unwritten_case *c, char *text, size_t size)
{
	struct phrase phrase;

	phrase_start(&phrase, text, size);
	for (size_t i = 0; i < c->n; i++) {
		const struct unwritten_output *o = &c->at[i];

		phrase_add(&phrase, "%s%s are not written to %s: %s", i ? "; " : "", o->what,
			   o->dir, o->error);
		if (o->missing)
			phrase_add(&phrase, " (%" PRIu64 " missing so far)", o->missing);
	}
	phrase_add(&phrase, ". The live view is not affected; what should be kept for later is "
		   "missing. %s %s.", c->action, c->at[0].dir);
}

static void unwritten_report(struct diagnose *dg, const struct unwritten *u,
			     const struct writer_output *list, size_t n, uint64_t now_ns)
{
	struct finding f = { .kind = FINDING_UNWRITTEN, .severity = FINDING_WARNING,
			     .uid = geteuid(), .peer = UNKNOWN_I32, .since_ns = now_ns };
	struct unwritten_case c = { .n = 0 };

	for (size_t i = 0; i < n; i++) {
		const struct writer_stats *stats = &list[i].stats;

		if (!u->of[i].since_ns)
			continue;
		if (!c.n)
			c.action = error_action(stats->failing);
		if (u->of[i].since_ns < f.since_ns)
			f.since_ns = u->of[i].since_ns;
		*array_must_add(c.at, &c.n) = (struct unwritten_output){
			.what = list[i].what, .dir = list[i].dir,
			.error = strerror(-stats->failing),
			.missing = stats->failed - u->of[i].before,
		};
	}
	unwritten_say(&c, f.text, sizeof(f.text));
	finding_set_evidence(&f, unwritten_evidence_fields, &c);
	diagnose_report(dg, &finding_unwritten, KEY, &f, now_ns);
}

static void unwritten_look(struct diagnose *dg, void *state, uint64_t now_ns)
{
	const struct diagnose_source *source = diagnose_source(dg);
	const struct writer_output *list = NULL;
	struct unwritten *u = state;
	size_t n = source->outputs ? source->outputs(source->arg, &list) : 0, failing = 0;

	if (n > OUTPUTS)
		n = OUTPUTS;
	for (size_t i = 0; i < n; i++) {
		const struct writer_stats *stats = &list[i].stats;

		if (!stats->failing) {
			u->of[i].since_ns = 0;
			u->of[i].before = stats->failed;
			continue;
		}
		if (!u->of[i].since_ns)
			u->of[i].since_ns = now_ns;
		failing++;
	}
	if (failing)
		unwritten_report(dg, u, list, n, now_ns);
}

const struct detector finding_unwritten = {
	.name = "unwritten",
	.state_bytes = sizeof(struct unwritten),
	.hold_ns = HOLD_NS,
	.look = unwritten_look,
};
