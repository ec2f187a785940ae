/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCI_EVENTS_H
#define NCI_EVENTS_H

/*
 * Every event that a record can carry.
 *
 * Ids are for ever, and an NCCL event's id is its mask bit's number plus one;
 * 16 to 31 are left to NCCL, records of our own making come behind.
 * A new event is a line here and a payload struct below; plugin and reader have
 * tables by event (docs/ARCHITECTURE.md: where to add things).
 *
 * KernelPhase, NCCL's bit 15, has no record: what it tells stands in its KernelCh.
 *
 * Conventions of all payloads: names are ids in the string table, 0 when not
 * known; ranks, roots and peers are -1 when not known; `cont` is NCI_LINE_CONT;
 * `zero` is 0.  Ticks and spans are explained in record.h.
 */

#include <stdbool.h>

#include "nci/record.h"

/*	  id  name           payload        lines: at least, at most */
#define NCI_EVENTS(X)				\
	X( 1, GROUP,         group,         1, 1)	\
	X( 2, COLL,          coll,          2, 2)	\
	X( 3, P2P,           p2p,           2, 2)	\
	X( 4, PROXY_OP,      proxy_op,      2, 2)	\
	X( 5, PROXY_STEP,    proxy_step,    1, 1)	\
	X( 6, PROXY_CTRL,    proxy_ctrl,    1, 1)	\
	X( 7, KERNEL_CH,     kernel_ch,     1, 2)	\
	X( 8, NET_PLUGIN,    net_plugin,    1, 2)	\
	X( 9, GROUP_API,     group_api,     1, 1)	\
	X(10, COLL_API,      coll_api,      1, 2)	\
	X(11, P2P_API,       p2p_api,       1, 2)	\
	X(12, KERNEL_LAUNCH, kernel_launch, 1, 1)	\
	X(13, CE_COLL,       ce_coll,       2, 2)	\
	X(14, CE_SYNC,       ce_sync,       1, 1)	\
	X(15, CE_BATCH,      ce_batch,      1, 1)	\
	X(32, PROXY_SUMS,    proxy_sums,    2, 2)

enum nci_event {
#define X(id, NAME, name, least, most) NCI_EV_##NAME = (id),
	NCI_EVENTS(X)
#undef X
	NCI_EV_END	/* one past the highest id of this version */
};

static inline bool nci_is_event(uint32_t type)
{
	switch (type) {
#define X(id, NAME, name, least, most) case (id):
	NCI_EVENTS(X)
#undef X
		return true;
	}
	return false;
}

/* Whether a record of that type may have so many lines; never, of a type that is none. */
static inline bool nci_lines_fit(uint32_t type, uint32_t lines)
{
	switch (type) {
#define X(id, NAME, name, least, most) case (id): return lines >= (least) && lines <= (most);
	NCI_EVENTS(X)
#undef X
	}
	return false;
}

/* The bit of an event in NCCL's activation mask. */
#define NCI_EVENT_BIT(id)	(UINT32_C(1) << ((id) - 1))

#define NCI_HEAD			\
	uint8_t type;			\
	uint8_t form;			\
	uint16_t comm;			\
	uint32_t serial;		\
	uint64_t token;			\
	uint64_t parent;		\
	uint64_t start;			\
	uint64_t stop

/* The first and the last state seen on an event that may have any. */
struct nci_marks {
	uint32_t first_span;
	uint32_t last_span;
	uint8_t first;		/* NCCL state value; meaningful if first_span != 0 */
	uint8_t last;
	uint16_t count;		/* states seen, stays at 65535 */
};

struct nci_ev_group {
	NCI_HEAD;
	uint8_t zero[24];
};

