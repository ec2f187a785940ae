/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answers of a metrics engine become rows: one query for each family that the judge needs, and
 * a function that puts each of its series where it belongs.  ncclinsp_comm_info comes first: it
 * makes the ranks, which the others find by node, communicator and rank.
 *
 * Samples are means over a step of time.  They carry the number that the communicator's operations
 * had reached by then, so that each stands for those since the one before.
 */
#include "cli/offline/engine.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/base/intake.h"
#include "cli/base/member.h"
#include "cli/base/must.h"
#include "cli/common/cli.h"
#include "util/cleanup.h"
#include "util/utf8.h"

#define TIMEOUT_MS	20000
#define STEP_S		15
#define STEPS		24	/* samples of a rank: a few more than a judge needs */
#define NAMED		640

struct engine_asked {
	struct engine *engine;
	CURL *curl;
	json_t *hosts;		/* the result */
	json_t *comms;		/* "host comm_id": row of comms */
	json_t *places;		/* "host comm_id rank": { local, row } */
	json_t *history;	/* "host comm_id rank": what each family was, by time */
	json_t *reached;	/* "comm_id time": the most operations posted by then */
	uint64_t now_ns;	/* here, monotonic */
	int64_t now_s;		/* seconds since 1970 */
	double step_s;
};

/* ---- one query ---------------------------------------------------------------------- */

bool engine_is_url(const char *from)
{
	return !strncmp(from, "http://", 7) || !strncmp(from, "https://", 8);
}

void engine_init(struct engine *e, const char *url, const char *job)
{
	*e = (struct engine){
		.url = url, .job = job, .token = getenv("NCCLINSP_ENGINE_TOKEN"),
		.ca = getenv("NCCLINSP_ENGINE_CA"), .tenant = getenv("NCCLINSP_ENGINE_TENANT"),
		.step = getenv("NCCLINSP_ENGINE_STEP"),
	};
}

static struct curl_slist *engine_headers(const struct engine *e)
{
	struct curl_slist *headers = NULL;
	char text[4096];

	if (e->token) {
		snprintf(text, sizeof(text), "Authorization: Bearer %s", e->token);
		headers = curl_slist_append(headers, text);
	}
	if (e->tenant) {
		snprintf(text, sizeof(text), "X-Scope-OrgID: %s", e->tenant);
		headers = curl_slist_append(headers, text);
	}
	return headers;
}

