/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that come when no descriptor is left for them. */
#include <sys/resource.h>

#include "tests/fixture_serve.h"

static const char request[] = "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n";

static void setup(void)
{
	fx_serve_open(NULL);
}

static void set_limit(rlim_t most)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = most ? most : limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* None but those that are open. */
static void leave_no_descriptor(void)
{
	int lowest = dup(STDIN_FILENO);

	ck_assert_int_gt(lowest, 0);
	close(lowest);
	set_limit((rlim_t)lowest);
}

static void leave_many(void)
{
	set_limit(0);
}

static int socket_of_client(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* It is in the queue, and no more. */
static void call(int fd)
{
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&fx.addr, sizeof(fx.addr)), 0);
	ck_assert_int_eq(send(fd, request, sizeof(request) - 1, 0), sizeof(request) - 1);
}

static void is_served(int fd)
{
	char *answer = fx_receive(fd, NULL);

	ck_assert_int_eq(fx_status(answer), 200);
	free(answer);
	close(fd);
	fx_pump();
}

static void waits(int fd)
{
	char *answer = fx_receive(fd, NULL);	/* comes back: nothing is tried without end */

	ck_assert_str_eq(answer, "");
	free(answer);
}

TEST(first_client_without_a_descriptor_is_served_when_there_is_one)
{
	int fd = socket_of_client();

	leave_no_descriptor();
	call(fd);
	waits(fd);
	leave_many();
	fx_pass(FX_SECOND);
	is_served(fd);
}

TEST(no_other_client_has_to_go_first)
{
	int other = fx_connect(), fd = socket_of_client();

	leave_no_descriptor();
	call(fd);
	waits(fd);
	leave_many();
	fx_pass(FX_SECOND);
	is_served(fd);
	close(other);
	fx_pump();
}

TEST(nor_does_it_matter_that_all_have_gone)
{
	int other = fx_connect(), fd = socket_of_client(), last;

	leave_no_descriptor();
	call(fd);
	waits(fd);
	close(other);	/* its place is the next one's, and its number here */
	fx_pass(FX_SECOND);
	is_served(fd);
	last = socket_of_client();
	call(last);
	waits(last);
	leave_many();
	fx_pass(FX_SECOND);
	is_served(last);
	json_decref(fx_get("/v1/status", 200));
}

TEST(it_is_tried_again_after_a_pause)
{
	int fd = socket_of_client();
	uint64_t wait_ns;

	leave_no_descriptor();
	call(fd);
	fx_pump();
	wait_ns = serve_timeout_ns(fx.serve, fx.now_ns);
	ck_assert_uint_ge(wait_ns, FX_SECOND / 100);
	ck_assert_uint_le(wait_ns, FX_SECOND);
	fx_pass(wait_ns);
	waits(fd);
	leave_many();
	fx_pass(serve_timeout_ns(fx.serve, fx.now_ns));
	is_served(fd);
}

int main(void)
{
	return fx_run(setup, fx_serve_close);
}
