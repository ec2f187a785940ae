/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/levels/levels.h"

#include <stdio.h>
#include <string.h>

#include "tests/fixture.h"

#define SECOND	UINT64_C(1000000000)
#define T0	(1000 * SECOND)
#define MANY	(NCI_CONTROL_ENTRIES + 5)

static struct levels *l;
static struct process p[MANY];
static struct process *list[MANY];
static struct nci_control_entry entry[NCI_CONTROL_ENTRIES];

static void setup(void)
{
	const struct levels_config config = { .detail = true, .thrift = true };

	ck_assert_int_eq(levels_new(&l, &config), 0);
	for (int i = 0; i < MANY; i++) {
		p[i] = (struct process){ .id = 1 + (uint64_t)i, .instance = 0x10 + (uint64_t)i };
		list[i] = &p[i];
	}
}

static void teardown(void)
{
	levels_free(l);
}

static void wish(enum wish_kind kind, uint32_t level, uint32_t sample, uint64_t until_ns)
{
	const struct wish w = { .kind = kind, .level = level, .sample = sample,
				.id = kind == WISH_PROCESS ? p[0].instance : 0, .everybody = 1,
				.until_ns = until_ns };

	ck_assert_int_eq(wishes_put(levels_wishes(l), &w, T0), 0);
}

static struct level_wanted wanted(const struct process *of, uint64_t now_ns)
{
	struct level_wanted out;

	levels_wanted(l, of, now_ns, &out);
	return out;
}

/* What a plugin makes of the file (control.h). */
static struct level_wanted as_read(uint32_t n, uint64_t instance, uint64_t now_ns)
{
	struct level_wanted out = { .level = WISH_KEEP, .sample = WISH_KEEP };

	for (uint32_t i = 0; i < n; i++) {
		if ((entry[i].instance && entry[i].instance != instance) ||
		    (entry[i].until_mono_ns && now_ns >= entry[i].until_mono_ns))
			continue;
		if (entry[i].level != NCI_CONTROL_KEEP)
			out.level = entry[i].level;
		if (entry[i].sample != NCI_CONTROL_KEEP)
			out.sample = entry[i].sample;
	}
	return out;
}

static void lower(const struct process *of)
{
	struct thrift_look look = { .share = 0.02, .budget = 0.005, .level = NCI_LEVEL_NET };

	for (int i = 0; i < THRIFT_LOOKS; i++)
		levels_look(l, of, look, T0);
	ck_assert_uint_eq(levels_thrift(l, of)->cap, NCI_LEVEL_KERNEL);
}

TEST(nothing_is_wanted_of_anybody_at_first)
{
	ck_assert_uint_eq(levels_entries(l, list, 3, T0, entry), 0);
	ck_assert_uint_eq(wanted(&p[0], T0).level, WISH_KEEP);
	ck_assert_uint_eq(wanted(&p[0], T0).since_ns, 0);
}

TEST(a_person_s_word_is_stronger_than_what_happens_by_itself)
{
	lower(&p[0]);
	ck_assert_uint_eq(wanted(&p[0], T0).level, NCI_LEVEL_KERNEL);
	ck_assert_uint_eq(wanted(&p[0], T0).why, NCI_CAUSE_BUDGET);
	ck_assert(levels_detail(l, &p[0], UINT64_MAX, T0));
	ck_assert_uint_eq(wanted(&p[0], T0).level, NCI_LEVEL_NET);
	ck_assert_uint_eq(wanted(&p[0], T0).sample, NCI_SAMPLE_ALL);
	ck_assert_uint_eq(wanted(&p[0], T0).until_ns, T0 + LEVELS_DETAIL_NS);
	wish(WISH_NODE, NCI_LEVEL_OPS, NCI_SAMPLE_BUDGET, 0);
	ck_assert_uint_eq(wanted(&p[0], T0).level, NCI_LEVEL_OPS);
	ck_assert_uint_eq(wanted(&p[0], T0).sample, NCI_SAMPLE_BUDGET);
	ck_assert_uint_eq(wanted(&p[0], T0).why, NCI_CAUSE_PERSON);
}

