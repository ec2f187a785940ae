/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings take the next rank and the one before; trees go from node to node, half of
 * the channels along a second tree in which leaves of the first are forks; PAT
 * knows the ranks that are a power of two away.
 */
#include "tests/sim/wire.h"

#include <string.h>

#define FIFO_STEPS	8	/* NCCL_STEPS: so much of a buffer is one step */
#define PAT_CHUNK	65536
#define P2P_LEAST	32768

static uint64_t divide_up(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

/* ---- how much ---- */

/* One step of a FIFO: what the application's data take of it, and what goes out. */
struct fifo {
	const char *proto;
	uint64_t payload, wire;		/* 0: what the scenario says */
};

static const struct fifo fifos[] = {
	{ "ll", 32768, 65536 },		/* half of it is flags */
	{ "ll128", 576000, 614400 },	/* one word in sixteen */
	{ "simple", 0, 0 },
};

static struct fifo fifo_of(const struct task *t)
{
	const char *proto = names_get(NAMES_PROTO, t->op.spec->proto)->word;
	struct fifo f = fifos[2];

	for (int i = 0; i < 2; i++)
		if (!strcmp(proto, fifos[i].proto))
			f = fifos[i];
	if (!f.payload)
		f.payload = f.wire = t->member->player->scn->chunk_bytes;
	return f;
}

/* A ring's collective: so many FIFO steps make a chunk, and so many a transfer. */
struct ring_shape {
	int chunk, slice;
	int rounds;			/* in n - 1 chunks each; 0: in one chunk */
};

static const struct ring_shape ring_shapes[FUNC_COUNT] = {
	[FUNC_ALL_REDUCE]	= { 4, 2, 2 },
	[FUNC_ALL_GATHER]	= { 4, 2, 1 },
	[FUNC_REDUCE_SCATTER]	= { 4, 2, 1 },
	[FUNC_BROADCAST]	= { 1, 1, 0 },
	[FUNC_REDUCE]		= { 1, 1, 0 },
	[FUNC_ALL_TO_ALL]	= { 1, 1, 0 },
};

/* The buffer is gone through in loops, each of one chunk for every rank. */
static struct wire ring_wire(const struct task *t)
{
	const struct ring_shape *shape = &ring_shapes[t->op.spec->func];
	const struct fifo fifo = fifo_of(t);
	bool big = !strcmp(fifo.proto, "simple");
	uint64_t per_channel = divide_up(t->op.bytes, t->op.nchannels);
	uint64_t chunk = fifo.payload * (big ? shape->chunk : 1);
	int n = t->op.comm->nranks, slice = big ? shape->slice : 1;
	int chunks = shape->rounds ? shape->rounds * (n - 1) : 1;
	uint64_t loops = divide_up(per_channel, shape->rounds ? chunk * n : chunk);
	double payload = (double)per_channel * chunks / (shape->rounds ? n : 1);

	return (struct wire){
		.nsteps = (int)loops * chunks * (big ? shape->chunk : 1) / slice,
		.window = FIFO_STEPS / slice, .chunk = (int)chunk * slice,
		.bytes = (uint64_t)(payload * fifo.wire / fifo.payload) };
}

/* All of a channel's data, up and down. */
static struct wire tree_wire(const struct task *t)
{
	const struct fifo fifo = fifo_of(t);
	uint64_t payload = divide_up(t->op.bytes, t->op.nchannels);

	return (struct wire){
		.nsteps = (int)divide_up(payload, fifo.payload), .window = FIFO_STEPS,
		.chunk = (int)fifo.payload,
		.bytes = (uint64_t)((double)payload * fifo.wire / fifo.payload) };
}

/* Of n ranks' parts, those that go this far: the first of every 2 x distance. */
static struct wire pat_wire(const struct task *t, int distance)
{
	int n = t->op.comm->nranks;
	uint64_t part = divide_up(t->op.bytes, (uint64_t)n * t->op.nchannels);
	uint64_t bytes = part * divide_up(n - distance, 2 * distance);

	return (struct wire){ .nsteps = (int)divide_up(bytes, PAT_CHUNK), .window = FIFO_STEPS,
			      .chunk = PAT_CHUNK, .bytes = bytes };
}

/* Small transfers have smaller chunks, down to a limit. */
static struct wire p2p_wire(const struct task *t)
{
	uint64_t bytes = divide_up(t->op.bytes, t->op.nchannels);
	uint64_t chunk = t->member->player->scn->chunk_bytes / 4;

	while (chunk > P2P_LEAST && chunk / 2 >= bytes)
		chunk /= 2;
	chunk = chunk ? chunk : 1;
	return (struct wire){ .nsteps = (int)divide_up(bytes, chunk), .window = FIFO_STEPS,
			      .chunk = (int)chunk, .bytes = bytes };
}

/* ---- who ---- */

struct wires {
	const struct task *task;
	struct wire *wire;
	int n;
};

/* A connection, if there is a peer and it is on another node. */
static void wires_add(struct wires *w, bool send, int peer, struct wire wire)
{
	const struct scenario *scn = w->task->member->player->scn;
	const int *world = w->task->op.comm->world;

	if (peer < 0 || w->n == WIRE_MAX || scenario_node_of(scn, world[peer]) ==
	    scenario_node_of(scn, world[w->task->side.rank]))
		return;
	wire.send = send;
	wire.peer = peer;
	w->wire[w->n++] = wire;
}

/* A Broadcast's chain begins at its root and a Reduce's ends there: no ring is closed. */
static bool leaves_chain(const struct sim_op *spec, int from, int to)
{
	return (spec->func == FUNC_BROADCAST && to == spec->root) ||
	       (spec->func == FUNC_REDUCE && from == spec->root);
}

static void wires_add_ring(struct wires *w)
{
	const struct plan_op *op = &w->task->op;
	int n = op->comm->nranks, self = w->task->side.rank;
	int next = (self + 1) % n, prev = (self + n - 1) % n;
	struct wire wire = ring_wire(w->task);

	wires_add(w, false, leaves_chain(op->spec, prev, self) ? -1 : prev, wire);
	wires_add(w, true, leaves_chain(op->spec, self, next) ? -1 : next, wire);
}

struct tree {
	int up, down[2];		/* -1: none */
};

/* An in-order tree of n nodes: leaves are odd, below them nothing, and 0 is on top. */
static struct tree tree_of(int n, int i)
{
	int bit = i ? i & -i : 1, half;
	struct tree t = { -1, { -1, -1 } };

	while (!i && bit < n)
		bit *= 2;
	half = bit / 2;
	if (!i) {
		t.down[1] = n > 1 ? half : -1;
		return t;
	}
	t.up = (i ^ bit) | (bit * 2);
	if (t.up >= n)
		t.up = i ^ bit;
	t.down[0] = half ? i - half : -1;
	while (half && i + half >= n)
		half /= 2;
	t.down[1] = half ? i + half : -1;
	return t;
}

/* The second tree is the first one mirrored or, of an odd number of nodes, turned by one. */
static struct tree second_tree_of(int n, int i)
{
	int turn = n % 2, *peer[3];
	struct tree t = tree_of(n, turn ? (i + n - 1) % n : n - 1 - i);

	peer[0] = &t.up;
	peer[1] = &t.down[0];
	peer[2] = &t.down[1];
	for (int k = 0; k < 3; k++)
		if (*peer[k] >= 0)
			*peer[k] = turn ? (*peer[k] + 1) % n : n - 1 - *peer[k];
	return t;
}

/* The first rank of each node speaks for it; how many nodes, and which one is ours. */
static int heads_of(const struct task *t, int *head, int *own)
{
	const struct scenario *scn = t->member->player->scn;
	const struct sim_comm *c = t->op.comm;
	int n = 0;

	*own = -1;
	for (int r = 0; r < c->nranks; r++) {
		int i = 0;

		while (i < n && scenario_node_of(scn, c->world[head[i]]) !=
				scenario_node_of(scn, c->world[r]))
			i++;
		if (i < n)
			continue;
		head[n] = r;
		if (r == t->side.rank)
			*own = n;
		n++;
	}
	return n;
}

static void wires_add_tree(struct wires *w, int index)
{
	int head[SCENARIO_MAX_RANKS], own, n = heads_of(w->task, head, &own);
	struct wire wire = tree_wire(w->task);
	struct tree tree;

	if (own < 0)
		return;
	tree = index < (w->task->op.nchannels + 1) / 2 ? tree_of(n, own) : second_tree_of(n, own);
	for (int up = 1; up >= 0; up--) {	/* towards the top, and back again */
		for (int d = 0; d < 2; d++)
			wires_add(w, !up, tree.down[d] < 0 ? -1 : head[tree.down[d]], wire);
		wires_add(w, up, tree.up < 0 ? -1 : head[tree.up], wire);
	}
}

static void wires_add_pat(struct wires *w)
{
	int n = w->task->op.comm->nranks, self = w->task->side.rank;
	bool gather = w->task->op.spec->func == FUNC_ALL_GATHER;

	for (int d = 1; d < n; d *= 2) {
		int before = (self + n - d) % n, after = (self + d) % n;
		struct wire wire = pat_wire(w->task, d);

		wires_add(w, true, gather ? before : after, wire);
		wires_add(w, false, gather ? after : before, wire);
	}
}

static bool task_has_algo(const struct task *t, const char *word)
{
	return !strcmp(names_get(NAMES_ALGO, t->op.spec->algo)->word, word);
}

bool wire_reduces(const struct task *t)
{
	return t->side.peer < 0 && t->op.comm->nnodes > 1 &&
	       (task_has_algo(t, "collnet_direct") || task_has_algo(t, "collnet_chain") ||
		task_has_algo(t, "nvls"));
}

/* The other end is the network, which is one more rank; NCCL calls neither way a send. */
static int find_network(const struct task *t, struct wire *wire)
{
	for (int i = 0; i < 2; i++) {
		wire[i] = ring_wire(t);
		wire[i].silent = true;
		wire[i].send = false;
		wire[i].peer = t->op.comm->nranks;
	}
	return 2;
}

int wire_find(const struct task *t, int index, struct wire *wire)
{
	enum sim_func func = t->op.spec->func;
	struct wires w = { .task = t, .wire = wire };

	if (!t->side.moves || t->side.peer == t->side.rank)
		return 0;
	if (wire_reduces(t))
		return find_network(t, wire);
	if (t->side.peer >= 0)
		wires_add(&w, t->side.func == FUNC_SEND, t->side.peer, p2p_wire(t));
	else if (func == FUNC_ALL_REDUCE &&
		 (task_has_algo(t, "tree") || task_has_algo(t, "nvls_tree")))
		wires_add_tree(&w, index);
	else if ((func == FUNC_ALL_GATHER || func == FUNC_REDUCE_SCATTER) &&
		 task_has_algo(t, "pat"))
		wires_add_pat(&w);
	else
		wires_add_ring(&w);
	return w.n;
}

bool wire_any(const struct task *t, bool sends_only)
{
	struct wire wire[WIRE_MAX];

	for (int c = 0; c < t->op.nchannels; c++) {
		int n = wire_find(t, c, wire);

		for (int i = 0; i < n; i++)
			if (wire[i].send || !sends_only)
				return true;
	}
	return false;
}
