/* SPDX-License-Identifier: Apache-2.0 */
/* Who talks to whom over the network, and in how many steps: as a real NCCL was seen to. */
#include <stdio.h>
#include <string.h>

#include "nccl/profiler.h"
#include "tests/fixture.h"
#include "tests/fixture_sim.h"
#include "tests/sim/plan.h"
#include "tests/sim/probe.h"
#include "tests/sim/wire.h"

struct view {
	struct scenario *scn;
	struct plan *plan;
	const struct plan_op *op;
	struct player player;
	struct member member;
};

static void look(struct view *v, const char *text)
{
	const struct plan_step *step;

	memset(v, 0, sizeof(*v));
	v->scn = fx_scenario(text);
	v->player.scn = v->scn;
	ck_assert_int_eq(plan_new(&v->plan, v->scn), 0);
	ck_assert_int_eq(plan_next(v->plan, &step), 0);
	v->op = step->op;
}

static void look_away(struct view *v)
{
	plan_free(v->plan);
	scenario_free(v->scn);
}

static int wires_of(struct view *v, int rank, int index, struct wire *wire)
{
	struct task t = { .member = &v->member, .op = *v->op,
			  .side = *plan_side_of(v->op, rank, 0) };

	v->member = (struct member){ .player = &v->player, .comm = v->op->comm, .rank = rank };
	return wire_find(&t, index, wire);
}

/* "r2x12 s1x12": receives from 2 in 12 steps, sends to 1. */
static void describe(struct view *v, int rank, int index, char *to, size_t size)
{
	struct wire wire[WIRE_MAX];
	int n = wires_of(v, rank, index, wire), used = 0;

	*to = '\0';
	for (int i = 0; i < n; i++)
		used += snprintf(to + used, size - used, "%s%c%dx%d", i ? " " : "",
				 wire[i].send ? 's' : 'r', wire[i].peer, wire[i].nsteps);
}

#define FOUR "nodes 4\ncomm w ranks 0-3 channels 1\n"

static const struct {
	const char *text;
	const char *wires;		/* of rank 0 */
	int chunk;
} seen[] = {
	{ FOUR "AllReduce w 1Ki float32\n", "r3x12 s1x12", 4194304 },
	{ FOUR "AllReduce w 512Ki int8\n", "r3x12 s1x12", 4194304 },
	{ FOUR "AllGather w 1Ki float32\n", "r3x6 s1x6", 4194304 },
	{ FOUR "ReduceScatter w 1Ki float32\n", "r3x6 s1x6", 4194304 },
	{ FOUR "nccl 2.28\nBroadcast w 1Ki float32\n", "s1x1", 524288 },
	{ FOUR "AllReduce w 1Ki float32 algo tree\n", "r2x1 s2x1", 524288 },
	{ FOUR "AllGather w 1Ki float32 algo pat\n", "s3x1 r1x1 s2x1 r2x1", 65536 },
	{ FOUR "Send w 1Ki float32 from 0 to 1\n", "s1x1", 32768 },
	{ FOUR "AllReduce w 1Ki float32 proto ll\n", "r3x6 s1x6", 32768 },
	{ "nodes 2\ncomm w ranks 0,1 channels 1\nAllReduce w 512Ki float32\n", "r1x4 s1x4",
	  4194304 },
	{ FOUR "AllReduce w 64Mi int8\n", "r3x96 s1x96", 4194304 },
	{ FOUR "AllReduce w 64Mi int8 channels 4\n", "r3x24 s1x24", 4194304 },
	{ FOUR "Send w 1Mi int8 from 0 to 1\n", "s1x8", 131072 },
};

TEST_LOOP(peers_steps_and_chunks_are_those_of_a_real_nccl, 0, FX_COUNT(seen))
{
	struct wire wire[WIRE_MAX];
	char text[200];
	struct view v;

	look(&v, seen[_i].text);
	describe(&v, 0, 0, text, sizeof(text));
	ck_assert_str_eq(text, seen[_i].wires);
	ck_assert_int_gt(wires_of(&v, 0, 0, wire), 0);
	ck_assert_int_eq(wire[0].chunk, seen[_i].chunk);
	look_away(&v);
}

/* Whether `rank` has a connection like this one, seen from its other end. */
static bool has_end(struct view *v, const struct wire *end, int rank, int peer, int index)
{
	struct wire wire[WIRE_MAX];
	int n = wires_of(v, rank, index, wire);

	for (int i = 0; i < n; i++)
		if (wire[i].peer == peer && wire[i].send != end->send &&
		    wire[i].nsteps == end->nsteps && wire[i].bytes == end->bytes)
			return true;
	return false;
}

static const char *const kinds[] = {
	"AllReduce w 1Mi float32", "AllReduce w 1Mi float32 algo tree",
	"AllGather w 1Mi float32 algo pat", "ReduceScatter w 1Mi float32 algo pat",
	"nccl 2.28\nBroadcast w 1Mi float32 root 1", "Reduce w 1Mi float32 root 1 proto ll128",
};

TEST_LOOP(every_connection_has_two_ends, 0, FX_COUNT(kinds))
{
	for (int nodes = 2; nodes <= 13; nodes++) {
		struct wire wire[WIRE_MAX];
		char text[200];
		struct view v;
		int ends = 0;

		snprintf(text, sizeof(text), "nodes %d\ncomm w ranks 0-%d channels 2\n%s\n",
			 nodes, nodes - 1, kinds[_i]);
		look(&v, text);
		for (int r = 0; r < nodes; r++)
			for (int c = 0; c < 2; c++) {
				int n = wires_of(&v, r, c, wire);

				for (int i = 0; i < n; i++)
					ck_assert(has_end(&v, &wire[i], wire[i].peer, r, c));
				ends += n;
			}
		ck_assert_int_ge(ends, 2 * 2 * (nodes - 1));
		look_away(&v);
	}
}

TEST(the_two_trees_have_different_leaves)
{
	struct wire wire[WIRE_MAX];
	struct view v;
	int forks = 0;

	look(&v, "nodes 8\ncomm w ranks 0-7 channels 2\nAllReduce w 1Mi float32 algo tree\n");
	for (int r = 0; r < 8; r++) {
		int first = wires_of(&v, r, 0, wire), second = wires_of(&v, r, 1, wire);

		ck_assert(first == 2 || second == 2);
		forks += (first > 2) + (second > 2);
	}
	ck_assert_int_eq(forks, 6);
	look_away(&v);
}

TEST(in_a_tree_one_rank_speaks_for_its_node)
{
	struct wire wire[WIRE_MAX];
	struct view v;

	look(&v, "nodes 2\nprocesses 2\ncomm w ranks 0-3 channels 2\n"
	     "AllReduce w 1Mi float32 algo tree\n");
	ck_assert_int_eq(wires_of(&v, 0, 0, wire), 2);
	ck_assert_int_eq(wire[0].peer, 2);
	ck_assert_int_eq(wires_of(&v, 1, 0, wire), 0);
	look_away(&v);
}

TEST(a_pat_operation_sends_before_it_receives)
{
	const char *text, *send, *recv;

	fx_play(FOUR "pace none\nAllGather w 1Ki float32 algo pat\n", NCCL_PROXY_OP);
	text = probe_text(PROBE_PROXY, 0);
	send = strstr(text, "ProxyOp S <Coll channel=0 peer=3 steps=1 send=1");
	recv = strstr(text, "ProxyOp S <Coll channel=0 peer=1 steps=1 send=0");
	ck_assert(send && recv && send < recv);
	ck_assert_int_eq(probe_count("ProxyOp X"), 4);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
