/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node finds those of its processes that died together; a job dies on many.  What each node
 * found has a member for each process, which is a row here.
 */
#include "cli/offline/deaths.h"

#include <stdlib.h>

#include "cli/base/member.h"
#include "cli/base/must.h"

/* A row, and the number of the first of its cause. */
struct death_row {
	struct death death;
	uint32_t cause;
};

struct death_rows {
	LIST(struct death_row);
};

static const json_t *finding_processes(const json_t *finding)
{
	return json_object_get(json_object_get(finding, "evidence"), "processes");
}

bool deaths_are_of(const json_t *finding)
{
	return !strcmp(member_text(finding, "kind", ""), "died") &&
	       json_is_true(json_object_get(finding, "active")) &&
	       json_array_size(finding_processes(finding));
}

/* The owner of that process, as the node's communicators have it. */
static uint64_t process_user(const json_t *node, const json_t *pid)
{
	json_t *comm, *rank;
	size_t i, k;

	json_array_foreach(json_object_get(node, "comms"), i, comm)
		json_array_foreach(json_object_get(comm, "local_ranks"), k, rank)
			if (json_equal(json_object_get(rank, "pid"), pid))
				return member_number(rank, "uid", UNKNOWN_U64);
	return UNKNOWN_U64;
}

static void add_finding(struct death_rows *rows, const char *host, const json_t *node,
			const json_t *finding)
{
	const struct shots_clock clock = shots_clock(node);
	json_t *process;
	size_t i;

	json_array_foreach(finding_processes(finding), i, process) {
		struct death_row *row = must(list_append(rows));

		*row = (struct death_row){ .death = {
			.ended_ns = shots_clock_at(&clock, member_number(process, "ended_mono_ns",
									 UNKNOWN_U64)),
			.user = process_user(node, json_object_get(process, "pid")),
			.who = shots_whom(process, host),
			.has_comm_id = member_text(finding, "comm_id", NULL),
			.comm_id = member_hex(finding, "comm_id"),
			.comm_name = member_text(finding, "comm_name", ""),
			.in_flight = (uint32_t)member_number(process, "in_flight", 0),
			.func = member_text(process, "func", NULL),
			.seq = member_number(process, "seq", UNKNOWN_U64),
			.op_comm_name = member_text(process, "comm_name", NULL),
		} };
	}
}

static int deaths_by_time(const void *a, const void *b)
{
	const struct death_row *x = a, *y = b;

	return (x->death.ended_ns > y->death.ended_ns) - (x->death.ended_ns < y->death.ended_ns);
}

static void deaths_join(struct death_rows *rows)
{
	list_sort(rows, deaths_by_time);
	for (uint32_t i = 0; i < rows->n; i++) {
		uint32_t k = i;

		while (k && !died_have_one_cause(&rows->at[k - 1].death, &rows->at[i].death))
			k--;
		rows->at[i].cause = k ? rows->at[k - 1].cause : i;
	}
}

static void deaths_tell(const struct death_rows *rows, deaths_found_fn *found, void *arg)
{
	const struct death **list = must(calloc(rows->n + 1, sizeof(*list)));

	for (uint32_t first = 0; first < rows->n; first++) {
		uint32_t n = 0;

		for (uint32_t i = first; i < rows->n; i++)
			if (rows->at[i].cause == first)
				list[n++] = &rows->at[i].death;
		if (n)
			found(list, n, arg);
	}
	free(list);
}

void deaths_find(const struct shots *s, deaths_found_fn *found, void *arg)
{
	struct death_rows rows = { .n = 0 };
	const char *host;
	json_t *node, *finding;
	size_t i;

	json_object_foreach(s->nodes, host, node)
		json_array_foreach(json_object_get(node, "findings"), i, finding)
			if (deaths_are_of(finding))
				add_finding(&rows, host, node, finding);
	deaths_join(&rows);
	deaths_tell(&rows, found, arg);
	list_deinit(&rows);
}
