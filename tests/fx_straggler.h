/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FX_STRAGGLER_H
#define TESTS_FX_STRAGGLER_H

/* Scenes of which it is known who makes the others wait, on a clock of their own. */
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/compare/straggler.h"
#include "tests/fixture.h"

#define US		UINT64_C(1000)
#define MS		UINT64_C(1000000)
#define SECOND		UINT64_C(1000000000)
#define TRANSFER	(2 * MS)
#define STEP		(100 * MS)	/* from one operation to the next: 600 in a window */
#define CASES		32

#define PROCESSES	64
#define COMMS		12000	/* of a process: the highest number, and one */

/* One rank's part in an operation. */
struct straggler_part {
	uint64_t process_id;
	pid_t pid;
	uint32_t comm_index;
	int32_t rank;
	uid_t account;
	uint64_t gpu;		/* its own, or another rank's of its process */
	uint64_t start;
	uint64_t inside_ns;
	uint64_t end_ns, end_error_ns;
	uint64_t queued_ns;
};

/* An operation that n of nranks did together. */
struct straggler_op {
	uint64_t comm;
	name_t func;
	uint64_t kind;
	uint64_t seq;
	int32_t nranks;
	uint32_t n;
	struct straggler_part part[OP_RANKS];
};

static struct straggler *straggler;
static struct process *processes[PROCESSES];	/* by their ids */
static size_t nprocesses;
static struct straggler_case cases[CASES];
static uint32_t ncases, nsuspected;
static uint64_t now_ns;

static inline void setup(void)
{
	now_ns = 1000 * SECOND;
	ck_assert_int_eq(straggler_new(&straggler, NULL), 0);
	straggler_turn(straggler, now_ns);
}

static inline void teardown(void)
{
	straggler_free(straggler);
	while (nprocesses) {
		free(processes[--nprocesses]->comms);
		free(processes[nprocesses]);
	}
}

static inline struct process *process_of(uint64_t id)
{
	size_t at = 0;

	while (at < nprocesses && processes[at]->id < id)
		at++;
	if (at < nprocesses && processes[at]->id == id)
		return processes[at];
	ck_assert_uint_lt(nprocesses, PROCESSES);
	memmove(&processes[at + 1], &processes[at], (nprocesses++ - at) * sizeof(processes[0]));
	processes[at] = calloc(1, sizeof(*processes[at]));
	processes[at]->id = id;
	processes[at]->ncomms = COMMS;
	processes[at]->comms = calloc(COMMS, sizeof(struct comm));
	return processes[at];
}

/* As its rank did it; its process tells the GPU. */
static inline struct op op_of_part(const struct straggler_op *op, const struct straggler_part *part)
{
	struct comm *comm;

	ck_assert_uint_lt(part->comm_index, COMMS);
	comm = &process_of(part->process_id)->comms[part->comm_index];
	comm->ready = comm->has_gpu = true;
	memcpy(comm->gpu_uuid, &part->gpu, sizeof(part->gpu));
	return (struct op){
		.process_id = part->process_id, .pid = part->pid, .account = part->account,
		.comm_index = part->comm_index, .has_comm_id = true, .comm_id = op->comm,
		.rank = part->rank, .nranks = op->nranks, .func = op->func, .seq = op->seq,
		.channels = (uint32_t)op->kind, .complete = true, .source = TIMING_KERNEL_GPU,
		.exec_ns = part->inside_ns, .gpu_start_ns = part->start,
		.gpu_stop_mono_ns = part->end_ns, .gpu_clock_error_ns = part->end_error_ns,
		.queue_ns = part->queued_ns,
	};
}

static inline void straggler_add(const struct straggler_op *op)
{
	const struct op *at[OP_RANKS];
	struct op ops[OP_RANKS];

	for (uint32_t i = 0; i < op->n; i++) {
		ops[i] = op_of_part(op, &op->part[i]);
		at[i] = &ops[i];
	}
	straggler_see(straggler, at, op->n, processes, nprocesses, now_ns);
}

static inline void take_case(const struct straggler_case *c, void *arg)
{
	(void)arg;
	nsuspected += c->said.suspected_window_ns > 0;
	if (c->said.suspected_window_ns)
		return;
	ck_assert_uint_lt(ncases, CASES);
	cases[ncases++] = *c;
}

static inline uint32_t look(void)
{
	ncases = nsuspected = 0;
	straggler_visit(straggler, take_case, NULL);
	return ncases;
}

/*
 * n of nranks ranks, the first of which is `first`; late[i] is how much later rank
 * first + i comes than this one's start.  All leave together when the last one has
 * come, and the transfer is over.
 */
static inline struct straggler_op op_of(uint64_t comm, int32_t nranks, uint32_t n,
					const uint64_t *late)
{
	struct straggler_op op = { .comm = comm, .func = "AllReduce", .nranks = nranks, .n = n,
				   .seq = UNKNOWN_U64 };
	uint64_t last = 0;

	for (uint32_t i = 0; i < n; i++)
		last = late[i] > last ? late[i] : last;
	for (uint32_t i = 0; i < n; i++)
		op.part[i] = (struct straggler_part){
			.process_id = i + 1, .pid = (pid_t)(100 + i), .comm_index = (uint32_t)comm,
			.rank = (int32_t)i, .gpu = 0xa000 + i, .start = now_ns + late[i],
			.inside_ns = last - late[i] + TRANSFER, .queued_ns = UNKNOWN_U64,
		};
	return op;
}

static inline void pass(uint64_t ns)
{
	uint64_t second = now_ns / SECOND;

	now_ns += ns;
	if (now_ns / SECOND != second)
		straggler_turn(straggler, now_ns);
}

static inline uint64_t noise(void)
{
	return fx_random() % (300 * US);
}

/* Operations of four ranks for so many windows; every `every`th finds `who` late. */
static inline void work(uint32_t windows, uint32_t every, uint32_t who, uint64_t late_ns)
{
	uint64_t end = now_ns + windows * 60 * SECOND;

	for (uint32_t k = 0; now_ns < end; k++) {
		uint64_t late[4] = { noise(), noise(), noise(), noise() };
		struct straggler_op op;

		late[who] += every && k % every == 0 ? late_ns : 0;
		op = op_of(1, 4, 4, late);
		straggler_add(&op);
		pass(STEP);
	}
}

#endif
