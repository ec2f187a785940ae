/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One struct period for each process that posts, and its longest pause: whether a job hangs
 * is judged by the pace that it has had.
 */
#include "ncclinspd/findings/pace.h"

#include "ncclinspd/findings/period.h"
#include "reader/base/pool.h"

struct pace {
	uint64_t process_id;
	uint64_t longest_ns;
	bool watched;
	struct period period;
};

static struct pace *pace_find(const struct paces *paces, uint64_t process_id)
{
	struct pace *pace = paces->at[process_id % PACES];

	return pace && pace->process_id == process_id ? pace : NULL;
}

/* Ids are given in order: the process that has the place is long gone. */
static struct pace *pace_make(struct paces *paces, uint64_t process_id)
{
	struct pace **pace = &paces->at[process_id % PACES];

	pages_give(*pace, sizeof(**pace));
	*pace = pages_take(sizeof(**pace));
	if (*pace)
		(*pace)->process_id = process_id;
	return *pace;
}

/*
 * Sends and receives of a group are posted within a microsecond and end in any order,
 * and experts get more or less in each iteration: what counts is how many there are.
 */
static uint64_t op_token(const struct op *op, uint64_t comm)
{
	if (op->is_p2p)
		return index_mix(comm, 1);
	return index_mix(index_mix(comm, (uintptr_t)op->func), op->bytes);
}

void paces_add(struct paces *paces, const struct op *op)
{
	struct pace *pace = pace_find(paces, op->process_id) ?: pace_make(paces, op->process_id);
	uint64_t comm = op->has_comm_id ? op->comm_id : op->comm_index, last_ns;

	if (!pace || !op->enqueued_ns)
		return;
	last_ns = pace->period.last_ns;
	if (op->enqueued_ns >= last_ns)
		pace->watched = op->expects_kernel || op->expects_proxy;
	if (pace->period.count && op->enqueued_ns > last_ns + pace->longest_ns)
		pace->longest_ns = op->enqueued_ns - last_ns;
	period_add(&pace->period, op_token(op, comm), op->enqueued_ns);
}

void paces_forget(struct paces *paces, uint64_t process_id)
{
	if (!pace_find(paces, process_id))
		return;
	pages_give(paces->at[process_id % PACES], sizeof(struct pace));
	paces->at[process_id % PACES] = NULL;
}

uint64_t paces_period(struct paces *paces, uint64_t process_id)
{
	struct pace *pace = pace_find(paces, process_id);

	return pace && period_find(&pace->period) ? pace->period.median_ns : 0;
}

uint64_t paces_period_since(struct paces *paces, uint64_t process_id, uint64_t from_ns,
			    uint32_t *ops)
{
	struct pace *pace = pace_find(paces, process_id);

	if (!pace || !period_find(&pace->period))
		return 0;
	*ops = pace->period.lag;
	return period_since(&pace->period, from_ns);
}

bool paces_watched(const struct paces *paces, uint64_t process_id)
{
	const struct pace *pace = pace_find(paces, process_id);

	return pace && pace->watched;
}

uint64_t paces_longest_pause(const struct paces *paces, uint64_t process_id)
{
	const struct pace *pace = pace_find(paces, process_id);

	return pace ? pace->longest_ns : 0;
}

void paces_deinit(struct paces *paces)
{
	for (size_t i = 0; i < PACES; i++)
		pages_give(paces->at[i], sizeof(struct pace));
}
