/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_STALL_H
#define NCCLINSPD_FINDINGS_STALL_H

/*
 * Types and helpers that the files about hangs share.
 *
 *   finding_stall.c  what is in flight for too long, and still so at the next look
 *   stall_quiet.c    jobs that do nothing
 *   stall_evidence.c numbers; the words are judge/hang_text.c's
 */

#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/findings/limits.h"
#include "ncclinspd/findings/pace.h"
#include "ncclinspd/findings/stuck.h"

/* An operation that hangs, or is suspected to, and why. */
struct stall {
	struct hang_case c;
	enum finding_grade grade;	/* found: it is beyond its limit */
	struct limit limit;
	bool explained;			/* another one is its cause, and is told */
	bool far;			/* NCCL's RAS may know the cause, and is asked */
};

/* Fill in verdict, ranks, text and evidence. */
void stall_describe(struct stall *s, struct finding *f);

/* Fill in the communicator and the user it belongs to. */
void stall_about(struct finding *f, const struct hang *h, uint32_t group);

/* The same for the same communicator at each look; odd. */
uint64_t stall_key(const struct hang *h, uint32_t group);

/*
 * The age from which an operation in flight counts as hanging; of `op` is used what
 * limits_of() uses.  And from which one does whose end is not watched.
 */
uint64_t stall_limit_ns(const struct diagnose *dg, const struct op *op);
uint64_t stall_unwatched_limit_ns(const struct diagnose *dg, uint64_t process_id);

/* The same as paces_period_since() and paces_step(). */
struct period_quartiles stall_steps_since(const struct diagnose *dg, uint64_t process_id,
					  uint64_t from_ns);
bool stall_step(const struct diagnose *dg, uint64_t process_id, uint64_t now_ns,
		struct period_step *out);

void stall_look_for_quiet(struct diagnose *dg, struct paces *paces, const struct hang *h);

#endif
