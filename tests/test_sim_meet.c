/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that wait for their peers, and what is told of what they were asked for. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/fixture.h"
#include "tests/fixture_sim.h"
#include "tests/sim/meet.h"
#include "tests/sim/player.h"
#include "tests/sim/probe.h"

#define RANKS	4
#define ROUNDS	200

static struct scenario *scn;
static struct meet *meet;
static volatile sig_atomic_t stop;
static const struct pace pace = { .stop = &stop };

static void open_meet(const char *text)
{
	scn = fx_scenario(text);
	ck_assert_int_eq(meet_new(&meet, scn), 0);
}

static void close_meet(void)
{
	meet_free(meet);
	scenario_free(scn);
}

struct rank {
	pthread_t thread;
	int world;
	int rounds;		/* that it takes part in */
	bool ran_ahead;
	int64_t late_ns;	/* as it has heard of it */
};

static _Atomic int done[RANKS];

static void *take_part(void *arg)
{
	struct rank *r = arg;

	for (int i = 1; i <= r->rounds; i++) {
		atomic_store(&done[r->world], i);
		if (r->world == 1 && i % 50 == 0)
			usleep(2000);		/* the others would be far away */
		r->late_ns = meet_wait(meet, r->world, (uint64_t)i, r->world == 2 ? i : 0, &pace);
		for (int w = 0; w < RANKS; w++)
			r->ran_ahead |= atomic_load(&done[w]) < i && w != 3;
	}
	if (r->rounds < ROUNDS)
		meet_leave(meet, r->world);
	return NULL;
}

/* The fourth one leaves in the middle. */
TEST(nobody_goes_on_before_all_who_are_there_have_come)
{
	struct rank r[RANKS];

	open_meet("gpus 4\ncomm w ranks 0-3\n");
	for (int i = 0; i < RANKS; i++) {
		r[i] = (struct rank){ .world = i, .rounds = i == 3 ? ROUNDS / 2 : ROUNDS };
		ck_assert_int_eq(pthread_create(&r[i].thread, NULL, take_part, &r[i]), 0);
	}
	for (int i = 0; i < RANKS; i++) {
		pthread_join(r[i].thread, NULL);
		ck_assert_msg(!r[i].ran_ahead, "rank %d", i);
		ck_assert_int_ge(r[i].late_ns, r[i].rounds);	/* as the latest of them */
	}
	close_meet();
}

TEST(nobody_waits_for_who_is_dead)
{
	open_meet("processes 2\ngpus 2\ncomm w ranks 0-3\n");
	meet_bury(meet, scn, 1);
	meet_leave(meet, 1);
	meet_wait(meet, 0, 7, 0, &pace);
	close_meet();
}

TEST(who_is_stopped_waits_no_more)
{
	open_meet("gpus 2\ncomm w ranks 0,1\n");
	stop = 1;
	meet_wait(meet, 0, 1, 0, &pace);
	close_meet();
}

TEST(ranks_that_share_a_thread_come_as_one)
{
	open_meet("processes 2\ngpus 2\nthreads process\ncomm w ranks 0-3\n");
	meet_leave(meet, 2);
	meet_wait(meet, 0, 1, 0, &pace);
	close_meet();
}

TEST(apart_there_is_nothing_to_wait_for)
{
	static const char *const apart[] = { "peers apart\n", "pace none\n" };

	for (int i = 0; i < 2; i++) {
		char text[64];

		snprintf(text, sizeof(text), "gpus 2\n%scomm w ranks 0,1\n", apart[i]);
		open_meet(text);
		ck_assert_ptr_null(meet);
		meet_wait(meet, 0, 1, 0, &pace);
		meet_leave(meet, 0);
		close_meet();
	}
}

/* Ten seconds late at its first launch, and not in time again after a rest. */
TEST(a_host_goes_on_as_late_as_the_gpu_that_it_waited_for)
{
	const int64_t began = pace_now();
	struct player_plugin plugin = { probe_table(6), 6 };
	const struct pace late = { .factor = 1, .base_ns = began - 10000000000 };

	scn = fx_scenario("gpus 2\nthreads process\ncomm w ranks 0,1 channels 2\n"
			  "loop 2\nAllReduce w 1Ki float32\nsync\nidle 200ms\nend\n");
	probe_reset(NCCL_COLL, 0);
	ck_assert_int_eq(player_run(scn, 0, &plugin, &late, &PLAYER_ALONE), 0);
	ck_assert_int_ge(pace_now() - began, 200000000);
	scenario_free(scn);
}

/* ---- what was asked for -------------------------------------------------------------- */

/* A digit for the mask of each operation. */
static const char *note_all(const char *masks)
{
	static char text[1024];
	const struct sim_comm comm = { .name = "w", .id = 0xabc };
	struct member m = { .comm = &comm, .rank = 1, .world = 3 };
	char path[300];
	int fd, n;

	snprintf(path, sizeof(path), "%s/asked", fx_tmpdir());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	for (uint64_t op = 0; masks[op]; op++) {
		if (masks[op] == ' ')
			continue;	/* an operation of others */
		asked_note(fd, &m, op, masks[op] - '0');
		asked_note(fd, &m, op, masks[op] - '0');	/* a send and its receive */
	}
	asked_end(fd, &m);
	asked_end(fd, &m);
	n = (int)pread(fd, text, sizeof(text) - 1, 0);
	ck_assert_int_ge(n, 0);
	text[n] = '\0';
	close(fd);
	/* Without the times, which are of 19 digits. */
	for (char *at; (at = strstr(text, ",\"first_real_ns\":"));)
		memmove(at, at + 17 + 19, strlen(at + 17 + 19) + 1);
	return text;
}

#define RUN(mask, first, last) "{\"comm\":\"w\",\"comm_id\":\"0000000000000abc\",\"rank\":1," \
	"\"world_rank\":3,\"mask\":" #mask ",\"first\":" #first ",\"last\":" #last "}\n"

TEST(operations_are_told_run_by_run)
{
	ck_assert_str_eq(note_all(""), "");
	ck_assert_str_eq(note_all("00700"), RUN(0, 0, 1) RUN(7, 2, 2) RUN(0, 3, 4));
	ck_assert_str_eq(note_all("33 3"), RUN(3, 0, 1) RUN(3, 3, 3));
}

TEST_LOOP(what_is_told_is_what_the_mask_said, 0, 2)
{
	int mask = _i ? NCCL_KERNEL_CH : NCCL_COLL, n;
	struct player_shared shared = PLAYER_ALONE;
	struct player_plugin plugin = { probe_table(6), 6 };
	const struct pace at_once = { .factor = 0 };
	char path[300], text[2048], expected[100];

	snprintf(path, sizeof(path), "%s/run", fx_tmpdir());
	shared.asked_fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	scn = fx_scenario(FX_ONE_NODE "loop 3\nAllReduce w 1Ki float32\nend\n");
	probe_reset(mask, 0);
	ck_assert_int_eq(player_run(scn, 0, &plugin, &at_once, &shared), 0);
	n = (int)pread(shared.asked_fd, text, sizeof(text) - 1, 0);
	text[n] = '\0';
	for (int w = 0; w < 2; w++) {
		snprintf(expected, sizeof(expected), "\"world_rank\":%d,\"mask\":%d,\"first\":0,"
			 "\"last\":2,", w, mask);
		ck_assert_msg(strstr(text, expected), "%s is not in\n%s", expected, text);
	}
	close(shared.asked_fd);
	scenario_free(scn);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
