/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that use NCCL on this node, with the plugin or without: read from /proc, as
 * far as it may be read.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/base/member.h"
#include "cli/common/beside.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/variables.h"
#include "nci/control.h"
#include "nci/segment.h"
#include "reader/read/life.h"
#include "util/cleanup.h"
#include "util/procstat.h"

#define NAMED 6	/* processes that one row names besides the first */

/* ---- reading ----------------------------------------------------------------- */

static FILE *proc_open(const char *proc, const char *pid, const char *name)
{
	char path[DOCTOR_PATH];

	snprintf(path, sizeof(path), "%s/%s/%s", proc, pid, name);
	return fopen(path, "re");
}

/* The libraries its memory is mapped from. */
static void proc_read_maps(const char *proc, const char *pid, bool *nccl, bool *plugin)
{
	CLEANUP(cleanup_fclosep) FILE *in = proc_open(proc, pid, "maps");
	CLEANUP(cleanup_freep) char *line = NULL;
	size_t room = 0;

	*nccl = *plugin = false;
	while (in && getline(&line, &room, in) > 0) {
		*plugin = *plugin || beside_names_plugin(line);
		*nccl = *nccl || strstr(line, "/libnccl.so");
	}
}

static json_t *proc_read_command(const char *proc, const char *pid)
{
	char name[64] = "";

	procstat_read(AT_FDCWD, name, sizeof(name), "%s/%s/comm", proc, pid);
	name[strcspn(name, "\n")] = '\0';
	return json_string(name) ?: json_string("?");
}

/* Its pid in each pid namespace that it is in, the daemon's own among them. */
static json_t *proc_read_pids(const char *proc, const char *pid)
{
	CLEANUP(cleanup_fclosep) FILE *in = proc_open(proc, pid, "status");
	json_t *pids = json_pack("[I]", (json_int_t)atoll(pid));
	char line[512];

	while (in && fgets(line, sizeof(line), in)) {
		char *left = line + 6, *one;

		if (strncmp(line, "NSpid:", 6))
			continue;
		while ((one = strsep(&left, " \t\n")))
			if (*one)
				json_array_append_new(pids, json_integer(atoll(one)));
	}
	return pids;
}

/* Does it see other mounts than the node's first process, or we?  Who cannot be asked: no. */
static bool proc_has_own_mounts(const char *proc, const char *pid)
{
	char path[DOCTOR_PATH];
	struct stat first, own;

	snprintf(path, sizeof(path), "%s/1/ns/mnt", proc);
	if (stat(path, &first)) {
		snprintf(path, sizeof(path), "%s/self/ns/mnt", proc);
		if (stat(path, &first))
			return false;
	}
	snprintf(path, sizeof(path), "%s/%s/ns/mnt", proc, pid);
	return !stat(path, &own) && (own.st_ino != first.st_ino || own.st_dev != first.st_dev);
}

/* Does the directory of segments mean another one there?  Who cannot be asked: no. */
static bool proc_has_foreign_shm(const char *proc, const char *pid, const char *shm_dir)
{
	char path[2 * DOCTOR_PATH];
	struct stat here, there;

	snprintf(path, sizeof(path), "%s/%s/root%s", proc, pid, shm_dir);
	if (stat(shm_dir, &here))
		return false;
	if (stat(path, &there))
		return errno == ENOENT;
	return here.st_dev != there.st_dev || here.st_ino != there.st_ino;
}

/* Is `path` there, as that process sees it?  Who cannot be asked: yes. */
static bool path_is_there(const char *proc, const char *pid, const char *path, struct stat *st)
{
	char seen[2 * DOCTOR_PATH];

	snprintf(seen, sizeof(seen), "%s/%s/root%s", proc, pid, path);
	return !stat(seen, st) || (errno != ENOENT && errno != ENOTDIR);
}

/* Does it look for its level elsewhere than in the file `control`, of the daemon? */
static bool proc_has_foreign_control(const char *proc, const char *pid, const char *own,
				     const char *control)
{
	struct stat here, there = { 0 };

	if (!control || stat(control, &here))
		return false;
	return !path_is_there(proc, pid, *own ? own : NCI_CONTROL_PATH, &there) ||
	       (there.st_ino && (here.st_dev != there.st_dev || here.st_ino != there.st_ino));
}

/* A path that NCCL is to load, and which is none. */
static bool proc_lacks_library(const char *proc, const char *pid, const json_t *plugin)
{
	const char *path = json_string_value(plugin);
	struct stat st;

	return path && path[0] == '/' && !path_is_there(proc, pid, path, &st);
}

