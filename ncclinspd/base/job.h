/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_BASE_JOB_H
#define NCCLINSPD_BASE_JOB_H

/*
 * What a process's launcher said about the job: texts of its environment, as it gave
 * them, for as long as the process is known.  NULL: it did not say.
 */

#include "ncclinspd/base/model.h"

const char *job_scheduler(const struct process *p);	/* "slurm" and so on: which one */
const char *job_id(const struct process *p);
const char *job_rank(const struct process *p);
const char *job_local_rank(const struct process *p);
const char *job_world_size(const struct process *p);
const char *job_pod(const struct process *p);	/* of Kubernetes, by name */
const char *job_namespace(const struct process *p);	/* that one's */

#endif