TEST(the_file_says_what_is_wanted_now_and_when_its_parts_have_ended)
{
	lower(&p[0]);
	levels_detail(l, &p[0], UINT64_MAX, T0);
	wish(WISH_NODE, NCI_LEVEL_OPS, WISH_KEEP, T0 + 3 * SECOND);
	wish(WISH_PROCESS, NCI_LEVEL_TRACE, WISH_KEEP, T0 + SECOND);
	wish(WISH_PROCESS, WISH_KEEP, NCI_SAMPLE_BUDGET, 0);
	for (uint64_t at = T0; at < T0 + 12 * SECOND; at += SECOND / 2) {
		uint32_t n = levels_entries(l, list, 3, T0, entry);	/* nobody writes later */

		for (int i = 0; i < 3; i++) {
			struct level_wanted want = wanted(&p[i], at);
			struct level_wanted got = as_read(n, p[i].instance, at);

			ck_assert_uint_eq(want.level, got.level);
			ck_assert_uint_eq(want.sample, got.sample);
		}
	}
	ck_assert_uint_eq(levels_next_end(l, T0), T0 + SECOND);
	ck_assert_uint_eq(levels_next_end(l, T0 + 3 * SECOND), T0 + LEVELS_DETAIL_NS);
}

TEST(a_finding_raises_a_process_once_in_a_while)
{
	ck_assert(levels_detail(l, &p[0], UINT64_MAX, T0));
	ck_assert(!levels_detail(l, &p[0], UINT64_MAX, T0 + SECOND));	/* it is up already */
	ck_assert_uint_eq(levels_stats(l)->withheld, 0);
	ck_assert(!levels_detail(l, &p[0], UINT64_MAX, T0 + LEVELS_DETAIL_NS));
	ck_assert_uint_eq(levels_stats(l)->withheld, 1);
	ck_assert(levels_detail(l, &p[0], UINT64_MAX, T0 + LEVELS_DETAIL_APART_NS));
	ck_assert_uint_eq(levels_stats(l)->raised, 2);
}

TEST(neither_happens_where_it_was_switched_off)
{
	struct thrift_look look = { .share = 0.02, .budget = 0.005, .level = NCI_LEVEL_NET };

	levels_free(l);
	ck_assert_int_eq(levels_new(&l, &(struct levels_config){ .detail = false }), 0);
	ck_assert(!levels_detail(l, &p[0], UINT64_MAX, T0));
	for (int i = 0; i < 3 * THRIFT_LOOKS; i++)
		ck_assert(!levels_look(l, &p[0], look, T0));
}

TEST(who_is_wanted_at_a_level_is_not_lowered)
{
	struct thrift_look look = { .share = 0.02, .budget = 0.005, .level = NCI_LEVEL_NET };

	wish(WISH_PROCESS, NCI_LEVEL_NET, WISH_KEEP, 0);
	for (int i = 0; i < 3 * THRIFT_LOOKS; i++)
		ck_assert(!levels_look(l, &p[0], look, T0));
	lower(&p[1]);
}

TEST(an_instance_that_was_copied_steers_its_owner_only)
{
	p[1].instance = p[0].instance;
	lower(&p[1]);
	ck_assert_uint_eq(levels_entries(l, list, 3, T0, entry), 0);
	lower(&p[0]);
	ck_assert_uint_eq(levels_entries(l, list, 3, T0, entry), 1);
}

static void say_job(struct process *of, uid_t uid, int job)
{
	of->uid = of->account = uid;
	of->env_bytes = (uint32_t)sprintf(of->env, "SLURM_JOB_ID=%d", job) + 1;
}

static void wish_job(uid_t uid, const char *job, uint32_t level)
{
	struct wish w = { .kind = WISH_JOB, .level = level, .sample = WISH_KEEP, .uid = uid,
			  .everybody = uid == 0 };

	strcpy(w.job, job);
	ck_assert_int_eq(wishes_put(levels_wishes(l), &w, T0), 0);
}

static uint32_t entries_of(uint32_t n, uint64_t instance)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++)
		found += entry[i].instance == instance;
	return found;
}

#define VICTIM	1000
#define THIEF	1001

/* p[0] is steered, so that everybody may read its instance, and p[1] takes it. */
static void copy_an_instance(void)
{
	say_job(&p[0], VICTIM, 7);
	say_job(&p[1], THIEF, 8);
	lower(&p[0]);
	ck_assert_uint_eq(levels_entries(l, list, 1, T0, entry), 1);
	p[1].instance = p[0].instance;
	list[0] = &p[1];			/* and is first, as after a restart it may be */
	list[1] = &p[0];
}

