/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that every subcommand needs. */
#include "cli/common/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "util/list.h"

int cli_fail(const struct cli *cli, int error)
{
	static const struct {
		int error;
		enum cli_exit code;
	} codes[] = {
		{ -ENOENT, CLI_NO_DAEMON },   { -ECONNREFUSED, CLI_NO_DAEMON },
		{ -EACCES, CLI_NO_RIGHT },    { -EPERM, CLI_NO_RIGHT },
		{ -ETIMEDOUT, CLI_TIMEOUT },   { -ESRCH, CLI_NOTHING },
	};

	fprintf(stderr, "ncclinsp: %s\n", client_error(cli->client));
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (codes[i].error == error)
			return codes[i].code;
	return CLI_FAILED;
}

static const char *cli_rejecting;

void cli_reject_for(const char *command)
{
	cli_rejecting = command;
}

int cli_reject(const char *format, ...)
{
	va_list args;

	fputs("ncclinsp: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\nTry 'ncclinsp %s%s--help'.\n", cli_rejecting ?: "",
		cli_rejecting ? " " : "");
	return CLI_USAGE;
}

struct report_style cli_report_style(const struct cli *cli)
{
	return (struct report_style){ .now_ns = cli_now_ns(),
				      .units = (enum report_units)cli->units,
				      .utc = cli->utc };
}

uint64_t cli_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int64_t cli_real_offset_ns(void)
{
	struct timespec real;

	clock_gettime(CLOCK_REALTIME, &real);
	return (int64_t)real.tv_sec * 1000000000 + real.tv_nsec - (int64_t)cli_now_ns();
}

void cli_pause(const struct cli *cli)
{
	struct timespec delay = { .tv_sec = (time_t)(cli->delay_ns / 1000000000),
				  .tv_nsec = (long)(cli->delay_ns % 1000000000) };

	nanosleep(&delay, NULL);
}

static bool cli_repeats(const struct cli *cli)
{
	return cli->watch || (cli->samples != CLI_ANY && cli->samples > 1);
}

bool cli_wants_sample(const struct cli *cli, int64_t done)
{
	if (!done)
		return true;
	if (ferror(stdout) || !cli_repeats(cli) ||
	    (cli->samples != CLI_ANY && done >= cli->samples))
		return false;
	cli_pause(cli);
	return true;
}

void cli_next_sample(const struct cli *cli, bool first)
{
	if (!cli_repeats(cli))
		return;
	if (cli->clears)
		fputs("\033[H\033[2J", stdout);
	else if (!first)
		fputc('\n', stdout);
}
