/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_READ_DECODE_H
#define READER_READ_DECODE_H

/*
 * Copied bytes -> checked event.  A record that passes has a type this reader
 * knows and its lines, a token that can exist, names and communicator in range,
 * numbers that are what their field can hold, and times that have happened.
 */

#include "reader/base/model.h"

enum decode_outcome {
	DECODE_OK = 0,
	DECODE_UNKNOWN,		/* a type of a newer plugin: skip it, count it */
	DECODE_REFUSED,		/* a lie or damage: skip it, count it */
};

/*
 * `rec` lies in private memory, all its lines contiguous, and stays the caller's;
 * the event points into it.  No stamp may be later than `latest_ticks`.  A stop
 * that precedes its start by no more than the skew between two CPUs is raised to it.
 */
enum decode_outcome decode_record(const struct process *p, struct nci_record *rec,
				  uint64_t latest_ticks, struct event *event);

/* The function that a checked record is about; NULL: it names none. */
name_t decode_func(const struct process *p, const struct nci_record *rec);

/* decode_record() for a live slot, whose serial and stop mean something else. */
enum decode_outcome decode_slot(const struct process *p, struct nci_slot *slot,
				uint64_t latest_ticks, struct event *event);

#endif
