/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/level: who may change what, what is refused and how, and what the file says then. */
#include <math.h>

#include "tests/fixture_serve.h"

#define ALICE	54321
#define PID_ROOT  "100"
#define PID_ALICE "101"

/* A process of root and one of Alice in one communicator, both of job 7; hers is known. */
static void two_users(void)
{
	for (int i = 0; i < 2; i++) {
		struct process *p = fx_process(100 + i, i ? ALICE : 0, i);

		p->instance = 0x10 + (uint64_t)i;
		p->env_bytes = (uint32_t)sprintf(p->env, "SLURM_JOB_ID=7") + 1;
	}
	fx.processes[0]->steering.known = false;
	fx.processes[1]->steering = (struct steering){
		.known = true, .sequence = 3, .source = NCI_SOURCE_CONTROL,
		.cause = NCI_CAUSE_PERSON, .sample = NCI_SAMPLE_BUDGET, .mode = NCI_MODE_BURST,
	};
}

static json_t *put_over(int fd, const char *body, int status)
{
	return fx_put_over(fd, "/v1/level", body, status);
}

static json_t *put(const char *body, int status)
{
	return put_over(fx_connect(), body, status);
}

static void put_as(uid_t uid, const char *body, int status)
{
	json_decref(put_over(fx_connect_as(uid, uid), body, status));
}

static struct nci_control file(void)
{
	struct nci_control found = { 0 };
	int fd = open(steer_control(fx.steer)->path, O_RDONLY);

	ck_assert_int_eq(pread(fd, &found, sizeof(found), 0), sizeof(found));
	close(fd);
	ck_assert(nci_control_is_whole(&found));
	return found;
}

static const char *const senseless[] = {
	"", "7", "[]", "{", "{}", "{\"pid\":100}", "{\"level\":\"loud\"}", "{\"level\":3}",
	"{\"pid\":100,\"level\":null}", "{\"level\":\"mask\"}", "{\"sample\":\"some\"}",
	"{\"level\":\"ops\",\"for_s\":0}", "{\"level\":\"ops\",\"for_s\":-1}",
	"{\"level\":\"ops\",\"for_s\":1e99}", "{\"level\":\"ops\",\"for_s\":\"10\"}",
	"{\"level\":\"ops\",\"forever\":1}", "{\"pid\":\"100\",\"level\":\"ops\"}",
	"{\"pid\":0,\"level\":\"ops\"}", "{\"pid\":4294967396,\"level\":\"ops\"}",
	"{\"pid\":100,\"job\":\"7\",\"level\":\"ops\"}", "{\"job\":\"\",\"level\":\"ops\"}",
	"{\"comm_id\":\"dp\",\"level\":\"ops\"}", "{\"comm_id\":7,\"level\":\"ops\"}",
	"{\"level\":\"default\",\"for_s\":3}", "{\"level\":\"default\",\"sample\":\"all\"}",
	"{\"level\":\"ops\",\"level\":\"net\"}",
};

TEST_LOOP(what_makes_no_sense_is_refused_and_says_why, 0, FX_COUNT(senseless))
{
	json_t *a;

	two_users();
	a = put(senseless[_i], 400);
	ck_assert_str_eq(fx_text(a, "error.code"), "bad_request");
	ck_assert_uint_gt(strlen(fx_text(a, "error.message")), 10);
	json_decref(a);
	ck_assert_uint_eq(levels_wishes(steer_levels(fx.steer))->serial, 0);
}

TEST(the_answer_says_what_holds_for_whom_and_until_when)
{
	json_t *a;

	two_users();
	a = put("{\"job\":\"7\",\"level\":\"trace\",\"sample\":\"all\",\"for_s\":2.5}", 200);
	ck_assert_str_eq(fx_text(a, "target"), "job");
	ck_assert_str_eq(fx_text(a, "job"), "7");
	ck_assert_str_eq(fx_text(a, "level"), "trace");
	ck_assert_str_eq(fx_text(a, "sampling"), "all");
	ck_assert_uint_eq(fx_number(a, "until_mono_ns"), fx.now_ns + 5 * FX_SECOND / 2);
	ck_assert_uint_eq(json_array_size(fx_at(a, "processes")), 2);
	ck_assert_str_eq(fx_text(a, "processes.0.wanted.level"), "trace");
	ck_assert_str_eq(fx_text(a, "processes.0.wanted.why"), "person");
	ck_assert(json_is_null(fx_at(a, "processes.0.steering")));
	ck_assert_str_eq(fx_text(a, "processes.1.steering.kernels"), "inside");
	ck_assert_uint_eq(fx_number(a, "control.sequence"), file().sequence);
	json_decref(a);
	ck_assert_uint_eq(file().entries, 2);
	ck_assert_uint_eq(file().entry[1].instance, 0x11);
	ck_assert_uint_eq(file().entry[1].until_mono_ns, fx.now_ns + 5 * FX_SECOND / 2);
}

