/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_BASE_JOB_H
#define READER_BASE_JOB_H

/*
 * Texts in which a process's launcher described the job: variables of its environment, as
 * it gave them, valid for as long as the process is known.  NULL: it did not say.
 */

#include "reader/base/model.h"

const char *job_scheduler(const struct process *p);	/* "slurm" and so on: which one */
const char *job_id(const struct process *p);		/* NULL: of this process itself */
const char *job_name(const struct process *p);	/* the same for the next such job, else NULL */
const char *job_rank(const struct process *p);
const char *job_local_rank(const struct process *p);	/* the same */
const char *job_world_size(const struct process *p);
const char *job_pod(const struct process *p);	/* name of the Kubernetes pod */
const char *job_namespace(const struct process *p);	/* namespace of that pod */
const char *job_ras_address(const struct process *p);	/* NCCL's RAS; NULL: as usual */

/* The "NAME=VALUE" at *at, which begins at 0 and moves on; NULL: there are no more. */
const char *job_next_variable(const struct process *p, uint32_t *at);

/* The number that such a text is; UNKNOWN_I32: none. */
int32_t job_number(const char *text);

/* The largest open communicator of a process, which is the job's own; NULL: it has none. */
const struct comm *job_largest_comm(const struct process *p);

/* Find the largest communicator of a process, and its rank in the job: whenever it has new ones. */
void job_find_world(struct process *p);

/* The rank of a process: what the launcher says, else as job_world_rank() has it. */
int32_t job_process_rank(const struct process *p);

/*
 * A communicator's rank as the whole job counts: what the launcher says of a process with
 * one GPU, else the rank on the same GPU in the process's largest communicator.
 * UNKNOWN_I32: neither is told.  NULL: of the process, if it has one GPU.
 */
int32_t job_world_rank(const struct process *p, const struct comm *c);

/* The same of another rank of `c`: told where `c` is the largest one and counts alike. */
int32_t job_world_rank_of(const struct process *p, const struct comm *c, int32_t rank);

#endif
