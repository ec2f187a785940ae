/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decision tree of hang.h, step by step.  It has no clock and does no I/O, so that
 * every verdict can be tested with ranks that are made up.
 */
#include "judge/hang.h"

#include <string.h>

#include "util/list.h"

#define WALKED	64	/* communicators that are looked at for a circle */

typedef bool select_fn(const struct hang_standing *r);

static void name_rank(struct hang_verdict *out, int32_t rank)
{
	int32_t *place = array_add(out->ranks, &out->nranks);

	if (place)
		*place = rank;
}

/* The verdict about all ranks that `wanted` selects; false: there is none. */
static bool name_all(const struct hang_comm *c, select_fn *wanted, enum verdict verdict,
		     struct hang_verdict *out)
{
	out->nranks = 0;
	for (uint32_t i = 0; i < c->n; i++)
		if (wanted(&c->ranks[i]))
			name_rank(out, c->ranks[i].rank);
	if (out->nranks)
		out->verdict = verdict;
	return out->nranks;
}

static bool is_dead(const struct hang_standing *r)
{
	return r->ended && !r->done;
}

static bool is_out(const struct hang_standing *r)
{
	return !r->posted && !r->ended;
}

static bool is_out_and_stopped(const struct hang_standing *r)
{
	return is_out(r) && r->stopped;
}

static bool is_lost(const struct hang_standing *r)
{
	return is_out(r) && r->elsewhere == HANG_NONE && !r->may_wait;
}

static bool is_out_and_may_wait(const struct hang_standing *r)
{
	return is_out(r) && r->may_wait;
}

static bool is_with_another(const struct hang_standing *r)
{
	return is_out(r) && r->other_func;
}

static bool is_inside(const struct hang_standing *r)
{
	return r->posted && !r->done && !r->ended;
}

static bool is_inside_and_stopped(const struct hang_standing *r)
{
	return is_inside(r) && r->stopped;
}

static bool is_stopped(const struct hang_standing *r)
{
	return r->stopped;
}

static bool is_done(const struct hang_standing *r)
{
	return r->done;
}

static bool is_on_wire(const struct hang_standing *r)
{
	return is_inside(r) && r->wait == WAIT_WIRE;
}

static const struct hang_standing *first(const struct hang_comm *c, select_fn *wanted)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (wanted(&c->ranks[i]))
			return &c->ranks[i];
	return NULL;
}

/* ---- somebody has not come -------------------------------------------------- */

/* A tie: as many called the one first as the other, and nothing says which ranks are wrong. */
static void name_all_of_a_tie(const struct hang_comm *c, struct hang_verdict *out)
{
	uint32_t others = 0;

	for (uint32_t i = 0; i < c->n; i++)
		others += is_inside(&c->ranks[i]);
	if (others > out->nranks)
		return;
	for (uint32_t i = 0; i < c->n; i++)
		if (is_inside(&c->ranks[i]))
			name_rank(out, c->ranks[i].rank);
}

/* The missing ranks do not wait anywhere else. */
static bool is_decided(const struct hang_comm *c)
{
	return first(c, is_dead) || first(c, is_out_and_stopped) || first(c, is_with_another) ||
	       first(c, is_lost);
}

static uint32_t place_of(const uint32_t *list, uint32_t n, uint32_t what)
{
	uint32_t i = 0;

	while (i < n && list[i] != what)
		i++;
	return i;
}

/* Has the way come back to where it was? */
static bool take_circle(const uint32_t *path, uint32_t n, uint32_t at, struct hang_verdict *out)
{
	uint32_t begin = place_of(path, n, at);

	out->ncircle = n - begin;
	memcpy(out->circle, path + begin, out->ncircle * sizeof(at));
	return out->ncircle;
}

/* Go from communicator to communicator while the missing rank waits on another one. */
static void follow(const struct hang_input *in, uint32_t comm, struct hang_verdict *out)
{
	uint32_t path[HANG_CIRCLE];
	uint32_t n = 0;

	for (uint32_t at = comm; n < HANG_CIRCLE; n++) {
		const struct hang_standing *missing;

		if (take_circle(path, n, at, out))
			return;
		path[n] = at;
		out->comm = at;
		missing = first(&in->comms[at], hang_is_away);
		if (!missing || missing->elsewhere >= in->n)
			return;
		if (is_decided(&in->comms[at]))
			return;
		at = missing->elsewhere;
	}
}

