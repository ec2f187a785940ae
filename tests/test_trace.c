/* SPDX-License-Identifier: Apache-2.0 */
/* Records and rows become slices that nest, and arrows between them. */
#include "tests/fx_trace.h"

static void setup(void)
{
	fx_trace_begin(true);
	fx_source(7, 0);
}

#define COLL_TOKEN nci_token(0, 1, 1)
#define OP_TOKEN   nci_token(1, 2, 1)

static struct nci_ev_coll a_coll(uint64_t start, uint64_t stop)
{
	return (struct nci_ev_coll){
		.type = NCI_EV_COLL, .form = 2, .token = COLL_TOKEN, .start = start, .stop = stop,
		.seq = 12, .count = 1024, .func = 1, .cont = NCI_LINE_CONT, .channels = 2,
	};
}

static struct nci_ev_kernel_ch a_kernel(uint8_t channel, uint64_t start, uint64_t stop)
{
	return (struct nci_ev_kernel_ch){
		.type = NCI_EV_KERNEL_CH, .form = 1, .token = nci_token(1, channel + 8u, 1),
		.parent = COLL_TOKEN, .start = start, .stop = stop, .channel = channel,
	};
}

static struct nci_ev_proxy_op a_proxy_op(uint64_t token, uint64_t start, uint64_t stop)
{
	return (struct nci_ev_proxy_op){
		.type = NCI_EV_PROXY_OP, .form = 2 | NCI_FORM_SEND, .token = token,
		.parent = COLL_TOKEN, .start = start, .stop = stop, .peer = 3, .channel = 1,
		.cont = NCI_LINE_CONT, .bytes = 4096,
	};
}

static struct nci_ev_proxy_step a_step(uint64_t parent, int number, uint64_t start, uint64_t stop)
{
	return (struct nci_ev_proxy_step){
		.type = NCI_EV_PROXY_STEP, .form = 1 | NCI_FORM_SEND, .parent = parent,
		.token = nci_token(1, 100 + (unsigned)number, 1), .start = start, .stop = stop,
		.step = number, .bytes = 512, .span = { 1, 10, 30 },
	};
}

/* CLOCK_MONOTONIC ns of a tick. */
static json_int_t at(int64_t tick)
{
	return (json_int_t)FX_BEGAN_NS + tick * FX_TICK_NS;
}

static void tell(uint64_t first, const void *record, size_t bytes)
{
	fx_records(7, first, 1, 0, record, bytes, NULL);
}

#define TELL(first, record) \
	tell(first, &(record), NCI_FORM_LINES((record).form) * NCI_LINE_BYTES)

TEST(calls_nest_on_their_lane)
{
	struct nci_ev_coll coll = a_coll(200, 300);
	struct nci_ev_coll_api api = {
		.type = NCI_EV_COLL_API, .form = 1, .token = nci_token(0, 2, 1), .start = 100,
		.stop = 400, .func = 1, .count = 1024, .root = -1,
	};
	struct nci_ev_group_api group = {
		.type = NCI_EV_GROUP_API, .form = 1, .token = nci_token(0, 3, 1), .start = 50,
		.stop = 500, .begin_span = 20, .end_span = 360,
	};
	json_t *root;

	coll.parent = api.token;
	api.parent = group.token;
	TELL(0, coll);
	TELL(1, api);
	TELL(2, group);
	root = fx_trace_end();
	fx_assert_nested(root);
	ck_assert(fx_is_in(fx_slice(root, "Coll AllReduce"), fx_slice(root, "CollApi")));
	ck_assert(fx_is_in(fx_slice(root, "CollApi"), fx_slice(root, "GroupApi")));
	ck_assert_int_eq(fx_ticks(fx_slice(root, "ncclGroupStart"), "dur"), 20);
	ck_assert_int_eq(fx_ticks(fx_slice(root, "ncclGroupEnd"), "ts"), 410);
	ck_assert_uint_eq(fx_count(root, "s", ""), 0);	/* nesting says it already */
	json_decref(root);
}

/* Each is sound but for one thing that the segment's reader refuses, too. */
TEST(records_that_cannot_be_are_counted_and_not_drawn)
{
	struct nci_ev_coll name = a_coll(200, 300), comm = name, token = name, rank = name;
	struct nci_ev_coll sound = a_coll(400, 500);
	json_t *root;

	name.datatype = 99;
	comm.comm = 7;
	token.token |= NCI_TOKEN_FREE;
	rank.rank = -2;
	TELL(0, name);
	TELL(1, comm);
	TELL(2, token);
	TELL(3, rank);
	TELL(4, sound);
	ck_assert_uint_eq(fx_t.malformed, 4);
	root = fx_trace_end();
	ck_assert_uint_eq(fx_count(root, "X", "Coll"), 1);
	json_decref(root);
}

