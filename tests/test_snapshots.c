/* SPDX-License-Identifier: Apache-2.0 */
/* When snapshots are due, what becomes of them, and what is told of it. */
#include "ncclinspd/keep/snapshots.h"

#include <check.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <unistd.h>

#include "ncclinspd/keep/archive.h"
#include "tests/fixture.h"
#include "util/json.h"

#define S	UINT64_C(1000000000)
#define NOW	(1764000000 * S)	/* on the wall clock */

static struct snapshots *shots;
static int answer;

static int fill(void *arg, uint64_t now_ns, struct json *j)
{
	(void)arg;
	json_begin(j, '{');
	json_key(j, "at");
	json_put_u64(j, now_ns);
	json_end(j, '}');
	return answer;
}

static void setup(void)
{
	answer = 0;
	ck_assert_int_eq(snapshots_new(&shots, fx_tmpdir(), "node1", fill, NULL), 0);
}

static void teardown(void)
{
	snapshots_free(shots);
}

/* Once the writer is through with so many. */
static struct snapshots_stats stats_after(uint64_t files)
{
	struct snapshots_stats stats;

	do {
		usleep(1000);
		snapshots_read_stats(shots, &stats);
	} while (stats.written + stats.failed < files);
	return stats;
}

static size_t count(const char *pattern)
{
	char path[512];
	glob_t found;
	size_t n;

	snprintf(path, sizeof(path), "%s/snapshots/%s", fx_tmpdir(), pattern);
	n = glob(path, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
	globfree(&found);
	return n;
}

TEST(all_nodes_write_at_the_same_moments)
{
	ck_assert_uint_eq(snapshots_due_ns(60 * S, 5 * S, 1200 * S), 65 * S);
	ck_assert_uint_eq(snapshots_due_ns(60 * S, 5 * S, 1218 * S), 5 * S + 42 * S);
}

TEST(one_that_came_a_moment_early_is_not_followed_by_another)
{
	ck_assert_uint_eq(snapshots_due_ns(60 * S, 5 * S, 1200 * S - 1), 65 * S + 1);
}

TEST(none_is_due_without_an_interval)
{
	ck_assert_uint_eq(snapshots_due_ns(0, 5 * S, 1200 * S), UINT64_MAX);
}

TEST(it_is_named_by_host_and_time)
{
	struct snapshots_stats stats;

	snapshots_write(shots, 7, NOW + 5);
	stats = stats_after(1);
	ck_assert_uint_eq(stats.written, 1);
	ck_assert_uint_eq(stats.last_ns, 7);
	ck_assert_int_eq(stats.error, 0);
	ck_assert_uint_eq(count("node1-20251124T160000.000000005Z.json.zst"), 1);
}

TEST(what_is_two_days_old_goes)
{
	snapshots_write(shots, 1, NOW);
	stats_after(1);
	snapshots_write(shots, 2, NOW + 47 * 3600 * S);
	stats_after(2);
	ck_assert_uint_eq(count("node1-*"), 2);
	snapshots_write(shots, 3, NOW + 49 * 3600 * S);
	stats_after(3);
	ck_assert_uint_eq(count("node1-*"), 2);
	ck_assert_uint_eq(count("node1-20251124T160000*"), 0);
}

static void keep(struct archive *a, uint64_t real_ns)
{
	struct writer_stats before, stats;
	char id[ARCHIVE_ID];
	struct json j;
	uint64_t bytes;

	writer_read_stats(archive_writer(a), &before);
	json_init(&j, 100);
	fill(NULL, 1, &j);
	archive_make_id(id, real_ns, "died");
	ck_assert_int_eq(archive_put(a, id, real_ns, &j, &bytes), 0);
	json_deinit(&j);
	do {
		usleep(1000);
		writer_read_stats(archive_writer(a), &stats);
	} while (stats.written == before.written);
}

TEST(files_of_a_clock_that_was_set_back_make_room)
{
	const struct writer_limits limits = { .files = 3, .bytes = 1000 };
	struct archive *a;

	ck_assert_int_eq(archive_new(&a, fx_tmpdir(), "snapshots", "box", &limits), 0);
	keep(a, NOW);
	keep(a, NOW + 24 * 3600 * S);
	keep(a, NOW + 25 * 3600 * S);
	keep(a, NOW + 60 * S);
	keep(a, NOW + 120 * S);
	ck_assert_uint_eq(count("box-20251124T160*"), 3);
	keep(a, NOW + 180 * S);
	ck_assert_uint_eq(count("box-20251124T160000*"), 0);
	ck_assert_uint_eq(count("box-20251124T160*"), 3);
	archive_free(a);
}

TEST(a_failure_is_told_until_one_is_written)
{
	struct snapshots_stats stats;

	answer = -E2BIG;
	snapshots_write(shots, 1, NOW);
	snapshots_read_stats(shots, &stats);
	ck_assert_uint_eq(stats.failed, 1);
	ck_assert_int_eq(stats.error, -E2BIG);
	ck_assert_uint_eq(stats.last_ns, 0);
	answer = 0;
	snapshots_write(shots, 2, NOW + S);
	stats = stats_after(2);
	ck_assert_uint_eq(stats.written, 1);
	ck_assert_int_eq(stats.error, 0);
}

int main(void)
{
	return fx_run(setup, teardown);
}