static void jobs_add_process(json_t *jobs, const char *proc, const char *pid, const char *shm_dir,
			     const char *control)
{
	json_auto_t *environment = NULL;
	json_t *value;
	bool nccl, plugin;

	proc_read_maps(proc, pid, &nccl, &plugin);
	if (!nccl && !plugin)
		return;
	variables_read_all(proc, atoll(pid), &environment);
	value = json_object_get(environment, "NCCL_PROFILER_PLUGIN");
	json_array_append_new(
		jobs, json_pack("{s:I s:o s:I s:o s:b s:b s:b s:b s:b s:b s:O?}", "pid",
				(json_int_t)atoll(pid), "pids", proc_read_pids(proc, pid), "start",
				(json_int_t)life_start_time(proc, (pid_t)atoll(pid)),
				"command", proc_read_command(proc, pid),
				"loaded", plugin, "lacks_library",
				proc_lacks_library(proc, pid, value), "other_dir",
				strcmp(member_text(environment, "NCCLINSP_SHM_DIR", NCI_SHM_DIR),
				       shm_dir) != 0,
				"own_mounts", proc_has_own_mounts(proc, pid),
				"foreign_shm", proc_has_foreign_shm(proc, pid, shm_dir),
				"foreign_control", proc_has_foreign_control(proc, pid,
					member_text(environment, "NCCLINSP_CONTROL", ""), control),
				"plugin", value));
}

json_t *doctor_scan(const char *proc, const char *shm_dir, const char *control)
{
	json_t *jobs = json_array();
	struct dirent *entry;
	CLEANUP(cleanup_closedirp) DIR *dir = opendir(proc);

	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]) && atoll(entry->d_name) != getpid())
			jobs_add_process(jobs, proc, entry->d_name, shm_dir, control);
	return jobs;
}

/* ---- judging ----------------------------------------------------------------- */

static bool pids_have(const json_t *pids, const json_t *pid)
{
	json_each(one, pids)
		if (json_equal(one, pid))
			return true;
	return false;
}

/*
 * The daemon's number of a process is ours only where both see the same pid namespace.  Its
 * segment is named by that which it has for itself, and by when it began, which no other
 * process with one of these numbers did.
 */
static bool row_is_of_job(const json_t *row, const json_t *job)
{
	const char *segment = member_text(row, "segment", NULL);
	json_int_t began = json_integer_value(json_object_get(job, "start"));
	const json_t *pids = json_object_get(job, "pids");
	long long number, start;
	json_auto_t *own = NULL;

	if (!segment || sscanf(segment, NCI_FILE_PREFIX "%*u.%lld.%lld", &number, &start) != 2)
		return pids_have(pids, json_object_get(row, "pid"));
	if (began && began != start)
		return false;
	own = json_integer(number);
	return pids_have(pids, json_object_get(row, "pid")) || (began && pids_have(pids, own));
}

long long doctor_own_pid(const json_t *jobs, const json_t *row)
{
	json_each(job, jobs)
		if (row_is_of_job(row, job))
			return json_integer_value(json_object_get(job, "pid"));
	return 0;
}

/* Its row among them, or NULL. */
static const json_t *job_row(const json_t *job, const json_t *known)
{
	json_each(row, known)
		if (row_is_of_job(row, job))
			return row;
	return NULL;
}

/* The first that fits. */
enum { FOREIGN, UNSEEN_INSIDE, UNSEEN_ELSEWHERE, UNSEEN_FOREIGN, UNSEEN, OLD, DEAF, NOT_SET,
       SWITCHED_OFF, NO_FILE, NOT_LOADED, WELL };

