/* SPDX-License-Identifier: Apache-2.0 */
/* Options, then one row of the table of subcommands. */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/each.h"
#include "cli/offline/hosts.h"
#include "cli/offline/nodes.h"
#include "cli/offline/engine.h"
#include "cli/offline/offline.h"
#include "cli/offline/segment.h"
#include "cli/option.h"
#include "util/text.h"

#define TIMEOUT_MS	5000

static int terminal_columns(int out)
{
	struct winsize size;
	const char *columns = getenv("COLUMNS");
	int64_t n;

	if (columns && !text_parse_integer(columns, 10, LINE_BYTES / 4, &n))
		return (int)n;
	if (!ioctl(out, TIOCGWINSZ, &size) && size.ws_col >= 10)
		return size.ws_col;
	return 80;
}

/* A terminal that does more than print. */
static bool terminal_is_clever(int out)
{
	const char *term = getenv("TERM");

	return isatty(out) && term && *term && strcmp(term, "dumb");
}

static bool terminal_wants_color(int64_t color, bool clever)
{
	const char *no_color = getenv("NO_COLOR");

	if (color != COLOR_AUTO)
		return color == COLOR_ALWAYS;
	return clever && !(no_color && *no_color);
}

/* `out`: where the command prints. */
static void terminal_look_at(struct options *opts, int out)
{
	struct cli *cli = &opts->cli;

	cli->terminal = isatty(out);
	cli->clears = terminal_is_clever(out) && !cli->batch;
	cli->style.color = terminal_wants_color(opts->no_color ? COLOR_NEVER : opts->color,
						terminal_is_clever(out));
	cli->columns = cli->terminal ? terminal_columns(out) : CLI_ANY_WIDTH;
	if (cli->terminal && strcmp(nl_langinfo(CODESET), "UTF-8"))
		cli->style.ascii = true;
}

/* The command that was named, or the one that a bare call means. */
static const struct command *command_choose(int argc, char **argv)
{
	if (optind < argc)
		return command_find(argv[optind]);
	return &commands[isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) ? TOP : STATUS];
}

/* "watch ps" is "ps --watch": the command that is meant, or NULL. */
static const struct command *command_repeat(int argc, char **argv, struct options *opts,
					    uint64_t *given)
{
	if (++optind == argc)
		return NULL;
	opts->cli.watch = true;
	*given |= option_bit("watch");
	return command_find(argv[optind]);
}

/* Takes what stands behind the command; an exit code when that is too much. */
static int command_take_arguments(const struct command *command, int argc, char **argv,
				  struct cli *cli)
{
	if (!command->many && optind + 1 + !!command->argument + !!command->second < argc)
		return cli_reject("%s takes no argument '%s'", command->name, argv[argc - 1]);
	if (command->many && optind + 1 < argc) {
		cli->paths = argv + optind + 1;
		cli->npaths = argc - optind - 1;
	}
	if (optind + 1 < argc)
		cli->argument = argv[optind + 1];
	if (optind + 2 < argc)
		cli->second = argv[optind + 2];
	return CLI_DONE;
}

/* Whoever reads no more knows why: no word of that where SIGPIPE does not end us anyway. */
static int output_cannot_write(int code)
{
	if (errno == EPIPE)
		return code;
	fprintf(stderr, "ncclinsp: cannot write the output: %s\n", strerror(errno));
	return CLI_FAILED;
}

/* The beginning of a time, as "2026-11-22T03:12". */
static int options_check_at(const struct cli *cli)
{
	const char *at = cli->at;

	if (at && !cli->from.count)
		return cli_reject("--at goes with --from: it chooses files by their time");
	if (at && (strlen(at) < 4 || strspn(at, "0123456789-:T.") < strlen(at) - 1 ||
		   strspn(at, "0123456789") != 4))
		return cli_reject("--at must be the beginning of a time in UTC, such as "
				  "2026-11-22T03:12, not '%s'", at);
	return CLI_DONE;
}

