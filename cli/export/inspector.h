/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_EXPORT_INSPECTOR_H
#define CLI_EXPORT_INSPECTOR_H

/*
 * An operation as NVIDIA's NCCL Inspector writes it: one JSON object a line, format v4.2,
 * for scripts that read its files.  ncclinsp-export(1) says what its fields are here.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum inspector_outcome {
	INSPECTOR_WRITTEN,
	INSPECTOR_UNTIMED,	/* nobody knows how long it took: the format has no word for that */
	INSPECTOR_DERIVED,	/* put together from sends and receives, which are told apart */
};

/* Facts that the operation itself does not tell. */
struct inspector_context {
	const char *host;
	json_int_t nnodes;	/* nodes of its communicator; 0: not known */
	json_int_t number;	/* number of a send or receive, which NCCL does not count */
	int64_t real_offset_ns;	/* CLOCK_REALTIME - CLOCK_MONOTONIC */
};

/* `op` is a line of /v1/stream.  *record: a new object where it can be written. */
enum inspector_outcome inspector_record(const json_t *op,
					const struct inspector_context *context, json_t **record);

#endif
