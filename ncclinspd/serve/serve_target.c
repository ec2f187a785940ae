/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target of a PUT: one process, those of a job or of a communicator, or all.
 *
 * Everybody may change their own processes; viewers of everything may also change others', and
 * the node.  A process that a viewer may not change does not exist for that viewer.
 */
#include "ncclinspd/serve/serve_target.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "ncclinspd/levels/wishes.h"

/* ---- as it is asked for ----------------------------------------------------------- */

static int target_set_kind(struct request *r, struct wish *w, enum wish_kind kind)
{
	if (w->kind != WISH_NODE)
		return serve_refuse(r, -EINVAL,
				    "give one of pid, job and comm_id, or none for the node");
	w->kind = kind;
	return 0;
}

static int target_read_pid(struct request *r, const json_t *value, struct wish *w)
{
	if (!json_is_integer(value) || json_integer_value(value) < 1 ||
	    json_integer_value(value) > INT32_MAX)
		return serve_refuse(r, -EINVAL, "pid must be a whole number above 0");
	w->pid = (uint32_t)json_integer_value(value);
	return target_set_kind(r, w, WISH_PROCESS);
}

static int target_read_job(struct request *r, const json_t *value, struct wish *w)
{
	const char *text = json_string_value(value);

	if (!text || !*text || strlen(text) >= WISH_JOB_BYTES)
		return serve_refuse(r, -EINVAL, "job must be a string of up to %d bytes",
				    WISH_JOB_BYTES - 1);
	strcpy(w->job, text);
	return target_set_kind(r, w, WISH_JOB);
}

static int target_read_comm(struct request *r, const json_t *value, struct wish *w)
{
	const char *text = json_string_value(value);

	if (text && !strncmp(text, "0x", 2))
		text += 2;
	if (!text || !query_number(text, 16, UINT64_MAX, &w->id))
		return serve_refuse(r, -EINVAL, "comm_id must be a string of hex digits");
	return target_set_kind(r, w, WISH_COMM);
}

static const struct {
	const char *key;
	int (*read)(struct request *r, const json_t *value, struct wish *w);
} members[] = {
	{ "pid", target_read_pid },
	{ "job", target_read_job },
	{ "comm_id", target_read_comm },
};
#define MEMBERS (sizeof(members) / sizeof(members[0]))

/* A body under way: all but the target goes to `other`. */
struct target_reading {
	struct wish *wish;
	serve_member_fn *other;
	void *arg;
};

static int target_read_member(struct request *r, const char *key, const json_t *value, void *arg)
{
	const struct target_reading *t = arg;

	for (size_t i = 0; i < MEMBERS; i++)
		if (!strcmp(members[i].key, key))
			return json_is_null(value) ? 0 : members[i].read(r, value, t->wish);
	if (strcmp(key, "dry_run"))
		return t->other(r, key, value, t->arg);
	if (!json_is_boolean(value))
		return serve_refuse(r, -EINVAL, "dry_run must be true or false");
	r->dry_run = json_is_true(value);
	return 0;
}

int target_read(struct request *r, struct wish *w, serve_member_fn *other, void *arg)
{
	struct target_reading t = { w, other, arg };

	w->kind = WISH_NODE;
	w->uid = r->viewer.uid;
	w->everybody = r->viewer.all;
	return serve_read_body(r, target_read_member, &t);
}

/* ---- who that is -------------------------------------------------------------------- */

/*
 * The live process that is meant, among those that he may change.  A number that the kernel
 * confirms goes before those that are only claimed.
 */
static int target_find_process(struct request *r, struct wish *w)
{
	bool proven = false;
	struct process *p;
	uint32_t found = 0;

	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));) {
		if (p->state != PROCESS_LIVE || p->pid != (pid_t)w->pid || p->proven < proven)
			continue;
		found = p->proven == proven ? found + 1 : 1;
		proven = p->proven;
		w->id = p->instance;
	}
	if (found > 1)
		return serve_refuse(r, -EINVAL,
				    "%u processes have pid %u, in containers: give their job",
				    found, w->pid);
	return found ? 0 : serve_refuse(r, -ESRCH,
					"process %u does not use NCCL, or is not yours", w->pid);
}

static int target_find_any(struct request *r, const struct wish *w)
{
	size_t i = 0;

	if (target_next(r, w, &i))
		return 0;
	if (w->kind == WISH_JOB)
		return serve_refuse(r, -ESRCH, "no process of job '%s' here, or none of yours",
				    w->job);
	return serve_refuse(r, -ESRCH,
			    "no process of communicator 0x%016llx here, or none of yours",
			    (unsigned long long)w->id);
}

int target_find(struct request *r, struct wish *w)
{
	switch ((enum wish_kind)w->kind) {
	case WISH_NODE:
		return r->viewer.all ? 0 : -EPERM;
	case WISH_PROCESS:
		return target_find_process(r, w);
	default:
		return target_find_any(r, w);
	}
}

struct process *target_next(const struct request *r, const struct wish *w, size_t *i)
{
	struct process *p;

	while ((p = serve_next_process(r->serve, &r->viewer, i)))
		if (p->state == PROCESS_LIVE && wish_covers(w, p))
			return p;
	return NULL;
}
