/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/overhead: what watching costs, the processes and the daemon itself. */
#include "ncclinspd/serve/serve_impl.h"

#include <stddef.h>

#include "ncclinspd/levels/steer.h"

#define WINDOW_S 10

static const struct field class_fields[] = {
	{ "per_s", FIELD_RATE, offsetof(struct overhead_class, per_s), NULL },
	{ "mean_ns", FIELD_RATE, offsetof(struct overhead_class, mean_ns), NULL },
	{ "share", FIELD_RATE, offsetof(struct overhead_class, share), NULL },
	{ NULL, 0, 0, NULL },
};

static void put_callbacks(const struct serve *s, struct json *j, const struct overhead_figures *f)
{
	static const char *const names[NCI_THREAD_CLASSES] = {
		[NCI_THREADS_USER] = "user", [NCI_THREADS_PROXY] = "proxy",
	};

	json_key(j, "callbacks");
	json_begin(j, '{');
	for (int i = 0; i < NCI_THREAD_CLASSES; i++) {
		json_key(j, names[i]);
		json_begin(j, '{');
		rows_put(s, j, class_fields, &f->of[i]);
		json_end(j, '}');
	}
	json_end(j, '}');
}

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

static void put_if(struct json *j, bool known, double value)
{
	if (known)
		json_put_rounded(j, value);
	else
		json_put_null(j);
}

static void put_cost(const struct serve *s, struct json *j, const void *at)
{
	const struct kernels_row *row = at;

	(void)s;
	put_if(j, row->has_cost, row->cost_ns);
}

static void put_cost_error(const struct serve *s, struct json *j, const void *at)
{
	const struct kernels_row *row = at;

	(void)s;
	put_if(j, row->has_cost, row->cost_error_ns);
}

static void put_slower(const struct serve *s, struct json *j, const void *at)
{
	const struct kernels_row *row = at;

	(void)s;
	put_if(j, row->slower_error >= 0, row->slower);
}

static const struct field kernels_fields[] = {
#define F(name, kind) { #name, kind, offsetof(struct kernels_row, name), NULL }
	F(budget, FIELD_RATE),
	F(duty, FIELD_RATE),
	F(share, FIELD_RATE),
	F(cost_used_ns, FIELD_U32_0),
	{ "cost_ns", FIELD_PUT, 0, put_cost },
	{ "cost_error_ns", FIELD_PUT, 0, put_cost_error },
	{ "slower", FIELD_PUT, 0, put_slower },
	F(slower_error, FIELD_RATE),
	F(cost_bursts, FIELD_U32),
	{ "burst_period_ns", FIELD_U64_0, offsetof(struct kernels_row, period_ns), NULL },
	{ "burst_length_ns", FIELD_U64_0, offsetof(struct kernels_row, length_ns), NULL },
	F(bursts, FIELD_U64),
	F(groups_per_s, FIELD_RATE),
	F(groups_inside, FIELD_U64),
	F(groups_outside, FIELD_U64),
	F(ops_inside, FIELD_U64),
	F(ops_outside, FIELD_U64),
#undef F
	{ NULL, 0, 0, NULL },
};

static void fill_kernels(const struct steer *st, struct kernels_row *row, const struct process *p,
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

static void fill_cost(struct kernels_row *row, const struct cost *cost)
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

static void put_figures(const struct serve *s, struct json *j, const struct process *p)
{
	const struct cost *cost = steer_cost(s->source.steer, p);
	struct overhead empty = { 0 };
	struct overhead_figures f;
	struct kernels_row row;

	overhead_figures(cost ? &cost->overhead : &empty, WINDOW_S, &f);
	fill_kernels(s->source.steer, &row, p, cost, &f);
	if (cost)
		fill_cost(&row, cost);
	json_key(j, "window_ns");
	if (f.window_ns)
		json_put_u64(j, f.window_ns);
	else
		json_put_null(j);
	put_callbacks(s, j, &f);
	json_key(j, "kernels");
	json_begin(j, '{');
	rows_put(s, j, kernels_fields, &row);
	json_end(j, '}');
}

static const struct field who_fields[] = {
	{ "pid", FIELD_I32, offsetof(struct process, pid), NULL },
	{ "instance", FIELD_HEX, offsetof(struct process, instance), NULL },
	{ "command", FIELD_TEXT, offsetof(struct process, command), NULL },
	{ "steering", FIELD_PUT, 0, serve_put_steering },
	{ "wanted", FIELD_PUT, 0, serve_put_wanted },
	{ NULL, 0, 0, NULL },
};

static void put_process(const struct serve *s, struct json *j, const struct process *p)
{
	json_begin(j, '{');
	rows_put(s, j, who_fields, p);
	json_key(j, "level");
	json_put_string(j, process_level(p));
	json_key(j, "sampling");
	json_put_string(j, process_sampling(p));
	put_figures(s, j, p);
	json_end(j, '}');
}

/* The share of one process: callbacks and kernels; < 0: not known. */
static double share_of(const struct serve *s, const struct process *p)
{
	const struct cost *cost = steer_cost(s->source.steer, p);
	struct overhead_figures f;
	struct kernels_row row;
	double share;

	if (!cost || p->state != PROCESS_LIVE || !p->steering.known)
		return -1;
	overhead_figures(&cost->overhead, WINDOW_S, &f);
	fill_kernels(s->source.steer, &row, p, cost, &f);
	share = overhead_share(&f);
	return share >= 0 && row.share > 0 ? share + row.share : share;
}

void serve_put_overhead(struct request *r, struct json *j)
{
	double most = -1;
	struct process *p;

	for (size_t i = 0;
	     r->serve->source.steer && (p = serve_next_process(r->serve, &r->viewer, &i));) {
		double share = share_of(r->serve, p);

		if (share > most)
			most = share;
	}
	json_key(j, "overhead");
	json_begin(j, '{');
	json_key(j, "share");
	put_if(j, most >= 0, most);
	json_end(j, '}');
}

void serve_overhead(struct request *r, struct json *j)
{
	const struct serve *s = r->serve;
	struct process *p;

	serve_put_daemon_cost(s, j);
	json_key(j, "processes");
	json_begin(j, '[');
	for (size_t i = 0; s->source.steer && (p = serve_next_process(s, &r->viewer, &i));)
		if (p->state == PROCESS_LIVE && p->steering.known)
			put_process(s, j, p);
	json_end(j, ']');
}
