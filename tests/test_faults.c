/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon for which memory or the disk fails: at each allocation, and at each write, one
 * after another, from its start over a job that it finds and what it is asked to its end.  It
 * may refuse to start, and says why; it may refuse what it is asked; it never crashes or
 * hangs, it tells of no file that is not there, and what failed once works again.
 *
 * And one whose state directory is on a file system that answers nothing at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shmring/clock.h"
#include "tests/fixture.h"
#include "tests/fixture_daemon.h"

#define PATIENCE_MS	20000	/* a machine may be busy */
#define ANSWER		65536
#define SECOND_NS	UINT64_C(1000000000)

extern char **environ;

static char dir[64];
static int notify_fd;
static pid_t job;

static char *path_of(const char *name)
{
	static char path[8][128];
	static unsigned turn;
	char *to = path[turn++ % 8];

	snprintf(to, sizeof(path[0]), "%s/%s", dir, name);
	return to;
}

static struct sockaddr_un address_of(const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path_of(name));
	return a;
}

static void setup(void)
{
	struct sockaddr_un a;
	char name[80];

	snprintf(dir, sizeof(dir), "%s", fx_tmpdir());
	a = address_of("notify");
	notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(notify_fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(mkdir(path_of("shm"), 0755), 0);
	job = fx_job_fork(path_of("shm"), fx_job_publish_some, name);
}

static void teardown(void)
{
	fx_job_kill(job);
}

/* ---- the daemon ---------------------------------------------------------------------- */

static pid_t start(const char *what)
{
	char *argv[] = { "ncclinspd", "--foreground", "--containers", "no", "--socket",
			 path_of("s"), "--shm-dir", path_of("shm"), NULL, NULL, NULL };
	char state[128], control[128];
	posix_spawn_file_actions_t actions;
	pid_t pid;

	snprintf(state, sizeof(state), "--state-dir=%s/state", dir);
	snprintf(control, sizeof(control), "--control=%s/control", dir);
	argv[8] = state;
	argv[9] = control;
	setenv("FAILING", what, 1);
	setenv("FAILING_TOLD", path_of("told"), 1);
	setenv("LD_PRELOAD", fx_build_path("failing.so"), 1);
	setenv("NOTIFY_SOCKET", path_of("notify"), 1);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, path_of("log"),
					 O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ck_assert_int_eq(posix_spawn(&pid, fx_build_path("ncclinspd"), &actions, NULL, argv,
				     environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	unsetenv("LD_PRELOAD");
	return pid;
}

static bool is_said(const char *word)
{
	char text[256];
	ssize_t n;

	while ((n = recv(notify_fd, text, sizeof(text) - 1, MSG_DONTWAIT)) >= 0) {
		text[n] = '\0';
		if (strstr(text, word))
			return true;
	}
	return false;
}

/* True: it is ready; false: it has ended. */
static bool is_up(int pidfd)
{
	struct pollfd fds[] = { { notify_fd, POLLIN, 0 }, { pidfd, POLLIN, 0 } };

	for (;;) {
		ck_assert_msg(poll(fds, 2, PATIENCE_MS) > 0, "neither ready nor at its end");
		if (is_said("READY=1"))
			return true;
		if (fds[1].revents)
			return false;
	}
}

static void check_log(const char *what)
{
	char text[4096] = "";
	int fd = open(path_of("log"), O_RDONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert_msg(read(fd, text, sizeof(text) - 1) > 0 && strstr(text, "ncclinspd: "),
		      "%s: no word of why it did not start: '%s'", what, text);
	close(fd);
}

static void has_ended(const char *what, pid_t pid, int pidfd, bool was_up)
{
	struct pollfd fds = { pidfd, POLLIN, 0 };
	int status;

	ck_assert_msg(poll(&fds, 1, PATIENCE_MS) > 0, "%s: it does not end", what);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status), "%s: signal %d", what, WTERMSIG(status));
	if (!was_up) {
		ck_assert_msg(WEXITSTATUS(status) == 1 || WEXITSTATUS(status) == 2,
			      "%s: status %d", what, WEXITSTATUS(status));
		check_log(what);
	}
}

/* ---- what it is asked ------------------------------------------------------------------ */

/* The status of the answer, 0: there was none; its body follows in `body`. */
static int ask(const char *what, const char *method, const char *target, const char *sent,
	       char body[ANSWER])
{
	struct sockaddr_un a = address_of("s");
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct timeval most = { .tv_sec = PATIENCE_MS / 1000 };
	char text[ANSWER];
	size_t used = 0;
	ssize_t n = 1;
	int status = 0;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	ck_assert_msg(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0, "%s: %s %s: it is gone",
		      what, method, target);
	n = snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nConnection: close\r\n"
		     "Content-Length: %zu\r\n\r\n%s", method, target, strlen(sent), sent);
	(void)!send(fd, text, (size_t)n, MSG_NOSIGNAL);
	while (used < sizeof(text) - 1 &&
	       (n = recv(fd, text + used, sizeof(text) - 1 - used, 0)) > 0)
		used += (size_t)n;
	ck_assert_msg(n >= 0 || errno == ECONNRESET, "%s: %s %s hangs", what, method, target);
	close(fd);
	text[used] = '\0';
	sscanf(text, "HTTP/1.1 %d", &status);
	snprintf(body, ANSWER, "%s", strstr(text, "\r\n\r\n") ? strstr(text, "\r\n\r\n") + 4 : "");
	return status;
}

static void check_snapshot(const char *what, const char *body)
{
	json_t *answer = json_loads(body, 0, NULL), *file;
	const char *path = json_string_value(json_object_get(answer, "path"));

	ck_assert_msg(path, "%s: %s", what, body);
	file = json_load_file(path, 0, NULL);
	ck_assert_msg(file, "%s: told of %s, which is not there or not whole", what, path);
	json_decref(file);
	json_decref(answer);
}

static void ask_all(const char *what)
{
	static const struct {
		const char *method, *target, *body;
	} asked[] = {
		{ "GET", "/v1/status", "" },
		{ "GET", "/v1/processes", "" },
		{ "GET", "/v1/inflight", "" },
		{ "GET", "/v1/summary", "" },
		{ "GET", "/metrics", "" },
		{ "PUT", "/v1/level", "{\"level\":\"net\"}" },
		{ "PUT", "/v1/level", "{\"level\":\"default\"}" },
		{ "PUT", "/v1/phase", "{\"phase\":\"x\"}" },
		{ "POST", "/v1/snapshot", "" },
	};
	static char body[ANSWER];

	for (int i = 0; i < FX_COUNT(asked); i++) {
		int status;

		status = ask(what, asked[i].method, asked[i].target, asked[i].body, body);
		ck_assert_msg(!status || status == 200 || status >= 500 || *asked[i].method == 'P',
			      "%s: %s: %d %s", what, asked[i].target, status, body);
		if (status == 200 && *asked[i].method == 'P' && asked[i].method[1] == 'O')
			check_snapshot(what, body);
	}
}

/* ---- runs ------------------------------------------------------------------------------ */

/* False: it was not called so often. */
static bool runs(const char *cause, unsigned n, const char *stays)
{
	static char body[ANSWER];
	char what[64];
	bool up, fired;
	int pidfd;
	pid_t pid;

	snprintf(what, sizeof(what), "%s:%u%s", cause, n, stays);
	unlink(path_of("told"));
	is_said("");	/* what the one before said */
	pid = start(what);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	ck_assert_int_ge(pidfd, 0);
	up = is_up(pidfd);
	if (up) {
		ask_all(what);
		fired = !access(path_of("told"), F_OK);
		if (fired && !*stays)
			ck_assert_msg(ask(what, "GET", "/v1/status", "", body) == 200,
				      "%s: it has not recovered", what);
		kill(pid, SIGTERM);
	}
	has_ended(what, pid, pidfd, up);
	close(pidfd);
	return !access(path_of("told"), F_OK);
}

static const struct {
	const char *cause, *stays;
	unsigned first, step;
} causes[] = {	/* a part of many at a time */
	{ "memory", "", 1, 3 }, { "memory", "", 2, 3 }, { "memory", "", 3, 3 },
	{ "memory", "-", 1, 3 }, { "memory", "-", 2, 3 }, { "memory", "-", 3, 3 },
	{ "disk", "", 1, 1 }, { "disk", "-", 1, 1 },
};

TEST_LOOP(daemon_lives_with_each_failure, 0, FX_COUNT(causes))
{
	unsigned n = causes[_i].first;

	if (access(fx_build_path("failing.so"), F_OK)) {
		fx_skip("no library can be loaded in front of this one");
		return;
	}
	while (runs(causes[_i].cause, n, causes[_i].stays))
		n += causes[_i].step;
	printf("# %s%s: %u calls\n", causes[_i].cause, causes[_i].stays, n - 1);
	ck_assert_uint_gt(n, 10);
}

/* ---- a directory that hangs -------------------------------------------------------------- */

/* A file system whose server never says a word.  Its descriptor; less than 0: none here. */
static int mount_hanging(const char *where)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[80];

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	ck_assert_int_eq(mkdir(where, 0755), 0);
	if (fd >= 0 && unshare(CLONE_NEWNS) == 0 &&
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount("none", where, "fuse", 0, options) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool finding_is_told(const char *kind)
{
	static char body[ANSWER];
	json_t *answer, *finding;
	bool told = false;
	size_t i;

	ck_assert_int_eq(ask("hanging", "GET", "/v1/findings?active=true", "", body), 200);
	answer = json_loads(body, 0, NULL);
	json_array_foreach(json_object_get(answer, "findings"), i, finding)
		told |= !strcmp(json_string_value(json_object_get(finding, "kind")), kind);
	json_decref(answer);
	return told;
}

TEST(daemon_serves_while_its_state_directory_hangs)
{
	int fuse_fd = mount_hanging(path_of("state")), pidfd;
	static char body[ANSWER];
	uint64_t began_ns;
	pid_t pid;

	if (fuse_fd < 0) {
		fx_skip("nothing that hangs can be mounted here");
		return;
	}
	setenv("LSAN_OPTIONS", "detect_leaks=0", 1);	/* it would wait for what hangs */
	pid = start("");
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	ck_assert(is_up(pidfd));
	began_ns = clock_ns(CLOCK_MONOTONIC);
	ask_all("hanging");
	ck_assert_int_eq(ask("hanging", "POST", "/v1/snapshot", "", body), 503);
	ck_assert_uint_lt(clock_ns(CLOCK_MONOTONIC) - began_ns, 12 * SECOND_NS);
	while (!finding_is_told("unwritten"))
		usleep(200000);
	kill(pid, SIGTERM);
	began_ns = clock_ns(CLOCK_MONOTONIC);
	has_ended("hanging", pid, pidfd, true);
	ck_assert_uint_lt(clock_ns(CLOCK_MONOTONIC) - began_ns, 8 * SECOND_NS);
	close(pidfd);
	close(fuse_fd);
	ck_assert_int_eq(umount2(path_of("state"), MNT_DETACH), 0);
}

int main(void)
{
	return fx_run(setup, teardown);
}
