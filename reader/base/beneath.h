/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_BASE_BENEATH_H
#define READER_BASE_BENEATH_H

/*
 * Opening what somebody else has named, without being led elsewhere: by a link, or by
 * another file system that lies over the name and may not answer.
 */

#include <sys/stat.h>

/*
 * The file `name`, which has no slash, of the directory itself, to be read: a descriptor or a
 * negative errno, -ELOOP for a link, -EPERM for what else is no plain file, -EXDEV where
 * another file system is mounted.
 */
int beneath_open(int dirfd, const char *name);

/* The attributes of what lies there, of a link itself if it is one: 0 or a negative errno. */
int beneath_stat(int dirfd, const char *name, struct stat *st);

/*
 * The directory `path`, which has no "..", below the root directory `rootfd`, without any link
 * on the way: a descriptor or a negative errno.
 */
int beneath_open_dir(int rootfd, const char *path);

#endif
