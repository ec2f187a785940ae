/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_READ_LIFE_H
#define READER_READ_LIFE_H

/* Whether the process behind a segment still runs, and if not, whether it said so. */

#include "reader/read/segment.h"

#define LIFE_PROC	"/proc"

enum life {
	LIFE_ALIVE,
	LIFE_EXITED,
	LIFE_DIED,
};

/*
 * Find the process here that an opened segment is of: host_pid, and its process's pid,
 * `proven` and `contained`.  0 or SEGMENT_STRANGER.
 */
int life_find_owner(struct segment *seg);

/* Its process holds the lock, as only a running one can. */
bool life_is_held(const struct segment *seg);

/*
 * Field 22 of <proc>/<pid>/stat, `proc` being where procfs is.  0: there is no such process,
 * it is not shown to us, or it is over and nobody has waited for it.
 */
uint64_t life_start_time(const char *proc, pid_t pid);

/*
 * Thread `tid`, whose <tid>/status lies in `dirfd`, as it calls itself: the last number of its
 * NSpid line; *depth: how many there are, so many pid namespaces deep.  0: not known.
 */
pid_t life_ns_pid(int dirfd, pid_t tid, uint32_t *depth);

/* One of its user ids (real, effective, saved, file system's) is this one. */
bool life_has_uid(const char *proc, pid_t pid, uid_t uid);

enum life life_of(struct segment *seg);

/*
 * Is the process stopped, by a signal or for a debugger?  *tracer: the debugger's pid, 0 where
 * there is none; `name`: its command.
 */
bool life_is_stopped(const char *proc, pid_t pid, pid_t *tracer, char name[16]);

/*
 * A live process holds its lock, which is the one that it names wherever that can be known:
 * the kernel's word, as of the last question.
 */
static inline bool life_is_certain(const struct segment *seg)
{
	return seg->locked && (seg->process.proven || !seg->host_pid);
}

#endif
