/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FIND_ENDED_H
#define NCCLINSPD_FIND_ENDED_H

/* The processes that have ended and stay listed. */

#include "reader/base/model.h"

/*
 * A process that died is the cause for which others hang: as long as one of the same user's
 * that is in one of its communicators lives, it must not be forgotten, or nobody who comes
 * later learns the cause.  A live one is looked for in the first communicators that `dead`
 * had open.
 */
bool ended_is_awaited(struct process *const *all, uint32_t n, const struct process *dead);

/*
 * The first to go where there is one more than `most`, as an index: of the user with more
 * than half of these, else of all.  At least one has ended.
 */
uint32_t ended_first(struct process *const *all, uint32_t n, uint32_t most);

#endif
