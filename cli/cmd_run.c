/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncclinsp run: a job with the plugin in it, and at its end one screen: what NCCL cost, who was
 * late, what to look at.  Whatever fails here, the job runs.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/member.h"
#include "cli/common/beside.h"
#include "cli/common/prose.h"
#include "cli/run/child.h"
#include "cli/run/own.h"
#include "cli/view/columns.h"
#include "nci/control.h"
#include "reader/base/job.h"
#include "util/list.h"
#include "util/phrase.h"

#define PLUGIN	   "libnccl-profiler-insp.so"
#define SETTLE_NS  UINT64_C(3000000000)	/* time for the last records to be read and judged */
#define SETTLE_US  100000
#define JUDGED_US  1200000		/* the daemon judges once a second */
#define OPS_TOLD   5
#define TIMEOUT_MS 5000

struct job_run {
	struct own own;
	bool owns;		/* false: a daemon was there */
	const char *job;	/* its id, as ncclinsp ps shows it */
	char state_dir[PATH_MAX], snapshot[PATH_MAX];	/* set with --report */
	uint64_t began_ns;
};

/* ---- before the job --------------------------------------------------------- */

static void run_complain(const char *what, const char *why)
{
	fprintf(stderr, "ncclinsp: %s: %s; the job runs all the same\n", what, why);
}

/* A variable that the user has set already stays as it is; an empty one is not set. */
static void variable_offer(const char *name, const char *value)
{
	const char *given = getenv(name);

	if (*value)
		setenv(name, value, !given || !*given);
}

static bool plugin_is_ours(const char *given)
{
	return !*given || !strcmp(given, "insp") || !strcmp(given, "insp-chain") ||
	       beside_names_plugin(given);
}

static void run_choose_plugin(void)
{
	const char *given = getenv("NCCL_PROFILER_PLUGIN");
	char path[PATH_MAX];

	if (given && !plugin_is_ours(given))
		run_complain("NCCL_PROFILER_PLUGIN names another plugin, so nothing is recorded: "
			     "unset it, or for both set NCCL_PROFILER_PLUGIN=insp-chain and "
			     "NCCLINSP_CHAIN to that plugin", given);
	variable_offer("NCCL_PROFILER_PLUGIN",
		       beside_find(PLUGIN, "lib", path, sizeof(path)) ? path : "insp");
}

/* Tells the job where the daemon that answers wants it to look and write. */
static void run_follow(const json_t *config)
{
	static const struct {
		const char *setting, *variable, *usual;
	} places[] = {
		{ "control", "NCCLINSP_CONTROL", NCI_CONTROL_PATH },
		{ "shm-dir", "NCCLINSP_SHM_DIR", NCI_SHM_DIR },
	};

	json_each(row, json_object_get(config, "settings"))
		for (size_t k = 0; k < ARRAY_LEN(places); k++)
			if (member_is(row, "name", places[k].setting) &&
			    !member_is(row, "value", places[k].usual))
				variable_offer(places[k].variable, member_text(row, "value", ""));
}

static void run_start_own(struct job_run *run, struct cli *cli)
{
	int r = own_open(&run->own, *run->state_dir ? run->state_dir : NULL);

	if (r) {
		run_complain("cannot start a daemon",
			     r == -EBUSY ? "another ncclinsp run of this launcher has been "
					   "starting or ending one for 6 s" :
			     r == -ENOENT ? "ncclinspd is not installed beside this program" :
			     r == -EACCES ? "XDG_RUNTIME_DIR, TMPDIR and /tmp cannot be written" :
			     strerror(-r));
		own_close(&run->own);
		return;
	}
	run->owns = true;
	setenv("NCCLINSP_SOCKET", run->own.socket, 1);
	setenv("NCCLINSP_CONTROL", run->own.control, 1);
	setenv("NCCLINSP_SHM_DIR", run->own.shm, 1);
	client_free(cli->client);
	cli->client = client_new(run->own.socket, TIMEOUT_MS);
}

static void run_find_daemon(struct job_run *run, struct cli *cli)
{
	json_auto_t *config = NULL;
	int r = client_get(cli->client, "/v1/config", &config);

	if (!r)
		run_follow(config);
	else if (r == -ENOENT || r == -ECONNREFUSED)
		run_start_own(run, cli);
	else
		run_complain("cannot ask the daemon", client_error(cli->client));
}

/* Processes of this run can be told from others' on the node. */
static void run_name_job(struct job_run *run)
{
	static char name[64];

	run->job = job_id(NULL);
	if (run->job)
		return;
	snprintf(name, sizeof(name), "run-%d", (int)getpid());
	setenv("NCCLINSP_RUN", name, 1);
	run->job = name;
}

