/* SPDX-License-Identifier: Apache-2.0 */
/*
 * API calls: what the application asked for, in its own terms.  A call waits for
 * the operation that names it as parent; an operation that was read first waits
 * for its call.  Most calls are claimed by the next head: the newest waits outside of all tables.
 */
#include <string.h>

#include "nci/token.h"
#include "reader/join/join.h"
#include "reader/join/ops.h"
#include "reader/time/timeline.h"

#define MS UINT64_C(1000000)

#define FIRST_API_WITH_CALLS	5	/* CollApi and P2pApi as parents */
#define API_ONLY_NS	(1000 * MS)	/* a call that is alone by then stays so */
#define API_LOST_NS	(60000 * MS)	/* ... when nothing told that it is */

static inline void fill_from_api(struct recon *r, struct op *op, const struct op_facts *facts,
			  const struct api_call *api)
{
	const struct ops_word *type = ops_word(&r->words, api->datatype);
	uint64_t bytes = ops_size(facts, api->count, type->type_bytes, op->nranks);

	op->count = api->count;
	op->datatype = ops_known_type(type);
	if (bytes != UNKNOWN_U64)
		op->bytes = bytes;
	if (!op->tag)		/* another thread than the caller has launched it */
		op->tag = api->tag;
	op->has_graph = true;
	op->graph = api->graph;
	if (!api->graph)	/* a replay is launched, not called for */
		op->api_start_ticks = api->start_ticks;
}

const struct op_facts *join_op_from_api(struct reconstruct *rc, struct recon *r,
					const struct api_call *api, struct op *op)
{
	const struct op_facts *facts = ops_word(&r->words, api->func)->facts;

	memset(op, 0, sizeof(*op));
	join_init_op(r, op, api->token, api->seen_ns);
	join_fill_comm(rc, r, op, api->comm, process_comm(r->process, api->comm));
	op->api_only = true;
	op->is_p2p = api->is_p2p;
	op->func = api->func;
	op->root = ops_root(facts, api->root);
	op->tag = api->tag;
	op->start_ticks = api->start_ticks;
	op->stop_ticks = api->stop_ticks;
	fill_from_api(r, op, facts, api);
	return facts;
}

/* Hand on an operation that only its API call tells of, and drop it. */
static void join_finish_api(struct reconstruct *rc, struct recon *r, struct api_call *api,
			    uint64_t now_ns)
{
	struct op op;
	const struct op_facts *facts = join_op_from_api(rc, r, api, &op);

	join_deliver(rc, r, &op, facts, true, now_ns);
	recon_drop_api(r, api);
}

/*
 * A nonblocking communicator launches on a thread of its own, when the call's group has
 * long ended.
 */
static void note_thread(struct recon *r, uint64_t head, const struct api_call *api)
{
	if (api->graph)
		return;		/* launched by whoever replays it */
	if (nci_token_lane(head) == nci_token_lane(api->token))
		r->launches_here = true;
	else
		r->launches_apart = true;
}

/* One call gives one operation, except under graph capture: there, one per replay. */
inline bool join_api(struct recon *r, struct open_op *o)
{
	struct api_call *call = &r->newest_call;

	if (o->api_token != call->token) {
		struct recon_found found = recon_find(r, o->api_token);

		if (found.kind != RECON_API)
			return false;
		call = found.item;
	}
	fill_from_api(r, &o->op, o->facts, call);
	join_group_claim(r, o, call);
	note_thread(r, o->op.token, call);
	if (call == &r->newest_call)
		call->token = 0;
	else if (call->graph)
		pool_list_touch(&r->captured, call);
	else
		recon_drop_api(r, call);
	return true;
}

void join_stop_waiting(struct reconstruct *rc, struct recon *r, struct open_op *o,
		       uint64_t now_ns)
{
	pool_list_remove(&r->waiting, o);
	o->waits = false;
	join_group_head(rc, r, o, now_ns);
	join_advance(rc, r, o, now_ns);
}