/* Once its time is over, it settles until the next operation, and nobody knows when that is. */
TEST_LOOP(a_process_that_settles_says_until_when, 0, 2)
{
	json_t *a;

	two_users();
	fx.processes[1]->mask = 0;
	fx.processes[1]->steering.settles_ns = fx.now_ns + (_i ? 0 : 7 * FX_SECOND);
	a = fx_get("/v1/level", 200);
	ck_assert_str_eq(fx_text(a, "processes.1.steering.kernels"), "settling");
	ck_assert_ptr_nonnull(strstr(fx_text(a, "processes.1.level_reason"),
				     "not timed yet"));
	if (_i)
		ck_assert(json_is_null(fx_at(a, "processes.1.steering.kernels_from_mono_ns")));
	else
		ck_assert_uint_eq(fx_number(a, "processes.1.steering.kernels_from_mono_ns"),
				  fx.now_ns + 7 * FX_SECOND);
	json_decref(a);
}

TEST(what_was_asked_can_be_seen_and_taken_back)
{
	json_t *a;

	two_users();
	json_decref(put("{\"pid\":" PID_ROOT ",\"level\":\"ops\"}", 200));
	json_decref(put("{\"comm_id\":\"0xd00dfeedcafe0001\",\"sample\":\"all\"}", 200));
	a = fx_get("/v1/level", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "wishes")), 2);
	ck_assert_uint_eq(fx_number(a, "wishes.0.pid"), 100);
	ck_assert_str_eq(fx_text(a, "wishes.1.comm_id"), "0xd00dfeedcafe0001");
	ck_assert_str_eq(fx_text(a, "processes.0.wanted.level"), "ops");
	ck_assert_str_eq(fx_text(a, "processes.1.wanted.sampling"), "all");
	json_decref(a);
	json_decref(put("{\"pid\":" PID_ROOT ",\"level\":\"default\"}", 200));
	a = fx_get("/v1/level", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "wishes")), 1);
	json_decref(a);
	ck_assert_uint_eq(file().entries, 2);
}

TEST(a_dry_run_tells_whom_it_would_be_about_and_changes_nothing)
{
	json_t *a;

	two_users();
	a = put("{\"job\":\"7\",\"level\":\"trace\",\"dry_run\":true}", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "processes")), 2);
	json_decref(a);
	ck_assert_uint_eq(levels_wishes(steer_levels(fx.steer))->serial, 0);
	put_as(ALICE, "{\"level\":\"ops\",\"dry_run\":true}", 403);
}

TEST(a_user_may_change_what_is_his_and_nothing_else)
{
	two_users();
	put_as(ALICE, "{\"pid\":" PID_ALICE ",\"level\":\"ops\"}", 200);
	put_as(ALICE, "{\"pid\":" PID_ROOT ",\"level\":\"ops\"}", 404);
	put_as(ALICE, "{\"level\":\"ops\"}", 403);
	put_as(ALICE + 1, "{\"pid\":" PID_ALICE ",\"level\":\"ops\"}", 404);
	put_as(ALICE + 1, "{\"job\":\"7\",\"level\":\"ops\"}", 404);
	ck_assert_uint_eq(file().entries, 1);
	put_as(ALICE, "{\"job\":\"7\",\"level\":\"off\"}", 200);	/* her part of it */
	ck_assert_uint_eq(file().entries, 2);
	ck_assert_uint_eq(file().entry[1].instance, 0x11);
}

TEST(a_user_sees_his_own_wishes_and_what_concerns_him)
{
	json_t *a;

	two_users();
	put_as(ALICE, "{\"pid\":" PID_ALICE ",\"level\":\"ops\"}", 200);
	a = fx_get_over(fx_connect_as(ALICE + 1, ALICE + 1), "/v1/level", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "wishes")), 0);
	ck_assert_uint_eq(json_array_size(fx_at(a, "processes")), 0);
	json_decref(a);
	json_decref(put("{\"level\":\"kernel\"}", 200));
	a = fx_get_over(fx_connect_as(ALICE + 1, ALICE + 1), "/v1/level", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "wishes")), 1);
	json_decref(a);
}

