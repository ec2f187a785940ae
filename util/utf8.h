/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_UTF8_H
#define UTIL_UTF8_H

#include <stddef.h>

/*
 * Make `bytes` bytes of foreign text safe to log, print and put into JSON, in
 * place: each byte that is part of no well-formed character, or of a control
 * character, becomes '?'.  Zero bytes stay.
 */
void utf8_clean(char *text, size_t bytes);

#endif
