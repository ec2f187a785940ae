/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OFFLINE_SHOTS_H
#define CLI_OFFLINE_SHOTS_H

/*
 * Snapshots of one node or many, read from files: of each node the newest counts, but
 * samples are taken from all.  What is large is kept small: thousands fit.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/common/cli.h"
#include "judge/whom.h"
#include "util/list.h"

/* One rank's time in one operation; the texts are the struct shots'. */
struct shots_sample {
	const char *comm;	/* its id and size: "0x...12/8" */
	const char *func;
	int64_t seq, rank, bytes, inside_ns;
	int64_t before_ns;	/* in operations of other communicators before; -1: not known */
	int64_t done_ns;	/* on its node's clock; 0: not known */
};

struct shots {
	/* The beginning of a time: snapshots later than that are left out; NULL: none is. */
	const char *until;
	/* Gets each file that is not; NULL: nobody does. */
	void (*each)(void *arg, const char *path, const json_t *root);
	void *each_arg;
	/* Gets each that is the newest of its node so far; NULL: nobody does. */
	void (*newest)(void *arg, const char *host, const json_t *root);
	void *newest_arg;
	const char *const *members;	/* members that are kept of a file; NULL behind the last */
	bool wants_samples;
	json_t *nodes;		/* the part needed of the newest snapshot, by host */
	json_t *silent;		/* nodes that were asked and have none, and why; NULL: none is */
	json_t *texts;
	LIST(struct shots_sample) samples;
	size_t files, refused, later;
	size_t denied;		/* refused ones that we may not read */
};

/* Add a file, or all *.json and *.json.zst of a directory.  What is none is told on stderr. */
void shots_add(struct shots *s, const char *path);
/* Add what a node that was asked by that name answered; NULL: nothing, and `why`. */
void shots_add_answer(struct shots *s, const char *name, const json_t *root, const char *why);
/* Tells on stderr, behind `option`, why there is no snapshot; returns the exit code for it. */
enum cli_exit shots_tell_none(const struct shots *s, const char *option);
void shots_deinit(struct shots *s);

/* One string for all that are equal; it lives as long as `s`. */
const char *shots_text(struct shots *s, const char *text);

/* The time when it was written, in seconds since 1970; 0: it does not say. */
double shots_time(const json_t *root);

/* A file's moment. */
struct shots_clock {
	uint64_t written_ns;	/* since 1970; 0: it does not say */
	uint64_t mono_ns;	/* the same moment on its node's own clock; UNKNOWN_U64 */
};

struct shots_clock shots_clock(const json_t *root);

/* A time of the node's own clock, as all files have it; 0: not told. */
uint64_t shots_clock_at(const struct shots_clock *clock, uint64_t mono_ns);

/* A member; UNKNOWN_I32: it has none, or null. */
int32_t shots_i32(const json_t *row, const char *key);

/* The one that a row with members rank, world_rank, pid and so on is about; it has the texts. */
struct whom shots_whom(const json_t *row, const char *host);

/* Ordered by communicator, function, number and rank, each once. */
void shots_sort(struct shots *s);

#endif
