/* SPDX-License-Identifier: Apache-2.0 */
/* The table of subcommands: one row each. */
#include "cli/command.h"

#include <string.h>

#include "util/meant.h"

const struct command commands[COMMANDS] = {
	[STATUS] = { "status", cmd_status,
		.help = "one page: verdict, processes, losses, the daemon" },
	[PS] = { "ps", cmd_ps, .joint = true, .help = "processes that use NCCL" },
	[COMMS] = { "comms", cmd_comms, .joint = true,
		.help = "communicators and their ranks on this node" },
	[RANKS] = { "ranks", cmd_ranks, .joint = true,
		.help = "who waits for which rank, the worst first", .page = "ncclinsp-ranks" },
	[OPS] = { "ops", cmd_ops, .joint = true, .help = "speed of each operation and size",
		.page = "ncclinsp-ops" },
	[PEERS] = { "peers", cmd_peers, .joint = true, .help = "network links, the worst first",
		.page = "ncclinsp-peers" },
	[INFLIGHT] = { "inflight", cmd_inflight, .joint = true,
		.help = "operations that have not ended, the oldest first" },
	[TAIL] = { "tail", cmd_tail, .help = "one line per operation as it ends",
		.page = "ncclinsp-ops" },
	[DMON] = { "dmon", cmd_dmon, .help = "one line per GPU per sample",
		.page = "ncclinsp-ranks" },
	[TOP] = { "top", cmd_top, .joint = true, .help = "live view",
		.page = "ncclinsp-top" },
	[DIAGNOSE] = { "diagnose", cmd_diagnose, .joint = true,
		.help = "what is wrong, the evidence, what to do next",
		.page = "ncclinsp-diagnose" },
	[CHECK] = { "check", cmd_check, .joint = true, .help = "one line for a monitoring system",
		.page = "ncclinsp-diagnose" },
	[EXPLAIN] = { "explain", cmd_explain,
		.help = "look up a term: a header, a field, a verdict", .argument = "WORD",
		.page = "ncclinsp-diagnose" },
	[EXEMPLARS] = { "exemplars", cmd_exemplars,
		.help = "operations slower than ever before, with their surroundings",
		.argument = "ID", .page = "ncclinsp-diagnose" },
	[DOCTOR] = { "doctor", cmd_doctor,
		.help = "test the set-up, and name what is wrong with it",
		.page = "ncclinsp-doctor" },
	[CONFIG] = { "config", cmd_config,
		.help = "settings of the daemon or of a process, and where each comes from",
		.page = "ncclinsp-doctor" },
	[COMPLETION] = { "completion", cmd_completion,
		.help = "script for the shell's word completion", .argument = "bash|zsh|fish" },
	[LEVEL] = { "level", cmd_level,
		.help = "show how much is recorded, or change it",
		.argument = "node|PID", .second = "off|ops|kernel|net|trace|detail|default",
		.page = "ncclinsp-level" },
	[MARK] = { "mark", cmd_mark,
		.help = "show or set the phase that a job is in",
		.argument = "node|PID", .second = "PHASE" },
	[OVERHEAD] = { "overhead", cmd_overhead,
		.help = "what ncclinsp costs the jobs and the node",
		.page = "ncclinsp-level" },
	[SNAPSHOT] = { "snapshot", cmd_snapshot,
		.help = "write everything the daemon knows to a file now",
		.page = "ncclinsp-report" },
	[REPORT] = { "report", cmd_report, .joint = true,
		.help = "judge snapshots of many nodes together",
		.argument = "PATH", .many = true,
		.page = "ncclinsp-report" },
	[DIFF] = { "diff", cmd_diff,
		.help = "what differs between two runs, days or nodes, beyond noise",
		.argument = "PATH", .second = "PATH", .page = "ncclinsp-diff" },
	[REPLAY] = { "replay", cmd_replay,
		.help = "show snapshots one after another, or run a command on each",
		.argument = "PATH", .second = "COMMAND", .page = "ncclinsp-report" },
	[RUN] = { "run", cmd_run,
		.help = "run a job with the plugin, and say at its end who was late",
		.argument = "COMMAND", .many = true, .starts = true, .page = "ncclinsp-run" },
	[ATTACH] = { "attach", cmd_attach,
		.help = "count calls in processes that run without the plugin",
		.argument = "PID[,PID]", .page = "ncclinsp-attach" },
	[EXPORT] = { "export", cmd_export,
		.help = "write operations as they end to files for other tools",
		.page = "ncclinsp-export" },
	[TRACE] = { "trace", cmd_trace,
		.help = "record every event for a while, for Perfetto's UI or as OTF2",
		.argument = "PATH", .page = "ncclinsp-trace" },
	[OVERLAP] = { "overlap", cmd_overlap,
		.help = "how much of NCCL's time computation hides, by a profiler's traces",
		.argument = "PATH", .many = true, .page = "ncclinsp-overlap" },
	[DIAL_STDIO] = { "dial-stdio", cmd_dial_stdio,
		.help = "connect stdin and stdout with the daemon; -H runs it" },
	[WATCH] = { "watch", NULL, .help = "repeat a command, like option -w",
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

int command_reject(const char *name)
{
	struct meant meant = { .wanted = name };

	for (size_t i = 0; i < COMMANDS; i++)
		meant_offer(&meant, commands[i].name);
	if (meant.best)
		return cli_reject("no command '%s'; is it %s?", name, meant.best);
	return cli_reject("no command '%s'", name);
}
