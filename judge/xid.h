/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_XID_H
#define JUDGE_XID_H

/* Errors that NVIDIA's driver reports of a GPU ("Xid"), by their numbers. */

#include <stdbool.h>
#include <stdint.h>

#include "util/phrase.h"
#include "util/unknown.h"

struct xid {
	int32_t number;
	int32_t pid;		/* the process that it names; UNKNOWN_I32 */
	uint64_t at_ns;		/* when it was reported, CLOCK_MONOTONIC */
};

/* The meaning of the number; NULL: not known here. */
name_t xid_text(int32_t number);

/* Only says that something has ended, or follows from another error: it is no cause. */
bool xid_is_consequence(int32_t number);

/* "Xid 79 (GPU has fallen off the bus)" */
void xid_say(struct phrase *text, const struct xid *x);

/* The next step, as sentences without the last full stop; "": none. */
name_t xid_advice(int32_t number);

#endif
