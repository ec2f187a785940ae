/* SPDX-License-Identifier: Apache-2.0 */
/* An operation that hangs, in words: one row for each verdict says what it is. */
#include "judge/hang.h"

#include <inttypes.h>
#include <string.h>

#include "judge/whom.h"
#include "util/phrase.h"

#define OTHERS	4096	/* ranks in a list */

/* ---- parts of a sentence ------------------------------------------------------ */

/* The group with the cause, and its ranks. */
struct scene {
	const struct hang_case *c;
	const struct hang *hang;
	const struct hang_group *group;
	const struct hang_comm *comm;
	const char *here;		/* the nodes that are seen */
	const struct hang_rank *first;	/* the first rank that the verdict names, or NULL */
	struct phrase text;
};

static void hang_add_comm(struct phrase *text, const struct hang_rank *r)
{
	if (r->name[0])
		phrase_add(text, "%s", r->name);
	else if (r->has_id)
		phrase_add(text, "communicator 0x%016" PRIx64, r->id);
	else if (r->nranks != UNKNOWN_I32)
		phrase_add(text, "a communicator of %" PRId32, r->nranks);
	else
		phrase_add(text, "a communicator");
}

/* "AllReduce #10 on dp" */
static void add_group_op(struct phrase *text, const struct hang *h, const struct hang_group *g)
{
	phrase_add(text, "%s", g->op.func ? g->op.func : "an operation");
	if (g->op.seq != UNKNOWN_U64)
		phrase_add(text, " #%" PRIu64, g->op.seq);
	phrase_add(text, " on ");
	hang_add_comm(text, &h->ranks.at[g->first]);
}

static void add_op(struct scene *s)
{
	add_group_op(&s->text, s->hang, s->group);
}

static void add_numbers(struct phrase *text, const int32_t *ranks, uint32_t n)
{
	phrase_add(text, n == 1 ? "rank " : "ranks ");
	phrase_add_list(text, ranks, n);
}

/* "rank 3 (global rank 7, pid 4711)", "ranks 1,3 (pids 4711,4713)", of a group. */
static void add_ranks(struct scene *s, uint32_t group, const int32_t *ranks, uint32_t n)
{
	struct whom whom[HANG_RANKS];
	uint32_t nwhom = 0;

	add_numbers(&s->text, ranks, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct hang_rank *r = hang_group_rank(s->hang, group, ranks[i]);

		const struct afar_rank *far = afar_rank_of(s->c->afar, ranks[i]);

		if (r)
			*array_must_add(whom, &nwhom) = (struct whom){
				.rank = r->rank, .world_rank = r->world_rank, .pid = r->pid,
				.host = r->host, .pci_bus_id = r->pci_bus_id,
				.gpu_index = r->gpu_index };
		else if (far && hang_is_heard(s->c))
			*array_must_add(whom, &nwhom) = (struct whom){
				.rank = far->rank, .world_rank = UNKNOWN_I32, .host = far->host,
				.pid = far->pid == UNKNOWN_I32 ? 0 : far->pid,
				.gpu_index = UNKNOWN_I32 };
	}
	if (n > 1)
		whom_add_several(&s->text, whom, nwhom);
	else if (nwhom)
		whom_add(&s->text, &whom[0]);
}

static void add_culprits(struct scene *s)
{
	add_ranks(s, s->c->verdict.comm, s->c->verdict.ranks, s->c->verdict.nranks);
}

static bool is_culprit(const struct hang_verdict *r, int32_t rank)
{
	for (uint32_t i = 0; i < r->nranks; i++)
		if (r->ranks[i] == rank)
			return true;
	return false;
}

/* Ranks that are in the operation and are not named by the verdict. */
static uint32_t collect_others(const struct scene *s, int32_t ranks[OTHERS])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->comm->n && n < OTHERS; i++) {
		const struct hang_standing *r = &s->comm->ranks[i];

		if (r->posted && !r->done && !is_culprit(&s->c->verdict, r->rank))
			ranks[n++] = r->rank;
	}
	return n;
}

