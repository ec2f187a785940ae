/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/config/config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ncclinspd/config/config_file.h"
#include "ncclinspd/config/config_rows.h"
#include "tests/fixture.h"

static char told[8192];
static char dir[64], path[128];

static void collect(const char *line)
{
	size_t n = strlen(told);

	snprintf(told + n, sizeof(told) - n, "%s\n", line);
}

static void setup(void)
{
	told[0] = '\0';
	unsetenv("NCCLINSP_SOCKET");
	unsetenv("NCCLINSP_SHM_DIR");
	unsetenv("NCCLINSP_CONTROL");
	setenv("XDG_RUNTIME_DIR", "/run/user/0", 1);
	strcpy(dir, "/tmp/ncclinsp-config.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/conf", dir);
}

static void teardown(void)
{
	unlink(path);
	rmdir(dir);
}

static void write_file(const char *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
	close(fd);
}

/* The daemon's command line: that file, and one option more or none. */
static int parse(struct config *c, const char *option)
{
	char *argv[] = { "ncclinspd", "--config", path, (char *)option, NULL };

	return config_parse(c, option ? 4 : 3, argv, collect);
}

static int parse_text(struct config *c, const char *text)
{
	write_file(text, strlen(text));
	return parse(c, NULL);
}

TEST(the_control_file_lies_beside_the_socket_unless_it_is_said_where)
{
	struct config c;

	ck_assert_int_eq(parse_text(&c, "socket = /run/x/y.sock\n"), CONFIG_RUN);
	ck_assert_str_eq(c.control, "/run/x/control");
	write_file("", 0);
	ck_assert_int_eq(parse(&c, "--socket=here.sock"), CONFIG_RUN);
	ck_assert_str_eq(c.control, "control");
	ck_assert_int_eq(parse_text(&c, "socket = /run/x/y.sock\ncontrol = /dev/shm/c\n"),
			 CONFIG_RUN);
	ck_assert_str_eq(c.control, "/dev/shm/c");
	setenv("NCCLINSP_CONTROL", "/environment", 1);
	ck_assert_int_eq(parse_text(&c, "control = /dev/shm/c\n"), CONFIG_RUN);
	ck_assert_str_eq(c.control, "/environment");
	ck_assert(c.auto_detail && c.auto_thrift);
	ck_assert_int_eq(parse_text(&c, "auto-detail = no\nauto-thrift = maybe\n"), -EINVAL);
	ck_assert(!c.auto_detail);
}

TEST(budget_and_cost_are_the_node_s_or_nobody_s)
{
	static const char *const bad[] = { "kernel-budget = 0\n", "kernel-budget = 101\n",
		"kernel-budget = 1%\n", "kernel-budget = 1e1\n", "kernel-budget = .\n",
		"kernel-cost = 0\n", "kernel-cost = 10\n", "kernel-cost = never\n" };
	struct config c;

	ck_assert_int_eq(parse_text(&c, "\n"), CONFIG_RUN);
	ck_assert_uint_eq(c.kernel_budget_ppm, 5000);
	ck_assert_uint_eq(c.kernel_cost_ns, 0);
	ck_assert_int_eq(parse_text(&c, "kernel-budget = 0.25\nkernel-cost = 8us\n"), CONFIG_RUN);
	ck_assert_uint_eq(c.kernel_budget_ppm, 2500);
	ck_assert_uint_eq(c.kernel_cost_ns, 8000);
	/* As versions before 2 had it by default. */
	ck_assert_int_eq(parse_text(&c, "kernel-budget = job\nkernel-cost = auto\n"), CONFIG_RUN);
	ck_assert_uint_eq(c.kernel_budget_ppm, 5000);
	for (int i = 0; i < FX_COUNT(bad); i++)
		ck_assert_msg(parse_text(&c, bad[i]) == -EINVAL, "%s", bad[i]);
}

