/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_LEVELS_WISHES_H
#define NCCLINSPD_LEVELS_WISHES_H

/*
 * The wishes of people for what is recorded: of the node, of a job, a communicator or a
 * process, for good or for a while.
 *
 * The newest wish that covers a process holds, level and sampling each on its own;
 * what is wished of the node is the weakest, however new.  Of one target a wish for
 * good takes the place of those before it, one for a while that of others for a while;
 * when it ends, what was for good holds again.  Times are CLOCK_MONOTONIC ns.
 */

#include "reader/base/model.h"

#define WISHES		64
#define WISHES_OF_USER	16	/* users who may not change everything: each; all: half */
#define WISH_KEEP	UINT32_MAX	/* a level, or a sampling, that is not touched */
#define WISH_JOB_BYTES	128
#define WISH_IDLE_NS	(UINT64_C(600) * 1000000000)

/* The texts of a wish's kind in docs/api.md. */
#define WISH_KINDS(X)		\
	X(NODE,    "node")	\
	X(JOB,     "job")	\
	X(COMM,    "comm")	\
	X(PROCESS, "process")

enum wish_kind {
#define X(NAME, text) WISH_##NAME,
	WISH_KINDS(X)
#undef X
	WISH_KIND_END
};

/* A wish as it is kept in a file: fixed widths, no padding. */
struct wish {
	uint32_t kind;		/* enum wish_kind */
	uint32_t level;		/* NCI_LEVEL_OFF to NCI_LEVEL_TRACE, or WISH_KEEP */
	uint32_t sample;	/* NCI_SAMPLE_*, or WISH_KEEP */
	uint32_t uid;		/* the user who wishes it */
	uint32_t everybody;	/* 1: all users' processes; 0: those of `uid` */
	uint32_t pid;		/* a process's pid when it was wished */
	uint64_t id;		/* instance of a process, id of a communicator */
	uint64_t serial;	/* newer wishes have greater ones; 0: not in use */
	uint64_t since_ns;
	uint64_t until_ns;	/* end; 0: it is for good */
	uint64_t seen_ns;	/* when it last covered a process that lives */
	char job[WISH_JOB_BYTES];	/* zeros behind the text */
};
_Static_assert(sizeof(struct wish) == 64 + WISH_JOB_BYTES, "kept in a file without padding");

struct wishes {
	uint64_t serial;	/* serial of the newest */
	const struct accounts *accounts;	/* NULL: each uid is one */
	struct wish at[WISHES];
};

/* Is every field one that wishes_put() could have stored? */
bool wish_is_sound(const struct wish *w);

const char *wish_kind_name(enum wish_kind kind);

bool wish_covers(const struct wish *w, const struct process *p);

/*
 * Take a wish; serial, since_ns and seen_ns are set here.  It replaces those of its
 * target that it outlives and that its author may undo.  -ENOSPC: too many already.
 */
int wishes_put(struct wishes *ws, const struct wish *wish, uint64_t now_ns);

/*
 * Forget those of the target of `like` (kind, id, job) that its author may undo: its own
 * ones, and all of them if it may change everything.
 */
void wishes_drop(struct wishes *ws, const struct wish *like);

/*
 * Forget what is over: past its time, of a process that has ended, or of a job or
 * communicator of which none has lived for WISH_IDLE_NS.  True: some were.
 */
bool wishes_tidy(struct wishes *ws, struct process *const *list, size_t n, uint64_t now_ns);

/* The time when the next one ends; UINT64_MAX: none does. */
uint64_t wishes_next_end(const struct wishes *ws, uint64_t now_ns);

/* Has somebody wished a level for the process? */
bool wishes_have_level(const struct wishes *ws, const struct process *p, uint64_t now_ns);

#endif
