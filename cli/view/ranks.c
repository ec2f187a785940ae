/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The join of the daemon's answers into one row for each rank, and the order of these by
 * badness.
 */
#include "cli/view/ranks.h"

#include <string.h>

#include "cli/view/findings.h"
#include "util/list.h"

#define STALLED_NS INT64_C(1000000000)
#define KEY	   192

/* Columns of the flat table and the tree, after those that tell whose row it is. */
#define WHO_COLUMNS									\
	{ "gpu", "GPU", COL_TEXT, "gpu", 0, 16, 5 },					\
	{ "gpu_uuid", NULL, COL_TEXT, "gpu_uuid", 0, 0, 0 },				\
	{ "pid", "PID", COL_INTEGER, "pid", 7, 0, 4 | REPORT_KEY },			\
	{ "user", "USER", COL_TEXT, "user", 0, 10, 8 }

#define FIGURE_COLUMNS									\
	{ "state", "STATE", COL_STATE, "ended", 0, 0, REPORT_IF_KNOWN },		\
	{ "ops_per_s", "OPS/s", COL_NUMBER, "ops_per_s", 5, 0, 6 },			\
	{ "busbw_waitfree_gbs", "WAITFREE(GB/s)", COL_NUMBER, "waitfree_gbs", 0, 0, 12 }, \
	{ "busbw_gbs", "BUSBW(GB/s)", COL_NUMBER, "busbw_gbs", 0, 0, 2 },		\
	{ "p50_ns", "P50(us)", COL_MICROS, "p50_ns", 8, 0, 14 },			\
	{ "p99_ns", "P99(us)", COL_MICROS, "p99_ns", 8, 0, 13 },			\
	{ "wait", "WAIT(%)", COL_PERCENT, "wait", 0, 0, 3 },				\
	{ "blame", "BLAME(%)", COL_PERCENT, "blame", 0, 0, 1 },				\
	{ "last", "LAST(%)", COL_PERCENT, "last", 0, 0, 7 },				\
	{ "late_ns", "LATE(us)", COL_MICROS, "late_ns", 8, 0, 9 },			\
	{ "idle", "IDLE(%)", COL_PERCENT, "idle", 0, 0, 11 },				\
	{ "in_flight", "INFL", COL_INTEGER, "in_flight", 0, 0, 0 },			\
	{ "oldest_ns", "OLDEST", COL_STALL, "oldest_ns|oldest_bound", 6, 0, 0 },	\
	{ "verdict", "VERDICT", COL_VERDICT, "verdict", 7, 16, 0 }

const struct column rank_columns[] = {
	{ "rank", "RANK", COL_INTEGER, "rank", 0, 0, REPORT_KEY },
	WHO_COLUMNS,
	{ "job", "JOB", COL_TEXT, "job", 0, 16, 10 },
	{ NULL, "PHASE", COL_TEXT, "phase", 0, 16, 3 | REPORT_IF_KNOWN },
	{ NULL, "TAG", COL_TEXT, "tag", 0, 18, 3 | REPORT_IF_KNOWN },
	{ "comm_id", NULL, COL_TEXT, "comm_id", 0, 0, 0 },
	{ "comm_name", NULL, COL_TEXT, "comm_name", 0, 0, 0 },
	{ "nranks", NULL, COL_INTEGER, "nranks", 0, 0, REPORT_KEY },
	{ NULL, "COMM", COL_TEXT, "comm", 4, 20, 0 },
	FIGURE_COLUMNS,
	{ "phase", NULL, COL_TEXT, "phase", 0, 0, 0 },
	{ "tag", NULL, COL_TEXT, "tag", 0, 0, 0 },
	{ "host", "HOST", COL_TEXT, "host", 0, 24, REPORT_IF_KNOWN },
};
const size_t rank_column_count = ARRAY_LEN(rank_columns);

