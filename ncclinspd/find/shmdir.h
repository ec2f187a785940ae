/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FIND_SHMDIR_H
#define NCCLINSPD_FIND_SHMDIR_H

/*
 * A directory where segments lie: told of new files by inotify, and listed.  The node's
 * own has a path, and may come later, go, or be replaced by another one of the same name;
 * a container's is held by its descriptor.
 */

#include "ncclinspd/loop.h"

#define SHMDIR_MOST	65	/* watched at the same time: the node's, and containers' */
#define SHMDIR_ENTRIES	65536	/* of one, that a scan looks at */
#define SHMDIR_NOTICES	1024	/* of a container, between two scans, that are followed */

struct shmdir;

/* A file of that name is there, or was a moment ago. */
typedef void shmdir_see(void *arg, struct shmdir *dir, const char *file, uint64_t now_ns);

/* One inotify for all directories: a user may not have many. */
struct shmwatch {
	struct loop *loop;
	shmdir_see *see;
	void *arg;
	int fd;			/* -1: there is none (yet) */
	struct shmdir *dir[SHMDIR_MOST];	/* those that are watched; NULL: free */
};

struct shmdir {
	struct shmwatch *watch;
	const char *path;	/* the caller's; NULL: it is given by its descriptor */
	int fd;			/* -1: it is not there */
	int wd;			/* -1: not watched */
	uint32_t entries;	/* of one scan, at most */
	bool cut;		/* the last one left some out */
	int error;		/* ... or failed by that, negative, which has been told */
	uint32_t notices;	/* of a container, since the last scan */
	bool missed;		/* not listed yet, or notices were lost: scan soon */
};

void shmwatch_init(struct shmwatch *watch, struct loop *loop, shmdir_see *see, void *arg);
/* After its directories.  Zeroed is fine. */
void shmwatch_deinit(struct shmwatch *watch);

void shmdir_init(struct shmdir *dir, struct shmwatch *watch, const char *path);
/* One that is open already, whose fd is ours from now on. */
void shmdir_init_fd(struct shmdir *dir, struct shmwatch *watch, int fd, uint32_t entries);
/* Zeroed is fine. */
void shmdir_deinit(struct shmdir *dir);

/* Open it if need be, and see() every file in it.  0, or why it cannot be listed. */
int shmdir_scan(struct shmdir *dir, uint64_t now_ns);

#endif
