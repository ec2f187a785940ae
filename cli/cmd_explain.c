/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp explain: what a word of a finding means, and what to do. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/prose.h"
#include "util/words.h"

#define WIDEST	100
#define LINES	64
#define INDENT	13

static void put_part(struct frame *frame, const char *label, const char *text)
{
	char part[1024];

	if (!text)
		return;
	snprintf(part, sizeof(part), "%-*s%s", INDENT, label, text);
	prose_put(frame, LINE_PLAIN, 0, INDENT, part);
}

static void explain(const struct cli *cli, const struct word *word)
{
	const struct {
		const char *label;
		const char *text;
	} parts[] = {
		{ "meaning", word->meaning },
		{ "evidence", word->evidence },
		{ "what to do", word->action },
		{ "PyTorch", word->flight_recorder },
		{ "NCCLX", word->ncclx },
		{ "journal", word->message_id },
	};
	struct frame frame;

	frame_init(&frame, cli->columns < WIDEST ? cli->columns : WIDEST, LINES);
	prose_put(&frame, LINE_BOLD, 0, 0, word->name);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		put_part(&frame, parts[i].label, parts[i].text);
	for (int i = 0; i < frame.count; i++)
		line_print(&frame.lines[i], &cli->style, stdout);
	frame_deinit(&frame);
}

static void list(void)
{
	size_t n;
	const struct word *words = words_all(&n);

	for (size_t i = 0; i < n; i++)
		printf("%-18s %s\n", words[i].name, words[i].meaning);
}

int cmd_explain(struct cli *cli)
{
	const struct word *word;

	if (!cli->argument) {
		list();
		return CLI_DONE;
	}
	word = words_find(cli->argument);
	if (!word) {
		fprintf(stderr, "ncclinsp: no word '%s'; ncclinsp explain lists them all\n",
			cli->argument);
		return CLI_NOTHING;
	}
	explain(cli, word);
	return CLI_DONE;
}
