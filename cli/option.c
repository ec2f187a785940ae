/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options, the parser that reads from it, and the help that is printed from it. */
#include "cli/option.h"

#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/list.h"
#include "util/meant.h"
#include "util/text.h"

#define DEFAULT_DELAY_NS UINT64_C(2000000000)
#define LEAST_DELAY_NS	 INT64_C(100000000)	/* -d 0 must not keep the daemon busy */
#define LEAST_FOR_NS	 INT64_C(100000000)
#define MOST_FOR_NS	 (INT64_C(604800) * 1000000000)	/* the daemon's, a week */

#define MOST_ATTACH_NS	 (INT64_C(3600) * 1000000000)	/* the probe's, an hour */

#define IN(id)	 (UINT64_C(1) << (id))
#define ANYWHERE (IN(COMMANDS) - 1)
#define TABLES	 (IN(PS) | IN(COMMS) | IN(RANKS) | IN(DMON) | IN(OPS) | IN(PEERS) | \
		  IN(INFLIGHT) | IN(EXEMPLARS) | IN(LEVEL) | IN(MARK) | IN(OVERHEAD))
#define LISTS	 (TABLES | IN(CONFIG) | IN(REPLAY) | IN(ATTACH) | \
		  IN(OVERLAP))			/* choose rows */
#define SAMPLES	 (TABLES | IN(STATUS) | IN(DIAGNOSE))
#define RUNS	 (IN(TAIL) | IN(EXPORT) | IN(REPLAY))	/* one thing after the other */
#define TIMES	 (TABLES | IN(TAIL) | IN(REPLAY))
#define WHO	 (TABLES | RUNS | IN(DIAGNOSE))
#define HOSTS	 (TABLES | IN(STATUS) | IN(DIAGNOSE) | IN(CHECK) | IN(TOP) | IN(TAIL) | \
		  IN(SNAPSHOT) | IN(REPORT))
#define ROWS	 (SAMPLES | IN(TAIL) | IN(DOCTOR) | IN(REPORT) | IN(DIFF) | IN(CONFIG) | \
		  IN(REPLAY) | IN(ATTACH) | IN(OVERLAP))

static const char *const formats[] = { "table", "wide", "json", "jsonl", "csv", "prom", NULL };
static const char *const units[] = { "iec", "si", "raw", NULL };
static const char *const colors[] = { "auto", "always", "never", NULL };
static const char *const directions[] = { "send", "recv", NULL };
static const char *const samples[] = { "all", "budget", NULL };
static const char *const windows[] = { "1s", "10s", "60s", "all", NULL };
static const char *const link_windows[] = { "60s", "all", NULL };

