/* SPDX-License-Identifier: Apache-2.0 */
/* From records of requests to figures of queue pairs and sockets. */
#include "ncclinspd/sums/queues.h"

#include "tests/fx_recon.h"

#define SECOND	(1000 * FX_MS)
#define START	(1000 * SECOND)

static struct fx_recon fx;
static struct queues *queues;
static struct queues_row rows[64];
static int nrows;

static void on_requested(const struct net_request *request, uint64_t now_ns, void *arg)
{
	(void)arg;
	queues_add(queues, request, now_ns);
}

static void open_with(const struct queues_limits *limits)
{
	ck_assert_int_eq(queues_new(&queues, limits), 0);
	fx_recon_open(&fx, 6, FX_MASK_NET);
	reconstruct_tell_requests(fx.rc, on_requested);
	fx.now = START;
}

static void setup(void)
{
	open_with(NULL);
}

static void teardown(void)
{
	queues_free(queues);
	fx_recon_close(&fx);
}

static bool keep(const struct queues_row *row, void *arg)
{
	(void)arg;
	ck_assert_int_lt(nrows, FX_COUNT(rows));
	rows[nrows++] = *row;
	return true;
}

static int look(enum links_window window)
{
	const struct links_query query = { .windows = 1u << window, .all_users = true };

	nrows = 0;
	return queues_visit(queues, &query, fx.now, keep, NULL);
}

/* A send of a Ki to rank 2 on that channel and queue pair, that ends now. */
static union fx_record make_request(uint8_t channel, uint32_t queue, uint64_t flight_ns)
{
	union fx_record r = fx_head(NCI_EV_NET_PLUGIN, 2, 77, 55, fx.now - flight_ns, fx.now);

	r.net.form |= NCI_FORM_SEND;
	r.net.comm = 1;
	r.net.id = NCI_NET_IB_V1;
	r.net.cont = NCI_LINE_CONT;
	r.net.channel = channel;
	r.net.peer = 2;
	r.net.op = 50;
	r.net.bytes = 1024;
	r.net.queue = queue;
	r.net.device = 1;
	r.net.opcode = 0;
	return r;
}

static void give(uint8_t channel, uint32_t queue, uint64_t flight_ns, int times)
{
	union fx_record r;

	for (int i = 0; i < times; i++) {
		fx.now += FX_MS;
		r = make_request(channel, queue, flight_ns);
		fx_give(&fx, &fx.a, &r);
	}
}

TEST(requests_of_a_queue_pair_are_counted_and_timed)
{
	give(3, 300, 10000, 99);
	give(3, 300, 500000, 1);
	ck_assert_int_eq(look(LINKS_60S), 1);
	ck_assert_uint_eq(rows[0].requests, 100);
	ck_assert_uint_eq(rows[0].bytes, 100 * 1024);
	ck_assert_uint_eq(rows[0].window_ns, 99 * FX_MS + 10000);
	ck_assert_double_eq_tol(rows[0].rate, 1010, 1);
	ck_assert_double_eq_tol((double)rows[0].p50_ns, 10000, 100);
	ck_assert_double_eq_tol((double)rows[0].p99_ns, 10000, 100);
	ck_assert_uint_eq(rows[0].max_ns, 500000);
	ck_assert_uint_eq(rows[0].number, 300);
	ck_assert_int_eq(rows[0].nic, 1);
	ck_assert(!rows[0].is_socket && rows[0].who.send);
	ck_assert_int_eq(rows[0].who.pid, fx.a.p.pid);
	ck_assert_uint_eq(rows[0].who.comm_id, 0xc1);
	ck_assert_str_eq(rows[0].who.comm_name, "tp");
	ck_assert_int_eq(rows[0].who.rank, 0);
	ck_assert_int_eq(rows[0].who.peer, 2);
	ck_assert_uint_eq(rows[0].who.channel, 3);
	ck_assert_double_lt(rows[0].load.ratio, 0);
	give(3, 300, 600000, 1);
	look(LINKS_60S);
	ck_assert_double_eq_tol((double)rows[0].p99_ns, 500000, 5000);
}

