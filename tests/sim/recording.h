/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_RECORDING_H
#define TESTS_SIM_RECORDING_H

/*
 * A recorded run: JSON lines, one per profiled event (written when it stopped),
 * state, and init or finalize of a context.  Handles are addresses out of a
 * pool: an event is an address at a time.
 */

#include <stdint.h>

#include "plugin/nccl_profiler.h"

struct recording_context {
	uint64_t comm_id;
	const char *name;
	int rank, nranks;
};

struct recording_event {
	struct nccl_descr_v6 descr;	/* parentObj and parentGroup are not set */
	int parent, group;		/* events; -1: none */
	int context;
};

enum recording_verb { RECORDING_INIT, RECORDING_START, RECORDING_STATE, RECORDING_STOP,
		      RECORDING_FINALIZE };

struct recording_call {
	int64_t at_ns;			/* since the first call */
	enum recording_verb verb;
	int thread;			/* 0 .. nthreads - 1 */
	int event;			/* start, state, stop */
	int context;			/* init, finalize, start */
	int state;
	union nccl_args_v4 args;
	bool has_args;
};

struct recording {
	struct recording_context *context;
	struct recording_event *event;
	struct recording_call *call;	/* in the order of their times */
	int ncontexts, nevents, ncalls, nthreads;
	struct recording_names *names;	/* equal names are one pointer, as in NCCL */
};

/*
 * Read a recording.  Lines of other kinds are passed over.  0, or a negative
 * errno with one line of reason in err.
 */
int recording_load(struct recording **recp, const char *path, char *err, unsigned int err_size);
void recording_free(struct recording *rec);

#endif
