/* SPDX-License-Identifier: Apache-2.0 */
/* Faults as the plan meets them, operation by operation. */
#include "tests/sim/injected.h"

#include <inttypes.h>
#include <stdbool.h>

#include "tests/sim/truth.h"

/* When a fault takes effect, as seen from its rank's part in the operation. */
enum effect {
	AT_CALL,		/* when its host comes to the call */
	AT_LAUNCH,
	AT_ARRIVAL,		/* when its GPU begins */
	AT_DATA,		/* when data flow */
	AT_CUT,			/* in the middle of it */
};

static const struct kind {
	const char *name;
	enum effect effect;
} kinds[FAULT_KINDS] = {
	[FAULT_LATE]		= { "late", AT_ARRIVAL },
	[FAULT_ABSENT]		= { "absent", AT_CALL },
	[FAULT_STUCK]		= { "stuck", AT_CUT },
	[FAULT_KILL]		= { "kill", AT_CUT },
	[FAULT_ABORT]		= { "abort", AT_CUT },
	[FAULT_STARVE]		= { "starve", AT_LAUNCH },
	[FAULT_FREEZE]		= { "freeze", AT_ARRIVAL },
	[FAULT_MISMATCH]	= { "mismatch", AT_CALL },
	[FAULT_SWAP]		= { "swap", AT_CALL },
	[FAULT_PAUSE]		= { "pause", AT_CALL },
	[FAULT_SLOW_LINK]	= { "slow_link", AT_DATA },
	[FAULT_SLOW_CHANNEL]	= { "slow_channel", AT_DATA },
};

const char *injected_kind(enum sim_fault_kind kind)
{
	return kinds[kind].name;
}

/* The side that a fault is in: its rank's, or the first that makes its call. */
static const struct plan_side *side_of(const struct scenario *scn, const struct sim_fault *f,
				       const struct plan_op *op)
{
	for (int s = 0; s < op->nsides; s++) {
		const struct plan_side *side = &op->side[s];
		int w = op->comm->world[side->rank];
		int who = f->kind == FAULT_KILL ? scenario_process_of(scn, w) : w;

		if ((f->rank < 0 || f->rank == who) &&
		    side->elsewhere == (f->kind == FAULT_SWAP))
			return side;
	}
	return NULL;
}

static bool op_has_rank(const struct plan_op *op, int world)
{
	for (int r = 0; r < op->comm->nranks; r++)
		if (op->comm->world[r] == world)
			return true;
	return false;
}

/* Whether what the fault is about is in the operation at all. */
static bool fault_is_about(const struct sim_fault *f, const struct plan_op *op)
{
	int index = f->channel - op->first_channel;

	index += index < 0 ? op->all_channels : 0;
	return (f->peer < 0 || op_has_rank(op, f->peer)) &&
	       (f->channel < 0 || index < op->nchannels);
}

static int64_t fault_when(const struct sim_fault *f, const struct plan_op *op,
			  const struct plan_side *side)
{
	const int64_t at[] = {
		[AT_CALL] = side->due, [AT_LAUNCH] = side->launched,
		[AT_ARRIVAL] = side->arrival, [AT_DATA] = op->data_ns, [AT_CUT] = op->cut_ns,
	};

	return at[kinds[f->kind].effect];
}

static void injected_put(FILE *out, const char *key, bool known, int64_t value)
{
	if (known)
		fprintf(out, ",\"%s\":%" PRId64, key, value);
	else
		fprintf(out, ",\"%s\":null", key);
}

static void injected_put_fault(FILE *out, const struct scenario *scn, const struct pace *pace,
			       const struct sim_fault *f, const struct plan_op *op,
			       const struct plan_side *side)
{
	bool one = f->rank >= 0 && f->kind != FAULT_KILL;
	int w = op->comm->world[side->rank];
	int64_t at = fault_when(f, op, side);
	bool mono = at != PLAN_NEVER && pace && pace->factor != 0;

	fprintf(out, "{\"kind\":\"%s\",\"comm\":\"%s\",\"comm_id\":\"%016" PRIx64 "\",\"op\":%"
		PRIu64 ",\"func\":\"%s\"", kinds[f->kind].name, op->comm->name, op->comm->id,
		op->index, names_func(side->func)->name);
	injected_put(out, "rank", one, side->rank);
	injected_put(out, "world_rank", one, w);
	injected_put(out, "process", f->rank >= 0, scenario_process_of(scn, w));
	injected_put(out, "node", f->rank >= 0, scenario_node_of(scn, w));
	injected_put(out, "peer_world_rank", f->peer >= 0, f->peer);
	injected_put(out, "channel", f->channel >= 0, f->channel);
	injected_put(out, "by_ns", f->by_ns, f->by_ns);
	if (f->factor > 1)
		fprintf(out, ",\"factor\":%g", f->factor);
	else
		fprintf(out, ",\"factor\":null");
	injected_put(out, "at_ns", at != PLAN_NEVER, at);
	injected_put(out, "at_mono_ns", mono, mono ? pace_wall(pace, at) : 0);
	fprintf(out, "}\n");
}

static int64_t injected_put_step(FILE *out, const struct scenario *scn, const struct pace *pace,
				 const struct plan_step *step)
{
	int64_t lines = 0;

	for (int i = 0; i < step->nops; i++)
		for (int k = 0; k < scn->nfaults; k++) {
			const struct sim_fault *f = &scn->fault[k];
			const struct plan_op *op = &step->op[i];
			const struct plan_side *side = side_of(scn, f, op);

			if (!side || !plan_fault_covers(scn, f, op) || !fault_is_about(f, op))
				continue;
			injected_put_fault(out, scn, pace, f, op, side);
			lines++;
		}
	return lines;
}

int64_t injected_write(FILE *out, const struct scenario *scn, const struct pace *pace,
		       uint64_t limit)
{
	return truth_write_steps(out, scn, pace, limit, injected_put_step);
}
