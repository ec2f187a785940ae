/* SPDX-License-Identifier: Apache-2.0 */
/* PUT /v1/phase: who may mark whom, what is refused, and where the mark is seen. */
#include "reader/base/phase.h"
#include "tests/fixture_serve.h"

#define ALICE	54321
#define PATH	"/v1/phase"

/* A process of root and one of Alice in one communicator, both of job 7; one of no job. */
static void setup(void)
{
	fx_serve_open(NULL);
	for (int i = 0; i < 3; i++) {
		struct process *p = fx_process(100 + i, i == 1 ? ALICE : 0, i);

		p->instance = 0x10 + (uint64_t)i;
		if (i < 2)
			p->env_bytes = (uint32_t)sprintf(p->env, "SLURM_JOB_ID=7") + 1;
	}
	fx.processes[2]->comms[0].id = 0xbeef;
}

static void put(const char *body, int status)
{
	json_decref(fx_put_over(fx_connect(), PATH, body, status));
}

static void put_as(uid_t uid, const char *body, int status)
{
	json_decref(fx_put_over(fx_connect_as(uid, uid), PATH, body, status));
}

/* The phases of the three, "-" for none: "eval,-,-". */
static void check_phases(const char *expected)
{
	json_t *a = fx_get("/v1/processes?fields=phase", 200);
	char text[128] = "";

	for (size_t i = 0; i < 3; i++) {
		json_t *row = json_array_get(fx_at(a, "processes"), i);

		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? "," : "",
			 json_string_value(json_object_get(row, "phase")) ?: "-");
	}
	ck_assert_str_eq(text, expected);
	json_decref(a);
}

static const char *const senseless[] = {
	"", "[]", "{}", "{\"pid\":100}", "{\"phase\":\"\"}", "{\"phase\":7}",
	"{\"phase\":\"two words\"}", "{\"phase\":\"-\"}", "{\"phase\":\"a,b\"}",
	"{\"phase\":\"0123456789012345678901234567890x\"}", "{\"phase\":\"\u00e4\"}",
	"{\"phase\":\"a\\u0000b\"}", "{\"phase\":\"eval\",\"for_s\":3}",
	"{\"phase\":\"eval\",\"pid\":100,\"job\":\"7\"}",
};

TEST_LOOP(what_makes_no_sense_is_refused_and_changes_nothing, 0, FX_COUNT(senseless))
{
	json_t *a = fx_put_over(fx_connect(), PATH, senseless[_i], 400);

	ck_assert_str_eq(fx_text(a, "error.code"), "bad_request");
	ck_assert_uint_gt(strlen(fx_text(a, "error.message")), 10);
	json_decref(a);
	check_phases("-,-,-");
	ck_assert_uint_eq(names_count(fx.names), 0);
}

static const struct {
	const char *body, *phases;
} marks[] = {
	{ "{\"pid\":100,\"phase\":\"eval\"}", "eval,-,-" },
	{ "{\"job\":\"7\",\"phase\":\"eval\"}", "eval,eval,-" },
	{ "{\"comm_id\":\"0xbeef\",\"phase\":\"a.b/c:d+e-f_9\"}", "-,-,a.b/c:d+e-f_9" },
	{ "{\"phase\":\"0123456789012345678901234567890\"}",
	  "0123456789012345678901234567890,0123456789012345678901234567890,"
	  "0123456789012345678901234567890" },
};

TEST_LOOP(those_who_are_meant_are_marked, 0, FX_COUNT(marks))
{
	put(marks[_i].body, 200);
	check_phases(marks[_i].phases);
}

TEST(the_answer_says_who_was_marked_and_since_when)
{
	json_t *a = fx_put_over(fx_connect(), PATH, "{\"job\":\"7\",\"phase\":\"eval\"}", 200);

	ck_assert_str_eq(fx_text(a, "target"), "job");
	ck_assert_str_eq(fx_text(a, "job"), "7");
	ck_assert_str_eq(fx_text(a, "phase"), "eval");
	ck_assert_uint_eq(fx_number(a, "since_mono_ns"), fx.now_ns);
	ck_assert_uint_eq(json_array_size(fx_at(a, "processes")), 2);
	ck_assert_uint_eq(fx_number(a, "processes.1.pid"), 101);
	ck_assert_str_eq(fx_text(a, "processes.1.job"), "7");
	json_decref(a);
}

TEST(a_mark_lasts_until_another_or_none)
{
	json_t *a;

	put("{\"pid\":100,\"phase\":\"warmup\"}", 200);
	fx_pass(5 * FX_SECOND);
	put("{\"pid\":100,\"phase\":\"warmup\"}", 200);	/* goes on */
	a = fx_get("/v1/processes", 200);
	ck_assert_uint_eq(fx_number(a, "processes.0.phase_since_mono_ns"), FX_START_NS);
	json_decref(a);
	put("{\"pid\":100,\"phase\":\"eval\"}", 200);
	check_phases("eval,-,-");
	put("{\"pid\":100,\"phase\":null}", 200);
	check_phases("-,-,-");
}