/* Files give one sample, so that nothing is repeated. */
static int command_run_offline(const struct command *command, struct cli *cli)
{
	struct offline *offline;
	enum cli_exit why;
	int code;

	if (command == &commands[TOP])
		return cli_reject("top --from takes a metrics engine's address, http://...; files "
				  "show one moment: ncclinsp ranks --from, ncclinsp replay");
	if (cli->window && strcmp(cli->window, "all") && command != &commands[PEERS]) {
		fputs("ncclinsp: --window: snapshots have only the whole time (all)\n", stderr);
		return CLI_USAGE;
	}
	offline = offline_open(cli->from.text, cli->from.count, cli->at, &why);
	if (!offline)
		return why;
	cli->watch = false;
	cli->samples = 1;
	client_set_source(cli->client, offline_answer, offline);
	code = command->run(cli);
	offline_free(offline);
	return code;
}

/* A metrics engine is asked anew for each sample. */
static int command_run_on_engine(const struct command *command, struct cli *cli)
{
	struct offline_live live = { .ask = engine_add };
	struct engine engine;
	int code;

	if (cli->from.count > 1)
		return cli_reject("--from: one metrics engine at a time");
	if (command == &commands[OPS] || command == &commands[PEERS] ||
	    command == &commands[OVERLAP])
		return cli_reject("%s: a metrics engine has no such rows; ask the nodes: -H HOST",
				  command->name);
	engine_init(&engine, cli->from.text[0], cli->job);
	live.arg = &engine;
	client_set_source(cli->client, offline_live_answer, &live);
	json_decref(offline_live_answer(&live, "/v1/status"));
	code = engine.answers ? command->run(cli) : CLI_FAILED;
	offline_live_deinit(&live);
	return code;
}

/* A segment gives one sample; what its process does until it ends, where lines follow it. */
static int run_segment(const struct command *command, struct cli *cli)
{
	uint64_t lost, until_ns;
	enum cli_exit why;
	int code;

	if (cli->from.count)
		return cli_reject("give --segment or --from, not both");
	if (cli->window && strcmp(cli->window, "all"))
		return cli_reject("--window: a segment has only the whole time (all)");
	cli->segment_source = segment_source_open(cli->segment, &why);
	if (!cli->segment_source)
		return why;
	if (command != &commands[TAIL])
		cli->samples = 1;
	cli->watch = false;
	client_set_source(cli->client, segment_source_answer, cli->segment_source);
	client_set_source_stream(cli->client, segment_source_stream);
	code = command->run(cli);
	lost = segment_source_lost(cli->segment_source, &until_ns);
	if (command == &commands[INFLIGHT] && lost)
		fprintf(stderr, "ncclinsp: %llu records of this process were overwritten or lost: "
			"an operation that is shown as in flight may have ended\n",
			(unsigned long long)lost);
	segment_source_free(cli->segment_source);
	return code;
}

static bool command_tells_findings(const struct command *command)
{
	return command == &commands[TOP] || command == &commands[DIAGNOSE] ||
	       command == &commands[CHECK] || command == &commands[REPORT];
}

/* Many nodes are asked anew for each sample. */
static int command_run_on_nodes(const struct command *command, struct cli *cli,
				const struct options *opts, const struct hosts *hosts)
{
	int code;

	cli->nodes = nodes_open(hosts, opts->socket,
				command == &commands[OPS] ? cli->window ?: "all" : cli->window,
				!command_tells_findings(command));
	client_set_source(cli->client, nodes_answer, cli->nodes);
	code = command->run(cli);
	nodes_free(cli->nodes);
	return code;
}

static int command_run_on_hosts(const struct command *command, struct options *opts, char **argv,
				int argc, const struct hosts *hosts)
{
	struct cli *cli = &opts->cli;

	if (command == &commands[REPORT] || (command->joint && hosts->names.n > 1))
		return command_run_on_nodes(command, cli, opts, hosts);
	if (hosts->names.n > 1 && (cli->format > CLI_WIDE || command == &commands[TAIL]))
		return cli_reject("%s shows one node at a time: give -H one host",
				  command->name);
	if (hosts->names.n > 1)
		return each_run(argv, argc, hosts);
	client_set_host(cli->client, hosts->names.at[0], opts->socket, isatty(STDIN_FILENO));
	return command->run(cli);
}

