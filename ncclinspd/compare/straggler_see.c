/* SPDX-License-Identifier: Apache-2.0 */
/* Turns struct op into what the statistics need of it. */
#include <string.h>

#include "ncclinspd/compare/straggler_impl.h"
#include "reader/join/ops.h"

static const struct process *find_process(struct process *const *list, size_t count, uint64_t id)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && list[low]->id == id ? list[low] : NULL;
}

/* Is it another rank of the same communicator, so that the process has several GPUs? */
static bool is_sibling(const struct comm *a, const struct comm *b)
{
	return b->ready && a != b && b->has_id && a->id == b->id && a->nranks == b->nranks &&
	       !strcmp(a->name, b->name);
}

/* A number for the GPU; where nobody tells which it is, a process with one rank has one. */
static uint64_t gpu_of(const struct straggler *s, const struct op *op,
		       struct process *const *list, size_t count)
{
	const struct process *p = find_process(list, count, op->process_id);
	const struct comm *comm = p ? process_comm(p, (uint16_t)op->comm_index) : NULL;

	if (!comm)
		return straggler_member_key(s, op->process_id, op->comm_index);
	if (comm->has_gpu)
		return index_hash(s->seed, comm->gpu_uuid, sizeof(comm->gpu_uuid));
	for (uint32_t i = 0; i < p->ncomms; i++)
		if (is_sibling(comm, &p->comms[i]))
			return straggler_member_key(s, op->process_id, op->comm_index);
	return op->process_id;
}

static uint64_t size_class(uint64_t bytes)
{
	return bytes && bytes != UNKNOWN_U64 ? 63 - (uint64_t)__builtin_clzll(bytes) : 0;
}

/* Only like is compared with like. */
static uint64_t kind_of(const struct straggler *s, const struct op *op)
{
	const uint64_t words[] = {
		size_class(op_is_fused(op) ? op->batch_bytes : op->bytes), op->fused,
		(uintptr_t)op->algo, (uintptr_t)op->proto, op->channels,
	};

	return index_hash(s->seed, words, sizeof(words));
}

static bool is_seen(const struct op *op)
{
	const struct op_facts *facts = ops_facts(op->func);

	return facts && facts->joint && op->has_comm_id && op->nranks > 1 && op->complete &&
	       op->source == TIMING_KERNEL_GPU && op->fused != OP_FUSED &&
	       op_inside_ns(op) != UNKNOWN_U64;
}

/* One operation of a batch counts, and stands for all of it. */
static bool counts(const struct op *const *ops, uint32_t n)
{
	bool heads = false;

	for (uint32_t i = 0; i < n; i++) {
		if (!is_seen(ops[i]))
			return false;
		heads = heads || ops[i]->batch_head;
	}
	return heads || !op_is_fused(ops[0]);
}

void straggler_see(struct straggler *s, const struct op *const *ops, uint32_t n,
		   struct process *const *list, size_t count, uint64_t now_ns)
{
	const uint64_t words[] = {
		ops[0]->comm_id, (uint32_t)ops[0]->nranks, (uintptr_t)ops[0]->comm_name,
		ops[0]->uid,
	};
	struct straggler_op op = {
		.comm = index_hash(s->seed, words, sizeof(words)), .func = ops[0]->func,
		.nranks = ops[0]->nranks, .n = n,
	};

	if (!counts(ops, n))
		return;
	op.kind = kind_of(s, ops[0]);
	for (uint32_t i = 0; i < n; i++)
		op.part[i] = (struct straggler_part){
			.process_id = ops[i]->process_id, .pid = ops[i]->pid,
			.comm_index = ops[i]->comm_index, .rank = ops[i]->rank,
			.gpu = gpu_of(s, ops[i], list, count), .start = ops[i]->gpu_start_ns,
			.inside_ns = op_inside_ns(ops[i]), .end_ns = ops[i]->gpu_stop_mono_ns,
			.end_error_ns = ops[i]->gpu_clock_error_ns,
		};
	straggler_add(s, &op, now_ns);
}
