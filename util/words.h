/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_WORDS_H
#define UTIL_WORDS_H

/*
 * The words that the daemon says: the kinds of findings, their verdicts, and those of
 * its answers whose values are one of a few (glossary.c).  The daemon says them, the
 * command line explains them, and ncclinsp-findings(7) is made from the same tables.
 */

#include <stddef.h>

#define VERDICTS(X)		\
	X(RANK_DEAD)		\
	X(NO_ANSWER)		\
	X(STOPPED)		\
	X(NOT_JOINED)		\
	X(ORDER_MISMATCH)	\
	X(COMM_DEADLOCK)	\
	X(METADATA_MISMATCH)	\
	X(CONFIG_MISMATCH)	\
	X(PARTIAL)		\
	X(LINK)			\
	X(NO_ROOM)		\
	X(GPU_STUCK)		\
	X(NOT_RUNNING)		\
	X(INTERNAL)		\
	X(SLOW)			\
	X(OUTSIDE)		\
	X(SILENCED)		\
	X(UNKNOWN)		\
	X(STEADY)		\
	X(INTERMITTENT)		\
	X(ELSEWHERE)		\
	X(SLOWER)		\
	X(CHANNEL)		\
	X(SEND_SIDE)		\
	X(RECEIVE_SIDE)

enum verdict {
#define X(NAME) VERDICT_##NAME,
	VERDICTS(X)
#undef X
	VERDICT_END
};

/* Why a process's kernels are not timed as level, mode and sample say, the strongest first. */
enum reason {
	REASON_OUTSIDE,
	REASON_API,
	REASON_SETTING,
	REASON_ALLGATHERV,
	REASON_GRAPHS,
	REASON_LIBRARIES,
	REASON_SENDERS,
	REASON_OVER,
	REASON_SCARCE,
	REASON_SELF,
	REASON_PAUSE,
	REASON_SETTLING,
	REASON_END
};

struct word {
	const char *name;
	const char *message_id;		/* a kind's, in the journal; NULL: a verdict */
	const char *flight_recorder;	/* its name in PyTorch's Flight Recorder, or NULL */
	const char *ncclx;		/* its name in NCCLX's analyzer, or NULL */
	const char *meaning;
	const char *evidence;
	const char *action;
};

/* Words that are the values of one field; a name may stand in several topics. */
struct topic {
	const char *field;	/* its name in docs/api.md */
	const char *title;
	const struct word *words;
	size_t n;
};

/* Kinds, then verdicts, then all others.  NULL: there is no topic `i`. */
const struct topic *words_topic(size_t i);

/* A kind or a verdict, in whichever case; NULL: there is none of that name. */
const struct word *words_find(const char *name);

const struct word *words_verdict(enum verdict verdict);

/* Its name is what `level_reason` says. */
const struct word *words_reason(enum reason reason);

#endif
