/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for hangs over all nodes: the call that most ranks are in, then the ranks that
 * are not in it, and why.
 */
#include "cli/offline/stuck.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/offline/shots.h"
#include "util/text.h"

#define STUCK_NS UINT64_C(10000000000)	/* the daemon's shortest stall */

/* The call that most of a communicator's ranks are in. */
struct call {
	const char *func;	/* NULL: nothing hangs */
	int64_t seq;
	double since;		/* seconds since 1970 */
	json_int_t ranks;
	int64_t bytes;		/* size in most ranks; -1: not known */
};

#define KEY 96		/* bytes of a call's: "AllReduce 12" */

static const char *text_at(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key)) ?: "";
}

static int64_t number_at(const json_t *row, const char *key)
{
	const json_t *value = json_object_get(row, key);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}

/* ---- what is in flight ------------------------------------------------------------- */

static void make_key(const json_t *row, char key[KEY])
{
	snprintf(key, KEY, "%.60s %" PRId64, text_at(row, "func"), number_at(row, "seq"));
}

/* An object in another one, made where there is none. */
static json_t *object_at(json_t *in, const char *key)
{
	json_t *have = json_object_get(in, key);

	if (!have) {
		have = json_object();
		json_object_set_new(in, key, have);
	}
	return have;
}

/* Counts of how many ranks each call is the oldest, and since when. */
static void count_call(json_t *calls, const json_t *row)
{
	double since = json_real_value(json_object_get(row, "since"));
	char key[KEY];
	json_t *call;

	make_key(row, key);
	call = json_object_get(calls, key);
	if (!call) {
		call = json_pack("{s:O, s:O, s:i, s:f}", "func", json_object_get(row, "func"),
				 "seq", json_object_get(row, "seq"), "ranks", 0, "since", since);
		json_object_set_new(calls, key, call);
	}
	json_object_set_new(call, "ranks",
			    json_integer(json_integer_value(json_object_get(call, "ranks")) + 1));
	if (since < json_real_value(json_object_get(call, "since")))
		json_object_set_new(call, "since", json_real(since));
}

/* Keeps all operations of each rank, and the one that has been open for longest. */
static void note_open(json_t *comm, const char *rank, json_t *row)
{
	json_t *open = object_at(comm, "open");
	const json_t *other = json_object_get(open, rank);
	char key[KEY];

	make_key(row, key);
	json_object_set_new(object_at(object_at(comm, "all"), rank), key, json_true());
	if (!other || number_at(other, "age_ns") < number_at(row, "age_ns"))
		json_object_set(open, rank, row);
}

/* A part of an operation names its parent. */
static bool is_old_call(const json_t *row, const char *comm_id)
{
	return !strcmp(text_at(row, "comm_id"), comm_id) && *text_at(row, "func") &&
	       !*text_at(row, "parent") && number_at(row, "seq") >= 0 &&
	       number_at(row, "age_ns") >= (int64_t)STUCK_NS;
}

void stuck_note(json_t *comm, const json_t *node)
{
	const char *id = text_at(comm, "comm_id");
	char rank[24];
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(node, "inflight"), i, row) {
		if (!is_old_call(row, id))
			continue;
		snprintf(rank, sizeof(rank), "%" PRId64, number_at(row, "rank"));
		if (!json_object_get(json_object_get(comm, "ranks"), rank))
			continue;
		json_object_set_new(row, "since", json_real(
			shots_time(node) - (double)number_at(row, "age_ns") / 1e9));
		note_open(comm, rank, row);
	}
}

/* ---- what most are in ---------------------------------------------------------------- */

static bool is_in(const json_t *row, const struct call *call)
{
	return call->func && !strcmp(text_at(row, "func"), call->func) &&
	       number_at(row, "seq") == call->seq;
}

/* The size that more than half of the ranks in the call have, if there is such. */
static int64_t usual_bytes(const json_t *comm, const struct call *call)
{
	json_int_t votes = 0;
	int64_t bytes = -1;
	const char *rank;
	json_t *row;

	json_object_foreach(json_object_get(comm, "open"), rank, row) {
		if (!is_in(row, call))
			continue;
		if (!votes)
			bytes = number_at(row, "bytes");
		votes += number_at(row, "bytes") == bytes ? 1 : -1;
	}
	return votes > 0 ? bytes : -1;
}

static struct call usual_call(const json_t *comm)
{
	struct call most = { 0 };
	json_t *calls = json_object(), *row;
	const char *key;