/* "ranks 0-2" */
static void add_others(struct scene *s)
{
	int32_t ranks[OTHERS];
	uint32_t n = collect_others(s, ranks);

	if (n)
		add_numbers(&s->text, ranks, n);
	else
		phrase_add(&s->text, "the other ranks");
}

/* "; ranks 0-2 wait there": in the operation that was named before */
static void add_waiting(struct scene *s)
{
	int32_t ranks[OTHERS];
	uint32_t n = collect_others(s, ranks);

	if (!n)
		return;
	phrase_add(&s->text, "; ");
	add_numbers(&s->text, ranks, n);
	phrase_add(&s->text, n == 1 ? " waits there" : " wait there");
}

/* The verb that goes with the ranks that the verdict names. */
static const char *verb(const struct scene *s, const char *one, const char *several)
{
	return s->c->verdict.nranks == 1 ? one : several;
}

static void add_transfer(struct scene *s, const struct hang_row *row)
{
	if (!row)
		return;
	phrase_add(&s->text, " (%s", row->state ? row->state : row->type);
	if (row->channel != UNKNOWN_I32)
		phrase_add(&s->text, ", channel %" PRId32, row->channel);
	if (row->peer != UNKNOWN_I32)
		phrase_add(&s->text, ", peer %" PRId32, row->peer);
	if (row->step != UNKNOWN_I32)
		phrase_add(&s->text, ", step %" PRId32, row->step);
	if (row->step != UNKNOWN_I32 && row->steps != UNKNOWN_I32)
		phrase_add(&s->text, " of %" PRId32, row->steps);
	phrase_add(&s->text, ")");
}

/* ---- one for each verdict ------------------------------------------------------- */

static void say_dead(struct scene *s)
{
	add_culprits(s);
	phrase_add(&s->text, " died and is missing in ");
	add_op(s);
	add_waiting(s);
}

/* Some may have been silent for less than the minute after which RAS says so. */
static bool all_are_dead(const struct afar *a)
{
	for (uint32_t i = 0; i < a->n; i++)
		if (!a->ranks[i].dead)
			return false;
	return true;
}

static void say_no_answer(struct scene *s)
{
	add_culprits(s);
	phrase_add(&s->text, " %s not answer NCCL's RAS", verb(s, "does", "do"));
	if (all_are_dead(s->c->afar))
		phrase_add(&s->text, ", which considers %s dead,", verb(s, "it", "them"));
	phrase_add(&s->text, " and %s missing in ", verb(s, "is", "are"));
	add_op(s);
	add_waiting(s);
}

/* The calls that RAS counts of the first of them. */
static void add_heard_calls(struct scene *s)
{
	const struct afar *a = s->c->afar;

	if (a->ranks[0].missing)
		phrase_add(&s->text, "; NCCL's RAS says that %s left the communicator",
			   verb(s, "it has", "they have"));
	else
		phrase_add(&s->text, "; NCCL's RAS counts %" PRIu64 " such call%s on %s, and %"
			   PRIu64 " on this node", a->ranks[0].calls,
			   a->ranks[0].calls == 1 ? "" : "s", verb(s, "it", "the first"),
			   a->own_calls);
}

/* Calls have no number of NCCL's: they are counted here.  True: the last one is named. */
static bool add_calls(struct scene *s)
{
	const struct hang_call *last = s->first ? hang_call(s->first, s->first->calls - 1) : NULL;

	phrase_add(&s->text, ", call #%" PRIu64 " there", s->group->call);
	if (last)
		phrase_add(&s->text, "; its last call there was %s", last->func);
	return last;
}