void join_look_for_api(struct recon *r, struct open_op *o)
{
	if (!o->api_token || r->process->api_version < FIRST_API_WITH_CALLS || join_api(r, o))
		return;
	if (recon_find(r, o->api_token).kind != RECON_NONE)
		return;		/* claimed before, or no API call at all */
	o->waits = true;
	pool_list_append(&r->waiting, o);
}

/* An unclaimed call goes first, and counts: most likely nothing more comes of it. */
static void make_room_for_api(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	if (recon_has_room(r, &r->apis))
		return;
	if (r->calls.first)
		join_finish_api(rc, r, r->calls.first, now_ns);
	else if (r->captured.first)
		recon_drop_api(r, r->captured.first);
}

/* The newest call goes on the list that its token is found by; before it is in neither. */
void join_put_call_away(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	struct api_call newest, *api;

	if (!r->newest_call.token)
		return;
	newest = r->newest_call;
	r->newest_call.token = 0;
	make_room_for_api(rc, r, now_ns);
	api = recon_take_api(r, newest.token);
	if (!api)
		return;
	*api = newest;
	pool_list_append(api->graph ? &r->captured : &r->calls, api);
}

/* It is the newest one then.  NULL: its token stands for something. */
static inline struct api_call *call_new(struct reconstruct *rc, struct recon *r,
					const struct nci_record *rec, uint64_t now_ns)
{
	struct api_call *call = &r->newest_call;

	if (call->token)
		join_put_call_away(rc, r, now_ns);
	if (r->apis.used && recon_find(r, rec->token).kind != RECON_NONE)
		return NULL;
	call->token = rec->token;
	call->group = rec->parent;
	call->start_ticks = rec->start;
	call->stop_ticks = rec->stop;
	call->seen_ns = now_ns;
	call->comm = rec->comm;
	call->graph = rec->form & NCI_FORM_GRAPH;
	return call;
}

/* Its communicator, not before older calls made way, which may take that one's room. */
static inline struct recon_comm *call_comm(struct recon *r, const struct api_call *call)
{
	struct recon_comm *rcomm = recon_comm(r, call->comm);

	if (rcomm && call->start_ticks > rcomm->last_call)
		rcomm->last_call = call->start_ticks;
	return rcomm;
}

/* A captured call is kept with others, since its head may be read again and again. */
static void call_is_filled(struct reconstruct *rc, struct recon *r, const struct api_call *call,
			   uint64_t now_ns)
{
	if (call->graph)
		join_put_call_away(rc, r, now_ns);
}

static uint64_t call_tag(uint64_t tag, const struct nci_record *rec)
{
	return NCI_FORM_LINES(rec->form) == 2 ? tag : 0;
}

/* Threads' records are read one thread after another: calls are put into their order here. */
static void called_add(struct recon_comm *rcomm, const struct called *called)
{
	struct called *ring = rcomm->progress.call;
	uint32_t oldest = rcomm->next_call, at = oldest;

	if (ring[oldest].start_ns > called->start_ns)
		return;		/* older than all that are kept */
	for (uint32_t before;; at = before) {
		before = (at - 1) % RECONSTRUCT_CALLS;
		if (before == oldest || ring[before].start_ns <= called->start_ns)
			break;
		ring[at] = ring[before];
	}
	ring[at] = *called;
	rcomm->next_call = (oldest + 1) % RECONSTRUCT_CALLS;
}

/* Its ranks make the same calls in the same order: that is how one that hangs is told. */
static void call_note(const struct recon *r, struct recon_comm *rcomm, const struct api_call *call)
{
	uint64_t posted_ns = timeline_mono(&r->process->clock, call->start_ticks);
	struct comm_progress *progress;

	if (!rcomm)
		return;
	progress = &rcomm->progress;
	if (!progress->calls++)
		rcomm->lost_at_first = process_lost(r->process);
	called_add(rcomm, &(struct called){
		.start_ns = posted_ns, .func = call->func, .datatype = call->datatype,
		.count = call->count, .root = call->root,
	});
	progress->tag = call->tag;
	if (posted_ns > progress->last_op_ns) {
		progress->last_op_ns = posted_ns;
		progress->last_func = call->func;
		progress->last_func_seq = UNKNOWN_U64;
		progress->last_unwatched = true;
	}
}

