/* SPDX-License-Identifier: Apache-2.0 */
/* The child is a script under ncclinsp's name; a thread waits for it (pthread_create). */
#include "ncclinspd/levels/raise.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ncclinspd/base/finding.h"
#include "shmring/clock.h"
#include "tests/fixture.h"

#define SECOND	UINT64_C(1000000000)
#define T0	(1000 * SECOND)
#define TP	UINT64_C(0x10)	/* of two ranks, both here */
#define DP	UINT64_C(0x20)	/* of eight, two here */
#define PP	UINT64_C(0x30)	/* of two, one of each process here */

static struct comm comms[2][3];
static struct process p[2];
static struct process *list[2] = { &p[0], &p[1] };
static struct raise *r;

static void setup(void)
{
	for (int i = 0; i < 2; i++) {
		const struct comm like[3] = {
			{ .ready = true, .has_id = true, .id = TP, .rank = i, .nranks = 2 },
			{ .ready = true, .has_id = true, .id = DP, .rank = i, .nranks = 8 },
			{ .ready = true, .has_id = true, .id = PP + (uint64_t)i, .nranks = 2 },
		};

		memcpy(comms[i], like, sizeof(like));
		p[i] = (struct process){ .id = 1 + (uint64_t)i, .comms = comms[i], .ncomms = 3 };
	}
	r = NULL;
}

static void teardown(void)
{
	raise_free(r);
}

/* Its arguments go to the file `asked`, one in each line; then comes `more`. */
static void have_program(const char *more)
{
	char path[256], text[1024];
	FILE *f;

	snprintf(path, sizeof(path), "%s/ncclinsp", fx_tmpdir());
	snprintf(text, sizeof(text), "%s/asked", fx_tmpdir());
	unlink(text);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fprintf(f, "#!/bin/sh\nprintf '%%s\\n' \"$@\" >%s/asked\n%s\n", fx_tmpdir(), more);
	fclose(f);
	ck_assert_int_eq(chmod(path, 0755), 0);
	snprintf(text, sizeof(text), "%s:/usr/bin:/bin", fx_tmpdir());
	setenv("PATH", text, 1);
}

static struct raise_stats stats(void)
{
	struct raise_stats s;

	raise_read_stats(r, &s);
	return s;
}

static void find_at(uint64_t comm_id, int32_t rank, uint64_t now_ns)
{
	const struct finding f = { .kind = FINDING_STRAGGLER, .has_comm_id = true,
				   .comm_id = comm_id, .ranks = { rank }, .nranks = 1 };

	raise_finding(r, &f, list, 2, now_ns);
}

static struct raise_stats settled(uint64_t times)
{
	while (stats().asked + stats().failed < times)
		usleep(1000);
	return stats();
}

static const char *asked(void)
{
	static char text[1024];
	char path[256];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/asked", fx_tmpdir());
	f = fopen(path, "r");
	if (!f)
		return "";
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

TEST(others_are_asked_for_the_communicator_of_the_finding)
{
	have_program("");
	ck_assert_int_eq(raise_new(&r, "node[1-4]"), 0);
	find_at(PP + 1, 0, T0);
	ck_assert_uint_eq(settled(1).asked, 1);
	ck_assert_str_eq(asked(), "level\ndetail\n--comm\n0x0000000000000031\n--for\n10s\n"
			 "--host\nnode[1-4]\n");
}

TEST(where_all_of_that_is_here_for_the_largest_of_the_rank_s_process)
{
	comms[0][1].nranks = 2;		/* rank 0's reaches nobody */
	comms[1][1].id = DP + 1;
	have_program("");
	ck_assert_int_eq(raise_new(&r, "node[1-4]"), 0);
	find_at(TP, 1, T0);
	settled(1);
	ck_assert_ptr_nonnull(strstr(asked(), "--comm\n0x0000000000000021\n"));
}

TEST(nobody_is_asked_where_all_ranks_are_here)
{
	have_program("");
	for (int i = 0; i < 2; i++)
		p[i].ncomms = 1;
	ck_assert_int_eq(raise_new(&r, "node[1-4]"), 0);
	find_at(TP, 1, T0);
	p[0].uid = p[1].uid = 7;	/* nor for another user's */
	find_at(DP, 1, T0);
	raise_free(r);
	r = NULL;
	ck_assert_str_eq(asked(), "");
}

TEST(slurm_stands_for_the_nodes_of_the_job)
{
	static const char job[] = "SLURM_JOB_ID=47", other[] = "SLURM_JOB_ID=47;reboot";

	have_program("");
	ck_assert_int_eq(raise_new(&r, "slurm"), 0);
	find_at(DP, 0, T0);
	memcpy(p[0].env, other, p[0].env_bytes = sizeof(other));
	find_at(DP, 0, T0);
	memcpy(p[0].env, job, p[0].env_bytes = sizeof(job));
	find_at(DP, 0, T0);
	settled(1);
	ck_assert_ptr_nonnull(strstr(asked(), "--host\nslurm:47\n"));
	ck_assert_uint_eq(stats().failed, 0);
}

TEST(others_are_asked_once_in_a_while_and_one_after_the_other)
{
	have_program("exec sleep 1000");
	ck_assert_int_eq(raise_new(&r, "node[1-4]"), 0);
	find_at(DP, 0, T0);
	find_at(DP, 0, T0 + RAISE_APART_NS - 1);
	ck_assert_uint_eq(stats().failed, 1);
	find_at(DP, 0, T0 + RAISE_APART_NS);	/* the first still runs */
	ck_assert_uint_eq(stats().failed, 2);
	ck_assert_uint_eq(stats().asked, 0);
}

TEST(who_did_not_follow_is_a_failure_and_the_next_time_is_another)
{
	have_program("echo node3: gone >&2; exit 1");
	ck_assert_int_eq(raise_new(&r, "node[1-4]"), 0);
	find_at(DP, 0, T0);
	ck_assert_uint_eq(settled(1).failed, 1);
	ck_assert_int_eq(stats().error, 0);
	have_program("");
	find_at(DP, 0, T0 + RAISE_APART_NS);
	ck_assert_uint_eq(settled(2).asked, 1);
	ck_assert_uint_gt(stats().last_ns, 0);
}

TEST(a_program_that_is_not_there_is_told_as_such)
{
	setenv("PATH", "/nowhere", 1);
	ck_assert_int_eq(raise_new(&r, "node[1-4]"), 0);
	find_at(DP, 0, T0);
	ck_assert_uint_eq(settled(1).failed, 1);
	ck_assert_int_eq(stats().error, -ENOENT);
}

/* The child's own children hold its stderr open. */
TEST(what_is_under_way_ends_with_the_daemon)
{
	uint64_t before_ns;

	have_program("sleep 1000 & wait");
	ck_assert_int_eq(raise_new(&r, "node[1-4]"), 0);
	find_at(DP, 0, T0);
	while (!*asked())
		usleep(1000);
	before_ns = clock_ns(CLOCK_MONOTONIC);
	raise_free(r);
	r = NULL;
	ck_assert_uint_lt(clock_ns(CLOCK_MONOTONIC) - before_ns, RAISE_MOST_NS / 2);
}

int main(void)
{
	return fx_run(setup, teardown);
}