static void say_not_joined(struct scene *s)
{
	uint64_t last = s->first ? hang_last_seq(s->first, s->group->op.func) :
				   UNKNOWN_U64;
	bool knows_call = false;

	add_culprits(s);
	phrase_add(&s->text, " %s not come to ", verb(s, "has", "have"));
	add_op(s);
	if (hang_is_heard(s->c)) {
		add_heard_calls(s);
	} else if (s->c->verdict.nranks == 1) {
		if (s->group->by_calls)
			knows_call = add_calls(s);
		else if (last == UNKNOWN_U64)
			phrase_add(&s->text, "; it has never called %s there",
				   s->group->op.func ? s->group->op.func : "it");
		else
			phrase_add(&s->text, "; its last %s there is #%" PRIu64,
				   s->group->op.func, last);
	}
	if (s->first && s->first->last_op_ns &&
	    s->first->last_op_ns < s->hang->now_ns) {
		if (!knows_call)
			phrase_add(&s->text, ", %s last call of any kind there was ",
				   verb(s, "its", "the first one's"));
		else
			phrase_add(&s->text, ", ");
		phrase_add_duration(&s->text, s->hang->now_ns - s->first->last_op_ns);
		phrase_add(&s->text, " ago");
	}
	add_waiting(s);
}

/* Has the first rank that the verdict names made the call? */
static bool is_inside(const struct scene *s)
{
	for (uint32_t i = 0; i < s->comm->n; i++)
		if (is_culprit(&s->c->verdict, s->comm->ranks[i].rank))
			return s->comm->ranks[i].posted;
	return false;
}

static void say_stopped(struct scene *s)
{
	const struct hang_halt *halt = s->first ? &s->first->halt : NULL;

	add_culprits(s);
	phrase_add(&s->text, " %s stopped", verb(s, "is", "are"));
	if (halt && halt->tracer)
		phrase_add(&s->text, " by a debugger (%s, pid %" PRId32 ")", halt->tracer_name,
			   halt->tracer);
	else
		phrase_add(&s->text, " by a signal (state T)");
	if (!s->group->has_op) {
		phrase_add(&s->text, ", and nothing is in flight on ");
		hang_add_comm(&s->text, &s->hang->ranks.at[s->group->first]);
		return;
	}
	if (is_inside(s))
		phrase_add(&s->text, " in the middle of ");
	else
		phrase_add(&s->text, ", and %s not come to ", verb(s, "has", "have"));
	add_op(s);
	add_waiting(s);
}

static void say_order(struct scene *s)
{
	name_t func = s->c->verdict.other_func;
	uint64_t seq = s->first ? hang_last_seq(s->first, func) : UNKNOWN_U64;
	int32_t others[OTHERS];

	add_culprits(s);
	if (!collect_others(s, others)) {
		phrase_add(&s->text, " disagree whether %s comes before or after ", func);
		add_op(s);
		return;
	}
	phrase_add(&s->text, " called %s", func);
	if (seq != UNKNOWN_U64)
		phrase_add(&s->text, " #%" PRIu64, seq);
	phrase_add(&s->text, " where ");
	add_others(s);
	phrase_add(&s->text, " called ");
	add_op(s);
}

static void say_deadlock(struct scene *s)
{
	const struct hang_verdict *r = &s->c->verdict;

	phrase_add(&s->text, "ranks wait for each other in a circle: ");
	for (uint32_t i = 0; i < r->ncircle; i++) {
		const struct hang_comm *c = &s->hang->comms[r->circle[i]];
		int32_t out[HANG_RANKS];
		uint32_t n = 0;

		for (uint32_t k = 0; k < c->n && n < HANG_RANKS; k++)
			if (hang_leads_on(r, i, &c->ranks[k]))
				out[n++] = c->ranks[k].rank;
		phrase_add(&s->text, i ? "; " : "");
		add_group_op(&s->text, s->hang, &s->hang->groups.at[r->circle[i]]);
		phrase_add(&s->text, " waits for its ");
		add_ranks(s, r->circle[i], out, n);
		phrase_add(&s->text, n == 1 ? ", which waits in " : ", which wait in ");
		add_group_op(&s->text, s->hang,
			     &s->hang->groups.at[r->circle[(i + 1) % r->ncircle]]);
	}
}

