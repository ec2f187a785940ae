/* SPDX-License-Identifier: Apache-2.0 */
/* How operations end that have no last record: settled, given up, cut off. */
#include "nci/sums.h"
#include "reader/join/inflight.h"
#include "tests/fx_recon.h"

static struct fx_recon fx;

static void teardown(void)
{
	fx_recon_close(&fx);
}

static void give(union fx_record r)
{
	fx_give(&fx, &fx.a, &r);
}

TEST(send_on_fewer_channels_than_planned_is_settled_when_quiet)
{
	union fx_record live = fx_kernel(102, 8, 1, 7000, 0);

	fx_recon_open(&fx, 4, FX_MASK_KERNEL);
	give(fx_p2p(8, 0, 2, 4, 100));
	give(fx_kernel(101, 8, 0, 5000, 9000));
	fx_wait(&fx, 300 * FX_MS);
	fx_look(&fx, &live, 1);			/* a second channel is at work */
	fx_wait(&fx, 60 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 0);
	fx_look(&fx, NULL, 0);
	fx_wait(&fx, 60 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert(fx.done[0].complete);
	ck_assert_uint_eq(fx.done[0].exec_ns, 4000);
	ck_assert_int_eq(fx.done[0].peer, 2);
}

/* Operations in flight, as they are told, while `live` is. */
static uint32_t count_in_flight(const union fx_record *live, size_t n)
{
	struct inflights all = { 0 };
	struct live_slot slot = { 0 };
	uint32_t ops = 0;

	if (n)
		memcpy(&slot.slot, live, sizeof(*live));
	inflights_add(&all, fx.rc, &fx.a.p, &slot, n, fx.now);
	for (uint32_t i = 0; i < all.n; i++)
		ops += all.at[i].is_op;
	inflights_deinit(&all);
	return ops;
}

/* One node, and no kernel that is watched: it may be over, and nothing tells. */
TEST(what_nothing_tells_the_end_of_is_not_told_as_in_flight)
{
	fx_recon_open(&fx, 2, FX_MASK_PROXY);
	give(fx_p2p(8, 0, 2, 4, 100));
	ck_assert_uint_eq(count_in_flight(NULL, 0), 0);
}

TEST(what_only_settles_is_not_told_as_in_flight)
{
	union fx_record live = fx_kernel(102, 8, 1, 7000, 0);

	fx_recon_open(&fx, 4, FX_MASK_KERNEL);
	give(fx_p2p(8, 0, 2, 4, 100));
	ck_assert_uint_eq(count_in_flight(NULL, 0), 1);		/* the GPU has not come to it */
	give(fx_kernel(101, 8, 0, 5000, 9000));
	ck_assert_uint_eq(count_in_flight(&live, 1), 1);
	ck_assert_uint_eq(count_in_flight(NULL, 0), 0);
	fx_look(&fx, &live, 1);
	fx_wait(&fx, 1100 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 0);
	ck_assert_uint_eq(count_in_flight(NULL, 0), 1);		/* children are elsewhere, if any */
}

TEST_LOOP(send_to_oneself_has_no_children_to_wait_for, 0, 2)
{
	union fx_record r = fx_p2p(8, 0, 0, 4, 100);

	fx_recon_open(&fx, 4, _i ? FX_MASK_KERNEL : FX_MASK_PROXY);
	r.rec.comm = 1;
	give(r);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert_uint_eq(fx.done[0].exec_ns, UNKNOWN_U64);
}

TEST(collective_that_hangs_stays_open_and_says_how_far_it_came)
{
	union fx_record live = fx_kernel(102, 8, 1, 7000, 0);
	struct comm_progress progress;

	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	give(fx_coll(8, 0, 3, 4, 100));
	give(fx_kernel(101, 8, 0, 5000, 9000));
	for (int i = 0; i < 100; i++) {
		fx_wait(&fx, 1000 * FX_MS);
		fx_look(&fx, &live, 1);
	}
	ck_assert_uint_eq(fx.ndone, 0);
	ck_assert(reconstruct_progress(&fx.a.p, 0, &progress));
	ck_assert_uint_eq(progress.in_flight, 1);
	ck_assert_uint_eq(progress.nfuncs, 1);
	ck_assert_uint_eq(progress.last_seq[0].seq, 3);
	fx.now++;
	reconstruct_end(fx.rc, &fx.a.p, fx.now);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert(!fx.done[0].complete);
	ck_assert_uint_eq(fx.done[0].exec_ns, UNKNOWN_U64);
	ck_assert_uint_eq(fx.done[0].kernel_stopped, 1);
}

TEST(collective_that_lost_a_record_is_given_up_when_a_later_one_completes)
{
	fx_recon_open(&fx, 4, FX_MASK_KERNEL);
	give(fx_coll(8, 0, 3, 2, 100));
	give(fx_kernel(101, 8, 0, 5000, 9000));	/* the other channel's is lost */
	give(fx_coll(9, 0, 4, 1, 200));
	give(fx_kernel(103, 9, 0, 10000, 11000));
	ck_assert_uint_eq(fx.ndone, 1);
	for (int i = 0; i < 30; i++) {
		fx_wait(&fx, 60 * FX_MS);
		fx_look(&fx, NULL, 0);
	}
	ck_assert_uint_eq(fx.ndone, 2);
	ck_assert_uint_eq(fx.done[1].token, 8);
	ck_assert(!fx.done[1].complete);
}

/* Where kernels are not watched, transfers tell as well that what was before is over. */
TEST_LOOP(collective_that_lost_a_record_is_given_up_when_later_transfers_end, 0, 2)
{
	union fx_record watched = fx_coll(8, 0, 3, 2, 100), moved = fx_proxy(103, 9, 210, 300);

	watched.rec.form |= NCI_FORM_WATCHED;
	if (_i)		/* cut off by an abort: it has not ended */
		moved.rec.form |= NCI_FORM_UNSTOPPED;
	fx_recon_open(&fx, 4, FX_MASK_PROXY);
	fx.a.comms[0].nnodes = 2;
	give(watched);				/* its kernels' records are lost */
	give(fx_coll(9, 0, 4, 1, 200));
	give(moved);
	for (int i = 0; i < 30; i++) {
		fx_wait(&fx, 60 * FX_MS);
		fx_look(&fx, NULL, 0);
	}
	ck_assert_uint_eq(fx.ndone, _i ? 1 : 2);
	ck_assert_uint_eq(fx.done[0].token, 9);
	ck_assert(fx.done[0].complete);
	if (!_i)
		ck_assert(!fx.done[1].complete);
}

TEST(collective_that_lost_a_record_is_given_up_when_its_comm_is_finalized)
{
	fx_recon_open(&fx, 4, FX_MASK_KERNEL);
	give(fx_coll(8, 0, 3, 2, 100));
	give(fx_kernel(101, 8, 0, 5000, 9000));
	for (int i = 0; i < 60; i++) {
		if (i == 30)
			fx.a.comms[0].finalize_ticks = 20000;
		ck_assert_uint_eq(fx.ndone, i > 31);
		fx_wait(&fx, 60 * FX_MS);
		fx_look(&fx, NULL, 0);
	}
	ck_assert(!fx.done[0].complete);
}

/* A send that waits for its own GPU, for the peer's room, and is on the wire. */
static union fx_record make_step(uint64_t token, uint64_t parent, uint64_t start, uint64_t stop)
{
	union fx_record r = fx_head(NCI_EV_PROXY_STEP, 1, token, parent, start, stop);

	r.step.form |= NCI_FORM_SEND;
	r.step.bytes = 100;
	r.step.span[0] = 1;
	r.step.span[1] = 2000;
	r.step.span[2] = 2500;
	return r;
}

TEST(network_operation_is_timed_from_its_first_data_without_kernel_events)
{
	union fx_record r = fx_coll(8, 0, 3, 2, 100), live = fx_proxy(202, 8, 6000, 0);
	union fx_record step = make_step(300, 201, 5000, 8800);

	fx_recon_open(&fx, 4, FX_MASK_PROXY);
	r.rec.comm = 1;
	give(r);
	give(step);
	give(fx_proxy(201, 8, 5000, 9000));	/* with its batch, after its last step */
	fx_wait(&fx, 300 * FX_MS);
	fx_look(&fx, &live, 1);
	fx_wait(&fx, 60 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 0);
	give(fx_proxy(202, 8, 6000, 8000));
	fx_wait(&fx, 300 * FX_MS);
	fx_look(&fx, NULL, 0);
	fx_wait(&fx, 60 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert(fx.done[0].complete);
	ck_assert_uint_eq(fx.done[0].exec_ns, 1800);	/* without the wait for its own GPU */
	ck_assert_int_eq(fx.done[0].source, TIMING_PROXY_CPU);
	ck_assert_uint_eq(fx.done[0].proxy_bytes, 200);
	ck_assert_uint_eq(fx.done[0].proxy_steps, 4);
}

TEST(network_operation_is_timed_alike_where_its_steps_are_told_in_sum)
{
	union fx_record r = fx_coll(8, 0, 3, 2, 100), op = fx_proxy(201, 8, 4000, 9000);
	union fx_record step = make_step(300, 201, 5000, 8800);
	union fx_record sums = fx_head(NCI_EV_PROXY_SUMS, 2, 301, 201, 5000, 0);

	fx_recon_open(&fx, 4, FX_MASK_PROXY);
	r.rec.comm = 1;
	sums.sums.cont = NCI_LINE_CONT;
	nci_sums_leave(&sums.sums, &step.step, nci_sums_enter(&sums.sums, &step.step), 8800);
	op.proxy.state_span[0] = 3000;
	give(r);
	give(sums);
	give(op);
	fx_wait(&fx, 300 * FX_MS);
	fx_look(&fx, NULL, 0);
	fx_wait(&fx, 60 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert_uint_eq(fx.done[0].exec_ns, 1800);
	ck_assert_int_eq(fx.done[0].source, TIMING_PROXY_CPU);
}

TEST(proxy_work_of_another_process_joins_the_one_that_issued_it)
{
	union fx_record r = fx_coll(8, 0, 3, 2, 100), proxy = fx_proxy(201, 8, 5000, 9000);

	fx_recon_open(&fx, 4, FX_MASK_PROXY);
	r.rec.comm = 1;
	give(r);
	proxy.rec.form |= NCI_FORM_FOREIGN;
	proxy.rec.comm = NCI_COMM_NONE;
	proxy.proxy.origin = nci_context(fx.a.p.nonce, 1);
	fx_give(&fx, &fx.b, &proxy);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->foreign, 1);
	fx_wait(&fx, 300 * FX_MS);
	ck_assert(reconstruct_wants_slots(fx.rc, &fx.b.p, fx.now));
	fx_look(&fx, NULL, 0);
	fx_wait(&fx, 60 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert_uint_eq(fx.done[0].process_id, 1);
	ck_assert_uint_eq(fx.done[0].proxy_ops, 1);
	ck_assert_uint_eq(fx.done[0].exec_ns, UNKNOWN_U64);	/* when it had data nobody tells */
}

static void become(struct fx_process *f, uid_t uid, uint32_t nonce)
{
	reconstruct_detach(fx.rc, &f->p);
	f->p.uid = uid;
	f->p.nonce = nonce;
	ck_assert_int_eq(reconstruct_attach(fx.rc, &f->p), 0);
}

TEST(a_nonce_that_another_user_has_as_well_names_one_s_own_process)
{
	union fx_record proxy = fx_proxy(201, 8, 5000, 9000);
	static struct fx_process mate;

	fx_recon_open(&fx, 4, FX_MASK_PROXY);
	become(&fx.a, 1, 0x5003);		/* and it was first */
	fx_process_init(&fx, &mate, 3, 4, FX_MASK_PROXY);
	ck_assert_uint_eq(mate.p.nonce, 0x5003);
	proxy.rec.form |= NCI_FORM_FOREIGN;
	proxy.rec.comm = NCI_COMM_NONE;
	proxy.proxy.origin = nci_context(0x5003, 0);
	fx_give(&fx, &fx.b, &proxy);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->foreign, 1);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->foreign_orphans, 0);
	reconstruct_detach(fx.rc, &mate.p);
}

TEST(foreign_work_of_unknown_or_other_users_processes_is_counted)
{
	union fx_record proxy = fx_proxy(201, 8, 5000, 9000);

	fx_recon_open(&fx, 4, FX_MASK_PROXY);
	proxy.rec.form |= NCI_FORM_FOREIGN;
	proxy.proxy.origin = nci_context(0x1234, 0);
	fx_give(&fx, &fx.b, &proxy);
	become(&fx.a, 1, fx.a.p.nonce);
	proxy.proxy.origin = nci_context(fx.a.p.nonce, 0);
	fx_give(&fx, &fx.b, &proxy);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->foreign_orphans, 2);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->foreign, 0);
}

