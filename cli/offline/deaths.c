/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node finds those of its processes that died together; a job dies on many.  What each node
 * found has a member for each process, which is a row here.
 */
#include "cli/offline/deaths.h"

#include <signal.h>
#include <stdlib.h>

#include "cli/base/member.h"
#include "cli/base/must.h"

/* A row, the finding that has it, and the number of the first of its cause. */
struct death_row {
	struct death death;
	const json_t *finding;
	uint32_t cause;
};

struct death_rows {
	LIST(struct death_row);
	deaths_waiting_fn *waiting;
	void *arg;		/* the caller's */
};

static const json_t *finding_processes(const json_t *finding)
{
	return json_object_get(json_object_get(finding, "evidence"), "processes");
}

bool deaths_are_of(const json_t *finding)
{
	return member_is(finding, "kind", "died") && member_true(finding, "active") &&
	       json_array_size(finding_processes(finding));
}

bool deaths_have(const struct shots_node *node, int32_t pid)
{
	json_each(finding, node->findings)
		json_each(process, deaths_are_of(finding) ? finding_processes(finding) : NULL)
			if (member_i32(process, "pid") == pid)
				return true;
	return false;
}

/* The owner of that process, as the node's communicators have it. */
static uint64_t process_user(const struct shots_node *node, int32_t pid)
{
	list_each(comm, &node->rows.comms) {
		for (uint32_t k = 0; k < comm->local_ranks.n; k++)
			if (comm->local_ranks.at[k].pid == pid)
				return comm->local_ranks.at[k].uid;
	}
	return UNKNOWN_U64;
}

/* A node tells of a sender where its signal is the one that ended the process. */
static void death_read_sender(struct death *d, const json_t *process)
{
	const char *command = member_text(process, "sender_command", NULL);

	if (!command)
		return;
	d->sender_command = command;
	d->sender = member_i32(process, "sender_pid");
	d->sent = died_signal(d) == UNKNOWN_I32 ? SIGKILL : died_signal(d);
}

static void add_finding(struct death_rows *rows, const struct shots_node *node,
			const json_t *finding)
{
	json_each(process, finding_processes(finding)) {
		struct death_row *row = must(list_append(rows));
		struct whom who = shots_whom(process, node->host);

		*row = (struct death_row){ .finding = finding, .death = {
			.ended_ns = shots_clock_at(&node->clock,
						   member_number(process, "ended_mono_ns",
								 UNKNOWN_U64)),
			.user = process_user(node, who.pid), .who = who,
			.has_comm_id = member_text(finding, "comm_id", NULL),
			.comm_id = member_hex(finding, "comm_id"),
			.comm_name = member_text(finding, "comm_name", ""),
			.in_flight = (uint32_t)member_number(process, "in_flight", 0),
			.func = member_text(process, "func", NULL),
			.seq = member_number(process, "seq", UNKNOWN_U64),
			.op_comm_name = member_text(process, "comm_name", NULL),
			.waiting = rows->waiting(node, who.pid, rows->arg),
			.status = member_i32(process, "wait_status"),
			.xid.number = (int32_t)member_number(process, "xid", 0),
			.oom_kills = member_number(process, "oom_kills", UNKNOWN_U64),
			.memory_cgroup = member_text(process, "memory_cgroup", NULL),
			.memory_above =
				member_true(process, "memory_cgroup_above"),
			.memory_kills = member_number(process, "memory_cgroup_kills", 0),
			.memory_limit_bytes = member_number(process, "memory_limit_bytes",
							    UNKNOWN_U64),
			.for_memory = member_true(process, "killed_for_memory"),
			.cgroup = member_text(process, "killed_cgroup", NULL),
		} };
		death_read_sender(&row->death, process);
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

static void deaths_tell(const struct death_rows *rows, deaths_found_fn *found)
{
	const struct death **list = must(calloc(rows->n + 1, sizeof(*list)));

	for (uint32_t first = 0; first < rows->n; first++) {
		const json_t *own = rows->at[first].finding;
		uint32_t n = 0;

		for (uint32_t i = first; i < rows->n; i++) {
			if (rows->at[i].cause != first)
				continue;
			list[n++] = &rows->at[i].death;
			own = rows->at[i].finding == own ? own : NULL;
		}
		if (n)
			found(list, n, own, rows->arg);
	}
	free(list);
}

void deaths_find(const struct shots *s, deaths_waiting_fn *waiting, deaths_found_fn *found,
		 void *arg)
{
	struct death_rows rows = { .n = 0, .waiting = waiting, .arg = arg };

	for (uint32_t n = 0; n < s->nodes.n; n++)
		json_each(finding, s->nodes.at[n]->findings)
			if (deaths_are_of(finding))
				add_finding(&rows, s->nodes.at[n], finding);
	deaths_join(&rows);
	deaths_tell(&rows, found);
	list_deinit(&rows);
}
