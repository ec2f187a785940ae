/* SPDX-License-Identifier: Apache-2.0 */
/* Findings: how they are kept, and those about processes that died. */
#include "tests/fixture_serve.h"
#include "reader/base/job.h"
#include "tests/fx_accounts.h"

static void setup(void)
{
	fx_serve_open(NULL);
}

static void report_as(enum finding_grade grade, uid_t uid, const struct detector *detector,
		      uint64_t key, enum finding_severity severity)
{
	struct finding f = { .kind = FINDING_DIED, .grade = grade, .uid = uid, .peer = UNKNOWN_I32,
			     .severity = severity, .since_ns = fx.now_ns, .text = "it died" };

	diagnose_report(fx.diagnose, detector, key, &f, fx.now_ns);
}

static void report(const struct detector *detector, uint64_t key, enum finding_severity severity)
{
	report_as(FINDING_FOUND, 0, detector, key, severity);
}

/* The clock goes on with a look each second. */
static void look_for(uint64_t seconds)
{
	while (seconds--) {
		fx.now_ns += FX_SECOND;
		diagnose_look(fx.diagnose, fx.now_ns);
	}
}

static json_t *findings(const char *query)
{
	char target[64];

	snprintf(target, sizeof(target), "/v1/findings%s", query);
	return fx_get(target, 200);
}

static size_t count(const char *query)
{
	json_t *a = findings(query);
	size_t n = json_array_size(fx_at(a, "findings"));

	json_decref(a);
	return n;
}

static const struct detector brief = { .name = "brief", .hold_ns = 2 * FX_SECOND };

TEST(nothing_wrong_is_an_empty_list)
{
	ck_assert_uint_eq(count(""), 0);
}

TEST(what_is_said_again_keeps_its_id_and_its_beginning)
{
	json_t *a;

	report(&brief, 7, FINDING_WARNING);
	look_for(2);
	report(&brief, 7, FINDING_CRITICAL);
	report(&brief, 8, FINDING_INFO);
	a = findings("");
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 2);
	ck_assert_uint_eq(fx_number(a, "findings.1.id"), 1);
	ck_assert_str_eq(fx_text(a, "findings.1.severity"), "critical");
	ck_assert_uint_eq(fx_number(a, "findings.1.since_mono_ns"), FX_START_NS);
	ck_assert_uint_eq(fx_number(a, "findings.1.found_mono_ns"), FX_START_NS);
	ck_assert(json_is_true(fx_at(a, "findings.1.active")));
	ck_assert(json_is_null(fx_at(a, "findings.1.until_at")));
	ck_assert(json_is_null(fx_at(a, "findings.1.evidence")));
	json_decref(a);
}

TEST(what_is_not_seen_any_more_ends_and_is_kept_for_an_hour)
{
	json_t *a;

	report(&brief, 7, FINDING_WARNING);
	look_for(2);
	ck_assert_uint_eq(count("?active=true"), 1);
	look_for(1);
	ck_assert_uint_eq(count("?active=true"), 0);
	a = findings("?active=false");
	ck_assert_uint_eq(fx_number(a, "findings.0.until_mono_ns"), FX_START_NS);
	json_decref(a);

	report(&brief, 7, FINDING_WARNING);	/* again: a new one */
	ck_assert_uint_eq(count(""), 2);
	look_for(3595);
	ck_assert_uint_eq(count(""), 2);
	look_for(10);
	ck_assert_uint_eq(count(""), 0);
}

TEST(a_look_that_comes_late_on_a_busy_machine_ends_nothing)
{
	report(&brief, 7, FINDING_WARNING);
	for (int i = 0; i < 5; i++) {
		fx.now_ns += 10 * FX_SECOND;	/* far beyond its hold_ns */
		diagnose_look(fx.diagnose, fx.now_ns);
		ck_assert_uint_eq(count("?active=true"), 1);
		report(&brief, 7, FINDING_WARNING);
	}
	ck_assert_uint_eq(count(""), 1);
	fx.now_ns += 10 * FX_SECOND;
	diagnose_look(fx.diagnose, fx.now_ns);
	ck_assert_uint_eq(count("?active=true"), 1);
	fx.now_ns += 10 * FX_SECOND;
	diagnose_look(fx.diagnose, fx.now_ns);
	ck_assert_uint_eq(count("?active=true"), 0);
}

