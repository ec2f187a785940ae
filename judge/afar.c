/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node does not see the ranks of other nodes.  NCCL's RAS does: it knows which processes
 * answer, and how many calls of each function each rank has made.  Calls are compared with
 * those of ranks here in the same answer, so that it does not matter from what NCCL counts.
 */
#include "judge/afar.h"

#include <stddef.h>

#include "util/list.h"
#include "util/unknown.h"

const char *afar_state_name(enum afar_state state)
{
	static const char *const names[] = {
#define X(NAME, text) [AFAR_##NAME] = text,
		AFAR_STATES(X)
#undef X
	};

	return names[state];
}

static const struct afar_own *afar_own_of(const struct afar_own *own, uint32_t nown, int32_t rank)
{
	for (uint32_t i = 0; i < nown; i++)
		if (own[i].rank == rank)
			return &own[i];
	return NULL;
}

/* Is it an answer on this communicator?  A rank here proves it, and none may contradict it. */
static bool afar_is_ours(const struct afar_rank *rows, uint32_t n, int32_t nranks,
			 const struct afar_own *own, uint32_t nown)
{
	bool proven = false;

	if (!n || nranks <= 0 || n > (uint32_t)nranks)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct afar_own *o = afar_own_of(own, nown, rows[i].rank);

		if (rows[i].rank < 0 || rows[i].rank >= nranks ||
		    (o && rows[i].pid != UNKNOWN_I32 && rows[i].pid != o->pid))
			return false;
		proven |= o && rows[i].pid == o->pid;
	}
	return proven;
}

static uint64_t afar_own_calls(const struct afar_rank *rows, uint32_t n,
			       const struct afar_own *own, uint32_t nown)
{
	uint64_t most = UNKNOWN_U64;

	for (uint32_t i = 0; i < n; i++)
		if (rows[i].calls != UNKNOWN_U64 && afar_own_of(own, nown, rows[i].rank) &&
		    (most == UNKNOWN_U64 || rows[i].calls > most))
			most = rows[i].calls;
	return most;
}

static bool afar_is_silent(const struct afar_rank *r, uint64_t own_calls)
{
	(void)own_calls;
	return r->silent || r->dead;
}

/* A rank that answers and is no member any more has left, and does not come either. */
static bool afar_is_absent(const struct afar_rank *r, uint64_t own_calls)
{
	return r->missing || (r->calls != UNKNOWN_U64 && own_calls != UNKNOWN_U64 &&
			      r->calls < own_calls);
}

static bool afar_blame(struct afar *out, const struct afar_rank *rows, uint32_t n,
		       const struct afar_own *own, uint32_t nown,
		       bool (*is)(const struct afar_rank *r, uint64_t own_calls))
{
	for (uint32_t i = 0; i < n; i++) {
		struct afar_rank *r;

		if (afar_own_of(own, nown, rows[i].rank) || !is(&rows[i], out->own_calls))
			continue;
		r = array_add(out->ranks, &out->n);
		if (r)
			*r = rows[i];
		else
			out->left_out++;
	}
	return out->n > 0;
}

/* All have the calls that those here have: whatever holds them up, all are in it. */
static bool afar_all_in_step(const struct afar_rank *rows, uint32_t n, int32_t nranks,
			     uint64_t own_calls)
{
	for (uint32_t i = 0; i < n; i++)
		if (rows[i].calls == UNKNOWN_U64)
			return false;
	return n == (uint32_t)nranks && own_calls != UNKNOWN_U64;
}

void afar_decide(const struct afar_rank *rows, uint32_t n, int32_t nranks,
		 const struct afar_own *own, uint32_t nown, struct afar *out)
{
	*out = (struct afar){ .state = AFAR_FOREIGN, .own_calls = UNKNOWN_U64 };
	if (!afar_is_ours(rows, n, nranks, own, nown))
		return;
	out->told = n;
	out->own_calls = afar_own_calls(rows, n, own, nown);
	if (afar_blame(out, rows, n, own, nown, afar_is_silent))
		out->state = AFAR_SILENT;
	else if (afar_blame(out, rows, n, own, nown, afar_is_absent))
		out->state = AFAR_ABSENT;
	else
		out->state = afar_all_in_step(rows, n, nranks, out->own_calls) ? AFAR_EVEN :
										 AFAR_VAGUE;
}

const struct afar_rank *afar_rank_of(const struct afar *a, int32_t rank)
{
	for (uint32_t i = 0; a && i < a->n; i++)
		if (a->ranks[i].rank == rank)
			return &a->ranks[i];
	return NULL;
}
