/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/inflight: operations that are open, and the slots that are live under them. */
#include "tests/fixture_serve.h"

static void setup(void)
{
	fx_serve_open(NULL);
}

static void add_slot(const void *record, size_t bytes)
{
	struct live_slot *slot = &fx.slots[fx.nslots++];

	slot->tid = 500 + fx.nslots;
	memcpy(&slot->slot, record, bytes);
}

/* A proxy operation of `op`, and a transfer of it that waits for its receiver. */
static void add_proxies(uint64_t op)
{
	struct nci_ev_proxy_op proxy = {
		.type = NCI_EV_PROXY_OP, .form = 2 | NCI_FORM_SEND, .token = 0x6001, .parent = op,
		.start = 1000 + FX_SECOND, .peer = 1, .steps = 8, .steps_done = 2, .channel = 5,
		.cont = NCI_LINE_CONT,
	};
	struct nci_ev_proxy_step step = {
		.type = NCI_EV_PROXY_STEP, .form = 1 | NCI_FORM_SEND, .token = 0x6002,
		.parent = 0x6001, .start = 1000 + 2 * FX_SECOND, .step = 2, .serial = 20 + 1,
		.comm = NCI_COMM_NONE,
	};

	add_slot(&proxy, sizeof(proxy));
	add_slot(&step, sizeof(step));
}

TEST(what_is_in_flight_names_its_operation_oldest_first)
{
	json_t *a;

	fx_post(fx_process(10, 0, 3), 41, 0x5001, 1000);
	add_proxies(0x5001);
	fx_pass(10 * FX_SECOND);
	a = fx_get("/v1/inflight", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "inflight")), 3);
	ck_assert_str_eq(fx_text(a, "inflight.0.event_type"), "Coll");
	ck_assert_uint_eq(fx_number(a, "inflight.0.age_ns"), 10 * FX_SECOND);
	ck_assert_str_eq(fx_text(a, "inflight.1.event_type"), "ProxyOp");
	ck_assert_uint_eq(fx_number(a, "inflight.1.age_ns"), 9 * FX_SECOND);
	ck_assert_str_eq(fx_text(a, "inflight.2.event_type"), "ProxyStep");
	ck_assert_uint_eq(fx_number(a, "inflight.2.age_ns"), 8 * FX_SECOND);
	ck_assert_uint_eq(fx_number(a, "inflight.2.pid"), 10);
	ck_assert_uint_eq(fx_number(a, "inflight.2.tid"), 502);
	ck_assert_str_eq(fx_text(a, "inflight.2.comm_id"), "0xd00dfeedcafe0001");
	ck_assert_uint_eq(fx_number(a, "inflight.2.rank"), 3);
	ck_assert_str_eq(fx_text(a, "inflight.2.func"), FX_FUNC);
	ck_assert_uint_eq(fx_number(a, "inflight.2.seq"), 41);
	ck_assert_str_eq(fx_text(a, "inflight.2.state"), "SendPeerWait");
	ck_assert_str_eq(fx_text(a, "inflight.2.direction"), "send");
	ck_assert_uint_eq(fx_number(a, "inflight.2.channel"), 5);
	ck_assert_uint_eq(fx_number(a, "inflight.2.peer"), 1);
	ck_assert_uint_eq(fx_number(a, "inflight.2.step"), 2);
	ck_assert_uint_eq(fx_number(a, "inflight.2.steps"), 8);
	ck_assert_str_eq(fx_text(a, "inflight.2.parent"), "0x0000000000006001");
	ck_assert_str_eq(fx_text(a, "inflight.2.process_state"), "live");
	json_decref(a);

	a = fx_get("/v1/inflight?older_than_ns=9000000000", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "inflight")), 2);
	ck_assert_uint_eq(fx_number(a, "inflight_total"), 2);
	json_decref(a);
}

/* One has more than all rows, all older than the other's. */
TEST(what_one_user_has_in_flight_leaves_rows_for_others)
{
	static struct live_slot slots[11000];
	struct nci_ev_proxy_op proxy = { .type = NCI_EV_PROXY_OP, .form = 2, .start = 1000,
					 .cont = NCI_LINE_CONT };
	json_t *a;

	for (uint32_t i = 0; i < FX_COUNT(slots); i++) {
		proxy.token = 0x6000 + i;
		memcpy(&slots[i].slot, &proxy, sizeof(proxy));
	}
	for (int i = 0; i < 2; i++) {
		struct process *p = fx_process(100 + i, 0, i);

		p->account = (uid_t)i;
		p->state = PROCESS_DIED;
		p->last_slots = slots;
		p->nlast_slots = i ? 1 : FX_COUNT(slots);
		p->clock.mono_ns += (uint64_t)i;
	}
	fx_pass(FX_SECOND);
	a = fx_get("/v1/inflight?fields=pid", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "inflight")), 5000 + 1);
	ck_assert_uint_eq(fx_number(a, "inflight.5000.pid"), 101);
	ck_assert_uint_eq(fx_number(a, "inflight_total"), FX_COUNT(slots) + 1);
	json_decref(a);
}

