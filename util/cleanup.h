/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_CLEANUP_H
#define UTIL_CLEANUP_H

/*
 * Owned locals: CLEANUP(x_closep) struct x *x = NULL; calls x_closep(&x) when
 * the variable goes out of scope.
 */

#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(destructor) __attribute__((cleanup(destructor)))

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

#endif
