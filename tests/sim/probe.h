/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_PROBE_H
#define TESTS_SIM_PROBE_H

/*
 * A profiler that writes down every call, for tests of the simulator itself.
 * One per process; thread-safe.  A call is a line such as
 *
 *	Coll S <CollApi AllReduce seq=0 RING SIMPLE channels=2
 *	ProxyStep R 9 524288
 *	Group X
 *
 * S starts (parent after '<', by its type), R records a state and its argument,
 * X stops.  Lines of one thread stay in order.
 */

#include <stdint.h>

#define PROBE_UNIT	1	/* made API calls, or launched */
#define PROBE_PROXY	2	/* made ProxyCtrl, ProxyOp, ProxyStep or KernelCh calls */
#define PROBE_CALLBACK	3	/* reported launches, but made no API call */

/* Forget everything.  `mask` is what init asks for, `refuse` what gets no handle. */
void probe_reset(int mask, int refuse);

/* When an event of this type next starts, set the mask: NCCL reads it live. */
void probe_switch_mask(uint64_t type, int mask);

/* Leave *eHandle alone for these types, as bad plugins do. */
void probe_keep_slot(int types);

/* The table of an interface version. */
const void *probe_table(int version);

/*
 * What the threads of one kind did in contexts of this rank (-1: any) after init,
 * one line per call; valid until the next call or reset.
 */
const char *probe_text(int kind, int rank);

/* Lines that begin with these words, over all threads. */
int probe_count(const char *words);

/* Of the nth call (from 0) that begins with these words: its thread, and how many came before. */
int probe_thread(const char *words, int nth);	/* -1: there is none */
int probe_place(const char *words, int nth);

/* A KernelCh event: whose, where, and what it was told. */
struct probe_kernel {
	int rank, channel;
	uint64_t parent_type;
	int64_t parent_seq;		/* of a Coll; -1: of none */
	uint64_t start, stop;		/* stop 0: not so far */
};

/* All of them in the order of their starts, for versions that tell GPU times. */
int probe_kernels(const struct probe_kernel **kernels);

/* nWarps of the newest Coll, for versions 5 and 6. */
int probe_warps(void);

/* Proxy threads that worked in contexts of more than one rank. */
int probe_mixed_threads(void);

/* Starts whose context or parent the probe never gave out. */
int probe_strangers(void);

/* Stops and states of events that were stopped before. */
int probe_stale(void);

#endif
