/* SPDX-License-Identifier: Apache-2.0 */
/* The one place where text and colours are put into a line, so that no line passes its width. */
#include "cli/table/line.h"

#include <stdarg.h>
#include <string.h>

#include "util/text.h"

/*
 * Sixteen-colour codes only: they follow the terminal's own palette.  Nobody can read yellow
 * letters on a light background, so what warns is black on yellow.
 */
static const char *const escapes[LINE_ATTRS] = {
	[LINE_PLAIN] = "",	  [LINE_BOLD] = "\033[1m",    [LINE_DIM] = "\033[2m",
	[LINE_BAD] = "\033[1;31m", [LINE_WARN] = "\033[30;43m",  [LINE_GOOD] = "\033[32m",
	[LINE_BAR] = "\033[7m",	  [LINE_CURSOR] = "\033[1;7m",
};

void line_start(struct line *line, int limit)
{
	line->text[0] = '\0';
	line->bytes = 0;
	line->columns = 0;
	line->limit = limit;
	line->spans = 0;
}

/* Account for what was just written at the line's end. */
static void line_take(struct line *line, enum line_attr attr, int columns)
{
	int last = line->spans - 1;

	line->bytes += (int)strlen(line->text + line->bytes);
	line->columns += columns;
	if (last < 0 || (line->span[last].attr != attr && last + 1 < LINE_SPANS))
		line->span[++last].attr = (uint8_t)attr;
	line->span[last].end = (uint16_t)line->bytes;
	line->spans = last + 1;
}

static int line_room(const struct line *line, int width)
{
	int left = line->limit - line->columns;

	return width < left ? width : left;
}

void line_put(struct line *line, enum line_attr attr, const char *text)
{
	if (line_room(line, 1) <= 0)
		return;
	line_take(line, attr, text_fit(line->text + line->bytes,
				       sizeof(line->text) - (size_t)line->bytes, text,
				       line_room(line, INT16_MAX)));
}

void line_printf(struct line *line, enum line_attr attr, const char *format, ...)
{
	char text[LINE_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	line_put(line, attr, text);
}

void line_pad(struct line *line, enum line_attr attr, int column)
{
	int n = line_room(line, column - line->columns);

	if (n <= 0 || (size_t)(line->bytes + n) >= sizeof(line->text))
		return;
	memset(line->text + line->bytes, ' ', (size_t)n);
	line->text[line->bytes + n] = '\0';
	line_take(line, attr, n);
}

void line_cell(struct line *line, enum line_attr attr, const char *text, int width, bool right)
{
	int begin = line->columns;
	int need = text_width(text);

	if (right && need < width)
		line_pad(line, attr, begin + width - need);
	if (line_room(line, width) > 0) {
		char cell[LINE_BYTES];

		text_fit(cell, sizeof(cell), text, width);
		line_put(line, attr, cell);
	}
	line_pad(line, attr, begin + width);
}

void line_append(struct line *line, const struct line *other)
{
	int begin = 0;

	for (int i = 0; i < other->spans; i++) {
		line_printf(line, (enum line_attr)other->span[i].attr, "%.*s",
			    other->span[i].end - begin, other->text + begin);
		begin = other->span[i].end;
	}
}

void line_shorten(struct line *line, int columns)
{
	char *blank;

	while (line->columns > columns && (blank = strrchr(line->text, ' '))) {
		*blank = '\0';
		line->columns = text_width(line->text);
		line->bytes = (int)(blank - line->text);
	}
	while (line->spans > 1 && line->span[line->spans - 2].end >= line->bytes)
		line->spans--;
	if (line->spans)
		line->span[line->spans - 1].end = (uint16_t)line->bytes;
}

void line_repaint(struct line *line, enum line_attr attr)
{
	line->spans = 1;
	line->span[0].end = (uint16_t)line->bytes;
	line->span[0].attr = (uint8_t)attr;
}

static void span_print(const char *text, int len, enum line_attr attr,
		       const struct line_style *style, FILE *out)
{
	char part[LINE_BYTES];

	memcpy(part, text, (size_t)len);
	part[len] = '\0';
	if (style->ascii)
		text_to_ascii(part);
	if (style->color && attr != LINE_PLAIN)
		fprintf(out, "%s%s\033[0m", escapes[attr], part);
	else
		fputs(part, out);
}

void line_print(const struct line *line, const struct line_style *style, FILE *out)
{
	int end = line->bytes, begin = 0;

	/* A coloured bar reaches to the line's end, all else ends at its last letter. */
	while (end && line->text[end - 1] == ' ' &&
	       !(style->color && line->span[line->spans - 1].attr == LINE_BAR))
		end--;
	for (int i = 0; i < line->spans && begin < end; i++) {
		int stop = line->span[i].end < end ? line->span[i].end : end;

		span_print(line->text + begin, stop - begin, line->span[i].attr, style, out);
		begin = stop;
	}
	fputc('\n', out);
}
