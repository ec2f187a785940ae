/* SPDX-License-Identifier: Apache-2.0 */
/* What NCCL does with handles and contexts that a plugin would not expect. */
#include <fcntl.h>
#include <unistd.h>

#include "shmring/producer.h"
#include "tests/fixture.h"
#include "tests/plugin_driver.h"

static struct pd pd;

static void setup(void)
{
	pd_open(&pd, "trace");
	pd_init(&pd);
}

static const struct nci_ev_proxy_step *step_record(unsigned int n)
{
	return (const struct nci_ev_proxy_step *)pd_record(&pd, NCI_EV_PROXY_STEP, n);
}

static const struct nci_ev_proxy_op *op_record(unsigned int n)
{
	return (const struct nci_ev_proxy_op *)pd_record(&pd, NCI_EV_PROXY_OP, n);
}

TEST(null_handles_and_arguments_do_nothing)
{
	void *h = PD_START(&pd, NCCL_KERNEL_CH);

	pd_stop(&pd, NULL);
	pd_state(&pd, NULL, NCCL_NET_PLUGIN_UPDATE, NULL);
	pd_state(&pd, h, NCCL_KERNEL_CH_STOP, NULL);
	pd_stop(&pd, h);
	h = (void *)-1;
	pd.v6->startEvent(pd.context, &h, NULL);
	ck_assert_ptr_null(h);
	pd_read(&pd);
	ck_assert_uint_eq(pd.lane[0].stale, 0);
	ck_assert_uint_eq(((const struct nci_ev_kernel_ch *)
			   pd_record(&pd, NCI_EV_KERNEL_CH, 0))->gpu_stop, 0);
}

TEST(second_and_later_stops_are_counted_and_ignored)
{
	void *h = PD_START(&pd, NCCL_COLL_API);

	for (int i = 0; i < 5; i++)
		pd_stop(&pd, h);
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 1);
	ck_assert_uint_eq(pd.lane[0].stale, 4);
}

TEST(stale_handle_does_not_touch_the_event_that_has_its_slot_now)
{
	void *old = PD_START(&pd, NCCL_COLL_API), *young;

	pd_stop(&pd, old);
	young = PD_START(&pd, NCCL_KERNEL_CH);
	ck_assert_uint_eq(nci_token_slot((uint64_t)old), nci_token_slot((uint64_t)young));
	pd_stop(&pd, old);
	pd_state(&pd, old, NCCL_KERNEL_CH_STOP, &(uint64_t){ 1 });
	ck_assert_ptr_nonnull(pd_slot(&pd, young));
	pd_stop(&pd, young);
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 2);
	ck_assert_uint_eq(pd.lane[0].stale, 2);
	ck_assert_uint_eq(((const struct nci_ev_kernel_ch *)
			   pd_record(&pd, NCI_EV_KERNEL_CH, 0))->gpu_stop, 0);
}

TEST(states_after_the_stop_are_counted_and_ignored)
{
	void *h = PD_START(&pd, NCCL_KERNEL_CH);

	pd_stop(&pd, h);
	pd_state(&pd, h, NCCL_KERNEL_CH_STOP, &(uint64_t){ 1 });
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 1);
	ck_assert_uint_eq(pd.lane[0].stale, 1);
}

TEST(invented_handles_are_counted_and_ignored)
{
	static const uint64_t invented[] = {
		1, 0xfff, 4096, UINT64_C(0x7fffdeadbeef), UINT64_MAX, UINT64_C(1) << 63,
		UINT64_C(0xffffffffffff0000), 0xff000, 0x80000, 0x7f000 | 0x3ff,
	};
	unsigned int n = FX_COUNT(invented);

	PD_START(&pd, NCCL_GROUP);
	for (unsigned int i = 0; i < n; i++) {
		pd_state(&pd, (void *)invented[i], NCCL_KERNEL_CH_STOP, NULL);
		pd_stop(&pd, (void *)invented[i]);
	}
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 0);
	ck_assert_uint_eq(pd.lane[0].stale, 2 * n);
}

TEST(free_bit_of_an_empty_slot_is_no_handle)
{
	void *h = PD_START(&pd, NCCL_GROUP);

	pd_stop(&pd, h);
	pd_stop(&pd, (void *)((uint64_t)h | NCI_TOKEN_FREE));
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 1);
	ck_assert_uint_eq(pd.lane[0].stale, 1);
}

