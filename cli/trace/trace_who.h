/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRACE_TRACE_WHO_H
#define CLI_TRACE_TRACE_WHO_H

/*
 * The processes that own slices: a process of the trace for each GPU that a process of the job
 * drives, which is called after the launcher's rank, or its rank in the largest communicator.
 */

#include <jansson.h>

#include "cli/trace/trace_write.h"

#define TRACE_ANY INT64_MIN	/* not known */

/* One rank of one communicator; lives as long as the trace_who. */
struct trace_member {
	uint32_t source;	/* number of the process of the job, from 0 */
	uint32_t pid;		/* Chrome's process */
	uint32_t index;		/* number of the member, from 0 */
	int64_t rank, nranks;	/* or TRACE_ANY */
	char comm[48];		/* name, else id; "": neither is known */
};

struct trace_who;

/* Exits when memory runs out. */
struct trace_who *trace_who_new(void);
void trace_who_free(struct trace_who *who);

/*
 * The process of the job: found by its pid and, where both are known, its instance (0:
 * not known).
 */
uint32_t trace_who_source(struct trace_who *who, int64_t pid, uint64_t instance);

/* Takes its name from a row of /v1/processes. */
void trace_who_describe(struct trace_who *who, uint32_t source, const json_t *process);

/*
 * A member by what is known of it: `comm_id` and `comm_name`, `rank`, `nranks`, `gpu_uuid`,
 * `pci_bus_id` and `gpu_index` of the object, which may all be missing.  NULL: there are
 * too many.
 */
const struct trace_member *trace_who_learn(struct trace_who *who, uint32_t source,
					   const json_t *row);

/* The process in which slices that concern no communicator are drawn. */
uint32_t trace_who_pid(struct trace_who *who, uint32_t source);

/* The process in which that rank of that communicator is drawn; 0: none. */
uint32_t trace_who_of_rank(const struct trace_who *who, const json_t *row, int64_t rank);

/* All that answers of /v1/processes and /v1/comms tell; either may be NULL. */
void trace_who_read(struct trace_who *who, const json_t *processes, const json_t *comms);

/* Write the processes' names and order; how many there are. */
size_t trace_who_tell(const struct trace_who *who, struct trace_writer *w);

#endif
