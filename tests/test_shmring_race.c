/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer and reader at the same time, at full speed: in two processes through
 * the file as in real life, and in two threads over one mapping for TSan, which
 * sees nothing across mappings.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fixture.h"
#include "tests/fixture_ring.h"

#define RECORDS	UINT64_C(1000000)
#define EVENTS	UINT64_C(100000)
#define STAYS	100
#define COPIES	30000

static struct fx_lane fx;
static _Atomic uint64_t taken;	/* how far the other thread has come */

static void setup(void)
{
	fx_lane_open(&fx);
	atomic_store_explicit(&taken, 0, memory_order_relaxed);
}

static void teardown(void)
{
	fx_lane_close(&fx);
}

static void publish_all(struct shmring_lane *lane)
{
	for (uint64_t n = 0; n < RECORDS; n++)
		fx_publish(lane, n, fx_lines(n));
}

static uint64_t accounted(void)
{
	return fx.reader.records + fx.reader.lost + fx.reader.before;
}

static bool is_over(pid_t child)
{
	int status;

	if (waitpid(child, &status, WNOHANG) == 0)
		return false;
	ck_assert_int_eq(status, 0);
	return true;
}

static pid_t publish_in_another_process(void)
{
	pid_t child = fork();

	if (child == 0) {
		publish_all(fx.lane);
		_exit(0);
	}
	return child;
}

TEST(other_process_gets_whole_records_in_order_and_counts_the_rest)
{
	pid_t child = publish_in_another_process();
	uint64_t last = 0;
	bool over;

	do {
		over = is_over(child);
		fx_lane_drain(&fx, &last);
	} while (!over);
	ck_assert_uint_eq(last, RECORDS - 1);
	ck_assert_uint_eq(accounted(), RECORDS);
}

static bool is_lapped(void)
{
	struct nci_lane line;

	fx_copy_line(&fx, &line);
	return shmring_fill_percent(&fx.reader, &line) == 100;
}

/* The writer is always about to overwrite what is being copied. */
TEST(other_process_that_is_always_nearly_lapped_loses_much_and_counts_it)
{
	pid_t child = publish_in_another_process();
	uint64_t last = 0;
	bool over;

	fx.room = 64;
	do {
		const struct nci_record *rec;

		over = is_over(child);
		if (!over && !is_lapped())
			continue;
		for (int i = 0; (rec = fx_lane_next(&fx)) && (over || i < 256); i++) {
			last = fx_number(rec);
			ck_assert_uint_eq(last + 1, rec->serial);
		}
	} while (!over);
	ck_assert_uint_eq(last, RECORDS - 1);
	ck_assert_uint_eq(accounted(), RECORDS);
	ck_assert_uint_gt(fx.reader.lost + fx.reader.before, RECORDS / 100);
}

static void *publish_thread(void *arg)
{
	publish_all(arg);
	return NULL;
}

TEST(other_thread_gets_whole_records_in_order_and_counts_the_rest)
{
	pthread_t writer;
	uint64_t last = 0;

	fx.copy = FX_WORDS;
	ck_assert_int_eq(pthread_create(&writer, NULL, publish_thread, fx.lane), 0);
	while (accounted() < RECORDS)
		fx_lane_drain(&fx, &last);
	pthread_join(writer, NULL);
	ck_assert_uint_eq(last, RECORDS - 1);
	ck_assert_uint_eq(accounted(), RECORDS);
}

/* Never laps the reader, so that every byte it reads was ordered by W3 and R1. */
static void *publish_in_step(void *arg)
{
	for (uint64_t n = 0; n < EVENTS; n++) {
		while (n - atomic_load_explicit(&taken, memory_order_acquire) > SHMRING_LINES / 4)
			sched_yield();
		fx_publish(arg, n, fx_lines(n));
	}
	return NULL;
}

