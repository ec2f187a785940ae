/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of other nodes that an operation waits for, by what NCCL's RAS tells of them. */
#include <string.h>

#include "judge/hang.h"
#include "tests/fixture.h"

#define RANKS	4

static struct afar_rank rows[RANKS];
static const struct afar_own own[] = { { 0, 10 }, { 1, 11 } };
static struct afar got;

/* Ranks 0 and 1 are here, all have made seven calls. */
static void setup(void)
{
	for (int32_t i = 0; i < RANKS; i++)
		rows[i] = (struct afar_rank){ .rank = i, .pid = 10 + i, .host = "10.0.0.9",
					      .calls = 7 };
}

static void teardown(void)
{
}

static void expect(enum afar_state state, uint32_t n, int32_t first)
{
	afar_decide(rows, RANKS, RANKS, own, ARRAY_LEN(own), &got);
	ck_assert_str_eq(afar_state_name(got.state), afar_state_name(state));
	ck_assert_uint_eq(got.n, n);
	if (n)
		ck_assert_int_eq(got.ranks[0].rank, first);
}

static void lose(int32_t rank, bool silent)
{
	rows[rank].missing = true;
	rows[rank].silent = silent;
	rows[rank].calls = UNKNOWN_U64;
}

TEST(ranks_that_give_no_answer_come_before_those_that_have_not_come)
{
	rows[2].calls = 6;
	expect(AFAR_ABSENT, 1, 2);
	ck_assert_uint_eq(got.own_calls, 7);
	lose(3, true);
	expect(AFAR_SILENT, 1, 3);
	rows[3].silent = false;
	expect(AFAR_ABSENT, 2, 2);	/* one that has left does not come */
}

TEST(where_all_have_made_the_call_nobody_is_named)
{
	expect(AFAR_EVEN, 0, 0);
	rows[2].calls = 8;		/* it has gone on: it does not hold up the others */
	expect(AFAR_EVEN, 0, 0);
	rows[2].calls = UNKNOWN_U64;
	expect(AFAR_VAGUE, 0, 0);
}

/* Ranks here are judged by what is seen of them. */
TEST(no_rank_of_this_node_is_named)
{
	rows[1].calls = 3;
	expect(AFAR_EVEN, 0, 0);
	lose(1, true);
	expect(AFAR_VAGUE, 0, 0);
}

TEST(an_answer_without_our_ranks_and_pids_is_another_jobs)
{
	rows[0].pid = 999;
	lose(3, true);
	expect(AFAR_FOREIGN, 0, 0);
	rows[0].pid = UNKNOWN_I32;
	expect(AFAR_SILENT, 1, 3);	/* rank 1 proves it */
	rows[1].pid = UNKNOWN_I32;
	expect(AFAR_FOREIGN, 0, 0);
	setup();
	lose(3, true);
	rows[3].rank = RANKS;
	expect(AFAR_FOREIGN, 0, 0);
	rows[3].rank = -1;
	expect(AFAR_FOREIGN, 0, 0);
	rows[3].rank = 3;
	afar_decide(rows, RANKS, RANKS - 1, own, ARRAY_LEN(own), &got);
	ck_assert_int_eq(got.state, AFAR_FOREIGN);
	afar_decide(rows, 0, RANKS, own, ARRAY_LEN(own), &got);
	ck_assert_int_eq(got.state, AFAR_FOREIGN);
}

TEST(more_than_have_room_are_counted)
{
	static struct afar_rank many[100];

	for (int32_t i = 0; i < 100; i++)
		many[i] = (struct afar_rank){ .rank = i, .pid = i + 10, .calls = i < 2 ? 7 : 6 };
	afar_decide(many, 100, 100, own, ARRAY_LEN(own), &got);
	ck_assert_uint_eq(got.n, AFAR_RANKS);
	ck_assert_uint_eq(got.left_out, 98 - AFAR_RANKS);
	ck_assert_ptr_eq(afar_rank_of(&got, 2), &got.ranks[0]);
	ck_assert_ptr_null(afar_rank_of(&got, 0));
}

/* ---- the verdict ---------------------------------------------------------------------- */

static struct hang_rank seen[2];
static struct hang_standing standing[2];
static struct hang_group group;
static struct hang_comm comm;
static struct hang hang;