TEST(one_slow_queue_pair_is_told_from_its_siblings_on_any_channel)
{
	for (uint32_t queue = 0; queue < 8; queue++)
		give(queue / 4, 300 + queue, queue == 5 ? 40000 : 10000, 30);
	ck_assert_int_eq(look(LINKS_ALL), 8);
	ck_assert_uint_eq(rows[0].number, 305);
	ck_assert_uint_eq(rows[0].load.others, 7);
	ck_assert_double_eq_tol(rows[0].load.ratio, 4, 0.05);
	ck_assert(slow_queue_is_slow(&rows[0].load));
	ck_assert(!slow_queue_is_slow(&rows[1].load));
}

/* Three of each, of which those that are unlike take longer. */
static void give_like(int what)
{
	union fx_record r = make_request(0, 300, 10000);

	for (int i = 0; i < 30; i++, r.net.start++) {
		fx_give(&fx, &fx.a, &r);
		fx.now += FX_MS;
	}
	r.net.queue++;
	if (what == 0)
		r.net.form &= (uint8_t)~NCI_FORM_SEND;
	else if (what == 1)
		r.net.peer = 3;
	else if (what == 2)
		r.net.comm = 0;
	else if (what == 3)
		r.net.bytes = 8192;
	else if (what == 4)
		r.net.id = NCI_NET_SOCKET_V1;
	else
		r.net.op = 0;
	for (int i = 0; i < 30; i++)
		fx_give(&fx, &fx.a, &r);
}

TEST_LOOP(only_like_is_compared_with_like, 0, 6)
{
	give_like(_i);
	ck_assert_int_eq(look(LINKS_ALL), 2);
	ck_assert_double_lt(rows[0].load.ratio, 0);
	ck_assert_double_lt(rows[1].load.ratio, 0);
	ck_assert_uint_eq(rows[0].load.others + rows[1].load.others, 0);
}

/* Receives, and requests of which nobody knows where they go, for two reasons. */
TEST_LOOP(some_are_never_compared, 0, 3)
{
	union fx_record r;

	for (uint32_t i = 0; i < 90; i++, fx.now += FX_MS) {
		r = make_request(0, 300 + i % 3, i % 3 ? 10000 : 90000);
		if (_i == 0)
			r.net.form &= (uint8_t)~NCI_FORM_SEND;
		else if (_i == 1)
			r.net.op = 0;
		else
			r.net.peer = -1;
		fx_give(&fx, &fx.a, &r);
	}
	ck_assert_int_eq(look(LINKS_ALL), 3);
	for (int i = 0; i < 3; i++)
		ck_assert_double_lt(rows[i].load.ratio, 0);
}

TEST(socket_has_no_nic_and_a_request_without_its_operation_no_peer)
{
	union fx_record r = make_request(2, 17, 10000);

	r.net.id = NCI_NET_SOCKET_V1;
	r.net.device = -1;
	r.net.op = 0;
	fx_give(&fx, &fx.a, &r);
	ck_assert_int_eq(look(LINKS_ALL), 1);
	ck_assert(rows[0].is_socket);
	ck_assert_int_eq(rows[0].nic, UNKNOWN_I32);
	ck_assert_int_eq(rows[0].who.peer, UNKNOWN_I32);
	ck_assert_int_eq(rows[0].who.rank, 0);
	ck_assert_double_lt(rows[0].load.ratio, 0);
}

TEST(requests_for_another_process_are_of_its_communicator)
{
	union fx_record r = make_request(0, 300, 10000);

	r.net.form |= NCI_FORM_FOREIGN;
	r.net.comm = NCI_COMM_NONE;
	r.net.origin = nci_context(fx.b.p.nonce, 1);
	fx_give(&fx, &fx.a, &r);
	r.net.origin = nci_context(0xdead, 1);	/* nobody we know */
	fx_give(&fx, &fx.a, &r);
	ck_assert_int_eq(look(LINKS_ALL), 1);
	ck_assert_uint_eq(rows[0].requests, 1);
	ck_assert_int_eq(rows[0].who.pid, fx.b.p.pid);
	ck_assert_int_eq(rows[0].who.proxy_pid, fx.a.p.pid);
	ck_assert_int_eq(rows[0].who.rank, 1);
	ck_assert_double_lt(rows[0].rate, 0);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->foreign_orphans, 1);
}

