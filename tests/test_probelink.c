/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's end of the line to the probe, and a probe that may be absent, flood or lie. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "judge/slow_peer.h"
#include "ncclinspd/base/loop.h"
#include "ncclinspd/findings/cpuwait.h"
#include "ncclinspd/findings/probelink.h"
#include "reader/base/model.h"
#include "tests/fixture_proc.h"
#include "util/log.h"

#define SECOND	UINT64_C(1000000000)
#define MS	UINT64_C(1000000)
#define PID	100
#define TID	(PID + 1)
#define ID	7

static struct loop *loop;
static struct probelink *l;
static struct process process, *list[] = { &process };
static struct sockaddr_un addr;
static int listener, probe;
static uint64_t now_ns, waits;
static struct probe_event last;

static void on_waited(void *arg, uint64_t process_id, const struct probe_event *e, uint64_t at_ns)
{
	(void)arg;
	(void)at_ns;
	ck_assert_uint_eq(process_id, ID);
	last = *e;
	waits++;
}

static void setup(void)
{
	addr.sun_family = AF_UNIX;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/probe", fx_tmpdir());
	unlink(addr.sun_path);
	log_set_level(LOG_ERROR);
	listener = probe = -1;
	waits = 0;
	now_ns = loop_clock_ns();
	process = (struct process){ .id = ID, .pid = PID, .proven = true, .state = PROCESS_LIVE };
	ck_assert_int_eq(loop_new(&loop), 0);
	ck_assert_int_eq(probelink_new(&l, loop, addr.sun_path, on_waited, NULL), 0);
}

static void teardown(void)
{
	probelink_free(l);
	loop_free(loop);
	cpuwait_free(process.cpuwait);
	if (listener >= 0)
		close(listener);
	if (probe >= 0)
		close(probe);
}

static void look(void)
{
	now_ns += SECOND;
	probelink_look(l, list, 1, now_ns);
}

static void probe_listen(void)
{
	listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
}

/* The kernel counts what a thread of the process waits: it is one of those to be watched. */
static void watch_thread(void)
{
	const pid_t tid = TID;
	uint32_t files = 10;

	fx_proc_thread(PID, PID, 0);
	fx_proc_thread(PID, TID, 0);
	fx_proc_schedstat(PID, TID, SECOND, 0, 1);
	ck_assert_int_eq(cpuwait_new(&process.cpuwait, fx_proc(), PID, FX_PROC_START), 0);
	cpuwait_look(process.cpuwait, &tid, 1, now_ns, &files);
}

static void probe_start(void)
{
	probe_listen();
	watch_thread();
	look();
	probe = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	ck_assert_int_ge(probe, 0);
	ck_assert(probelink_stats(l)->connected);
}

/* The numbers that the probe is to watch now; -1: nothing new was said. */
static int asked(int32_t numbers[8])
{
	union {
		struct probe_watch watch;
		char bytes[256];
	} in;
	ssize_t bytes = recv(probe, &in, sizeof(in), 0);
	int n;

	if (bytes < 0)
		return -1;
	n = (int)(in.watch.processes + in.watch.threads);
	ck_assert_uint_eq((size_t)bytes, sizeof(in.watch) + (size_t)n * sizeof(int32_t));
	ck_assert_uint_eq(in.watch.magic, PROBE_MAGIC);
	ck_assert_int_eq(in.watch.self, getpid());
	memcpy(numbers, in.watch.number, (size_t)n * sizeof(int32_t));
	return n;
}

/* A wait of 5 ms of the thread that is watched, 4 ms of them by pid 4711. */
static struct probe_event wait_of(int32_t tid)
{
	return (struct probe_event){
		.at_ns = loop_clock_ns(), .wait_ns = 5 * MS, .number = tid, .kind = PROBE_WAIT,
		.taker = { { .ns = 4 * MS, .pid = 4711, .command = "hog" } },
	};
}

static struct probe_event signal_to(int32_t pid)
{
	return (struct probe_event){
		.at_ns = loop_clock_ns(), .number = pid, .kind = PROBE_SIGNAL, .signal = 9,
		.taker = { { .pid = 812, .command = "slurmstepd" } },
	};
}

/* That process sent so many segments to 10.0.0.n again. */
static struct probe_event resent_by(int32_t pid, uint64_t segments, uint8_t n)
{
	return (struct probe_event){
		.at_ns = loop_clock_ns(), .number = pid, .kind = PROBE_RESENT,
		.resent = { .segments = segments,
			    .address = { [10] = 0xff, 0xff, 10, 0, 0, n } },
	};
}

