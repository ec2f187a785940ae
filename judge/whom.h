/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_WHOM_H
#define JUDGE_WHOM_H

/* The rank that a judgement is about, as people, launchers and tools call it. */

#include <stdint.h>

#include "util/phrase.h"

struct whom {
	int32_t rank;		/* rank in the communicator that the sentence names; UNKNOWN_I32 */
	int32_t world_rank;	/* UNKNOWN_I32: not told */
	int32_t pid;		/* 0: not told */
	const char *command;	/* NULL: not told */
	const char *host;	/* NULL: this one */
	const char *pci_bus_id;	/* NULL or "": not told, and so is gpu_index */
	int32_t gpu_index;	/* UNKNOWN_I32: not told */
};

/* "dp"; "communicator 0x0f3a..." where it has no name; the id is 0 where it has none of its own. */
void whom_add_comm(struct phrase *text, const char *name, uint64_t comm_id);

/*
 * " (global rank 7, pid 4711, node1, GPU 3)", without the first if it is `rank`.  A GPU whose index
 * is not told has its place on the PCI bus instead.
 */
void whom_add(struct phrase *text, const struct whom *w);

/*
 * The same of several, node by node: " (global ranks 5,7, pids 4711,4713, node1, GPUs 1,3; global
 * rank 9, pid 4711, node2, GPU 0)"; as many as have room in a text.
 */
void whom_add_several(struct phrase *text, const struct whom *w, uint32_t n);

/* "pid 99 (stress)", the process that had the CPU of one of its threads; also its own. */
void whom_add_taker(struct phrase *text, const struct whom *w, int32_t taker,
		    const char *command);

#endif