TEST(a_full_store_lets_go_of_what_ended_and_never_of_what_is_active)
{
	for (uint64_t i = 0; i < 100; i++)
		report(&brief, i, FINDING_WARNING);
	look_for(4);
	for (uint64_t i = 100; i < 300; i++)
		report(&brief, i, FINDING_WARNING);
	ck_assert_uint_eq(count("?active=true"), 128);
	ck_assert_uint_eq(count(""), 128);
	ck_assert_uint_eq(diagnose_refused(fx.diagnose), 72);
}

TEST(nobody_fills_the_store_for_other_users)
{
	struct finding f = { .kind = FINDING_STALL, .severity = FINDING_CRITICAL, .uid = 101,
			     .peer = UNKNOWN_I32, .since_ns = fx.now_ns };
	json_t *a;

	for (uint64_t i = 0; i < 200; i++)
		report(&brief, i, FINDING_WARNING);
	for (uint64_t i = 200; i < 300; i++)
		diagnose_report(fx.diagnose, &brief, i, &f, fx.now_ns);
	a = findings("?active=true");
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 128);
	ck_assert_str_eq(fx_text(a, "findings.63.kind"), "stall");
	ck_assert_str_eq(fx_text(a, "findings.64.kind"), "died");
	ck_assert_uint_eq(fx_number(a, "refused"), 300 - 128);
	json_decref(a);
}

TEST(nobody_pushes_out_what_ended_of_other_users)
{
	json_t *a;

	report_as(FINDING_FOUND, 101, &brief, 1, FINDING_CRITICAL);
	look_for(4);
	for (uint64_t i = 2; i < 300; i++) {
		report(&brief, i, FINDING_WARNING);
		look_for(i % 50 ? 0 : 4);
	}
	a = findings("");
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 128);
	ck_assert_uint_eq(fx_number(a, "findings.127.id"), 1);
	json_decref(a);
}

TEST(what_is_suspected_becomes_found_in_place_and_is_not_taken_back)
{
	json_t *a;

	report_as(FINDING_SUSPECTED, 0, &brief, 7, FINDING_CRITICAL);
	ck_assert_uint_eq(count("?grade=suspected"), 1);
	ck_assert_uint_eq(count("?grade=found"), 0);
	look_for(1);
	report(&brief, 7, FINDING_CRITICAL);
	for (int i = 0; i < 4; i++) {
		a = findings("?grade=found");
		ck_assert_uint_eq(fx_number(a, "findings.0.id"), 1);
		ck_assert_uint_eq(fx_number(a, "findings.0.since_mono_ns"), FX_START_NS);
		ck_assert_uint_eq(fx_number(a, "findings.0.found_mono_ns"),
				  FX_START_NS + FX_SECOND);
		ck_assert(json_boolean_value(fx_at(a, "findings.0.active")) == (i < 3));
		json_decref(a);
		report_as(FINDING_SUSPECTED, 0, &brief, 7, FINDING_CRITICAL);
		ck_assert_uint_eq(count("?grade=suspected"), i == 3);	/* a new one */
		look_for(1);
	}
}

