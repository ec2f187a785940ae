/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_RECORDING_H
#define TESTS_SIM_RECORDING_H

/*
 * A recorded run in memory: the calls in their order, and who is meant by their
 * handles.  Two kinds of files hold one: what libnccl-profiler-record.so writes
 * (record/format.h), and JSON lines, one per profiled event (written when it
 * stopped), state, and init or finalize of a context.
 */

#include <stdint.h>
#include <stdio.h>

#include "nccl/profiler.h"

struct recording_context {
	uint64_t comm_id;
	const char *name;
	int nnodes, rank, nranks;
};

struct recording_event {
	struct nccl_descr_v7 descr;	/* parentObj and parentGroup: only what is nobody's here */
	uint64_t comm_hash, traffic_bytes;	/* versions 1 to 3 */
	int parent, group;		/* events; -1: what the descriptor has */
	int context;			/* -1: it was another process's */
	uint64_t foreign_context;
};

enum recording_verb { RECORDING_INIT, RECORDING_START, RECORDING_STATE, RECORDING_STOP,
		      RECORDING_FINALIZE };

struct recording_call {
	int64_t at_ns;			/* since the first call */
	enum recording_verb verb;
	int thread;			/* 0 .. nthreads - 1 */
	int event;			/* start, state, stop; -1: of no event that began here */
	int context;			/* init, finalize, start; -1 as above */
	uint64_t foreign;		/* the handle then, which may be NULL */
	int state;
	union nccl_args_v4 args;
	int steps;			/* versions 1 to 3 */
	bool has_args;
};

struct recording {
	struct recording_context *context;
	struct recording_event *event;
	struct recording_call *call;	/* in their order */
	int ncontexts, nevents, ncalls, nthreads;
	int api;			/* version of NCCL's interface */
	int32_t pid;			/* in descriptors; 0: in none */
	uint64_t lost;			/* calls that are not in it */
	struct recording_names *names;	/* equal names are one pointer, as in NCCL */
};

/*
 * Read a recording.  Lines and records of other kinds are passed over.  0, or a
 * negative errno with one line of reason in err.
 */
int recording_load(struct recording **recp, const char *path, char *err, unsigned int err_size);
void recording_free(struct recording *rec);

/* The two kinds of files, from where `f` stands; `path` is for the reason. */
int recording_jsonl(struct recording **recp, FILE *f, const char *path, char *err,
		    unsigned int err_size);
int recording_binary(struct recording **recp, FILE *f, const char *path, char *err,
		     unsigned int err_size);

/* An empty one; NULL: out of memory. */
struct recording *recording_new(void);

/* The one pointer for this text of `bytes`, or up to a NUL; NULL: out of memory. */
const char *recording_intern(struct recording_names *names, const char *text, size_t bytes);

/* One line per call: when, which thread, what. */
void recording_print(const struct recording *rec, FILE *to);

#endif
