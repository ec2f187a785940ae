/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the callbacks of one collective cost, in instructions: a figure that other work on
 * the machine does not change.  The processor traps after each one (the trap flag), and
 * what lies outside of this program is the plugin, and what it calls.
 *
 * Of two plays the least counts for each callback: now and then one measures itself.  The
 * end of the group looks at clock and control file, which in life it does 40 times a
 * second: here each play takes longer than that.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include "bench/stream.h"
#include "shmring/clock.h"
#include "tests/fixture.h"
#include "tests/plugin_driver.h"

#define PLAYS		2
#define MOST_CALLS	512

#if defined(__x86_64__) && defined(__OPTIMIZE__) && \
	!defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CAN_BE_COUNTED 1
#else
#define CAN_BE_COUNTED 0
#endif

/* Other compilers need more or less: with these, what has doubled is found. */
#if defined(__clang__) || __GNUC__ != 12
#define TOLERATED_PERCENT 100
#else
#define TOLERATED_PERCENT 10
#endif

#if CAN_BE_COUNTED

/*
 * As gcc 12 compiles it with -O2.  Who makes one of them higher has a reason for it; who
 * makes one lower writes that down here, so that it stays.
 */
static const struct {
	const char *level;
	uint32_t calls, instructions;
} costs[] = {
	{ "trace", STREAM_CALLBACKS, 48400 },
	{ "net", 370, 53100 },
	{ "ops", 90, 5100 },
};

extern const char __executable_start, etext;	/* from the linker */

static uint32_t took[MOST_CALLS], least[MOST_CALLS];
static volatile uint32_t calls;

/* A call ends when its first instruction is here again. */
static void on_trap(int signal, siginfo_t *info, void *arg)
{
	const ucontext_t *context = arg;
	uintptr_t pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
	bool is_here = pc >= (uintptr_t)&__executable_start && pc < (uintptr_t)&etext;

	(void)signal;
	(void)info;
	if (calls == MOST_CALLS)
		return;
	if (!is_here)
		took[calls]++;
	else if (took[calls])
		calls++;
}

/* Below the red zone, where the compiler may keep something. */
static inline __attribute__((always_inline)) void trap(bool on)
{
	if (on)
		__asm__ volatile("sub $128, %%rsp; pushfq; orq $0x100, (%%rsp); popfq; "
				 "add $128, %%rsp" ::: "memory", "cc");
	else
		__asm__ volatile("sub $128, %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; "
				 "add $128, %%rsp" ::: "memory", "cc");
}

static void play_counted(const struct pd *pd, void *context, uint64_t seq)
{
	calls = 0;
	for (uint32_t i = 0; i < MOST_CALLS; i++)
		took[i] = 0;
	trap(true);
	stream_play(pd->v6, context, seq);
	trap(false);
	for (uint32_t i = 0; i < calls; i++)
		if (!least[i] || took[i] < least[i])
			least[i] = took[i];
}

static bool has_counter(void)
{
	char source[32] = "";
	FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");

	if (!f)
		return false;
	if (fscanf(f, "%31s", source) != 1)
		source[0] = '\0';
	fclose(f);
	return clock_kind(source) == NCI_CLOCK_TSC;
}

START_TEST(collective_takes_no_more_instructions_than_it_did)
{
	const struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	uint32_t sum = 0, most = costs[_i].instructions;
	static struct pd pd;
	void *context;

	if (!has_counter())
		return fx_skip("other instructions where the clock is no counter of the processor");
	setenv("NCCLINSP_KERNELS", "always", 1);
	pd_open(&pd, costs[_i].level);
	context = pd_init(&pd);
	for (uint64_t i = 0; i < 2; i++)	/* a lane, the names */
		stream_play(pd.v6, context, i);
	ck_assert_int_eq(sigaction(SIGTRAP, &action, NULL), 0);
	for (uint64_t i = 0; i < PLAYS; i++)
		play_counted(&pd, context, 2 + i);
	for (uint32_t i = 0; i < calls; i++)
		sum += least[i];
	printf("# level %s: %u callbacks, %u instructions\n", costs[_i].level, calls, sum);
	fflush(stdout);
	ck_assert_uint_eq(calls, costs[_i].calls);
	ck_assert_msg(sum <= most + most / 100 * TOLERATED_PERCENT,
		      "level %s: %u instructions, %u were enough", costs[_i].level, sum, most);
}
END_TEST

#endif

int main(void)
{
#if CAN_BE_COUNTED
	const struct fx_test tests[] = {
		FX_LOOP(collective_takes_no_more_instructions_than_it_did, 0, FX_COUNT(costs)),
	};

	return fx_run(NULL, NULL, tests, FX_COUNT(tests));
#else
	printf("1..0 # SKIP only optimized code for x86-64 is counted\n");
	return EXIT_SUCCESS;
#endif
}
