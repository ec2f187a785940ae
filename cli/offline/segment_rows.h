/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OFFLINE_SEGMENT_ROWS_H
#define CLI_OFFLINE_SEGMENT_ROWS_H

/*
 * Members of the API's rows (docs/api.md), out of the library's structs: each function writes
 * those of the open object.  Members that a segment alone cannot tell are null.
 */

#include "ncclinsp/ncclinsp.h"
#include "ncclinspd/sums/aggregate.h"
#include "util/json.h"

/* `real_ns`: CLOCK_REALTIME less CLOCK_MONOTONIC. */
void segment_rows_operation(struct json *j, const struct ncclinsp_operation *op, uint64_t real_ns);
void segment_rows_inflight(struct json *j, const struct ncclinsp_inflight *row,
			   const struct ncclinsp_process *p);
void segment_rows_process(struct json *j, const struct ncclinsp_process *p,
			  const struct ncclinsp_loss *loss, const struct process *inside,
			  uint64_t real_ns);
void segment_rows_comm(struct json *j, const struct ncclinsp_comm *comm);
void segment_rows_local_rank(struct json *j, const struct ncclinsp_comm *comm,
			     const struct ncclinsp_process *p, uint64_t real_ns);
void segment_rows_summary(struct json *j, const struct aggregate_row *row);

#endif