static void name_process(const struct hang_comm *c, uint64_t process, struct hang_verdict *out)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->ranks[i].process == process)
			name_rank(out, c->ranks[i].rank);
}

static uint32_t circle_count(const struct hang_input *in, const struct hang_verdict *v,
			     uint32_t place)
{
	const struct hang_comm *c = &in->comms[v->circle[place]];
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n; i++)
		n += hang_leads_on(v, place, &c->ranks[i]);
	return n;
}

/* The circle from where the fewest ranks lead on: how many these are. */
static uint32_t circle_begin_with_few(const struct hang_input *in, struct hang_verdict *v)
{
	uint32_t least = UINT32_MAX, circle[HANG_CIRCLE], begin = 0;

	for (uint32_t i = 0; i < v->ncircle; i++) {
		uint32_t n = circle_count(in, v, i);

		if (n >= least)
			continue;
		least = n;
		begin = i;
	}
	for (uint32_t i = 0; i < v->ncircle; i++)
		circle[i] = v->circle[(begin + i) % v->ncircle];
	memcpy(v->circle, circle, v->ncircle * sizeof(circle[0]));
	return least;
}

/*
 * The few that went on to the next communicator before the many did: one such place opens the
 * circle.  They are named as ranks of the largest communicator, whose numbers all have in common.
 */
static void name_circle(const struct hang_input *in, struct hang_verdict *out)
{
	uint32_t few = circle_begin_with_few(in, out);

	out->verdict = VERDICT_COMM_DEADLOCK;
	out->nranks = 0;
	for (uint32_t i = 0; i < out->ncircle; i++)
		if (in->comms[out->circle[i]].n > in->comms[out->comm].n)
			out->comm = out->circle[i];
	for (uint32_t i = 0; i < out->ncircle; i++) {
		const struct hang_comm *c = &in->comms[out->circle[i]];

		if (circle_count(in, out, i) > few)
			continue;
		for (uint32_t k = 0; k < c->n; k++)
			if (hang_leads_on(out, i, &c->ranks[k]))
				name_process(&in->comms[out->comm], c->ranks[k].process, out);
	}
}

/* The way from communicator to communicator, and those that lead to no circle. */
struct walk {
	const struct hang_input *in;
	uint32_t path[HANG_CIRCLE], n;
	uint32_t seen[WALKED], nseen;
};

/* Somebody there explains more than a circle does. */
static bool explains_more(const struct hang_comm *c)
{
	return is_decided(c) || first(c, is_on_wire) || first(c, is_stopped);
}

static bool walk_in_a_circle(struct walk *w, uint32_t at, struct hang_verdict *out)
{
	const struct hang_comm *c;
	uint32_t *seen, *place;

	if (at >= w->in->n)
		return false;
	c = &w->in->comms[at];
	if (take_circle(w->path, w->n, at, out)) {
		out->comm = at;
		return true;
	}
	if (place_of(w->seen, w->nseen, at) < w->nseen || explains_more(c))
		return false;
	seen = array_add(w->seen, &w->nseen);
	place = seen ? array_add(w->path, &w->n) : NULL;
	if (!place)
		return false;
	*seen = *place = at;
	for (uint32_t i = 0; i < c->n; i++)
		if (hang_may_be_away(&c->ranks[i]) &&
		    walk_in_a_circle(w, c->ranks[i].elsewhere, out))
			return true;
	w->n--;
	return false;
}

/* Ranks of which nothing tells that they are inside wait for each other. */
static bool find_circle(const struct hang_input *in, uint32_t comm, struct hang_verdict *out)
{
	struct walk w = { .in = in };

	if (!walk_in_a_circle(&w, comm, out))
		return false;
	name_circle(in, out);
	return true;
}

/* ---- all are there ----------------------------------------------------------- */

/* Arguments that must be, or normally are, the same on all ranks; 0: not known. */
static uint64_t count_of(const struct hang_standing *r)
{
	return r->count == UNKNOWN_U64 ? 0 : r->count + 1;
}

static uint64_t datatype_of(const struct hang_standing *r)
{
	return (uintptr_t)r->datatype;
}