TEST(what_has_no_payload_or_no_end_is_not_taken)
{
	union fx_record r = make_request(0, 300, 10000);

	r.net.form = 1;
	fx_give(&fx, &fx.a, &r);
	r = make_request(0, 300, 10000);
	r.net.form |= NCI_FORM_UNSTOPPED;
	fx_give(&fx, &fx.a, &r);
	ck_assert_uint_eq(queues_stats(queues)->added, 0);
	r = make_request(0, 300, 10000);
	r.net.start = 0;
	fx_give(&fx, &fx.a, &r);
	r.net.start = r.net.stop + FX_MS;
	fx_give(&fx, &fx.a, &r);
	ck_assert_uint_eq(queues_stats(queues)->refused, 2);
	ck_assert_int_eq(look(LINKS_ALL), 0);
}

TEST(the_last_minute_forgets_what_all_the_time_keeps)
{
	give(0, 300, 10000, 25);
	fx.now += 30 * SECOND;
	give(0, 300, 80000, 50);
	ck_assert_int_eq(look(LINKS_60S), 1);
	ck_assert_uint_eq(rows[0].requests, 75);
	fx.now += 35 * SECOND;
	ck_assert_int_eq(look(LINKS_60S), 1);
	ck_assert_uint_eq(rows[0].requests, 50);
	ck_assert_double_eq_tol((double)rows[0].p50_ns, 80000, 800);
	ck_assert_int_eq(look(LINKS_ALL), 1);
	ck_assert_uint_eq(rows[0].requests, 75);
	fx.now += 75 * SECOND;
	ck_assert_int_eq(look(LINKS_60S), 0);
	give(0, 300, 10000, 1);		/* in the place of the slice that had 50 */
	ck_assert_int_eq(look(LINKS_60S), 1);
	ck_assert_uint_eq(rows[0].requests, 1);
}

TEST(queue_idle_for_longest_makes_room_and_leaves_its_histograms)
{
	const struct queues_limits limits = { .queues = 2, .chunks = 6, .seed = 3 };

	teardown();
	open_with(&limits);
	for (uint32_t i = 0; i < 100; i++)
		give(0, 300 + i, 10000 << i % 8, 1);
	ck_assert_int_eq(look(LINKS_ALL), 2);
	ck_assert_uint_eq(queues_stats(queues)->queues, 2);
	ck_assert_uint_eq(queues_stats(queues)->evicted, 98);
	ck_assert_uint_eq(queues_stats(queues)->unbinned, 0);
	for (int i = 0; i < 8; i++)
		give(0, 399, 10000ull << i, 1);
	ck_assert_uint_gt(queues_stats(queues)->unbinned, 0);
	ck_assert_int_eq(look(LINKS_ALL), 2);
	for (int i = 0; i < 2; i++)
		ck_assert(rows[i].number != 399 || rows[i].p50_ns == UNKNOWN_U64);
}

/* Large and small ones on each, of the one so many more than of the other. */
TEST(requests_of_other_sizes_make_no_queue_slow)
{
	union fx_record r;

	for (uint32_t queue = 0; queue < 6; queue++) {
		for (int i = 0; i < 100; i++, fx.now += FX_MS) {
			bool large = queue == 5 ? i % 5 : i % 5 == 0;

			r = make_request(0, 300 + queue, large ? 90000 : 10000);
			r.net.bytes = large ? 1900 : 1000;
			fx_give(&fx, &fx.a, &r);
		}
	}
	ck_assert_int_eq(look(LINKS_ALL), 6);
	for (int i = 0; i < 6; i++) {
		ck_assert_double_eq_tol(rows[i].load.ratio, 1, 0.01);
		ck_assert_uint_eq(rows[i].requests, 100);
	}
	for (int i = 0; i < 30; i++, fx.now += FX_MS) {
		r = make_request(0, 302, 200000);
		r.net.bytes = 1900;
		fx_give(&fx, &fx.a, &r);
	}
	look(LINKS_ALL);
	ck_assert_uint_eq(rows[0].number, 302);
	ck_assert(slow_queue_is_slow(&rows[0].load));
}

