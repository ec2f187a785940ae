/* SPDX-License-Identifier: Apache-2.0 */
/* The node: where segments lie, the daemon, the clock, the file that steers jobs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cli/base/member.h"
#include "cli/doctor/doctor.h"
#include "nci/control.h"
#include "nci/segment.h"
#include "reader/base/proc.h"
#include "util/procstat.h"
#include "util/text.h"

#define CONTROL_HINT (PATH_MAX + 64)
#define LEAST_SPACE (UINT64_C(64) << 20)	/* bytes: what a process with many threads takes */
#define NO_SPACE    (UINT64_C(1) << 20)		/* bytes: less than one with two threads takes */

const char *doctor_shm_dir(void)
{
	const char *dir = getenv("NCCLINSP_SHM_DIR");

	return dir && *dir ? dir : NCI_SHM_DIR;
}

/* Says what is in the way of a process that makes its file in `dir`; false: nothing. */
static bool say_unusable(struct doctor *doctor, const char *dir, const struct stat *st)
{
	bool is_dir = S_ISDIR(st->st_mode);
	struct statfs fs;

	if (is_dir && !statfs(dir, &fs) && fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC) {
		doctor_say(doctor, "segments", DOCTOR_FAILED, "mount a tmpfs there",
			   "%s is not in memory (tmpfs), and the plugin does not record to a disk",
			   dir);
		return true;
	}
	if (is_dir && !access(dir, R_OK | W_OK | X_OK))
		return false;
	doctor_say(doctor, "segments", DOCTOR_FAILED,
		   is_dir ? "make it writable for those who run jobs: chmod 1777"
			  : "name a directory with NCCLINSP_SHM_DIR and ncclinspd's --shm-dir",
		   "%s: %s, mode %o", dir, is_dir ? strerror(errno) : "it is not a directory",
		   st->st_mode & 07777);
	return true;
}

/* A process that finds no room records nothing; with little, less than its level says. */
static void say_space(struct doctor *doctor, const char *dir, const struct statvfs *fs)
{
	uint64_t bytes = (uint64_t)fs->f_bavail * fs->f_frsize;
	enum doctor_state state = DOCTOR_OK;
	const char *next = NULL;
	char space[TEXT_MAX];

	if (fs->f_blocks && bytes < LEAST_SPACE) {
		state = bytes < NO_SPACE ? DOCTOR_FAILED : DOCTOR_WARNING;
		next = "make room, or enlarge it: mount -o remount,size=1g, and for a container "
		       "--shm-size=1g";
	} else if (fs->f_files && !fs->f_favail) {
		state = DOCTOR_FAILED;
		next = "remove files there that nobody needs";
	}
	text_bytes(space, sizeof(space), bytes);
	if (!fs->f_blocks)
		snprintf(space, sizeof(space), "no limit");
	doctor_say(doctor, "segments", state, next, "%s has %s free%s", dir, space,
		   bytes >= NO_SPACE && state == DOCTOR_FAILED ? ", but no inode" : "");
}

void doctor_segments(struct doctor *doctor)
{
	const char *dir = doctor_shm_dir();
	struct statvfs fs;
	struct stat st;

	if (stat(dir, &st) || statvfs(dir, &fs)) {
		doctor_say(doctor, "segments", DOCTOR_FAILED,
			   "mount a tmpfs there, or name another directory with NCCLINSP_SHM_DIR "
			   "and ncclinspd's --shm-dir", "%s: %s", dir, strerror(errno));
		return;
	}
	if (say_unusable(doctor, dir, &st))
		return;
	say_space(doctor, dir, &fs);
	if (!geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)))
		doctor_say(doctor, "segments", DOCTOR_WARNING,
			   "if other users run jobs here: chmod 1777",
			   "%s has mode %o: only its owner's jobs can write there", dir,
			   st.st_mode & 07777);
}

void doctor_daemon(struct doctor *doctor)
{
	struct client *client = doctor->cli->client;
	char text[DOCTOR_PATH], *next;

	if (!client_get(client, "/v1/status", &doctor->status)) {
		doctor_say(doctor, "daemon", DOCTOR_OK, NULL, "answers on %s",
			   client_socket(client));
		return;
	}
	snprintf(text, sizeof(text), "%s", client_error(client));	/* subject: why; next */
	next = strstr(text, "; ");
	if (next)
		*next = '\0';
	doctor_say(doctor, "daemon", DOCTOR_FAILED, next ? next + 2 : NULL, "%s", text);
}

