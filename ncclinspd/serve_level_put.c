/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PUT /v1/level: somebody wants more of a process, or less.
 *
 * Who may: of the own processes everybody; of others', and of the node, those who see
 * everything.  What one may not change does not exist for him.
 */
#include "ncclinspd/serve_impl.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ncclinspd/job.h"
#include "ncclinspd/steer.h"

#define LONGEST_S	(7 * 24 * 3600.0)
#define SHORTEST_S	0.1

struct asked {
	struct wish wish;
	bool back;		/* "default": forget what was wished */
};

__attribute__((format(printf, 3, 4)))
static int refuse(struct request *r, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(r->why, sizeof(r->why), format, args);
	va_end(args);
	return error;
}

/* ---- the body ------------------------------------------------------------------ */

static int read_level(struct request *r, const json_t *value, struct asked *asked)
{
	const char *text = json_string_value(value);

	if (text && !strcmp(text, "default")) {
		asked->back = true;
		return 0;
	}
	for (uint32_t i = 0; text && i <= NCI_LEVEL_TRACE; i++)
		if (!strcmp(text, serve_levels[i])) {
			asked->wish.level = i;
			return 0;
		}
	return refuse(r, -EINVAL, "level is off, ops, kernel, net, trace or default");
}

static int read_sample(struct request *r, const json_t *value, struct asked *asked)
{
	const char *text = json_string_value(value);

	if (text && !strcmp(text, "all"))
		asked->wish.sample = NCI_SAMPLE_ALL;
	else if (text && !strcmp(text, "budget"))
		asked->wish.sample = NCI_SAMPLE_BUDGET;
	else
		return refuse(r, -EINVAL, "sample is all or budget");
	return 0;
}

static int read_duration(struct request *r, const json_t *value, struct asked *asked)
{
	double seconds = json_number_value(value);

	if (!json_is_number(value) || !(seconds >= SHORTEST_S && seconds <= LONGEST_S))
		return refuse(r, -EINVAL, "for_s is a number of seconds from %g to %.0f",
			      SHORTEST_S, LONGEST_S);
	asked->wish.until_ns = r->serve->now_ns + (uint64_t)(seconds * 1e9);
	return 0;
}

static int set_kind(struct request *r, struct asked *asked, enum wish_kind kind)
{
	if (asked->wish.kind != WISH_NODE)
		return refuse(r, -EINVAL, "one of pid, job and comm_id, or none for the node");
	asked->wish.kind = kind;
	return 0;
}

static int read_pid(struct request *r, const json_t *value, struct asked *asked)
{
	if (!json_is_integer(value) || json_integer_value(value) < 1 ||
	    json_integer_value(value) > INT32_MAX)
		return refuse(r, -EINVAL, "pid is a whole number above 0");
	asked->wish.pid = (uint32_t)json_integer_value(value);
	return set_kind(r, asked, WISH_PROCESS);
}

static int read_job(struct request *r, const json_t *value, struct asked *asked)
{
	const char *text = json_string_value(value);

	if (!text || !*text || strlen(text) >= WISH_JOB_BYTES)
		return refuse(r, -EINVAL, "job is a text of up to %d bytes", WISH_JOB_BYTES - 1);
	strcpy(asked->wish.job, text);
	return set_kind(r, asked, WISH_JOB);
}

static int read_comm(struct request *r, const json_t *value, struct asked *asked)
{
	const char *text = json_string_value(value);

	if (text && !strncmp(text, "0x", 2))
		text += 2;
	if (!text || !query_number(text, 16, UINT64_MAX, &asked->wish.id))
		return refuse(r, -EINVAL, "comm_id is a text of hex digits");
	return set_kind(r, asked, WISH_COMM);
}

static const struct {
	const char *key;
	int (*read)(struct request *r, const json_t *value, struct asked *asked);
} members[] = {
	{ "pid", read_pid },
	{ "job", read_job },
	{ "comm_id", read_comm },
	{ "level", read_level },
	{ "sample", read_sample },
	{ "for_s", read_duration },
};

static int read_member(struct request *r, const char *key, const json_t *value,
		       struct asked *asked)
{
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (!strcmp(members[i].key, key))
			return json_is_null(value) ? 0 : members[i].read(r, value, asked);
	return refuse(r, -EINVAL,
		      "there is no '%.64s'; allowed: pid, job, comm_id, level, sample, for_s", key);
}

