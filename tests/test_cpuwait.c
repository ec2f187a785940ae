/* SPDX-License-Identifier: Apache-2.0 */
/* How long threads wait for a CPU, by what the kernel counts. */
#include "ncclinspd/findings/cpuwait.h"

#include <errno.h>
#include <stdlib.h>

#include "reader/read/life.h"
#include "tests/fixture_proc.h"

#define SECOND	UINT64_C(1000000000)
#define MS	UINT64_C(1000000)
#define PID	100
#define MANY	200	/* threads that are none of ours */

static struct cpuwait *cpu;
static uint64_t now_ns;
static struct cpuwait_sums sums;

static void setup(void)
{
	now_ns = 1000 * SECOND;
	cpu = NULL;
}

static void teardown(void)
{
	cpuwait_free(cpu);
}

static void open_process(void)
{
	ck_assert_int_eq(cpuwait_new(&cpu, fx_proc(), PID, FX_PROC_START), 0);
}

/* One look at these threads, a second after the last; returns how many files were read. */
static uint32_t look(const pid_t *tids, uint32_t n, uint32_t most)
{
	uint32_t files = most;

	now_ns += SECOND;
	cpuwait_look(cpu, tids, n, now_ns, &files);
	return most - files;
}

TEST(what_a_thread_waited_is_told)
{
	const pid_t tid = PID + 1;

	fx_proc_thread(PID, PID, 0);
	fx_proc_thread(PID, tid, 0);
	open_process();
	for (uint64_t s = 0; s <= 10; s++) {
		fx_proc_schedstat(PID, tid, 5 * SECOND + s * 600 * MS, 7 * SECOND + s * 300 * MS,
				  9);
		ck_assert_uint_eq(look(&tid, 1, 10), 1);
	}
	ck_assert(cpuwait_tell(cpu, now_ns, &sums));
	ck_assert_int_eq(sums.tid, tid);
	ck_assert_uint_eq(sums.watched_ns, 10 * SECOND);
	ck_assert_uint_eq(sums.wait_ns, 3 * SECOND);
	ck_assert(!cpuwait_tell(cpu, now_ns + 60 * SECOND, &sums));
}

TEST(of_several_threads_the_one_that_waits_most_is_told)
{
	const pid_t tids[] = { PID + 1, PID + 2, PID + 3 };

	fx_proc_thread(PID, PID, 0);
	for (int i = 0; i < 3; i++)
		fx_proc_thread(PID, tids[i], 0);
	open_process();
	for (uint64_t s = 0; s <= 4; s++) {
		fx_proc_schedstat(PID, tids[0], SECOND, s * 10 * MS, 9);
		fx_proc_schedstat(PID, tids[1], SECOND, s * 80 * MS, 9);
		fx_proc_schedstat(PID, tids[2], SECOND, s * 20 * MS, 9);
		ck_assert_uint_eq(look(tids, 3, 10), 3);
	}
	ck_assert(cpuwait_tell(cpu, now_ns, &sums));
	ck_assert_int_eq(sums.tid, tids[1]);
	ck_assert_uint_eq(sums.wait_ns, 320 * MS);
}

/* One sleeps and has to wait each time it wakes up; the other works. */
TEST(of_several_threads_the_one_that_wants_a_cpu_most_is_told)
{
	const pid_t tids[] = { PID + 1, PID + 2 };

	fx_proc_thread(PID, PID, 0);
	for (int i = 0; i < 2; i++)
		fx_proc_thread(PID, tids[i], 0);
	open_process();
	for (uint64_t s = 0; s <= 4; s++) {
		fx_proc_schedstat(PID, tids[0], SECOND + s * MS, s * 80 * MS, 9);
		fx_proc_schedstat(PID, tids[1], SECOND + s * 900 * MS, s * 20 * MS, 9);
		ck_assert_uint_eq(look(tids, 2, 10), 2);
	}
	ck_assert(cpuwait_tell(cpu, now_ns, &sums));
	ck_assert_int_eq(sums.tid, tids[0]);
	ck_assert(cpuwait_tell_busiest(cpu, now_ns, &sums));
	ck_assert_int_eq(sums.tid, tids[1]);
	ck_assert_uint_eq(sums.ran_ns, 3600 * MS);
	ck_assert_uint_eq(sums.wait_ns, 80 * MS);
	ck_assert(!cpuwait_tell_busiest(NULL, now_ns, &sums));
}