TEST(each_line_sets_what_it_names)
{
	struct config c;

	ck_assert_int_eq(parse_text(&c, "# a comment\n\n  stall-min =  2s \r\nlog-level=debug\n"
				    "straggler-window = 30\nsocket = /a b/=c#d\n"
				    "\tshm-dir\t=\t/x\nstate-dir=/y"), CONFIG_RUN);
	ck_assert_str_eq(told, "");
	ck_assert_uint_eq(c.stall_min_ns, UINT64_C(2000000000));
	ck_assert_uint_eq(c.straggler_window_ns, UINT64_C(30000000000));
	ck_assert_int_eq(c.log_level, LOG_DEBUG);
	ck_assert_str_eq(c.socket, "/a b/=c#d");
	ck_assert_str_eq(c.shm_dir, "/x");
	ck_assert_str_eq(c.state_dir, "/y");
}

static const struct {
	const char *text, *told;
} wrong[] = {
	{ "stall-min = 5ms",
	  "1: stall-min must be a time from 100ms to 24h, such as 10s, not \"5ms\"" },
	{ "\n\nstraggler-window = soon",
	  "3: straggler-window must be a time from 1s to 24h, such as 60s, not \"soon\"" },
	{ "log-level = loud", "1: log-level must be err, warn, info or debug, not \"loud\"" },
	{ "socket =", "1: socket must be a path of at most 107 bytes, not \"\"" },
	{ "stal-min = 5s", "1: unknown setting \"stal-min\"; is it stall-min?" },
	{ "Log_Level = info", "1: unknown setting \"Log_Level\"; is it log-level?" },
	{ "otlp-endpoint = collector:4318",
	  "1: otlp-endpoint must be a URL such as http://192.0.2.1:4318, or none, not "
	  "\"collector:4318\"" },
	{ "otlp-endpoint = https://",
	  "1: otlp-endpoint must be a URL such as http://192.0.2.1:4318, or none, not "
	  "\"https://\"" },
	{ "otlp-signals = logs, traces",
	  "1: otlp-signals must be some of logs, traces and metrics, "
	  "separated by commas, not \"logs, traces\"" },
	{ "otlp-certificate = ca.pem",
	  "1: otlp-certificate must be a path that begins with /, or none, not \"ca.pem\"" },
	{ "otlp-compression = zstd", "1: otlp-compression must be gzip or none, not \"zstd\"" },
	{ "raise-hosts = node1 node2",
	  "1: raise-hosts must be names such as node[1-64], slurm, or none, "
	  "not \"node1 node2\"" },
	{ "raise-hosts = -oProxyCommand=x",
	  "1: raise-hosts must be names such as node[1-64], slurm, or "
	  "none, not \"-oProxyCommand=x\"" },
	{ "raise-user = nobody-at-all", "1: raise-user must be a user of this node, or none, not "
	  "\"nobody-at-all\"" },
	{ "colour = red", "1: unknown setting \"colour\"; ncclinspd.conf(5) lists all" },
	{ "foreground = yes", "1: foreground is for the command line only" },
	{ "help", "1: a line must be NAME = VALUE, not \"help\"" },
	{ "= 5", "1: a line must be NAME = VALUE, not \"= 5\"" },
	{ "log-level = err\nlog-level = info", "2: log-level was already set on line 1" },
	{ "stall-min = 0x10",
	  "1: stall-min must be a time from 100ms to 24h, such as 10s, not \"0x10\"" },
	{ "stall-min = 1e3",
	  "1: stall-min must be a time from 100ms to 24h, such as 10s, not \"1e3\"" },
	{ "stall-min = 25h",
	  "1: stall-min must be a time from 100ms to 24h, such as 10s, not \"25h\"" },
	{ "snapshot-interval = 99999999",
	  "1: snapshot-interval must be a time from 1s to 24h, such as 60s, or 0, not "
	  "\"99999999\"" },
	{ "state-dir = here", "1: state-dir must be a path that begins with /, not \"here\"" },
	{ "shm-dir = \"/dev/shm\"",
	  "1: shm-dir must be a path that begins with /, not \"\"/dev/shm\"\"" },
	{ "state-dir = /x # here",
	  "1: a comment must have its own line, and cannot follow \"/x\"" },
	{ "control = /a\x1b[2J", "1: control must be a path, not \"/a\x1b[2J\"" },
	{ "socket = /an/endless/path/an/endless/path/an/endless/path/an/endless/path/"
	  "an/endless/path/an/endless/path/12345678901",
	  "1: socket must be a path of at most 107 bytes, not "
	  "\"/an/endless/path/an/endless/path/an/endless/path/an/endless/path/"
	  "an/endless/path/an/endless/path/12345678901\"" },
};

