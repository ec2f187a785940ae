/* SPDX-License-Identifier: Apache-2.0 */
/* The caught output of a command, and time that nobody waits for. */
#include "tests/fuzz/run_command.h"

#include <stdio.h>
#include <time.h>

#include "cli/option.h"
#include "util/utf8.h"

static char *printed;
static size_t printed_bytes;

/* Commands pause between two looks. */
int nanosleep(const struct timespec *wanted, struct timespec *left)
{
	(void)wanted;
	(void)left;
	return 0;
}

/* The streams, not the descriptors: a sanitizer speaks through these. */
static void swap_output(void)
{
	static FILE *out, *err;
	FILE *was_out = stdout, *was_err = stderr;

	if (!out) {
		out = open_memstream(&printed, &printed_bytes);
		err = fopen("/dev/null", "w");
		demand(out && err);
	}
	stdout = out;
	stderr = err;
	out = was_out;
	err = was_err;
}

void command_catch_output(void)
{
	swap_output();
}

void command_check_output(void)
{
	uint32_t code;

	fflush(stdout);
	for (size_t i = 0, n; i < printed_bytes; i += n) {
		n = utf8_decode(printed + i, printed_bytes - i, &code);
		demand(n ? code != 0 : printed[i] == '\n');
		n += !n;
	}
	rewind(stdout);
	swap_output();
}

void command_run(enum command_id id, uint8_t format, uint8_t flags, struct client *client,
			struct cli_list from, char **paths, int npaths)
{
	struct options opts;
	struct cli *cli = &opts.cli;

	option_init(&opts);
	cli->command = commands[id].name;
	cli->format = format % 6;
	cli->units = format / 6 % 3;
	cli->columns = flags & 1 ? 80 : CLI_ANY_WIDTH;
	cli->by_rank = flags & 2;
	cli->all = flags & 4;
	cli->utc = flags & 8;
	cli->style.ascii = flags & 16;
	cli->header = !(flags & 32);
	cli->batch = true;
	cli->samples = 1;
	cli->from = from;
	cli->paths = paths;
	cli->npaths = npaths;
	cli->argument = npaths > 0 ? paths[0] : NULL;
	cli->second = npaths > 1 ? paths[1] : NULL;
	cli->client = client;
	commands[id].run(cli);
}