TEST(published_record_is_ordered_before_the_end_that_shows_it)
{
	pthread_t writer;
	uint64_t last = 0;

	fx.copy = FX_PLAIN;
	ck_assert_int_eq(pthread_create(&writer, NULL, publish_in_step, fx.lane), 0);
	while (fx.reader.records < EVENTS) {
		fx_lane_drain(&fx, &last);
		atomic_store_explicit(&taken, fx.reader.records, memory_order_release);
	}
	pthread_join(writer, NULL);
	ck_assert_uint_eq(fx.reader.lost, 0);
}

/* The slot's token, then the slot, then its token again: R4, copy, R5. */
static bool copy_live(struct nci_slot *copy)
{
	const uint64_t pool = fx.reader.offset + (uint64_t)fx.reader.lines * NCI_LINE_BYTES;
	struct nci_slot before, after;

	fx_copy_bytes(&fx, pool, &before, sizeof(before));
	fx_copy_bytes(&fx, pool, copy, sizeof(*copy));
	fx_copy_bytes(&fx, pool, &after, sizeof(after));
	return shmring_slot_settled(&before, copy, &after);
}

/*
 * Always slot 0: event n has generation n + 1.  One in so many stays for a while: who copies
 * slowly, as a sanitizer does, would else find none that settles while nobody interrupts us.
 */
static void start_and_stop_until_told(struct shmring_lane *lane)
{
	for (uint64_t n = 0; !atomic_load_explicit(&taken, memory_order_relaxed); n++) {
		uint64_t token = fx_start(lane, n, 2);

		if (n % STAYS == 0)
			usleep(1);
		shmring_close(lane, shmring_find(&fx.ring, token), token, 0);
	}
}

static void *start_and_stop_thread(void *arg)
{
	start_and_stop_until_told(arg);
	return NULL;
}

static void copy_live_events(void)
{
	struct nci_slot copy;
	const struct nci_record *rec = (const struct nci_record *)&copy;

	for (int seen = 0; seen < COPIES;) {
		if (!copy_live(&copy))
			continue;
		ck_assert_uint_ne(fx_live_number(rec), FX_TORN);
		ck_assert_uint_eq(nci_token_generation(rec->token), fx_live_number(rec) + 1);
		seen++;
	}
}

