/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request's bytes, judged.  Here and not in a library, so that whatever is wrong gets the
 * documented answer, and so that it can be fuzzed as fast as it runs.
 */
#include "ncclinspd/serve/http.h"

#include <string.h>
#include <strings.h>

#include "util/text.h"

#define BODY_LINE_BYTES	4096	/* one line between chunks; all lines behind the last */

static const struct http_refusal malformed = {
	400, "bad_request", "this is not an HTTP request",
};

static int refusal_set(struct http_refusal *why, unsigned status, const char *code,
		       const char *message)
{
	*why = (struct http_refusal){ status, code, message };
	return -1;
}

static int refusal_set_malformed(struct http_refusal *why)
{
	*why = malformed;
	return -1;
}

/* ---- characters -------------------------------------------------------------------- */

static bool char_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A method and the name of a header field consist of these characters. */
static bool text_is_token(const char *text)
{
	const char *at = text;

	while (char_is_digit(*at) || ((*at | 32) >= 'a' && (*at | 32) <= 'z') ||
	       (*at && strchr("!#$%&'*+-.^_`|~", *at)))
		at++;
	return at > text && !*at;
}

/* All but control characters; of those a tab. */
static bool text_is_value(const char *text)
{
	for (; *text; text++)
		if (((unsigned char)*text < 32 && *text != '\t') || *text == 127)
			return false;
	return true;
}

/* Undo "%41", in place.  Returns the length; -1: a '%' without two hex digits, or a zero byte. */
static ssize_t http_decode(char *text, bool plus_is_blank)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (*from == '%') {
			int high = text_hex_digit(from[1]);
			int low = high < 0 ? -1 : text_hex_digit(from[2]);

			if (low < 0 || !(high | low))
				return -1;
			*to++ = (char)(high << 4 | low);
			from += 2;
		} else {
			*to++ = *from == '+' && plus_is_blank ? ' ' : *from;
		}
	}
	*to = '\0';
	return to - text;
}

int http_next_parameter(char **rest, const char **name, const char **value)
{
	char *text = *rest, *equals;

	if (!text || !*text)
		return 1;
	*rest = strchr(text, '&');
	if (*rest)
		*(*rest)++ = '\0';
	equals = strchr(text, '=');
	if (equals)
		*equals++ = '\0';
	*name = text;
	*value = equals ? equals : "";
	return http_decode(text, true) < 0 || (equals && http_decode(equals, true) < 0) ? -1 : 0;
}

/* ---- the first line ---------------------------------------------------------------- */

/* " HTTP/1.1" behind the target: cut off. */
static int request_read_version(struct http_request *r, char *line, struct http_refusal *why)
{
	char *version = strrchr(line, ' ');

	if (!version || strncmp(version + 1, "HTTP/", 5) || strlen(version + 1) != 8 ||
	    !char_is_digit(version[6]) || version[7] != '.' || !char_is_digit(version[8]))
		return refusal_set_malformed(why);
	if (version[6] != '1')
		return refusal_set(why, 505, "version", "only HTTP/1.0 and HTTP/1.1 are supported");
	r->is_1_0 = version[8] == '0';
	*version = '\0';
	return 0;
}

static int request_read_line(struct http_request *r, char *line, struct http_refusal *why)
{
	char *target = strchr(line, ' ');

	if (!target || request_read_version(r, target, why) < 0)
		return target ? -1 : refusal_set_malformed(why);
	*target++ = '\0';
	if (!text_is_token(line) || !*target || strchr(target, ' ') || !text_is_value(target))
		return refusal_set_malformed(why);
	r->method = line;
	r->path = target;
	r->query = strchr(target, '?');
	if (r->query)
		*r->query++ = '\0';
	if (http_decode(r->path, false) < 0)
		return refusal_set(why, 400, "bad_request",
				   "the path has a zero byte, or a % without two hex digits");
	return 0;
}

/* ---- header fields ----------------------------------------------------------------- */

