/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_VIEW_VERDICT_H
#define CLI_VIEW_VERDICT_H

/* The faults in words, as the daemon has found or suspects them; and what is well. */

#include "cli/table/frame.h"
#include "cli/view/view.h"

/* The colour that a finding's line has. */
enum line_attr verdict_attr(const json_t *row);

/*
 * Puts findings, then suspicions, or else that there are none; then notes.  At least one
 * line; as many as the texts take, broken between words.
 */
void verdicts_put(struct frame *frame, const struct view *view);

/*
 * Says that nothing is found or suspected, of how many processes, and what may not show, by
 * `answer`, of /v1/findings.
 */
void verdicts_put_calm(struct frame *frame, const json_t *answer, uint64_t now_ns);

#endif
