/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0) */
/*
 * Counts calls of NCCL's functions, in the process that calls: no event leaves the kernel, so that
 * nothing is lost however often they are called.  The program runs at the entry of the function,
 * before NCCL has looked at the arguments: each of them may be nonsense.
 */
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
#include "probe/calls.h"
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CALLS_ROWS);
	__type(key, struct calls_key);
	__type(value, uint64_t);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CALLS_COMMS);
	__type(key, struct calls_comm_key);
	__type(value, struct calls_comm);
} comms SEC(".maps");

unsigned long long lost;	/* calls that found no room in a table */
bool counting;			/* all processes are attached to: they begin together */

static const struct calls_comm none;

/* Argument n, from 1 on; the seventh of x86-64 is on the stack, above the return address. */
static __always_inline uint64_t argument(struct pt_regs *ctx, int n)
{
#ifdef __TARGET_ARCH_x86
	uint64_t value = 0;

	if (n == 7)
		bpf_probe_read_user(&value, sizeof(value), (void *)(ctx->rsp + 8));
	return n == 2 ? ctx->rsi : n == 3 ? ctx->rdx : n == 4 ? ctx->rcx : n == 5 ? ctx->r8 :
	       n == 6 ? ctx->r9 : value;
#else
	return ((struct user_pt_regs *)ctx)->regs[n - 1];
#endif
}

/* struct ncclComm has commHash, rank and nRanks beside each other since NCCL 2.18. */
static __always_inline void comm_key_fill(struct calls_comm_key *key, uint64_t comm,
					  uint64_t cookie)
{
	struct {
		uint64_t hash;
		int32_t rank, nranks;
	} in;

	*key = (struct calls_comm_key){ .id = comm, .rank = -1, .nranks = -1,
					.process = CALLS_PROCESS(cookie) };
	if (!CALLS_RANK_AT(cookie) ||
	    bpf_probe_read_user(&in, sizeof(in), (void *)(comm + CALLS_RANK_AT(cookie) - 8)) ||
	    in.rank < 0 || in.rank >= in.nranks)
		return;
	key->id = in.hash;
	key->rank = in.rank;
	key->nranks = in.nranks;
}

static __always_inline void call_count(const struct calls_key *key)
{
	uint64_t one = 1, *calls = bpf_map_lookup_elem(&rows, key);

	if (!calls && bpf_map_update_elem(&rows, key, &one, BPF_NOEXIST) == 0)
		return;
	if (!calls)	/* another thread was first, or there is no room */
		calls = bpf_map_lookup_elem(&rows, key);
	__sync_fetch_and_add(calls ? calls : (uint64_t *)&lost, 1);
}

static __always_inline void call_keep(const struct calls_key *key, uint64_t now_ns)
{
	struct calls_comm *comm = bpf_map_lookup_elem(&comms, &key->comm);
	struct calls_call *call;

	if (!comm) {
		bpf_map_update_elem(&comms, &key->comm, &none, BPF_NOEXIST);
		comm = bpf_map_lookup_elem(&comms, &key->comm);
	}
	if (!comm) {
		__sync_fetch_and_add(&lost, 1);
		return;
	}
	call = &comm->kept[comm->calls % CALLS_KEPT];
	call->at_ns = now_ns;
	call->count = key->count;
	call->function = key->function;
	call->datatype = key->datatype;
	__sync_fetch_and_add(&comm->calls, 1);
}

static __always_inline void call_take(struct pt_regs *ctx, uint64_t cookie, bool collective,
				      int count, int datatype, int comm)
{
	struct calls_key key;

	comm_key_fill(&key.comm, argument(ctx, comm), cookie);
	key.count = argument(ctx, count);
	key.function = CALLS_FUNCTION(cookie);
	key.datatype = (uint32_t)argument(ctx, datatype);
	call_count(&key);
	if (collective)
		call_keep(&key, bpf_ktime_get_ns());
}

#define X(name, collective, count, datatype, comm)				\
SEC("uprobe")									\
int on_##name(struct pt_regs *ctx)						\
{										\
	if (counting)								\
		call_take(ctx, bpf_get_attach_cookie(ctx), collective, count,	\
			  datatype, comm);					\
	return 0;								\
}
CALLS_FUNCTIONS(X)
#undef X

char attach_license[] SEC("license") = "Dual BSD/GPL";
