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

#define LIMIT_NS UINT64_C(10000000000)	/* the limit where a file tells none */
#define PROVEN_NS UINT64_C(2000000000)	/* what is proven needs no limit, but two looks */
#define SUSPECTED_NS UINT64_C(5000000000) /* in flight for so long, or for its limit if less */

/* One node's file. */
struct node {
	struct hangs *hangs;
	const char *host;
	struct shots_clock clock;
};

struct hangs {
	struct shots *shots;
	struct hang hang;
	json_t *keys;		/* a rank's name in rows: its key */
	json_t *suspects;	/* ids of communicators in which some node suspects a hang */
	size_t nodes;
};

static uint64_t call_number(const json_t *row, const char *key)
{
	return member_number(row, key, UNKNOWN_U64);
}

static name_t name_at(struct hangs *h, const json_t *row, const char *key)
{
	const char *text = member_text(row, key, NULL);

	return text ? shots_text(h->shots, text) : NULL;
}

static bool flag_at(const json_t *row, const char *key)
{
	return json_is_true(json_object_get(row, key));
}

/* ---- ranks --------------------------------------------------------------------------- */

/* Rows in flight name their rank by this. */
static void make_name(const struct node *n, const json_t *row, const char *comm_name,
		      const json_t *of, char name[512])
{
	snprintf(name, 512, "%.255s %" PRIu64 " %.18s %" PRId32 " %.96s", n->host,
		 call_number(row, "pid"), member_text(of, "comm_id", NULL), shots_i32(row, "rank"),
		 comm_name);
}

static uint64_t number_of(struct hangs *h, const char *text)
{
	return (uint64_t)(uintptr_t)shots_text(h->shots, text);
}

static void rank_take_last(struct hangs *h, struct hang_rank *r, const json_t *rank)
{
	const char *func;
	json_t *seq;

	json_object_foreach(json_object_get(rank, "last_seq"), func, seq) {
		struct hang_last *last = array_add(r->last, &r->nlast);

		if (!last)
			return;
		last->func = shots_text(h->shots, func);
		last->seq = (uint64_t)json_integer_value(seq);
	}
}

static void rank_take_calls(const struct node *node, struct hang_rank *r, const json_t *rank)
{
	const json_t *calls = json_object_get(rank, "newest_calls");
	size_t n = json_array_size(calls);

	r->calls = call_number(rank, "calls");
	r->counts_calls = r->counts && r->calls != UNKNOWN_U64;
	if (!r->counts_calls || n > HANG_CALLS || n > r->calls)
		r->calls = 0;
	for (size_t i = 0; r->calls && i < n; i++) {
		const json_t *call = json_array_get(calls, i);

		r->call[HANG_CALLS - n + i] = (struct hang_call){
			.func = name_at(node->hangs, call, "func"),
			.datatype = name_at(node->hangs, call, "datatype"),
			.count = call_number(call, "count"), .root = shots_i32(call, "root"),
			.at_ns = shots_clock_at(&node->clock, call_number(call, "start_mono_ns")),
		};
	}
}

static bool rank_is_over(const json_t *rank)
{
	const char *state = member_text(rank, "state", "");

	return !strcmp(state, "died") || !strcmp(state, "exited");
}

static void add_rank(const struct node *n, const json_t *comm, json_t *rank)
{
	struct hangs *h = n->hangs;
	const char *gpu = member_text(rank, "gpu_uuid", NULL);
	char name[512], process[320];
	struct hang_rank *r;

	if (flag_at(rank, "left") || shots_i32(rank, "rank") == UNKNOWN_I32)
		return;
	r = must(list_append(&h->hang.ranks));
	snprintf(process, sizeof(process), "%.255s %" PRIu64, n->host, call_number(rank, "pid"));
	*r = (struct hang_rank){
		.has_id = true, .id = member_hex(comm, "comm_id"),
		.nranks = shots_i32(comm, "nranks"), .name = member_text(comm, "name", ""),
		.key = h->hang.ranks.n,
		.rank = shots_i32(rank, "rank"), .process = number_of(h, process),
		.pid = shots_i32(rank, "pid"), .host = n->host, .owner = rank,
		.world_rank = shots_i32(rank, "world_rank"),
		.pci_bus_id = member_text(rank, "pci_bus_id", NULL),
		.gpu = gpu ? number_of(h, gpu) : 0,
		.seen_ns = h->nodes > 1 ? n->clock.written_ns : UINT64_MAX,
		.ended = rank_is_over(rank),
		.counts = flag_at(rank, "counted"), .may_be_silenced = flag_at(rank, "silenceable"),
		.last_op_ns = shots_clock_at(&n->clock, call_number(rank, "last_op_mono_ns")),
	};
	rank_take_last(h, r, rank);
	rank_take_calls(n, r, rank);
	make_name(n, rank, r->name, comm, name);
	json_object_set_new(h->keys, name, json_integer((json_int_t)r->key));
}

