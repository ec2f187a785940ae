/* SPDX-License-Identifier: Apache-2.0 */
/* Limits and errors: the server against clients that mean no good. */
#include "tests/fixture_serve.h"

static void setup(void)
{
	fx_serve_open(NULL);
}

static void check_error(const char *answer, int status, const char *code)
{
	json_t *a;

	ck_assert_msg(fx_status(answer) == status, "not %d: %.300s", status, answer);
	a = json_loads(fx_body(answer), 0, NULL);
	ck_assert_msg(a, "%s", answer);
	ck_assert_str_eq(json_string_value(fx_at(a, "error.code")), code);
	ck_assert(json_is_string(fx_at(a, "error.message")));
	json_decref(a);
}

/* The answer to bytes sent as they are. */
static char *exchange(const char *text, size_t bytes, bool *closed)
{
	int fd = fx_connect();
	char *answer;

	fx_send(fd, text, bytes);
	answer = fx_receive(fd, closed);
	close(fd);
	fx_pump();
	return answer;
}

static const struct {
	const char *target, *part;
} bad_requests[] = {
	{ "/v1/status?x=1", "unknown parameter 'x'; allowed here: none" },
	{ "/v1/status?limit=1", "unknown parameter 'limit'" },
	{ "/v1/collectives?by=comm",
	  "allowed here: comm, nranks, rank, func, pid, since_mono_ns, limit" },
	{ "/v1/collectives?limit=0", "a whole number from 1 to 10000" },
	{ "/v1/collectives?limit=10001", "bad value '10001' of 'limit'" },
	{ "/v1/collectives?limit=", "bad value '' of 'limit'" },
	{ "/v1/collectives?limit", "bad value '' of 'limit'" },
	{ "/v1/collectives?limit=1x", "bad value '1x'" },
	{ "/v1/collectives?limit=-1", "bad value '-1'" },
	{ "/v1/collectives?limit=%201", "bad value" },
	{ "/v1/collectives?limit=1&limit=2", "given twice" },
	{ "/v1/collectives?limit=1%00", "zero byte" },
	{ "/v1/collectives?rank=4294967296", "a rank" },
	{ "/v1/collectives?rank=0x1", "a rank" },
	{ "/v1/collectives?pid=0", "ids of up to 32 processes" },
	{ "/v1/collectives?pid=1,", "bad value '1,'" },
	{ "/v1/collectives?pid=1,2,99999999999999999999", "ids of up to 32 processes" },
	{ "/v1/collectives?nranks=0", "a number of ranks" },
	{ "/v1/collectives?comm=", "the id of a communicator" },
	{ "/v1/collectives?since_mono_ns=18446744073709551616", "CLOCK_MONOTONIC" },
	{ "/v1/peers?window=10s", "a list of 60s, all" },
	{ "/v1/peers?direction=up", "send or recv" },
	{ "/v1/peers?peer=-1", "a rank" },
	{ "/v1/peers?channels=one", "each or together" },
	{ "/v1/peers?func=AllReduce", "nranks, rank, pid, window, peer, direction, channels" },
	{ "/v1/summary?window=5s", "1s, 10s, 60s, all" },
	{ "/v1/summary?window=1s,", "1s, 10s, 60s, all" },
	{ "/v1/summary?window=,1s", "1s, 10s, 60s, all" },
	{ "/v1/summary?by=colour", "comm, rank, func, algo, proto, size, peer, tag, phase" },
	{ "/v1/inflight?older_than_ns=1s", "an age in ns" },
	{ "/v1/stream?kinds=all", "collective, process, finding" },
};

TEST_LOOP(a_bad_parameter_is_refused_with_what_is_allowed, 0, FX_COUNT(bad_requests))
{
	json_t *a = fx_get(bad_requests[_i].target, 400);
	const char *message = json_string_value(fx_at(a, "error.message"));

	ck_assert_str_eq(json_string_value(fx_at(a, "error.code")), "bad_request");
	ck_assert_msg(strstr(message, bad_requests[_i].part), "%s: %s", bad_requests[_i].target,
		      message);
	json_decref(a);
}

