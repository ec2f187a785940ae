/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/exemplars, and what is written into one: whose, and what of the log. */
#include "ncclinspd/keep/exemplars.h"
#include "tests/fixture_serve.h"

#include "util/json.h"

#define OTHER_UID	54321
#define FIRST		"20261122T060000.000000001Z"
#define SECOND		"20261122T060000.000000002Z"

static void put_file(const char *id, uid_t uid)
{
	struct exemplar_head head = { .uid = uid, .rank = (int32_t)uid, .func = FX_FUNC };
	char path[256];
	struct json j;
	FILE *f;

	snprintf(head.id, sizeof(head.id), "%s", id);
	snprintf(path, sizeof(path), "%s/exemplars", fx_tmpdir());
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/exemplars/exemplars-%s.json", fx_tmpdir(), id);
	json_init(&j, 1 << 16);
	exemplar_head_begin(&head, &j);
	json_end(&j, '}');
	f = fopen(path, "w");
	fwrite(j.text, 1, j.bytes, f);
	fclose(f);
	json_deinit(&j);
}

/* What a path that is put together would reach. */
static void put_secret(void)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/exemplars/exemplars-d", fx_tmpdir());
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/exemplars/secret.json", fx_tmpdir());
	f = fopen(path, "w");
	fputs("{}", f);
	fclose(f);
}

static int fill(void *arg, const struct exemplar *e, uint64_t now_ns, struct json *j)
{
	(void)arg;
	return serve_exemplar_fill(fx.serve, e, now_ns, j);
}

static void setup(void)
{
	put_file(FIRST, 0);
	put_file(SECOND, OTHER_UID);
	put_secret();
	ck_assert_int_eq(exemplars_new(&fx_exemplars, fx_tmpdir(), fill, NULL, NULL), 0);
	fx_serve_open(NULL);
}

static void teardown(void)
{
	fx_serve_close();
	exemplars_free(fx_exemplars);
}

TEST(the_newest_comes_first_and_the_file_is_to_be_had)
{
	json_t *a = fx_get("/v1/exemplars", 200), *file;

	ck_assert_uint_eq(json_array_size(fx_at(a, "exemplars")), 2);
	ck_assert_str_eq(fx_text(a, "exemplars.0.id"), SECOND);
	ck_assert_uint_gt(fx_number(a, "exemplars.0.size_bytes"), 0);
	file = fx_get("/v1/exemplars/" SECOND, 200);
	ck_assert_str_eq(fx_text(file, "format"), "ncclinsp-exemplar");
	ck_assert_uint_eq(fx_number(file, "exemplar.uid"), OTHER_UID);
	json_decref(file);
	json_decref(a);
}

TEST(a_user_has_his_own_and_root_has_all)
{
	json_t *a;

	if (geteuid() != 0) {
		fx_skip("only root can become somebody else");
		return;
	}
	a = fx_get_over(fx_connect_as(OTHER_UID, OTHER_UID), "/v1/exemplars", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "exemplars")), 1);
	ck_assert_str_eq(fx_text(a, "exemplars.0.id"), SECOND);
	json_decref(a);
	json_decref(fx_get_over(fx_connect_as(OTHER_UID, OTHER_UID), "/v1/exemplars/" SECOND, 200));
	json_decref(fx_get_over(fx_connect_as(OTHER_UID, OTHER_UID), "/v1/exemplars/" FIRST, 404));
	json_decref(fx_get("/v1/exemplars/" FIRST, 200));
}

static const char *const games[] = {
	"", "20261122T060000.000000003Z", "..", "../" SECOND, "..%2F" SECOND,
	"%2e%2e/exemplars/exemplars-" SECOND ".json", FIRST "/", FIRST "/../" SECOND,
	SECOND ".json", "exemplars-" SECOND, FIRST "%0a", "d%2f..%2fsecret",
};

TEST_LOOP(nothing_else_is_to_be_had_by_any_name, 0, FX_COUNT(games))
{
	char target[128];

	snprintf(target, sizeof(target), "/v1/exemplars/%s", games[_i]);
	json_decref(fx_get(target, 404));
}

