/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exchange with the daemon by libcurl.  It finds the socket that answers, and puts every
 * failure into words that say what to do next.
 */
#include "cli/base/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "cli/base/intake.h"
#include "cli/base/must.h"
#include "cli/base/ssh.h"

#define SYSTEM_SOCKET "/run/ncclinsp/ncclinspd.sock"
#define BODY_MAX      (256u << 20)
#define LINE_MAX_BYTES (1u << 20)

struct bytes {
	char *data;
	size_t len;
	size_t room;
};

struct client {
	CURL *curl;
	char *given;	/* the caller's or the environment's path, or NULL: search */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	long timeout_ms;
	bool verbose;
	bool asks_version;	/* on behalf of a request that was refused */
	const char *host;	/* the other node; NULL: this one */
	const char *host_socket;	/* its daemon's socket there; NULL: it is found */
	bool host_asks;
	int listener;		/* the socket that libcurl connects to; 0: none yet */
	int listener_node;	/* its file, whose name is gone */
	struct ssh *ssh;	/* connection to it; NULL: none */
	char ssh_why[256];	/* last words of the one that ended */
	bool has_clock;
	int64_t behind_ns;	/* its clock is behind this node's by that */
	struct bytes body;
	char error[512];
	/* the source in place of a daemon; NULL: none */
	json_t *(*answer)(void *arg, const char *target);
	client_source_stream *stream;
	void *answer_arg;
	/* while a stream runs */
	int (*on_line)(void *arg, const char *text, size_t len);
	bool (*goes_on)(void *arg);	/* NULL: it does */
	void *on_line_arg;
	int line_result;
};

__attribute__((format(printf, 3, 4)))
static int client_fail(struct client *client, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(client->error, sizeof(client->error), format, args);
	va_end(args);
	return error;
}

/* ---- another node ---------------------------------------------------------- */

/* A socket whose name nobody else sees: it is gone at once, and its file is held open. */
static int client_bind(struct client *client)
{
	const char *temporary = getenv("TMPDIR") ?: "/tmp";
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char directory[sizeof(address.sun_path) - 2];
	int r = 0;

	if (snprintf(directory, sizeof(directory), "%s/ncclinsp-XXXXXX", temporary) >=
	    (int)sizeof(directory))
		return -ENAMETOOLONG;
	if (!mkdtemp(directory))
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", directory);
	if (bind(client->listener, (const struct sockaddr *)&address, sizeof(address)))
		r = -errno;
	if (!r) {
		client->listener_node = open(address.sun_path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
		r = client->listener_node < 0 ? -errno : 0;
	}
	unlink(address.sun_path);
	rmdir(directory);
	return r;
}

/*
 * libcurl connects by itself, to a socket of our own; what it has connected to is then given to
 * ssh.  (That a socket is connected already cannot be said to libcurl 7.88; nor does it use a
 * connection to an abstract one for a second request.)
 */
static int client_listen(struct client *client)
{
	char path[64];
	int r;

	client->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (client->listener < 0) {
		client->listener = 0;
		return -errno;
	}
	r = client_bind(client);
	if (!r && listen(client->listener, 1)) {
		r = -errno;
		close(client->listener_node);
	}
	if (r) {
		close(client->listener);
		client->listener = 0;
		return r;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", client->listener_node);
	curl_easy_setopt(client->curl, CURLOPT_UNIX_SOCKET_PATH, path);
	return 0;
}

static bool socket_is_own(int fd)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) && peer.pid == getpid();
}

static void client_accept(struct client *client)
{
	int fd = accept4(client->listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0 && socket_is_own(fd)) {
		ssh_end(client->ssh, NULL, 0);
		client->ssh = ssh_start(client->host, client->host_socket, client->host_asks, fd);
		if (!client->ssh)
			snprintf(client->ssh_why, sizeof(client->ssh_why), "cannot run ssh: %s",
				 strerror(errno));
	}
	if (fd >= 0)
		close(fd);
}

/* Called at least once a second, and whenever something has happened.  Non-zero: end it. */
static int client_on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	struct client *client = arg;

	if (client->host)
		client_accept(client);
	return client->goes_on && !client->goes_on(client->on_line_arg);
}

