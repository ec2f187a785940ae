/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command for many nodes that has nothing to say of them together: a child for each, as if it
 * had been called for that host, whose output is kept until all are done.
 */
#include "cli/each.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/base/must.h"
#include "cli/common/cli.h"

#define AT_A_TIME 32

extern char **environ;

struct each {
	pid_t pid;
	FILE *said;
	int code;
};

/* Refusals and failures are told on stderr, so that a program need not read all. */
static void each_print(struct each *e, const char *host)
{
	FILE *to = e->code == CLI_DONE ? stdout : stderr;
	char *line = NULL;
	size_t room = 0;

	rewind(e->said);
	while (getline(&line, &room, e->said) > 0)
		fprintf(to, "%s: %s", host, line);
	free(line);
	fclose(e->said);
}

/* The last of several hosts counts, so that one more is put behind the words. */
static void each_start(struct each *e, char **argv, int argc, const char *host)
{
	char **words = must(calloc((size_t)argc + 2, sizeof(*words))), *option;
	posix_spawn_file_actions_t actions;

	if (asprintf(&option, "--host=%s", host) < 0)
		option = NULL;
	memcpy(words, argv, (size_t)argc * sizeof(*words));
	words[argc] = must(option);
	e->said = must(tmpfile());
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, fileno(e->said), STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, fileno(e->said), STDERR_FILENO);
	if (posix_spawn(&e->pid, "/proc/self/exe", &actions, NULL, words, environ)) {
		e->pid = 0;
		e->code = CLI_FAILED;
		fprintf(e->said, "ncclinsp cannot be run: %s\n", strerror(errno));
	}
	posix_spawn_file_actions_destroy(&actions);
	free(option);
	free(words);
}

static void each_wait(struct each *e)
{
	int status = 0;

	if (!e->pid)
		return;
	while (waitpid(e->pid, &status, 0) < 0 && errno == EINTR)
		;
	e->code = WIFEXITED(status) ? WEXITSTATUS(status) : CLI_FAILED;
}

int each_run(char **argv, int argc, const struct hosts *hosts)
{
	uint32_t n = hosts->names.n, waited = 0;
	struct each *all = must(calloc(n, sizeof(*all)));
	int code = CLI_DONE;

	for (uint32_t i = 0; i < n; i++) {
		if (i - waited == AT_A_TIME)
			each_wait(&all[waited++]);
		each_start(&all[i], argv, argc, hosts->names.at[i]);
	}
	while (waited < n)
		each_wait(&all[waited++]);
	for (uint32_t i = 0; i < n; i++) {
		each_print(&all[i], hosts->names.at[i]);
		code = all[i].code > code ? all[i].code : code;
	}
	free(all);
	return code;
}
