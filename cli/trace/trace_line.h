/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRACE_TRACE_LINE_H
#define CLI_TRACE_TRACE_LINE_H

/*
 * Reads the records that /v1/stream tells (docs/api.md), and checks them: nothing here is
 * believed to be well-formed.
 */

#include <jansson.h>
#include <stdbool.h>

#include "reader/base/model.h"

#define TRACE_LINES 4096	/* lines of 64 bytes, in one batch */

struct trace_kernel {
	bool known;
	uint64_t start_ns, stop_ns;
	uint64_t error_ns;	/* UINT64_MAX: not known */
};

struct trace_batch {
	uint64_t first, n;
	uint64_t lost;
	struct tick_clock clock;
	const json_t *kernels;
	size_t bytes;
	size_t at;		/* place of the next record */
	size_t kernel;		/* place of the next KernelCh */
	struct nci_line line[TRACE_LINES];
};

/* False: it makes no sense.  `line` is borrowed while the batch is read. */
bool trace_batch_read(struct trace_batch *b, const json_t *line);

/* The next record, which is whole, and unchecked else; NULL: no more of them. */
struct nci_record *trace_batch_next(struct trace_batch *b, struct trace_kernel *kernel);

#endif
