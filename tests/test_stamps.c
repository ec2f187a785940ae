/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/time/stamps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture.h"

#define US	UINT64_C(1000)
#define MS	UINT64_C(1000000)
#define EPOCH	UINT64_C(1770000000000000000)	/* what the GPU's clock reads at host time 0 */

static struct stamps s;
static struct gpuclock *clock;
static uint64_t host;		/* the next kernel starts then, by the host's clock */
static uint64_t group;

static void setup(void)
{
	memset(&s, 0, sizeof(s));
	ck_assert_int_eq(gpuclock_new(&clock), 0);
	host = 5000000 * US;
	group = 100;
}

static void teardown(void)
{
	gpuclock_free(clock);
}

/* A collective of one channel that runs for 40 us, 10 us after its launch. */
static struct stamps_told kernel(uint64_t start)
{
	return (struct stamps_told){
		.sight = {
			.gpu_start_ns = EPOCH + start, .gpu_stop_ns = EPOCH + start + 40 * US,
			.start_ns = start + 2 * US, .stop_ns = start + 42 * US,
			.launch_ns = start - 10 * US,
		},
		.group = ++group,
	};
}

static void told_read(struct stamps *of, struct stamps_told *told)
{
	told->pair.start = told->sight.gpu_start_ns;
	told->pair.stop = told->sight.gpu_stop_ns;
	stamps_read(of, &told->pair, told->is_receive, told->group, told->nth);
}

static enum stamp_fault tell(struct stamps_told *told)
{
	told->nth = stamps_post(&s, told->sight.launch_ns, told->is_p2p, 1, told->group);
	told_read(&s, told);
	return stamps_judge(&s, clock, told);
}

/* The next one, 100 us after the last, told as it was. */
static enum stamp_fault tell_next(void)
{
	struct stamps_told told = kernel(host);

	host += 100 * US;
	return tell(&told);
}

/* The next one, told the stamps of one before it that nobody was told of. */
static enum stamp_fault tell_late(void)
{
	struct stamps_told told = kernel(host), before = kernel(host - 50 * US);

	host += 100 * US;
	told.sight.gpu_start_ns = before.sight.gpu_start_ns;
	told.sight.gpu_stop_ns = before.sight.gpu_stop_ns;
	return tell(&told);
}

/* How many more are refused until one is good. */
static int refused_until_good(void)
{
	int n = 0;

	while (tell_next() != STAMP_GOOD)
		ck_assert_int_le(++n, 1000);
	return n;
}

TEST(true_stamps_are_good)
{
	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(tell_next(), STAMP_GOOD);
}

TEST(zero_and_backwards_are_refused_and_their_channel_until_it_is_sane)
{
	struct stamps_told told = kernel(host);

	tell_next();
	told.sight.gpu_start_ns = 0;
	ck_assert_int_eq(tell(&told), STAMP_ZERO);
	ck_assert_int_eq(refused_until_good(), STAMPS_SANE);
	told = kernel(host);
	told.sight.gpu_stop_ns = told.sight.gpu_start_ns - 1;
	ck_assert_int_eq(tell(&told), STAMP_BACKWARDS);
	ck_assert_int_eq(refused_until_good(), STAMPS_SANE);
	told = kernel(host - 500 * US);
	ck_assert_int_eq(tell(&told), STAMP_BACKWARDS);
	ck_assert_int_eq(refused_until_good(), STAMPS_SANE);
}

TEST(stamps_are_true_of_one_kernel_only)
{
	struct stamps_told first = kernel(host), again;

	first.sight.gpu_stop_ns = first.sight.gpu_start_ns + 500;
	ck_assert_int_eq(tell(&first), STAMP_GOOD);
	again = first;
	again.group = ++group;
	ck_assert_int_eq(tell(&again), STAMP_REPEATED);
}

