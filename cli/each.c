/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command for many nodes that has nothing to say of them together: a child for each, as if it
 * had been called for that host, whose output is kept until it is done, and those before it.
 */
#include "cli/each.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/base/must.h"
#include "cli/common/cli.h"

#define AT_A_TIME 32

extern char **environ;

struct each {
	pid_t pid;
	FILE *said;
	enum cli_exit code;	/* its exit code, where no child could be started */
};

/* Refusals and failures are told on stderr, so that a program need not read all. */
static void each_print(struct each *e, const char *host, int code)
{
	FILE *to = code == CLI_DONE ? stdout : stderr;
	char *line = NULL;
	size_t room = 0;

	rewind(e->said);
	while (getline(&line, &room, e->said) > 0)
		fprintf(to, "%s: %s%s", host, line, strchr(line, '\n') ? "" : "\n");
	free(line);
	fclose(e->said);
}

/* The last of several hosts counts, so that one more is put behind the words. */
static void each_start(struct each *e, char **argv, int argc, const char *host)
{
	char **words = must(calloc((size_t)argc + 2, sizeof(*words))), *option;
	posix_spawn_file_actions_t actions;
	int error;

	if (asprintf(&option, "--host=%s", host) < 0)
		option = NULL;
	memcpy(words, argv, (size_t)argc * sizeof(*words));
	words[argc] = must(option);
	e->said = must(fdopen(memfd_create("ncclinsp", MFD_CLOEXEC), "r+"));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, fileno(e->said), STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, fileno(e->said), STDERR_FILENO);
	error = posix_spawn(&e->pid, "/proc/self/exe", &actions, NULL, words, environ);
	if (error) {
		e->pid = 0;
		e->code = CLI_FAILED;
		fprintf(e->said, "ncclinsp cannot be run: %s\n", strerror(error));
	}
	posix_spawn_file_actions_destroy(&actions);
	free(option);
	free(words);
}

/* Returns its exit code, once it is done. */
static int each_end(struct each *e, const char *host)
{
	int status = 0, code = e->code;

	if (e->pid) {
		while (waitpid(e->pid, &status, 0) < 0 && errno == EINTR)
			;
		code = WIFEXITED(status) ? WEXITSTATUS(status) : CLI_FAILED;
	}
	each_print(e, host, code);
	return code;
}

int each_run(char **argv, int argc, const struct hosts *hosts)
{
	struct each at_a_time[AT_A_TIME] = { { .pid = 0 } };
	uint32_t n = hosts->names.n, started = 0;
	int worst = CLI_DONE, code;

	for (uint32_t i = 0; i < n; i++) {
		for (; started < n && started - i < AT_A_TIME; started++)
			each_start(&at_a_time[started % AT_A_TIME], argv, argc,
				   hosts->names.at[started]);
		code = each_end(&at_a_time[i % AT_A_TIME], hosts->names.at[i]);
		worst = code > worst ? code : worst;
	}
	return worst;
}