/* ---- what is in flight ---------------------------------------------------------------- */

static bool is_one_of(const char *text, const char *a, const char *b)
{
	return text && (!strcmp(text, a) || !strcmp(text, b));
}

/* Operations are of no thread: theirs are over, the calls have returned. */
static bool is_op(const json_t *row)
{
	return !json_is_integer(json_object_get(row, "tid")) && !member_text(row, "parent", NULL);
}

static void add_row(const struct node *n, const json_t *row)
{
	struct hangs *h = n->hangs;
	const json_t *key;
	struct hang_row *to;
	char name[512];
	uint64_t age_ns = call_number(row, "age_ns");

	make_name(n, row, member_text(row, "comm_name", ""), row, name);
	key = json_object_get(h->keys, name);
	if (!key)
		return;
	to = must(list_append(&h->hang.rows));
	*to = (struct hang_row){
		.key = (uint64_t)json_integer_value(key), .rank = shots_i32(row, "rank"),
		.token = member_hex(row, "token"), .type = name_at(h, row, "event_type"),
		.is_op = is_op(row),
		.is_p2p = is_one_of(member_text(row, "event_type", NULL), "P2p", "P2pApi"),
		.func = name_at(h, row, "func"), .seq = call_number(row, "seq"),
		.bytes = call_number(row, "bytes"), .count = call_number(row, "count"),
		.datatype = name_at(h, row, "datatype"), .algo = name_at(h, row, "algo"),
		.proto = name_at(h, row, "proto"), .root = shots_i32(row, "root"),
		.peer = shots_i32(row, "peer"), .kernel_started = shots_i32(row, "kernel_started"),
		.kernel_stopped = shots_i32(row, "kernel_stopped"),
		.state = name_at(h, row, "state"), .direction = name_at(h, row, "direction"),
		.channel = shots_i32(row, "channel"), .step = shots_i32(row, "step"),
		.steps = shots_i32(row, "steps"), .limit_ns = call_number(row, "limit_ns"),
		.enqueued_ns = age_ns > n->clock.written_ns ? 0 :
							    n->clock.written_ns - age_ns,
	};
	if (shots_i32(row, "channels") > 0)
		to->channels = (uint32_t)shots_i32(row, "channels");
}

/* A node looks twice before it suspects; one file alone cannot tell what moves. */
static void add_suspicion(struct hangs *h, const json_t *finding)
{
	const char *kind = member_text(finding, "kind", NULL);
	const char *comm_id = member_text(finding, "comm_id", NULL);

	if (comm_id && is_one_of(kind, "stall", "desync") && flag_at(finding, "active") &&
	    !strcmp(member_text(finding, "grade", ""), "suspected"))
		json_object_set_new(h->suspects, comm_id, json_true());
}

static void add_node(struct hangs *h, const char *host, const json_t *root)
{
	struct node n = { .hangs = h, .host = host, .clock = shots_clock(root) };
	json_t *comm, *rank, *row, *finding;
	size_t i, k;

	if (n.clock.written_ns > h->hang.now_ns)
		h->hang.now_ns = n.clock.written_ns;
	json_array_foreach(json_object_get(root, "comms"), i, comm)
		json_array_foreach(json_object_get(comm, "local_ranks"), k, rank)
			if (member_text(comm, "comm_id", NULL))
				add_rank(&n, comm, rank);
	json_array_foreach(json_object_get(root, "inflight"), i, row)
		add_row(&n, row);
	json_array_foreach(json_object_get(root, "findings"), i, finding)
		add_suspicion(h, finding);
}

/* ---- judgement ------------------------------------------------------------------------- */

static uint64_t group_limit(const struct hang *h, const struct hang_group *g)
{
	uint64_t limit_ns = g->unwatched ? 0 : g->op.limit_ns;

	for (uint32_t i = g->first; g->unwatched && i < g->first + g->n; i++) {
		uint64_t ns = call_number(h->ranks.at[i].owner, "quiet_limit_ns");

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
	struct hangs h = { .shots = s, .keys = json_object(), .suspects = json_object(),
			   .nodes = json_object_size(s->nodes) };
	const char *host;
	json_t *root;

	json_object_foreach(s->nodes, host, root)
		add_node(&h, host, root);
	h.hang.nodes = (uint32_t)h.nodes;
	if (hang_ready(&h.hang) == 0) {
		see_all(&h.hang);
		hang_find(&h.hang);
		judge_all(&h, found, arg);
	}
	hang_deinit(&h.hang);
	json_decref(h.keys);
	json_decref(h.suspects);
}
