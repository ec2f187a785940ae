/* SPDX-License-Identifier: Apache-2.0 */
/* Who sees what, by the credentials that the kernel noted at connect. */
#include "tests/fx_accounts.h"
#include "tests/fixture_serve.h"

#define OTHER_UID	54321

static json_t *get_as(uid_t uid, const char *target)
{
	return fx_get_over(fx_connect_as(uid, uid), target, 200);
}

/* A process of root and one of somebody: each with an operation done and one in flight. */
static void two_users(void)
{
	((struct nci_record *)&fx.slots[0].slot)->type = NCI_EV_GROUP;
	for (int i = 0; i < 2; i++) {
		struct process *p = fx_process(100 + i, i ? OTHER_UID : 0, i);
		struct op op = { .process_id = p->id, .pid = p->pid, .uid = p->uid, .rank = i,
				 .func = FX_FUNC, .bytes = 8, .exec_ns = 1000, .sampled = true,
				 .source = TIMING_KERNEL_GPU };
		struct nci_ev_proxy_op moved = { .rank = i };
		const struct transfers t = { .issuer = p, .executor = p, .op = &moved };

		p->records = 5 + (uint64_t)i;
		p->state = PROCESS_DIED;
		p->last_slots = fx.slots;
		p->nlast_slots = 1;
		oplog_add(fx.oplog, &op);
		aggregate_add(fx.aggregate, &op, fx.now_ns);
		links_add(fx.links, &t, fx.now_ns);
	}
	fx.ingest = (struct serve_ingest){ .records = 1000, .segments = 9 };
}

static const struct {
	const char *target, *list, *each;
	json_int_t of_other;
} lists[] = {
	{ "/v1/processes", "processes", "pid", 101 },
	{ "/v1/collectives", "collectives", "pid", 101 },
	{ "/v1/inflight", "inflight", "pid", 101 },
	{ "/v1/comms", "comms.0.local_ranks", "pid", 101 },
	{ "/v1/summary?by=rank", "rows", "rank", 1 },
	{ "/v1/ranks", "ranks", "pid", 101 },
	{ "/v1/peers", "peers", "pid", 101 },
	{ "/v1/snapshot", "processes", "pid", 101 },
	{ "/v1/snapshot", "inflight", "pid", 101 },
	{ "/v1/snapshot", "comms.0.local_ranks", "pid", 101 },
	{ "/v1/snapshot?window=all", "rows", "rank", 1 },
	{ "/v1/snapshot", "ranks", "pid", 101 },
	{ "/v1/snapshot", "host_clocks", "pid", 101 },
};

TEST_LOOP(a_user_sees_what_is_his_and_root_sees_all, 0, FX_COUNT(lists))
{
	json_t *a;

	two_users();
	a = get_as(OTHER_UID, lists[_i].target);
	ck_assert_uint_eq(json_array_size(fx_at(a, lists[_i].list)), 1);
	ck_assert_int_eq(json_integer_value(json_object_get(
			json_array_get(fx_at(a, lists[_i].list), 0), lists[_i].each)),
			lists[_i].of_other);
	json_decref(a);
	a = get_as(0, lists[_i].target);
	ck_assert_uint_eq(json_array_size(fx_at(a, lists[_i].list)), 2);
	json_decref(a);
	a = get_as(OTHER_UID + 1, lists[_i].target);
	ck_assert_uint_eq(json_array_size(fx_at(a, lists[_i].list)), 0);
	json_decref(a);
}

TEST(who_records_in_another_format_is_told_to_his_own_user)
{
	json_t *a;

	for (int i = 0; i < 2; i++)
		fx.foreign[i] = (struct foreign){ .pid = 100 + i, .uid = i ? OTHER_UID : 0,
						  .abi_major = 7, .abi_minor = 1 };
	a = get_as(0, "/v1/processes");
	ck_assert_int_eq(json_integer_value(fx_at(a, "abi_major")), NCI_ABI_MAJOR);
	ck_assert_uint_eq(json_array_size(fx_at(a, "foreign")), 2);
	json_decref(a);
	a = get_as(OTHER_UID, "/v1/processes");
	ck_assert_uint_eq(json_array_size(fx_at(a, "foreign")), 1);
	ck_assert_int_eq(json_integer_value(fx_at(a, "foreign.0.pid")), 101);
	ck_assert_int_eq(json_integer_value(fx_at(a, "foreign.0.abi_major")), 7);
	ck_assert_int_eq(json_integer_value(fx_at(a, "foreign.0.abi_minor")), 1);
	json_decref(a);
}