void client_set_host(struct client *client, const char *host, const char *socket, bool asks)
{
	client->host = host;
	client->host_socket = socket;
	client->host_asks = asks;
	snprintf(client->path, sizeof(client->path), "%s", host);
	curl_easy_setopt(client->curl, CURLOPT_NOPROGRESS, 0L);
}

static int client_fail_host(struct client *client)
{
	ssh_end(client->ssh, client->ssh_why, sizeof(client->ssh_why));
	client->ssh = NULL;
	return client_fail(client, -ECONNREFUSED, "%s: %s", client->host, *client->ssh_why ?
			   client->ssh_why : "ssh ended without a word; try it by hand: ssh "
			   "HOST ncclinsp status");
}

/* Its daemon says when it started, and how long ago that was. */
static int client_find_clock(struct client *client)
{
	struct timespec now;
	json_auto_t *status = NULL;
	int r;

	if (client->has_clock)
		return 0;
	r = client->listener ? 0 : client_listen(client);
	if (r)
		return client_fail(client, r, "cannot make a socket: %s", strerror(-r));
	client->has_clock = true;
	client->behind_ns = 0;
	r = client_get(client, "/v1/status", &status);
	client->has_clock = !r;
	if (r)
		return r;
	clock_gettime(CLOCK_MONOTONIC, &now);
	client->behind_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec -
			    json_integer_value(json_object_get(status, "uptime_ns")) -
			    json_integer_value(json_object_get(status, "started_mono_ns"));
	return 0;
}

/* ---- which socket --------------------------------------------------------- */

/* Connect and hang up: what the kernel says is the reason that people need. */
static int socket_probe(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, r;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	r = connect(fd, (const struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
	close(fd);
	return r == -EAGAIN ? 0 : r;	/* a full queue: somebody is there */
}

static const char start_own[] = "is ncclinspd running? try: systemctl status ncclinspd, "
				"or start your own: ncclinspd --foreground";

/* Advice about a socket that does not answer. */
static const struct advice {
	int error;
	const char *why;
	const char *next;
} advices[] = {
	{ -ENOENT, "no such file", start_own },
	{ -ENOTDIR, "no such file", start_own },
	{ -ECONNREFUSED, "nobody listens", start_own },
	{ -EACCES, "permission denied",
	  "ask the socket's owner, or start your own: ncclinspd --foreground" },
	{ -ENAMETOOLONG, "the path is longer than a socket's may be",
	  "use a shorter one (107 bytes)" },
	{ -ENOTSOCK, "not a socket", "give the daemon's socket with --socket" },
};

static int client_refuse_socket(struct client *client, const char *path, int error)
{
	for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++)
		if (advices[i].error == error)
			return client_fail(client, error == -ENOTDIR ? -ENOENT : error,
					   "cannot connect to %s: %s; %s", path, advices[i].why,
					   advices[i].next);
	return client_fail(client, error, "cannot connect to %s: %s", path, strerror(-error));
}

static void socket_of_user(char *path, size_t size)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");

	path[0] = '\0';
	if (dir && *dir == '/')
		snprintf(path, size, "%s/ncclinsp/ncclinspd.sock", dir);
}

/* Find the socket that answers.  A refusal for lack of rights says more than absence. */
static int client_find_socket(struct client *client)
{
	char own[4096];
	int r, system_error;

	if (client->host)
		return client_find_clock(client);
	if (client->given) {
		r = socket_probe(client->given);
		snprintf(client->path, sizeof(client->path), "%s", client->given);
		return r ? client_refuse_socket(client, client->given, r) : 0;
	}

	snprintf(client->path, sizeof(client->path), "%s", SYSTEM_SOCKET);
	system_error = socket_probe(SYSTEM_SOCKET);
	if (!system_error)
		return 0;
	socket_of_user(own, sizeof(own));
	if (!own[0])
		return client_refuse_socket(client, SYSTEM_SOCKET, system_error);

	r = socket_probe(own);
	if (!r) {	/* hence it is no longer than a socket's name can be */
		snprintf(client->path, sizeof(client->path), "%.*s",
			 (int)sizeof(client->path) - 1, own);
		return 0;
	}
	if (system_error == -ENOENT && r == -ENOENT)
		return client_fail(client, -ENOENT, "cannot connect to %s or %s: no such file; %s",
				   SYSTEM_SOCKET, own, start_own);
	if (system_error == -EACCES || r == -ENOENT)
		return client_refuse_socket(client, SYSTEM_SOCKET, system_error);
	return client_refuse_socket(client, own, r);
}

