/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's frame: which path is answered by whom, and what is refused before.  The
 * connections are those of serve_client.c; the daemon's loop watches them all by one
 * descriptor.
 */
#include "ncclinspd/serve/serve.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ncclinspd/metrics/exposition.h"
#include "ncclinspd/serve/serve_client.h"
#include "ncclinspd/serve/serve_parts.h"
#include "util/cleanup.h"

#define METHODS		"GET, HEAD"
#define JSON_LINES	"application/x-ndjson"

#define REQUEST_NS	(UINT64_C(5) * 1000000000)
#define CONNECTIONS	64

static const struct route {
	const char *path;
	unsigned params;
	const struct field_table *tables;	/* tables of its rows, where `fields` may choose */
	void (*fill)(struct request *r, struct json *j);
	serve_part *const *parts;	/* the rest of it, where that takes long */
	/* Instead, where the answer is not made in one go. */
	int (*open)(struct request *r, struct answer *a);
	const char *type;	/* of it; NULL: SERVE_JSON */
	/* Do something, where the method is `by`.  Negative errno: it was not done. */
	int (*act)(struct request *r, struct json *j);
	const char *by;
	/* Instead, where the answer is a file's text (malloc'ed).  Negative errno: none. */
	int (*file)(struct request *r, char **text, size_t *bytes);
} routes[] = {	/* a path that ends in a slash is the beginning of one */
	{ "/v1/status", .fill = serve_status },
	{ "/v1/processes", .fill = serve_processes, .tables = process_tables },
	{ "/v1/comms", .fill = serve_comms, .tables = comm_tables },
	{ "/v1/ranks", .open = serve_ranks, .tables = rank_tables,
	  .params = PARAM_BIT(COMM) | PARAM_BIT(NRANKS) | PARAM_BIT(RANK) | PARAM_BIT(PID) |
		    PARAM_BIT(ONE_WINDOW) | PARAM_BIT(LIMIT) },
	{ "/v1/collectives", .open = serve_collectives, .tables = op_tables,
	  .params = PARAM_BIT(COMM) | PARAM_BIT(NRANKS) | PARAM_BIT(RANK) | PARAM_BIT(FUNC) |
		    PARAM_BIT(PID) | PARAM_BIT(SINCE_MONO_NS) | PARAM_BIT(LIMIT) },
	{ "/v1/summary", .open = serve_summary, .tables = summary_tables,
	  .params = PARAM_BIT(WINDOW) | PARAM_BIT(BY) },
	{ "/v1/peers", .open = serve_peers, .tables = peer_tables,
	  .params = PARAM_BIT(COMM) | PARAM_BIT(NRANKS) | PARAM_BIT(RANK) | PARAM_BIT(PID) |
		    PARAM_BIT(PEER) | PARAM_BIT(DIRECTION) | PARAM_BIT(LINK_WINDOW) |
		    PARAM_BIT(CHANNELS) },
	{ "/v1/queues", .open = serve_queues, .tables = queue_tables,
	  .params = PARAM_BIT(COMM) | PARAM_BIT(NRANKS) | PARAM_BIT(RANK) | PARAM_BIT(PID) |
		    PARAM_BIT(PEER) | PARAM_BIT(DIRECTION) | PARAM_BIT(LINK_WINDOW) },
	{ "/v1/inflight", .fill = serve_inflight, .tables = inflight_tables,
	  .params = PARAM_BIT(OLDER_THAN_NS) | PARAM_BIT(LIMIT) },
	{ "/v1/findings", .fill = serve_findings, .act = serve_put_gathered, .by = "PUT",
	  .tables = finding_tables, .params = PARAM_BIT(ACTIVE) | PARAM_BIT(GRADE) },
	{ "/v1/clocks", .fill = serve_clocks },
	{ "/v1/machine", .fill = serve_machine },
	{ "/v1/stream", .open = stream_open, .type = JSON_LINES,
	  .params = PARAM_BIT(KINDS) | PARAM_BIT(PID) },
	{ "/v1/level", .fill = serve_level, .act = serve_put_level, .by = "PUT" },
	{ "/v1/phase", .fill = serve_phase, .act = serve_put_phase, .by = "PUT" },
	{ "/v1/overhead", .fill = serve_overhead },
	{ "/v1/config", .fill = serve_config },
	{ "/metrics", .open = serve_metrics, .type = EXPOSITION_TEXT_TYPE },
	{ "/v1/snapshot", .fill = serve_begin_snapshot, .parts = serve_snapshot_parts,
	  .act = serve_write_snapshot, .by = "POST", .params = PARAM_BIT(ONE_WINDOW) },
	{ "/v1/exemplars", .fill = serve_exemplars },
	{ "/v1/exemplars/", .file = serve_exemplar },
};

