/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/sums/links.h"

#include <errno.h>
#include <math.h>

#include "nci/sums.h"
#include "tests/fixture.h"

#define SECOND	UINT64_C(1000000000)
#define START	(1000 * SECOND)
#define ROWS	64

static struct links *links;
static struct comm comms[2] = {
	{ .ready = true, .has_id = true, .id = 0xc0, .rank = 3, .nranks = 8 },
	{ .ready = true, .has_id = false, .rank = UNKNOWN_I32 },
};
static struct process here = { .id = 1, .pid = 11, .uid = 100, .comms = comms, .ncomms = 2,
			       .clock = { .ns_per_tick = 1 } };
static struct process there = { .id = 2, .pid = 12, .uid = 100, .comms = comms, .ncomms = 1,
				.clock = { .ns_per_tick = 1 } };
static struct links_row rows[ROWS];
static int nrows;

static void setup(void)
{
	ck_assert_int_eq(links_new(&links, NULL, START), 0);
	nrows = 0;
}

static void teardown(void)
{
	links_free(links);
}

static struct nci_ev_proxy_op make_op(bool send, int32_t peer, uint8_t channel)
{
	return (struct nci_ev_proxy_op){
		.type = NCI_EV_PROXY_OP, .form = 2 | (send ? NCI_FORM_SEND : 0), .rank = 3,
		.peer = peer, .channel = channel, .steps_done = 4, .bytes = 4000,
	};
}

/* Four steps, 1000 bytes each; of 100 ticks they were `held` and `busy` so many. */
static struct nci_ev_proxy_sums make_sums(uint64_t held, uint64_t busy)
{
	return (struct nci_ev_proxy_sums){
		.start = 5000, .stop = 5100, .steps = 4, .bytes = 4000,
		.ticks = { 100 - held - busy, held, busy }, .longest = { 10, 20, 30 },
		.busy = busy, .covered = held + busy, .repeats = 7,
	};
}

static void add_from(uint64_t data_ticks, const struct nci_ev_proxy_op *op,
		     const struct nci_ev_proxy_sums *sums, uint64_t now_ns)
{
	const struct transfers t = { &here, &here, 0, "dp", NULL, op, sums, data_ticks };

	links_add(links, &t, now_ns);
}

static void add(const struct nci_ev_proxy_op *op, const struct nci_ev_proxy_sums *sums,
		uint64_t now_ns)
{
	add_from(0, op, sums, now_ns);
}

static bool keep(const struct links_row *row, void *arg)
{
	(void)arg;
	ck_assert_int_lt(nrows, ROWS);
	rows[nrows++] = *row;
	return true;
}

static int look(uint32_t windows, uint64_t now_ns)
{
	const struct links_query query = { .windows = windows, .all_users = true };

	nrows = 0;
	return links_visit(links, &query, now_ns, keep, NULL);
}

#define ALL	(1u << LINKS_ALL)
#define LATELY	(1u << LINKS_60S)

TEST(link_adds_up_its_operations)
{
	struct nci_ev_proxy_op op = make_op(true, 5, 2);
	struct nci_ev_proxy_sums sums = make_sums(20, 50);

	for (int i = 0; i < 10; i++)
		add(&op, &sums, START + SECOND);
	ck_assert_int_eq(look(ALL, START + 3 * SECOND), 1);
	ck_assert_uint_eq(rows[0].window_ns, 2 * SECOND);
	ck_assert_int_eq(rows[0].who.pid, 11);
	ck_assert_int_eq(rows[0].who.proxy_pid, 11);
	ck_assert_uint_eq(rows[0].who.comm_id, 0xc0);
	ck_assert_str_eq(rows[0].who.comm_name, "dp");
	ck_assert_int_eq(rows[0].who.rank, 3);
	ck_assert_int_eq(rows[0].who.nranks, 8);
	ck_assert_int_eq(rows[0].who.peer, 5);
	ck_assert_uint_eq(rows[0].who.channel, 2);
	ck_assert(rows[0].who.send);
	ck_assert_uint_eq(rows[0].sums.ops, 10);
	ck_assert_uint_eq(rows[0].sums.steps, 40);
	ck_assert_uint_eq(rows[0].sums.bytes, 40000);
	ck_assert_uint_eq(rows[0].sums.state_ns[0], 300);
	ck_assert_uint_eq(rows[0].sums.state_ns[1], 200);
	ck_assert_uint_eq(rows[0].sums.state_ns[2], 500);
	ck_assert_uint_eq(rows[0].sums.longest_ns[2], 30);
	ck_assert_uint_eq(rows[0].sums.active_ns, 1000);
	ck_assert_uint_eq(rows[0].sums.held_ns, 200);
	ck_assert_uint_eq(rows[0].sums.busy_ns, 500);
	ck_assert_uint_eq(rows[0].sums.repeats, 70);
	ck_assert(fabs(rows[0].rate_gbs - 80) < 1e-9);
}

