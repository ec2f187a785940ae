/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_BASE_JOB_H
#define READER_BASE_JOB_H

/*
 * Texts in which a process's launcher described the job: variables of its environment, as
 * it gave them, valid for as long as the process is known.  NULL: it did not say.
 */

#include "reader/base/model.h"

const char *job_scheduler(const struct process *p);	/* "slurm" and so on: which one */
const char *job_id(const struct process *p);
const char *job_rank(const struct process *p);
const char *job_local_rank(const struct process *p);
const char *job_world_size(const struct process *p);
const char *job_pod(const struct process *p);	/* name of the Kubernetes pod */
const char *job_namespace(const struct process *p);	/* namespace of that pod */

/* The number that such a text is; UNKNOWN_I32: none. */
int32_t job_number(const char *text);

#endif
