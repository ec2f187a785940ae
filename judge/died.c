/* SPDX-License-Identifier: Apache-2.0 */
/* Deaths that have one cause, and the words for them. */
#include "judge/died.h"

#include <inttypes.h>
#include <string.h>

#include "util/phrase.h"

#define TOGETHER_NS	UINT64_C(30000000000)	/* deaths that have one cause */
#define SKEW_NS		UINT64_C(2000000000)	/* clocks of two hosts may differ by so much */
#define NAMED		8			/* processes that the text names */

bool died_have_one_cause(const struct death *earlier, const struct death *later)
{
	return earlier->has_comm_id && later->has_comm_id && earlier->comm_id == later->comm_id &&
	       earlier->user == later->user && later->ended_ns - earlier->ended_ns < TOGETHER_NS;
}

const char *died_waiting(const struct death *const *deaths, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (deaths[i]->waiting && *deaths[i]->waiting)
			return deaths[i]->waiting;
	return NULL;
}

bool died_is_critical(const struct death *const *deaths, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (deaths[i]->in_flight)
			return true;
	return died_waiting(deaths, n);
}

/* ---- words ---------------------------------------------------------------- */

static void death_add_process(struct phrase *text, const struct death *d)
{
	phrase_add(text, d->who.rank == UNKNOWN_I32 ? "a process" : "rank %" PRId32, d->who.rank);
	whom_add(text, &d->who);
}

static void death_add_operation(struct phrase *text, const struct death *d)
{
	if (!d->in_flight) {
		phrase_add(text, " with no operation in flight");
		return;
	}
	phrase_add(text, " in the middle of %s", d->func ? d->func : "an operation");
	if (d->seq != UNKNOWN_U64)
		phrase_add(text, " #%" PRIu64, d->seq);
	if (d->op_comm_name)
		phrase_add(text, " on %s", d->op_comm_name);
}

/* Does the clock tell that it died after the first one? */
static bool death_is_later(const struct death *first, const struct death *d)
{
	return !d->who.host || !strcmp(d->who.host, first->who.host) ||
	       d->ended_ns - first->ended_ns > SKEW_NS;
}

void died_say(const struct death *const *deaths, uint32_t n, char *text, size_t size)
{
	struct phrase phrase;

	phrase_start(&phrase, text, size);
	for (uint32_t i = 0; i < n && i < NAMED; i++) {
		phrase_add(&phrase, i == 0 ? "" : i > 1 ? ", " :
				    death_is_later(deaths[0], deaths[1]) ? "; after it " :
				    "; at about the same time ");
		death_add_process(&phrase, deaths[i]);
		if (i)
			continue;
		phrase_add(&phrase, " died");
		death_add_operation(&phrase, deaths[i]);
	}
	if (n > NAMED)
		phrase_add(&phrase, " and %u more", n - NAMED);
	if (died_waiting(deaths, n))
		phrase_add(&phrase, "; %s", died_waiting(deaths, n));
	phrase_add(&phrase, ". It did not end by itself: a signal, the kernel's out-of-memory "
		   "killer or a crash. See its own log, and dmesg for \"Out of memory\" and Xid.");
}
