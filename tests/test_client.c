/* SPDX-License-Identifier: Apache-2.0 */
/* What the client makes of a peer that is absent, rude, slow or lying. */
#include "tests/fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/base/client.h"

static char path[128];
static pid_t peer;
static struct client *client;
static json_t *root;

static int listen_here(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	return fd;
}

/* Answers the first connection that asks something with `first`, the others with `then`. */
static void serve_each(const char *first, const char *then)
{
	int fd = listen_here();
	char request[4096];

	peer = fork();
	ck_assert_int_ge(peer, 0);
	if (peer) {
		close(fd);
		return;
	}
	signal(SIGPIPE, SIG_IGN);
	for (;;) {
		int c = accept(fd, NULL, NULL);

		if (read(c, request, sizeof(request)) > 0) {
			if (write(c, first, strlen(first)) < 0)
				_exit(1);
			first = then;
		}
		close(c);
	}
}

static void serve_bytes(const char *bytes)
{
	serve_each(bytes, bytes);
}

static void setup(void)
{
	snprintf(path, sizeof(path), "%s/s%d", fx_tmpdir(), (int)getpid());
	unlink(path);
	peer = 0;
	root = NULL;
	client = client_new(path, 300);
}

static void teardown(void)
{
	client_free(client);
	json_decref(root);
	if (peer > 0) {
		kill(peer, SIGKILL);
		waitpid(peer, NULL, 0);
	}
	unlink(path);
}

static bool says(const char *text)
{
	return strstr(client_error(client), text);
}

TEST(an_answer_is_handed_on_as_object_and_as_text)
{
	serve_bytes("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{\"a\":1}\n");
	ck_assert_int_eq(client_get(client, "/v1/status", &root), 0);
	ck_assert_int_eq(json_integer_value(json_object_get(root, "a")), 1);
	ck_assert_str_eq(client_body(client), "{\"a\":1}\n");
	ck_assert_str_eq(client_error(client), "");
	ck_assert_str_eq(client_socket(client), path);
}

TEST(without_a_daemon_the_reason_and_the_remedy_are_told)
{
	ck_assert_int_eq(client_get(client, "/v1/status", &root), -ENOENT);
	ck_assert(says(path));
	ck_assert(says("no such file"));
	ck_assert(says("ncclinspd --foreground"));
	close(listen_here());
	ck_assert_int_eq(client_get(client, "/v1/status", &root), -ECONNREFUSED);
	ck_assert(says("nobody listens"));
	ck_assert_ptr_null(root);
}

TEST(a_path_that_no_socket_can_have_is_refused)
{
	char longest[200];

	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	client_free(client);
	client = client_new(longest, 300);
	ck_assert_int_eq(client_get(client, "/v1/status", &root), -ENAMETOOLONG);
	ck_assert(says("longer"));
}

TEST(the_daemons_own_words_are_passed_on)
{
	serve_bytes("HTTP/1.1 400 Bad Request\r\nContent-Length: 62\r\n\r\n"
		    "{\"error\":{\"code\":\"bad_request\",\"message\":\"bad value of 'by'\"}}");
	ck_assert_int_eq(client_get(client, "/v1/summary?by=x", &root), -EBADMSG);
	ck_assert(says("/v1/summary: the daemon answered 400: bad value of 'by'"));
}

TEST(what_is_refused_in_words_needs_no_others)
{
	serve_bytes("HTTP/1.1 404 Not Found\r\nContent-Length: 53\r\n\r\n"
		    "{\"error\":{\"code\":\"not_found\",\"message\":\"no process\"}}");
	ck_assert_int_eq(client_get(client, "/v1/level", &root), -ESRCH);
	ck_assert_str_eq(client_error(client), "no process");
}

#define REFUSES "HTTP/1.1 404 Not Found\r\nContent-Length: 50\r\n\r\n" \
		"{\"error\":{\"code\":\"not_found\",\"message\":\"nothing\"}}"

TEST(a_daemon_of_another_version_is_named_where_it_refuses)
{
	serve_each(REFUSES, "HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n"
		   "{\"version\":\"0.0.7\"}");
	ck_assert_int_eq(client_get(client, "/v1/level", &root), -ESRCH);
	ck_assert_str_eq(client_error(client), "nothing; the daemon is 0.0.7, this program "
			 NCCLINSP_VERSION ": restart or upgrade the older one");
}

TEST(a_daemon_of_the_same_version_means_what_it_says)
{
	char status[128];

	snprintf(status, sizeof(status), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n"
		 "{\"version\":\"%s\"}", strlen(NCCLINSP_VERSION) + 14, NCCLINSP_VERSION);
	serve_each(REFUSES, status);
	ck_assert_int_eq(client_get(client, "/v1/level", &root), -ESRCH);
	ck_assert_str_eq(client_error(client), "nothing");
}

TEST(a_refusal_is_a_lack_of_rights)
{
	serve_bytes("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
	ck_assert_int_eq(client_get(client, "/v1/level", &root), -EACCES);
	ck_assert(says("no reason given"));
}

/* Peers that are no daemon of ours: an error, never a crash, never an answer. */
static const char *const liars[] = {
	"",
	"\r\n",
	"SSH-2.0-OpenSSH_9.2\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"cut\":",
	"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nnot json!",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
	"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull",
	"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"a\":\"\xff\"}",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}",
};

TEST_LOOP(who_lies_is_not_believed, 0, FX_COUNT(liars))
{
	serve_bytes(liars[_i]);
	ck_assert_int_lt(client_get(client, "/v1/status", &root), 0);
	ck_assert_ptr_null(root);
	ck_assert_uint_gt(strlen(client_error(client)), 10);
}

TEST(who_does_not_answer_is_not_waited_for)
{
	int fd = listen_here();

	ck_assert_int_eq(client_get(client, "/v1/status", &root), -ETIMEDOUT);
	ck_assert(says("300 ms"));
	close(fd);
}

/* ---- streams -------------------------------------------------------------- */

static char seen[256];
static int enough;

static int on_line(void *arg, const char *text, size_t len)
{
	(void)arg;
	ck_assert_uint_eq(strlen(text), len);
	strcat(seen, text);
	strcat(seen, "|");
	return enough && !--enough;
}

static int stream(const char *bytes, int lines)
{
	seen[0] = '\0';
	enough = lines;
	serve_bytes(bytes);
	return client_stream(client, "/v1/stream", on_line, NULL, NULL);
}

TEST(a_stream_is_split_into_whole_lines)
{
	ck_assert_int_eq(stream("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
				"5\r\n{\"a\":\r\n8\r\n1}\n{\"b\"\n\r\n"
				"3\r\ncut\r\n0\r\n\r\n", 0), 0);
	ck_assert_str_eq(seen, "{\"a\":1}|{\"b\"|");
}

TEST(a_stream_ends_when_the_reader_has_enough)
{
	ck_assert_int_eq(stream("HTTP/1.1 200 OK\r\n\r\n1\n2\n3\n4\n", 2), 1);
	ck_assert_str_eq(seen, "1|2|");
}

TEST(an_error_is_no_line_of_a_stream)
{
	ck_assert_int_eq(stream("HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno\n", 0),
			 -ESRCH);
	ck_assert_str_eq(seen, "");
}

int main(void)
{
	return fx_run(setup, teardown);
}