TEST(a_suspicion_pushes_nothing_out_and_makes_room_for_what_is_found)
{
	for (uint64_t i = 0; i < 10; i++)
		report(&brief, i, FINDING_WARNING);
	look_for(4);
	for (uint64_t i = 10; i < 20; i++)
		report(&brief, i, FINDING_WARNING);
	for (uint64_t i = 20; i < 200; i++)
		report_as(FINDING_SUSPECTED, 0, &brief, i, FINDING_CRITICAL);
	ck_assert_uint_eq(count("?active=false"), 10);
	ck_assert_uint_eq(count("?active=true&grade=found"), 10);
	ck_assert_uint_eq(count("?grade=suspected"), 108);
	report_as(FINDING_SUSPECTED, 101, &brief, 200, FINDING_CRITICAL);	/* another user */
	ck_assert_uint_eq(count("?grade=suspected"), 108);
	for (uint64_t i = 300; i < 408; i++)
		report(&brief, i, FINDING_WARNING);
	ck_assert_uint_eq(count("?active=false"), 10);
	ck_assert_uint_eq(count("?active=true&grade=found"), 118);
	ck_assert_uint_eq(count("?grade=suspected"), 0);
	ck_assert_uint_eq(diagnose_refused(fx.diagnose), 0);
}

TEST(an_answer_tells_whom_it_speaks_of)
{
	static const char job[] = "SLURM_JOB_ID=47";
	struct process *p[6];
	json_t *a;

	for (int i = 0; i < 6; i++) {
		p[i] = fx_process(10 + i, 0, i);
		if (i < 3)
			memcpy(p[i]->env, job, p[i]->env_bytes = sizeof(job));
	}
	p[0]->state = PROCESS_EXITED;
	p[1]->mask = NCI_EVENT_BIT(NCI_EV_COLL);
	p[1]->steering.mode = NCI_MODE_NEVER;
	p[2]->mask = NCI_EVENT_BIT(NCI_EV_COLL);
	p[2]->steering.mode = NCI_MODE_BURST;
	p[2]->steering.settles_ns = fx.now_ns + 9;
	for (int i = 4; i < 6; i++) {
		p[i]->level = NCI_LEVEL_NET;
		p[i]->mask = NCI_EVENT_BIT(NCI_EV_COLL);
		p[i]->steering.mode = NCI_MODE_BURST;
		p[i]->steering.known = true;
	}
	p[4]->steering.sequence = 1;
	a = findings("");
	ck_assert_uint_eq(fx_number(a, "watched.live"), 5);
	ck_assert_uint_eq(fx_number(a, "watched.unled"), 1);
	ck_assert_uint_eq(fx_number(a, "watched.unseen"), 1);
	ck_assert_uint_eq(fx_number(a, "watched.settling"), 1);
	ck_assert_uint_eq(fx_number(a, "watched.settles_mono_ns"), fx.now_ns + 9);
	ck_assert_uint_eq(json_array_size(fx_at(a, "watched.jobs")), 1);
	ck_assert_str_eq(fx_text(a, "watched.jobs.0"), "47");
	json_decref(a);
}

static bool count_of_bo(const struct finding *f, void *arg)
{
	*(uint32_t *)arg += f->uid == 1001;
	return true;
}

/* One of each id, where the other user has three: none has more than he, all together have. */
TEST(nor_with_the_ids_that_a_user_has_beside_his_own)
{
	struct accounts *accounts = fx_accounts("1000:100000:65536\n");
	const struct diagnose_config config = { .accounts = accounts };
	const struct diagnose_source source = { .processes = fx_processes };
	struct finding f = { .kind = FINDING_STALL, .uid = 1001, .peer = UNKNOWN_I32 };
	struct diagnose *dg;
	uint32_t n = 0;

	ck_assert_int_eq(diagnose_new(&dg, &config, &source), 0);
	for (uint64_t i = 0; i < 3; i++)
		diagnose_report(dg, &brief, i, &f, fx.now_ns);
	for (uint64_t i = 3; i < 200; i++) {
		f.uid = 100000 + (uid_t)i;
		diagnose_report(dg, &brief, i, &f, fx.now_ns);
	}
	diagnose_visit(dg, count_of_bo, &n);
	ck_assert_uint_eq(n, 3);
	diagnose_free(dg);
	accounts_free(accounts);
}