TEST_LOOP(a_pid_that_is_only_claimed_does_not_stand_in_the_way, 0, 2)
{
	two_users();
	fx.processes[1]->pid = 100;
	fx.processes[_i]->proven = true;
	json_decref(put("{\"pid\":" PID_ROOT ",\"level\":\"ops\"}", 200));
	ck_assert_uint_eq(file().entries, 1);
	ck_assert_uint_eq(file().entry[0].instance, fx.processes[_i]->instance);
}

TEST(one_pid_in_two_containers_is_not_guessed)
{
	json_t *a;

	two_users();
	fx.processes[1]->pid = 100;
	a = put("{\"pid\":" PID_ROOT ",\"level\":\"ops\"}", 400);
	ck_assert_ptr_nonnull(strstr(fx_text(a, "error.message"), "2 processes have pid 100"));
	json_decref(a);
	put_as(ALICE, "{\"pid\":" PID_ROOT ",\"level\":\"ops\"}", 200);	/* one of them is hers */
}

TEST(jobs_that_cannot_be_told_are_not_changed)
{
	char path[PATH_MAX];
	json_t *a;

	two_users();
	json_decref(put("{\"level\":\"kernel\"}", 200));
	snprintf(path, sizeof(path), "%s", steer_control(fx.steer)->path);
	unlink(path);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	a = put("{\"level\":\"off\"}", 503);
	ck_assert_str_eq(fx_text(a, "error.code"), "unwritable");
	ck_assert_ptr_nonnull(strstr(fx_text(a, "error.message"), "directory"));
	json_decref(a);
	a = fx_get("/v1/status", 200);
	ck_assert_ptr_nonnull(fx_text(a, "control.error"));
	json_decref(a);
	rmdir(path);
	a = fx_get("/v1/level", 200);
	ck_assert_str_eq(fx_text(a, "wishes.0.level"), "kernel");
	json_decref(a);
}

TEST(a_user_s_wishes_have_a_bound)
{
	char body[128];

	two_users();
	for (int i = 0; i < WISHES_OF_USER + 1; i++) {
		fx.processes[1]->comms[0].id = 0x1000 + (uint64_t)i;
		snprintf(body, sizeof(body), "{\"comm_id\":\"%x\",\"level\":\"ops\"}", 0x1000 + i);
		put_as(ALICE, body, i < WISHES_OF_USER ? 200 : 429);
	}
}

TEST(the_cost_of_watching_is_told)
{
	struct steering *s;
	double mean_ns;
	json_t *a;

	two_users();
	s = &fx.processes[1]->steering;
	for (int i = 0; i < 12; i++) {
		steer_look(fx.steer, fx.processes, fx.nprocesses, fx.now_ns, fx.now_ns);
		fx_pass(FX_SECOND);
		s->timed[NCI_THREADS_PROXY].count += 1000;
		s->timed[NCI_THREADS_PROXY].ticks += 500000;
		fx.processes[1]->groups_outside += 100;
	}
	a = fx_get("/v1/overhead", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "processes")), 1);
	ck_assert_uint_eq(fx_number(a, "processes.0.pid"), 101);
	ck_assert_uint_eq(fx_number(a, "processes.0.window_ns"), 10 * FX_SECOND);
	mean_ns = json_number_value(fx_at(a, "processes.0.callbacks.proxy.mean_ns"));
	ck_assert(mean_ns > 100 && mean_ns <= 500);	/* less what a look at this clock takes */
	ck_assert(fabs(json_number_value(fx_at(a, "processes.0.callbacks.proxy.share")) -
		       1000 * 256 * mean_ns * 1e-9) < 1e-6);
	ck_assert(json_is_null(fx_at(a, "processes.0.callbacks.user.mean_ns")));
	ck_assert_uint_ge(fx_number(a, "processes.0.kernels.burst_length_ns"), 100000000);
	ck_assert_ptr_nonnull(fx_at(a, "daemon.rss_bytes"));
	json_decref(a);
	a = fx_get("/v1/processes", 200);	/* 12 % of a thread: above the budget */
	ck_assert_str_eq(fx_text(a, "processes.1.wanted.level"), "kernel");
	ck_assert_str_eq(fx_text(a, "processes.1.wanted.why"), "thrift");
	json_decref(a);
}

