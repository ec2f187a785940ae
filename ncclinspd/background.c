/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipe between the daemon and the process that started it, so that a start in the
 * background returns only when the daemon answers, or has failed.
 */
#include "ncclinspd/background.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/log.h"

int background_enter(int *ready_fd)
{
	int fd[2];
	pid_t pid;
	char byte;

	if (pipe2(fd, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid > 0) {
		close(fd[1]);
		_exit(read(fd[0], &byte, 1) == 1 ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	close(fd[0]);
	setsid();
	*ready_fd = fd[1];
	return 0;
}

void background_ready(int *ready_fd, const char *state_dir)
{
	char path[PATH_MAX + 16];
	int log = -1, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (*ready_fd < 0)
		return;
	if (state_dir) {
		snprintf(path, sizeof(path), "%s/ncclinspd.log", state_dir);
		log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
	}
	if (write(*ready_fd, "", 1) < 0)
		log_say(LOG_WARN, "nobody waits for us");
	close(*ready_fd);
	*ready_fd = -1;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(log < 0 ? null : log, STDERR_FILENO);
	if (log >= 0)
		close(log);
	close(null);
}
