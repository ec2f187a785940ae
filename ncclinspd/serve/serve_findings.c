/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/findings: what is wrong, and what was, with what an empty list speaks of; and the
 * same as lines of a stream.  PUT: what somebody who looked has seen.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/levels/kernels.h"
#include "ncclinspd/serve/serve_parts.h"
#include "reader/base/job.h"
#include "util/list.h"

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
static void put_comm_label(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct serve *s = serve_of(w);
	const struct finding *f = row;
	char label[sizeof(f->comm_name) + 8];

	if (!*f->comm_name && f->has_comm_id) {
		json_put_hex64(j, f->comm_id);
		return;
	}
	snprintf(label, sizeof(label), "%s", f->comm_name);
	if (f->has_comm_id && finding_shares_name(s, f))
		snprintf(label, sizeof(label), "%s:%04x", f->comm_name,
			 (unsigned)(f->comm_id & 0xffff));
	json_put_string(j, *label ? label : NULL);
}

static void finding_put_ranks(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct finding *f = row;

	json_begin(j, '[');
	for (uint32_t i = 0; i < f->nranks; i++)
		json_put_i64(j, f->ranks[i]);
	json_end(j, ']');
}

static const struct finding_whom *finding_whom(const struct finding *f, size_t *n)
{
	*n = f->nranks;
	return f->life.whom;
}

static void finding_put_evidence(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct finding *f = row;

	if (f->evidence_bytes)
		json_put_raw(j, f->evidence, f->evidence_bytes);
	else
		json_put_null(j);
}

static void finding_put_gathered(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct finding *f = row;

	json_begin(j, '[');
	for (uint32_t i = 0; i < FINDING_GATHERED && *f->life.gathered[i]; i++)
		json_put_string(j, f->life.gathered[i]);
	json_end(j, ']');
}

struct watched {
	const struct request *request;
	uint64_t live, unseen, settling, unled;
	uint64_t settles_ns;	/* the kernels of all of `settling` are timed from then on */
};

static int jobs_compare(const void *one, const void *two)
{
	return strcmp(*(const char *const *)one, *(const char *const *)two);
}

/* The ids of all jobs, those of processes that have ended as well. */
static void put_jobs(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct serve *s = serve_of(w);
	const struct request *r = ((const struct watched *)row)->request;
	LIST(const char *) jobs = { 0 };
	const char **place;
	struct process *p;

	json_begin(j, '[');
	for (size_t i = 0; (p = serve_next_process(s, &r->viewer, &i));) {
		if (!job_id(p))
			continue;
		place = list_append(&jobs);
		if (place)
			*place = job_id(p);
		else
			json_fail(j, -ENOMEM);
	}
	list_sort(&jobs, jobs_compare);
	for (uint32_t i = 0; i < jobs.n; i++)
		if (!i || strcmp(jobs.at[i - 1], jobs.at[i]))
			json_put_string(j, jobs.at[i]);
	json_end(j, ']');
	list_deinit(&jobs);
}

#include "schema/finding.h"

const struct field_table finding_tables[] = { { NULL, finding_fields }, { NULL, NULL } };

void serve_put_finding(struct serve *s, const struct finding *f, struct json *j)
{
	rows_put_object(&s->writer, j, finding_fields, f);
}

struct findings_listing {
	const struct request *request;
	struct json *json;
};

static bool findings_put(const struct finding *f, void *arg)
{
	const struct findings_listing *l = arg;
	const struct query *q = &l->request->query;

	if (!viewer_sees(&l->request->viewer, f->uid))
		return true;
	if ((q->active != QUERY_ANY && q->active != !f->life.until_ns) ||
	    (q->grade != QUERY_ANY && q->grade != (int)f->grade))
		return true;
	json_begin(l->json, '{');
	rows_put_chosen(&l->request->serve->writer, l->json, finding_fields, f,
			&l->request->chosen, 0);
	json_end(l->json, '}');
	return true;
}

/* ---- the processes that it is about ------------------------------------------------ */

static void watched_add(struct watched *w, const struct process *p, uint64_t now_ns)
{
	if (p->state != PROCESS_LIVE)
		return;
	w->live++;
	if (kernels_state(p) != KERNELS_SETTLING) {
		w->unseen += process_level(p) && !process_sampling(p);
		w->unled += p->steering.known && !p->steering.sequence &&
			    kernels_state(p) == KERNELS_OUTSIDE;
		return;
	}
	w->settling++;
	if (p->steering.settles_ns > now_ns && p->steering.settles_ns > w->settles_ns)
		w->settles_ns = p->steering.settles_ns;
}

static void watched_put(const struct request *r, struct json *j)
{
	struct watched w = { .request = r };
	struct process *p;

	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));)
		watched_add(&w, p, r->serve->now_ns);
	json_key(j, "watched");
	rows_put_object(&r->serve->writer, j, watched_fields, &w);
}

void serve_findings(struct request *r, struct json *j)
{
	const struct diagnose *diagnose = r->serve->source.diagnose;
	struct findings_listing listing = { r, j };

	json_begin_member(j, "findings", '[');
	diagnose_visit(diagnose, findings_put, &listing);
	json_end(j, ']');
	json_member_u64(j, "refused", diagnose_refused(diagnose));
	json_member_u64(j, "left_out", diagnose_left_out(diagnose));
	watched_put(r, j);
}

/* ---- what was gathered ---------------------------------------------------------------- */

struct gathered {
	uint64_t id;
	bool given;
	char lines[FINDING_GATHERED][FINDING_LINE];
};

/* Names in it come from jobs: whoever shows it makes it fit to be shown. */
static int gathered_read_lines(struct request *r, const json_t *value, struct gathered *g)
{
	size_t i, n = 0;
	json_t *line;

	if (!json_is_array(value) || json_array_size(value) > FINDING_GATHERED)
		return serve_refuse(r, -EINVAL, "gathered must be a list of up to %d lines",
				    FINDING_GATHERED);
	json_array_foreach((json_t *)value, i, line) {
		if (!json_string_length(line) || json_string_length(line) >= FINDING_LINE)
			return serve_refuse(r, -EINVAL, "each line of gathered must be a string of "
					    "1 to %d bytes", FINDING_LINE - 1);
		strcpy(g->lines[n++], json_string_value(line));
	}
	g->given = true;
	return 0;
}

static int gathered_read_member(struct request *r, const char *key, const json_t *value,
				void *arg)
{
	struct gathered *g = arg;

	if (!strcmp(key, "gathered"))
		return gathered_read_lines(r, value, g);
	if (strcmp(key, "id"))
		return serve_refuse(r, -EINVAL, "unknown member '%.64s'; allowed: id, gathered",
				    key);
	if (!json_is_integer(value) || json_integer_value(value) < 1)
		return serve_refuse(r, -EINVAL, "id must be the number of a finding");
	g->id = (uint64_t)json_integer_value(value);
	return 0;
}

int serve_put_gathered(struct request *r, struct json *j)
{
	struct gathered g = { 0 };
	const struct finding *f;
	int error;

	if (!r->viewer.all)
		return -EPERM;
	error = serve_read_body(r, gathered_read_member, &g);
	if (!error && !(g.id && g.given))
		error = serve_refuse(r, -EINVAL, "id and gathered are required");
	if (error)
		return error;
	f = diagnose_gather(r->serve->source.diagnose, g.id, g.lines, r->serve->now_ns);
	if (!f)
		return serve_refuse(r, -ENOENT, "there is no finding %llu, or it ended over an "
				    "hour ago", (unsigned long long)g.id);
	rows_put(&r->serve->writer, j, finding_fields, f);
	return 0;
}
