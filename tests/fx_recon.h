/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FX_RECON_H
#define TESTS_FX_RECON_H

/* Records by hand for the tests of the reconstruction; one tick is one ns. */

#include <stdlib.h>
#include <string.h>

#include "reader/base/names.h"
#include "reader/join/reconstruct.h"
#include "tests/fixture.h"

#define FX_MS UINT64_C(1000000)
#define FX_MASK_OPS (NCI_EVENT_BIT(NCI_EV_COLL) | NCI_EVENT_BIT(NCI_EV_P2P) |		\
		     NCI_EVENT_BIT(NCI_EV_COLL_API) | NCI_EVENT_BIT(NCI_EV_P2P_API))
#define FX_MASK_KERNEL (FX_MASK_OPS | NCI_EVENT_BIT(NCI_EV_KERNEL_CH))
#define FX_MASK_PROXY (FX_MASK_OPS | NCI_EVENT_BIT(NCI_EV_PROXY_OP) |			\
		       NCI_EVENT_BIT(NCI_EV_PROXY_STEP))
#define FX_MASK_NET (FX_MASK_KERNEL | FX_MASK_PROXY)

enum {
	FX_NONE, FX_ALLREDUCE, FX_ALLGATHER, FX_BROADCAST, FX_SEND, FX_FLOAT32, FX_INT8,
	FX_UNKNOWN_TYPE, FX_RING, FX_SIMPLE, FX_RECV, FX_STRINGS
};

static const char *const fx_texts[FX_STRINGS] = {
	"", "AllReduce", "AllGather", "Broadcast", "Send", "ncclFloat32", "ncclInt8", "Unknown",
	"RING", "SIMPLE", "Recv",
};

union fx_record {
	struct nci_record rec;
	struct nci_ev_coll coll;
	struct nci_ev_p2p p2p;
	struct nci_ev_group_api group_api;
	struct nci_ev_kernel_ch kernel;
	struct nci_ev_proxy_op proxy;
	struct nci_ev_proxy_step step;
	struct nci_ev_proxy_sums sums;
	struct nci_ev_coll_api coll_api;
	struct nci_ev_p2p_api p2p_api;
	struct nci_ev_ce_coll ce;
	struct nci_ev_net_plugin net;
};
_Static_assert(sizeof(union fx_record) == NCI_SLOT_BYTES, "a record is a slot's content");

struct fx_process {
	struct process p;
	struct comm comms[2];
	name_t strings[FX_STRINGS - 1];
	uint64_t tags[FX_STRINGS - 1];
};

struct fx_recon {
	struct names *names;
	struct reconstruct *rc;
	struct fx_process a, b;
	struct op *done;
	uint32_t ndone, room;
	uint64_t now;
};

static inline void fx_recon_done(const struct op *op, uint64_t now_ns, void *arg)
{
	struct fx_recon *fx = arg;

	ck_assert_uint_eq(now_ns, fx->now);
	if (fx->ndone == fx->room) {
		fx->room = fx->room ? 2 * fx->room : 64;
		fx->done = realloc(fx->done, fx->room * sizeof(*fx->done));
	}
	fx->done[fx->ndone++] = *op;
}

static inline void fx_process_init(struct fx_recon *fx, struct fx_process *f, uint64_t id,
				   uint32_t api_version, uint32_t mask)
{
	for (int i = 1; i < FX_STRINGS; i++) {
		f->strings[i - 1] = names_intern(fx->names, 0, fx_texts[i], strlen(fx_texts[i]));
		f->tags[i - 1] = nci_tag_of_name(fx_texts[i], (uint32_t)strlen(fx_texts[i]));
	}
	for (int i = 0; i < 2; i++)
		f->comms[i] = (struct comm){
			.ready = true,
			.has_id = api_version >= 4,
			.id = 0xc0 + (uint64_t)i,
			.rank = api_version >= 4 ? (int32_t)id - 1 : UNKNOWN_I32,
			.nranks = api_version >= 4 ? 4 : UNKNOWN_I32,
			.nnodes = api_version >= 4 ? i + 1 : UNKNOWN_I32, /* 1 has a network */
			.name = "tp",
		};
	f->p = (struct process){
		.id = id,
		.pid = 1000 + (pid_t)id,
		.nonce = 0x5000 + (uint32_t)id,
		.api_version = api_version,
		.mask = mask,
		.comms = f->comms,
		.ncomms = 2,
		.strings = f->strings,
		.tags = f->tags,
		.nstrings = FX_STRINGS - 1,
		.clock = { .kind = NCI_CLOCK_MONOTONIC, .ns_per_tick = 1 },
	};
	ck_assert_int_eq(reconstruct_attach(fx->rc, &f->p), 0);
}

static inline void fx_recon_open_with(struct fx_recon *fx, uint32_t api_version, uint32_t mask,
				      const struct reconstruct_limits *limits)
{
	memset(fx, 0, sizeof(*fx));
	fx->now = 1000 * FX_MS;
	ck_assert_int_eq(names_new(&fx->names, 64), 0);
	ck_assert_int_eq(reconstruct_new(&fx->rc, limits, fx->names, fx_recon_done, fx), 0);
	fx_process_init(fx, &fx->a, 1, api_version, mask);
	fx_process_init(fx, &fx->b, 2, api_version, mask);
}