static const struct option_row options[] = {
	{ "output", 'o', OPTION_INDEX, offsetof(struct options, cli.format), ROWS, "FORMAT",
	  "table, wide, json, jsonl, csv or prom", formats, 0, 0 },
	{ "output", 'o', OPTION_FILE, offsetof(struct options, cli.path), IN(TRACE), "PATH",
	  "file to write (.json, .gz, .zst, .otf2); -: stdout", NULL, 0, 0 },
	{ "fields", 0, OPTION_STRING, offsetof(struct options, cli.fields), ROWS, "A,B",
	  "only these fields, in this order; help lists them", NULL, 0, 0 },
	{ "sort", 's', OPTION_STRING, offsetof(struct options, cli.sort), LISTS, "[-]FIELD",
	  "sort by FIELD, the smallest first; with - the largest", NULL, 0, 0 },
	{ "filter", 'f', OPTION_LIST, offsetof(struct options, cli.filters),
	  LISTS | RUNS | IN(DIAGNOSE), "EXPR",
	  "only rows with FIELD=VALUE (!= < <= > >= ~ !~)", NULL, 0, 0 },
	{ "units", 0, OPTION_INDEX, offsetof(struct options, cli.units), TIMES, "UNITS",
	  "iec (KiB), si (kB) or raw (base units)", units, 0, 0 },
	{ "utc", 0, OPTION_FLAG, offsetof(struct options, cli.utc), TIMES, NULL,
	  "print times of day in UTC", NULL, 0, 0 },
	{ "watch", 'w', OPTION_FLAG, offsetof(struct options, cli.watch), SAMPLES, NULL,
	  "repeat until interrupted", NULL, 0, 0 },
	{ "delay", 'd', OPTION_SECONDS, offsetof(struct options, cli.delay_ns),
	  SAMPLES | IN(TOP) | IN(REPLAY), "SECONDS", "time between two samples (2)", NULL,
	  LEAST_DELAY_NS, 0 },
	{ "batch", 'b', OPTION_FLAG, offsetof(struct options, cli.batch),
	  SAMPLES | IN(TOP) | IN(REPLAY), NULL,
	  "print as into a file: never clear the screen", NULL, 0, 0 },
	{ "iterations", 'n', OPTION_NUMBER, offsetof(struct options, cli.samples),
	  SAMPLES | RUNS | IN(TOP), "N", "end after N samples, or N lines of tail", NULL, 1,
	  INT32_MAX },
	{ "no-header", 0, OPTION_NO_FLAG, offsetof(struct options, cli.header),
	  ROWS | IN(EXPLAIN) | IN(HELP), NULL, "print no header", NULL, 0, 0 },
	{ "comm", 0, OPTION_STRING, offsetof(struct options, cli.comm),
	  (TABLES & ~IN(PS) & ~IN(OVERHEAD)) | RUNS | IN(DIAGNOSE) | IN(TRACE), "COMM",
	  "only this communicator, by name or id", NULL, 0, 0 },
	{ "rank", 'r', OPTION_NUMBER, offsetof(struct options, cli.rank),
	  (TABLES & ~IN(LEVEL) & ~IN(OVERHEAD)) | RUNS, "RANK",
	  "only this rank", NULL, 0, INT32_MAX },
	{ "func", 0, OPTION_STRING, offsetof(struct options, cli.func),
	  IN(OPS) | IN(INFLIGHT) | IN(EXEMPLARS) | RUNS, "FUNC",
	  "only this operation, for example AllReduce", NULL, 0, 0 },
	{ "pid", 'p', OPTION_NUMBER, offsetof(struct options, cli.pid), WHO | IN(CONFIG), "PID",
	  "only this process", NULL, 1, INT32_MAX },
	{ "pid", 'p', OPTION_STRING, offsetof(struct options, cli.pids), IN(TRACE), "PID[,PID]",
	  "only these processes", NULL, 0, 0 },
	{ "user", 'u', OPTION_USER, offsetof(struct options, cli.uid), WHO, "USER",
	  "only this user, by name or number", NULL, 0, UINT32_MAX },
	{ "job", 'j', OPTION_STRING, offsetof(struct options, cli.job),
	  WHO | IN(TRACE) | IN(ATTACH), "JOB",
	  "only this job, by the id that ps shows", NULL, 0, 0 },
	{ "gpu", 'g', OPTION_STRING, offsetof(struct options, cli.gpu), WHO, "GPU",
	  "only this GPU, by its number, or part of its UUID or bus id", NULL, 0, 0 },
	{ "peer", 0, OPTION_NUMBER, offsetof(struct options, cli.peer), IN(PEERS), "RANK",
	  "only links with this rank", NULL, 0, INT32_MAX },
	{ "direction", 0, OPTION_WORD, offsetof(struct options, cli.direction), IN(PEERS), "WAY",
	  "send or recv", directions, 0, 0 },
	{ "older-than", 0, OPTION_SECONDS, offsetof(struct options, cli.older_ns), IN(INFLIGHT),
	  "SECONDS",
	  "only operations that began longer ago", NULL, 0, 0 },
	{ "from", 0, OPTION_LIST, offsetof(struct options, cli.from),
	  IN(PS) | IN(COMMS) | IN(RANKS) | IN(OPS) | IN(PEERS) | IN(INFLIGHT) | IN(DIAGNOSE) |
	  IN(TOP) | IN(OVERLAP),
	  "PATH", "read snapshots from a file or directory, or a metrics engine at http://...",
	  NULL, 0, 0 },
	{ "segment", 0, OPTION_STRING, offsetof(struct options, cli.segment),
	  IN(PS) | IN(COMMS) | IN(OPS) | IN(INFLIGHT) | IN(TAIL) | IN(TRACE), "FILE",
	  "read one process's segment, without a daemon", NULL, 0, 0 },
	{ "at", 0, OPTION_STRING, offsetof(struct options, cli.at),
	  IN(PS) | IN(COMMS) | IN(RANKS) | IN(OPS) | IN(PEERS) | IN(INFLIGHT) | IN(DIAGNOSE),
	  "TIME", "with --from: at this time in UTC, for example 2026-11-22T03:12", NULL, 0, 0 },
	{ "window", 0, OPTION_WORD, offsetof(struct options, cli.window),
	  IN(OPS) | IN(RANKS) | IN(DMON) | IN(TOP), "WINDOW",
	  "the time looked back: 1s, 10s, 60s or all", windows, 0, 0 },
	{ "window", 0, OPTION_WORD, offsetof(struct options, cli.window), IN(PEERS), "WINDOW",
	  "the time looked back: 60s or all", link_windows, 0, 0 },
	{ "by-rank", 0, OPTION_FLAG, offsetof(struct options, cli.by_rank),
	  IN(OPS) | IN(ATTACH), NULL,
	  "a row for each rank", NULL, 0, 0 },
	{ "by-queue", 0, OPTION_FLAG, offsetof(struct options, cli.by_queue), IN(PEERS), NULL,
	  "a row for each queue pair or socket (level trace)", NULL, 0, 0 },
	{ "by-channel", 0, OPTION_FLAG, offsetof(struct options, cli.by_channel), IN(PEERS), NULL,
	  "a row for each channel of a link", NULL, 0, 0 },
	{ "for", 0, OPTION_SECONDS, offsetof(struct options, cli.for_ns),
	  IN(LEVEL) | IN(TRACE) | IN(EXPORT), "SECONDS",
	  "for this time (level, export: without end; trace: 5)", NULL, LEAST_FOR_NS, MOST_FOR_NS },
	{ "for", 0, OPTION_SECONDS, offsetof(struct options, cli.for_ns), IN(ATTACH), "SECONDS",
	  "count for this time (60)", NULL, LEAST_FOR_NS, MOST_ATTACH_NS },
	{ "exemplar", 0, OPTION_STRING, offsetof(struct options, cli.exemplar), IN(TRACE), "ID",
	  "draw this exemplar instead of the next seconds", NULL, 0, 0 },
	{ "kernels", 0, OPTION_LIST, offsetof(struct options, cli.kernels), IN(TRACE), "FILE",
	  "draw a profiler's kernels beside what is remembered", NULL, 0, 0 },
	{ "sample", 0, OPTION_WORD, offsetof(struct options, cli.sample), IN(LEVEL), "WHICH",
	  "time all operations, or bursts within budget", samples, 0, 0 },
	{ "report", 0, OPTION_STRING, offsetof(struct options, cli.report_dir), IN(RUN), "DIR",
	  "keep what was seen in this directory, for ncclinsp report", NULL, 0, 0 },
	{ "html", 0, OPTION_FLAG, offsetof(struct options, cli.html), IN(REPORT), NULL,
	  "write one page for a browser to stdout", NULL, 0, 0 },
	{ "flight-recorder", 0, OPTION_STRING, offsetof(struct options, cli.flight), IN(REPORT),
	  "DIR", "show the Python lines of PyTorch's Flight Recorder dumps, too", NULL, 0, 0 },
	{ "inspector-json", 0, OPTION_STRING, offsetof(struct options, cli.inspector_dir),
	  IN(EXPORT), "PATH", "write NCCL Inspector's format into this new or empty directory",
	  NULL, 0, 0 },
	{ "dry-run", 0, OPTION_FLAG, offsetof(struct options, cli.dry_run), IN(LEVEL) | IN(MARK),
	  NULL, "print what would change, and change nothing", NULL, 0, 0 },
	{ "warn", 0, OPTION_NUMBER, offsetof(struct options, cli.warn), IN(CHECK), "N",
	  "WARNING from N warnings on (1)", NULL, 1, INT32_MAX },
	{ "crit", 0, OPTION_NUMBER, offsetof(struct options, cli.crit), IN(CHECK), "N",
	  "CRITICAL from N critical findings on (1)", NULL, 1, INT32_MAX },
	{ "all", 'a', OPTION_FLAG, offsetof(struct options, cli.all), IN(DIAGNOSE), NULL,
	  "also findings that have ended", NULL, 0, 0 },
	{ "readonly", 0, OPTION_FLAG, offsetof(struct options, cli.readonly), IN(TOP), NULL,
	  "disable the keys that change anything", NULL, 0, 0 },
	{ "host", 'H', OPTION_STRING, offsetof(struct options, host), HOSTS, "HOSTS",
	  "ask other nodes over ssh: node7, node[1-64], slurm:JOB", NULL, 0, 0 },
	{ "socket", 'S', OPTION_STRING, offsetof(struct options, socket), ANYWHERE, "PATH",
	  "socket of the daemon", NULL, 0, 0 },
	{ "color", 0, OPTION_INDEX, offsetof(struct options, color), ANYWHERE, "WHEN",
	  "auto, always or never", colors, 0, 0 },
	{ "no-color", 0, OPTION_FLAG, offsetof(struct options, no_color), ANYWHERE, NULL,
	  "same as --color never", NULL, 0, 0 },
	{ "ascii", 0, OPTION_FLAG, offsetof(struct options, cli.style.ascii), ANYWHERE, NULL,
	  "print ASCII only", NULL, 0, 0 },
	{ "quiet", 'q', OPTION_FLAG, offsetof(struct options, cli.quiet), ANYWHERE, NULL,
	  "print errors only; the exit code has the result", NULL, 0, 0 },
	{ "verbose", 'v', OPTION_FLAG, offsetof(struct options, verbose), ANYWHERE & ~IN(TOP), NULL,
	  "print each request to the daemon, and its result", NULL, 0, 0 },
	{ "help", 'h', OPTION_FLAG, offsetof(struct options, help), ANYWHERE, NULL,
	  "print this help", NULL, 0, 0 },
	{ "version", 'V', OPTION_FLAG, offsetof(struct options, version), ANYWHERE, NULL,
	  "print the version", NULL, 0, 0 },
};