TEST(it_is_read_and_nothing_else)
{
	char *answer = fx_ask_text("POST", "/v1/exemplars/" SECOND);

	ck_assert_int_eq(fx_status(answer), 405);
	free(answer);
	answer = fx_ask_text("HEAD", "/v1/exemplars/" SECOND);
	ck_assert_int_eq(fx_status(answer), 200);
	ck_assert_str_eq(fx_body(answer), "");
	free(answer);
}

/* ---- what is written ------------------------------------------------------------------ */

static json_t *written(const struct exemplar *e)
{
	json_error_t error;
	struct json j;
	json_t *value;

	json_init(&j, 16 << 20);
	ck_assert_int_eq(serve_exemplar_fill(fx.serve, e, fx.now_ns, &j), 0);
	value = json_loadb(j.text, j.bytes, 0, &error);
	ck_assert_msg(value, "%s", error.text);
	json_deinit(&j);
	return value;
}

/* Operations of a ms, one every 10 ms from the server's start on. */
static struct op add_ops(const struct process *p, int n)
{
	struct op op = { .process_id = p->id, .pid = p->pid, .uid = p->uid, .rank = 1,
			 .func = FX_FUNC, .exec_ns = 1000, .proxy_ops = 3,
			 .proxy_start_ticks = 2000 };

	for (int i = 0; i < n; i++) {
		op.seq = (uint64_t)i;
		op.enqueued_ns = FX_START_NS + (uint64_t)i * 10000000;
		op.done_ns = op.enqueued_ns + 1000000;
		oplog_add(fx.oplog, &op);
	}
	return op;
}

TEST(it_holds_what_was_under_way_in_its_window)
{
	struct process *p = fx_process(100, 0, 1);
	struct exemplar e = { .op = add_ops(p, 100) };
	json_t *a, *row;

	e.op.seq = 50;
	e.op.enqueued_ns = FX_START_NS + 500000000;
	e.op.done_ns = e.op.enqueued_ns + 1000000;
	e.from_ns = FX_START_NS + 400500000;
	e.to_ns = FX_START_NS + 600000000;
	a = written(&e);
	ck_assert_uint_eq(json_array_size(fx_at(a, "collectives")), 21);
	row = json_array_get(fx_at(a, "collectives"), 0);
	ck_assert_uint_eq(fx_number(row, "seq"), 40);
	ck_assert_uint_eq(fx_number(row, "proxy_ops"), 3);
	ck_assert_uint_eq(fx_number(row, "proxy_start_mono_ns"), FX_START_NS + 1000);
	ck_assert_uint_eq(fx_number(a, "operation.seq"), 50);
	ck_assert(json_is_true(fx_at(a, "window.whole")));
	ck_assert_uint_eq(fx_number(a, "window.left_out"), 0);
	ck_assert_uint_eq(json_array_size(fx_at(a, "processes")), 1);
	ck_assert(json_is_array(fx_at(a, "inflight")));
	json_decref(a);
}

/* A send of 1 ms, n times, one every 10 ms from the server's start on. */
static void add_transfers(const struct process *p, int n)
{
	struct nci_ev_proxy_op moved = { .rank = 1, .peer = 3, .channel = 2, .form = NCI_FORM_SEND,
					 .parent = 0x77, .steps_done = 8, .bytes = 4096 };
	const struct transfers t = { .issuer = p, .executor = p, .op = &moved };

	for (int i = 0; i < n; i++) {
		moved.start = 1000 + (uint64_t)i * 10000000;
		moved.stop = moved.start + 1000000;
		links_add(fx.links, &t, fx.now_ns);
		transferlog_add(fx.transferlog, &t, fx.links);
	}
}