int client_connect(struct client *client)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int r = client_find_socket(client), fd;

	if (r)
		return r;
	strcpy(address.sun_path, client->path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address))) {
		r = client_refuse_socket(client, client->path, -errno);
		if (fd >= 0)
			close(fd);
		return r;
	}
	return fd;
}

/* ---- one exchange --------------------------------------------------------- */

static bool bytes_append(struct bytes *to, const char *data, size_t len, size_t most)
{
	if (len > most - to->len)
		return false;
	if (to->len + len + 1 > to->room) {
		to->room = 2 * (to->len + len + 1);
		to->data = must(realloc(to->data, to->room));
	}
	memcpy(to->data + to->len, data, len);
	to->len += len;
	to->data[to->len] = '\0';
	return true;
}

static size_t client_on_body(char *data, size_t one, size_t len, void *arg)
{
	struct client *client = arg;

	return bytes_append(&client->body, data, len, BODY_MAX) ? len : 0;
}

static void client_set_up(struct client *client, const char *target, curl_write_callback write)
{
	char url[1024];

	snprintf(url, sizeof(url), "http://ncclinspd%s", target);
	curl_easy_setopt(client->curl, CURLOPT_URL, url);
	if (!client->host)
		curl_easy_setopt(client->curl, CURLOPT_UNIX_SOCKET_PATH, client->path);
	curl_easy_setopt(client->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(client->curl, CURLOPT_PROXY, "");
	curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, write);
	curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, client);
	client->body.len = 0;
	client->error[0] = '\0';
}

static int client_explain(struct client *client, CURLcode code)
{
	if (code == CURLE_OPERATION_TIMEDOUT)
		return client_fail(client, -ETIMEDOUT,
				   "%s does not answer within %ld ms; "
				   "is the daemon stopped or overloaded?",
				   client->path, client->timeout_ms);
	if (client->host && code != CURLE_WRITE_ERROR)
		return client_fail_host(client);
	if (code == CURLE_COULDNT_CONNECT)
		return client_refuse_socket(client, client->path, -ECONNREFUSED);
	if (code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR || code == CURLE_PARTIAL_FILE)
		return client_fail(client, -ECONNREFUSED,
				   "%s closed the connection; did the daemon end?", client->path);
	return client_fail(client, -EPROTO, "asking %s failed: %s", client->path,
			   curl_easy_strerror(code));
}

/* A daemon of another version may refuse what one of this version would not. */
static void client_name_versions(struct client *client)
{
	struct client *other = client_new(client->path, client->timeout_ms);
	size_t len = strlen(client->error);
	const char *version;
	json_t *status;

	if (client->host)
		client_set_host(other, client->host, client->host_socket, client->host_asks);
	other->asks_version = true;
	if (!client_get(other, "/v1/status", &status)) {
		version = json_string_value(json_object_get(status, "version"));
		if (version && strcmp(version, NCCLINSP_VERSION))
			snprintf(client->error + len, sizeof(client->error) - len,
				 "; the daemon is %.31s, this program " NCCLINSP_VERSION
				 ": restart or upgrade the older one", version);
		json_decref(status);
	}
	client_free(other);
}

