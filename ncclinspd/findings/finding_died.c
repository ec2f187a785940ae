/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that ended without a clean exit.  One often takes the others with it,
 * so those of one communicator that die one after another are one finding, the
 * first of them first.
 */
#include <inttypes.h>
#include <string.h>

#include "ncclinspd/findings/diagnose.h"
#include "reader/join/reconstruct.h"
#include "util/json.h"
#include "util/list.h"
#include "util/phrase.h"

#define SECOND_NS	UINT64_C(1000000000)
#define TOGETHER_NS	(30 * SECOND_NS)	/* deaths that have one cause */
#define NAMED		8			/* processes that the text names */

/* One process, and what it was in. */
struct death {
	uint64_t key;		/* key of its finding; 0: unused */
	uint64_t ended_ns;
	pid_t pid;
	uid_t uid;
	int32_t rank;
	bool has_comm_id;	/* the largest communicator of its process has one */
	uint64_t comm_id;
	char comm_name[97];
	char command[64];
	uint32_t in_flight;	/* operations */
	bool has_op;
	struct op op;		/* the oldest of these */
};

struct died {
	struct death deaths[FINDING_RANKS];
	uint32_t count;		/* deaths since the start; the ring holds the last */
	uint64_t keys;
};

static bool died_take_oldest(const struct op *op, void *arg)
{
	struct death *death = arg;

	death->in_flight++;
	if (death->has_op && op->enqueued_ns >= death->op.enqueued_ns)
		return true;
	death->has_op = true;
	death->op = *op;
	return true;
}

/* The finding that this death belongs to: one of the same user's communicator, lately. */
static uint64_t death_key(struct died *died, const struct process *p, const struct comm *comm,
			  uint64_t now_ns)
{
	for (uint32_t i = 0; comm && i < ARRAY_LEN(died->deaths); i++) {
		const struct death *d = &died->deaths[i];

		if (d->key && d->has_comm_id && d->comm_id == comm->id && d->uid == p->uid &&
		    now_ns - d->ended_ns < TOGETHER_NS)
			return d->key;
	}
	return ++died->keys;
}

/* ---- words ---------------------------------------------------------------- */

static void death_add_process(struct phrase *text, const struct death *d)
{
	if (d->rank != UNKNOWN_I32)
		phrase_add(text, "rank %" PRId32 " ", d->rank);
	phrase_add(text, "(pid %d, %s)", (int)d->pid, d->command);
}

static void add_operation(struct phrase *text, const struct death *d)
{
	if (!d->in_flight) {
		phrase_add(text, " with no operation in flight");
		return;
	}
	phrase_add(text, " in the middle of %s", d->op.func ? d->op.func : "an operation");
	if (d->op.seq != UNKNOWN_U64)
		phrase_add(text, " #%" PRIu64, d->op.seq);
	if (d->op.comm_name)
		phrase_add(text, " on %s", d->op.comm_name);
}

static void put_death(struct json *j, const struct death *d)
{
	json_begin(j, '{');
	json_key(j, "pid");
	json_put_i64(j, d->pid);
	json_key(j, "rank");
	if (d->rank == UNKNOWN_I32)
		json_put_null(j);
	else
		json_put_i64(j, d->rank);
	json_key(j, "command");
	json_put_string(j, d->command);
	json_key(j, "ended_mono_ns");
	json_put_u64(j, d->ended_ns);
	json_key(j, "in_flight");
	json_put_u64(j, d->in_flight);
	json_key(j, "func");
	json_put_string(j, d->in_flight ? d->op.func : NULL);
	json_key(j, "seq");
	if (d->in_flight && d->op.seq != UNKNOWN_U64)
		json_put_u64(j, d->op.seq);
	else
		json_put_null(j);
	json_end(j, '}');
}

/* ---- the finding ---------------------------------------------------------- */

