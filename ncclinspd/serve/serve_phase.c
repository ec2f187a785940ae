/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/phase: what jobs are at, as somebody says; PUT: somebody says it. */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "ncclinspd/levels/marks.h"
#include "ncclinspd/levels/wishes.h"
#include "ncclinspd/serve/serve_parts.h"
#include "ncclinspd/serve/serve_target.h"
#include "reader/base/accounts.h"
#include "reader/base/job.h"
#include "reader/base/names.h"

struct phase_asked {
	bool given;
	char phase[PHASE_BYTES];	/* "": none */
};

static int phase_read_member(struct request *r, const char *key, const json_t *value, void *arg)
{
	const char *text = json_string_value(value);
	struct phase_asked *asked = arg;

	if (strcmp(key, "phase"))
		return serve_refuse(r, -EINVAL,
				    "unknown member '%.64s'; allowed: pid, job, comm_id, phase, "
				    "dry_run", key);
	if (!json_is_null(value) && !(text && phase_is_sound(text)))
		return serve_refuse(r, -EINVAL,
				    "phase must be up to %d letters, digits and ._:/+-, not "
				    "'-' alone, or null for none", PHASE_BYTES - 1);
	asked->given = true;
	if (text)
		strcpy(asked->phase, text);
	return 0;
}

/* Only of those who may: a name is kept for good. */
static int phase_keep_name(struct request *r, const char *text, name_t *name)
{
	const struct serve_source *source = &r->serve->source;

	*name = names_intern(source->names, accounts_of(source->accounts, r->viewer.uid), text,
			     strlen(text));
	return !*name || !strcmp(*name, text) ? 0 :
	       serve_refuse(r, -ENOSPC, "too many different names: use an earlier one");
}

#include "schema/phase.h"

/* All or nothing: whoever cannot be kept in mind is not marked either. */
static int phase_keep_mark(struct request *r, const struct wish *w, name_t phase)
{
	struct marks *m = r->serve->source.marks;

	if (!m || marks_put(m, w, phase, r->serve->now_ns) == 0)
		return 0;
	return serve_refuse(r, -ENOSPC, "too many jobs have a phase: remove one first");
}

static void phases_save(const struct serve *s)
{
	struct process *const *list;
	size_t n = s->source.processes(s->source.arg, &list);

	if (s->source.marks)
		marks_save(s->source.marks, list, n);
}

static void phase_set_all(struct request *r, struct json *j, const struct wish *w, name_t phase)
{
	struct process *p;

	json_begin_member(j, "processes", '[');
	for (size_t i = 0; (p = target_next(r, w, &i));) {
		if (!r->dry_run)
			phase_set(p, phase, r->serve->now_ns);
		rows_put_object(&r->serve->writer, j, phased_fields, p);
	}
	json_end(j, ']');
}

int serve_put_phase(struct request *r, struct json *j)
{
	struct phase_asked asked = { .given = false };
	struct wish w = { .kind = WISH_NODE };
	int error = target_read(r, &w, phase_read_member, &asked);
	name_t phase = NULL;

	if (!error && !asked.given)
		error = serve_refuse(r, -EINVAL, "phase is required: a name, or null for none");
	if (!error)
		error = target_find(r, &w);
	if (!error && !r->dry_run)
		error = phase_keep_name(r, asked.phase, &phase);
	if (!error && !r->dry_run)
		error = phase_keep_mark(r, &w, phase);
	if (error)
		return error;
	rows_put(&r->serve->writer, j, target_fields, &w);
	json_member_string(j, "phase", *asked.phase ? asked.phase : NULL);
	rows_put_time(&r->serve->writer, j, "since", r->serve->now_ns);
	json_member_bool(j, "later", w.kind == WISH_JOB && *asked.phase && r->serve->source.marks);
	phase_set_all(r, j, &w, phase);
	if (!r->dry_run)
		phases_save(r->serve);
	return 0;
}

void serve_phase(struct request *r, struct json *j)
{
	const struct serve *s = r->serve;
	const struct mark *mark;

	json_begin_member(j, "marks", '[');
	for (size_t i = 0; s->source.marks && (mark = marks_next(s->source.marks, &i));)
		if (mark->everybody || viewer_sees(&r->viewer, mark->uid))
			rows_put_object(&s->writer, j, mark_fields, mark);
	json_end(j, ']');
}
