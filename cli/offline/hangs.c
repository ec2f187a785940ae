/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of snapshots as those that judge/ decides on.  Files are of different moments: of a
 * rank nothing is said that its own file is too old to know.
 */
#include "cli/offline/hangs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/base/must.h"
#include "reader/base/pool.h"
#include "util/list.h"

#define LIMIT_NS UINT64_C(10000000000)	/* the limit where a file tells none */
#define PROVEN_NS UINT64_C(2000000000)	/* a proven hang needs no limit, but two looks */
#define SUSPECTED_NS UINT64_C(5000000000) /* time in flight, or the limit if less */
#define PROCESSES_MOST 1024		/* most processes of a node looked at one by one */

/* A rank by what rows in flight name it by. */
struct hang_name {
	const struct shots_node *node;
	uint64_t comm_id;
	const char *comm_name;	/* NULL: none */
	int32_t pid, rank;
	uint64_t key;
};

struct hangs {
	struct shots *shots;
	struct hang hang;
	LIST(struct hang_name) names;
	json_t *suspects;	/* ids of communicators in which some node suspects a hang */
};

/* ---- ranks --------------------------------------------------------------------------- */

static void rank_take_last(struct hang_rank *r, const struct local_rank_read *row)
{
	for (uint32_t i = 0; i < row->last_seq.n; i++) {
		struct hang_last *last = array_add(r->last, &r->nlast);

		if (!last)
			return;
		last->func = row->last_seq.at[i].name;
		last->seq = row->last_seq.at[i].number;
	}
}

static void rank_take_calls(struct hang_rank *r, const struct shots_rank *rank)
{
	uint32_t n = rank->row->newest_calls.n;

	r->calls = rank->row->calls;
	r->counts_calls = r->counts && r->calls != UNKNOWN_U64;
	if (!r->counts_calls || n > HANG_CALLS || n > r->calls)
		r->calls = 0;
	for (uint32_t i = 0; r->calls && i < n; i++) {
		const struct call_read *call = &rank->row->newest_calls.at[i];

		r->call[HANG_CALLS - n + i] = (struct hang_call){
			.func = call->func, .datatype = call->datatype, .count = call->count,
			.root = call->root,
			.at_ns = shots_clock_at(&rank->node->clock, call->start_mono_ns),
		};
	}
}

static bool rank_is_over(const struct local_rank_read *row)
{
	return row->state && (!strcmp(row->state, "died") || !strcmp(row->state, "exited"));
}

/* Equal for what is of one process. */
static uint64_t rank_process(const struct shots_rank *rank)
{
	const uint64_t process[] = { (uintptr_t)rank->node, (uint64_t)rank->row->pid };

	return index_hash(0, process, sizeof(process));
}

static void add_rank(struct hangs *h, const struct shots_comm *comm, const struct shots_rank *rank)
{
	const struct local_rank_read *row = rank->row;
	struct hang_rank *r;

	if (row->left)
		return;
	r = must(list_append(&h->hang.ranks));
	*r = (struct hang_rank){
		.has_id = true, .id = comm->id, .nranks = comm->nranks,
		.name = rank->comm_name ?: "", .key = h->hang.ranks.n, .rank = row->rank,
		.process = rank_process(rank), .pid = row->pid, .host = rank->node->host,
		.owner = rank, .world_rank = row->world_rank, .pci_bus_id = row->pci_bus_id,
		.gpu_index = row->gpu_index,
		.gpu = (uintptr_t)row->gpu_uuid,
		.seen_ns = h->shots->nodes.n > 1 ? rank->node->clock.written_ns : UINT64_MAX,
		.ended = rank_is_over(row), .counts = row->counted,
		.may_be_silenced = row->silenceable,
		.last_op_ns = shots_clock_at(&rank->node->clock, row->last_op_mono_ns),
		.last_unwatched = row->last_unwatched,
	};
	rank_take_last(r, row);
	rank_take_calls(r, rank);
	*(struct hang_name *)must(list_append(&h->names)) = (struct hang_name){
		rank->node, comm->id, rank->comm_name, row->pid, row->rank, r->key,
	};
}