/* Commands that look at the node itself, too, cannot do so from another one. */
static int command_refuse_hosts(const struct command *command)
{
	return cli_reject("%s works on the node itself; do it there: ssh HOST ncclinsp %s",
			  command->name, command->name);
}

static int command_run_remote(const struct command *command, struct options *opts, char **argv,
			      int argc)
{
	struct hosts hosts = { .names.n = 0 };
	char why[HOSTS_WHY];
	int code;

	if (opts->cli.segment || opts->cli.from.count || opts->cli.npaths)
		return cli_reject("give files or --host, not both");
	if (hosts_read(&hosts, opts->host, why))
		code = cli_reject("--host: %s", why);
	else
		code = command_run_on_hosts(command, opts, argv, argc, &hosts);
	hosts_deinit(&hosts);
	return code;
}

static int run_command(const struct command *command, struct options *opts, char **argv, int argc)
{
	static const enum command_id local[] = {
		TRACE, OVERLAP, EXPORT, DOCTOR, CONFIG, ATTACH,
	};
	struct cli *cli = &opts->cli;

	for (size_t i = 0; opts->host && i < sizeof(local) / sizeof(local[0]); i++)
		if (command == &commands[local[i]])
			return command_refuse_hosts(command);
	if (opts->host && option_takes(command, "host"))
		return command_run_remote(command, opts, argv, argc);
	if (cli->segment)
		return run_segment(command, cli);
	if (cli->from.count && engine_is_url(cli->from.text[0]))
		return command_run_on_engine(command, cli);
	return cli->from.count ? command_run_offline(command, cli) : command->run(cli);
}

static int command_run(const struct command *command, struct options *opts, char **argv, int argc)
{
	struct cli *cli = &opts->cli;
	int code;

	terminal_look_at(opts, command->starts ? STDERR_FILENO : STDOUT_FILENO);
	if (cli->quiet && !command->starts && !freopen("/dev/null", "w", stdout))
		return CLI_FAILED;
	cli->command = command->name;
	cli->client = client_new(opts->socket, TIMEOUT_MS);
	if (opts->verbose)
		client_set_verbose(cli->client);
	code = options_check_at(cli);
	if (!code)
		code = run_command(command, opts, argv, argc);
	if (fflush(stdout) || ferror(stdout))
		code = output_cannot_write(code);
	client_free(cli->client);
	return code;
}

int main(int argc, char **argv)
{
	struct options opts;
	const struct command *command;
	uint64_t given = 0;
	int code;

	mallopt(M_MXFAST, 0);	/* an answer is very many small pieces that go together */
	setlocale(LC_CTYPE, "");
	option_init(&opts);
	opts.host = getenv("NCCLINSP_HOST");
	opts.host = opts.host && *opts.host ? opts.host : NULL;
	code = option_parse(argc, argv, &opts, &given);
	if (code)
		return code;
	if (opts.version) {
		puts("ncclinsp " NCCLINSP_VERSION);
		return CLI_DONE;
	}
	command = command_choose(argc, argv);
	if (opts.help) {
		if (command && !command->run && optind + 1 < argc)
			command = command_find(argv[optind + 1]) ?: command;
		option_help(optind < argc ? command : NULL);
		return command ? CLI_DONE : CLI_USAGE;
	}
	if (command && !command->run)
		command = command_repeat(argc, argv, &opts, &given);
	if (optind == argc && !command)
		return cli_reject("watch needs a command: ncclinsp watch ranks");
	if (!command || !command->run)
		return command ? cli_reject("watch cannot repeat '%s'", argv[optind])
			       : command_reject(argv[optind]);
	code = command_take_arguments(command, argc, argv, &opts.cli);
	if (!code)
		code = option_check(command, given);
	return code ?: command_run(command, &opts, argv, argc);
}
