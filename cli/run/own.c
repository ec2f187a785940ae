/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The starter of the daemon holds the lock "election" meanwhile; its users share the lock "users",
 * on which the daemon itself looks, too (ncclinspd --while-locked).  Names are those of the
 * process that all of them were started by: the launcher's on this node.
 */
#include "cli/run/own.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/base/client.h"
#include "cli/common/beside.h"
#include "cli/common/cli.h"
#include "reader/base/job.h"
#include "reader/read/life.h"
#include "util/list.h"

#define PATIENCE_NS UINT64_C(6000000000)	/* the longest start or end of somebody else */
#define LOOK_NS	    10000000
#define TRIES	    8
#define DAEMON	    "ncclinspd"

static void own_pause(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
}

/* A directory that only its user can have made, and nobody else can look into. */
static int dir_make(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	if (lstat(path, &st))
		return -errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077) ? 0 : -EPERM;
}

static bool file_is_still(int fd, const char *path)
{
	struct stat here, there;

	return !fstat(fd, &here) && !stat(path, &there) && here.st_ino == there.st_ino &&
	       here.st_dev == there.st_dev;
}

static bool lock_is_taken(int fd, int operation)
{
	uint64_t begin_ns = cli_now_ns();

	while (flock(fd, operation | LOCK_NB)) {
		if (errno != EWOULDBLOCK || cli_now_ns() - begin_ns > PATIENCE_NS)
			return false;
		own_pause();
	}
	return true;
}

/*
 * Waits while somebody else has it, for a while; a descriptor or a negative errno: -EBUSY: it is
 * still held, -ESTALE: it was removed meanwhile.
 */
static int lock_open(const struct own *own, const char *name, int operation)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", own->dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (!lock_is_taken(fd, operation)) {
		close(fd);
		return -EBUSY;
	}
	if (file_is_still(fd, path))
		return fd;
	close(fd);
	return -ESTALE;
}

/* Nobody else begins or ends from now on; the last user may have removed all of it meanwhile. */
static int own_elect(struct own *own)
{
	int r = -ESTALE;

	for (int i = 0; i < TRIES && own->election < 0 && r == -ESTALE; i++) {
		r = dir_make(own->dir);
		if (r)
			return r;
		own->election = r = lock_open(own, "election", LOCK_EX);
	}
	return own->election < 0 ? r : 0;
}

