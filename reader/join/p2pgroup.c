/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL knows sends and receives only: the collective that they amount to is read off
 * their peers and bytes.
 */
#include "reader/join/p2pgroup.h"

#include <stdlib.h>

#define FEW_PEERS 2	/* peers: with no more, neighbours look like everybody */

/* One direction. */
struct side {
	uint32_t peers;		/* others */
	int32_t peer;		/* one of them */
	bool self;
	uint64_t bytes;		/* to or from the others */
	uint64_t self_bytes;
	uint64_t least, most;	/* per peer, oneself included */
	uint64_t most_other;
	bool unknown;		/* a size is not known, or the sum overflows */
};

const char *p2pgroup_name(enum p2p_class class)
{
	static const char *const names[P2P_CLASSES] = {
		NULL, "AlltoAll", "AlltoAllv", "Gather", "Scatter", "Shift", "SendRecv",
	};

	return names[class];
}

static int by_side_and_peer(const void *left, const void *right)
{
	const struct p2p_part *a = left, *b = right;

	if (a->is_send != b->is_send)
		return a->is_send ? -1 : 1;
	return (a->peer > b->peer) - (a->peer < b->peer);
}

static void side_add_peer(struct side *side, int32_t peer, uint64_t bytes, int32_t rank)
{
	bool first = !side->peers && !side->self;

	side->least = first || bytes < side->least ? bytes : side->least;
	side->most = bytes > side->most ? bytes : side->most;
	if (peer == rank) {
		side->self = true;
		side->self_bytes = bytes;
		return;
	}
	side->peers++;
	side->peer = peer;
	side->most_other = bytes > side->most_other ? bytes : side->most_other;
	side->unknown |= __builtin_add_overflow(side->bytes, bytes, &side->bytes);
}

/* The parts of one direction lie together, those of one peer too. */
static void side_sum(const struct p2p_part *parts, uint32_t n, bool sends, int32_t rank,
		     struct side *side)
{
	*side = (struct side){ 0 };
	for (uint32_t i = 0, k; i < n; i = k) {
		uint64_t bytes = 0;

		for (k = i; k < n && !by_side_and_peer(&parts[i], &parts[k]); k++)
			side->unknown |= parts[i].is_send == sends &&
					 (parts[k].bytes == UNKNOWN_U64 ||
					  __builtin_add_overflow(bytes, parts[k].bytes, &bytes));
		if (parts[i].is_send == sends)
			side_add_peer(side, parts[i].peer, bytes, rank);
	}
}

/*
 * The facts of a group that all ranks' descriptions have to allow for: see the top of the
 * header.
 */
struct group {
	struct side out, in;
	int32_t rank, nranks;
	uint32_t others;
	bool self;
};

static bool group_is_shift(const struct group *g, int32_t *shift)
{
	int64_t out = (int64_t)g->out.peer - g->rank, in = (int64_t)g->rank - g->in.peer;

	if (g->out.peers != 1 || g->in.peers != 1 || g->out.peer == g->in.peer)
		return false;
	if ((out - in) % g->nranks)
		return false;
	out = (out + g->nranks) % g->nranks;
	*shift = (int32_t)(out > g->nranks / 2 ? out - g->nranks : out);
	return true;
}

static bool sides_are_all(const struct group *g, const struct side *side)
{
	return side->peers == g->others && (g->self || g->others > FEW_PEERS);
}

static bool sides_are_many(const struct group *g, const struct side *side)
{
	return side->peers > FEW_PEERS && 2 * side->peers >= (uint32_t)g->nranks;
}

static bool sides_are_equal(const struct group *g)
{
	return g->out.least == g->out.most && g->in.least == g->in.most &&
	       g->out.most == g->in.most;
}

static enum p2p_class shape_class(const struct group *g, int32_t *shift)
{
	if (sides_are_all(g, &g->out) && sides_are_all(g, &g->in))
		return sides_are_equal(g) ? P2P_ALLTOALL : P2P_ALLTOALLV;
	if (sides_are_many(g, &g->out) && sides_are_many(g, &g->in))
		return P2P_ALLTOALLV;
	if (!g->out.peers)
		return sides_are_all(g, &g->in) ? P2P_GATHER : P2P_NONE;
	if (!g->in.peers)
		return sides_are_all(g, &g->out) ? P2P_SCATTER : P2P_NONE;
	return group_is_shift(g, shift) ? P2P_SHIFT : P2P_SENDRECV;
}

static uint64_t bytes_larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The bytes, with those that stay in the rank if an exchange counts them: one peer's share. */
static uint64_t side_whole(const struct group *g, const struct side *side, bool equal)
{
	return side->bytes + (equal ? side->most : g->self ? side->self_bytes : 0);
}

static double side_skew_of(const struct side *side, uint32_t peers)
{
	return peers > 1 && side->bytes ?
	       (double)side->most_other * peers / (double)side->bytes : 0;
}

static void shape_measure(const struct group *g, struct p2p_shape *shape)
{
	const struct side *out = &g->out, *in = &g->in;
	bool exchange = shape->class == P2P_ALLTOALL || shape->class == P2P_ALLTOALLV;

	shape->bytes = shape->bus_bytes = UNKNOWN_U64;
	if (out->unknown || in->unknown)
		return;
	if (exchange) {
		shape->bytes = bytes_larger(side_whole(g, out, sides_are_equal(g)),
					    side_whole(g, in, sides_are_equal(g)));
		shape->bus_bytes = out->bytes;
		shape->skew = side_skew_of(out, g->others);
	} else if (shape->class == P2P_GATHER || shape->class == P2P_SCATTER) {
		const struct side *side = in->peers ? in : out;

		shape->bytes = side_whole(g, side, side->least == side->most);
		shape->bus_bytes = side->bytes;
		shape->skew = side_skew_of(side, g->others);
	} else {
		shape->bytes = shape->bus_bytes = bytes_larger(out->bytes, in->bytes);
		shape->skew = side_skew_of(out, out->peers);
	}
}

void p2pgroup_shape(struct p2p_part *parts, uint32_t n, int32_t rank, int32_t nranks,
		    uint32_t silent, struct p2p_shape *shape)
{
	struct group g = { .rank = rank, .nranks = nranks, .others = (uint32_t)nranks - 1 };

	*shape = (struct p2p_shape){ .bytes = UNKNOWN_U64, .bus_bytes = UNKNOWN_U64 };
	if (nranks < 2 || rank < 0 || rank >= nranks)
		return;
	qsort(parts, n, sizeof(*parts), by_side_and_peer);
	side_sum(parts, n, true, rank, &g.out);
	side_sum(parts, n, false, rank, &g.in);
	g.self = g.out.self || g.in.self || silent > 1;
	if (g.out.peers + g.in.peers < 2)
		return;
	shape->class = shape_class(&g, &shape->shift);
	if (shape->class != P2P_NONE)
		shape_measure(&g, shape);
}
