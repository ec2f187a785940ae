/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decision that a progress thread gets no CPU, and its sentence: the advice differs with
 * what kept the thread.
 */
#include "judge/starved.h"

#include <inttypes.h>
#include <math.h>

#include "util/phrase.h"

#define SECOND_NS	UINT64_C(1000000000)
#define AWAY_NS		UINT64_C(1000000)	/* polls are microseconds apart */
#define LEAST_NS	(5 * SECOND_NS)	/* the cost of a start is no pattern */
#define LEAST_SEEN	20	/* operations, to say something about a share of them */
#define UNWATCHED	200	/* operations, fewer than LEAST_SEEN of which were seen */
#define LEAST_LATE	0.05	/* share of operations seen: a rarer delay is a hiccup */
#define LEAST_TIMES	5	/* absences: a single one that makes many late is a hiccup */

/* Part of wall time that it costs: to begin and to go on. */
static const double begin_share = 0.02, go_on_share = 0.01;

/* Part of its time that a thread waits for a CPU, where that is all that is known. */
static const double begin_wait = 0.1, go_on_wait = 0.05;

/* Part of its wait for which one process had its CPU: less is many's doing. */
static const double least_taken = 0.2;

/* Part of the time for which its cgroup was throttled: less explains nothing. */
static const double least_throttled = 0.02;

/* ---- counting --------------------------------------------------------------- */

/* Operations that began in one absence, on any communicator, are late by the same time. */
static void sum_add_absence(struct starved_sum *sum, uint64_t *back_ns, uint64_t from,
			    uint64_t unseen_ns)
{
	uint64_t to = from + unseen_ns;

	if (unseen_ns > sum->longest_ns)
		sum->longest_ns = unseen_ns;
	sum->times += from >= *back_ns;
	if (from < *back_ns)
		from = *back_ns;
	if (to <= from)
		return;
	sum->away_ns += to - from;
	*back_ns = to;
}

bool starved_add(struct starved_sum *sum, uint64_t *back_ns, uint64_t start_ns, uint64_t unseen_ns)
{
	sum->ops++;
	if (unseen_ns == UNKNOWN_U64)
		return false;
	sum->seen++;
	if (unseen_ns < AWAY_NS)
		return false;
	sum->late++;
	sum_add_absence(sum, back_ns, start_ns, unseen_ns);
	return true;
}

double starved_share(const struct starved_sum *sum, uint64_t window_ns)
{
	double all = (double)sum->away_ns * (double)sum->ops / (double)(sum->seen + !sum->seen);

	return window_ns ? fmin(1, all / (double)window_ns) : 0;
}

/* ---- judgement ---------------------------------------------------------------- */

static double row_share(const struct starved_row *row)
{
	return starved_share(&row->sum, row->window_ns);
}

static bool row_is_beyond(const struct starved_row *row, double share)
{
	const struct starved_sum *sum = &row->sum;

	return row->window_ns >= LEAST_NS && sum->seen >= LEAST_SEEN &&
	       sum->times >= LEAST_TIMES &&
	       (double)sum->late >= LEAST_LATE * (double)sum->seen && row_share(row) >= share;
}

static enum starved_grade row_grade(const struct starved_row *row)
{
	const struct starved_sum *sum = &row->sum;

	if (row_is_beyond(row, begin_share))
		return STARVED_AWAY;
	if (row_is_beyond(row, go_on_share))
		return STARVED_STILL_AWAY;
	if (sum->seen >= LEAST_SEEN || sum->ops < UNWATCHED || row->cpu_share < go_on_wait)
		return STARVED_NOT;
	return row->cpu_share >= begin_wait ? STARVED_WAITS : STARVED_STILL_WAITS;
}

bool starved_is_in_question(const struct starved_row *row)
{
	return row->sum.late || row->cpu_share >= go_on_wait;
}

bool starved_rate(struct starved_row *rows, size_t n, struct starved_count *count)
{
	bool any = false;

	*count = (struct starved_count){ 0, 0 };
	for (size_t i = 0; i < n; i++) {
		rows[i].grade = row_grade(&rows[i]);
		count->all += rows[i].sum.seen > 0;
		count->starved += rows[i].grade == STARVED_AWAY;
		any = any || rows[i].grade != STARVED_NOT;
	}
	return any;
}

static bool row_is_worse(const struct starved_row *a, const struct starved_row *b)
{
	if (a->grade != b->grade)
		return a->grade > b->grade;
	if (a->grade != STARVED_AWAY)
		return a->cpu_share > b->cpu_share;
	return row_share(a) > row_share(b);
}

