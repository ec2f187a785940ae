/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launcher describes its job in environment variables, those that the plugin copies
 * (nci/variables.h).  The first one that says something wins.  The launcher that reserved
 * the nodes names the job; the innermost launcher counts ranks, because under torchrun in a
 * Slurm job the Slurm variables count nodes.
 */
#include "reader/base/job.h"

#include <stdlib.h>
#include <string.h>

#include "util/text.h"

static const char *const scheduler_names[][2] = {
	{ "SLURM_JOB_ID", "slurm" },
	{ "PBS_JOBID", "pbs" },
	{ "LSB_JOBID", "lsf" },
	{ "FLUX_JOB_ID", "flux" },
	{ "RAY_JOB_ID", "ray" },
	{ "POD_NAME", "kubernetes" },
	{ "JOB_COMPLETION_INDEX", "kubernetes" },
	{ "TORCHELASTIC_RUN_ID", "torchrun" },
	{ "OMPI_COMM_WORLD_RANK", "mpi" },
	{ "PMIX_RANK", "mpi" },
	{ "PMI_RANK", "mpi" },
	{ "MV2_COMM_WORLD_RANK", "mpi" },
};

static const char *const job_ids[] = {
	"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "RAY_JOB_ID", "JOB_NAME",
	"TORCHELASTIC_RUN_ID", "POD_NAME", "PMIX_NAMESPACE", "NCCLINSP_RUN", NULL,
};

static const char *const ranks[] = {
	"RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
	"PALS_RANKID", "JSM_NAMESPACE_RANK", "FLUX_TASK_RANK", "SLURM_PROCID",
	"JOB_COMPLETION_INDEX", NULL,
};

static const char *const local_ranks[] = {
	"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
	"PMI_LOCAL_RANK", "PALS_LOCAL_RANKID", "JSM_NAMESPACE_LOCAL_RANK", "FLUX_TASK_LOCAL_ID",
	"SLURM_LOCALID", NULL,
};

static const char *const world_sizes[] = {
	"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE",
	"JSM_NAMESPACE_SIZE", "FLUX_JOB_SIZE", "SLURM_NTASKS", NULL,
};

const char *job_next_variable(const struct process *p, uint32_t *at)
{
	uint32_t end = p->env_bytes < sizeof(p->env) ? p->env_bytes : sizeof(p->env);
	const char *pair = p->env + *at;
	size_t length = *at < end ? strnlen(pair, end - *at) : 0;

	if (*at >= end || length == end - *at)
		return NULL;	/* not terminated */
	*at += (uint32_t)length + 1;
	return pair;
}

static const char *env_get(const struct process *p, const char *name)
{
	size_t bytes = strlen(name);
	const char *pair;
	uint32_t at = 0;

	if (!p)
		return getenv(name);
	while ((pair = job_next_variable(p, &at)))
		if (!strncmp(pair, name, bytes) && pair[bytes] == '=')
			return pair + bytes + 1;
	return NULL;
}

/* torchrun calls every job "none" that nobody gave an id: it would join strangers. */
static bool value_says_something(const char *value)
{
	return value && *value && strcmp(value, "none");
}

static const char *env_first(const struct process *p, const char *const *names)
{
	for (; *names; names++) {
		const char *value = env_get(p, *names);

		if (value_says_something(value))
			return value;
	}
	return NULL;
}

const char *job_scheduler(const struct process *p)
{
	for (size_t i = 0; i < sizeof(scheduler_names) / sizeof(scheduler_names[0]); i++)
		if (env_get(p, scheduler_names[i][0]))
			return scheduler_names[i][1];
	return NULL;
}

const char *job_id(const struct process *p)
{
	return env_first(p, job_ids);
}

const char *job_name(const struct process *p)
{
	static const char *const names[] = { "SLURM_JOB_NAME", "JOB_NAME", NULL };

	return env_first(p, names) ?: *p->command ? p->command : NULL;
}

