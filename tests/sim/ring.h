/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_RING_H
#define TESTS_SIM_RING_H

/*
 * What a GPU writes for KernelCh: on each channel it counts the works that it
 * begins and ends and leaves a stamp in slot count % 64.  The host looks for the
 * work that its own count says, and takes the stamp of whatever work it finds:
 * that of an earlier one when it counts less than the GPU, that of a later one
 * when it comes more than 64 works late.
 *
 * Belongs to one thread, but for ring_note_mask() and ring_note_launch().  It walks a plan of
 * its own as far as it is asked.
 */

#include <stdbool.h>

#include "tests/sim/plan.h"

#define RING_SLOTS	64
#define RING_CHANNELS	64

struct ring;

/* For this rank of a communicator; 0 or -ENOMEM. */
int ring_new(struct ring **ringp, const struct scenario *scn, const struct sim_comm *comm,
	     int rank);
void ring_free(struct ring *ring);	/* NULL is fine */

/*
 * When the slot of work `count` (from 1) of a channel first holds that work or a
 * later one; PLAN_NEVER if it never does.  `end`: as of the works' ends, else of
 * their begins.  A work that was launched by `posted` is known.
 */
int64_t ring_ready(struct ring *ring, int channel, uint64_t count, bool end, int64_t posted);

/* Whether KernelCh was asked for, as the call at `enqueued` and later ones have read it. */
void ring_note_mask(struct ring *ring, int64_t enqueued, bool watched);

/*
 * A kernel was launched so much later than the model says, as was or will be no earlier one: it
 * and later ones run later by as much.  PLAN_NEVER: all are when the model says.
 */
void ring_note_launch(struct ring *ring, int64_t launched, int64_t late_ns);

/*
 * The stamp in that slot at a model time, of what was launched really; 0 if nothing was
 * written yet.
 */
uint64_t ring_stamp(struct ring *ring, int channel, uint64_t count, bool end, int64_t at);

#endif
