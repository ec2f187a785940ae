/* SPDX-License-Identifier: Apache-2.0 */
/* How soon the daemon looks for what is wrong again, by what a look costs. */
#include "ncclinspd/daemon.h"
#include "tests/fx_recon.h"

#define SECOND	UINT64_C(1000000000)

static struct fx_recon fx;
static struct daemon d;
static uint64_t now_ns, token;

static void setup(void)
{
	fx_recon_open(&fx, 6, FX_MASK_OPS);
	d = (struct daemon){ .reconstruct = fx.rc };
	now_ns = 1000 * SECOND;
	token = 0;
}

static void teardown(void)
{
	fx_recon_close(&fx);
}

/* Milliseconds to the next look, after one that took so much CPU. */
static uint64_t wait_after(double cost_ms)
{
	return (flow_next_look(&d, now_ns, (uint64_t)(cost_ms * 1e6)) - now_ns) / FX_MS;
}

static void job_records(void)
{
	union fx_record coll;

	token++;
	coll = fx_coll(token, 0, token, 2, 100 * token);
	fx_give(&fx, &fx.a, &coll);
}

TEST(a_look_is_a_hundredth_of_a_core_while_jobs_record)
{
	job_records();
	ck_assert_uint_eq(wait_after(15), 1500);
	for (int i = 0; i < 60; i++) {
		now_ns += SECOND;
		job_records();
		ck_assert_uint_eq(wait_after(15), 1500);
	}
}

TEST(after_ten_seconds_without_a_record_it_is_a_1000th)
{
	job_records();
	wait_after(3);
	now_ns += 10 * SECOND - 1;
	ck_assert_uint_eq(wait_after(3), 1000);
	now_ns++;
	ck_assert_uint_eq(wait_after(3), 3000);
	job_records();
	ck_assert_uint_eq(wait_after(3), 1000);
}

TEST(it_comes_once_a_second_at_most_and_every_five_seconds_at_least)
{
	job_records();
	ck_assert_uint_eq(wait_after(0), 1000);
	ck_assert_uint_eq(wait_after(9.9), 1000);
	ck_assert_uint_eq(wait_after(51), 5000);
	ck_assert_uint_eq(wait_after(10000), 5000);
}

int main(void)
{
	return fx_run(setup, teardown);
}