/* In the first quarter of each second kernels are timed, and all takes longer. */
static void bursts(int seconds, uint64_t inside_ns)
{
	struct op op = { .func = FX_FUNC, .bytes = 8, .enqueued_ns = fx.now_ns };
	struct process *p = fx.processes[1];

	for (int i = 0; i < seconds; i++) {
		uint64_t end_ns = fx.now_ns + FX_SECOND;

		for (; op.enqueued_ns < end_ns; op.seq++) {
			bool inside = op.enqueued_ns - fx.now_ns < FX_SECOND / 4;

			op.kernel_stopped = inside;
			op.process_id = 1;
			steer_op(fx.steer, &op);
			op.process_id = 2;
			steer_op(fx.steer, &op);
			op.enqueued_ns += inside ? inside_ns : 50000;
			(*(inside ? &p->groups_inside : &p->groups_outside))++;
			(*(inside ? &p->ops_inside : &p->ops_outside))++;
		}
		fx.now_ns = end_ns;
		steer_look(fx.steer, fx.processes, fx.nprocesses, fx.now_ns, fx.now_ns);
	}
}

static double share_of_bursts(void)
{
	return file().burst_length_us / (file().burst_period_ms * 1000.0);
}

TEST(bursts_are_planned_with_what_they_cost)
{
	json_t *a;

	two_users();
	bursts(30, 58000);
	a = fx_get("/v1/overhead", 200);
	ck_assert(fabs(json_number_value(fx_at(a, "processes.0.kernels.cost_ns")) - 8000) < 50);
	ck_assert(fabs(json_number_value(fx_at(a, "processes.0.kernels.slower")) - 0.16) < 0.001);
	ck_assert_uint_ge(fx_number(a, "processes.0.kernels.cost_bursts"), 25);
	json_decref(a);
	ck_assert(fabs(share_of_bursts() * 20000 * 10e-6 - 0.005) < 0.0005);
	bursts(40, 53000);
	ck_assert(fabs(share_of_bursts() * 20000 * 2.5e-6 - 0.005) < 0.0005);
	ck_assert_uint_gt(file().burst_until_mono_ns, fx.now_ns);
	ck_assert_uint_eq(file().entries, 0);
}

static struct finding finding_of(enum finding_kind kind, uint64_t id)
{
	return (struct finding){ .kind = kind, .has_comm_id = true, .comm_id = FX_COMM_ID,
				 .life.id = id };
}

TEST(a_new_finding_raises_those_whom_it_concerns)
{
	struct finding f = finding_of(FINDING_STALL, 1);

	two_users();
	steer_finding(fx.steer, &f, fx.processes, 2, fx.now_ns);
	ck_assert_uint_eq(levels_stats(steer_levels(fx.steer))->raised, 0);
	f = finding_of(FINDING_STRAGGLER, 2);
	f.grade = FINDING_SUSPECTED;
	steer_finding(fx.steer, &f, fx.processes, 2, fx.now_ns);
	ck_assert_uint_eq(levels_stats(steer_levels(fx.steer))->raised, 0);
	f.grade = FINDING_FOUND;
	steer_finding(fx.steer, &f, fx.processes, 2, fx.now_ns);
	f.life.told = true;
	steer_finding(fx.steer, &f, fx.processes, 2, fx.now_ns);
	ck_assert_uint_eq(file().entries, 1);		/* the other one is another user's */
	ck_assert_uint_eq(file().entry[0].instance, 0x10);
	ck_assert_uint_eq(file().entry[0].sample, NCI_SAMPLE_ALL);
	ck_assert_uint_eq(file().entry[0].until_mono_ns, fx.now_ns + LEVELS_DETAIL_NS);
	steer_changed(fx.steer, fx.processes, 2, fx.now_ns + LEVELS_DETAIL_NS);
	ck_assert_uint_eq(file().entries, 0);
}

static void setup_users(void)
{
	fx_serve_open(&(struct serve_config){ .group = "tty" });
}

int main(void)
{
	if (geteuid() != 0) {
		puts("1..0 # SKIP only root can become somebody else");
		return EXIT_SUCCESS;
	}
	return fx_run(setup_users, fx_serve_close);
}
