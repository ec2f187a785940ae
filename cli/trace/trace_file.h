/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRACE_TRACE_FILE_H
#define CLI_TRACE_TRACE_FILE_H

/*
 * A trace from a file: a black box, an exemplar, or the lines of /v1/stream as they came.
 */

#include <stdio.h>

#include "cli/trace/trace.h"

/* Returns 0, -EBADMSG: it is none of these, and *why tells; -ESRCH: there is nothing to draw. */
int trace_read(struct trace *t, FILE *in, const char **why);

/* One object: what several answers of the API have; a black box or an exemplar.  As above. */
int trace_answers(struct trace *t, const json_t *root, const char **why);
int trace_document(struct trace *t, const json_t *root, const char **why);

#endif
