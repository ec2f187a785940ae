/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/stream: what happens is told as it happens, and nobody is waited for. */
#include "nci/token.h"
#include "tests/fixture_serve.h"

static void setup(void)
{
	fx_serve_open(&(struct serve_config){ .stream_bytes = 65536 });
}

static int follow(const char *target)
{
	char text[256];
	int fd = fx_connect(), small = 4096;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	snprintf(text, sizeof(text), "GET %s HTTP/1.0\r\n\r\n", target);
	fx_send(fd, text, strlen(text));
	return fd;
}

static void finish(uint64_t seq)
{
	struct op op = { .func = "AllReduce", .seq = seq, .has_comm_id = true, .comm_id = 7,
			 .exec_ns = UNKNOWN_U64, .algbw_gbs = -1, .busbw_gbs = -1 };

	serve_op(fx.serve, &op);
}

static void change(enum process_state state)
{
	struct process p = { .pid = 5, .state = state };

	serve_process(fx.serve, &p);
}

/* The next line of *at as an object, *at behind it; NULL: none. */
static json_t *next_line(const char **at)
{
	const char *end = strchr(*at, '\n');
	json_t *line;

	if (!end)
		return NULL;
	line = json_loadb(*at, (size_t)(end - *at), 0, NULL);
	ck_assert_msg(line, "not JSON: %.300s", *at);
	*at = end + 1;
	return line;
}

static const char *kind_of(json_t *line)
{
	return json_string_value(json_object_get(line, "kind"));
}

TEST(what_happens_is_told_at_once)
{
	int fd = follow("/v1/stream");
	char *answer = fx_receive(fd, NULL);
	const char *at;
	json_t *line;

	ck_assert_int_eq(fx_status(answer), 200);
	ck_assert(strstr(answer, "application/x-ndjson"));
	ck_assert_str_eq(fx_body(answer), "");
	free(answer);

	change(PROCESS_LIVE);
	finish(12);
	change(PROCESS_DIED);
	answer = fx_receive(fd, NULL);
	at = answer;
	line = next_line(&at);
	ck_assert_str_eq(kind_of(line), "process");
	ck_assert_str_eq(json_string_value(fx_at(line, "state")), "live");
	json_decref(line);
	line = next_line(&at);
	ck_assert_str_eq(kind_of(line), "collective");
	ck_assert_str_eq(json_string_value(fx_at(line, "comm_id")), "0x0000000000000007");
	ck_assert_int_eq(json_integer_value(fx_at(line, "seq")), 12);
	ck_assert(json_is_null(fx_at(line, "exec_ns")));
	json_decref(line);
	line = next_line(&at);
	ck_assert_str_eq(json_string_value(fx_at(line, "state")), "died");
	json_decref(line);
	ck_assert_ptr_null(next_line(&at));
	free(answer);
	close(fd);
}

TEST(a_line_makes_the_server_due_at_once)
{
	int fd = follow("/v1/stream");

	free(fx_receive(fd, NULL));
	ck_assert_uint_gt(serve_timeout_ns(fx.serve, fx.now_ns), 0);
	finish(1);
	ck_assert_uint_eq(serve_timeout_ns(fx.serve, fx.now_ns), 0);
	close(fd);
}

TEST(only_the_kinds_that_were_asked_for_are_told)
{
	int fd = follow("/v1/stream?kinds=process");
	const char *at;
	char *answer;
	json_t *line;

	free(fx_receive(fd, NULL));
	finish(1);
	change(PROCESS_LIVE);
	finish(2);
	answer = fx_receive(fd, NULL);
	at = answer;
	line = next_line(&at);
	ck_assert_str_eq(kind_of(line), "process");
	json_decref(line);
	ck_assert_ptr_null(next_line(&at));
	free(answer);
	close(fd);
}

