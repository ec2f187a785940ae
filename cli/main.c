/* SPDX-License-Identifier: Apache-2.0 */
/* Options, then one row of the table of subcommands. */
#include <errno.h>
#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "util/text.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define NOT_A_TERMINAL_COLUMNS 1000
#define DEFAULT_DELAY_NS       UINT64_C(2000000000)
#define LEAST_DELAY_NS	       UINT64_C(100000000)	/* -d 0 must not keep the daemon busy */
#define TIMEOUT_MS	       5000

/* ---- subcommands ---------------------------------------------------------- */

enum command_id {
	STATUS, PS, COMMS, OPS, PEERS, INFLIGHT, TAIL, TOP, DIAGNOSE, CHECK, EXPLAIN, COMMANDS
};

static const struct command {
	const char *name;
	int (*run)(struct cli *cli);
	const char *help;
	const char *argument;	/* that it may have */
} commands[COMMANDS] = {
	[STATUS] = { "status", cmd_status, "one page: daemon, processes, losses, verdict", NULL },
	[PS] = { "ps", cmd_ps, "processes that use NCCL", NULL },
	[COMMS] = { "comms", cmd_comms, "communicators and their ranks on this node", NULL },
	[OPS] = { "ops", cmd_ops, "how fast each operation and size ran", NULL },
	[PEERS] = { "peers", cmd_peers, "network links, the worst first", NULL },
	[INFLIGHT] = { "inflight", cmd_inflight, "what has begun and not ended, oldest first", NULL },
	[TAIL] = { "tail", cmd_tail, "one line per operation as it ends", NULL },
	[TOP] = { "top", cmd_top, "live view", NULL },
	[DIAGNOSE] = { "diagnose", cmd_diagnose, "what is wrong, what says so, what to do next", NULL },
	[CHECK] = { "check", cmd_check, "one line for a monitoring system", NULL },
	[EXPLAIN] = { "explain", cmd_explain, "what a word of a finding means", "WORD" },
};

/* ---- options -------------------------------------------------------------- */

enum option_kind { FLAG, NO_FLAG, STRING, NUMBER, SECONDS, WORD };

#define IN(id)	 (1u << (id))
#define ANYWHERE (IN(COMMANDS) - 1)
#define TABLES	 (IN(PS) | IN(COMMS) | IN(OPS) | IN(PEERS) | IN(INFLIGHT))
#define SAMPLES	 (TABLES | IN(STATUS))
#define PRINTS	 (SAMPLES | IN(TAIL) | IN(DIAGNOSE))

static const char *const formats[] = { "table", "json", "csv", NULL };
static const char *const colors[] = { "auto", "always", "never", NULL };
static const char *const directions[] = { "send", "recv", NULL };
static const char *const windows[] = { "1s", "10s", "60s", "all", NULL };

enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* Everything that is said before it is known which command it is for. */
struct options {
	struct cli cli;
	const char *socket;
	int64_t color;
	int64_t window;
	int64_t direction;
	bool help;
	bool version;
};