const struct option_row *option_all(size_t *n)
{
	*n = ARRAY_LEN(options);
	return options;
}

void option_init(struct options *opts)
{
	*opts = (struct options){
		.cli = { .header = true, .delay_ns = DEFAULT_DELAY_NS, .samples = CLI_ANY,
			 .rank = CLI_ANY, .pid = CLI_ANY, .uid = CLI_ANY, .peer = CLI_ANY,
			 .warn = 1, .crit = 1 },
	};
}

static int option_find_word(const char *const *words, const char *text, int64_t *index)
{
	for (int64_t i = 0; words[i]; i++) {
		if (!strcmp(words[i], text)) {
			*index = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int add_to_list(struct cli_list *list, const char *text)
{
	const char **place = *text ? array_add(list->text, &list->count) : NULL;

	if (!place)
		return -EINVAL;
	*place = text;
	return 0;
}

static int option_find_user(const struct option_row *row, const char *text, int64_t *uid)
{
	const struct passwd *user;

	if (!text_parse_integer(text, row->least, row->most, uid))
		return 0;
	user = getpwnam(text);
	if (!user)
		return -ENOENT;
	*uid = user->pw_uid;
	return 0;
}

static int option_set_time(const struct option_row *row, const char *text, uint64_t *ns)
{
	uint64_t got;

	if (text_parse_duration(text, &got) || got < (uint64_t)row->least ||
	    (row->most && got > (uint64_t)row->most))
		return -EINVAL;
	*ns = got;
	return 0;
}

static int set_option(const struct option_row *row, const char *arg, struct options *opts)
{
	void *at = (char *)opts + row->offset;
	int64_t index;

	switch (row->kind) {
	case OPTION_FLAG:
	case OPTION_NO_FLAG:
		*(bool *)at = row->kind == OPTION_FLAG;
		return 0;
	case OPTION_STRING:
	case OPTION_FILE:
		*(const char **)at = arg;
		return *arg &&
			!(row->kind == OPTION_FILE && !option_find_word(formats, arg, &index))
			       ? 0 : -EINVAL;
	case OPTION_NUMBER:
		return text_parse_integer(arg, row->least, row->most, at);
	case OPTION_SECONDS:
		return option_set_time(row, arg, at);
	case OPTION_LIST:
		return add_to_list(at, arg);
	case OPTION_USER:
		return option_find_user(row, arg, at);
	case OPTION_INDEX:
		return option_find_word(row->words, arg, at);
	case OPTION_WORD:
		if (option_find_word(row->words, arg, &index))
			return -EINVAL;
		*(const char **)at = row->words[index];
		return 0;
	}
	return -EINVAL;
}

/* One of the rows of that name: the command's, if it has one. */
static size_t option_row_for(size_t i, const struct command *command)
{
	for (size_t k = 0; command && k < ARRAY_LEN(options); k++)
		if (!strcmp(options[k].name, options[i].name) &&
		    options[k].commands & IN(command - commands))
			return k;
	return i;
}

/* "a, b or c" */
static void option_list_words(const char *const *words, char *buf, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; words[i] && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s",
					 !i ? "" : words[i + 1] ? ", " : " or ", words[i]);
}

/* Writes the value that would have been right. */
static void option_expect(const struct option_row *row, char *buf, size_t size)
{
	char least[TEXT_MAX], most[TEXT_MAX];

	switch (row->kind) {
	case OPTION_WORD:
	case OPTION_INDEX:
		option_list_words(row->words, buf, size);
		break;
	case OPTION_NUMBER:
		snprintf(buf, size, "a whole number, %lld or more", (long long)row->least);
		break;
	case OPTION_SECONDS:
		text_duration(least, sizeof(least), (uint64_t)row->least);
		text_duration(most, sizeof(most), (uint64_t)row->most);
		snprintf(buf, size, "a time such as 500ms, 10 (seconds) or 5m%s%s%s%s",
			 row->least ? ", from " : "", row->least ? least : "",
			 row->most ? " to " : "", row->most ? most : "");
		break;
	case OPTION_USER:
		snprintf(buf, size, "there is no such user");
		break;
	case OPTION_LIST:
		snprintf(buf, size, "up to %d, none of them empty", CLI_LIST);
		break;
	case OPTION_FILE:
		snprintf(buf, size, "this command writes a file, not a table; to write a file "
			 "of that name, use ./json");
		break;
	default:
		snprintf(buf, size, "it must not be empty");
	}
}

static int option_bad_value(const struct option_row *row, const char *value)
{
	char why[160];

	option_expect(row, why, sizeof(why));
	return cli_reject("'%s' is not valid for --%s %s: %s", value, row->name, row->arg, why);
}

/* A value that getopt found for a row. */
struct option_found {
	size_t row;
	const char *arg;
};

static int options_set_all(const struct option_found *found, size_t n,
			   const struct command *command, struct options *opts, uint64_t *given)
{
	for (size_t k = 0; k < n; k++) {
		size_t i = option_row_for(found[k].row, command);

		if (set_option(&options[i], found[k].arg, opts))
			return option_bad_value(&options[i], found[k].arg);
		*given |= UINT64_C(1) << i;
	}
	return 0;
}

/* No more options than these can be in it. */
static size_t options_letters(int argc, char **argv)
{
	size_t n = 1;

	for (int i = 0; i < argc; i++)
		n += strlen(argv[i]);
	return n;
}

/* The command that is to run: of "watch ps" it is ps.  NULL: none is named. */
static const struct command *named_command(int argc, char **argv)
{
	const struct command *command = optind < argc ? command_find(argv[optind]) : NULL;

	if (command && !command->run && optind + 1 < argc)
		command = command_find(argv[optind + 1]);
	return command;
}

/* Refuses an option by its text with dashes and value, "--windw=10s". */
static int unknown_option(const char *text)
{
	char name[32];
	struct meant meant = { .wanted = name };
	const char *dashes = "--";
	int64_t index;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(text + strspn(text, "-"), "="),
		 text + strspn(text, "-"));
	for (size_t i = 0; !strncmp(text, "--", 2) && i < ARRAY_LEN(options); i++)
		meant_offer(&meant, options[i].name);
	if (!option_find_word(formats, name, &index)) {
		meant.best = name;
		dashes = "-o ";
	}
	if (!meant.best)
		return cli_reject("unknown option %s", text);
	return cli_reject("unknown option %s; is it %s%s?", text, dashes, meant.best);
}

/* Reads on from optind, and stops where getopt does; the number found so far is in *n. */
static int options_scan(int argc, char **argv, const char *letters, const struct option *longs,
			struct option_found *found, size_t *n)
{
	int c, r = 0;

	while (!r && (c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == ':')
			r = cli_reject("%s needs a value", argv[optind - 1]);
		else if (c == '?')
			r = unknown_option(argv[optind - 1]);
		found[*n].arg = optarg;
		for (size_t i = 0; !r && i < ARRAY_LEN(options); i++)
			if (c == 256 + (int)i || (c < 256 && options[i].letter == c))
				found[*n].row = i;
		++*n;
	}
	return r;
}

/*
 * The options of a command that starts another program end where that begins: the others are the
 * program's.  The command's name is moved there, to where any other command's is in the end.
 */
static int options_scan_own(int argc, char **argv, const char *letters,
			    const struct option *longs, struct option_found *found, size_t *n)
{
	int at = optind++, r = options_scan(argc, argv, letters, longs, found, n);
	char *name = argv[at];

	memmove(argv + at, argv + at + 1, (size_t)(optind - 1 - at) * sizeof(*argv));
	argv[--optind] = name;
	return r;
}

/* The options' meaning may depend on the command, which may stand behind them. */
int option_parse(int argc, char **argv, struct options *opts, uint64_t *given)
{
	struct option longs[ARRAY_LEN(options) + 1] = { { 0 } };
	char letters[2 * ARRAY_LEN(options) + 3] = "+:";	/* "+": stop at the command */
	struct option_found *found = calloc(options_letters(argc, argv), sizeof(*found));
	const struct command *command;
	size_t used = 2, n = 0;
	int r;

	if (!found)
		return CLI_FAILED;
	for (size_t k = 0; k < ARRAY_LEN(options); k++) {
		longs[k] = (struct option){ options[k].name, options[k].arg ? 1 : 0, NULL,
					    256 + (int)k };
		if (!options[k].letter || strchr(letters, options[k].letter))
			continue;
		letters[used++] = options[k].letter;
		if (options[k].arg)
			letters[used++] = ':';
	}
	opterr = 0;
	r = options_scan(argc, argv, letters, longs, found, &n);
	command = named_command(argc, argv);
	cli_reject_for(command ? command->name : NULL);
	if (!r && command && command->starts) {
		r = options_scan_own(argc, argv, letters, longs, found, &n);
	} else if (!r) {
		n = 0;
		optind = 0;	/* anew: they may stand behind the command, too */
		r = options_scan(argc, argv, letters + 1, longs, found, &n);
	}
	if (!r)
		r = options_set_all(found, n, named_command(argc, argv), opts, given);
	free(found);
	return r;
}

bool option_takes(const struct command *command, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (!strcmp(options[i].name, name) && options[i].commands & IN(command - commands))
			return true;
	return false;
}

uint64_t option_bit(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (!strcmp(options[i].name, name))
			return UINT64_C(1) << i;
	return 0;
}

int option_check(const struct command *command, uint64_t given)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (given >> i & 1 && !(options[i].commands & IN(command - commands)))
			return cli_reject("%s does not take --%s", command->name,
					  options[i].name);
	return 0;
}