TEST(host_times_are_used_where_the_api_has_no_stamps)
{
	union fx_record r = fx_coll(8, 7, 3, 2, 100), kernel = fx_kernel(101, 8, 0, 5000, 9000);

	fx_recon_open(&fx, 3, FX_MASK_KERNEL);
	r.coll.comm_hash = 0xabcd;
	r.coll.rank = 2;
	kernel.kernel.gpu_start = kernel.kernel.gpu_stop = 0;
	give(r);
	give(kernel);
	fx_wait(&fx, 300 * FX_MS);
	fx_look(&fx, NULL, 0);
	fx_wait(&fx, 60 * FX_MS);		/* two channels at most, says API v3 */
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert_int_eq(fx.done[0].source, TIMING_KERNEL_CPU);
	ck_assert_uint_eq(fx.done[0].exec_ns, 4000);
	ck_assert_uint_eq(fx.done[0].stamps_refused, 0);
	ck_assert_uint_eq(fx.done[0].comm_id, 0xabcd);
	ck_assert_int_eq(fx.done[0].rank, 2);
	ck_assert_int_eq(fx.done[0].nranks, UNKNOWN_I32);
	ck_assert(fx.done[0].busbw_gbs < 0);	/* how many ranks there are is not known */
	ck_assert(fx.done[0].algbw_gbs > 0);
}