static const struct option_row {
	const char *name;
	char letter;
	enum option_kind kind;
	size_t offset;
	unsigned commands;	/* that take it */
	const char *arg;
	const char *help;
	const char *const *words;
	int64_t least;
	int64_t most;
} options[] = {
	{ "output", 'o', WORD, offsetof(struct options, cli.format), PRINTS, "FORMAT",
	  "table, json (what the API answered) or csv (base units)", formats, 0, 0 },
	{ "watch", 'w', FLAG, offsetof(struct options, cli.watch), SAMPLES, NULL,
	  "repeat until interrupted", NULL, 0, 0 },
	{ "delay", 'd', SECONDS, offsetof(struct options, cli.delay_ns),
	  SAMPLES | IN(TOP), "SECONDS", "between two samples (2)", NULL, 0, 0 },
	{ "iterations", 'n', NUMBER, offsetof(struct options, cli.samples),
	  SAMPLES | IN(TAIL) | IN(TOP), "N", "end after N samples, or lines of tail", NULL, 1,
	  INT32_MAX },
	{ "no-header", 'H', NO_FLAG, offsetof(struct options, cli.header),
	  PRINTS, NULL, "leave the header out", NULL, 0, 0 },
	{ "comm", 0, STRING, offsetof(struct options, cli.comm),
	  IN(COMMS) | IN(OPS) | IN(PEERS) | IN(INFLIGHT) | IN(TAIL), "NAME",
	  "only this communicator, by name or id", NULL, 0, 0 },
	{ "rank", 'r', NUMBER, offsetof(struct options, cli.rank), TABLES | IN(TAIL), "RANK",
	  "only this rank", NULL, 0, INT32_MAX },
	{ "func", 'f', STRING, offsetof(struct options, cli.func),
	  IN(OPS) | IN(INFLIGHT) | IN(TAIL), "NAME", "only this operation, as AllReduce", NULL, 0,
	  0 },
	{ "pid", 'p', NUMBER, offsetof(struct options, cli.pid),
	  IN(PS) | IN(COMMS) | IN(PEERS) | IN(INFLIGHT) | IN(TAIL), "PID", "only this process", NULL, 1,
	  INT32_MAX },
	{ "peer", 0, NUMBER, offsetof(struct options, cli.peer), IN(PEERS), "RANK",
	  "only links with this rank", NULL, 0, INT32_MAX },
	{ "direction", 0, WORD, offsetof(struct options, direction), IN(PEERS), "WAY",
	  "send or recv", directions, 0, 0 },
	{ "older-than", 0, SECONDS, offsetof(struct options, cli.older_ns), IN(INFLIGHT), "SECONDS",
	  "only what began longer ago", NULL, 0, 0 },
	{ "window", 0, WORD, offsetof(struct options, window), IN(OPS) | IN(PEERS) | IN(TOP),
	  "WINDOW", "1s, 10s, 60s or all (ops: all, top: 10s); peers: 60s or all (all)", windows, 0, 0 },
	{ "by-rank", 0, FLAG, offsetof(struct options, cli.by_rank), IN(OPS), NULL,
	  "a row for each rank", NULL, 0, 0 },
	{ "all", 'a', FLAG, offsetof(struct options, cli.all), IN(DIAGNOSE), NULL,
	  "also what is over", NULL, 0, 0 },
	{ "socket", 'S', STRING, offsetof(struct options, socket), ANYWHERE, "PATH",
	  "the daemon's socket", NULL, 0, 0 },
	{ "color", 0, WORD, offsetof(struct options, color), ANYWHERE, "WHEN",
	  "auto, always or never", colors, 0, 0 },
	{ "help", 'h', FLAG, offsetof(struct options, help), ANYWHERE, NULL, "this text", NULL, 0,
	  0 },
	{ "version", 'V', FLAG, offsetof(struct options, version), ANYWHERE, NULL, "the version",
	  NULL, 0, 0 },
};

__attribute__((format(printf, 1, 2)))
static int usage_error(const char *format, ...)
{
	va_list args;

	fputs("ncclinsp: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\nTry 'ncclinsp --help'.\n", stderr);
	return CLI_USAGE;
}

static int find_word(const char *const *words, const char *text, int64_t *index)
{
	for (int64_t i = 0; words[i]; i++) {
		if (!strcmp(words[i], text)) {
			*index = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int set_option(const struct option_row *row, const char *arg, struct options *opts)
{
	void *at = (char *)opts + row->offset;

	switch (row->kind) {
	case FLAG:
	case NO_FLAG:
		*(bool *)at = row->kind == FLAG;
		return 0;
	case STRING:
		*(const char **)at = arg;
		return *arg ? 0 : -EINVAL;
	case NUMBER:
		return text_parse_integer(arg, row->least, row->most, at);
	case SECONDS:
		return text_parse_duration(arg, at);
	case WORD:
		return find_word(row->words, arg, at);
	}
	return -EINVAL;
}

static int parse(int argc, char **argv, struct options *opts, unsigned *given)
{
	struct option longs[ARRAY_LEN(options) + 1] = { { 0 } };
	char letters[2 * ARRAY_LEN(options) + 2] = ":";
	size_t used = 1;
	int c, i;

	for (size_t k = 0; k < ARRAY_LEN(options); k++) {
		longs[k] = (struct option){ options[k].name, options[k].arg ? 1 : 0, NULL,
					    256 + (int)k };
		if (options[k].letter)
			letters[used++] = options[k].letter;
		if (options[k].letter && options[k].arg)
			letters[used++] = ':';
	}
	opterr = 0;
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == ':')
			return usage_error("%s needs a value", argv[optind - 1]);
		if (c == '?')
			return usage_error("unknown option %s", argv[optind - 1]);
		for (i = 0; i + 256 != c && options[i].letter != c; i++)
			continue;
		if (set_option(&options[i], optarg, opts))
			return usage_error("'%s' does not fit --%s %s: %s", optarg, options[i].name,
					   options[i].arg, options[i].help);
		*given |= 1u << i;
	}
	return 0;
}

/* ---- help ----------------------------------------------------------------- */

static void print_help(const struct command *command)
{
	unsigned wanted = command ? IN(command - commands) : ANYWHERE;
	const char *argument = command ? command->argument : NULL;

	printf("Usage: ncclinsp %s%s%s%s [OPTION...]\n\n", command ? command->name : "[COMMAND]",
	       argument ? " [" : "", argument ? argument : "", argument ? "]" : "");
	if (command)
		printf("%s: %s.\n\n", command->name, command->help);
	else
		puts("Shows what NCCL does on this node, as the local ncclinspd(8) sees it.\n");
	for (size_t i = 0; !command && i < COMMANDS; i++)
		printf("  %-10s %s\n", commands[i].name, commands[i].help);
	if (!command)
		puts("\nWithout a command: top on a terminal, status otherwise.\n");
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		char left[48];

		if (!(options[i].commands & wanted))
			continue;
		snprintf(left, sizeof(left), "%c%c%s --%s%s%s", options[i].letter ? '-' : ' ',
			 options[i].letter ? options[i].letter : ' ',
			 options[i].letter ? "," : " ", options[i].name, options[i].arg ? " " : "",
			 options[i].arg ? options[i].arg : "");
		printf("  %-24s %s\n", left, options[i].help);
	}
	puts("\nExit codes: 0 done, 1 failed, 2 usage, 3 no daemon, 4 nothing matched, "
	     "5 no permission,\n6 timeout, 10 finding (diagnose), 130 interrupted.  check has those of "
	     "monitoring plugins.\nMore: man ncclinsp");
}