static const char *route_type(const struct route *route)
{
	return route->type ? route->type : SERVE_JSON;
}

static bool route_reads(const struct route *route)
{
	return route->fill || route->open || route->file;
}

static void route_methods(const struct route *route, char text[32])
{
	bool both = route->act && route_reads(route);

	snprintf(text, 32, "%s%s%s", route_reads(route) ? METHODS : "", both ? ", " : "",
		 route->act ? route->by : "");
}

static bool route_takes(const struct route *route, const char *method)
{
	if (route->act && !strcmp(method, route->by))
		return true;
	return route_reads(route) && (!strcmp(method, "GET") || !strcmp(method, "HEAD"));
}

/* *tail: what follows the path. */
static const struct route *route_find(const char *path, const char **tail)
{
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		size_t bytes = strlen(routes[i].path);

		*tail = path + bytes;
		if (!strncmp(routes[i].path, path, bytes) &&
		    (!**tail || routes[i].path[bytes - 1] == '/'))
			return &routes[i];
	}
	return NULL;
}

/* ---- what is done -------------------------------------------------------- */

int serve_refuse(struct request *r, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(r->why, sizeof(r->why), format, args);
	va_end(args);
	return error;
}

int serve_read_body(struct request *r, serve_member_fn *take, void *arg)
{
	json_t *body = r->body ? json_loadb(r->body, r->body_bytes, JSON_REJECT_DUPLICATES, NULL)
			       : NULL;
	int error = json_is_object(body) ? 0
					 : serve_refuse(r, -EINVAL,
							"the body must be one JSON object");
	const char *key;
	json_t *value;

	json_object_foreach(body, key, value)
		if (!error)
			error = take(r, key, value, arg);
	json_decref(body);
	return error;
}

static void route_refuse_method(struct answer *a, const struct route *route, const char *method)
{
	char methods[32];

	route_methods(route, methods);
	answer_refuse(a, 405, "method_not_allowed", "%.32s is not possible at %s; allowed: %s",
		      method, route->path, methods);
	snprintf(a->allow, sizeof(a->allow), "%s", methods);
}

static enum client_phase route_fill(const struct route *route, struct request *r)
{
	static serve_part *const no_parts[] = { NULL };
	struct making *m = r->client->making = malloc(sizeof(*m));

	if (!m) {
		answer_failure(&r->client->answer, -ENOMEM, "");
		return CLIENT_ANSWERING;
	}
	*m = (struct making){ .request = *r, .next = route->parts ? route->parts : no_parts };
	json_init(&m->json, SERVE_ANSWER_BYTES);
	json_begin(&m->json, '{');
	route->fill(&m->request, &m->json);
	return serve_make(r->client) ? CLIENT_ANSWERING : CLIENT_MAKING;
}

bool serve_make(struct serve_client *c)
{
	struct making *m = c->making;

	if (*m->next && !json_error(&m->json)) {
		serve_meanwhile(c->serve);
		(*m->next++)(&m->request, &m->json);
		return false;
	}
	json_end(&m->json, '}');
	answer_json(&c->answer, 200, &m->json);
	serve_stop_making(c);
	return true;
}

