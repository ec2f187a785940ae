/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_COUNT_H
#define BENCH_COUNT_H

/*
 * Counts what a piece of code must not do.  Allocations and locks: the C
 * library's functions are interposed, for every library of the process.  System
 * calls: in a child process the kernel reports each one (seccomp).
 */

struct count {
	long allocations;
	long locks;
	long syscalls;	/* -1: not allowed to count them here */
};

/*
 * In a child process: prepare() uncounted, then what(), counted; neither may exit,
 * and what() may not count on a system call to work.  All -1: no child to be had.
 */
struct count count_in(void (*prepare)(void *), void (*what)(void *), void *arg);

#endif
