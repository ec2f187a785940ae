/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_BASE_DIRS_H
#define NCCLINSPD_BASE_DIRS_H

/* Directories made with those that they lie in, and listed. */

#include <dirent.h>

/* mkdir -p: `mode` is of the last one, 0755 of its parents.  0 or a negative errno. */
int dirs_make(const char *path, unsigned mode);

/* The same of the directory that `path` lies in, mode 0755. */
int dirs_make_parent(const char *path);

/* The entries of an open directory, from the first, for closedir().  NULL: errno says why. */
DIR *dirs_list(int fd);

#endif