TEST(copy_of_a_live_event_that_settled_is_whole_in_another_process)
{
	pid_t child = fork();

	if (child == 0)
		start_and_stop_until_told(fx.lane);
	copy_live_events();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

TEST(copy_of_a_live_event_that_settled_is_whole_in_another_thread)
{
	pthread_t writer;

	fx.copy = FX_WORDS;
	ck_assert_int_eq(pthread_create(&writer, NULL, start_and_stop_thread, fx.lane), 0);
	copy_live_events();
	atomic_store_explicit(&taken, 1, memory_order_relaxed);
	pthread_join(writer, NULL);
}

/*
 * One thread starts, others stop.  Tokens pass through relaxed words, so that
 * nothing orders the threads but what shmring itself does.
 */
#define MAILBOX 256
static _Atomic uint64_t mailbox[MAILBOX];

struct closer {
	pthread_t thread;
	struct shmring_lane *lane;
	uint64_t closed;
	uint64_t torn;
};

static bool none(const struct nci_record *rec, void *arg)
{
	(void)rec;
	(void)arg;
	return false;
}

static uint64_t start_when_there_is_room(uint64_t n)
{
	struct nci_record *rec;
	uint64_t token;

	while (!(rec = shmring_take(fx.lane, &token)) &&
	       !(rec = shmring_take_slowly(fx.lane, &token, none, NULL)))
		sched_yield();
	fx_fill(rec, n, 2);
	shmring_open(rec, token);
	return token;
}

static void *start_for_others(void *arg)
{
	for (uint64_t n = 0; n < EVENTS; n++)
		atomic_store_explicit(&mailbox[n % MAILBOX], start_when_there_is_room(n),
				      memory_order_relaxed);
	atomic_store_explicit(&taken, 1, memory_order_release);
	return arg;
}

static void *stop_what_comes(void *arg)
{
	struct closer *c = arg;
	bool over;

	do {
		over = atomic_load_explicit(&taken, memory_order_acquire);
		for (uint32_t i = 0; i < SHMRING_SLOTS + MAILBOX; i++) {
			uint64_t token = i < MAILBOX ?
				atomic_load_explicit(&mailbox[i], memory_order_relaxed) :
				atomic_load_explicit(shmring_token(shmring_slot(fx.lane->pool,
						     i - MAILBOX)), memory_order_relaxed);
			struct nci_record *rec = shmring_find(&fx.ring, token);

			c->closed += rec && shmring_close(c->lane, rec, token, 7);
		}
	} while (!over);
	return NULL;
}

TEST(event_that_several_threads_stop_at_once_is_stopped_by_one)
{
	struct closer c[2] = { 0 };
	pthread_t starter;

	for (int i = 0; i < 2; i++) {
		c[i].lane = fx_lane_more(&fx.ring);
		ck_assert_ptr_nonnull(c[i].lane);
		ck_assert_int_eq(pthread_create(&c[i].thread, NULL, stop_what_comes, &c[i]), 0);
	}
	ck_assert_int_eq(pthread_create(&starter, NULL, start_for_others, NULL), 0);
	pthread_join(starter, NULL);
	pthread_join(c[0].thread, NULL);
	pthread_join(c[1].thread, NULL);
	for (int i = 0; i < 2; i++) {
		const struct nci_record *rec;

		fx_lane_attach(&fx, c[i].lane->index);
		while ((rec = fx_lane_next(&fx)))
			ck_assert_uint_lt(rec->parent, EVENTS);
		ck_assert_uint_eq(accounted(), c[i].closed);
	}
	ck_assert_uint_eq(c[0].closed + c[1].closed, EVENTS);
}

/* Reads what it stops, plainly: each byte was ordered by W5 and the token's load. */
static void check_and_stop_what_comes(struct closer *c)
{
	while (c->closed < EVENTS)
		for (uint32_t i = 0; i < MAILBOX; i++) {
			uint64_t token = atomic_load_explicit(&mailbox[i], memory_order_relaxed);
			struct nci_record *rec = shmring_find(&fx.ring, token);

			if (!rec)
				continue;
			c->torn += fx_live_number(rec) == FX_TORN;
			c->closed += shmring_close(c->lane, rec, token, 7);
		}
}

/* Unlike shmring_find() it orders nothing. */
static bool is_live(uint64_t token)
{
	struct nci_record *rec = shmring_slot(fx.lane->pool, nci_token_slot(token));

	return token && atomic_load_explicit(shmring_token(rec), memory_order_relaxed) == token;
}

/* Waits for the stop of what it left in the mailbox before it puts more there. */
static void *start_for_one(void *arg)
{
	for (uint64_t n = 0; n < EVENTS; n++) {
		_Atomic uint64_t *box = &mailbox[n % MAILBOX];

		while (is_live(atomic_load_explicit(box, memory_order_relaxed)))
			sched_yield();
		atomic_store_explicit(box, start_when_there_is_room(n), memory_order_relaxed);
	}
	return arg;
}

TEST(started_event_is_ordered_before_its_token_and_its_end_before_the_next)
{
	struct closer c = { .lane = fx_lane_more(&fx.ring) };
	pthread_t starter;

	ck_assert_ptr_nonnull(c.lane);
	ck_assert_int_eq(pthread_create(&starter, NULL, start_for_one, NULL), 0);
	check_and_stop_what_comes(&c);
	pthread_join(starter, NULL);
	ck_assert_uint_eq(c.closed, EVENTS);
	ck_assert_uint_eq(c.torn, 0);
}

int main(void)
{
	return fx_run(setup, teardown);
}
