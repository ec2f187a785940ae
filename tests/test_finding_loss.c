/* SPDX-License-Identifier: Apache-2.0 */
/* Records that are lost, as /v1/findings tells of them. */
#include "tests/fixture_serve.h"

static struct process *first, *second;

/* Two processes that came a minute before anybody looked. */
static void setup(void)
{
	fx_serve_open(NULL);
	first = fx_process(10, 0, 0);
	second = fx_process(11, 0, 1);
	first->records = second->records = 1000000;
	fx.now_ns += 60 * FX_SECOND;
	diagnose_look(fx.diagnose, fx.now_ns);
}

static void teardown(void)
{
	fx_serve_close();
}

/* So many seconds, in each of which `records` are read and `lost` are not. */
static void work(int seconds, uint64_t records, uint64_t lost, uint64_t *counter)
{
	while (seconds--) {
		fx.now_ns += FX_SECOND;
		first->records += records;
		second->records += records;
		if (counter)
			*counter += lost;
		diagnose_look(fx.diagnose, fx.now_ns);
	}
}

static json_t *findings(size_t n)
{
	json_t *a = fx_get("/v1/findings?active=true", 200);

	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), n);
	return a;
}

static void expect(size_t n)
{
	json_decref(findings(n));
}

TEST(a_process_that_loses_records_is_named_with_the_cause_and_what_to_do)
{
	json_t *a;
	const char *text;

	work(10, 9900, 100, &second->loss.overrun);
	a = findings(1);
	text = fx_text(a, "findings.0.text");
	ck_assert_str_eq(fx_text(a, "findings.0.kind"), "loss");
	ck_assert_str_eq(fx_text(a, "findings.0.severity"), "warning");
	ck_assert(json_is_null(fx_at(a, "findings.0.verdict")));
	ck_assert_str_eq(fx_text(a, "findings.0.comm_name"), "dp");
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.pid"), 11);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.window_ns"), 10 * FX_SECOND);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.records"), 99000);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.lost.overrun"), 1000);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.lost.pool"), 0);
	ck_assert_double_eq_tol(json_number_value(fx_at(a, "findings.0.evidence.share")), 0.01,
				1e-6);
	ck_assert_ptr_eq(strstr(text, "rank 1 of dp (pid 11, train"), text);
	ck_assert_ptr_nonnull(strstr(text, ", node7) loses records, 1 % in 10s: 1000 overwritten "
				     "before they were read. Its counts are too low by"));
	ck_assert_ptr_nonnull(strstr(text, "see what keeps the CPU from ncclinspd"));
	json_decref(a);
}

TEST(what_was_lost_before_anybody_looked_is_no_news)
{
	work(20, 1000, 0, NULL);	/* the fixture's 3 and 4 */
	expect(0);
	second->loss.pool += 99;	/* too few to matter */
	work(20, 1000, 0, NULL);
	expect(0);
}

TEST(less_than_one_in_a_thousand_is_not_told)
{
	work(60, 1000000, 990, &first->loss.overrun);
	expect(0);
	work(60, 1000000, 1100, &first->loss.overrun);
	expect(1);
}

TEST(it_goes_on_above_half_of_that_and_ends_by_itself)
{
	work(60, 1000000, 1100, &first->loss.overrun);
	expect(1);
	work(120, 1000000, 600, &first->loss.overrun);
	expect(1);
	work(60, 1000000, 400, &first->loss.overrun);
	expect(0);
	work(60, 1000000, 1100, &first->loss.overrun);
	expect(1);
	work(40, 1000000, 0, NULL);
	expect(0);
}

static const struct {
	size_t offset;
	uint64_t lost;
	const char *says;
} kinds[] = {
	{ offsetof(struct loss, pool), 50, "had no free slot" },
	{ offsetof(struct loss, lane), 50, "--shm-size" },
	{ offsetof(struct loss, rejected), 50, "compare their versions" },
	{ offsetof(struct loss, unknown), 50, "install and start the new ncclinspd" },
	{ offsetof(struct loss, evicted), 50, "given up before their end was seen" },
	{ offsetof(struct loss, string), 1, "New names are not shown" },
	{ offsetof(struct loss, comm), 1, "Nothing is shown of new communicators" },
};

TEST_LOOP(each_cause_is_told_by_its_own_words, 0, (int)FX_COUNT(kinds))
{
	uint64_t *counter = (uint64_t *)((char *)&first->loss + kinds[_i].offset);
	json_t *a;

	work(3, 1000, kinds[_i].lost, counter);
	a = findings(1);
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), kinds[_i].says));
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 0);
	json_decref(a);
	work(40, 1000, 0, NULL);
	expect(0);
}

TEST(what_was_overwritten_before_the_daemon_came_is_told_and_no_warning)
{
	struct process *p = fx_process(12, 0, 2);
	json_t *a;

	p->records = 0;
	p->loss = (struct loss){ .before = 50000, .string = 7, .pool = 9999 };
	work(2, 1000, 0, NULL);
	a = findings(1);
	ck_assert_str_eq(fx_text(a, "findings.0.severity"), "info");
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.lost.before"), 50000);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.lost.pool"), 0);
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"),
				     "ran before this daemon started"));
	json_decref(a);
	work(40, 1000, 0, NULL);
	expect(0);
}

TEST(of_a_new_process_every_loss_counts)
{
	struct process *p = fx_process(12, 0, 2);

	p->clock.mono_ns = fx.now_ns;
	p->first_ticks = p->clock.ticks;	/* it began just now */
	p->records = 1000;
	p->loss = (struct loss){ .pool = 200 };
	work(1, 1000, 0, NULL);
	expect(1);
}

TEST(who_is_gone_is_forgotten_and_the_rest_is_not)
{
	fx.processes[0] = second;	/* the first one goes */
	fx.nprocesses = 1;
	diagnose_forgotten(fx.diagnose, first);
	work(10, 1000, 100, &second->loss.overrun);
	expect(1);
	fx.processes[0] = first;
	fx.processes[fx.nprocesses++] = second;
}

int main(void)
{
	return fx_run(setup, teardown);
}
