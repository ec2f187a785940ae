/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OFFLINE_RUNS_H
#define CLI_OFFLINE_RUNS_H

/*
 * One of two runs that are compared: the figures of its snapshots, one value each, and its
 * settings.  Communicators of two runs have other ids: they are alike by their role, which is
 * their name or, where they have none, their size.
 */

#include "cli/offline/shots.h"

enum run_kind {
	RUN_LINK,		/* ns a byte, of a link that sends, on one channel */
	RUN_OPERATION,		/* ns of one operation on the rank that came last */
	RUN_SUM,		/* median ns of a rank's operations of one algorithm and protocol */
	RUN_RANK,		/* ns that a rank came later to one operation than half of all */
};

struct run_value {
	const char *role, *func;	/* func "": of links */
	const char *algo, *proto;	/* "" unless it is a RUN_SUM */
	const char *host;		/* the one whose newest file tells it; NULL: samples do */
	double value, bound;
	uint64_t at, comm_id;		/* their order in time; of links, the bytes of a transfer */
	int32_t rank, peer;
	enum run_kind kind;
	uint8_t size_class;		/* log2 of the bytes */
	bool second;			/* it is the second run's */
};

enum run_about { RUN_SETTING, RUN_TOPOLOGY, RUN_ALGORITHM };

/* A value that some processes have, or communicators. */
struct run_setting {
	enum run_about about;
	const char *name, *value;
	const char *host;
	uint32_t n;			/* processes or communicators with it */
	bool second;
};

struct run_values {
	LIST(struct run_value);
};

struct run_settings {
	LIST(struct run_setting);
};

/* It must not be moved. */
struct run {
	struct shots shots;
	struct run_values values;
	struct run_settings settings;
	char *path;			/* the files, no time behind it */
	bool second;
	bool lacks_variables;		/* a file's daemon did not tell NCCL's variables */
	uint32_t processes;		/* processes whose variables are told */
};

/*
 * Read "PATH" or "PATH@TIME", the files of one day or another beginning of a time.  CLI_DONE, or
 * the code for what was told on stderr.
 */
enum cli_exit run_read(struct run *run, const char *path, bool second);
void run_deinit(struct run *run);

#endif