const struct starved_row *starved_worst(const struct starved_row *rows, size_t n, uint64_t job)
{
	const struct starved_row *worst = NULL;

	for (size_t i = 0; i < n; i++)
		if (rows[i].job == job && (!worst || row_is_worse(&rows[i], worst)))
			worst = &rows[i];
	return worst;
}

/* ---- words -------------------------------------------------------------------- */

static void say_what(struct phrase *text, const struct starved_case *c)
{
	const struct starved_sum *sum = &c->row->sum;

	phrase_add(text, "the progress thread of rank %" PRId32, c->who.rank);
	whom_add(text, &c->who);
	if (c->row->grade != STARVED_AWAY) {
		phrase_add(text, " waited for a CPU for %.0f %% of the time; the cost is unknown, "
			   "because too few kernels are timed. ",
			   100 * c->row->cpu_share);
		return;
	}
	phrase_add(text, " did not run when needed for %.0f %% of the time (%" PRIu64 " times): it "
		   "saw %" PRIu64 " of %" PRIu64 " kernels late, up to ", 100 * row_share(c->row),
		   sum->times, sum->late, sum->seen);
	phrase_add_duration(text, sum->longest_ns);
	phrase_add(text, " after they had begun. ");
}

static void say_who_else(struct phrase *text, const struct starved_case *c)
{
	if (c->count.starved > 1)
		phrase_add(text, "%" PRIu32 " of the %" PRIu32 " processes on this node are "
			   "affected. ", c->count.starved, c->count.all);
	else if (c->row->grade == STARVED_AWAY && c->count.all > 1)
		phrase_add(text, "No other of the %" PRIu32 " processes on this node is affected. ",
			   c->count.all);
}

/* It could have run for half of the time that it was away, or more. */
static bool row_waits_for_cpu(const struct starved_row *row)
{
	return row->grade != STARVED_AWAY || row->cpu_share >= row_share(row) / 2;
}

/*
 * A throttled group runs nothing until the next period: that explains half of its absence.  A
 * thread that is kept so waits for a CPU, as the kernel counts.
 */
static bool row_is_throttled(const struct starved_row *row)
{
	return row->throttled >= least_throttled && row->throttled >= row_share(row) / 2 &&
	       (row->cpu_share < 0 || row_waits_for_cpu(row));
}

static void say_taker(struct phrase *text, const struct starved_case *c)
{
	phrase_add(text, "For %.0f %% of that, its CPU ran ", 100 * c->taker_share);
	whom_add_taker(text, &c->who, c->taker, c->taker_command);
	phrase_add(text, ". ");
}

static void say_why(struct phrase *text, const struct starved_case *c)
{
	double cpu_share = c->row->cpu_share, percent = 100 * cpu_share;
	bool taken = cpu_share >= 0 && c->taker && c->taker_share >= least_taken;
	bool most = c->count.starved > 1 && 2 * c->count.starved > c->count.all;

	if (c->resources && row_is_throttled(c->row)) {
		phrase_add(text, "The cause is on its node: ");
		resources_say_throttled(text, c->resources);
		return;
	}
	if (c->resources && !row_waits_for_cpu(c->row) &&
	    resources_explain(c->resources->memory_stalled, row_share(c->row))) {
		phrase_add(text, "The cause is on its node: ");
		resources_say_memory(text, c->resources);
		return;
	}
	if (cpu_share >= 0 && !row_waits_for_cpu(c->row)) {
		phrase_add(text, "It waited for a CPU for only %.0f %% of the time: it slept, "
			   "waited for another thread or was stopped. See what it does (gdb -p %"
			   PRId32 "), and whether something stops it or freezes its cgroup",
			   percent, c->who.pid);
		if (c->resources)
			resources_say_node(text, c->resources, row_share(c->row), ". Meanwhile ");
		return;
	}
	if (cpu_share >= 0 && c->row->grade == STARVED_AWAY)
		phrase_add(text, "It was ready to run, but waited for a CPU for %.0f %% of the "
			   "time. ", percent);
	if (taken)
		say_taker(text, c);
	if (most)
		phrase_add(text, "There are too few CPUs for all that runs here, or a cgroup has a "
			   "CPU limit");
	else if (cpu_share >= 0)
		phrase_add(text, "See what else runs on its CPUs (taskset -cp %" PRId32 "), and "
			   "whether its cgroup has a CPU limit", c->tid);
	else
		phrase_add(text, "See what else runs on its CPUs (taskset -p), and whether its "
			   "cgroup has a CPU limit");
}

void starved_say(const struct starved_case *c, char *text, size_t size)
{
	struct phrase phrase;

	phrase_start(&phrase, text, size);
	say_what(&phrase, c);
	say_who_else(&phrase, c);
	say_why(&phrase, c);
	phrase_add(&phrase, ".");
}
