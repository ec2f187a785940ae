/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_PROBELINK_H
#define NCCLINSPD_FINDINGS_PROBELINK_H

/*
 * The daemon's end of the line to ncclinsp-probe(8): what is to be watched goes there, what a
 * program in the kernel has seen of it comes back.
 *
 * The probe is never waited for, and not believed: what comes is read in bounded pieces, each
 * field is checked, and what is of no process that was asked about is refused and counted.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "probe/wire.h"

struct loop;
struct probelink;
struct process;
struct slow_peer_resent;

/* A thread of that process waited for a CPU. */
typedef void probelink_waited_fn(void *arg, uint64_t process_id, const struct probe_event *e,
				 uint64_t now_ns);

/* A process that was asked about was sent a signal, or killed for memory. */
struct probelink_end {
	uint64_t process_id;	/* 0: unused */
	uint64_t at_ns;		/* when the signal was sent */
	int32_t signal;		/* the last one; 0: none */
	int32_t sender;		/* its process; 0: the kernel */
	char command[16];	/* the sender's name */
	bool for_memory;
	char cgroup[96];	/* group in which it was killed for memory: its last part, or "" */
};

struct probelink_stats {
	bool connected;
	uint32_t processes, threads;	/* numbers of those watched now */
	uint64_t events;	/* all counts are since the start */
	uint64_t lost;		/* events that found no room on their way */
	uint64_t refused;	/* events that cannot be true, or of something else */
};

/* The probe listens there, or will.  0 or -ENOMEM. */
int probelink_new(struct probelink **out, struct loop *loop, const char *path,
		  probelink_waited_fn *waited, void *arg);
void probelink_free(struct probelink *l);

/* Once a second: connect where there is no connection, and ask about these. */
void probelink_look(struct probelink *l, struct process *const *list, size_t n, uint64_t now_ns);

/* NULL: nothing is known of that process's end.  `l` may be NULL. */
const struct probelink_end *probelink_end(const struct probelink *l, uint64_t process_id);

/*
 * TCP segments that a process sent again in the last 15 to 30 s.  *out stays as it is where nobody
 * knows: without a connection, or where no thread of it is watched.  `l` may be NULL.
 */
void probelink_resent(const struct probelink *l, uint64_t process_id, uint64_t now_ns,
		      struct slow_peer_resent *out);

const struct probelink_stats *probelink_stats(const struct probelink *l);

#endif
