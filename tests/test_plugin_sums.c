/* SPDX-License-Identifier: Apache-2.0 */
/* At level net, what the steps of a network operation add up to. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nci/sums.h"
#include "shmring/producer.h"
#include "tests/fixture.h"
#include "tests/plugin_driver.h"

static struct pd pd;

static void setup(void)
{
	pd_open(&pd, "net");
	pd_init(&pd);
}

static void run_step(void *op, int step, int receive, uint64_t bytes)
{
	static const int states[2][3] = {
		{ NCCL_STEP_SEND_GPU_WAIT, NCCL_STEP_SEND_PEER_WAIT, NCCL_STEP_SEND_WAIT },
		{ NCCL_STEP_RECV_WAIT, NCCL_STEP_RECV_FLUSH_WAIT, NCCL_STEP_RECV_GPU_WAIT },
	};
	void *h = PD_START(&pd, NCCL_PROXY_STEP, .parent = op, .step = step);

	for (int i = 0; i < 3; i++)
		pd_state(&pd, h, states[receive][i], &bytes);
	pd_stop(&pd, h);
}

static const struct nci_ev_proxy_op *op_record(unsigned int n)
{
	return (const struct nci_ev_proxy_op *)pd_record(&pd, NCI_EV_PROXY_OP, n);
}

static const struct nci_ev_proxy_sums *sums_record(unsigned int n)
{
	return (const struct nci_ev_proxy_sums *)pd_record(&pd, NCI_EV_PROXY_SUMS, n);
}

TEST_LOOP(steps_leave_one_record_of_what_they_add_up_to, 0, 2)
{
	void *op = PD_START(&pd, NCCL_PROXY_OP, .receive = _i);
	const struct nci_ev_proxy_sums *sums;

	for (int i = 0; i < 5; i++)
		run_step(op, i, _i, 100 + (uint64_t)i);
	pd_stop(&pd, op);
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 2);
	ck_assert_uint_eq(pd_count(&pd, NCI_EV_PROXY_STEP), 0);
	sums = sums_record(0);
	ck_assert_uint_eq(sums->form, 2 | (_i ? 0 : NCI_FORM_SEND));
	ck_assert_uint_eq(sums->parent, (uint64_t)op);
	ck_assert_uint_eq(sums->serial + 1, op_record(0)->serial);
	ck_assert_uint_eq(sums->comm, op_record(0)->comm);
	ck_assert_uint_eq(sums->steps, 5);
	ck_assert_uint_eq(sums->bytes, 510);
	ck_assert_uint_eq(sums->point[0].bytes, _i ? 0 : 100);
	ck_assert_uint_eq(sums->point[1].bytes, _i ? 0 : 104);
	ck_assert_uint_ge(sums->start, op_record(0)->start);
	ck_assert_uint_le(sums->stop, op_record(0)->stop);
	ck_assert_uint_ge(sums->covered, sums->busy);
	ck_assert_uint_le(sums->covered, sums->stop - sums->start);
	ck_assert_uint_gt(op_record(0)->start + op_record(0)->state_span[0], sums->start);
	ck_assert_uint_le(op_record(0)->start + op_record(0)->state_span[0],
			  sums->stop - sums->covered);
	ck_assert_uint_eq(op_record(0)->steps_done, 5);
	ck_assert_uint_eq(op_record(0)->bytes, 510);
}

/* Only the record of an operation has the books. */
TEST(step_of_no_operation_leaves_its_parent_as_it_is)
{
	void *coll = PD_START(&pd, NCCL_COLL);
	struct nci_slot before = *(const struct nci_slot *)pd_slot(&pd, coll);

	for (int i = 0; i < 3; i++)
		run_step(coll, i, 0, 100);
	ck_assert_mem_eq(pd_slot(&pd, coll), &before, sizeof(before));
	pd_stop(&pd, coll);
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 1);
}

TEST(sums_are_read_while_they_grow)
{
	void *op = PD_START(&pd, NCCL_PROXY_OP);
	const struct nci_ev_proxy_op *live;
	const struct nci_ev_proxy_sums *sums;
	uint64_t token;

	run_step(op, 0, 0, 7);
	live = (const struct nci_ev_proxy_op *)pd_slot(&pd, op);
	ck_assert_uint_ne(live->sums, 0);
	token = nci_token(nci_token_lane((uint64_t)op), live->sums - 1u, 1);
	sums = (const struct nci_ev_proxy_sums *)pd_slot(&pd, (void *)token);
	ck_assert_uint_eq(sums->type, NCI_EV_PROXY_SUMS);
	ck_assert_uint_eq(sums->steps, 1);
	ck_assert_uint_ge(sums->stop, sums->start);
}