const struct column tree_columns[] = {
	{ NULL, "JOB/COMM/RANK", COL_TEXT, "tree", 0, 32, 0 },
	WHO_COLUMNS,
	FIGURE_COLUMNS,
};
const size_t tree_column_count = ARRAY_LEN(tree_columns);

static const struct column by_badness = { NULL, NULL, COL_NUMBER, "badness", 0, 0, 0 };

/* ---- what is looked up, by a key that is text ------------------------------- */

struct maps {
	json_t *processes;	/* keyed by pid */
	json_t *summary;	/* keyed by member */
	json_t *ops;		/* number in flight, by process and member */
	json_t *oldest;		/* the same: for how long */
	json_t *findings;	/* keyed by communicator and rank, and by pid */
	const char *unseen_age;
};

static const char *text_of(const json_t *row, const char *path)
{
	return json_string_value(report_get(row, path)) ?: "";
}

/* -1: not known, which no rank, pid or size is. */
static long long number_of(const json_t *row, const char *path)
{
	const json_t *value = report_get(row, path);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}

/* Processes of several nodes, from files, may have the same number. */
static void pid_key(char key[KEY], const json_t *row, long long pid)
{
	snprintf(key, KEY, "%.64s/%lld", text_of(row, "host"), pid);
}

static void member_key(char key[KEY], const json_t *row)
{
	snprintf(key, KEY, "%s/%.64s/%lld/%lld", text_of(row, "comm_id"),
		 text_of(row, "comm_name"), number_of(row, "nranks"), number_of(row, "rank"));
}

/* Rows of /v1/inflight do not tell the communicator's size. */
static void open_key(char key[KEY], const json_t *row)
{
	snprintf(key, KEY, "%s/%lld/%lld", text_of(row, "comm_id"), number_of(row, "rank"),
		 number_of(row, "pid"));
}

static void found_key(char key[KEY], const char *comm_id, long long rank)
{
	snprintf(key, KEY, "%s#%lld", comm_id, rank);
}

static json_t *map_processes(const json_t *processes)
{
	json_t *map = json_object(), *row;
	char key[KEY];
	size_t i;

	json_array_foreach((json_t *)processes, i, row) {
		pid_key(key, row, number_of(row, "pid"));
		json_object_set(map, key, row);
	}
	return map;
}

/* Maps a member to that one of its rows that rests on most operations. */
static json_t *map_summary(const json_t *summary)
{
	json_t *map = json_object(), *row;
	char key[KEY];
	size_t i;

	json_array_foreach((json_t *)summary, i, row) {
		const json_t *have;

		member_key(key, row);
		have = json_object_get(map, key);
		if (!have || number_of(have, "ops") < number_of(row, "ops"))
			json_object_set(map, key, row);
	}
	return map;
}

static void map_inflight(struct maps *maps, const json_t *inflight)
{
	json_t *row;
	char key[KEY];
	size_t i;

	maps->ops = json_object();
	maps->oldest = json_object();
	json_array_foreach((json_t *)inflight, i, row) {
		const json_t *age = report_get(row, "age_ns"), *have;

		if (!report_get(row, "func") || report_get(row, "parent"))
			continue;	/* a part of one */
		open_key(key, row);
		have = json_object_get(maps->oldest, key);
		if (age && (!have || json_integer_value(have) < json_integer_value(age)))
			json_object_set(maps->oldest, key, (json_t *)age);
		have = json_object_get(maps->ops, key);
		json_object_set_new(maps->ops, key, json_integer(json_integer_value(have) + 1));
	}
}

/* The first of a rank is the worst. */
static void found_first(json_t *map, const char *key, json_t *finding)
{
	if (!json_object_get(map, key))
		json_object_set(map, key, finding);
}

