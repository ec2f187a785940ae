/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer killed at every testpoint: what readers see afterwards.  The writing
 * half of the ring is compiled here once more, with its testpoints alive.
 */
#define SHMRING_TESTPOINTS
#include "shmring/producer.c"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/fixture.h"
#include "tests/fixture_ring.h"

static struct fx_lane fx;
static const char *deadly;	/* the testpoint to die at */
static bool adopts_first;	/* a thread of the dead one's number, which lives now */

/* Two threads want a lane at once: the second one has the number of the dead one. */
static struct {
	bool wanted;
	pthread_t thread;
	sem_t adopted, go_on;
	struct shmring_lane *lane;
} second;

static void *second_run(void *arg)
{
	second.lane = shmring_lane_new(&fx.ring, UINT32_MAX / 2);
	return arg;
}

/* The first one waits until the second is in the midst of it, and goes on then. */
static void second_meets_first(const char *name)
{
	if (strcmp(name, "adopting") == 0 && second.wanted) {
		second.wanted = false;
		pthread_create(&second.thread, NULL, second_run, NULL);
		sem_wait(&second.adopted);
	} else if (strcmp(name, "adopted") == 0 && pthread_equal(pthread_self(), second.thread)) {
		sem_post(&second.adopted);
		sem_wait(&second.go_on);
	}
}

void shmring_testpoint(const char *name)
{
	if (deadly && strcmp(name, deadly) == 0)
		kill(getpid(), SIGKILL);
	if (adopts_first && strcmp(name, "adopting") == 0)
		fx.lane->out->line->owners += 2;
	second_meets_first(name);
}

static void setup(void)
{
	fx_lane_open(&fx);
}

static void teardown(void)
{
	fx_lane_close(&fx);
}

static void start_and_stop(uint64_t n, uint32_t lines)
{
	uint64_t token;
	struct nci_record *rec = shmring_take(fx.lane, &token);

	if (!rec)
		_exit(1);
	fx_fill(rec, n, lines);
	shmring_open(rec, token);
	shmring_close(fx.lane, shmring_find(&fx.ring, token), token, n + 7);
}

/* A child stops event after event and is killed in the midst of number `victim`. */
static void kill_at(const char *name, uint64_t victim, uint32_t lines)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		for (uint64_t n = 0; n < victim; n++)
			start_and_stop(n, lines);
		deadly = name;
		start_and_stop(victim, lines);
		_exit(0);
	}
	waitpid(child, &status, 0);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "%s was not reached",
		      name);
}

static uint64_t live_events(void)
{
	uint64_t live = 0;

	for (uint32_t i = 0; i < fx.reader.slots; i++) {
		struct nci_slot slot;

		fx_copy_bytes(&fx, fx.reader.offset + fx.reader.lines * NCI_LINE_BYTES +
			      i * sizeof(slot), &slot, sizeof(slot));
		live += shmring_slot_settled(&slot, &slot, &slot);
	}
	return live;
}

static const struct {
	const char *name;
	bool published;		/* the victim's record is there */
	bool live;		/* the victim is in flight */
	uint32_t torn;		/* records of a full ring that its death took along */
	bool whole;		/* the lane may be used again */
} points[] = {
	{ "taken",    false, false, 0, true },
	{ "unfilled", false, false, 0, true },
	{ "begun",    false, true,  1, false },
	{ "half",     false, true,  1, false },
	{ "written",  false, true,  1, false },
	{ "freeing",  true,  true,  0, true },
};
#define POINTS FX_COUNT(points)

/* The lane's thread is dead now: who comes next gets it only if it is whole. */
static void lane_is_reused_only_if_whole(int i)
{
	atomic_store_explicit(&fx.lane->out->line->tid, UINT32_MAX / 2, memory_order_relaxed);
	if (points[i].whole)
		ck_assert_ptr_eq(shmring_lane_new(&fx.ring, getpid()), fx.lane);
	else
		ck_assert_ptr_ne(shmring_lane_new(&fx.ring, getpid()), fx.lane);
}

