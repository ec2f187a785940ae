/* SPDX-License-Identifier: Apache-2.0 */
/* The counter that stamps events, on the processor that this was built for. */
#include "shmring/clock.h"

#include "tests/fixture.h"

#if defined(__x86_64__)
#define OWN	"tsc"
#define FOREIGN	"arch_sys_counter"
#define KIND	NCI_CLOCK_TSC
#elif defined(__aarch64__)
#define OWN	"arch_sys_counter"
#define FOREIGN	"tsc"
#define KIND	NCI_CLOCK_CNTVCT
#endif

TEST(counter_of_this_processor_is_used_where_the_kernel_trusts_it)
{
	ck_assert_uint_eq(clock_kind(OWN), KIND);
	ck_assert_uint_eq(clock_kind(FOREIGN), NCI_CLOCK_MONOTONIC);
	ck_assert_uint_eq(clock_kind("hpet"), NCI_CLOCK_MONOTONIC);
	ck_assert_uint_eq(clock_kind(""), NCI_CLOCK_MONOTONIC);
}

/* It never goes back on one thread, and the two ends of a while are apart as it was long. */
TEST(counter_advances_with_time)
{
	struct nci_anchor first, last;
	uint64_t before, now, ns;
	double ticks_per_ns;

	clock_anchor(KIND, &first);
	before = first.ticks;
	do {
		now = clock_ticks(KIND);
		ck_assert_uint_ge(now, before);
		before = now;
		clock_anchor(KIND, &last);
		ns = last.mono_ns - first.mono_ns;
	} while (ns < 20000000);
	ck_assert_uint_ge(last.real_ns, UINT64_C(1500000000000000000));
	ticks_per_ns = (double)(last.ticks - first.ticks) / (double)ns;
	ck_assert_msg(ticks_per_ns > 0.0005 && ticks_per_ns < 20, "%f ticks per ns", ticks_per_ns);
}

TEST(a_kind_that_is_not_known_reads_the_kernels_clock)
{
	uint64_t before = clock_ns(CLOCK_MONOTONIC), ticks = clock_ticks(99);

	ck_assert_uint_ge(ticks, before);
	ck_assert_uint_le(ticks, clock_ns(CLOCK_MONOTONIC));
}

int main(void)
{
	return fx_run(NULL, NULL);
}