static uint64_t root_of(const struct hang_standing *r)
{
	return r->root == UNKNOWN_I32 ? 0 : (uint64_t)r->root + 1;
}

static uint64_t algo_of(const struct hang_standing *r)
{
	return (uintptr_t)r->algo;
}

static uint64_t proto_of(const struct hang_standing *r)
{
	return (uintptr_t)r->proto;
}

static uint64_t channels_of(const struct hang_standing *r)
{
	return r->channels;
}

static const struct same {
	name_t name;
	enum verdict verdict;
	uint64_t (*value)(const struct hang_standing *r);
} sames[] = {
	{ "count", VERDICT_METADATA_MISMATCH, count_of },
	{ "datatype", VERDICT_METADATA_MISMATCH, datatype_of },
	{ "root", VERDICT_METADATA_MISMATCH, root_of },
	{ "algo", VERDICT_CONFIG_MISMATCH, algo_of },
	{ "proto", VERDICT_CONFIG_MISMATCH, proto_of },
	{ "channels", VERDICT_CONFIG_MISMATCH, channels_of },
};

static uint32_t count_with(const struct hang_comm *c, const struct same *same, uint64_t value)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n; i++)
		n += is_inside(&c->ranks[i]) && same->value(&c->ranks[i]) == value;
	return n;
}

static uint64_t commonest(const struct hang_comm *c, const struct same *same)
{
	uint64_t best = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		uint64_t value = same->value(&c->ranks[i]);

		if (is_inside(&c->ranks[i]) && value &&
		    count_with(c, same, value) > (best ? count_with(c, same, best) : 0))
			best = value;
	}
	return best;
}

/* The few that differ from the many; where there are as many of each, all. */
static bool find_different(const struct hang_comm *c, const struct same *same,
			   struct hang_verdict *out)
{
	uint64_t usual = commonest(c, same);
	uint32_t usuals = usual ? count_with(c, same, usual) : 0, others = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		uint64_t value = same->value(&c->ranks[i]);

		others += is_inside(&c->ranks[i]) && value && value != usual;
	}
	if (!others)
		return false;
	out->verdict = same->verdict;
	out->field = same->name;
	out->nranks = 0;
	for (uint32_t i = 0; i < c->n; i++) {
		uint64_t value = same->value(&c->ranks[i]);

		if (is_inside(&c->ranks[i]) && value && (value != usual || others >= usuals))
			name_rank(out, c->ranks[i].rank);
	}
	return true;
}

/* ---- who waits for whom ------------------------------------------------------- */

static bool waits_for_peer(const struct hang_standing *r)
{
	return is_inside(r) && (r->wait == WAIT_CREDIT || r->wait == WAIT_RECV);
}

static bool is_blocked_by_own_gpu(const struct hang_standing *r)
{
	return is_inside(r) && !r->passes_on &&
	       (r->wait == WAIT_CONSUME || r->wait == WAIT_FLUSH);
}

static bool is_blocked_in_node(const struct hang_standing *r)
{
	return is_inside(r) && r->passes_on;
}

/* A transfer that got anywhere needed its kernel, whether or not that was told. */
static bool has_begun(const struct hang_standing *r)
{
	return r->kernel_started || r->done || r->step > 0;
}

bool hang_has_not_begun(const struct hang_standing *r)
{
	return is_inside(r) && r->wants_kernel && !has_begun(r);
}

static bool is_not_running(const struct hang_standing *r)
{
	return hang_has_not_begun(r) && !waits_for_peer(r);
}

static bool is_not_producing(const struct hang_standing *r)
{
	return is_inside(r) && r->wait == WAIT_PRODUCE && !is_not_running(r);
}

/* Most ranks that wait for their own GPU do so because that GPU waits for the first one. */
static bool is_furthest_behind(const struct hang_comm *c, const struct hang_standing *r)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (is_not_producing(&c->ranks[i]) && c->ranks[i].step < r->step)
			return false;
	return true;
}

static const struct hang_standing *rank_of(const struct hang_comm *c, int32_t rank)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->ranks[i].rank == rank)
			return &c->ranks[i];
	return NULL;
}

static bool waits_for_remote(const struct hang_comm *c, const struct hang_standing *r)
{
	return waits_for_peer(r) && r->peer != UNKNOWN_I32 && !rank_of(c, r->peer);
}