TEST(a_user_may_mark_what_is_his_and_nothing_else)
{
	put_as(ALICE, "{\"pid\":101,\"phase\":\"a\"}", 200);
	put_as(ALICE, "{\"pid\":100,\"phase\":\"b\"}", 404);
	put_as(ALICE, "{\"phase\":\"b\"}", 403);
	put_as(ALICE + 1, "{\"job\":\"7\",\"phase\":\"b\"}", 404);
	check_phases("-,a,-");
	ck_assert_uint_eq(names_count(fx.names), 1);
	put_as(ALICE, "{\"job\":\"7\",\"phase\":\"c\"}", 200);	/* her part of it */
	check_phases("-,c,-");
}

TEST(a_dry_run_tells_and_changes_nothing)
{
	json_t *a = fx_put_over(fx_connect(), PATH,
				"{\"job\":\"7\",\"phase\":\"eval\",\"dry_run\":true}", 200);

	ck_assert_str_eq(fx_text(a, "phase"), "eval");
	ck_assert_uint_eq(json_array_size(fx_at(a, "processes")), 2);
	json_decref(a);
	check_phases("-,-,-");
	ck_assert_uint_eq(names_count(fx.names), 0);
	put("{\"phase\":\"eval\",\"dry_run\":1}", 400);
	put("{\"pid\":100,\"phase\":\"eval\",\"dry_run\":false}", 200);
	check_phases("eval,-,-");
	put_as(ALICE, "{\"pid\":100,\"phase\":\"b\",\"dry_run\":true}", 404);
}

TEST(who_has_ended_is_not_marked)
{
	fx.processes[0]->state = PROCESS_DIED;
	put("{\"pid\":100,\"phase\":\"eval\"}", 404);
	put("{\"phase\":\"eval\"}", 200);
	check_phases("-,eval,eval");
}

/* An operation is of the phase in which it was posted, whenever it ends. */
TEST(operations_are_of_the_phase_in_which_they_were_posted)
{
	struct process *p = fx.processes[0];
	json_t *a;

	fx_post(p, 41, 0x5001, 1000);
	fx_pass(10 * FX_SECOND);
	put("{\"pid\":100,\"phase\":\"eval\"}", 200);
	fx_pass(FX_SECOND);
	fx_post(p, 42, 0x5002, 1000 + 11 * FX_SECOND);
	fx_pass(FX_SECOND);
	a = fx_get("/v1/inflight?fields=seq,phase", 200);
	ck_assert_uint_eq(fx_number(a, "inflight.0.seq"), 41);
	ck_assert(json_is_null(fx_at(a, "inflight.0.phase")));
	ck_assert_str_eq(fx_text(a, "inflight.1.phase"), "eval");
	json_decref(a);
	reconstruct_end(fx.reconstruct, p, fx.now_ns);
	a = fx_get("/v1/collectives?fields=seq,phase", 200);
	ck_assert_uint_eq(fx_number(a, "collectives.0.seq"), 42);
	ck_assert_str_eq(fx_text(a, "collectives.0.phase"), "eval");
	ck_assert(json_is_null(fx_at(a, "collectives.1.phase")));
	json_decref(a);
}

TEST(ranks_and_sums_tell_it)
{
	struct op op = { .process_id = 1, .uid = 0, .func = FX_FUNC, .bytes = 64,
			 .exec_ns = UNKNOWN_U64, .phase = "eval" };
	json_t *a;

	put("{\"pid\":100,\"phase\":\"eval\"}", 200);
	a = fx_get("/v1/comms", 200);
	ck_assert_str_eq(fx_text(a, "comms.1.local_ranks.0.phase"), "eval");
	ck_assert(json_is_null(fx_at(a, "comms.1.local_ranks.1.phase")));
	json_decref(a);
	aggregate_add(fx.aggregate, &op, fx.now_ns);
	op.phase = NULL;
	aggregate_add(fx.aggregate, &op, fx.now_ns);
	a = fx_get("/v1/summary?by=func,phase", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "rows")), 2);
	json_decref(a);
	a = fx_get("/v1/summary?by=func", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "rows")), 1);
	json_decref(a);
}

/* Of a user who invents names without end the others are not to hear. */
TEST(names_have_a_bound)
{
	char body[64];
	int refused = 0;

	for (int i = 0; i < FX_NAMES; i++) {
		json_t *a;
		char *answer;

		snprintf(body, sizeof(body), "{\"pid\":101,\"phase\":\"step%d\"}", i);
		answer = fx_send_over(fx_connect_as(ALICE, ALICE), "PUT", PATH, body);
		a = json_loads(fx_body(answer), 0, NULL);
		refused += fx_status(answer) == 429;
		ck_assert(fx_status(answer) == 200 || fx_text(a, "error.message"));
		json_decref(a);
		free(answer);
	}
	ck_assert_int_eq(refused, FX_NAMES / 2);
	check_phases("-,step3,-");
}

int main(void)
{
	return fx_run(setup, fx_serve_close);
}
