/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_LEFT_OUT_H
#define CLI_LEFT_OUT_H

/*
 * Names in words what bounds have left out of all that is shown: bounds of the daemon's, and
 * calls of NCCL's that plugins do not know.  Records that were lost are not among these.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define LEFT_OUT_BYTES 256

/*
 * The next one from *i on (from 0), or false: that was all.  `status` is the answer of
 * /v1/status; `processes` that of /v1/processes, or NULL.
 */
bool left_out_next(const json_t *status, const json_t *processes, size_t *i,
		   char text[LEFT_OUT_BYTES]);

#endif
