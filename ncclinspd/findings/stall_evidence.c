/* SPDX-License-Identifier: Apache-2.0 */
/* An operation that hangs, as a finding: docs/api.md has the names of its numbers. */
#include "ncclinspd/findings/stall.h"

#include <stdio.h>

#include "reader/base/pool.h"
#include "util/json.h"

#define RANKS_TOLD 24	/* ranks of one communicator */

uint64_t stall_key(const struct hang *h, uint32_t group)
{
	const struct hang_rank *r = &h->ranks.at[h->groups.at[group].first];
	uint64_t id = r->has_id ? r->id : r->key;
	uint64_t key = index_mix(index_mix(id, (uint64_t)r->nranks), r->user);

	for (const char *c = r->name; *c; c++)
		key = index_mix(key, (unsigned char)*c);
	return key | 1;
}

void stall_about(struct finding *f, const struct hang *h, uint32_t group)
{
	const struct hang_rank *r = &h->ranks.at[h->groups.at[group].first];

	f->uid = stuck_process(r)->uid;
	f->has_comm_id = r->has_id;
	f->comm_id = r->id;
	snprintf(f->comm_name, sizeof(f->comm_name), "%s", r->name);
}

static const struct hang_group *group_of(const struct stall *s)
{
	return &s->c.hang->groups.at[s->c.verdict.comm];
}

static void evidence_put_number(struct json *j, const char *key, uint64_t value, bool known)
{
	json_key(j, key);
	if (known)
		json_put_u64(j, value);
	else
		json_put_null(j);
}

static void evidence_put_signed(struct json *j, const char *key, int32_t value)
{
	json_key(j, key);
	if (value == UNKNOWN_I32)
		json_put_null(j);
	else
		json_put_i64(j, value);
}

static void evidence_put_text(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_put_string(j, value);
}

static void evidence_put_flag(struct json *j, const char *key, bool value)
{
	json_key(j, key);
	json_put_bool(j, value);
}

static void evidence_put_transfer(struct json *j, const struct hang_row *row)
{
	json_key(j, "transfer");
	if (!row) {
		json_put_null(j);
		return;
	}
	json_begin(j, '{');
	evidence_put_text(j, "state", row->state);
	evidence_put_text(j, "direction", row->direction);
	evidence_put_signed(j, "channel", row->channel);
	evidence_put_signed(j, "peer", row->peer);
	evidence_put_signed(j, "step", row->step);
	evidence_put_signed(j, "steps", row->steps);
	json_end(j, '}');
}

static void evidence_put_rank(const struct stall *s, struct json *j, const struct hang_rank *r,
			      const struct hang_standing *d)
{
	uint64_t last = hang_last_seq(r, group_of(s)->op.func);
	bool inside = r->op;

	json_begin(j, '{');
	evidence_put_signed(j, "rank", d->rank);
	evidence_put_number(j, "pid", (uint64_t)r->pid, true);
	evidence_put_flag(j, "ended", d->ended);
	evidence_put_flag(j, "posted", d->posted);
	evidence_put_number(j, "last_seq", last, last != UNKNOWN_U64);
	evidence_put_number(j, "count", d->count, inside && d->count != UNKNOWN_U64);
	evidence_put_text(j, "datatype", d->datatype);
	evidence_put_text(j, "algo", d->algo);
	evidence_put_text(j, "proto", d->proto);
	evidence_put_number(j, "channels", d->channels, inside && d->channels);
	evidence_put_number(j, "kernel_started", d->kernel_started, d->wants_kernel);
	evidence_put_text(j, "other_func", d->other_func);
	evidence_put_transfer(j, r->transfer);
	json_end(j, '}');
}

static void evidence_put_ranks(const struct stall *s, struct json *j)
{
	const struct hang_comm *comm = &s->c.hang->comms[s->c.verdict.comm];

	json_key(j, "ranks");
	json_begin(j, '[');
	for (uint32_t i = 0; i < comm->n && i < RANKS_TOLD; i++) {
		const struct hang_rank *r = hang_rank_of(&s->c, comm->ranks[i].rank);

		if (r)
			evidence_put_rank(s, j, r, &comm->ranks[i]);
	}
	json_end(j, ']');
}

static void put_evidence(const struct stall *s, struct json *j)
{
	const struct hang_comm *comm = &s->c.hang->comms[s->c.verdict.comm];
	const struct word *word = words_verdict(s->c.verdict.verdict);
	const struct limit *limit = &s->limit;

	json_begin(j, '{');
	evidence_put_text(j, "flight_recorder", word->flight_recorder);
	evidence_put_text(j, "ncclx", word->ncclx);
	evidence_put_text(j, "func", group_of(s)->op.func);
	evidence_put_number(j, "seq", group_of(s)->op.seq, group_of(s)->op.seq != UNKNOWN_U64);
	evidence_put_number(j, "age_ns", s->c.age_ns, true);
	evidence_put_number(j, "limit_ns", limit->ns, true);
	evidence_put_text(j, "limit_reason", limit_reason_name(limit->reason));
	evidence_put_number(j, "history_ops", limit->ops, true);
	evidence_put_number(j, "p99_ns", limit->p99_ns, limit->p99_ns != UNKNOWN_U64);
	evidence_put_number(j, "p999_ns", limit->p999_ns, limit->p999_ns != UNKNOWN_U64);
	evidence_put_flag(j, "watched", !group_of(s)->unwatched);
	evidence_put_signed(j, "nranks", comm->nranks);
	evidence_put_number(j, "local_ranks", comm->n, true);
	evidence_put_text(j, "field", s->c.verdict.field);
	evidence_put_ranks(s, j);
	json_end(j, '}');
}

void stall_describe(struct stall *s, struct finding *f)
{
	const struct hang_verdict *v = &s->c.verdict;
	struct json j;

	s->c.limit_ns = s->limit.ns;
	f->verdict = words_verdict(v->verdict)->name;
	for (uint32_t i = 0; i < v->nranks; i++)
		finding_add_rank(f, v->ranks[i]);
	hang_say(&s->c, f->text, sizeof(f->text));
	json_init(&j, sizeof(f->evidence));
	put_evidence(s, &j);
	finding_set_evidence(f, &j);
	json_deinit(&j);
}