/* ---- what is in flight ---------------------------------------------------------------- */

static int names_order(const void *left, const void *right)
{
	const struct hang_name *a = left, *b = right;
	int r = number_order((uintptr_t)a->node, (uintptr_t)b->node);

	r = r ? r : number_order(a->comm_id, b->comm_id);
	r = r ? r : number_order((uint32_t)a->pid, (uint32_t)b->pid);
	r = r ? r : number_order((uint32_t)a->rank, (uint32_t)b->rank);
	return r ? r : number_order((uintptr_t)a->comm_name, (uintptr_t)b->comm_name);
}

static bool is_one_of(const char *text, const char *a, const char *b)
{
	return text && (!strcmp(text, a) || !strcmp(text, b));
}

/* Operations are of no thread: theirs are over, the calls have returned. */
static bool is_op(const struct inflight_read *row)
{
	return row->tid == UNKNOWN_I32 && row->parent == UNKNOWN_U64;
}

static void add_row(struct hangs *h, const struct shots_node *node,
		    const struct inflight_read *row)
{
	const struct hang_name name = {
		node, row->comm_id, row->comm_name, row->pid, row->rank, 0,
	};
	const struct hang_name *rank = h->names.n ? bsearch(&name, h->names.at, h->names.n,
							    sizeof(name), names_order) : NULL;

	if (!rank)
		return;
	*(struct hang_row *)must(list_append(&h->hang.rows)) = (struct hang_row){
		.key = rank->key, .rank = row->rank,
		.token = row->token == UNKNOWN_U64 ? 0 : row->token, .type = row->event_type,
		.is_op = is_op(row), .is_p2p = is_one_of(row->event_type, "P2p", "P2pApi"),
		.func = row->func, .seq = row->seq, .bytes = row->bytes, .count = row->count,
		.datatype = row->datatype, .algo = row->algo, .proto = row->proto,
		.root = row->root, .peer = row->peer, .kernel_started = row->kernel_started,
		.kernel_stopped = row->kernel_stopped, .state = row->state,
		.direction = row->direction, .channel = row->channel, .step = row->step,
		.steps = row->steps, .limit_ns = row->limit_ns,
		.enqueued_ns = row->age_ns > node->clock.written_ns ? 0 :
							node->clock.written_ns - row->age_ns,
		.channels = row->channels > 0 ? (uint32_t)row->channels : 0,
	};
}

/* A node looks twice before it suspects; one file alone cannot tell what moves. */
static void add_suspicion(struct hangs *h, const json_t *finding)
{
	const char *kind = member_text(finding, "kind", NULL);
	const char *comm_id = member_text(finding, "comm_id", NULL);

	if (comm_id && is_one_of(kind, "stall", "desync") &&
	    member_true(finding, "active") && member_is(finding, "grade", "suspected"))
		json_object_set_new(h->suspects, comm_id, json_true());
}

static void add_ranks(struct hangs *h)
{
	for (uint32_t i = 0; i < h->shots->comms.n; i++) {
		const struct shots_comm *comm = h->shots->comms.at[i];

		for (uint32_t k = 0; k < comm->ranks.n; k++)
			add_rank(h, comm, &comm->ranks.at[k]);
	}
	list_sort(&h->names, names_order);
}

static void add_node(struct hangs *h, const struct shots_node *node)
{
	if (node->clock.written_ns > h->hang.now_ns)
		h->hang.now_ns = node->clock.written_ns;
	for (uint32_t k = 0; k < node->rows.inflight.n; k++)
		add_row(h, node, &node->rows.inflight.at[k]);
	json_each(finding, node->findings)
		add_suspicion(h, finding);
}

/* ---- where nothing can hang ------------------------------------------------------------- */

