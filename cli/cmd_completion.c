/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncclinsp completion: a script for a shell, made from the tables of commands and
 * options.  What is there only while something runs is asked for as the user types.
 */
#include <stdio.h>
#include <string.h>

#include "cli/option.h"

#define FILES "<files>"
#define PART  16	/* bytes of one alternative for an argument */

/* The command line whose output lines can be the value, by what the value is called. */
static const struct {
	const char *arg;
	const char *query;	/* %: the command being completed */
} live[] = {
	{ "PID", "ps --no-header -o csv --fields pid" },
	{ "PID[,PID]", "ps --no-header -o csv --fields pid" },
	{ "USER", "ps --no-header -o csv --fields user" },
	{ "JOB", "ps --no-header -o csv --fields job" },
	{ "COMM", "comms --no-header -o csv --fields name" },
	{ "RANK", "comms --no-header -o csv --fields rank" },
	{ "GPU", "comms --no-header -o csv --fields pci_bus_id" },
	{ "FUNC", "ops --no-header -o csv --fields func" },
	{ "PHASE", "mark --no-header -o csv --fields phase" },
	{ "ID", "exemplars --no-header -o csv --fields id" },
	{ "COMMAND", "help --no-header" },
	{ "WORD", "explain --no-header" },		 { "A,B", "% --fields help --no-header" },
	{ "[-]FIELD", "% --fields help --no-header" },	 { "PATH", FILES },
};

/* NULL: nobody knows what could be meant. */
static const char *query_of(const char *arg)
{
	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++)
		if (!strcmp(live[i].arg, arg))
			return live[i].query;
	return NULL;
}

static bool query_is_files(const char *query)
{
	return query && !strcmp(query, FILES);
}

static void put_words(const char *const *words)
{
	for (const char *blank = ""; *words; words++, blank = " ")
		printf("%s%s", blank, *words);
}

/* The first of the parts of "node|PID", *arg then being the rest; false: there is none. */
static bool next_part(const char **arg, char part[PART])
{
	size_t len = strcspn(*arg, "|");

	snprintf(part, PART, "%.*s", (int)len, *arg);
	*arg += len + ((*arg)[len] == '|');
	return len;
}

static void put_query(const char *query, const char *command)
{
	for (; *query; query++) {
		if (*query == '%')
			fputs(command, stdout);
		else
			putchar(*query);
	}
}

/* Text between single quotes of any of the shells. */
static void text_put_quoted(const char *text)
{
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*text);
	}
	putchar('\'');
}

static bool command_takes(size_t command, const struct option_row *row)
{
	return row->commands >> command & 1;
}

/* Does at least one command not take this option? */
static bool option_is_special(const struct option_row *row)
{
	for (size_t c = 0; c < COMMANDS; c++)
		if (!command_takes(c, row))
			return true;
	return false;
}

/* ---- bash and zsh: one function, which differs in how words come and go ---------- */

static void put_command_names(const char *between)
{
	for (size_t c = 0; c < COMMANDS; c++)
		printf("%s%s", c ? between : "", commands[c].name);
}

/* The commands that run themselves: a command to be repeated stands behind "watch". */
static void put_real_commands(const char *between)
{
	const char *before = "";

	for (size_t c = 0; c < COMMANDS; c++) {
		if (!commands[c].run)
			continue;
		printf("%s%s", before, commands[c].name);
		before = between;
	}
}

static void option_put_values(const char *const *words, const char *arg)
{
	bool several = strchr(arg, '|');
	char part[PART];

	if (words) {
		fputs("; found+=(", stdout);
		put_words(words);
		fputs(")", stdout);
	}
	while (!words && next_part(&arg, part)) {
		const char *query = query_of(part);

		if (query_is_files(query)) {
			fputs("; files=1", stdout);
		} else if (query) {
			fputs("; _ncclinsp_ask ", stdout);
			put_query(query, "\"${cmd:-ops}\"");
		} else if (several) {
			printf("; found+=(%s)", part);
		}
	}
}

static void put_value_case(const char *pattern, const char *const *words, const char *arg)
{
	printf("\t%s) :", pattern);
	option_put_values(words, arg);
	puts(" ;;");
}

/* Either of its arguments may be left out. */
static void put_argument_case(const struct command *command)
{
	printf("\t%s) :", command->name);
	option_put_values(NULL, command->argument);
	if (command->second)
		option_put_values(NULL, command->second);
	puts(" ;;");
}

/* Has a row before it the same name?  Then that one is for the other commands. */
static bool option_is_second(const struct option_row *rows, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(rows[k].name, rows[i].name))
			return true;
	return false;
}

