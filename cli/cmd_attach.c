/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncclinsp attach: calls of NCCL in processes that were started without the plugin.  They are
 * counted by ncclinsp-probe, which needs rights; here processes are chosen, and counts explained.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/base/intake.h"
#include "cli/base/interrupt.h"
#include "cli/base/member.h"
#include "cli/base/must.h"
#include "cli/common/beside.h"
#include "cli/common/listing.h"
#include "cli/doctor/variables.h"
#include "judge/lineup.h"
#include "judge/whom.h"
#include "nci/variables.h"
#include "reader/base/job.h"
#include "reader/join/ops.h"
#include "util/cleanup.h"
#include "util/list.h"
#include "util/phrase.h"
#include "util/text.h"

#define PROBE		"ncclinsp-probe"
#define NO_RIGHT	3	/* its exit status, and of --for the default in seconds: */
#define FOR_S		60
#define PIDS_BYTES	4096
#define ANSWER_MOST	(64u << 20)
#define SENTENCE	640

static const struct column attach_columns[] = {
#include "schema/attach_columns.h"
};

/* ---- processes ------------------------------------------------------------------------ */

/* Reads what its launcher told the process, as the plugin would pass it on to the daemon. */
static bool process_read(struct process *p, int64_t pid)
{
	static const char *const names[] = {
#define X(name) #name,
		NCI_JOB_VARIABLES(X)
#undef X
	};
	json_auto_t *all = NULL;

	memset(p, 0, sizeof(*p));
	if (variables_read_all("/proc", pid, &all))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *value = member_text(all, names[i], NULL);
		size_t room = sizeof(p->env) - p->env_bytes;
		int n = -1;

		if (value)
			n = snprintf(p->env + p->env_bytes, room, "%s=%s", names[i], value);
		if (n >= 0 && (size_t)n < room)
			p->env_bytes += (uint32_t)n + 1;
	}
	return true;
}

/* Their ranks in the job, by pid; later they may have ended. */
static json_t *pids_read_ranks(const char *pids, struct process *scratch)
{
	json_t *ranks = json_object();

	for (; *pids; pids += strcspn(pids, ","), pids += *pids == ',') {
		int64_t pid = atoll(pids);
		int32_t rank = process_read(scratch, pid) ? job_number(job_rank(scratch)) :
							    UNKNOWN_I32;
		char key[TEXT_MAX];

		snprintf(key, sizeof(key), "%" PRId64, pid);
		if (rank != UNKNOWN_I32)
			json_object_set_new(ranks, key, json_integer(rank));
	}
	return ranks;
}

/* The ranks of that job that we may look at, as "4711,4712"; launchers have no rank. */
static void job_find_pids(const char *job, struct process *scratch, char *pids, size_t size)
{
	struct dirent *entry;
	struct phrase list;
	CLEANUP(cleanup_closedirp) DIR *dir = opendir("/proc");

	phrase_start(&list, pids, size);
	while (dir && (entry = readdir(dir))) {
		const char *id;

		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    !process_read(scratch, atoll(entry->d_name)) || !job_rank(scratch))
			continue;
		id = job_id(scratch);
		if (id && !strcmp(id, job))
			phrase_add(&list, "%s%s", list.used ? "," : "", entry->d_name);
	}
}

/* ---- the probe ------------------------------------------------------------------------- */

struct attach_run {
	struct cli *cli;
	struct process *scratch;
	char pids[PIDS_BYTES];
	pid_t probe;
	json_t *ranks;		/* their ranks in the job, by pid */
	json_t *counted;	/* the probe's answer */
	json_t *answer;
};

static pid_t probe_start(const char *path, const char *pids, uint64_t seconds, int *out)
{
	char text[TEXT_MAX];
	int ends[2];
	pid_t pid;

	snprintf(text, sizeof(text), "%" PRIu64, seconds);
	if (pipe(ends))
		return -errno;
	pid = fork();
	if (!pid) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execl(path, PROBE, "--attach", pids, "--for", text, (char *)NULL);
		fprintf(stderr, "ncclinsp: cannot run %s: %s\n", path, strerror(errno));
		_exit(127);
	}
	close(ends[1]);
	*out = ends[0];
	if (pid < 0)
		close(ends[0]);
	return pid < 0 ? -errno : pid;
}

/* Its one line, which comes when it has counted; a signal that ends us ends that first. */
static char *probe_read(pid_t pid, int fd, size_t *bytes)
{
	size_t room = 1 << 16;
	char *text = must(malloc(room));
	ssize_t n;

	*bytes = 0;
	while ((!*bytes || text[*bytes - 1] != '\n') &&
	       ((n = read(fd, text + *bytes, room - *bytes - 1)) > 0 ||
		(n < 0 && errno == EINTR))) {
		if (n < 0)
			kill(pid, SIGTERM);
		*bytes += n > 0 ? (size_t)n : 0;
		if (*bytes + 1 == room && room < ANSWER_MOST)
			text = must(realloc(text, room *= 2));
	}
	close(fd);
	text[*bytes] = '\0';
	return text;
}

