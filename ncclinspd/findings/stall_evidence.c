/* SPDX-License-Identifier: Apache-2.0 */
/* An operation that hangs, as a finding: docs/api.md has the names of its numbers. */
#include "ncclinspd/findings/stall.h"

#include <stdio.h>

#include "ncclinspd/findings/around.h"
#include "reader/base/pool.h"
#include "rows/rows.h"

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
	f->process_id = r->has_id ? 0 : r->process;
	f->has_comm_id = r->has_id;
	f->comm_id = r->id;
	snprintf(f->comm_name, sizeof(f->comm_name), "%s", r->name);
}

static const struct hang_group *stall_group(const struct stall *s)
{
	return &s->c.hang->groups.at[s->c.verdict.comm];
}

static const struct hang_comm *stall_comm(const struct stall *s)
{
	return &s->c.hang->comms[s->c.verdict.comm];
}

static const struct word *stall_word(const struct stall *s)
{
	return words_verdict(s->c.verdict.verdict);
}

/* A rank of this node, and where it stands with the operation. */
struct stall_rank {
	const struct hang_rank *seen;
	const struct hang_standing *at;
	name_t func;
};

static field_put_fn stall_put_ranks, stall_put_far;

#include "schema/stall_evidence.h"

static void stall_put_ranks(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct stall *s = row;
	const struct hang_comm *comm = stall_comm(s);

	json_begin(j, '[');
	for (uint32_t i = 0; i < comm->n && i < RANKS_TOLD; i++) {
		const struct stall_rank r = { hang_rank_of(&s->c, comm->ranks[i].rank),
					      &comm->ranks[i], stall_group(s)->op.func };

		if (r.seen)
			rows_put_object(w, j, stall_rank_fields, &r);
	}
	json_end(j, ']');
}

static void stall_put_far(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct stall *s = row;

	json_begin(j, '[');
	for (uint32_t i = 0; hang_is_heard(&s->c) && i < s->c.afar->n && i < RANKS_TOLD; i++)
		rows_put_object(w, j, stall_far_fields, &s->c.afar->ranks[i]);
	json_end(j, ']');
}

void stall_describe(struct stall *s, struct finding *f)
{
	const struct hang_verdict *v = &s->c.verdict;

	s->c.limit_ns = s->limit.ns;
	f->verdict = words_verdict(v->verdict)->name;
	for (uint32_t i = 0; i < v->nranks; i++)
		finding_add_rank(f, v->ranks[i]);
	hang_say(&s->c, f->text, sizeof(f->text));
	finding_set_evidence(f, stall_evidence_fields, s);
}