/* "1024 on ranks 0-2, 2048 on rank 3" is for the evidence; here it is who and what. */
static void say_mismatch(struct scene *s)
{
	const char *field = s->c->verdict.field;

	add_culprits(s);
	phrase_add(&s->text, " %s a different %s%s than ", verb(s, "has", "have"),
		   strcmp(field, "channels") ? "" : "number of ", field);
	add_others(s);
	phrase_add(&s->text, " in ");
	add_op(s);
}

static void say_partial(struct scene *s)
{
	add_op(s);
	phrase_add(&s->text, " has ended on some ranks of %s, but not on ", s->here);
	add_culprits(s);
	if (s->first)
		add_transfer(s, s->first->transfer);
}

static void say_link(struct scene *s)
{
	add_op(s);
	phrase_add(&s->text, " hangs in the network: ");
	add_culprits(s);
	phrase_add(&s->text, " %s sent data", verb(s, "has", "have"));
	if (s->c->verdict.peer != UNKNOWN_I32)
		phrase_add(&s->text, " to rank %" PRId32, s->c->verdict.peer);
	phrase_add(&s->text, ", but the network does not confirm it");
	if (s->first)
		add_transfer(s, s->first->transfer);
}

static void say_no_room(struct scene *s)
{
	int32_t sender = s->c->verdict.peer;
	const struct hang_rank *r = hang_rank_of(s->c, sender);

	add_culprits(s);
	phrase_add(&s->text, " has reported no room to rank %" PRId32 ", which waits to send in ",
		   sender);
	add_op(s);
	if (r && hang_row_wait(r->transfer) == WAIT_CREDIT)
		add_transfer(s, r->transfer);
	add_waiting(s);
}

static void say_gpu(struct scene *s)
{
	phrase_add(&s->text, "%s", s->c->verdict.one_of ? "the GPU of one of " :
				   verb(s, "the GPU of ", "the GPUs of "));
	add_culprits(s);
	phrase_add(&s->text, " stopped in the middle of ");
	add_op(s);
	if (s->first)
		add_transfer(s, s->first->transfer);
}

static void say_not_running(struct scene *s)
{
	add_culprits(s);
	phrase_add(&s->text, " posted ");
	add_op(s);
	phrase_add(&s->text, ", but %s not begun it", verb(s, "its GPU has", "their GPUs have"));
	add_waiting(s);
}

static void say_internal(struct scene *s)
{
	phrase_add(&s->text, "all ranks are in ");
	add_op(s);
	phrase_add(&s->text, ", and each waits for another rank");
}

static void say_slow(struct scene *s)
{
	add_op(s);
	phrase_add(&s->text, " takes far longer than usual, but still moves");
}

/* No accusation: what would tell may be silent because of the same cause. */
static void add_not_begun(struct scene *s)
{
	int32_t ranks[OTHERS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->comm->n && n < OTHERS; i++)
		if (hang_has_not_begun(&s->comm->ranks[i]))
			ranks[n++] = s->comm->ranks[i].rank;
	if (!n)
		return;
	phrase_add(&s->text, "; nothing tells whether the %s of ", n == 1 ? "GPU" : "GPUs");
	add_numbers(&s->text, ranks, n);
	phrase_add(&s->text, " %s begun it", n == 1 ? "has" : "have");
}

/* No accusation either: who has not come may be held up as well. */
static void add_absent(struct scene *s)
{
	phrase_add(&s->text, "; ");
	add_culprits(s);
	phrase_add(&s->text, " %s not come, and may still be in %s last call elsewhere",
		   verb(s, "has", "have"), verb(s, "its", "their"));
}

