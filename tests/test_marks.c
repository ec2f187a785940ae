/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of jobs hold for who comes later, and all of them for the next daemon. */
#include "ncclinspd/levels/marks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reader/base/names.h"
#include "tests/fixture.h"
#include "tests/fx_accounts.h"
#include "util/log.h"

#define NOW	UINT64_C(5000000000)
#define SECOND	UINT64_C(1000000000)
#define ROOT	0
#define ALICE	1000
#define BOB	1001

static struct names *names;
static struct marks *m;
static char control[PATH_MAX], path[PATH_MAX + 8];
static struct process process[4], *list[4];

static void init_process(int i, uint64_t instance, uid_t uid, const char *job)
{
	process[i] = (struct process){ .instance = instance, .uid = uid, .pid = 100 + i };
	if (job)
		process[i].env_bytes =
			(uint32_t)sprintf(process[i].env, "SLURM_JOB_ID=%s", job) + 1;
	list[i] = &process[i];
}

static void setup(void)
{
	snprintf(control, sizeof(control), "%s/control", fx_tmpdir());
	snprintf(path, sizeof(path), "%s.marks", control);
	unlink(path);
	log_set_level(LOG_ERROR);
	ck_assert_int_eq(names_new(&names, 64), 0);
	ck_assert_int_eq(marks_new(&m, names, NULL, control, NOW), 0);
	init_process(0, 0x10, ALICE, "7");
	init_process(1, 0x11, BOB, "7");
	init_process(2, 0x12, ALICE, "8");
	init_process(3, 0x13, ALICE, NULL);
}

static void teardown(void)
{
	marks_free(m);
	names_free(names);
}

static int put_job_at(uid_t uid, const char *job, const char *phase, uint64_t now_ns)
{
	struct wish w = { .kind = WISH_JOB, .uid = uid, .everybody = uid == ROOT };

	strcpy(w.job, job);
	return marks_put(m, &w, phase, now_ns);
}

static int put_job(uid_t uid, const char *job, const char *phase)
{
	return put_job_at(uid, job, phase, NOW);
}

static int put_node(void)
{
	return marks_put(m, &(struct wish){ .kind = WISH_NODE, .everybody = 1 }, "all", NOW);
}

/* What a process of that kind would be at if it came now. */
static const char *later(int i)
{
	process[i].phase = (struct phase){ 0 };
	marks_appeared(m, &process[i]);
	return process[i].phase.name ?: "-";
}

/* As if the daemon had been started again, `after_ns` later. */
static void restart(uint64_t after_ns)
{
	marks_free(m);
	names_free(names);
	ck_assert_int_eq(names_new(&names, 64), 0);
	ck_assert_int_eq(marks_new(&m, names, NULL, control, NOW + after_ns), 0);
}

TEST(a_mark_of_a_job_is_that_of_who_comes_later)
{
	ck_assert_str_eq(later(0), "-");
	ck_assert_int_eq(put_job(ROOT, "7", "train"), 0);
	ck_assert_str_eq(later(0), "train");
	ck_assert_uint_eq(process[0].phase.since_ns, NOW);
	ck_assert_str_eq(later(1), "train");
	ck_assert_str_eq(later(2), "-");
	ck_assert_str_eq(later(3), "-");
	ck_assert_int_eq(put_job(ROOT, "7", "eval"), 0);
	ck_assert_str_eq(later(0), "eval");
	ck_assert_int_eq(put_job(ROOT, "7", NULL), 0);
	ck_assert_str_eq(later(0), "-");
}

TEST(a_user_marks_his_own_part_of_a_job)
{
	ck_assert_int_eq(put_job(ROOT, "7", "train"), 0);
	ck_assert_int_eq(put_job(ALICE, "7", "mine"), 0);
	ck_assert_str_eq(later(0), "mine");
	ck_assert_str_eq(later(1), "train");
	ck_assert_int_eq(put_job(ALICE, "7", NULL), 0);
	ck_assert_str_eq(later(0), "train");	/* root's word is not hers to take back */
	ck_assert_int_eq(put_job(ALICE, "7", "mine"), 0);
	ck_assert_int_eq(put_job(ROOT, "7", "eval"), 0);
	ck_assert_str_eq(later(0), "eval");
}