TEST(each_peer_channel_direction_and_communicator_is_a_link)
{
	struct nci_ev_proxy_op op[] = {
		make_op(true, 5, 2), make_op(true, 6, 2), make_op(true, 5, 3), make_op(false, 5, 2),
	};
	const struct transfers other = { &here, &here, 1, NULL, NULL, &op[0], NULL, 0 };

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < FX_COUNT(op); i++)
			add(&op[i], NULL, START);
		links_add(links, &other, START);
	}
	ck_assert_int_eq(look(ALL, START), 5);
	for (int i = 0; i < 5; i++)
		ck_assert_uint_eq(rows[i].sums.ops, 3);
}

TEST(channels_of_a_link_may_be_one_row)
{
	const struct links_query query = { .windows = ALL | LATELY, .all_users = true,
					   .together = true };
	struct nci_ev_proxy_op op[] = {
		make_op(true, 6, 2), make_op(true, 5, 2), make_op(true, 5, 3), make_op(true, 5, 0),
		make_op(false, 5, 2),
	};

	for (int i = 0; i < FX_COUNT(op); i++) {
		struct nci_ev_proxy_sums sums = make_sums((uint64_t)(i == 2 ? 40 : 10), 50);

		add(&op[i], &sums, START + (uint64_t)i * SECOND);
	}
	nrows = 0;
	ck_assert_int_eq(links_visit(links, &query, START + 10 * SECOND, keep, NULL), 6);
	for (int i = 0; i < 6; i += 3) {
		ck_assert_int_eq(rows[i].who.peer, 5);
		ck_assert(rows[i].who.send);
		ck_assert_uint_eq(rows[i].channels, 3);
		ck_assert_uint_eq(rows[i].sums.ops, 3);
		ck_assert_uint_eq(rows[i].sums.bytes, 12000);
		ck_assert_uint_eq(rows[i].sums.held_ns, 60);
		ck_assert_uint_eq(rows[i].sums.longest_ns[2], 30);
		ck_assert_uint_eq(rows[i].excess_ns, 40);
		ck_assert(fabs(rows[i].rate_gbs - 3 * 80) < 1e-9);
		ck_assert_int_eq(rows[i + 1].who.peer, 6);
		ck_assert_uint_eq(rows[i + 1].channels, 1);
		ck_assert_uint_eq(rows[i + 1].excess_ns, 10);
		ck_assert(!rows[i + 2].who.send);
	}
	ck_assert_uint_eq(rows[3].window_ns, 9 * SECOND);	/* since the first was used */
	ck_assert_int_eq(look(ALL, START + 10 * SECOND), 5);
}

TEST(what_an_old_release_does_not_tell_is_not_known)
{
	struct nci_ev_proxy_op op = make_op(true, 5, 2);
	const struct transfers t = { &here, &here, 1, NULL, NULL, &op, NULL, 0 };

	op.bytes = 0;
	op.rank = op.peer = -1;
	links_add(links, &t, START);
	look(ALL, START);
	ck_assert_uint_eq(rows[0].sums.steps, 4);
	ck_assert_uint_eq(rows[0].sums.bytes, UNKNOWN_U64);
	ck_assert_uint_eq(rows[0].sums.state_ns[0], UNKNOWN_U64);
	ck_assert_uint_eq(rows[0].sums.longest_ns[2], UNKNOWN_U64);
	ck_assert_uint_eq(rows[0].sums.busy_ns, UNKNOWN_U64);
	ck_assert_uint_eq(rows[0].excess_ns, UNKNOWN_U64);
	ck_assert_double_lt(rows[0].rate_gbs, 0);
	ck_assert_ptr_null(links_bound(&rows[0]));
	ck_assert(!rows[0].who.has_comm_id);
	ck_assert_int_eq(rows[0].who.nranks, UNKNOWN_I32);
	ck_assert_int_eq(rows[0].who.rank, UNKNOWN_I32);
	ck_assert_int_eq(rows[0].who.peer, UNKNOWN_I32);
}