/* Maps to a finding the ranks in its communicator, or the processes, that it is about. */
static json_t *map_findings(const json_t *findings)
{
	json_t *map = json_object(), *row, *one;
	char key[KEY];
	size_t i, k;

	json_array_foreach((json_t *)findings, i, row) {
		json_array_foreach((json_t *)report_get(row, "ranks"), k, one) {
			found_key(key, text_of(row, "comm_id"), json_integer_value(one));
			if (report_get(row, "comm_id"))
				found_first(map, key, row);
		}
		json_array_foreach((json_t *)report_get(row, "evidence.processes"), k, one) {
			pid_key(key, row, number_of(one, "pid"));
			found_first(map, key, row);
		}
	}
	return map;
}

static void free_maps(struct maps *maps)
{
	json_decref(maps->processes);
	json_decref(maps->summary);
	json_decref(maps->ops);
	json_decref(maps->oldest);
	json_decref(maps->findings);
}

/* ---- one row ----------------------------------------------------------------- */

static void put(json_t *to, const char *key, const json_t *value)
{
	json_object_set(to, key, value ? (json_t *)value : json_null());
}

/* Copy what is known at a path; unknown stays null. */
static void take(json_t *to, const char *key, const json_t *from, const char *path)
{
	put(to, key, from ? report_get(from, path) : NULL);
}

static void put_known(json_t *to, const char *key, bool known, double value)
{
	json_object_set_new(to, key, known ? json_real(value) : json_null());
}

/* One value over another; null where either is not known or the lower is 0. */
static void put_ratio(json_t *to, const char *key, const json_t *row, const char *over,
		      const char *under, double factor)
{
	const json_t *a = row ? report_get(row, over) : NULL;
	const json_t *b = row ? report_get(row, under) : NULL;
	double below = json_number_value(b);

	put_known(to, key, a && below > 0, a && below > 0 ?
		  json_number_value(a) * factor / below : 0);
}

static bool is_in_state(const json_t *member, const char *state)
{
	return !strcmp(text_of(member, "state"), state);
}

const json_t *ranks_lateness(const json_t *member)
{
	const json_t *lately = report_get(member, "waiting.lately");

	return json_is_true(report_get(lately, "late")) && is_in_state(member, "live") ? lately
										       : NULL;
}

/* Ended as it should, with nothing left behind: no longer of interest here. */
static bool is_over(const json_t *member)
{
	return is_in_state(member, "exited") ||
	       (is_in_state(member, "finalized") && number_of(member, "in_flight") <= 0);
}

static void put_identity(json_t *row, const json_t *comm, const json_t *member,
			 const struct maps *maps)
{
	const json_t *process;
	char key[KEY];

	take(row, "comm_id", comm, "comm_id");
	take(row, "comm_name", comm, "name");
	take(row, "nranks", comm, "nranks");
	take(row, "comm", comm, "comm_label|comm_id");
	take(row, "host", comm, "host");
	take(row, "rank", member, "rank");
	take(row, "pid", member, "pid");
	take(row, "gpu", member, "pci_bus_id");
	take(row, "phase", member, "phase");
	take(row, "tag", member, "tag");
	take(row, "gpu_uuid", member, "gpu_uuid");
	if (!is_in_state(member, "live"))
		take(row, "ended", member, "state");
	pid_key(key, comm, number_of(member, "pid"));
	process = json_object_get(maps->processes, key);
	take(row, "user", process, "user|uid");
	take(row, "uid", process, "uid");
	take(row, "job", process, "job.id");
}

static void put_speed(json_t *row, const struct maps *maps)
{
	const json_t *summary, *share;
	char key[KEY];

	member_key(key, row);
	summary = json_object_get(maps->summary, key);
	take(row, "busbw_gbs", summary, "busbw_gbs.mean");
	take(row, "waitfree_gbs", summary, "busbw_waitfree_gbs");
	take(row, "p50_ns", summary, "exec.p50_ns|batch.p50_ns");
	take(row, "p99_ns", summary, "exec.p99_ns|batch.p99_ns");
	take(row, "share", summary, "share");
	share = json_object_get(row, "share");
	put_known(row, "idle", json_is_number(share), 1 - json_number_value(share));
	put_ratio(row, "ops_per_s", summary, "ops", "window_ns", 1e9);
}