static void check_after(int i, uint64_t victim, uint64_t held, uint64_t torn)
{
	uint64_t last = UINT64_MAX;
	uint64_t published = victim + points[i].published;
	uint64_t delivered = fx_lane_drain(&fx, &last);

	ck_assert_uint_eq(last, published - 1);
	ck_assert_uint_eq(delivered, (published < held ? published : held) - torn);
	ck_assert_uint_eq(delivered + fx.reader.lost + fx.reader.before, published);
	ck_assert_uint_eq(live_events(), points[i].live);
	ck_assert_ptr_null(fx_lane_next(&fx));
	lane_is_reused_only_if_whole(i);
}

TEST_LOOP(fresh_ring_keeps_every_complete_record, 0, POINTS)
{
	kill_at(points[_i].name, 5, 2);
	check_after(_i, 5, SHMRING_LINES, 0);
}

TEST_LOOP(full_ring_loses_only_the_lines_that_were_begun, 0, POINTS)
{
	kill_at(points[_i].name, SHMRING_LINES, 2);
	check_after(_i, SHMRING_LINES, SHMRING_LINES / 2, points[_i].torn);
}

TEST_LOOP(record_of_one_line_tears_one_line, 0, POINTS)
{
	kill_at(points[_i].name, SHMRING_LINES + 3, 1);
	check_after(_i, SHMRING_LINES + 3, SHMRING_LINES, points[_i].torn);
}

/* Its first begin and end are the pad's. */
TEST_LOOP(writer_killed_at_the_pad_loses_nothing_complete, 0, 2)
{
	static const char *const names[] = { "begun", "written" };
	uint64_t last = 0;
	pid_t child = fork();

	if (child == 0) {
		for (uint64_t n = 0; n < SHMRING_LINES - 1; n++)
			start_and_stop(n, 1);
		deadly = names[_i];
		start_and_stop(SHMRING_LINES - 1, 2);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	ck_assert_uint_eq(fx_lane_drain(&fx, &last), SHMRING_LINES - 1);
	ck_assert_uint_eq(fx.reader.lost + fx.reader.before, 0);
	ck_assert_uint_eq(live_events(), 1);
}

TEST(lane_whose_maker_was_killed_is_never_ready_and_harms_no_other)
{
	struct nci_lane line;
	pid_t child = fork();

	if (child == 0) {
		deadly = "allocated";
		shmring_lane_new(&fx.ring, getpid());
		_exit(0);
	}
	waitpid(child, NULL, 0);
	memcpy(&line, &fx.ring.directory[1], sizeof(line));
	ck_assert_uint_eq(line.state, NCI_LANE_MAKING);
	ck_assert_uint_eq(shmring_lane_new(&fx.ring, getpid() + 1)->index, 2);
}

TEST(lane_that_found_an_owner_of_the_dead_one_s_number_stays_with_it)
{
	struct nci_lane *line = fx.lane->out->line;

	line->tid = UINT32_MAX / 2;
	adopts_first = true;
	ck_assert_ptr_ne(shmring_lane_new(&fx.ring, getpid()), fx.lane);
	adopts_first = false;
	ck_assert_uint_eq(line->tid, UINT32_MAX / 2);
	ck_assert_uint_eq(line->owners, 3);
	ck_assert_ptr_eq(shmring_lane_new(&fx.ring, getpid() + 1), fx.lane);
}

TEST(lane_that_two_threads_adopt_at_once_has_one_owner)
{
	struct nci_lane *line = fx.lane->out->line;

	line->tid = UINT32_MAX / 2;
	sem_init(&second.adopted, 0, 0);
	sem_init(&second.go_on, 0, 0);
	second.wanted = true;
	ck_assert_ptr_ne(shmring_lane_new(&fx.ring, getpid()), fx.lane);
	sem_post(&second.go_on);
	pthread_join(second.thread, NULL);
	ck_assert_ptr_eq(second.lane, fx.lane);
	ck_assert_uint_eq(line->tid, UINT32_MAX / 2);
	ck_assert_uint_eq(line->owners, 2);
}

int main(void)
{
	return fx_run(setup, teardown);
}