/* Which of the three parts is the largest, and what that means. */
static const struct {
	uint64_t held, busy;
	const char *send, *receive;
} bounds[] = {
	{ 20, 30, "gpu", NULL },
	{ 50, 30, "peer", NULL },
	{ 30, 60, "net", "gpu" },
};

TEST_LOOP(link_is_bound_by_what_takes_most_of_its_time, 0, FX_COUNT(bounds))
{
	struct nci_ev_proxy_sums sums = make_sums(bounds[_i].held, bounds[_i].busy);
	struct nci_ev_proxy_op send = make_op(true, 1, 0), receive = make_op(false, 1, 0);

	add(&send, &sums, START);
	add(&receive, &sums, START);
	look(ALL, START);
	ck_assert(rows[0].who.send && !rows[1].who.send);
	ck_assert_str_eq(links_bound(&rows[0]), bounds[_i].send);
	ck_assert_pstr_eq(links_bound(&rows[1]), bounds[_i].receive);
	ck_assert_double_lt(rows[1].rate_gbs, 0);
}

/* It is asked for data while its GPU computes: that says nothing of the link. */
TEST(send_counts_from_its_first_data_on)
{
	struct nci_ev_proxy_op op[] = { make_op(true, 5, 2), make_op(false, 5, 2) };
	struct nci_ev_proxy_sums sums = make_sums(10, 30);

	for (int i = 0; i < 2; i++)
		add_from(5055, &op[i], &sums, START);
	ck_assert_int_eq(look(ALL, START + SECOND), 2);
	ck_assert_uint_eq(rows[0].sums.active_ns, 45);
	ck_assert_str_eq(links_bound(&rows[0]), "net");
	ck_assert_uint_eq(rows[1].sums.active_ns, 100);
	ck_assert_ptr_null(links_bound(&rows[1]));
	add_from(5099, &op[0], &sums, START);	/* a lie: it was on the wire before */
	add_from(9999, &op[0], &sums, START);
	look(ALL, START + SECOND);
	ck_assert_uint_eq(rows[0].sums.active_ns, 45 + 40 + 100);
}

TEST(sums_that_cannot_be_true_are_refused_and_counted)
{
	const uint64_t huge = UINT64_MAX - 5;
	struct nci_ev_proxy_op op = make_op(true, 1, 0);
	struct nci_ev_proxy_sums good = make_sums(30, 30), bad[5];

	for (int i = 0; i < FX_COUNT(bad); i++)
		bad[i] = good;
	bad[0].busy = bad[0].covered + 1;
	bad[1].covered = huge;
	bad[2].ticks[1] = huge;
	bad[3].longest[2] = UINT32_MAX;
	bad[4].stop = bad[4].start - 1;
	for (int i = 0; i < FX_COUNT(bad); i++)
		add(&op, &bad[i], START);
	look(ALL, START);
	ck_assert_uint_eq(links_stats(links)->refused, FX_COUNT(bad));
	ck_assert_uint_eq(rows[0].sums.ops, FX_COUNT(bad));
	ck_assert_uint_eq(rows[0].sums.timed_steps, 0);
	add(&op, &good, START);
	ck_assert_uint_eq(links_stats(links)->refused, FX_COUNT(bad));
}

