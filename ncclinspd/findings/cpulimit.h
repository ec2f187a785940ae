/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_CPULIMIT_H
#define NCCLINSPD_FINDINGS_CPULIMIT_H

/*
 * The bandwidth limit of the control group that a process is in, or of one above it: the
 * tightest.  A group that has used up its quota of a period does not run until the next one
 * (cpu.max and cpu.stat of cgroup v2, cpu.cfs_quota_us of v1).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CPULIMIT_ROOT	"/sys/fs/cgroup"
#define CPULIMIT_PATH	384	/* longer ones are not looked at */

struct cpulimit_count {
	uint64_t periods;	/* those in which something in the group ran */
	uint64_t throttled;	/* those of them in which the quota was used up */
};

/* Of one process.  Zeroed: it was not looked at. */
struct cpulimit {
	bool looked;
	char dir[CPULIMIT_PATH];	/* the group with the limit; "": there is none */
	double cpus;		/* the limit: CPU time by wall time */
	struct cpulimit_count last;	/* as read at the last look */
	struct cpulimit_slice {
		uint64_t number;	/* of this piece of 20 s */
		struct cpulimit_count sum;
	} slice[2];
};

/*
 * Now and then; `proc` is where procfs is, `root` where the cgroup filesystems are.  What
 * cannot be read is no limit.
 */
void cpulimit_look(struct cpulimit *l, const char *proc, const char *root, pid_t pid,
		   uint64_t now_ns);

/*
 * The part of the periods, of the last 20 to 40 s, in which the quota was used up; < 0: it
 * has no limit, or was looked at once only.
 */
double cpulimit_throttled(const struct cpulimit *l, uint64_t now_ns);

#endif
