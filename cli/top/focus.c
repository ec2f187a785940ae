/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request to time all operations of one process: when to ask the user, to send it and to
 * renew it.
 */
#include "cli/top/focus.h"

#include <string.h>

#include "cli/base/member.h"

/* The request ends by itself soon after the user has turned away, or has gone. */
#define FOR_S	 30
#define RENEW_NS UINT64_C(20000000000)

/* A process that times nothing, or everything, has nothing to be asked for. */
static bool process_can_be_timed(const json_t *process)
{
	return process && member_is(process, "state", "live") &&
		member_is(process, "sampling", "budget");
}

bool focus_look(struct focus *focus, json_int_t pid, const json_t *process)
{
	if (pid != focus->pid || !process || !member_is(process, "state", "live"))
		focus->timed = false;
	focus->pid = pid;
	if (!pid || focus->timed || focus->said == FOCUS_NO || !process_can_be_timed(process))
		return false;
	if (focus->said == FOCUS_YES) {
		focus->timed = true;
		focus->renew_ns = 0;
		return false;
	}
	return true;
}

void focus_answer(struct focus *focus, bool yes)
{
	focus->said = yes ? FOCUS_YES : FOCUS_NO;
	focus->timed = yes;
	focus->renew_ns = 0;
}

json_t *focus_due(struct focus *focus, uint64_t now_ns)
{
	if (!focus->timed || now_ns < focus->renew_ns)
		return NULL;
	focus->renew_ns = now_ns + RENEW_NS;
	return json_pack("{s:I s:s s:i}", "pid", focus->pid, "sample", "all", "for_s", FOR_S);
}

void focus_failed(struct focus *focus)
{
	focus->said = FOCUS_NO;
	focus->timed = false;
}
