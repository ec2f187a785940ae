/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of a request.  Each has one row in `params`: how to read it and
 * what to tell who got it wrong.
 */
#include "ncclinspd/serve/serve_query.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/base/finding.h"
#include "ncclinspd/serve/http.h"
#include "ncclinspd/sums/aggregate.h"
#include "ncclinspd/sums/links.h"
#include "util/list.h"

bool query_number(const char *text, int base, uint64_t max, uint64_t *out)
{
	char *end;

	/* strtoull would take blanks and signs. */
	if (!strchr("0123456789abcdefABCDEF", *text) || !*text)
		return false;
	errno = 0;
	*out = strtoull(text, &end, base);
	return !*end && !errno && *out <= max;
}

struct param {
	const char *name;
	bool (*read)(struct query *q, const struct param *p, const char *text);
	size_t at;		/* the member that it sets */
	int32_t least;
	const char *const *words;	/* words that it may be, or have */
	const char *allowed;
};

static void *param_at(struct query *q, const struct param *p)
{
	return (char *)q + p->at;
}

static bool query_read_u64(struct query *q, const struct param *p, const char *text)
{
	return query_number(text, 10, UINT64_MAX, param_at(q, p));
}

static bool query_read_i32(struct query *q, const struct param *p, const char *text)
{
	uint64_t value;

	if (!query_number(text, 10, INT32_MAX, &value) || (int32_t)value < p->least)
		return false;
	*(int32_t *)param_at(q, p) = (int32_t)value;
	return true;
}

/* A list of words, each a bit by its place among them. */
static bool query_read_bits(struct query *q, const struct param *p, const char *text)
{
	uint32_t bits = 0;

	while (*text) {
		size_t bytes = strcspn(text, ",");
		unsigned i = 0;

		while (p->words[i] && (strlen(p->words[i]) != bytes ||
				       strncmp(p->words[i], text, bytes)))
			i++;
		if (!p->words[i])
			return false;
		bits |= 1u << i;
		text += bytes;
		if (*text == ',' && !*++text)
			return false;
	}
	*(uint32_t *)param_at(q, p) = bits;
	return bits;
}

/* One of the words, by its place. */
static bool query_read_word(struct query *q, const struct param *p, const char *text)
{
	int i = 0;

	while (p->words[i] && strcmp(p->words[i], text))
		i++;
	*(int *)param_at(q, p) = i;
	return p->words[i];
}

static bool query_copy_text(const char *text, char *out, size_t bytes)
{
	if (!*text || strlen(text) >= bytes)
		return false;
	memcpy(out, text, strlen(text) + 1);
	return true;
}

static bool query_read_comm(struct query *q, const struct param *p, const char *text)
{
	bool prefix = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');

	q->comm_may_be_id = query_number(text + (prefix ? 2 : 0), 16, UINT64_MAX, &q->comm_id);
	return query_copy_text(text, q->comm, sizeof(q->comm));
}

static bool query_read_func(struct query *q, const struct param *p, const char *text)
{
	return query_copy_text(text, q->func, sizeof(q->func));
}

static bool query_read_pid(struct query *q, const struct param *p, const char *text)
{
	char one[16];

	for (q->npids = 0; q->npids < SERVE_PIDS_MAX; text++) {
		size_t bytes = strcspn(text, ",");
		uint64_t value;

		if (bytes >= sizeof(one))
			return false;
		memcpy(one, text, bytes);
		one[bytes] = '\0';
		if (!query_number(one, 10, INT32_MAX, &value) || (int32_t)value < p->least)
			return false;
		*array_must_add(q->pid, &q->npids) = (pid_t)value;
		text += bytes;
		if (!*text)
			return true;
	}
	return false;
}

static bool query_read_limit(struct query *q, const struct param *p, const char *text)
{
	uint64_t value;

	if (!query_number(text, 10, SERVE_ROWS_MAX, &value) || !value)
		return false;
	q->limit = (uint32_t)value;
	return true;
}

static bool query_read_grade(struct query *q, const struct param *p, const char *text)
{
	const char *const words[] = { finding_grade_name(FINDING_FOUND),
				      finding_grade_name(FINDING_SUSPECTED), NULL };

	return query_read_word(q, &(struct param){ .at = p->at, .words = words }, text);
}

static bool query_read_fields(struct query *q, const struct param *p, const char *text)
{
	q->fields = text;
	return *text;
}

#define AT(member) offsetof(struct query, member)
#define WORDS(...) .words = (const char *const[]){ __VA_ARGS__, NULL }

