/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that died: remembered as they end, since judge/ joins those that die one after
 * another.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "judge/died.h"
#include "ncclinspd/findings/around.h"
#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/findings/ending.h"
#include "ncclinspd/findings/probelink.h"
#include "ncclinspd/findings/resources.h"
#include "reader/base/job.h"
#include "reader/join/reconstruct.h"
#include "reader/read/life.h"
#include "rows/rows.h"
#include "util/list.h"

#define SECOND_NS	UINT64_C(1000000000)
#define WAITED_NS	(60 * SECOND_NS)	/* time for a parent to wait for its child */
#define OOM_APART_NS	(10 * SECOND_NS)	/* between counts of those killed for memory */
#define XID_BEFORE_NS	(60 * SECOND_NS)	/* an error of its GPU so long before ended it */
#define XID_AFTER_NS	(5 * SECOND_NS)		/* an Xid may be reported so long after a death */
#define OOM_COUNTS	4	/* a large process may take half a minute to die of it */

/* One process, and the texts of its row. */
struct died_process {
	uint64_t key;		/* key of its finding; 0: unused */
	uint64_t process_id;
	struct death row;
	bool has_pidfd;		/* the kind of its end is still to be read, from `pidfd` */
	int pidfd;
	char waiting[128];
	char comm_name[97];
	char command[64];
	char pci_bus_id[32];
	char *memory_cgroup;	/* owned; NULL: none */
	struct probelink_end end;	/* the end that the probe has seen; zero: none */
};

struct died {
	struct died_process processes[FINDING_RANKS];
	uint32_t count;		/* deaths since the start; the ring holds the last */
	uint64_t keys;
	uint64_t oom[OOM_COUNTS];	/* ending_oom_kills(), a ring */
	uint32_t ooms;			/* counts since the start */
	uint64_t oom_ns;		/* when the newest was made */
};

/* The deaths of one finding, in the order in which they were seen. */
struct died_list {
	const struct death *at[FINDING_RANKS];
	uint32_t n;
};

/* ---- what is remembered ----------------------------------------------------- */

struct died_oldest {
	struct death *row;
	uint64_t enqueued_ns;
};

static bool died_take_oldest(const struct op *op, void *arg)
{
	struct died_oldest *oldest = arg;
	struct death *row = oldest->row;

	if (row->in_flight++ && op->enqueued_ns >= oldest->enqueued_ns)
		return true;
	oldest->enqueued_ns = op->enqueued_ns;
	row->func = op->func;
	row->seq = op->seq;
	row->op_comm_name = op->comm_name;
	return true;
}

/* The finding that this death belongs to: that of another with the same cause. */
static uint64_t died_key(struct died *died, const struct death *row)
{
	for (uint32_t i = 0; i < ARRAY_LEN(died->processes); i++)
		if (died->processes[i].key && died_have_one_cause(&died->processes[i].row, row))
			return died->processes[i].key;
	return ++died->keys;
}

static void oom_count(struct died *died, uint64_t now_ns)
{
	died->oom[died->ooms++ % OOM_COUNTS] = ending_oom_kills(LIFE_PROC);
	died->oom_ns = now_ns;
}

/* Counts the kills of the node, and of each process's control groups. */
static void oom_count_all(struct diagnose *dg, struct died *died, uint64_t now_ns)
{
	const struct diagnose_source *source = diagnose_source(dg);
	uint64_t before = died->oom[(died->ooms - 1) % OOM_COUNTS], now;
	struct process *const *list;
	size_t n;

	if (now_ns < died->oom_ns + OOM_APART_NS)
		return;
	oom_count(died, now_ns);
	now = died->oom[(died->ooms - 1) % OOM_COUNTS];
	n = source->processes(source->arg, &list);
	for (size_t i = 0; i < n; i++)
		resources_count_kills(list[i]->resources, now == UNKNOWN_U64 || now != before);
}

/* The processes that were killed for memory since the oldest count. */
static uint64_t oom_kills_of_late(const struct died *died)
{
	uint32_t oldest = died->ooms > OOM_COUNTS ? died->ooms - OOM_COUNTS : 0;
	uint64_t before = died->oom[oldest % OOM_COUNTS], now = ending_oom_kills(LIFE_PROC);

	return before != UNKNOWN_U64 && now != UNKNOWN_U64 ? now - before : UNKNOWN_U64;
}