TEST(kernels_of_one_communicator_do_not_run_at_once)
{
	struct stamps_told first = kernel(host), second = kernel(host + 20 * US);

	ck_assert_int_eq(tell(&first), STAMP_GOOD);
	ck_assert(!stamps_doubtful(&s, first.group));
	second.pair.channel = 1;
	ck_assert_int_eq(tell(&second), STAMP_REPEATED);
	ck_assert(stamps_doubtful(&s, first.group));	/* which one was lied about? */
}

/* The channels of what it was launched with. */
static enum stamp_fault tell_next_channel(bool alone, uint64_t later_ns)
{
	struct stamps_told first = kernel(host), second;

	first.alone = alone;
	second = first;
	second.pair.channel = 1;
	second.sight.gpu_start_ns += later_ns;
	second.sight.gpu_stop_ns += later_ns;
	host += 200 * US;
	ck_assert_int_eq(tell(&first), STAMP_GOOD);
	return tell(&second);
}

TEST(channels_of_one_collective_run_at_once)
{
	ck_assert_int_eq(tell_next_channel(true, US), STAMP_GOOD);
	ck_assert_int_eq(tell_next_channel(true, 80 * US), STAMP_REPEATED);
}

TEST(collectives_of_one_launch_may_run_one_after_another)
{
	ck_assert_int_eq(tell_next_channel(false, 80 * US), STAMP_GOOD);
}

TEST(what_ran_before_its_launch_was_another_kernel)
{
	for (int i = 0; i < 100; i++)
		tell_next();
	ck_assert_int_eq(tell_late(), STAMP_DRIFTED);
	ck_assert_int_eq(refused_until_good(), STAMPS_SANE);	/* each of them is a proof, too */
}

TEST(channel_whose_counters_have_drifted_is_never_believed)
{
	for (int i = 0; i < 100; i++)
		tell_next();
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(tell_late(), STAMP_DRIFTED);
}

/* Returns the first one's number. */
static uint64_t post(uint64_t n)
{
	uint64_t first = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t nth = stamps_post(&s, host - 200 * US, false, 1, group + 1 + i);

		first = i ? first : nth;
	}
	return first / 64;
}

/* So many operations are posted at once, the first of them the next one to run. */
static uint64_t post_ahead(uint64_t n)
{
	for (int i = 0; i < 100; i++)	/* the clock is known by then */
		tell_next();
	return post(n);
}

/* One of those, told as the one that starts and the one that stops so much later. */
static struct stamps_told read_ahead(uint64_t first, uint64_t i, uint64_t start, uint64_t stop)
{
	struct stamps_told told = kernel(host + start * 100 * US);

	told.sight.gpu_stop_ns = kernel(host + stop * 100 * US).sight.gpu_stop_ns;
	told.sight.start_ns = told.sight.stop_ns = 0;
	told.sight.launch_ns = host - 200 * US;
	told.group = 100000 + i;
	told.nth = (first + i) * 64;
	told_read(&s, &told);
	return told;
}

TEST(who_is_not_far_ahead_need_not_wait)
{
	struct stamps_told told = kernel(host);

	told.sight.gpu_stop_ns += 200 * US;
	told.sight.stop_ns += 200 * US;
	told.nth = stamps_post(&s, told.sight.launch_ns, false, 1, told.group);
	told_read(&s, &told);
	ck_assert(!stamps_settle(&s, clock, &told, false));	/* what was posted until then? */
	stamps_post(&s, told.sight.stop_ns + 1, false, 1, ++group);
	ck_assert(stamps_settle(&s, clock, &told, false));
}

TEST(later_works_stamps_are_found_out_when_who_was_late_catches_up)
{
	struct stamps_told late[8], own;
	uint64_t first;

	first = post_ahead(200);
	late[0] = read_ahead(first, 0, 0, 64);	/* it was away between the two */
	for (uint64_t i = 1; i < 8; i++)
		late[i] = read_ahead(first, i, i + 64, i + 64);
	for (int i = 0; i < 8; i++)
		ck_assert(!stamps_settle(&s, clock, &late[i], true));
	own = read_ahead(first, 8, 8, 8);
	ck_assert_int_eq(stamps_judge(&s, clock, &own), STAMP_BACKWARDS);
	for (int i = 0; i < 8; i++) {
		ck_assert(stamps_settle(&s, clock, &late[i], true));
		ck_assert_int_eq(stamps_judge(&s, clock, &late[i]), STAMP_OVERRUN);
	}
}

