/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_UTF8_H
#define UTIL_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * Make `bytes` bytes of foreign text safe to log, print and put into JSON, in
 * place: each byte that is part of no well-formed character, or of one that controls
 * the terminal, turns the direction of text or is not to be seen, becomes '?'.  Zero bytes
 * stay.
 */
void utf8_clean(char *text, size_t bytes);

/*
 * The well-formed and harmless character at `s`, of which `room` bytes may be
 * read: its bytes, and its code in *code.  0: there is none, *code is not set.
 */
size_t utf8_decode(const char *s, size_t room, uint32_t *code);

#endif