TEST(a_stream_tells_of_beginning_change_and_end_and_of_nothing_between)
{
	static const char *const wanted[] = { "warning", "critical", "critical" };
	static const char request[] = "GET /v1/stream?kinds=finding HTTP/1.1\r\nHost: x\r\n\r\n";
	int fd = fx_connect();
	char *text, *line;
	bool closed;

	fx_send(fd, request, sizeof(request) - 1);
	report(&brief, 7, FINDING_WARNING);
	report(&brief, 7, FINDING_WARNING);
	report(&brief, 7, FINDING_CRITICAL);
	look_for(4);
	text = fx_receive(fd, &closed);
	line = text;
	for (int i = 0; i < 3; i++) {
		line = strstr(line, "{\"kind\":\"finding\",\"finding\":\"died\"");
		ck_assert_msg(line, "line %d of %s", i, text);
		ck_assert_ptr_nonnull(strstr(line, wanted[i]));
		line++;
	}
	ck_assert_ptr_null(strstr(line, "{\"kind\":"));
	free(text);
	close(fd);
}

static void kill_process(struct process *p)
{
	p->state = PROCESS_DIED;
	p->ended_ns = fx.now_ns;
	reconstruct_end(fx.reconstruct, p, fx.now_ns);
	diagnose_ended(fx.diagnose, p, fx.now_ns);
}

TEST(who_dies_after_another_is_in_the_same_finding)
{
	struct process *first = fx_process(10, 0, 3), *second = fx_process(11, 0, 1);
	static const char env[] = "RANK=11";
	json_t *a;

	memcpy(first->env, env, sizeof(env));
	first->env_bytes = sizeof(env);
	job_find_world(first);
	fx_post(first, 41, 0x5001, 1000);
	kill_process(first);
	fx.now_ns += FX_SECOND;
	kill_process(second);
	a = findings("");
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	ck_assert_str_eq(fx_text(a, "findings.0.kind"), "died");
	ck_assert_str_eq(fx_text(a, "findings.0.severity"), "critical");
	ck_assert_str_eq(fx_text(a, "findings.0.comm_name"), "dp");
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 3);
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.1"), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.whom.0.rank"), 3);
	ck_assert_uint_eq(fx_number(a, "findings.0.whom.0.world_rank"), 11);
	ck_assert_uint_eq(fx_number(a, "findings.0.whom.0.pid"), 10);
	ck_assert_ptr_nonnull(fx_text(a, "findings.0.whom.0.host"));
	ck_assert(json_is_null(fx_at(a, "findings.0.whom.0.gpu_index")));
	ck_assert_uint_eq(fx_number(a, "findings.0.whom.1.pid"), 11);
	ck_assert(json_is_null(fx_at(a, "findings.0.whom.1.world_rank")));
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.processes.0.pid"), 10);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.processes.0.seq"), 41);
	ck_assert_str_eq(fx_text(a, "findings.0.evidence.processes.0.func"), FX_FUNC);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.processes.1.in_flight"), 0);
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), "; after it rank 1 (pid 11"));
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"),
				     "died in the middle of " FX_FUNC " #41 on "));
	json_decref(a);
}

TEST(who_dies_with_another_users_communicator_is_a_finding_of_its_own)
{
	struct process *first = fx_process(10, 100, 3), *second = fx_process(11, 101, 1);
	json_t *a;

	kill_process(first);
	kill_process(second);
	a = findings("");
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 2);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings.0.evidence.processes")), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.processes.0.pid"), 11);
	json_decref(a);
}

TEST(who_dies_much_later_is_a_finding_of_its_own_and_a_clean_exit_is_none)
{
	struct process *first = fx_process(10, 0, 3), *second = fx_process(11, 0, 1);
	struct process *third = fx_process(12, 0, 2);

	kill_process(first);
	look_for(40);
	kill_process(second);
	third->state = PROCESS_EXITED;
	diagnose_ended(fx.diagnose, third, fx.now_ns);
	ck_assert_uint_eq(count(""), 2);
}

int main(void)
{
	return fx_run(setup, fx_serve_close);
}
