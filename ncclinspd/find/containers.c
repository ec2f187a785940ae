/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes are many and come and go, containers are few: of a process only the mount
 * namespace is asked for, when it is new, and only a new namespace is looked into.  (The
 * kernel's list of locks would name those who write segments at once, but makes everybody
 * who wants a lock wait for it, and us for all processors: 12 ms on two of them.)
 *
 * Only /dev/shm is looked at there.  Another directory that a process was told to use stands
 * in its environment; but who reads that waits for the lock on its memory, which it can keep
 * for ever: "ncclinsp doctor" may wait, we may not.
 *
 *     process -> namespace -> directory
 *
 * Each holds the next one: what no process of a round refers to any more is given up.
 *
 * Who is in a container may be anybody, and root there.  So nothing of it is touched before
 * the kernel has told what it is (mounts.h), links lead nowhere (beneath.h), and there are
 * bounds on everything.
 */
#include "ncclinspd/find/containers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "nci/segment.h"
#include "reader/base/beneath.h"
#include "ncclinspd/base/dirs.h"
#include "ncclinspd/find/mounts.h"
#include "reader/read/life.h"
#include "util/cleanup.h"
#include "util/log.h"

#define PIDS	32768	/* processes that are remembered */
#define SPACES	512	/* mount namespaces */
#define PLACES	(SHMDIR_MOST - 1)
#define LOOKS	4	/* looks at a new process or namespace: its container is still being made */
#define AGAIN	64	/* old processes of which one is looked at again, each round */
#define MOST_NEW 1024	/* processes that one round looks at */
#define MOST_IN	16	/* namespaces that one round looks into */
#define NONE	UINT16_MAX

struct container_seen {
	int32_t pid;
	uint16_t space;		/* NONE: not known */
	uint8_t looks;
	bool unseen;		/* it is in a pid namespace, and kept from us */
};

struct container_space {
	ino_t ino;		/* 0: free */
	uint16_t place;		/* NONE: it has ours, or nothing that we would touch */
	uint8_t looks;
	bool used;		/* used in this round */
	bool kept;		/* a process that was in it before keeps it, or it is new */
};

struct container_dir {
	struct shmdir dir;	/* .watch NULL: free */
	dev_t dev;
	ino_t ino;
	bool used;
};

struct containers {
	struct containers_config config;
	struct shmwatch *watch;
	const struct shmdir *own;
	containers_gone *gone;
	void *arg;
	int proc;
	ino_t own_space;
	struct stat shm;	/* our own /dev/shm; st_ino 0: there is none */
	struct container_seen *seen, *next;	/* last round's, this one's; by pid, ascending */
	uint32_t nseen, nnext;
	uint32_t round, news, ins;	/* this round; processes, namespaces it looked at */
	struct container_space space[SPACES];
	struct container_dir place[PLACES];
	struct containers_stats stats;
	struct log_rate rate;
};

/* ---- directories ----------------------------------------------------------- */

static bool space_is_ours(const struct containers *c, const struct stat *st)
{
	struct stat own;

	if (c->shm.st_ino == st->st_ino && c->shm.st_dev == st->st_dev)
		return true;
	return c->own->fd >= 0 && fstat(c->own->fd, &own) == 0 && own.st_ino == st->st_ino &&
	       own.st_dev == st->st_dev;
}

static uint16_t dir_take(struct containers *c, int fd, const struct stat *st, uint64_t now_ns)
{
	uint16_t room = NONE;

	for (uint16_t i = 0; i < PLACES; i++) {
		if (!c->place[i].dir.watch) {
			room = room == NONE ? i : room;
		} else if (c->place[i].dev == st->st_dev && c->place[i].ino == st->st_ino) {
			close(fd);
			return i;
		}
	}
	if (room == NONE) {
		close(fd);
		c->stats.left_out++;
		log_limited(&c->rate, now_ns, LOG_WARN, "too many containers limit=%d", PLACES);
		return NONE;
	}
	c->place[room].dev = st->st_dev;
	c->place[room].ino = st->st_ino;
	shmdir_init_fd(&c->place[room].dir, c->watch, fd);
	return room;
}

static void dir_free(struct containers *c, struct container_dir *place)
{
	c->gone(c->arg, &place->dir);
	shmdir_deinit(&place->dir);
	*place = (struct container_dir){ 0 };
}

