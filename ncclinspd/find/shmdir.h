/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FIND_SHMDIR_H
#define NCCLINSPD_FIND_SHMDIR_H

/*
 * A directory where segments lie: told of new files by inotify, and listed.  The node's
 * own has a path, and may come later, go, or be replaced by another one of the same name;
 * a container's is held by its descriptor.
 *
 * Anybody can put as many files there as the file system holds.  So a directory is gone
 * through in slices, each as long as its work allows, and none of it is ever left out.
 */

#include <dirent.h>

#include "ncclinspd/base/loop.h"

#define SHMDIR_MOST	65	/* watched at the same time: the node's, and containers' */
#define SHMDIR_NOTICES	1024	/* notices of a container followed between two scans */
#define SHMDIR_NOTICES_OWN 512	/* notices of the node's between two slices */

/* Work is counted in names that are no segment's, some 0.2 us each: 7 ms, 0.2 ms. */
#define SHMDIR_WORK	32768	/* work of a slice of the node's */
#define SHMDIR_WORK_IN	1024	/* work of a container's */
#define SHMDIR_STAT	16	/* a file that was asked for its owner */
#define SHMDIR_OPEN	128	/* a file that was opened too */

#define SHMDIR_MORE	1	/* outcome of shmdir_scan(): there is more in the directory */

struct shmdir;

/*
 * A file of that name is there, or was a moment ago; `ino`: its number, as the directory lists it,
 * or 0.  Returns what that cost: 0, _STAT, _OPEN.
 */
typedef uint32_t shmdir_see(void *arg, struct shmdir *dir, const char *file, ino_t ino,
			    uint64_t now_ns);

/* One inotify for all directories: a user may not have many. */
struct shmwatch {
	struct loop *loop;
	shmdir_see *see;
	void *arg;
	int fd;			/* -1: there is none (yet) */
	struct shmdir *dir[SHMDIR_MOST];	/* directories that are watched; NULL: free */
};

struct shmdir {
	struct shmwatch *watch;
	const char *path;	/* the caller's; NULL: it is given by its descriptor */
	int fd;			/* -1: it is not there */
	int wd;			/* -1: not watched */
	DIR *list;		/* place of the scan in progress; NULL: none is */
	int error;		/* failure of the last one, negative, which has been told */
	uint32_t notices;	/* notices since the last scan, or slice */
	bool missed;		/* not listed yet, or notices were lost: scan soon */
};

void shmwatch_init(struct shmwatch *watch, struct loop *loop, shmdir_see *see, void *arg);
/* Called after its directories'.  Zeroed is fine. */
void shmwatch_deinit(struct shmwatch *watch);

void shmdir_init(struct shmdir *dir, struct shmwatch *watch, const char *path);
/* One that is open already, whose fd is ours from now on. */
void shmdir_init_fd(struct shmdir *dir, struct shmwatch *watch, int fd);
/* Zeroed is fine. */
void shmdir_deinit(struct shmdir *dir);

/*
 * Begin a scan, or go on with the one in progress: open the directory if need be, and see()
 * its files for as long as there is `work`.  0: that was all; SHMDIR_MORE; or why it cannot be
 * listed, as a negative errno.
 */
int shmdir_scan(struct shmdir *dir, uint32_t work, uint64_t now_ns);

#endif
