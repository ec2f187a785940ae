/* SPDX-License-Identifier: Apache-2.0 */
/* Which operations are kept as exemplars, how many, and what is known of them later. */
#include "ncclinspd/keep/exemplars.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ncclinspd/sums/oplog.h"
#include "tests/fixture.h"
#include "tests/fx_accounts.h"
#include "util/json.h"
#include "util/log.h"

#define MS	UINT64_C(1000000)
#define SECOND	(1000 * MS)
#define MINUTE	(60 * SECOND)
#define EPOCH	(UINT64_C(1700000000) * SECOND)

static struct exemplars *x;
static struct accounts *accounts;	/* NULL: each uid is one */
static uint64_t now;
static uint64_t newest;		/* serial of the log */
static int fill_error;
static struct exemplar filled;
static int fills;

static int fill(void *arg, const struct exemplar *e, uint64_t now_ns, struct json *j)
{
	(void)arg;
	(void)now_ns;
	filled = *e;
	fills++;
	exemplar_head_begin(&e->head, j);
	json_end(j, '}');
	return fill_error;
}

static void open_all(void)
{
	ck_assert_int_eq(exemplars_new(&x, fx_tmpdir(), fill, NULL, accounts), 0);
}

static void close_all(void)
{
	exemplars_free(x);
}

static void setup(void)
{
	log_set_level(LOG_ERROR);
	now = 1000 * SECOND;
	newest = 5;
	fill_error = fills = 0;
	open_all();
}

static void teardown(void)
{
	close_all();
}

static struct op make_op(uid_t uid, int32_t rank, uint64_t seq)
{
	return (struct op){ .process_id = 1 + (uint64_t)rank, .pid = 100 + rank, .uid = uid,
			    .has_comm_id = true, .comm_id = 0xabc, .comm_name = "dp", .rank = rank,
			    .nranks = 4, .func = "AllReduce", .seq = seq, .bytes = 4096,
			    .enqueued_ns = now - 30 * MS, .done_ns = now };
}

/* An operation of which thousands took 10 ms; `ms` is what it took. */
static void end_op(const struct op *op, uint64_t ms)
{
	const struct aggregate_usual usual = { .taken_ns = ms * MS, .ops = 5000,
					       .p50_ns = 9 * MS, .p999_ns = 10 * MS };

	exemplars_op(x, op, &usual, newest, now);
}

static void end_slow(uid_t uid, int32_t rank, uint64_t seq)
{
	struct op op = make_op(uid, rank, seq);

	end_op(&op, 30);
}

/* Let the window close. */
static void pass(uint64_t ns)
{
	now += ns;
	exemplars_run(x, newest, now, EPOCH + now);
}

static struct exemplars_stats stats(void)
{
	struct exemplars_stats s;

	exemplars_read_stats(x, &s);
	return s;
}

static void wait_for_files(uint64_t written)
{
	while (stats().written + stats().failed < written)
		usleep(1000);
}

static struct exemplar_head seen[2 * EXEMPLARS_FILES];

static bool see(const struct exemplar_head *h, uint64_t size, void *arg)
{
	int *n = arg;

	ck_assert_uint_gt(size, 0);
	seen[(*n)++] = *h;
	return true;
}

static int list(void)
{
	int n = 0;

	exemplars_visit(x, see, &n);
	return n;
}

/* ---- thresholds ---------------------------------------------------------------------- */

static uint64_t threshold_of(uint64_t ops, uint64_t p999_ns)
{
	const struct aggregate_usual usual = { .ops = ops, .p999_ns = p999_ns };

	return exemplars_threshold_ns(&usual);
}

TEST(few_others_are_no_measure)
{
	ck_assert_uint_eq(threshold_of(EXEMPLARS_LEAST_OPS - 1, MS), UNKNOWN_U64);
	ck_assert_uint_eq(threshold_of(EXEMPLARS_LEAST_OPS, MS), 2 * MS);
}

TEST(microseconds_make_no_exemplar)
{
	ck_assert_uint_eq(threshold_of(5000, 20000), 20000 + EXEMPLARS_EXCESS_NS);
	ck_assert_uint_eq(threshold_of(5000, 100 * MS), 110 * MS);
}