TEST(a_container_knows_its_threads_by_other_numbers)
{
	const pid_t tid = 9;

	fx_proc_thread(PID, PID, 1);
	for (int i = 1; i < 10; i++)
		fx_proc_thread(PID, PID + i, 1 + i);
	fx_proc_thread(PID, 9, 77);	/* has that number here, and is another one */
	open_process();
	for (uint64_t s = 0; s < 10; s++) {
		fx_proc_schedstat(PID, PID + 8, SECOND, s * 50 * MS, 9);
		fx_proc_schedstat(PID, 9, SECOND, s * 900 * MS, 9);
		look(&tid, 1, 20);
	}
	ck_assert(cpuwait_tell(cpu, now_ns, &sums));
	ck_assert_int_eq(sums.tid, PID + 8);
	ck_assert_uint_eq(sums.wait_ns, 9 * 50 * MS);
}

TEST(threads_are_looked_for_some_files_at_a_time)
{
	const pid_t tid = 2 + MANY;
	uint32_t files = 0;
	int looks = 0;

	for (int i = 0; i < MANY + 2; i++)
		fx_proc_thread(PID, PID + i, 1 + i);
	fx_proc_schedstat(PID, PID + 1 + MANY, SECOND, SECOND, 9);
	open_process();
	for (; looks < 4 * MANY && !cpuwait_tell(cpu, now_ns, &sums); looks++) {
		uint32_t n = look(&tid, 1, 16);

		ck_assert_uint_le(n, 16);
		files += n;
	}
	ck_assert(cpuwait_tell(cpu, now_ns, &sums));
	ck_assert_uint_le(files, MANY + 2 + 3);
}

TEST(who_is_not_found_is_given_up)
{
	const pid_t tid = 4000;
	uint32_t files = 0;

	for (int i = 0; i < 5; i++)
		fx_proc_thread(PID, PID + i, 1 + i);
	open_process();
	for (int i = 0; i < 50; i++)
		files += look(&tid, 1, 100);
	ck_assert_uint_eq(files, 3 * 5);
	ck_assert(!cpuwait_tell(cpu, now_ns, &sums));
}

TEST(another_thread_with_its_number_is_not_counted_as_it)
{
	const pid_t tid = PID + 1;

	fx_proc_thread(PID, PID, 0);
	fx_proc_thread(PID, tid, 0);
	open_process();
	fx_proc_schedstat(PID, tid, 50 * SECOND, 40 * SECOND, 9);
	look(&tid, 1, 10);
	fx_proc_schedstat(PID, tid, 1 * SECOND, 2 * SECOND, 9);
	look(&tid, 1, 10);
	ck_assert(!cpuwait_tell(cpu, now_ns, &sums));
	fx_proc_schedstat(PID, tid, 1 * SECOND, 2 * SECOND + MS, 9);
	look(&tid, 1, 10);
	ck_assert(cpuwait_tell(cpu, now_ns, &sums));
	ck_assert_uint_eq(sums.watched_ns, SECOND);
	ck_assert_uint_eq(sums.wait_ns, MS);
}

/* It is counted when the thread gets its CPU, then all at once. */
TEST(nobody_waits_for_longer_than_it_was_watched)
{
	const pid_t tid = PID + 1;

	fx_proc_thread(PID, PID, 0);
	fx_proc_thread(PID, tid, 0);
	open_process();
	fx_proc_schedstat(PID, tid, SECOND, 0, 9);
	look(&tid, 1, 10);
	fx_proc_schedstat(PID, tid, SECOND, 30 * SECOND, 9);
	look(&tid, 1, 10);
	ck_assert(cpuwait_tell(cpu, now_ns, &sums));
	ck_assert_uint_eq(sums.wait_ns, SECOND);
}

TEST(a_kernel_that_does_not_count_tells_nothing)
{
	const pid_t tid = PID + 1;

	fx_proc_thread(PID, PID, 0);
	fx_proc_thread(PID, tid, 0);
	open_process();
	for (int i = 0; i < 5; i++) {
		fx_proc_schedstat(PID, tid, 0, 0, 0);
		look(&tid, 1, 10);
	}
	ck_assert(!cpuwait_tell(cpu, now_ns, &sums));
	ck_assert(!cpuwait_tell(NULL, now_ns, &sums));
}

TEST(a_thread_that_cannot_be_read_tells_nothing)
{
	const pid_t tids[] = { PID + 1, PID + 2 };

	fx_proc_thread(PID, PID, 0);
	fx_proc_thread(PID, tids[0], 0);
	open_process();
	fx_proc_file("100/task/101/schedstat", "12 monkeys\n");
	ck_assert_uint_eq(look(tids, 2, 10), 2);
	ck_assert_uint_eq(look(tids, 2, 10), 0);	/* nor is it tried again */
	ck_assert(!cpuwait_tell(cpu, now_ns, &sums));
}

