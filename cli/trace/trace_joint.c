/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of one operation, side by side: while they wait, each for the last one, that is
 * a slice of its own within the operation's, and what follows another.  An arrow from the last
 * one's arrival leads to where that begins: Perfetto knows of no place within a slice, and
 * has its arrows point from the slice that begins first.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/base/member.h"
#include "cli/base/must.h"
#include "cli/trace/trace.h"
#include "util/list.h"

#define JOINTS	 512	/* operations of which not all ranks have come; the oldest goes */
#define RANKS	 16	/* ranks of a node that the daemon compares */
#define LEAST_NS 1000	/* shorter waiting is not worth a slice */

struct trace_part {
	struct trace_at at;
	int64_t rank;
	uint64_t start_ns, stop_ns;
	uint64_t late_ns;
};

struct trace_joint {
	uint64_t key;		/* 0: not in use */
	uint32_t n;
	struct trace_part part[RANKS];
};

struct trace_joints {
	struct trace_joint joint[JOINTS];
	uint32_t turn;
};

struct trace_joints *trace_joints_new(void)
{
	return must(calloc(1, sizeof(struct trace_joints)));
}

void trace_joints_free(struct trace_joints *joints)
{
	free(joints);
}

static uint64_t hash_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

/* Operation, communicator and who takes part: the same for all that belong together. */
static uint64_t joint_key(const json_t *row, const json_t *order)
{
	const char *func = member_text(row, "func", "");
	uint64_t hash = hash_mix(member_hex(row, "comm_id"), member_number(row, "nranks", 0));

	hash = hash_mix(hash, member_number(row, "seq", UINT64_MAX));
	while (*func)
		hash = hash_mix(hash, (uint8_t)*func++);
	for (size_t i = 0; i < json_array_size(order); i++)
		hash = hash_mix(hash, (uint64_t)json_integer_value(json_array_get(order, i)));
	return hash ? hash : 1;
}

static struct trace_joint *joint_find(struct trace_joints *joints, uint64_t key)
{
	struct trace_joint *j;

	for (uint32_t i = 0; i < JOINTS; i++)
		if (joints->joint[i].key == key)
			return &joints->joint[i];
	j = &joints->joint[joints->turn++ % JOINTS];
	*j = (struct trace_joint){ .key = key };
	return j;
}

static void joint_draw_wait(struct trace *t, const struct trace_part *p,
			    const struct trace_part *last)
{
	uint64_t wait_ns = last->late_ns > p->late_ns ? last->late_ns - p->late_ns : 0;
	uint64_t end_ns = p->start_ns + wait_ns;
	struct json *j;
	char name[64];

	if (wait_ns < LEAST_NS)
		return;
	if (end_ns > p->stop_ns)
		end_ns = p->stop_ns;
	snprintf(name, sizeof(name), "waiting for rank %" PRId64, last->rank);
	if (!p->at.async) {
		j = trace_slice(&t->w, p->at, name, "waiting", p->start_ns, end_ns);
		json_member_u64(j, "wait_ns", wait_ns);
		trace_slice_end(&t->w);
	}
	/* Clocks of GPUs differ: where the arrow would go back, it is upright. */
	if (end_ns < last->start_ns)
		end_ns = last->start_ns;
	if (end_ns >= p->stop_ns || p->at.async)
		return;
	trace_slice(&t->w, p->at, "transfer", "transfer", end_ns, p->stop_ns);
	trace_slice_end(&t->w);
	trace_arrow(&t->w, "arrived", last->at, last->start_ns, p->at, end_ns);
}

static void joint_draw(struct trace *t, const struct trace_joint *j, int64_t last_rank)
{
	const struct trace_part *last = NULL;

	for (uint32_t i = 0; i < j->n; i++)
		if (j->part[i].rank == last_rank)
			last = &j->part[i];
	for (uint32_t i = 0; last && i < j->n; i++)
		if (&j->part[i] != last)
			joint_draw_wait(t, &j->part[i], last);
}

void trace_joints_add(struct trace *t, const json_t *row, struct trace_at at,
		      uint64_t start_ns, uint64_t stop_ns)
{
	const json_t *order = json_object_get(row, "arrival_rank_order");
	size_t ranks = json_array_size(order);
	struct trace_joint *j;

	if (ranks < 2 || ranks > RANKS)
		return;
	j = joint_find(t->joints, joint_key(row, order));
	if (j->n < ranks)
		*array_must_add(j->part, &j->n) = (struct trace_part){
			.at = at, .start_ns = start_ns, .stop_ns = stop_ns,
			.rank = (int64_t)member_number(row, "rank", 0),
			.late_ns = member_number(row, "late_ns", 0),
		};
	if (j->n < ranks)
		return;
	joint_draw(t, j, json_integer_value(json_array_get(order, ranks - 1)));
	j->key = 0;
}
