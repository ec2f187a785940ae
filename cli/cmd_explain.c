/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncclinsp explain: the meaning of a word that the daemon says, with what to do about it, of a
 * field of an answer, and of a column's header.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/common/cli.h"
#include "cli/common/prose.h"
#include "util/list.h"
#include "util/meant.h"
#include "util/words.h"

#define INDENT	    13
#define LIST_INDENT 22

/* A field's name or a header, from schema/. */
static const struct named {
	const char *name;
	const char *columns;	/* the screens that have it as a header; NULL: none */
	const char *field;	/* the field that such a column shows, of another name; NULL */
	const char *fields;	/* the answers that have it as a field; NULL: none */
	const char *meaning;
} nameds[] = {
#include "schema/explain.h"
};

struct part {
	const char *label;
	const char *text;
};

static void put_parts(const struct cli *cli, const char *name, const struct part *parts, size_t n)
{
	struct frame frame;

	prose_begin(&frame, cli, PROSE_WIDEST);
	prose_put(&frame, LINE_BOLD, 0, 0, name);
	for (size_t i = 0; i < n; i++)
		prose_put_term(&frame, INDENT, parts[i].label, parts[i].text);
	prose_end(&frame, cli);
}

static void explain_word(const struct cli *cli, const struct topic *topic,
			 const struct word *word)
{
	const struct part parts[] = {
		{ "one of", topic->title },
		{ "meaning", word->meaning },
		{ "evidence", word->evidence },
		{ "what to do", word->action },
		{ "PyTorch", word->flight_recorder },
		{ "NCCLX", word->ncclx },
		{ "journal", word->message_id },
	};

	put_parts(cli, word->name, parts, ARRAY_LEN(parts));
}

static void explain_named(const struct cli *cli, const struct named *named)
{
	const struct part parts[] = {
		{ "column of", named->columns },
		{ "shows", named->field },
		{ "field of", named->fields },
		{ "meaning", named->meaning },
	};

	put_parts(cli, named->name, parts, ARRAY_LEN(parts));
}

static void topic_list(const struct cli *cli, const struct topic *topic)
{
	char part[1024];
	struct frame frame;

	prose_begin(&frame, cli, CLI_ANY_WIDTH);
	snprintf(part, sizeof(part), "%s (%s)", topic->title, topic->field);
	prose_put(&frame, LINE_BOLD, 0, 0, part);
	for (size_t i = 0; i < topic->n; i++) {
		snprintf(part, sizeof(part), "%-*s%s%s", LIST_INDENT - 2, topic->words[i].name,
			 strlen(topic->words[i].name) < LIST_INDENT - 2 ? "" : ": ",
			 topic->words[i].meaning);
		prose_put(&frame, LINE_PLAIN, 2, LIST_INDENT, part);
	}
	prose_end(&frame, cli);
}

static bool names_are_same(const char *name, const char *wanted)
{
	return name && !strcasecmp(name, wanted);
}

/* A header may be asked for as it stands above its column, with its unit. */
static bool header_is_same(const struct named *named, const char *wanted)
{
	size_t n = strcspn(wanted, "(");

	return names_are_same(named->name, wanted) ||
	       (named->columns && wanted[n] && strlen(named->name) == n &&
		!strncasecmp(named->name, wanted, n));
}

/* A name that other tools use finds each of our words for it. */
static bool word_is_called(const struct word *word, const char *wanted)
{
	return names_are_same(word->name, wanted) ||
		names_are_same(word->flight_recorder, wanted) ||
	       names_are_same(word->ncclx, wanted);
}

/* An empty line between two explanations. */
static void explain_next(int *found)
{
	if ((*found)++)
		putchar('\n');
}

/* A field or header, a word, or a field, of which all words are listed; how many there were. */
static int explain_all(const struct cli *cli, const char *wanted)
{
	const struct topic *topic;
	int found = 0;

	for (size_t i = 0; i < ARRAY_LEN(nameds); i++) {
		if (!header_is_same(&nameds[i], wanted))
			continue;
		explain_next(&found);
		explain_named(cli, &nameds[i]);
	}
	for (size_t i = 0; (topic = words_topic(i)); i++) {
		for (size_t k = 0; k < topic->n; k++) {
			if (!word_is_called(&topic->words[k], wanted))
				continue;
			explain_next(&found);
			explain_word(cli, topic, &topic->words[k]);
		}
		if (names_are_same(topic->field, wanted)) {
			explain_next(&found);
			topic_list(cli, topic);
		}
	}
	return found;
}

static void topics_list_names(void)
{
	const struct topic *topic;

	for (size_t i = 0; (topic = words_topic(i)); i++)
		for (size_t k = 0; k < topic->n; k++)
			puts(topic->words[k].name);
}

static void topics_list(const struct cli *cli)
{
	const struct topic *topic;

	for (size_t i = 0; (topic = words_topic(i)); i++) {
		if (i)
			putchar('\n');
		topic_list(cli, topic);
	}
}

static void word_suggest(const char *wanted)
{
	struct meant meant = { .wanted = wanted };
	const struct topic *topic;

	for (size_t i = 0; (topic = words_topic(i)); i++) {
		meant_offer(&meant, topic->field);
		for (size_t k = 0; k < topic->n; k++)
			meant_offer(&meant, topic->words[k].name);
	}
	for (size_t i = 0; i < ARRAY_LEN(nameds); i++)
		meant_offer(&meant, nameds[i].name);
	fprintf(stderr, "ncclinsp: no word '%s'%s%s%s; ncclinsp explain lists them all\n", wanted,
		meant.best ? "; is it " : "", meant.best ?: "", meant.best ? "?" : "");
}

int cmd_explain(struct cli *cli)
{
	if (!cli->argument) {
		if (cli->header)
			topics_list(cli);
		else
			topics_list_names();
		return CLI_DONE;
	}
	if (explain_all(cli, cli->argument))
		return CLI_DONE;
	word_suggest(cli->argument);
	return CLI_NOTHING;
}