static void put_pattern(char *buf, size_t size, const struct option_row *row, const char *command)
{
	size_t used = (size_t)snprintf(buf, size, "%s:--%s", command, row->name);

	if (row->letter)
		snprintf(buf + used, size - used, "|%s:-%c", command, row->letter);
}

static void put_option_values(const struct option_row *rows, size_t n)
{
	char pattern[96];

	puts("\tcase $cmd:$prev in");
	for (size_t i = 0; i < n; i++)
		for (size_t c = 0; c < COMMANDS && rows[i].arg && option_is_second(rows, i); c++) {
			if (!command_takes(c, &rows[i]))
				continue;
			put_pattern(pattern, sizeof(pattern), &rows[i], commands[c].name);
			put_value_case(pattern, rows[i].words, rows[i].arg);
		}
	for (size_t i = 0; i < n; i++) {
		if (!rows[i].arg || option_is_second(rows, i))
			continue;
		put_pattern(pattern, sizeof(pattern), &rows[i], "*");
		put_value_case(pattern, rows[i].words, rows[i].arg);
	}
}

static void put_option_names(const struct option_row *rows, size_t n, size_t command)
{
	for (size_t i = 0; i < n; i++)
		if (command == COMMANDS ?
		    !option_is_second(rows, i) : command_takes(command, &rows[i]))
			printf(" --%s", rows[i].name);
}

/* Writes what follows the values: options where a dash was begun, else commands or an argument. */
static void put_rest(const struct option_row *rows, size_t n)
{
	puts("\t*) case $cur in\n\t-*) case $cmd in");
	for (size_t c = 0; c < COMMANDS; c++) {
		if (!commands[c].run)
			continue;
		printf("\t\t%s) found=(", commands[c].name);
		put_option_names(rows, n, c);
		puts(") ;;");
	}
	fputs("\t\t*) found=(", stdout);
	put_option_names(rows, n, COMMANDS);
	puts(") ;;\n\t\tesac ;;\n\t*) case $cmd in\n");
	fputs("\t'') found=(", stdout);
	put_command_names(" ");
	puts(") ;;");
	for (size_t c = 0; c < COMMANDS; c++)
		if (commands[c].argument && commands[c].run)
			put_argument_case(&commands[c]);
	puts("\t\tesac ;;\n\tesac ;;\n\tesac");
}

static void put_ask(void)
{
	puts("_ncclinsp_ask() {\n"
	     "\tlocal line\n"
	     "\twhile IFS= read -r line; do found+=(\"$line\"); done < <(\n"
	     "\t\ttimeout 2 ncclinsp \"$@\" 2>/dev/null | sed 's/  .*//;/^$/d' | sort -u)\n"
	     "}");
}

static void put_find_command(const char *words)
{
	printf("\tfor word in %s; do\n\t\tcase $word in\n\t\t", words);
	put_real_commands("|");
	puts(") cmd=$word; break ;;\n\t\tesac\n\tdone");
}

static void put_bash(const struct option_row *rows, size_t n)
{
	puts("# ncclinsp(1) for bash: source <(ncclinsp completion bash)");
	put_ask();
	puts("_ncclinsp() {\n"
	     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} "
	     "word cmd= files=\n"
	     "\tlocal -a found=()\n"
	     "\tif [ \"$cur\" = = ]; then\n\t\tcur=\n"
	     "\telif [ \"$prev\" = = ]; then\n\t\tprev=${COMP_WORDS[COMP_CWORD-2]}\n\tfi");
	put_find_command("\"${COMP_WORDS[@]:1:COMP_CWORD-1}\"");
	put_option_values(rows, n);
	put_rest(rows, n);
	puts("\tCOMPREPLY=()\n"
	     "\tif [ -n \"$files\" ]; then\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	     "\telse\n"
	     "\t\tfor word in \"${found[@]}\"; do\n"
	     "\t\t\tcase $word in \"$cur\"*) COMPREPLY+=(\"$(printf %q \"$word\")\") ;; esac\n"
	     "\t\tdone\n"
	     "\tfi\n"
	     "}\n"
	     "complete -F _ncclinsp ncclinsp");
}