TEST(a_slow_client_loses_lines_and_is_told_how_many)
{
	static const uint64_t sent = 5000;
	int fd = follow("/v1/stream");
	uint64_t lines = 0, lost = 0, losses = 0;
	const char *at;
	char *answer;
	json_t *line;

	free(fx_receive(fd, NULL));
	for (uint64_t seq = 0; seq < sent; seq++) {
		finish(seq);
		fx_pump();	/* never waits: this loop ends */
	}
	answer = fx_receive(fd, NULL);
	for (at = answer; (line = next_line(&at)); json_decref(line)) {
		if (strcmp(kind_of(line), "lost")) {
			ck_assert_int_eq(json_integer_value(fx_at(line, "seq")),
					 (json_int_t)(lines + lost));
			lines++;
			continue;
		}
		lost += (uint64_t)json_integer_value(fx_at(line, "n"));
		losses++;
	}
	ck_assert_uint_eq(lines + lost, sent);
	ck_assert_uint_gt(lost, 0);
	ck_assert_uint_eq(losses, 1);
	free(answer);

	finish(sent);		/* and it goes on */
	answer = fx_receive(fd, NULL);
	at = answer;
	line = next_line(&at);
	ck_assert_int_eq(json_integer_value(fx_at(line, "seq")), (json_int_t)sent);
	json_decref(line);
	free(answer);
	close(fd);
}

TEST(a_slow_client_costs_the_others_nothing)
{
	int slow = follow("/v1/stream"), quick = follow("/v1/stream");
	uint64_t lines = 0;

	free(fx_receive(quick, NULL));
	for (uint64_t seq = 0; seq < 2000; seq++) {
		char *answer;
		const char *at;
		json_t *line;

		finish(seq);
		answer = fx_receive(quick, NULL);
		for (at = answer; (line = next_line(&at)); json_decref(line), lines++)
			ck_assert_str_eq(kind_of(line), "collective");
		free(answer);
	}
	ck_assert_uint_eq(lines, 2000);
	close(slow);
	close(quick);
}

TEST(a_client_that_hangs_up_in_silence_is_noticed)
{
	int fd[64];

	if (!fx_descriptors(256))
		return;
	for (int i = 0; i < 64; i++)
		fd[i] = follow("/v1/stream");
	for (int i = 0; i < 64; i++)
		close(fd[i]);
	fx_pass(FX_SECOND);
	fx_pass(FX_SECOND);
	json_decref(fx_get("/v1/status", 200));
	ck_assert_uint_eq(serve_timeout_ns(fx.serve, fx.now_ns), UINT64_MAX);
}

TEST(a_quiet_stream_lasts)
{
	int fd = follow("/v1/stream");
	char *answer;
	bool closed;

	free(fx_receive(fd, NULL));
	for (int i = 0; i < 100; i++)
		fx_pass(10 * FX_SECOND);
	finish(1);
	answer = fx_receive(fd, &closed);
	ck_assert(!closed);
	ck_assert_ptr_nonnull(strchr(answer, '\n'));
	free(answer);
	close(fd);
}

TEST(the_server_ends_while_streams_sleep_and_wait)
{
	follow("/v1/stream");
	follow("/v1/stream?kinds=collective");
	for (uint64_t seq = 0; seq < 1000; seq++)
		finish(seq);	/* teardown closes the server */
}

/* ---- records ------------------------------------------------------------------------ */

static struct process *a_process(pid_t pid)
{
	return fx_process(pid, geteuid(), 0);
}

static void read_coll(struct process *p, uint64_t seq)
{
	struct nci_ev_coll coll = {
		.type = NCI_EV_COLL, .form = 2, .token = nci_token(1, 2, seq + 1),
		.start = 2000 + seq * 100, .stop = 2050 + seq * 100, .seq = seq, .count = 1024,
		.func = 1, .cont = NCI_LINE_CONT, .channels = 2,
	};
	struct event ev = { .rec = (const struct nci_record *)&coll, .comm = p->comms };

	serve_record(fx.serve, p, &ev);
}

/* What is told next, flushed; `answer` is to be freed. */
static json_t *told_next(int fd, char **answer, const char **at)
{
	serve_flush_records(fx.serve);
	*answer = fx_receive(fd, NULL);
	*at = *answer;
	return next_line(at);
}