TEST(unknown_and_misplaced_states_are_counted_and_ignored)
{
	void *h = PD_START(&pd, NCCL_KERNEL_CH);
	struct nci_slot before;

	before = *(const struct nci_slot *)pd_slot(&pd, h);
	pd_state(&pd, h, 31, &(uint64_t){ 7 });
	pd_state(&pd, h, -1, &(uint64_t){ 7 });
	pd_state(&pd, h, 1 << 30, &(uint64_t){ 7 });
	pd_state(&pd, h, NCCL_STEP_SEND_WAIT, &(uint64_t){ 7 });
	ck_assert_mem_eq(pd_slot(&pd, h), &before, sizeof(before));
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.unknown_state, 4);
}

TEST(events_after_finalize_are_refused_and_counted)
{
	void *coll = PD_START(&pd, NCCL_COLL), *other;
	struct nci_comm closed, still;

	other = pd_init_named(&pd, 99, "other", NULL);
	pd_finalize(&pd, pd.context);
	ck_assert_ptr_null(PD_START(&pd, NCCL_PROXY_CTRL));
	ck_assert_ptr_null(PD_START(&pd, NCCL_PROXY_OP, .parent = coll));
	ck_assert_ptr_nonnull(PD_START(&pd, NCCL_GROUP, .context = other));
	pd_stop(&pd, coll);
	pd_finalize(&pd, pd.context);
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.closed_comm, 2);
	ck_assert_uint_eq(pd.live.comms_open, 1);
	closed = pd_comm(&pd, 0);
	still = pd_comm(&pd, 1);
	ck_assert_uint_ne(closed.finalize, 0);
	ck_assert_uint_eq(still.finalize, 0);
	ck_assert_uint_eq(pd_count(&pd, NCI_EV_COLL), 1);
}

TEST(contexts_that_nobody_gave_are_refused_and_counted)
{
	uint64_t own = (uint64_t)pd.context;

	ck_assert_ptr_null(PD_START(&pd, NCCL_COLL, .context = (void *)(own + 1)));
	ck_assert_ptr_null(PD_START(&pd, NCCL_COLL, .context = (void *)(own ^ 1)));
	ck_assert_ptr_null(PD_START(&pd, NCCL_COLL, .context = (void *)0x7fff12345678));
	ck_assert_ptr_null(PD_START(&pd, NCCL_PROXY_STEP, .context = (void *)0x7fff12345678));
	pd.context = NULL;
	ck_assert_ptr_null(PD_START(&pd, NCCL_COLL));
	ck_assert_ptr_null(PD_START(&pd, NCCL_PROXY_OP));
	pd_finalize(&pd, NULL);
	pd_finalize(&pd, (void *)0x7fff12345678);
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.bad_context, 6);
	ck_assert_uint_eq(pd.live.comms_open, 1);
}

TEST(operation_of_another_process_is_recorded_with_its_origin)
{
	void *foreign = (void *)(UINT64_C(0x8badf00d) << 32 | 1), *parent = (void *)0x1234000;
	struct nccl_net_ib_v1 ib = { NCCL_NET_TYPE, { 0, 77, 1, 4242, 65536 } };
	const struct nci_ev_net_plugin *request;
	const struct nci_ev_proxy_op *ev;
	void *op, *step, *net;

	op = PD_START(&pd, NCCL_PROXY_OP, .context = foreign, .parent = parent, .pid = 4242);
	step = PD_START(&pd, NCCL_PROXY_STEP, .context = foreign, .parent = op);
	net = PD_START(&pd, NCCL_NET_PLUGIN, .context = foreign, .parent = step, .payload = &ib);
	ck_assert(op && step && net);
	pd_state(&pd, step, NCCL_STEP_SEND_WAIT, &(uint64_t){ 100 });
	pd_stop(&pd, net);
	pd_stop(&pd, step);
	pd_stop(&pd, op);
	pd_read(&pd);
	ev = op_record(0);
	ck_assert_uint_eq(ev->form & 0xf0, NCI_FORM_FOREIGN | NCI_FORM_SEND);
	ck_assert_uint_eq(ev->comm, NCI_COMM_NONE);
	ck_assert_uint_eq(ev->origin, (uint64_t)foreign);
	ck_assert_uint_eq(ev->parent, (uint64_t)parent);
	ck_assert_int_eq(ev->pid, 4242);
	ck_assert_uint_eq(ev->bytes, 100);
	ck_assert_uint_eq(step_record(0)->form & 0xf0, NCI_FORM_FOREIGN | NCI_FORM_SEND);
	ck_assert_uint_eq(step_record(0)->comm, NCI_COMM_NONE);
	request = (const void *)pd_record(&pd, NCI_EV_NET_PLUGIN, 0);
	ck_assert(request->form & NCI_FORM_FOREIGN);
	ck_assert_uint_eq(request->op, (uint64_t)op);
	ck_assert_uint_eq(request->origin, (uint64_t)foreign);
	ck_assert_uint_eq(pd.live.foreign, 3);
}

