/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_COMMON_CLI_H
#define CLI_COMMON_CLI_H

/* The command line's content, and the subcommands that act on it. */

#include <stdbool.h>
#include <stdint.h>

#include "cli/base/client.h"
#include "cli/table/line.h"
#include "cli/table/report.h"

/* Promised in ncclinsp(1). */
enum cli_exit {
	CLI_DONE = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_NO_DAEMON = 3,
	CLI_NOTHING = 4,	/* nothing matched, or no process uses NCCL */
	CLI_NO_RIGHT = 5,
	CLI_TIMEOUT = 6,
	CLI_FINDING = 10,	/* diagnose: something is wrong */
	CLI_INTERRUPTED = 130,
};

enum cli_format { CLI_TABLE, CLI_WIDE, CLI_JSON, CLI_JSONL, CLI_CSV, CLI_PROM };

#define CLI_ANY_WIDTH 1000	/* columns of output that is cut nowhere */

#define CLI_LIST 8

/* An option that may be given several times. */
struct cli_list {
	const char *text[CLI_LIST];
	uint32_t count;
};

#define CLI_ANY INT64_MIN	/* a number that was not given */

struct cli {
	/* output */
	int64_t format;		/* enum cli_format */
	bool header;
	int64_t units;		/* enum report_units */
	bool utc;
	const char *fields;	/* a,b or help; NULL: the command's own */
	const char *sort;	/* [-]field; NULL: the command's own order */
	struct cli_list filters;
	bool watch;
	bool batch;		/* write as into a file, also on a terminal */
	bool quiet;		/* nothing but errors and the exit code */
	uint64_t delay_ns;
	int64_t samples;	/* number for -w, top, lines of tail; CLI_ANY: no end */
	struct line_style style;
	bool terminal;		/* stdout is one */
	bool clears;		/* it can be cleared, and is to be */
	int columns;		/* width of the terminal; for a file, more than any table has */
	/* filters; NULL or CLI_ANY: everything */
	const char *comm;
	const char *func;
	int64_t rank;
	int64_t pid;
	const char *job;	/* its id */
	int64_t uid;
	const char *gpu;	/* part of its uuid or bus id */
	int64_t peer;
	const char *direction;	/* send or recv */
	uint64_t older_ns;
	struct cli_list from;	/* files, in place of a daemon */
	const char *segment;	/* a process's segment, in place of a daemon; or NULL */
	const char *at;		/* the moment whose files to take, not the newest ones; or NULL */
	const char *window;
	bool by_rank;
	bool by_channel;
	bool by_queue;
	bool all;		/* include what is over */
	bool readonly;		/* top: without keys that change anything */
	uint64_t for_ns;	/* time for which a level is wanted; 0: for good */
	bool dry_run;		/* say what would be changed, and change nothing */
	int64_t warn, crit;	/* check: findings from which on it says so */
	const char *path;	/* the file that is written; NULL: none was named */
	bool html;		/* report: a page in place of the table */
	const char *flight;	/* report: dumps of PyTorch's Flight Recorder; NULL: none */
	const char *report_dir;	/* run: where to keep what was seen; NULL: nowhere */
	const char *inspector_dir;	/* place for files of NVIDIA's Inspector; NULL: none */
	const char *pids;	/* trace: "4711,4712", only these; NULL: all */
	const char *exemplar;	/* id of the one that is asked for; NULL: none */
	struct cli_list kernels;	/* trace: files of a profiler to draw beside operations */
	const char *sample;	/* all or budget; NULL: as it is */
	const char *argument;	/* the command's one; NULL: none was given */
	const char *second;	/* the one behind `argument`; NULL: none was given */
	char *const *paths;	/* all arguments, of a command that takes any number */
	int npaths;
	const char *command;	/* its name */
	/* the daemon */
	struct client *client;
	struct segment_source *segment_source;	/* its reader; or NULL */
	struct nodes *nodes;	/* other nodes that are asked together; or NULL */
};

/* Say on stderr why the last request failed; the exit code that goes with it. */
int cli_fail(const struct cli *cli, int error);

/* The command whose help is named where a command line is rejected; NULL: none. */
void cli_reject_for(const char *command);

/* Say what is wrong with the command line, and where help is; CLI_USAGE. */
int cli_reject(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The way cells are to be written, as of now. */
struct report_style cli_report_style(const struct cli *cli);

/* CLOCK_MONOTONIC: as the daemon's *_mono_ns, which is on this node. */
uint64_t cli_now_ns(void);

/* CLOCK_REALTIME less CLOCK_MONOTONIC, as of now. */
int64_t cli_real_offset_ns(void);

/* Waits as long as between two samples (-d). */
void cli_pause(const struct cli *cli);

/*
 * Repetition with -w and -n: waits for the delay before each sample but the
 * first; false when there have been enough.
 */
bool cli_wants_sample(const struct cli *cli, int64_t done);

/* Make place for a sample that is text: a terminal is cleared, a file gets a blank line. */
void cli_next_sample(const struct cli *cli, bool first);

/* Each is one subcommand and returns an exit code. */
int cmd_status(struct cli *cli);
int cmd_ps(struct cli *cli);
int cmd_comms(struct cli *cli);
int cmd_ranks(struct cli *cli);
int cmd_dmon(struct cli *cli);
int cmd_ops(struct cli *cli);
int cmd_peers(struct cli *cli);
int cmd_inflight(struct cli *cli);
int cmd_tail(struct cli *cli);
int cmd_top(struct cli *cli);
int cmd_diagnose(struct cli *cli);
int cmd_explain(struct cli *cli);
int cmd_completion(struct cli *cli);
int cmd_doctor(struct cli *cli);
int cmd_config(struct cli *cli);
int cmd_exemplars(struct cli *cli);
int cmd_level(struct cli *cli);
int cmd_mark(struct cli *cli);
int cmd_overhead(struct cli *cli);
int cmd_snapshot(struct cli *cli);
int cmd_report(struct cli *cli);
int cmd_diff(struct cli *cli);
int cmd_help(struct cli *cli);		/* option.c */
int cmd_trace(struct cli *cli);
int cmd_overlap(struct cli *cli);
int cmd_export(struct cli *cli);
int cmd_replay(struct cli *cli);
int cmd_run(struct cli *cli);
int cmd_attach(struct cli *cli);
int cmd_dial_stdio(struct cli *cli);

/* Exits with the codes of monitoring plugins, unlike all others. */
int cmd_check(struct cli *cli);

#endif