static void process_close_ending(struct died_process *d)
{
	if (d->has_pidfd)
		close(d->pidfd);
	d->has_pidfd = false;
}

static void process_drop(struct died_process *d)
{
	process_close_ending(d);
	free(d->memory_cgroup);
	d->memory_cgroup = NULL;
}

/* True: the kernel tells more than it did. */
static bool process_read_ending(struct died_process *d)
{
	if (!d->has_pidfd || !ending_read(d->pidfd, &d->row.status))
		return false;
	process_close_ending(d);
	return true;
}

/* True: the probe tells more than it did. */
static bool process_ask_probe(const struct diagnose *dg, struct died_process *d)
{
	const struct probelink_end *end = probelink_end(diagnose_source(dg)->probe, d->process_id);

	if (!end || (end->at_ns == d->end.at_ns && end->for_memory == d->end.for_memory))
		return false;
	d->end = *end;
	d->row.sent = end->signal;
	d->row.sender = end->sender;
	d->row.sender_command = d->end.command;
	d->row.for_memory = end->for_memory;
	d->row.cgroup = d->end.cgroup;
	return true;
}

/* Its groups go when it has gone. */
static void process_keep_kills(struct died_process *d, const struct process *p)
{
	struct resources_kills kills = resources_kills(p->resources);

	d->memory_cgroup = kills.cgroup ? strdup(kills.cgroup) : NULL;
	d->row.memory_cgroup = d->memory_cgroup;
	d->row.memory_above = kills.above;
	d->row.memory_kills = kills.kills;
	d->row.memory_limit_bytes = kills.limit_bytes;
}

static void process_keep_ending(struct died_process *d, const struct process *p)
{
	d->pidfd = p->has_pidfd ? fcntl(p->pidfd, F_DUPFD_CLOEXEC, 0) : -1;
	d->has_pidfd = d->pidfd >= 0;
	process_read_ending(d);
}

/* True: an error of its GPU is known that was not. */
static bool process_find_xid(const struct diagnose *dg, struct died_process *d, uint64_t now_ns)
{
	uint64_t ended_ns = d->row.ended_ns;

	return d->key && !d->row.xid.number && now_ns < ended_ns + XID_AFTER_NS &&
	       around_find_xid(dg, d->pci_bus_id,
			       ended_ns > XID_BEFORE_NS ? ended_ns - XID_BEFORE_NS : 0,
			       d->row.who.pid, &d->row.xid);
}

static struct died_process *died_remember(struct diagnose *dg, struct died *died,
					  struct process *p)
{
	const struct comm *comm = job_largest_comm(p);
	struct death row = { .ended_ns = p->ended_ns, .user = p->uid,
			     .who = diagnose_whom(dg, p, comm), .status = UNKNOWN_I32,
			     .oom_kills = oom_kills_of_late(died) };
	struct died_oldest oldest = { .row = &row };
	struct died_process *d;

	if (comm) {
		row.has_comm_id = true;
		row.comm_id = comm->id;
	}
	reconstruct_open(diagnose_source(dg)->reconstruct, p, died_take_oldest, &oldest);
	d = &died->processes[died->count % ARRAY_LEN(died->processes)];
	process_drop(d);
	*d = (struct died_process){ .key = died_key(died, &row), .process_id = p->id, .row = row };
	died->count++;
	memcpy(d->command, p->command, sizeof(d->command));
	if (comm)
		memcpy(d->comm_name, comm->name, sizeof(d->comm_name));
	d->row.who.command = d->command;
	if (row.who.pci_bus_id)
		d->row.who.pci_bus_id = strcpy(d->pci_bus_id, row.who.pci_bus_id);
	d->row.comm_name = d->comm_name;
	process_keep_ending(d, p);
	process_keep_kills(d, p);
	process_find_xid(dg, d, p->ended_ns);
	process_ask_probe(dg, d);
	return d;
}