TEST(the_totals_of_a_user_are_the_sums_of_his_own)
{
	json_t *a;

	two_users();
	a = get_as(OTHER_UID, "/v1/status");
	ck_assert_int_eq(json_integer_value(fx_at(a, "ingest.records")), 6);
	ck_assert_int_eq(json_integer_value(fx_at(a, "ingest.segments")), 0);
	ck_assert(json_is_null(fx_at(a, "reconstruct")));
	json_decref(a);
	a = get_as(0, "/v1/status");
	ck_assert_int_eq(json_integer_value(fx_at(a, "ingest.records")), 1000);
	json_decref(a);
}

/* "tty" stands for the group: every system has it, and nobody by default. */
TEST(a_member_of_the_group_sees_all)
{
	struct group *group = getgrnam("tty");
	json_t *a;

	two_users();
	a = fx_get_over(fx_connect_as(OTHER_UID, group->gr_gid), "/v1/processes", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "processes")), 2);
	json_decref(a);
	a = fx_get_over(fx_connect_as(OTHER_UID, group->gr_gid + 1), "/v1/processes", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "processes")), 1);
	json_decref(a);
}

TEST(a_stream_tells_a_user_what_is_his)
{
	struct op op = { .func = "AllReduce", .seq = 1 };
	struct process p = { .pid = 5 };
	int fd = fx_connect_as(OTHER_UID, OTHER_UID);
	static const char request[] = "GET /v1/stream HTTP/1.0\r\n\r\n";
	char *answer;

	fx_send(fd, request, sizeof(request) - 1);
	serve_op(fx.serve, &op);
	serve_process(fx.serve, &p);
	op.uid = OTHER_UID;
	op.seq = 2;
	serve_op(fx.serve, &op);
	answer = fx_receive(fd, NULL);
	ck_assert_ptr_nonnull(strstr(fx_body(answer), "\"seq\":2,"));
	ck_assert_ptr_null(strstr(fx_body(answer), "\"seq\":1,"));
	ck_assert_ptr_null(strstr(fx_body(answer), "\"kind\":\"process\""));
	free(answer);
	close(fd);
}

TEST(only_who_sees_everything_may_have_a_snapshot_written)
{
	char *answer = fx_ask_over(fx_connect_as(OTHER_UID, OTHER_UID), "POST", "/v1/snapshot");

	ck_assert_int_eq(fx_status(answer), 403);
	free(answer);
	answer = fx_ask_text("POST", "/v1/snapshot");	/* root; but there is no place here */
	ck_assert_int_eq(fx_status(answer), 404);
	free(answer);
	answer = fx_ask_text("PUT", "/v1/snapshot");
	ck_assert_int_eq(fx_status(answer), 405);
	ck_assert_ptr_nonnull(strstr(answer, "Allow: GET, HEAD, POST\r\n"));
	free(answer);
}

TEST(one_user_cannot_take_all_connections)
{
	int fd[33];
	char *answer;

	if (!fx_descriptors(256))
		return;
	for (int i = 0; i < 33; i++)
		fd[i] = fx_connect_as(OTHER_UID, OTHER_UID);
	answer = fx_ask_over(fd[31], "GET", "/v1/status");
	ck_assert_int_eq(fx_status(answer), 200);
	free(answer);
	answer = fx_ask_over(fd[32], "GET", "/v1/status");
	ck_assert_int_eq(fx_status(answer), 429);
	free(answer);
	for (int i = 0; i < 31; i++)	/* 63 with the 31 that are left */
		fx_connect();
	json_decref(fx_get("/v1/status", 200));
	for (int i = 0; i < 31; i++)
		close(fd[i]);
}

