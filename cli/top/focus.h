/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_FOCUS_H
#define CLI_TOP_FOCUS_H

/*
 * The process that the user of the live view looks at.  Jobs time a sample of their
 * operations; where the user has said yes, once, those of this process are all timed
 * for as long as he looks.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define FOCUS_QUESTION "Time every operation of this process?  Asked once (y/n)"

struct focus {
	enum { FOCUS_UNASKED, FOCUS_NO, FOCUS_YES } said;
	json_int_t pid;		/* 0: none */
	bool timed;		/* all its operations are, because of us */
	uint64_t renew_ns;	/* when that has to be asked for again */
};

/*
 * `pid` is looked at now; 0: none.  `process` is its row of /v1/processes, or NULL.
 * True when the user has to be asked FOCUS_QUESTION.
 */
bool focus_look(struct focus *focus, json_int_t pid, const json_t *process);
void focus_answer(struct focus *focus, bool yes);

/* The body of a PUT /v1/level that is due, the caller's; NULL: none is. */
json_t *focus_due(struct focus *focus, uint64_t now_ns);

/* It could not be done: there is no sense in trying again. */
void focus_failed(struct focus *focus);

#endif
