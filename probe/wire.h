/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0) */
#ifndef PROBE_WIRE_H
#define PROBE_WIRE_H

/*
 * The packets between ncclinspd and ncclinsp-probe, on a SOCK_SEQPACKET socket of one machine,
 * in its byte order: a probe_watch to the probe, up to PROBE_BATCH probe_events back.  Events
 * are written by the program in the kernel (kernel/watch.c) in this form already.
 */

#ifdef __bpf__
#include "probe/kernel/types.h"
#else
#include <stdint.h>
#endif

#define PROBE_SOCKET	"/run/ncclinsp/probe.sock"
#define PROBE_MAGIC	0x6e637032u	/* another one is another version's: refused */
#define PROBE_THREADS	4096u		/* the most that are watched */
#define PROBE_PROCESSES	1024u
#define PROBE_BATCH	32u
#define PROBE_TAKERS	3		/* told of one wait: those that had the CPU for longest */
#define PROBE_WAIT_NS	1000000u	/* shorter waits are not told */

/*
 * All that is to be watched from now on: numbers of processes, then of threads, in the node's
 * pid namespace.  `self`: the sender's own number, by which the probe sees that both have the
 * same numbers for the same processes.
 */
struct probe_watch {
	uint32_t magic;
	int32_t self;
	uint32_t processes, threads;
	int32_t number[];
};

enum probe_kind {
	PROBE_WAIT = 1,		/* a thread could have run, and got no CPU for wait_ns */
	PROBE_SIGNAL,		/* a process was sent a signal */
	PROBE_OOM,		/* the kernel has chosen a process to be killed for memory */
	PROBE_RESENT,		/* TCP segments of a process were sent again, in about a second */
	PROBE_KINDS
};

/* A process that had the CPU meanwhile, or that sent the signal (0: the kernel did). */
struct probe_taker {
	uint64_t ns;
	int32_t pid;
	char command[16];	/* the thread's name; terminated */
	uint32_t zero;
};

struct probe_resent {
	uint64_t segments;
	uint8_t address[16];	/* the other end's, as IPv6 has it: ::ffff:10.0.0.2 */
};

struct probe_event {
	uint64_t at_ns;		/* CLOCK_MONOTONIC: when the thread ran again, or it happened */
	uint64_t wait_ns;
	uint64_t lost;		/* events that found no room, since the probe's client came */
	int32_t number;		/* the thread's number in a wait; else the process's */
	uint32_t kind;		/* enum probe_kind */
	int32_t signal;
	uint32_t zero;
	union {
		struct probe_resent resent;
		struct probe_taker taker[PROBE_TAKERS];
		char cgroup[96];	/* PROBE_OOM: the last part of its path; "": not known */
	};
};

_Static_assert(sizeof(struct probe_taker) == 32, "one layout in the kernel and here");
_Static_assert(sizeof(struct probe_event) == 136, "one layout in the kernel and here");

#endif
