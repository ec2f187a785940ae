/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child that talks to another node.  What it says on stderr is kept for whoever asks why it
 * failed.
 */
#include "cli/base/ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/base/must.h"
#include "util/list.h"
#include "util/utf8.h"

#define WORDS_MOST 32	/* words of a command line */
#define WHY_MS	   200	/* longest wait for the last words of a child that has hung up */

extern char **environ;

struct ssh {
	pid_t pid;
	int said;	/* its stderr */
};

bool ssh_is_host(const char *host)
{
	static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				  ".-_@:%";

	return *host && *host != '-' && !host[strspn(host, all)];
}

/* ---- its command line -------------------------------------------------------------- */

struct ssh_line {
	char *words[WORDS_MOST + 1];	/* NULL behind the last */
	uint32_t n;
	char *program, *remote;	/* texts that words are in */
};

/* False: there are too many. */
static bool ssh_line_add(struct ssh_line *line, char *word)
{
	char **place = line->n < WORDS_MOST ? array_add(line->words, &line->n) : NULL;

	if (place)
		*place = word;
	return place;
}

/* One word for the other side's shell. */
static char *ssh_quote(const char *text)
{
	char *quoted = must(malloc(4 * strlen(text) + 3)), *to = quoted;

	*to++ = '\'';
	for (; *text; text++) {
		if (*text == '\'')
			to = stpcpy(to, "'\\''");
		else
			*to++ = *text;
	}
	strcpy(to, "'");
	return quoted;
}

static char *ssh_remote_command(const char *socket)
{
	const char *program = getenv("NCCLINSP_REMOTE");
	char *quoted = socket ? ssh_quote(socket) : NULL, *command;

	if (asprintf(&command, "exec %s dial-stdio%s%s", program && *program ? program : "ncclinsp",
		     quoted ? " --socket " : "", quoted ?: "") < 0)
		command = NULL;
	free(quoted);
	return must(command);
}

/* False: the command has too many words. */
static bool ssh_line_make(struct ssh_line *line, const char *host, const char *socket, bool asks)
{
	static char no_terminal[] = "-T", batch[] = "-oBatchMode=yes", end[] = "--";
	const char *program = getenv("NCCLINSP_SSH");
	bool fits = true;
	char *rest;

	*line = (struct ssh_line){ .remote = ssh_remote_command(socket) };
	line->program = must(strdup(program && *program ? program : "ssh"));
	for (char *word = strtok_r(line->program, " ", &rest); word;
	     word = strtok_r(NULL, " ", &rest))
		fits = fits && ssh_line_add(line, word);
	fits = fits && ssh_line_add(line, no_terminal) && (asks || ssh_line_add(line, batch));
	return fits && ssh_line_add(line, end) &&
	       ssh_line_add(line, (char *)(uintptr_t)host) && ssh_line_add(line, line->remote);
}

static void ssh_line_deinit(struct ssh_line *line)
{
	free(line->program);
	free(line->remote);
}

/* ---- life --------------------------------------------------------------------------- */

static int ssh_spawn(struct ssh *ssh, struct ssh_line *line, int talk, int say)
{
	posix_spawn_file_actions_t actions;
	int error;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, talk, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, talk, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, say, STDERR_FILENO);
	error = posix_spawnp(&ssh->pid, line->words[0], &actions, NULL, line->words, environ);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

struct ssh *ssh_start(const char *host, const char *socket, bool asks, int fd)
{
	struct ssh *ssh = must(calloc(1, sizeof(*ssh)));
	struct ssh_line line;
	int say[2], error;

	if (pipe2(say, O_CLOEXEC)) {
		free(ssh);
		return NULL;
	}
	error = ssh_line_make(&line, host, socket, asks) ? ssh_spawn(ssh, &line, fd, say[1])
							  : E2BIG;
	ssh_line_deinit(&line);
	close(say[1]);
	ssh->said = say[0];
	if (!error)
		return ssh;
	close(say[0]);
	free(ssh);
	errno = error;
	return NULL;
}

/* The last line that is not empty, without the name of our own program. */
static const char *ssh_last_line(char *text)
{
	static const char own[] = "ncclinsp: ";
	size_t n = strlen(text);
	char *line;

	while (n && strchr("\r\n ", text[n - 1]))
		text[--n] = '\0';
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	return !strncmp(line, own, sizeof(own) - 1) ? line + sizeof(own) - 1 : line;
}

/* Reads until it has closed its stderr, or says nothing for a while. */
static void ssh_hear(const struct ssh *ssh, char *why, size_t size)
{
	struct pollfd said = { .fd = ssh->said, .events = POLLIN };
	char text[4096];
	size_t n = 0;
	ssize_t got = 1;

	while (n + 1 < sizeof(text) && poll(&said, 1, WHY_MS) > 0 && got > 0) {
		got = read(ssh->said, text + n, sizeof(text) - 1 - n);
		n += got > 0 ? (size_t)got : 0;
	}
	text[n] = '\0';
	snprintf(why, size, "%.*s", (int)size - 1, ssh_last_line(text));
	utf8_clean(why, strlen(why));
}

void ssh_end(struct ssh *ssh, char *why, size_t size)
{
	if (!ssh)
		return;
	if (size)
		ssh_hear(ssh, why, size);
	kill(ssh->pid, SIGTERM);
	while (waitpid(ssh->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(ssh->said);
	free(ssh);
}
