/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/findings: what is wrong, and what was; and the same as lines of a stream. */
#include "ncclinspd/serve/serve_impl.h"

#include "ncclinspd/findings/diagnose.h"

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
	{ "severity", FIELD_PUT, 0, put_severity },
	F(verdict, FIELD_NAME),
	{ "comm_id", FIELD_PUT, 0, put_comm_id },
	F(comm_name, FIELD_TEXT),
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
	if (q->active != QUERY_ANY && q->active != !f->life.until_ns)
		return true;
	json_begin(l->json, '{');
	for (const struct field_table *t = finding_tables; t->fields; t++)
		n = rows_put_chosen(l->request->serve, l->json, t->fields, f, &l->request->chosen,
				    n);
	json_end(l->json, '}');
	return true;
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
}
