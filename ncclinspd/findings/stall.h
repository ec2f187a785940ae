/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_STALL_H
#define NCCLINSPD_FINDINGS_STALL_H

/*
 * Types and helpers that the files about hangs share.
 *
 *   finding_stall.c  what is in flight for too long, and still so at the next look
 *   stall_quiet.c    jobs that do nothing
 *   stall_text.c     words                      stall_evidence.c  numbers
 */

#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/findings/limits.h"
#include "ncclinspd/findings/pace.h"
#include "ncclinspd/findings/stuck.h"

/* An operation that hangs, and why. */
struct stall {
	const struct stuck *view;
	uint32_t group;			/* the group whose operation is beyond its limit */
	struct desync_result result;	/* result.comm: the group with the cause */
	struct limit limit;
	uint64_t age_ns;
};

/* Fill in verdict, ranks, text and evidence. */
void stall_describe(const struct stall *s, struct finding *f);

/* The object of api.md's `evidence`. */
void stall_put_evidence(const struct stall *s, struct json *j);

/* The rank in the communicator with the cause, or NULL: not on this node. */
const struct stuck_rank *stall_rank(const struct stall *s, int32_t rank);

/* Fill in the communicator and the user it belongs to. */
void stall_about(struct finding *f, const struct stuck *v, uint32_t group);

/* The same for the same communicator at each look; odd. */
uint64_t stall_key(const struct stuck *v, uint32_t group);

void stall_look_for_quiet(struct diagnose *dg, struct paces *paces, const struct stuck *v);

#endif
