/* SPDX-License-Identifier: Apache-2.0 */
/* Who acts on findings is told at a bounded rate, in order, and is never waited for. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ncclinspd/findings/notify.h"
#include "tests/fixture.h"
#include "util/log.h"

static struct notify *n;
static struct sockaddr_un addr;
static int listener;
static uint64_t now_ns;

static void listen_for(int backlog)
{
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(listen(listener, backlog), 0);
}

static void setup(void)
{
	addr.sun_family = AF_UNIX;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/finding", fx_tmpdir());
	log_set_level(LOG_ERROR);
	listener = -1;
	now_ns = NOTIFY_APART_NS;
	ck_assert_int_eq(notify_new(&n, addr.sun_path), 0);
}

static void teardown(void)
{
	notify_free(n);
	if (listener >= 0)
		close(listener);
}

static void put_as(uid_t account, int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", number);
	notify_put(n, account, strdup(text), strlen(text));
}

static void put(int number)
{
	put_as(1, number);
}

/* The next one that the listener was told; -1: none. */
static int told(void)
{
	char text[16] = "";
	int fd = accept(listener, NULL, NULL), number;

	if (fd < 0)
		return -1;
	ck_assert_int_gt(read(fd, text, sizeof(text) - 1), 0);
	ck_assert_int_eq(sscanf(text, "%d", &number), 1);
	ck_assert_int_eq(read(fd, text, sizeof(text)), 0);	/* it ends */
	close(fd);
	return number;
}

static struct notify_stats stats(void)
{
	struct notify_stats s;

	notify_read_stats(n, &s);
	return s;
}

TEST(ten_are_told_at_once_and_then_one_a_second)
{
	uint64_t next;

	listen_for(64);
	for (int i = 0; i < 15; i++)
		put(i);
	next = notify_run(n, now_ns);
	ck_assert_uint_eq(stats().told, NOTIFY_AT_ONCE);
	for (int i = 0; i < 5; i++) {
		ck_assert_uint_eq(next, now_ns + NOTIFY_APART_NS);
		ck_assert_uint_eq(notify_run(n, next - 1), next);
		now_ns = next;
		next = notify_run(n, now_ns);
		ck_assert_uint_eq(stats().told, NOTIFY_AT_ONCE + (uint64_t)i + 1);
	}
	ck_assert_uint_eq(next, 0);
	ck_assert_uint_eq(stats().last_ns, now_ns);
	for (int i = 0; i < 15; i++)
		ck_assert_int_eq(told(), i);
	ck_assert_int_eq(told(), -1);
}

TEST(listener_that_takes_none_is_not_waited_for_and_gets_all_in_order)
{
	listen_for(0);		/* one connection waits there */
	for (int i = 0; i < 4; i++)
		put(i);
	for (int i = 0; i < 20; i++)
		notify_run(n, now_ns += NOTIFY_APART_NS);
	ck_assert_uint_eq(stats().told, 1);
	ck_assert_uint_eq(stats().dropped, 0);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(told(), i);
		notify_run(n, now_ns += NOTIFY_APART_NS);
	}
	ck_assert_uint_eq(stats().told, 4);
}

TEST(what_nobody_takes_is_dropped_and_counted)
{
	put(1);
	ck_assert_uint_eq(notify_run(n, now_ns), 0);
	ck_assert_uint_eq(stats().dropped, 1);
	ck_assert_int_eq(stats().error, -ENOENT);
	listen_for(1);
	put(2);
	notify_run(n, now_ns);
	ck_assert_int_eq(told(), 2);
	ck_assert_int_eq(stats().error, 0);
}

TEST(oldest_makes_room)
{
	listen_for(0);
	put(0);
	notify_run(n, now_ns);	/* fills the socket */
	for (int i = 1; i <= NOTIFY_WAITING + 3; i++)
		put(i);
	ck_assert_uint_eq(stats().dropped, 3);
	ck_assert_int_eq(stats().error, -ENOBUFS);
	ck_assert_int_eq(told(), 0);
	for (int i = 4; i <= NOTIFY_WAITING + 3; i++) {
		notify_run(n, now_ns += NOTIFY_APART_NS);
		ck_assert_int_eq(told(), i);
	}
}

TEST(user_with_many_findings_keeps_nobody_elses_waiting_and_pushes_none_out)
{
	listen_for(64);
	for (int i = 0; i < NOTIFY_AT_ONCE; i++)
		put(i);
	notify_run(n, now_ns);
	while (told() >= 0)
		;
	put_as(2, 1000);
	for (int i = 0; i < 2 * NOTIFY_WAITING; i++)
		put(i);
	put_as(2, 1001);
	for (int i = 0; i < 4; i++)
		notify_run(n, now_ns += NOTIFY_APART_NS);
	ck_assert_int_eq(told(), 1000);
	ck_assert_int_eq(told(), NOTIFY_WAITING + 2);	/* the oldest that was not dropped */
	ck_assert_int_eq(told(), 1001);
	ck_assert_int_eq(told(), NOTIFY_WAITING + 3);
}

TEST(begin_rise_and_end_of_what_is_found_are_told)
{
	struct finding f = { .grade = FINDING_SUSPECTED, .severity = FINDING_WARNING };

	ck_assert(!notify_wants(&f));
	f.grade = FINDING_FOUND;
	ck_assert(notify_wants(&f));
	f.life.told = true;
	ck_assert(!notify_wants(&f));
	f.severity = FINDING_CRITICAL;
	ck_assert(notify_wants(&f));
	f.life.alarmed = true;
	ck_assert(!notify_wants(&f));
	f.life.until_ns = 1;
	ck_assert(notify_wants(&f));
}

int main(void)
{
	return fx_run(setup, teardown);
}
