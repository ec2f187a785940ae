/* SPDX-License-Identifier: Apache-2.0 */
/* Sums hide one slow transfer: the newest ones are kept one by one to be asked for. */
#include "ncclinspd/sums/transferlog.h"

#include <errno.h>
#include <stdlib.h>

#include "reader/time/timeline.h"

struct transferlog {
	struct transfer *at;
	uint32_t capacity;
	uint64_t added;
};

int transferlog_new(struct transferlog **logp, uint32_t capacity)
{
	struct transferlog *log = calloc(1, sizeof(*log));

	if (!log)
		return -ENOMEM;
	log->capacity = capacity ? capacity : TRANSFERLOG_DEFAULT;
	log->at = calloc(log->capacity, sizeof(*log->at));
	if (!log->at) {
		free(log);
		return -ENOMEM;
	}
	*logp = log;
	return 0;
}

void transferlog_free(struct transferlog *log)
{
	if (!log)
		return;
	free(log->at);
	free(log);
}

void transferlog_add(struct transferlog *log, const struct transfers *t, const struct links *links)
{
	struct transfer *to = &log->at[++log->added % log->capacity];

	links_last(links, &to->row);
	to->parent = t->parent ? t->parent->token : t->op->parent;
	to->start_ns = timeline_mono(&t->executor->clock, t->op->start);
	to->stop_ns = timeline_mono(&t->executor->clock, t->op->stop);
}

uint64_t transferlog_newest(const struct transferlog *log)
{
	return log->added;
}

const struct transfer *transferlog_at(const struct transferlog *log, uint64_t serial)
{
	if (!serial || serial > log->added || log->added - serial >= log->capacity)
		return NULL;
	return &log->at[serial % log->capacity];
}

uint64_t transferlog_since_ns(const struct transferlog *log)
{
	return log->added <= log->capacity ? 0 : log->at[(log->added + 1) % log->capacity].stop_ns;
}
