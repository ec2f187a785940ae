/* SPDX-License-Identifier: Apache-2.0 */
/* What /v1/peers says of links made by hand, and /v1/queues of queue pairs. */
#include "tests/fixture_serve.h"

/* One operation of four steps to or from a peer, on a channel. */
static void move_in(const struct process *p, bool send, int32_t peer, uint8_t channel,
		    uint32_t bytes, uint32_t least_ns)
{
	struct nci_ev_proxy_op op = {
		.form = send ? NCI_FORM_SEND : 0, .rank = p->comms[0].rank, .peer = peer,
		.channel = channel, .steps_done = 4, .bytes = 4ull * bytes,
	};
	struct nci_ev_proxy_sums sums = {
		.start = 1000, .stop = 9000, .steps = 4, .bytes = 4ull * bytes,
		.ticks = { 2000, 1000, 9000 }, .longest = { 700, 400, 3000 },
		.busy = 5000, .covered = 6000, .repeats = 3,
		.point = { { bytes, least_ns }, { bytes, least_ns } },
	};
	const struct transfers t = { .issuer = p, .executor = p, .comm_name = "dp", .op = &op,
				     .sums = channel == 7 ? NULL : &sums };

	links_add(fx.links, &t, fx.now_ns);
}

static void move(const struct process *p, bool send, int32_t peer, uint8_t channel,
		 uint32_t bytes)
{
	move_in(p, send, peer, channel, bytes, 2000 + bytes / 10);
}

/* Requests of three queue pairs, of which the last takes three times as long. */
static void request(const struct process *p, bool send, int32_t peer)
{
	for (uint32_t i = 0; i < 60; i++) {
		const struct nci_ev_net_plugin ev = {
			.form = 2 | (send ? NCI_FORM_SEND : 0), .id = NCI_NET_IB_V1, .op = 9,
			.channel = 2, .peer = peer, .bytes = send ? 4096 : 0, .queue = 300 + i % 3,
			.start = 1000000, .stop = 1000000 + (i % 3 == 2 ? 30000 : 10000),
		};
		const struct net_request r = { .issuer = p, .executor = p, .comm_name = "dp",
					       .ev = &ev };

		queues_add(fx.queues, &r, fx.now_ns);
	}
}

static void setup(void)
{
	struct process *p;

	fx_serve_open(NULL);
	p = fx_process(41, 0, 3);
	for (uint32_t bytes = 10000; bytes <= 160000; bytes *= 4)
		move(p, true, 4, 0, bytes);
	move(p, false, 2, 0, 5000);
	move(p, true, 4, 1, 1000);
	move(fx_process(42, 0, 5), true, 4, 7, 0);
	request(p, true, 4);
	request(p, false, 2);
}

static void check_null(json_t *row, const char *path)
{
	ck_assert_msg(json_is_null(fx_at(row, path)), "%s is not null", path);
}

static size_t count_of(const char *target, const char *list)
{
	json_t *a = fx_get(target, 200);
	size_t n = json_array_size(fx_at(a, list));

	json_decref(a);
	return n;
}

static size_t count(const char *target)
{
	return count_of(target, "peers");
}

static void check_send(json_t *row)
{
	ck_assert_str_eq(fx_text(row, "window"), "all");
	ck_assert_uint_eq(fx_number(row, "window_ns"), FX_SECOND);
	ck_assert_str_eq(fx_text(row, "comm_id"), "0xd00dfeedcafe0001");
	ck_assert_str_eq(fx_text(row, "comm_name"), "dp");
	ck_assert_uint_eq(fx_number(row, "nranks"), 8);
	ck_assert_uint_eq(fx_number(row, "rank"), 3);
	ck_assert_uint_eq(fx_number(row, "pid"), 41);
	ck_assert_uint_eq(fx_number(row, "proxy_pid"), 41);
	ck_assert_uint_eq(fx_number(row, "peer"), 4);
	ck_assert_uint_eq(fx_number(row, "channel"), 0);
	ck_assert_uint_eq(fx_number(row, "ops"), 3);
	ck_assert_uint_eq(fx_number(row, "steps"), 12);
	ck_assert_uint_eq(fx_number(row, "timed_steps"), 12);
	ck_assert_uint_eq(fx_number(row, "bytes"), 840000);
	ck_assert_uint_eq(fx_number(row, "time.gpu_wait_ns"), 6000);
	ck_assert_uint_eq(fx_number(row, "time.peer_wait_ns"), 3000);
	ck_assert_uint_eq(fx_number(row, "time.net_ns"), 27000);
	check_null(row, "time.data_wait_ns");
	check_null(row, "time.flush_ns");
	ck_assert_uint_eq(fx_number(row, "longest.net_ns"), 3000);
	ck_assert_uint_eq(fx_number(row, "active_ns"), 24000);
	ck_assert_uint_eq(fx_number(row, "held_ns"), 3000);
	ck_assert_uint_eq(fx_number(row, "busy_ns"), 15000);
	ck_assert_uint_eq(fx_number(row, "repeats"), 9);
	ck_assert(json_number_value(fx_at(row, "rate_gbs")) == 56);
	ck_assert_str_eq(fx_text(row, "bound"), "net");
}

