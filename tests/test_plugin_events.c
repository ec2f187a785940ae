/* SPDX-License-Identifier: Apache-2.0 */
/* Every event type and state of every interface version, field by field. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fixture.h"
#include "tests/plugin_driver.h"

static struct pd pd;

/* At level trace with every bit, so that ProxyCtrl comes before v4 too. */
static void setup(int version)
{
	pd_open(&pd, NULL);
	setenv("NCCL_PROFILE_EVENT_MASK", "0xffff", 1);
	pd.version = version;
	pd_init(&pd);
}

#define IS_NAMED(id, text) do {								\
	const char *name_ = pd_string(&pd, (id));					\
	ck_assert_ptr_nonnull(name_);							\
	ck_assert_str_eq(name_, (text));						\
} while (0)

static const void *one_record(uint8_t type, unsigned int lines, void *handle, void *parent)
{
	const struct nci_record *rec;

	pd_read(&pd);
	ck_assert_uint_eq(pd_count(&pd, type), 1);
	rec = pd_record(&pd, type, 0);
	ck_assert_uint_eq(NCI_FORM_LINES(rec->form), lines);
	ck_assert_uint_eq(rec->comm, 0);
	ck_assert_uint_eq(rec->token, (uint64_t)handle);
	ck_assert_uint_eq(rec->parent, (uint64_t)parent);
	ck_assert_uint_ge(rec->start, pd_comm(&pd, 0).init);
	ck_assert_uint_ge(rec->stop, rec->start);
	return rec;
}

TEST_LOOP(group_is_recorded_in_every_version, 1, 7)
{
	void *h;

	setup(_i);
	h = PD_START(&pd, NCCL_GROUP);
	ck_assert_ptr_nonnull(h);
	pd_stop(&pd, h);
	one_record(NCI_EV_GROUP, 1, h, NULL);
}

TEST_LOOP(coll_is_recorded_in_every_version, 1, 7)
{
	const struct nci_ev_coll *ev;
	void *group, *h;

	setup(_i);
	group = PD_START(&pd, NCCL_GROUP);
	h = PD_START(&pd, NCCL_COLL, .parent = group, .group = group);
	pd_stop(&pd, h);
	ev = one_record(NCI_EV_COLL, 2, h, group);
	ck_assert_uint_eq(ev->seq, 77);
	ck_assert_uint_eq(ev->count, 4096);
	IS_NAMED(ev->func, "AllReduce");
	IS_NAMED(ev->datatype, "ncclFloat32");
	IS_NAMED(ev->algo, "RING");
	IS_NAMED(ev->proto, "SIMPLE");
	ck_assert_uint_eq(ev->cont, NCI_LINE_CONT);
	ck_assert_uint_eq(ev->channels, 12);
	ck_assert_uint_eq(ev->warps, 16);
	ck_assert_uint_eq(ev->flags, _i == 1 ? NCI_COLL_COLLNET : 0);
	ck_assert_int_eq(ev->rank, 1);
	ck_assert_uint_eq(ev->group, (uint64_t)group);
	ck_assert_uint_eq(ev->send_buff, 0x7000);
	ck_assert_uint_eq(ev->recv_buff, 0x8000);
	ck_assert_uint_eq(ev->comm_hash, _i <= 3 ? 0xc0ffee : 0);
	ck_assert_uint_eq(ev->traffic, _i <= 2 ? 16384 : 0);
	ck_assert_int_eq(ev->root, 2);
	ck_assert_uint_eq(ev->red_op, _i == 1);
	ck_assert_uint_eq(ev->tag, 0);
}

