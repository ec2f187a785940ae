/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's frame: libmicrohttpd does the HTTP, without a thread, inside an
 * epoll set that the daemon's loop watches; here are routes, limits and errors.
 *
 * A request passes uri_arrived() when its line is there, then answer() once with
 * the headers, once per piece of its body, and once at the end.
 */
#include "ncclinspd/serve.h"

#include <errno.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ncclinspd/serve_impl.h"
#include "util/cleanup.h"

#define GROUP		"ncclinsp"
#define METHODS		"GET, HEAD"
#define JSON		"application/json"
#define JSON_LINES	"application/x-ndjson"
#define SPARE		16	/* connections above the limit, to be told so */
#define HTTP_BYTES	32768	/* the library's memory for one request's line and headers */

#define REQUEST_NS	(UINT64_C(5) * 1000000000)
#define CONNECTIONS	64
#define STREAM_BYTES	(1u << 20)

/* One request, from its line to its end. */
struct exchange {
	size_t line_bytes;	/* without the method */
	size_t body_bytes;
	bool begun;
};

static const struct route {
	const char *path;
	unsigned params;
	void (*fill)(struct request *r, struct json *j);
	/* Instead, where the answer is not made in one go. */
	struct MHD_Response *(*open)(struct request *r, struct MHD_Connection *connection);
	const char *type;
} routes[] = {
	{ "/v1/status", 0, serve_status, NULL, JSON },
	{ "/v1/processes", 0, serve_processes, NULL, JSON },
	{ "/v1/comms", 0, serve_comms, NULL, JSON },
	{ "/v1/collectives",
	  PARAM_BIT(COMM) | PARAM_BIT(RANK) | PARAM_BIT(FUNC) | PARAM_BIT(PID) |
		  PARAM_BIT(SINCE_MONO_NS) | PARAM_BIT(LIMIT),
	  NULL, serve_collectives, JSON },
	{ "/v1/summary", PARAM_BIT(WINDOW) | PARAM_BIT(BY), serve_summary, NULL, JSON },
	{ "/v1/inflight", PARAM_BIT(OLDER_THAN_NS), serve_inflight, NULL, JSON },
	{ "/v1/stream", PARAM_BIT(KINDS), NULL, stream_open, JSON_LINES },
};

static const struct route *route_find(const char *path)
{
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		if (!strcmp(routes[i].path, path))
			return &routes[i];
	return NULL;
}

/* ---- answers ----------------------------------------------------------- */

static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned status,
				     struct MHD_Response *response, const char *type)
{
	enum MHD_Result r;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, METHODS);
	if (status == MHD_HTTP_URI_TOO_LONG || status == MHD_HTTP_CONTENT_TOO_LARGE ||
	    status == MHD_HTTP_TOO_MANY_REQUESTS)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	r = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return r;
}

/* Takes the text out of `j`; MHD_NO (close) when it could not be written whole. */
static enum MHD_Result send_json(struct MHD_Connection *connection, unsigned status,
				 struct json *j)
{
	struct MHD_Response *response;
	size_t bytes;
	char *text;

	json_newline(j);
	if (json_error(j))
		return MHD_NO;
	text = json_steal(j, &bytes);
	response = MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE);
	if (!response)
		free(text);
	return send_response(connection, status, response, JSON);
}

__attribute__((format(printf, 4, 5)))
static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status,
			      const char *code, const char *format, ...)
{
	CLEANUP(json_deinit) struct json j;
	char message[512];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);

	json_init(&j, SERVE_ANSWER_BYTES);
	json_begin(&j, '{');
	json_key(&j, "error");
	json_begin(&j, '{');
	json_key(&j, "code");
	json_put_string(&j, code);
	json_key(&j, "message");
	json_put_string(&j, message);
	json_end(&j, '}');
	json_end(&j, '}');
	return send_json(connection, status, &j);
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
		return refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "too_large",
			      "the answer is larger than %u bytes: ask for less",
			      SERVE_ANSWER_BYTES);
	if (json_error(&j))
		return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no_memory",
			      "the daemon has no memory for the answer");
	return send_json(connection, MHD_HTTP_OK, &j);
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
	return send_response(connection, MHD_HTTP_OK, response, route->type);
}

/* ---- requests ---------------------------------------------------------- */

struct arguments {
	struct query *query;
	unsigned allowed;
	unsigned seen;
	char why[400];
};

/* A value with a zero byte inside is cut there by nobody but us: refuse it. */
static enum MHD_Result read_argument(void *arg, enum MHD_ValueKind kind, const char *name,
				     size_t name_bytes, const char *value, size_t value_bytes)
{
	struct arguments *a = arg;

	(void)kind;
	if (strlen(name) != name_bytes || (value && strlen(value) != value_bytes)) {
		snprintf(a->why, sizeof(a->why), "a parameter holds a zero byte");
		return MHD_NO;
	}
	return query_parse(a->query, a->allowed, &a->seen, name, value, a->why, sizeof(a->why)) ?
		       MHD_YES : MHD_NO;
}