static void check_fit(json_t *row)
{
	ck_assert_uint_eq(fx_number(row, "fit.latency_ns"), 2000);
	ck_assert(json_number_value(fx_at(row, "fit.rate_gbs")) == 10);
	ck_assert(json_number_value(fx_at(row, "fit.r2")) == 1);
	ck_assert_str_eq(fx_text(row, "fit.method"), "hull");
	check_null(row, "fit.missing");
	ck_assert_uint_eq(fx_number(row, "fit.points"), 3);
	ck_assert_uint_eq(fx_number(row, "fit.sizes"), 3);
}

TEST(a_link_shows_every_promised_field)
{
	json_t *a, *row;

	fx_pass(FX_SECOND);
	a = fx_get("/v1/peers?rank=3&direction=send", 200);
	row = fx_at(a, "peers.1");
	check_send(row);
	check_fit(row);
	row = fx_at(a, "peers.0");
	ck_assert_uint_eq(fx_number(row, "channel"), 1);	/* has much to catch up */
	check_null(row, "fit.latency_ns");
	ck_assert_str_eq(fx_text(row, "fit.missing"), "few_sizes");
	ck_assert_uint_eq(fx_number(row, "fit.points"), 1);
	ck_assert_uint_eq(fx_number(row, "channels"), 1);
	json_decref(a);
	a = fx_get("/v1/peers?rank=3&direction=send&channels=together", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "peers")), 1);
	check_null(fx_at(a, "peers.0"), "channel");
	ck_assert_uint_eq(fx_number(fx_at(a, "peers.0"), "channels"), 2);
	ck_assert_uint_eq(fx_number(fx_at(a, "peers.0"), "fit.points"), 4);
	json_decref(a);
}

TEST(a_receive_tells_what_its_side_can_see)
{
	json_t *a = fx_get("/v1/peers?direction=recv", 200), *row = fx_at(a, "peers.0");

	ck_assert_str_eq(fx_text(row, "direction"), "recv");
	ck_assert_uint_eq(fx_number(row, "time.data_wait_ns"), 2000);
	ck_assert_uint_eq(fx_number(row, "time.flush_ns"), 1000);
	ck_assert_uint_eq(fx_number(row, "time.gpu_wait_ns"), 9000);
	check_null(row, "time.peer_wait_ns");
	check_null(row, "time.net_ns");
	check_null(row, "rate_gbs");
	check_null(row, "excess_ns");
	check_null(row, "fit.rate_gbs");
	ck_assert_str_eq(fx_text(row, "fit.missing"), "no_times");
	json_decref(a);
}

TEST(a_line_far_faster_than_the_busy_wire_is_not_shown)
{
	const struct process *p = fx_process(43, 0, 6);
	json_t *a, *row;

	for (uint32_t bytes = 10000; bytes <= 160000; bytes *= 4)
		move_in(p, true, 4, 0, bytes, bytes / 1000);
	a = fx_get("/v1/peers?rank=6", 200);
	row = fx_at(a, "peers.0");
	ck_assert(json_number_value(fx_at(row, "rate_gbs")) == 56);
	check_null(row, "fit.latency_ns");
	check_null(row, "fit.rate_gbs");
	ck_assert_uint_eq(fx_number(row, "fit.sizes"), 3);
	json_decref(a);
}

TEST(what_was_not_told_is_null)
{
	json_t *a = fx_get("/v1/peers?rank=5", 200), *row = fx_at(a, "peers.0");
	static const char *const paths[] = {
		"bytes", "time.gpu_wait_ns", "time.net_ns", "longest.net_ns", "active_ns",
		"held_ns", "busy_ns", "repeats", "rate_gbs", "excess_ns", "bound",
	};

	ck_assert_uint_eq(fx_number(row, "steps"), 4);
	for (int i = 0; i < FX_COUNT(paths); i++)
		check_null(row, paths[i]);
	json_decref(a);
}