static struct died_list died_collect(const struct died *died, uint64_t key)
{
	uint32_t room = ARRAY_LEN(died->processes);
	uint32_t first = died->count > room ? died->count - room : 0;
	struct died_list list = { .n = 0 };

	for (uint32_t i = first; i < died->count; i++)
		if (died->processes[i % room].key == key)
			*array_must_add(list.at, &list.n) = &died->processes[i % room].row;
	return list;
}

/* ---- the finding ---------------------------------------------------------- */

static field_put_fn died_put_processes;

#include "schema/died_evidence.h"

static void died_put_processes(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct died_list *list = row;

	json_begin(j, '[');
	for (uint32_t i = 0; i < list->n; i++)
		rows_put_object(w, j, dead_process_fields, list->at[i]);
	json_end(j, ']');
}

static void died_report(struct diagnose *dg, const struct died *died,
			const struct died_process *d, uint64_t now_ns)
{
	const struct died_list list = died_collect(died, d->key);
	const char *first = (const char *)list.at[0] - offsetof(struct died_process, row);
	struct finding f = {
		.kind = FINDING_DIED,
		.severity = died_is_critical(list.at, list.n) ? FINDING_CRITICAL : FINDING_WARNING,
		.uid = (uid_t)d->row.user,
		.process_id = ((const struct died_process *)first)->process_id,
		.has_comm_id = d->row.has_comm_id,
		.comm_id = d->row.comm_id,
		.peer = UNKNOWN_I32,
		.since_ns = d->row.ended_ns,
	};

	memcpy(f.comm_name, d->comm_name, sizeof(f.comm_name));
	for (uint32_t i = 0; i < list.n; i++)
		if (list.at[i]->who.rank != UNKNOWN_I32)
			finding_add_rank(&f, list.at[i]->who.rank);
	if (died_waiting(list.at, list.n))
		f.verdict = words_verdict(VERDICT_RANK_DEAD)->name;
	died_say(list.at, list.n, f.text, sizeof(f.text));
	finding_set_evidence(&f, died_evidence_fields, &list);
	diagnose_report(dg, &finding_died, d->key, &f, now_ns);
}

bool died_tell_waiting(struct diagnose *dg, uint64_t process_id, const char *waiting,
		       uint64_t now_ns)
{
	struct died *died = diagnose_state(dg, &finding_died);

	for (uint32_t i = 0; i < ARRAY_LEN(died->processes); i++) {
		struct died_process *d = &died->processes[i];

		if (!d->key || d->process_id != process_id)
			continue;
		snprintf(d->waiting, sizeof(d->waiting), "%s", waiting);
		d->row.waiting = d->waiting;
		died_report(dg, died, d, now_ns);
		return true;
	}
	return false;
}

static void on_ended(struct diagnose *dg, void *state, struct process *p, uint64_t now_ns)
{
	if (p->state == PROCESS_DIED)
		died_report(dg, state, died_remember(dg, state, p), now_ns);
}

/* The kind of their end is known when their parents have waited for them. */
static void died_look(struct diagnose *dg, void *state, uint64_t now_ns)
{
	struct died *died = state;

	oom_count_all(dg, died, now_ns);
	for (uint32_t i = 0; i < ARRAY_LEN(died->processes); i++) {
		struct died_process *d = &died->processes[i];
		bool more = d->key && process_ask_probe(dg, d);

		more = process_find_xid(dg, d, now_ns) || more;
		if (process_read_ending(d) || more)
			died_report(dg, died, d, now_ns);
		else if (d->has_pidfd && now_ns > d->row.ended_ns + WAITED_NS)
			process_close_ending(d);
	}
}

static int died_init(struct diagnose *dg, void *state)
{
	oom_count(state, OOM_APART_NS);
	return 0;
}

static void died_deinit(void *state)
{
	struct died *died = state;

	for (uint32_t i = 0; i < ARRAY_LEN(died->processes); i++)
		process_drop(&died->processes[i]);
}

/* A death is news for as long as somebody may look for its cause. */
const struct detector finding_died = {
	.name = "died",
	.state_bytes = sizeof(struct died),
	.hold_ns = 600 * SECOND_NS,
	.init = died_init,
	.deinit = died_deinit,
	.ended = on_ended,
	.look = died_look,
};
