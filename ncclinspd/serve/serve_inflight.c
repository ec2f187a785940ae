/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/inflight: what has begun and not ended, oldest first. */
#include "ncclinspd/findings/stall.h"
#include "ncclinspd/serve/serve_parts.h"
#include "reader/base/job.h"
#include "reader/base/phase.h"
#include "reader/join/inflight.h"
#include "util/cleanup.h"

void serve_collect_inflight(const struct request *r, struct process *p, struct inflights *rows)
{
	const struct serve *s = r->serve;
	const struct live_slot *slots = p->last_slots;
	int n = (int)p->nlast_slots;

	if (p->state == PROCESS_LIVE)
		n = s->source.slots(s->source.arg, p, &slots);
	inflights_add(rows, s->source.reconstruct, p, slots, n > 0 ? (size_t)n : 0, s->now_ns);
}

/* The phase in which it began. */
static void inflight_put_phase(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct serve *s = serve_of(w);
	const struct inflight *r = row;
	uint64_t now_ns = r->process->ended_ns ? r->process->ended_ns : s->now_ns;

	json_put_string(j, phase_at(r->process, r->age_ns == UNKNOWN_U64 ? 0 : now_ns - r->age_ns));
}

static void put_limit(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct serve *s = serve_of(w);
	const struct inflight *r = row;
	const struct comm *comm = process_comm(r->process, (uint16_t)r->comm_index);
	const struct op op = {
		.process_id = r->process->id, .uid = r->process->uid, .comm_index = r->comm_index,
		.has_comm_id = r->has_comm_id, .comm_id = r->comm_id, .comm_name = r->comm_name,
		.nranks = comm ? comm->nranks : 0, .func = r->func, .seq = r->seq,
		.bytes = r->bytes,
	};

	if (r->is_op && s->source.diagnose)
		json_put_u64(j, stall_limit_ns(s->source.diagnose, &op));
	else
		json_put_null(j);
}

#include "schema/inflight.h"

const struct field_table inflight_tables[] = { { NULL, inflight_fields }, { NULL, NULL } };

/* The oldest first: what is old enough comes before all that is not. */
static size_t inflight_count_old(const struct inflights *rows, uint64_t age_ns)
{
	size_t n = 0;

	while (n < rows->n && inflight_age_ns(&rows->at[n]) >= age_ns)
		n++;
	return n;
}

static void inflight_put_rows(const struct request *r, struct json *j, const struct inflights *rows)
{
	size_t n = inflight_count_old(rows, r->query.older_than_ns);
	size_t most = r->query.limit ? r->query.limit : n, put = 0;
	uint32_t share = most <= SERVE_ROWS_MAX ? UINT32_MAX :
			 SERVE_ROWS_MAX / serve_count_users(r->serve, &r->viewer);
	struct accounts_tally of = { 0 };

	json_member_u64(j, "inflight_total", n);
	json_begin_member(j, "inflight", '[');
	for (size_t i = 0; i < n && put < most; i++) {
		if ((*accounts_count(&of, rows->at[i].process->account))++ >= share)
			continue;
		put++;
		serve_meanwhile(r->serve);
		json_begin(j, '{');
		rows_put_chosen(&r->serve->writer, j, inflight_fields, &rows->at[i], &r->chosen, 0);
		json_end(j, '}');
	}
	json_end(j, ']');
}

void serve_inflight(struct request *r, struct json *j)
{
	const struct serve_source *source = &r->serve->source;
	CLEANUP(inflights_deinit) struct inflights rows = { 0 };
	struct process *p;

	if (source->catch_up)
		source->catch_up(source->arg);
	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));) {
		serve_collect_inflight(r, p, &rows);
		serve_meanwhile(r->serve);
	}
	if (rows.error) {
		json_fail(j, rows.error);
		return;
	}
	inflights_sort(&rows);
	inflight_put_rows(r, j, &rows);
}