TEST_LOOP(what_is_wrong_is_told_with_its_line_and_what_would_be_right, 0, FX_COUNT(wrong))
{
	struct config c;
	char want[512];

	ck_assert_int_eq(parse_text(&c, wrong[_i].text), -EINVAL);
	snprintf(want, sizeof(want), "%s:%s\n", path, wrong[_i].told);
	ck_assert_str_eq(told, want);
}

/* Each line for itself is good; together they mean nothing. */
static const struct {
	const char *text, *told;
} senseless[] = {
	{ "control = /run/x/s\nsocket = /run/x/s",
	  "socket and control are both \"/run/x/s\": each needs its own path" },
	{ "state-dir = /dev/shm", "shm-dir and state-dir are both \"/dev/shm\"" },
	{ "metrics-textfile = /x/y\ncontrol = /x/y", "control and metrics-textfile are both" },
	{ "metrics-textfile = /var/lib/node_exporter/",
	  "metrics-textfile must be a file, not the" },
	{ "control = /run/x/", "control must be a file, not the" },
};

TEST_LOOP(what_makes_no_sense_together_is_refused, 0, FX_COUNT(senseless))
{
	struct config c;

	ck_assert_int_eq(parse_text(&c, senseless[_i].text), -EINVAL);
	ck_assert_msg(strstr(told, senseless[_i].told), "%s", told);
	told[0] = '\0';
	ck_assert_int_eq(parse(&c, "--check-config"), -EINVAL);
	ck_assert_msg(strstr(told, senseless[_i].told), "%s", told);
}

TEST(check_finds_what_is_in_the_way)
{
	static const char *const names[] = { "socket", "shm-dir", "state-dir", "control",
					     "metrics-textfile" };
	static const char *const others[] = { "/dev/null", "/dev/null", "/dev/null", "/dev/null",
					      "/tmp" };
	struct config c;
	char text[128];

	for (int i = 0; i < FX_COUNT(names); i++) {
		snprintf(text, sizeof(text), "%s = %s\n", names[i], others[i]);
		ck_assert_int_eq(parse_text(&c, text), CONFIG_RUN);
		told[0] = '\0';
		ck_assert_int_eq(parse(&c, "--check-config"), -EINVAL);
		ck_assert_msg(strstr(told, others[i]) && strstr(told, names[i]), "%s", told);
	}
}

TEST(check_asks_what_the_start_asks)
{
	struct config c;

	write_file("", 0);
	if (!geteuid())
		return;		/* has places by default */
	told[0] = '\0';
	unsetenv("XDG_RUNTIME_DIR");
	ck_assert_int_eq(parse(&c, "--check-config"), -EINVAL);
	ck_assert_ptr_nonnull(strstr(told, "no path for the socket"));
}

TEST(all_that_is_wrong_is_told_at_once)
{
	struct config c;
	int lines = 0;

	ck_assert_int_eq(parse_text(&c, "a = b\nstall-min = 1s\nlog-level = x\nsocket"), -EINVAL);
	for (const char *s = told; (s = strchr(s, '\n')); s++)
		lines++;
	ck_assert_int_eq(lines, 3);
}

TEST(the_command_line_goes_before_the_environment_and_that_before_the_file)
{
	struct config c;

	static const char text[] = "shm-dir = /file\nsocket = /file\nstate-dir = /file\n";

	write_file(text, strlen(text));
	setenv("NCCLINSP_SHM_DIR", "/environment", 1);
	setenv("NCCLINSP_SOCKET", "/environment", 1);
	ck_assert_int_eq(parse(&c, "--shm-dir=/argument"), CONFIG_RUN);
	ck_assert_str_eq(c.shm_dir, "/argument");
	ck_assert_str_eq(c.socket, "/environment");
	ck_assert_str_eq(c.state_dir, "/file");
}

TEST(a_file_that_was_named_must_be_there)
{
	struct config c;

	ck_assert_int_eq(parse(&c, NULL), -EINVAL);
	ck_assert_ptr_nonnull(strstr(told, "No such file"));
}