/* ---- namespaces ------------------------------------------------------------ */

/* 0: the process is gone, or it is kept from us: *error says which. */
static ino_t space_ino(const struct containers *c, int32_t pid, int *error)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "%d/ns/mnt", pid);
	*error = fstatat(c->proc, path, &st, 0) < 0 ? errno : 0;
	return *error ? 0 : st.st_ino;
}

static bool pid_has_tmpfs(const struct containers *c, int32_t pid, dev_t *dev)
{
	FILE *file;
	char path[32];
	bool found;
	int fd;

	snprintf(path, sizeof(path), "%d/mountinfo", pid);
	fd = openat(c->proc, path, O_RDONLY | O_CLOEXEC);
	file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!file) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	found = mounts_find_shm(file, dev);
	fclose(file);
	return found;
}

/* The /dev/shm that the process has: a descriptor, or a negative errno. */
static int pid_open_shm(const struct containers *c, int32_t pid, struct stat *st)
{
	struct statfs fs;
	char path[32];
	dev_t dev;
	int fd;

	if (!pid_has_tmpfs(c, pid, &dev))
		return -ENOENT;
	snprintf(path, sizeof(path), "%d/root", pid);
	CLEANUP(cleanup_closep) int root = openat(c->proc, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = beneath_open_dir(root, NCI_SHM_DIR);
	if (fd < 0)
		return fd;
	if (fstat(fd, st) == 0 && st->st_dev == dev && fstatfs(fd, &fs) == 0 &&
	    fs.f_type == TMPFS_MAGIC)
		return fd;
	close(fd);
	return -ESTALE;		/* something else was mounted meanwhile */
}

static void space_look_into(struct containers *c, struct container_space *space, int32_t pid,
			    uint64_t now_ns)
{
	struct stat st;
	int error, fd;

	if (space->looks >= LOOKS || space->place != NONE || c->ins >= MOST_IN)
		return;
	c->ins++;
	space->looks++;
	fd = pid_open_shm(c, pid, &st);
	if (fd < 0)
		return;
	/* The number may have come to another process since it was asked for. */
	if (space_ino(c, pid, &error) != space->ino || space_is_ours(c, &st))
		close(fd);
	else
		space->place = dir_take(c, fd, &st, now_ns);
}

static uint16_t space_find(struct containers *c, ino_t ino)
{
	uint16_t room = NONE;

	for (uint16_t i = 0; i < SPACES; i++) {
		if (c->space[i].ino == ino)
			return i;
		if (!c->space[i].ino && room == NONE)
			room = i;
	}
	if (room == NONE)
		c->stats.left_out++;
	else
		c->space[room] = (struct container_space){ .ino = ino, .place = NONE,
							   .kept = true };
	return room;
}

/* ---- processes ------------------------------------------------------------- */

/* It is in a container, and some user's that we are there for. */
static bool pid_is_missed(const struct containers *c, int32_t pid)
{
	struct stat st;
	char path[32];
	uint32_t depth;

	snprintf(path, sizeof(path), "%d", pid);
	if (fstatat(c->proc, path, &st, 0) < 0 ||
	    (!c->config.everybody && st.st_uid != geteuid()))
		return false;
	return life_ns_pid(c->proc, pid, &depth) && depth > 1;
}

static void seen_look_at(struct containers *c, struct container_seen *seen, uint64_t now_ns)
{
	int error;
	ino_t ino;

	c->news++;
	if (seen->looks < LOOKS)
		seen->looks++;
	ino = space_ino(c, seen->pid, &error);
	seen->unseen = (error == EACCES || error == EPERM) && pid_is_missed(c, seen->pid);
	seen->space = ino && ino != c->own_space ? space_find(c, ino) : NONE;
	if (seen->space != NONE)
		space_look_into(c, &c->space[seen->space], seen->pid, now_ns);
}

static bool seen_is_due(const struct containers *c, const struct container_seen *seen)
{
	return seen->looks < LOOKS || (uint32_t)seen->pid % AGAIN == c->round % AGAIN;
}

/* Both lists ascend, as procfs tells them: what was known of it stands at *at. */
static void seen_take_pid(struct containers *c, int32_t pid, uint32_t *at, uint64_t now_ns)
{
	struct container_seen *seen = &c->next[c->nnext];
	uint16_t before;

	if (c->nnext == PIDS) {
		c->stats.left_out++;
		return;
	}
	while (*at < c->nseen && c->seen[*at].pid < pid)
		++*at;
	*seen = (struct container_seen){ .pid = pid, .space = NONE };
	if (*at < c->nseen && c->seen[*at].pid == pid)
		*seen = c->seen[*at];
	before = seen->space;
	if (c->news < MOST_NEW && seen_is_due(c, seen))
		seen_look_at(c, seen, now_ns);
	if (seen->space != NONE) {
		c->space[seen->space].used = true;
		c->space[seen->space].kept |= seen->space == before;
	}
	c->stats.unseen += seen->unseen;
	c->nnext++;
}

static void round_begin(struct containers *c)
{
	c->round++;
	c->news = c->ins = c->nnext = 0;
	c->stats.unseen = 0;
	for (int i = 0; i < SPACES; i++)
		c->space[i].used = c->space[i].kept = false;
	for (int i = 0; i < PLACES; i++)
		c->place[i].used = false;
}

static void round_end(struct containers *c)
{
	struct container_seen *seen = c->seen;

	c->seen = c->next;
	c->nseen = c->nnext;
	c->next = seen;
	for (int i = 0; i < SPACES; i++) {
		struct container_space *space = &c->space[i];

		/* The number of one that is gone is the next one's: that is another one. */
		if (!space->used || !space->kept)
			*space = (struct container_space){
				.ino = space->used ? space->ino : 0, .place = NONE,
			};
		else if (space->place != NONE)
			c->place[space->place].used = true;
	}
	c->stats.found = 0;
	for (int i = 0; i < PLACES; i++) {
		if (c->place[i].dir.watch && !c->place[i].used)
			dir_free(c, &c->place[i]);
		c->stats.found += !!c->place[i].dir.watch;
	}
}

bool containers_look(struct containers *c, uint64_t now_ns)
{
	const struct dirent *entry;
	uint32_t at = 0;
	CLEANUP(cleanup_closedirp) DIR *list = dirs_list(c->proc);

	if (!list)
		return false;
	round_begin(c);
	while ((entry = readdir(list))) {
		long pid = strtol(entry->d_name, NULL, 10);

		if (pid > 0 && pid <= INT_MAX)
			seen_take_pid(c, (int32_t)pid, &at, now_ns);
	}
	round_end(c);
	return c->news == MOST_NEW || c->ins == MOST_IN;
}

/* ---- from outside ---------------------------------------------------------- */

struct shmdir *containers_next(struct containers *c, uint32_t *at)
{
	while (*at < PLACES)
		if (c->place[(*at)++].dir.watch)
			return &c->place[*at - 1].dir;
	return NULL;
}

void containers_read_stats(const struct containers *c, struct containers_stats *stats)
{
	*stats = c->stats;
}

CLEANUP_DEFINE(containers_free, struct containers)

int containers_new(struct containers **out, const struct containers_config *config,
		   struct shmwatch *watch, const struct shmdir *own, containers_gone *gone,
		   void *arg)
{
	CLEANUP(containers_freep) struct containers *c = calloc(1, sizeof(*c));
	struct stat st;

	if (!c)
		return -ENOMEM;
	*c = (struct containers){
		.config = *config, .watch = watch, .own = own, .gone = gone, .arg = arg,
	};
	c->proc = open(config->proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->proc < 0)
		return -errno;
	c->seen = calloc(PIDS, sizeof(c->seen[0]));
	c->next = calloc(PIDS, sizeof(c->next[0]));
	if (!c->seen || !c->next)
		return -ENOMEM;
	if (fstatat(c->proc, "self/ns/mnt", &st, 0) == 0)
		c->own_space = st.st_ino;
	if (stat(NCI_SHM_DIR, &c->shm) < 0)
		c->shm.st_ino = 0;
	for (int i = 0; i < SPACES; i++)
		c->space[i].place = NONE;
	*out = DISOWN(c);
	return 0;
}

void containers_free(struct containers *c)
{
	if (!c)
		return;
	for (int i = 0; i < PLACES; i++)
		shmdir_deinit(&c->place[i].dir);
	if (c->proc >= 0)
		close(c->proc);
	free(c->seen);
	free(c->next);
	free(c);
}