TEST(ids_of_one_user_have_the_connections_of_one)
{
	int fd[33];
	char *answer;

	if (!fx_descriptors(256))
		return;
	fx_serve_close();
	fx_accounts_served = fx_accounts("54321:100000:65536\n");
	fx_serve_open(&(struct serve_config){ .group = "tty" });
	fd[0] = fx_connect_as(OTHER_UID, OTHER_UID);
	for (int i = 1; i < 33; i++)
		fd[i] = fx_connect_as(100000 + (uid_t)i, OTHER_UID);
	answer = fx_ask_over(fd[31], "GET", "/v1/status");
	ck_assert_int_eq(fx_status(answer), 200);
	free(answer);
	answer = fx_ask_over(fd[32], "GET", "/v1/status");
	ck_assert_int_eq(fx_status(answer), 429);
	free(answer);
	for (int i = 0; i < 31; i++)
		close(fd[i]);
	accounts_free(fx_accounts_served);	/* asked no more */
}

TEST(who_comes_again_and_again_shuts_nobody_out)
{
	static int fd[300];

	if (!fx_descriptors(512))
		return;
	for (int i = 0; i < 300; i++) {
		fd[i] = fx_connect_as(OTHER_UID + i % 2, OTHER_UID);
		fx_pump();
	}
	json_decref(fx_get("/v1/status", 200));		/* root */
	for (int i = 0; i < 300; i += 2)		/* one of the two leaves */
		close(fd[i]);
	fx_pump();
	json_decref(get_as(OTHER_UID + 7, "/v1/status"));
	for (int i = 1; i < 300; i += 2)
		close(fd[i]);
}

/* What three users do with as many connections as they get, each in its own way. */
#define FLOOD_USERS	3
#define FLOOD_EACH	40
#define FLOOD		(FLOOD_USERS * FLOOD_EACH)

static const struct {
	const char *request;
	int times;
	enum { STAYS, TRICKLES, LEAVES } then;
} floods[] = {
	{ "GET /v1/status HTTP/1.1\r\nX: ", 1, TRICKLES },
	{ "GET /v1/stream HTTP/1.1\r\n\r\n", 1, STAYS },
	{ "GET /v1/collectives?limit=10000 HTTP/1.1\r\n\r\n", 20, STAYS },
	{ "GET /v1/summary?by=comm,rank,func,algo,proto,size HTTP/1.1\r\n\r\n", 1, LEAVES },
};

static bool is_cut_off(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0 ||
	       (send(fd, "", 0, MSG_NOSIGNAL) < 0 && errno == EPIPE);
}

/* Take the place again that was lost, and go on. */
static void flood(int how, int fd[FLOOD])
{
	for (int i = 0; i < FLOOD; i++) {
		if (fd[i] && (floods[how].then == LEAVES || is_cut_off(fd[i]))) {
			close(fd[i]);
			fd[i] = 0;
		}
		if (!fd[i]) {
			fd[i] = fx_connect_as(OTHER_UID + i % FLOOD_USERS, OTHER_UID);
			for (int n = 0; n < floods[how].times; n++)
				fx_send(fd[i], floods[how].request, strlen(floods[how].request));
		} else if (floods[how].then == TRICKLES) {
			fx_send(fd[i], "a", 1);
		}
	}
}

TEST_LOOP(three_users_with_all_they_get_keep_nobody_else_out, 0, FX_COUNT(floods))
{
	const struct op op = { .rank = 1, .func = FX_FUNC };
	int fd[FLOOD] = { 0 };

	if (!fx_descriptors(512))
		return;
	for (int i = 0; i < 10000; i++)
		oplog_add(fx.oplog, &op);
	for (int round = 0; round < 20; round++) {
		flood(_i, fd);
		fx_pass(FX_SECOND / 20);
		json_decref(get_as(OTHER_UID + 100, "/v1/processes"));
		json_decref(fx_get("/v1/processes", 200));
	}
	for (int i = 0; i < FLOOD; i++)
		close(fd[i]);
}

/* As many users as there are places, each with a connection that asks nothing. */
TEST(many_users_who_hold_a_place_for_nothing_keep_nobody_else_out)
{
	int fd[64];

	if (!fx_descriptors(256))
		return;
	for (int i = 0; i < 64; i++) {
		fd[i] = fx_connect_as(OTHER_UID + 1 + i, OTHER_UID);
		fx_send(fd[i], "GET", 3);
	}
	fx_pass(FX_SECOND);
	json_decref(get_as(OTHER_UID, "/v1/processes"));
	for (int i = 0; i < 64; i++)
		close(fd[i]);
}

