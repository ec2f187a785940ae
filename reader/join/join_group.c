/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends and receives of one group, put together (p2pgroup.c says what they amount to).
 *
 * From API version 5 on a group is a GroupApi event, and its calls tell how many
 * transfers to wait for; a launch would be too little, since a large group is several.
 * Before, and for graph replays, whose calls were made at capture, it is a launch.
 */
#include "reader/join/join.h"
#include "reader/join/ops.h"
#include "reader/time/timeline.h"
#include "util/list.h"

#include <string.h>

#define MS UINT64_C(1000000)

#define FIRST_API_WITH_CALLS	5
#define QUIET_NS	(200 * MS)
#define MISSING_NS	(5000 * MS)	/* transfers that have not come by then do not come */
#define LAUNCH_NS	(60000 * MS)	/* the first launch may have to connect before */
#define SILENT_MOST	4		/* calls to oneself in place: two per exchange */

static uint64_t group_key_of(const struct recon *r, uint64_t token, uint32_t comm)
{
	const uint64_t words[] = { token, comm };

	return index_hash(r->group_index.seed, words, sizeof(words));
}

/* NULL: none has that key. */
static struct p2p_group *group_find(const struct recon *r, uint64_t key)
{
	uint32_t number = index_find(&r->group_index, key);

	return number == POOL_NONE ? NULL : pool_at(&r->groups, number);
}

/* Records that nobody will ever see: a process that lacks one cannot count its parts. */
static uint64_t group_lost(const struct process *p)
{
	return p->loss.overrun + p->loss.pool + p->loss.lane + p->loss.evicted;
}

static void group_drop(struct recon *r, struct p2p_group *g)
{
	for (struct recon_part *next, *part = g->parts; part; part = next) {
		next = part->next;
		pool_put_back(&r->parts, part);
	}
	index_remove(&r->group_index, g->key);
	pool_list_remove(&r->group_list, g);
	pool_put_back(&r->groups, g);
}

static void group_touch(struct recon *r, struct p2p_group *g, uint64_t now_ns)
{
	g->touched_ns = now_ns;
	pool_list_touch(&r->group_list, g);
}

static struct p2p_group *group_make(struct reconstruct *rc, struct recon *r, uint64_t token,
				    uint32_t comm, uint64_t now_ns)
{
	uint64_t key = group_key_of(r, token, comm);
	struct p2p_group *g = group_find(r, key);

	if (!g) {
		if (!recon_has_room(r, &r->groups) && r->group_list.first) {
			rc->stats.unnamed++;
			group_drop(r, r->group_list.first);
		}
		g = recon_take(r, &r->groups);
		if (!g)
			return NULL;
		g->key = key;
		g->op.token = token;
		g->lost = group_lost(r->process);
		index_set(&r->group_index, key, pool_number(g));
		pool_list_append(&r->group_list, g);
	}
	group_touch(r, g, now_ns);
	return g;
}

void join_group_call(struct reconstruct *rc, struct recon *r, const struct api_call *api,
		     uint64_t now_ns)
{
	struct p2p_group *g = NULL;

	if (api->group && !api->graph)
		g = group_make(rc, r, api->group, api->comm, now_ns);
	if (g)
		g->calls++;
}

void join_group_claim(struct recon *r, struct open_op *o, const struct api_call *api)
{
	struct p2p_group *g;

	if (!o->op.is_p2p || api->graph || !api->group)
		return;
	g = group_find(r, group_key_of(r, api->group, api->comm));
	if (!g)
		return;
	g->claimed++;
	g->open++;
	o->group_key = g->key;
}

void join_group_head(struct reconstruct *rc, struct recon *r, struct open_op *o,
		     uint64_t now_ns)
{
	struct p2p_group *g;

	if (!o->op.is_p2p || o->group_key || !o->op.group ||
	    (r->process->api_version >= FIRST_API_WITH_CALLS && !o->op.graph))
		return;
	g = group_make(rc, r, o->op.group, o->op.comm_index, now_ns);
	if (!g)
		return;
	g->open++;
	o->group_key = g->key;
}

/* ---- parts --------------------------------------------------------------- */

static void group_set_earliest(uint64_t *time, uint64_t candidate)
{
	if (candidate && (!*time || candidate < *time))
		*time = candidate;
}

static void group_set_latest(uint64_t *time, uint64_t candidate)
{
	if (candidate > *time)
		*time = candidate;
}

/* The fields that all parts have in common; the first one's values count. */
static void group_begin_op(struct op *sum, const struct op *part)
{
	struct op op = *part;

	op.token = sum->token;
	op.is_p2p = false;
	op.func = NULL;
	op.peer = UNKNOWN_I32;
	op.count = UNKNOWN_U64;
	op.channels = 0;
	op.fused = 0;
	op.batch_head = false;
	op.batch = 0;
	*sum = op;
}

static void group_add_op(struct op *sum, const struct op *part)
{
	group_set_earliest(&sum->api_start_ticks, part->api_start_ticks);
	group_set_earliest(&sum->start_ticks, part->start_ticks);
	group_set_latest(&sum->stop_ticks, part->stop_ticks);
	group_set_earliest(&sum->proxy_start_ticks, part->proxy_start_ticks);
	group_set_latest(&sum->proxy_stop_ticks, part->proxy_stop_ticks);
	group_set_earliest(&sum->kernel_start_ticks, part->kernel_start_ticks);
	group_set_latest(&sum->kernel_stop_ticks, part->kernel_stop_ticks);
	group_set_earliest(&sum->gpu_start_ns, part->gpu_start_ns);
	group_set_latest(&sum->gpu_stop_ns, part->gpu_stop_ns);
	sum->kernel_started += part->kernel_started;
	sum->kernel_stopped += part->kernel_stopped;
	sum->proxy_ops += part->proxy_ops;
	sum->proxy_steps += part->proxy_steps;
	sum->proxy_bytes += part->proxy_bytes;
	sum->stamps_refused += part->stamps_refused;
	sum->end_unstamped |= part->end_unstamped;
	sum->complete &= part->complete;
	if (sum->datatype != part->datatype)
		sum->datatype = NULL;
}

