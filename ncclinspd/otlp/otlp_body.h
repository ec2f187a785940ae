/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_OTLP_OTLP_BODY_H
#define NCCLINSPD_OTLP_OTLP_BODY_H

/*
 * Texts of the daemon as the body of a request, in OTLP's JSON: ids as hex, 64-bit integers as
 * strings, enumerators as numbers.  Attributes are fields of docs/api.md and labels of
 * ncclinsp-metrics(7): nothing is named, or judged, here.
 */

#include <jansson.h>

#include "ncclinspd/otlp/otlp.h"
#include "util/json.h"

#define OTLP_BODY_BYTES	(1u << 20)	/* a body that has so much is closed */

/* A text on its way into bodies: more than one where it is long. */
struct otlp_text {
	const char *text;	/* ends in a line's end */
	size_t bytes;
	uint64_t real_ns;	/* the moment that it is of */
	size_t at;		/* the part before it is in a body */
	size_t family;		/* metrics: where the family that `at` is in begins */
};

/*
 * Write what follows t->at until the body is full, or the text at its end, where t->at is then.
 * Returns the number of records, spans or data points.
 */
typedef uint32_t otlp_write_fn(struct json *j, struct otlp_text *t, const struct otlp_self *self);
otlp_write_fn otlp_write_log, otlp_write_spans, otlp_write_points;

/* The form of a signal's requests and answers. */
struct otlp_form {
	const char *path;	/* the end of the URL */
	const char *resources, *scopes, *items;	/* the arrays within each other */
	const char *rejected;	/* the member of an answer that counts what was not taken */
	otlp_write_fn *write;
};
extern const struct otlp_form otlp_forms[OTLP_SIGNAL_END];

/* Begin a body, up to the array of items; and end it. */
void otlp_body_begin(struct json *j, const struct otlp_form *form, const struct otlp_self *self);
void otlp_body_end(struct json *j);

/* A member of 64 bits, which is a string. */
void otlp_put_u64(struct json *j, const char *key, uint64_t value);

/* A member of an array of attributes. */
void otlp_put_attribute(struct json *j, const char *key, const char *value);

/* The members of a row of the API, but for the moments on CLOCK_MONOTONIC and those named. */
void otlp_put_row(struct json *j, const json_t *row, const char *const *but);

/* A time of the API as ns since 1970; 0: it is none. */
uint64_t otlp_time(const json_t *row, const char *name);

/*
 * The members traceId and spanId, the same whichever daemon tells of the operation.  Nothing is
 * written of one without a communicator and a sequence number, unless it has a token.
 */
void otlp_put_ids(struct json *j, const json_t *comm_id, const json_t *operation);

#endif
