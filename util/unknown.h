/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_UNKNOWN_H
#define UTIL_UNKNOWN_H

/* Values that are not known, and names, as all rows have them. */

#include <stdint.h>

#define UNKNOWN_U64	UINT64_MAX
#define UNKNOWN_I32	INT32_MIN

/* Texts that live as long as the program, compared by pointer; NULL: not known. */
typedef const char *name_t;

/* The texts of a list of X(NAME, text), in the order of the enum that is made of the same list. */
#define NAME_TEXT(NAME, text)	text,

#endif