TEST(step_that_did_not_tell_all_is_counted_and_not_timed)
{
	void *op = PD_START(&pd, NCCL_PROXY_OP), *h;

	h = PD_START(&pd, NCCL_PROXY_STEP, .parent = op, .step = 0);
	pd_state(&pd, h, NCCL_STEP_SEND_GPU_WAIT, NULL);
	pd_state(&pd, h, NCCL_STEP_SEND_WAIT, &(uint64_t){ 10 });	/* as NCCL up to 2.26 */
	pd_stop(&pd, h);
	h = PD_START(&pd, NCCL_PROXY_STEP, .parent = op, .step = 1);
	pd_state(&pd, h, NCCL_STEP_SEND_GPU_WAIT, NULL);
	pd_state(&pd, h, NCCL_STEP_SEND_PEER_WAIT, NULL);
	pd_state(&pd, h, NCCL_STEP_SEND_WAIT, &(uint64_t){ 20 });	/* and never stops */
	pd_stop(&pd, op);
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 1);
	ck_assert_uint_eq(op_record(0)->steps_done, 2);
	ck_assert_uint_eq(op_record(0)->bytes, 30);
	ck_assert_uint_eq(op_record(0)->sums, 0);
}

TEST(repeated_polls_of_a_full_peer_are_counted)
{
	void *op = PD_START(&pd, NCCL_PROXY_OP), *h;

	h = PD_START(&pd, NCCL_PROXY_STEP, .parent = op, .step = 0);
	pd_state(&pd, h, NCCL_STEP_SEND_GPU_WAIT, NULL);
	for (int i = 0; i < 12; i++)
		pd_state(&pd, h, NCCL_STEP_SEND_PEER_WAIT, NULL);
	pd_state(&pd, h, NCCL_STEP_SEND_WAIT, &(uint64_t){ 10 });
	pd_stop(&pd, h);
	pd_stop(&pd, op);
	pd_read(&pd);
	ck_assert_uint_eq(sums_record(0)->repeats, 11);
}

TEST(sums_cost_no_slot_for_good)
{
	for (int i = 0; i < 4 * SHMRING_SLOTS; i++) {
		void *op = PD_START(&pd, NCCL_PROXY_OP);

		run_step(op, 0, 0, 1);
		pd_stop(&pd, op);
	}
	pd_read(&pd);
	ck_assert_uint_eq(pd.lane[0].pool_full, 0);
	ck_assert_uint_eq(sums_record(0)->steps, 1);
}

TEST(number_of_an_empty_slot_is_no_operation)
{
	void *op = PD_START(&pd, NCCL_PROXY_OP), *other = PD_START(&pd, NCCL_GROUP);
	uint64_t empty = (uint64_t)op | NCI_TOKEN_FREE;

	pd_stop(&pd, op);
	pd_stop(&pd, other);
	for (int i = 0; i < 3; i++)
		run_step((void *)empty, i, 0, 1);
	for (uint64_t i = 0; i < 5; i++)
		for (uint32_t slot = 0; slot < 4; slot++)
			ck_assert_ptr_null(pd_slot(&pd, (void *)nci_token(0, slot, i + 1)));
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 2);
}

/* The slot's next event is its last one. */
static void exhaust(uint32_t slot)
{
	uint64_t token = NCI_TOKEN_FREE | nci_token(0, slot, (UINT64_C(1) << 42) - 1), at;
	int fd;

	pd_read(&pd);
	fd = open(pd.path, O_RDWR);
	at = pd.lane[0].offset + (uint64_t)pd.lane[0].lines * NCI_LINE_BYTES +
	     slot * NCI_SLOT_BYTES + offsetof(struct nci_record, token);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, &token, sizeof(token), (off_t)at), sizeof(token));
	close(fd);
}

/* It may be a step's, or the sums'. */
TEST_LOOP(slot_out_of_generations_costs_the_sums_of_one_operation, 0, 2)
{
	uint32_t steps = 0;

	for (unsigned int i = 0; i < 5; i++) {
		void *op = PD_START(&pd, NCCL_PROXY_OP);

		if (i == 0)
			exhaust(1 + (uint32_t)_i);
		run_step(op, 0, 0, 1);
		pd_stop(&pd, op);
	}
	pd_read(&pd);
	for (unsigned int i = 0; i < 5; i++)
		steps += op_record(i)->steps_done;
	ck_assert_uint_eq(steps, 4 + (uint32_t)_i);
	ck_assert_uint_eq(pd_count(&pd, NCI_EV_PROXY_SUMS), 4);
}