TEST(what_is_at_its_threshold_is_not_beyond)
{
	struct op op = make_op(0, 0, 7);

	end_op(&op, 11);
	ck_assert_uint_eq(stats().beyond, 0);
	end_op(&op, 12);
	ck_assert_uint_eq(stats().beyond, 1);
}

/* ---- windows --------------------------------------------------------------------------- */

TEST(a_slow_operation_becomes_a_file_when_its_window_has_closed)
{
	ck_assert_uint_eq(exemplars_due_ns(x, newest), UINT64_MAX);
	end_slow(7, 2, 41);
	ck_assert_uint_gt(exemplars_due_ns(x, newest), now + EXEMPLARS_AFTER_NS);
	pass(EXEMPLARS_AFTER_NS);
	ck_assert_int_eq(fills, 0);
	pass(SECOND);
	ck_assert_int_eq(fills, 1);
	ck_assert_uint_eq(exemplars_due_ns(x, newest), UINT64_MAX);
	ck_assert_uint_eq(filled.from_ns, 1000 * SECOND - 30 * MS - EXEMPLARS_BEFORE_NS);
	ck_assert_uint_eq(filled.to_ns, 1000 * SECOND + EXEMPLARS_AFTER_NS);
	ck_assert_uint_eq(filled.op.seq, 41);
	wait_for_files(1);
	ck_assert_int_eq(list(), 1);
	ck_assert_uint_eq(seen[0].uid, 7);
	ck_assert_int_eq(seen[0].rank, 2);
	ck_assert_uint_eq(seen[0].seq, 41);
	ck_assert_uint_eq(seen[0].exec_ns, 30 * MS);
	ck_assert_uint_eq(seen[0].threshold_ns, 11 * MS);
	ck_assert_uint_eq(seen[0].at_real_ns, EPOCH + 1000 * SECOND);
	ck_assert_uint_eq(stats().files, 1);
}

TEST(a_job_that_is_slow_everywhere_makes_one_file)
{
	for (int i = 0; i < 4; i++)
		end_slow(0, i, 41);
	now += EXEMPLARS_AFTER_NS / 2;
	end_slow(0, 1, 42);	/* what waited for it */
	pass(2 * SECOND);
	end_slow(0, 3, 41);	/* it was in the first one as well, and ends late */
	pass(2 * SECOND);
	ck_assert_int_eq(fills, 1);
	ck_assert_uint_eq(filled.head.merged, 4);
	ck_assert_uint_eq(filled.nbeyond, 5);
	ck_assert_int_eq(filled.beyond[3].rank, 3);
	ck_assert_uint_eq(stats().beyond, 6);
	ck_assert_uint_eq(stats().merged, 5);
	ck_assert_uint_eq(stats().skipped, 0);
	pass(10 * SECOND);
	end_slow(0, 3, 41);	/* of another job, by chance */
	pass(2 * SECOND);
	ck_assert_int_eq(fills, 2);
}

TEST(there_is_no_end_of_slow_ones_but_of_what_is_told)
{
	for (int i = 0; i < 3 * EXEMPLARS_BEYOND; i++)
		end_slow(0, 0, (uint64_t)i);
	pass(2 * SECOND);
	ck_assert_uint_eq(filled.nbeyond, EXEMPLARS_BEYOND);
	ck_assert_uint_eq(filled.head.merged, 3 * EXEMPLARS_BEYOND - 1);
}

TEST(a_minute_has_its_number_and_what_is_skipped_is_counted)
{
	for (uint64_t i = 0; i < EXEMPLARS_PER_MINUTE + 3; i++) {
		end_slow(0, 0, i);
		pass(2 * SECOND);
	}
	ck_assert_int_eq(fills, EXEMPLARS_PER_MINUTE);
	ck_assert_uint_eq(stats().skipped, 3);
	now = 1000 * SECOND + MINUTE - 1;
	end_slow(0, 0, 100);
	ck_assert_uint_eq(stats().skipped, 4);
	now++;
	end_slow(0, 0, 101);
	pass(2 * SECOND);
	ck_assert_int_eq(fills, EXEMPLARS_PER_MINUTE + 1);
}

TEST(each_user_has_windows_and_minutes_of_his_own)
{
	for (uint64_t i = 0; i < EXEMPLARS_PER_MINUTE + 1; i++) {
		end_slow(1, 0, i);
		pass(2 * SECOND);
	}
	end_slow(1, 0, 50);
	end_slow(2, 0, 50);
	pass(2 * SECOND);
	ck_assert_int_eq(fills, EXEMPLARS_PER_MINUTE + 1);
	ck_assert_uint_eq(filled.head.uid, 2);
	ck_assert_uint_eq(filled.head.merged, 0);
}

