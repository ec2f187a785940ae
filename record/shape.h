/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECORD_SHAPE_H
#define RECORD_SHAPE_H

/* The bytes of a descriptor that NCCL sets, and those of them that point to strings. */

#include "nccl/profiler.h"

#define SHAPE_STRINGS	5	/* strings of one descriptor, at most */

struct shape {
	uint8_t bytes;			/* head and union member */
	uint8_t string[SHAPE_STRINGS];	/* offset of a string's pointer; 0: no more */
};

/* The shape of an event type in a version of the interface; unknown: the head alone. */
const struct shape *shape_of(int version, uint64_t type);

/* Whether that version has this event type. */
static inline bool shape_knows(int version, uint64_t type)
{
	static const uint16_t events[] = { 0, NCCL_EVENTS_V1, NCCL_EVENTS_V2, NCCL_EVENTS_V3,
					   NCCL_EVENTS_V4, NCCL_EVENTS_V5, NCCL_EVENTS_V6,
					   NCCL_EVENTS_V7 };

	return type && !(type & (type - 1)) && version >= 1 &&
	       version <= NCCL_PROFILER_VERSIONS && (events[version] & type);
}

/* A descriptor's type, in the width that its version has. */
static inline uint64_t shape_type(int version, const void *descr)
{
	return version < 5 ? *(const uint8_t *)descr : *(const uint64_t *)descr;
}

#endif
