/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRACE_TRACE_LOOK_H
#define CLI_TRACE_TRACE_LOOK_H

/* The look of NCCL's events in a trace: their thread, name and arguments. */

#include <stdbool.h>

#include "cli/trace/trace_rows.h"
#include "reader/base/model.h"

/* Is it drawn at its own lane?  KernelCh, ProxyOp and its steps are drawn elsewhere. */
bool trace_is_of_lane(uint8_t type);

/* Do others belong to it? */
bool trace_is_head(uint8_t type);

/* Is it of the thread that calls NCCL? */
bool trace_is_of_caller(uint8_t type);

/* UINT64_MAX: it has none. */
uint64_t trace_seq_of(const struct nci_record *rec);

/* Members of the open object; `p` is the process whose record it is. */
void trace_put_args(struct json *j, const struct process *p, const struct nci_record *rec);

/* The time in each state that all steps of a ProxyOp add up to, by NCCL's names. */
void trace_put_sums(struct json *j, const struct nci_ev_proxy_sums *sums, double ns_per_tick);

/* A stay in one state: from `from` to `to`, in ticks since the start. */
struct trace_stay {
	const char *state;
	uint64_t from, to;
};

#define TRACE_STAYS 3

/* Writes where a step was; returns how many places there are. */
int trace_stays(const struct nci_ev_proxy_step *step, struct trace_stay stay[TRACE_STAYS]);

#endif