/*
 * A GPU first sends what is its own; later steps need what others have sent.  A rank that
 * waits for another node and is no further than this one is rather what this one waits for.
 */
static bool is_held_up_from_afar(const struct hang_comm *c, const struct hang_standing *r)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (waits_for_remote(c, &c->ranks[i]) && c->ranks[i].step <= r->step)
			return true;
	return false;
}

/* Are ranks of it on other nodes? */
static bool goes_elsewhere(const struct hang_comm *c)
{
	return c->nranks == UNKNOWN_I32 || (uint32_t)c->nranks > c->n;
}

/*
 * A kernel that nobody told of is missing only where others were told of.  And what a
 * rank elsewhere gives first needs nobody but itself: where that does not come, it is
 * gone, and the thread that would tell of a kernel here may have ended with the
 * connection to it.
 */
static bool is_untold(const struct hang_comm *c)
{
	uint32_t inside = 0, begun = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		if (waits_for_remote(c, &c->ranks[i]) && c->ranks[i].step <= 0)
			return true;
		inside += is_inside(&c->ranks[i]);
		begun += has_begun(&c->ranks[i]);
	}
	return goes_elsewhere(c) && inside > 1 && !begun;
}

static void keep_furthest_behind(const struct hang_comm *c, struct hang_verdict *out)
{
	out->nranks = 0;
	for (uint32_t i = 0; i < c->n; i++)
		if (is_not_producing(&c->ranks[i]) && is_furthest_behind(c, &c->ranks[i]) &&
		    !is_held_up_from_afar(c, &c->ranks[i]))
			name_rank(out, c->ranks[i].rank);
}

/* A rank without transfers; where no kernel is told of either, nothing tells that one is done. */
static bool is_silent_beside(const struct hang_standing *r, const struct hang_standing *stuck)
{
	return (is_inside(r) && r->wait == WAIT_NONE) || (!stuck->wants_kernel && r->done);
}

/* The GPU that is said to be stuck is past its first step: it may wait for another's data. */
static bool may_lack_data(const struct hang_comm *c, const struct hang_verdict *v)
{
	return v->nranks && rank_of(c, v->ranks[0])->step > 0;
}

/* A GPU past its first step may lack the data of ranks that have no transfers. */
static void add_silent(const struct hang_comm *c, struct hang_verdict *out)
{
	const struct hang_standing *behind = rank_of(c, out->ranks[0]);

	if (!may_lack_data(c, out))
		return;
	for (uint32_t i = 0; i < c->n; i++)
		if (is_silent_beside(&c->ranks[i], behind))
			name_rank(out, c->ranks[i].rank);
	out->one_of = out->nranks > 1;
}

static bool is_on_same_node(const struct hang_standing *a, const struct hang_standing *b)
{
	return !a->host || !b->host || !strcmp(a->host, b->host);
}

/*
 * A GPU that takes nothing more may wait for one of its node to which its data go: for those
 * without transfers, up to the one that has nothing for the network; for that one alone if it has
 * not given what is its own.
 */
static void add_node(const struct hang_comm *c, struct hang_verdict *out)
{
	const struct hang_standing *blocked = rank_of(c, out->ranks[0]);

	for (uint32_t i = 0; i < c->n; i++) {
		const struct hang_standing *r = &c->ranks[i];
		bool behind = is_not_producing(r) && is_furthest_behind(c, r);
		bool sure = behind && r->step <= 0;

		if (!is_on_same_node(blocked, r) || (!is_silent_beside(r, blocked) && !behind))
			continue;
		if (sure)
			out->nranks = 0;
		name_rank(out, r->rank);
		if (sure)
			break;
	}
	out->one_of = out->nranks > 1;
}

/*
 * A sender that waits for room at a receiver, which waits for what that one sends: the word
 * that there is room was not given, or is lost.  The furthest behind holds up all others.
 */
static bool find_no_room(const struct hang_comm *c, struct hang_verdict *out)
{
	const struct hang_standing *sender = NULL;

	for (uint32_t i = 0; i < c->n; i++) {
		const struct hang_standing *r = &c->ranks[i], *peer;

		if (!is_inside(r) || (sender && sender->room.step <= r->room.step))
			continue;
		peer = rank_of(c, r->room.peer);
		if (peer && is_inside(peer) && peer->data.peer == r->rank)
			sender = r;
	}
	if (!sender)
		return false;
	out->verdict = VERDICT_NO_ROOM;
	out->nranks = 0;
	name_rank(out, sender->room.peer);
	out->peer = sender->rank;
	return true;
}

