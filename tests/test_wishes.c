/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/levels/wishes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "nci/control.h"
#include "tests/fixture.h"
#include "tests/fx_accounts.h"

#define SECOND	UINT64_C(1000000000)
#define T0	(100 * SECOND)
#define ALICE	1000
#define BOB	1001

static struct wishes ws;
static struct process p[3];
static struct process *list[3] = { &p[0], &p[1], &p[2] };
static struct comm comms[3];

/* Two processes of Alice's job 7 in communicator 0xc0, one of Bob's job 7 in 0xc1. */
static void setup(void)
{
	for (int i = 0; i < 3; i++) {
		comms[i] = (struct comm){ .ready = true, .has_id = true,
					  .id = i < 2 ? 0xc0 : 0xc1 };
		p[i] = (struct process){ .id = 1 + (uint64_t)i, .instance = 0x10 + (uint64_t)i,
					 .uid = i < 2 ? ALICE : BOB, .comms = &comms[i],
					 .ncomms = 1 };
		p[i].env_bytes = (uint32_t)sprintf(p[i].env, "SLURM_JOB_ID=7") + 1;
	}
}

static struct wish wish_of(enum wish_kind kind, uint32_t level, uint64_t until_ns)
{
	struct wish w = { .kind = kind, .level = level, .sample = WISH_KEEP, .everybody = 1,
			  .until_ns = until_ns };

	if (kind == WISH_PROCESS)
		w.id = p[0].instance;
	else if (kind == WISH_COMM)
		w.id = 0xc0;
	else if (kind == WISH_JOB)
		strcpy(w.job, "7");
	return w;
}

static void put(struct wish w, uint64_t now_ns)
{
	ck_assert(wish_is_sound(&w));
	ck_assert_int_eq(wishes_put(&ws, &w, now_ns), 0);
}

/* The newest that holds for a process, the node's last, by what stands at `offset`; or NULL. */
static const struct wish *newest(const struct process *of, size_t offset, uint64_t now_ns)
{
	const struct wish *best = NULL;

	for (uint32_t i = 0; i < WISHES; i++) {
		const struct wish *w = &ws.at[i];
		bool node = w->kind == WISH_NODE;
		uint32_t value;

		memcpy(&value, (const char *)w + offset, sizeof(value));
		if (!w->serial || value == WISH_KEEP || (w->until_ns && now_ns >= w->until_ns) ||
		    !(of ? wish_covers(w, of) : node))
			continue;
		if (!best || (node != (best->kind == WISH_NODE) ? !node : w->serial > best->serial))
			best = w;
	}
	return best;
}

/* -1: nobody wants anything. */
static int level(const struct process *of, uint64_t now_ns)
{
	const struct wish *w = newest(of, offsetof(struct wish, level), now_ns);

	ck_assert(!of || wishes_have_level(&ws, of, now_ns) == !!w);
	return w ? (int)w->level : -1;
}

TEST(each_kind_covers_what_it_says)
{
	static const struct {
		enum wish_kind kind;
		bool covers[3];
	} cases[] = {
		{ WISH_NODE, { true, true, true } },
		{ WISH_JOB, { true, true, true } },
		{ WISH_COMM, { true, true, false } },
		{ WISH_PROCESS, { true, false, false } },
	};

	for (int k = 0; k < FX_COUNT(cases); k++)
		for (int i = 0; i < 3; i++) {
			struct wish w = wish_of(cases[k].kind, NCI_LEVEL_OPS, 0);

			ck_assert_int_eq(wish_covers(&w, &p[i]), cases[k].covers[i]);
		}
}

TEST(what_a_user_wishes_is_of_his_own_processes)
{
	struct wish w = wish_of(WISH_JOB, NCI_LEVEL_OPS, 0);

	w.everybody = 0;
	w.uid = BOB;
	put(w, T0);
	ck_assert_int_eq(level(&p[2], T0), NCI_LEVEL_OPS);
	ck_assert_int_eq(level(&p[0], T0), -1);
}

TEST(a_communicator_that_is_over_is_not_meant)
{
	put(wish_of(WISH_COMM, NCI_LEVEL_OPS, 0), T0);
	comms[1].finalize_ticks = 5;
	ck_assert_int_eq(level(&p[0], T0), NCI_LEVEL_OPS);
	ck_assert_int_eq(level(&p[1], T0), -1);
}