/* The first operation tells; whatever others say later is not believed. */
TEST(before_version_4_a_communicator_is_known_by_its_operations)
{
	union fx_record first = fx_coll(8, 7, 3, 2, 100), second = fx_coll(9, 7, 4, 2, 200);

	fx_recon_open(&fx, 3, FX_MASK_OPS);
	first.coll.rank = 2;
	give(first);
	ck_assert(!fx.a.comms[0].has_id);	/* NCCL 2.27 on gives no hash */
	second.coll.comm_hash = 0xabcd;
	second.coll.rank = 2;
	give(second);
	ck_assert(fx.a.comms[0].has_id);
	ck_assert_uint_eq(fx.a.comms[0].id, 0xabcd);
	ck_assert_int_eq(fx.a.comms[0].rank, 2);
	ck_assert_int_eq(fx.a.comms[0].nranks, UNKNOWN_I32);
	ck_assert(!fx.a.comms[1].has_id);
	second = fx_coll(10, 7, 5, 2, 300);
	second.coll.comm_hash = 0x1234;
	give(second);
	ck_assert_uint_eq(fx.a.comms[0].id, 0xabcd);
}

TEST(last_operations_of_a_process_are_complete_unless_a_child_was_in_flight)
{
	union fx_record first = fx_coll(8, 0, 3, 2, 100), second = fx_coll(9, 0, 4, 2, 200);
	union fx_record live = fx_proxy(203, 9, 9000, 0);
	union fx_record step = make_step(300, 201, 5000, 9000);
	struct live_slot slot = { 0 };

	fx_recon_open(&fx, 4, FX_MASK_PROXY);
	first.rec.comm = second.rec.comm = 1;
	give(first);
	give(second);
	give(step);
	give(fx_proxy(201, 8, 5000, 9000));
	give(fx_proxy(202, 9, 9000, 9900));
	memcpy(&slot.slot, &live, sizeof(live));
	fx.a.p.last_slots = &slot;
	fx.a.p.nlast_slots = 1;
	fx.now++;
	reconstruct_end(fx.rc, &fx.a.p, fx.now);
	ck_assert_uint_eq(fx.ndone, 2);
	ck_assert(fx.done[0].complete);
	ck_assert_uint_eq(fx.done[0].exec_ns, 2000);
	ck_assert(!fx.done[1].complete);
}

