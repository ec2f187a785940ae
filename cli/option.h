/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OPTION_H
#define CLI_OPTION_H

/* The options: one row each, from which they are parsed, explained and completed. */

#include "cli/command.h"

enum option_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* Everything that is said before it is known which command it is for. */
struct options {
	struct cli cli;
	const char *socket;
	const char *host;	/* a list of nodes; NULL: this one */
	int64_t color;
	bool no_color;
	bool verbose;
	bool help;
	bool version;
};

enum option_kind {
	OPTION_FLAG,	/* true */
	OPTION_NO_FLAG,	/* false */
	OPTION_STRING,	/* char *, not empty */
	OPTION_FILE,	/* the same, and none of `formats` by mistake */
	OPTION_NUMBER,	/* int64_t */
	OPTION_SECONDS,	/* uint64_t, in ns */
	OPTION_LIST,	/* struct cli_list */
	OPTION_USER,	/* int64_t, the uid of a name or number */
	OPTION_WORD,	/* char *, one of `words` */
	OPTION_INDEX,	/* int64_t, which of `words` */
};

struct option_row {
	const char *name;
	char letter;		/* 0: none */
	enum option_kind kind;
	size_t offset;		/* place in struct options */
	uint64_t commands;	/* the commands that take it, a bit each */
	const char *arg;	/* its value's name; NULL: it has none */
	const char *help;
	const char *const *words;	/* the words that may be given, NULL at the end */
	int64_t least;		/* the least number or, in ns, time */
	int64_t most;		/* times: 0: any */
};

/* All options, 64 at most. */
const struct option_row *option_all(size_t *n);

/* Sets all options to what holds when the command line names none. */
void option_init(struct options *opts);

/*
 * Read all options wherever they stand; optind is then that of the first word that
 * is none.  Adds a bit for each row that was given.  0, or an exit code after
 * having said what is wrong.
 */
int option_parse(int argc, char **argv, struct options *opts, uint64_t *given);

/* Does the command have an option of that name? */
bool option_takes(const struct command *command, const char *name);

/* The bit of one row, by its name. */
uint64_t option_bit(const char *name);

/* Does the command take all that was given?  As option_parse(). */
int option_check(const struct command *command, uint64_t given);

/* Prints the help of one command, or of all (NULL), on stdout. */
void option_help(const struct command *command);

#endif