TEST(foreign_process_is_told_by_its_pid_even_with_an_equal_nonce)
{
	void *op = PD_START(&pd, NCCL_PROXY_OP, .pid = 4242);

	pd_stop(&pd, op);
	pd_read(&pd);
	ck_assert(op_record(0)->form & NCI_FORM_FOREIGN);
	ck_assert_uint_eq(op_record(0)->origin, (uint64_t)pd.context);
}

TEST(foreign_process_is_told_by_its_nonce_even_with_an_equal_pid)
{
	void *foreign = (void *)(UINT64_C(0x8badf00d) << 32 | 1);

	pd_stop(&pd, PD_START(&pd, NCCL_PROXY_OP, .context = foreign));
	pd_read(&pd);
	ck_assert(op_record(0)->form & NCI_FORM_FOREIGN);
}

TEST(operations_that_nothing_is_heard_of_do_not_fill_the_pool)
{
	unsigned int refused = 0;

	for (int i = 0; i < 100000; i++)
		if (!PD_START(&pd, NCCL_PROXY_OP))
			refused++;
	pd_read(&pd);
	ck_assert_uint_eq(refused, 0);
	ck_assert_uint_ge(pd.lane[0].reclaimed, 100000 - pd.lane[0].slots);
	ck_assert_uint_eq(pd.lane[0].pool_full, 0);
}

TEST(events_that_are_alive_are_not_pushed_out)
{
	void *first = PD_START(&pd, NCCL_PROXY_OP);
	unsigned int refused = 0;

	pd_state(&pd, first, NCCL_OP_IN_PROGRESS, NULL);
	for (int i = 0; i < 5000; i++)
		if (!PD_START(&pd, NCCL_COLL))
			refused++;
	pd_read(&pd);
	ck_assert_uint_eq(refused, 5001 - pd.lane[0].slots);
	ck_assert_uint_eq(pd.lane[0].pool_full, refused);
	ck_assert_uint_eq(pd.lane[0].reclaimed, 0);
	ck_assert_ptr_nonnull(pd_slot(&pd, first));
}

TEST(stale_handles_cost_a_thread_nothing_of_its_lane)
{
	pd_stop(&pd, PD_START(&pd, NCCL_COLL));
	for (uint64_t i = 0; i < 1000; i++)
		pd_stop(&pd, (void *)(UINT64_C(0x7000000) + i));
	pd_stop(&pd, PD_START(&pd, NCCL_COLL));
	pd_read(&pd);
	ck_assert_uint_eq(pd.lane[0].stale, 1000);
	ck_assert_uint_eq(pd.lane[0].owners, 1);
}

/* All events of the lane began when the counter did. */
static void grow_old(void)
{
	const struct nci_lane *line = &pd.lane[0];
	uint64_t at, start = 1;
	int fd = open(pd.path, O_RDWR);

	ck_assert_int_ge(fd, 0);
	for (uint32_t i = 0; i < line->slots; i++) {
		at = line->offset + (uint64_t)line->lines * NCI_LINE_BYTES +
		     (uint64_t)i * NCI_SLOT_BYTES + offsetof(struct nci_record, start);
		ck_assert_int_eq(pwrite(fd, &start, sizeof(start), (off_t)at), sizeof(start));
	}
	close(fd);
}

TEST(handles_that_are_never_stopped_do_not_dry_the_pool)
{
	unsigned int got = 0;

	while (PD_START(&pd, NCCL_COLL))
		;
	pd_read(&pd);
	grow_old();
	for (int i = 0; i < 200; i++)
		got += PD_START(&pd, NCCL_COLL) != NULL;
	pd_read(&pd);
	/* The last walk, which found none, is made up for first. */
	ck_assert_uint_ge(got, 200 - 16);
	ck_assert_uint_eq(pd.lane[0].reclaimed > 0, 1);
}