TEST(trend_compares_the_last_minute_with_what_was_before)
{
	struct nci_ev_proxy_op op = make_op(true, 5, 2), other = make_op(false, 5, 2);
	struct nci_ev_proxy_sums fast = make_sums(20, 40), slow = make_sums(20, 50);

	for (int i = 0; i < 8; i++) {
		add(&op, &fast, START + SECOND);
		add(&other, &fast, START + SECOND);
	}
	look(ALL, START + 2 * SECOND);
	ck_assert_double_lt(rows[0].trend, 0);	/* nothing was before */
	for (int i = 0; i < 7; i++)
		add(&op, &slow, START + 100 * SECOND);
	look(LATELY, START + 100 * SECOND);
	ck_assert_double_lt(rows[0].trend, 0);	/* too few steps */
	add(&op, &slow, START + 100 * SECOND);
	add(&other, &slow, START + 100 * SECOND);
	look(ALL, START + 100 * SECOND);
	for (int i = 0; i < nrows; i++)
		if (rows[i].who.send)
			ck_assert(fabs(rows[i].trend - 0.8) < 1e-9);
		else
			ck_assert_double_lt(rows[i].trend, 0);
	ck_assert_int_eq(nrows, 2);
}

TEST(last_minute_forgets_and_totals_do_not)
{
	struct nci_ev_proxy_op op = make_op(true, 1, 0);

	for (uint64_t s = 0; s < 300; s++)
		add(&op, NULL, START + s * SECOND);
	ck_assert_int_eq(look(ALL | LATELY, START + 299 * SECOND), 2);
	ck_assert_int_eq(rows[0].window, LINKS_60S);
	ck_assert_uint_ge(rows[0].sums.ops, 45);
	ck_assert_uint_le(rows[0].sums.ops, 60);
	ck_assert_uint_ge(rows[0].window_ns, 45 * SECOND);
	ck_assert_uint_le(rows[0].window_ns, 60 * SECOND);
	ck_assert_uint_eq(rows[1].sums.ops, 300);
	ck_assert_int_eq(look(LATELY, START + 400 * SECOND), 0);
	ck_assert_int_eq(look(ALL, START + 400 * SECOND), 1);
}

TEST(link_idle_for_longest_makes_room)
{
	const struct links_limits limits = { .links = 4, .seed = 9 };

	links_free(links);
	ck_assert_int_eq(links_new(&links, &limits, START), 0);
	for (int i = 0; i < 1000; i++) {
		struct nci_ev_proxy_op fresh = make_op(true, i, 0), kept = make_op(false, 7, 7);

		add(&kept, NULL, START);
		add(&fresh, NULL, START);
	}
	ck_assert_int_eq(look(ALL, START), 4);
	ck_assert_uint_eq(links_stats(links)->links, 4);
	ck_assert_uint_eq(links_stats(links)->evicted, 997);
	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(rows[i].sums.ops, rows[i].who.send ? 1 : 1000);
}

/* Another process carries out what two have posted (PXN): by turns. */
TEST(transfers_of_two_issuers_are_links_of_their_own)
{
	struct nci_ev_proxy_op op = make_op(true, 5, 2);

	for (int i = 0; i < 10; i++) {
		const struct transfers t = { i % 2 ? &here : &there, &here, 0, "dp", NULL, &op,
					     NULL, 0 };

		links_add(links, &t, START);
	}
	ck_assert_int_eq(look(ALL, START), 2);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(rows[i].sums.ops, 5);
}

TEST(slowest_link_comes_first_and_receives_last)
{
	for (int peer = 0; peer < 8; peer++) {
		struct nci_ev_proxy_op send = make_op(true, peer, 0);
		struct nci_ev_proxy_op receive = make_op(false, peer, 0);
		struct nci_ev_proxy_sums sums = make_sums(0, peer == 6 ? 90 : 20);

		add(&send, &sums, START);
		add(&receive, &sums, START);
	}
	look(ALL, START);
	ck_assert_int_eq(rows[0].who.peer, 6);
	ck_assert_uint_eq(rows[0].excess_ns, 70);
	for (int i = 1; i < 8; i++)
		ck_assert_uint_eq(rows[i].excess_ns, 0);
	for (int i = 8; i < 16; i++)
		ck_assert(!rows[i].who.send);
}

TEST(other_users_are_not_shown)
{
	struct nci_ev_proxy_op op = make_op(true, 1, 0);
	struct links_query query = { .windows = ALL, .uid = 101 };

	add(&op, NULL, START);
	ck_assert_int_eq(links_visit(links, &query, START, keep, NULL), 0);
	query.uid = 100;
	ck_assert_int_eq(links_visit(links, &query, START, keep, NULL), 1);
}

