/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_WORDS_H
#define UTIL_WORDS_H

/*
 * The words of findings: their kinds, and the verdicts of those about operations
 * that hang and ranks that are late.  The daemon says them, the command line explains them, and
 * ncclinsp-findings(7) is made from the same table.
 */

#include <stddef.h>

#define VERDICTS(X)		\
	X(RANK_DEAD)		\
	X(NOT_JOINED)		\
	X(ORDER_MISMATCH)	\
	X(COMM_DEADLOCK)	\
	X(METADATA_MISMATCH)	\
	X(CONFIG_MISMATCH)	\
	X(PARTIAL)		\
	X(LINK)			\
	X(GPU_STUCK)		\
	X(NOT_RUNNING)		\
	X(INTERNAL)		\
	X(SLOW)			\
	X(OUTSIDE)		\
	X(UNKNOWN)		\
	X(STEADY)		\
	X(INTERMITTENT)		\
	X(ELSEWHERE)		\
	X(SLOWER)

enum verdict {
#define X(NAME) VERDICT_##NAME,
	VERDICTS(X)
#undef X
	VERDICT_END
};

struct word {
	const char *name;
	const char *message_id;		/* of a kind: in the journal; NULL: a verdict */
	const char *flight_recorder;	/* what PyTorch's Flight Recorder calls it, or NULL */
	const char *ncclx;		/* what NCCLX's analyzer calls it, or NULL */
	const char *meaning;
	const char *evidence;
	const char *action;
};

/* All of them, kinds first. */
const struct word *words_all(size_t *n);

/* In whichever case; NULL: there is no such word. */
const struct word *words_find(const char *name);

const struct word *words_verdict(enum verdict verdict);

#endif