TEST(what_a_finalized_communicator_left_open_makes_room)
{
	void *other = pd_init_named(&pd, 99, "other", NULL);
	unsigned int got = 0;

	while (PD_START(&pd, NCCL_COLL))
		;
	pd_finalize(&pd, pd.context);
	for (int i = 0; i < 2000; i++)
		if (PD_START(&pd, NCCL_COLL, .context = other))
			got++;
	pd_read(&pd);
	ck_assert_uint_eq(got, pd.lane[0].slots);
	ck_assert_uint_eq(pd.lane[0].reclaimed, got);
}

TEST(more_communicators_than_the_table_holds_are_counted_and_traced)
{
	void *last = NULL, *h;

	for (int i = 1; i < SHMRING_COMMS + 3; i++)
		last = pd_init_named(&pd, 1, "many", NULL);
	h = PD_START(&pd, NCCL_GROUP, .context = last);
	pd_stop(&pd, h);
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.no_comm, 3);
	ck_assert_uint_eq(pd.live.comms, SHMRING_COMMS);
	ck_assert_uint_eq(pd_record(&pd, NCI_EV_GROUP, 0)->comm, NCI_COMM_NONE);
	pd_finalize(&pd, last);
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.comms_open, SHMRING_COMMS + 2);
}

TEST(equal_communicator_ids_are_two_communicators)
{
	void *a = pd_init_named(&pd, 42, "shrunk", NULL);
	void *b = pd_init_named(&pd, 42, "shrunk", NULL);

	ck_assert_ptr_ne(a, b);
	pd_stop(&pd, PD_START(&pd, NCCL_GROUP, .context = a));
	pd_stop(&pd, PD_START(&pd, NCCL_GROUP, .context = b));
	pd_finalize(&pd, a);
	ck_assert_ptr_nonnull(PD_START(&pd, NCCL_GROUP, .context = b));
	pd_read(&pd);
	ck_assert_uint_eq(pd_record(&pd, NCI_EV_GROUP, 0)->comm, 1);
	ck_assert_uint_eq(pd_record(&pd, NCI_EV_GROUP, 1)->comm, 2);
	ck_assert_uint_eq(pd_comm(&pd, 1).comm_id, pd_comm(&pd, 2).comm_id);
}

static uint64_t chance(uint64_t n)
{
	return fx_random() % n;
}

static void *handles[256], *contexts[8];

static void *any_handle(void)
{
	return chance(8) ? handles[chance(256)] : (void *)chance(UINT64_MAX);
}

static void any_call(void)
{
	static const uint64_t garbage = UINT64_C(0xa5a5a5a5a5a5a5a5);
	void **handle = &handles[chance(256)];
	void **context = &contexts[chance(8)];

	switch (chance(64)) {
	case 0:
		pd_finalize(&pd, *context);
		*context = chance(8) ? pd_init(&pd) : (void *)chance(UINT64_MAX);
		break;
	case 1 ... 25:
		if (chance(16))
			pd_stop(&pd, *handle);
		*handle = PD_START(&pd, UINT32_C(1) << chance(17), .context = *context,
				   .parent = any_handle(), .group = any_handle(),
				   .step = (int)chance(40) - 4, .receive = (int)chance(2),
				   .pid = chance(4) ? 0 : 4242, .channel = (uint8_t)chance(256));
		break;
	case 26 ... 45:
		pd_state(&pd, any_handle(), (int)chance(40) - 4, chance(4) ? &garbage : NULL);
		break;
	default:
		pd_stop(&pd, any_handle());
	}
}

TEST(any_calls_in_any_order_leave_a_sound_segment)
{
	uint64_t records = 0;

	for (int i = 0; i < 300000; i++) {
		pd.version = 1 + (int)chance(6);
		any_call();
		if (i % 1000)
			continue;
		pd_read(&pd);		/* fails if anything is unsound */
		records += pd.records;
		pd.records = 0;
	}
	ck_assert_uint_gt(records, 10000);
	ck_assert_uint_eq(pd.reader[0].lost, 0);
	ck_assert_uint_eq(pd.lanes, 1);
}

int main(void)
{
	return fx_run(setup, NULL);
}