/* Both ways differ from queue to queue, beside what the network does with it. */
TEST_LOOP(queues_of_another_nic_or_process_are_not_compared, 0, 2)
{
	union fx_record r;

	for (uint32_t i = 0; i < 7 * 30; i++, fx.now += FX_MS) {
		bool other = i % 7 > 3;

		r = make_request(0, 300 + i % 7, other ? 90000 : 10000);
		if (_i && !other) {
			r.net.form |= NCI_FORM_FOREIGN;
			r.net.origin = nci_context(fx.b.p.nonce, 1);
			r.net.comm = NCI_COMM_NONE;
		} else if (_i) {
			fx_give(&fx, &fx.b, &r);
			continue;
		}
		r.net.device = !_i && other;
		fx_give(&fx, &fx.a, &r);
	}
	ck_assert_int_eq(look(LINKS_ALL), 7);
	for (int i = 0; i < 7; i++)
		ck_assert_double_eq_tol(rows[i].load.ratio, 1, 0.01);
}

static void come_meanwhile(void *arg)
{
	(void)arg;
	if (fx.now < START + SECOND)
		give(0, 300, 10000, 1);
}

/* More than can wait, at this turn. */
static void come_in_masses(void *arg)
{
	union fx_record r = make_request(0, 300, 10000);
	int *turns = arg;

	if (--*turns == 0)
		for (int i = 0; i < 3000; i++)
			fx_give(&fx, &fx.a, &r);
}

TEST(what_comes_while_rows_are_made_waits_for_its_turn)
{
	const struct links_query query = { .windows = 1u << LINKS_ALL, .all_users = true,
					    .meanwhile = come_meanwhile };

	give(0, 300, 10000, 5);
	nrows = 0;
	ck_assert_int_eq(queues_visit(queues, &query, fx.now, keep, NULL), 1);
	ck_assert_uint_eq(rows[0].requests, 5);
	ck_assert_int_eq(look(LINKS_ALL), 1);
	ck_assert_uint_eq(rows[0].requests, 6);
}

/* Turns: while queues are looked at, before they are compared, and while rows are made. */
TEST_LOOP(rows_are_made_in_one_go_where_more_comes_meanwhile_than_can_wait, 1, 4)
{
	int turns = _i;
	const struct links_query query = { .windows = 1u << LINKS_ALL, .all_users = true,
					   .meanwhile = come_in_masses, .meanwhile_arg = &turns };

	for (uint32_t i = 0; i < 40; i++)
		give(0, 300 + i, 10000, 1);
	nrows = 0;
	ck_assert_int_eq(queues_visit(queues, &query, fx.now, keep, NULL), 40);
	ck_assert_int_eq(nrows, 40);
	ck_assert_int_le(turns, 0);
	for (int i = 0; i < nrows; i++)
		ck_assert_uint_eq(rows[i].requests, rows[i].number == 300 ? 3001 : 1);
}

TEST(users_see_their_own_alone)
{
	struct links_query query = { .windows = 1u << LINKS_ALL, .uid = fx.a.p.uid };

	give(0, 300, 10000, 1);
	nrows = 0;
	ck_assert_int_eq(queues_visit(queues, &query, fx.now, keep, NULL), 1);
	query.uid++;
	ck_assert_int_eq(queues_visit(queues, &query, fx.now, keep, NULL), 0);
}

int main(void)
{
	return fx_run(setup, teardown);
}