TEST_LOOP(p2p_is_recorded_in_every_version, 1, 7)
{
	const struct nci_ev_p2p *ev;
	void *group, *h;

	setup(_i);
	group = PD_START(&pd, NCCL_GROUP);
	h = PD_START(&pd, NCCL_P2P, .parent = group, .group = group);
	pd_stop(&pd, h);
	ev = one_record(NCI_EV_P2P, 2, h, group);
	ck_assert_uint_eq(ev->count, 512);
	ck_assert_int_eq(ev->peer, 3);
	ck_assert_int_eq(ev->rank, 1);
	IS_NAMED(ev->func, "Send");
	IS_NAMED(ev->datatype, "ncclInt8");
	ck_assert_uint_eq(ev->channels, _i >= 4 ? 5 : 0);
	ck_assert_uint_eq(ev->group, (uint64_t)group);
	ck_assert_uint_eq(ev->buff, 0x9000);
	ck_assert_uint_eq(ev->comm_hash, _i <= 3 ? 0xc0ffee : 0);
	ck_assert_uint_eq(ev->cont, NCI_LINE_CONT);
}

TEST_LOOP(proxy_op_is_recorded_in_every_version, 1, 7)
{
	const struct nci_ev_proxy_op *ev;
	void *h;

	setup(_i);
	h = PD_START(&pd, NCCL_PROXY_OP, .parent = (void *)8, .channel = 63);
	pd_state(&pd, h, NCCL_OP_IN_PROGRESS, &(uint64_t){ 0 });
	pd_stop(&pd, h);
	ev = one_record(NCI_EV_PROXY_OP, 2, h, (void *)8);
	ck_assert_uint_eq(ev->form & 0xf0, NCI_FORM_SEND);
	ck_assert_int_eq(ev->peer, 3);
	ck_assert_int_eq(ev->rank, 1);
	ck_assert_int_eq(ev->steps, 32);
	ck_assert_int_eq(ev->chunk_bytes, 65536);
	ck_assert_int_eq(ev->pid, getpid());
	ck_assert_uint_eq(ev->channel, 63);
	ck_assert_uint_ne(ev->progress_span, 0);
	ck_assert_uint_eq(ev->origin, 0);
	ck_assert_uint_eq(ev->bytes, 0);
	ck_assert_uint_eq(ev->steps_done, 0);
}

TEST_LOOP(running_totals_of_old_releases_become_differences, 1, 4)
{
	const struct nci_ev_proxy_op *ev;
	static const int receive[] = { NCCL_OP_RECV_POSTED, NCCL_OP_RECV_RECEIVED,
				       NCCL_OP_RECV_TRANSMITTED, NCCL_OP_RECV_DONE };
	uint64_t before = UINT64_C(0xfffffff0);	/* of earlier operations; wraps 32 bits */
	void *h;

	setup(_i);
	h = PD_START(&pd, NCCL_PROXY_OP, .receive = 1);
	for (unsigned int i = 0; i < 4; i++)
		pd_state(&pd, h, receive[i], &(uint64_t){ before + i * 1000 });
	pd_stop(&pd, h);
	ev = one_record(NCI_EV_PROXY_OP, 2, h, NULL);
	ck_assert_uint_eq(ev->form & 0xf0, 0);
	ck_assert_uint_eq(ev->bytes, 3000);
	for (unsigned int i = 0; i < 4; i++)
		ck_assert_uint_ne(ev->state_span[i], 0);
}

