/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRACE_TRACE_STEPS_H
#define CLI_TRACE_TRACE_STEPS_H

/*
 * Network steps until their ProxyOp's record comes, which is after theirs: only that one
 * tells where they are to be drawn.
 */

#include <stdbool.h>
#include <stddef.h>

#include "nci/events.h"

#define TRACE_STEPS	131072	/* 9 MiB; beyond, those of the oldest ProxyOp go */

struct trace_steps;

/* Exits when memory runs out. */
struct trace_steps *trace_steps_new(void);
void trace_steps_free(struct trace_steps *s);

/* Keep a record of one line.  The caller has made room: trace_steps_is_full(). */
void trace_steps_add(struct trace_steps *s, uint32_t source, const struct nci_record *rec);
bool trace_steps_is_full(const struct trace_steps *s);

/*
 * Takes out all steps of that ProxyOp, by their start: none are left of it.  Returns how many;
 * *out holds until the next call.
 */
size_t trace_steps_take(struct trace_steps *s, uint32_t source, uint64_t token,
			const struct nci_record **out);

/* Takes the steps of the ProxyOp that has waited longest: as above; 0: there are none. */
size_t trace_steps_take_oldest(struct trace_steps *s, uint32_t *source, uint64_t *token,
			       const struct nci_record **out);

#endif
