/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/comms: communicators, each with the ranks that live on this node. */
#include <errno.h>
#include <stdlib.h>

#include "ncclinspd/compare/straggler.h"
#include "ncclinspd/findings/stall.h"
#include "ncclinspd/serve/serve_parts.h"
#include "reader/base/accounts.h"
#include "reader/base/job.h"
#include "rows/local_ranks.h"
#include "util/cleanup.h"

struct waiting_row {
	struct straggler_sums sums;
	bool is_lately;
	struct straggler_lately lately;
};

/* An operation whose end is not watched hangs when the rank has posted nothing for so long. */
static void put_quiet_limit(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct serve *s = serve_of(w);
	const struct local_rank *l = row;

	if (s->source.diagnose)
		json_put_u64(j, stall_unwatched_limit_ns(s->source.diagnose, l->process->id));
	else
		json_put_null(j);
}

static field_put_fn comm_put_waiting;

#include "schema/comm.h"

static void comm_put_waiting(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct straggler *straggler = serve_of(w)->source.straggler;
	const struct local_rank *l = row;
	struct waiting_row waiting;

	if (!straggler || !straggler_of(straggler, l->process->id, l->index, &waiting.sums)) {
		json_put_null(j);
		return;
	}
	waiting.is_lately = straggler_lately(straggler, l->process->id, l->index, &waiting.lately);
	rows_put_object(w, j, waiting_fields, &waiting);
}

const struct field_table comm_tables[] = {
	{ NULL, comm_fields },
	{ "local_ranks", local_rank_fields },
	{ NULL, NULL },
};

/* An operation that only settles is not in flight. */
static int comms_add_process(struct request *r, struct local_ranks *ranks, struct process *p)
{
	CLEANUP(cleanup_freep) struct open_ops *open = calloc(p->ncomms + 1, sizeof(*open));
	uint32_t first = ranks->n;
	int err = open ? serve_count_open(r, p, open) : -ENOMEM;

	err = err ? err : local_ranks_add(ranks, p);
	for (uint32_t i = first; !err && i < ranks->n; i++)
		ranks->at[i].progress.in_flight = open[ranks->at[i].index].n;
	return err;
}

/* The ranks that each user may have listed: all, or an equal share where these are too many. */
static uint32_t comms_share(const struct request *r)
{
	uint32_t all = 0;
	struct process *p;

	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));)
		all += p->ncomms;
	return all <= SERVE_ROWS_MAX ? all :
				       SERVE_ROWS_MAX / serve_count_users(r->serve, &r->viewer);
}

void serve_comms(struct request *r, struct json *j)
{
	CLEANUP(local_ranks_deinit) struct local_ranks ranks = { 0 };
	struct accounts_tally of = { 0 };
	uint32_t share = comms_share(r);
	uint64_t left_out = 0;
	struct process *p;

	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));) {
		uint32_t n = ranks.n;

		if (*accounts_count(&of, p->account) >= share)
			left_out += p->ncomms;
		else if (comms_add_process(r, &ranks, p) < 0)
			json_fail(j, -ENOMEM);
		*accounts_count(&of, p->account) += ranks.n - n;
		serve_meanwhile(r->serve);
	}
	json_member_u64(j, "comms_left_out", left_out);
	json_begin_member(j, "comms", '[');
	local_ranks_put(&r->serve->writer, j, &ranks, comm_fields, local_rank_fields, &r->chosen);
	json_end(j, ']');
}