TEST(steps_of_a_full_pool_are_counted_and_not_timed)
{
	void *op = PD_START(&pd, NCCL_PROXY_OP), *h;

	h = PD_START(&pd, NCCL_PROXY_STEP, .parent = op, .step = 0);
	for (int i = 2; i < SHMRING_SLOTS; i++)
		ck_assert_ptr_nonnull(PD_START(&pd, NCCL_COLL));
	pd_state(&pd, h, NCCL_STEP_SEND_GPU_WAIT, NULL);
	pd_state(&pd, h, NCCL_STEP_SEND_PEER_WAIT, NULL);
	pd_state(&pd, h, NCCL_STEP_SEND_WAIT, &(uint64_t){ 10 });
	pd_stop(&pd, h);
	pd_stop(&pd, op);
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 1);
	ck_assert_uint_eq(op_record(0)->steps_done, 1);
}

/* ---- the arithmetic, against ticks that are counted one by one ---------------- */

#define STEPS	24
#define TICKS	4096

static struct nci_ev_proxy_step steps[STEPS];

/* Random times; they enter each state, and end, in order. */
static void make_steps(bool send)
{
	uint64_t at[4] = { 0 };

	for (int i = 0; i < STEPS; i++) {
		steps[i] = (struct nci_ev_proxy_step){
			.form = send ? NCI_FORM_SEND : 0, .bytes = 1 + fx_random() % 4,
			.repeats = fx_random() % 3, .start = 1000 + fx_random() % 50,
		};
		at[0] += steps[i].start > at[0] ? steps[i].start - at[0] : 0;
		for (int k = 0; k < 4; k++) {
			at[k] = (k && at[k - 1] > at[k] ? at[k - 1] : at[k]) + 1 +
				fx_random() % (i % 3 ? 9 : 90);
			if (k < 3)
				steps[i].span[k] = (uint32_t)(at[k] - steps[i].start);
		}
		steps[i].stop = at[3];
	}
}

static uint64_t entered(const struct nci_ev_proxy_step *step, int state)
{
	return state < 3 ? step->start + step->span[state] : step->stop;
}

/* Ticks at which some step is in one of the states from `state` on. */
static uint64_t slow_union(int state)
{
	uint64_t ticks = 0;

	for (uint64_t t = 0; t < TICKS; t++) {
		bool any = false;

		for (int i = 0; i < STEPS; i++)
			any |= t >= entered(&steps[i], state) && t < steps[i].stop;
		ticks += any;
	}
	return ticks;
}

static void check_points(const struct nci_ev_proxy_sums *sums)
{
	struct nci_point least[5] = { { 0 } };
	uint32_t from = 5, to = 0;

	for (int i = 0; i < STEPS; i++) {
		const struct nci_ev_proxy_step *s = &steps[i];
		uint32_t wire = (uint32_t)(s->stop - entered(s, 2));
		bool idle = s->form & NCI_FORM_SEND;

		for (int k = 0; k < STEPS; k++)
			idle &= k == i || entered(&steps[k], 2) > entered(s, 2) ||
				steps[k].stop <= entered(s, 2) ||
				(entered(&steps[k], 2) == entered(s, 2) && k > i);
		if (!idle)
			continue;
		if (!least[s->bytes].bytes || wire < least[s->bytes].span)
			least[s->bytes] = (struct nci_point){ s->bytes, wire };
		from = s->bytes < from ? s->bytes : from;
		to = s->bytes > to ? s->bytes : to;
	}
	ck_assert_uint_eq(sums->point[0].bytes, from == 5 ? 0 : from);
	ck_assert_uint_eq(sums->point[1].bytes, to);
	if (!to)
		return;
	ck_assert_uint_eq(sums->point[0].span, least[from].span);
	ck_assert_uint_eq(sums->point[1].span, least[to].span);
}