TEST(another_process_with_that_number_is_refused)
{
	fx_proc_thread(PID, PID, 0);
	ck_assert_int_eq(cpuwait_new(&cpu, fx_proc(), PID, FX_PROC_START + 1), -ESRCH);
	ck_assert_int_eq(cpuwait_new(&cpu, fx_proc(), PID + 7, FX_PROC_START), -ENOENT);
	ck_assert_int_eq(cpuwait_new(&cpu, fx_proc(), PID + 7, 0), -ENOENT);
	ck_assert_ptr_null(cpu);
}

TEST(more_threads_than_are_watched_do_no_harm)
{
	pid_t tids[3 * CPUWAIT_THREADS];

	fx_proc_thread(PID, PID, 0);
	for (int i = 0; i < 3 * CPUWAIT_THREADS; i++) {
		tids[i] = PID + 1 + i;
		fx_proc_thread(PID, tids[i], 0);
		fx_proc_schedstat(PID, tids[i], 1, 1, 1);
	}
	open_process();
	for (int i = 0; i < 10; i++)
		ck_assert_uint_le(look(&tids[i], 2 * CPUWAIT_THREADS, 1000), CPUWAIT_THREADS);
	ck_assert(cpuwait_tell(cpu, now_ns, &sums));
}

TEST(wait_of_the_daemon_itself_is_read_or_unknown)
{
	ck_assert_uint_eq(cpuwait_own_ns(fx_proc()), UNKNOWN_U64);
	fx_proc_dir("self", 0, 0);
	fx_proc_file("self/schedstat", "12 345 6\n");
	ck_assert_uint_eq(cpuwait_own_ns(fx_proc()), 345);
	fx_proc_file("self/schedstat", "0 0 0\n");
	ck_assert_uint_eq(cpuwait_own_ns(fx_proc()), UNKNOWN_U64);
}

/* Ten processes that had its CPU, the last of them for longest; then another thread. */
TEST(process_that_had_the_cpu_for_longest_is_told)
{
	struct probe_event e = { .number = PID + 1 };
	const pid_t tid = PID + 1;
	pid_t tids[2];

	fx_proc_thread(PID, PID, 0);
	fx_proc_thread(PID, tid, 0);
	fx_proc_schedstat(PID, tid, SECOND, SECOND, 9);
	open_process();
	look(&tid, 1, 10);
	ck_assert_uint_eq(cpuwait_threads(cpu, tids, 2), 1);
	ck_assert_int_eq(tids[0], tid);
	look(&tid, 1, 10);
	ck_assert(cpuwait_tell(cpu, now_ns, &sums));
	ck_assert_int_eq(sums.taker.pid, 0);
	for (int i = 0; i < 10; i++)
		for (int times = 0; times <= i; times++) {
			e.taker[i % PROBE_TAKERS] = (struct probe_taker){ .ns = 2 * MS,
									  .pid = 200 + i };
			cpuwait_add(cpu, &e, now_ns + 20 * SECOND * (times % 2));
			e.taker[i % PROBE_TAKERS].ns = 0;
		}
	e.number = PID + 2;
	e.taker[0] = (struct probe_taker){ .ns = SECOND, .pid = 300 };
	cpuwait_add(cpu, &e, now_ns);
	ck_assert(cpuwait_tell(cpu, now_ns + 20 * SECOND, &sums));
	ck_assert_int_eq(sums.taker.pid, 209);
	ck_assert_uint_le(sums.taker.ns, 20 * MS);	/* never too much */
}

/* The real one: this process, as it is. */
TEST(the_kernel_tells_of_ourselves)
{
	const pid_t tid = getpid();

	if (access("/proc/self/schedstat", R_OK) < 0)
		return;
	ck_assert_int_eq(cpuwait_new(&cpu, LIFE_PROC, tid, life_start_time(LIFE_PROC, tid)), 0);
	for (int i = 0; i < 3; i++)
		look(&tid, 1, 10);
	ck_assert(cpuwait_tell(cpu, now_ns, &sums));
	ck_assert_int_eq(sums.tid, tid);
	ck_assert_uint_eq(sums.watched_ns, 2 * SECOND);
}

int main(void)
{
	return fx_run(setup, teardown);
}
