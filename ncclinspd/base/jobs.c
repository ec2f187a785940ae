/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launcher need not say which processes belong together; their communicators do.
 * Processes of one user that share a communicator are joined into one set.
 */
#include "ncclinspd/base/jobs.h"

#include "reader/base/pool.h"
#include "reader/base/sets.h"

static uint32_t process_entries(const struct process *p)
{
	return p->ncomms < JOBS_ENTRIES ? p->ncomms : JOBS_ENTRIES;
}

/* Processes that were there before and have one of this one's communicators. */
static void job_join_process(const struct process *p, uint32_t i, struct index *seen, uint32_t *job)
{
	uint32_t looked = 0;

	for (uint32_t c = 0; c < process_entries(p) && looked < JOBS_COMMS; c++) {
		const struct comm *comm = &p->comms[c];
		uint64_t key;
		uint32_t other;

		if (!comm->ready || !comm->has_id || comm->finalize_ticks)
			continue;
		looked++;
		key = index_mix(index_mix(seen->seed, comm->id), p->uid);
		other = index_find(seen, key);
		if (other == POOL_NONE)
			index_set(seen, key, i);
		else
			sets_unite(job, i, other);
	}
}

int jobs_group(struct process *const *list, size_t n, uint64_t seed, uint32_t *job)
{
	struct index seen = { 0 };
	int r = index_init(&seen, (uint32_t)n * JOBS_COMMS, seed);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n; i++) {
		job[i] = i;
		job_join_process(list[i], i, &seen, job);
	}
	for (uint32_t i = 0; i < n; i++)
		job[i] = sets_root(job, i);
	index_deinit(&seen);
	return 0;
}

const struct comm *jobs_comm(const struct process *p, uint64_t comm_id, int32_t rank)
{
	for (uint32_t c = 0; c < process_entries(p); c++) {
		const struct comm *comm = &p->comms[c];

		if (comm->ready && comm->has_id && comm->id == comm_id &&
		    (rank == UNKNOWN_I32 || comm->rank == rank))
			return comm;
	}
	return NULL;
}

bool jobs_has_open(const struct process *p, uint64_t comm_id)
{
	for (uint32_t i = 0; i < p->ncomms; i++)
		if (p->comms[i].ready && p->comms[i].has_id && p->comms[i].id == comm_id &&
		    !p->comms[i].finalize_ticks)
			return true;
	return false;
}

struct process *jobs_process(struct process *const *list, size_t n, uint64_t id)
{
	for (size_t i = 0; i < n; i++)
		if (list[i]->id == id)
			return list[i];
	return NULL;
}
