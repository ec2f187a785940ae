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
#include "util/unknown.h"
#include "util/words.h"

/* One process, and what it was in. */
struct death {
	uint64_t ended_ns;	/* when it was seen to be dead; hosts' clocks differ */
	uint64_t user;
	struct whom who;	/* by its rank in its largest communicator */
	bool has_comm_id;	/* that communicator has one */
	uint64_t comm_id;
	const char *comm_name;	/* "": none */
	uint32_t in_flight;	/* operations */
	/* the oldest of these */
	name_t func;		/* NULL: not known */
	uint64_t seq;		/* UNKNOWN_U64 */
	name_t op_comm_name;	/* NULL: none */
	const char *waiting;	/* what waits for it, as hang_say_waiting() says; NULL: nothing */
};

/* Has the later one the cause of the earlier one? */
bool died_have_one_cause(const struct death *earlier, const struct death *later);

/* The words on what waits for any of these; NULL: nothing is known to. */
const char *died_waiting(const struct death *const *deaths, uint32_t n);

/* Did any of these die in the middle of an operation, or while others wait for it? */
bool died_is_critical(const struct death *const *deaths, uint32_t n);

/* Says deaths of one cause, in their order. */
void died_say(const struct death *const *deaths, uint32_t n, char *text, size_t size);

#endif
