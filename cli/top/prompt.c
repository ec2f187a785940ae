/* SPDX-License-Identifier: Apache-2.0 */
/* The editor of one line at the foot of the live view; it takes UTF-8 byte by byte. */
#include "cli/top/prompt.h"

#include <stdio.h>
#include <string.h>

void prompt_open(struct prompt *prompt, const char *label, int what, const char *before)
{
	prompt->label = label;
	prompt->what = what;
	prompt->enter = "";
	snprintf(prompt->before, sizeof(prompt->before), "%s", before);
	prompt_erase_all(prompt);
}

void prompt_close(struct prompt *prompt)
{
	prompt->label = NULL;
}

void prompt_add(struct prompt *prompt, int byte)
{
	size_t len = strlen(prompt->text);

	if (byte < ' ' || byte == 0x7f || len + 1 >= sizeof(prompt->text))
		return;
	prompt->text[len] = (char)byte;
	prompt->text[len + 1] = '\0';
	prompt->error[0] = '\0';
}

static bool continues_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

void prompt_erase(struct prompt *prompt)
{
	size_t len = strlen(prompt->text);

	while (len && continues_character(prompt->text[len - 1]))
		len--;
	prompt->text[len ? len - 1 : 0] = '\0';
	prompt->error[0] = '\0';
}

void prompt_erase_word(struct prompt *prompt)
{
	size_t len = strlen(prompt->text);

	while (len && prompt->text[len - 1] == ' ')
		len--;
	while (len && prompt->text[len - 1] != ' ')
		len--;
	prompt->text[len] = '\0';
	prompt->error[0] = '\0';
}

void prompt_erase_all(struct prompt *prompt)
{
	prompt->text[0] = prompt->error[0] = '\0';
}

void prompt_put(struct line *line, const struct prompt *prompt)
{
	line_printf(line, LINE_BOLD, "%s: ", prompt->label);
	line_put(line, LINE_PLAIN, prompt->text);
	line_put(line, LINE_CURSOR, " ");
	if (prompt->before[0] && !prompt->text[0])
		line_printf(line, LINE_DIM, "  now: %s%s", prompt->before, prompt->enter);
	if (prompt->error[0])
		line_printf(line, LINE_BAD, "  ! %s", prompt->error);
}