/* DIR, DIR/HOST for a daemon of our own, DIR/HOST.json at the end. */
static int run_choose_places(struct job_run *run, const struct cli *cli)
{
	char host[HOST_NAME_MAX + 1] = "node";

	if (!cli->report_dir)
		return 0;
	gethostname(host, sizeof(host) - 1);
	if (mkdir(cli->report_dir, 0777) && errno != EEXIST)
		return cli_reject("cannot make --report %s: %s", cli->report_dir, strerror(errno));
	snprintf(run->state_dir, sizeof(run->state_dir), "%s/%s", cli->report_dir, host);
	snprintf(run->snapshot, sizeof(run->snapshot), "%s/%s.json", cli->report_dir, host);
	return 0;
}

/* ---- after it ----------------------------------------------------------------- */

static bool process_is_of(const struct job_run *run, const json_t *process)
{
	return run->owns || member_is(json_object_get(process, "job"), "id", run->job);
}

/*
 * The job's processes: how many there were, how many live; *all: the answer, the caller's, or NULL:
 * the daemon gives none.
 */
static size_t processes_count(const struct job_run *run, const struct cli *cli, json_t **all,
			      size_t *live)
{
	size_t n = 0;

	*live = 0;
	if (client_get(cli->client, "/v1/processes", all))
		return 0;
	json_each(process, json_object_get(*all, "processes")) {
		bool ours = process_is_of(run, process);

		n += ours;
		*live += ours && member_is(process, "state", "live");
	}
	return n;
}

/* The daemon has read what they wrote last, and judged it. */
static size_t run_settle(const struct job_run *run, const struct cli *cli, json_t **all)
{
	uint64_t begin_ns = cli_now_ns();
	size_t live, n;

	while ((n = processes_count(run, cli, all, &live)) && live &&
	       cli_now_ns() - begin_ns < SETTLE_NS) {
		json_decref(*all);
		*all = NULL;
		usleep(SETTLE_US);
	}
	if (n)
		usleep(JUDGED_US);
	return n;
}

static void phrase_add_end(struct phrase *text, int status)
{
	if (WIFSIGNALED(status))
		phrase_add(text, " was ended by signal %d (%s)", WTERMSIG(status),
			   strsignal(WTERMSIG(status)));
	else
		phrase_add(text, " ended with %d", WEXITSTATUS(status));
}

static void phrase_add_processes(struct phrase *text, const struct job_run *run, const json_t *all,
				 size_t n)
{
	unsigned long long records = 0, lost = 0;
	json_t *count;
	const char *cause;

	json_each(process, json_object_get(all, "processes")) {
		if (!process_is_of(run, process))
			continue;
		records += member_number(process, "records", 0);
		json_object_foreach(json_object_get(process, "lost"), cause, count)
			lost += (unsigned long long)json_integer_value(count);
	}
	phrase_add(text, "; %zu process%s used NCCL here: %llu records, %llu lost", n,
		   n == 1 ? "" : "es", records, lost);
}

/* The GPUs that the job used here; a process that tells none has one. */
static size_t gpus_count(const struct cli *cli)
{
	json_auto_t *comms = NULL, *gpus = json_object();
	char pid[24];

	client_get(cli->client, "/v1/comms", &comms);
	json_each(comm, json_object_get(comms, "comms"))
		json_each(rank, json_object_get(comm, "local_ranks")) {
			snprintf(pid, sizeof(pid), "%d", member_i32(rank, "pid"));
			json_object_set_new(gpus, member_text(rank, "gpu_uuid", pid), json_true());
		}
	return json_object_size(gpus);
}

/*
 * Adds the part of the ranks' time that operations took, and the part of it that was waiting, as
 * far as ranks of this node were compared.
 */
static void phrase_add_cost(struct phrase *text, const struct cli *cli)
{
	json_auto_t *sums = NULL;
	double share = 0, waited = 0, compared = 0;

	if (!client_get(cli->client, "/v1/summary?window=all&by=comm,rank", &sums))
		json_each(row, json_object_get(sums, "rows")) {
			double part = json_number_value(json_object_get(row, "share"));
			const json_t *wait = json_object_get(row, "wait_fraction");

			share += part;
			waited += part * json_number_value(wait);
			compared += json_is_number(wait) ? part : 0;
		}
	if (share > 0)
		phrase_add(text, "; NCCL took %.0f %% of their time",
			   100 * fmin(share / (double)gpus_count(cli), 1));
	if (compared > 0)
		phrase_add(text, ", and %s%.0f %% of that was waiting for other ranks",
			   compared < share ? "at least " : "", 100 * waited / share);
}

