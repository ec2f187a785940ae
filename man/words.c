/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manual page, as scdoc(5) wants it, from one on stdin that has lines
 *
 *	@topic N	for the words of a topic (util/words.h), 0 and up
 *	@topics N	for those of all topics from N on, each under a title
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/words.h"

/* A text, with all that scdoc would take for markup escaped. */
static void put_text(const char *text)
{
	for (; *text; text++) {
		if (strchr("_*\\~<", *text))
			putchar('\\');
		putchar(*text);
	}
}

static void put_part(const char *title, const char *text)
{
	if (!text)
		return;
	printf("\n\t%s: ", title);
	put_text(text);
	putchar('\n');
}

/* The names that other tools have for it. */
static void put_others(const struct word *w)
{
	if (!w->flight_recorder && !w->ncclx)
		return;
	printf(" (");
	put_text(w->flight_recorder ? w->flight_recorder : "");
	printf("%s", w->flight_recorder && w->ncclx ? ", " : "");
	put_text(w->ncclx ? w->ncclx : "");
	putchar(')');
}

static void put_word(const struct word *w)
{
	putchar('*');
	put_text(w->name);
	printf("*\n\t");
	put_text(w->meaning);
	put_others(w);
	putchar('\n');
	put_part("Evidence", w->evidence);
	put_part("What to do", w->action);
	putchar('\n');
}

static void put_topic(const struct topic *topic, bool with_title)
{
	if (with_title) {
		printf("## %c%s (_", topic->title[0] & ~0x20, topic->title + 1);
		put_text(topic->field);
		printf("_)\n\n");
	}
	for (size_t i = 0; i < topic->n; i++)
		put_word(&topic->words[i]);
}

int main(void)
{
	char line[512];
	unsigned int n;

	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "@topic %u", &n) == 1 && words_topic(n)) {
			put_topic(words_topic(n), false);
		} else if (sscanf(line, "@topics %u", &n) == 1) {
			for (; words_topic(n); n++)
				put_topic(words_topic(n), true);
		} else {
			fputs(line, stdout);
		}
	}
	return ferror(stdout) || ferror(stdin) ? EXIT_FAILURE : EXIT_SUCCESS;
}