static int request_read_length(struct http_request *r, const char *value, struct http_refusal *why)
{
	uint64_t bytes = 0;
	const char *at = value;

	for (; char_is_digit(*at) && bytes < UINT64_MAX / 16; at++)
		bytes = bytes * 10 + (uint64_t)(*at - '0');
	if (*at || at == value || (r->has_length && r->body_bytes != bytes))
		return refusal_set(why, 400, "bad_request",
				   "Content-Length must be a whole number");
	r->has_length = true;
	r->body_bytes = bytes;
	return 0;
}

static int request_read_coding(struct http_request *r, const char *value, struct http_refusal *why)
{
	if (strcasecmp(value, "chunked"))
		return refusal_set(why, 400, "bad_request",
				   "the only Transfer-Encoding supported is chunked");
	r->chunked = true;
	return 0;
}

static int request_read_expect(struct http_request *r, const char *value, struct http_refusal *why)
{
	r->expects = !strcasecmp(value, "100-continue");
	return 0;
}

/* A list; nothing but "close" means something here. */
static int request_read_connection(struct http_request *r, const char *value,
				   struct http_refusal *why)
{
	while (*value) {
		size_t bytes = strcspn(value, ", \t");

		if (bytes == 5 && !strncasecmp(value, "close", 5))
			r->closes = true;
		value += bytes + !!value[bytes];
	}
	return 0;
}

static int request_read_accept(struct http_request *r, const char *value, struct http_refusal *why)
{
	r->accept = value;
	return 0;
}

static const struct {
	const char *name;
	int (*read)(struct http_request *r, const char *value, struct http_refusal *why);
} fields[] = {
	{ "Content-Length", request_read_length },
	{ "Transfer-Encoding", request_read_coding },
	{ "Expect", request_read_expect },
	{ "Connection", request_read_connection },
	{ "Accept", request_read_accept },
};

static int request_read_field(struct http_request *r, char *line, struct http_refusal *why)
{
	char *value = strchr(line, ':');

	if (!value)
		return refusal_set_malformed(why);
	*value++ = '\0';
	if (!text_is_token(line) || !text_is_value(value))
		return refusal_set_malformed(why);
	value = text_trim(value);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (!strcasecmp(fields[i].name, line))
			return fields[i].read(r, value, why);
	return 0;
}

/* ---- the head ---------------------------------------------------------------------- */

/* The place behind the empty line at which the head ends; NULL: not there yet. */
static char *request_find_end(char *text, size_t bytes)
{
	char *at = text, *end = text + bytes;

	while ((at = memchr(at, '\n', (size_t)(end - at)))) {
		at++;
		if (end - at >= 1 && at[0] == '\n')
			return at + 1;
		if (end - at >= 2 && at[0] == '\r' && at[1] == '\n')
			return at + 2;
	}
	return NULL;
}

/* The line at *at, ended by a zero byte; *at behind it. */
static char *request_next_line(char **at)
{
	char *line = *at, *end = strchr(line, '\n');

	*at = end + 1;
	if (end > line && end[-1] == '\r')
		end--;
	*end = '\0';
	return line;
}

static int request_read_lines(char *text, char *end, struct http_request *r,
			      struct http_refusal *why)
{
	char *line;

	if (memchr(text, '\0', (size_t)(end - text)))
		return refusal_set_malformed(why);
	line = request_next_line(&text);
	if (request_read_line(r, line, why) < 0)
		return -1;
	while (*(line = request_next_line(&text)))
		if (request_read_field(r, line, why) < 0)
			return -1;
	if (r->chunked && r->has_length)
		return refusal_set(why, 400, "bad_request",
				   "a body has Content-Length or Transfer-Encoding, not both");
	r->closes |= r->is_1_0;
	return 0;
}

ssize_t http_read_head(char *text, size_t bytes, struct http_request *r,
		       struct http_refusal *why)
{
	size_t empty = 0, line;
	char *first, *end;

