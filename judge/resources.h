/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_RESOURCES_H
#define JUDGE_RESOURCES_H

/*
 * The needs of a process that its node does not meet: CPU time that the limit of a control group
 * takes, memory, pages and files that come late, CPUs near its devices.  It is told which of these
 * explains the cost of a rank, and in words.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/phrase.h"
#include "util/unknown.h"

/* CPUs that a thread may run on, and a device that is at none of their NUMA nodes. */
struct placement {
	char cpus[64];		/* the list, as "32-63"; a long one ends in "..." */
	char nodes[24];		/* their nodes: "1" */
	char device_nodes[24];
	bool nic;		/* all network interfaces of the node; else its GPU */
};

/* Nodes are bits, as in numa.h; 0: not known.  Sets *out only where they are apart. */
bool placement_find(const char *cpus, uint64_t nodes, uint64_t device_nodes, bool nic,
		    struct placement *out);

/* "may run on CPUs 32-63 only, which are at NUMA node 1, and its GPU is at node 0" */
void placement_say(struct phrase *text, const struct placement *p);

/* Parts of the last 20 to 40 s are < 0 where they are not known. */
struct resources {
	const char *cpu_cgroup;		/* the group with a limit of CPU time that took most, ... */
	double cpu_limit;		/* the limit in CPUs, if there is a group */
	double throttled_periods;	/* part of the limit's periods in which it was used up */
	double throttled;		/* part of the time that its CPUs lost at most */
	const char *memory_cgroup;	/* the group nearest to its limit of memory; NULL: none */
	uint64_t memory_bytes, memory_limit_bytes;
	uint64_t limit_hits;		/* allocations that met that limit; UNKNOWN_U64 */
	/* the time in which a process of its own group, or of the node, waited for this */
	double cpu_stalled, memory_stalled, io_stalled;
	double node_cpu_stalled, node_memory_stalled, node_io_stalled;
	double major_faults;		/* pages that the thread had read from a disk, a second */
	uint64_t swapped_bytes;		/* memory of the process; UNKNOWN_U64 */
	bool apart;
	struct placement placement;
};

#define RESOURCES_LEAST	0.05	/* part of the time that is worth a word ... */
#define RESOURCES_COST	3	/* a lack of 1/3 of the cost or more explains it */

/* Does it explain a cost, a part of the time as well, that a thing took that part of the time? */
static inline bool resources_explain(double part, double cost)
{
	return part >= RESOURCES_LEAST && part * RESOURCES_COST >= cost;
}

/* "its cgroup (/sys/fs/cgroup/pod1) was throttled for up to 41 % of the time ...: raise ..." */
void resources_say_throttled(struct phrase *text, const struct resources *r);

/* "its cgroup waited for memory for 12 % of the time: ...  Raise that limit" */
void resources_say_memory(struct phrase *text, const struct resources *r);

/*
 * The things that a thread may wait for that sleeps so much of the time: files, pages.  False, and
 * nothing is said: neither explains that.
 */
bool resources_say_sleep(struct phrase *text, const struct resources *r, double sleeps);

/*
 * A remark on what processes of the node waited for, after `begin`: they may be others than those
 * of its group, which is not known.  False, and nothing is said: too little for that cost.
 */
bool resources_say_node(struct phrase *text, const struct resources *r, double cost,
			const char *begin);

#endif
