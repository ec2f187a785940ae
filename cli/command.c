/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <string.h>

const struct command commands[COMMANDS] = {
	[STATUS] = { "status", cmd_status, "one page: daemon, processes, losses, verdict" },
	[PS] = { "ps", cmd_ps, "processes that use NCCL" },
	[COMMS] = { "comms", cmd_comms, "communicators and their ranks on this node" },
	[RANKS] = { "ranks", cmd_ranks, "who makes whom wait, the worst first" },
	[OPS] = { "ops", cmd_ops, "how fast each operation and size ran" },
	[PEERS] = { "peers", cmd_peers, "network links, the worst first" },
	[INFLIGHT] = { "inflight", cmd_inflight, "what has begun and not ended, oldest first" },
	[TAIL] = { "tail", cmd_tail, "one line per operation as it ends" },
	[DMON] = { "dmon", cmd_dmon, "one line per GPU per sample" },
	[TOP] = { "top", cmd_top, "live view" },
	[DIAGNOSE] = { "diagnose", cmd_diagnose, "what is wrong, what says so, what to do next" },
	[CHECK] = { "check", cmd_check, "one line for a monitoring system" },
	[EXPLAIN] = { "explain", cmd_explain, "what a word that is said means", "WORD" },
	[EXEMPLARS] = { "exemplars", cmd_exemplars, "operations slower than ever, and around them", "ID" },
	[DOCTOR] = { "doctor", cmd_doctor, "does the data flow, and what is wrong if not", NULL },
	[COMPLETION] = { "completion", cmd_completion, "what makes a shell complete words",
			 "bash|zsh|fish" },
	[LEVEL] = { "level", cmd_level, "what is recorded of whom; with a level, change it",
		    "PID", "off|ops|kernel|net|trace|default" },
	[OVERHEAD] = { "overhead", cmd_overhead, "what watching costs the jobs and the node" },
	[SNAPSHOT] = { "snapshot", cmd_snapshot, "have all that is known written to a file now" },
	[REPORT] = { "report", cmd_report, "what snapshots of many nodes tell together",
		     "PATH", .many = true },
};

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}