static void group_add_part(struct recon *r, struct p2p_group *g, const struct op *op)
{
	struct recon_part *part = recon_take(r, &r->parts);

	if (g->nparts++ == 0)
		group_begin_op(&g->op, op);
	else
		group_add_op(&g->op, op);
	if (op->peer != op->rank) {
		g->moving++;
		g->timed[op->source]++;
		if (op->source == TIMING_KERNEL_GPU && op->proxy_start_ticks)
			g->timed[TIMING_PROXY_CPU]++;	/* too, if another one is not on the GPU */
	}
	if (!part) {
		g->cut = true;
		return;
	}
	*part = (struct recon_part){
		.next = g->parts,
		.part = { op->peer, ops_is_send(op->func), op->bytes },
	};
	g->parts = part;
}

/* ---- the whole ----------------------------------------------------------- */

/* Times are those of the best source that timed all that moved; never mixed. */
static void keep_one_source(const struct p2p_group *g, struct op *op)
{
	if (g->timed[TIMING_KERNEL_GPU] == g->moving)
		return;
	op->gpu_start_ns = op->gpu_stop_ns = 0;
	if (g->timed[TIMING_KERNEL_CPU] == g->moving)
		return;
	op->kernel_start_ticks = op->kernel_stop_ticks = 0;
	if (g->timed[TIMING_PROXY_CPU] != g->moving)
		op->proxy_start_ticks = op->proxy_stop_ticks = 0;
}

static bool take_parts(const struct reconstruct *rc, const struct p2p_group *g)
{
	uint32_t n = 0;

	if (g->cut || g->nparts > JOIN_PARTS)
		return false;
	for (const struct recon_part *part = g->parts; part; part = part->next)
		*array_must_add(rc->scratch->part, &n) = part->part;
	return true;
}

/* Uneven or not, an exchange is one in the same row of exchanges. */
static enum p2p_class counter_of(enum p2p_class class)
{
	return class == P2P_ALLTOALLV ? P2P_ALLTOALL : class;
}

/*
 * A process that has missed a record may have missed a whole group: nobody knows which
 * one this is.
 */
static uint64_t next_seq(struct recon *r, const struct op *op, enum p2p_class class)
{
	struct recon_comm *rcomm = recon_comm(r, (uint16_t)op->comm_index);

	if (!rcomm || group_lost(r->process) || r->process->loss.before)
		return UNKNOWN_U64;
	return rcomm->p2p_seq[counter_of(class)]++;
}

static void group_tell(struct reconstruct *rc, struct recon *r, const struct p2p_group *g,
		       uint32_t silent, uint64_t now_ns)
{
	struct op op = g->op;
	struct p2p_shape shape;
	const char *name;

	p2pgroup_shape(rc->scratch->part, g->nparts, op.rank, op.nranks, silent, &shape);
	name = p2pgroup_name(shape.class);
	if (!name)
		return;
	op.func = names_intern(rc->names, r->process->account, name, strlen(name));
	op.seq = next_seq(r, &op, shape.class);
	op.root = shape.class == P2P_GATHER || shape.class == P2P_SCATTER ? op.rank : UNKNOWN_I32;
	op.parts = g->nparts;
	op.shift = shape.shift;
	op.skew = shape.skew;
	op.bytes = shape.bytes;
	op.bus_bytes = shape.bus_bytes;
	keep_one_source(g, &op);
	join_deliver(rc, r, &op, ops_facts(op.func), op.complete, now_ns);
}

static void group_close(struct reconstruct *rc, struct recon *r, struct p2p_group *g,
			uint32_t silent, uint64_t now_ns)
{
	if (g->nparts > 1) {
		if (silent <= SILENT_MOST && g->lost == group_lost(r->process) &&
		    take_parts(rc, g))
			group_tell(rc, r, g, silent, now_ns);
		else
			rc->stats.unnamed++;
	}
	group_drop(r, g);
}

void join_group_part(struct reconstruct *rc, struct recon *r, const struct open_op *o,
		     uint64_t now_ns)
{
	struct p2p_group *g = group_find(r, o->group_key);

	if (!g || !g->open)
		return;		/* its own was pushed out, and this is another one */
	g->open--;
	group_add_part(r, g, &o->op);
	group_touch(r, g, now_ns);
	if (!g->open && g->calls && g->claimed == g->calls)
		group_close(rc, r, g, 0, now_ns);
}

void join_finish_groups(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	for (struct p2p_group *next, *g = r->group_list.first; g; g = next) {
		uint32_t silent = g->calls - g->claimed;
		uint64_t wait_ns = g->calls > g->claimed + SILENT_MOST ? MISSING_NS : QUIET_NS;

		next = pool_list_next(&r->group_list, g);
		if (now_ns < g->touched_ns + QUIET_NS)
			break;
		if (!g->nparts)
			wait_ns = LAUNCH_NS;
		if (!g->open && now_ns >= g->touched_ns + wait_ns)
			group_close(rc, r, g, silent, now_ns);
	}
}

void join_end_groups(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	for (struct p2p_group *g; (g = r->group_list.first);) {
		if (g->open)
			group_drop(r, g);
		else
			group_close(rc, r, g, g->calls - g->claimed, now_ns);
	}
}
