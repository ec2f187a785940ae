/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds that were reached: what they keep the daemon from watching is in no figure and no
 * other finding, so that all would seem to be well.  Each user is told of their processes, and
 * a user that sees everything is told of all.
 */
#include <inttypes.h>
#include <string.h>

#include "ncclinspd/findings/diagnose.h"
#include "rows/rows.h"
#include "util/phrase.h"

#define HOLD_NS	UINT64_C(30000000000)

struct bounds {
	uint64_t before[UNWATCHED_END];	/* counts as of the last look */
};

static const struct bound {
	const char *name;
	bool now;		/* its count may fall again */
	const char *what;	/* text before the number */
	const char *limit;	/* text between the number and the limit */
	const char *action;	/* text behind the limit */
} bounds[] = {
	[UNWATCHED_PROCESSES] = {
		"processes", true,
		"live processes that are not watched", "reads",
		"at a time, at most three quarters of them for one user and a quarter for one "
		"container. They are watched when others end; see which need not run: ncclinsp ps",
	},
	[UNWATCHED_FILES] = {
		"files", false,
		"times that a file was skipped", "remembers",
		"of them, and all belong to live processes. See who runs so many: ls -l /dev/shm",
	},
	[UNWATCHED_CONTAINERS] = {
		"containers", false,
		"times that a container or process was skipped", "looks into",
		"containers, and at 32768 processes. See what runs here and need not",
	},
	[UNWATCHED_COMMUNICATORS] = {
		"communicators", false,
		"communicators that are not followed, so that their operations are not timed and "
		"no hang on them is found", "follows",
		"on a node, and half of that for one user. Destroy those that are no longer used",
	},
};

#include "schema/unwatched_evidence.h"

static void unwatched_report(struct diagnose *dg, const struct unwatched *u, uint64_t now_ns)
{
	const struct bound *b = &bounds[u->thing];
	struct finding f = { .kind = FINDING_UNWATCHED, .severity = FINDING_WARNING, .uid = u->uid,
			     .peer = UNKNOWN_I32, .since_ns = now_ns };
	struct phrase text;

	phrase_start(&text, f.text, sizeof(f.text));
	phrase_add(&text, "%s: %" PRIu64 ". The daemon %s %" PRIu32 " %s.", b->what, u->count,
		   b->limit, u->limit, b->action);
	finding_set_evidence(&f, unwatched_evidence_fields, u);
	diagnose_report(dg, &finding_unwatched, (uint64_t)u->thing << 32 | u->uid, &f, now_ns);
}

static void unwatched_look(struct diagnose *dg, void *state, uint64_t now_ns)
{
	const struct diagnose_source *source = diagnose_source(dg);
	struct bounds *before = state;
	const struct unwatched *list;
	size_t n = source->unwatched ? source->unwatched(source->arg, &list) : 0;

	for (size_t i = 0; i < n; i++) {
		const struct unwatched *u = &list[i];
		uint64_t *last = &before->before[u->thing];

		if (bounds[u->thing].now ? u->count : u->count > *last)
			unwatched_report(dg, u, now_ns);
		*last = u->count;
	}
}

const struct detector finding_unwatched = {
	.name = "unwatched",
	.state_bytes = sizeof(struct bounds),
	.hold_ns = HOLD_NS,
	.look = unwatched_look,
};
