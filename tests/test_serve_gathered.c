/* SPDX-License-Identifier: Apache-2.0 */
/* PUT /v1/findings: what was gathered about one, who may say so, and what is refused. */
#include "tests/fixture_serve.h"

#define ALICE	54321
#define PATH	"/v1/findings"

static void report(uint64_t key, enum finding_severity severity)
{
	struct finding f = {
		.kind = FINDING_DIED, .severity = severity, .uid = ALICE, .peer = UNKNOWN_I32,
		.since_ns = fx.now_ns,
	};

	diagnose_report(fx.diagnose, &finding_died, key, &f, fx.now_ns);
}

static void setup(void)
{
	fx_serve_open(NULL);
	report(1, FINDING_WARNING);
	report(2, FINDING_WARNING);
}

/* The lines of a finding, "a|b|". */
static void check_lines(uint64_t id, const char *expected)
{
	json_t *a = fx_get(PATH "?fields=id,gathered", 200), *row, *line;
	char text[FINDING_GATHERED * FINDING_LINE] = "";
	size_t i, k;

	json_array_foreach(fx_at(a, "findings"), i, row)
		if (json_integer_value(json_object_get(row, "id")) == (json_int_t)id)
			json_array_foreach(json_object_get(row, "gathered"), k, line)
				snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s|",
					 json_string_value(line));
	ck_assert_str_eq(text, expected);
	json_decref(a);
}

static void put(const char *body, int status)
{
	json_decref(fx_put_over(fx_connect(), PATH, body, status));
}

TEST(lines_stay_with_their_finding_until_others_come)
{
	json_t *a = fx_put_over(fx_connect(), PATH,
				"{\"id\":2,\"gathered\":[\"in read\",\"disk is gone\"]}", 200);

	ck_assert_int_eq(json_integer_value(json_object_get(a, "id")), 2);
	json_decref(a);
	check_lines(1, "");
	check_lines(2, "in read|disk is gone|");
	fx_pass(FX_SECOND);
	report(2, FINDING_CRITICAL);
	check_lines(2, "in read|disk is gone|");
	put("{\"id\":2,\"gathered\":[\"in write\"]}", 200);
	check_lines(2, "in write|");
	put("{\"id\":2,\"gathered\":[]}", 200);
	check_lines(2, "");
}

static const char *const senseless[] = {
	"", "[]", "{}", "{\"id\":1}", "{\"gathered\":[\"a\"]}", "{\"id\":0,\"gathered\":[\"a\"]}",
	"{\"id\":\"1\",\"gathered\":[\"a\"]}", "{\"id\":1,\"gathered\":\"a\"}",
	"{\"id\":1,\"gathered\":[\"\"]}", "{\"id\":1,\"gathered\":[7]}",
	"{\"id\":1,\"gathered\":[\"a\\u0000b\"]}", "{\"id\":1,\"gathered\":[\"a\"],\"text\":\"b\"}",
	"{\"id\":1,\"gathered\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\"]}",
};

TEST_LOOP(what_makes_no_sense_is_refused_and_changes_nothing, 0, FX_COUNT(senseless))
{
	put("{\"id\":1,\"gathered\":[\"before\"]}", 200);
	put(senseless[_i], 400);
	check_lines(1, "before|");
}

TEST(line_that_is_too_long_is_refused)
{
	char body[2 * FINDING_LINE];

	for (int bytes = FINDING_LINE - 1; bytes <= FINDING_LINE; bytes++) {
		char line[FINDING_LINE + 1] = "";

		memset(line, 'x', (size_t)bytes);
		snprintf(body, sizeof(body), "{\"id\":1,\"gathered\":[\"%s\"]}", line);
		put(body, bytes < FINDING_LINE ? 200 : 400);
	}
}

TEST(nobody_speaks_of_a_finding_that_is_not_there)
{
	put("{\"id\":3,\"gathered\":[\"a\"]}", 404);
}

/* Not even of a finding about one's own processes: root's eyes read it. */
TEST(users_may_not)
{
	json_decref(fx_put_over(fx_connect_as(ALICE, ALICE), PATH,
				"{\"id\":1,\"gathered\":[\"a\"]}", 403));
	check_lines(1, "");
}

int main(void)
{
	return fx_run(setup, fx_serve_close);
}