static bool own_answers(const struct own *own)
{
	struct client *client = client_new(own->socket, 1000);
	int fd = client_connect(client);

	client_free(client);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* A daemon that did not start has said why. */
static void own_print_log(const struct own *own)
{
	char path[PATH_MAX], line[1024];
	FILE *in;

	snprintf(path, sizeof(path), "%s/log", own->dir);
	in = fopen(path, "re");
	while (in && fgets(line, sizeof(line), in))
		fprintf(stderr, "%s", line);
	if (in)
		fclose(in);
}

/* Runs the daemon in a session of its own: the terminal's signals end the job alone. */
static void daemon_exec(const struct own *own, const char *program, const char *state_dir)
{
	char users[PATH_MAX], log[PATH_MAX], config[PATH_MAX];
	int null = open("/dev/null", O_RDWR), out;

	snprintf(users, sizeof(users), "%s/users", own->dir);
	snprintf(log, sizeof(log), "%s/log", own->dir);
	snprintf(config, sizeof(config), "%s/conf", own->dir);	/* the node's is not for it */
	close(open(config, O_WRONLY | O_CREAT, 0600));
	out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	setsid();
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execl(program, DAEMON, "--foreground", "--config", config, "--containers", "no",
	      "--socket", own->socket, "--control", own->control, "--shm-dir", own->shm,
	      "--state-dir", state_dir, "--while-locked", users, (char *)NULL);
	_exit(127);
}

static int own_start(const struct own *own, const char *state_dir)
{
	char program[PATH_MAX], state[PATH_MAX];
	uint64_t begin_ns = cli_now_ns();
	pid_t pid;

	snprintf(state, sizeof(state), "%s/state", own->dir);
	if (!beside_find(DAEMON, "sbin", program, sizeof(program)))
		return -ENOENT;
	pid = fork();
	if (!pid)
		daemon_exec(own, program, state_dir ?: state);
	while (pid > 0 && !own_answers(own)) {
		if (waitpid(pid, NULL, WNOHANG) == pid) {
			own_print_log(own);
			return -ECHILD;
		}
		if (cli_now_ns() - begin_ns > PATIENCE_NS)
			return -ETIMEDOUT;
		own_pause();
	}
	return pid > 0 ? 0 : -EAGAIN;
}

/* False: the directory cannot be written, or its path is too long for a socket. */
static bool own_name_below(struct own *own, const char *home, const char *name)
{
	if (access(home, W_OK | X_OK) ||
	    snprintf(own->socket, sizeof(own->socket), "%s/%s/" DAEMON ".sock", home, name) >=
	    (int)sizeof(own->socket))
		return false;
	snprintf(own->dir, sizeof(own->dir), "%s/%s", home, name);
	snprintf(own->control, sizeof(own->control), "%s/control", own->dir);
	return true;
}

/* Batch jobs often have an XDG_RUNTIME_DIR that is not there. */
static int own_name(struct own *own)
{
	const char *const homes[] = { getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp" };
	pid_t of = job_local_rank(NULL) ? getppid() : getpid();
	char name[64];

	snprintf(name, sizeof(name), "ncclinsp-run-%u-%d-%llu", (unsigned)geteuid(), (int)of,
		 (unsigned long long)life_start_time(LIFE_PROC, of));
	snprintf(own->shm, sizeof(own->shm), NCI_SHM_DIR "/%s", name);
	for (size_t i = 0; i < ARRAY_LEN(homes); i++)
		if (homes[i] && own_name_below(own, homes[i], name))
			return 0;
	return -EACCES;
}

static void own_leave_election(struct own *own)
{
	if (own->election >= 0)
		close(own->election);
	own->election = -1;
}

int own_open(struct own *own, const char *state_dir)
{
	int r;

	*own = (struct own){ .election = -1, .users = -1 };
	r = own_name(own);
	if (!r)
		r = own_elect(own);
	if (!r)
		r = dir_make(own->shm);
	if (!r)
		own->users = r = lock_open(own, "users", LOCK_SH);
	if (r >= 0)
		r = own_answers(own) ? 0 : own_start(own, state_dir);
	own_leave_election(own);
	return r;
}

bool own_is_last(struct own *own)
{
	return own->users >= 0 && !own_elect(own) && !flock(own->users, LOCK_EX | LOCK_NB);
}

/* Asks it to end, and waits until it has closed the connection. */
static void daemon_end(const struct own *own)
{
	struct client *client = client_new(own->socket, 1000);
	struct pollfd fd = { .fd = client_connect(client), .events = POLLRDHUP };
	struct ucred daemon;
	socklen_t bytes = sizeof(daemon);

	client_free(client);
	if (fd.fd < 0)
		return;
	if (!getsockopt(fd.fd, SOL_SOCKET, SO_PEERCRED, &daemon, &bytes) &&
	    daemon.uid == geteuid() && daemon.pid > 1 && !kill(daemon.pid, SIGTERM)) {
		poll(&fd, 1, (int)(PATIENCE_NS / 1000000));
		waitpid(daemon.pid, NULL, WNOHANG);
	}
	close(fd.fd);
}

static int file_remove(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	remove(path);
	return 0;
}

void own_close(struct own *own)
{
	if (own->users >= 0 && own_is_last(own)) {
		daemon_end(own);
		nftw(own->shm, file_remove, 8, FTW_DEPTH | FTW_PHYS);
		nftw(own->dir, file_remove, 8, FTW_DEPTH | FTW_PHYS);
	}
	own_leave_election(own);
	if (own->users >= 0)
		close(own->users);
	own->users = -1;
}
