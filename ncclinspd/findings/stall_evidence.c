/* SPDX-License-Identifier: Apache-2.0 */
/* An operation that hangs, as numbers: docs/api.md has their names. */
#include "ncclinspd/findings/stall.h"
#include "util/json.h"

#define RANKS_TOLD 24	/* ranks of one communicator */

static const struct stuck_group *group_of(const struct stall *s)
{
	return &s->view->groups.at[s->result.comm];
}

const struct stuck_rank *stall_rank(const struct stall *s, int32_t rank)
{
	const struct stuck_group *g = group_of(s);

	for (uint32_t i = g->first; i < g->first + g->n; i++)
		if (s->view->ranks.at[i].comm->rank == rank)
			return &s->view->ranks.at[i];
	return NULL;
}

static void put_number(struct json *j, const char *key, uint64_t value, bool known)
{
	json_key(j, key);
	if (known)
		json_put_u64(j, value);
	else
		json_put_null(j);
}

static void put_signed(struct json *j, const char *key, int32_t value)
{
	json_key(j, key);
	if (value == UNKNOWN_I32)
		json_put_null(j);
	else
		json_put_i64(j, value);
}

static void put_text(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_put_string(j, value);
}

static void put_flag(struct json *j, const char *key, bool value)
{
	json_key(j, key);
	json_put_bool(j, value);
}

static void put_transfer(struct json *j, const struct inflight *row)
{
	json_key(j, "transfer");
	if (!row) {
		json_put_null(j);
		return;
	}
	json_begin(j, '{');
	put_text(j, "state", row->state);
	put_text(j, "direction", row->direction);
	put_signed(j, "channel", row->channel);
	put_signed(j, "peer", row->peer);
	put_signed(j, "step", row->step);
	put_signed(j, "steps", row->steps);
	json_end(j, '}');
}

static void put_rank(const struct stall *s, struct json *j, const struct stuck_rank *r,
		     const struct desync_rank *d)
{
	uint64_t last = stuck_last_seq(&r->progress, group_of(s)->op.func);
	bool inside = r->has_op;

	json_begin(j, '{');
	put_signed(j, "rank", d->rank);
	put_number(j, "pid", (uint64_t)r->process->pid, true);
	put_flag(j, "ended", d->ended);
	put_flag(j, "posted", d->posted);
	put_number(j, "last_seq", last, last != UNKNOWN_U64);
	put_number(j, "count", d->count, inside && d->count != UNKNOWN_U64);
	put_text(j, "datatype", d->datatype);
	put_text(j, "algo", d->algo);
	put_text(j, "proto", d->proto);
	put_number(j, "channels", d->channels, inside && d->channels);
	put_number(j, "kernel_started", d->kernel_started, d->wants_kernel);
	put_text(j, "other_func", d->other_func);
	put_transfer(j, r->transfer);
	json_end(j, '}');
}

static void put_ranks(const struct stall *s, struct json *j)
{
	const struct desync_comm *comm = &s->view->comms[s->result.comm];

	json_key(j, "ranks");
	json_begin(j, '[');
	for (uint32_t i = 0; i < comm->n && i < RANKS_TOLD; i++) {
		const struct stuck_rank *r = stall_rank(s, comm->ranks[i].rank);

		if (r)
			put_rank(s, j, r, &comm->ranks[i]);
	}
	json_end(j, ']');
}

void stall_put_evidence(const struct stall *s, struct json *j)
{
	const struct desync_comm *comm = &s->view->comms[s->result.comm];
	const struct word *word = words_verdict(s->result.verdict);
	const struct limit *limit = &s->limit;

	json_begin(j, '{');
	put_text(j, "flight_recorder", word->flight_recorder);
	put_text(j, "ncclx", word->ncclx);
	put_text(j, "func", group_of(s)->op.func);
	put_number(j, "seq", group_of(s)->op.seq, group_of(s)->op.seq != UNKNOWN_U64);
	put_number(j, "age_ns", s->age_ns, true);
	put_number(j, "limit_ns", limit->ns, true);
	put_text(j, "limit_reason", limit_reason_name(limit->reason));
	put_number(j, "history_ops", limit->ops, true);
	put_number(j, "p999_ns", limit->p999_ns, limit->p999_ns != UNKNOWN_U64);
	put_flag(j, "watched", !group_of(s)->unwatched);
	put_signed(j, "nranks", comm->nranks);
	put_number(j, "local_ranks", comm->n, true);
	put_text(j, "field", s->result.field);
	put_ranks(s, j);
	json_end(j, '}');
}