static void put_zsh(const struct option_row *rows, size_t n)
{
	puts("#compdef ncclinsp\n# ncclinsp(1) for zsh: source <(ncclinsp completion zsh)");
	put_ask();
	puts("_ncclinsp() {\n"
	     "\tlocal cur=${words[CURRENT]} prev=${words[CURRENT-1]} word cmd= files=\n"
	     "\tlocal -a found\n"
	     "\tif [[ $cur == --*=* ]]; then\n"
	     "\t\tprev=${cur%%=*}\n\t\tcompset -P '*='\n\t\tcur=\n\tfi");
	put_find_command("${words[2,CURRENT-1]}");
	put_option_values(rows, n);
	put_rest(rows, n);
	puts("\tif [ -n \"$files\" ]; then _files; else compadd -a found; fi\n"
	     "}\n"
	     "compdef _ncclinsp ncclinsp\n"
	     "# Where the shell has loaded this for its first call, that is still to be answered.\n"
	     "if [[ ${funcstack[1]} = _ncclinsp ]]; then _ncclinsp; fi");
}

/* ---- fish --------------------------------------------------------------------- */

static void put_fish_values(const char *const *words, const char *arg)
{
	bool several = strchr(arg, '|');
	char part[PART];

	fputs(" -a '", stdout);
	if (words)
		put_words(words);
	while (!words && next_part(&arg, part)) {
		const char *query = query_of(part);

		if (query && !query_is_files(query)) {
			fputs("(__ncclinsp_ask ", stdout);
			put_query(query, "(__ncclinsp_command)");
			fputs(") ", stdout);
		} else if (several) {
			printf("%s ", part);
		}
	}
	putchar('\'');
}

static void put_fish_option(const struct option_row *row)
{
	fputs("complete -c ncclinsp", stdout);
	if (option_is_special(row)) {
		fputs(" -n '__fish_seen_subcommand_from", stdout);
		for (size_t c = 0; c < COMMANDS; c++)
			if (command_takes(c, row))
				printf(" %s", commands[c].name);
		putchar('\'');
	}
	printf(" -l %s", row->name);
	if (row->letter)
		printf(" -s %c", row->letter);
	if (row->arg)
		fputs(query_is_files(query_of(row->arg)) ? " -r -F" : " -x", stdout);
	if (row->arg)
		put_fish_values(row->words, row->arg);
	fputs(" -d ", stdout);
	text_put_quoted(row->help);
	putchar('\n');
}

static void put_fish_argument(const struct command *command, const char *argument)
{
	if (!argument)
		return;
	printf("complete -c ncclinsp -n '__fish_seen_subcommand_from %s'", command->name);
	put_fish_values(NULL, argument);
	putchar('\n');
}

static void put_fish_repeated(const struct command *command)
{
	printf("complete -c ncclinsp -n '__fish_seen_subcommand_from %s; and not "
	       "__fish_seen_subcommand_from ", command->name);
	put_real_commands(" ");
	fputs("' -a '", stdout);
	put_real_commands(" ");
	puts("'");
}

static void put_fish(const struct option_row *rows, size_t n)
{
	puts("# ncclinsp(1) for fish: ncclinsp completion fish | source\n"
	     "function __ncclinsp_ask\n"
	     "\ttimeout 2 ncclinsp $argv 2>/dev/null | string replace -r '  .*' '' |\n"
	     "\t\tstring match -rv '^$' | sort -u\n"
	     "end\n"
	     "function __ncclinsp_command\n"
	     "\tfor word in (commandline -opc)[2..-1]");
	fputs("\t\tif contains -- $word ", stdout);
	put_real_commands(" ");
	puts("\n\t\t\techo $word\n\t\t\treturn\n\t\tend\n\tend\n\techo ops\nend\n"
	     "complete -c ncclinsp -f");
	for (size_t c = 0; c < COMMANDS; c++) {
		printf("complete -c ncclinsp -n __fish_use_subcommand -a %s -d ", commands[c].name);
		text_put_quoted(commands[c].help);
		putchar('\n');
		if (commands[c].run)
			put_fish_argument(&commands[c], commands[c].argument);
		if (commands[c].run)
			put_fish_argument(&commands[c], commands[c].second);
		else
			put_fish_repeated(&commands[c]);
	}
	for (size_t i = 0; i < n; i++)
		put_fish_option(&rows[i]);
}

int cmd_completion(struct cli *cli)
{
	static const struct {
		const char *name;
		void (*put)(const struct option_row *rows, size_t n);
	} shells[] = { { "bash", put_bash }, { "zsh", put_zsh }, { "fish", put_fish } };
	size_t n;
	const struct option_row *rows = option_all(&n);

	for (size_t i = 0; cli->argument && i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (!strcmp(shells[i].name, cli->argument)) {
			shells[i].put(rows, n);
			return CLI_DONE;
		}
	}
	return cli_reject("completion needs a shell: ncclinsp completion bash, zsh or fish");
}
