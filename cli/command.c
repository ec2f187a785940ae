/* SPDX-License-Identifier: Apache-2.0 */
/* The table of subcommands: one row each. */
#include "cli/command.h"

#include <string.h>

const struct command commands[COMMANDS] = {
	[STATUS] = { "status", cmd_status,
		.help = "one page: verdict, processes, losses, daemon" },
	[PS] = { "ps", cmd_ps, .help = "processes that use NCCL" },
	[COMMS] = { "comms", cmd_comms, .help = "communicators and their ranks on this node" },
	[RANKS] = { "ranks", cmd_ranks, .help = "who makes whom wait, the worst first",
		.page = "ncclinsp-ranks" },
	[OPS] = { "ops", cmd_ops, .help = "how fast each operation and size ran",
		.page = "ncclinsp-ops" },
	[PEERS] = { "peers", cmd_peers, .help = "network links, the worst first",
		.page = "ncclinsp-peers" },
	[INFLIGHT] = { "inflight", cmd_inflight,
		.help = "what has begun and not ended, oldest first" },
	[TAIL] = { "tail", cmd_tail, .help = "one line per operation as it ends",
		.page = "ncclinsp-ops" },
	[DMON] = { "dmon", cmd_dmon, .help = "one line per GPU per sample",
		.page = "ncclinsp-ranks" },
	[TOP] = { "top", cmd_top, .help = "live view",
		.page = "ncclinsp-top" },
	[DIAGNOSE] = { "diagnose", cmd_diagnose,
		.help = "what is wrong, what says so, what to do next",
		.page = "ncclinsp-diagnose" },
	[CHECK] = { "check", cmd_check, .help = "one line for a monitoring system",
		.page = "ncclinsp-diagnose" },
	[EXPLAIN] = { "explain", cmd_explain,
		.help = "look up a term: a header, a field, a verdict", .argument = "WORD",
		.page = "ncclinsp-diagnose" },
	[EXEMPLARS] = { "exemplars", cmd_exemplars,
		.help = "operations slower than ever, and around them", .argument = "ID",
		.page = "ncclinsp-diagnose" },
	[DOCTOR] = { "doctor", cmd_doctor,
		.help = "does the data flow, and what is wrong if not",
		.page = "ncclinsp-doctor" },
	[CONFIG] = { "config", cmd_config,
		.help = "the daemon's settings, or a process's variables, and who set them",
		.page = "ncclinsp-doctor" },
	[COMPLETION] = { "completion", cmd_completion,
		.help = "what makes a shell complete words", .argument = "bash|zsh|fish" },
	[LEVEL] = { "level", cmd_level,
		.help = "what is recorded of whom; with a level, change it",
		.argument = "node|PID", .second = "off|ops|kernel|net|trace|default",
		.page = "ncclinsp-level" },
	[MARK] = { "mark", cmd_mark,
		.help = "what processes are at, as people say; with a phase, say it",
		.argument = "node|PID", .second = "PHASE" },
	[OVERHEAD] = { "overhead", cmd_overhead,
		.help = "what watching costs the jobs and the node",
		.page = "ncclinsp-level" },
	[SNAPSHOT] = { "snapshot", cmd_snapshot,
		.help = "have all that is known written to a file now",
		.page = "ncclinsp-report" },
	[REPORT] = { "report", cmd_report,
		.help = "what snapshots of many nodes tell together",
		.argument = "PATH", .many = true,
		.page = "ncclinsp-report" },
	[REPLAY] = { "replay", cmd_replay,
		.help = "what snapshots tell, moment by moment; or a command for each",
		.argument = "PATH", .second = "COMMAND", .page = "ncclinsp-report" },
	[EXPORT] = { "export", cmd_export,
		.help = "operations as they end, as files that other tools read",
		.page = "ncclinsp-export" },
	[TRACE] = { "trace", cmd_trace,
		.help = "what NCCL does, event by event, for Perfetto's UI",
		.argument = "PATH", .page = "ncclinsp-trace" },
	[WATCH] = { "watch", NULL, .help = "repeat a command, as with its option -w",
		.argument = "COMMAND" },
	[HELP] = { "help", cmd_help, .help = "what a command does, and its options",
		.argument = "COMMAND" },
};

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}