static void add_death(struct finding *f, struct phrase *text, struct json *j,
		      const struct death *d)
{
	uint32_t n = f->nranks;

	finding_add_rank(f, d->rank);
	if (d->in_flight)
		f->severity = FINDING_CRITICAL;
	put_death(j, d);
	if (n >= NAMED)
		return;
	phrase_add(text, n == 0 ? "" : n == 1 ? "; after it " : ", ");
	death_add_process(text, d);
	if (!n) {
		phrase_add(text, " died");
		add_operation(text, d);
	}
}

/* Deaths of a key in the order in which they were seen. */
static void death_collect(const struct died *died, uint64_t key, struct finding *f,
			  struct phrase *text, struct json *j)
{
	uint32_t room = ARRAY_LEN(died->deaths);
	uint32_t first = died->count > room ? died->count - room : 0;

	for (uint32_t i = first; i < died->count; i++)
		if (died->deaths[i % room].key == key)
			add_death(f, text, j, &died->deaths[i % room]);
	if (f->nranks > NAMED)
		phrase_add(text, " and %u more", f->nranks - NAMED);
}

static void drop_unknown_ranks(struct finding *f)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->nranks; i++)
		if (f->ranks[i] != UNKNOWN_I32)
			f->ranks[n++] = f->ranks[i];
	f->nranks = n;
}

static void death_report(struct diagnose *dg, struct died *died, const struct death *d,
			 const struct process *p, uint64_t now_ns)
{
	struct finding f = { .kind = FINDING_DIED, .severity = FINDING_WARNING, .uid = p->uid,
			     .peer = UNKNOWN_I32, .since_ns = d->ended_ns };
	struct phrase text;
	struct json j;

	f.has_comm_id = d->has_comm_id;
	f.comm_id = d->comm_id;
	memcpy(f.comm_name, d->comm_name, sizeof(f.comm_name));
	phrase_start(&text, f.text, sizeof(f.text));
	json_init(&j, sizeof(f.evidence));
	json_begin(&j, '{');
	json_key(&j, "processes");
	json_begin(&j, '[');
	death_collect(died, d->key, &f, &text, &j);
	json_end(&j, ']');
	json_end(&j, '}');
	drop_unknown_ranks(&f);
	phrase_add(&text, ". It did not end by itself: a signal, the kernel's out-of-memory "
		   "killer or a crash. See its own log, and dmesg for \"Out of memory\" and Xid.");
	finding_set_evidence(&f, &j);
	json_deinit(&j);
	diagnose_report(dg, &finding_died, d->key, &f, now_ns);
}

static struct death *death_remember(struct died *died, const struct process *p, uint64_t now_ns)
{
	const struct comm *comm = diagnose_largest_comm(p);
	uint64_t key = death_key(died, p, comm, now_ns);
	struct death *d = &died->deaths[died->count++ % ARRAY_LEN(died->deaths)];

	*d = (struct death){ .key = key, .ended_ns = p->ended_ns, .pid = p->pid, .uid = p->uid,
			     .rank = UNKNOWN_I32 };
	memcpy(d->command, p->command, sizeof(d->command));
	if (!comm)
		return d;
	d->rank = comm->rank;
	d->has_comm_id = true;
	d->comm_id = comm->id;
	memcpy(d->comm_name, comm->name, sizeof(d->comm_name));
	return d;
}

static void on_ended(struct diagnose *dg, void *state, struct process *p, uint64_t now_ns)
{
	struct died *died = state;
	struct death *d;

	if (p->state != PROCESS_DIED)
		return;
	d = death_remember(died, p, now_ns);
	reconstruct_open(diagnose_source(dg)->reconstruct, p, died_take_oldest, d);
	death_report(dg, died, d, p, now_ns);
}

/* A death is news for as long as somebody may look for its cause. */
const struct detector finding_died = {
	.name = "died",
	.state_bytes = sizeof(struct died),
	.hold_ns = 600 * SECOND_NS,
	.ended = on_ended,
};