/* start..stop is the posting of the operation, not its execution. */
struct nci_ev_coll {
	NCI_HEAD;
	uint64_t seq;		/* NCCL's number, per communicator and function */
	uint64_t count;		/* the count that NCCL posts: bytes for AllGather, Broadcast */
	uint16_t func;
	uint16_t datatype;
	uint16_t algo;
	uint16_t proto;
	uint8_t cont;
	uint8_t channels;	/* 0: CollNet and multi-node NVLS do not say */
	uint8_t warps;
	uint8_t flags;		/* NCI_COLL_* */
	int32_t rank;		/* -1: not known */
	uint64_t group;		/* token of the Group event, or 0 */
	uint64_t send_buff;
	uint64_t recv_buff;
	uint64_t comm_hash;	/* API v1 to v3 only, 0: not given */
	uint64_t traffic;	/* bytes; API v1, v2 only, 0: not given */
	uint64_t tag;		/* the application's; 0: none */
	int32_t root;		/* the root given: 0 where the function has none */
	uint16_t red_op;	/* API v1 only */
	uint16_t variant;	/* name of a symmetric kernel, API v7 on */
};

#define NCI_COLL_COLLNET	0x01	/* API v1 only */
#define NCI_COLL_NVLS		0x02	/* API v1 only */
#define NCI_COLL_SYMMETRIC	0x04	/* a symmetric kernel; API v7 on */

struct nci_ev_p2p {
	NCI_HEAD;
	uint64_t count;
	int32_t peer;
	int32_t rank;
	uint16_t func;
	uint16_t datatype;
	uint8_t channels;	/* planned; 0: API before v4 does not say */
	uint8_t zero[3];
	uint8_t cont;
	uint8_t zero1[7];
	uint64_t group;
	uint64_t buff;
	uint64_t comm_hash;
	uint64_t tag;
	uint8_t zero2[24];
};

/*
 * The plugin's own books in a live slot, which mean nothing to a reader: open_step
 * (which slot of the same lane holds step i mod 8, plus one), sums (which one holds
 * its nci_ev_proxy_sums, plus one), has_total and last_total (NCCL <= 2.26:
 * transSize as last seen).
 */
struct nci_ev_proxy_op {
	NCI_HEAD;
	int32_t peer;
	int32_t rank;		/* rank in the issuing communicator */
	int32_t steps;		/* network transfers */
	int32_t chunk_bytes;	/* upper bound of one transfer */
	int32_t pid;		/* the issuing process's, in its own pid namespace */
	uint8_t channel;
	uint8_t zero[3];
	uint8_t cont;
	uint8_t has_total;
	uint16_t sums;
	uint32_t progress_span;	/* state 19: taken up by the network transport */
	uint64_t origin;	/* NCI_FORM_FOREIGN: the issuer's context token; else 0 */
	uint32_t state_span[4];	/* NCCL <= 2.26: last of states 0-3 (send) or 4-7 (receive);
				   else [0]: its first step had its data, of those in the sums */
	uint64_t bytes;		/* sum over stopped steps; NCCL <= 2.26: transSize growth */
	uint32_t steps_done;	/* steps stopped */
	uint32_t last_total;
	uint16_t open_step[8];
};

#define NCI_BYTES_UNKNOWN	UINT32_C(0xffffffff)

/*
 * spans: send = states 8, 20 (first), 9; receive = states 10, 11, 12.  State 8 comes
 * in one breath with the start: its span is 1, no time of its own.
 */
struct nci_ev_proxy_step {
	NCI_HEAD;
	int32_t step;
	uint32_t bytes;		/* on the wire, stays at 2^32 - 2, or NCI_BYTES_UNKNOWN */
	uint32_t span[3];
	uint32_t repeats;	/* send: SendPeerWait beyond the first; receive: repeated starts */
};

/* The least time that a transfer of a size took. */
struct nci_point {
	uint32_t bytes;		/* 0: there is none */
	uint32_t span;
};

