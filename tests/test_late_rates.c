/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many late ranks are found, and who else: jobs that are drawn, by other numbers each time.
 * Rows go straight to judge/, a clock that is made up runs through many minutes.
 */
#include <math.h>
#include <stdio.h>

#include "judge/late_series.h"
#include "tests/fixture.h"

#define US	UINT64_C(1000)
#define MS	UINT64_C(1000000)
#define SECOND	UINT64_C(1000000000)
#define WINDOW	(60 * SECOND)
#define RUNS	200

static const struct late_usual usual = { .known = true, .transfer_ns = MS, .tail_ns = 50 * US };

/* One drawn job. */
struct job {
	uint32_t n, late, also;	/* ranks; the late one, and another (n: none) */
	double period_ns;
	double jitter;		/* of the period, all ranks, each operation */
	double late_ns;		/* each time ... */
	uint32_t step;		/* operations of an iteration: late in the first; 0: in all */
	double stop_ns;		/* ... or each minute, that rank or (late == n) any */
	uint64_t from_ns, until_ns, end_ns;	/* of lateness; of the job */
};

/* What came of it. */
struct outcome {
	uint64_t found_ns;	/* when the late one first was; 0: never */
	uint64_t since_ns, over_ns;
	bool right, wrong, suspected_wrong;
	bool steady;		/* by the last verdict */
	double share;
};

static double drawn(double from, double to)
{
	return from + (to - from) * (double)(fx_random() % 1000003) / 1000003;
}

/* Of many figures as likely as their logarithm. */
static double drawn_scale(double from, double to)
{
	return exp(drawn(log(from), log(to)));
}

/* Operation number `count`; somebody `stops` before it, or not. */
static void job_step(const struct job *j, struct late_series *s, uint64_t now_ns, uint64_t count,
		     bool stops)
{
	uint32_t stopped = j->late < j->n ? j->late : (uint32_t)fx_random() % j->n;
	double late[LATE_RANKS], last = 0, shares[LATE_RANKS], scratch[2 * LATE_RANKS];
	bool is_late = now_ns >= j->from_ns && now_ns < j->until_ns &&
		       (!j->step || count % j->step == 0);
	struct late_slot *slot = late_series_open(s);
	struct late_part parts[LATE_RANKS] = { 0 };
	struct late_op op;

	for (uint32_t i = 0; i < j->n; i++) {
		late[i] = j->period_ns * j->jitter * drawn(0, 2);
		if (is_late && (i == j->late || i == j->also))
			late[i] += j->late_ns;
		if (is_late && i == stopped && stops)
			late[i] += j->stop_ns;
		last = fmax(last, late[i]);
	}
	for (uint32_t i = 0; i < j->n; i++)
		parts[i] = (struct late_part){ .inside_ns = (uint64_t)(last - late[i]) + MS,
					       .end_error_ns = UNKNOWN_U64 };
	late_measure(parts, j->n, &op);
	late_rate(parts, j->n, (int32_t)j->n, &usual, &op, scratch);
	late_add(&slot->sums, &op, 1);
	if (!op.judged)
		return;
	late_share(parts, j->n, &op, shares, scratch);
	late_add_judged(&slot->sums, &op);
	for (uint32_t i = 0; i < j->n; i++)
		late_add_own(&slot->tally[i], i == op.last, op.most_ns - parts[i].inside_ns,
			     (uint64_t)shares[i]);
}

static void outcome_look(const struct job *j, const struct late_series *s, uint64_t now_ns,
			 struct outcome *o)
{
	for (uint32_t i = 0; i < j->n; i++) {
		const struct late_rank *r = &s->rank[i];

		if (i != j->late && i != j->also) {
			o->wrong |= r->grade == LATE_FOUND;
			o->suspected_wrong |= r->grade == LATE_SUSPECTED;
		}
		if (i != j->late)
			continue;
		if (r->grade == LATE_FOUND)
			o->steady = r->verdict == VERDICT_STEADY;
		if (r->grade == LATE_FOUND && !o->found_ns) {
			o->found_ns = now_ns;
			o->since_ns = r->since_ns;
			o->share = (double)r->tally.blame_ns / (double)r->window.wall_ns;
		}
		if (o->found_ns && !o->over_ns && r->grade != LATE_FOUND)
			o->over_ns = now_ns;
	}
}

static struct outcome job_run(const struct job *j)
{
	static struct late_series s;
	struct outcome o = { 0 };
	uint64_t count = 0;
	double now = 1, turned = SECOND, slot = WINDOW / LATE_WINDOW, stop = 60.0 * SECOND;

	s = (struct late_series){ .n = j->n };
	late_series_begin(&s, (int32_t)j->n, 0);
	while (now < (double)j->end_ns) {
		bool stops = j->stop_ns > 0 && now >= stop;

		job_step(j, &s, (uint64_t)now, count++, stops);
		now += j->period_ns + (stops ? j->stop_ns : 0);
		stop += stops ? drawn(55, 65) * SECOND : 0;
		if (now < turned)
			continue;
		if (now >= slot) {
			late_series_close(&s, WINDOW, (uint64_t)now);
			slot = now + WINDOW / LATE_WINDOW;
		} else {
			late_series_look(&s, WINDOW, (uint64_t)now);
		}
		turned = now + SECOND;
		outcome_look(j, &s, (uint64_t)now, &o);
	}
	o.right = o.found_ns && !o.wrong;
	return o;
}

