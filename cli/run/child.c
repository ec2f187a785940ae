/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the program of `ncclinsp run`, hands signals on to it, and tells how it ended. */
#include "cli/run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/list.h"

/* Signals of a launcher, a scheduler or a person; the program answers those that would end us. */
static const int handed_on[] = {
	SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE, SIGWINCH, SIGXCPU,
	SIGVTALRM, SIGPROF, SIGIO, SIGPWR,
};

static void signals_fill(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	for (size_t i = 0; i < ARRAY_LEN(handed_on); i++)
		sigaddset(set, handed_on[i]);
}

/* The kernel's own signals, as a terminal's, go to the whole process group: it has had it. */
static bool signal_is_for_us_alone(const siginfo_t *info)
{
	return info->si_signo != SIGCHLD && info->si_code != SI_KERNEL;
}

/* The first process of a container inherits all others: they are waited for, too. */
static bool child_has_ended(pid_t child, int *status)
{
	pid_t pid;

	while ((pid = waitpid(-1, status, WNOHANG)) > 0)
		if (pid == child)
			return true;
	return false;
}

/* Signals meant for the program that came when it had just ended are not for us. */
static void child_await(pid_t child, const sigset_t *signals, int *status)
{
	const struct timespec at_once = { 0 };
	siginfo_t info;

	while (!child_has_ended(child, status))
		if (sigwaitinfo(signals, &info) > 0 && signal_is_for_us_alone(&info))
			kill(child, info.si_signo);
	while (sigtimedwait(signals, NULL, &at_once) > 0)
		continue;
}

/* Never returns; where the program cannot be run, says why on `out`. */
static void child_exec(char *const argv[], const sigset_t *mask, const struct sigaction *on_child,
		       int out)
{
	int error;

	sigaction(SIGCHLD, on_child, NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	error = errno;
	if (write(out, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

/* Signals wait until there is somebody to hand them on to. */
int child_run(char *const argv[], int *status)
{
	struct sigaction usual = { .sa_handler = SIG_DFL }, on_child;
	sigset_t signals, mask;
	int why[2], error = 0;
	pid_t pid;

	if (pipe2(why, O_CLOEXEC))
		return -errno;
	signals_fill(&signals);
	sigprocmask(SIG_BLOCK, &signals, &mask);
	sigaction(SIGCHLD, &usual, &on_child);
	pid = fork();
	if (!pid)
		child_exec(argv, &mask, &on_child, why[1]);
	error = pid < 0 ? errno : 0;
	close(why[1]);
	if (!error && read(why[0], &error, sizeof(error)) != sizeof(error))
		error = 0;
	close(why[0]);
	if (pid > 0)
		child_await(pid, &signals, status);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return -error;
}

int child_end_alike(int status)
{
	static const struct rlimit no_core;

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &no_core);	/* the program's own is the one that matters */
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}