static void check_the_thief_steers_nobody(void)
{
	uint32_t n;

	lower(&p[1]);
	wish_job(THIEF, "8", NCI_LEVEL_OFF);
	wish_job(VICTIM, "7", NCI_LEVEL_TRACE);
	n = levels_entries(l, list, 2, T0, entry);
	ck_assert_uint_eq(as_read(n, p[0].instance, T0).level, NCI_LEVEL_TRACE);
	for (uint32_t i = 0; i < n; i++)
		ck_assert_uint_ne(entry[i].level, NCI_LEVEL_OFF);
}

TEST(who_copies_an_instance_that_the_file_names_steers_nobody)
{
	copy_an_instance();
	check_the_thief_steers_nobody();
	list[1] = &p[2];			/* nor where its owner is not seen for now */
	ck_assert_uint_eq(entries_of(levels_entries(l, list, 2, T0, entry), p[0].instance), 0);
}

TEST(nor_in_the_next_daemon)
{
	static const uint8_t boot[16] = { 1 }, other[16] = { 2 };
	const struct levels_config config = { .thrift = true };
	char control[128];

	snprintf(control, sizeof(control), "%s/control", fx_tmpdir());
	copy_an_instance();
	owners_save(levels_owners(l), control, boot);
	levels_free(l);
	ck_assert_int_eq(levels_new(&l, &config), 0);
	owners_restore(levels_owners(l), control, other, T0);
	ck_assert_uint_eq(levels_owners(l)->n, 0);	/* of another boot */
	owners_restore(levels_owners(l), control, boot, T0);
	p[0].id += 100;
	p[1].id += 100;
	check_the_thief_steers_nobody();
}

TEST(an_instance_is_free_again_when_its_process_has_ended)
{
	copy_an_instance();
	levels_tidy(l, list, 1, T0 + WISH_IDLE_NS);	/* not seen, which may come again */
	ck_assert_uint_eq(levels_owners(l)->n, 1);
	p[0].state = PROCESS_DIED;
	levels_tidy(l, list, 2, T0 + WISH_IDLE_NS);
	ck_assert_uint_eq(levels_owners(l)->n, 0);
	lower(&p[2]);
	ck_assert_uint_eq(levels_entries(l, &list[2], 1, T0, entry), 1);
	levels_tidy(l, list, 2, T0 + WISH_IDLE_NS + 1);
	ck_assert_uint_eq(levels_owners(l)->n, 0);
}

/* Any process may say that it is of job 7. */
TEST(those_who_join_a_job_by_a_word_do_not_push_it_out)
{
	uint32_t n;

	for (int i = 0; i < MANY; i++)
		say_job(&p[i], i < MANY - 3 ? THIEF : VICTIM, 7);
	wish_job(0, "7", NCI_LEVEL_OFF);
	n = levels_entries(l, list, MANY, T0, entry);
	ck_assert_uint_eq(n, 3);
	ck_assert_uint_eq(as_read(n, p[MANY - 1].instance, T0).level, NCI_LEVEL_OFF);
	ck_assert_uint_eq(levels_stats(l)->left_out, MANY - 3);
}

TEST(what_is_too_much_for_the_file_stops_nothing_else)
{
	uint32_t n;

	for (int i = 0; i < MANY; i++)
		say_job(&p[i], i ? THIEF : VICTIM, i ? 8 : 7);
	wish_job(0, "7", NCI_LEVEL_OFF);
	wish_job(THIEF, "8", NCI_LEVEL_TRACE);	/* of 104 processes, and newer */
	n = levels_entries(l, list, MANY, T0, entry);
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(as_read(n, p[0].instance, T0).level, NCI_LEVEL_OFF);
	ck_assert_uint_eq(levels_stats(l)->left_out, MANY - 1);
}

/* 60 processes of one user in two jobs, 30 of another's in one: none is left with nothing. */
TEST(one_user_fills_the_file_only_where_others_leave_room)
{
	uint32_t n;

	for (int i = 0; i < 90; i++)
		say_job(&p[i], i < 60 ? THIEF : VICTIM, i < 40 ? 8 : i < 60 ? 9 : 7);
	wish_job(VICTIM, "7", NCI_LEVEL_NET);
	wish_job(THIEF, "8", NCI_LEVEL_OPS);
	wish_job(THIEF, "9", NCI_LEVEL_OPS);
	wish_job(THIEF, "8", NCI_LEVEL_TRACE);
	n = levels_entries(l, list, 90, T0, entry);
	ck_assert_uint_eq(n, 90);
	for (int i = 0; i < MANY; i++)
		say_job(&p[i], i < 60 ? THIEF : VICTIM, i < 40 ? 8 : i < 60 ? 9 : 7);
	n = levels_entries(l, list, MANY, T0, entry);		/* now it is 105 */
	ck_assert_uint_eq(n, 85);
	ck_assert_uint_eq(as_read(n, p[60].instance, T0).level, NCI_LEVEL_NET);
	ck_assert_uint_eq(as_read(n, p[0].instance, T0).level, NCI_LEVEL_TRACE);
	ck_assert_uint_eq(as_read(n, p[59].instance, T0).level, WISH_KEEP);
	ck_assert_uint_eq(levels_stats(l)->left_out, 20);
}

