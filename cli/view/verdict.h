/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_VIEW_VERDICT_H
#define CLI_VIEW_VERDICT_H

/*
 * The faults in words: who is at fault as far as this node can tell, what says so, and where
 * to look next.
 */

#include "cli/table/frame.h"
#include "cli/view/view.h"

/*
 * Causes before effects: what died, what hangs and for whom, who comes last; then what
 * is well.  At least one line; as many as the texts take, broken between words.
 */
void verdicts_put(struct frame *frame, const struct view *view);

/* Puts only the ranks that come last without a finding yet: from all_comms and findings alone. */
void verdicts_put_late(struct frame *frame, const struct view *view);

#endif
