/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_PROMPT_H
#define CLI_TOP_PROMPT_H

/* One line of text that the user is writing, at the foot of the screen. */

#include "cli/table/line.h"

#define PROMPT_TEXT 128

struct prompt {
	const char *label;	/* NULL: nothing is asked */
	int what;		/* the text's purpose */
	char text[PROMPT_TEXT];
	char before[PROMPT_TEXT];	/* the text in force until another is taken; "": none */
	const char *enter;	/* the effect of Enter without a text, if it has one */
	char error[PROMPT_TEXT];	/* why it is not taken; "": it is */
};

/* It begins empty, and shows `before` until something is typed. */
void prompt_open(struct prompt *prompt, const char *label, int what, const char *before);
void prompt_close(struct prompt *prompt);

/* A byte of a character is added; a whole character, a word, or all is taken away. */
void prompt_add(struct prompt *prompt, int byte);
void prompt_erase(struct prompt *prompt);
void prompt_erase_word(struct prompt *prompt);
void prompt_erase_all(struct prompt *prompt);

void prompt_put(struct line *line, const struct prompt *prompt);

#endif