static void say_unknown(struct scene *s)
{
	bool has_id = s->hang->ranks.at[s->group->first].has_id;
	int32_t peer = s->c->verdict.peer;

	add_op(s);
	phrase_add(&s->text, " hangs");
	add_waiting(s);
	if (s->c->verdict.may_wait)
		add_absent(s);
	if (peer != UNKNOWN_I32)
		phrase_add(&s->text, " for rank %" PRId32 ", %s", peer,
			   has_id ? "which is on another node" :
				    "whose process this version of NCCL does not report");
	if (s->c->afar && s->c->afar->state == AFAR_EVEN)
		phrase_add(&s->text, "; NCCL's RAS says that every rank answers and has made the "
			   "call");
	add_not_begun(s);
}

static void (*const sayings[VERDICT_END])(struct scene *) = {
	[VERDICT_RANK_DEAD] = say_dead,
	[VERDICT_NO_ANSWER] = say_no_answer,
	[VERDICT_STOPPED] = say_stopped,
	[VERDICT_NOT_JOINED] = say_not_joined,
	[VERDICT_ORDER_MISMATCH] = say_order,
	[VERDICT_COMM_DEADLOCK] = say_deadlock,
	[VERDICT_METADATA_MISMATCH] = say_mismatch,
	[VERDICT_CONFIG_MISMATCH] = say_mismatch,
	[VERDICT_PARTIAL] = say_partial,
	[VERDICT_LINK] = say_link,
	[VERDICT_NO_ROOM] = say_no_room,
	[VERDICT_GPU_STUCK] = say_gpu,
	[VERDICT_NOT_RUNNING] = say_not_running,
	[VERDICT_INTERNAL] = say_internal,
	[VERDICT_SLOW] = say_slow,
	[VERDICT_UNKNOWN] = say_unknown,
};

/* ---- around it ------------------------------------------------------------------- */

static bool is_cause(const struct hang_verdict *r, uint32_t group)
{
	for (uint32_t i = 0; i < r->ncircle; i++)
		if (r->circle[i] == group)
			return true;
	return r->comm == group;
}

/* "; the GPU of rank 2 had Xid 79 (GPU has fallen off the bus)" */
static void add_xid(struct scene *s)
{
	if (!s->c->xid.number)
		return;
	phrase_add(&s->text, "; the GPU of rank %" PRId32 " had ", s->c->xid_rank);
	xid_say(&s->text, &s->c->xid);
}

static void add_nic(struct scene *s)
{
	if (!s->c->nic.fault)
		return;
	phrase_add(&s->text, "; on this node, ");
	nic_say_cause(&s->text, &s->c->nic);
}

/* The age is told by the reader's clock, beside the text: here it would be of another moment. */
static void add_limit(struct scene *s)
{
	phrase_add(&s->text, ".");
	if (s->c->limit_ns != UNKNOWN_U64 && !hang_is_proven(s->c->verdict.verdict)) {
		phrase_add(&s->text, s->c->age_ns > s->c->limit_ns ?
			   " The limit for such an operation is " :
			   " It is suspected, and will be found if it lasts for ");
		phrase_add_duration(&s->text, s->c->limit_ns);
		phrase_add(&s->text, ".");
	}
	if (s->c->critical_ns > s->c->age_ns) {
		phrase_add(&s->text, " It stays a warning until it has lasted for ");
		phrase_add_duration(&s->text, s->c->critical_ns);
		phrase_add(&s->text, ", because a checkpoint looks the same.");
	}
	if (is_cause(&s->c->verdict, s->c->group))
		return;
	phrase_add(&s->text, " ");
	add_group_op(&s->text, s->hang, &s->hang->groups.at[s->c->group]);
	phrase_add(&s->text, " waits because of it.");
}