TEST(what_there_is_not_is_not_found)
{
	static const char *const targets[] = { "/", "/v1", "/v1/peer", "/v1/nothing",
					       "/metrics/", "/v1/status/", "//v1/status",
					       "/v1/../v1/status", "/v2/status" };

	for (int i = 0; i < FX_COUNT(targets); i++) {
		char *answer = fx_ask_text("GET", targets[i]);

		check_error(answer, 404, "not_found");
		free(answer);
	}
}

TEST(another_method_is_refused_with_those_allowed)
{
	static const char *const methods[] = { "POST", "PUT", "DELETE", "OPTIONS", "BREW" };

	for (int i = 0; i < FX_COUNT(methods); i++) {
		char *answer = fx_ask_text(methods[i], "/v1/status");

		check_error(answer, 405, "method_not_allowed");
		ck_assert(strstr(answer, "Allow: GET, HEAD\r\n"));
		free(answer);
	}
}

static const struct {
	const char *text;
	int status;
	const char *code;
} no_requests[] = {
	{ "GET\r\n\r\n", 400, "bad_request" },
	{ "GET /v1/status\r\n\r\n", 400, "bad_request" },
	{ "\xff\xfezz\r\n\r\n", 400, "bad_request" },
	{ "GET /v1/status HTTP/9.9\r\n\r\n", 505, "version" },
	{ "GET /v1/status HTTP/1.1\r\nno colon\r\n\r\n", 400, "bad_request" },
	{ "GET /v1/status HTTP/1.1\r\n: no name\r\n\r\n", 400, "bad_request" },
	{ "GET /v1/status HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400, "bad_request" },
	{ "GET /v1/status HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400, "bad_request" },
	{ "GET /v1/status HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 400, "bad_request" },
	{ "PUT /v1/level HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400,
	  "bad_request" },
	{ "GET /v1/status%00 HTTP/1.1\r\n\r\n", 400, "bad_request" },
	{ "GET /v1/exemplars/%00 HTTP/1.1\r\n\r\n", 400, "bad_request" },
	{ "GET /v1/status%zz HTTP/1.1\r\n\r\n", 400, "bad_request" },
};

TEST_LOOP(what_is_no_request_is_refused_as_everything_else, 0, FX_COUNT(no_requests))
{
	bool closed;
	char *answer = exchange(no_requests[_i].text, strlen(no_requests[_i].text), &closed);

	check_error(answer, no_requests[_i].status, no_requests[_i].code);
	ck_assert(strstr(answer, "Content-Type: application/json\r\n"));
	ck_assert(closed);
	free(answer);
}

TEST(header_fields_beyond_32_kib_are_refused_and_taken)
{
	size_t bytes = 1 << 18;
	char *text = malloc(bytes), *answer;

	memset(text, 'a', bytes);
	memcpy(text, "GET /v1/status HTTP/1.1\r\nX: ", 28);
	answer = exchange(text, bytes, NULL);
	check_error(answer, 431, "head_too_large");
	free(answer);
	free(text);
}

TEST(head_gives_the_headers_alone)
{
	char *answer = fx_ask_text("HEAD", "/v1/status");

	ck_assert_int_eq(fx_status(answer), 200);
	ck_assert(strstr(answer, "Content-Type: application/json"));
	ck_assert(!strstr(answer, "Content-Length: 0"));
	ck_assert_str_eq(fx_body(answer), "");
	free(answer);

	answer = fx_ask_text("HEAD", "/v1/stream");
	ck_assert_int_eq(fx_status(answer), 200);
	ck_assert_str_eq(fx_body(answer), "");
	free(answer);
}

TEST(one_connection_carries_many_requests)
{
	static const char request[] = "GET /v1/processes HTTP/1.1\r\nHost: x\r\n\r\n";
	int fd = fx_connect();

	for (int i = 0; i < 10; i++) {
		bool closed;
		char *answer;

		fx_send(fd, request, sizeof(request) - 1);
		answer = fx_receive(fd, &closed);
		ck_assert_str_eq(fx_body(answer), "{\"processes\":[],\"abi_major\":2,"
				 "\"foreign\":[]}\n");
		ck_assert(!closed);
		free(answer);
		fx_pass(4 * FX_SECOND);
	}
	close(fd);
}

static int turns;

static void count_turn(void)
{
	turns++;
}

/* What one has sent all at once, the others do not wait for. */
TEST(requests_behind_each_other_take_a_turn_each)
{
	static const char request[] = "GET /v1/processes HTTP/1.1\r\n\r\n";
	char all[20 * sizeof(request)] = "";
	int fd = fx_connect();
	char *answer;

	for (int i = 0; i < 20; i++)
		strcat(all, request);
	turns = 0;
	ck_assert_int_gt(send(fd, all, strlen(all), 0), 0);
	fx.turn = count_turn;
	answer = fx_finish(fd);
	fx.turn = NULL;
	ck_assert_int_ge(turns, 3 * 20);	/* to work, at the answer, and to rest */
	turns = 0;
	for (const char *at = answer; (at = strstr(at, "HTTP/1.1 200 OK")); at++)
		turns++;
	ck_assert_int_eq(turns, 20);
	free(answer);
}

/* As Prometheus asks over TCP, where all are one. */
TEST(slow_ones_keep_nobody_from_the_metrics)
{
	int fd[16];
	char *answer;

	fx_serve_close();
	fx_serve_open(&(struct serve_config){ .metrics_only = true, .connections = 16 });
	for (int i = 0; i < 16; i++) {
		fd[i] = fx_connect();
		fx_send(fd[i], "GET", 3);
	}
	fx_pass(FX_SECOND);
	answer = fx_ask_text("GET", "/metrics");
	ck_assert_int_eq(fx_status(answer), 200);
	free(answer);
	for (int i = 0; i < 16; i++)
		close(fd[i]);
}

TEST(a_long_request_line_is_refused)
{
	static const size_t lengths[] = { 4096 - 200, 4200, 9000 };
	char target[9001];

	for (size_t i = 0; i < 3; i++) {
		char *text, *answer;
		int bytes;

		memset(target, 'a', lengths[i]);
		memcpy(target, "/v1/status?", 11);
		target[lengths[i]] = '\0';
		bytes = asprintf(&text, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", target);
		answer = exchange(text, (size_t)bytes, NULL);
		if (lengths[i] < 4096)
			check_error(answer, 400, "bad_request");
		else
			check_error(answer, 414, "uri_too_long");
		free(answer);
		free(text);
	}
}

TEST(an_endless_request_line_ends_in_a_refusal)
{
	size_t bytes = 1 << 20;
	char *text = malloc(bytes), *answer;
	bool closed;

	memset(text, 'a', bytes);
	memcpy(text, "GET /", 5);
	answer = exchange(text, bytes, &closed);
	ck_assert_int_eq(fx_status(answer) / 100, 4);
	ck_assert(closed);
	free(answer);
	free(text);
}

TEST(a_body_that_is_not_sent_yet_is_refused_at_once)
{
	static const char *const announced[] = {
		"GET /v1/status HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n",
		"GET /v1/status HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
		"Content-Length: 65537\r\n\r\n",
	};
	bool closed;

	for (size_t i = 0; i < FX_COUNT(announced); i++) {
		char *answer = exchange(announced[i], strlen(announced[i]), &closed);

		check_error(answer, 413, "body_too_large");
		ck_assert(closed);
		free(answer);
	}
}

/* All of it can be sent: who is cut off in the middle may never read the answer. */
TEST(a_body_above_64_kib_is_taken_and_refused)
{
	const size_t bytes = 1 << 20;
	char *text = malloc(bytes + 200), *answer;
	size_t head = (size_t)sprintf(text, "GET /v1/status HTTP/1.1\r\nHost: x\r\n"
				      "Content-Length: %zu\r\n\r\n", bytes), sent = 0;
	int fd = fx_connect();

	memset(text + head, 'b', bytes);
	while (sent < head + bytes) {
		ssize_t n = send(fd, text + sent, head + bytes - sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		ck_assert(n >= 0 || errno == EAGAIN);
		sent += n > 0 ? (size_t)n : 0;
		fx_pump();
	}
	answer = fx_receive(fd, NULL);
	check_error(answer, 413, "body_too_large");
	free(answer);
	free(text);
	close(fd);
}

TEST(a_body_in_pieces_above_64_kib_is_refused)
{
	static const char head[] =
		"GET /v1/status HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
	int fd = fx_connect();
	char piece[4096 + 8], *answer;

	fx_send(fd, head, sizeof(head) - 1);
	memcpy(piece, "1000\r\n", 6);
	memset(piece + 6, 'b', 4096);
	memcpy(piece + 6 + 4096, "\r\n", 2);
	for (int i = 0; i < 17; i++)
		fx_send(fd, piece, sizeof(piece));
	fx_send(fd, "0\r\n\r\n", 5);
	answer = fx_receive(fd, NULL);
	check_error(answer, 413, "body_too_large");
	free(answer);
	close(fd);
}

TEST(a_body_within_the_limit_is_ignored)
{
	size_t bytes = 65536;
	char *text = malloc(bytes + 200), *answer;
	int head = sprintf(text, "GET /v1/processes HTTP/1.1\r\nHost: x\r\n"
			   "Content-Length: 65536\r\n\r\n");

	memset(text + head, 'b', bytes);
	answer = exchange(text, bytes + (size_t)head, NULL);
	ck_assert_int_eq(fx_status(answer), 200);
	free(answer);
	free(text);
}

TEST(a_request_has_five_seconds_however_it_trickles_in)
{
	static const char request[] = "GET /v1/status HTTP/1.1\r\nHost: x\r\nX: yyyyyyyyyyyyyyyyyy";
	int fd = fx_connect();
	bool closed = false;
	char *answer = NULL;
	unsigned sent = 0;

	for (; !closed && sent < sizeof(request) - 1; sent++) {
		free(answer);
		fx_send(fd, request + sent, 1);
		fx_pass(FX_SECOND / 4);
		answer = fx_receive(fd, &closed);
	}
	ck_assert_uint_eq(sent, 20);	/* a quarter of a second each */
	check_error(answer, 408, "timeout");
	free(answer);
	close(fd);
}

TEST(a_connection_that_says_nothing_goes_after_five_seconds)
{
	int fd = fx_connect();
	bool closed;
	char *answer;

	ck_assert_uint_eq(serve_timeout_ns(fx.serve, fx.now_ns), 5 * FX_SECOND);
	fx_pass(5 * FX_SECOND - 1);
	answer = fx_receive(fd, &closed);
	ck_assert(!closed);
	free(answer);
	fx_pass(1);
	answer = fx_receive(fd, &closed);
	ck_assert(closed);
	free(answer);
	close(fd);
	fx_pump();
	ck_assert_uint_eq(serve_timeout_ns(fx.serve, fx.now_ns), UINT64_MAX);
}

/* By a day, in both directions: what has passed is what the other clock says. */
TEST(wall_clock_that_is_set_ends_no_request_and_keeps_none)
{
	static const int64_t days[] = { 1, -1, 0 };
	static const char begin[] = "GET /v1/status HTTP/1.1\r\n", end[] = "\r\n";

	for (size_t i = 0; i < FX_COUNT(days); i++) {
		int fd = fx_connect();
		char *answer;

		fx_send(fd, begin, sizeof(begin) - 1);
		fx.set_ns = days[i] * 86400 * (int64_t)FX_SECOND;
		fx_pass(4 * FX_SECOND);
		fx_send(fd, end, sizeof(end) - 1);
		answer = fx_finish(fd);
		ck_assert_int_eq(fx_status(answer), 200);
		ck_assert_ptr_nonnull(strstr(answer, days[i] > 0 ? "Date: Wed, 15 Nov 2023" :
					     days[i] < 0 ? "Date: Mon, 13 Nov 2023" :
							   "Date: Tue, 14 Nov 2023"));
		free(answer);
		fd = fx_connect();
		fx_send(fd, begin, sizeof(begin) - 1);
		fx_pass(5 * FX_SECOND);
		answer = fx_finish(fd);
		check_error(answer, 408, "timeout");
		free(answer);
	}
}

TEST(a_client_that_does_not_take_its_answer_is_let_go)
{
	static const char request[] = "GET /v1/collectives?limit=10000 HTTP/1.1\r\nHost: x\r\n\r\n";
	struct op op = { .rank = 1, .func = "AllReduce", .is_p2p = false };
	int fd = fx_connect();
	bool closed;

	for (int i = 0; i < 10000; i++)
		oplog_add(fx.oplog, &op);
	fx_send(fd, request, sizeof(request) - 1);
	fx_pass(31 * FX_SECOND);
	free(fx_receive(fd, &closed));
	ck_assert(closed);
	close(fd);
}

TEST(connection_65_is_told_so_and_the_others_are_served)
{
	static const char request[] = "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n";
	int fd[65];

	if (!fx_descriptors(256))
		return;
	for (int i = 0; i < 65; i++)
		fd[i] = fx_connect();
	for (int i = 0; i < 65; i++) {
		bool closed;
		char *answer;

		fx_send(fd[i], request, sizeof(request) - 1);
		answer = fx_receive(fd[i], &closed);
		if (i < 64)
			ck_assert_int_eq(fx_status(answer), 200);
		else
			check_error(answer, 429, "too_many_connections");
		ck_assert_int_eq(closed, i == 64);
		free(answer);
	}
	for (int i = 0; i < 65; i++)
		close(fd[i]);
	fx_pump();
	json_decref(fx_get("/v1/status", 200));
}

TEST(garbage_never_hurts)
{
	static const char *const words[] = {
		"GET ", "HEAD ", "POST ", "/v1/status", "/v1/collectives?limit=5", "/v1/stream",
		" ",
		" HTTP/1.1", " HTTP/1.0", " HTTP/9.9", "\r\n", "\r\n\r\n", "\n", "Host: x\r\n",
		"Content-Length: 10\r\n", "Content-Length: -1\r\n", "Connection: close\r\n",
		"Transfer-Encoding: chunked\r\n", "Expect: 100-continue\r\n", "5\r\nhello\r\n",
		"0\r\n",
		"ffffffffffffffff\r\n", "%00%ff%zz", "?a=b&&=&c", ":", "\xff\xfe",
		"Cookie: a=\"b\r\n",
		"Authorization: Basic !!\r\n",
	};

	srand(11);
	for (int i = 0; i < 3000; i++) {
		char text[2048];
		size_t bytes = 0;
		int fd = fx_connect();

		for (int n = rand() % 12; n >= 0; n--) {
			size_t word = (size_t)rand() % FX_COUNT(words);

			bytes += (size_t)sprintf(text + bytes, "%s", words[word]);
		}
		for (int n = rand() % 3; n > 0 && bytes; n--)
			text[(size_t)rand() % bytes] = (char)rand();
		fx_send(fd, text, bytes);
		free(fx_receive(fd, NULL));
		close(fd);
		fx_pump();
	}
	json_decref(fx_get("/v1/status", 200));
}

int main(void)
{
	return fx_run(setup, fx_serve_close);
}
