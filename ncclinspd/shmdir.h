/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SHMDIR_H
#define NCCLINSPD_SHMDIR_H

/*
 * The directory where segments lie: told of new files by inotify, and listed.
 * It may come later, go, or be replaced by another one of the same name.
 */

#include "ncclinspd/loop.h"

/* A file of that name is there, or was a moment ago. */
typedef void shmdir_see(void *arg, const char *file, uint64_t now_ns);

struct shmdir {
	struct loop *loop;
	const char *path;	/* the caller's */
	shmdir_see *see;
	void *arg;
	int fd;			/* -1: it is not there */
	int inotify;		/* -1: refused */
	bool missed;		/* notices were lost: scan soon */
};

void shmdir_init(struct shmdir *dir, struct loop *loop, const char *path, shmdir_see *see,
		 void *arg);
/* Zeroed is fine. */
void shmdir_deinit(struct shmdir *dir);

/* Open it if need be, and see() every file in it.  0, or why it cannot be listed. */
int shmdir_scan(struct shmdir *dir, uint64_t now_ns);

#endif