/* ---- the terminal ---------------------------------------------------------- */

static int terminal_columns(void)
{
	struct winsize size;
	const char *columns = getenv("COLUMNS");
	int64_t n;

	if (columns && !text_parse_integer(columns, 10, LINE_BYTES / 4, &n))
		return (int)n;
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col >= 10)
		return size.ws_col;
	return 80;
}

static bool wants_color(int64_t color, bool terminal)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (color != COLOR_AUTO)
		return color == COLOR_ALWAYS;
	if (no_color && *no_color)
		return false;
	return terminal && term && strcmp(term, "dumb");
}

static void look_at_terminal(struct options *opts)
{
	struct cli *cli = &opts->cli;

	cli->terminal = isatty(STDOUT_FILENO);
	cli->columns = cli->terminal ? terminal_columns() : NOT_A_TERMINAL_COLUMNS;
	cli->style.color = wants_color(opts->color, cli->terminal);
	cli->style.ascii = cli->terminal && strcmp(nl_langinfo(CODESET), "UTF-8");
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

/* The command that was named, or the one that a bare call means. */
static const struct command *choose(int argc, char **argv)
{
	if (optind < argc)
		return find_command(argv[optind]);
	return &commands[isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) ? TOP : STATUS];
}

static int check_options(const struct command *command, unsigned given)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (given & 1u << i && !(options[i].commands & IN(command - commands)))
			return usage_error("%s does not take --%s", command->name, options[i].name);
	return 0;
}

int main(int argc, char **argv)
{
	struct options opts = {
		.cli = { .header = true, .delay_ns = DEFAULT_DELAY_NS, .samples = CLI_ANY,
			 .rank = CLI_ANY, .pid = CLI_ANY, .peer = CLI_ANY },
		.window = -1,
		.direction = -1,
	};
	const struct command *command;
	unsigned given = 0;
	int code;

	setlocale(LC_CTYPE, "");
	code = parse(argc, argv, &opts, &given);
	if (code)
		return code;
	if (opts.version) {
		puts("ncclinsp " NCCLINSP_VERSION);
		return CLI_DONE;
	}
	command = choose(argc, argv);
	if (opts.help) {
		print_help(optind < argc ? command : NULL);
		return command ? CLI_DONE : CLI_USAGE;
	}
	if (!command)
		return usage_error("no command '%s'", argv[optind]);
	if (optind + 1 + !!command->argument < argc)
		return usage_error("%s takes no argument '%s'", command->name, argv[argc - 1]);
	if (optind + 1 < argc)
		opts.cli.argument = argv[optind + 1];
	code = check_options(command, given);
	if (code)
		return code;

	look_at_terminal(&opts);
	if (opts.cli.delay_ns < LEAST_DELAY_NS)
		opts.cli.delay_ns = LEAST_DELAY_NS;
	opts.cli.window = opts.window < 0 ? NULL : windows[opts.window];
	opts.cli.direction = opts.direction < 0 ? NULL : directions[opts.direction];
	opts.cli.client = client_new(opts.socket, TIMEOUT_MS);
	code = command->run(&opts.cli);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "ncclinsp: cannot write the output: %s\n", strerror(errno));
		code = CLI_FAILED;
	}
	client_free(opts.cli.client);
	return code;
}