/* It becomes part of a file's name. */
TEST(a_node_s_name_is_one_word)
{
	static const char *const bad[] = { "--node-name=", "--node-name=../x", "--node-name=a/b",
		"--node-name=.a", "--node-name=a b", "--node-name=a\"b",
		"--node-name=12345678901234567890123456789012345678901234567890123456789012345" };
	struct config c;

	write_file("", 0);
	ck_assert_int_eq(parse(&c, "--node-name=gpu-07.rack_2"), CONFIG_RUN);
	ck_assert_str_eq(c.node_name, "gpu-07.rack_2");
	ck_assert_int_eq(parse(&c, "--node-name=none"), CONFIG_RUN);
	ck_assert_str_ne(c.node_name, "none");
	for (int i = 0; i < FX_COUNT(bad); i++)
		ck_assert_int_eq(parse(&c, bad[i]), -EINVAL);
}

TEST(a_file_that_nobody_named_need_not_be_there)
{
	char *argv[] = { "ncclinspd", "--socket=/s", "--state-dir=/t", NULL };
	struct config c;

	setenv("XDG_CONFIG_HOME", dir, 1);
	ck_assert_int_eq(config_parse(&c, 3, argv, collect), CONFIG_RUN);
	/* The node's own, where it is installed and we are who reads it. */
	ck_assert(c.file_read == (c.everybody && !access(CONFIG_NODE_FILE, F_OK)));
}

TEST(what_is_no_text_file_is_refused_and_holds_nobody_up)
{
	struct config c;
	char *large = calloc(1, 70000);

	write_file("log-level = err\n\0", 17);
	ck_assert_int_eq(parse(&c, NULL), -EINVAL);
	ck_assert_ptr_nonnull(strstr(told, "not a text"));
	memset(large, '\n', 70000);
	write_file(large, 70000);
	ck_assert_int_eq(parse(&c, NULL), -EINVAL);
	ck_assert_ptr_nonnull(strstr(told, "larger than 64 KiB"));
	write_file(large, 65536);
	ck_assert_int_eq(parse(&c, NULL), CONFIG_RUN);
	free(large);
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(parse(&c, NULL), -EINVAL);
	ck_assert_ptr_nonnull(strstr(told, "not a file"));
}

TEST(only_what_may_change_while_it_runs_does)
{
	struct config now, next;

	parse_text(&now, "socket = /a\nshm-dir = /m\nstate-dir = /s\nstall-min = 10s\n");
	parse_text(&next, "socket = /abc\nshm-dir = /m\nstate-dir = /s\nstall-min = 3s\n"
		   "log-level = err\nstraggler-window = 5s");
	config_take_live(&now, &next, collect);
	ck_assert_str_eq(told, "a change of socket needs a restart\n");
	ck_assert_str_eq(now.socket, "/a");
	ck_assert_uint_eq(now.stall_min_ns, UINT64_C(3000000000));
	ck_assert_uint_eq(now.straggler_window_ns, UINT64_C(5000000000));
	ck_assert_int_eq(now.log_level, LOG_ERROR);
}

/* Whoever copies what is shown into a file gets what is in force. */
TEST_LOOP(what_is_shown_is_read_back_as_it_is, 0, 3)
{
	static const char all[] =
		"socket = /a b/c.sock\nshm-dir = /x\nnode-name = n7.rack\ncontainers = no\n"
		"state-dir = /y\ncontrol = /z\nras = no\nauto-detail = no\nauto-thrift = no\n"
		"raise-hosts = gpu[01-64,70],login\nraise-user = daemon\n"
		"kernel-budget = 0.0001\nkernels = first 120s\n"
		"kernel-cost = 8us\nstall-min = 1.5s\n"
		"straggler-window = 2m\nmetrics-listen = :9\nmetrics-textfile = /t.prom\n"
		"otlp-endpoint = https://n1:4318/x\notlp-signals = logs,metrics\n"
		"otlp-headers = a=b,c=d%20e\notlp-headers-file = /h\notlp-certificate = /ca\n"
		"otlp-client-certificate = /both\notlp-client-key = /both\n"
		"otlp-compression = none\notlp-timeout = 1500ms\notlp-interval = 2m\n"
		"otlp-trace-every = 1000\n"
		"metrics-peers = yes\nmetrics-inspector = yes\n"
		"metrics-profile = fleet\nmetrics-series = 300\n"
		"snapshot-interval = 0\n"
		"log-level = debug\n";
	static const char others[] =
		"kernel-budget = 99.9999\nkernel-cost = 123ns\nstall-min = 100.000001ms\n"
		"snapshot-interval = 1h\nlog-level = err\nmetrics-listen = none\n";
	const char *const texts[] = { "# all by default\n", all, others };
	char value[CONFIG_VALUE_BYTES], text[1 << 14];
	static struct config c, again;
	size_t used = 0;

	ck_assert_int_eq(parse_text(&c, texts[_i]), CONFIG_RUN);
	for (const struct config_row *row = config_rows; row->name; row++) {
		if (!row->fallback)
			continue;
		config_show(&c, row, value);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s = %s\n", row->name,
					 value);
	}
	ck_assert_msg(parse_text(&again, text) == CONFIG_RUN, "%s%s", text, told);
	for (const struct config_row *row = config_rows; row->name; row++) {
		const char *was = (const char *)&c + row->at, *is = (const char *)&again + row->at;

		/* What follows from 0 is written out. */
		config_show(&again, row, value);
		ck_assert_msg(!memcmp(was, is, row->bytes) || !strcmp(value, row->fallback),
			      "%s = %s", row->name, value);
	}
}