static void in_flight_are(uint64_t n)
{
	json_t *a = fx_get("/v1/inflight", 200), *b = fx_get("/v1/comms", 200);
	json_t *c = fx_get("/v1/ranks", 200);

	ck_assert_uint_eq(json_array_size(fx_at(a, "inflight")), n);
	ck_assert_uint_eq(fx_number(b, "comms.0.local_ranks.0.in_flight"), n);
	ck_assert_uint_eq(fx_number(c, "ranks.0.in_flight"), n);
	json_decref(a);
	json_decref(b);
	json_decref(c);
}

TEST(what_only_settles_is_in_flight_nowhere)
{
	struct process *p = fx_process(10, 0, 3);

	fx_settle(p, 0x5001, 1000);
	in_flight_are(0);
	fx_post(p, 41, 0x5002, 2000);
	in_flight_are(1);
}

TEST(only_the_oldest_are_told_where_a_limit_is_given_and_all_are_counted)
{
	json_t *a;

	fx_post(fx_process(10, 0, 3), 41, 0x5001, 1000);
	add_proxies(0x5001);
	fx_pass(10 * FX_SECOND);
	a = fx_get("/v1/inflight?limit=2", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "inflight")), 2);
	ck_assert_str_eq(fx_text(a, "inflight.0.event_type"), "Coll");
	ck_assert_str_eq(fx_text(a, "inflight.1.event_type"), "ProxyOp");
	ck_assert_uint_eq(fx_number(a, "inflight_total"), 3);
	json_decref(a);
	a = fx_get("/v1/inflight?limit=1&older_than_ns=9000000000", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "inflight")), 1);
	ck_assert_uint_eq(fx_number(a, "inflight_total"), 2);
	json_decref(a);
	json_decref(fx_get("/v1/inflight?limit=0", 400));
}

TEST(an_operation_runs_once_its_kernel_does_or_a_transfer_is_done)
{
	struct nci_ev_proxy_op *proxy = (struct nci_ev_proxy_op *)&fx.slots[0].slot;
	struct nci_ev_kernel_ch kernel = {
		.type = NCI_EV_KERNEL_CH, .form = 1, .token = 0x6003, .parent = 0x5001,
		.start = 1000 + FX_SECOND,
	};
	struct process *p = fx_process(10, 0, 3);
	json_t *a;

	fx_post(p, 41, 0x5001, 1000);
	add_proxies(0x5001);
	proxy->steps_done = 0;
	a = fx_get("/v1/inflight", 200);
	ck_assert_str_eq(fx_text(a, "inflight.0.state"), "not_started");
	json_decref(a);

	proxy->steps_done = 1;
	a = fx_get("/v1/inflight", 200);
	ck_assert_str_eq(fx_text(a, "inflight.0.state"), "running");
	json_decref(a);

	proxy->steps_done = 0;
	add_slot(&kernel, sizeof(kernel));
	a = fx_get("/v1/inflight", 200);
	ck_assert_str_eq(fx_text(a, "inflight.0.state"), "running");
	json_decref(a);
}

TEST(slots_whose_parents_form_a_ring_do_no_harm)
{
	struct nci_ev_proxy_step step = { .type = NCI_EV_PROXY_STEP, .form = 1, .start = 1000 };
	json_t *a;

	fx_process(10, 0, 3);
	for (uint64_t i = 0; i < 6; i++) {
		step.token = 10 + i / 2;	/* and each twice */
		step.parent = 10 + (i / 2 + 1) % 3;
		add_slot(&step, sizeof(step));
	}
	step.type = 0xee;
	add_slot(&step, sizeof(step));
	a = fx_get("/v1/inflight", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "inflight")), 6);
	ck_assert(json_is_null(fx_at(a, "inflight.0.func")));
	json_decref(a);
}

TEST(what_a_dead_process_left_in_flight_stays_visible)
{
	struct process *p = fx_process(10, 0, 3);
	json_t *a;

	fx_post(p, 41, 0x5001, 1000);
	add_proxies(0x5001);
	p->last_slots = fx.slots;
	p->nlast_slots = (uint32_t)fx.nslots;
	p->state = PROCESS_DIED;
	p->ended_ns = FX_START_NS + 5 * FX_SECOND;
	reconstruct_end(fx.reconstruct, p, p->ended_ns);
	fx_pass(100 * FX_SECOND);
	a = fx_get("/v1/inflight", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "inflight")), 3);
	for (size_t i = 0; i < 3; i++)
		ck_assert_str_eq(json_string_value(json_object_get(
				json_array_get(fx_at(a, "inflight"), i), "process_state")), "died");
	ck_assert_uint_eq(fx_number(a, "inflight.0.age_ns"), 5 * FX_SECOND);
	ck_assert_uint_eq(fx_number(a, "inflight.1.age_ns"), 4 * FX_SECOND);
	json_decref(a);
}

int main(void)
{
	return fx_run(setup, fx_serve_close);
}