TEST(a_kernel_is_drawn_where_the_gpu_says_with_an_arrow_from_its_operation)
{
	struct nci_ev_coll coll = a_coll(200, 300);
	struct nci_ev_kernel_ch seen = a_kernel(0, 900, 2000), untold = a_kernel(1, 950, 2000);
	json_t *root, *kernel;

	fx_records(7, 0, 1, 0, &seen, NCI_LINE_BYTES,
		   json_pack("[[I,I,i]]", at(400),
			     at(1900), 30));
	TELL(1, coll);		/* its record is read after theirs */
	TELL(2, untold);
	root = fx_trace_end();
	kernel = fx_find(root, "X", "KernelCh", 0);
	ck_assert_int_eq(fx_ticks(kernel, "ts"), 400);
	ck_assert_int_eq(fx_ticks(kernel, "dur"), 1500);
	ck_assert_str_eq(fx_word(json_object_get(kernel, "args"), "clock"), "gpu");
	kernel = fx_find(root, "X", "KernelCh AllReduce", 0);
	ck_assert_int_eq(fx_ticks(kernel, "ts"), 950);
	ck_assert_str_eq(fx_word(json_object_get(kernel, "args"), "clock"), "host");
	ck_assert_uint_eq(fx_count(root, "s", "child"), 2);
	ck_assert(fx_same_thread(fx_find(root, "s", "child", 0), fx_slice(root, "Coll")));
	ck_assert_int_eq(fx_ticks(fx_find(root, "f", "child", 0), "ts"), 400);
	json_decref(root);
}

TEST(a_kernel_is_as_long_as_the_gpu_says_where_only_that_is_known)
{
	struct nci_ev_coll coll = a_coll(200, 300);
	struct nci_ev_kernel_ch kernel = a_kernel(0, 1990, 2000), lying = a_kernel(1, 1990, 2000);
	json_t *root;

	kernel.gpu_start = lying.gpu_start = 77;
	kernel.gpu_stop = 77 + 500 * FX_TICK_NS;
	lying.gpu_stop = 77 + 1900 * FX_TICK_NS;	/* it would have begun before its call */
	TELL(0, coll);
	TELL(1, kernel);
	TELL(2, lying);
	root = fx_trace_end();
	ck_assert_int_eq(fx_ticks(fx_find(root, "X", "KernelCh", 0), "ts"), 1500);
	ck_assert_int_eq(fx_ticks(fx_find(root, "X", "KernelCh", 0), "dur"), 500);
	ck_assert_int_eq(fx_ticks(fx_find(root, "X", "KernelCh", 1), "dur"), 10);
	json_decref(root);
}

TEST(a_stamp_from_before_the_call_is_not_believed)
{
	struct nci_ev_coll coll = a_coll(20000000, 20001000);
	struct nci_ev_kernel_ch kernel = a_kernel(0, 20100000, 20200000);
	json_t *root;

	TELL(0, coll);
	fx_records(7, 1, 1, 0, &kernel, NCI_LINE_BYTES,
		   json_pack("[[I,I,i]]", at(1000),
			     at(2000), 30));
	root = fx_trace_end();
	ck_assert_int_eq(fx_ticks(fx_slice(root, "KernelCh"), "ts"), 20100000);
	json_decref(root);
}

TEST(steps_are_in_their_transfer_with_their_states)
{
	struct nci_ev_proxy_step first = a_step(OP_TOKEN, 0, 100, 200),
				 second = a_step(OP_TOKEN, 1, 150, 260),
				 third = a_step(OP_TOKEN, 2, 200, 300);
	struct nci_ev_proxy_op op = a_proxy_op(OP_TOKEN, 90, 300);
	json_t *root, *transfer, *step;

	TELL(0, second);
	TELL(1, first);
	TELL(2, third);
	TELL(3, op);
	root = fx_trace_end();
	fx_assert_nested(root);
	transfer = fx_slice(root, "ProxyOp send");
	ck_assert(fx_is_in(fx_slice(root, "step 0"), transfer));
	ck_assert(!fx_same_thread(fx_slice(root, "step 1"), transfer));	/* it overlaps */
	ck_assert(fx_is_in(fx_slice(root, "step 2"), transfer));
	step = fx_find(root, "X", "SendPeerWait", 0);
	ck_assert(fx_is_in(step, fx_slice(root, "step 0")));
	ck_assert_int_eq(fx_ticks(step, "ts"), 110);
	ck_assert_int_eq(fx_ticks(step, "dur"), 20);
	ck_assert_int_eq(fx_ticks(fx_find(root, "X", "SendWait", 0), "dur"), 70);
	ck_assert_uint_eq(fx_count(root, "X", "SendGPUWait"), 3);
	json_decref(root);
}

