/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TABLE_LINE_H
#define CLI_TABLE_LINE_H

/*
 * One line of output with its attributes: what tables print, and what the live
 * view draws.  Text put into it is cleaned and never passes the line's width.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define LINE_BYTES 2048
#define LINE_SPANS 96

enum line_attr {
	LINE_PLAIN,
	LINE_BOLD,
	LINE_DIM,	/* stale or unknown */
	LINE_BAD,	/* broken now */
	LINE_WARN,	/* look at it: for signs and single words, it is a bar */
	LINE_GOOD,
	LINE_BAR,	/* a table's header, the selected tab */
	LINE_CURSOR,	/* the row that keys act on */
	LINE_ATTRS
};

struct line {
	char text[LINE_BYTES];	/* clean UTF-8, terminated */
	int bytes;
	int columns;		/* used so far */
	int limit;		/* never more columns than this */
	int spans;
	struct {
		uint16_t end;	/* byte after the span's last */
		uint8_t attr;
	} span[LINE_SPANS];
};

/* Empty the line and set its width in columns. */
void line_start(struct line *line, int limit);

/* Append text; what does not fit is cut, with a '~' at the line's end. */
void line_put(struct line *line, enum line_attr attr, const char *text);
void line_printf(struct line *line, enum line_attr attr, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Append a cell of exactly `width` columns, unless the line ends before. */
void line_cell(struct line *line, enum line_attr attr, const char *text, int width, bool right);

/* Append blanks up to a column; no effect when it is behind. */
void line_pad(struct line *line, enum line_attr attr, int column);

/* Append what another line has, attributes and all. */
void line_append(struct line *line, const struct line *other);

/* Cut it to at most so many columns at the end of a word; a single word stays. */
void line_shorten(struct line *line, int columns);

/* The whole line in one attribute. */
void line_repaint(struct line *line, enum line_attr attr);

struct line_style {
	bool color;
	bool ascii;	/* the terminal knows no UTF-8 */
};

/* Write the line without trailing blanks, and a newline. */
void line_print(const struct line *line, const struct line_style *style, FILE *out);

#endif
