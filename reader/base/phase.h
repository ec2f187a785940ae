/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_BASE_PHASE_H
#define READER_BASE_PHASE_H

/*
 * The phase of a process, a word that people give it from outside: "train", "eval".  An
 * operation is of the phase in which it was posted.
 */

#include "reader/base/model.h"

#define PHASE_BYTES	32	/* size of a name, with its end */

/* Letters, digits and ._:/+- of ASCII, one to 31, and not "-" alone. */
bool phase_is_sound(const char *name);

/* Sets the phase from now on; NULL: none.  The same name again changes nothing. */
void phase_set(struct process *p, name_t name, uint64_t now_ns);

/*
 * The phase at a moment of CLOCK_MONOTONIC; 0: not known, that is now.  One change is
 * remembered: a moment before the change before it counts as after that one.  NULL: none.
 */
name_t phase_at(const struct process *p, uint64_t mono_ns);

#endif