/* Limits of what is seen, so that no verdict is taken for more than it is. */
static void add_doubts(struct scene *s)
{
	int32_t away = s->comm->nranks == UNKNOWN_I32 ? 0 : s->comm->nranks - (int32_t)s->comm->n;

	if (away > 0)
		phrase_add(&s->text, " %" PRId32 " of its %" PRId32 " ranks are not on %s; "
			   "what they do %s.", away, s->comm->nranks, s->here,
			   hang_is_heard(s->c) ? "is known from NCCL's RAS alone" :
						 "cannot be seen from here");
	if (s->group->by_calls)
		phrase_add(&s->text, " This is based on the order of calls; the end of these "
			   "operations is not watched.");
	else if (s->group->unwatched || s->c->verdict.may_wait)
		phrase_add(&s->text, " This is based on which rank posted what, because the end "
			   "is not watched; NCCLINSP_KERNELS=always watches "
			   "every end from NCCL 2.28 on.");
}

/* Inside a node no transfer tells which of them holds up the others. */
static const char *action_of(const struct scene *s)
{
	const struct hang_verdict *v = &s->c->verdict;

	if (v->may_wait)
		return "See nvidia-smi and dmesg for Xid, and what the process does: "
		       "py-spy dump -p PID, gdb -p PID.";
	if (v->verdict == VERDICT_UNKNOWN && !v->remote)
		return "All its ranks are on this node and in this operation; it is unknown which "
		       "one holds up the others. See nvidia-smi and dmesg for Xid; attach cuda-gdb "
		       "to each.";
	if (v->verdict == VERDICT_STOPPED && s->first && s->first->halt.tracer)
		return "See in the debugger why it stopped, and continue or detach there. kill "
		       "-CONT does not help.";
	return words_verdict(v->verdict)->action;
}

/* "4711 4712" */
static void add_pids(struct scene *s)
{
	for (uint32_t i = 0; i < s->c->verdict.nranks; i++) {
		const struct hang_rank *r = hang_rank_of(s->c, s->c->verdict.ranks[i]);

		if (r)
			phrase_add(&s->text, "%s%" PRId32, i ? " " : "", r->pid);
	}
}

/* The action, with the culprit's own process where the words say PID: all that are stopped. */
static void add_action(struct scene *s, const char *action)
{
	const struct afar_rank *far = hang_is_heard(s->c) ? &s->c->afar->ranks[0] : NULL;
	int32_t pid = s->first ? s->first->pid : far ? far->pid : UNKNOWN_I32;
	const char *gap;

	phrase_add(&s->text, " ");
	while (pid != UNKNOWN_I32 && (gap = strstr(action, "PID"))) {
		phrase_add(&s->text, "%.*s", (int)(gap - action), action);
		if (s->c->verdict.verdict == VERDICT_STOPPED)
			add_pids(s);
		else
			phrase_add(&s->text, "%d", (int)pid);
		action = gap + strlen("PID");
	}
	phrase_add(&s->text, "%s", action);
}

static struct scene scene_of(const struct hang_case *c)
{
	return (struct scene){
		.c = c,
		.hang = c->hang,
		.group = &c->hang->groups.at[c->verdict.comm],
		.comm = &c->hang->comms[c->verdict.comm],
		.here = c->hang->nodes > 1 ? "these nodes" : "this node",
		.first = c->verdict.nranks ? hang_rank_of(c, c->verdict.ranks[0]) : NULL,
	};
}

void hang_say(const struct hang_case *c, char *text, size_t size)
{
	struct scene s = scene_of(c);

	phrase_start(&s.text, text, size);
	sayings[c->verdict.verdict](&s);
	add_xid(&s);
	add_nic(&s);
	add_limit(&s);
	add_doubts(&s);
	if (c->xid.number)
		phrase_add(&s.text, " %s.", xid_advice(c->xid.number));
	else
		add_action(&s, action_of(&s));
}

void hang_say_waiting(const struct hang_case *c, char *text, size_t size)
{
	struct scene s = scene_of(c);
	int32_t ranks[OTHERS];
	uint32_t n = collect_others(&s, ranks);

	phrase_start(&s.text, text, size);
	if (!n)
		return;
	add_numbers(&s.text, ranks, n);
	phrase_add(&s.text, n == 1 ? " waits in " : " wait in ");
	add_op(&s);
}
