/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's frame: libmicrohttpd does the HTTP, without a thread, inside an
 * epoll set that the daemon's loop watches; here are routes, limits and errors.
 *
 * A request passes uri_arrived() when its line is there, then answer() once with
 * the headers, once per piece of its body, and once at the end.
 */
#include "ncclinspd/serve/serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ncclinspd/metrics/exposition.h"
#include "ncclinspd/serve/serve_impl.h"
#include "util/cleanup.h"

#define METHODS		"GET, HEAD"
#define JSON_LINES	"application/x-ndjson"
#define HTTP_BYTES	32768	/* the library's memory for one request's line and headers */

#define REQUEST_NS	(UINT64_C(5) * 1000000000)
#define CONNECTIONS	64

/* One request, from its line to its end. */
struct exchange {
	size_t line_bytes;	/* without the method */
	size_t body_bytes;
	char *body;		/* its first SERVE_BODY_BYTES at most; NULL: none, or no memory */
	bool begun;
};

static const struct route {
	const char *path;
	unsigned params;
	const struct field_table *tables;	/* of its rows, where `fields` may choose */
	void (*fill)(struct request *r, struct json *j);
	/* Instead, where the answer is not made in one go. */
	struct MHD_Response *(*open)(struct request *r, struct MHD_Connection *connection);
	const char *type;	/* of it; NULL: SERVE_JSON */
	/* Where something is to be done, by which method.  Negative errno: it was not. */
	int (*act)(struct request *r, struct json *j);
	const char *by;
	/* Instead, where the answer is a file's text (malloc'ed).  Negative errno: none. */
	int (*file)(struct request *r, char **text, size_t *bytes);
} routes[] = {	/* a path that ends in a slash is the beginning of one */
	{ "/v1/status", .fill = serve_status },
	{ "/v1/processes", .fill = serve_processes, .tables = process_tables },
	{ "/v1/comms", .fill = serve_comms, .tables = comm_tables },
	{ "/v1/collectives", .open = serve_collectives, .tables = op_tables,
	  .params = PARAM_BIT(COMM) | PARAM_BIT(NRANKS) | PARAM_BIT(RANK) | PARAM_BIT(FUNC) |
		    PARAM_BIT(PID) | PARAM_BIT(SINCE_MONO_NS) | PARAM_BIT(LIMIT) },
	{ "/v1/summary", .open = serve_summary, .tables = summary_tables,
	  .params = PARAM_BIT(WINDOW) | PARAM_BIT(BY) },
	{ "/v1/peers", .open = serve_peers, .tables = peer_tables,
	  .params = PARAM_BIT(COMM) | PARAM_BIT(NRANKS) | PARAM_BIT(RANK) | PARAM_BIT(PID) |
		    PARAM_BIT(PEER) | PARAM_BIT(DIRECTION) | PARAM_BIT(LINK_WINDOW) },
	{ "/v1/inflight", .fill = serve_inflight, .tables = inflight_tables,
	  .params = PARAM_BIT(OLDER_THAN_NS) | PARAM_BIT(LIMIT) },
	{ "/v1/findings", .fill = serve_findings, .tables = finding_tables,
	  .params = PARAM_BIT(ACTIVE) },
	{ "/v1/clocks", .fill = serve_clocks },
	{ "/v1/stream", .open = stream_open, .type = JSON_LINES,
	  .params = PARAM_BIT(KINDS) | PARAM_BIT(PID) },
	{ "/v1/level", .fill = serve_level, .act = serve_put_level, .by = MHD_HTTP_METHOD_PUT },
	{ "/v1/phase", .fill = serve_phase, .act = serve_put_phase, .by = MHD_HTTP_METHOD_PUT },
	{ "/v1/overhead", .fill = serve_overhead },
	{ "/v1/config", .fill = serve_config },
	{ "/metrics", .open = serve_metrics, .type = EXPOSITION_TEXT_TYPE },
	{ "/v1/snapshot", .act = serve_write_snapshot, .by = MHD_HTTP_METHOD_POST },
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
	return route_reads(route) && (!strcmp(method, MHD_HTTP_METHOD_GET) ||
				      !strcmp(method, MHD_HTTP_METHOD_HEAD));
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

static enum MHD_Result refuse_method(struct MHD_Connection *connection,
				     const struct route *route, const char *method)
{
	struct MHD_Response *response;
	char message[256], methods[32];

	route_methods(route, methods);
	snprintf(message, sizeof(message), "%.32s is not possible at %s; allowed: %s", method,
		 route->path, methods);
	response = answer_error("method_not_allowed", message);
	if (response)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, methods);
	return answer_send(connection, MHD_HTTP_METHOD_NOT_ALLOWED, response, SERVE_JSON);
}