TEST(a_word_about_the_node_ends_those_about_jobs)
{
	ck_assert_int_eq(put_job(ROOT, "7", "train"), 0);
	ck_assert_int_eq(put_job(ALICE, "8", "train"), 0);
	ck_assert_int_eq(put_node(), 0);
	ck_assert_str_eq(later(0), "-");
	ck_assert_str_eq(later(2), "-");
}

TEST(the_next_daemon_knows_all_of_it)
{
	ck_assert_int_eq(put_job(ROOT, "7", "train"), 0);
	process[0].phase = (struct phase){ "eval", "train", NOW + SECOND };
	process[1].phase = (struct phase){ NULL, "train", NOW + SECOND };
	marks_save(m, list, 4);
	restart(2 * SECOND);
	ck_assert_str_eq(later(3), "-");	/* another one of hers */
	ck_assert_str_eq(later(0), "eval");
	ck_assert_str_eq(process[0].phase.before, "train");
	ck_assert_uint_eq(process[0].phase.since_ns, NOW + SECOND);
	ck_assert_str_eq(later(1), "-");	/* that it is in none was said */
	ck_assert_str_eq(later(2), "-");
	process[2] = process[0];		/* another one of the job */
	process[2].instance = 0x14;
	ck_assert_str_eq(later(2), "train");
	ck_assert_int_eq(put_job(ROOT, "7", "eval"), 0);
	ck_assert_str_eq(later(2), "eval");	/* newer than what was restored */
}

TEST(a_copied_instance_is_not_at_its_owner_s_phase)
{
	process[0].phase = (struct phase){ "eval", NULL, NOW };
	marks_save(m, list, 4);
	restart(SECOND);
	process[1].instance = process[0].instance;	/* Bob's, and seen first */
	ck_assert_str_eq(later(1), "-");
	ck_assert_str_eq(later(0), "eval");
}

/* The daemon may be started twice before a process is seen again. */
TEST(what_was_said_last_holds)
{
	process[0].phase = (struct phase){ "eval", NULL, NOW };
	marks_save(m, list, 4);
	restart(SECOND);
	ck_assert_int_eq(put_job_at(ROOT, "7", "train", NOW + 2 * SECOND), 0);
	ck_assert_str_eq(later(0), "train");
	ck_assert_str_eq(process[0].phase.before, "eval");
}

TEST(who_has_not_appeared_again_is_not_forgotten)
{
	process[0].phase = (struct phase){ "eval", NULL, NOW };
	marks_save(m, list, 4);
	restart(SECOND);
	ck_assert_int_eq(put_job(ROOT, "9", "x"), 0);
	marks_save(m, list, 0);
	restart(2 * SECOND);
	ck_assert_str_eq(later(0), "eval");
}

TEST(what_is_not_there_any_more_is_forgotten)
{
	ck_assert_int_eq(put_job(ROOT, "7", "train"), 0);
	ck_assert_int_eq(put_job(ROOT, "8", "train"), 0);
	process[3].phase = (struct phase){ "eval", NULL, NOW };
	marks_save(m, list, 4);
	restart(0);
	marks_look(m, list, 2, NOW + WISH_IDLE_NS / 2);		/* both of job 7 */
	marks_look(m, list, 2, NOW + WISH_IDLE_NS + 1);
	ck_assert_str_eq(later(0), "train");
	ck_assert_str_eq(later(2), "-");
	ck_assert_str_eq(later(3), "-");
	process[0].state = process[1].state = PROCESS_EXITED;
	marks_look(m, list, 2, NOW + 3 * WISH_IDLE_NS);
	ck_assert_str_eq(later(0), "-");
	restart(0);
	ck_assert_str_eq(later(0), "-");
}

