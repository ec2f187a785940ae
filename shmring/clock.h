/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHMRING_CLOCK_H
#define SHMRING_CLOCK_H

/*
 * The one timestamp source of both sides: the producer stamps with it, a reader
 * on the same machine calibrates the same counter.  Which counter a process uses
 * stands in its segment (NCI_CLOCK_*).
 */

#include <time.h>

#include "nci/segment.h"

static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Ticks of the given NCI_CLOCK_*; an unknown kind reads CLOCK_MONOTONIC. */
static inline uint64_t clock_ticks(uint32_t kind)
{
#if defined(__x86_64__)
	if (__builtin_expect(kind == NCI_CLOCK_TSC, 1))
		return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	if (__builtin_expect(kind == NCI_CLOCK_CNTVCT, 1)) {
		uint64_t ticks;

		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
		return ticks;
	}
#endif
	(void)kind;
	return clock_ns(CLOCK_MONOTONIC);
}

/* The counter to use on this machine, by the name of the kernel's clocksource. */
static inline uint32_t clock_kind(const char *clocksource)
{
#if defined(__x86_64__)
	if (__builtin_strcmp(clocksource, "tsc") == 0)
		return NCI_CLOCK_TSC;
#elif defined(__aarch64__)
	if (__builtin_strcmp(clocksource, "arch_sys_counter") == 0)
		return NCI_CLOCK_CNTVCT;
#endif
	(void)clocksource;
	return NCI_CLOCK_MONOTONIC;
}

static inline void clock_anchor(uint32_t kind, struct nci_anchor *anchor)
{
	anchor->ticks = clock_ticks(kind);
	anchor->mono_ns = clock_ns(CLOCK_MONOTONIC);
	anchor->real_ns = clock_ns(CLOCK_REALTIME);
}

#endif