TEST(who_stays_late_for_more_than_64_works_is_found_out_all_the_same)
{
	struct stamps_told late[100], own;
	uint64_t first = post_ahead(300);

	for (uint64_t i = 0; i < 100; i++)
		late[i] = read_ahead(first, i, i + 64, i + 64);
	ck_assert(!stamps_settle(&s, clock, &late[0], true));
	own = read_ahead(first, 100, 100, 100);
	ck_assert_int_eq(stamps_judge(&s, clock, &own), STAMP_BACKWARDS);
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(stamps_judge(&s, clock, &late[i]), STAMP_OVERRUN);
}

/* What was told in order before one of which it is known that it is its own is so too. */
TEST(hosts_that_are_far_ahead_wait_for_one_that_is_surely_its_own)
{
	struct stamps_told told[200];
	uint64_t first = post_ahead(200);

	for (uint64_t i = 0; i < 199; i++) {
		told[i] = read_ahead(first, i, i, i);
		ck_assert(!stamps_settle(&s, clock, &told[0], true));
	}
	told[199] = read_ahead(first, 199, 199, 199);
	/* nothing was posted after it that it could be told of */
	ck_assert(stamps_settle(&s, clock, &told[199], true));
	for (int i = 0; i < 200; i++)
		ck_assert_int_eq(stamps_judge(&s, clock, &told[i]), STAMP_GOOD);
}

TEST(what_may_be_a_later_works_is_not_believed)
{
	uint64_t first = post_ahead(200);
	struct stamps_told told = read_ahead(first, 0, 0, 0);

	ck_assert_int_eq(stamps_judge(&s, clock, &told), STAMP_DISTRUSTED);
	read_ahead(first, 1, 1, 1);
	ck_assert_int_eq(stamps_judge(&s, clock, &told), STAMP_DISTRUSTED);
}

/* One that runs for 70 us, seen to begin and end so much after it did. */
static enum stamp_fault judge_seen(uint64_t first, uint64_t i, uint64_t begin_late,
				   uint64_t end_late)
{
	struct stamps_told told = read_ahead(first, i, i, i);

	told.sight.gpu_stop_ns += 30 * US;
	told.sight.start_ns = host + i * 100 * US + begin_late;
	told.sight.stop_ns = host + i * 100 * US + 70 * US + end_late;
	read_ahead(first, i + 1, i + 1, i + 1);
	return stamps_judge(&s, clock, &told);
}

TEST(who_saw_a_kernel_begin_and_end_promptly_was_not_late)
{
	uint64_t first = post_ahead(200);

	ck_assert_int_eq(judge_seen(first, 0, 2 * US, 2 * US), STAMP_GOOD);
	ck_assert_int_eq(judge_seen(first, 2, 70 * US, 2 * US), STAMP_DISTRUSTED);
	ck_assert_int_eq(judge_seen(first, 4, 900 * US, 900 * US), STAMP_DISTRUSTED);
	ck_assert_int_eq(judge_seen(first, 6, 2 * US, 2 * US), STAMP_GOOD);
}

/* It would be as prompt as itself. */
TEST(nobody_is_prompt_by_a_clock_that_few_have_told)
{
	uint64_t first = post(200);

	for (uint64_t i = 0; i < 8; i += 2)
		ck_assert_int_eq(judge_seen(first, i, 900 * US, 900 * US), STAMP_DISTRUSTED);
	first = post_ahead(200);
	ck_assert_int_eq(judge_seen(first, 0, 2 * US, 2 * US), STAMP_GOOD);
}

