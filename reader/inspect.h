/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_INSPECT_H
#define READER_INSPECT_H

/* Functions for the programs of this tree, beyond the public header. */

#include "ncclinsp/ncclinsp.h"
#include "reader/join/inflight.h"
#include "reader/join/reconstruct.h"

/* Operations and records as the stages hand them on, beside what the public functions get. */
struct inspect_hooks {
	void (*op)(const struct op *op, uint64_t now_ns, void *arg);
	void (*event)(const struct process *p, const struct event *event, void *arg);
	void *arg;
};

void inspect_hook(struct ncclinsp *reader, const struct inspect_hooks *hooks);

const struct process *inspect_process(const struct ncclinsp *reader);

/* Operations and transfers in flight, added to `rows` and sorted.  0 or a negative errno. */
int inspect_inflight(struct ncclinsp *reader, struct inflights *rows);

#endif
