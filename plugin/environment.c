/* SPDX-License-Identifier: Apache-2.0 */
/* Own parsing of numbers: strtoul() would bind the library to the newest C library. */
#include "plugin/environment.h"

#include <stdlib.h>
#include <string.h>

#include "nci/segment.h"
#include "plugin/level.h"

#define MOST_S	86400

/* NULL: it is not set, or empty. */
static const char *environment_text(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

static unsigned int environment_digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a') + 10 : 16;
}

/* A number that is followed by `end` or by nothing. */
static bool environment_number(const char *text, unsigned int base, const char *end,
			       uint64_t most, uint32_t *number)
{
	const char *from = text;
	uint64_t value = 0;

	for (; environment_digit(*text) < base && value <= most; text++)
		value = value * base + environment_digit(*text);
	if (text == from || value > most || (*text && strcmp(text, end) != 0))
		return false;
	*number = (uint32_t)value;
	return true;
}

static bool environment_level(const char *text, struct environment *e)
{
	for (uint32_t i = NCI_LEVEL_OFF; i <= NCI_LEVEL_TRACE; i++)
		if (strcmp(text, level_name(i)) == 0) {
			e->level = i;
			return e->has_level = true;
		}
	return false;
}

static bool environment_mask(const char *text, struct environment *e)
{
	bool hex = text[0] == '0' && (text[1] | 0x20) == 'x';

	return e->has_mask = environment_number(text + 2 * hex, hex ? 16 : 10, "", UINT32_MAX,
						&e->mask);
}

static bool environment_mode(const char *text, struct environment *e)
{
	if (strcmp(text, "burst") == 0)
		e->mode = NCI_MODE_BURST;
	else if (strcmp(text, "always") == 0)
		e->mode = NCI_MODE_ALWAYS;
	else if (strcmp(text, "never") == 0)
		e->mode = NCI_MODE_NEVER;
	else if (strncmp(text, "first ", 6) == 0 &&
		 environment_number(text + 6, 10, "s", MOST_S, &e->mode_s))
		e->mode = NCI_MODE_FIRST;
	return e->mode;
}

static bool environment_settle(const char *text, struct environment *e)
{
	return environment_number(text, 10, "s", MOST_S, &e->settle_s);
}

void environment_read(struct environment *e)
{
	static const struct {
		const char *name;
		bool (*parse)(const char *text, struct environment *e);
	} variables[] = {
		{ "NCCLINSP_LEVEL", environment_level },
		{ "NCCL_PROFILE_EVENT_MASK", environment_mask },
		{ "NCCLINSP_KERNELS", environment_mode },
		{ "NCCLINSP_SETTLE", environment_settle },
	};

	*e = (struct environment){ .level = NCI_LEVEL_NET, .settle_s = ENVIRONMENT_SETTLE_S };
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *text = environment_text(variables[i].name);

		if (text && !variables[i].parse(text, e))
			e->misspelt = true;
	}
}
