/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SERVE_HTTP_H
#define NCCLINSPD_SERVE_HTTP_H

/*
 * Requests of HTTP/1.0 and 1.1, as far as a server of small answers needs them (RFC 9112):
 * bytes in, fields or a refusal out.  No socket, no clock, no allocation.
 *
 * Strict where two readers could differ: no blank before a colon, no folded line, one
 * length.  A bare line feed ends a line, as the standard allows.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HTTP_LINE_BYTES	4096	/* the first line of a request */
#define HTTP_HEAD_BYTES	32768	/* the first line with all header fields */

/* Texts lie in the bytes that were read. */
struct http_request {
	const char *method;
	char *path;		/* decoded */
	char *query;		/* the text behind the '?', as it was sent; NULL: none */
	const char *accept;	/* NULL: not given */
	uint64_t body_bytes;	/* announced; 0: none, or in chunks */
	bool has_length, chunked;
	bool expects;		/* the body comes after a 100 Continue */
	bool is_1_0;
	bool closes;		/* no other request follows */
};

/* Why a request is none, for the client. */
struct http_refusal {
	unsigned status;
	const char *code;
	const char *message;
};

/*
 * Read the head of a request out of `text`, which is changed where it is one.  Returns its
 * bytes; 0: more are needed; -1: *why (static texts) says what is wrong.
 */
ssize_t http_read_head(char *text, size_t bytes, struct http_request *r,
		       struct http_refusal *why);

/* The body of a request, on its way. */
struct http_body {
	enum { HTTP_BODY_DONE, HTTP_BODY_PLAIN, HTTP_BODY_SIZE, HTTP_BODY_NOTE, HTTP_BODY_CHUNK,
	       HTTP_BODY_CHUNK_END, HTTP_BODY_TRAILER } at;
	uint64_t left;		/* bytes of what is announced, or of the chunk */
	uint32_t line_bytes;	/* length so far of a line between chunks */
};

void http_body_begin(struct http_body *b, const struct http_request *r);

/*
 * Take of `text` what belongs to the body: what it carries lies at the front then, *carried
 * bytes.  Returns how many were taken, all of them unless the body is done; -1: as above.
 */
ssize_t http_body_take(struct http_body *b, char *text, size_t bytes, size_t *carried,
		       struct http_refusal *why);

/*
 * The next "name=value" of a query, decoded; *rest goes on behind it.  0; 1: there is none;
 * -1: a '%' without two hex digits, or a zero byte.  A name without '=' has the value "".
 */
int http_next_parameter(char **rest, const char **name, const char **value);

/* "Not Found" */
const char *http_reason(unsigned status);

#endif