TEST_LOOP(send_step_is_recorded_in_every_version, 1, 7)
{
	const struct nci_ev_proxy_step *ev;
	void *op, *h;

	setup(_i);
	op = PD_START(&pd, NCCL_PROXY_OP);
	h = PD_START(&pd, NCCL_PROXY_STEP, .parent = op, .step = 5);
	pd_state(&pd, h, NCCL_STEP_SEND_GPU_WAIT, &(uint64_t){ 999999 });
	for (int i = 0; i < 4; i++)
		pd_state(&pd, h, NCCL_STEP_SEND_PEER_WAIT, &(uint64_t){ 888888 });
	pd_state(&pd, h, NCCL_STEP_SEND_WAIT, &(uint64_t){ 4321 });
	pd_stop(&pd, h);
	ev = one_record(NCI_EV_PROXY_STEP, 1, h, op);
	ck_assert_uint_eq(ev->form & 0xf0, NCI_FORM_SEND);
	ck_assert_int_eq(ev->step, 5);
	/* Before v4 what comes with a step is no size: NCCL >= 2.27 passes zeros. */
	ck_assert_uint_eq(ev->bytes, _i >= 4 ? 4321 : NCI_BYTES_UNKNOWN);
	ck_assert_uint_eq(ev->repeats, 3);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_ne(ev->span[i], 0);
	ck_assert_uint_eq(ev->span[0], 1);	/* NCCL says it in one breath with the start */
	ck_assert_uint_le(ev->span[1], ev->span[2]);
	pd_stop(&pd, op);
	pd_read(&pd);
	ck_assert_uint_eq(((const struct nci_ev_proxy_op *)
			   pd_record(&pd, NCI_EV_PROXY_OP, 0))->bytes, _i >= 4 ? 4321 : 0);
}

TEST_LOOP(receive_step_is_recorded_in_every_version, 1, 7)
{
	const struct nci_ev_proxy_step *ev;
	void *op, *h;

	setup(_i);
	op = PD_START(&pd, NCCL_PROXY_OP, .receive = 1);
	h = PD_START(&pd, NCCL_PROXY_STEP, .parent = op, .step = 9);
	pd_state(&pd, h, NCCL_STEP_RECV_WAIT, &(uint64_t){ 1 });
	pd_state(&pd, h, NCCL_STEP_RECV_FLUSH_WAIT, &(uint64_t){ UINT64_C(1) << 33 });
	pd_state(&pd, h, NCCL_STEP_RECV_GPU_WAIT, &(uint64_t){ 2 });
	pd_stop(&pd, h);
	ev = one_record(NCI_EV_PROXY_STEP, 1, h, op);
	ck_assert_uint_eq(ev->form & 0xf0, 0);
	ck_assert_uint_eq(ev->bytes, _i >= 4 ? NCI_BYTES_UNKNOWN - 1 : NCI_BYTES_UNKNOWN);
	ck_assert_uint_eq(ev->repeats, 0);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_ne(ev->span[i], 0);
}

TEST_LOOP(proxy_ctrl_is_recorded_in_every_version, 1, 7)
{
	const struct nci_ev_proxy_ctrl *ev;
	void *h;

	setup(_i);
	h = PD_START(&pd, NCCL_PROXY_CTRL);
	pd_state(&pd, h, NCCL_CTRL_APPEND, &(uint64_t){ 0 });
	ck_assert_int_eq(((const struct nci_ev_proxy_ctrl *)pd_slot(&pd, h))->appended, -1);
	pd_state(&pd, h, NCCL_CTRL_APPEND_END, &(uint64_t){ UINT64_C(0xa5a5a5a500000011) });
	pd_stop(&pd, h);
	ev = one_record(NCI_EV_PROXY_CTRL, 1, h, NULL);
	ck_assert_uint_eq(ev->marks.first, NCCL_CTRL_APPEND);
	ck_assert_uint_eq(ev->marks.last, NCCL_CTRL_APPEND_END);
	ck_assert_uint_eq(ev->marks.count, 2);
	ck_assert_int_eq(ev->appended, 17);
}

TEST_LOOP(kernel_ch_is_recorded_from_v3_on, 3, 7)
{
	const struct nci_ev_kernel_ch *ev;
	void *h;

	setup(_i);
	h = PD_START(&pd, NCCL_KERNEL_CH, .parent = (void *)16, .channel = 63);
	if (_i >= 4)
		pd_state(&pd, h, NCCL_KERNEL_CH_STOP, &(uint64_t){ 2000000 });
	pd_stop(&pd, h);
	ev = one_record(NCI_EV_KERNEL_CH, 1, h, (void *)16);
	ck_assert_uint_eq(ev->channel, 63);
	ck_assert_uint_eq(ev->gpu_start, _i >= 4 ? 1000063 : 0);
	ck_assert_uint_eq(ev->gpu_stop, _i >= 4 ? 2000000 : 0);
	ck_assert(!ev->stop_span == (_i < 4));
}