/* 4 to 16 ranks, 0.3 to 2 s from operation to operation, 0.2 to 6 % apart by chance. */
static struct job job_draw(double share)
{
	struct job j = { .n = 4 + (uint32_t)fx_random() % 13, .jitter = drawn_scale(0.001, 0.03) };

	j.late = (uint32_t)fx_random() % j.n;
	j.also = j.n;
	j.period_ns = drawn_scale(0.3, 2) * SECOND;
	j.late_ns = share * j.period_ns;
	j.from_ns = fx_random() % 2 ? 0 : (uint64_t)(drawn(60, 300) * SECOND);
	j.until_ns = j.from_ns + 4 * WINDOW;
	j.end_ns = j.until_ns + 2 * WINDOW;
	return j;
}

TEST(who_costs_two_percent_is_found_since_when_and_over_in_time)
{
	uint32_t right = 0, onset = 0, over = 0;
	double worst = 0;

	for (int k = 0; k < RUNS; k++) {
		const struct job j = job_draw(0.02);
		const struct outcome o = job_run(&j);
		double apart = fabs((double)o.since_ns - (double)j.from_ns) / SECOND;

		right += o.right;
		onset += o.found_ns && apart <= 10;
		worst = o.found_ns && apart > worst ? apart : worst;
		over += o.over_ns && o.over_ns <= j.until_ns + WINDOW;
	}
	printf("# 2 %%: %u of %u right, onset within 10 s in %u (%.1f s at most), over within a "
	       "minute in %u\n", right, RUNS, onset, worst, over);
	ck_assert_uint_ge(right, RUNS * 95 / 100);
	ck_assert_uint_ge(onset, RUNS * 95 / 100);
	ck_assert_uint_ge(over, RUNS * 95 / 100);
}

/* Of some 2000 jobs of few and uneven operations one has its late rank cost more by chance. */
TEST(who_costs_one_percent_is_hardly_ever_found)
{
	uint32_t found = 0, wrong = 0;

	for (int k = 0; k < RUNS; k++) {
		const struct job j = job_draw(0.01);
		const struct outcome o = job_run(&j);

		found += o.found_ns > 0;
		wrong += o.wrong;
	}
	printf("# 1 %%: %u of %u found, %u others\n", found, RUNS, wrong);
	ck_assert_uint_le(found, RUNS / 100);
	ck_assert_uint_eq(wrong, 0);
}

TEST(two_that_are_late_together_are_both_found)
{
	uint32_t right = 0;

	for (int k = 0; k < RUNS; k++) {
		struct job j = job_draw(0.02);
		struct outcome o;

		j.also = (j.late + 1 + (uint32_t)fx_random() % (j.n - 1)) % j.n;
		o = job_run(&j);
		right += o.right;
	}
	printf("# two of 2 %%: %u of %u right\n", right, RUNS);
	ck_assert_uint_ge(right, RUNS * 95 / 100);
}

/* Of stops that hit any rank, chance gives seven of seven to one of four in one of 4096 jobs. */
TEST(one_stop_a_minute_is_found_and_stops_of_any_rank_hardly_are)
{
	uint32_t right = 0, wrong = 0, steady = 0;
	double took = 0;

	for (int k = 0; k < RUNS / 4; k++) {
		struct job j = job_draw(0);
		struct outcome o;

		j.from_ns = 0;
		j.end_ns = j.until_ns = 12 * WINDOW;
		j.stop_ns = drawn(0.02, 0.1) * WINDOW;
		o = job_run(&j);
		right += o.right;
		steady += o.steady;
		took = fmax(took, (double)o.found_ns);
		j.late = j.n;
		o = job_run(&j);
		wrong += o.wrong;
	}
	printf("# a stop a minute: %u of %u right, after %.0f s at most; of any rank: %u wrong\n",
	       right, RUNS / 4, took / SECOND, wrong);
	ck_assert_uint_ge(right, RUNS / 4 * 95 / 100);
	ck_assert_uint_le(wrong, RUNS / 4 * 16 / 100);	/* 0 to 6 were seen, by the seed */
	ck_assert_uint_eq(steady, 0);
}

/* Gradients go in many buckets: who comes late to each iteration is late in the first. */
TEST(late_in_one_operation_of_each_iteration_is_no_now_and_then)
{
	uint32_t right = 0, steady = 0;

	for (int k = 0; k < RUNS / 10; k++) {
		struct job j = job_draw(0);
		struct outcome o;

		j.step = 4 + (uint32_t)fx_random() % 60;
		j.period_ns = drawn_scale(0.1, 1) * SECOND / j.step;
		j.late_ns = 0.05 * j.period_ns * j.step;
		o = job_run(&j);
		right += o.right;
		steady += o.steady;
	}
	printf("# late in the first of each iteration: %u of %u right, %u steady\n", right,
	       RUNS / 10, steady);
	ck_assert_uint_ge(right, RUNS / 10 * 95 / 100);
	ck_assert_uint_eq(steady, right);
}

TEST(chance_finds_nobody)
{
	uint32_t wrong = 0, suspected = 0;

	for (int k = 0; k < RUNS; k++) {
		struct job j = job_draw(0);
		struct outcome o;

		j.late = j.n;
		j.jitter = drawn_scale(0.001, 0.3);
		o = job_run(&j);
		wrong += o.wrong;
		suspected += o.suspected_wrong;
	}
	printf("# nobody: %u of %u wrong, %u suspected\n", wrong, RUNS, suspected);
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_le(suspected, RUNS / 50);
}

int main(void)
{
	fx_seed_anew();
	return fx_run(NULL, NULL);
}