TEST(replay_makes_all_that_follows_doubtful_until_it_did_no_harm)
{
	struct stamps_told before;

	for (int i = 0; i < 100; i++)
		tell_next();
	before = kernel(host);
	before.nth = stamps_post(&s, before.sight.launch_ns, false, 1, before.group);
	stamps_suspect(&s);
	told_read(&s, &before);
	ck_assert_int_eq(stamps_judge(&s, clock, &before), STAMP_GOOD);	/* posted before it */
	host += 100 * US;
	/* the first finds nothing told since that it could be a proof against */
	ck_assert_int_eq(refused_until_good(), STAMPS_PROOFS + 1);
	stamps_suspect(&s);	/* it did no harm */
	ck_assert_int_eq(tell_next(), STAMP_GOOD);
}

TEST(lost_records_may_hide_that_later_works_were_posted)
{
	struct stamps_told told;

	for (int i = 0; i < 100; i++)
		tell_next();
	told = kernel(host);
	told.nth = stamps_post(&s, told.sight.launch_ns, false, 1, told.group);
	stamps_gap(&s);
	told.sight = kernel(host + 6400 * US).sight;
	told.sight.launch_ns = host - 10 * US;
	told_read(&s, &told);
	ck_assert_int_eq(stamps_judge(&s, clock, &told), STAMP_DISTRUSTED);
}

#define CHANNELS	6
#define BURST		100	/* kernels posted, and then told, before one is judged */

/* One communicator's stamps and its GPU's clock, of which there are two that are told the same. */
struct twin {
	struct stamps s;
	struct gpuclock *clock;
};

static void sight_shift(struct gpuclock_sight *t, int64_t ns)
{
	t->gpu_start_ns += (uint64_t)ns;
	t->gpu_stop_ns += (uint64_t)ns;
}

/* What one channel tells is not true, or not alike. */
static void make_trouble(struct gpuclock_sight *t, uint64_t trouble)
{
	if (trouble == 0)
		t->gpu_stop_ns = 0;
	else if (trouble == 1)
		sight_shift(t, fx_random() % 2 ? -300 * (int64_t)US : -(int64_t)MS); /* earlier's */
	else if (trouble == 2)
		sight_shift(t, fx_random() % 2 ? 300 * US : MS);	/* a later kernel's */
	else if (trouble == 3)
		t->gpu_stop_ns += 30 * US, t->stop_ns += 30 * US;
	else if (trouble == 4)
		t->stop_ns = 0;
	if (trouble != 8)
		return;
	sight_shift(t, 90 * US);		/* it ran behind the others */
	t->start_ns += 90 * US;
	t->stop_ns += 90 * US;
}

/* All channels of a kernel that was launched at such a time. */
static void make_channels(struct stamps_told told[CHANNELS], uint64_t launch_ns)
{
	struct stamps_told common = kernel(host);
	uint64_t trouble = fx_random() % 1500, at = fx_random() % CHANNELS;
	uint64_t runs = fx_random() % 4 ? 40 * US : 800 * US;

	common.alone = fx_random() % 2;
	if (!common.alone && fx_random() % 2) {		/* another operation of the same launch */
		common.group = --group;
		common.pair.channel = CHANNELS;
	}
	common.sight.launch_ns = launch_ns;
	for (uint32_t i = 0; i < CHANNELS; i++) {
		struct gpuclock_sight *t = &told[i].sight;

		told[i] = common;
		told[i].pair.channel += i;
		t->gpu_stop_ns = t->gpu_start_ns + runs + fx_random() % (8 * US);
		t->stop_ns = t->start_ns + runs + 10 * US + fx_random() % (30 * US);
		t->gpu_start_ns += fx_random() % (8 * US);
		t->start_ns += 10 * US + fx_random() % (30 * US);
		if (i == at)
			make_trouble(t, trouble);
		if (trouble == 5)		/* of all */
			sight_shift(t, -500 * (int64_t)US);
		else if (trouble == 6)
			sight_shift(t, 500 * US);
	}
	host += runs + 200 * US;
	if (trouble == 7 || trouble == 9)		/* the next one begins too soon */
		host -= 220 * US;
}