TEST(the_newest_wins_but_for_the_node_s)
{
	put(wish_of(WISH_PROCESS, NCI_LEVEL_KERNEL, 0), T0);
	put(wish_of(WISH_JOB, NCI_LEVEL_OPS, 0), T0 + 1);
	put(wish_of(WISH_NODE, NCI_LEVEL_TRACE, 0), T0 + 2);
	ck_assert_int_eq(level(&p[0], T0 + 3), NCI_LEVEL_OPS);
	ck_assert_int_eq(level(NULL, T0 + 3), NCI_LEVEL_TRACE);
	put(wish_of(WISH_PROCESS, NCI_LEVEL_OFF, 0), T0 + 3);
	ck_assert_int_eq(level(&p[0], T0 + 3), NCI_LEVEL_OFF);
	ck_assert_int_eq(level(&p[1], T0 + 3), NCI_LEVEL_OPS);
}

TEST(level_and_sampling_are_wished_apart)
{
	struct wish w = wish_of(WISH_PROCESS, WISH_KEEP, 0);

	put(wish_of(WISH_JOB, NCI_LEVEL_OPS, 0), T0);
	w.sample = NCI_SAMPLE_ALL;
	put(w, T0 + 1);
	ck_assert_int_eq(level(&p[0], T0 + 1), NCI_LEVEL_OPS);
	ck_assert_uint_eq(newest(&p[0], offsetof(struct wish, sample), T0 + 1)->sample,
			  NCI_SAMPLE_ALL);
	ck_assert_ptr_null(newest(&p[1], offsetof(struct wish, sample), T0 + 1));
}

TEST(what_ends_leaves_what_was_for_good)
{
	put(wish_of(WISH_PROCESS, NCI_LEVEL_OPS, 0), T0);
	put(wish_of(WISH_PROCESS, NCI_LEVEL_TRACE, T0 + SECOND), T0);
	ck_assert_int_eq(level(&p[0], T0 + SECOND - 1), NCI_LEVEL_TRACE);
	ck_assert_int_eq(level(&p[0], T0 + SECOND), NCI_LEVEL_OPS);
	ck_assert_uint_eq(wishes_next_end(&ws, T0), T0 + SECOND);
	ck_assert(wishes_tidy(&ws, list, 3, T0 + SECOND));
	ck_assert(!wishes_tidy(&ws, list, 3, T0 + SECOND));
	ck_assert_uint_eq(wishes_next_end(&ws, T0 + SECOND), UINT64_MAX);
}

TEST(what_is_for_good_takes_the_place_of_both)
{
	put(wish_of(WISH_JOB, NCI_LEVEL_OPS, 0), T0);
	put(wish_of(WISH_JOB, NCI_LEVEL_TRACE, T0 + SECOND), T0);
	put(wish_of(WISH_JOB, NCI_LEVEL_KERNEL, 0), T0);
	wishes_drop(&ws, &(struct wish){ .kind = WISH_PROCESS, .id = 0x10, .everybody = 1 });
	ck_assert_int_eq(level(&p[0], T0), NCI_LEVEL_KERNEL);
	wishes_drop(&ws, &(struct wish){ .kind = WISH_JOB, .job = "7", .everybody = 1 });
	ck_assert_int_eq(level(&p[0], T0), -1);
}

TEST(a_user_cannot_take_back_what_root_wants_of_a_job)
{
	const struct wish bobs = { .kind = WISH_JOB, .uid = BOB, .job = "7" };

	put(wish_of(WISH_JOB, NCI_LEVEL_OPS, 0), T0);
	wishes_drop(&ws, &bobs);
	ck_assert_int_eq(level(&p[0], T0), NCI_LEVEL_OPS);
}

/* Instances stand in the control file, which everybody may read. */
TEST(nobody_takes_back_what_others_want_of_a_process)
{
	struct wish bobs = { .kind = WISH_PROCESS, .uid = BOB, .id = 0x10, .sample = WISH_KEEP };
	struct wish alices = bobs;

	put(wish_of(WISH_PROCESS, NCI_LEVEL_OFF, 0), T0);
	alices.uid = ALICE;
	alices.level = NCI_LEVEL_TRACE;
	put(alices, T0 + 1);
	wishes_drop(&ws, &bobs);
	ck_assert_int_eq(level(&p[0], T0 + 1), NCI_LEVEL_TRACE);
	bobs.level = NCI_LEVEL_OPS;
	put(bobs, T0 + 2);			/* nor does it take their place */
	ck_assert_int_eq(level(&p[0], T0 + 2), NCI_LEVEL_TRACE);
	wishes_drop(&ws, &alices);
	ck_assert_int_eq(level(&p[0], T0 + 2), NCI_LEVEL_OFF);	/* root's, to her as well */
	bobs.everybody = 1;
	wishes_drop(&ws, &bobs);
	ck_assert_int_eq(level(&p[0], T0 + 2), -1);
}

