/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/manager.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fixture.h"

static struct manager m;
static char path[128];
static int ear;

static void setup(void)
{
	snprintf(path, sizeof(path), "%s/notify", fx_tmpdir());
	for (const char *const *name = (const char *const[]){ "NOTIFY_SOCKET", "WATCHDOG_USEC",
	     "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", NULL }; *name; name++)
		unsetenv(*name);
}

static void teardown(void)
{
	manager_close(&m);
	unlink(path);
}

static void listen_to(const struct sockaddr_un *address, size_t name_bytes)
{
	ear = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(ear, (const struct sockaddr *)address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + name_bytes)), 0);
}

static void listen_at_path(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	strcpy(address.sun_path, path);
	listen_to(&address, strlen(path) + 1);
	setenv("NOTIFY_SOCKET", path, 1);
}

static const char *heard(void)
{
	static char text[256];
	ssize_t n = recv(ear, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

TEST(nobody_is_told_where_nobody_asks)
{
	manager_open(&m);
	ck_assert_int_eq(m.fd, -1);
	manager_say(&m, "READY=1");
	ck_assert_uint_eq(m.watchdog_ns, 0);
}

TEST(what_is_said_arrives_one_datagram_each)
{
	listen_at_path();
	manager_open(&m);
	manager_say(&m, "READY=1");
	manager_say(&m, "WATCHDOG=1\nSTATUS=fine");
	ck_assert_str_eq(heard(), "READY=1");
	ck_assert_str_eq(heard(), "WATCHDOG=1\nSTATUS=fine");
	ck_assert_str_eq(heard(), "");
}

TEST(an_abstract_name_is_one_too)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int n = snprintf(address.sun_path + 1, 64, "ncclinsp-test-%d", (int)getpid());
	char name[128];

	listen_to(&address, (size_t)n + 1);
	snprintf(name, sizeof(name), "@%s", address.sun_path + 1);
	setenv("NOTIFY_SOCKET", name, 1);
	manager_open(&m);
	manager_say(&m, "READY=1");
	ck_assert_str_eq(heard(), "READY=1");
}

TEST(a_manager_that_does_not_listen_holds_nobody_up)
{
	char text[8192];

	listen_at_path();
	manager_open(&m);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (int i = 0; i < 20; i++)	/* its queue fills up: 100 ms each, not for ever */
		manager_say(&m, text);
	unlink(path);
	manager_say(&m, "READY=1");
}

static const struct {
	const char *usec, *pid;
	uint64_t ns;
} watchdogs[] = {
	{ "30000000", NULL, UINT64_C(30000000000) },
	{ "30000000", "us", UINT64_C(30000000000) },
	{ "30000000", "1", 0 },
	{ "30000000", "x", 0 },
	{ "0", NULL, 0 },
	{ "-5", NULL, 0 },
	{ "9223372036854775807", NULL, 0 },
	{ "soon", NULL, 0 },
	{ "", NULL, 0 },
};

static void set_pid(const char *name, const char *pid)
{
	char own[16];

	snprintf(own, sizeof(own), "%d", (int)getpid());
	if (pid)
		setenv(name, strcmp(pid, "us") == 0 ? own : pid, 1);
}

TEST_LOOP(a_watchdog_is_heeded_that_is_meant_for_us, 0, FX_COUNT(watchdogs))
{
	listen_at_path();
	setenv("WATCHDOG_USEC", watchdogs[_i].usec, 1);
	set_pid("WATCHDOG_PID", watchdogs[_i].pid);
	manager_open(&m);
	ck_assert_uint_eq(m.watchdog_ns, watchdogs[_i].ns);
}

TEST(names_that_cannot_be_are_nobody)
{
	static const char *const names[] = { "", "/", "@", "relative", "vsock:2:1234" };
	char longest[256] = "/";

	for (size_t i = 0; i < FX_COUNT(names); i++) {
		setenv("NOTIFY_SOCKET", names[i], 1);
		manager_open(&m);
		ck_assert_int_eq(m.fd, -1);
	}
	memset(longest + 1, 'x', 107);
	setenv("NOTIFY_SOCKET", longest, 1);
	manager_open(&m);
	ck_assert_int_eq(m.fd, -1);
}

/* ---- a socket that is handed over -------------------------------------------- */

struct handed {
	int outcome, status, flags;
	char where[PATH_MAX];
};

/* Number 3 may be taken, by the test's own pipe for one: it has it back afterwards. */
static struct handed hand_over(int fd, const char *count, const char *pid)
{
	struct handed h = { .where = "before" };
	int taken = fcntl(3, F_DUPFD_CLOEXEC, 10);

	dup2(fd, 3);
	setenv("LISTEN_FDS", count, 1);
	set_pid("LISTEN_PID", pid);
	h.outcome = manager_socket(h.where);
	h.status = fcntl(3, F_GETFL);
	h.flags = fcntl(3, F_GETFD);
	if (taken >= 0) {
		dup2(taken, 3);
		close(taken);
	}
	return h;
}

static int stream_at(const char *where, bool listening)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(address.sun_path, where);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	if (listening)
		ck_assert_int_eq(listen(fd, 1), 0);
	return fd;
}

TEST(a_listening_socket_is_taken_and_made_fit)
{
	struct handed h = hand_over(stream_at(path, true), "1", "us");

	ck_assert_int_eq(h.outcome, 3);
	ck_assert_str_eq(h.where, path);
	ck_assert(h.status & O_NONBLOCK);
	ck_assert(h.flags & FD_CLOEXEC);
}

static int listening(void) { return stream_at(path, true); }
static int silent(void) { return stream_at(path, false); }
static int datagrams(void) { return socket(AF_UNIX, SOCK_DGRAM, 0); }
static int null(void) { return open("/dev/null", O_RDWR); }

static int internet(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(listen(fd, 1), 0);
	return fd;
}

static const struct {
	int (*make)(void);
	const char *count, *pid;
	int outcome;
} others[] = {
	{ listening, "1", "1", -ENOENT },	/* meant for somebody else */
	{ listening, "1", NULL, -ENOENT },
	{ listening, "0", "us", -ENOENT },
	{ listening, "2", "us", -EINVAL },
	{ silent, "1", "us", -EINVAL },
	{ datagrams, "1", "us", -EINVAL },
	{ internet, "1", "us", -EINVAL },
	{ null, "1", "us", -EINVAL },
};

TEST_LOOP(anything_else_is_not, 0, FX_COUNT(others))
{
	struct handed h = hand_over(others[_i].make(), others[_i].count, others[_i].pid);

	ck_assert_int_eq(h.outcome, others[_i].outcome);
	ck_assert_str_eq(h.where, "before");
}

int main(void)
{
	return fx_run(setup, teardown);
}