TEST(there_is_a_bound_and_beyond_it_nothing_changes)
{
	char job[16];

	for (int i = 0; i < MARKS_JOBS_OF_USER; i++) {
		sprintf(job, "a%d", i);
		ck_assert_int_eq(put_job(ALICE, job, "x"), 0);
	}
	ck_assert_int_eq(put_job(ALICE, "7", "x"), -ENOSPC);
	ck_assert_str_eq(later(0), "-");
	ck_assert_int_eq(put_job(ALICE, "a0", "y"), 0);		/* in place of the old one */
	for (int i = MARKS_JOBS_OF_USER; i < MARKS_JOBS; i++) {
		sprintf(job, "r%d", i);
		ck_assert_int_eq(put_job(ROOT, job, "x"), 0);
	}
	ck_assert_int_eq(put_job(ROOT, "7", "x"), -ENOSPC);
	ck_assert_int_eq(put_job(ALICE, "a1", NULL), 0);
	ck_assert_int_eq(put_job(ROOT, "7", "x"), 0);
	ck_assert_str_eq(later(0), "x");
}

TEST(many_users_leave_root_a_half_of_the_room)
{
	struct accounts *accounts = fx_accounts("1000:100000:65536\n");
	char job[16];

	marks_free(m);
	ck_assert_int_eq(marks_new(&m, names, accounts, control, NOW), 0);
	for (int i = 0; i < MARKS_JOBS; i++) {
		if (i == MARKS_JOBS_OF_USER)	/* the first ids are hers */
			ck_assert_int_eq(put_job(ALICE, "x", "x"), -ENOSPC);
		sprintf(job, "j%d", i);
		ck_assert_int_eq(put_job(i < MARKS_JOBS_OF_USER ? 100000 + (uid_t)i :
					 BOB + (uid_t)(i / MARKS_JOBS_OF_USER), job, "x"),
				 i < MARKS_JOBS / 2 ? 0 : -ENOSPC);
	}
	for (int i = 0; i < MARKS_JOBS / 2; i++) {
		sprintf(job, "r%d", i);
		ck_assert_int_eq(put_job(ROOT, job, "x"), 0);
	}
	accounts_free(accounts);
}

static size_t read_file(char *bytes, size_t room)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, bytes, room);

	close(fd);
	ck_assert_int_gt(n, 0);
	return (size_t)n;
}

static void write_file(const char *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
	close(fd);
}

TEST(a_file_that_makes_no_sense_is_forgotten)
{
	static char bytes[8192];
	size_t n;

	ck_assert_int_eq(put_job(ROOT, "7", "train"), 0);
	marks_save(m, list, 4);
	n = read_file(bytes, sizeof(bytes));
	ck_assert_uint_lt(n, sizeof(bytes));
	for (size_t i = 0; i < n; i++) {
		bytes[i] ^= 0x40;
		write_file(bytes, n);
		restart(0);
		ck_assert_msg(!strcmp(later(0), "-"), "byte %zu", i);
		bytes[i] ^= 0x40;
	}
	write_file(bytes, n - 1);
	restart(0);
	ck_assert_str_eq(later(0), "-");
	write_file(bytes, n);
	restart(0);
	ck_assert_str_eq(later(0), "train");
}

TEST(nothing_is_written_where_nothing_was_said)
{
	marks_save(m, list, 4);
	ck_assert_int_ne(access(path, F_OK), 0);
	process[0].phase = (struct phase){ "eval", NULL, NOW };
	marks_save(m, list, 4);
	ck_assert_int_eq(access(path, F_OK), 0);
	unlink(path);
	marks_save(m, list, 4);		/* as it is already */
	ck_assert_int_ne(access(path, F_OK), 0);
}

int main(void)
{
	return fx_run(setup, teardown);
}
