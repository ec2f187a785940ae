/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's RAS is asked by a thread, seldom, and whatever listens there harms nothing.  A process
 * plays it; tests/nccl/test_ras.sh asks NCCL's own.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ncclinspd/findings/ras.h"
#include "shmring/clock.h"
#include "tests/fixture_ras.h"
#include "util/log.h"

#define KEY	UINT64_C(1)
#define STRANGER	65534
#define SECOND_NS	UINT64_C(1000000000)

enum play {
	PLAY_WELL,
	PLAY_ANOTHER_FIRST,	/* one process of the port is of another job */
	PLAY_ANOTHER,
	PLAY_CUT,
	PLAY_OLD,
	PLAY_MUTE,
	PLAY_FLOOD,
	PLAY_STRANGER,		/* all is well, but it is another user's process */
};

static struct ras *r;
static struct ras_question question;
static struct fx_ras_answer text;
static int listener, came[2];
static pid_t server;
static uint64_t now_ns;

static void make_answer(bool ours)
{
	fx_ras_begin(&text);
	fx_ras_comm(&text, ours ? FX_RAS_COMM : FX_RAS_COMM + 1, 4);
	fx_ras_rank(&text, 0, 10, 7);
	fx_ras_rank(&text, 1, 11, 7);
	fx_ras_rank(&text, 2, 12, 7);
	fx_ras_missing(&text);
	fx_ras_lost(&text, 3, 13, true, false);
	fx_ras_end_comm(&text);
	fx_ras_end(&text);
}

static void setup(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(addr);

	log_set_level(LOG_ERROR);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&addr, bytes), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&addr, &bytes), 0);
	ck_assert_int_eq(pipe(came), 0);
	question = (struct ras_question){
		.comm_id = FX_RAS_COMM, .nranks = 4, .func = "AllReduce",
		.port = ntohs(addr.sin_port), .uid = getuid(),
		.own = { { 0, 10 }, { 1, 11 } }, .nown = 2,
	};
	server = 0;
	now_ns = SECOND_NS;
	ck_assert_int_eq(ras_new(&r), 0);
}

static void teardown(void)
{
	ras_free(r);
	if (server) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
	close(listener);
	close(came[0]);
	close(came[1]);
}

/* ---- RAS, as it is described --------------------------------------------------------- */

static void server_say(int fd, const char *words)
{
	if (send(fd, words, strlen(words), MSG_NOSIGNAL) < 0)
		_exit(0);
}

static void server_answer(int fd, enum play play, int turn)
{
	make_answer(play != PLAY_ANOTHER && (play != PLAY_ANOTHER_FIRST || turn));
	if (play == PLAY_CUT)
		text.text[text.n / 2] = '\0';
	server_say(fd, text.text);
	while (play == PLAY_FLOOD && send(fd, text.text, text.n, MSG_NOSIGNAL) > 0)
		;
}

static void server_talk(FILE *in, int fd, enum play play, int turn)
{
	char line[256];

	while (fgets(line, sizeof(line), in)) {
		if (!strcmp(line, "CLIENT PROTOCOL 2\n")) {
			server_say(fd, "SERVER PROTOCOL 2\n");
		} else if (!strcmp(line, "STATUS\n")) {
			server_answer(fd, play, turn);
			return;
		} else if (!strcmp(line, "TIMEOUT 3\n") ||
			   (!strcmp(line, "SET FORMAT json\n") && play != PLAY_OLD)) {
			server_say(fd, "OK\n");
		} else {
			server_say(fd, "ERROR: Unknown command\n");
		}
	}
}

static void serve(enum play play)
{
	ck_assert_int_eq(listen(listener, 16), 0);
	server = fork();
	if (server)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (play == PLAY_STRANGER && setuid(STRANGER))
		_exit(1);
	for (int turn = 0;; turn++) {
		int fd = accept(listener, NULL, NULL);
		FILE *in = fdopen(fd, "r");

		if (write(came[1], "", 1) != 1)
			_exit(1);
		if (play == PLAY_MUTE)
			pause();
		server_talk(in, fd, play, turn);
		fclose(in);
	}
}

/* ---- what is heard -------------------------------------------------------------------- */

static enum afar_state outcome(void)
{
	const struct afar *a;
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + 60 * SECOND_NS;

	ras_ask(r, KEY, &question, now_ns);
	while (!(a = ras_told(r, KEY)) && clock_ns(CLOCK_MONOTONIC) < end_ns)
		usleep(1000);
	ck_assert(a);
	return a->state;
}

/* The connections that came, of which the first may take so long. */
static int connections(int wait_ms)
{
	struct pollfd fd = { .fd = came[0], .events = POLLIN };
	char bytes[64];

	return poll(&fd, 1, wait_ms) > 0 ? (int)read(came[0], bytes, sizeof(bytes)) : 0;
}

/* Asks at this time until it leads to one connection, since the last answer may still be read. */
static bool is_asked(void)
{
	for (int i = 0; i < 3000; i++) {
		ras_ask(r, KEY, &question, now_ns);
		if (connections(10))
			return true;
	}
	return false;
}

static bool is_not_asked(void)
{
	ras_ask(r, KEY, &question, now_ns);
	return !connections(50);
}

