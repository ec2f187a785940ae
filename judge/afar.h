/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_AFAR_H
#define JUDGE_AFAR_H

/*
 * Ranks on other nodes, as NCCL's RAS tells of them: which of them does an operation wait for?
 * A decision from rows of one answer, without a socket or a clock.
 *
 *     a process of theirs gave no answer            they give none: AFAR_SILENT
 *     fewer calls of it are counted than of a rank
 *     here that is in it, or they have left         they have not come: AFAR_ABSENT
 *     neither, and all ranks are told of            AFAR_EVEN
 */

#include <stdbool.h>
#include <stdint.h>

#define AFAR_RANKS	32	/* named of an answer */
#define AFAR_OWN	32	/* ranks of this node that prove whose answer it is */
#define AFAR_HOST	46	/* an address as text */

/* The reason for which nothing is known, or that which is; the word for each in the evidence. */
#define AFAR_STATES(X)				\
	X(NOT_ASKED, "not_asked")		\
	X(NO_SERVICE, "no_service")		\
	X(MUTE,      "no_reply")		\
	X(OLD,       "too_old")			\
	X(FOREIGN,   "another_job")		\
	X(SILENT,    "silent_ranks")		\
	X(ABSENT,    "absent_ranks")		\
	X(EVEN,      "all_in_step")		\
	X(VAGUE,     "nothing_found")

enum afar_state {
#define X(NAME, text) AFAR_##NAME,
	AFAR_STATES(X)
#undef X
	AFAR_END
};

/* A rank of the communicator, as an answer has it. */
struct afar_rank {
	int32_t rank;
	int32_t pid;		/* the pid in its own namespace; UNKNOWN_I32: not told */
	char host[AFAR_HOST];	/* "": not told */
	bool missing;		/* it is not among those that answered as its members */
	bool silent;		/* its process gave no answer */
	bool dead;		/* RAS takes its process for dead */
	uint64_t calls;		/* calls of the function in question; UNKNOWN_U64: not told */
};

/* A rank of this node that is in the operation. */
struct afar_own {
	int32_t rank, pid;
};

/* The outcome of one question; `ranks` only where the state is SILENT or ABSENT. */
struct afar {
	enum afar_state state;
	uint32_t told;		/* ranks that the answer has */
	uint64_t own_calls;	/* the most of a rank here; UNKNOWN_U64: not told */
	uint32_t n, left_out;	/* to blame: named, and beyond the room */
	struct afar_rank ranks[AFAR_RANKS];
};

const char *afar_state_name(enum afar_state state);

/* Ranks are to blame: the operation waits for these. */
static inline bool afar_names(const struct afar *a)
{
	return a->state == AFAR_SILENT || a->state == AFAR_ABSENT;
}

/*
 * Every rank of a communicator of `nranks` at most once, in any order.  AFAR_FOREIGN: no rank of
 * this node is in it with its pid, or a rank is none of that communicator's.
 */
void afar_decide(const struct afar_rank *rows, uint32_t n, int32_t nranks,
		 const struct afar_own *own, uint32_t nown, struct afar *out);

/* The row of a rank that is to blame, or NULL. */
const struct afar_rank *afar_rank_of(const struct afar *a, int32_t rank);

#endif