TEST_LOOP(net_plugin_is_recorded_from_v3_on, 3, 7)
{
	const struct nci_ev_net_plugin *ev;
	void *h;

	setup(_i);
	h = PD_START(&pd, NCCL_NET_PLUGIN, .parent = (void *)24);
	pd_state(&pd, h, NCCL_NET_PLUGIN_UPDATE, &(uint64_t){ 1 });
	pd_stop(&pd, h);
	ev = one_record(NCI_EV_NET_PLUGIN, 1, h, (void *)24);
	ck_assert_int_eq(ev->id, 0x10001);
	ck_assert_uint_eq(ev->marks.first, NCCL_NET_PLUGIN_UPDATE);
	ck_assert_uint_eq(ev->marks.count, 1);
}

static const struct nci_ev_net_plugin *request_record(void *data, bool send, void **op)
{
	void *step, *h;

	*op = PD_START(&pd, NCCL_PROXY_OP, .parent = (void *)24, .receive = !send, .channel = 3);
	step = PD_START(&pd, NCCL_PROXY_STEP, .parent = *op);
	h = PD_START(&pd, NCCL_NET_PLUGIN, .parent = step, .payload = data);
	pd_stop(&pd, h);
	pd_read(&pd);
	return (const struct nci_ev_net_plugin *)pd_record(&pd, NCI_EV_NET_PLUGIN, 0);
}

TEST_LOOP(a_work_request_is_told_with_its_queue_pair_and_link, 0, 2)
{
	struct nccl_net_ib_v1 ib = { NCCL_NET_TYPE, { 1, 77, 1, 4242, 65536 } };
	const struct nci_ev_net_plugin *ev;
	void *op;

	setup(6);
	ev = request_record(&ib, _i, &op);
	ck_assert_uint_eq(NCI_FORM_LINES(ev->form), 2);
	ck_assert(!(ev->form & NCI_FORM_SEND) == !_i);
	ck_assert_uint_eq(ev->op, (uint64_t)op);
	ck_assert_int_eq(ev->peer, 3);
	ck_assert_uint_eq(ev->channel, 3);
	ck_assert_uint_eq(ev->queue, 4242);
	ck_assert_int_eq(ev->device, 1);
	ck_assert_uint_eq(ev->request, 77);
	ck_assert_int_eq(ev->opcode, _i ? 1 : -1);
	ck_assert_uint_eq(ev->bytes, _i ? 65536 : 0);
}

TEST_LOOP(a_payload_of_no_known_type_is_not_read, 0, 2)
{
	struct nccl_net_ib_v1 ib = { NCCL_NET_TYPE + 1, { 1, 77, 1, 4242, 65536 } };
	void *op;

	setup(6);
	ck_assert_uint_eq(NCI_FORM_LINES(request_record(_i ? &ib : NULL, true, &op)->form), 1);
}

