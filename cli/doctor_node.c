/* SPDX-License-Identifier: Apache-2.0 */
/* The node: where segments lie, the daemon, the clock, the file that steers jobs. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "nci/control.h"
#include "nci/segment.h"
#include "util/text.h"

#define CONTROL_HINT (PATH_MAX + 64)
#define LEAST_SPACE (UINT64_C(64) << 20)	/* bytes: what a process with many threads takes */

const char *doctor_shm_dir(void)
{
	const char *dir = getenv("NCCLINSP_SHM_DIR");

	return dir && *dir ? dir : NCI_SHM_DIR;
}

void doctor_segments(struct doctor *doctor)
{
	const char *dir = doctor_shm_dir();
	struct statvfs fs;
	struct stat st;
	char space[TEXT_MAX];
	uint64_t bytes;

	if (stat(dir, &st) || !S_ISDIR(st.st_mode) || statvfs(dir, &fs)) {
		doctor_say(doctor, "segments", DOCTOR_FAILED,
			   "mount a tmpfs there, or name another directory with NCCLINSP_SHM_DIR "
			   "and ncclinspd's --shm-dir", "%s: %s", dir,
			   errno ? strerror(errno) : "no directory");
		return;
	}
	if (access(dir, R_OK | W_OK | X_OK)) {
		doctor_say(doctor, "segments", DOCTOR_FAILED,
			   "make it writable for those who run jobs: chmod 1777",
			   "%s: %s, mode %o", dir, strerror(errno), st.st_mode & 07777);
		return;
	}
	bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	text_bytes(space, sizeof(space), bytes);
	doctor_say(doctor, "segments", bytes < LEAST_SPACE ? DOCTOR_WARNING : DOCTOR_OK,
		   bytes < LEAST_SPACE ? "make room, or give containers more: --shm-size=1g" : NULL,
		   "%s has %s free", dir, space);
}

void doctor_daemon(struct doctor *doctor)
{
	struct client *client = doctor->cli->client;

	if (client_get(client, "/v1/status", &doctor->status)) {
		doctor_say(doctor, "daemon", DOCTOR_FAILED, NULL, "%s", client_error(client));
		return;
	}
	doctor_say(doctor, "daemon", DOCTOR_OK, NULL, "answers on %s", client_socket(client));
}

static const char *text_at(const json_t *row, const char *path)
{
	return json_string_value(report_get(row, path));
}

void doctor_version(struct doctor *doctor)
{
	const char *version = text_at(doctor->status, "version");

	if (!doctor->status)
		return;
	if (version && !strcmp(version, NCCLINSP_VERSION))
		doctor_say(doctor, "version", DOCTOR_OK, NULL, "all are %s", version);
	else
		doctor_say(doctor, "version", DOCTOR_WARNING, "restart the daemon after an upgrade",
			   "the daemon is %s, this program " NCCLINSP_VERSION,
			   version ?: "unknown");
}

void doctor_loop(struct doctor *doctor)
{
	const char *loop = text_at(doctor->status, "loop");
	bool fast = loop && !strcmp(loop, "io_uring");

	if (doctor->status)
		doctor_say(doctor, "io_uring", fast ? DOCTOR_OK : DOCTOR_WARNING,
			   fast ? NULL : "see kernel.io_uring_disabled and the container's seccomp "
					 "profile; epoll works as well, for more CPU time",
			   "the daemon's loop is %s", loop ?: "unknown");
}

static bool read_line(const char *path, char *line, int size)
{
	FILE *in = fopen(path, "re");
	bool got = in && fgets(line, size, in);

	if (in)
		fclose(in);
	if (got)
		line[strcspn(line, "\n")] = '\0';
	return got;
}

/* A clock that is no register costs a system call in each of NCCL's callbacks. */
void doctor_clock(struct doctor *doctor)
{
	static const char path[] =
		"/sys/devices/system/clocksource/clocksource0/current_clocksource";
	static const char *const fast[] = { "tsc", "kvm-clock", "arch_sys_counter",
					    "hyperv_clocksource_tsc_page" };
	char source[64];

	if (!read_line(path, source, sizeof(source))) {
		doctor_say(doctor, "clock", DOCTOR_WARNING, NULL, "%s cannot be read", path);
		return;
	}
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

/* Jobs do not look for it where a user's own daemon has it.  NULL: they do. */
static const char *control_hint(const char *path, char hint[CONTROL_HINT])
{
	if (!strcmp(path, NCI_CONTROL_PATH))
		return NULL;
	snprintf(hint, CONTROL_HINT,
		 "so that levels reach a job, start it with NCCLINSP_CONTROL=%s", path);
	return hint;
}

void doctor_control(struct doctor *doctor)
{
	const char *path = text_at(doctor->status, "control.path");
	const char *error = text_at(doctor->status, "control.error");
	char hint[CONTROL_HINT];

	if (!path)
		return;
	if (error)
		doctor_say(doctor, "control", DOCTOR_WARNING,
			   "see ncclinspd's --control; until then levels cannot be changed",
			   "the daemon cannot write %s: %s", path, error);
	else if (access(path, R_OK))
		doctor_say(doctor, "control", DOCTOR_WARNING,
			   "jobs of this user cannot be told what to record; let them reach it",
			   "%s: %s", path, strerror(errno));
	else
		doctor_say(doctor, "control", DOCTOR_OK, control_hint(path, hint),
			   "%s is written and can be read", path);
}

void doctor_exporters(struct doctor *doctor)
{
	json_t *exporter;
	size_t i;

	json_array_foreach((json_t *)report_get(doctor->status, "exporters"), i, exporter) {
		const char *name = text_at(exporter, "name|kind");
		const char *error = text_at(exporter, "error");

		if (error)
			doctor_say(doctor, "exporter", DOCTOR_WARNING,
				   "see the daemon's configuration and log", "%s: %s", name ?: "-",
				   error);
		else
			doctor_say(doctor, "exporter", DOCTOR_OK, NULL, "%s, last success %s",
				   name ?: "-",
				   text_at(exporter, "last_success_at") ?: "never yet");
	}
}
