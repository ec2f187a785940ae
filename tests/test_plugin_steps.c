/* SPDX-License-Identifier: Apache-2.0 */
/* A network operation and its steps: repeated, lost, late. */
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

TEST(repeated_start_of_a_receive_step_gives_the_same_handle)
{
	void *op = PD_START(&pd, NCCL_PROXY_OP, .receive = 1);
	void *first = PD_START(&pd, NCCL_PROXY_STEP, .parent = op, .step = 3);

	for (int i = 0; i < 4; i++)
		ck_assert_ptr_eq(PD_START(&pd, NCCL_PROXY_STEP, .parent = op, .step = 3), first);
	ck_assert_ptr_ne(PD_START(&pd, NCCL_PROXY_STEP, .parent = op, .step = 4), first);
	pd_stop(&pd, first);
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 1);
	ck_assert_uint_eq(step_record(0)->repeats, 4);
	ck_assert_uint_eq(step_record(0)->form & 0xf0, 0);
	ck_assert_ptr_ne(PD_START(&pd, NCCL_PROXY_STEP, .parent = op, .step = 3), first);
}

TEST(equal_steps_of_two_operations_are_two_events)
{
	void *a = PD_START(&pd, NCCL_PROXY_OP), *b = PD_START(&pd, NCCL_PROXY_OP);

	ck_assert_ptr_ne(PD_START(&pd, NCCL_PROXY_STEP, .parent = a, .step = 3),
			 PD_START(&pd, NCCL_PROXY_STEP, .parent = b, .step = 3));
}

TEST(step_in_the_place_of_an_unstopped_one_closes_it)
{
	void *op = PD_START(&pd, NCCL_PROXY_OP, .receive = 1);
	void *lost = PD_START(&pd, NCCL_PROXY_STEP, .parent = op, .step = 1);
	void *next = PD_START(&pd, NCCL_PROXY_STEP, .parent = op, .step = 9);

	ck_assert_ptr_ne(lost, next);
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 1);
	ck_assert_int_eq(step_record(0)->step, 1);
	ck_assert(step_record(0)->form & NCI_FORM_UNSTOPPED);
	pd_stop(&pd, lost);
	pd_stop(&pd, next);
	pd_stop(&pd, op);
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 3);
	ck_assert_uint_eq(step_record(1)->form & NCI_FORM_UNSTOPPED, 0);
	ck_assert_uint_eq(op_record(0)->steps_done, 2);
	ck_assert_uint_eq(pd.lane[0].stale, 1);
}

TEST(stop_of_an_operation_closes_its_open_steps)
{
	void *op = PD_START(&pd, NCCL_PROXY_OP);

	for (int i = 0; i < 8; i++) {
		void *h = PD_START(&pd, NCCL_PROXY_STEP, .parent = op, .step = i);

		pd_state(&pd, h, NCCL_STEP_SEND_WAIT, &(uint64_t){ 10 });
		if (i % 2)
			pd_stop(&pd, h);
	}
	pd_stop(&pd, op);
	pd_read(&pd);
	ck_assert_uint_eq(pd_count(&pd, NCI_EV_PROXY_STEP), 8);
	for (unsigned int i = 0; i < 8; i++)
		ck_assert_uint_eq(!!(step_record(i)->form & NCI_FORM_UNSTOPPED), i >= 4);
	ck_assert_uint_eq(op_record(0)->steps_done, 8);
	ck_assert_uint_eq(op_record(0)->bytes, 80);
}

TEST(many_steps_add_up_in_their_operation)
{
	void *op = PD_START(&pd, NCCL_PROXY_OP);

	for (int i = 0; i < 1000; i++) {
		void *h = PD_START(&pd, NCCL_PROXY_STEP, .parent = op, .step = i);

		pd_state(&pd, h, NCCL_STEP_SEND_WAIT, &(uint64_t){ UINT64_C(3000000000) });
		pd_stop(&pd, h);
	}
	ck_assert_uint_eq(((const struct nci_ev_proxy_op *)pd_slot(&pd, op))->steps_done, 1000);
	pd_stop(&pd, op);
	pd_read(&pd);
	ck_assert_uint_eq(op_record(0)->bytes, UINT64_C(3000000000000));
}

TEST(steps_outlive_their_operation_and_its_slot)
{
	void *op = PD_START(&pd, NCCL_PROXY_OP), *step;

	pd_stop(&pd, op);
	ck_assert_ptr_nonnull(PD_START(&pd, NCCL_COLL));	/* has the slot now */
	step = PD_START(&pd, NCCL_PROXY_STEP, .parent = op, .step = 2);
	pd_stop(&pd, step);
	pd_read(&pd);
	ck_assert_uint_eq(step_record(0)->parent, (uint64_t)op);
	ck_assert_uint_eq(step_record(0)->comm, 0);
}

/* The event began when the counter did: NCCL must have forgotten it. */
static void grow_old(void *handle)
{
	const struct nci_lane *line = &pd.lane[0];
	uint64_t at = line->offset + (uint64_t)line->lines * NCI_LINE_BYTES +
		      nci_token_slot((uint64_t)handle) * NCI_SLOT_BYTES +
		      offsetof(struct nci_record, start);
	uint64_t start = 1;
	int fd = open(pd.path, O_RDWR);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, &start, sizeof(start), (off_t)at), sizeof(start));
	close(fd);
}

TEST(note_of_a_pushed_out_step_does_not_close_the_one_in_its_slot)
{
	void *op[2] = { PD_START(&pd, NCCL_PROXY_OP), PD_START(&pd, NCCL_PROXY_OP) };
	void *lost, *step;

	pd_state(&pd, op[0], NCCL_OP_IN_PROGRESS, NULL);
	pd_state(&pd, op[1], NCCL_OP_IN_PROGRESS, NULL);
	lost = PD_START(&pd, NCCL_PROXY_STEP, .parent = op[0], .step = 0);
	for (int i = 3; i < SHMRING_SLOTS; i++)
		ck_assert_ptr_nonnull(PD_START(&pd, NCCL_COLL));
	pd_read(&pd);
	grow_old(lost);
	step = PD_START(&pd, NCCL_PROXY_STEP, .parent = op[1], .step = 8);
	ck_assert_uint_eq(nci_token_slot((uint64_t)step), nci_token_slot((uint64_t)lost));
	PD_START(&pd, NCCL_PROXY_STEP, .parent = op[0], .step = 16);
	ck_assert_ptr_nonnull(pd_slot(&pd, step));
	ck_assert_uint_eq(pd.records, 0);
}

TEST(step_has_the_communicator_of_its_operation)
{
	void *other = pd_init_named(&pd, 99, "other", NULL);
	void *op = PD_START(&pd, NCCL_PROXY_OP, .context = other);

	pd_stop(&pd, PD_START(&pd, NCCL_PROXY_STEP, .parent = op, .step = 1));
	pd_read(&pd);
	ck_assert_uint_eq(step_record(0)->comm, 1);
}

int main(void)
{
	return fx_run(setup, NULL);
}