static const struct config_origin *origin_of(const struct config *c, const char *name)
{
	size_t i = 0;

	while (strcmp(config_rows[i].name, name) != 0)
		i++;
	return &c->origin[i];
}

static const char *source_of(const struct config *c, const char *name)
{
	return config_source_name(origin_of(c, name)->source);
}

TEST(each_value_knows_who_set_it)
{
	struct config c;

	write_file("\nstall-min = 2s\nlog-level = warn\nshm-dir = /file\n", 47);
	setenv("NCCLINSP_SHM_DIR", "/environment", 1);
	ck_assert_int_eq(parse(&c, "--log-level=debug"), CONFIG_RUN);
	ck_assert_str_eq(source_of(&c, "stall-min"), "file");
	ck_assert_uint_eq(origin_of(&c, "stall-min")->line, 2);
	ck_assert_str_eq(source_of(&c, "log-level"), "option");
	ck_assert_uint_eq(origin_of(&c, "log-level")->line, 0);
	ck_assert_str_eq(source_of(&c, "shm-dir"), "environment");
	ck_assert_str_eq(source_of(&c, "kernel-cost"), "default");
	setenv("NCCLINSP_SHM_DIR", "no path", 1);	/* as if it were not set */
	ck_assert_int_eq(parse(&c, NULL), CONFIG_RUN);
	ck_assert_str_eq(source_of(&c, "shm-dir"), "file");
	ck_assert_uint_eq(origin_of(&c, "shm-dir")->line, 4);
}

TEST(read_again_it_knows_where_from_and_what_waits)
{
	static struct config c, next;

	ck_assert_int_eq(parse_text(&c, "stall-min = 2s\nstate-dir = /a\n"), CONFIG_RUN);
	ck_assert_int_eq(parse_text(&next, "\nstate-dir = /b\nlog-level = warn\n"), CONFIG_RUN);
	config_take_live(&c, &next, collect);
	ck_assert_str_eq(source_of(&c, "stall-min"), "default");
	ck_assert_str_eq(source_of(&c, "log-level"), "file");
	ck_assert(origin_of(&c, "state-dir")->pending);
	ck_assert_uint_eq(origin_of(&c, "state-dir")->line, 2);	/* of /a, which is in force */
	ck_assert(!origin_of(&c, "log-level")->pending);
	ck_assert_int_eq(parse_text(&next, "\n\nstate-dir = /a\n"), CONFIG_RUN);
	config_take_live(&c, &next, collect);
	ck_assert(!origin_of(&c, "state-dir")->pending);
	ck_assert_uint_eq(origin_of(&c, "state-dir")->line, 3);
}

TEST(the_same_configuration_again_changes_nothing)
{
	struct config now, next;
	const char *text = "socket = /a\nshm-dir = /m\nstate-dir = /s\n";

	parse_text(&now, "socket = /before\nstate-dir = /before-too\n");
	parse_text(&now, text);
	parse_text(&next, text);
	config_take_live(&now, &next, collect);
	ck_assert_str_eq(told, "");
}

int main(void)
{
	return fx_run(setup, teardown);
}
