/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_OTLP_OTLP_POST_H
#define NCCLINSPD_OTLP_OTLP_POST_H

/* One request to a collector, and what its answer means.  All of it may wait. */

#include "ncclinspd/otlp/otlp.h"

enum otlp_outcome {
	OTLP_TAKEN,		/* all but the items that the answer says were rejected */
	OTLP_AGAIN,		/* later: nobody there, too busy, or no answer */
	OTLP_REFUSED,		/* once for all: the next try would end the same */
};

struct otlp_answer {
	enum otlp_outcome outcome;
	int error;		/* a negative errno; 0: all is well */
	uint64_t wait_ns;	/* before the next try, as it says; 0: it does not say */
	uint64_t rejected;	/* items that it did not take of what it has taken */
	char why[256];		/* the reason, as people read it; "": none */
};

struct otlp_body {
	char *data;		/* malloc'ed */
	size_t bytes;
	bool gzip;
};

struct otlp_post;

/* Loads libcurl.  0 or a negative errno; `why` says more.  `config` lasts as long. */
int otlp_post_new(struct otlp_post **pp, const struct otlp_config *config, char why[256]);
void otlp_post_free(struct otlp_post *p);

/* Compress a body in place, if that is configured.  What cannot be stays as it is. */
void otlp_post_pack(const struct otlp_post *p, struct otlp_body *body);

/*
 * Send it.  `rejected` is the member of the answer that counts what
 * was not taken.  Asks `stop` several times a second, and gives up when it says so.
 */
void otlp_post_send(struct otlp_post *p, const char *url, const struct otlp_body *body,
		    const char *rejected, bool stop(void *arg), void *arg,
		    struct otlp_answer *answer);

/* An answer of that status and text, which may lie: all that is decided from it. */
void otlp_answer_read(struct otlp_answer *answer, long status, const char *text, size_t bytes,
		      const char *rejected);

/* The time before the next try after `tries` of them, without what a collector says. */
uint64_t otlp_post_wait_ns(unsigned tries, unsigned *seed);

#endif