static void name_peer(const struct hang_comm *c, struct hang_verdict *out)
{
	out->peer = first(c, is_on_wire)->peer;
}

static void drop_untold(const struct hang_comm *c, struct hang_verdict *out)
{
	if (is_untold(c))
		out->nranks = 0;
}

static void choose_producers(const struct hang_comm *c, struct hang_verdict *out)
{
	keep_furthest_behind(c, out);
	if (!may_lack_data(c, out) || !find_no_room(c, out))
		add_silent(c, out);
}

/*
 * A rank that waits for nobody else.  The surest sign first: what waits for its own
 * GPU may do so because that GPU waits for data in a way that cannot be seen.
 */
static const struct {
	select_fn *is;
	enum verdict verdict;
	/* NULL, or: all that are so are named, of whom it may leave none. */
	void (*choose)(const struct hang_comm *c, struct hang_verdict *out);
} sinks[] = {
	{ is_on_wire, VERDICT_LINK, name_peer },
	{ is_blocked_by_own_gpu, VERDICT_GPU_STUCK, NULL },
	{ is_blocked_in_node, VERDICT_GPU_STUCK, add_node },
	{ is_not_running, VERDICT_NOT_RUNNING, drop_untold },
	{ is_not_producing, VERDICT_GPU_STUCK, choose_producers },
};

static bool find_sink(const struct hang_comm *c, struct hang_verdict *out)
{
	for (size_t i = 0; i < ARRAY_LEN(sinks); i++) {
		if (!name_all(c, sinks[i].is, sinks[i].verdict, out))
			continue;
		if (sinks[i].choose)
			sinks[i].choose(c, out);
		if (out->nranks)
			return true;
	}
	return false;
}

/* Somebody of this node waits for a rank that is not on it. */
static bool find_remote(const struct hang_comm *c, struct hang_verdict *out)
{
	for (uint32_t i = 0; i < c->n; i++) {
		const struct hang_standing *r = &c->ranks[i];

		if (!waits_for_remote(c, r))
			continue;
		out->peer = r->peer;
		return true;
	}
	return false;
}

static void decide_together(const struct hang_comm *c, struct hang_verdict *out)
{
	bool remote = goes_elsewhere(c);

	for (size_t i = 0; i < ARRAY_LEN(sames); i++)
		if (find_different(c, &sames[i], out))
			return;
	if (name_all(c, is_inside_and_stopped, VERDICT_STOPPED, out))
		return;
	if (find_sink(c, out) || find_no_room(c, out))
		return;
	out->nranks = 0;
	out->verdict = VERDICT_UNKNOWN;
	out->remote = find_remote(c, out) || remote;
	if (out->peer != UNKNOWN_I32)
		return;
	if (first(c, is_done))
		name_all(c, is_inside, VERDICT_PARTIAL, out);
	else if (!remote)
		name_all(c, waits_for_peer, VERDICT_INTERNAL, out);
}

static void decide_at(const struct hang_input *in, uint32_t comm, struct hang_verdict *out)
{
	const struct hang_comm *c;

	*out = (struct hang_verdict){ .verdict = VERDICT_UNKNOWN, .comm = comm,
				       .peer = UNKNOWN_I32 };
	follow(in, comm, out);
	c = &in->comms[out->comm];
	if (out->ncircle) {
		name_circle(in, out);
		return;
	}
	if (name_all(c, is_dead, VERDICT_RANK_DEAD, out) ||
	    name_all(c, is_out_and_stopped, VERDICT_STOPPED, out))
		return;
	if (name_all(c, is_with_another, VERDICT_ORDER_MISMATCH, out)) {
		out->other_func = first(c, is_with_another)->other_func;
		name_all_of_a_tie(c, out);
		return;
	}
	if (name_all(c, is_lost, VERDICT_NOT_JOINED, out))
		return;
	if (find_circle(in, out->comm, out))
		return;
	out->may_wait = name_all(c, is_out_and_may_wait, VERDICT_UNKNOWN, out);
	if (!out->may_wait)
		decide_together(c, out);
}