static const struct {
	const char *query;
	size_t rows;
} queries[] = {
	{ "", 4 },
	{ "window=60s,all", 8 },
	{ "comm=dp", 4 },
	{ "comm=d00dfeedcafe0001", 4 },
	{ "comm=tp", 0 },
	{ "nranks=8", 4 },
	{ "nranks=4", 0 },
	{ "rank=3", 3 },
	{ "pid=42", 1 },
	{ "pid=41,42", 4 },
	{ "peer=4", 3 },
	{ "peer=2", 1 },
	{ "peer=2&direction=send", 0 },
	{ "direction=recv", 1 },
};

TEST_LOOP(links_can_be_filtered, 0, FX_COUNT(queries))
{
	char target[128];

	snprintf(target, sizeof(target), "/v1/peers?%s", queries[_i].query);
	ck_assert_uint_eq(count(target), queries[_i].rows);
}

TEST(the_last_minute_is_asked_for_apart)
{
	fx_pass(200 * FX_SECOND);
	ck_assert_uint_eq(count("/v1/peers?window=60s"), 0);
	ck_assert_uint_eq(count("/v1/peers"), 4);
}

TEST(a_queue_pair_shows_every_promised_field)
{
	json_t *a = fx_get("/v1/queues?direction=send", 200), *row = fx_at(a, "queues.0");

	ck_assert_uint_eq(json_array_size(fx_at(a, "queues")), 3);
	ck_assert_str_eq(fx_text(row, "window"), "all");
	ck_assert_uint_eq(fx_number(row, "window_ns"), 30000);
	ck_assert_str_eq(fx_text(row, "comm_id"), "0xd00dfeedcafe0001");
	ck_assert_str_eq(fx_text(row, "comm_name"), "dp");
	ck_assert_uint_eq(fx_number(row, "nranks"), 8);
	ck_assert_uint_eq(fx_number(row, "rank"), 3);
	ck_assert_uint_eq(fx_number(row, "pid"), 41);
	ck_assert_uint_eq(fx_number(row, "proxy_pid"), 41);
	ck_assert_uint_eq(fx_number(row, "peer"), 4);
	ck_assert_uint_eq(fx_number(row, "channel"), 2);
	ck_assert_str_eq(fx_text(row, "kind"), "qp");
	ck_assert_uint_eq(fx_number(row, "number"), 302);
	ck_assert_uint_eq(fx_number(row, "nic"), 0);
	ck_assert_uint_eq(fx_number(row, "requests"), 20);
	ck_assert_uint_eq(fx_number(row, "bytes"), 20 * 4096);
	ck_assert_uint_eq(fx_number(row, "p50_ns"), 30000);
	ck_assert_uint_eq(fx_number(row, "p99_ns"), 30000);
	ck_assert_uint_eq(fx_number(row, "max_ns"), 30000);
	ck_assert(json_number_value(fx_at(row, "ratio")) == 3);
	ck_assert_uint_eq(fx_number(row, "others"), 2);
	ck_assert(json_is_true(fx_at(row, "slow")));
	ck_assert(json_is_false(fx_at(a, "queues.1.slow")));
	json_decref(a);
	a = fx_get("/v1/queues?direction=recv&fields=bytes,ratio,slow", 200);
	row = fx_at(a, "queues.0");
	ck_assert_uint_eq(json_object_size(row), 3);
	check_null(row, "bytes");
	check_null(row, "ratio");
	json_decref(a);
}

TEST(queue_pairs_can_be_filtered)
{
	ck_assert_uint_eq(count_of("/v1/queues", "queues"), 6);
	ck_assert_uint_eq(count_of("/v1/queues?window=60s,all", "queues"), 12);
	ck_assert_uint_eq(count_of("/v1/queues?peer=4", "queues"), 3);
	ck_assert_uint_eq(count_of("/v1/queues?rank=5", "queues"), 0);
	ck_assert_uint_eq(count_of("/v1/queues?pid=41&comm=dp", "queues"), 6);
	json_decref(fx_get("/v1/queues?channels=each", 400));
	fx_pass(200 * FX_SECOND);
	ck_assert_uint_eq(count_of("/v1/queues?window=60s", "queues"), 0);
}

int main(void)
{
	return fx_run(setup, fx_serve_close);
}