static const struct {
	enum doctor_state state;
	const char *text;
	const char *next;
} judgements[] = {
	[FOREIGN] = { DOCTOR_FAILED,
		      "has a plugin of another version, whose format the daemon does not read",
		      "restart the older one, the daemon or the job: ncclinsp ps shows which" },
	[UNSEEN_INSIDE] = { DOCTOR_WARNING,
			    "records into a directory of its container (NCCLINSP_SHM_DIR), where "
			    "the daemon does not look",
			    "ask the container's own daemon, if there is one. Else start the job "
			    "without that variable (the daemon looks into a container's "
			    NCI_SHM_DIR "), or mount the directory of ncclinspd's --shm-dir "
			    "there" },
	[UNSEEN_ELSEWHERE] = { DOCTOR_WARNING,
			       "records into another directory than the daemon reads",
			       "ask its own daemon, if there is one; else start the job with the "
			       "NCCLINSP_SHM_DIR that this command uses" },
	[UNSEEN_FOREIGN] = { DOCTOR_FAILED, "records into a directory that the daemon does not see",
			     "it is in a container: let the daemon look into it (ncclinspd(8), "
			     "CONTAINERS), mount the host's /dev/shm there (--ipc=host), or start "
			     "a daemon inside" },
	[UNSEEN] = { DOCTOR_FAILED, "has the plugin, but the daemon knows nothing of it",
		     "compare the job's NCCLINSP_SHM_DIR with ncclinspd's --shm-dir; with "
		     "NCCL_DEBUG=WARN the plugin says why it records nothing" },
	[OLD] = { DOCTOR_WARNING,
		  "is watched, but its plugin is older than the daemon: its level cannot be "
		  "changed",
		  "nothing is lost; the job gets the new plugin when it is started again" },
	[DEAF] = { DOCTOR_WARNING,
		   "is watched, but does not read the daemon's control file: ncclinsp level does "
		   "not reach it",
		   "start it with NCCLINSP_CONTROL set to that file; in a container, mount the "
		   "file's directory there" },
	[NOT_SET] = { DOCTOR_WARNING, "uses NCCL without the plugin",
		      "start it with NCCL_PROFILER_PLUGIN=insp, or the library's path; to count "
		      "its calls now, without the plugin: ncclinsp attach" },
	[SWITCHED_OFF] = { DOCTOR_WARNING,
			   "uses NCCL with another profiler plugin, or with plugins switched off",
			   "start it with NCCL_PROFILER_PLUGIN=insp, or the library's path" },
	[NO_FILE] = { DOCTOR_WARNING,
		      "has NCCL_PROFILER_PLUGIN set to a file that it does not see",
		      "give the library's path as that process sees it; in a container, install or "
		      "mount the library there" },
	[NOT_LOADED] = { DOCTOR_WARNING,
			 "has NCCL_PROFILER_PLUGIN set, but has not loaded the plugin",
			 "perhaps it has made no communicator yet; else NCCL_DEBUG=INFO shows what "
			 "NCCL tried to load" },
};

static int job_judge(const json_t *job, const json_t *answer)
{
	const char *plugin = member_text(job, "plugin", NULL);
	const json_t *row = job_row(job, json_object_get(answer, "processes"));

	if (member_true(job, "loaded")) {
		if (row && json_is_false(json_object_get(row, "steerable")))
			return OLD;
		if (row)
			return member_true(job, "foreign_control") ? DEAF : WELL;
		if (job_row(job, json_object_get(answer, "foreign")))
			return FOREIGN;
		if (member_true(job, "other_dir"))
			return member_true(job, "own_mounts") ? UNSEEN_INSIDE : UNSEEN_ELSEWHERE;
		return member_true(job, "foreign_shm") ? UNSEEN_FOREIGN : UNSEEN;
	}
	if (!plugin || !*plugin)
		return NOT_SET;
	if (member_true(job, "lacks_library"))
		return NO_FILE;
	return strstr(plugin, "insp") ? NOT_LOADED : SWITCHED_OFF;
}

json_t *doctor_judge(const json_t *jobs, const json_t *answer)
{
	json_t *rows = json_array();

	json_each(job, jobs) {
		int is = job_judge(job, answer);

		if (is == WELL)
			continue;
		json_array_append_new(
			rows, json_pack("{s:O s:O s:i s:s s:s s:b}", "pid",
					json_object_get(job, "pid"), "command",
					json_object_get(job, "command"), "state",
					judgements[is].state, "text", judgements[is].text, "next",
					judgements[is].next, "watched", is == OLD || is == DEAF));
	}
	return rows;
}

/* The other rows that say the same: "; the same: 12, 13 and 5 more". */
static void group_put(const json_t *rows, size_t first, char *out, size_t size)
{
	const json_t *text = json_object_get(json_array_get(rows, first), "text"), *row;
	size_t same = 0, len = 0;

	*out = '\0';
	for (size_t i = first + 1; (row = json_array_get(rows, i)); i++) {
		if (!json_equal(text, json_object_get(row, "text")))
			continue;
		if (same++ < NAMED)
			len += (size_t)snprintf(out + len, size - len, "%s%lld",
						same == 1 ? "; the same: " : ", ",
						(long long)json_integer_value(
							json_object_get(row, "pid")));
	}
	if (same > NAMED)
		snprintf(out + len, size - len, " and %zu more", same - NAMED);
}