/* The daemon's own words for a refusal, when it gave any. */
static int client_was_refused(struct client *client, const char *target, long status)
{
	json_t *root = client->body.len ? intake_read(client->body.data, client->body.len, NULL)
					: NULL;
	const char *message = json_string_value(
		json_object_get(json_object_get(root, "error"), "message"));

	/* A refusal of what people asked for has words; else the request itself was wrong. */
	if (message && status != 400)
		client_fail(client, 0, "%s", message);
	else
		client_fail(client, 0, "%.*s: the daemon answered %ld: %s",
			    (int)strcspn(target, "?"),
			    target, status, message ? message : "no reason given");
	json_decref(root);
	if ((status == 400 || status == 404) && !client->asks_version)
		client_name_versions(client);
	if (status == 404)
		return -ESRCH;
	return status == 403 ? -EACCES : -EBADMSG;
}

static void client_complain(struct client *client, const char *target)
{
	curl_off_t us = 0, bytes = 0;
	long status = 0;

	if (!client->verbose)
		return;
	curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(client->curl, CURLINFO_SIZE_DOWNLOAD_T, &bytes);
	curl_easy_getinfo(client->curl, CURLINFO_TOTAL_TIME_T, &us);
	fprintf(stderr, "ncclinsp: %s: %s: %ld, %lld bytes, %.1f ms\n", client->path, target,
		status, (long long)bytes, (double)us * 1e-3);
}

/* Whatever client_set_up() and the caller have made ready. */
static int client_perform(struct client *client, const char *target, json_t **root)
{
	json_error_t error;
	long status = 0;
	CURLcode code;
	json_t *got;

	curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, client->timeout_ms);
	code = curl_easy_perform(client->curl);
	client_complain(client, target);
	if (code)
		return client_explain(client, code);
	curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200)
		return client_was_refused(client, target, status);

	got = intake_read(client->body.data ? client->body.data : "", client->body.len, &error);
	if (!json_is_object(got)) {
		json_decref(got);
		return client_fail(client, -EPROTO,
				   "%s answered %s with something other than JSON: %s",
				   client->path, target, got ? "no object" : error.text);
	}
	intake_move_times(got, client->behind_ns);
	*root = got;
	return 0;
}

void client_set_source(struct client *client, json_t *(*answer)(void *arg, const char *target),
		       void *arg)
{
	client->answer = answer;
	client->answer_arg = arg;
}

void client_set_source_stream(struct client *client, client_source_stream *stream)
{
	client->stream = stream;
}

/* The body is what a daemon would have sent. */
static int client_get_from_source(struct client *client, const char *target, json_t **root)
{
	json_t *got = client->answer(client->answer_arg, target);
	char *text;

	if (!json_is_object(got)) {
		json_decref(got);
		return client_fail(client, -EBADMSG, "the file does not have %s", target);
	}
	text = must(json_dumps(got, JSON_COMPACT));
	client->body.len = 0;
	bytes_append(&client->body, text, strlen(text), BODY_MAX);
	free(text);
	*root = got;
	return 0;
}

int client_get(struct client *client, const char *target, json_t **root)
{
	int r;

	if (client->answer)
		return client_get_from_source(client, target, root);
	r = client_find_socket(client);
	if (r)
		return r;
	client_set_up(client, target, (curl_write_callback)client_on_body);
	return client_perform(client, target, root);
}

static int client_put_text(struct client *client, const char *method, const char *target,
			   const char *text, json_t **root)
{
	int r = client->answer ? -ENOTSUP : client_find_socket(client);

	if (client->answer)
		client_fail(client, r, "this view is not from a single daemon: changes are not "
			    "possible here");
	if (r)
		return r;
	client_set_up(client, target, (curl_write_callback)client_on_body);
	curl_easy_setopt(client->curl, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, text);
	r = client_perform(client, target, root);
	curl_easy_setopt(client->curl, CURLOPT_CUSTOMREQUEST, NULL);
	curl_easy_setopt(client->curl, CURLOPT_HTTPGET, 1L);
	return r;
}

int client_put(struct client *client, const char *target, const json_t *body, json_t **root)
{
	char *text = must(json_dumps(body, JSON_COMPACT));
	int r = client_put_text(client, "PUT", target, text, root);

	free(text);
	return r;
}

int client_post(struct client *client, const char *target, json_t **root)
{
	return client_put_text(client, "POST", target, "", root);
}

const char *client_body(const struct client *client)
{
	return client->body.data;
}

