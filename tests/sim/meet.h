/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_MEET_H
#define TESTS_SIM_MEET_H

/*
 * Where the machine is slower than the model, processes that only look at the clock
 * drift apart without end.  Real ranks do not: a collective ends on no GPU before it
 * was launched on all, so a host that waits for its GPU waits for its peers as well.
 * This is that wait, in memory that all processes share.  From it all come equally late.
 */

#include "tests/sim/pace.h"
#include "tests/sim/scenario.h"

struct meet;

/* Before the processes are forked; 0, or -errno.  *meetp stays NULL where nobody meets. */
int meet_new(struct meet **meetp, const struct scenario *scn);
void meet_free(struct meet *meet);

/*
 * The thread of world rank `first` has made `launches`, the last of them late_ns of model time
 * after the model.  Returns when all others have or are through, or when the pace is stopped,
 * with how late the latest of them is.  NULL: at once, as all that follows.
 */
int64_t meet_wait(struct meet *meet, int first, uint64_t launches, int64_t late_ns,
		  const struct pace *pace);

/* This thread launches nothing more; nor does this process. */
void meet_leave(struct meet *meet, int first);
void meet_bury(struct meet *meet, const struct scenario *scn, int process);

#endif