static enum MHD_Result fill(struct MHD_Connection *connection, struct request *r,
			    const struct route *route)
{
	CLEANUP(json_deinit) struct json j;

	json_init(&j, SERVE_ANSWER_BYTES);
	json_begin(&j, '{');
	route->fill(r, &j);
	json_end(&j, '}');
	if (json_error(&j) == -E2BIG)
		return answer_refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "too_large",
			      "the answer is larger than %u bytes: ask for less",
			      SERVE_ANSWER_BYTES);
	if (json_error(&j))
		return answer_no_memory(connection);
	return answer_send(connection, MHD_HTTP_OK, answer_json(&j), SERVE_JSON);
}

static enum MHD_Result act(struct MHD_Connection *connection, struct request *r,
			   const struct route *route)
{
	CLEANUP(json_deinit) struct json j;
	int error;

	json_init(&j, SERVE_ANSWER_BYTES);
	json_begin(&j, '{');
	error = route->act(r, &j);
	json_end(&j, '}');
	if (error < 0)
		return answer_failure(connection, error, r->why);
	return answer_send(connection, MHD_HTTP_OK, answer_json(&j), SERVE_JSON);
}

static enum MHD_Result send_file(struct MHD_Connection *connection, struct request *r,
				 const struct route *route)
{
	struct MHD_Response *response;
	size_t bytes;
	char *text;
	int error = route->file(r, &text, &bytes);

	if (error < 0)
		return answer_failure(connection, error, r->why);
	response = MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE);
	if (!response)
		free(text);
	return answer_send(connection, MHD_HTTP_OK, response, route_type(route));
}

static ssize_t read_nothing(void *arg, uint64_t pos, char *buf, size_t max)
{
	(void)arg;
	(void)pos;
	(void)buf;
	(void)max;
	return MHD_CONTENT_READER_END_OF_STREAM;
}

/* HEAD opens nothing; its length is as unknown as that of the whole answer. */
static enum MHD_Result open_answer(struct MHD_Connection *connection, struct request *r,
				   const struct route *route, bool head)
{
	struct MHD_Response *response;

	response = head ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 1, read_nothing, NULL,
							    NULL)
			: route->open(r, connection);
	if (!response)
		return answer_failure(connection, *r->why ? -ENOSPC : -ENOMEM, r->why);
	return answer_send(connection, MHD_HTTP_OK, response,
			   r->type ? r->type : route_type(route));
}

/* ---- requests ---------------------------------------------------------- */

/* False: `why` says what is wrong. */
static bool read_query(struct MHD_Connection *connection, struct request *r,
		       const struct route *route, char why[SERVE_WHY_BYTES])
{
	struct query *q = &r->query;

	return query_read(q, connection, route->params | (route->tables ? PARAM_BIT(FIELDS) : 0),
			  why) &&
	       (!q->fields || fields_choose(route->tables, q->fields, &r->chosen, why));
}

static enum MHD_Result dispatch(struct MHD_Connection *connection, struct client *c,
				const struct exchange *x, const char *path, const char *method)
{
	struct request r = { .serve = c->serve, .viewer = c->viewer, .body = x->body,
			     .body_bytes = x->body_bytes };
	const struct route *route = route_find(path, &r.tail);
	bool head = !strcmp(method, MHD_HTTP_METHOD_HEAD);
	char why[SERVE_WHY_BYTES];

	if (!route || (c->serve->config.metrics_only && route->open != serve_metrics))
		return answer_refuse(connection, MHD_HTTP_NOT_FOUND, "not_found",
			      "there is nothing at '%.128s'", path);
	if (!route_takes(route, method))
		return refuse_method(connection, route, method);
	if (!read_query(connection, &r, route, why))
		return answer_refuse(connection, MHD_HTTP_BAD_REQUEST, "bad_request", "%s", why);
	client_enter(c, CLIENT_ANSWERING);
	serve_meanwhile(c->serve);
	if (route->act && !strcmp(method, route->by))
		return act(connection, &r, route);
	if (route->file)
		return send_file(connection, &r, route);
	return route->fill ? fill(connection, &r, route)
			   : open_answer(connection, &r, route, head);
}

static uint64_t announced_bytes(struct MHD_Connection *connection)
{
	const char *text = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
						       MHD_HTTP_HEADER_CONTENT_LENGTH);

	return text ? strtoull(text, NULL, 10) : 0;
}

static enum MHD_Result refuse_body(struct MHD_Connection *connection)
{
	return answer_refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, "body_too_large",
		      "the body is longer than %u bytes", SERVE_BODY_BYTES);
}

/*
 * Who is in the middle of sending may see nothing but a broken connection when it is closed:
 * so much is read before it is refused.  Others ask first.
 */
static bool is_too_much(struct MHD_Connection *connection)
{
	const char *expect = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_EXPECT);

	return announced_bytes(connection) >
	       (expect && !strcasecmp(expect, "100-continue") ? SERVE_BODY_BYTES :
								 SERVE_DRAIN_BYTES);
}