static int check_whole(struct request *r, const struct asked *asked)
{
	bool wants = asked->wish.level != WISH_KEEP || asked->wish.sample != WISH_KEEP;

	if (asked->back && (asked->wish.sample != WISH_KEEP || asked->wish.until_ns))
		return refuse(r, -EINVAL,
			      "default takes back what was wanted: no sample, no for_s");
	if (!asked->back && !wants)
		return refuse(r, -EINVAL, "a level, a sample or both are wanted");
	return 0;
}

static int read_body(struct request *r, struct asked *asked)
{
	json_t *body = r->body ? json_loadb(r->body, r->body_bytes, JSON_REJECT_DUPLICATES, NULL)
			       : NULL;
	int error = json_is_object(body) ? 0 : refuse(r, -EINVAL, "the body is one JSON object");
	const char *key;
	json_t *value;

	json_object_foreach(body, key, value)
		if (!error)
			error = read_member(r, key, value, asked);
	json_decref(body);
	return error ? error : check_whole(r, asked);
}

/* ---- whom it is about ------------------------------------------------------------ */

/* The live process that is meant, among those that he may change. */
static int find_process(struct request *r, struct wish *w)
{
	struct process *p;
	uint32_t found = 0;

	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));) {
		if (p->state != PROCESS_LIVE || p->pid != (pid_t)w->pid)
			continue;
		w->id = p->instance;
		found++;
	}
	if (found > 1)
		return refuse(r, -EINVAL, "%u processes have pid %u, in containers: name their job",
			      found, w->pid);
	return found ? 0 : refuse(r, -ESRCH, "no process %u that uses NCCL, or it is not yours",
				  w->pid);
}

static int find_any(struct request *r, const struct wish *w)
{
	struct process *p;

	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));)
		if (p->state == PROCESS_LIVE && wish_covers(w, p))
			return 0;
	if (w->kind == WISH_JOB)
		return refuse(r, -ESRCH, "no process of job '%s' here, or none of yours", w->job);
	return refuse(r, -ESRCH, "no process of communicator 0x%016llx here, or none of yours",
		      (unsigned long long)w->id);
}

static int find_target(struct request *r, struct wish *w)
{
	switch ((enum wish_kind)w->kind) {
	case WISH_NODE:
		return r->viewer.all ? 0 : -EPERM;
	case WISH_PROCESS:
		return find_process(r, w);
	default:
		return find_any(r, w);
	}
}

/* ---- and then --------------------------------------------------------------------- */

static int take(struct request *r, const struct asked *asked)
{
	struct wishes *ws = levels_wishes(steer_levels(r->serve->source.steer));

	if (asked->back) {
		wishes_drop(ws, &asked->wish);
		return 0;
	}
	return wishes_put(ws, &asked->wish, r->serve->now_ns);
}

/* All or nothing: what jobs cannot be told is not wanted either. */
static int take_and_tell(struct request *r, const struct asked *asked)
{
	const struct serve *s = r->serve;
	struct wishes *ws = levels_wishes(steer_levels(s->source.steer)), before = *ws;
	int error = take(r, asked);

	if (error == -ENOSPC)
		return refuse(r, error,
			      "there are too many levels to be kept: take some back first");
	if (s->source.steered(s->source.arg, s->now_ns) == 0)
		return 0;
	error = refuse(r, -EIO, "jobs cannot be told: %s: %s", steer_control(s->source.steer)->path,
		       control_error_text(steer_control(s->source.steer)));
	*ws = before;
	s->source.steered(s->source.arg, s->now_ns);
	return error;
}

int serve_put_level(struct request *r, struct json *j)
{
	struct asked asked = { .wish = {
		.kind = WISH_NODE, .level = WISH_KEEP, .sample = WISH_KEEP,
		.uid = r->viewer.uid, .everybody = r->viewer.all,
	} };
	int error;

	if (!r->serve->source.steer)
		return -ENOSYS;
	error = read_body(r, &asked);
	if (!error)
		error = find_target(r, &asked.wish);
	if (!error)
		error = take_and_tell(r, &asked);
	if (error)
		return error;
	asked.wish.since_ns = r->serve->now_ns;
	serve_put_outcome(r, j, &asked.wish);
	return 0;
}