void join_on_coll_api(struct reconstruct *rc, struct recon *r, const struct event *ev,
			uint64_t now_ns)
{
	const struct nci_ev_coll_api *c = EVENT(ev, coll_api);
	const struct process *p = r->process;
	struct api_call *call = call_new(rc, r, ev->rec, now_ns);

	if (!call)
		return;
	call->is_p2p = false;
	call->func = process_name(p, c->func);
	call->datatype = process_name(p, c->datatype);
	call->count = c->count;
	call->root = c->root;
	call->tag = call_tag(c->tag, ev->rec);
	call_note(r, call_comm(r, call), call);
	call_is_filled(rc, r, call, now_ns);
}

void join_on_p2p_api(struct reconstruct *rc, struct recon *r, const struct event *ev,
		       uint64_t now_ns)
{
	const struct nci_ev_p2p_api *c = EVENT(ev, p2p_api);
	struct api_call *call = call_new(rc, r, ev->rec, now_ns);

	if (!call)
		return;
	call->is_p2p = true;
	call->func = process_name(r->process, c->func);
	call->datatype = process_name(r->process, c->datatype);
	call->count = c->count;
	call->root = UNKNOWN_I32;
	call->tag = call_tag(c->tag, ev->rec);
	call_comm(r, call);
	join_group_call(rc, r, call, now_ns);
	call_is_filled(rc, r, call, now_ns);
}

/*
 * Calls in it that gave no operation by now hardly will, if it was a single call.  Of
 * a group NCCL tells the end too early where another one was opened inside: at the
 * inner end, long before anything is launched.
 */
void join_on_group_api(struct reconstruct *rc, struct recon *r, const struct event *ev,
			 uint64_t now_ns)
{
	(void)rc;
	(void)now_ns;
	recon_remember(r, ev->rec->token,
		       EVENT(ev, group_api)->depth <= 1 ? RECON_CALL : RECON_GROUP);
}

/* ---- calls that stay alone ----------------------------------------------- */

bool join_has_returned(struct recon *r, const struct api_call *api)
{
	return !api->group || recon_find(r, api->group).kind >= RECON_GROUP;
}

/*
 * A single call whose group has ended, which is after its launch, if there was one, but
 * for communicators that launch on a thread of their own.
 */
static bool call_was_single(struct recon *r, const struct api_call *api)
{
	return !r->launches_apart &&
	       (!api->group || recon_find(r, api->group).kind == RECON_CALL);
}

/*
 * It will hardly become more than a call: it was made alone, and its communicator does not
 * launch for the first time, which a nonblocking one does late; or its communicator has
 * launched something since, or was called again much later, which it is not before its
 * first launch.
 */
static bool call_is_alone(struct recon *r, const struct api_call *api)
{
	const struct recon_comm *rcomm = recon_comm(r, api->comm);
	const struct tick_clock *clock = &r->process->clock;
	uint64_t called_ns = timeline_mono(clock, api->start_ticks);

	if (r->launches_here && call_was_single(r, api) && (!rcomm || rcomm->launched_ns))
		return true;
	return rcomm && (rcomm->launched_ns > called_ns ||
			 timeline_mono(clock, rcomm->last_call) > called_ns + API_ONLY_NS);
}

void join_finish_calls(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	for (struct api_call *next, *api = r->calls.first; api; api = next) {
		next = pool_list_next(&r->calls, api);
		if (now_ns < api->seen_ns + API_ONLY_NS)
			break;
		if (now_ns >= api->seen_ns + API_LOST_NS || call_is_alone(r, api))
			join_finish_api(rc, r, api, now_ns);
	}
}

void join_end_calls(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	for (struct api_call *next, *api = r->calls.first; api; api = next) {
		struct op op;

		next = pool_list_next(&r->calls, api);
		if (call_was_single(r, api) || call_is_alone(r, api)) {
			join_finish_api(rc, r, api, now_ns);
			continue;
		}
		join_deliver(rc, r, &op, join_op_from_api(rc, r, api, &op), false, now_ns);
	}
}
