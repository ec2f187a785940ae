/* SPDX-License-Identifier: Apache-2.0 */
/* Lost records: the limits beyond which they matter, and a row of words for each cause. */
#include "judge/loss.h"

#include <inttypes.h>

#include "util/phrase.h"

#define LEAST_LOST	100	/* records in a window: less is a hiccup */

#define STARVED_SHARE	0.05	/* part of the time that the daemon waits: it needs less to work */

/* Part of the records: to begin and to go on. */
static const double begin_share = 0.001, go_on_share = 0.0005;

static const struct {
	bool is_table;		/* names are missing; false: it is counted with records */
	const char *what;
	const char *action;
} causes[LOSS_CAUSE_END] = {
	[LOSS_OVERRUN] = { false, "overwritten before they were read",
	  "The daemon reads too late: see what keeps the CPU from ncclinspd (nice, cgroup, "
	  "pinning), or lower the level (ncclinsp level)." },
	[LOSS_POOL] = { false, "events for which their thread had no free slot",
	  "A thread had more events open at once than the plugin can follow: lower the level "
	  "(ncclinsp level)." },
	[LOSS_LANE] = { false, "events of threads that found no room",
	  "Make room in shared memory (--shm-size, NCCLINSP_SHM_DIR). A process can have 128 such "
	  "threads at most." },
	[LOSS_REJECTED] = { false, "refused, because they cannot be true",
	  "Plugin and daemon may be of different builds: compare their versions (ncclinsp ps)." },
	[LOSS_UNKNOWN] = { false, "of a type that this daemon does not know",
	  "The plugin is newer than the daemon: install and start the new ncclinspd." },
	[LOSS_EVICTED] = { false, "operations given up before their end was seen",
	  "More operations were open at once than the daemon can follow: lower the level "
	  "(ncclinsp level)." },
	[LOSS_STRING] = { true, "names for which the table had no room",
	  "This lasts until the process ends. New names are not shown." },
	[LOSS_COMM] = { true, "communicators for which the table had no room",
	  "This lasts until the process ends. Nothing is shown of new communicators." },
};

/* The counters are the job's: what falls has begun anew. */
static uint64_t counter_growth(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

struct loss_growth loss_compare(const struct loss_row *from, const struct loss_row *to)
{
	struct loss_growth l = {
		.window_ns = to->at_ns - from->at_ns,
		.records = counter_growth(from->records, to->records),
		.before = counter_growth(from->before, to->before),
		.waited_ns = from->waited_ns == UNKNOWN_U64 || to->waited_ns == UNKNOWN_U64 ?
			     UNKNOWN_U64 : counter_growth(from->waited_ns, to->waited_ns),
	};

	for (int i = 0; i < LOSS_CAUSE_END; i++) {
		l.lost[i] = counter_growth(from->lost[i], to->lost[i]);
		if (causes[i].is_table)
			l.full += l.lost[i];
		else
			l.all += l.lost[i];
	}
	l.share = l.all ? (double)l.all / ((double)l.all + (double)l.records) : 0;
	return l;
}

static bool loss_is_beyond(const struct loss_growth *l, double share)
{
	return l->full || (l->all >= LEAST_LOST && l->share >= share);
}

bool loss_begins(const struct loss_growth *l)
{
	return loss_is_beyond(l, begin_share);
}

bool loss_goes_on(const struct loss_growth *l)
{
	return loss_is_beyond(l, go_on_share);
}

bool loss_is_starved(const struct loss_growth *l)
{
	return l->waited_ns != UNKNOWN_U64 && l->lost[LOSS_OVERRUN] &&
	       (double)l->waited_ns >= STARVED_SHARE * (double)l->window_ns;
}

/* ---- words ------------------------------------------------------------------- */

static void loss_add_process(struct phrase *text, const struct loss_case *c)
{
	if (c->who.rank == UNKNOWN_I32)
		phrase_add(text, "a process");
	else
		phrase_add(text, "rank %" PRId32 " of %s", c->who.rank,
			   c->comm_name[0] ? c->comm_name : "its communicator");
	whom_add(text, &c->who);
}

/* "1200 overwritten before they were read, 30 events ..."; what to do about most of it. */
static const char *add_causes(struct phrase *text, const struct loss_growth *l)
{
	const char *comma = "";
	int most = 0;

	for (int i = 0; i < LOSS_CAUSE_END; i++) {
		if (!l->lost[i])
			continue;
		phrase_add(text, "%s%" PRIu64 " %s", comma, l->lost[i], causes[i].what);
		comma = ", ";
		if (l->lost[i] > l->lost[most])
			most = i;
	}
	return causes[most].action;
}

static void say_lost(struct phrase *text, const struct loss_growth *l)
{
	const char *action;

	phrase_add(text, " loses records, %.3g %% in ", 100 * l->share);
	phrase_add_duration(text, l->window_ns);
	phrase_add(text, ": ");
	action = add_causes(text, l);
	if (loss_is_starved(l)) {
		phrase_add(text, ". The daemon itself waited ");
		phrase_add_duration(text, l->waited_ns);
		phrase_add(text, " of that time for a CPU");
	}
	if (l->all)
		phrase_add(text, ". Its counts are too low by this share; some operations lack "
			   "timings or look unfinished. Treat findings about it with care");
	phrase_add(text, ". %s", action);
}

static void say_before(struct phrase *text, const struct loss_growth *l)
{
	phrase_add(text, " ran before this daemon started: %" PRIu64 " records were overwritten "
		   "by then. Its figures begin when the daemon first saw it; what it did before "
		   "is unknown. Nothing needs to be done.", l->before);
}

void loss_say(const struct loss_case *c, char *text, size_t size)
{
	struct phrase phrase;

	phrase_start(&phrase, text, size);
	loss_add_process(&phrase, c);
	if (c->before)
		say_before(&phrase, &c->growth);
	else
		say_lost(&phrase, &c->growth);
}