TEST_LOOP(api_events_are_recorded_from_v5_on, 5, 7)
{
	const struct nci_ev_group_api *group;
	const struct nci_ev_coll_api *coll;
	const struct nci_ev_p2p_api *p2p;
	const struct nci_ev_kernel_launch *launch;
	void *g, *h;

	setup(_i);
	g = PD_START(&pd, NCCL_GROUP_API);
	pd_state(&pd, g, NCCL_GROUP_API_START_STOP, _i == 5 ? &(uint64_t){ 5 } : NULL);
	h = PD_START(&pd, NCCL_COLL_API, .parent = g);
	pd_stop(&pd, h);
	coll = one_record(NCI_EV_COLL_API, 1, h, g);
	ck_assert_uint_eq(coll->count, 333);
	ck_assert_uint_eq(coll->stream, 0x5000);
	IS_NAMED(coll->func, "AllGather");
	IS_NAMED(coll->datatype, "ncclBfloat16");
	ck_assert_int_eq(coll->root, 1);
	ck_assert_uint_eq(coll->form & 0xf0, 0);

	h = PD_START(&pd, NCCL_P2P_API, .parent = g);
	pd_stop(&pd, h);
	p2p = one_record(NCI_EV_P2P_API, 1, h, g);
	ck_assert_uint_eq(p2p->count, 444);
	ck_assert_uint_eq(p2p->stream, 0x6000);
	IS_NAMED(p2p->func, "Recv");
	IS_NAMED(p2p->datatype, "ncclInt64");
	ck_assert_uint_eq(p2p->form & 0xf0, NCI_FORM_GRAPH);

	pd_state(&pd, g, NCCL_GROUP_API_END_START, NULL);
	h = PD_START(&pd, NCCL_KERNEL_LAUNCH, .parent = g);
	pd_stop(&pd, h);
	launch = one_record(NCI_EV_KERNEL_LAUNCH, 1, h, g);
	ck_assert_uint_eq(launch->stream, 0x5000);

	pd_stop(&pd, g);
	group = one_record(NCI_EV_GROUP_API, 1, g, NULL);
	ck_assert_int_eq(group->depth, 2);
	ck_assert_uint_ne(group->begin_span, 0);
	ck_assert_uint_ge(group->end_span, group->begin_span);
	ck_assert_uint_eq(group->form & 0xf0, NCI_FORM_GRAPH);
}

TEST(copy_engine_events_are_recorded_from_v6_on)
{
	const struct nci_ev_ce_coll *coll;
	const struct nci_ev_ce_sync *sync;
	const struct nci_ev_ce_batch *batch;
	void *c, *h;

	setup(6);
	c = PD_START(&pd, NCCL_CE_COLL, .parent = (void *)32);
	pd_state(&pd, c, NCCL_CE_COLL_START, NULL);
	h = PD_START(&pd, NCCL_CE_SYNC, .parent = c);
	pd_state(&pd, h, NCCL_CE_SYNC_START, NULL);
	pd_state(&pd, h, NCCL_CE_SYNC_COMPLETE, NULL);
	pd_stop(&pd, h);
	sync = one_record(NCI_EV_CE_SYNC, 1, h, c);
	ck_assert_int_eq(sync->ranks, 4);
	ck_assert_int_eq(sync->rank, 1);
	ck_assert_uint_eq(sync->complete, 1);
	ck_assert_uint_eq(sync->marks.count, 2);

	h = PD_START(&pd, NCCL_CE_BATCH, .parent = c);
	pd_state(&pd, h, NCCL_CE_BATCH_START, NULL);
	pd_state(&pd, h, NCCL_CE_BATCH_COMPLETE, NULL);
	pd_stop(&pd, h);
	batch = one_record(NCI_EV_CE_BATCH, 1, h, c);
	ck_assert_uint_eq(batch->bytes, 1 << 20);
	ck_assert_int_eq(batch->ops_sync, 21 << 1 | 1);
	ck_assert_uint_eq(batch->marks.last, NCCL_CE_BATCH_COMPLETE);

	pd_state(&pd, c, NCCL_CE_COLL_COMPLETE, NULL);
	pd_stop(&pd, c);
	coll = one_record(NCI_EV_CE_COLL, 2, c, (void *)32);
	ck_assert_uint_eq(coll->seq, 4);
	ck_assert_uint_eq(coll->count, 2048);
	IS_NAMED(coll->func, "AlltoAll");
	IS_NAMED(coll->datatype, "ncclInt8");
	IS_NAMED(coll->sync, "MC");
	ck_assert_uint_eq(coll->intra_sync, 1);
	ck_assert_int_eq(coll->rank, 1);
	ck_assert_uint_eq(coll->stream, 0x5000);
	ck_assert_uint_eq(coll->batch_size, 8);
	ck_assert_uint_eq(coll->batches, 9);
	ck_assert_uint_eq(coll->ce_seq, 10);
	ck_assert_uint_ne(coll->begin_span, 0);
	ck_assert_uint_ge(coll->end_span, coll->begin_span);
}

