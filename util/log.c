/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard error is the daemon's log: messages go through here, so that each has its level
 * for the journal, and no job can flood it.
 */
#include "util/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/utf8.h"

#define RATE_NS		UINT64_C(10000000000)
#define RATE_BURST	5

static const struct {
	const char *name;
	const char *journal;	/* syslog's number, as sd-daemon(3) wants it */
} levels[] = {
	[LOG_ERROR] = { "err", "<3>" },
	[LOG_WARN]  = { "warn", "<4>" },
	[LOG_INFO]  = { "info", "<6>" },
	[LOG_DEBUG] = { "debug", "<7>" },
};

static enum log_level highest = LOG_INFO;

void log_set_level(enum log_level level)
{
	highest = level;
}

int log_parse_level(const char *text)
{
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (strcmp(text, levels[i].name) == 0)
			return (int)i;
	return -1;
}

const char *log_level_name(enum log_level level)
{
	return levels[level].name;
}

/* One write, so that lines of two processes do not mix. */
static void log_write(enum log_level level, const char *format, va_list args, uint32_t held)
{
	char line[1024];
	bool journal = getenv("JOURNAL_STREAM") != NULL;
	int at;

	at = journal ? snprintf(line, sizeof(line), "%s", levels[level].journal)
		     : snprintf(line, sizeof(line), "ncclinspd: %s: ", levels[level].name);
	at += vsnprintf(line + at, sizeof(line) - (size_t)at - 1, format, args);
	if ((size_t)at > sizeof(line) - 64)
		at = sizeof(line) - 64;
	if (held)
		at += snprintf(line + at, sizeof(line) - (size_t)at - 1, " held_back=%u", held);
	utf8_clean(line, (size_t)at);	/* no text of a job or another machine makes lines */
	line[at++] = '\n';
	fwrite(line, 1, (size_t)at, stderr);
}

void log_say(enum log_level level, const char *format, ...)
{
	va_list args;

	if (level > highest)
		return;
	va_start(args, format);
	log_write(level, format, args, 0);
	va_end(args);
}

void log_limited(struct log_rate *rate, uint64_t now_ns, enum log_level level,
		 const char *format, ...)
{
	va_list args;

	if (level > highest)
		return;
	if (now_ns - rate->since_ns >= RATE_NS) {
		rate->since_ns = now_ns;
		rate->said = 0;
	}
	if (rate->said >= RATE_BURST) {
		rate->held++;
		return;
	}
	va_start(args, format);
	log_write(level, format, args, rate->held);
	va_end(args);
	rate->said++;
	rate->held = 0;
}
