/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about links that are slower than others. */
#include "tests/fx_slow.h"

/*
 * Four ranks in a ring on two channels, for so many seconds, each 50 ms of them on the
 * wire; `slow` is how much longer rank 1 needs on channels `from` and up, `held` for how
 * long each step of rank 3 waits for its peer.
 */
static void run_ring(uint32_t seconds, uint64_t slow, uint8_t from, uint64_t held)
{
	for (uint32_t s = 0; s < seconds; s++) {
		for (int32_t i = 0; i < 40; i++) {
			int32_t rank = i % 4;
			uint8_t channel = (uint8_t)(i / 4 % 2);
			bool hurt = rank == 1 && channel >= from;

			transfer(rank, (rank + 1) % 8, channel, rank == 3 ? held : 0,
				 (hurt ? slow : 1) * STEP_NS);
		}
		fx.now_ns += FX_SECOND;
		diagnose_look(fx.diagnose, fx.now_ns);
	}
}

TEST(even_links_are_no_finding)
{
	json_t *a;

	start_ranks();
	run_ring(30, 1, 0, 0);
	a = fx_get("/v1/findings", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 0);
	json_decref(a);
}

TEST(a_slow_link_is_named_with_what_cannot_be_told)
{
	json_t *a;

	start_ranks();
	run_ring(15, 3, 0, 0);
	a = only_finding("?active=true");
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "LINK");
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.peer"), 2);
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"),
				     "the link from rank 1 of dp (pid 101, node7) to rank 2 of dp "
				     "(pid 102, node7) is slow: a byte takes 3.0 times as long"));
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), "the cause may be the path"));
	json_decref(a);
}

TEST(a_slow_channel_is_told_from_a_slow_link)
{
	json_t *a;

	start_ranks();
	run_ring(15, 3, 1, 0);
	a = only_finding("?active=true");
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "CHANNEL");
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.channel"), 1);
	json_decref(a);
}

static const struct path {
	int32_t rank, peer;
	uint32_t slow;		/* bits of queue pairs, four on each of three channels */
	uint64_t times;		/* how much longer their requests take */
	uint16_t comm;
	bool named, no_id;
} paths[] = {
	{ 1, 2, 1 << 5, 12, 0, true, false },
	{ 1, 2, 1 << 5, 12, 0, true, true },	/* until profiler API 3 */
	{ 1, 2, 1 << 1, 12, 0, false, false },	/* on another channel */
	{ 1, 3, 1 << 5, 12, 0, false, false },	/* to another rank */
	{ 0, 2, 1 << 5, 12, 0, false, false },	/* of another process */
	{ 1, 2, 1 << 5, 12, 1, false, false },	/* of another communicator of the same process */
	{ 1, 2, 1 << 5, 3, 0, false, false },	/* makes the channel 1.5 times slower, not 3 */
	{ 1, 2, 0xf0, 12, 0, false, false },	/* all of the channel: its NIC, perhaps */
};

static void requests(const struct path *path)
{
	for (uint32_t i = 0; i < 12 * 20; i++) {
		bool slow = path->slow & 1u << i % 12;
		const struct nci_ev_net_plugin ev = {
			.form = 2 | NCI_FORM_SEND, .id = NCI_NET_IB_V1, .op = 9,
			.channel = (uint8_t)(i % 12 / 4), .peer = path->peer, .bytes = 4096,
			.queue = 300 + i % 12, .start = 1000000,
			.stop = 1000000 + 10000 * (slow ? path->times : 1),
		};
		const struct net_request r = { .issuer = fx.processes[path->rank],
					       .executor = fx.processes[path->rank],
					       .comm_index = path->comm, .ev = &ev };

		queues_add(fx.queues, &r, fx.now_ns);
	}
}

TEST_LOOP(queue_pair_that_makes_a_channel_slow_is_named, 0, FX_COUNT(paths))
{
	const struct path *path = &paths[_i];
	json_t *a, *queue;

	start_ranks();
	fx.processes[path->rank]->comms[0].has_id = !path->no_id;
	requests(path);
	fx.processes[path->rank]->comms[0].has_id = true;
	run_ring(15, 3, 1, 0);
	a = only_finding("?active=true");
	queue = fx_at(a, "findings.0.evidence.queue");
	ck_assert(json_is_null(queue) != path->named);
	ck_assert(!strstr(fx_text(a, "findings.0.text"), "queue pair 305") == !path->named);
	if (path->named) {
		ck_assert_uint_eq(fx_number(queue, "number"), 305);
		ck_assert_uint_eq(fx_number(queue, "channel"), 1);
		ck_assert_uint_eq(fx_number(queue, "others"), 11);
	}
	json_decref(a);
}

/* On each of many communicators, one of three channels to each of eight ranks is slow. */
static void transfer_slowly(struct process *p)
{
	for (uint16_t k = 0; k < p->ncomms; k++)
		for (int32_t i = 0; i < 8 * 3; i++)
			transfer_on(p, k, "dp", 0, 1 + i / 3, (uint8_t)(i % 3), 0,
				    (i % 3 ? 1 : 10) * STEP_NS);
}

TEST(nobody_keeps_slow_links_of_others_from_being_confirmed)
{
	struct process *many;
	size_t i, others = 0;
	json_t *a, *f;

	start_ranks();
	many = fx_process(200, 1000, 0);
	many->account = 1000;
	many->ncomms = 16;
	many->comms = realloc(many->comms, many->ncomms * sizeof(*many->comms));
	for (uint32_t k = 1; k < many->ncomms; k++) {
		many->comms[k] = many->comms[0];
		many->comms[k].id += k;
	}
	for (int s = 0; s < 20; s++) {
		transfer_slowly(many);
		run_ring(1, s < 6 ? 1 : 3, 0, 0);
	}
	a = fx_get("/v1/findings?active=true", 200);
	json_array_foreach(fx_at(a, "findings"), i, f)
		others += fx_number(f, "uid") == 0;
	ck_assert_uint_eq(others, 1);
	ck_assert_uint_gt(i, 64);
	json_decref(a);
}

