/* SPDX-License-Identifier: Apache-2.0 */
/* Answers on their way out: headers, JSON, and why something was refused. */
#include "ncclinspd/serve/serve_answer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/cleanup.h"

void answer_text(struct answer *a, const char *type, char *text, size_t bytes)
{
	*a = (struct answer){ .status = 200, .type = type, .text = text, .bytes = bytes };
}

static void answer_no_memory(struct answer *a)
{
	answer_refuse(a, 503, "no_memory", "the daemon has no memory for the answer");
}

void answer_json(struct answer *a, unsigned status, struct json *j)
{
	json_newline(j);
	if (json_error(j) == -E2BIG) {
		answer_refuse(a, 500, "too_large",
			      "the answer is larger than %u bytes: ask for less",
			      SERVE_ANSWER_BYTES);
	} else if (json_error(j)) {
		answer_no_memory(a);
	} else {
		*a = (struct answer){ .status = status, .type = SERVE_JSON };
		a->text = json_steal(j, &a->bytes);
	}
}

/* Leaves no answer, with status 0, where memory ran out again. */
void answer_refuse(struct answer *a, unsigned status, const char *code, const char *format, ...)
{
	CLEANUP(json_deinit) struct json j;
	char message[SERVE_WHY_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	json_init(&j, SERVE_ANSWER_BYTES);
	json_begin(&j, '{');
	json_begin_member(&j, "error", '{');
	json_member_string(&j, "code", code);
	json_member_string(&j, "message", message);
	json_end(&j, '}');
	json_end(&j, '}');
	json_newline(&j);
	*a = (struct answer){ .type = SERVE_JSON };
	if (json_error(&j))
		return;
	a->status = status;
	a->text = json_steal(&j, &a->bytes);
}

void answer_deinit(struct answer *a)
{
	free(a->text);
	if (a->free)
		a->free(a->arg);
	*a = (struct answer){ 0 };
}

/* Why something was not done. */
static const struct {
	int error;
	unsigned status;
	const char *code;
	const char *message;
} failures[] = {
	{ -EPERM, 403, "forbidden",
	  "only root, the daemon's user and members of its group may do that" },
	{ -ENOSYS, 404, "not_found", "this daemon has no file or directory for it" },
	{ -ENOENT, 404, "not_found", "there is none of that name" },
	{ -EBUSY, 503, "busy",
	  "several files are being written already: try again in a second" },
	{ -EAGAIN, 503, "busy",
	  "the disk is busy, or does not answer: try again in a second" },
	{ -EINVAL, 400, "bad_request", "the body is not understood" },
	{ -ESRCH, 404, "not_found", "there is no such process" },
	{ -ENOSPC, 429, "too_many", "there are too many already" },
	{ -EIO, 503, "unwritable", "the control file cannot be written" },
	{ -E2BIG, 500, "too_large", "there is too much to write" },
};

void answer_failure(struct answer *a, int error, const char *why)
{
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		if (failures[i].error == error) {
			answer_refuse(a, failures[i].status, failures[i].code, "%s",
				      *why ? why : failures[i].message);
			return;
		}
	answer_no_memory(a);
}