const char *job_rank(const struct process *p)
{
	return env_first(p, ranks);
}

const char *job_local_rank(const struct process *p)
{
	return env_first(p, local_ranks);
}

const char *job_world_size(const struct process *p)
{
	return env_first(p, world_sizes);
}

/* Kubernetes calls the host as the pod, where nobody has said anything else. */
const char *job_pod(const struct process *p)
{
	static const char *const names[] = { "POD_NAME", "HOSTNAME", NULL };
	static const char *const told[] = { "POD_NAME", NULL };

	return env_first(p, *p->pod_uid ? names : told);
}

const char *job_namespace(const struct process *p)
{
	static const char *const names[] = { "POD_NAMESPACE", NULL };

	return env_first(p, names);
}

const char *job_ras_address(const struct process *p)
{
	return env_get(p, "NCCL_RAS_ADDR");
}

int32_t job_number(const char *text)
{
	int64_t value;

	return text && !text_parse_integer(text, 0, INT32_MAX, &value) ? (int32_t)value
								       : UNKNOWN_I32;
}

static bool comms_share_gpu(const struct comm *a, const struct comm *b)
{
	return a->has_gpu && b->has_gpu && !memcmp(a->gpu_uuid, b->gpu_uuid, sizeof(a->gpu_uuid));
}

/* The largest communicator that is told of: open, on the GPU of `like`, unless false and NULL. */
static const struct comm *comms_find_largest(const struct process *p, bool open,
					     const struct comm *like)
{
	const struct comm *largest = NULL;

	for (const struct comm *c = p->comms; c < p->comms + p->ncomms; c++)
		if (c->ready && c->has_id && c->nranks > 0 && (!open || !c->finalize_ticks) &&
		    (!largest || c->nranks > largest->nranks) &&
		    (!like || c == like || comms_share_gpu(c, like)))
			largest = c;
	return largest;
}

const struct comm *job_largest_comm(const struct process *p)
{
	return comms_find_largest(p, true, NULL);
}

/* Two ranks of one process, on a GPU each. */
static bool comms_are_of_two(const struct comm *a, const struct comm *b)
{
	if (!a->ready || !b->ready)
		return false;
	return (a->has_gpu && b->has_gpu && !comms_share_gpu(a, b)) ||
	       (a->has_id && b->has_id && a->id == b->id && a->rank != b->rank);
}

void job_find_world(struct process *p)
{
	const struct comm *world = comms_find_largest(p, false, NULL);
	int32_t rank = job_number(job_rank(p));

	p->world = world ? (uint32_t)(world - p->comms) + 1 : 0;
	for (uint32_t i = 0; i < p->ncomms; i++)
		p->several_gpus |= comms_are_of_two(&p->comms[i], world ?: p->comms);
	if (rank == UNKNOWN_I32 && world)
		rank = world->rank;
	p->job_rank = rank == UNKNOWN_I32 || p->several_gpus ? 0 : (uint32_t)rank + 1;
}

int32_t job_world_rank(const struct process *p, const struct comm *c)
{
	const struct comm *world = p->several_gpus && c ? comms_find_largest(p, false, c) : NULL;

	if (world && p->world && world->nranks == p->comms[p->world - 1].nranks)
		return world->rank;
	return p->job_rank ? (int32_t)(p->job_rank - 1) : UNKNOWN_I32;
}

int32_t job_process_rank(const struct process *p)
{
	int32_t rank = job_number(job_rank(p));

	return rank == UNKNOWN_I32 ? job_world_rank(p, NULL) : rank;
}

int32_t job_world_rank_of(const struct process *p, const struct comm *c, int32_t rank)
{
	if (rank == c->rank)
		return job_world_rank(p, c);
	if (!p->world || p->comms[p->world - 1].nranks > c->nranks)
		return UNKNOWN_I32;
	return job_world_rank(p, c) == c->rank ? rank : UNKNOWN_I32;
}