static enum MHD_Result dispatch(struct MHD_Connection *connection, struct client *c,
				const char *path, const char *method)
{
	struct request r = { .serve = c->serve, .viewer = c->viewer };
	struct arguments a = { .query = &r.query };
	const struct route *route = route_find(path);
	bool head = !strcmp(method, MHD_HTTP_METHOD_HEAD);

	if (!route)
		return refuse(connection, MHD_HTTP_NOT_FOUND, "not_found",
			      "there is nothing at '%.128s'", path);
	if (!head && strcmp(method, MHD_HTTP_METHOD_GET))
		return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "method_not_allowed",
			      "%.32s is not possible at %s; allowed: " METHODS, method, path);
	a.allowed = route->params;
	query_init(&r.query);
	MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, read_argument, &a);
	if (*a.why)
		return refuse(connection, MHD_HTTP_BAD_REQUEST, "bad_request", "%s", a.why);
	client_enter(c, CLIENT_ANSWERING);
	serve_meanwhile(c->serve);
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
	return refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, "body_too_large",
		      "the body is longer than %u bytes", SERVE_BODY_BYTES);
}

/* With the headers: what can be refused without the body is refused now. */
static enum MHD_Result begin(struct MHD_Connection *connection, const struct client *c,
			     const struct exchange *x, const char *method)
{
	if (c->surplus)
		return refuse(connection, MHD_HTTP_TOO_MANY_REQUESTS, "too_many_connections",
			      "too many connections: the limit is %u, half of it for one user",
			      c->serve->config.connections);
	if (strlen(method) + x->line_bytes > SERVE_LINE_BYTES)
		return refuse(connection, MHD_HTTP_URI_TOO_LONG, "uri_too_long",
			      "the request's line is longer than %u bytes", SERVE_LINE_BYTES);
	if (announced_bytes(connection) > SERVE_BODY_BYTES)
		return refuse_body(connection);
	return MHD_YES;
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
	(void)upload;
	if (!c || !x)
		return MHD_NO;
	if (!x->begun) {
		x->begun = true;
		return begin(connection, c, x, method);
	}
	*upload_bytes = 0;
	x->body_bytes += bytes;
	if (bytes)
		return MHD_YES;
	if (x->body_bytes > SERVE_BODY_BYTES)
		return refuse_body(connection);
	return dispatch(connection, c, url, method);
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

	(void)arg;
	(void)code;
	free(*context);
	*context = NULL;
	if (c)
		client_enter(c, CLIENT_IDLE);
}

/* ---- life -------------------------------------------------------------- */

static gid_t group_id(const char *name)
{
	struct group *group = getgrnam(name ? name : GROUP);

	return group ? group->gr_gid : (gid_t)-1;
}

static int http_start(struct serve *s)
{
	const union MHD_DaemonInfo *info;

	s->http = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
				   answer, s,
				   MHD_OPTION_LISTEN_SOCKET, s->config.listen_fd,
				   MHD_OPTION_CONNECTION_LIMIT, s->config.connections + SPARE,
				   MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_BYTES,
				   MHD_OPTION_NOTIFY_CONNECTION, client_notify, s,
				   MHD_OPTION_NOTIFY_COMPLETED, completed, s,
				   MHD_OPTION_URI_LOG_CALLBACK, uri_arrived, s,
				   MHD_OPTION_END);
	if (!s->http)
		return errno ? -errno : -EINVAL;
	info = MHD_get_daemon_info(s->http, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		return -ENOSYS;
	s->fd = info->epoll_fd;
	return 0;
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
	s->group = group_id(config->group);
	s->now_ns = config->started_mono_ns;
	s->real_offset_ns = config->started_real_ns - config->started_mono_ns;
	snprintf(s->host, sizeof(s->host), "%s", config->host);
	snprintf(s->boot_id, sizeof(s->boot_id), "%s", config->boot_id ? config->boot_id : "");
	snprintf(s->loop, sizeof(s->loop), "%s", config->loop);
	if (!s->config.request_ns)
		s->config.request_ns = REQUEST_NS;
	if (!s->config.connections)
		s->config.connections = CONNECTIONS;
	if (!s->config.stream_bytes)
		s->config.stream_bytes = STREAM_BYTES;
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
		MHD_stop_daemon(s->http);	/* closes listen_fd */
	} else {
		close(s->config.listen_fd);
	}
	json_deinit(&s->line);
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