void serve_stop_making(struct serve_client *c)
{
	if (c->making)
		json_deinit(&c->making->json);
	free(c->making);
	c->making = NULL;
}

/* True: done, or refused. */
static bool route_act(const struct route *route, struct request *r, struct answer *a)
{
	CLEANUP(json_deinit) struct json j;
	int error;

	json_init(&j, SERVE_ANSWER_BYTES);
	json_begin(&j, '{');
	error = route->act(r, &j);
	json_end(&j, '}');
	if (error < 0)
		answer_failure(a, error, r->why);
	else
		answer_json(a, 200, &j);
	return error != SERVE_LATER;
}

static void route_send_file(const struct route *route, struct request *r, struct answer *a)
{
	size_t bytes;
	char *text;
	int error = route->file(r, &text, &bytes);

	if (error < 0)
		answer_failure(a, error, r->why);
	else
		answer_text(a, route_type(route), text, bytes);
}

static ssize_t route_read_nothing(void *arg, char *buf, size_t max)
{
	return ANSWER_END;
}

/* HEAD opens nothing; its length is as unknown as that of the whole answer. */
static void route_open(const struct route *route, struct request *r, struct answer *a,
		       bool head_only)
{
	int error = 0;

	*a = (struct answer){ .status = 200, .read = route_read_nothing };
	if (!head_only)
		error = route->open(r, a);
	if (error < 0)
		answer_failure(a, error, r->why);
	else if (!a->type)
		a->type = route_type(route);
}

/* ---- requests ---------------------------------------------------------- */

/* False: `why` says what is wrong. */
static bool route_read_query(struct request *r, char *text, const struct route *route,
			     char why[SERVE_WHY_BYTES])
{
	struct query *q = &r->query;

	return query_read(q, text, route->params | (route->tables ? PARAM_BIT(FIELDS) : 0), why) &&
	       (!q->fields || fields_choose(route->tables, q->fields, &r->chosen, why));
}

/*
 * A user's answers that wait for its clients have three quarters of what other users' leave; there
 * is half as much again for who has none.  An answer that is being made may become as large as any.
 */
static bool answer_has_room(const struct serve_client *c)
{
	uint64_t own = 0, all = 0;

	for (const struct serve_client *o = c->serve->clients; o; o = o->next) {
		uint64_t bytes = o->making ? SERVE_ANSWER_BYTES : o->answer.bytes;

		all += o->viewer.all ? 0 : bytes;
		own += o->account == c->account ? bytes : 0;
	}
	return c->viewer.all || all + own / 3 < SERVE_HELD_BYTES + (own ? 0 : SERVE_HELD_BYTES / 2);
}

enum client_phase serve_request(struct serve_client *c)
{
	struct request r = { .serve = c->serve, .viewer = c->viewer, .body = c->body,
			     .body_bytes = c->body_bytes, .accept = c->request.accept,
			     .client = c };
	const struct http_request *asked = &c->request;
	const struct route *route = route_find(asked->path, &r.tail);
	struct answer *a = &c->answer;
	char why[SERVE_WHY_BYTES];

	serve_meanwhile(c->serve);
	if (!route || (c->serve->config.metrics_only && route->open != serve_metrics))
		answer_refuse(a, 404, "not_found", "unknown path '%.128s'", asked->path);
	else if (!route_takes(route, asked->method))
		route_refuse_method(a, route, asked->method);
	else if (!route_read_query(&r, asked->query, route, why))
		answer_refuse(a, 400, "bad_request", "%s", why);
	else if (route->act && !strcmp(asked->method, route->by))
		return route_act(route, &r, a) ? CLIENT_ANSWERING : CLIENT_WAITING;
	else if (!answer_has_room(c))
		answer_refuse(a, 503, "busy", "answers that clients have not read take %u MiB: "
			      "read them, or try again in a minute", SERVE_HELD_BYTES >> 20);
	else if (route->file)
		route_send_file(route, &r, a);
	else if (route->fill)
		return route_fill(route, &r);
	else
		route_open(route, &r, a, c->head_only);
	return a->status == 200 && route->open == stream_open && !c->head_only ?
	       CLIENT_STREAMING : CLIENT_ANSWERING;
}