static bool row_is_old(const struct inflight_read *row)
{
	return row->age_ns != UNKNOWN_U64 &&
	       (row->age_ns > PROVEN_NS || row->age_ns > row->limit_ns);
}

/* Has the process posted nothing for a while, on any communicator? */
static bool process_is_quiet(const struct shots_node *node, int32_t pid)
{
	uint64_t last_ns = 0;
	bool has_ranks = false;

	list_each(comm, &node->rows.comms) {
		list_each(rank, &comm->local_ranks) {
			if (rank->pid != pid || rank->left)
				continue;
			has_ranks = true;
			if (rank->last_op_mono_ns != UNKNOWN_U64 && rank->last_op_mono_ns > last_ns)
				last_ns = rank->last_op_mono_ns;
		}
	}
	return has_ranks && last_ns + PROVEN_NS < node->clock.mono_ns;
}

static bool node_may_hang(const struct shots_node *node)
{
	if (node->rows.processes.n > PROCESSES_MOST)
		return true;
	for (uint32_t i = 0; i < node->rows.inflight.n; i++)
		if (row_is_old(&node->rows.inflight.at[i]))
			return true;
	for (uint32_t i = 0; i < node->rows.processes.n; i++)
		if (process_is_quiet(node, node->rows.processes.at[i].pid))
			return true;
	return false;
}

static bool call_is_same(const struct call_read *a, const struct call_read *b)
{
	return a->func == b->func && a->count == b->count && a->datatype == b->datatype &&
	       a->root == b->root;
}

static bool ranks_agree(const struct local_rank_read *a, const struct local_rank_read *b)
{
	bool agree = a->calls == b->calls && a->last_seq.n == b->last_seq.n &&
		     a->newest_calls.n == b->newest_calls.n;

	for (uint32_t i = 0; agree && i < a->last_seq.n; i++)
		agree = a->last_seq.at[i].name == b->last_seq.at[i].name &&
			a->last_seq.at[i].number == b->last_seq.at[i].number;
	for (uint32_t i = 0; agree && i < a->newest_calls.n; i++)
		agree = call_is_same(&a->newest_calls.at[i], &b->newest_calls.at[i]);
	return agree;
}

/* Does nobody post anything, after ranks have posted different things? */
static bool comm_may_hang(const struct shots_comm *comm)
{
	uint64_t last_ns = 0, seen_ns = UINT64_MAX;
	bool agree = true;

	list_each(rank, &comm->ranks) {
		const struct shots_clock *clock = &rank->node->clock;
		uint64_t at_ns = shots_clock_at(clock, rank->row->last_op_mono_ns);

		last_ns = at_ns > last_ns ? at_ns : last_ns;
		seen_ns = clock->written_ns < seen_ns ? clock->written_ns : seen_ns;
		agree = agree && ranks_agree(rank->row, comm->ranks.at[0].row);
	}
	return !agree && last_ns + PROVEN_NS < seen_ns;
}

/*
 * The rows that are judged are large: of ten thousand nodes they are only made where something on
 * one of them has stood still for long enough to be looked at.
 */
static bool hangs_may_be(const struct shots *s)
{
	for (uint32_t i = 0; i < s->nodes.n; i++)
		if (node_may_hang(s->nodes.at[i]))
			return true;
	for (uint32_t i = 0; i < s->comms.n; i++)
		if (comm_may_hang(s->comms.at[i]))
			return true;
	return false;
}

/* Calls are compared on communicators where nobody has posted anything for a while. */
static void ranks_drop_calls(struct comm_ranks_read *comm, uint64_t written_ns)
{
	list_each(rank, &comm->local_ranks) {
		if (rank->last_op_mono_ns == UNKNOWN_U64 || written_ns == UNKNOWN_U64 ||
		    rank->last_op_mono_ns + PROVEN_NS < written_ns)
			continue;
		list_deinit(&rank->newest_calls);
		rank->calls = UNKNOWN_U64;
	}
}