/* One name may have several rows, each for other requests. */
static const struct param params[] = {
	[PARAM_COMM] = { "comm", query_read_comm,
			 .allowed = "the id of a communicator in hex, or its name" },
	[PARAM_NRANKS] = { "nranks", query_read_i32, AT(nranks), .least = 1,
			   .allowed = "a number of ranks: a whole number from 1" },
	[PARAM_RANK] = { "rank", query_read_i32, AT(rank),
			 .allowed = "a rank: a whole number from 0" },
	[PARAM_FUNC] = { "func", query_read_func,
			 .allowed = "the name of a function, such as AllReduce" },
	[PARAM_PID] = { "pid", query_read_pid, .least = 1,
			.allowed = "ids of up to 32 processes: a list of whole numbers from 1" },
	[PARAM_SINCE_MONO_NS] = { "since_mono_ns", query_read_u64, AT(since_mono_ns),
		.allowed = "a time of CLOCK_MONOTONIC in ns: a whole number from 0" },
	[PARAM_LIMIT] = { "limit", query_read_limit,
			  .allowed = "a whole number from 1 to 10000" },
	[PARAM_WINDOW] = { "window", query_read_bits, AT(windows), .words = aggregate_windows,
			   .allowed = "a list of 1s, 10s, 60s, all" },
	[PARAM_BY] = { "by", query_read_bits, AT(by), .words = aggregate_keys,
		.allowed = "a list of comm, rank, func, algo, proto, size, peer, tag, phase" },
	[PARAM_OLDER_THAN_NS] = { "older_than_ns", query_read_u64, AT(older_than_ns),
				  .allowed = "an age in ns: a whole number from 0" },
	[PARAM_KINDS] = { "kinds", query_read_bits, AT(kinds),
			  WORDS([STREAM_COLLECTIVE] = "collective", [STREAM_PROCESS] = "process",
				[STREAM_FINDING] = "finding", [STREAM_RECORD] = "record"),
			  .allowed = "a list of collective, process, finding, record" },
	[PARAM_ACTIVE] = { "active", query_read_word, AT(active), WORDS("false", "true"),
			   .allowed = "true or false" },
	[PARAM_GRADE] = { "grade", query_read_grade, AT(grade), .allowed = "found or suspected" },
	[PARAM_LINK_WINDOW] = { "window", query_read_bits, AT(link_windows),
				.words = links_windows, .allowed = "a list of 60s, all" },
	[PARAM_ONE_WINDOW] = { "window", query_read_word, AT(window), .words = aggregate_windows,
			       .allowed = "1s, 10s, 60s or all" },
	[PARAM_PEER] = { "peer", query_read_i32, AT(peer),
			 .allowed = "a rank: a whole number from 0" },
	[PARAM_DIRECTION] = { "direction", query_read_word, AT(send), WORDS("recv", "send"),
			      .allowed = "send or recv" },
	[PARAM_CHANNELS] = { "channels", query_read_word, AT(together),
			     WORDS("each", "together"), .allowed = "each or together" },
	[PARAM_FIELDS] = { "fields", query_read_fields,
			   .allowed = "a list of names of a row's members" },
};
_Static_assert(ARRAY_LEN(params) == PARAM_END, "every parameter has a row");

void query_init(struct query *q)
{
	*q = (struct query){
		.nranks = UNKNOWN_I32,
		.rank = UNKNOWN_I32,
		.windows = 1u << AGGREGATE_ALL,
		.window = AGGREGATE_10S,
		.by = AGGREGATE_BY_COMM | AGGREGATE_BY_FUNC | AGGREGATE_BY_SIZE,
		.kinds = (1u << STREAM_RECORD) - 1,	/* records are for who asks for them */
		.active = QUERY_ANY,
		.grade = QUERY_ANY,
		.link_windows = 1u << LINKS_ALL,
		.peer = UNKNOWN_I32,
		.send = QUERY_ANY,
	};
}

static bool is_any(int32_t wanted, int32_t have)
{
	return wanted == UNKNOWN_I32 || wanted == have;
}

static bool is_comm(const struct query *q, const struct query_rank *rank)
{
	if (!*q->comm)
		return true;
	if (q->comm_may_be_id && rank->has_comm_id && rank->comm_id == q->comm_id)
		return true;
	return rank->comm_name && !strcmp(rank->comm_name, q->comm);
}

static bool is_pid(const struct query *q, pid_t pid)
{
	for (uint32_t i = 0; i < q->npids; i++)
		if (q->pid[i] == pid)
			return true;
	return !q->npids;
}

bool query_wants(const struct query *q, const struct query_rank *rank)
{
	return is_any(q->nranks, rank->nranks) && is_any(q->rank, rank->rank) &&
	       is_comm(q, rank) && is_pid(q, rank->pid);
}

/* "comm, rank, func", or "none". */
static void query_list_allowed(unsigned allowed, char *out, size_t bytes)
{
	size_t used = 0;

	snprintf(out, bytes, "none");
	for (unsigned i = 0; i < PARAM_END; i++) {
		if (!(allowed & 1u << i) || used >= bytes)
			continue;
		used += (size_t)snprintf(out + used, bytes - used, "%s%s", used ? ", " : "",
					 params[i].name);
	}
}

struct arguments {
	struct query *query;
	unsigned allowed;	/* bits of enum serve_param */
	unsigned seen;
	char *why;		/* SERVE_WHY_BYTES */
};

static bool query_read_parameter(struct arguments *a, const char *name, const char *value)
{
	char list[256];
	unsigned i = 0;

	while (i < PARAM_END && (!(a->allowed & 1u << i) || strcmp(params[i].name, name)))
		i++;
	if (i == PARAM_END) {
		query_list_allowed(a->allowed, list, sizeof(list));
		snprintf(a->why, SERVE_WHY_BYTES, "unknown parameter '%.64s'; allowed here: %s",
			 name, list);
		return false;
	}
	if (a->seen & 1u << i) {
		snprintf(a->why, SERVE_WHY_BYTES, "parameter '%s' is given twice; once is allowed",
			 name);
		return false;
	}
	a->seen |= 1u << i;
	if (params[i].read(a->query, &params[i], value))
		return true;
	snprintf(a->why, SERVE_WHY_BYTES, "bad value '%.64s' of '%s'; allowed: %s", value, name,
		 params[i].allowed);
	return false;
}

bool query_read(struct query *q, char *text, unsigned allowed, char why[SERVE_WHY_BYTES])
{
	struct arguments a = { .query = q, .allowed = allowed, .why = why };
	const char *name, *value;
	int r;

	query_init(q);
	while ((r = http_next_parameter(&text, &name, &value)) == 0)
		if (!query_read_parameter(&a, name, value))
			return false;
	if (r < 0)
		snprintf(why, SERVE_WHY_BYTES,
			 "a parameter has a zero byte, or a %% without two hex digits");
	return r > 0;
}
