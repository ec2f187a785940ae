/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_RESOURCES_H
#define NCCLINSPD_FINDINGS_RESOURCES_H

/*
 * The resources of the node around one process, for judge/resources.h: the limits of its control
 * groups, up to the root (cgroup v2, and v1), the kernel's pressure (PSI), major faults and
 * swap, and the NUMA nodes of its CPUs and GPU.  Only of a process that makes others wait:
 * it costs some dozens of small files.  What cannot be read is unknown.
 */

#include <stddef.h>
#include <sys/types.h>

#include "judge/resources.h"
#include "ncclinspd/around/sensors.h"

#define RESOURCES_LOOKS	4	/* looks at once in one look of a detector */

/* The places of these filesystems. */
struct resources_roots {
	const char *proc, *cgroup, *sys;
};

extern const struct resources_roots resources_roots;

/*
 * Watch the process that has that number and began at `start_time` (life.h).  NULL: no memory.
 */
struct resources_watch *resources_new(const struct resources_roots *roots, pid_t pid,
				      uint64_t start_time);
void resources_free(struct resources_watch *w);

/*
 * Now and then; it reads only every few seconds, and where *looks, which is counted off, has any
 * left.  `tid` is a thread that matters, as numbered here; 0: the main thread.  `w` may be NULL
 * here and in what follows.
 */
void resources_look(struct resources_watch *w, pid_t tid, uint64_t now_ns, uint32_t *looks);

/*
 * False: it was not looked at of late, or once only.  The texts are those of `w`.  `tid`: whose
 * faults and place are told; `pci_bus_id`: the GPU that it is to be near, "": not known.
 */
bool resources_tell(struct resources_watch *w, pid_t tid, const char *pci_bus_id, uint64_t now_ns,
		    struct resources *out);

/*
 * May that thread run only on CPUs that are at no node of its GPU, or at none of `nic_nodes` (bits;
 * 0: not known)?  Sets *out only then.
 */
bool resources_place(const struct resources_roots *roots, pid_t pid, pid_t tid,
		     const char *pci_bus_id, uint64_t nic_nodes, struct placement *out);

/* The kernel's kills for memory in the control group of a process. */
struct resources_kills {
	const char *cgroup;	/* its own; NULL: nobody knows */
	bool above;		/* its own is not known: one above it in which it has killed */
	uint64_t kills;		/* kills since the oldest of the last four counts */
	uint64_t limit_bytes;	/* UNKNOWN_U64: it has no limit */
};

/* Count anew.  `any`: the kernel may have killed a process of the node since the last time. */
void resources_count_kills(struct resources_watch *w, bool any);

struct resources_kills resources_kills(struct resources_watch *w);

/* Source `i` of all this; false: there is none. */
bool resources_source(const struct resources_roots *roots, size_t i, struct sensors_source *out);

#endif