/*
 * The sums over the steps of a ProxyOp, which leave no other record at level net.
 * Counted are steps that were stopped, with all of their three states and their size;
 * an operation that had no such step has no sums (NCCL <= 2.26 tells neither size nor
 * state 20).  The parent is the ProxyOp.  The record lies right before the ProxyOp's in
 * the same lane, or is live as long as that is.  start: the first step's; stop: the last
 * step's.  sums.h has the arithmetic.
 *
 *	state         0              1               2
 *	send      start to 20    20 to 9         9 to stop
 *	          (own GPU)      (credit)        (wire)
 *	receive   10 to 11       11 to 12        12 to stop
 *	          (data)         (flush)         (own GPU)
 *
 * A step runs beside others: ticks[] may add up to more than the time that passed.
 * `busy` and `covered` are lengths of unions, and no time counts twice.  Steps end
 * in order; if they did not, both would be a little too small.
 */
struct nci_ev_proxy_sums {
	NCI_HEAD;
	uint64_t ticks[3];	/* time in each state, sum over the steps */
	uint8_t cont;
	uint8_t zero[3];
	uint32_t steps;		/* number of steps that are counted here */
	uint64_t bytes;		/* sum of their sizes */
	uint64_t busy;		/* ticks during which some step was in state 2 */
	uint64_t covered;	/* ticks during which some step was in state 1 or 2 */
	uint32_t longest[3];	/* span of the longest stay in each state */
	uint32_t repeats;	/* sum over the steps */
	/*
	 * Sends: state 2 of steps that entered it when no other one was in it, so that
	 * nothing queued before them: of the smallest size seen, and of the largest.
	 */
	struct nci_point point[2];
};

struct nci_ev_proxy_ctrl {
	NCI_HEAD;
	struct nci_marks marks;
	int32_t appended;	/* operations taken in, state 18; -1: not given */
	uint8_t zero[8];
};

/* A part of a kernel, ns of the GPU's own clock; zeros: it was not told. */
struct nci_phase {
	uint64_t start;
	uint64_t stop;
};

#define NCI_PHASE_INITIAL_SYNC	0	/* a symmetric kernel waits for the other ranks here */
#define NCI_PHASE_COMPUTE	1
#define NCI_PHASE_FINAL_SYNC	2
#define NCI_PHASES		3

/* Two lines if phases were told (API v7 on); `last_phase` is the plugin's own note. */
struct nci_ev_kernel_ch {
	NCI_HEAD;
	uint64_t gpu_start;	/* ptimer, ns of the GPU's own clock; 0: not given */
	uint64_t gpu_stop;
	uint32_t stop_span;	/* state 22 */
	uint8_t channel;
	uint8_t zero[3];
	uint8_t cont;
	uint8_t last_phase;
	uint8_t zero1[6];
	struct nci_phase phase[NCI_PHASES];
	uint8_t zero2[8];
};

/*
 * A request of the network plugin, from its posting to its completion.  Two lines if its
 * payload is read: of InfiniBand, version 1 (id 0x10001), and sockets, version 1 (0x20001).
 * NCCL tells the operation by way of the step; it sends with NCI_FORM_SEND.
 */
struct nci_ev_net_plugin {
	NCI_HEAD;
	int64_t id;		/* plugin type << 16 | payload version */
	struct nci_marks marks;
	uint8_t channel;	/* the operation's */
	uint8_t zero[3];
	uint8_t cont;
	uint8_t zero1[3];
	int32_t peer;		/* the operation's; -1: not known */
	uint64_t op;		/* token of the ProxyOp; 0: not known */
	uint64_t request;	/* wr_id; sockets: 0 */
	uint64_t bytes;		/* 0: of an InfiniBand receive not told */
	uint32_t queue;		/* number of the queue pair, or the socket's descriptor */
	int32_t device;		/* place in the connection's list of NICs; sockets: -1 */
	int32_t opcode;		/* ibv_wr_opcode; -1: not told */
	uint8_t zero2[4];
	uint64_t origin;	/* NCI_FORM_FOREIGN: the issuer's context token; else 0 */
	uint8_t zero3[8];
};

#define NCI_NET_IB_V1		0x10001
#define NCI_NET_SOCKET_V1	0x20001

