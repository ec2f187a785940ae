/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_DOCTOR_DOCTOR_H
#define CLI_DOCTOR_DOCTOR_H

/*
 * The looks of `ncclinsp doctor`, in the order in which the data flows.  Each look adds a row:
 * check, state (ok, warning, failed), text, next.
 */

#include "cli/common/cli.h"

#define DOCTOR_PATH 4096

struct doctor {
	struct cli *cli;
	json_t *rows;
	json_t *status;		/* /v1/status; NULL: no answer */
	char library[DOCTOR_PATH];	/* the one that loads; "": none */
};

enum doctor_state { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_FAILED };

/* `next` NULL: nothing has to be done. */
void doctor_say(struct doctor *doctor, const char *check, enum doctor_state state,
		const char *next, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* The directory of segments, as the plugin and the daemon have it. */
const char *doctor_shm_dir(void);

/* doctor_node.c: this node's files and settings; the daemon's own view of itself. */
void doctor_segments(struct doctor *doctor);
void doctor_daemon(struct doctor *doctor);
void doctor_version(struct doctor *doctor);
void doctor_clock(struct doctor *doctor);
void doctor_containers(struct doctor *doctor);
void doctor_control(struct doctor *doctor);
void doctor_exporters(struct doctor *doctor);
void doctor_machine(struct doctor *doctor);

/* doctor_jobs.c: who uses NCCL here, and with the plugin or without. */
void doctor_jobs(struct doctor *doctor);

/* doctor_place.c: may they run near their GPUs? */
void doctor_place(struct doctor *doctor);

/*
 * `jobs` is that of doctor_scan(), `processes` and `ranks` are arrays of /v1/processes and
 * /v1/ranks; `proc` and `sys` are where procfs and sysfs are.
 */
void doctor_judge_places(struct doctor *doctor, const json_t *jobs, const json_t *processes,
			 const json_t *ranks, const char *proc, const char *sys);

/*
 * The processes below `proc` that can be read and use NCCL or the plugin: a new array of
 * {pid, pids (in all namespaces), command, plugin (the variable's value, or null), loaded,
 * lacks_library (that value is the path of no file), other_dir (it was told of another
 * directory than `shm_dir`), foreign_shm (what is there by that name is not what is here),
 * foreign_control (where it looks for its level is not the file `control`; NULL: none)}.
 */
json_t *doctor_scan(const char *proc, const char *shm_dir, const char *control);

/* Our number of the process that the daemon has in that row of /v1/processes; 0: none of these. */
long long doctor_own_pid(const json_t *jobs, const json_t *row);

/*
 * Lists which of these are not as they should be, one row each: {pid, command, state, text,
 * next, watched (all the same)}; a new array.  `answer` is that of /v1/processes.
 */
json_t *doctor_judge(const json_t *jobs, const json_t *answer);

/* doctor_flow.c: the library, and one operation all the way. */
void doctor_library(struct doctor *doctor);
void doctor_flow(struct doctor *doctor);

#endif