TEST(ids_of_one_user_share_a_place_and_no_window)
{
	close_all();
	accounts = fx_accounts("1000:100000:65536\n");
	open_all();
	end_slow(100000, 0, 1);
	end_slow(100001, 0, 2);		/* its user's window is another id's */
	ck_assert_uint_eq(stats().skipped, 1);
	pass(2 * SECOND);
	for (uid_t uid = 100001; uid < 100001 + EXEMPLARS_PER_MINUTE; uid++) {
		end_slow(uid, 0, 3);
		pass(2 * SECOND);
	}
	ck_assert_int_eq(fills, EXEMPLARS_PER_MINUTE);
	ck_assert_uint_eq(filled.head.uid, 100000 + EXEMPLARS_PER_MINUTE - 1);
	ck_assert_uint_eq(stats().merged, 0);
	accounts_free(accounts);
	accounts = NULL;
}

TEST(one_user_too_many_waits_for_a_place)
{
	for (uid_t uid = 0; uid < EXEMPLARS_USERS + 1; uid++)
		end_slow(uid, 0, 1);
	ck_assert_uint_eq(stats().skipped, 1);
	pass(2 * SECOND);
	end_slow(EXEMPLARS_USERS, 0, 2);
	ck_assert_uint_eq(stats().skipped, 2);	/* the others' minutes still count */
	pass(MINUTE);
	end_slow(EXEMPLARS_USERS, 0, 3);
	ck_assert_uint_eq(stats().skipped, 2);
}

TEST(a_log_that_forgets_fast_closes_the_window_early)
{
	end_slow(0, 0, 1);
	newest += OPLOG_DEFAULT / 2 - 1;
	ck_assert_uint_gt(exemplars_due_ns(x, newest), now);
	newest++;
	ck_assert_uint_eq(exemplars_due_ns(x, newest), 0);
	pass(MS);
	ck_assert_int_eq(fills, 1);
	ck_assert_uint_eq(filled.to_ns, now);
}

TEST(what_cannot_be_written_is_counted)
{
	fill_error = -ENOMEM;
	end_slow(0, 0, 1);
	pass(2 * SECOND);
	ck_assert_uint_eq(stats().failed, 1);
	ck_assert_int_eq(list(), 0);
}

/* ---- files -------------------------------------------------------------------------------- */

static const char *path_of(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/exemplars/%s", fx_tmpdir(), name);
	return path;
}

static void write_some(int n)
{
	for (int i = 0; i < n; i++) {
		end_slow(0, 0, (uint64_t)i);
		pass(MINUTE);
		wait_for_files((uint64_t)i + 1);
	}
}

TEST(the_oldest_make_room)
{
	write_some(EXEMPLARS_FILES + 5);
	ck_assert_uint_eq(stats().files, EXEMPLARS_FILES);
	ck_assert_int_eq(list(), EXEMPLARS_FILES);
	ck_assert_uint_eq(seen[0].seq, EXEMPLARS_FILES + 4);
	ck_assert_uint_eq(seen[EXEMPLARS_FILES - 1].seq, 5);
}

TEST(a_restart_keeps_the_list)
{
	write_some(3);
	close_all();
	open_all();
	ck_assert_int_eq(list(), 3);
	ck_assert_uint_eq(seen[0].seq, 2);
	ck_assert_uint_eq(seen[2].seq, 0);
	ck_assert_uint_eq(seen[2].at_mono_ns, 0);
	ck_assert_uint_eq(seen[2].at_real_ns, EPOCH + 1000 * SECOND);
}

static void put_file(const char *name, const char *text)
{
	FILE *f = fopen(path_of(name), "w");

	fputs(text, f);
	fclose(f);
}

TEST(what_is_no_exemplar_is_not_listed)
{
	write_some(1);
	close_all();
	put_file("exemplars-20260101T000000.000000000Z.json", "");
	put_file("exemplars-20260101T000000.000000001Z.json", "{\"format\":\"other\"}");
	put_file("exemplars-20260101T000000.000000002Z.json",
		 "{\"format\":\"ncclinsp-exemplar\",\"format_version\":1,"
		 "\"exemplar\":{\"id\":\"another\"}");
	put_file("notes", "mine");
	open_all();
	ck_assert_int_eq(list(), 1);
}

