/* SPDX-License-Identifier: Apache-2.0 */
/* What bounds keep from being watched is said, to whom it concerns, for as long as it is so. */
#include "ncclinspd/findings/diagnose.h"

#include <string.h>

#include "tests/fixture.h"

#define SECOND	UINT64_C(1000000000)

static struct diagnose *dg;
static struct unwatched list[4];
static size_t n;
static uint64_t now = 1000 * SECOND;

static size_t no_processes(void *arg, struct process *const **processes)
{
	(void)arg;
	*processes = NULL;
	return 0;
}

static size_t unwatched(void *arg, const struct unwatched **out)
{
	(void)arg;
	*out = list;
	return n;
}

static void setup(void)
{
	const struct diagnose_config config = { 0 };
	const struct diagnose_source source = {
		.processes = no_processes, .unwatched = unwatched,
	};

	ck_assert_int_eq(diagnose_new(&dg, &config, &source), 0);
}

static void teardown(void)
{
	diagnose_free(dg);
}

static bool take(const struct finding *f, void *arg)
{
	struct finding *found = arg;

	if (f->life.until_ns || f->uid != found->uid)
		return true;
	*found = *f;
	return false;
}

/* The active one of that user after a second; kind END: there is none. */
static struct finding look(uid_t uid)
{
	struct finding found = { .kind = FINDING_KIND_END, .uid = uid };

	now += SECOND;
	diagnose_look(dg, now);
	diagnose_visit(dg, take, &found);
	found.evidence[found.evidence_bytes] = '\0';
	return found;
}

TEST(each_user_is_told_of_processes_that_wait_while_they_do)
{
	struct finding f;

	list[0] = (struct unwatched){ UNWATCHED_PROCESSES, 1000, 12, 256 };
	list[1] = (struct unwatched){ UNWATCHED_PROCESSES, 1001, 1, 256 };
	n = 2;
	f = look(1000);
	ck_assert_int_eq(f.kind, FINDING_UNWATCHED);
	ck_assert_int_eq(f.severity, FINDING_WARNING);
	ck_assert_ptr_nonnull(strstr(f.text, "live processes that are not watched: 12. The "
				     "daemon reads"));
	ck_assert_ptr_nonnull(strstr(f.text, "256"));
	ck_assert_ptr_nonnull(strstr(f.evidence, "\"what\":\"processes\""));
	ck_assert_ptr_nonnull(strstr(f.evidence, "\"count\":12"));
	ck_assert_int_eq(look(1001).kind, FINDING_UNWATCHED);
	list[0].count = 3;
	ck_assert_ptr_nonnull(strstr(look(1000).text, "not watched: 3. "));
	n = 0;
	for (int i = 0; i < 40; i++)
		f = look(1000);
	ck_assert_int_eq(f.kind, FINDING_KIND_END);
}

/* What happened before is no news for ever. */
TEST_LOOP(a_bound_that_is_reached_is_told_while_its_count_grows, UNWATCHED_FILES, UNWATCHED_END)
{
	struct finding f = { 0 };

	list[0] = (struct unwatched){ (enum unwatched_thing)_i, 0, 0, 64 };
	n = 1;
	ck_assert_int_eq(look(0).kind, FINDING_KIND_END);
	for (int i = 0; i < 60; i++) {
		list[0].count += i % 3 == 0;
		f = look(0);
		ck_assert_int_eq(f.kind, FINDING_UNWATCHED);
	}
	ck_assert_ptr_nonnull(strstr(f.text, "64"));
	for (int i = 0; i < 40; i++)
		f = look(0);
	ck_assert_int_eq(f.kind, FINDING_KIND_END);
}

int main(void)
{
	return fx_run(setup, teardown);
}
