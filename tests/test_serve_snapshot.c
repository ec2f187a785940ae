/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/snapshot: the answer is what came of the file, and nobody else waits for it. */
#include "tests/fixture_serve.h"

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

int main(void)
{
	return fx_run(setup, fx_serve_close);
}
