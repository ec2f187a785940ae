/* SPDX-License-Identifier: Apache-2.0 */
/* From records to links: which operation they are of, and whose. */
#include "ncclinspd/sums/links.h"

#include "nci/sums.h"
#include "tests/fx_recon.h"

static struct fx_recon fx;
static struct links *links;
static struct links_row rows[4];
static int nrows;

static void setup(void)
{
	ck_assert_int_eq(links_new(&links, NULL, 0), 0);
}

static void teardown(void)
{
	links_free(links);
}

static bool keep(const struct links_row *row, void *arg)
{
	(void)arg;
	ck_assert_int_lt(nrows, FX_COUNT(rows));
	rows[nrows++] = *row;
	return true;
}

static int look(void)
{
	const struct links_query query = { .windows = 1u << LINKS_ALL, .all_users = true };

	nrows = 0;
	return links_visit(links, &query, fx.now, keep, NULL);
}

static void on_moved(const struct transfers *t, uint64_t now_ns, void *arg)
{
	(void)arg;
	links_add(links, t, now_ns);
}

static union fx_record make_step(uint64_t parent, int i, uint64_t start)
{
	union fx_record r = fx_head(NCI_EV_PROXY_STEP, 1, 100 + (uint64_t)i, parent, start,
				    start + 300 + fx_random() % 100);

	r.step.form |= NCI_FORM_SEND;
	r.step.step = i;
	r.step.bytes = 1000 + (uint32_t)i;
	r.step.span[0] = 1;
	r.step.span[1] = 50 + (uint32_t)(fx_random() % 50);
	r.step.span[2] = 150 + (uint32_t)(fx_random() % 50);
	r.step.repeats = 2;
	return r;
}

/* One ProxyOp whose steps come one by one, or as their sums. */
static void give_transfer(bool folded, uint8_t channel)
{
	union fx_record op = fx_proxy(7 + channel, 0x99, 100, 9000), step;
	union fx_record sums = fx_head(NCI_EV_PROXY_SUMS, 2, 50, 7 + channel, 0, 0);
	struct nci_sums_times times;

	sums.sums.cont = NCI_LINE_CONT;
	fx_seed(5);
	for (int i = 0; i < 12; i++) {
		step = make_step(7 + channel, i, 200 + 90 * (uint64_t)i);
		times = nci_sums_enter(&sums.sums, &step.step);
		if (!i) {
			sums.sums.start = step.step.start;
			op.proxy.state_span[0] = nci_span(op.rec.start, times.covered);
		}
		nci_sums_leave(&sums.sums, &step.step, times, step.step.stop);
		if (!folded)
			fx_give(&fx, &fx.a, &step);
	}
	if (folded)
		fx_give(&fx, &fx.a, &sums);
	op.proxy.form |= NCI_FORM_SEND;
	op.proxy.channel = channel;
	op.proxy.comm = 1;
	fx_give(&fx, &fx.a, &op);
}

TEST(steps_one_by_one_amount_to_what_their_sums_say)
{
	fx_recon_open(&fx, 6, FX_MASK_NET);
	reconstruct_tell_moved(fx.rc, on_moved);
	give_transfer(false, 0);
	give_transfer(true, 1);
	ck_assert_int_eq(look(), 2);
	ck_assert_uint_eq(rows[0].sums.timed_steps, 12);
	ck_assert_mem_eq(&rows[0].sums, &rows[1].sums, sizeof(rows[0].sums));
	ck_assert_uint_eq(rows[0].who.comm_id, 0xc1);
	ck_assert_str_eq(rows[0].who.comm_name, "tp");
	fx_recon_close(&fx);
}

static void give_sums(uint64_t op, uint32_t steps)
{
	union fx_record sums = fx_head(NCI_EV_PROXY_SUMS, 2, 50 + op, op, 200, 900);

	sums.sums.cont = NCI_LINE_CONT;
	sums.sums.steps = steps;
	fx_give(&fx, &fx.a, &sums);
}