static const char *row_text(const json_t *row, const char *path)
{
	return json_string_value(report_get(row, path));
}

void doctor_version(struct doctor *doctor)
{
	const char *version = row_text(doctor->status, "version");

	if (!doctor->status)
		return;
	if (version && !strcmp(version, NCCLINSP_VERSION))
		doctor_say(doctor, "version", DOCTOR_OK, NULL, "the daemon and this program are %s",
			   version);
	else
		doctor_say(doctor, "version", DOCTOR_WARNING, "restart the daemon after an upgrade",
			   "the daemon is %s, this program " NCCLINSP_VERSION,
			   version ?: "unknown");
}

/* A clock that is no register costs a system call in each of NCCL's callbacks. */
void doctor_clock(struct doctor *doctor)
{
	static const char path[] =
		"/sys/devices/system/clocksource/clocksource0/current_clocksource";
	static const char *const fast[] = { "tsc", "kvm-clock", "arch_sys_counter",
					    "hyperv_clocksource_tsc_page" };
	char source[64];

	if (!procstat_read(AT_FDCWD, source, sizeof(source), "%s", path)) {
		doctor_say(doctor, "clock", DOCTOR_WARNING, NULL, "%s cannot be read", path);
		return;
	}
	source[strcspn(source, "\n")] = '\0';
	for (size_t i = 0; i < sizeof(fast) / sizeof(fast[0]); i++) {
		if (!strcmp(source, fast[i])) {
			doctor_say(doctor, "clock", DOCTOR_OK, NULL, "clocksource %s", source);
			return;
		}
	}
	doctor_say(doctor, "clock", DOCTOR_WARNING,
		   "see why the kernel gave up the processor's counter: dmesg | "
		   "grep -i clocksource",
		   "clocksource %s: reading the time is slow", source);
}

/* Jobs of this shell do not look where a user's own daemon has it.  NULL: they do. */
static const char *control_hint(const char *path, char hint[CONTROL_HINT])
{
	const char *own = getenv("NCCLINSP_CONTROL");

	if (!strcmp(path, own && *own ? own : NCI_CONTROL_PATH))
		return NULL;
	snprintf(hint, CONTROL_HINT,
		 "so that ncclinsp level reaches a job, start it with NCCLINSP_CONTROL=%s", path);
	return hint;
}

void doctor_control(struct doctor *doctor)
{
	const char *path = row_text(doctor->status, "control.path");
	const char *error = row_text(doctor->status, "control.error");
	char hint[CONTROL_HINT];

	if (!path)
		return;
	if (error)
		doctor_say(doctor, "control", DOCTOR_WARNING,
			   "see ncclinspd's --control; until then levels cannot be changed",
			   "the daemon cannot write %s: %s", path, error);
	else if (access(path, R_OK))
		doctor_say(doctor, "control", DOCTOR_WARNING,
			   "let jobs of this user read it; until then ncclinsp level does not "
			   "reach them", "%s: %s", path, strerror(errno));
	else
		doctor_say(doctor, "control", DOCTOR_OK, control_hint(path, hint),
			   "%s is written and can be read", path);
}

/* The ways out of the node: the unit each is counted in, and how long one may go without. */
static const struct exporter_kind {
	const char *name;
	const char *done;
	uint64_t stale_ns;	/* none for so long: it hangs; 0: that cannot be told */
	const char *next;
} exporter_kinds[] = {
	{ "socket", "answers", 0, NULL },
	{ "tcp", "answers", 0,
	  "see ncclinspd's --metrics-listen: an address of this node, a port that is free" },
	{ "textfile", "files", UINT64_C(60000000000),
	  "see ncclinspd's --metrics-textfile: a directory that exists, has room, and may be "
	  "written by the daemon's user" },
	{ "snapshots", "files", 0,
	  "see ncclinspd's --state-dir: it must have room, and the daemon's user may write it" },
	{ "otlp", "records", 0,
	  "see ncclinspd's --otlp-endpoint and the daemon's log: the collector must run there and "
	  "accept the data" },
	{ "raise", "requests", 0,
	  "see raise-hosts in ncclinspd.conf(5): the daemon's user must be able to run ncclinsp "
	  "and ssh" },
	{ "on-finding", "findings sent", 0,
	  "see on-finding in ncclinspd.conf(5): a program must listen there, as "
	  "ncclinsp-finding.socket does" },
	{ NULL, "done", 0, "see the daemon's configuration and log" },
};

