/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_CONFIG_CONFIG_H
#define NCCLINSPD_CONFIG_CONFIG_H

/*
 * Options, environment, file and defaults, in this order of precedence: root's daemon
 * serves the node, a user's the user.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ncclinspd/metrics/tcp.h"
#include "ncclinspd/otlp/otlp.h"
#include "util/log.h"

#define CONFIG_ROWS	64	/* the most rows that the table of options may have */

/* The source that a value comes from, and the API's word for it. */
#define CONFIG_SOURCES(X)			\
	X(DEFAULT,     "default")		\
	X(FILE,        "file")			\
	X(ENVIRONMENT, "environment")		\
	X(OPTION,      "option")

enum config_source {
#define X(NAME, text) CONFIG_FROM_##NAME,
	CONFIG_SOURCES(X)
#undef X
};

struct config_origin {
	enum config_source source;
	unsigned line;		/* the line of the file; 0: not from there */
	bool pending;		/* read again, it said otherwise: that needs a restart */
};

enum config_question {
	CONFIG_NONE,		/* none: it is to run */
	CONFIG_CHECK,
	CONFIG_PRINT,
	CONFIG_VERSION,
	CONFIG_HELP,
};

struct config {
	char file[PATH_MAX];	/* "": there is none */
	bool file_named;	/* on the command line: it must be there */
	bool file_read;
	enum config_question question;
	char socket[PATH_MAX];
	char shm_dir[PATH_MAX];
	char state_dir[PATH_MAX];
	char control[PATH_MAX];	/* path of the control file */
	char while_locked[PATH_MAX];	/* end when nobody holds a lock on it; "": go on */
	char node_name[HOST_NAME_MAX + 1];	/* the name that others are told */
	bool foreground;
	bool everybody;		/* read all users' segments */
	bool containers;	/* look also in shared memory that containers have for themselves */
	bool ras;		/* NCCL's RAS is asked about hangs */
	bool auto_detail;	/* findings have every operation timed for a while */
	char kernel_log[PATH_MAX];	/* "": it is not read */
	bool gpu_sensors;	/* NVIDIA's library is asked about GPUs */
	bool nics;		/* network interfaces are read */
	bool auto_thrift;	/* callbacks over the budget lower the level */
	char raise_hosts[1000];	/* other nodes that findings have timed as well; "": none */
	char raise_user[64];	/* the user by whom other nodes ask for that; "": nobody */
	uid_t raiser;		/* the id of that user; 0: nobody */
	uint32_t kernel_budget_ppm;	/* share of wall time; 0: the default */
	char kernels[24];	/* when they are timed in jobs to come; "job": as each says */
	uint32_t kernel_cost_ns;	/* per group of operations; 0: estimated */
	enum log_level log_level;
	bool metrics_peers;	/* series of each link */
	bool metrics_inspector;	/* series as NCCL Inspector has them */
	char metrics_listen[TCP_TEXT_BYTES];	/* "": nowhere */
	char metrics_textfile[PATH_MAX];	/* "": none */
	char on_finding[108];	/* path of a Unix socket; "": nobody is told */
	char probe[108];	/* path of ncclinsp-probe's socket; "": it is not asked */
	struct otlp_config otlp;
	uint64_t memory_max;
	uint32_t max_segments;
	char metrics_profile[8];
	uint32_t metrics_series;	/* the most there may be; 0: the profile's default */
	uint32_t max_ended;
	uint64_t keep_ns;
	uint64_t straggler_window_ns;	/* 0: the default of straggler */
	uint64_t snapshot_interval_ns;	/* 0: none are written */
	uint64_t stall_min_ns;	/* 0: the default of diagnose */
	uint64_t stall_max_ns;
	uint64_t not_joined_critical_ns;
	struct config_origin origin[CONFIG_ROWS];	/* sources, in the order of config_rows */
};

/* The outcome of reading the file, at the start and when the daemon was told to. */
struct config_reading {
	uint64_t read_ns;	/* CLOCK_MONOTONIC: since then it is in force */
	uint64_t refused_ns;	/* when it was refused after that; 0: it was not */
	char why[512];		/* the first thing that was wrong then */
};

enum config_outcome {
	CONFIG_RUN = 0,
	CONFIG_DONE,		/* it was a question, and it was answered on stdout */
};

/* Takes a line without an end: what is wrong, in words that say what would be right. */
typedef void config_tell_fn(const char *line);

/* Texts of the result live as long as the environment.  -EINVAL: told. */
int config_parse(struct config *config, int argc, char **argv, config_tell_fn *tell);

/*
 * Take over from `next` what may change while the daemon runs, and where the rest comes
 * from; tell of what is different and may not.
 */
void config_take_live(struct config *config, const struct config *next, config_tell_fn *tell);

#endif
