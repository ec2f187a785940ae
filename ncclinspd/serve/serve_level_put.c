/* SPDX-License-Identifier: Apache-2.0 */
/* PUT /v1/level: somebody wants more of a process, or less. */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "ncclinspd/config/config.h"
#include "ncclinspd/levels/steer.h"
#include "ncclinspd/serve/serve_target.h"

#define LONGEST_S	(7 * 24 * 3600.0)
#define SHORTEST_S	0.1

struct level_asked {
	struct wish wish;
	bool back;		/* "default": forget what was wished */
	bool detail;		/* "detail": as for a finding here, because another node has one */
	uint32_t raised;	/* processes that follow that */
};

/* ---- the body ------------------------------------------------------------------ */

static int asked_read_level(struct request *r, const json_t *value, struct level_asked *asked)
{
	const char *text = json_string_value(value);

	if (text && !strcmp(text, "default")) {
		asked->back = true;
		return 0;
	}
	if (text && !strcmp(text, "detail")) {
		asked->detail = true;
		asked->wish.sample = NCI_SAMPLE_ALL;
		return 0;
	}
	for (uint32_t i = 0; text && i <= NCI_LEVEL_TRACE; i++)
		if (!strcmp(text, process_levels[i])) {
			asked->wish.level = i;
			return 0;
		}
	return serve_refuse(r, -EINVAL, "level must be off, ops, kernel, net, trace, detail "
			    "or default");
}

static int asked_read_sample(struct request *r, const json_t *value, struct level_asked *asked)
{
	const char *text = json_string_value(value);

	if (text && !strcmp(text, "all"))
		asked->wish.sample = NCI_SAMPLE_ALL;
	else if (text && !strcmp(text, "budget"))
		asked->wish.sample = NCI_SAMPLE_BUDGET;
	else
		return serve_refuse(r, -EINVAL, "sample must be all or budget");
	return 0;
}

static int asked_read_duration(struct request *r, const json_t *value, struct level_asked *asked)
{
	double seconds = json_number_value(value);

	if (!json_is_number(value) || !(seconds >= SHORTEST_S && seconds <= LONGEST_S))
		return serve_refuse(r, -EINVAL, "for_s must be a number of seconds from %g to %.0f",
				    SHORTEST_S, LONGEST_S);
	asked->wish.until_ns = r->serve->now_ns + (uint64_t)(seconds * 1e9);
	return 0;
}

static const struct {
	const char *key;
	int (*read)(struct request *r, const json_t *value, struct level_asked *asked);
} members[] = {
	{ "level", asked_read_level },
	{ "sample", asked_read_sample },
	{ "for_s", asked_read_duration },
};

static int level_read_member(struct request *r, const char *key, const json_t *value, void *arg)
{
	struct level_asked *asked = arg;

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (!strcmp(members[i].key, key))
			return json_is_null(value) ? 0 : members[i].read(r, value, asked);
	return serve_refuse(r, -EINVAL,
			    "unknown member '%.64s'; allowed: pid, job, comm_id, level, sample, "
			    "for_s, dry_run",
			    key);
}

static int asked_check_whole(struct request *r, const struct level_asked *asked)
{
	bool wants = asked->wish.level != WISH_KEEP || asked->wish.sample != WISH_KEEP;

	if (asked->back && (asked->wish.sample != WISH_KEEP || asked->wish.until_ns))
		return serve_refuse(r, -EINVAL,
				    "level default removes what was set: it takes no sample and no "
				    "for_s");
	if (!asked->back && !wants)
		return serve_refuse(r, -EINVAL, "level or sample is required");
	return 0;
}

/* The limits of this node hold for what another one asks. */
static int asked_check_detail(struct request *r, struct level_asked *asked)
{
	uint64_t most_ns = r->serve->now_ns + LEVELS_DETAIL_NS;

	if (asked->wish.kind != WISH_COMM || asked->wish.sample != NCI_SAMPLE_ALL)
		return serve_refuse(r, -EINVAL, "level detail needs a comm_id, and no sample "
				    "other than all");
	if (r->serve->source.config && !r->serve->source.config->auto_detail)
		return serve_refuse(r, -EPERM, "auto-detail is switched off on this node");
	if (!asked->wish.until_ns || asked->wish.until_ns > most_ns)
		asked->wish.until_ns = most_ns;
	asked->wish.everybody |= r->viewer.raises;
	return 0;
}

/* ---- and then --------------------------------------------------------------------- */

static int level_take_asked(struct request *r, const struct level_asked *asked)
{
	struct wishes *ws = levels_wishes(steer_levels(r->serve->source.steer));

	if (asked->back) {
		wishes_drop(ws, &asked->wish);
		return 0;
	}
	return wishes_put(ws, &asked->wish, r->serve->now_ns);
}

static int level_tell_jobs(struct request *r)
{
	const struct serve *s = r->serve;

	if (s->source.steered(s->source.arg, s->now_ns) == 0)
		return 0;
	return serve_refuse(r, -EIO, "jobs cannot be reached: %s: %s",
			    steer_control(s->source.steer)->path,
			    control_error_text(steer_control(s->source.steer)));
}

/* All or nothing: what jobs cannot be told is not wanted either. */
static int level_take_and_tell(struct request *r, const struct level_asked *asked)
{
	const struct serve *s = r->serve;
	struct wishes *ws = levels_wishes(steer_levels(s->source.steer)), before = *ws;
	int error = level_take_asked(r, asked);

	if (error == -ENOSPC)
		return serve_refuse(r, error,
			      "too many levels are set: remove some first (level default)");
	error = level_tell_jobs(r);
	if (!error)
		return 0;
	*ws = before;
	s->source.steered(s->source.arg, s->now_ns);
	return error;
}

static int level_wish(struct request *r, struct level_asked *asked)
{
	int error = target_find(r, &asked->wish);

	return error || r->dry_run ? error : level_take_and_tell(r, asked);
}

/* Communicators that this node has no rank of are no error: the asking node cannot know. */
static int level_detail(struct request *r, struct level_asked *asked)
{
	const struct serve *s = r->serve;
	struct process *const *list;
	size_t n = s->source.processes(s->source.arg, &list);
	int error = asked_check_detail(r, asked);

	if (error || r->dry_run)
		return error;
	asked->raised = steer_detail(s->source.steer, &asked->wish, list, n, s->now_ns);
	return asked->raised ? level_tell_jobs(r) : 0;
}

int serve_put_level(struct request *r, struct json *j)
{
	struct level_asked asked = { .wish = {
		.kind = WISH_NODE, .level = WISH_KEEP, .sample = WISH_KEEP,
		.uid = r->viewer.uid, .everybody = r->viewer.all,
	} };
	int error;

	if (!r->serve->source.steer)
		return -ENOSYS;
	error = target_read(r, &asked.wish, level_read_member, &asked);
	if (!error)
		error = asked_check_whole(r, &asked);
	if (!error && asked.detail)
		error = level_detail(r, &asked);
	else if (!error)
		error = level_wish(r, &asked);
	if (error)
		return error;
	asked.wish.since_ns = r->serve->now_ns;
	serve_put_outcome(r, j, &asked.wish);
	if (asked.detail)
		json_member_u64(j, "raised", asked.raised);
	return 0;
}
