/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

/* The subcommands that there are: help, completion and main() read the same rows. */

#include "cli/common/cli.h"

enum command_id {
	STATUS, PS, COMMS, RANKS, OPS, PEERS, INFLIGHT, TAIL, DMON, TOP, DIAGNOSE,
	CHECK, EXPLAIN, EXEMPLARS, COMPLETION, DOCTOR, CONFIG, LEVEL, MARK, OVERHEAD, SNAPSHOT,
	REPORT, DIFF, REPLAY, RUN, ATTACH, EXPORT, TRACE, OVERLAP, DIAL_STDIO, WATCH, HELP, COMMANDS
};

struct command {
	const char *name;
	int (*run)(struct cli *cli);	/* NULL: what follows is a command to be repeated */
	const char *help;
	const char *argument;	/* the one it may have; NULL: none */
	const char *second;	/* the one behind `argument`; NULL: no other */
	bool many;		/* any number of arguments */
	bool starts;		/* its arguments are another program's, which has stdout */
	bool joint;		/* it tells of many nodes together; else of each alone */
	const char *page;	/* its page of the manual, in section 1; NULL: "ncclinsp" */
};

extern const struct command commands[COMMANDS];

/* NULL: there is no such command. */
const struct command *command_find(const char *name);

/* Says on stderr that there is no such command, and which one may be meant; CLI_USAGE. */
int command_reject(const char *name);

#endif
