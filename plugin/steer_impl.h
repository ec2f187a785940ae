/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_STEER_IMPL_H
#define PLUGIN_STEER_IMPL_H

/* Between steer.c, which callbacks run, and steer_decide.c: what is decided. */

#include "plugin/steer.h"

struct steer_moment {
	uint64_t mono_ns, real_ns, ticks;
	bool outermost;		/* the calling thread is within no group */
};

/* One thread decides; false: another one does. */
bool steer_try(struct steer *s);
void steer_leave(struct steer *s);

/* What NCCL's mask holds: whoever decides looks at it before all else. */
uint32_t steer_asked(const struct steer *s);

/*
 * A whole value for NCCL's mask, and what readers see of it.  False, and nothing is
 * stored: it does not hold `old` any more.  So who was about to change it gives way to
 * a thread that has come to send since.
 */
bool steer_store(struct process *p, uint32_t old, uint32_t value, uint64_t ticks);

/* All that can change by itself: control file, level, plan, KernelCh. */
void steer_decide(struct process *p, const struct steer_moment *now);

/* Before NCCL has the mask: what is in force from the first communicator on. */
void steer_start(struct process *p, const struct steer_moment *now);

#endif
