/* SPDX-License-Identifier: Apache-2.0 */
/* Many processes begin or end between two looks: all bounds hold in the middle of one too. */
#include "ncclinspd/find/discover.h"

#include <signal.h>
#include <sys/wait.h>

#include "tests/fixture.h"
#include "tests/fixture_daemon.h"

#define SEGMENTS 16
#define ALLOWED	 (SEGMENTS - SEGMENTS / 4)	/* of one user */
#define ENDED	 2
#define JOBS	 (2 * SEGMENTS)	/* whose files are known, read or not */

static const struct discover_config config = {
	.everybody = true, .max_segments = SEGMENTS, .max_ended = ENDED,
	.keep_ns = UINT64_C(60000000000),
};

static struct fx_daemon fx;
static pid_t jobs[JOBS];
static char name[80];

static void start_jobs(int first, int end)
{
	for (int i = first; i < end; i++)
		jobs[i] = fx_job_fork(fx.dir, fx_job_publish_some, name);
}

static void kill_jobs(int first, int end)
{
	for (int i = first; i < end; i++)
		fx_job_kill(jobs[i]);
}

static void check_bounds(void)
{
	struct process *const *list;
	size_t n = discover_processes(fx.discover, &list), live = 0;

	for (size_t i = 0; i < n; i++)
		live += list[i]->state == PROCESS_LIVE;
	ck_assert_uint_eq(live, discover_attached(fx.discover));
	ck_assert_uint_le(live, ALLOWED);
	ck_assert_uint_le(n - live, ENDED);
	ck_assert_uint_eq(n, fx.seen.appeared - fx.seen.forgotten);
}

TEST(all_may_end_at_once)
{
	fx_daemon_open_with(&fx, config);
	start_jobs(0, ALLOWED);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, ALLOWED);
	kill_jobs(0, ALLOWED);
	fx_daemon_step(&fx, 100);
	check_bounds();
	ck_assert_uint_eq(fx.seen.ended, ALLOWED);
	ck_assert_uint_eq(fx.seen.forgotten, ALLOWED - ENDED);
	ck_assert_uint_eq(fx.seen.events, ALLOWED * FX_SOME);
	ck_assert_uint_eq(fx_process(&fx, 0)->id, ALLOWED - ENDED + 1);
	fx_daemon_close(&fx);
}

TEST(more_may_begin_at_once_than_are_read)
{
	fx_daemon_open_with(&fx, config);
	start_jobs(0, JOBS);
	for (int i = 0; i < 3; i++) {
		fx_daemon_step(&fx, 4000);
		check_bounds();
		ck_assert_uint_eq(fx.seen.appeared, ALLOWED);
	}
	ck_assert_uint_eq(discover_refused(fx.discover), JOBS - ALLOWED);
	kill_jobs(0, JOBS);
	fx_daemon_close(&fx);
}

/* In one pass all that are read end, and those that waited take their places, and end. */
TEST(all_may_end_as_others_begin)
{
	fx_daemon_open_with(&fx, config);
	start_jobs(0, JOBS);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, ALLOWED);
	kill_jobs(0, JOBS);
	for (int i = 0; i < 6; i++) {
		fx_daemon_step(&fx, 100);
		check_bounds();
	}
	ck_assert_uint_eq(fx.seen.ended, JOBS);
	ck_assert_uint_eq(fx.seen.events, JOBS * FX_SOME);
	ck_assert_uint_eq(discover_attached(fx.discover), 0);
	fx_daemon_close(&fx);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