TEST(what_happens_by_itself_is_shared_out_among_users)
{
	uint32_t n;

	for (int i = 0; i < MANY; i++) {
		say_job(&p[i], i < MANY - 3 ? THIEF : VICTIM, 7);
		lower(&p[i]);
	}
	n = levels_entries(l, list, MANY, T0, entry);
	ck_assert_uint_eq(n, NCI_CONTROL_ENTRIES);
	ck_assert_uint_eq(entries_of(n, p[MANY - 1].instance), 1);
	ck_assert_uint_eq(levels_stats(l)->left_out, 5);
}

TEST(who_has_ended_has_no_entry_and_gives_its_place_back)
{
	lower(&p[0]);
	p[0].state = PROCESS_EXITED;
	ck_assert_uint_eq(levels_entries(l, list, 3, T0, entry), 0);
	levels_tidy(l, list, 3, T0);
	ck_assert_ptr_null(levels_thrift(l, &p[0]));
}

/* 105 processes: the automatic ones go first, then the oldest wish that does not fit. */
TEST(what_finds_no_room_is_the_weakest_and_is_counted)
{
	const struct wish of_all = { .kind = WISH_JOB, .level = NCI_LEVEL_OPS,
				     .sample = WISH_KEEP, .job = "7", .everybody = 1 };
	uint32_t n;

	for (int i = 0; i < MANY; i++) {
		p[i].env_bytes = (uint32_t)sprintf(p[i].env, "SLURM_JOB_ID=%d", i < 98 ? 7 : 8) + 1;
		levels_detail(l, &p[i], UINT64_MAX, T0);
	}
	n = levels_entries(l, list, MANY, T0, entry);
	ck_assert_uint_eq(n, NCI_CONTROL_ENTRIES);
	ck_assert_uint_eq(levels_stats(l)->left_out, 5);
	ck_assert_int_eq(wishes_put(levels_wishes(l), &of_all, T0), 0);
	wish(WISH_PROCESS, NCI_LEVEL_TRACE, WISH_KEEP, 0);
	n = levels_entries(l, list, MANY, T0, entry);
	ck_assert_uint_eq(n, NCI_CONTROL_ENTRIES);
	ck_assert_uint_eq(entry[n - 1].level, NCI_LEVEL_TRACE);
	ck_assert_uint_eq(as_read(n, p[97].instance, T0).level, NCI_LEVEL_OPS);
	ck_assert_uint_eq(levels_stats(l)->left_out, MANY - 1);
	wish(WISH_PROCESS, WISH_KEEP, NCI_SAMPLE_ALL, T0 + SECOND);
	wish(WISH_NODE, NCI_LEVEL_OPS, WISH_KEEP, 0);
	n = levels_entries(l, list, MANY, T0, entry);
	ck_assert_uint_eq(as_read(n, p[0].instance, T0).sample, NCI_SAMPLE_ALL);
	ck_assert_uint_eq(as_read(n, p[0].instance, T0).level, NCI_LEVEL_TRACE);
	ck_assert_uint_eq(n + levels_stats(l)->left_out, 98 + 1 + 1 + 1 + MANY);
}

TEST(one_user_leaves_others_places_for_what_goes_by_itself)
{
	const struct levels_config config = { .detail = true, .thrift = true, .processes = 16 };

	levels_free(l);
	ck_assert_int_eq(levels_new(&l, &config), 0);
	for (int i = 0; i < 20; i++) {
		p[i].account = i < 16 ? 1 : 2;
		ck_assert_int_eq(levels_detail(l, &p[i], UINT64_MAX, T0),
				 i < 12 || (i > 15 && i < 19));
	}
	ck_assert_uint_eq(levels_stats(l)->forgotten, 5);
}

int main(void)
{
	return fx_run(setup, teardown);
}