static struct slow_peer_resent resent_at(uint64_t process_id, uint64_t at_ns)
{
	struct slow_peer_resent out = { .segments = UNKNOWN_U64 };

	probelink_resent(l, process_id, at_ns, &out);
	return out;
}

static bool tell(const struct probe_event *e, size_t bytes)
{
	return send(probe, e, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)bytes;
}

static void tell_one(struct probe_event e)
{
	ck_assert(tell(&e, sizeof(e)));
	loop_once(loop, 0);
}

TEST(what_is_to_be_watched_is_said_once_and_again_when_it_changes)
{
	int32_t numbers[8];

	probe_start();
	ck_assert_int_eq(asked(numbers), 2);
	ck_assert_int_eq(numbers[0], PID);
	ck_assert_int_eq(numbers[1], TID);
	look();
	ck_assert_int_eq(asked(numbers), -1);
	process.state = PROCESS_DIED;
	process.ended_ns = now_ns;
	look();
	ck_assert_int_eq(asked(numbers), -1);	/* its last signal may still be told */
	now_ns += 10 * SECOND;
	look();
	ck_assert_int_eq(asked(numbers), 0);
}

TEST(process_that_only_claims_its_number_is_not_watched)
{
	int32_t numbers[8];

	process.proven = false;
	probe_start();
	ck_assert_int_eq(asked(numbers), 0);
	tell_one(signal_to(PID));
	ck_assert_uint_eq(probelink_stats(l)->refused, 1);
	ck_assert_ptr_null(probelink_end(l, ID));
}

TEST(waits_signals_and_kills_are_taken_over)
{
	struct probe_event kill = { .at_ns = loop_clock_ns(), .number = PID, .kind = PROBE_OOM,
				    .cgroup = "job_4711" };
	const struct probelink_end *end;

	probe_start();
	tell_one(wait_of(TID));
	ck_assert_uint_eq(waits, 1);
	ck_assert_str_eq(last.taker[0].command, "hog");
	ck_assert_ptr_null(probelink_end(l, ID));
	tell_one(signal_to(PID));
	end = probelink_end(l, ID);
	ck_assert_ptr_nonnull(end);
	ck_assert_int_eq(end->signal, 9);
	ck_assert_int_eq(end->sender, 812);
	ck_assert_str_eq(end->command, "slurmstepd");
	ck_assert(!end->for_memory);
	tell_one(kill);
	ck_assert(end->for_memory);
	ck_assert_str_eq(end->cgroup, "job_4711");
	ck_assert_uint_eq(probelink_stats(l)->refused, 0);
	ck_assert_ptr_null(probelink_end(l, ID + 1));
}

TEST(segments_sent_again_are_those_of_half_a_minute_to_one_address)
{
	struct slow_peer_resent out;
	uint64_t at_ns;

	ck_assert_uint_eq(resent_at(ID, now_ns).segments, UNKNOWN_U64);
	probe_start();
	ck_assert_uint_eq(resent_at(ID, now_ns).segments, 0);
	ck_assert_uint_eq(resent_at(ID + 1, now_ns).segments, UNKNOWN_U64);
	for (int i = 0; i < 3; i++)
		tell_one(resent_by(PID, 20, 2));
	tell_one(resent_by(PID, 50, 3));
	at_ns = loop_clock_ns();
	out = resent_at(ID, at_ns);
	ck_assert_uint_eq(out.segments, 60);
	ck_assert_str_eq(out.to, "10.0.0.2");
	ck_assert_uint_eq(resent_at(ID, at_ns + 14 * SECOND).segments, 60);
	out = resent_at(ID, at_ns + 30 * SECOND);
	ck_assert_uint_eq(out.segments, 0);
	ck_assert_str_eq(out.to, "");
	ck_assert_uint_le(out.window_ns, 30 * SECOND);
	close(probe);
	loop_once(loop, 0);
	ck_assert_uint_eq(resent_at(ID, at_ns).segments, UNKNOWN_U64);
}

/* What made room while it still counted is lost, and told so. */
TEST(addresses_beyond_the_table_make_room_and_are_counted)
{
	struct probe_event e = resent_by(PID, 1, 2);

	probe_start();
	for (uint16_t i = 0; i < 1025; i++) {
		memcpy(&e.resent.address[14], &i, sizeof(i));
		tell_one(e);
		look();
	}
	ck_assert_uint_eq(probelink_stats(l)->refused, 0);
	ck_assert_uint_eq(probelink_stats(l)->lost, 1);
}

