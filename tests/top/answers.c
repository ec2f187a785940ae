/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api-answers SOCKET FILE: a daemon that always answers the same, for tests of what
 * is made of an answer.  FILE has two lines for each request: its target, as
 * "/v1/status", and the body, whatever the method.  What is not in it is answered
 * 404.  One client at a time; ends by a signal.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define REQUEST 8192
#define ANSWERS 64

static struct {
	char *target;
	char *body;
} answers[ANSWERS];
static size_t count;

static void die(const char *what)
{
	fprintf(stderr, "api-answers: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static char *read_line(FILE *file)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n = getline(&line, &room, file);

	if (n < 0) {
		free(line);
		return NULL;
	}
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static void load(const char *path)
{
	FILE *file = fopen(path, "r");

	if (!file)
		die(path);
	while (count < ANSWERS && (answers[count].target = read_line(file))) {
		answers[count].body = read_line(file);
		if (!answers[count++].body)
			die("a request without an answer");
	}
	fclose(file);
}

/* Which members of the rows are wanted makes no difference: all are told. */
static const char *body_of(char *target)
{
	char *fields = strstr(target, "fields=");

	if (fields)
		fields[-1] = '\0';
	for (size_t i = 0; i < count; i++)
		if (!strcmp(answers[i].target, target))
			return answers[i].body;
	return NULL;
}

static int send_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n <= 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* "GET /v1/status HTTP/1.1": the request line of what was received. */
static void answer(int fd, const char *request)
{
	const char *body;
	char target[REQUEST], head[256];

	if (sscanf(request, "%*15s %8191s", target) != 1)
		return;
	body = body_of(target);
	snprintf(head, sizeof(head),
		 "HTTP/1.1 %s\r\nContent-Type: application/json\r\nConnection: close\r\n"
		 "Content-Length: %zu\r\n\r\n",
		 body ? "200 OK" : "404 Not Found", body ? strlen(body) : 0);
	if (!send_all(fd, head, strlen(head)) && body)
		send_all(fd, body, strlen(body));
}

/* One request, then the connection is closed: the next client waits already. */
static void serve(int fd)
{
	char request[REQUEST];
	size_t used = 0;

	do {
		ssize_t n = recv(fd, request + used, sizeof(request) - 1 - used, 0);

		if (n <= 0)
			return;
		used += (size_t)n;
		request[used] = '\0';
	} while (!strstr(request, "\r\n\r\n"));
	answer(fd, request);
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, client;

	if (argc != 3) {
		fputs("usage: api-answers SOCKET FILE\n", stderr);
		return 2;
	}
	load(argv[2]);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[1]);
	unlink(argv[1]);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) ||
	    listen(fd, 8))
		die(argv[1]);
	while ((client = accept(fd, NULL, NULL)) >= 0) {
		serve(client);
		close(client);
	}
	die("accept");
}
