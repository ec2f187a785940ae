/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/findings: what is wrong, and what was, with what an empty list speaks of; and the
 * same as lines of a stream.
 */
#include "ncclinspd/serve/serve_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/levels/kernels.h"
#include "reader/base/job.h"
#include "util/list.h"

static void put_kind(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_string(j, finding_kind_name(((const struct finding *)row)->kind));
}

static void put_severity(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_string(j, finding_severity_name(((const struct finding *)row)->severity));
}

static void put_grade(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_string(j, finding_grade_name(((const struct finding *)row)->grade));
}

static void put_active(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_bool(j, !((const struct finding *)row)->life.until_ns);
}

static void put_comm_id(const struct serve *s, struct json *j, const void *row)
{
	const struct finding *f = row;

	(void)s;
	if (f->has_comm_id)
		json_put_hex64(j, f->comm_id);
	else
		json_put_null(j);
}

/* Has the user another communicator of that name? */
static bool finding_shares_name(const struct serve *s, const struct finding *f)
{
	struct process *const *list;
	size_t n = s->source.processes(s->source.arg, &list);

	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; list[i]->uid == f->uid && k < list[i]->ncomms; k++) {
			const struct comm *c = process_comm(list[i], (uint16_t)k);

			if (c && c->has_id && c->id != f->comm_id && !strcmp(c->name, f->comm_name))
				return true;
		}
	return false;
}

/* "dp"; "dp:1214", with the end of its id, where the name alone does not tell which it is. */
static void put_comm_label(const struct serve *s, struct json *j, const void *row)
{
	const struct finding *f = row;
	char label[sizeof(f->comm_name) + 8];

	if (!*f->comm_name) {
		put_comm_id(s, j, row);
		return;
	}
	snprintf(label, sizeof(label), "%s", f->comm_name);
	if (f->has_comm_id && finding_shares_name(s, f))
		snprintf(label, sizeof(label), "%s:%04x", f->comm_name,
			 (unsigned)(f->comm_id & 0xffff));
	json_put_string(j, label);
}

static void put_ranks(const struct serve *s, struct json *j, const void *row)
{
	const struct finding *f = row;

	(void)s;
	json_begin(j, '[');
	for (uint32_t i = 0; i < f->nranks; i++)
		json_put_i64(j, f->ranks[i]);
	json_end(j, ']');
}

static void put_evidence(const struct serve *s, struct json *j, const void *row)
{
	const struct finding *f = row;

	(void)s;
	if (f->evidence_bytes)
		json_put_raw(j, f->evidence, f->evidence_bytes);
	else
		json_put_null(j);
}

/* The first is for streams only, where `kind` says what a line is. */
const struct field finding_fields[] = {
	{ "finding", FIELD_PUT, 0, put_kind },
#define F(name, kind) { #name, kind, offsetof(struct finding, name), NULL }
	{ "id", FIELD_U64, offsetof(struct finding, life.id), NULL },
	{ "active", FIELD_PUT, 0, put_active },
	{ "grade", FIELD_PUT, 0, put_grade },
	{ "severity", FIELD_PUT, 0, put_severity },
	F(verdict, FIELD_NAME),
	{ "comm_id", FIELD_PUT, 0, put_comm_id },
	F(comm_name, FIELD_TEXT),
	{ "comm_label", FIELD_PUT, 0, put_comm_label },
	F(job, FIELD_TEXT),
	{ "ranks", FIELD_PUT, 0, put_ranks },
	F(peer, FIELD_I32),
	{ "since", FIELD_TIME, offsetof(struct finding, since_ns), NULL },
	{ "found", FIELD_TIME, offsetof(struct finding, life.found_ns), NULL },
	{ "until", FIELD_TIME, offsetof(struct finding, life.until_ns), NULL },
	F(text, FIELD_TEXT),
	{ "evidence", FIELD_PUT, 0, put_evidence },
#undef F
	{ NULL, 0, 0, NULL },
};