static void twin_read(struct twin *t, struct stamps_told told[CHANNELS], uint64_t nth)
{
	for (int i = 0; i < CHANNELS; i++) {
		told[i].nth = nth;
		told_read(&t->s, &told[i]);
	}
}

/* Returns whether the channels were judged at once. */
static bool twin_judge(struct twin *t, struct stamps_told told[CHANNELS], bool at_once,
		       enum stamp_fault fault[CHANNELS])
{
	struct stamps_whole whole = STAMPS_NONE;

	for (int i = 0; i < CHANNELS; i++) {
		stamps_settle(&t->s, t->clock, &told[i], true);
		stamps_whole_add(&whole, &t->s, &told[i].pair, told[i].nth,
				 told[i].sight.start_ns, told[i].sight.stop_ns);
		whole.strange |= !stamps_are_sure(&t->s, &told[i].pair);
		fault[i] = STAMP_GOOD;
	}
	at_once = at_once && stamps_judge_whole(&t->s, t->clock, &whole, told);
	for (int i = 0; i < CHANNELS && !at_once; i++)
		fault[i] = stamps_judge(&t->s, t->clock, &told[i]);
	return at_once;
}

/* Returns how many kernels' channels were judged at once. */
static int twin_tell(struct twin *t, struct stamps_told told[][CHANNELS], int n, bool at_once,
		     enum stamp_fault fault[][CHANNELS])
{
	uint64_t nth[BURST];
	int all = 0;

	for (int k = 0; k < n; k++)
		nth[k] = stamps_post(&t->s, told[k][0].sight.launch_ns, false, 1, told[k][0].group);
	for (int k = 0; k < n; k++)
		twin_read(t, told[k], nth[k]);
	for (int k = 0; k < n; k++)
		all += twin_judge(t, told[k], at_once, fault[k]);
	return all;
}

/* Both clocks know as much of what was told last. */
static void twins_know_alike(const struct twin *a, const struct twin *b, uint64_t gpu_ns)
{
	uint64_t lo[2] = { 0 }, hi[2] = { 0 };

	ck_assert_int_eq(gpuclock_map(a->clock, gpu_ns, &lo[0], &hi[0]),
			 gpuclock_map(b->clock, gpu_ns, &lo[1], &hi[1]));
	ck_assert_int_le(llabs((int64_t)(lo[0] - lo[1])), US / 2);
	ck_assert_int_le(llabs((int64_t)(hi[0] - hi[1])), US / 2);
}

TEST(channels_that_are_judged_at_once_are_judged_as_by_themselves)
{
	static enum stamp_fault each[BURST][CHANNELS], all[BURST][CHANNELS];
	static struct stamps_told told[BURST][CHANNELS], same[BURST][CHANNELS];
	static struct twin a, b;
	int kernels = 0, at_once = 0, bad = 0;

	fx_seed_anew();
	ck_assert_int_eq(gpuclock_new(&a.clock), 0);
	ck_assert_int_eq(gpuclock_new(&b.clock), 0);
	while (kernels < 30000) {
		int n = kernels < BURST || fx_random() % 50 ? 1 : BURST;
		uint64_t launch_ns = host - 10 * US;

		for (int k = 0; k < n; k++)
			make_channels(told[k], launch_ns);
		memcpy(same, told, sizeof(same));
		twin_tell(&a, told, n, false, each);
		at_once += twin_tell(&b, same, n, true, all);
		for (int i = 0; i < n * CHANNELS; i++) {
			enum stamp_fault fault = all[i / CHANNELS][i % CHANNELS];

			ck_assert_int_eq(fault, each[i / CHANNELS][i % CHANNELS]);
			bad += fault != STAMP_GOOD;
		}
		if (kernels / 1000 < (kernels + n) / 1000)
			twins_know_alike(&a, &b, same[n - 1][0].sight.gpu_stop_ns);
		kernels += n;
	}
	printf("# %d of %d at once, %d stamps refused\n", at_once, kernels, bad);
	ck_assert_int_gt(at_once, 2000);
	ck_assert_int_gt(bad, 100);
	gpuclock_free(b.clock);
	gpuclock_free(a.clock);
}

