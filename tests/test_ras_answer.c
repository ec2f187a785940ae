/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of NCCL's RAS, as they are, in pieces, damaged, and about something else. */
#include <string.h>

#include "ncclinspd/findings/ras_answer.h"
#include "tests/fixture_ras.h"
#include "util/unknown.h"

static struct fx_ras_answer text;
static struct ras_answer got;

static void setup(void)
{
	fx_ras_begin(&text);
	fx_ras_comm(&text, 0xbeef, 2);
	fx_ras_rank(&text, 1, 99, 5);
	fx_ras_missing(&text);
	fx_ras_end_comm(&text);
	fx_ras_comm(&text, FX_RAS_COMM, 4);
	fx_ras_rank(&text, 0, 10, 7);
	fx_ras_rank(&text, 1, 11, 6);
	fx_ras_missing(&text);
	fx_ras_lost(&text, 2, 12, true, false);
	fx_ras_lost(&text, 3, 13, true, true);
	fx_ras_end_comm(&text);
	fx_ras_end(&text);
	ras_answer_init(&got, FX_RAS_COMM, 4, "AllReduce");
}

static void teardown(void)
{
	ras_answer_deinit(&got);
}

static void expect_the_four(void)
{
	ck_assert(ras_answer_is_good(&got));
	ck_assert_uint_eq(got.ranks.n, 4);
	for (int32_t i = 0; i < 4; i++) {
		ck_assert_int_eq(got.ranks.at[i].rank, i);
		ck_assert_int_eq(got.ranks.at[i].pid, 10 + i);
		ck_assert_int_eq(got.ranks.at[i].host[7] - '0', i);
		ck_assert_int_eq(got.ranks.at[i].missing, i >= 2);
		ck_assert_int_eq(got.ranks.at[i].silent, i >= 2);
		ck_assert_int_eq(got.ranks.at[i].dead, i == 3);
	}
	ck_assert_uint_eq(got.ranks.at[0].calls, 7);
	ck_assert_uint_eq(got.ranks.at[1].calls, 6);
	ck_assert_uint_eq(got.ranks.at[2].calls, UNKNOWN_U64);
}

TEST(ranks_of_the_communicator_in_question_are_rows)
{
	ras_answer_take(&got, text.text, text.n);
	expect_the_four();
}

TEST(an_answer_may_come_in_pieces_of_any_size)
{
	for (size_t piece = 1; piece < 40; piece++) {
		ras_answer_deinit(&got);
		ras_answer_init(&got, FX_RAS_COMM, 4, "AllReduce");
		for (size_t at = 0; at < text.n; at += piece)
			ras_answer_take(&got, text.text + at,
					text.n - at < piece ? text.n - at : piece);
		expect_the_four();
	}
}

TEST(an_answer_that_was_cut_is_not_good)
{
	const char *last = strstr(text.text, "\"timeouts_count\"");

	for (size_t n = 0; n < (size_t)(last - text.text); n += 7) {
		ras_answer_deinit(&got);
		ras_answer_init(&got, FX_RAS_COMM, 4, "AllReduce");
		ras_answer_take(&got, text.text, n);
		ck_assert(!ras_answer_is_good(&got));
	}
}

TEST(another_id_or_size_or_two_of_them_is_not_ours)
{
	static const struct { uint64_t id; int32_t nranks; } others[] = {
		{ 0xcaff, 4 }, { FX_RAS_COMM, 5 }, { FX_RAS_COMM << 16, 4 },
	};

	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		ras_answer_deinit(&got);
		ras_answer_init(&got, others[i].id, others[i].nranks, "AllReduce");
		ras_answer_take(&got, text.text, text.n);
		ck_assert(!ras_answer_is_good(&got));
		ck_assert_uint_eq(got.ranks.n, 0);
	}
	ras_answer_deinit(&got);
	ras_answer_init(&got, FX_RAS_COMM, 4, "AllReduce");
	ras_answer_take(&got, text.text, text.n);
	ras_answer_take(&got, text.text, text.n);
	ck_assert(!ras_answer_is_good(&got));
}

/* A host that could deceive a reader of the sentence, numbers that are none, endless lines. */
TEST(values_that_cannot_be_are_left_out)
{
	static const char lies[] =
		"\"hash\": \"0xcafe\",\n\"size\": 4,\n\"ranks\": [\n\"rank\": 0,\n"
		"\"host\": \"node1; rm -rf\",\n\"pid\": -7,\n\"AllReduce\": 1e9,\n"
		"\"unresponsive\": true,\n\"considered_dead\": true\n\"pid\": 99999999999\n";
	char line[RAS_LINE * 4];

	memset(line, 'x', sizeof(line));
	ras_answer_take(&got, lies, strlen(lies));
	ras_answer_take(&got, line, sizeof(line));
	ras_answer_take(&got, "\"pid\": 5\n", 9);
	ck_assert(!got.broken);
	ck_assert_uint_eq(got.ranks.n, 1);
	ck_assert_str_eq(got.ranks.at[0].host, "");
	ck_assert_int_eq(got.ranks.at[0].pid, UNKNOWN_I32);
	ck_assert_uint_eq(got.ranks.at[0].calls, UNKNOWN_U64);
	ck_assert(!got.ranks.at[0].silent && !got.ranks.at[0].dead);
	ras_answer_take(&got, "\"rank\": -1\n", 11);
	ck_assert(got.broken && !ras_answer_is_good(&got));
}

TEST(more_ranks_than_can_be_end_the_reading)
{
	static const char begin[] = "\"hash\": \"0xcafe\",\n\"size\": 4,\n\"ranks\": [\n";

	ras_answer_take(&got, begin, strlen(begin));
	for (uint32_t i = 0; i < RAS_RANKS_MOST + 10; i++)
		ras_answer_take(&got, "\"rank\": 0\n", 10);
	ck_assert(got.broken);
	ck_assert_uint_eq(got.ranks.n, RAS_RANKS_MOST);
}

/* Bytes here and there: whatever is read is within its bounds, and ends with a zero. */
TEST(no_damage_leads_beyond_a_bound)
{
	uint32_t random = 1;
	struct fx_ras_answer damaged;

	for (int turn = 0; turn < 3000; turn++) {
		damaged = text;
		for (int i = 0; i < 1 + turn % 20; i++) {
			random = random * 1664525 + 1013904223;
			damaged.text[(random >> 8) % text.n] = (char)(random >> 3);
		}
		ras_answer_deinit(&got);
		ras_answer_init(&got, FX_RAS_COMM, 4, "AllReduce");
		ras_answer_take(&got, damaged.text, damaged.n);
		for (uint32_t i = 0; i < got.ranks.n; i++) {
			const struct afar_rank *r = &got.ranks.at[i];

			ck_assert(memchr(r->host, '\0', sizeof(r->host)));
			ck_assert(r->host[strspn(r->host, "0123456789abcdef.:")] == '\0');
			ck_assert(r->rank >= 0 && (r->pid == UNKNOWN_I32 || r->pid > 0));
		}
	}
}

int main(void)
{
	return fx_run(setup, teardown);
}