static void put_waiting(json_t *row, const json_t *comm, const json_t *member,
			const struct waits *waits)
{
	const json_t *lately = report_get(member, "waiting.lately");
	char key[WAITS_KEY];
	double wait;

	waits_key(comm, member, key);
	wait = waits ? waits_share(waits, key) : -1;
	put_known(row, "wait", wait >= 0, wait);
	put_ratio(row, "blame", lately, "blame_ns", "window_ns", 1);
	put_ratio(row, "last", lately, "last", "judged", 1);
	take(row, "late_ns", lately, "late_ns");
}

static void put_inflight(json_t *row, const json_t *member, const struct maps *maps)
{
	const json_t *oldest;
	json_int_t ops;
	char key[KEY];

	open_key(key, row);
	oldest = json_object_get(maps->oldest, key);
	put(row, "oldest_ns", oldest);
	ops = maps->unseen_age ? json_integer_value(report_get(member, "in_flight"))
			       : json_integer_value(json_object_get(maps->ops, key));
	json_object_set_new(row, "in_flight", json_integer(ops));
	if (maps->unseen_age && ops && !oldest && !report_get(row, "ended"))
		json_object_set_new(row, "oldest_bound", json_string(maps->unseen_age));
}

static const json_t *put_verdict(json_t *row, const struct maps *maps)
{
	const json_t *finding;
	char key[KEY];

	found_key(key, text_of(row, "comm_id"), number_of(row, "rank"));
	finding = json_object_get(maps->findings, key);
	if (!finding) {
		pid_key(key, row, number_of(row, "pid"));
		finding = json_object_get(maps->findings, key);
	}
	take(row, "verdict", finding, "verdict|kind");
	return finding;
}

/*
 * Ranks found guilty of a hang come before those that hang because of it, though they may have
 * nothing in flight themselves; of those that are well, the one the others wait for most comes
 * first.
 */
static void put_badness(json_t *row, const json_t *member, const json_t *finding)
{
	double blame = json_number_value(json_object_get(row, "blame"));
	long long oldest = number_of(row, "oldest_ns");
	double badness = blame < 1 ? blame : 1;
	bool guilty = finding && finding_is(finding, "severity", "critical");

	if (is_in_state(member, "died"))
		badness = 1e19;
	else if (guilty)
		badness = 1e18;
	else if (oldest >= STALLED_NS)
		badness = (double)oldest;
	else if (finding)
		badness += 4;
	else if (ranks_lateness(member))
		badness += 2;
	json_object_set_new(row, "badness", json_real(badness));
}

static json_t *join_rank(const json_t *comm, const json_t *member, const struct waits *waits,
			 const struct maps *maps)
{
	json_t *row = json_object();

	put_identity(row, comm, member, maps);
	put_speed(row, maps);
	put_waiting(row, comm, member, waits);
	put_inflight(row, member, maps);
	if (number_of(row, "oldest_ns") >= (long long)WAITS_WINDOW_NS)
		put(row, "wait", NULL);	/* it is told when an operation ends, and none did */
	put_badness(row, member, put_verdict(row, maps));
	return row;
}

json_t *ranks_join(const struct ranks_answers *answers, const struct waits *waits)
{
	struct maps maps = {
		.processes = map_processes(answers->processes),
		.summary = map_summary(answers->summary),
		.findings = map_findings(answers->findings),
		.unseen_age = answers->unseen_age,
	};
	json_t *rows = json_array(), *comm, *member;
	size_t i, k;

	map_inflight(&maps, answers->inflight);
	json_array_foreach((json_t *)answers->comms, i, comm)
		json_array_foreach(json_object_get(comm, "local_ranks"), k, member)
			if (!is_over(member))
				json_array_append_new(rows, join_rank(comm, member, waits, &maps));
	free_maps(&maps);
	report_sort(rows, &by_badness, false);
	return rows;
}