TEST(only_what_is_there_by_that_name_can_be_read)
{
	const char *const games[] = {
		"", ".", "..", "../exemplars", "../../etc/passwd", "/etc/passwd", "*",
		"d/../secret", "20260101T000000.000000000Z",
	};
	size_t bytes;
	char *text;

	write_some(1);
	ck_assert_int_eq(mkdir(path_of("exemplars-d"), 0700), 0);
	put_file("secret.json", "");
	ck_assert_int_eq(list(), 1);
	ck_assert_int_eq(exemplars_read(x, seen[0].id, &text, &bytes), 0);
	ck_assert_uint_gt(bytes, 0);
	free(text);
	for (int i = 0; i < FX_COUNT(games); i++)
		ck_assert_int_eq(exemplars_read(x, games[i], &text, &bytes), -ENOENT);
}

TEST(ids_of_one_moment_differ)
{
	end_slow(1, 0, 1);
	end_slow(2, 0, 1);
	pass(2 * SECOND);
	wait_for_files(2);
	ck_assert_int_eq(list(), 2);
	ck_assert_str_ne(seen[0].id, seen[1].id);
}

TEST(clock_that_is_set_back_is_believed)
{
	end_slow(1, 0, 1);
	pass(2 * SECOND);
	wait_for_files(1);
	end_slow(2, 0, 1);
	now += 2 * SECOND;
	exemplars_run(x, newest, now, EPOCH - 3600 * SECOND + now);
	wait_for_files(2);
	ck_assert_int_eq(list(), 2);
	ck_assert_uint_eq(seen[1].at_real_ns - seen[0].at_real_ns, 3600 * SECOND - 2 * SECOND);
	ck_assert_str_lt(seen[0].id, seen[1].id);
}

/* ---- heads ---------------------------------------------------------------------------------- */

TEST(a_head_reads_back_as_it_was)
{
	struct exemplar_head h = {
		.id = "20260101T000000.000000007Z", .uid = 12, .at_real_ns = EPOCH + 123456789,
		.reason = "beyond_p999", .has_comm_id = true, .comm_id = 0xfedcba9876543210,
		.comm_name = "t\"p\n", .rank = 3, .nranks = 8, .pid = 77, .func = "Send",
		.seq = UNKNOWN_U64, .bytes = 5, .exec_ns = 6, .threshold_ns = 7, .p999_ns = 8,
		.p50_ns = 9, .ops = 10, .merged = 11,
	}, back;
	struct json j, again;

	json_init(&j, 1 << 16);
	json_init(&again, 1 << 16);
	exemplar_head_begin(&h, &j);
	ck_assert(exemplar_head_read(&back, h.id, j.text, j.bytes));
	ck_assert_uint_eq(back.at_mono_ns, 0);
	ck_assert_uint_eq(back.comm_id, h.comm_id);
	exemplar_head_begin(&back, &again);
	ck_assert_uint_eq(again.bytes, j.bytes);
	ck_assert_int_eq(memcmp(again.text, j.text, j.bytes), 0);
	ck_assert(!exemplar_head_read(&back, "20260101T000000.000000008Z", j.text, j.bytes));
	for (size_t n = 0; n < j.bytes; n++)
		ck_assert(!exemplar_head_read(&back, h.id, j.text, n));
	json_deinit(&again);
	json_deinit(&j);
}

TEST(unknown_reads_back_as_unknown)
{
	struct exemplar_head h = { .id = "i", .rank = UNKNOWN_I32, .nranks = UNKNOWN_I32,
				   .pid = 1, .bytes = UNKNOWN_U64, .seq = UNKNOWN_U64 }, back;
	struct json j;

	json_init(&j, 1 << 16);
	exemplar_head_begin(&h, &j);
	ck_assert(exemplar_head_read(&back, h.id, j.text, j.bytes));
	ck_assert(!back.has_comm_id);
	ck_assert_int_eq(back.rank, UNKNOWN_I32);
	ck_assert_uint_eq(back.bytes, UNKNOWN_U64);
	ck_assert_str_eq(back.comm_name, "");
	json_deinit(&j);
}

int main(void)
{
	return fx_run(setup, teardown);
}