TEST(it_is_over_when_the_link_is_well_again)
{
	json_t *a;

	start_ranks();
	run_ring(20, 3, 0, 0);
	run_ring(120, 1, 0, 0);
	a = only_finding("");
	ck_assert(json_is_false(fx_at(a, "findings.0.active")));
	ck_assert(json_is_false(fx_at(a, "findings.0.with_job")));
	json_decref(a);
}

TEST(a_receiver_that_has_no_room_is_told_as_such)
{
	json_t *a;

	start_ranks();
	requests(&(struct path){ .rank = 3, .peer = 4, .slow = 1 << 5, .times = 1000 });
	run_ring(15, 1, 0, 10 * STEP_NS);
	a = only_finding("?active=true");
	ck_assert(json_is_null(fx_at(a, "findings.0.evidence.queue")));
	ck_assert_str_eq(fx_text(a, "findings.0.severity"), "info");
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 3);
	ck_assert_uint_eq(fx_number(a, "findings.0.peer"), 4);
	ck_assert_str_eq(fx_text(a, "findings.0.evidence.aspect"), "room");
	json_decref(a);
}

TEST(what_costs_next_to_nothing_is_not_told)
{
	json_t *a;

	start_ranks();
	for (int s = 0; s < 30; s++) {
		for (int32_t rank = 0; rank < 4; rank++)
			for (int n = 0; n < 5; n++)
				transfer(rank, (rank + 1) % 8, 0, 0, rank == 1 ? 9 * 1000 : 1000);
		fx.now_ns += FX_SECOND;
		diagnose_look(fx.diagnose, fx.now_ns);
	}
	a = fx_get("/v1/findings", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 0);
	json_decref(a);
}

TEST(what_waits_for_room_at_a_rank_that_is_here_is_not_told)
{
	json_t *a;

	start_ranks();
	for (int i = 0; i < 15; i++) {
		for (int n = 0; n < 40; n++)	/* rank 2 is here, and sends nothing itself */
			if (n % 4 != 2)
				transfer(n % 4, n % 4 + 1, 0, n % 4 == 1 ? 2 * STEP_NS : 0,
					 STEP_NS);
		fx.now_ns += FX_SECOND;
		diagnose_look(fx.diagnose, fx.now_ns);
	}
	a = fx_get("/v1/findings", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 0);
	json_decref(a);
}

/* ---- one link in each communicator ------------------------------------------------ */

enum kin {
	KIN,		/* of one job, name and size */
	OTHER_JOB,
	OTHER_NAME,
	OTHER_SIZE,
};

/*
 * Three communicators, in each of which one rank is here and sends to one elsewhere, on two
 * channels; the last one's transfers take so many times as long.
 */
static void run_lonely_links(enum kin kin, double slow)
{
	static const name_t names[2] = { "dp", "pp" };

	for (int32_t i = 0; i < 3; i++) {
		struct process *p = fx_process(100 + i, 0, 0);

		p->comms = realloc(p->comms, 2 * sizeof(*p->comms));
		p->comms[1] = p->comms[0];
		p->comms[1].id = kin == OTHER_JOB ? 900 + (uint64_t)i : 900;
		p->comms[1].rank = i;
		p->comms[0].id = 70 + (uint64_t)i;
		p->comms[0].nranks = kin == OTHER_SIZE ? 4 + i : 4;
		p->ncomms = 2;
	}
	for (uint32_t s = 0; s < 15; s++) {
		for (int32_t i = 0; i < 3 * 2 * 10; i++) {
			int32_t who = i % 3;
			double ns = who == 2 ? slow * STEP_NS : STEP_NS;

			transfer_of(fx.processes[who], names[kin == OTHER_NAME ? who % 2 : 0], 0, 1,
				    (uint8_t)(i / 3 % 2), 0, (uint64_t)ns);
			if (kin == OTHER_NAME && who == 0)	/* else two are alike */
				transfer_of(fx.processes[who], names[0], 0, 2, 0, 0, STEP_NS);
		}
		fx.now_ns += FX_SECOND;
		diagnose_look(fx.diagnose, fx.now_ns);
	}
}

TEST(a_link_that_is_alone_is_compared_with_its_like)
{
	json_t *a;

	run_lonely_links(KIN, 4);
	a = only_finding("?active=true");
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "LINK");
	ck_assert_str_eq(fx_text(a, "findings.0.comm_id"), "0x0000000000000048");
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 0);
	ck_assert_uint_eq(fx_number(a, "findings.0.peer"), 1);
	ck_assert(json_is_true(fx_at(a, "findings.0.evidence.siblings")));
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"),
				     "a byte takes 4.0 times as long as on the links of other "
				     "communicators like dp"));
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"),
				     "Neither has another link here"));
	json_decref(a);
}

TEST_LOOP(what_is_not_alike_is_not_compared, 0, 4)
{
	json_t *a;

	run_lonely_links(_i ? (enum kin)_i : KIN, _i ? 4 : 1.8);
	a = fx_get("/v1/findings", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 0);
	json_decref(a);
}

int main(void)
{
	return fx_run(setup, fx_serve_close);
}
