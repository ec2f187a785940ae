/* SPDX-License-Identifier: Apache-2.0 */
/* Escaping, in one place: names of communicators, hosts and jobs are anybody's. */
#include "cli/page/html.h"

#include <string.h>

#include "util/utf8.h"

static const char *html_escape(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void html_text(FILE *out, const char *text)
{
	size_t room = strlen(text);

	while (room) {
		const char *escape = html_escape(*text);
		uint32_t code;
		size_t n = utf8_decode(text, room, &code);

		if (escape)
			fputs(escape, out);
		else if (n)
			fwrite(text, 1, n, out);
		else
			fputc(*text == '\n' ? ' ' : '?', out);
		text += n ? n : 1;
		room -= n ? n : 1;
	}
}

void html_element(FILE *out, const char *name, const char *class, const char *text)
{
	fprintf(out, class ? "<%s class=\"%s\">" : "<%s>", name, class);
	html_text(out, text);
	fprintf(out, "</%s>", name);
}
