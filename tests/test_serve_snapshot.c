/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/snapshot: the answer is what came of the file, and nobody else waits for it. */
#include "tests/fixture_serve.h"
#include "util/json.h"

static const char request[] = "POST /v1/snapshot HTTP/1.1\r\nHost: x\r\n\r\n";

static void setup(void)
{
	fx_has_snapshots = true;
	fx_serve_open(NULL);
	fx.snapshot = -EAGAIN;
}

static int ask(void)
{
	int fd = fx_connect();
	char *answer;

	fx_send(fd, request, sizeof(request) - 1);
	answer = fx_receive(fd, NULL);
	ck_assert_str_eq(answer, "");
	free(answer);
	return fd;
}

static void pass_until_due(void)
{
	uint64_t wait_ns = serve_timeout_ns(fx.serve, fx.now_ns);

	ck_assert_uint_gt(wait_ns, 0);
	ck_assert_uint_le(wait_ns, FX_SECOND / 10);
	fx_pass(wait_ns);
}

TEST(path_is_told_when_the_file_is_there)
{
	int fd = ask();
	json_t *a;

	json_decref(fx_get("/v1/status", 200));		/* others do not wait */
	fx.snapshot = 0;
	pass_until_due();
	a = fx_parse(fx_finish(fd), request, 200);
	ck_assert_str_eq(fx_text(a, "path"), "/there/it-is");
	ck_assert_uint_eq(fx_number(a, "size_bytes"), 17);
	json_decref(a);
}

TEST(failure_to_write_is_told_with_its_reason)
{
	int fd = ask();
	json_t *a;

	fx.snapshot = -ENOSPC;
	pass_until_due();
	a = fx_parse(fx_finish(fd), request, 503);
	ck_assert_str_eq(fx_text(a, "error.code"), "unwritable");
	ck_assert_ptr_nonnull(strstr(fx_text(a, "error.message"), "No space left"));
	json_decref(a);
}

TEST(disk_that_hangs_is_told_after_four_seconds)
{
	int fd = ask();
	json_t *a;

	fx_pass(4 * FX_SECOND - 1);
	free(fx_receive(fd, NULL));
	ck_assert_uint_le(serve_timeout_ns(fx.serve, fx.now_ns), 1);
	fx_pass(1);
	a = fx_parse(fx_finish(fd), request, 503);
	ck_assert_str_eq(fx_text(a, "error.code"), "busy");
	json_decref(a);
}

TEST(client_that_goes_meanwhile_is_let_go)
{
	close(ask());
	fx_pass(FX_SECOND);
	fx.snapshot = 0;
	fx_pass(FX_SECOND);
	ck_assert_uint_eq(serve_timeout_ns(fx.serve, fx.now_ns), UINT64_MAX);
}

static uint32_t rows_of(json_t *rows, json_int_t pid)
{
	json_t *row;
	uint32_t n = 0;
	size_t i;

	json_array_foreach(rows, i, row)
		n += json_integer_value(json_object_get(row, "pid")) == pid ||
		     json_integer_value(json_object_get(row, "rank")) == pid;
	return n;
}

/* One has more kinds of operations than there is room for, all newer than the other's. */
TEST(user_with_many_kinds_of_operations_leaves_room_for_those_of_others)
{
	struct op op = { .has_comm_id = true, .nranks = 200, .func = FX_FUNC, .sampled = true,
			 .exec_ns = 1000, .source = TIMING_KERNEL_GPU, .complete = true };
	struct json j;
	json_t *a;

	for (int i = 0; i < 2; i++)
		fx_process(100 + i, 0, i)->account = (uid_t)i;
	for (uint32_t i = 0; i < 9000; i++) {
		op.account = i > 40;
		op.process_id = 1 + op.account;
		op.rank = op.pid = 100 + (int32_t)op.account;
		op.comm_index = op.account ? i % 700 : 0;
		op.seq = i;
		oplog_add(fx.oplog, &op);
	}
	json_init(&j, 64u << 20);
	ck_assert_int_eq(serve_snapshot(fx.serve, "died", fx.now_ns, &j), 0);
	a = json_loadb(j.text, j.bytes, 0, NULL);
	ck_assert_uint_eq(rows_of(fx_at(a, "collectives"), 100), 32);
	ck_assert_uint_eq(rows_of(fx_at(a, "collectives"), 101), 4096 / 2);
	ck_assert_uint_eq(rows_of(fx_at(a, "kept"), 100), 1);
	ck_assert_uint_eq(rows_of(fx_at(a, "kept"), 101), 512 / 2);
	ck_assert_uint_eq(rows_of(fx_at(a, "samples"), 100), 41);
	ck_assert_uint_gt(rows_of(fx_at(a, "samples"), 101), 0);
	json_decref(a);
	json_deinit(&j);
}

int main(void)
{
	return fx_run(setup, fx_serve_close);
}
