/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FX_COUNT_H
#define TESTS_FX_COUNT_H

/*
 * Instructions counted one by one: a figure that other work on the machine does not change.  The
 * processor traps after each one (the trap flag), and the test's own handler counts.
 */

#if defined(__x86_64__) && defined(__OPTIMIZE__) && \
	!defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FX_CAN_COUNT 1
#else
#define FX_CAN_COUNT 0
#endif

/* Other compilers need more or less: with these, what has doubled is found. */
#if defined(__clang__) || __GNUC__ != 12
#define FX_TOLERATED_PERCENT(percent) 100
#else
#define FX_TOLERATED_PERCENT(percent) (percent)
#endif

#if FX_CAN_COUNT
#include <signal.h>
#include <ucontext.h>

/* Below the red zone, where the compiler may keep something. */
static inline __attribute__((always_inline)) void fx_trap(bool on)
{
	if (on)
		__asm__ volatile("sub $128, %%rsp; pushfq; orq $0x100, (%%rsp); popfq; "
				 "add $128, %%rsp" ::: "memory", "cc");
	else
		__asm__ volatile("sub $128, %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; "
				 "add $128, %%rsp" ::: "memory", "cc");
}
#endif

#endif