TEST(finalized_communicator_has_waited_for_its_operations)
{
	union fx_record r = fx_coll(8, 0, 3, 2, 100);

	fx_recon_open(&fx, 4, FX_MASK_PROXY);
	r.rec.comm = 1;
	give(r);
	fx.a.comms[1].finalize_ticks = 5000;
	reconstruct_end(fx.rc, &fx.a.p, fx.now);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert(fx.done[0].complete);
	ck_assert_uint_eq(fx.done[0].exec_ns, UNKNOWN_U64);
}

static bool count_open(const struct op *op, void *arg)
{
	ck_assert(!op->complete);
	++*(int *)arg;
	return true;
}

TEST(open_operations_and_calls_can_be_listed_also_after_the_end)
{
	int n = 0;

	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	give(fx_coll_api(7, 6, FX_ALLREDUCE, 1024, 190));
	give(fx_coll(8, 0, 3, 2, 100));
	reconstruct_open(fx.rc, &fx.a.p, count_open, &n);
	ck_assert_int_eq(n, 2);
	reconstruct_end(fx.rc, &fx.a.p, fx.now);
	ck_assert_uint_eq(fx.ndone, 2);
	reconstruct_open(fx.rc, &fx.a.p, count_open, &n);
	ck_assert_int_eq(n, 4);
	reconstruct_end(fx.rc, &fx.a.p, fx.now);
	fx_wait(&fx, 100000 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 2);
}

TEST(call_that_came_last_is_told_at_the_end)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	give(fx_coll_api(7, 0, FX_ALLREDUCE, 1024, 190));
	reconstruct_end(fx.rc, &fx.a.p, fx.now);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert(fx.done[0].api_only);
}

int main(void)
{
	return fx_run(NULL, teardown);
}