TEST(event_that_cannot_be_true_is_refused_and_counted)
{
	struct probe_event bad[14];
	const uint32_t n = sizeof(bad) / sizeof(bad[0]);

	probe_start();
	for (uint32_t i = 0; i < n; i++)
		bad[i] = i < 8 ? wait_of(TID) : i < 11 ? signal_to(PID) : resent_by(PID, 1, 2);
	bad[0].kind = 0;
	bad[1].kind = PROBE_KINDS;
	bad[2].number = TID + 1;		/* nobody asked about it */
	bad[3].wait_ns = MS - 1;
	bad[4].taker[1] = (struct probe_taker){ .ns = 2 * MS, .pid = 1 };	/* more than all */
	bad[5].taker[0].pid = -1;
	bad[6].at_ns = loop_clock_ns() + 3600 * SECOND;
	bad[7].at_ns = 1;
	bad[8].signal = 0;
	bad[9].signal = 65;
	bad[10].number = TID;			/* a thread, no process */
	bad[11].number = TID;
	bad[12].resent.segments = 0;
	bad[13].resent.segments = UINT64_MAX;
	for (uint32_t i = 0; i < n; i++) {
		tell_one(bad[i]);
		ck_assert_msg(probelink_stats(l)->refused == i + 1, "event %u", i);
	}
	ck_assert_uint_eq(waits, 0);
	ck_assert_ptr_null(probelink_end(l, ID));
	ck_assert_uint_eq(resent_at(ID, now_ns).segments, 0);
	ck_assert(probelink_stats(l)->connected);
}

TEST(text_without_an_end_or_with_controls_is_made_harmless)
{
	struct probe_event e = wait_of(TID);

	probe_start();
	memset(e.taker[0].command, '\33', sizeof(e.taker[0].command));
	tell_one(e);
	ck_assert_str_eq(last.taker[0].command, "???????????????");
}

TEST_LOOP(packet_of_another_size_ends_the_connection, 0, 5)
{
	static const struct probe_event e[PROBE_BATCH + 1];
	static const size_t sizes[] = { 1, sizeof(e[0]) - 1, sizeof(e[0]) + 8, sizeof(e), 0 };

	probe_start();
	if (sizes[_i])
		ck_assert(tell(e, sizes[_i]));
	else
		close(probe);
	loop_once(loop, 0);
	ck_assert(!probelink_stats(l)->connected);
	ck_assert_uint_eq(probelink_stats(l)->threads, 0);
	ck_assert_uint_eq(waits, 0);
}

/* As many as its socket holds, again and again. */
TEST(flood_is_read_up_to_a_bound_until_the_next_look)
{
	struct probe_event e = wait_of(TID);
	uint64_t read;

	probe_start();
	for (int i = 0; i < 1000; i++) {
		while (tell(&e, sizeof(e)))
			continue;
		loop_once(loop, 0);
	}
	read = probelink_stats(l)->events;
	ck_assert_uint_gt(read, 100);
	ck_assert_uint_le(read, 256);
	look();
	loop_once(loop, 0);
	ck_assert_uint_gt(probelink_stats(l)->events, read);
}

TEST(losses_that_the_probe_tells_are_added_up_over_its_connections)
{
	struct probe_event e = wait_of(TID);

	probe_start();
	e.lost = 5;
	tell_one(e);
	tell_one(e);
	ck_assert_uint_eq(probelink_stats(l)->lost, 5);
	close(probe);
	loop_once(loop, 0);
	now_ns += 10 * SECOND;
	look();
	probe = accept(listener, NULL, NULL);
	e.lost = 2;
	tell_one(e);
	ck_assert_uint_eq(probelink_stats(l)->lost, 7);
}

TEST(absent_probe_is_looked_for_every_ten_seconds)
{
	look();
	ck_assert(!probelink_stats(l)->connected);
	probe_listen();
	for (int i = 0; i < 9; i++)
		look();
	ck_assert(!probelink_stats(l)->connected);
	look();
	ck_assert(probelink_stats(l)->connected);
}

/* It has a connection and reads nothing. */
TEST(probe_that_hangs_is_not_waited_for)
{
	probe_listen();
	watch_thread();
	for (int i = 0; i < 4000; i++) {
		process.pid = i % 2 ? PID : PID + 5;	/* another set each time */
		look();
	}
	ck_assert(probelink_stats(l)->connected);
}

int main(void)
{
	return fx_run(setup, teardown);
}
