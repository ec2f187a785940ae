/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration as it stands in a file: what is in force is written as it would be read. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ncclinspd/config/config_rows.h"

const char *config_source_name(enum config_source source)
{
	static const char *const names[] = {
#define X(NAME, text) [CONFIG_FROM_##NAME] = text,
		CONFIG_SOURCES(X)
#undef X
	};

	return names[source];
}

/* Write a time in the largest unit that leaves nothing over. */
static void show_ns(uint64_t ns, char value[CONFIG_VALUE_BYTES])
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = { { "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 } };
	size_t i = 0;

	while (ns % units[i].ns)
		i++;
	snprintf(value, CONFIG_VALUE_BYTES, "%" PRIu64 "%s", ns / units[i].ns,
		 ns ? units[i].unit : "");
}

static void show_word(const char *word, char value[CONFIG_VALUE_BYTES])
{
	snprintf(value, CONFIG_VALUE_BYTES, "%s", word);
}

/* Parts of a million as percent, without zeros at the end. */
static void show_ppm(uint32_t ppm, char value[CONFIG_VALUE_BYTES])
{
	snprintf(value, CONFIG_VALUE_BYTES, "%.7g", ppm / 10000.0);
}

static uint64_t row_number(const struct config *c, const struct config_row *row)
{
	const char *at = (const char *)c + row->at;
	uint64_t wide = 0;
	uint32_t narrow = 0;

	if (row->bytes == sizeof(wide))
		memcpy(&wide, at, sizeof(wide));
	else
		memcpy(&narrow, at, sizeof(narrow));
	return row->bytes == sizeof(wide) ? wide : narrow;
}

static void show_in_unit(const struct config_row *row, uint64_t n, char value[CONFIG_VALUE_BYTES])
{
	if (!n && row->kind != CONFIG_NS_OR_0)
		show_word(row->fallback, value);
	else if (row->kind == CONFIG_PPM)
		show_ppm((uint32_t)n, value);
	else if (row->kind == CONFIG_COUNT)
		snprintf(value, CONFIG_VALUE_BYTES, "%" PRIu64, n);
	else if (row->kind == CONFIG_BYTES)
		snprintf(value, CONFIG_VALUE_BYTES, "%" PRIu64 "MiB", n >> 20);
	else
		show_ns(n, value);
}

void config_show(const struct config *c, const struct config_row *row,
		 char value[CONFIG_VALUE_BYTES])
{
	const char *at = (const char *)c + row->at;

	value[0] = '\0';
	switch (row->kind) {
	case CONFIG_FLAG:
		break;
	case CONFIG_TEXT:
	case CONFIG_DIR:
	case CONFIG_FILE:
	case CONFIG_SOCKET:
		show_word(*at ? at : "none", value);
		break;
	case CONFIG_SWITCH:
		show_word(*(const bool *)at ? "yes" : "no", value);
		break;
	case CONFIG_LOG:
		show_word(log_level_name(c->log_level), value);
		break;
	default:
		show_in_unit(row, row_number(c, row), value);
	}
}