TEST(sums_are_what_counting_every_tick_gives)
{
	for (int round = 0; round < 300; round++) {
		struct nci_ev_proxy_sums sums = { 0 }, plain = { 0 };
		struct nci_sums_plain step;
		uint64_t ticks[3] = { 0 }, longest[3] = { 0 }, bytes = 0, repeats = 0;

		make_steps(round % 3);
		for (int i = 0; i < STEPS; i++) {
			const struct nci_ev_proxy_step *s = &steps[i];

			ck_assert_uint_lt(s->stop, TICKS);
			for (int k = 0; k < 3; k++) {
				uint64_t stay = entered(s, k + 1) - entered(s, k);

				ticks[k] += stay;
				longest[k] = stay > longest[k] ? stay : longest[k];
			}
			bytes += s->bytes;
			repeats += s->repeats;
			nci_sums_leave(&sums, s, nci_sums_enter(&sums, s), s->stop);
			ck_assert(nci_sums_is_plain(s, &step));
			nci_sums_enter_plain(&plain, s, &step);
			ck_assert(nci_sums_leave_plain(&plain, s, s->stop));
		}
		ck_assert_mem_eq(&plain, &sums, sizeof(sums));
		for (int k = 0; k < 3; k++) {
			ck_assert_uint_eq(sums.ticks[k], ticks[k]);
			ck_assert_uint_eq(sums.longest[k], longest[k]);
		}
		ck_assert_uint_eq(sums.steps, STEPS);
		ck_assert_uint_eq(sums.bytes, bytes);
		ck_assert_uint_eq(sums.repeats, repeats);
		ck_assert_uint_eq(sums.busy, slow_union(2));
		ck_assert_uint_eq(sums.covered, slow_union(1));
		ck_assert_uint_eq(sums.stop, steps[STEPS - 1].stop);
		check_points(&sums);
	}
}

TEST(step_is_plain_if_its_spans_are_exact_and_in_order)
{
	const uint32_t coarse = NCI_SPAN_COARSE | 0x800;
	static struct nci_ev_proxy_sums sums;
	struct nci_ev_proxy_step step = { .start = 1 };
	struct nci_sums_plain plain;
	const struct {
		uint32_t span[3];
		bool plain;
	} cases[] = {
		{ { 1, 1, 1 }, true }, { { 1, 2, 0x7fffffff }, true }, { { 0, 1, 2 }, false },
		{ { 1, 0, 2 }, false }, { { 1, 2, 0 }, false }, { { 2, 1, 3 }, false },
		{ { 1, 3, 2 }, false }, { { 1, 2, coarse }, false }, { { 1, coarse, 1 }, false },
		{ { 0x1000, coarse, 1 }, false }, { { coarse, 1, 2 }, false },
		{ { coarse, coarse, coarse }, false }, { { NCI_SPAN_COARSE, 1, 2 }, false },
	};

	for (int i = 0; i < FX_COUNT(cases); i++) {
		memcpy(step.span, cases[i].span, sizeof(step.span));
		step.bytes = NCI_BYTES_UNKNOWN;
		ck_assert(!nci_sums_is_plain(&step, &plain));
		step.bytes--;
		ck_assert_msg(nci_sums_is_plain(&step, &plain) == cases[i].plain, "case %d", i);
	}
	memcpy(step.span, (const uint32_t[]){ 3, 4, 6 }, sizeof(step.span));
	ck_assert(!nci_sums_leave_plain(&sums, &step, 6));
	ck_assert(!nci_sums_leave_plain(&sums, &step, 7 + NCI_SPAN_COARSE));
	ck_assert_uint_eq(sums.stop, 0);
}

TEST(times_too_long_for_a_span_and_out_of_order_do_no_harm)
{
	const uint64_t hour = UINT64_C(3600) * 3000000000;
	struct nci_ev_proxy_step step = {
		.form = NCI_FORM_SEND, .bytes = 8, .start = 500,
		.span = { 1, nci_span(0, hour), nci_span(0, 2 * hour) },
	};
	struct nci_ev_proxy_sums sums = { 0 };

	nci_sums_leave(&sums, &step, nci_sums_enter(&sums, &step), 500 + 3 * hour);
	for (int k = 0; k < 3; k++) {
		ck_assert_uint_le(sums.ticks[k] - hour + (1 << NCI_SPAN_SHIFT),
				  2 << NCI_SPAN_SHIFT);
		ck_assert_uint_le(nci_span_ticks(sums.longest[k]), sums.ticks[k]);
	}
	step.start = 500 + 4 * hour;
	step.span[2] = 1;	/* before the one that it comes behind */
	nci_sums_leave(&sums, &step, nci_sums_enter(&sums, &step), 500);
	ck_assert_uint_le(sums.ticks[2] - hour, 1 << NCI_SPAN_SHIFT);
	ck_assert_uint_le(sums.busy, 6 * hour);
}

int main(void)
{
	return fx_run(setup, NULL);
}
