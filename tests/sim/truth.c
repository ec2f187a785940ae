/* SPDX-License-Identifier: Apache-2.0 */
/* The plan, written down. */
#include "tests/sim/truth.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>

#include "tests/sim/injected.h"

static void truth_put_ns(FILE *out, const char *key, int64_t ns)
{
	if (ns == PLAN_NEVER)
		fprintf(out, ",\"%s\":null", key);
	else
		fprintf(out, ",\"%s\":%" PRId64, key, ns);
}

static void truth_put_who(FILE *out, const struct scenario *scn, const struct plan_op *op,
			  const struct plan_side *side)
{
	int w = op->comm->world[side->rank];

	fprintf(out, "{\"comm\":\"%s\",\"comm_id\":\"%016" PRIx64 "\",\"nranks\":%d"
		",\"nnodes\":%d,\"rank\":%d,\"world_rank\":%d,\"process\":%d,\"op\":%" PRIu64,
		op->comm->name, op->comm->id, op->comm->nranks, op->comm->nnodes, side->rank,
		w, scenario_process_of(scn, w), op->index);
}

static void truth_put_what(FILE *out, const struct plan_step *step, const struct plan_op *op,
			   const struct plan_side *side)
{
	const struct sim_op *spec = op->spec;

	fprintf(out, ",\"func\":\"%s\",\"count\":%" PRIu64 ",\"datatype\":\"%s\""
		",\"bytes\":%" PRIu64, names_func(side->func)->name, side->count,
		names_get(NAMES_DATATYPE, side->datatype)->name, side->bytes);
	if (side->has_seq)
		fprintf(out, ",\"seq\":%" PRIu64, side->seq);
	else
		fprintf(out, ",\"seq\":null");
	if (side->peer < 0)
		fprintf(out, ",\"peer\":null,\"root\":%d,\"algo\":\"%s\",\"proto\":\"%s\"",
			side->root, names_get(NAMES_ALGO, spec->algo)->name,
			names_get(NAMES_PROTO, spec->proto)->name);
	else
		fprintf(out, ",\"peer\":%d,\"root\":null,\"algo\":null,\"proto\":null", side->peer);
	fprintf(out, ",\"channels\":%d,\"members\":%d,\"graph\":%s,\"path\":\"%s\"", op->nchannels,
		op->members, step->kind == PLAN_REPLAY ? "true" : "false",
		spec->ce ? "ce" : side->peer < 0 && !side->has_seq ? "api" :
		!side->moves ? "none" : "kernel");
}

/* Of the ranks that came, when the first did. */
static int64_t first_arrival(const struct plan_op *op)
{
	int64_t first = PLAN_NEVER;

	for (int s = 0; s < op->nsides; s++)
		if (op->side[s].arrival < first)
			first = op->side[s].arrival;
	return first;
}

static void truth_put_when(FILE *out, const struct plan_op *op, const struct plan_side *side)
{
	bool came = side->arrival != PLAN_NEVER, done = side->stop != PLAN_NEVER;

	truth_put_ns(out, "enqueued_ns", side->enqueued);
	truth_put_ns(out, "arrival_ns", side->arrival);
	truth_put_ns(out, "data_ns", op->data_ns);
	truth_put_ns(out, "stop_ns", side->stop);
	truth_put_ns(out, "exec_ns",
		     done ? (int64_t)(side->gpu_stop - side->gpu_start) : PLAN_NEVER);
	truth_put_ns(out, "gpu_start", came ? (int64_t)side->gpu_start : PLAN_NEVER);
	truth_put_ns(out, "gpu_stop", done ? (int64_t)side->gpu_stop : PLAN_NEVER);
	truth_put_ns(out, "late_ns", came ? side->arrival - first_arrival(op) : PLAN_NEVER);
	if (op->last_rank < 0)
		fprintf(out, ",\"last_rank\":null");
	else
		fprintf(out, ",\"last_rank\":%d", op->last_rank);
	fprintf(out, ",\"completed\":%s", done ? "true" : "false");
	if (op->fault)
		fprintf(out, ",\"fault\":\"%s\"", injected_kind(op->fault->kind));
	else
		fprintf(out, ",\"fault\":null");
}

static void put_mono(FILE *out, const char *key, const struct pace *pace, int64_t ns)
{
	truth_put_ns(out, key, ns == PLAN_NEVER || !pace || pace->factor == 0 ? PLAN_NEVER :
		      pace_wall(pace, ns));
}

/* Channel by channel: which, when it began and when it ended. */
static void put_channels(FILE *out, const struct scenario *scn, const struct plan_op *op,
			 const struct plan_side *side)
{
	struct plan_span span;

	fprintf(out, ",\"channel_ns\":[");
	for (int i = 0; i < op->nchannels && side->arrival != PLAN_NEVER; i++) {
		plan_channel(scn, op, side, i, &span);
		fprintf(out, "%s[%d,%" PRId64, i ? "," : "", plan_channel_number(op, i),
			span.start);
		if (span.stop == PLAN_NEVER)
			fprintf(out, ",null]");
		else
			fprintf(out, ",%" PRId64 "]", span.stop);
	}
	fprintf(out, "]}\n");
}

static int64_t truth_put_step(FILE *out, const struct scenario *scn, const struct pace *pace,
			      const struct plan_step *step)
{
	int64_t lines = 0;

	for (int i = 0; i < step->nops; i++) {
		const struct plan_op *op = &step->op[i];

		for (int s = 0; s < op->nsides; s++) {
			if (op->side[s].enqueued == PLAN_NEVER)
				continue;
			truth_put_who(out, scn, op, &op->side[s]);
			truth_put_what(out, step, op, &op->side[s]);
			truth_put_when(out, op, &op->side[s]);
			put_mono(out, "start_mono_ns", pace, op->side[s].arrival);
			put_mono(out, "stop_mono_ns", pace, op->side[s].stop);
			put_channels(out, scn, op, &op->side[s]);
			lines++;
		}
	}
	return lines;
}

int64_t truth_write_steps(FILE *out, const struct scenario *scn, const struct pace *pace,
			  uint64_t limit, truth_step_fn *write_step)
{
	const struct plan_step *step;
	struct plan *plan = NULL;
	int64_t lines = 0;
	int r = plan_new(&plan, scn);

	while (!r) {
		r = plan_next(plan, &step);
		if (r || step->kind == PLAN_END || step->number > limit)
			break;
		if (step->kind == PLAN_LAUNCH || step->kind == PLAN_REPLAY)
			lines += write_step(out, scn, pace, step);
	}
	plan_free(plan);
	if (r)
		return r;
	return fflush(out) || ferror(out) ? -EIO : lines;
}

int64_t truth_write(FILE *out, const struct scenario *scn, const struct pace *pace,
		    uint64_t limit)
{
	return truth_write_steps(out, scn, pace, limit, truth_put_step);
}
