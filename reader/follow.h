/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_FOLLOW_H
#define READER_FOLLOW_H

/*
 * The order of calls that each reader keeps, the daemon as the library:
 *
 *     ticks_start()                 once
 *     each poll:
 *         ticks_watch()             before anything is read
 *         drain_poll()              whose sink calls reconstruct_event()
 *         follow_settle()           after the last record of the poll
 *     drain_finish(), reconstruct_end()    for a process that has ended
 */

#include <stddef.h>

#include "reader/join/reconstruct.h"
#include "reader/read/drain.h"

/*
 * Settles what only the events in flight in those `n` processes can decide, and has handed on
 * what has waited long enough.
 */
void follow_settle(struct drain *drain, struct reconstruct *rc, struct process *const *list,
		   size_t n, uint64_t now_ns);

#endif
