/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_CLEANUP_H
#define UTIL_CLEANUP_H

/*
 * Owned locals: CLEANUP(x_closep) struct x *x = NULL; calls x_closep(&x) when
 * the variable goes out of scope.
 */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(destructor) __attribute__((cleanup(destructor)))

/* Makes x_freep() of x_free(), which takes NULL. */
#define CLEANUP_DEFINE(destructor, type) \
static inline void destructor##p(type **pointer) { destructor(*pointer); }

/* The pointer, which the local gives up. */
#define DISOWN(local) ({ __typeof__(local) disowned = (local); (local) = NULL; disowned; })

/* Destructor of any pointer to malloc'ed storage. */
static inline void cleanup_freep(void *pointer)
{
	free(*(void **)pointer);
}

/* Destructor of a descriptor; negative: none. */
static inline void cleanup_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* Destructors of a stream and of a directory's entries; NULL: none. */
static inline void cleanup_fclosep(FILE **file)
{
	if (*file)
		fclose(*file);
}

static inline void cleanup_closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

#endif