static void give_op(uint64_t token)
{
	union fx_record op = fx_proxy(token, 0x99, 100, 9000);

	op.proxy.channel = (uint8_t)token;
	fx_give(&fx, &fx.a, &op);
}

TEST(sums_are_of_their_operation_whatever_comes_between)
{
	union fx_record step = make_step(10, 0, 200);

	fx_recon_open(&fx, 6, FX_MASK_NET);
	reconstruct_tell_moved(fx.rc, on_moved);
	give_sums(7, 1);
	give_sums(8, 2);
	give_sums(9, 3);
	fx_give(&fx, &fx.a, &step);
	give_op(9);
	give_op(7);
	give_op(10);
	give_op(8);
	ck_assert_int_eq(look(), 4);
	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(rows[i].sums.timed_steps,
				  rows[i].who.channel == 10 ? 1 : rows[i].who.channel - 6);
	fx_recon_close(&fx);
}

TEST(step_that_did_not_tell_all_is_not_timed)
{
	union fx_record op = fx_proxy(7, 0x99, 100, 9000), step = make_step(7, 0, 200);

	fx_recon_open(&fx, 6, FX_MASK_NET);
	reconstruct_tell_moved(fx.rc, on_moved);
	step.step.span[1] = 0;
	fx_give(&fx, &fx.a, &step);
	step.step.span[1] = step.step.span[2];
	step.step.bytes = NCI_BYTES_UNKNOWN;
	fx_give(&fx, &fx.a, &step);
	step.step.bytes = 10;
	step.step.form |= NCI_FORM_UNSTOPPED;
	fx_give(&fx, &fx.a, &step);
	fx_give(&fx, &fx.a, &op);
	ck_assert_int_eq(look(), 1);
	ck_assert_uint_eq(rows[0].sums.steps, 2);
	ck_assert_uint_eq(rows[0].sums.timed_steps, 0);
	fx_recon_close(&fx);
}

TEST(operations_of_old_releases_tell_whose_link_it_is)
{
	union fx_record coll = fx_coll(0x99, 0, 1, 0, 50), op = fx_proxy(7, 0x99, 100, 9000);

	fx_recon_open(&fx, 3, FX_MASK_PROXY);
	reconstruct_tell_moved(fx.rc, on_moved);
	coll.coll.comm_hash = 0xbeef;
	fx_give(&fx, &fx.a, &op);	/* its operation is not known yet */
	ck_assert_int_eq(look(), 1);
	ck_assert(!rows[0].who.has_comm_id);
	fx_give(&fx, &fx.a, &coll);
	op.rec.token = 8;
	fx_give(&fx, &fx.a, &op);
	ck_assert_int_eq(look(), 1);
	ck_assert_uint_eq(rows[0].sums.ops, 2);
	ck_assert_uint_eq(rows[0].who.comm_id, 0xbeef);
	ck_assert_int_eq(rows[0].who.nranks, UNKNOWN_I32);
	fx_recon_close(&fx);
}

TEST(link_of_a_foreign_operation_is_its_issuers)
{
	union fx_record op = fx_proxy(7, 0x99, 100, 9000);

	fx_recon_open(&fx, 6, FX_MASK_NET);
	reconstruct_tell_moved(fx.rc, on_moved);
	op.proxy.form |= NCI_FORM_FOREIGN | NCI_FORM_SEND;
	op.proxy.comm = NCI_COMM_NONE;
	op.proxy.origin = nci_context(fx.b.p.nonce, 1);
	fx_give(&fx, &fx.a, &op);
	op.rec.token = 8;
	op.proxy.origin = nci_context(0xdead, 1);	/* nobody we know */
	fx_give(&fx, &fx.a, &op);
	ck_assert_int_eq(look(), 1);
	ck_assert_int_eq(rows[0].who.pid, fx.b.p.pid);
	ck_assert_int_eq(rows[0].who.proxy_pid, fx.a.p.pid);
	ck_assert_uint_eq(rows[0].who.comm_id, 0xc1);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->foreign_orphans, 1);
	fx_recon_close(&fx);
}

int main(void)
{
	return fx_run(setup, teardown);
}