/* A job has many processes: those of which the same is to be said share a row. */
static void group_say(struct doctor *doctor, const json_t *rows, size_t first)
{
	const json_t *row = json_array_get(rows, first), *text = json_object_get(row, "text");
	char others[NAMED * 24 + 48];

	for (size_t i = 0; i < first; i++)
		if (json_equal(text, json_object_get(json_array_get(rows, i), "text")))
			return;		/* was said with that one */
	group_put(rows, first, others, sizeof(others));
	doctor_say(doctor, "jobs",
		   (enum doctor_state)json_integer_value(json_object_get(row, "state")),
		   member_text(row, "next", NULL), "process %lld (%s) %s%s",
		   (long long)json_integer_value(json_object_get(row, "pid")),
		   member_text(row, "command", NULL), json_string_value(text), others);
}

static json_t *jobs_judge(struct doctor *doctor, const json_t *jobs)
{
	json_auto_t *answer = NULL;

	if (client_get(doctor->cli->client, "/v1/processes", &answer))
		return NULL;
	return doctor_judge(jobs, answer);
}

static bool rows_failed(const json_t *rows)
{
	json_each(row, rows)
		if (json_integer_value(json_object_get(row, "state")) == DOCTOR_FAILED)
			return true;
	return false;
}

/* Root without CAP_SYS_PTRACE, as in a container, sees of no stranger what it has loaded. */
static bool doctor_may_look_at_all(void)
{
	CLEANUP(cleanup_fclosep) FILE *in = proc_open("/proc", "1", "maps");

	return in;
}

static void doctor_say_none(struct doctor *doctor)
{
	doctor_say(doctor, "jobs", DOCTOR_OK, NULL,
		   geteuid() ? "no process of this user uses NCCL now (root sees all users')"
		   : doctor_may_look_at_all() ? "no process uses NCCL now"
		   : "it is unknown which processes use NCCL: to see them, this command needs "
		     "CAP_SYS_PTRACE");
}

static void doctor_say_jobs(struct doctor *doctor, const json_t *jobs, const json_t *rows)
{
	size_t all = json_array_size(jobs), unseen = 0;
	size_t i;

	json_each(row, rows)
		unseen += !member_true(row, "watched");
	if (!all)
		doctor_say_none(doctor);
	else if (all > unseen)
		doctor_say(doctor, "jobs", DOCTOR_OK, NULL,
			   "%zu of %zu processes that use NCCL are watched%s", all - unseen, all,
			   geteuid() ||
			   doctor_may_look_at_all() ? "" : "; there may be others, which only "
			   "CAP_SYS_PTRACE shows");
	for (i = 0; i < json_array_size(rows); i++)
		group_say(doctor, rows, i);
}

/* One reason stands for all: who wants each has `ncclinsp level`. */
static void doctor_say_kernels(struct doctor *doctor)
{
	const char *reason = NULL, *kernels;
	size_t live = 0, never = 0;
	json_auto_t *answer = NULL;

	if (client_get(doctor->cli->client,
		       "/v1/processes?fields=state,level_reason,steering", &answer))
		return;
	json_each(process, json_object_get(answer, "processes")) {
		kernels = json_string_value(report_get(process, "steering.kernels"));
		if (!member_is(process, "state", "live"))
			continue;
		live++;
		if (!kernels || strcmp(kernels, "never"))
			continue;
		never++;
		if (!reason)
			reason = member_text(process, "level_reason", NULL);
	}
	if (never)
		doctor_say(doctor, "kernels", DOCTOR_OK,
			   "to time more kernels in later jobs: kernels in ncclinspd.conf(5), or "
			   "NCCLINSP_KERNELS for one job",
			   "those of %zu of %zu processes are not timed now; %s (ncclinsp level)",
			   never, live, reason ?: "their level or setting says so");
	else if (live)
		doctor_say(doctor, "kernels", DOCTOR_OK, NULL,
			   "those of all %zu processes are timed, as their level and setting say "
			   "(ncclinsp level)", live);
}

void doctor_jobs(struct doctor *doctor)
{
	const struct timespec pause = { .tv_sec = 1 };
	const char *control;
	json_t *jobs, *rows;

	if (!doctor->status)
		return;
	control = json_string_value(report_get(doctor->status, "control.path"));
	if (json_is_string(report_get(doctor->status, "control.error")))
		control = NULL;		/* has been said; nobody can look at it */
	jobs = doctor_scan("/proc", doctor_shm_dir(), control);
	rows = jobs_judge(doctor, jobs);
	if (rows_failed(rows)) {	/* a process that has just begun may be unseen yet */
		nanosleep(&pause, NULL);
		json_decref(rows);
		rows = jobs_judge(doctor, jobs);
	}
	if (rows)
		doctor_say_jobs(doctor, jobs, rows);
	else
		doctor_say(doctor, "jobs", DOCTOR_FAILED, NULL, "%s",
			   client_error(doctor->cli->client));
	json_decref(jobs);
	json_decref(rows);
	doctor_say_kernels(doctor);
}
