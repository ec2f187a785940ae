/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_DIED_H
#define JUDGE_DIED_H

/*
 * Processes that ended without a clean exit.  One often takes the others with it: those of one
 * user's communicator that die one after another are one judgement, the first of them first.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "judge/whom.h"
#include "judge/xid.h"
#include "util/unknown.h"
#include "util/words.h"

/* One process, and what it was in. */
struct death {
	uint64_t ended_ns;	/* when it was seen to be dead; hosts' clocks differ */
	uint64_t user;
	struct whom who;	/* named by its rank in its largest communicator */
	bool has_comm_id;	/* the communicator has an id */
	uint64_t comm_id;
	const char *comm_name;	/* "": none */
	uint32_t in_flight;	/* operations */
	/* the oldest of these */
	name_t func;		/* NULL: not known */
	uint64_t seq;		/* UNKNOWN_U64 */
	name_t op_comm_name;	/* NULL: none */
	const char *waiting;	/* operations that wait for it (hang_say_waiting()); NULL: none */
	int32_t status;		/* wait(2)'s status; UNKNOWN_I32: the kernel did not tell */
	struct xid xid;		/* the driver's error on its GPU then; number 0: none is known */
	uint64_t oom_kills;	/* processes of its node that the kernel killed for memory then */
	/* the kills in its control group */
	const char *memory_cgroup;	/* NULL: not known */
	bool memory_above;	/* its own is not known: this one is above it, with others in it */
	uint64_t memory_kills;
	uint64_t memory_limit_bytes;	/* UNKNOWN_U64: it has none */
	/* the events that ncclinsp-probe(8) has seen; all zero: none */
	int32_t sent;		/* the last signal that it was sent */
	int32_t sender;		/* process that sent it; 0: the kernel */
	const char *sender_command;
	bool for_memory;	/* the kernel has killed it because memory ran out */
	const char *cgroup;	/* last part of the path of its group then; NULL or "": not known */
};

/* Has the later one the cause of the earlier one? */
bool died_have_one_cause(const struct death *earlier, const struct death *later);

/* The words on what waits for any of these; NULL: nothing is known to. */
const char *died_waiting(const struct death *const *deaths, uint32_t n);

/* Did any of these die in the middle of an operation, or while others wait for it? */
bool died_is_critical(const struct death *const *deaths, uint32_t n);

/* The parts of `status`: the exit code, or the signal.  UNKNOWN_I32: not known, or the other. */
int32_t died_exit_code(const struct death *d);
int32_t died_signal(const struct death *d);

/* Is it known that this signal ended it, and that a process sent it? */
bool died_has_sender(const struct death *d);

/* Says deaths of one cause, in their order. */
void died_say(const struct death *const *deaths, uint32_t n, char *text, size_t size);

#endif
