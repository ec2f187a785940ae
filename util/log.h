/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

/*
 * One line per message on stderr: lower case, subject first, key=value after.
 * Under systemd (JOURNAL_STREAM) the lines carry the journal's level prefix.
 */

#include <stdint.h>

enum log_level {
	LOG_ERROR,
	LOG_WARN,
	LOG_INFO,
	LOG_DEBUG,
};

/* Messages above this are dropped; LOG_INFO to begin with. */
void log_set_level(enum log_level level);

/* "err", "warn", "info", "debug" -> level, else -1. */
int log_parse_level(const char *text);

const char *log_level_name(enum log_level level);

void log_say(enum log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Limit on messages that a job can cause: at most five per 10 s and place; the
 * next one tells how many were held back.  Zeroed to begin; `now_ns` is any clock
 * that does not jump.
 */
struct log_rate {
	uint64_t since_ns;
	uint32_t said;
	uint32_t held;
};

void log_limited(struct log_rate *rate, uint64_t now_ns, enum log_level level,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