TEST(who_claims_another_users_communicator_is_not_compared_with_its_links)
{
	struct nci_ev_proxy_sums ours = make_sums(0, 80), theirs = make_sums(0, 10);
	struct nci_ev_proxy_op op = make_op(true, 1, 0);
	struct process stranger = here;
	const struct transfers t = { &stranger, &stranger, 0, "dp", NULL, &op, &theirs, 0 };

	stranger.id = 3;
	stranger.uid = 101;
	add(&op, &ours, START);
	links_add(links, &t, START);
	look(ALL, START);
	ck_assert_uint_eq(rows[0].excess_ns, 0);
	ck_assert_uint_eq(rows[1].excess_ns, 0);
}

TEST(who_carries_out_a_transfer_is_told)
{
	struct nci_ev_proxy_op op = make_op(true, 1, 0);
	const struct transfers t = { &here, &there, 0, "dp", NULL, &op, NULL, 0 };

	add(&op, NULL, START);
	links_add(links, &t, START);
	ck_assert_int_eq(look(ALL, START), 2);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(rows[i].who.pid, 11);
	ck_assert_int_eq(rows[0].who.proxy_pid + rows[1].who.proxy_pid, 11 + 12);
}

/* A number that a job might have made up. */
static uint64_t any_number(void)
{
	return fx_random() % 4 ? fx_random() % 1000 : fx_random() >> fx_random() % 64;
}

TEST(whatever_a_job_says_does_no_harm)
{
	struct nci_ev_proxy_op op = make_op(true, 1, 0);
	struct fit_line line;

	for (int i = 0; i < 100000; i++) {
		struct nci_ev_proxy_sums sums = make_sums(20, 50);
		uint64_t *words[] = { &sums.start, &sums.stop, &sums.ticks[0], &sums.ticks[1],
				      &sums.ticks[2], &sums.bytes, &sums.busy, &sums.covered };

		*words[fx_random() % FX_COUNT(words)] = any_number();
		*words[fx_random() % FX_COUNT(words)] = any_number();
		sums.steps = 1 + (uint32_t)any_number() % 100;
		for (int k = 0; k < 2; k++)
			sums.point[k] = (struct nci_point){ (uint32_t)any_number(),
							    (uint32_t)any_number() };
		op.bytes = any_number();
		op.steps_done = (uint32_t)any_number();
		op.channel = (uint8_t)(i % 4);
		add(&op, &sums, START + (uint64_t)i * SECOND / 1000);
	}
	ck_assert_int_eq(look(ALL | LATELY, START + 100 * SECOND), 8);
	ck_assert_uint_gt(links_stats(links)->refused, 10000);
	ck_assert_uint_lt(links_stats(links)->refused, 90000);
	for (int i = 0; i < 8; i++) {
		if (fit_line(&rows[i].sums.fit, &line) != FIT_FOUND)
			continue;
		ck_assert(isfinite(line.latency_ns) && line.latency_ns >= 0);
		ck_assert(isfinite(line.ns_per_byte) && line.ns_per_byte > 0);
	}
}

/* ---- a network by the tick ---------------------------------------------------- */

static uint64_t exponential(double mean)
{
	return (uint64_t)(-mean * log((double)(fx_random() % 1000000 + 1) / 1e6));
}

/*
 * One operation over a link that sends one step after the other and takes `latency`
 * on top; the proxy has up to 8 in flight and sees each end a little late.
 */
static void simulate(struct nci_ev_proxy_op *op, uint64_t bytes, double latency, double gbs)
{
	struct nci_ev_proxy_sums sums = { .start = START };
	uint64_t wire = START, done[8] = { 0 };

	op->steps_done = 0;
	op->bytes = 0;
	for (uint32_t i = 0; i < 16; i++) {
		struct nci_ev_proxy_step step = {
			.form = 1 | NCI_FORM_SEND, .bytes = (uint32_t)bytes,
			.start = done[i % 8] > START ? done[i % 8] : START,
		};
		uint64_t posted = step.start + 3000 + exponential(500);
		uint64_t stop;

		wire = (posted > wire ? posted : wire) + (uint64_t)((double)bytes / gbs);
		stop = wire + (uint64_t)latency + 100 + exponential(800);
		stop = stop > sums.stop ? stop : sums.stop;
		step.span[0] = 1;
		step.span[1] = (uint32_t)(posted - step.start) - 500;
		step.span[2] = (uint32_t)(posted - step.start);
		nci_sums_leave(&sums, &step, nci_sums_enter(&sums, &step), stop);
		done[i % 8] = stop;
		op->steps_done++;
		op->bytes += bytes;
	}
	add(op, &sums, START);
}