TEST(the_end_of_a_copy_takes_no_wish_along)
{
	put(wish_of(WISH_PROCESS, NCI_LEVEL_OFF, 0), T0);
	p[2].instance = p[0].instance;
	p[2].state = PROCESS_EXITED;
	ck_assert(!wishes_tidy(&ws, list, 3, T0 + 1));
	ck_assert_int_eq(level(&p[0], T0 + 1), NCI_LEVEL_OFF);
}

static int put_of(uid_t uid, uint64_t id, bool everybody)
{
	const struct wish w = { .kind = WISH_PROCESS, .level = NCI_LEVEL_OPS, .uid = uid,
				.sample = WISH_KEEP, .id = id, .everybody = everybody };

	return wishes_put(&ws, &w, T0);
}

TEST(many_users_leave_root_a_half_of_the_room)
{
	for (uint64_t i = 0; i < WISHES; i++)
		ck_assert_int_eq(put_of(ALICE + (uid_t)(i / WISHES_OF_USER), i, false),
				 i < WISHES / 2 ? 0 : -ENOSPC);
	for (uint64_t i = 0; i < WISHES / 2; i++)
		ck_assert_int_eq(put_of(0, 2000 + i, true), 0);
	ck_assert_int_eq(put_of(0, 1000, true), -ENOSPC);
}

TEST(ids_of_one_user_have_no_more_wishes_than_he)
{
	struct accounts *accounts = fx_accounts("1000:100000:65536\n");

	ws.accounts = accounts;
	for (uint64_t i = 0; i < WISHES_OF_USER; i++)
		ck_assert_int_eq(put_of(100000 + (uid_t)i, i, false), 0);
	ck_assert_int_eq(put_of(100099, 1000, false), -ENOSPC);
	ck_assert_int_eq(put_of(1000, 1000, false), -ENOSPC);
	ck_assert_int_eq(put_of(BOB, 1000, false), 0);
	accounts_free(accounts);
}

TEST(one_user_has_his_share_of_the_room_and_root_the_rest)
{
	for (uint64_t i = 0; i < WISHES; i++) {
		struct wish w = { .kind = WISH_PROCESS, .level = NCI_LEVEL_OPS,
				  .sample = WISH_KEEP, .uid = BOB, .id = 1000 + i };

		ck_assert_int_eq(wishes_put(&ws, &w, T0), i < WISHES_OF_USER ? 0 : -ENOSPC);
		w.everybody = 1;
		w.id += 1000;
		ck_assert_int_eq(wishes_put(&ws, &w, T0), i < WISHES - WISHES_OF_USER ? 0 :
				 -ENOSPC);
	}
	put((struct wish){ .kind = WISH_PROCESS, .level = NCI_LEVEL_OFF, .sample = WISH_KEEP,
			   .uid = BOB, .id = 1000 }, T0);	/* in place of his own */
}

TEST(nothing_is_wished_for_ever_of_what_is_gone)
{
	put(wish_of(WISH_PROCESS, NCI_LEVEL_OPS, 0), T0);
	put(wish_of(WISH_COMM, NCI_LEVEL_OPS, 0), T0);
	ck_assert(!wishes_tidy(&ws, list, 3, T0 + WISH_IDLE_NS * 9));
	p[0].state = PROCESS_EXITED;
	ck_assert(wishes_tidy(&ws, list, 3, T0 + WISH_IDLE_NS * 9));
	ck_assert_int_eq(level(&p[1], T0), NCI_LEVEL_OPS);
	p[1].state = PROCESS_DIED;
	ck_assert(!wishes_tidy(&ws, list, 3, T0 + WISH_IDLE_NS * 10));
	ck_assert(wishes_tidy(&ws, list, 3, T0 + WISH_IDLE_NS * 10 + 1));
	ck_assert_int_eq(level(&p[1], T0), -1);
}

int main(void)
{
	return fx_run(setup, NULL);
}
