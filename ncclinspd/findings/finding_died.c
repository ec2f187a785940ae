/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that died: remembered as they end, since judge/ joins those that die one after
 * another.
 */
#include <stdio.h>
#include <string.h>

#include "judge/died.h"
#include "ncclinspd/findings/diagnose.h"
#include "reader/base/job.h"
#include "reader/join/reconstruct.h"
#include "rows/rows.h"
#include "util/list.h"

#define SECOND_NS	UINT64_C(1000000000)

/* One process, and the texts of its row. */
struct died_process {
	uint64_t key;		/* key of its finding; 0: unused */
	uint64_t process_id;
	struct death row;
	char waiting[128];
	char comm_name[97];
	char command[64];
	char pci_bus_id[32];
};

struct died {
	struct died_process processes[FINDING_RANKS];
	uint32_t count;		/* deaths since the start; the ring holds the last */
	uint64_t keys;
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

static struct died_process *died_remember(struct diagnose *dg, struct died *died,
					  struct process *p)
{
	const struct comm *comm = job_largest_comm(p);
	struct death row = { .ended_ns = p->ended_ns, .user = p->uid,
			     .who = diagnose_whom(dg, p, comm) };
	struct died_oldest oldest = { .row = &row };
	struct died_process *d;

	if (comm) {
		row.has_comm_id = true;
		row.comm_id = comm->id;
	}
	reconstruct_open(diagnose_source(dg)->reconstruct, p, died_take_oldest, &oldest);
	d = &died->processes[died->count % ARRAY_LEN(died->processes)];
	*d = (struct died_process){ .key = died_key(died, &row), .process_id = p->id, .row = row };
	died->count++;
	memcpy(d->command, p->command, sizeof(d->command));
	if (comm)
		memcpy(d->comm_name, comm->name, sizeof(d->comm_name));
	d->row.who.command = d->command;
	if (row.who.pci_bus_id)
		d->row.who.pci_bus_id = strcpy(d->pci_bus_id, row.who.pci_bus_id);
	d->row.comm_name = d->comm_name;
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

/* A death is news for as long as somebody may look for its cause. */
const struct detector finding_died = {
	.name = "died",
	.state_bytes = sizeof(struct died),
	.hold_ns = 600 * SECOND_NS,
	.ended = on_ended,
};
