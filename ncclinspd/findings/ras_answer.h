/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_RAS_ANSWER_H
#define NCCLINSPD_FINDINGS_RAS_ANSWER_H

/*
 * The answer of NCCL's RAS to STATUS in its form for programs (NCCL 2.28.7 and newer), as it
 * comes: rows of the one communicator in question, in fixed memory for each byte that comes.
 */

#include "judge/afar.h"
#include "util/list.h"

#define RAS_LINE	256	/* longer ones are skipped */
#define RAS_RANKS_MOST	65536	/* ranks of one communicator */

struct ras_answer {
	uint64_t comm_id;	/* the communicator in question, and ... */
	int32_t nranks;		/* ... its ranks */
	const char *func;	/* the function whose calls are compared */
	LIST(struct afar_rank) ranks;
	uint32_t comms;		/* communicators of that id and size */
	bool whole;		/* its end has come */
	bool broken;		/* it has what no answer has; nothing more is read */
	bool inside, missing;	/* the place to which the next line belongs */
	char line[RAS_LINE];
	uint32_t length;	/* length of the line so far; RAS_LINE: it is too long */
};

void ras_answer_init(struct ras_answer *a, uint64_t comm_id, int32_t nranks, const char *func);
void ras_answer_deinit(struct ras_answer *a);

/* The next bytes. */
void ras_answer_take(struct ras_answer *a, const char *bytes, size_t n);

/* False: it is not whole, or not of one such communicator. */
bool ras_answer_is_good(const struct ras_answer *a);

#endif