/* ---- a stream ------------------------------------------------------------- */

/* Another node's times are moved to this one's clock. */
static int client_hand_on_line(struct client *client, const char *text, size_t len)
{
	json_auto_t *line = client->behind_ns ? json_loadb(text, len, 0, NULL) : NULL;
	char *moved;
	int r;

	if (!line)
		return client->on_line(client->on_line_arg, text, len);
	intake_move_times(line, client->behind_ns);
	moved = must(json_dumps(line, JSON_COMPACT));
	r = client->on_line(client->on_line_arg, moved, strlen(moved));
	free(moved);
	return r;
}

/* Hand on the whole lines of the buffer, keep the rest. */
static void client_split_lines(struct client *client)
{
	char *begin = client->body.data, *end;
	size_t left = client->body.len;

	while (!client->line_result && (end = memchr(begin, '\n', left))) {
		size_t len = (size_t)(end - begin);

		*end = '\0';
		if (len)
			client->line_result = client_hand_on_line(client, begin, len);
		begin = end + 1;
		left -= len + 1;
	}
	memmove(client->body.data, begin, left);
	client->body.len = left;
}

static size_t client_on_stream(char *data, size_t one, size_t len, void *arg)
{
	struct client *client = arg;
	long status = 0;

	if (!bytes_append(&client->body, data, len, LINE_MAX_BYTES + CURL_MAX_WRITE_SIZE))
		return 0;
	curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status == 200)
		client_split_lines(client);
	return client->line_result ? 0 : len;
}

int client_stream(struct client *client, const char *target,
		  int (*on_line)(void *arg, const char *text, size_t len),
		  bool (*goes_on)(void *arg), void *arg)
{
	long status = 0;
	CURLcode code;
	int r;

	if (client->stream)
		return client->stream(client->answer_arg, on_line, goes_on, arg);
	r = client_find_socket(client);
	if (r)
		return r;

	client->on_line = on_line;
	client->goes_on = goes_on;
	client->on_line_arg = arg;
	client->line_result = 0;
	client_set_up(client, target, (curl_write_callback)client_on_stream);
	curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, 0L);
	curl_easy_setopt(client->curl, CURLOPT_NOPROGRESS, goes_on || client->host ? 0L : 1L);
	code = curl_easy_perform(client->curl);
	client_complain(client, target);
	client->goes_on = NULL;
	curl_easy_setopt(client->curl, CURLOPT_NOPROGRESS, client->host ? 0L : 1L);
	if (client->line_result)
		return client->line_result;
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return 0;
	if (code)
		return client_explain(client, code);
	curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
	return status == 200 ? 0 : client_was_refused(client, target, status);
}

/* ---- life ----------------------------------------------------------------- */

struct client *client_new(const char *path, long timeout_ms)
{
	struct client *client = must(calloc(1, sizeof(*client)));

	if (!path)
		path = getenv("NCCLINSP_SOCKET");
	if (path && *path)
		client->given = must(strdup(path));
	snprintf(client->path, sizeof(client->path), "%s", client->given ? client->given
									 : SYSTEM_SOCKET);
	client->timeout_ms = timeout_ms;
	client->curl = must(curl_easy_init());
	curl_easy_setopt(client->curl, CURLOPT_XFERINFOFUNCTION, client_on_progress);
	curl_easy_setopt(client->curl, CURLOPT_XFERINFODATA, client);
	return client;
}

void client_free(struct client *client)
{
	if (!client)
		return;
	curl_easy_cleanup(client->curl);
	ssh_end(client->ssh, NULL, 0);
	if (client->listener) {
		close(client->listener);
		close(client->listener_node);
	}
	free(client->body.data);
	free(client->given);
	free(client);
}

void client_set_verbose(struct client *client)
{
	client->verbose = true;
}

void client_set_timeout(struct client *client, long timeout_ms)
{
	if (!client->host)	/* it may have to be connected to anew */
		client->timeout_ms = timeout_ms;
}

const char *client_socket(const struct client *client)
{
	return client->path;
}

const char *client_error(const struct client *client)
{
	return client->error;
}