TEST(records_come_as_they_lie_with_what_they_refer_to)
{
	struct process *p = a_process(7);
	int fd = follow("/v1/stream?kinds=record");
	const char *at;
	char *answer;
	json_t *line;

	free(fx_receive(fd, NULL));
	read_coll(p, 5);
	line = told_next(fd, &answer, &at);
	ck_assert_str_eq(kind_of(line), "source");
	ck_assert_str_eq(fx_text(line, "names.0"), FX_FUNC);
	ck_assert_str_eq(fx_text(line, "comms.0.comm_id"), "0xd00dfeedcafe0001");
	ck_assert_uint_eq(fx_number(line, "comms.0.nranks"), 8);
	json_decref(line);
	line = next_line(&at);
	ck_assert_str_eq(kind_of(line), "records");
	ck_assert_uint_eq(fx_number(line, "pid"), 7);
	ck_assert_uint_eq(fx_number(line, "first"), 0);
	ck_assert_uint_eq(fx_number(line, "n"), 1);
	ck_assert_uint_eq(fx_number(line, "mono_ns"), FX_START_NS);
	/* type 2, two lines, communicator 0, no serial, token 1:2 of generation 6 */
	ck_assert_str_eq(fx_text(line, "data"),
			 "AgIAAAAAAAACEGAAAAAAAAAAAAAAAAAAxAkAAAAAAAD2CQAAAAAAAAUAAAAAAAAA"
			 "AAQAAAAAAAABAAAAAAAAAP8CAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
			 "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
	json_decref(line);
	ck_assert_ptr_null(next_line(&at));
	free(answer);

	read_coll(p, 6);	/* and the names are known by now */
	line = told_next(fd, &answer, &at);
	ck_assert_str_eq(kind_of(line), "records");
	ck_assert_uint_eq(fx_number(line, "first"), 1);
	json_decref(line);
	free(answer);
	close(fd);
}

/* Add up what has come: records, and how many are missing before each line. */
static void count_records(int fd, uint64_t *expected, uint64_t *got, uint64_t *missing)
{
	const char *at;
	char *answer;
	json_t *line;

	for (line = told_next(fd, &answer, &at); line; line = next_line(&at)) {
		if (!strcmp(kind_of(line), "records")) {
			*missing += fx_number(line, "first") - *expected;
			*got += fx_number(line, "n");
			*expected = fx_number(line, "first") + fx_number(line, "n");
		}
		json_decref(line);
	}
	free(answer);
}

TEST(records_that_are_lost_show_in_the_count)
{
	static const uint64_t sent = 4000;
	struct process *p = a_process(7);
	int fd = follow("/v1/stream?kinds=record");
	uint64_t expected = 0, missing = 0, got = 0;

	free(fx_receive(fd, NULL));
	for (uint64_t seq = 0; seq < sent; seq++)
		read_coll(p, seq);	/* more than the queue holds */
	count_records(fd, &expected, &got, &missing);
	read_coll(p, sent);
	count_records(fd, &expected, &got, &missing);
	ck_assert_uint_eq(expected, sent + 1);
	ck_assert_uint_eq(got + missing, sent + 1);
	ck_assert_uint_gt(got, 1);
	ck_assert_uint_gt(missing, 0);
	close(fd);
}

TEST(records_of_other_processes_and_of_other_kinds_are_not_told)
{
	struct process *mine = a_process(7), *other = a_process(8);
	int some = follow("/v1/stream?kinds=record&pid=7"), none = follow("/v1/stream");
	const char *at;
	char *answer;
	json_t *line;

	free(fx_receive(some, NULL));
	free(fx_receive(none, NULL));
	read_coll(other, 1);
	read_coll(mine, 1);
	read_coll(other, 2);
	line = told_next(some, &answer, &at);
	ck_assert_uint_eq(fx_number(line, "pid"), 7);
	json_decref(line);
	line = next_line(&at);
	ck_assert_uint_eq(fx_number(line, "n"), 1);
	json_decref(line);
	ck_assert_ptr_null(next_line(&at));
	free(answer);
	answer = fx_receive(none, NULL);
	ck_assert_str_eq(answer, "");
	free(answer);
	close(some);
	close(none);
}

TEST(a_fifth_client_gets_no_records_until_another_goes)
{
	int fd[4];

	for (int i = 0; i < 4; i++) {
		fd[i] = follow("/v1/stream?kinds=record,finding");
		free(fx_receive(fd[i], NULL));
	}
	json_decref(fx_get("/v1/stream?kinds=record", 429));
	close(fd[2]);
	fx_pass(2 * FX_SECOND);
	fd[2] = follow("/v1/stream?kinds=record");
	free(fx_receive(fd[2], NULL));
	json_decref(fx_get("/v1/stream?kinds=record", 429));
}

int main(void)
{
	return fx_run(setup, fx_serve_close);
}