/* POST, as queries are long. */
static CURLcode engine_post(struct engine_asked *a, const char *path, const char *form, FILE *to)
{
	struct curl_slist *headers = engine_headers(a->engine);
	char url[2048];
	CURLcode code;

	snprintf(url, sizeof(url), "%.*s%s", (int)strcspn(a->engine->url, "?#"), a->engine->url,
		 path);
	curl_easy_reset(a->curl);
	curl_easy_setopt(a->curl, CURLOPT_URL, url);
	curl_easy_setopt(a->curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(a->curl, CURLOPT_POSTFIELDS, form);
	curl_easy_setopt(a->curl, CURLOPT_WRITEDATA, to);
	curl_easy_setopt(a->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(a->curl, CURLOPT_ACCEPT_ENCODING, "");
	curl_easy_setopt(a->curl, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
	if (a->engine->ca)
		curl_easy_setopt(a->curl, CURLOPT_CAINFO, a->engine->ca);
	code = curl_easy_perform(a->curl);
	curl_slist_free_all(headers);
	return code;
}

/* `body`: what was answered, where that is no JSON. */
static void engine_explain(struct engine_asked *a, CURLcode code, const json_t *root, char *body)
{
	const char *said = member_text(root, "error", body);
	long status = 0;

	curl_easy_getinfo(a->curl, CURLINFO_RESPONSE_CODE, &status);
	if (code)
		snprintf(a->engine->error, sizeof(a->engine->error),
			 "%s does not answer: %s; is it the address of Prometheus, or of an "
			 "engine with its API?", a->engine->url, curl_easy_strerror(code));
	else if (status == 401 || status == 403)
		snprintf(a->engine->error, sizeof(a->engine->error),
			 "%s refuses: %ld; set NCCLINSP_ENGINE_TOKEN (bearer token) or "
			 "NCCLINSP_ENGINE_TENANT", a->engine->url, status);
	else
		snprintf(a->engine->error, sizeof(a->engine->error),
			 "%s answers %ld: %.200s; are the path, the job and the token right?",
			 a->engine->url, status, said);
}

/* Its first line, as a terminal may have it. */
static char *text_of_body(char *text)
{
	text[strcspn(text, "\r\n")] = '\0';
	utf8_clean(text, strlen(text));
	return text;
}

/* The array of series; NULL, and e->error: there is none. */
static json_t *engine_query(struct engine_asked *a, const char *path, const char *form)
{
	CLEANUP(cleanup_freep) char *text = NULL;
	size_t bytes = 0;
	FILE *to = must(open_memstream(&text, &bytes));
	CURLcode code = engine_post(a, path, form, to);
	json_auto_t *root = NULL;
	json_t *result;

	fclose(to);
	root = code ? NULL : intake_read(text, bytes, NULL);
	result = json_object_get(json_object_get(root, "data"), "result");
	if (json_is_array(result))
		return json_incref(result);
	engine_explain(a, code, root, text_of_body(text));
	return NULL;
}

/* ---- labels ------------------------------------------------------------------------- */

/* To the engine a label that is empty is none. */
static json_t *label_json(const json_t *labels, const char *name)
{
	return json_text(member_text(labels, name, NULL));
}

static json_t *label_integer(const json_t *labels, const char *name)
{
	const char *text = member_text(labels, name, NULL);

	return text ? json_integer(strtoll(text, NULL, 10)) : json_null();
}

/* The name of a rank, or without `rank` of a communicator, on a node. */
static const char *label_place(const json_t *labels, bool rank, char name[NAMED])
{
	snprintf(name, NAMED, "%.255s %.40s %.20s", member_text(labels, "node", "?"),
		 member_text(labels, "comm_id", ""), rank ? member_text(labels, "rank", "") : "");
	return name;
}

static json_t *asked_place(const struct engine_asked *a, const json_t *labels, const char *which)
{
	char name[NAMED];

	return json_object_get(json_object_get(a->places, label_place(labels, true, name)), which);
}

/* ---- rows --------------------------------------------------------------------------- */

static json_t *asked_host(struct engine_asked *a, const json_t *labels)
{
	const char *host = member_text(labels, "node", "?");
	json_t *root = json_object_get(a->hosts, host);
	time_t now = (time_t)a->now_s;
	char at[32];
	struct tm utc;

	if (root)
		return root;
	gmtime_r(&now, &utc);
	strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", &utc);
	root = must(json_pack("{s:s, s:i, s:s, s:I, s:{s:s}, s:[], s:[], s:[], s:[], s:[], s:[]}",
			      "format", "ncclinsp-snapshot", "format_version", 1,
			      "written_at", at, "written_mono_ns", (json_int_t)a->now_ns,
			      "status", "host", host, "processes", "comms", "inflight", "findings",
			      "ranks", "samples"));
	json_object_set_new(a->hosts, host, root);
	return root;
}

static json_t *asked_comm(struct engine_asked *a, const json_t *labels)
{
	char name[NAMED];
	json_t *comm = json_object_get(a->comms, label_place(labels, false, name));

	if (comm)
		return comm;
	comm = must(json_pack("{s:o, s:o, s:o, s:o, s:[]}",
			      "comm_id", label_json(labels, "comm_id"),
			      "name", label_json(labels, "comm_name"),
			      "nranks", label_integer(labels, "nranks"),
			      "nnodes", label_integer(labels, "nnodes"), "local_ranks"));
	json_object_set(a->comms, name, comm);
	json_array_append_new(json_object_get(asked_host(a, labels), "comms"), comm);
	return comm;
}

/* Members that rows of comms, ranks and what is in flight share. */
static json_t *row_of_rank(const json_t *labels)
{
	return must(json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			      "rank", label_integer(labels, "rank"),
			      "world_rank", label_integer(labels, "world_rank"),
			      "pid", label_integer(labels, "pid"),
			      "uid", label_integer(labels, "uid"),
			      "job", label_json(labels, "job_id"),
			      "gpu_uuid", label_json(labels, "gpu_uuid"),
			      "pci_bus_id", label_json(labels, "pci_bus_id"),
			      "gpu_index", label_integer(labels, "gpu_index")));
}

static void take_comm(struct engine_asked *a, const json_t *labels, double value)
{
	json_t *local = row_of_rank(labels), *row = row_of_rank(labels);
	json_t *comm = asked_comm(a, labels);
	char name[NAMED];

	json_object_update_new(local, json_pack("{s:s, s:{}, s:i, s:b, s:b, s:b}", "state", "live",
						"last_seq", "in_flight", 0, "left", 0,
						"counted", 1, "silenceable", 0));
	json_object_update_new(row, json_pack("{s:O, s:O, s:O, s:O, s:s, s:s, s:i, s:b, s:b}",
			"comm_id", json_object_get(comm, "comm_id"),
			"comm_name", json_object_get(comm, "name"),
			"nranks", json_object_get(comm, "nranks"),
			"nnodes", json_object_get(comm, "nnodes"),
			"host", member_text(labels, "node", "?"), "state", "live",
			"in_flight", 0, "stalled", 0, "late", 0));
	json_array_append(json_object_get(comm, "local_ranks"), local);
	json_array_append(json_object_get(asked_host(a, labels), "ranks"), row);
	json_object_set_new(a->places, label_place(labels, true, name),
			    json_pack("{s:o, s:o}", "local", local, "row", row));
}

static void take_sequence(struct engine_asked *a, const json_t *labels, double value)
{
	json_t *local = asked_place(a, labels, "local"), *row = asked_place(a, labels, "row");
	const char *op = member_text(labels, "op", NULL);
	json_int_t seq = (json_int_t)intake_whole(value);

	if (!local || !op)
		return;
	json_object_set_new(json_object_get(local, "last_seq"), op, json_integer(seq));
	if (json_integer_value(json_object_get(row, "last_seq")) > seq)
		return;
	json_object_set_new(row, "last_func", json_string(op));
	json_object_set_new(row, "last_seq", json_integer(seq));
}

/* The operation in flight for longest, where its age is such that it is named. */
static json_t *row_in_flight(const json_t *labels, const json_t *row, uint64_t age_ns)
{
	json_t *op = json_copy((json_t *)row);
	bool p2p = member_text(labels, "peer_rank", NULL);

	json_object_update_new(op, json_pack("{s:s, s:s, s:o, s:o, s:I, s:o, s:o}",
			"process_state", "live", "event_type", p2p ? "P2p" : "Coll",
			"func", label_json(labels, "op"), "seq", label_integer(labels, "sequence"),
			"age_ns", (json_int_t)age_ns, "state", label_json(labels, "state"),
			"peer", label_integer(labels, "peer_rank")));
	return op;
}

static void take_oldest(struct engine_asked *a, const json_t *labels, double value)
{
	json_t *local = asked_place(a, labels, "local"), *row = asked_place(a, labels, "row");
	uint64_t age_ns = intake_whole(value * 1e9);

	if (!local || !age_ns)
		return;
	json_object_set_new(local, "in_flight", json_integer(1));
	json_object_set_new(row, "in_flight", json_integer(1));
	json_object_set_new(row, "oldest_ns", json_integer((json_int_t)age_ns));
	json_object_set_new(row, "stalled", json_boolean(value >= 1));
	if (member_text(labels, "op", NULL))
		json_array_append_new(json_object_get(asked_host(a, labels), "inflight"),
				      row_in_flight(labels, row, age_ns));
}

static void take_wait(struct engine_asked *a, const json_t *labels, double value)
{
	json_t *row = asked_place(a, labels, "row");

	if (row)
		json_object_set_new(row, "wait", json_real(value));
}

static void take_blame(struct engine_asked *a, const json_t *labels, double value)
{
	json_t *row = asked_place(a, labels, "row");

	if (row)
		json_object_set_new(row, "blame", json_real(value < 1 ? value : 1));
}

static void take_process(struct engine_asked *a, const json_t *labels, double value)
{
	json_t *container = json_pack("{s:o, s:o, s:o}", "id", label_json(labels, "container_id"),
				      "pod", label_json(labels, "pod"),
				      "namespace", label_json(labels, "namespace"));

	json_array_append_new(json_object_get(asked_host(a, labels), "processes"),
		must(json_pack("{s:o, s:o, s:s, s:o, s:{s:o, s:o}, s:o, s:o}",
			       "pid", label_integer(labels, "pid"),
			       "uid", label_integer(labels, "uid"), "state", "live",
			       "command", label_json(labels, "command"),
			       "job", "id", label_json(labels, "job_id"),
			       "scheduler", label_json(labels, "scheduler"),
			       "plugin_version", label_json(labels, "plugin_version"),
			       "container", container)));
}

/* `value`: seconds since it was told first. */
static void take_finding(struct engine_asked *a, const json_t *labels, double value)
{
	json_t *local = asked_place(a, labels, "local"), *f;
	char text[512];

	snprintf(text, sizeof(text), "found by the daemon of %.255s, which has the evidence: "
		 "ncclinsp diagnose there", member_text(labels, "node", "?"));
	f = must(json_pack("{s:o, s:o, s:o, s:b, s:s, s:o, s:o, s:o, s:[], s:[], s:s, "
			   "s:I}", "kind", label_json(labels, "kind"),
			   "verdict", label_json(labels, "verdict"),
			   "grade", label_json(labels, "grade"), "active", 1,
			   "severity", "warning", "comm_id", label_json(labels, "comm_id"),
			   "comm_name", label_json(labels, "comm"),
			   "job", label_json(labels, "job_id"), "ranks", "whom", "text", text,
			   "since_mono_ns", (json_int_t)(a->now_ns - intake_whole(value * 1e9))));
	if (member_text(labels, "rank", NULL))
		json_array_append_new(json_object_get(f, "ranks"), label_integer(labels, "rank"));
	if (local)
		json_array_append_new(json_object_get(f, "whom"),
			json_pack("{s:O, s:O, s:s, s:O}", "rank", json_object_get(local, "rank"),
				  "world_rank", json_object_get(local, "world_rank"),
				  "host", member_text(labels, "node", "?"),
				  "pid", json_object_get(local, "pid")));
	json_array_append_new(json_object_get(asked_host(a, labels), "findings"), f);
}

static void take_silent(struct engine_asked *a, const json_t *labels, double value)
{
	json_object_set_new(a->hosts, member_text(labels, "node", "?"),
			    json_string("the engine has had nothing of it for a while"));
}

/* ---- what has been ------------------------------------------------------------------ */

/* The text of a moment: engines round a step alike. */
static const char *moment_text(double at_s, char text[32])
{
	snprintf(text, 32, "%.3f", at_s);
	return text;
}

static void take_history(struct engine_asked *a, const json_t *labels, double at_s, double value,
			 const char *what)
{
	char name[NAMED], at[32];
	json_t *of_rank = json_object_get(a->history, label_place(labels, true, name)), *moment;

	if (!asked_place(a, labels, "local"))
		return;
	if (!of_rank)
		json_object_set_new(a->history, name, of_rank = json_object());
	moment = json_object_get(of_rank, moment_text(at_s, at));
	if (!moment)
		json_object_set_new(of_rank, at, moment = json_object());
	json_object_set_new(moment, what, json_real(value));
}

/* The most that any rank of the communicator had posted of its functions. */
static void take_reached(struct engine_asked *a, const json_t *labels, double at_s, double value,
			 const char *what)
{
	char key[96], at[32];

	snprintf(key, sizeof(key), "%.40s %s", member_text(labels, "comm_id", ""),
		 moment_text(at_s, at));
	json_object_set_new(a->reached, key, json_integer((json_int_t)intake_whole(value)));
}

static double moment_value(const json_t *moment, const char *what)
{
	return json_number_value(json_object_get(moment, what));
}

/* Time of the process in other communicators, in parts of the time: inside, or at least waiting. */
static double history_elsewhere(const struct engine_asked *a, const char *host, const json_t *comm,
				const json_t *local, const char *at)
{
	const json_t *root = json_object_get(a->hosts, host), *moment;
	double sum = 0;
	char name[NAMED];

	json_each(other, json_object_get(root, "comms"))
		json_each(rank, json_object_get(other, "local_ranks")) {
			if (other == comm || !json_equal(json_object_get(rank, "pid"),
							 json_object_get(local, "pid")))
				continue;
			snprintf(name, NAMED, "%.255s %.40s %" JSON_INTEGER_FORMAT, host,
				 member_text(other, "comm_id", ""),
				 json_integer_value(json_object_get(rank, "rank")));
			moment = json_object_get(json_object_get(a->history, name), at);
			sum += json_object_get(moment, "inside") ? moment_value(moment, "inside") :
								   moment_value(moment, "wait");
		}
	return sum;
}

/* The function that a rank has posted most of. */
static const char *local_func(const json_t *local)
{
	const char *func, *most = "collectives";
	json_int_t best = 0;
	json_t *seq;

	json_object_foreach(json_object_get(local, "last_seq"), func, seq)
		if (json_integer_value(seq) > best) {
			best = json_integer_value(seq);
			most = func;
		}
	return most;
}

static void asked_add_sample(struct engine_asked *a, const char *host, const json_t *comm,
			     const json_t *local, const char *at, const json_t *moment)
{
	const char *comm_id = member_text(comm, "comm_id", "");
	double ops = moment_value(moment, "ops"), at_s = strtod(at, NULL);
	const json_t *reached;
	char key[96];

	snprintf(key, sizeof(key), "%.40s %s", comm_id, at);
	reached = json_object_get(a->reached, key);
	if (ops <= 0 || !reached)
		return;
	json_array_append_new(json_object_get(json_object_get(a->hosts, host), "samples"),
		must(json_pack("{s:s, s:O, s:s, s:O, s:O, s:I, s:I, s:I}", "comm_id", comm_id,
			"nranks", json_object_get(comm, "nranks"), "func", local_func(local),
			"seq", reached, "rank", json_object_get(local, "rank"), "inside_ns",
			(json_int_t)intake_whole(moment_value(moment, "inside") / ops * 1e9),
			"before_ns", (json_int_t)intake_whole(1e9 / ops *
				history_elsewhere(a, host, comm, local, at)),
			"done_mono_ns", (json_int_t)(a->now_ns -
				intake_whole(((double)a->now_s - at_s) * 1e9)))));
}

static void asked_make_samples(struct engine_asked *a)
{
	const char *host, *at;
	json_t *root, *moment;
	char name[NAMED];

	json_object_foreach(a->hosts, host, root)
		json_each(comm, json_object_get(root, "comms"))
			json_each(local, json_object_get(comm, "local_ranks")) {
				snprintf(name, NAMED, "%.255s %.40s %" JSON_INTEGER_FORMAT, host,
					 member_text(comm, "comm_id", ""),
					 json_integer_value(json_object_get(local, "rank")));
				json_object_foreach(json_object_get(a->history, name), at, moment)
					asked_add_sample(a, host, comm, local, at, moment);
			}
}

/* ---- queries ------------------------------------------------------------------------- */

/*
 * {} stands for the labels of the job that is asked for, % for "and of one of its ranks", $ for the
 * span of a rate.
 */
static const struct asked_now {
	const char *query;
	void (*take)(struct engine_asked *a, const json_t *labels, double value);
} queries_now[] = {
	{ "ncclinsp_comm_info{comm_id!=\"\",{}}", take_comm },
	{ "ncclinsp_last_sequence%", take_sequence },
	{ "rate(ncclinsp_op_wait_seconds_total[$])%", take_wait },
	{ "rate(ncclinsp_blame_seconds_total[$])%", take_blame },
	{ "ncclinsp_inflight_oldest_seconds%", take_oldest },
	{ "ncclinsp_process_info{{}}", take_process },
	{ "(time() - min_over_time(timestamp(ncclinsp_finding_active{{}})[1h:$])) "
	  "and ncclinsp_finding_active{{}}", take_finding },
	{ "max by (node) (max_over_time(ncclinsp_processes{{}}[15m])) > 0 "
	  "unless on (node) ncclinsp_build_info", take_silent },
};

static const struct asked_past {
	const char *query, *what;
	void (*take)(struct engine_asked *a, const json_t *labels, double at_s, double value,
		     const char *what);
} queries_past[] = {
	{ "rate(ncclinsp_op_inside_seconds_total[$])%", "inside", take_history },
	{ "rate(ncclinsp_op_inside_ops_total[$])%", "ops", take_history },
	{ "rate(ncclinsp_op_wait_seconds_total[$])%", "wait", take_history },
	{ "max by (comm_id) (sum by (node, comm_id, rank) (ncclinsp_last_sequence"
	  "{op=~\"AllReduce|AllGather|ReduceScatter|AlltoAllv?\"}%))", "", take_reached },
};

static void query_put_job(const struct engine *e, FILE *to)
{
	if (!e->job)
		return;
	fputs("job_id=\"", to);
	for (const char *at = e->job; *at; at++)
		fprintf(to, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
	fputc('"', to);
}

static char *query_text(const struct engine_asked *a, const char *query)
{
	char *text = NULL;
	size_t bytes;
	FILE *to = must(open_memstream(&text, &bytes));

	for (const char *at = query; *at; at++) {
		if (*at == '{' && at[1] == '}') {
			query_put_job(a->engine, to);
			at++;
		} else if (*at == '%' && a->engine->job) {
			fputs(" and on (node, comm_id, rank) ncclinsp_comm_info{", to);
			query_put_job(a->engine, to);
			fputc('}', to);
		} else if (*at == '$') {
			fprintf(to, "%.0fs", 2 * a->step_s);
		} else if (*at != '%') {
			fputc(*at, to);
		}
	}
	fclose(to);
	return must(text);
}

/* The query as a form, with `more` parameters. */
static json_t *asked_series(struct engine_asked *a, const char *path, const char *query,
			    const char *more)
{
	CLEANUP(cleanup_freep) char *text = query_text(a, query);
	char *escaped = must(curl_easy_escape(a->curl, text, 0));
	CLEANUP(cleanup_freep) char *form = NULL;
	size_t bytes;
	FILE *to = must(open_memstream(&form, &bytes));

	fprintf(to, "query=%s%s", escaped, more);
	fclose(to);
	curl_free(escaped);
	return engine_query(a, path, form);
}

/* A point is [time, "value"]. */
static double point_value(const json_t *point)
{
	const char *text = json_string_value(json_array_get(point, 1));

	return text ? strtod(text, NULL) : 0;
}

static bool asked_take_now(struct engine_asked *a, const struct asked_now *q)
{
	json_auto_t *all = asked_series(a, "/api/v1/query", q->query, "");

	json_each(series, all)
		q->take(a, json_object_get(series, "metric"),
			point_value(json_object_get(series, "value")));
	return all;
}

static bool asked_take_past(struct engine_asked *a, const struct asked_past *q)
{
	json_auto_t *all = NULL;
	char range[160];

	snprintf(range, sizeof(range), "&start=%.0f&end=%" PRId64 "&step=%.0f",
		 (double)a->now_s - (STEPS - 1) * a->step_s, a->now_s, a->step_s);
	all = asked_series(a, "/api/v1/query_range", q->query, range);
	json_each(series, all)
		json_each(point, json_object_get(series, "values"))
			q->take(a, json_object_get(series, "metric"),
				json_number_value(json_array_get(point, 0)), point_value(point),
				q->what);
	return all;
}

static bool asked_take_all(struct engine_asked *a)
{
	for (size_t i = 0; i < sizeof(queries_now) / sizeof(queries_now[0]); i++)
		if (!asked_take_now(a, &queries_now[i]))
			return false;
	for (size_t i = 0; i < sizeof(queries_past) / sizeof(queries_past[0]); i++)
		if (!asked_take_past(a, &queries_past[i]))
			return false;
	asked_make_samples(a);
	return true;
}

static bool asked_has_hosts(struct engine_asked *a)
{
	if (json_object_size(a->hosts))
		return true;
	snprintf(a->engine->error, sizeof(a->engine->error), "%s has no series of %s%s; is "
		 "metrics-listen set on the nodes, and are they among its targets?",
		 a->engine->url, a->engine->job ? "job " : "ncclinspd", a->engine->job ?: "");
	return false;
}

json_t *engine_ask(struct engine *e)
{
	struct engine_asked a = {
		.engine = e, .curl = must(curl_easy_init()), .hosts = json_object(),
		.comms = json_object(), .places = json_object(), .history = json_object(),
		.reached = json_object(), .now_ns = cli_now_ns(), .now_s = time(NULL),
		.step_s = e->step ? strtod(e->step, NULL) : STEP_S,
	};

	if (a.step_s < 1)
		a.step_s = 1;
	if (!asked_take_all(&a) || !asked_has_hosts(&a)) {
		json_decref(a.hosts);
		a.hosts = NULL;
	}
	json_decref(a.comms);
	json_decref(a.places);
	json_decref(a.history);
	json_decref(a.reached);
	curl_easy_cleanup(a.curl);
	return a.hosts;
}

void engine_add(void *arg, struct joint *joint)
{
	struct engine *e = arg;
	json_auto_t *hosts = engine_ask(e);
	json_t *root;
	const char *host;

	if (!hosts)
		fprintf(stderr, "ncclinsp: %s\n", e->error);
	json_object_foreach(hosts, host, root) {
		char *text = json_is_object(root) ? json_dumps(root, JSON_COMPACT) : NULL;

		shots_add_answer(&joint->shots, host, text, json_string_value(root));
		free(text);
	}
	e->answers = hosts;
}
