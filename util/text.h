/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_TEXT_H
#define UTIL_TEXT_H

/*
 * Numbers and names as people read them.
 *
 * Every function that takes a buffer terminates it, and cuts rather than
 * overflows.  TEXT_MAX holds any number that one of them writes.  Nothing here
 * depends on the locale.
 */

#include <stddef.h>
#include <stdint.h>

#define TEXT_MAX 32

/* "8B", "1.5KiB", "128MiB": three digits, powers of 1024. */
void text_bytes(char *buf, size_t size, uint64_t bytes);

/* "8B", "1.5kB", "134MB": the same in powers of 1000. */
void text_bytes_si(char *buf, size_t size, uint64_t bytes);

/* "950", "12.3k", "4.56M": three digits, powers of 1000.  Negative is "-". */
void text_count(char *buf, size_t size, double n);

/* "12ns", "17.3us", "13.9ms", "4.3s", "43s", "2m10s", "1h05m", "3d04h". */
void text_duration(char *buf, size_t size, uint64_t ns);

/* Microseconds without a unit, for columns that name it: "0.35", "17.3", "13912". */
void text_micros(char *buf, size_t size, double ns);

/* A plain number in at least three digits: "0.0123", "1.23", "45.6", "370". */
void text_number(char *buf, size_t size, double n);

/*
 * "2.5", "10s", "500ms", "2m" -> nanoseconds in *ns; a bare number is seconds.
 * Returns 0, or -EINVAL for anything else: negative, endless, hexadecimal, with an exponent.
 */
int text_parse_duration(const char *text, uint64_t *ns);

/*
 * "4096", "4KiB", "1.5M", "10MB" -> *bytes; powers of 1024, unless a B without an i
 * follows the letter.  Returns 0 or -EINVAL.
 */
int text_parse_bytes(const char *text, double *bytes);

/* Whole decimal number from min to max; returns 0 or -EINVAL. */
int text_parse_integer(const char *text, int64_t min, int64_t max, int64_t *out);

/* The text without the blanks at both ends: the last ones are cut off. */
char *text_trim(char *text);

/* The value of a hex digit; -1: it is none. */
int text_hex_digit(char c);

/* Terminal columns that `s` takes once text_fit() has cleaned it. */
int text_width(const char *s);

/*
 * Copy at most `columns` terminal columns of `s`.  What would disturb a
 * terminal or deceive a reader (utf8.h) becomes '?'; a text that was cut
 * ends in '~'.  Returns the columns used.
 */
int text_fit(char *buf, size_t size, const char *s, int columns);

/* Replace each character beyond ASCII by one '?' per column, in place. */
void text_to_ascii(char *s);

/* A block of so many eighths of a cell, 0 to 8: text_to_ascii() makes digits of 0 to 7 of them. */
const char *text_block(int eighths);

#endif