TEST(steps_whose_transfer_never_comes_are_drawn_all_the_same)
{
	struct nci_ev_proxy_step step = a_step(OP_TOKEN, 4, 100, 200);
	json_t *root;

	TELL(0, step);
	root = fx_trace_end();
	ck_assert_int_eq(fx_ticks(fx_slice(root, "step 4"), "dur"), 100);
	json_decref(root);
}

TEST(transfers_of_one_link_that_overlap_have_rows_of_their_own)
{
	json_t *root, *pair;

	for (unsigned i = 0; i < 40; i++) {	/* more than a track has rows */
		struct nci_ev_proxy_op op = a_proxy_op(nci_token(1, i, 1), 100 + i, 1000 + i);

		TELL(i, op);
	}
	root = fx_trace_end();
	fx_assert_nested(root);
	ck_assert_uint_eq(fx_count(root, "X", "ProxyOp"), TRACE_ROWS);
	ck_assert_uint_eq(fx_count(root, "b", "ProxyOp"), 40 - TRACE_ROWS);
	ck_assert_uint_eq(fx_count(root, "e", "ProxyOp"), 40 - TRACE_ROWS);
	pair = json_object_get(fx_find(root, "b", "ProxyOp", 0), "id2");
	ck_assert_str_ne(json_string_value(json_object_get(pair, "local")) ?: "", "");
	json_decref(root);
}

TEST(what_is_missing_is_a_slice_with_its_count)
{
	struct nci_ev_coll before = a_coll(100, 200), after = a_coll(5000, 5100);
	json_t *root, *loss;

	TELL(0, before);
	fx_records(7, 11, 1, 5, &after, sizeof(after), NULL);
	root = fx_trace_end();
	loss = fx_slice(root, "10 lost");
	ck_assert_int_eq(fx_ticks(loss, "ts"), 200);
	ck_assert_int_eq(fx_ticks(loss, "dur"), 4800);
	ck_assert_ptr_nonnull(fx_find(root, "X", "5 lost", 0));
	ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(root, "otherData"),
							    "lost_records")), 15);
	json_decref(root);
}

/* ---- operations ------------------------------------------------------------------------- */

static json_t *an_operation(int pid, int rank, int64_t start, int64_t stop, int64_t late)
{
	return json_pack("{s:s, s:i, s:s, s:s, s:i, s:i, s:s, s:i, s:s, s:i, s:I, s:I, s:[i,i,i],"
			 " s:I, s:I}",
			 "kind", "collective", "pid", pid, "comm_id", FX_COMM, "comm_name", "dp",
			 "rank", rank, "nranks", 4, "func", "AllReduce", "seq", 300, "token",
			 "0x0000000000100001", "bytes", 4096, "gpu_start_mono_ns",
			 at(start), "gpu_stop_mono_ns",
			 at(stop), "arrival_rank_order", 0, 2, 1, "late_ns",
			 (json_int_t)late * FX_TICK_NS, "done_mono_ns", at(stop));
}

static void take(json_t *row)
{
	trace_take_line(&fx_t, row);
	json_decref(row);
}

TEST(who_waits_and_for_whom_is_seen)
{
	json_t *root, *wait, *late, *transfer;

	take(an_operation(7, 0, 1000, 90000, 0));
	take(an_operation(8, 1, 61000, 90010, 60000));
	take(an_operation(9, 2, 1500, 90020, 500));
	root = fx_trace_end();
	fx_assert_nested(root);
	ck_assert_uint_eq(fx_count(root, "X", "AllReduce #300 4KiB"), 3);
	ck_assert_uint_eq(fx_count(root, "X", "waiting for rank 1"), 2);
	wait = fx_find(root, "X", "waiting for rank 1", 0);
	ck_assert_int_eq(fx_ticks(wait, "ts"), 1000);
	ck_assert_int_eq(fx_ticks(wait, "dur"), 60000);
	ck_assert_uint_eq(fx_count(root, "s", "arrived"), 2);
	late = fx_find(root, "X", "AllReduce", 1);
	ck_assert(fx_same_thread(fx_find(root, "s", "arrived", 0), late));
	ck_assert(fx_same_thread(fx_find(root, "s", "arrived", 1), late));
	ck_assert(fx_same_thread(fx_find(root, "f", "arrived", 0), wait));
	ck_assert_int_eq(fx_ticks(fx_find(root, "f", "arrived", 0), "ts"), 61000);
	/* the arrow leads to a slice that begins no earlier than the one it comes from */
	ck_assert_uint_eq(fx_count(root, "X", "transfer"), 2);
	transfer = fx_find(root, "X", "transfer", 0);
	ck_assert(fx_same_thread(transfer, wait));
	ck_assert_int_eq(fx_ticks(transfer, "ts"), 61000);
	ck_assert_int_eq(fx_ticks(transfer, "dur"), 29000);
	json_decref(root);
}