struct nci_ev_group_api {
	NCI_HEAD;
	int32_t depth;
	uint32_t begin_span;	/* state 23 */
	uint32_t end_span;	/* state 24 */
	uint8_t zero[12];
};

struct nci_ev_coll_api {
	NCI_HEAD;
	uint64_t count;		/* the count that the application passed */
	uint64_t stream;
	uint16_t func;
	uint16_t datatype;
	int32_t root;
	uint8_t cont;
	uint8_t zero[7];
	uint64_t tag;		/* the application's; two lines if there is one */
	uint8_t zero1[48];
};

struct nci_ev_p2p_api {
	NCI_HEAD;
	uint64_t count;
	uint64_t stream;
	uint16_t func;
	uint16_t datatype;
	uint8_t zero[4];
	uint8_t cont;
	uint8_t zero1[7];
	uint64_t tag;		/* the application's; two lines if there is one */
	uint8_t zero2[48];
};

struct nci_ev_kernel_launch {
	NCI_HEAD;
	uint64_t stream;
	uint8_t zero[16];
};

/* Copy-engine events: all times are the host's, at enqueue. */
struct nci_ev_ce_coll {
	NCI_HEAD;
	uint64_t seq;		/* synchronisations so far: not an operation number */
	uint64_t count;
	uint16_t func;
	uint16_t datatype;
	uint16_t sync;		/* name of the strategy */
	uint8_t intra_sync;
	uint8_t zero;
	uint8_t cont;
	uint8_t zero1[3];
	int32_t rank;
	uint64_t send_buff;
	uint64_t recv_buff;
	uint64_t stream;
	int32_t root;
	uint32_t batch_size;
	uint32_t batches;
	uint32_t ce_seq;
	uint64_t tag;		/* the application's; 0: none */
	uint32_t begin_span;	/* states 25 and 26, which no NCCL has told yet */
	uint32_t end_span;
};

struct nci_ev_ce_sync {
	NCI_HEAD;
	struct nci_marks marks;
	int32_t rank;
	int32_t ranks;
	uint8_t complete;	/* 0: before the copies, 1: after them */
	uint8_t zero[3];
};

struct nci_ev_ce_batch {
	NCI_HEAD;
	uint64_t bytes;
	struct nci_marks marks;
	int32_t ops_sync;	/* number of copies << 1 | synchronised inside the batch */
};

#define X(id, NAME, name, least, most)						\
	NCI_ASSERT(sizeof(struct nci_ev_##name) == (most) * NCI_LINE_BYTES,	\
		       "ABI: " #name " changed its size");				\
	NCI_ASSERT(offsetof(struct nci_ev_##name, stop) == 32,			\
		       "ABI: " #name " has no common head");
NCI_EVENTS(X)
#undef X
NCI_ASSERT(NCI_EV_END == 33, "ABI: event ids are for ever");
NCI_ASSERT(sizeof(struct nci_point) == 8, "ABI: a point");
NCI_ASSERT(offsetof(struct nci_ev_kernel_ch, cont) == 64, "ABI: kernel_ch, second line");
NCI_ASSERT(offsetof(struct nci_ev_coll_api, cont) == 64, "ABI: coll_api, second line");
NCI_ASSERT(offsetof(struct nci_ev_p2p_api, cont) == 64, "ABI: p2p_api, second line");
NCI_ASSERT(offsetof(struct nci_ev_coll, cont) == 64, "ABI: coll, second line");
NCI_ASSERT(offsetof(struct nci_ev_p2p, cont) == 64, "ABI: p2p, second line");
NCI_ASSERT(offsetof(struct nci_ev_proxy_op, cont) == 64, "ABI: proxy_op, second line");
NCI_ASSERT(offsetof(struct nci_ev_proxy_sums, cont) == 64, "ABI: proxy_sums, second line");
NCI_ASSERT(offsetof(struct nci_ev_ce_coll, cont) == 64, "ABI: ce_coll, second line");

#endif