/* Keeps them in memory of their own: the room of all is for the next file. */
static void inflight_keep_ops(struct snapshot_read *rows)
{
	struct snapshot_read ops = { .written_mono_ns = 0 };
	uint32_t n = 0;

	for (uint32_t i = 0; i < rows->inflight.n; i++)
		n += is_op(&rows->inflight.at[i]);
	if (n)
		must(list_init(&ops.inflight, n) ? NULL : rows);
	for (uint32_t i = 0; i < rows->inflight.n; i++)
		if (is_op(&rows->inflight.at[i]))
			*list_must_add(&ops.inflight) = rows->inflight.at[i];
	list_deinit(&rows->inflight);
	memcpy(&rows->inflight, &ops.inflight, sizeof(ops.inflight));
}

void hangs_trim(struct snapshot_read *rows)
{
	for (uint32_t i = 0; i < rows->comms.n; i++)
		ranks_drop_calls(&rows->comms.at[i], rows->written_mono_ns);
	for (uint32_t i = 0; i < rows->inflight.n; i++)
		if (row_is_old(&rows->inflight.at[i]))
			return;
	inflight_keep_ops(rows);
}

/* ---- judgement ------------------------------------------------------------------------- */

static uint64_t group_limit(const struct hang *h, const struct hang_group *g)
{
	uint64_t limit_ns = g->unwatched ? 0 : g->op.limit_ns;

	for (uint32_t i = g->first; g->unwatched && i < g->first + g->n; i++) {
		const struct shots_rank *rank = h->ranks.at[i].owner;
		uint64_t ns = rank->row->quiet_limit_ns;

		if (ns != UNKNOWN_U64 && ns > limit_ns)
			limit_ns = ns;
	}
	return limit_ns && limit_ns != UNKNOWN_U64 ? limit_ns : LIMIT_NS;
}

/* The last moment at which all that the age rests on was seen. */
static uint64_t group_seen(const struct hang *h, const struct hang_group *g)
{
	uint64_t seen_ns = h->now_ns;

	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		const struct hang_rank *r = &h->ranks.at[i];

		if ((g->unwatched || r->key == g->op.key) && r->seen_ns < seen_ns)
			seen_ns = r->seen_ns;
	}
	return seen_ns;
}

/* A hang in some operation, and whether that is only suspected. */
struct offline_hang {
	struct hang_case c;
	bool suspected;
};

static bool case_is_suspected(const struct hangs *h, const struct hang_case *c)
{
	const struct hang_group *g = &c->hang->groups.at[c->group];
	char comm_id[24];

	snprintf(comm_id, sizeof(comm_id), "0x%016" PRIx64, c->hang->ranks.at[g->first].id);
	return c->age_ns >= SUSPECTED_NS && json_object_get(h->suspects, comm_id);
}

/* Is it so old that it hangs, or may?  Then nobody is accused who was seen before that age. */
static bool hang_is_due(struct hangs *h, struct offline_hang *hang)
{
	struct hang_case *c = &hang->c;
	struct hang_group *g = &h->hang.groups.at[c->group];
	uint64_t seen_ns = group_seen(&h->hang, g);

	if (!g->has_op || !g->op.enqueued_ns || seen_ns < g->op.enqueued_ns)
		return false;
	c->age_ns = seen_ns - g->op.enqueued_ns;
	c->limit_ns = group_limit(&h->hang, g);
	hang->suspected = c->age_ns <= c->limit_ns;
	g->least_ns = hang->suspected ? SUSPECTED_NS : c->limit_ns;
	return !hang->suspected || case_is_suspected(h, c) || c->age_ns > PROVEN_NS;
}