	json_object_foreach(json_object_get(comm, "open"), key, row)
		count_call(calls, row);
	json_object_foreach(calls, key, row) {
		struct call call = {
			.func = text_at(row, "func"), .seq = number_at(row, "seq"),
			.since = json_real_value(json_object_get(row, "since")),
			.ranks = number_at(row, "ranks"),
		};

		if (call.ranks > most.ranks ||
		    (call.ranks == most.ranks && call.since < most.since))
			most = call;
	}
	json_decref(calls);	/* its texts are those of the rows */
	most.bytes = usual_bytes(comm, &most);
	return most;
}

/* ---- who is not --------------------------------------------------------------------- */

static bool is_over(const json_t *rank)
{
	const char *state = text_at(rank, "state");

	return !strcmp(state, "died") || !strcmp(state, "exited");
}

static void put_dead(struct stuck *s, const struct call *call)
{
	s->verdict = "RANK_DEAD";
	snprintf(s->text, sizeof(s->text),
		 "the process of rank %" PRId64 " is over, and others are in %s %" PRId64,
		 number_at(s->rank, "rank"), call->func, call->seq);
}

static void put_other_size(struct stuck *s, const struct call *call, const json_t *open)
{
	char its[TEXT_MAX], theirs[TEXT_MAX];

	text_bytes(its, sizeof(its), (uint64_t)number_at(open, "bytes"));
	text_bytes(theirs, sizeof(theirs), (uint64_t)call->bytes);
	s->verdict = "METADATA_MISMATCH";
	snprintf(s->text, sizeof(s->text), "rank %" PRId64 " is in %s %" PRId64 " with %s, the "
		 "others with %s", number_at(s->rank, "rank"), call->func, call->seq, its, theirs);
}

static void put_other_call(struct stuck *s, const struct call *call, const json_t *open)
{
	s->verdict = "ORDER_MISMATCH";
	snprintf(s->text, sizeof(s->text), "rank %" PRId64 " is in %s %" PRId64 ", and not in %s "
		 "%" PRId64 " as the others are", number_at(s->rank, "rank"),
		 text_at(open, "func"), number_at(open, "seq"), call->func, call->seq);
}

static void put_absent(struct stuck *s, const struct call *call, int64_t last)
{
	int n = snprintf(s->text, sizeof(s->text), "rank %" PRId64 " has not joined %s %" PRId64
			 ", in which others wait", number_at(s->rank, "rank"), call->func,
			 call->seq);

	s->verdict = "NOT_JOINED";
	if (last >= 0)
		snprintf(s->text + n, sizeof(s->text) - (size_t)n, "; its last one is %" PRId64,
			 last);
}

/*
 * Is `row`, the oldest that this rank is in, also open on one that is in `call` before it?
 * Then each has called both, in different order.  A rank that is behind the others is in
 * what these have completed.
 */
static bool is_swapped(const json_t *comm, const char *me, const struct call *call,
		       const json_t *row)
{
	const json_t *all = json_object_get(comm, "all"), *usual = NULL;
	char mine[KEY], theirs[KEY];
	const char *rank;
	json_t *other;

	make_key(row, mine);
	json_object_foreach(json_object_get(comm, "open"), rank, other)
		if (is_in(other, call) && json_object_get(json_object_get(all, rank), mine))
			usual = other;
	if (!usual || is_in(row, call))
		return false;
	make_key(usual, theirs);
	return json_object_get(json_object_get(all, me), theirs);
}

/* False: nothing is wrong with it, or its node's file is from before, and cannot tell. */
static bool judge(struct stuck *s, const json_t *comm, const char *me, const struct call *call)
{
	const json_t *open = json_object_get(json_object_get(comm, "open"), me);
	int64_t last = number_at(json_object_get(s->rank, "last_seq"), call->func);

	if (is_over(s->rank))
		put_dead(s, call);
	else if (is_in(open, call) && call->bytes >= 0 && number_at(open, "bytes") >= 0 &&
		 number_at(open, "bytes") != call->bytes)
		put_other_size(s, call, open);
	else if (open && is_swapped(comm, me, call, open))
		put_other_call(s, call, open);
	else if (last >= call->seq || shots_time(s->rank) < call->since + STUCK_NS / 1e9)
		return false;
	else if (open)
		put_other_call(s, call, open);
	else
		put_absent(s, call, last);
	return true;
}

void stuck_find(const json_t *comm, void found(const struct stuck *s, void *arg), void *arg)
{
	struct call call = usual_call(comm);
	const char *key;
	json_t *rank;

	if (!call.func)
		return;
	json_object_foreach(json_object_get(comm, "ranks"), key, rank) {
		struct stuck s = { .severity = "critical", .rank = rank, .func = call.func,
				   .seq = call.seq };

		if (judge(&s, comm, key, &call))
			found(&s, arg);
	}
}
