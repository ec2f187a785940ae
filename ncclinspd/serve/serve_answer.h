/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SERVE_SERVE_ANSWER_H
#define NCCLINSPD_SERVE_SERVE_ANSWER_H

/* An answer on its way out: a text, pieces of one, or why there is none. */

#include <sys/types.h>

#include "util/json.h"

#define SERVE_ANSWER_BYTES	(32u << 20)
#define SERVE_WHY_BYTES		1536	/* room for why a request was refused */

/*
 * An answer is a text, or what `read` gives piece by piece until it says that this was the
 * end.  Whatever it owns goes with it (answer_deinit()).
 */
#define ANSWER_END	(-1)
#define ANSWER_BROKEN	(-2)	/* the part that was sent so far cannot be completed */

struct answer {
	unsigned status;
	const char *type;
	char allow[32];		/* methods, behind a 405; "": does not apply */
	bool closes;		/* the connection, afterwards */
	char *text;
	size_t bytes;		/* length of the text; without one, memory that it holds */
	/* Up to `max` bytes; 0: nothing now, client_wake() follows; or one of the above. */
	ssize_t (*read)(void *arg, char *buf, size_t max);
	void (*free)(void *arg);	/* frees `arg`; NULL: nothing to be freed */
	void *arg;
};

#define SERVE_JSON	"application/json"

/* Takes the text (malloc'ed) over. */
void answer_text(struct answer *a, const char *type, char *text, size_t bytes);

/* Takes the text out of `j`. */
void answer_json(struct answer *a, unsigned status, struct json *j);

void answer_refuse(struct answer *a, unsigned status, const char *code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* A negative errno of what was to be done; `why` in words, "": those that fit the errno. */
void answer_failure(struct answer *a, int error, const char *why);
void answer_deinit(struct answer *a);

#endif