TEST(a_rank_that_gives_no_answer_is_named)
{
	const struct afar *a;

	serve(PLAY_WELL);
	ck_assert_int_eq(outcome(), AFAR_SILENT);
	a = ras_told(r, KEY);
	ck_assert_uint_eq(a->n, 1);
	ck_assert_int_eq(a->ranks[0].rank, 3);
	ck_assert_str_eq(a->ranks[0].host, "10.0.0.3");
	ck_assert_ptr_null(ras_told(r, KEY + 1));
}

TEST(of_several_processes_of_one_port_that_of_the_job_counts)
{
	serve(PLAY_ANOTHER_FIRST);
	ck_assert_int_eq(outcome(), AFAR_SILENT);
	ck_assert_int_eq(connections(0), 2);
}

TEST_LOOP(an_answer_of_another_job_or_half_of_one_says_nothing, 0, 2)
{
	serve(_i ? PLAY_CUT : PLAY_ANOTHER);
	ck_assert_int_eq(outcome(), AFAR_FOREIGN);
	ck_assert_int_eq(connections(0), 4);	/* and that is all of it */
}

TEST(nobody_there_and_one_that_is_too_old_are_told_apart)
{
	ck_assert_int_eq(outcome(), AFAR_NO_SERVICE);
	serve(PLAY_OLD);
	now_ns += RAS_AGAIN_NS;
	ras_ask(r, KEY + 1, &question, now_ns);
	while (!ras_told(r, KEY + 1))
		usleep(1000);
	ck_assert_int_eq(ras_told(r, KEY + 1)->state, AFAR_OLD);
}

TEST(what_another_user_says_counts_for_nothing)
{
	if (getuid())
		return;		/* nobody else can be played */
	serve(PLAY_STRANGER);
	ck_assert_int_eq(outcome(), AFAR_FOREIGN);
}

TEST(a_flood_is_cut_off)
{
	serve(PLAY_FLOOD);
	ck_assert_int_eq(outcome(), AFAR_MUTE);
	ck_assert_int_eq(connections(0), 1);
}

/* Eight connections of a second each would be waited for. */
TEST(one_that_does_not_reply_does_not_hold_up_the_end)
{
	uint64_t began_ns;
	char byte;

	serve(PLAY_MUTE);
	ras_ask(r, KEY, &question, now_ns);
	ck_assert_int_eq(read(came[0], &byte, 1), 1);
	ck_assert_ptr_null(ras_told(r, KEY));
	began_ns = clock_ns(CLOCK_MONOTONIC);
	ras_free(r);
	r = NULL;
	ck_assert_uint_lt(clock_ns(CLOCK_MONOTONIC) - began_ns, 4 * SECOND_NS);
}

TEST(one_operation_is_asked_about_four_times_and_half_a_minute_apart)
{
	serve(PLAY_WELL);
	for (int times = 0; times < RAS_TIMES; times++) {
		ck_assert(is_asked());
		now_ns += RAS_AGAIN_NS - 1;
		outcome();
		ck_assert(is_not_asked());
		now_ns++;
	}
	now_ns += 100 * RAS_AGAIN_NS;
	ck_assert(is_not_asked());
}

/* One user has a hundred operations that hang, and is always heard first. */
static void two_users_ask(void)
{
	for (uint64_t k = 1; k <= 100; k++) {
		question.account = 1;
		ras_ask(r, KEY + k, &question, now_ns);
	}
	question.account = 2;
	ras_ask(r, KEY, &question, now_ns);
}

TEST(users_take_turns_however_many_questions_one_has)
{
	for (int turn = 0; turn < 2; turn++, now_ns += RAS_APART_NS)
		for (int i = 0; i < 500 && !ras_told(r, KEY); i++) {
			two_users_ask();
			usleep(1000);
		}
	ck_assert_ptr_nonnull(ras_told(r, KEY));
	two_users_ask();
	ck_assert_ptr_nonnull(ras_told(r, KEY));
}

TEST(ranks_of_later_nodes_wait_for_their_turn)
{
	serve(PLAY_WELL);
	question.own[0] = (struct afar_own){ 1, 11 };
	question.nown = 1;
	ck_assert(is_not_asked());
	now_ns += RAS_RANK_NS - 1;
	ck_assert(is_not_asked());
	now_ns++;
	ck_assert(is_asked());
	ck_assert_int_eq(outcome(), AFAR_SILENT);
}

TEST(no_address_leads_away_from_loopback)
{
	static const struct { const char *address; uint16_t port; } addresses[] = {
		{ NULL, RAS_PORT }, { "localhost:28029", 28029 }, { "127.0.0.1:1", 1 },
		{ "[::1]:65535", 65535 }, { "0.0.0.0:99", 99 }, { "[::]:99", 99 },
		{ "", 0 }, { "localhost", 0 }, { "localhost:", 0 }, { "localhost:0", 0 },
		{ "localhost:65536", 0 }, { "localhost:+1", 0 }, { "10.0.0.1:28028", 0 },
		{ "127.0.0.1.evil.example:28028", 0 }, { "localhostess:28028", 0 }, { ":28028", 0 },
		{ "[fe80::1]:28028", 0 },
	};

	for (size_t i = 0; i < FX_COUNT(addresses); i++)
		ck_assert_msg(ras_port(addresses[i].address) == addresses[i].port, "%s",
			      addresses[i].address);
}

int main(void)
{
	return fx_run(setup, teardown);
}