static const struct exporter_kind *exporter_kind(const char *name)
{
	const struct exporter_kind *kind = exporter_kinds;

	while (kind->name && strcmp(kind->name, name))
		kind++;
	return kind;
}

static void say_exporter(struct doctor *doctor, const json_t *exporter)
{
	const char *name = row_text(exporter, "kind") ?: "-", *at = row_text(exporter, "at") ?: "-";
	const struct exporter_kind *kind = exporter_kind(name);
	const json_t *last = report_get(exporter, "last_mono_ns");
	const char *error = row_text(exporter, "error");
	json_int_t failed = json_integer_value(report_get(exporter, "failed"));
	uint64_t now_ns = cli_now_ns(), then_ns = (uint64_t)json_integer_value(last);
	uint64_t age_ns = now_ns > then_ns ? now_ns - then_ns : 0;
	char age[TEXT_MAX], failures[48] = "";
	bool stale = json_is_integer(last) && kind->stale_ns && age_ns > kind->stale_ns;

	if (error) {
		doctor_say(doctor, "exporter", DOCTOR_WARNING, kind->next, "%s at %s: %s", name,
			   at, error);
		return;
	}
	if (!json_is_integer(last)) {
		doctor_say(doctor, "exporter", DOCTOR_OK, NULL, "%s at %s: no %s yet", name, at,
			   kind->done);
		return;
	}
	text_duration(age, sizeof(age), age_ns);
	if (failed)
		snprintf(failures, sizeof(failures), ", failed %lld", (long long)failed);
	doctor_say(doctor, "exporter", stale ? DOCTOR_WARNING : DOCTOR_OK,
		   stale ? "does its file system hang? see the daemon's log" : NULL,
		   "%s at %s: %s %lld%s, the last %s ago", name, at, kind->done,
		   (long long)json_integer_value(report_get(exporter, "done")), failures, age);
}

/* Most nodes have some that are nobody's concern: that is only wrong where a job is among them. */
void doctor_containers(struct doctor *doctor)
{
	const json_t *found = report_get(doctor->status, "containers.found");
	json_int_t unseen = json_integer_value(report_get(doctor->status, "containers.unseen"));

	if (!json_is_integer(found))
		return;
	if (unseen)
		doctor_say(doctor, "containers", DOCTOR_OK,
			   "if jobs are among them, see CONTAINERS in ncclinspd(8)",
			   "%lld looked into; the daemon may not look at %lld processes of others",
			   (long long)json_integer_value(found), (long long)unseen);
	else
		doctor_say(doctor, "containers", DOCTOR_OK, NULL,
			   "%lld with their own shared memory, all looked into",
			   (long long)json_integer_value(found));
}

void doctor_exporters(struct doctor *doctor)
{
	json_each(exporter, report_get(doctor->status, "exporters"))
		say_exporter(doctor, exporter);
}

/* A source that is missing matters where the node has what it tells of. */
static void say_source(struct doctor *doctor, const json_t *source)
{
	bool wanted = member_is(source, "source", "gpu") && !access(PROC_GPUS, F_OK);
	bool absent = member_is(source, "state", "absent");
	const char *state = member_text(source, "state", "-");
	const char *why = member_text(source, "why", "");

	doctor_say(doctor, "machine", absent && wanted ? DOCTOR_WARNING : DOCTOR_OK,
		   absent && wanted ?
		   "until then no finding names a throttled GPU (GPU SENSORS in ncclinspd(8))" :
		   NULL, "%s %s%s%s", member_text(source, "source", "-"), state, *why ? ": " : "",
		   why);
}

void doctor_machine(struct doctor *doctor)
{
	json_each(source, report_get(doctor->status, "machine"))
		say_source(doctor, source);
}
