/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BASE_PICKLE_H
#define CLI_BASE_PICKLE_H

/*
 * Plain data of Python's pickle: dictionaries whose keys are texts, lists, tuples, texts, numbers,
 * truth values and None.  Nothing else is read: no name of a class or a function, no call, no
 * object, hence nothing that could be run.
 */

#include <jansson.h>
#include <stddef.h>

/*
 * A new value, a tuple being an array; NULL: *why tells, and *at is the byte.  Parts that the
 * pickle has once and names several times are one value here, too: none must be changed.  Texts
 * are as they came: they may be no UTF-8.  Memory is bounded, whatever the bytes are.
 */
json_t *pickle_read(const void *bytes, size_t n, const char **why, size_t *at);

#endif
