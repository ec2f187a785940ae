/* SPDX-License-Identifier: Apache-2.0 */
/*
 * API calls: what the application asked for, in its own terms.  A call waits for
 * the operation that names it as parent; an operation that was read first waits
 * for its call.
 */
#include <string.h>

#include "ncclinspd/join.h"
#include "ncclinspd/ops.h"

#define FIRST_API_WITH_CALLS	5	/* CollApi and P2pApi as parents */

static void fill_from_api(struct op *op, const struct api_call *api)
{
	uint64_t bytes = ops_size(ops_facts(op->func), api->count,
				  ops_datatype_bytes(api->datatype), op->nranks);

	op->count = api->count;
	op->datatype = ops_known_type(api->datatype);
	if (bytes != UNKNOWN_U64)
		op->bytes = bytes;
	op->has_graph = true;
	op->graph = api->graph;
	if (!api->graph)	/* a replay is launched, not called for */
		op->api_start_ticks = api->start_ticks;
}

void join_op_from_api(struct reconstruct *rc, struct recon *r, const struct api_call *api,
		      struct op *op)
{
	memset(op, 0, sizeof(*op));
	join_init_op(r, op, api->token, api->seen_ns);
	join_fill_comm(rc, r, op, api->comm);
	op->api_only = true;
	op->is_p2p = api->is_p2p;
	op->func = api->func;
	op->root = ops_root(api->func, api->root);
	op->start_ticks = api->start_ticks;
	op->stop_ticks = api->stop_ticks;
	fill_from_api(op, api);
}

void join_finish_api(struct reconstruct *rc, struct recon *r, uint32_t item, bool complete,
		     uint64_t now_ns)
{
	struct op op;

	join_op_from_api(rc, r, recon_api(r, item), &op);
	join_deliver(rc, r, &op, complete, now_ns);
	recon_drop_api(r, item);
}

/* One call gives one operation, except under graph capture: there, one per replay. */
bool join_api(struct recon *r, struct open_op *o)
{
	uint32_t item;
	struct api_call *api;

	if (recon_find(r, o->api_token, &item) != RECON_API)
		return false;
	api = recon_api(r, item);
	fill_from_api(&o->op, api);
	if (api->graph) {
		pool_list_remove(&r->apis, &r->captured, item);
		pool_list_append(&r->apis, &r->captured, item);
	} else {
		recon_drop_api(r, item);
	}
	return true;
}

void join_stop_waiting(struct reconstruct *rc, struct recon *r, uint32_t item,
		       uint64_t now_ns)
{
	pool_list_remove(&r->ops, &r->waiting, item);
	recon_op(r, item)->waits = false;
	join_advance(rc, r, item, now_ns);
}

void join_look_for_api(struct recon *r, uint32_t op_item)
{
	struct open_op *o = recon_op(r, op_item);
	uint32_t item;

	if (!o->api_token || r->process->api_version < FIRST_API_WITH_CALLS || join_api(r, o))
		return;
	if (recon_find(r, o->api_token, &item) != RECON_NONE)
		return;		/* claimed before, or no API call at all */
	o->waits = true;
	pool_list_append(&r->ops, &r->waiting, op_item);
}

/* An unclaimed call goes first, and counts: most likely nothing more comes of it. */
static void make_room_for_api(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	if (r->apis.used < r->apis.capacity)
		return;
	if (r->calls.first != POOL_NONE)
		join_finish_api(rc, r, r->calls.first, true, now_ns);
	else
		recon_drop_api(r, r->captured.first);
}

static struct api_call *new_api(struct reconstruct *rc, struct recon *r,
				const struct nci_record *rec, uint64_t now_ns)
{
	struct api_call *api;
	uint32_t item;

	make_room_for_api(rc, r, now_ns);
	item = recon_take_api(r, rec->token);
	if (item == POOL_NONE)
		return NULL;
	api = recon_api(r, item);
	api->group = rec->parent;
	api->start_ticks = rec->start;
	api->stop_ticks = rec->stop;
	api->seen_ns = now_ns;
	api->comm = rec->comm;
	api->root = UNKNOWN_I32;
	api->graph = rec->form & NCI_FORM_GRAPH;
	pool_list_append(&r->apis, api->graph ? &r->captured : &r->calls, item);
	return api;
}

void join_on_coll_api(struct reconstruct *rc, struct recon *r, const struct event *ev,
			uint64_t now_ns)
{
	const struct nci_ev_coll_api *c = EVENT(ev, coll_api);
	struct api_call *api = new_api(rc, r, ev->rec, now_ns);

	if (!api)
		return;
	api->func = process_name(r->process, c->func);
	api->datatype = process_name(r->process, c->datatype);
	api->count = c->count;
	api->root = c->root;
}

void join_on_p2p_api(struct reconstruct *rc, struct recon *r, const struct event *ev,
		       uint64_t now_ns)
{
	const struct nci_ev_p2p_api *c = EVENT(ev, p2p_api);
	struct api_call *api = new_api(rc, r, ev->rec, now_ns);

	if (!api)
		return;
	api->is_p2p = true;
	api->func = process_name(r->process, c->func);
	api->datatype = process_name(r->process, c->datatype);
	api->count = c->count;
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
