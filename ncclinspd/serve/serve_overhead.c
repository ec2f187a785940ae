/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/overhead: what watching costs, the processes and the daemon itself. */
#include <stddef.h>

#include "ncclinspd/levels/steer.h"
#include "ncclinspd/serve/serve_parts.h"

#define WINDOW_S 10

struct kernels_row {
	double budget;
	double duty;
	double share;
	uint32_t cost_used_ns;
	uint32_t cost_bursts;
	bool has_cost;
	double cost_ns, cost_error_ns;	/* the seen cost can be below 0: chance */
	double slower, slower_error;
	uint64_t period_ns, length_ns;
	uint64_t bursts;
	uint64_t groups_inside, groups_outside;
	uint64_t ops_inside, ops_outside;
	double groups_per_s;
};

struct overhead_row {
	const struct process *process;
	struct overhead_figures figures;
	struct kernels_row kernels;
};

static void overhead_put_wanted(const struct rows_writer *w, struct json *j, const void *row)
{
	serve_put_wanted(w, j, ((const struct overhead_row *)row)->process);
}

#include "schema/overhead.h"

static void overhead_fill_kernels(const struct steer *st, struct kernels_row *row,
				  const struct process *p,
				  const struct cost *cost, const struct overhead_figures *f)
{
	struct burst_plan plan = steer_plan(st);

	*row = (struct kernels_row){
		.budget = steer_budget_ppm(st) * 1e-6,
		.duty = f->duty,
		.share = -1,
		.slower_error = -1,
		.cost_used_ns = cost ? cost->used_ns : 0,
		.period_ns = plan.period_ms * UINT64_C(1000000),
		.length_ns = plan.length_us * UINT64_C(1000),
		.bursts = p->steering.mode == NCI_MODE_BURST ? (p->steering.switches + 1) / 2 : 0,
		.groups_per_s = f->groups_per_s,
		.groups_inside = p->groups_inside,
		.groups_outside = p->groups_outside,
		.ops_inside = p->ops_inside,
		.ops_outside = p->ops_outside,
	};
	if (f->duty >= 0 && cost)
		row->share = f->duty * f->groups_per_s * cost->used_ns * 1e-9;
}

static void overhead_fill_cost(struct kernels_row *row, const struct cost *cost)
{
	struct kernelcost_estimate estimate;

	kernelcost_estimate(&cost->kernels, &estimate);
	row->cost_bursts = estimate.bursts;
	if (estimate.known) {
		row->slower = estimate.slower;
		row->slower_error = estimate.error;
	}
	if (steer_kernel_cost(cost, &row->cost_ns, &row->cost_error_ns))
		row->has_cost = true;
}

static void overhead_put_process(const struct serve *s, struct json *j, const struct process *p)
{
	const struct cost *cost = steer_cost(s->source.steer, p);
	struct overhead empty = { 0 };
	struct overhead_row row = { .process = p };

	overhead_figures(cost ? &cost->overhead : &empty, WINDOW_S, &row.figures);
	overhead_fill_kernels(s->source.steer, &row.kernels, p, cost, &row.figures);
	if (cost)
		overhead_fill_cost(&row.kernels, cost);
	rows_put_object(&s->writer, j, overhead_fields, &row);
}

/* The share of one process: callbacks and kernels; < 0: not known. */
static double process_overhead_share(const struct serve *s, const struct process *p)
{
	const struct cost *cost = steer_cost(s->source.steer, p);
	struct overhead_figures f;
	struct kernels_row row;
	double share;

	if (!cost || p->state != PROCESS_LIVE || !p->steering.known)
		return -1;
	overhead_figures(&cost->overhead, WINDOW_S, &f);
	overhead_fill_kernels(s->source.steer, &row, p, cost, &f);
	share = overhead_share(&f);
	return share >= 0 && row.share > 0 ? share + row.share : share;
}

double serve_overhead_share(const struct request *r)
{
	double most = -1;
	struct process *p;

	for (size_t i = 0;
	     r->serve->source.steer && (p = serve_next_process(r->serve, &r->viewer, &i));) {
		double share = process_overhead_share(r->serve, p);

		if (share > most)
			most = share;
	}
	return most;
}

void serve_overhead(struct request *r, struct json *j)
{
	const struct serve *s = r->serve;
	struct process *p;

	serve_put_daemon_cost(s, j);
	json_begin_member(j, "processes", '[');
	for (size_t i = 0; s->source.steer && (p = serve_next_process(s, &r->viewer, &i));)
		if (p->state == PROCESS_LIVE && p->steering.known)
			overhead_put_process(s, j, p);
	json_end(j, ']');
}