static void head_put(const struct job_run *run, struct cli *cli, int status, const json_t *all,
		     size_t n)
{
	char line[LINE_BYTES];
	struct phrase text;
	struct frame page;

	phrase_start(&text, line, sizeof(line));
	phrase_add(&text, "ncclinsp: %s", cli->paths[0]);
	phrase_add_end(&text, status);
	phrase_add(&text, " after ");
	phrase_add_duration(&text, cli_now_ns() - run->began_ns);
	if (n)
		phrase_add_processes(&text, run, all, n);
	else if (!all)
		phrase_add(&text, "; what it did in NCCL is not known: %s",
			   client_error(cli->client));
	else
		phrase_add(&text, "; none of its processes here was seen with the plugin in NCCL "
			   "(to see why: NCCL_DEBUG=INFO, ncclinsp doctor)");
	if (run->owns && n)
		phrase_add_cost(&text, cli);
	prose_begin(&page, cli, PROSE_WIDEST);
	prose_put(&page, LINE_BOLD, 0, 2, line);
	prose_end(&page, cli);
}

static json_t *ops_keep_costliest(const json_t *rows)
{
	json_t *kept = json_array();

	for (size_t i = 0; i < json_array_size(rows) && i < OPS_TOLD; i++)
		json_array_append(kept, json_array_get(rows, i));
	return kept;
}

static void ops_put(struct cli *cli)
{
	const struct listing listing = {
		.array = "rows", .columns = ops_columns, .count = ops_column_count,
		.reshape = ops_keep_costliest, .joint = true, .labelled = true,
		.nothing = "no operation has ended",
	};

	listing_run(cli, &listing,
		    "/v1/summary?window=all&by=comm,func,size,algo,proto,phase,tag");
}

static void findings_put(const struct job_run *run, struct cli *cli)
{
	cli->job = run->owns ? NULL : run->job;
	cli->all = true;
	cmd_diagnose(cli);
}

/* A daemon of our own may write down single operations, too: it has nobody else's. */
static int snapshot_have_written(const struct job_run *run, const struct cli *cli)
{
	json_auto_t *root = NULL;
	int r = client_post(cli->client, "/v1/snapshot", &root);

	if (!r && rename(member_text(root, "path", ""), run->snapshot))
		r = -errno;
	return r;
}

/* All that the daemon knows of the job's end: a file of the form that ncclinsp report reads. */
static int snapshot_keep(const struct job_run *run, const struct cli *cli)
{
	char part[PATH_MAX + 8];
	json_t *root = NULL;
	int r = client_get(cli->client, "/v1/snapshot", &root);
	FILE *out;

	json_decref(root);
	if (r)
		return r;
	snprintf(part, sizeof(part), "%s.tmp", run->snapshot);
	out = fopen(part, "we");
	if (!out)
		return -errno;
	if (fputs(client_body(cli->client), out) < 0)
		r = -errno;
	if (fclose(out) || (!r && rename(part, run->snapshot)))
		r = r ?: -errno;
	if (r)
		remove(part);
	return r;
}

static void report_put(const struct job_run *run, const struct cli *cli)
{
	int r = run->owns ? snapshot_have_written(run, cli) : snapshot_keep(run, cli);

	if (r)
		fprintf(stderr, "ncclinsp: cannot write %s: %s\n", run->snapshot, strerror(-r));
	else
		fprintf(stderr, "snapshot: %s\nreport of all nodes: ncclinsp report %s\n"
			"as a page: ncclinsp report --html %s >report.html\n",
			run->snapshot, cli->report_dir, cli->report_dir);
}

/* The job's own output went to stdout: what we say goes beside it, to stderr. */
static void run_tell(struct job_run *run, struct cli *cli, int status)
{
	json_auto_t *all = NULL;
	size_t n = run_settle(run, cli, &all);

	fflush(stdout);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	head_put(run, cli, status, all, n);
	if (n && run->owns)
		ops_put(cli);
	if (n)
		findings_put(run, cli);
	fflush(stdout);
	if (n && cli->report_dir)
		report_put(run, cli);
}

/* One of those that a launcher starts on a node: the last, or the first rank's. */
static bool run_is_to_tell(struct job_run *run, const struct cli *cli)
{
	const char *local_rank = job_local_rank(NULL);

	if (cli->quiet)
		return false;
	return run->owns ? own_is_last(&run->own) : !local_rank || job_number(local_rank) <= 0;
}

int cmd_run(struct cli *cli)
{
	struct job_run run = { .own = { .election = -1, .users = -1 }, .began_ns = cli_now_ns() };
	int status = 0, r;

	if (!cli->npaths)
		return cli_reject("run needs a command: ncclinsp run -- torchrun train.py");
	r = run_choose_places(&run, cli);
	if (r)
		return r;
	run_choose_plugin();
	run_name_job(&run);
	run_find_daemon(&run, cli);
	r = child_run(cli->paths, &status);
	if (r) {
		fprintf(stderr, "ncclinsp: cannot run %s: %s\n", cli->paths[0], strerror(-r));
		own_close(&run.own);
		return r == -ENOENT ? 127 : 126;
	}
	if (run_is_to_tell(&run, cli))
		run_tell(&run, cli, status);
	own_close(&run.own);
	return child_end_alike(status);
}