TEST(a_refusal_is_an_answer_and_never_silence)
{
	static const char request[] = "GET /v1/status HTTP/1.1\r\n\r\n";
	int fd[300], refused = 0;

	if (!fx_descriptors(512))
		return;
	for (int i = 0; i < 300; i++)
		fd[i] = fx_connect_as(OTHER_UID, OTHER_UID);
	for (int i = 0; i < 300; i++) {
		char *answer;

		fx_send(fd[i], request, sizeof(request) - 1);
		answer = fx_receive(fd[i], NULL);
		refused += fx_status(answer) == 429;
		ck_assert_msg(fx_status(answer) == 200 || fx_status(answer) == 429, "%d: '%s'", i,
			      answer);
		free(answer);
		close(fd[i]);
	}
	ck_assert_int_eq(refused, 300 - 32);
}

/* A stream holds its queue: three of 40 MiB are more than a user gets. */
TEST(user_that_reads_no_answer_is_refused_another_and_nobody_else)
{
	static const char request[] = "GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n";
	int fd[4];
	char *answer;

	fx_serve_close();
	fx_serve_open(&(struct serve_config){ .group = "tty", .stream_bytes = 40u << 20 });
	for (int i = 0; i < 4; i++) {
		fd[i] = fx_connect_as(OTHER_UID + i / 3, OTHER_UID);
		fx_send(fd[i], request, sizeof(request) - 1);
	}
	answer = fx_ask_over(fx_connect_as(OTHER_UID, OTHER_UID), "GET", "/v1/processes");
	ck_assert_int_eq(fx_status(answer), 503);
	ck_assert_ptr_nonnull(strstr(answer, "\"busy\""));
	free(answer);
	json_decref(fx_get("/v1/processes", 200));
	json_decref(fx_get_over(fx_connect_as(OTHER_UID + 2, OTHER_UID), "/v1/processes", 200));
	close(fd[0]);
	close(fd[1]);
	fx_pump();
	json_decref(fx_get_over(fx_connect_as(OTHER_UID, OTHER_UID), "/v1/processes", 200));
	close(fd[2]);
	close(fd[3]);
}

/* ---- the time of the server ---------------------------------------------------------- */

#define PART_NS	(FX_SECOND / 50)
#define MANY	30

/* Sends a request, which the server has not read yet. */
static void ask(int fd, const char *target)
{
	char text[128];
	int bytes = snprintf(text, sizeof(text), "HEAD %s HTTP/1.1\r\nHost: x\r\n\r\n", target);

	ck_assert_int_eq(send(fd, text, (size_t)bytes, MSG_NOSIGNAL), bytes);
}

static void ask_all(const int *fd, int n, const char *target)
{
	for (int i = 0; i < n; i++)
		ask(fd[i], target);
}

