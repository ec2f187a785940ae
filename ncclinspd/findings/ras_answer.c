/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader of JSON would not do: NCCL 2.28.9 forgets a comma in what it writes of a missing
 * rank, which is just what matters, and an answer may have 100 MB.  Every NCCL writes one
 * member a line, so a line is read by its name, and its place follows from those before it.
 */
#include "ncclinspd/findings/ras_answer.h"

#include <stdio.h>
#include <string.h>

#include "util/text.h"
#include "util/unknown.h"

void ras_answer_init(struct ras_answer *a, uint64_t comm_id, int32_t nranks, const char *func)
{
	*a = (struct ras_answer){ .comm_id = comm_id, .nranks = nranks, .func = func };
}

void ras_answer_deinit(struct ras_answer *a)
{
	list_deinit(&a->ranks);
}

static struct afar_rank *answer_rank(struct ras_answer *a)
{
	return a->inside && a->ranks.n ? &a->ranks.at[a->ranks.n - 1] : NULL;
}

static bool text_is_hex(const char *text, uint64_t *value)
{
	*value = 0;
	if (strncmp(text, "0x", 2) || !text[2] || strlen(text) > 18)
		return false;
	for (text += 2; *text; text++) {
		if (text_hex_digit(*text) < 0)
			return false;
		*value = *value << 4 | (uint64_t)text_hex_digit(*text);
	}
	return true;
}

static void answer_on_hash(struct ras_answer *a, const char *value)
{
	uint64_t id;

	a->inside = text_is_hex(value, &id) && id == a->comm_id;
	a->missing = false;
	a->comms += a->inside;
}

/* Another communicator may have the same hash by chance. */
static void answer_on_size(struct ras_answer *a, const char *value)
{
	int64_t n;

	if (!a->inside || (!text_parse_integer(value, 1, INT32_MAX, &n) && n == a->nranks))
		return;
	a->inside = false;
	a->comms--;
}

static void answer_on_ranks(struct ras_answer *a, const char *value)
{
	a->missing = false;
}

static void answer_on_missing(struct ras_answer *a, const char *value)
{
	a->missing = true;
}

static void answer_on_rank(struct ras_answer *a, const char *value)
{
	struct afar_rank *r;
	int64_t rank;

	if (!a->inside)
		return;
	a->broken = a->ranks.n == RAS_RANKS_MOST || text_parse_integer(value, 0, INT32_MAX, &rank);
	r = a->broken ? NULL : list_append(&a->ranks);
	a->broken |= !r;
	if (r)
		*r = (struct afar_rank){ .rank = (int32_t)rank, .pid = UNKNOWN_I32,
					 .missing = a->missing, .calls = UNKNOWN_U64 };
}

/* An address, which goes into sentences; NCCL writes "unknown" where it has none. */
static void answer_on_host(struct ras_answer *a, const char *value)
{
	static const char good[] = "0123456789abcdef.:";
	struct afar_rank *r = answer_rank(a);

	if (r && strlen(value) < sizeof(r->host) && !value[strspn(value, good)])
		snprintf(r->host, sizeof(r->host), "%s", value);
}

static void answer_on_pid(struct ras_answer *a, const char *value)
{
	struct afar_rank *r = answer_rank(a);
	int64_t pid;

	if (r && !text_parse_integer(value, 1, INT32_MAX, &pid))
		r->pid = (int32_t)pid;
}

static void answer_on_silent(struct ras_answer *a, const char *value)
{
	struct afar_rank *r = answer_rank(a);

	if (r && r->missing)
		r->silent = !strcmp(value, "true");
}

static void answer_on_dead(struct ras_answer *a, const char *value)
{
	struct afar_rank *r = answer_rank(a);

	if (r && r->missing)
		r->dead = !strcmp(value, "true");
}

static void answer_on_end(struct ras_answer *a, const char *value)
{
	a->whole = true;
	a->inside = false;
}

static void answer_on_calls(struct ras_answer *a, const char *value)
{
	struct afar_rank *r = answer_rank(a);
	int64_t calls;

	if (r && !r->missing && !text_parse_integer(value, 0, INT64_MAX, &calls))
		r->calls = (uint64_t)calls;
}

static const struct {
	const char *name;
	void (*on)(struct ras_answer *a, const char *value);
} members[] = {
	{ "hash", answer_on_hash },
	{ "size", answer_on_size },
	{ "ranks", answer_on_ranks },
	{ "missing_ranks", answer_on_missing },
	{ "rank", answer_on_rank },
	{ "host", answer_on_host },
	{ "pid", answer_on_pid },
	{ "unresponsive", answer_on_silent },
	{ "considered_dead", answer_on_dead },
	{ "timeouts_count", answer_on_end },
};

/* `"name": value,` or `"name": "value",`: both are cut out of the line.  False: it is neither. */
static bool line_split(char *line, char **name, char **value)
{
	char *at = line + strspn(line, " \t"), *end;

	if (*at != '"' || !(end = strchr(at + 1, '"')) || end[1] != ':')
		return false;
	*end = '\0';
	*name = at + 1;
	at = end + 2;
	at += strspn(at, " \t");
	at[strcspn(at, ",\r")] = '\0';
	end = at + strlen(at);
	if (*at == '"' && end > at + 1 && end[-1] == '"') {
		end[-1] = '\0';
		at++;
	}
	*value = at;
	return true;
}

static void answer_take_line(struct ras_answer *a)
{
	char *name, *value;

	a->line[a->length] = '\0';
	if (!line_split(a->line, &name, &value))
		return;
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		if (strcmp(name, members[i].name))
			continue;
		members[i].on(a, value);
		return;
	}
	if (!strcmp(name, a->func))
		answer_on_calls(a, value);
}

void ras_answer_take(struct ras_answer *a, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n && !a->broken; i++) {
		char *at;

		if (bytes[i] != '\n') {
			at = array_add(a->line, &a->length);
			if (at)
				*at = bytes[i];
			continue;
		}
		if (a->length < RAS_LINE)
			answer_take_line(a);
		a->length = 0;
	}
}

bool ras_answer_is_good(const struct ras_answer *a)
{
	return a->whole && !a->broken && a->comms == 1;
}