static bool told_is_strange(const struct stamps_told *told)
{
	struct stamps_whole whole = STAMPS_NONE;

	stamps_whole_add(&whole, &s, &told->pair, told->nth, told->sight.start_ns,
			 told->sight.stop_ns);
	return whole.strange;
}

TEST_LOOP(channel_that_lied_or_may_have_is_looked_at_by_itself, 0, 3)
{
	struct stamps_told told = kernel(host), other = kernel(host - 300 * US);

	told_read(&s, &told);
	ck_assert(!told_is_strange(&told));
	if (_i == 0) {
		stamps_suspect(&s);
	} else if (_i == 1) {			/* told in order, and then an earlier kernel's */
		told_read(&s, &other);
	} else {
		other.sight.gpu_stop_ns = 0;
		ck_assert_int_eq(tell(&other), STAMP_ZERO);
	}
	ck_assert(told_is_strange(&told));
}

/* The kernels that are remembered, as a walk over all of them finds those that ran at once. */
struct walk {
	struct stamps_kernel kernel[STAMPS_KERNELS];
	uint32_t n;
};

static struct stamps_kernel *walk_kernel(struct walk *w, uint64_t launch)
{
	struct stamps_kernel *k;

	for (uint32_t i = 0; i < STAMPS_KERNELS; i++)
		if (w->kernel[i].group == launch)
			return &w->kernel[i];
	k = &w->kernel[w->n++ % STAMPS_KERNELS];
	*k = (struct stamps_kernel){ .group = launch, .start = UINT64_MAX };
	return k;
}

static enum stamp_fault walk_judge(struct walk *w, uint64_t launch, uint64_t start, uint64_t stop)
{
	struct stamps_kernel *own = walk_kernel(w, launch);

	for (uint32_t i = 0; i < STAMPS_KERNELS; i++) {
		struct stamps_kernel *k = &w->kernel[i];

		if (k != own && k->group && start + 1024 < k->stop && k->start + 1024 < stop)
			k->doubtful = own->doubtful = true;
	}
	if (own->doubtful)
		return STAMP_REPEATED;
	own->start = start < own->start ? start : own->start;
	own->stop = stop > own->stop ? stop : own->stop;
	return STAMP_GOOD;
}

TEST_LOOP(kernels_that_ran_at_once_are_found_as_by_a_walk_over_all, 0, 8)
{
	struct walk w = { .n = 0 };
	uint64_t at = 1000 * US;
	int doubtful = 0;

	fx_seed((uint64_t)_i);
	for (uint64_t n = 1000; n < 11000; n++) {
		/* a new one, one told before, or a new one whose token is less than theirs */
		uint64_t launch = fx_random() % 4 ? n : fx_random() % 4 ? n - fx_random() % 24 :
				  fx_random() % 1000 + 1;
		uint64_t start = at + fx_random() % 4 * US, stop = start + fx_random() % 8 * US;
		struct stamps_told told = {
			.group = launch, .sight = { .gpu_start_ns = start, .gpu_stop_ns = stop },
		};
		enum stamp_fault fault = walk_judge(&w, launch, start, stop);

		ck_assert_int_eq(stamps_judge(&s, NULL, &told), fault);
		doubtful += fault != STAMP_GOOD;
		for (uint32_t i = 0; i < STAMPS_KERNELS && w.kernel[i].group; i++)
			ck_assert_int_eq(stamps_doubtful(&s, w.kernel[i].group),
					 w.kernel[i].doubtful);
		s.channel[0] = (struct stamps_channel){ .newest_stop = 0 };	/* trusted again */
		at += fx_random() % 32 ? fx_random() % 12 * US : 0;
		at -= fx_random() % 64 ? 0 : 100 * US;
	}
	ck_assert_int_gt(doubtful, 100);
	ck_assert_int_lt(doubtful, 9000);
}

int main(void)
{
	return fx_run(setup, teardown);
}