/* The kind is called "kind" in an answer. */
static const struct field kind_field[] = {
	{ "kind", FIELD_PUT, 0, put_kind },
	{ NULL, 0, 0, NULL },
};

const struct field_table finding_tables[] = {
	{ NULL, kind_field },
	{ NULL, finding_fields + 1 },
	{ NULL, NULL },
};

struct listing {
	const struct request *request;
	struct json *json;
};

static bool put_finding(const struct finding *f, void *arg)
{
	const struct listing *l = arg;
	const struct query *q = &l->request->query;
	unsigned n = 0;

	if (!viewer_sees(&l->request->viewer, f->uid))
		return true;
	if ((q->active != QUERY_ANY && q->active != !f->life.until_ns) ||
	    (q->grade != QUERY_ANY && q->grade != (int)f->grade))
		return true;
	json_begin(l->json, '{');
	for (const struct field_table *t = finding_tables; t->fields; t++)
		n = rows_put_chosen(l->request->serve, l->json, t->fields, f, &l->request->chosen,
				    n);
	json_end(l->json, '}');
	return true;
}

/* ---- the processes that it is about ------------------------------------------------ */

struct watched {
	uint64_t live, unseen, settling;
	uint64_t settles_ns;	/* the kernels of all of `settling` are timed from then on */
};

static const struct field watched_fields[] = {
#define F(name, member, kind) { name, kind, offsetof(struct watched, member), NULL }
	F("live", live, FIELD_U64),
	F("unseen", unseen, FIELD_U64),
	F("settling", settling, FIELD_U64),
	F("settles", settles_ns, FIELD_TIME),
#undef F
	{ NULL, 0, 0, NULL },
};

static void watched_add(struct watched *w, const struct process *p, uint64_t now_ns)
{
	if (p->state != PROCESS_LIVE)
		return;
	w->live++;
	if (kernels_state(p) != KERNELS_SETTLING) {
		w->unseen += process_level(p) && !process_sampling(p);
		return;
	}
	w->settling++;
	if (p->steering.settles_ns > now_ns && p->steering.settles_ns > w->settles_ns)
		w->settles_ns = p->steering.settles_ns;
}

static int jobs_compare(const void *one, const void *two)
{
	return strcmp(*(const char *const *)one, *(const char *const *)two);
}

/* The ids of all jobs, those of processes that have ended as well; null: there is no memory. */
static void watched_put_jobs(const struct request *r, struct json *j)
{
	LIST(const char *) jobs = { 0 };
	const char **place;
	struct process *p;
	bool whole = true;

	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));) {
		if (!job_id(p))
			continue;
		place = list_append(&jobs);
		whole = whole && place;
		if (place)
			*place = job_id(p);
	}
	if (jobs.n)
		qsort(jobs.at, jobs.n, sizeof(*jobs.at), jobs_compare);
	json_key(j, "jobs");
	if (!whole) {
		json_put_null(j);
	} else {
		json_begin(j, '[');
		for (uint32_t i = 0; i < jobs.n; i++)
			if (!i || strcmp(jobs.at[i - 1], jobs.at[i]))
				json_put_string(j, jobs.at[i]);
		json_end(j, ']');
	}
	list_deinit(&jobs);
}

static void watched_put(const struct request *r, struct json *j)
{
	struct watched w = { 0 };
	struct process *p;

	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));)
		watched_add(&w, p, r->serve->now_ns);
	json_key(j, "watched");
	json_begin(j, '{');
	rows_put(r->serve, j, watched_fields, &w);
	watched_put_jobs(r, j);
	json_end(j, '}');
}

void serve_findings(struct request *r, struct json *j)
{
	const struct diagnose *diagnose = r->serve->source.diagnose;
	struct listing listing = { r, j };

	json_key(j, "findings");
	json_begin(j, '[');
	diagnose_visit(diagnose, put_finding, &listing);
	json_end(j, ']');
	json_key(j, "refused");
	json_put_u64(j, diagnose_refused(diagnose));
	json_key(j, "left_out");
	json_put_u64(j, diagnose_left_out(diagnose));
	watched_put(r, j);
}