static inline void fx_recon_open(struct fx_recon *fx, uint32_t api_version, uint32_t mask)
{
	fx_recon_open_with(fx, api_version, mask, NULL);
}

static inline void fx_recon_close(struct fx_recon *fx)
{
	reconstruct_free(fx->rc);
	names_free(fx->names);
	free(fx->done);
}

static inline void fx_give(struct fx_recon *fx, struct fx_process *f, const union fx_record *r)
{
	union fx_record given = *r;
	struct event ev = { &given.rec, process_comm(&f->p, r->rec.comm) };

	if ((r->rec.type == NCI_EV_COLL || r->rec.type == NCI_EV_P2P) &&
	    f->p.mask & NCI_EVENT_BIT(NCI_EV_KERNEL_CH))
		given.rec.form |= NCI_FORM_WATCHED;
	reconstruct_event(fx->rc, &f->p, &ev, fx->now);
}

/* Time passes, with a poll that brought nothing new.  0: the poll ends. */
static inline void fx_wait(struct fx_recon *fx, uint64_t ns)
{
	fx->now += ns;
	reconstruct_flush(fx->rc, fx->now);
}

/* ... and with a look at live slots, wherever one is wanted. */
static inline void fx_look(struct fx_recon *fx, const union fx_record *live, size_t n)
{
	struct live_slot slots[8] = { 0 };

	for (size_t i = 0; i < n; i++)
		memcpy(&slots[i].slot, &live[i], sizeof(live[i]));
	if (reconstruct_wants_slots(fx->rc, &fx->a.p, fx->now))
		reconstruct_settle(fx->rc, &fx->a.p, slots, n, fx->now);
	if (reconstruct_wants_slots(fx->rc, &fx->b.p, fx->now))
		reconstruct_settle(fx->rc, &fx->b.p, NULL, 0, fx->now);
	reconstruct_flush(fx->rc, fx->now);
}

static inline union fx_record fx_head(uint8_t type, uint8_t lines, uint64_t token,
				      uint64_t parent, uint64_t start, uint64_t stop)
{
	union fx_record r;

	memset(&r, 0, sizeof(r));	/* beyond the head, too */
	r.rec = (struct nci_record){
		.type = type, .form = lines, .token = token, .parent = parent,
		.start = start, .stop = stop,
	};
	return r;
}

/* 1 Ki floats, posted at `start` for 10 ticks, on communicator 0 of 4 ranks. */
static inline union fx_record fx_coll(uint64_t token, uint64_t parent, uint64_t seq,
				      uint8_t channels, uint64_t start)
{
	union fx_record r = fx_head(NCI_EV_COLL, 2, token, parent, start, start + 10);

	r.coll.seq = seq;
	r.coll.count = 1024;
	r.coll.func = FX_ALLREDUCE;
	r.coll.datatype = FX_FLOAT32;
	r.coll.algo = FX_RING;
	r.coll.proto = FX_SIMPLE;
	r.coll.cont = NCI_LINE_CONT;
	r.coll.channels = channels;
	return r;
}

static inline union fx_record fx_p2p(uint64_t token, uint64_t parent, int32_t peer,
				     uint8_t channels, uint64_t start)
{
	union fx_record r = fx_head(NCI_EV_P2P, 2, token, parent, start, start + 10);

	r.p2p.count = 256;
	r.p2p.peer = peer;
	r.p2p.func = FX_SEND;
	r.p2p.datatype = FX_FLOAT32;
	r.p2p.channels = channels;
	r.p2p.cont = NCI_LINE_CONT;
	return r;
}

static inline union fx_record fx_coll_api(uint64_t token, uint64_t group, uint16_t func,
					  uint64_t count, uint64_t start)
{
	union fx_record r = fx_head(NCI_EV_COLL_API, 1, token, group, start, start + 5);

	r.coll_api.count = count;
	r.coll_api.func = func;
	r.coll_api.datatype = FX_FLOAT32;
	return r;
}

static inline union fx_record fx_p2p_api(uint64_t token, uint64_t group, uint16_t func,
					 uint64_t start)
{
	union fx_record r = fx_head(NCI_EV_P2P_API, 1, token, group, start, start + 5);

	r.p2p_api.count = 256;
	r.p2p_api.func = func;
	r.p2p_api.datatype = FX_FLOAT32;
	return r;
}

static inline union fx_record fx_kernel(uint64_t token, uint64_t parent, uint8_t channel,
					uint64_t gpu_start, uint64_t gpu_stop)
{
	union fx_record r = fx_head(NCI_EV_KERNEL_CH, 1, token, parent, gpu_start, gpu_stop);

	r.kernel.gpu_start = gpu_start;
	r.kernel.gpu_stop = gpu_stop;
	r.kernel.channel = channel;
	return r;
}

static inline union fx_record fx_proxy(uint64_t token, uint64_t parent, uint64_t start,
				       uint64_t stop)
{
	union fx_record r = fx_head(NCI_EV_PROXY_OP, 2, token, parent, start, stop);

	r.proxy.cont = NCI_LINE_CONT;
	r.proxy.bytes = 100;
	r.proxy.steps_done = 2;
	return r;
}

#endif
