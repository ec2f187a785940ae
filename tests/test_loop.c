/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/base/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fixture.h"

static struct loop *loop;

static void open_loop(void)
{
	ck_assert_int_eq(loop_new(&loop), 0);
}

struct count {
	int calls;
	uint64_t last_ns;
	int fd;
	struct loop_timer timer;
};

static void on_call(void *arg, uint64_t now_ns)
{
	struct count *c = arg;

	c->calls++;
	c->last_ns = now_ns;
}

static void on_call_remove(void *arg, uint64_t now_ns)
{
	struct count *c = arg;

	on_call(arg, now_ns);
	loop_remove(loop, c->fd);
}

static void make_pipe(int fd[2])
{
	ck_assert_int_eq(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
}

static void write_byte(int fd)
{
	ck_assert_int_eq(write(fd, "x", 1), 1);
}

TEST(readable_descriptor_calls_again_until_it_is_read)
{
	struct count c = { 0 };
	int fd[2];
	char byte;

	open_loop();
	make_pipe(fd);
	ck_assert_int_eq(loop_add(loop, fd[0], on_call, &c), 0);
	ck_assert_int_eq(loop_add(loop, fd[0], on_call, &c), -EEXIST);
	ck_assert_int_eq(loop_once(loop, 0), 0);
	ck_assert_int_eq(c.calls, 0);
	write_byte(fd[1]);
	for (int i = 1; i <= 3; i++) {
		ck_assert_int_eq(loop_once(loop, UINT64_MAX), 0);
		ck_assert_int_eq(c.calls, i);
	}
	ck_assert_int_eq(read(fd[0], &byte, 1), 1);
	loop_once(loop, 0);	/* a notice from before the read may be on its way */
	c.calls = 0;
	loop_once(loop, 0);
	ck_assert_int_eq(c.calls, 0);
	loop_free(loop);
}

TEST(hang_up_counts_as_readable)
{
	struct count c = { 0 };
	int fd[2];

	open_loop();
	make_pipe(fd);
	ck_assert_int_eq(loop_add(loop, fd[0], on_call, &c), 0);
	close(fd[1]);
	ck_assert_int_eq(loop_once(loop, UINT64_MAX), 0);
	ck_assert_int_eq(c.calls, 1);
	loop_free(loop);
}

TEST(removed_descriptor_is_not_called_even_in_the_same_round)
{
	struct count a = { 0 }, b = { 0 };
	int one[2], two[2];

	open_loop();
	make_pipe(one);
	make_pipe(two);
	a.fd = two[0];
	b.fd = one[0];
	ck_assert_int_eq(loop_add(loop, one[0], on_call_remove, &a), 0);
	ck_assert_int_eq(loop_add(loop, two[0], on_call_remove, &b), 0);
	write_byte(one[1]);
	write_byte(two[1]);
	ck_assert_int_eq(loop_once(loop, UINT64_MAX), 0);
	ck_assert_int_eq(a.calls + b.calls, 1);
	ck_assert_int_eq(loop_once(loop, UINT64_MAX), 0);
	ck_assert_int_eq(a.calls + b.calls, 2);
	ck_assert(a.calls == 0 || b.calls == 0);
	loop_free(loop);
}

TEST(descriptor_number_can_be_used_again_after_remove_and_close)
{
	struct count a = { 0 }, b = { 0 };
	int one[2], two[2];

	open_loop();
	make_pipe(one);
	ck_assert_int_eq(loop_add(loop, one[0], on_call, &a), 0);
	loop_once(loop, 0);
	loop_remove(loop, one[0]);
	make_pipe(two);
	ck_assert_int_eq(dup2(two[0], one[0]), one[0]);
	ck_assert_int_eq(loop_add(loop, one[0], on_call, &b), 0);
	write_byte(two[1]);
	ck_assert_int_eq(loop_once(loop, UINT64_MAX), 0);
	ck_assert_int_eq(a.calls, 0);
	ck_assert_int_eq(b.calls, 1);
	loop_free(loop);
}

static int rung[2], other[2];
static struct count rings;

/* What is on its way when a descriptor is removed must not reach its successor. */
static void ring_and_replace(void *arg, uint64_t now_ns)
{
	on_call(arg, now_ns);
	write_byte(rung[1]);
	loop_remove(loop, rung[0]);
	ck_assert_int_eq(loop_add(loop, other[0], on_call, &rings), 0);
}

TEST(late_notice_of_a_removed_descriptor_reaches_nobody)
{
	struct count c = { 0 };

	open_loop();
	make_pipe(rung);
	make_pipe(other);
	rings.calls = 0;
	ck_assert_int_eq(loop_add(loop, rung[0], on_call, &rings), 0);
	loop_once(loop, 0);
	c.timer = (struct loop_timer){ .fn = ring_and_replace, .arg = &c };
	loop_arm(loop, &c.timer, 0);
	while (!c.calls)
		loop_once(loop, UINT64_MAX);
	for (int i = 0; i < 3; i++)
		loop_once(loop, 0);
	ck_assert_int_eq(rings.calls, 0);
	loop_free(loop);
}

TEST(too_many_descriptors_are_refused)
{
	struct count c = { 0 };
	int fd[2], r = 0, added = 0;

	if (!fx_descriptors(1024))
		return;
	open_loop();
	while (r == 0 && added < 1000) {
		make_pipe(fd);
		r = loop_add(loop, fd[0], on_call, &c);
		added++;
	}
	ck_assert_int_eq(r, -ENOSPC);
	ck_assert_int_gt(added, 32);
	loop_free(loop);
}

static int order[8], orders;

static void note_order(void *arg, uint64_t now_ns)
{
	(void)now_ns;
	order[orders++] = *(int *)arg;
}

TEST(timers_run_in_the_order_of_their_times)
{
	int id[3] = { 0, 1, 2 };
	struct loop_timer t[3];
	uint64_t now = loop_clock_ns();

	open_loop();
	orders = 0;
	for (int i = 0; i < 3; i++)
		t[i] = (struct loop_timer){ .fn = note_order, .arg = &id[i] };
	loop_arm(loop, &t[0], now + 3000000);
	loop_arm(loop, &t[1], now + 1000000);
	loop_arm(loop, &t[2], now + 2000000);
	loop_arm(loop, &t[1], now + 2500000);	/* moved, not doubled */
	while (orders < 3)
		ck_assert_int_eq(loop_once(loop, UINT64_MAX), 0);
	ck_assert_int_eq(order[0], 2);
	ck_assert_int_eq(order[1], 1);
	ck_assert_int_eq(order[2], 0);
	loop_free(loop);
}

TEST(timer_is_never_early_and_not_called_when_cancelled)
{
	struct count a = { 0 }, b = { 0 };
	uint64_t now = loop_clock_ns();

	open_loop();
	a.timer = (struct loop_timer){ .fn = on_call, .arg = &a };
	b.timer = (struct loop_timer){ .fn = on_call, .arg = &b };
	loop_arm(loop, &a.timer, now + 2000000);
	loop_arm(loop, &b.timer, now + 1000000);
	loop_cancel(loop, &b.timer);
	loop_cancel(loop, &b.timer);
	while (!a.calls)
		ck_assert_int_eq(loop_once(loop, UINT64_MAX), 0);
	ck_assert_uint_ge(a.last_ns, now + 2000000);
	ck_assert_int_eq(b.calls, 0);
	loop_free(loop);
}

static void rearm_in_the_past(void *arg, uint64_t now_ns)
{
	struct count *c = arg;

	on_call(arg, now_ns);
	loop_arm(loop, &c->timer, 0);
}

TEST(timer_that_rearms_itself_in_the_past_runs_once_a_round)
{
	struct count c = { 0 };

	open_loop();
	c.timer = (struct loop_timer){ .fn = rearm_in_the_past, .arg = &c };
	loop_arm(loop, &c.timer, 0);
	for (int i = 1; i <= 3; i++) {
		ck_assert_int_eq(loop_once(loop, UINT64_MAX), 0);
		ck_assert_int_eq(c.calls, i);
	}
	loop_free(loop);
}

static void on_signal_stop(void *arg, uint64_t now_ns)
{
	on_call(arg, now_ns);
	loop_stop(loop);
}

TEST(signals_arrive_as_calls_and_stop_the_loop)
{
	struct count usr = { 0 }, term = { 0 };

	open_loop();
	ck_assert_int_eq(loop_signal(loop, SIGUSR1, on_call, &usr), 0);
	ck_assert_int_eq(loop_signal(loop, SIGTERM, on_signal_stop, &term), 0);
	ck_assert_int_eq(loop_signal(loop, 0, on_call, &usr), -EINVAL);
	raise(SIGUSR1);
	raise(SIGTERM);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_int_eq(usr.calls, 1);
	ck_assert_int_eq(term.calls, 1);
	loop_free(loop);
}

TEST(hook_runs_at_the_end_of_every_round)
{
	struct count c = { 0 };

	open_loop();
	loop_hook(loop, on_call, &c);
	loop_once(loop, 0);
	loop_once(loop, 0);
	ck_assert_int_eq(c.calls, 2);
	loop_free(loop);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