static bool is_answered(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Rounds until there is an answer: the time that they took. */
static uint64_t waited_ns(int fd)
{
	uint64_t from_ns = fx.spent_ns;

	while (!is_answered(fd))
		serve_run(fx.serve, fx.now_ns, FX_EPOCH_NS + fx.now_ns - FX_START_NS);
	return fx.spent_ns - from_ns;
}

static void connect_users(int *fd, int n, uid_t uid)
{
	for (int i = 0; i < n; i++)
		fd[i] = fx_connect_as(uid, OTHER_UID);
}

TEST(user_that_asks_for_much_keeps_nobody_waiting)
{
	int root = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int fd[MANY], other;

	if (!fx_descriptors(256))
		return;
	other = fx_connect_as(OTHER_UID + 1, OTHER_UID);
	connect_users(fd, MANY, OTHER_UID);
	fx.part_ns = PART_NS;
	ask_all(fd, MANY, "/v1/comms");
	serve_run(fx.serve, fx.now_ns, FX_EPOCH_NS);
	ck_assert_uint_eq(fx.spent_ns, PART_NS);	/* and the daemon has other things to do */
	ask(other, "/v1/status");
	ck_assert_int_eq(connect(root, (struct sockaddr *)&fx.addr, sizeof(fx.addr)), 0);
	ask(root, "/v1/status");
	ck_assert_uint_le(waited_ns(root), 2 * PART_NS);
	ck_assert_uint_le(waited_ns(other), PART_NS);
	fx_pump();
	for (int i = 0; i < MANY; i++) {
		ck_assert(is_answered(fd[i]));
		close(fd[i]);
	}
	close(root);
	close(other);
}

/* A second for each: the last one waits for three times as long as a request may take to come. */
TEST(request_that_has_come_is_not_too_late_because_others_are_answered_first)
{
	static const char request[] = "GET /v1/comms HTTP/1.1\r\nHost: x\r\n\r\n";
	int fd[15];

	connect_users(fd, FX_COUNT(fd), OTHER_UID);
	fx.part_ns = FX_SECOND;
	for (int i = 0; i < FX_COUNT(fd); i++)
		ck_assert_int_gt(send(fd[i], request, sizeof(request) - 1, MSG_NOSIGNAL), 0);
	for (int i = 0; i < FX_COUNT(fd); i++, fx.now_ns += FX_SECOND)
		serve_run(fx.serve, fx.now_ns, FX_EPOCH_NS);
	for (int i = 0; i < FX_COUNT(fd); i++) {
		char *answer = fx_receive(fd[i], NULL);

		ck_assert_int_eq(fx_status(answer), 200);
		free(answer);
		close(fd[i]);
	}
}

TEST(snapshot_is_made_in_turns_with_what_others_ask)
{
	int fd[3], other;

	fx.part_ns = PART_NS;
	other = fx_connect_as(OTHER_UID + 1, OTHER_UID);
	connect_users(fd, 3, OTHER_UID);
	ask_all(fd, 3, "/v1/snapshot");
	serve_run(fx.serve, fx.now_ns, FX_EPOCH_NS);
	ask(other, "/v1/status");
	ck_assert_uint_le(waited_ns(other), 2 * PART_NS);
	ck_assert(!is_answered(fd[0]) && !is_answered(fd[1]) && !is_answered(fd[2]));
	close(fd[1]);		/* it does not wait for it any more */
	fx_pump();
	ck_assert(is_answered(fd[0]) && is_answered(fd[2]));
	close(fd[0]);
	close(fd[2]);
	close(other);
}

TEST(snapshots_that_are_made_count_as_answers_not_read)
{
	int fd[4];
	char *answer;

	fx.part_ns = PART_NS;
	connect_users(fd, 4, OTHER_UID);
	ask_all(fd, 4, "/v1/snapshot");
	waited_ns(fd[3]);
	answer = fx_receive(fd[3], NULL);
	ck_assert_int_eq(fx_status(answer), 503);
	free(answer);
	for (int i = 0; i < 3; i++) {
		fx_pump();
		answer = fx_receive(fd[i], NULL);
		ck_assert_int_eq(fx_status(answer), 200);
		free(answer);
	}
	for (int i = 0; i < 4; i++)
		close(fd[i]);
}

TEST(time_that_a_user_took_long_ago_does_not_count)
{
	int then[2], late;

	fx.part_ns = PART_NS;
	for (int i = 0; i < MANY; i++)
		json_decref(get_as(OTHER_UID, "/v1/comms"));
	fx_pass(10 * FX_SECOND);
	late = fx_connect_as(OTHER_UID, OTHER_UID);
	connect_users(then, 2, OTHER_UID + 1);
	ask_all(then, 2, "/v1/comms");
	ask(late, "/v1/status");
	ck_assert_uint_le(waited_ns(late), 2 * PART_NS);
	close(then[0]);
	close(then[1]);
	close(late);
}

TEST(user_who_takes_traces_leaves_some_for_others_and_one_for_root)
{
	static const struct { uid_t uid; int status; } asks[] = {
		{ OTHER_UID, 200 }, { OTHER_UID, 200 }, { OTHER_UID, 429 },
		{ OTHER_UID + 1, 200 }, { OTHER_UID + 1, 429 }, { 0, 200 }, { 0, 429 },
	};
	int fd[FX_COUNT(asks)];

	for (int i = 0; i < FX_COUNT(asks); i++) {
		static const char request[] = "GET /v1/stream?kinds=record HTTP/1.0\r\n\r\n";
		char *answer;

		fd[i] = fx_connect_as(asks[i].uid, OTHER_UID);
		fx_send(fd[i], request, sizeof(request) - 1);
		answer = fx_receive(fd[i], NULL);
		ck_assert_int_eq(fx_status(answer), asks[i].status);
		free(answer);
	}
	for (int i = 0; i < FX_COUNT(asks); i++)
		close(fd[i]);
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
