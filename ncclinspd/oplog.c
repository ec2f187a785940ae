/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/oplog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct oplog {
	struct op *ring;
	uint32_t capacity;
	uint64_t newest;
};

int oplog_new(struct oplog **logp, uint32_t capacity)
{
	struct oplog *log = calloc(1, sizeof(*log));

	if (!log)
		return -ENOMEM;
	log->capacity = capacity ? capacity : OPLOG_DEFAULT;
	log->ring = calloc(log->capacity, sizeof(*log->ring));
	if (!log->ring) {
		free(log);
		return -ENOMEM;
	}
	*logp = log;
	return 0;
}

void oplog_free(struct oplog *log)
{
	if (!log)
		return;
	free(log->ring);
	free(log);
}

uint64_t oplog_add(struct oplog *log, const struct op *op)
{
	log->ring[++log->newest % log->capacity] = *op;
	return log->newest;
}

const struct op *oplog_at(const struct oplog *log, uint64_t serial)
{
	if (!serial || serial > log->newest || log->newest - serial >= log->capacity)
		return NULL;
	return &log->ring[serial % log->capacity];
}

static bool same_text(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static bool matches_comm(const struct oplog_filter *filter, const struct op *op)
{
	if (!filter->comm_name)
		return true;
	if (filter->has_comm_id && op->has_comm_id && op->comm_id == filter->comm_id)
		return true;
	return same_text(filter->comm_name, op->comm_name);
}

static bool matches(const struct oplog_filter *filter, const struct op *op)
{
	if (!filter->all_users && filter->uid != op->uid)
		return false;
	if (filter->pid && filter->pid != op->pid)
		return false;
	if (filter->rank != UNKNOWN_I32 && filter->rank != op->rank)
		return false;
	if (filter->func && !same_text(filter->func, op->func))
		return false;
	if (op->enqueued_ns < filter->since_mono_ns && op->done_ns < filter->since_mono_ns)
		return false;
	return matches_comm(filter, op);
}

uint32_t oplog_visit(const struct oplog *log, const struct oplog_filter *filter,
		     oplog_fn *visit, void *arg)
{
	const struct op *op;
	uint32_t visited = 0;

	for (uint64_t serial = log->newest; (op = oplog_at(log, serial)); serial--) {
		if (!matches(filter, op))
			continue;
		visited++;
		if (!visit(op, serial, arg) || visited == filter->limit)
			break;
	}
	return visited;
}