/* ---- help ----------------------------------------------------------------- */

static void usage_print(const struct command *command)
{
	const char *argument = command ? command->argument : NULL;
	const char *second = command ? command->second : NULL;

	if (command && command->starts)
		printf("Usage: ncclinsp %s [OPTION...] [--] %s [ARGUMENT...]\n\n", command->name,
		       argument);
	else
		printf("Usage: ncclinsp %s%s%s%s%s%s%s [OPTION...]\n\n",
		       command ? command->name : "[COMMAND]", argument ? " [" : "", argument ?: "",
		       argument ? "]" : "", second ? " [" : "", second ?: "", second ? "]" : "");
}

void option_help(const struct command *command)
{
	uint64_t wanted = command ? IN(command - commands) : ANYWHERE;

	usage_print(command);
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
	puts(command && command->starts ?
	     "\nExit codes: that of COMMAND; 126 it cannot be run, 127 it is not there, 2 usage." :
	     "\nExit codes: 0 done, 1 failed, 2 usage, 3 no daemon, 4 nothing matched,\n"
	     "5 no permission, 6 timeout, 10 found (diagnose, report) or different (diff),\n"
	     "130 interrupted; check exits as monitoring plugins do.");
	printf("More: man %s\n", command && command->page ? command->page : "ncclinsp");
}

int cmd_help(struct cli *cli)
{
	const struct command *command = cli->argument ? command_find(cli->argument) : NULL;

	if (cli->argument && !command)
		return command_reject(cli->argument);
	if (cli->header)
		option_help(command);
	for (size_t i = 0; !cli->header && i < COMMANDS; i++)
		puts(commands[i].name);
	return CLI_DONE;
}