static const struct {
	double latency_ns, rate_gbs;
	uint64_t bytes[3];
} networks[] = {
	{ 8000, 25, { 65536, 262144, 1048576 } },
	{ 30000, 12.5, { 131072, 524288, 2097152 } },
	{ 5000, 50, { 65536, 524288, 4194304 } },
};

TEST_LOOP(latency_and_rate_of_a_network_come_back_within_five_percent, 0, FX_COUNT(networks))
{
	double latency = networks[_i].latency_ns, rate = networks[_i].rate_gbs;
	struct nci_ev_proxy_op op = make_op(true, 1, 0);
	struct fit_line line;

	for (int round = 0; round < 300; round++)
		simulate(&op, networks[_i].bytes[round % 3], latency, rate);
	look(ALL | LATELY, START);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(fit_line(&rows[i].sums.fit, &line), FIT_FOUND);
		ck_assert_double_gt(line.r2, 0.99);
		ck_assert_msg(fabs(line.latency_ns - latency) <= latency / 20,
			      "latency %f, not %f", line.latency_ns, latency);
		ck_assert_msg(fabs(1 / line.ns_per_byte - rate) <= rate / 20, "rate %f, not %f",
			      1 / line.ns_per_byte, rate);
	}
	ck_assert_str_eq(links_bound(&rows[0]), "net");
}

static uint32_t turns, added_per_turn;

/* What a busy drain does while a query waits for its turn. */
static void add_meanwhile(void *arg)
{
	struct nci_ev_proxy_op op = make_op(true, 0, 0);
	struct nci_ev_proxy_sums sums = make_sums(20, 50);

	(void)arg;
	turns++;
	for (uint32_t i = 0; i < added_per_turn; i++) {
		op.peer = (int32_t)(i % (ROWS / 4));
		op.channel = 7;
		add(&op, &sums, START + SECOND);
	}
}

static void add_many(int n)
{
	struct nci_ev_proxy_op op = make_op(true, 0, 2);
	struct nci_ev_proxy_sums sums = make_sums(20, 50);

	for (int i = 0; i < n; i++) {
		op.peer = i;
		add(&op, &sums, START + SECOND);
	}
}

static int look_in_pieces(void)
{
	const struct links_query query = { .windows = ALL | LATELY, .all_users = true,
					   .meanwhile = add_meanwhile };

	nrows = 0;
	turns = 0;
	return links_visit(links, &query, START + SECOND, keep, NULL);
}

TEST(what_comes_while_rows_are_made_waits_until_they_are_told)
{
	add_many(ROWS / 2);
	added_per_turn = 3;
	ck_assert_int_eq(look_in_pieces(), ROWS);
	ck_assert_uint_ge(turns, 4);
	for (int i = 0; i < nrows; i++)
		ck_assert_uint_eq(rows[i].sums.ops, 1);
	ck_assert_uint_eq(links_stats(links)->added, ROWS / 2 + 3 * turns);
	ck_assert_int_eq(look(ALL, START + SECOND), ROWS / 2 + 3);
}

TEST(more_than_can_wait_is_taken_in_and_the_query_asks_to_be_made_again)
{
	add_many(ROWS / 2);
	added_per_turn = 2500;
	ck_assert_int_eq(look_in_pieces(), -EAGAIN);
	look(ALL, START + SECOND);
	ck_assert_uint_eq(links_stats(links)->added, ROWS / 2 + 2500 * turns);
	ck_assert_int_eq(nrows, ROWS / 2 + ROWS / 4);
}

int main(void)
{
	return fx_run(setup, teardown);
}