TEST(it_holds_the_transfers_of_its_window_and_of_its_user)
{
	struct process *p = fx_process(100, 0, 1), *other = fx_process(101, OTHER_UID, 0);
	struct exemplar e = { .op = add_ops(p, 100) };
	json_t *a, *row;

	add_transfers(p, 100);
	add_transfers(other, 100);
	e.from_ns = FX_START_NS + 400500000;
	e.to_ns = FX_START_NS + 600000000;
	a = written(&e);
	ck_assert_uint_eq(json_array_size(fx_at(a, "transfers")), 21);
	row = json_array_get(fx_at(a, "transfers"), 0);
	ck_assert_uint_eq(fx_number(row, "start_mono_ns"), FX_START_NS + 400000000);
	ck_assert_uint_eq(fx_number(row, "stop_mono_ns"), FX_START_NS + 401000000);
	ck_assert_uint_eq(fx_number(row, "pid"), 100);
	ck_assert_uint_eq(fx_number(row, "peer"), 3);
	ck_assert_uint_eq(fx_number(row, "channel"), 2);
	ck_assert_uint_eq(fx_number(row, "steps"), 8);
	ck_assert_str_eq(fx_text(row, "direction"), "send");
	ck_assert_str_eq(fx_text(row, "parent"), "0x0000000000000077");
	ck_assert(json_is_null(fx_at(row, "busy_ns")));		/* no step told */
	ck_assert(json_is_true(fx_at(a, "window.transfers_whole")));
	json_decref(a);
}

TEST(of_too_many_transfers_the_nearest_are_kept)
{
	struct process *p = fx_process(100, 0, 1);
	struct exemplar e = { .op = add_ops(p, 1), .from_ns = FX_START_NS,
			      .to_ns = UINT64_MAX / 2 };
	json_t *a;

	add_transfers(p, TRANSFERLOG_DEFAULT + 100);
	a = written(&e);	/* the slow one was at the beginning */
	ck_assert_uint_eq(json_array_size(fx_at(a, "transfers")), 2048);
	ck_assert_uint_eq(fx_number(a, "transfers.0.start_mono_ns"),
			  FX_START_NS + 100 * UINT64_C(10000000));
	ck_assert_uint_eq(fx_number(a, "window.transfers_left_out"), TRANSFERLOG_DEFAULT - 2048);
	ck_assert(json_is_false(fx_at(a, "window.transfers_whole")));
	json_decref(a);
}

TEST(of_too_many_the_nearest_are_kept)
{
	struct process *p = fx_process(100, 0, 1);
	struct exemplar e = { .op = add_ops(p, 6000), .from_ns = 1, .to_ns = UINT64_MAX / 2 };
	json_t *a, *rows;

	e.op.enqueued_ns = FX_START_NS + UINT64_C(30000000000);	/* the 3000th */
	e.op.done_ns = e.op.enqueued_ns + 1000000;
	a = written(&e);
	rows = fx_at(a, "collectives");
	ck_assert_uint_eq(json_array_size(rows), 2048);
	ck_assert_uint_eq(fx_number(a, "window.left_out"), 6000 - 2048);
	ck_assert_uint_ge(fx_number(json_array_get(rows, 0), "seq"), 3000 - 1025);
	ck_assert_uint_le(fx_number(json_array_get(rows, 2047), "seq"), 3000 + 1025);
	json_decref(a);
}

TEST(a_log_that_has_forgotten_is_told)
{
	struct process *p = fx_process(100, 0, 1);
	struct exemplar e = { .op = add_ops(p, OPLOG_DEFAULT + 100), .from_ns = FX_START_NS,
			      .to_ns = UINT64_MAX / 2 };
	json_t *a = written(&e);

	ck_assert(json_is_false(fx_at(a, "window.whole")));
	json_decref(a);
}

TEST(what_another_user_does_is_not_in_it)
{
	struct process *p = fx_process(100, 0, 1), *other = fx_process(101, OTHER_UID, 0);
	struct exemplar e = { .op = add_ops(p, 10), .from_ns = 1, .to_ns = UINT64_MAX / 2 };
	json_t *a;

	add_ops(other, 20);
	a = written(&e);
	ck_assert_uint_eq(json_array_size(fx_at(a, "collectives")), 10);
	ck_assert_uint_eq(json_array_size(fx_at(a, "processes")), 1);
	ck_assert_uint_eq(json_array_size(fx_at(a, "comms.0.local_ranks")), 1);
	ck_assert_uint_eq(json_array_size(fx_at(a, "host_clocks")), 1);
	ck_assert(json_is_null(fx_at(a, "status.aggregate")));
	json_decref(a);
}

int main(void)
{
	return fx_run(setup, teardown);
}
