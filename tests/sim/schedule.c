/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/schedule.h"

/*
 * Distances come in an order that is a permutation for each power of two: 0, 1, 3,
 * 6, ...; those that the n ranks do not have are left out.  Where in it is `delta`?
 */
static int ring_position(int delta, int n)
{
	int pow2 = 1, at = 0, d = 0;

	while (pow2 < n)
		pow2 *= 2;
	for (int k = 1; d != delta; k++) {
		at += d < n;
		d = (d + k) % pow2;
	}
	return at;
}

/* Where a rank is: which node of the communicator's, and which rank there. */
struct schedule_place {
	int node, local;
};

/* Places of all ranks; how many nodes, or 0 if they do not all have as many ranks. */
static int find_places(const struct scenario *scn, const struct sim_comm *c,
		       struct schedule_place *place)
{
	int count[SCENARIO_MAX_RANKS] = { 0 }, first[SCENARIO_MAX_RANKS], nodes = 0;

	for (int r = 0; r < c->nranks; r++) {
		int node = scenario_node_of(scn, c->world[r]), i = 0;

		while (i < nodes && first[i] != node)
			i++;
		if (i == nodes)
			first[nodes++] = node;
		place[r] = (struct schedule_place){ i, count[i]++ };
	}
	for (int i = 1; i < nodes; i++)
		if (count[i] != count[0])
			return 0;
	return nodes;
}

/* Node by node, and within a pair of nodes rank by rank. */
int schedule_round(const struct scenario *scn, const struct sim_comm *c, int from, int to)
{
	struct schedule_place place[SCENARIO_MAX_RANKS];
	int nodes = find_places(scn, c, place), n = c->nranks, locals;

	if (!nodes)
		return ring_position((to - from + n) % n, n);
	locals = n / nodes;
	return ring_position((place[to].node - place[from].node + nodes) % nodes, nodes) * locals +
	       ring_position((place[to].local - place[from].local + locals) % locals, locals);
}

int schedule_channels(int channels)
{
	int pow2 = 1;

	while (pow2 < channels)
		pow2 *= 2;
	return pow2;
}

/* Neighbouring rounds are kept apart: the bits of the round are read backwards. */
int schedule_first(int round, int channels)
{
	int channel = 0;

	for (int bit = 1; bit < channels; bit *= 2)
		channel = channel * 2 + !!(round & bit);
	return channel;
}