/*
 * The communicator where all GPUs may still be that are said to be stuck, or to wait for each
 * other, before their first step; or HANG_NONE.  They need not have come to this one.
 */
static uint32_t stuck_elsewhere(const struct hang_input *in, const struct hang_verdict *v)
{
	const struct hang_comm *c = &in->comms[v->comm];
	uint32_t elsewhere = HANG_NONE;

	if (v->verdict != VERDICT_GPU_STUCK && v->verdict != VERDICT_INTERNAL)
		return HANG_NONE;
	for (uint32_t i = 0; i < v->nranks; i++) {
		const struct hang_standing *r = rank_of(c, v->ranks[i]);

		if (!r->may_be_away || r->step > 0 || (i && r->elsewhere != elsewhere))
			return HANG_NONE;
		elsewhere = r->elsewhere;
	}
	return elsewhere < in->n ? elsewhere : HANG_NONE;
}

void hang_decide(const struct hang_input *in, uint32_t comm, struct hang_verdict *out)
{
	for (uint32_t i = 0; i < HANG_CIRCLE && comm != HANG_NONE; i++) {
		decide_at(in, comm, out);
		comm = stuck_elsewhere(in, out);
	}
}

/*
 * A transfer hangs in the network, or a rank that is not seen is gone: progress threads of
 * other ranks end with the connection to it, in the middle of what they send to each other.
 */
bool hang_lies_afar(const struct hang_case *c)
{
	const struct hang_verdict *v = &c->verdict;
	const struct hang_comm *comm = &c->hang->comms[v->comm];

	return (v->verdict == VERDICT_LINK || (v->verdict == VERDICT_UNKNOWN && !v->may_wait)) &&
	       goes_elsewhere(comm);
}

void hang_hear(struct hang_case *c)
{
	struct hang_verdict *v = &c->verdict;

	if (!c->afar || !afar_names(c->afar) || !hang_lies_afar(c) ||
	    (v->verdict == VERDICT_LINK && c->afar->state != AFAR_SILENT &&
	     !afar_rank_of(c->afar, v->peer)))
		return;
	v->verdict = c->afar->state == AFAR_SILENT ? VERDICT_NO_ANSWER : VERDICT_NOT_JOINED;
	v->heard = true;
	v->nranks = 0;
	for (uint32_t i = 0; i < c->afar->n; i++)
		name_rank(v, c->afar->ranks[i].rank);
	v->peer = UNKNOWN_I32;
}

bool hang_is_proven(enum verdict verdict)
{
	return verdict == VERDICT_RANK_DEAD || verdict == VERDICT_STOPPED ||
	       verdict == VERDICT_ORDER_MISMATCH || verdict == VERDICT_METADATA_MISMATCH;
}

/* The cause is named, or else the verdict says no more than that ranks wait. */
static uint32_t case_doubt(const struct hang_case *c)
{
	if (c->verdict.may_wait)
		return 2;
	switch (c->verdict.verdict) {
	case VERDICT_NO_ROOM:
	case VERDICT_PARTIAL:
	case VERDICT_INTERNAL:
	case VERDICT_UNKNOWN:
		return 3;
	default:
		return !hang_is_proven(c->verdict.verdict);
	}
}

static const struct hang_group *case_group(const struct hang_case *c)
{
	return &c->hang->groups.at[c->verdict.comm];
}

bool hang_may_be_busy(const struct hang_case *c)
{
	return hang_is_absence(&c->verdict) ||
	       (c->verdict.verdict == VERDICT_COMM_DEADLOCK && case_group(c)->by_calls);
}

bool hang_explains(const struct hang_case *cause, const struct hang_case *c)
{
	uint32_t doubt = case_doubt(c), least = case_doubt(cause);

	if (!doubt || c->verdict.verdict == VERDICT_SLOW ||
	    cause->verdict.verdict == VERDICT_SLOW || case_group(cause)->job != case_group(c)->job)
		return false;
	if (least != doubt)
		return least < doubt;
	if (c->verdict.may_wait && cause->verdict.nranks != c->verdict.nranks)
		return cause->verdict.nranks > c->verdict.nranks;
	return case_group(cause)->op.enqueued_ns < case_group(c)->op.enqueued_ns;
}
