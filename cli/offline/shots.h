/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OFFLINE_SHOTS_H
#define CLI_OFFLINE_SHOTS_H

/*
 * Snapshots of one node or many, read from files: of each node the newest counts, but
 * samples are taken from all.  Only what is judged is kept: ten thousand fit.
 */

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/common/cli.h"
#include "judge/whom.h"
#include "rows/read.h"
#include "util/list.h"

#define SHOTS_UNKNOWN	((1u << 26) - 1)

/*
 * One rank's time in one operation: most of what is kept, hence packed.  What has no room in its
 * bits is the most that has.
 */
struct shots_sample {
	uint64_t seq : 38, rank : 20, size_class : 6;
	uint64_t inside_ns : 38;
	uint64_t before_us : 26;	/* time in other communicators; SHOTS_UNKNOWN */
};

/* A rank's first and last sample that tells when it was done, on its node's clock. */
struct shots_span {
	int32_t rank;
	uint64_t from_seq, from_ns, to_seq, to_ns;
};

/* One function on a communicator. */
struct shots_series {
	struct shots_series *next;	/* the same communicator's next one; NULL: the last */
	const char *func;
	LIST(struct shots_sample) samples;
	LIST(struct shots_span) spans;	/* ordered by rank once shots_settle() was called */
};

/* A rank of a communicator, and the node whose file tells of it. */
struct shots_rank {
	const struct local_rank_read *row;
	const struct shots_node *node;
	const char *comm_name;		/* there; NULL: none */
};

/* A communicator of whatever nodes: those with one id and size are one. */
struct shots_comm {
	uint64_t id;
	int32_t nranks;
	const char *name;		/* NULL: none */
	struct shots_series *series;
	LIST(struct shots_rank) ranks;	/* ordered by rank once shots_settle() was called */
};

/* A file's moment. */
struct shots_clock {
	uint64_t written_ns;	/* time since 1970; 0: it does not say */
	uint64_t mono_ns;	/* the same moment on its node's own clock; UNKNOWN_U64 */
};

/* The newest snapshot of a node. */
struct shots_node {
	const char *host;
	const char *written_at;		/* "": it does not say */
	struct shots_clock clock;
	struct snapshot_read rows;
	json_t *findings;		/* an array; NULL: it has none */
	char *text;			/* the file, for shots_json(); NULL: it is not kept */
	int64_t moved_ns;		/* to be added to its times where they are shown */
	bool clashes;			/* another daemon, too, has said that it is this node */
};

struct shots {
	/* The beginning of a time: snapshots later than that are left out; NULL: none is. */
	const char *until;
	/* The beginning of a time: snapshots of other times are left out; NULL: none is. */
	const char *at;
	/* Gets each file that is not; NULL: nobody does.  Its text is there. */
	void (*each)(void *arg, const char *path, const struct shots_node *node);
	void *each_arg;
	/* Gets each that is the newest of its node so far, and may shorten it; NULL: nobody. */
	void (*newest)(void *arg, struct shots_node *node, bool is_first);
	void *newest_arg;
	bool keeps_text;	/* the newest file's, for shots_json() */
	bool wants_samples;
	LIST(struct shots_node *) nodes;	/* ordered by host once shots_settle() was called */
	LIST(struct shots_comm *) comms;
	json_t *silent;		/* nodes that were asked and have none, and why; NULL: none is */
	size_t files, refused, later;
	size_t denied;		/* refused ones that we may not read */
	void *texts, *nodes_by_host, *comms_by_id;	/* trees of tsearch(3) */
	pthread_mutex_t lock;	/* on all this, while files are read */
};

/*
 * Add files, or all *.json and *.json.zst of directories, as many at a time as there are CPUs.
 * What is none is told on stderr.
 */
void shots_add(struct shots *s, const char *const *paths, size_t n);
/* Add what a node that was asked by that name answered; text NULL: nothing, and `why`. */
void shots_add_answer(struct shots *s, const char *name, const char *text, const char *why);
/* Tells on stderr, behind `option`, why there is no snapshot; returns the exit code for it. */
enum cli_exit shots_tell_none(const struct shots *s, const char *option);
void shots_init(struct shots *s);
void shots_deinit(struct shots *s);

/* Join the ranks of all nodes; all is ordered then, and samples are there once.  Again: nothing. */
void shots_settle(struct shots *s);

/* One string for all that are equal; it lives as long as `s`. */
const char *shots_text(struct shots *s, const char *text);
/* The same in a tree of tsearch(3), which tdestroy(tree, free) frees. */
const char *shots_text_in(void **texts, const char *text);

/*
 * The bytes of a regular file, a zero behind them; NULL: there are none, or more than `most`: *why
 * tells.  Nothing else is waited for, as a named pipe.
 */
char *shots_read_file(int dir, const char *path, size_t most, size_t *bytes, const char **why);

/* NULL: there is none. */
const struct shots_node *shots_node(const struct shots *s, const char *host);
struct shots_comm *shots_comm(const struct shots *s, uint64_t id, int32_t nranks);
struct shots_comm *shots_comm_add(struct shots *s, uint64_t id, int32_t nranks);
const struct shots_rank *shots_rank(const struct shots_comm *comm, int64_t rank);
const struct shots_span *shots_span(const struct shots_series *series, int64_t rank);

/* A part of a node's file, with its times moved; a new value, or NULL: it has none. */
json_t *shots_json(const struct shots_node *node, const struct scan_text *part);

/* A time of the node's own clock, as all files have it; 0: not told. */
uint64_t shots_clock_at(const struct shots_clock *clock, uint64_t mono_ns);

/* The one that a row of a finding, with members rank, world_rank, pid and so on, is about. */
struct whom shots_whom(const json_t *row, const char *host);

#endif
