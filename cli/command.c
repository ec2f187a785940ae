/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <string.h>

const struct command commands[COMMANDS] = {
	[STATUS] = { "status", cmd_status, "one page: daemon, processes, losses, verdict", NULL },
	[PS] = { "ps", cmd_ps, "processes that use NCCL", NULL },
	[COMMS] = { "comms", cmd_comms, "communicators and their ranks on this node", NULL },
	[RANKS] = { "ranks", cmd_ranks, "who makes whom wait, the worst first", NULL },
	[OPS] = { "ops", cmd_ops, "how fast each operation and size ran", NULL },
	[PEERS] = { "peers", cmd_peers, "network links, the worst first", NULL },
	[INFLIGHT] = { "inflight", cmd_inflight, "what has begun and not ended, oldest first", NULL },
	[TAIL] = { "tail", cmd_tail, "one line per operation as it ends", NULL },
	[DMON] = { "dmon", cmd_dmon, "one line per GPU per sample", NULL },
	[TOP] = { "top", cmd_top, "live view", NULL },
	[DIAGNOSE] = { "diagnose", cmd_diagnose, "what is wrong, what says so, what to do next", NULL },
	[CHECK] = { "check", cmd_check, "one line for a monitoring system", NULL },
	[EXPLAIN] = { "explain", cmd_explain, "what a word that is said means", "WORD" },
	[EXEMPLARS] = { "exemplars", cmd_exemplars, "operations slower than ever, and around them", "ID" },
	[DOCTOR] = { "doctor", cmd_doctor, "does the data flow, and what is wrong if not", NULL },
	[COMPLETION] = { "completion", cmd_completion, "what makes a shell complete words",
			 "bash|zsh|fish" },
};

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}