TEST_LOOP(a_type_that_the_version_has_not_is_refused_and_counted, 1, 7)
{
	static const uint32_t events[] = { 0, NCCL_EVENTS_V1, NCCL_EVENTS_V2, NCCL_EVENTS_V3,
					   NCCL_EVENTS_V4, NCCL_EVENTS_V5, NCCL_EVENTS_V6,
					   NCCL_EVENTS_V7 };
	unsigned int strange = 0;

	setup(_i);
	for (unsigned int bit = 0; bit < (_i < 5 ? 8 : 32); bit++) {
		uint32_t type = UINT32_C(1) << bit;

		if (type & events[_i]) {
			ck_assert_ptr_nonnull(PD_START(&pd, type));
		} else {
			ck_assert_ptr_null(PD_START(&pd, type));
			strange++;
		}
	}
	ck_assert_ptr_null(PD_START(&pd, 0));
	ck_assert_ptr_null(PD_START(&pd, NCCL_COLL | NCCL_P2P));
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.unknown_event, strange + 2);
}

/* From v5 on the type has 64 bits. */
TEST_LOOP(a_type_with_a_known_bit_among_unknown_ones_is_refused_and_counted, 5, 7)
{
	struct nccl_descr_v6 d;
	void *h;

	setup(_i);
	memset(&d, 0, sizeof(d));
	for (unsigned int bit = 15; bit < 64; bit++) {
		d.type = NCCL_GROUP | UINT64_C(1) << bit;
		if (_i == 5)
			pd.v5->startEvent(pd.context, &h, (struct nccl_descr_v5 *)&d);
		else
			pd.v6->startEvent(pd.context, &h, &d);
		ck_assert_ptr_null(h);
	}
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.unknown_event, 64 - 15);
}

TEST(a_code_without_a_name_in_v1_is_unknown)
{
	struct nccl_descr_v1 d;
	const struct nci_ev_coll *ev;
	void *h;

	setup(1);
	memset(&d, 0xff, sizeof(d));
	d.type = NCCL_COLL;
	d.parentObj = NULL;
	pd.v1->startEvent(pd.context, &h, &d);
	pd_stop(&pd, h);
	ev = one_record(NCI_EV_COLL, 2, h, NULL);
	ck_assert_uint_eq(ev->func | ev->datatype | ev->algo | ev->proto, 0);
}

TEST(sixty_four_channels_are_told_apart)
{
	void *op[64], *kernel[64];

	setup(6);
	for (int c = 0; c < 64; c++) {
		op[c] = PD_START(&pd, NCCL_PROXY_OP, .channel = (uint8_t)c);
		kernel[c] = PD_START(&pd, NCCL_KERNEL_CH, .channel = (uint8_t)c);
	}
	for (int c = 63; c >= 0; c--) {
		pd_state(&pd, kernel[c], NCCL_KERNEL_CH_STOP, &(uint64_t){ 3000000 + c });
		pd_stop(&pd, kernel[c]);
		pd_stop(&pd, op[c]);
	}
	pd_read(&pd);
	ck_assert_uint_eq(pd_count(&pd, NCI_EV_KERNEL_CH), 64);
	ck_assert_uint_eq(pd_count(&pd, NCI_EV_PROXY_OP), 64);
	for (unsigned int i = 0; i < 64; i++) {
		const struct nci_ev_kernel_ch *ev = (const struct nci_ev_kernel_ch *)
			pd_record(&pd, NCI_EV_KERNEL_CH, i);

		ck_assert_uint_eq(ev->channel, 63 - i);
		ck_assert_uint_eq(ev->gpu_stop, 3000063 - i);
	}
}

int main(void)
{
	return fx_run(NULL, NULL);
}