/* With the headers: what can be refused without the body is refused now. */
static enum MHD_Result begin(struct MHD_Connection *connection, const struct client *c,
			     const struct exchange *x, const char *method)
{
	if (c->surplus)
		return answer_refuse(connection, MHD_HTTP_TOO_MANY_REQUESTS, "too_many_connections",
			      "too many connections: the limit is %u, half of it for one user",
			      c->serve->config.connections);
	if (strlen(method) + x->line_bytes > SERVE_LINE_BYTES)
		return answer_refuse(connection, MHD_HTTP_URI_TOO_LONG, "uri_too_long",
			      "the request's line is longer than %u bytes", SERVE_LINE_BYTES);
	if (is_too_much(connection))
		return refuse_body(connection);
	return MHD_YES;
}

static void keep_body(struct exchange *x, const char *bytes, size_t n)
{
	bool whole = x->body || !x->body_bytes;
	char *body = NULL;

	if (!n)
		return;
	x->body_bytes += n;
	if (whole && x->body_bytes <= SERVE_BODY_BYTES)
		body = realloc(x->body, x->body_bytes);
	if (body)
		memcpy(body + x->body_bytes - n, bytes, n);
	else
		free(x->body);
	x->body = body;
}

static enum MHD_Result answer(void *arg, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_bytes, void **context)
{
	struct client *c = client_of(connection);
	struct exchange *x = *context;
	size_t bytes = *upload_bytes;

	(void)arg;
	(void)version;
	if (!c || !x)
		return MHD_NO;
	if (!x->begun) {
		x->begun = true;
		return begin(connection, c, x, method);
	}
	*upload_bytes = 0;
	keep_body(x, upload, bytes);
	if (bytes)
		return MHD_YES;
	if (x->body_bytes > SERVE_BODY_BYTES)
		return refuse_body(connection);
	return dispatch(connection, c, x, url, method);
}

/* The result is answer()'s context from its first call on. */
static void *uri_arrived(void *arg, const char *uri, struct MHD_Connection *connection)
{
	struct client *c = client_of(connection);
	struct exchange *x = calloc(1, sizeof(*x));

	(void)arg;
	if (c)
		client_enter(c, CLIENT_READING);
	if (x)
		x->line_bytes = strlen(uri) + sizeof("  HTTP/1.1") - 1;
	return x;
}

static void completed(void *arg, struct MHD_Connection *connection, void **context,
		      enum MHD_RequestTerminationCode code)
{
	struct client *c = client_of(connection);
	struct exchange *x = *context;

	(void)arg;
	(void)code;
	if (x)
		free(x->body);
	free(x);
	*context = NULL;
	if (c)
		client_enter(c, CLIENT_IDLE);
}

/* ---- life -------------------------------------------------------------- */

static int http_start(struct serve *s)
{
	s->http = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
				   MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, answer, s,
				   MHD_OPTION_CONNECTION_LIMIT, s->config.connections + SERVE_SPARE,
				   MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_BYTES,
				   MHD_OPTION_NOTIFY_CONNECTION, client_notify, s,
				   MHD_OPTION_NOTIFY_COMPLETED, completed, s,
				   MHD_OPTION_URI_LOG_CALLBACK, uri_arrived, s,
				   MHD_OPTION_END);
	if (!s->http)
		return errno ? -errno : -EINVAL;
	return accept_open(s);
}

static void serve_closep(struct serve **sp)
{
	serve_close(*sp);
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
	s->real_offset_ns = config->started_real_ns - config->started_mono_ns;
	snprintf(s->host, sizeof(s->host), "%s", config->host);
	snprintf(s->boot_id, sizeof(s->boot_id), "%s", config->boot_id ? config->boot_id : "");
	snprintf(s->loop, sizeof(s->loop), "%s", config->loop);
	if (!s->config.request_ns)
		s->config.request_ns = REQUEST_NS;
	if (!s->config.connections)
		s->config.connections = CONNECTIONS;
	json_init(&s->line, SERVE_ANSWER_BYTES);
	s->users = calloc(SERVE_USERS, sizeof(*s->users));
	if (!s->users)
		return -ENOMEM;

	r = http_start(s);
	if (r < 0)
		return r;
	*sp = s;
	s = NULL;
	return 0;
}

void serve_close(struct serve *s)
{
	if (!s)
		return;
	if (s->http) {
		streams_end(s);
		MHD_run(s->http);
		MHD_stop_daemon(s->http);
	}
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
	uint64_t at = clients_deadline(s), streams = streams_deadline(s);
	unsigned MHD_LONG_LONG ms;

	if (s->woken || (MHD_get_timeout(s->http, &ms) == MHD_YES && !ms))
		return 0;
	if (streams < at)
		at = streams;
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
static void set_time(struct serve *s, uint64_t now_ns, uint64_t real_ns)
{
	static const int64_t tolerance_ns = 1000000;
	int64_t change = (int64_t)(real_ns - now_ns - s->real_offset_ns);

	s->now_ns = now_ns;
	if (change > tolerance_ns || change < -tolerance_ns)
		s->real_offset_ns = real_ns - now_ns;
}

void serve_run(struct serve *s, uint64_t now_ns, uint64_t real_ns)
{
	set_time(s, now_ns, real_ns);
	streams_check(s);
	clients_expire(s);
	s->woken = false;	/* before the run: what it wakes is for the next */
	accept_clients(s);
	MHD_run(s->http);
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