/* Its end takes a while: the kernel removes one probe after the other.  CLI_DONE: all went well. */
static int probe_wait(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (!status)
		return CLI_DONE;
	if (WIFSIGNALED(status))
		fprintf(stderr, "ncclinsp: " PROBE " was ended by signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) && WEXITSTATUS(status) == NO_RIGHT ? CLI_NO_RIGHT : CLI_FAILED;
}

static int attach_count(struct attach_run *a)
{
	uint64_t seconds = a->cli->for_ns ? (a->cli->for_ns + 999999999) / 1000000000 : FOR_S;
	CLEANUP(cleanup_freep) char *text = NULL;
	char path[PATH_MAX];
	size_t bytes;
	int fd = -1;

	if (!beside_find(PROBE, "sbin", path, sizeof(path))) {
		fputs("ncclinsp: attach needs " PROBE "(8), which is not installed: install the "
		      "package " PROBE "\n", stderr);
		return CLI_FAILED;
	}
	interrupt_catch();
	a->probe = probe_start(path, a->pids, seconds, &fd);
	if (a->probe < 0) {
		fprintf(stderr, "ncclinsp: cannot start " PROBE ": %s\n", strerror(-a->probe));
		return CLI_FAILED;
	}
	text = probe_read(a->probe, fd, &bytes);
	if (!bytes)
		return probe_wait(a->probe) ?: CLI_FAILED;
	a->counted = intake_read(text, bytes, NULL);
	if (a->counted)
		return CLI_DONE;
	fputs("ncclinsp: " PROBE " printed something unexpected: is it of this version?\n", stderr);
	return CLI_FAILED;
}

/* ---- rows -------------------------------------------------------------------------------- */

static const char *datatype_name(const json_t *call)
{
	return ops_datatype_name(member_number(call, "datatype", UINT64_MAX));
}

/* The rank in the job of a row's process, or null. */
static json_t *attach_world_rank(const struct attach_run *a, const json_t *row)
{
	json_t *rank;
	char key[TEXT_MAX];

	snprintf(key, sizeof(key), "%" JSON_INTEGER_FORMAT,
		 json_integer_value(json_object_get(row, "pid")));
	rank = json_object_get(a->ranks, key);
	return rank ? json_incref(rank) : json_null();
}

/* A row of the probe's as the table has it; NCCL calls some datatypes by no name we know. */
static void row_dress(const struct attach_run *a, json_t *row)
{
	const char *func = member_text(row, "func", ""), *type = datatype_name(row);
	uint64_t bytes = ops_size(ops_facts(func), member_number(row, "count", UNKNOWN_U64),
				  ops_datatype_bytes(type), member_i32(row, "nranks"));
	json_object_set_new(row, "datatype", json_text(type));
	json_object_set_new(row, "size_bytes", bytes == UNKNOWN_U64 ? json_null() :
			    json_integer((json_int_t)bytes));
	json_object_set_new(row, "ranks", json_integer(1));
	json_object_set_new(row, "world_rank", attach_world_rank(a, row));
}

/* The row of other ranks that made the same calls of this communicator; NULL: there is none. */
static json_t *rows_find(const json_t *rows, const json_t *row)
{
	json_each(other, rows)
		if (members_same(other, row, "comm_id", "func", "datatype", "count", "nranks"))
			return other;
	return NULL;
}

static void row_join(json_t *to, const json_t *row)
{
	static const char *const sums[] = { "calls", "ranks" };
	static const char *const of_one[] = { "pid", "rank", "world_rank" };

	for (size_t i = 0; i < ARRAY_LEN(sums); i++)
		json_object_set_new(to, sums[i], json_integer((json_int_t)(
			member_number(to, sums[i], 0) + member_number(row, sums[i], 0))));
	for (size_t i = 0; i < ARRAY_LEN(of_one); i++)
		json_object_set_new(to, of_one[i], json_null());
}

/* A communicator without an id is its process's alone. */
static json_t *attach_rows(const struct attach_run *a, double seconds)
{
	json_t *rows = json_array(), *same;

	json_each(row, json_object_get(a->counted, "calls")) {
		row_dress(a, row);
		same = a->cli->by_rank || json_is_null(json_object_get(row, "rank")) ? NULL :
			rows_find(rows, row);
		if (same)
			row_join(same, row);
		else
			json_array_append(rows, row);
	}
	json_each(row, rows)
		json_object_set_new(row, "per_second", json_real(seconds > 0 ?
			(double)member_number(row, "calls", 0) /
			(double)member_number(row, "ranks", 1) / seconds : 0));
	return rows;
}

static json_t *attach_processes(const struct attach_run *a)
{
	json_t *list = json_incref(json_object_get(a->counted, "processes"));

	json_each(process, list)
		json_object_set_new(process, "world_rank", attach_world_rank(a, process));
	return list ?: json_array();
}

/* ---- ranks that lack a call ---------------------------------------------------------------- */

static void rank_read(struct lineup_rank *rank, const json_t *comm)
{
	const json_t *last = json_object_get(comm, "last");

	*rank = (struct lineup_rank){ .calls = member_number(comm, "calls", 0) };
	json_each(call, last) {
		struct lineup_call *to = array_add(rank->last, &rank->n);
		uint64_t what = 14695981039346656037u;
		const char *func = member_text(call, "func", "");

		if (!to)
			break;
		for (const char *at = func; *at; at++)
			what = (what ^ (unsigned char)*at) * 1099511628211u;
		what = (what ^ member_number(call, "datatype", 0)) * 1099511628211u;
		*to = (struct lineup_call){
			(what ^ member_number(call, "count", 0)) * 1099511628211u,
			member_number(call, "at_mono_ns", 0),
		};
	}
	if (rank->calls < rank->n)
		rank->calls = rank->n;
}

/* The sentence; numbers are as the first of `comms` counts. */
static json_t *lack_say(const struct attach_run *a, const json_t *comm, const json_t *first,
			const json_t *call, const struct lineup_lack *lack, const char *by)
{
	json_t *world = attach_world_rank(a, comm);
	const struct whom whom = {
		.rank = member_i32(comm, "rank"), .pid = member_i32(comm, "pid"),
		.world_rank = json_is_integer(world) ? (int32_t)json_integer_value(world) :
						       UNKNOWN_I32,
	};
	uint64_t since_ns = member_number(a->counted, "end_mono_ns", 0) -
			    member_number(call, "at_mono_ns", 0);
	char text[SENTENCE];
	struct phrase p;

	phrase_start(&p, text, sizeof(text));
	phrase_add(&p, "rank %" PRId32 " of ", whom.rank);
	whom_add_comm(&p, NULL, member_hex(comm, "comm_id"));
	whom_add(&p, &whom);
	phrase_add(&p, " has not made call #%" PRId64 ", %s of %" PRIu64 " %s; %" PRIu32
		   " other%s made it, the first ", lack->number, member_text(call, "func", "?"),
		   member_number(call, "count", 0), datatype_name(call) ?: "elements",
		   lack->others, lack->others == 1 ? " rank here has" : " ranks here have");
	phrase_add_duration(&p, since_ns);
	phrase_add(&p, " ago");
	if (lack->behind)
		phrase_add(&p, ", and %" PRIu64 " later call%s missing as well", lack->behind,
			   lack->behind == 1 ? " is" : "s are");
	phrase_add(&p, ". The number counts rank %" PRId32 "'s calls since counting began%s",
		   member_i32(first, "rank"),
		   strcmp(by, "time") ? "" : "; calls of ranks are matched by time alone");
	return json_pack("{s:O, s:O, s:o, s:O, s:I, s:I, s:I, s:I, s:O, s:o, s:O, s:s, s:s}",
			 "comm_id", json_object_get(comm, "comm_id"), "rank",
			 json_object_get(comm, "rank"), "world_rank", world, "pid",
			 json_object_get(comm, "pid"), "number", (json_int_t)lack->number,
			 "behind", (json_int_t)lack->behind, "others", (json_int_t)lack->others,
			 "since_ns", (json_int_t)since_ns, "func", json_object_get(call, "func"),
			 "datatype", json_text(datatype_name(call)), "count",
			 json_object_get(call, "count"), "lined_up", by, "text", text);
}

/* `comms` are those of one id; the one with the most calls, which numbers them, comes first. */
static void comms_judge(const struct attach_run *a, const json_t *comms, json_t *behind)
{
	static const char *const bys[] = { [LINEUP_CALLS] = "calls", [LINEUP_TIME] = "time" };
	uint32_t n = (uint32_t)json_array_size(comms);
	CLEANUP(cleanup_freep) struct lineup_rank *ranks = must(calloc(n, sizeof(*ranks)));
	struct lineup_lack lack;

	for (uint32_t i = 0; i < n; i++)
		rank_read(&ranks[i], json_array_get(comms, i));
	lineup(ranks, n);
	for (uint32_t i = 0; i < n; i++) {
		const json_t *first;

		if (!lineup_lacks(ranks, n, i, member_number(a->counted, "end_mono_ns", 0), &lack))
			continue;
		first = json_array_get(comms, lack.first);
		json_array_append_new(behind, lack_say(a, json_array_get(comms, i),
			json_array_get(comms, 0),
			json_array_get(json_object_get(first, "last"), lack.call), &lack,
			bys[ranks[i].by]));
	}
}

static json_t *attach_behind(const struct attach_run *a)
{
	json_auto_t *by_id = json_object();
	json_t *all = json_object_get(a->counted, "comms");
	json_t *behind = json_array(), *comms;
	const char *id;

	json_each(comm, all) {
		id = json_is_null(json_object_get(comm, "rank")) ? "" :
			member_text(comm, "comm_id", "");
		if (*id && !json_object_get(by_id, id))
			json_object_set_new(by_id, id, json_array());
		comms = json_object_get(by_id, id);
		if (!*id)
			continue;
		if (member_number(comm, "calls", 0) >
		    member_number(json_array_get(comms, 0), "calls", 0))
			json_array_insert(comms, 0, comm);
		else
			json_array_append(comms, comm);
	}
	json_object_foreach(by_id, id, comms)
		comms_judge(a, comms, behind);
	return behind;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int attach_fetch(struct cli *cli, void *arg, json_t **root)
{
	const struct attach_run *a = arg;

	*root = json_incref(a->answer);
	return 0;
}

static void attach_answer(struct attach_run *a)
{
	double seconds = json_number_value(json_object_get(a->counted, "seconds"));

	a->answer = json_object();
	json_object_set_new(a->answer, "seconds", json_real(seconds));
	json_object_set(a->answer, "lost", json_object_get(a->counted, "lost"));
	json_object_set_new(a->answer, "processes", attach_processes(a));
	json_object_set_new(a->answer, "calls", attach_rows(a, seconds));
	json_object_set_new(a->answer, "behind", attach_behind(a));
}

/* Lines beside the table: ranks that lack a call, and whether counts are too low. */
static void attach_say(const struct attach_run *a)
{
	uint64_t lost = member_number(a->answer, "lost", 0);
	size_t n = json_array_size(json_object_get(a->answer, "processes"));

	json_each(behind, json_object_get(a->answer, "behind"))
		puts(member_text(behind, "text", ""));
	if (lost)
		printf("%" PRIu64 " call%s not counted: there are too many kinds of calls or "
		       "communicators\n", lost, lost == 1 ? " is" : "s are");
	printf("counted for %.1f s in %zu process%s\n",
	       json_number_value(json_object_get(a->answer, "seconds")), n, n == 1 ? "" : "es");
}

static int attach_list(struct attach_run *a)
{
	static const struct column by_calls = { NULL, NULL, COL_NUMBER, "calls", 0, 0, 0 };
	const struct listing listing = {
		.array = "calls", LISTING_COLUMNS(attach_columns), .sort = &by_calls,
		.nothing = "no NCCL call was made in this time", .fetch = attach_fetch, .arg = a,
		.labelled = true, .whole = true,
	};

	a->cli->job = NULL;	/* it chose the processes, not rows */
	return listing_run(a->cli, &listing, NULL);
}

static int attach_choose(struct attach_run *a)
{
	struct cli *cli = a->cli;

	if (!cli->argument == !cli->job)
		return cli_reject("attach needs processes (attach 4711 or attach 4711,4712) or a "
				  "job (attach --job ID)");
	if (cli->argument)
		snprintf(a->pids, sizeof(a->pids), "%s", cli->argument);
	else
		job_find_pids(cli->job, a->scratch, a->pids, sizeof(a->pids));
	if (strlen(a->pids) + 1 == sizeof(a->pids))	/* the last may be cut */
		return cli_reject("attach: too many processes: give the pids of some, as in "
				  "attach 4711,4712");
	a->ranks = pids_read_ranks(a->pids, a->scratch);
	if (*a->pids)
		return CLI_DONE;
	fprintf(stderr, "ncclinsp: no process of job %s is found here (the environment of its "
		"processes must be readable); give its pids: attach PID,PID\n", cli->job);
	return CLI_NOTHING;
}

int cmd_attach(struct cli *cli)
{
	struct attach_run a = { .cli = cli };
	int code;

	if (cli->fields && !strcmp(cli->fields, "help"))
		return attach_list(&a);
	a.scratch = must(calloc(1, sizeof(*a.scratch)));
	code = attach_choose(&a);
	if (!code)
		code = attach_count(&a);
	if (!code) {
		attach_answer(&a);
		code = attach_list(&a);
		if (cli->format == CLI_TABLE || cli->format == CLI_WIDE)
			attach_say(&a);
		fflush(stdout);
		code = probe_wait(a.probe) ?: code;
	}
	json_decref(a.ranks);
	json_decref(a.counted);
	json_decref(a.answer);
	free(a.scratch);
	return code;
}