/* Two of four ranks are here and wait in AllReduce #6, as `verdict` says. */
static struct hang_case case_of(struct hang_verdict verdict)
{
	for (int32_t i = 0; i < 2; i++) {
		seen[i] = (struct hang_rank){ .has_id = true, .id = 1, .nranks = RANKS,
					      .name = "dp", .rank = i, .pid = 10 + i,
					      .world_rank = UNKNOWN_I32,
					      .gpu_index = UNKNOWN_I32 };
		standing[i] = (struct hang_standing){ .rank = i, .posted = true };
	}
	comm = (struct hang_comm){ RANKS, standing, 2 };
	group = (struct hang_group){ .n = 2, .has_op = true,
				     .op = { .func = "AllReduce", .seq = 6 } };
	hang.ranks.at = seen;
	hang.ranks.n = 2;
	hang.groups.at = &group;
	hang.groups.n = 1;
	hang.comms = &comm;
	return (struct hang_case){ .hang = &hang, .verdict = verdict, .age_ns = 1,
				   .limit_ns = UNKNOWN_U64, .afar = &got };
}

static void expect_said(struct hang_case *c, enum verdict verdict, const char *part)
{
	char text[1024];

	hang_hear(c);
	ck_assert_str_eq(words_verdict(c->verdict.verdict)->name, words_verdict(verdict)->name);
	hang_say(c, text, sizeof(text));
	ck_assert_msg(strstr(text, part), "no \"%s\" in: %s", part, text);
}

static const struct hang_verdict unknown = { .verdict = VERDICT_UNKNOWN, .peer = 3 };

TEST(a_rank_without_an_answer_is_named_with_its_node)
{
	struct hang_case c = case_of(unknown);

	lose(3, true);
	expect(AFAR_SILENT, 1, 3);
	expect_said(&c, VERDICT_NO_ANSWER, "rank 3 (pid 13, 10.0.0.9) does not answer NCCL's "
		    "RAS and is missing in AllReduce #6 on dp; ranks 0-1 wait there.");
	c = case_of(unknown);
	rows[3].dead = true;
	expect(AFAR_SILENT, 1, 3);
	expect_said(&c, VERDICT_NO_ANSWER, "which considers it dead, and is missing");
}

TEST(a_rank_that_has_not_come_is_named_with_its_calls)
{
	struct hang_case c = case_of(unknown);

	rows[2].calls = 5;
	expect(AFAR_ABSENT, 1, 2);
	expect_said(&c, VERDICT_NOT_JOINED, "rank 2 (pid 12, 10.0.0.9) has not come to AllReduce "
		    "#6 on dp; NCCL's RAS counts 5 such calls on it, and 7 on this node");
	expect_said(&c, VERDICT_NOT_JOINED, "py-spy dump -p 12");
}

TEST(a_cause_that_is_seen_here_is_not_overruled)
{
	static const enum verdict own_verdicts[] = { VERDICT_GPU_STUCK, VERDICT_STOPPED,
						     VERDICT_NOT_JOINED, VERDICT_PARTIAL };

	lose(3, true);
	expect(AFAR_SILENT, 1, 3);
	for (size_t i = 0; i < ARRAY_LEN(own_verdicts); i++) {
		struct hang_case c = case_of((struct hang_verdict){
			.verdict = own_verdicts[i], .nranks = 1, .peer = UNKNOWN_I32 });

		hang_hear(&c);
		ck_assert_int_eq(c.verdict.verdict, own_verdicts[i]);
		ck_assert_int_eq(c.verdict.ranks[0], 0);
	}
}

/* A rank that is gone ends the threads of those that it is connected with, wherever they are. */
TEST(the_network_is_to_blame_unless_a_rank_gives_no_answer)
{
	const struct hang_verdict afar = { .verdict = VERDICT_LINK, .peer = 3, .nranks = 1 };
	const struct hang_verdict here = { .verdict = VERDICT_LINK, .peer = 1, .nranks = 1 };
	struct hang_case c = case_of(afar);

	rows[2].calls = 5;
	expect(AFAR_ABSENT, 1, 2);
	hang_hear(&c);
	ck_assert_int_eq(c.verdict.verdict, VERDICT_LINK);
	lose(2, true);
	expect(AFAR_SILENT, 1, 2);
	expect_said(&c, VERDICT_NO_ANSWER, "rank 2 ");
	c = case_of(here);
	expect_said(&c, VERDICT_NO_ANSWER, "rank 2 ");
	c = case_of(here);
	comm.nranks = 2;	/* no rank is elsewhere */
	hang_hear(&c);
	ck_assert_int_eq(c.verdict.verdict, VERDICT_LINK);
}

TEST(an_answer_that_names_nobody_is_told_and_changes_nothing)
{
	struct hang_case c = case_of(unknown);

	expect(AFAR_EVEN, 0, 0);
	expect_said(&c, VERDICT_UNKNOWN, "every rank answers and has made the call");
	expect_said(&c, VERDICT_UNKNOWN, "what they do cannot be seen from here");
}

int main(void)
{
	return fx_run(setup, teardown);
}