/* ---- life -------------------------------------------------------------- */

CLEANUP_DEFINE(serve_close, struct serve)

static void writer_meanwhile(const struct rows_writer *w)
{
	serve_meanwhile(serve_of(w));
}

int serve_open(struct serve **sp, const struct serve_config *config,
	       const struct serve_source *source)
{
	CLEANUP(serve_closep) struct serve *s = calloc(1, sizeof(*s));
	int r;

	if (!s) {
		close(config->listen_fd);
		return -ENOMEM;
	}
	s->config = *config;
	s->source = *source;
	s->fd = -1;
	s->group = client_group(config->group);
	s->now_ns = config->started_mono_ns;
	s->writer = (struct rows_writer){
		.real_offset_ns = config->started_real_ns - config->started_mono_ns,
		.meanwhile = writer_meanwhile,
	};
	snprintf(s->host, sizeof(s->host), "%s", config->host);
	snprintf(s->boot_id, sizeof(s->boot_id), "%s", config->boot_id ? config->boot_id : "");
	if (!s->config.request_ns)
		s->config.request_ns = REQUEST_NS;
	if (!s->config.connections)
		s->config.connections = CONNECTIONS;
	json_init(&s->line, SERVE_ANSWER_BYTES);
	s->users = calloc(SERVE_USERS, sizeof(*s->users));
	if (!s->users)
		return -ENOMEM;

	r = accept_open(s);
	if (r < 0)
		return r;
	*sp = DISOWN(s);
	return 0;
}

void serve_close(struct serve *s)
{
	if (!s)
		return;
	while (s->clients)
		client_close(s->clients);
	accept_close(s);
	json_deinit(&s->line);
	serve_free_sums(s);
	free(s->users);
	free(s);
}

int serve_fd(const struct serve *s)
{
	return s->fd;
}

uint64_t serve_timeout_ns(struct serve *s, uint64_t now_ns)
{
	uint64_t at = clients_due(s);

	if (accept_deadline(s) < at)
		at = accept_deadline(s);
	if (at == UINT64_MAX)
		return UINT64_MAX;
	return at > now_ns ? at - now_ns : 0;
}

/*
 * The two clocks are paired once and again only when the wall clock was set:
 * the same moment then prints the same in every answer.
 */
static void serve_set_time(struct serve *s, uint64_t now_ns, uint64_t real_ns)
{
	static const int64_t tolerance_ns = 1000000;
	int64_t change = (int64_t)(real_ns - now_ns - s->writer.real_offset_ns);

	s->now_ns = now_ns;
	if (change > tolerance_ns || change < -tolerance_ns)
		s->writer.real_offset_ns = real_ns - now_ns;
}

void serve_run(struct serve *s, uint64_t now_ns, uint64_t real_ns)
{
	serve_set_time(s, now_ns, real_ns);
	clients_run(s);
}

struct process *serve_next_process(const struct serve *s, const struct viewer *v, size_t *i)
{
	struct process *const *list;
	size_t n = s->source.processes(s->source.arg, &list);

	while (*i < n) {
		struct process *p = list[(*i)++];

		if (viewer_sees(v, p->uid))
			return p;
	}
	return NULL;
}

uint32_t serve_count_users(const struct serve *s, const struct viewer *v)
{
	struct accounts_tally of = { 0 };
	uint32_t users = 0;
	struct process *p;

	for (size_t i = 0; (p = serve_next_process(s, v, &i));)
		users += !(*accounts_count(&of, p->account))++;
	return users ? users : 1;
}
