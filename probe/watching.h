/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_WATCHING_H
#define PROBE_WATCHING_H

/* The program in the kernel (kernel/watch.c), as the probe handles it. */

#include <stddef.h>
#include <stdint.h>

#include "probe/wire.h"

struct watching;
typedef void watching_fn(const struct probe_event *e, void *arg);

/* Loads the program: CAP_BPF and CAP_PERFMON are needed.  0 or a negative errno. */
int watching_new(struct watching **out, watching_fn *fn, void *arg);
void watching_free(struct watching *w);

/* The node pays for it between these two alone. */
int watching_begin(struct watching *w);
void watching_end(struct watching *w);

/* Watch these and no others; the numbers are put in order. */
void watching_set(struct watching *w, int32_t *processes, uint32_t nprocesses,
		  int32_t *threads, uint32_t nthreads);

/* Readable when there are events; watching_read() hands them over. */
int watching_fd(const struct watching *w);
void watching_read(struct watching *w);

/* Once a second: hands over the sums of what was counted in the second before the last. */
void watching_tell(struct watching *w);

/* The events that the program found no room for, since watching_begin(). */
uint64_t watching_lost(const struct watching *w);

#endif