TEST(ranks_are_processes_in_their_order)
{
	json_t *root, *name;

	take(an_operation(8, 1, 100, 900, 0));
	root = fx_trace_end();
	name = fx_find(root, "M", "process_name", 1);
	ck_assert_str_eq(fx_word(json_object_get(name, "args"), "name"), "rank 1");
	ck_assert_int_eq(json_integer_value(json_object_get(name, "pid")), 8);
	ck_assert_ptr_nonnull(fx_find(root, "M", "process_sort_index", 1));
	json_decref(root);
}

TEST(gpus_of_one_process_are_processes_of_their_own)
{
	json_t *root;

	take(an_operation(7, 0, 100, 900, 0));
	take(an_operation(7, 1, 200, 900, 100));
	take(an_operation(7, 2, 300, 900, 200));
	root = fx_trace_end();
	ck_assert_uint_eq(fx_count(root, "M", "process_name"), 3);
	ck_assert(!fx_same_thread(fx_find(root, "X", "AllReduce", 0),
				  fx_find(root, "X", "AllReduce", 1)));
	json_decref(root);
}

TEST(what_has_not_ended_goes_on_to_the_end)
{
	json_t *row = json_pack("{s:i, s:s, s:s, s:i, s:s, s:s, s:i, s:i, s:s, s:s}", "pid", 7,
				"comm_id", FX_COMM, "event_type", "ProxyOp",
				"age_ns", 700 * FX_TICK_NS,
				"func",
				"AllReduce", "direction", "send", "channel", 1, "peer", 3, "token",
				"0x0000000000101002", "state", "SendPeerWait");
	struct nci_ev_proxy_step step = a_step(OP_TOKEN, 0, 400, 450);
	json_t *root, *slice;

	ck_assert_uint_eq(OP_TOKEN, 0x101002);
	TELL(0, step);
	json_object_set_new(row, "rank", json_integer(0));
	trace_inflight(&fx_t, row, (uint64_t)at(1000));
	json_decref(row);
	root = fx_trace_end();
	slice = fx_slice(root, "ProxyOp AllReduce (not ended)");
	ck_assert_int_eq(fx_ticks(slice, "ts"), 300);
	ck_assert_int_eq(fx_ticks(slice, "dur"), 700);
	ck_assert(fx_is_in(fx_slice(root, "step 0"), slice));
	json_decref(root);
}

TEST(a_finding_is_a_mark_at_the_rank_that_it_names)
{
	json_t *root, *mark;

	take(an_operation(7, 0, 100, 900, 0));
	take(an_operation(8, 1, 100, 900, 0));
	fx_line("{s:s, s:s, s:s, s:s, s:[i], s:I}", "kind", "finding", "finding", "straggler",
		"verdict", "STEADY", "comm_id", FX_COMM, "ranks", 1, "since_mono_ns",
		at(500));
	fx_line("{s:s, s:s, s:s, s:s, s:[i], s:I}", "kind", "finding", "finding", "died",
		"grade", "suspected", "comm_id", FX_COMM, "ranks", 1, "since_mono_ns",
		at(500));
	root = fx_trace_end();
	mark = fx_find(root, "i", "straggler STEADY", 0);
	ck_assert_ptr_nonnull(mark);
	ck_assert_int_eq(json_integer_value(json_object_get(mark, "pid")), 8);
	ck_assert_int_eq(fx_ticks(mark, "ts"), 500);
	ck_assert_ptr_nonnull(fx_find(root, "i", "suspected: died", 0));
	json_decref(root);
}

/* ---- lines that make no sense ------------------------------------------------------------- */

TEST(lines_that_make_no_sense_are_counted_and_harm_nothing)
{
	uint8_t garbage[192];
	json_t *root;

	memset(garbage, 0xff, sizeof(garbage));
	tell(0, garbage, sizeof(garbage));
	memset(garbage, 0x02, sizeof(garbage));
	tell(1, garbage, 64);		/* the second line of its record is missing */
	tell(2, garbage, 63);
	trace_take_line(&fx_t, NULL);
	fx_line("{s:s}", "kind", "records");
	fx_line("{s:s, s:[i,n,s]}", "kind", "source", "comms", 1, "x");
	fx_line("{s:s, s:s}", "kind", "collective", "gpu_start_mono_ns", "x");
	root = fx_trace_end();
	ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(root, "otherData"),
							    "malformed_lines")), 3);
	ck_assert_uint_eq(fx_count(root, "X", ""), 0);
	json_decref(root);
}

int main(void)
{
	return fx_run(setup, NULL);
}