/* One that some were still in may be over: a later file tells of a rank that is done. */
static bool case_may_be_over(const struct hang_case *c)
{
	const struct hang_comm *comm = &c->hang->comms[c->verdict.comm];
	uint64_t done_ns = 0, inside_ns = UINT64_MAX;

	for (uint32_t i = 0; i < comm->n; i++) {
		const struct hang_rank *r = hang_rank_of(c, comm->ranks[i].rank);

		if (r->seen_ns == UINT64_MAX)
			continue;
		if (comm->ranks[i].done && r->seen_ns > done_ns)
			done_ns = r->seen_ns;
		if (!comm->ranks[i].done && comm->ranks[i].posted && r->seen_ns < inside_ns)
			inside_ns = r->seen_ns;
	}
	return inside_ns < done_ns && done_ns - inside_ns > c->limit_ns;
}

/* False: there is nothing to say of it. */
static bool hang_judge(struct hangs *h, const struct hang_input *in, struct offline_hang *hang)
{
	struct hang_case *c = &hang->c;

	hang_decide(in, c->group, &c->verdict);
	if (hang_is_proven(c->verdict.verdict))
		hang->suspected = false;
	if (hang_may_be_busy(c))
		c->critical_ns = HANG_NOT_JOINED_NS;
	return !case_may_be_over(c) && (!hang->suspected || case_is_suspected(h, c));
}

static bool hang_is_explained(const struct offline_hang *hang, const struct offline_hang *all,
			      uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (hang_explains(&all[i].c, &hang->c))
			return true;
	return false;
}

static void hang_tell(const struct offline_hang *hang, bool *told, hangs_found_fn *found,
		      void *arg)
{
	const struct hang_case *c = &hang->c;

	if (told[c->verdict.comm])
		return;
	told[c->verdict.comm] = true;
	for (uint32_t k = 0; k < c->verdict.ncircle; k++)
		told[c->verdict.circle[k]] = true;
	found(c, hang->suspected, arg);
}

static void judge_all(struct hangs *h, hangs_found_fn *found, void *arg)
{
	struct hang *all = &h->hang;
	struct offline_hang *hangs = must(calloc(all->groups.n + 1, sizeof(*hangs)));
	bool *told = must(calloc(all->groups.n + 1, sizeof(*told)));
	const struct hang_input in = { all->comms, all->groups.n };
	uint32_t due = 0, n = 0;

	for (uint32_t i = 0; i < all->groups.n; i++) {
		hangs[due] = (struct offline_hang){ .c = { .hang = all, .group = i } };
		due += hang_is_due(h, &hangs[due]);
	}
	if (due)
		hang_place(all);
	for (uint32_t i = 0; i < due; i++)
		if (hang_judge(h, &in, &hangs[i]))
			hangs[n++] = hangs[i];
	for (int suspected = 0; suspected < 2; suspected++)
		for (uint32_t i = 0; i < n; i++)
			if (hangs[i].suspected == suspected &&
			    !hang_is_explained(&hangs[i], hangs, n))
				hang_tell(&hangs[i], told, found, arg);
	free(told);
	free(hangs);
}

static void see_all(struct hang *h)
{
	hang_take_rows(h);
	for (uint32_t i = 0; i < h->ranks.n; i++)
		for (size_t k = 0; k < h->ranks.at[i].nrows; k++)
			hang_rank_see(&h->ranks.at[i], &h->ranks.at[i].rows[k]);
}

void hangs_find(struct shots *s, hangs_found_fn *found, void *arg)
{
	struct hangs h = { .shots = s, .hang = { .nodes = s->nodes.n } };

	if (!hangs_may_be(s))
		return;
	h.suspects = json_object();
	add_ranks(&h);
	for (uint32_t i = 0; i < s->nodes.n; i++)
		add_node(&h, s->nodes.at[i]);
	if (hang_ready(&h.hang) == 0) {
		see_all(&h.hang);
		hang_find(&h.hang);
		judge_all(&h, found, arg);
	}
	hang_deinit(&h.hang);
	list_deinit(&h.names);
	json_decref(h.suspects);
}