	while (empty < bytes && (text[empty] == '\r' || text[empty] == '\n'))
		empty++;
	first = text + empty;
	end = memchr(first, '\n', bytes - empty);
	line = end ? (size_t)(end - first) : bytes - empty;
	end = request_find_end(first, bytes - empty);
	if (line > HTTP_LINE_BYTES)	/* there may be no end of it yet */
		return refusal_set(why, 414, "uri_too_long",
				   "the request line is longer than 4096 bytes");
	if (end ? end - text > HTTP_HEAD_BYTES : bytes >= HTTP_HEAD_BYTES)
		return refusal_set(why, 431, "head_too_large",
				   "the request's header fields are longer than 32768 bytes");
	if (!end)
		return 0;
	*r = (struct http_request){ 0 };
	return request_read_lines(first, end, r, why) < 0 ? -1 : end - text;
}

/* ---- the body ---------------------------------------------------------------------- */

void http_body_begin(struct http_body *b, const struct http_request *r)
{
	*b = (struct http_body){ .left = r->body_bytes };
	if (r->chunked)
		b->at = HTTP_BODY_SIZE;
	else if (r->body_bytes)
		b->at = HTTP_BODY_PLAIN;
}

static int end_size(struct http_body *b)
{
	b->at = b->left ? HTTP_BODY_CHUNK : HTTP_BODY_TRAILER;
	b->line_bytes = 0;
	return 0;
}

/* A byte between the chunks; their lines are told apart by what has come of them. */
static int value_take_between(struct http_body *b, char c)
{
	int digit = text_hex_digit(c);

	if (++b->line_bytes > BODY_LINE_BYTES)
		return -1;
	switch (b->at) {
	case HTTP_BODY_SIZE:
		if (digit >= 0 && b->left >> 32)
			return -1;
		if (digit >= 0)
			b->left = b->left << 4 | (uint64_t)digit;
		else if (b->line_bytes == 1)
			return -1;
		else if (c == '\n')
			return end_size(b);
		else if (strchr("; \t\r", c) && c)
			b->at = HTTP_BODY_NOTE;
		else
			return -1;
		return 0;
	case HTTP_BODY_NOTE:
		return c == '\n' ? end_size(b) : 0;
	case HTTP_BODY_CHUNK_END:
		if (c == '\r' && b->line_bytes == 1)
			return 0;
		b->at = HTTP_BODY_SIZE;
		b->line_bytes = 0;
		return c == '\n' ? 0 : -1;
	default:	/* the trailer: fields that nobody reads, and an empty line */
		if (c == '\n' && !b->left)
			b->at = HTTP_BODY_DONE;
		b->left = c == '\n' ? 0 : b->left + (c != '\r');
		return 0;
	}
}

ssize_t http_body_take(struct http_body *b, char *text, size_t bytes, size_t *carried,
		       struct http_refusal *why)
{
	size_t taken = 0;

	*carried = 0;
	while (taken < bytes && b->at != HTTP_BODY_DONE) {
		size_t part = bytes - taken < b->left ? bytes - taken : (size_t)b->left;

		if (b->at != HTTP_BODY_PLAIN && b->at != HTTP_BODY_CHUNK) {
			if (value_take_between(b, text[taken++]) < 0)
				return refusal_set(why, 400, "bad_request",
						   "the body's chunks are malformed");
			continue;
		}
		memmove(text + *carried, text + taken, part);
		*carried += part;
		taken += part;
		b->left -= part;
		if (!b->left)
			b->at = b->at == HTTP_BODY_PLAIN ? HTTP_BODY_DONE : HTTP_BODY_CHUNK_END;
	}
	return (ssize_t)taken;
}

/* ---- answers ------------------------------------------------------------------------ */

const char *http_reason(unsigned status)
{
	static const struct {
		unsigned status;
		const char *reason;
	} reasons[] = {
		{ 200, "OK" }, { 400, "Bad Request" }, { 403, "Forbidden" }, { 404, "Not Found" },
		{ 405, "Method Not Allowed" }, { 408, "Request Timeout" },
		{ 413, "Content Too Large" }, { 414, "URI Too Long" },
		{ 429, "Too Many Requests" }, { 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" }, { 503, "Service Unavailable" },
		{ 505, "HTTP Version Not Supported" },
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown";
}
