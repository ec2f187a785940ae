/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of requests, byte by byte: what is taken for one, and what is refused. */
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/serve/http.h"
#include "tests/fixture.h"

static const struct {
	const char *text;
	struct http_request is;
	const char *left;	/* behind its head */
} good[] = {
	{ "GET /v1/status HTTP/1.1\r\n\r\n",
	  { .method = "GET", .path = (char *)"/v1/status" }, "" },
	{ "\r\n\nPUT /a%20b?c=d&e HTTP/1.1\nHost: x\n\nGET",
	  { .method = "PUT", .path = (char *)"/a b", .query = (char *)"c=d&e" }, "GET" },
	{ "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	  { .method = "GET", .path = (char *)"/", .is_1_0 = true, .closes = true }, "" },
	{ "GET /? HTTP/1.1\r\nconnection:  x , Close \r\naccept:\ttext/plain \r\n\r\n",
	  { .method = "GET", .path = (char *)"/", .query = (char *)"", .closes = true,
	    .accept = "text/plain" }, "" },
	{ "POST * HTTP/1.1\r\nContent-Length: 007\r\nContent-Length: 7\r\n"
	  "Expect: 100-Continue\r\n\r\n{}",
	  { .method = "POST", .path = (char *)"*", .has_length = true, .body_bytes = 7,
	    .expects = true }, "{}" },
	{ "PUT /%2f HTTP/1.9\r\nTransfer-Encoding: Chunked\r\nX-y: z: z\r\n\r\n",
	  { .method = "PUT", .path = (char *)"//", .chunked = true }, "" },
};

static void text_is(const char *is, const char *wanted)
{
	ck_assert_int_eq(!is, !wanted);
	if (is)
		ck_assert_str_eq(is, wanted);
}

/* In memory of exactly that size, so that a look behind its end is seen. */
static char *copy(const char *text, size_t bytes)
{
	char *mine = malloc(bytes ? bytes : 1);

	memcpy(mine, text, bytes);
	return mine;
}

TEST_LOOP(request_is_read_when_its_head_is_whole, 0, FX_COUNT(good))
{
	size_t bytes = strlen(good[_i].text), head = bytes - strlen(good[_i].left);
	const struct http_request *wanted = &good[_i].is;
	struct http_refusal why;
	struct http_request r;

	for (size_t n = 0; n <= bytes; n++) {
		char *text = copy(good[_i].text, n);

		ck_assert_int_eq(http_read_head(text, n, &r, &why), n < head ? 0 : head);
		if (n >= head) {
			ck_assert_str_eq(r.method, wanted->method);
			ck_assert_str_eq(r.path, wanted->path);
			text_is(r.query, wanted->query);
			text_is(r.accept, wanted->accept);
			ck_assert_uint_eq(r.body_bytes, wanted->body_bytes);
			ck_assert_int_eq(r.has_length, wanted->has_length);
			ck_assert_int_eq(r.chunked, wanted->chunked);
			ck_assert_int_eq(r.expects, wanted->expects);
			ck_assert_int_eq(r.is_1_0, wanted->is_1_0);
			ck_assert_int_eq(r.closes, wanted->closes);
		}
		free(text);
	}
}

#define BAD(status, text)	{ text, sizeof(text) - 1, status }

static const struct {
	const char *text;
	size_t bytes;
	unsigned status;
} bad[] = {
	BAD(400, "GET\r\n\r\n"),
	BAD(400, "GET /\r\n\r\n"),
	BAD(400, "GET  HTTP/1.1\r\n\r\n"),
	BAD(400, "GET / / HTTP/1.1\r\n\r\n"),
	BAD(400, " GET / HTTP/1.1\r\n\r\n"),
	BAD(400, "G@T / HTTP/1.1\r\n\r\n"),
	BAD(400, "GET /\x01 HTTP/1.1\r\n\r\n"),
	BAD(400, "GET /\x7f HTTP/1.1\r\n\r\n"),
	BAD(400, "GET /\0 HTTP/1.1\r\n\r\n"),
	BAD(400, "GET /%0 HTTP/1.1\r\n\r\n"),
	BAD(400, "GET /%g0 HTTP/1.1\r\n\r\n"),
	BAD(400, "GET /%00 HTTP/1.1\r\n\r\n"),
	BAD(400, "GET / HTTP/11\r\n\r\n"),
	BAD(400, "GET / HTTP/1.x\r\n\r\n"),
	BAD(400, "GET / http/1.1\r\n\r\n"),
	BAD(505, "GET / HTTP/2.0\r\n\r\n"),
	BAD(505, "PRI * HTTP/2.0\r\n\r\n"),
	BAD(400, "GET / HTTP/1.1\r\nX\r\n\r\n"),
	BAD(400, "GET / HTTP/1.1\r\nX : y\r\n\r\n"),
	BAD(400, "GET / HTTP/1.1\r\nX: y\r\n folded\r\n\r\n"),
	BAD(400, "GET / HTTP/1.1\r\n: y\r\n\r\n"),
	BAD(400, "GET / HTTP/1.1\r\nX: y\rz\r\n\r\n"),
	BAD(400, "GET / HTTP/1.1\r\nX: \0\r\n\r\n"),
	BAD(400, "GET / HTTP/1.1\r\nContent-Length:\r\n\r\n"),
	BAD(400, "GET / HTTP/1.1\r\nContent-Length: +1\r\n\r\n"),
	BAD(400, "GET / HTTP/1.1\r\nContent-Length: 1 1\r\n\r\n"),
	BAD(400, "GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"),
	BAD(400, "GET / HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n"),
	BAD(400, "GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
	BAD(400, "GET / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
};

TEST_LOOP(what_two_readers_could_read_differently_is_refused, 0, FX_COUNT(bad))
{
	char *text = copy(bad[_i].text, bad[_i].bytes);
	struct http_refusal why;
	struct http_request r;

	ck_assert_int_eq(http_read_head(text, bad[_i].bytes, &r, &why), -1);
	ck_assert_uint_eq(why.status, bad[_i].status);
	ck_assert_str_ne(http_reason(why.status), "Unknown");
	free(text);
}

TEST(what_is_too_long_is_refused_before_it_ends)
{
	static char text[HTTP_HEAD_BYTES + 8];
	struct http_refusal why;
	struct http_request r;

	memset(text, 'a', sizeof(text));
	ck_assert_int_eq(http_read_head(text, HTTP_LINE_BYTES, &r, &why), 0);
	ck_assert_int_eq(http_read_head(text, HTTP_LINE_BYTES + 1, &r, &why), -1);
	ck_assert_uint_eq(why.status, 414);
	text[10] = '\n';
	ck_assert_int_eq(http_read_head(text, HTTP_HEAD_BYTES - 1, &r, &why), 0);
	ck_assert_int_eq(http_read_head(text, HTTP_HEAD_BYTES, &r, &why), -1);
	ck_assert_uint_eq(why.status, 431);
	memcpy(text, "GET / HTTP/1.1\nX:", 17);
	memcpy(text + sizeof(text) - 2, "\n\n", 2);	/* it has an end, and is too long */
	ck_assert_int_eq(http_read_head(text, sizeof(text), &r, &why), -1);
	ck_assert_uint_eq(why.status, 431);
	memcpy(text + HTTP_HEAD_BYTES - 2, "\n\n", 2);
	ck_assert_int_eq(http_read_head(text, sizeof(text), &r, &why), HTTP_HEAD_BYTES);
}

TEST(what_is_too_long_is_refused_where_all_of_it_comes_at_once)
{
	static const char first[] = "GET / HTTP/1.1\r\nX: ";
	static char text[HTTP_HEAD_BYTES + 1];
	struct http_refusal why;
	struct http_request r;

	for (size_t bytes = HTTP_HEAD_BYTES; bytes <= sizeof(text); bytes++) {
		memset(text, 'a', sizeof(text));
		memcpy(text, first, strlen(first));
		memcpy(text + bytes - 4, "\r\n\r\n", 4);
		ck_assert_int_eq(http_read_head(text, bytes, &r, &why),
				 bytes > HTTP_HEAD_BYTES ? -1 : (ssize_t)bytes);
	}
	ck_assert_uint_eq(why.status, 431);
}

static const struct {
	const char *text, *carries;
	bool is_bad;
} chunks[] = {
	{ "0\r\n\r\n", "", false },
	{ "3\r\nabc\r\n0\r\n\r\n", "abc", false },
	{ "3\nabc\n00\n\n", "abc", false },
	{ "1;x=\"y\"\r\na\r\n02 \r\nbc\r\nA\r\n0123456789\r\n0\r\nX: y\r\nZ:\r\n\r\n",
	  "abc0123456789", false },
	{ "\r\n", "", true },
	{ "x\r\n", "", true },
	{ "1x\r\n", "", true },
	{ "1\r\nab", "a", true },
	{ "1\r\na\r\r\n", "a", true },
	{ "123456789a\r\n", "", true },
	{ "-1\r\n", "", true },
};

/* In pieces of `piece` bytes.  Returns what it carries; *left: behind it, -1: refused. */
static char *take(const char *text, size_t piece, ssize_t *left)
{
	const struct http_request r = { .chunked = true };
	size_t bytes = strlen(text), at = 0, used = 0;
	char *all = calloc(1, bytes + 1);
	struct http_refusal why;
	struct http_body b;

	http_body_begin(&b, &r);
	*left = 0;
	while (at < bytes && b.at != HTTP_BODY_DONE && *left == 0) {
		size_t n = bytes - at < piece ? bytes - at : piece, carried;
		char *part = copy(text + at, n);
		ssize_t taken = http_body_take(&b, part, n, &carried, &why);

		if (taken < 0)
			*left = -1;
		else
			ck_assert(taken == (ssize_t)n || b.at == HTTP_BODY_DONE);
		memcpy(all + used, part, carried);
		used += carried;
		at += taken < 0 ? 0 : (size_t)taken;
		free(part);
	}
	if (*left == 0)
		*left = (ssize_t)(bytes - at);
	ck_assert(*left < 0 || b.at == HTTP_BODY_DONE);
	return all;
}

TEST_LOOP(chunks_are_put_together_however_they_arrive, 0, FX_COUNT(chunks))
{
	for (size_t piece = 1; piece < 40; piece++) {
		ssize_t left;
		char *carried = take(chunks[_i].text, piece, &left);

		ck_assert_int_eq(left < 0, chunks[_i].is_bad);
		if (!chunks[_i].is_bad) {
			ck_assert_str_eq(carried, chunks[_i].carries);
			ck_assert_int_eq(left, 0);
		}
		free(carried);
	}
}

TEST(endless_lines_between_chunks_are_refused)
{
	static const char *const begins[] = { "1;", "0\r\n" };

	for (int i = 0; i < FX_COUNT(begins); i++) {
		char text[8192];
		ssize_t left;

		memset(text, 'a', sizeof(text) - 1);
		text[sizeof(text) - 1] = '\0';
		memcpy(text, begins[i], strlen(begins[i]));
		free(take(text, 1000, &left));
		ck_assert_int_eq(left, -1);
	}
}

TEST(body_of_a_length_ends_there)
{
	const struct http_request r = { .has_length = true, .body_bytes = 5 };
	char text[] = "hello world";
	struct http_refusal why;
	struct http_body b;
	size_t carried;

	http_body_begin(&b, &r);
	ck_assert_int_eq(http_body_take(&b, text, 2, &carried, &why), 2);
	ck_assert_uint_eq(carried, 2);
	ck_assert_int_eq(b.at, HTTP_BODY_PLAIN);
	ck_assert_int_eq(http_body_take(&b, text + 2, 9, &carried, &why), 3);
	ck_assert_uint_eq(carried, 3);
	ck_assert_int_eq(b.at, HTTP_BODY_DONE);
	http_body_begin(&b, &(struct http_request){ 0 });
	ck_assert_int_eq(b.at, HTTP_BODY_DONE);
}

TEST(query_is_taken_apart_and_decoded)
{
	static const char *const parts[][2] = {
		{ "a", "1" }, { "b c", "= " }, { "", "" }, { "d", "" }, { "", "x" },
		{ "\xff", "&" },
	};
	char text[] = "a=1&b+c==%20&&d&=x&%ff=%26&";
	const char *name, *value;
	char *rest = text;

	for (int i = 0; i < FX_COUNT(parts); i++) {
		ck_assert_int_eq(http_next_parameter(&rest, &name, &value), 0);
		ck_assert_str_eq(name, parts[i][0]);
		ck_assert_str_eq(value, parts[i][1]);
	}
	ck_assert_int_eq(http_next_parameter(&rest, &name, &value), 1);
	rest = NULL;
	ck_assert_int_eq(http_next_parameter(&rest, &name, &value), 1);
}

TEST(zero_byte_and_half_an_escape_are_refused)
{
	static const char *const texts[] = { "a=%00", "%00", "a%", "a=%1", "a=%x1", "a=%1x" };

	for (int i = 0; i < FX_COUNT(texts); i++) {
		char *text = strdup(texts[i]), *rest = text;
		const char *name, *value;

		ck_assert_int_eq(http_next_parameter(&rest, &name, &value), -1);
		free(text);
	}
}

int main(void)
{
	return fx_run(NULL, NULL);
}
