/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of options: a row has an option's name, its values, its default and its help.  The
 * pages of the manual tell more of each.  What is in force is written as it would be read.
 */
#include "ncclinspd/config/config_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "ncclinspd/around/kmsg.h"
#include "ncclinspd/levels/kernels.h"
#include "ncclinspd/metrics/metrics.h"
#include "nci/control.h"
#include "probe/wire.h"
#include "reader/base/memory.h"
#include "util/list.h"
#include "util/text.h"

#define LONGEST_NS UINT64_C(86400000000000)	/* a time that somebody waits for */
#define COST_LEAST_NS UINT64_C(100)
#define COST_MOST_NS UINT64_C(1000000000)
#define MEMORY_MOST 1e15

/* False: empty, too long for so many bytes, or with control characters. */
static bool value_fits(const char *value, size_t room)
{
	size_t n = 0;

	while ((unsigned char)value[n] >= ' ' && value[n] != 0x7f)
		n++;
	return n && n < room && !value[n];
}

int config_set_path(char path[PATH_MAX], const char *value)
{
	if (!value_fits(value, PATH_MAX))
		return -EINVAL;
	memset(path, 0, PATH_MAX);
	strcpy(path, value);
	return 0;
}

/* The member that a row sets. */
static void *row_at(struct config *c, const struct config_row *row)
{
	return (char *)c + row->at;
}

static int set_path(struct config *c, const struct config_row *row, const char *value)
{
	return config_set_path(row_at(c, row), value);
}

static int set_file(struct config *c, const struct config_row *row, const char *value)
{
	c->file_named = true;
	return config_set_path(c->file, value);
}

static int set_socket(struct config *c, const struct config_row *row, const char *value)
{
	if (strlen(value) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return -EINVAL;
	return set_path(c, row, value);
}

static int set_switch(struct config *c, const struct config_row *row, const char *value)
{
	bool yes = !strcmp(value, "yes");

	if (!yes && strcmp(value, "no"))
		return -EINVAL;
	*(bool *)row_at(c, row) = yes;
	return 0;
}

/* It becomes part of the names of files, and of labels. */
static int set_node_name(struct config *c, const struct config_row *row, const char *value)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789-_.";
	size_t n = strlen(value);

	if (n == 0 || n >= row->bytes || value[strspn(value, good)] || value[0] == '.')
		return -EINVAL;
	memset(c->node_name, 0, sizeof(c->node_name));
	if (strcmp(value, "none"))
		memcpy(c->node_name, value, n);
	else
		gethostname(c->node_name, sizeof(c->node_name) - 1);
	return 0;
}

static int set_path_or_none(struct config *c, const struct config_row *row, const char *value)
{
	char path[PATH_MAX] = "";

	if ((strcmp(value, "none") && config_set_path(path, value)) || strlen(path) >= row->bytes)
		return -EINVAL;
	memcpy(row_at(c, row), path, row->bytes);
	return 0;
}

/* Percent of wall time; the control file has it in parts of a million. */
static int set_kernel_budget(struct config *c, const struct config_row *row, const char *value)
{
	double percent;
	char *end;

	if (!strcmp(value, "job"))
		value = "0.5";		/* the default, as it was called before version 2 */
	if (value[strspn(value, "0123456789.")])
		return -EINVAL;
	percent = strtod(value, &end);
	if (end == value || *end || percent < 0.0001 || percent > 100)
		return -EINVAL;
	c->kernel_budget_ppm = (uint32_t)(percent * 10000 + 0.5);
	return 0;
}

static int set_kernel_cost(struct config *c, const struct config_row *row, const char *value)
{
	uint64_t ns = 0;

	if (strcmp(value, "auto") && (text_parse_duration(value, &ns) || ns < COST_LEAST_NS ||
				      ns > COST_MOST_NS))
		return -EINVAL;
	c->kernel_cost_ns = (uint32_t)ns;
	return 0;
}

static int set_foreground(struct config *c, const struct config_row *row, const char *value)
{
	c->foreground = true;
	return 0;
}

static int time_parse(uint64_t *ns, const char *value, uint64_t least_ns)
{
	uint64_t given_ns;

	if (text_parse_duration(value, &given_ns) || given_ns < least_ns || given_ns > LONGEST_NS)
		return -EINVAL;
	*ns = given_ns;
	return 0;
}

static int set_time_of_100_ms(struct config *c, const struct config_row *row, const char *value)
{
	return time_parse(row_at(c, row), value, UINT64_C(100000000));
}

static int set_time_of_1_s(struct config *c, const struct config_row *row, const char *value)
{
	return time_parse(row_at(c, row), value, UINT64_C(1000000000));
}

static int set_text(struct config *c, const struct config_row *row, const char *value)
{
	if (!value_fits(value, row->bytes))
		return -EINVAL;
	memset(row_at(c, row), 0, row->bytes);
	if (strcmp(value, "none"))
		strcpy(row_at(c, row), value);
	return 0;
}

static int set_kernels(struct config *c, const struct config_row *row, const char *value)
{
	uint32_t seconds;

	if (strcmp(value, "job") && !kernels_parse_mode(value, &seconds))
		return -EINVAL;
	return set_text(c, row, value);
}

static int set_metrics_listen(struct config *c, const struct config_row *row, const char *value)
{
	struct tcp_address address;

	if (strcmp(value, "none") && tcp_parse(value, &address))
		return -EINVAL;
	return set_text(c, row, value);
}

static int set_probe(struct config *c, const struct config_row *row, const char *value)
{
	bool no = !strcmp(value, "no") || !strcmp(value, "none");	/* shown as the same */

	if (!strcmp(value, "yes"))
		value = PROBE_SOCKET;
	if (!no && *value != '/')
		return -EINVAL;
	return set_text(c, row, no ? "none" : value);
}

static int set_metrics_profile(struct config *c, const struct config_row *row, const char *value)
{
	if (strcmp(value, "fleet") && strcmp(value, "full"))
		return -EINVAL;
	return set_text(c, row, value);
}

static int set_metrics_series(struct config *c, const struct config_row *row, const char *value)
{
	int64_t n = 0;

	if (strcmp(value, "auto") &&
	    text_parse_integer(value, METRICS_SERIES_LEAST, METRICS_SERIES_MOST, &n))
		return -EINVAL;
	c->metrics_series = (uint32_t)n;
	return 0;
}

/* Its brackets are read when nodes are asked, by ncclinsp. */
static int set_raise_hosts(struct config *c, const struct config_row *row, const char *value)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789-_.@:%[],";

	if (value[strspn(value, good)] || *value == '-')
		return -EINVAL;
	return set_text(c, row, value);
}

static int set_raise_user(struct config *c, const struct config_row *row, const char *value)
{
	const struct passwd *user = strcmp(value, "none") ? getpwnam(value) : NULL;

	if (!user && strcmp(value, "none"))
		return -EINVAL;
	c->raiser = user ? user->pw_uid : 0;
	return set_text(c, row, value);
}

static int set_otlp_endpoint(struct config *c, const struct config_row *row, const char *value)
{
	const char *host = strstr(value, "://");
	bool http = !strncmp(value, "http://", 7) || !strncmp(value, "https://", 8);

	if (strcmp(value, "none") && (!http || !host[3] || strpbrk(value, "?# ")))
		return -EINVAL;
	return set_text(c, row, value);
}

static int set_otlp_signals(struct config *c, const struct config_row *row, const char *value)
{
	for (const char *at = value; *at; at += *at == ',') {
		size_t n = strcspn(at, ",");

		if (otlp_signal(at, n) < 0)
			return -EINVAL;
		at += n;
	}
	return set_text(c, row, value);
}

static int set_otlp_headers(struct config *c, const struct config_row *row, const char *value)
{
	if (strcmp(value, "none") && !strchr(value, '='))
		return -EINVAL;
	return set_text(c, row, value);
}

static int set_otlp_compression(struct config *c, const struct config_row *row, const char *value)
{
	if (strcmp(value, "none") && strcmp(value, "gzip"))
		return -EINVAL;
	return set_text(c, row, value);
}

/* A file that the daemon reads, which several options may name. */
static int set_input(struct config *c, const struct config_row *row, const char *value)
{
	if (strcmp(value, "none") && *value != '/')
		return -EINVAL;
	return set_text(c, row, value);
}

static int set_otlp_trace_every(struct config *c, const struct config_row *row, const char *value)
{
	int64_t n;

	if (text_parse_integer(value, 0, UINT32_MAX, &n))
		return -EINVAL;
	c->otlp.trace_every = (uint32_t)n;
	return 0;
}

static int set_memory_max(struct config *c, const struct config_row *row, const char *value)
{
	double bytes;

	if (text_parse_bytes(value, &bytes) || bytes < (double)MEMORY_LEAST || bytes > MEMORY_MOST)
		return -EINVAL;
	c->memory_max = (uint64_t)bytes;
	return 0;
}

static int set_snapshot_interval(struct config *c, const struct config_row *row, const char *value)
{
	uint64_t ns;

	if (!text_parse_duration(value, &ns) && !ns) {
		c->snapshot_interval_ns = 0;
		return 0;
	}
	return set_time_of_1_s(c, row, value);
}

static int set_log_level(struct config *c, const struct config_row *row, const char *value)
{
	int level = log_parse_level(value);

	if (level < 0)
		return -EINVAL;
	c->log_level = (enum log_level)level;
	return 0;
}

/* An option that has the daemon answer on stdout, and not run. */
static int set_question(struct config *c, const struct config_row *row, const char *value)
{
	static const char *const names[] = {
		[CONFIG_CHECK] = "check-config", [CONFIG_PRINT] = "print-config",
		[CONFIG_VERSION] = "version", [CONFIG_HELP] = "help",
	};

	c->question = CONFIG_CHECK;
	while (strcmp(names[c->question], row->name))
		c->question++;
	return 0;
}

#define FIELD(name, kind) kind, offsetof(struct config, name), sizeof(((struct config *)0)->name)

const struct config_row config_rows[] = {
	{ "config", 'c', "FILE", set_file, "a path", "the configuration file, instead of "
	  CONFIG_NODE_FILE, NULL, false, CONFIG_FLAG, 0, 0, NULL },
	{ "socket", 'S', "PATH", set_socket, "a path of at most 107 bytes",
	  "the Unix socket where ncclinsp and others ask", CONFIG_NODE_SOCKET, false,
	  FIELD(socket, CONFIG_SOCKET), "NCCLINSP_SOCKET" },
	{ "shm-dir", 'm', "DIR", set_path, "a path",
	  "the directory in shared memory where the plugins write", NCI_SHM_DIR, false,
	  FIELD(shm_dir, CONFIG_DIR), "NCCLINSP_SHM_DIR" },
	{ "node-name", 0, "NAME", set_node_name, "letters, digits, -, _ and ., 64 at most, or none",
	  "the name of this node in answers and metrics; none: the host name", "none", false,
	  FIELD(node_name, CONFIG_TEXT), NULL },
	{ "containers", 0, "YES", set_switch, "yes or no",
	  "look into the shared memory of containers: yes or no", "yes", false,
	  FIELD(containers, CONFIG_SWITCH), NULL },
	{ "gpu-sensors", 0, "YES", set_switch, "yes or no",
	  "ask NVIDIA's library about the clocks and errors of GPUs in use: yes or no", "yes",
	  false,
	  FIELD(gpu_sensors, CONFIG_SWITCH), NULL },
	{ "nics", 0, "YES", set_switch, "yes or no",
	  "read the kernel's counters of network interfaces: yes or no", "yes", false,
	  FIELD(nics, CONFIG_SWITCH), NULL },
	{ "kernel-log", 0, "PATH", set_path_or_none, "a path, or none",
	  "where to read the GPU errors (Xid) that NVIDIA's driver reports", KMSG_PATH, false,
	  FIELD(kernel_log, CONFIG_TEXT), NULL },
	{ "state-dir", 's', "DIR", set_path, "a path",
	  "where to keep snapshots, black boxes, baselines and the log", CONFIG_NODE_STATE, false,
	  FIELD(state_dir, CONFIG_DIR), NULL },
	{ "control", 0, "PATH", set_path, "a path",
	  "the file that tells jobs their level", NCI_CONTROL_PATH, false,
	  FIELD(control, CONFIG_FILE), "NCCLINSP_CONTROL" },
	{ "ras", 0, "YES", set_switch, "yes or no",
	  "ask NCCL's RAS on loopback about a hang whose cause is on another node: yes or no",
	  "yes", false, FIELD(ras, CONFIG_SWITCH), NULL },
	{ "auto-detail", 0, "YES", set_switch, "yes or no",
	  "time every operation for 10 s when a rank or link is found slow: yes or no", "yes",
	  true, FIELD(auto_detail, CONFIG_SWITCH), NULL },
	{ "auto-thrift", 0, "YES", set_switch, "yes or no",
	  "lower the level of a job if watching it costs more than its budget: yes or no", "yes",
	  true, FIELD(auto_thrift, CONFIG_SWITCH), NULL },
	{ "raise-hosts", 0, "HOSTS", set_raise_hosts, "names such as node[1-64], slurm, or none",
	  "other nodes that auto-detail asks over ssh to do the same; slurm: those of the job",
	  "none", false,
	  FIELD(raise_hosts, CONFIG_TEXT), NULL },
	{ "raise-user", 0, "USER", set_raise_user, "a user of this node, or none",
	  "the user who may ask this node for that, beside those who see everything", "none", false,
	  FIELD(raise_user, CONFIG_TEXT), NULL },
	{ "kernel-budget", 0, "PERCENT", set_kernel_budget,
	  "a share of time from 0.0001 to 100 in percent",
	  "how much of a job's time the timing of kernels in bursts may cost", "0.5", true,
	  FIELD(kernel_budget_ppm, CONFIG_PPM), NULL },
	{ "kernels", 0, "WHEN", set_kernels,
	  "job, burst, first N s (such as 'first 60s'), always or never",
	  "when kernels are timed in later jobs; job: as the job or its NCCL version says", "job",
	  true, FIELD(kernels, CONFIG_TEXT), NULL },
	{ "kernel-cost", 0, "SECONDS", set_kernel_cost,
	  "a time from 100ns to 1s, such as 10us, or auto",
	  "the cost of timing the kernels of one group of operations; auto: estimate it", "auto",
	  true,
	  FIELD(kernel_cost_ns, CONFIG_NS32), NULL },
	{ "stall-min", 't', "SECONDS", set_time_of_100_ms, "a time from 100ms to 24h, such as 10s",
	  "the shortest limit for the time that an operation is in flight", "10s", true,
	  FIELD(stall_min_ns, CONFIG_NS), NULL },
	{ "stall-max", 0, "SECONDS", set_time_of_100_ms, "a time from 100ms to 24h, such as 60s",
	  "the longest such limit, unless operations usually take longer", "60s", true,
	  FIELD(stall_max_ns, CONFIG_NS), NULL },
	{ "not-joined-critical", 0, "SECONDS", set_time_of_100_ms,
	  "a time from 100ms to 24h, such as 5m",
	  "how long a rank may be missing until that is critical, if none was missing before",
	  "300s",
	  true, FIELD(not_joined_critical_ns, CONFIG_NS), NULL },
	{ "straggler-window", 'w', "SECONDS", set_time_of_1_s,
	  "a time from 1s to 24h, such as 60s",
	  "a late rank is found after three times this time", "60s", true,
	  FIELD(straggler_window_ns, CONFIG_NS), NULL },
	{ "on-finding", 0, "SOCKET", set_path_or_none,
	  "the path of a Unix socket, of 107 bytes at most, or none",
	  "send each finding to the program that listens at this socket",
	  "none", false, FIELD(on_finding, CONFIG_FILE), NULL },
	{ "probe", 0, "YES", set_probe,
	  "yes, no, or the path of a Unix socket, of 107 bytes at most",
	  "ask ncclinsp-probe which processes take CPUs and end others: yes, no or its socket",
	  "no",
	  false, FIELD(probe, CONFIG_TEXT), NULL },
	{ "metrics-listen", 0, "ADDRESS:PORT", set_metrics_listen,
	  "[ADDRESS]:PORT of a numeric address, or none",
	  "serve /metrics over TCP there as well; without an address on loopback", "none", false,
	  FIELD(metrics_listen, CONFIG_TEXT), NULL },
	{ "metrics-textfile", 0, "FILE", set_path_or_none, "a path, or none",
	  "write the metrics into this file every 10 s, for node_exporter", "none", false,
	  FIELD(metrics_textfile, CONFIG_FILE), NULL },
	{ "metrics-peers", 0, "YES", set_switch, "yes or no",
	  "metrics with a series for each network link: yes or no", "no", false,
	  FIELD(metrics_peers, CONFIG_SWITCH), NULL },
	{ "metrics-inspector", 0, "YES", set_switch, "yes or no",
	  "metrics with the names of NVIDIA's NCCL Inspector as well: yes or no", "no", false,
	  FIELD(metrics_inspector, CONFIG_SWITCH), NULL },
	{ "metrics-profile", 0, "PROFILE", set_metrics_profile, "full or fleet",
	  "which series /metrics has: all, or those that thousands of nodes can afford", "full",
	  false, FIELD(metrics_profile, CONFIG_TEXT), NULL },
	{ "metrics-series", 0, "NUMBER", set_metrics_series, "auto, or a number from 200 to 100000",
	  "how many series /metrics may have; auto: 2000, in the fleet profile 150", "auto", false,
	  FIELD(metrics_series, CONFIG_COUNT), NULL },
	{ "otlp-endpoint", 0, "URL", set_otlp_endpoint,
	  "a URL such as http://192.0.2.1:4318, or none",
	  "the OpenTelemetry collector to push to", "none", false,
	  FIELD(otlp.endpoint, CONFIG_TEXT), NULL },
	{ "otlp-signals", 0, "NAMES", set_otlp_signals,
	  "some of logs, traces and metrics, separated by commas", "what to push",
	  "logs,traces,metrics", false, FIELD(otlp.signals, CONFIG_TEXT), NULL },
	{ "otlp-headers", 0, "NAME=VALUE,...", set_otlp_headers,
	  "NAME=VALUE separated by commas, or none",
	  "HTTP headers for the collector; everyone can see these", "none", false,
	  FIELD(otlp.headers, CONFIG_TEXT), NULL },
	{ "otlp-headers-file", 0, "FILE", set_input,
	  "a path that begins with /, or none",
	  "a file with such headers, one on each line, for secrets", "none", false,
	  FIELD(otlp.headers_file, CONFIG_TEXT), NULL },
	{ "otlp-certificate", 0, "FILE", set_input,
	  "a path that begins with /, or none",
	  "certificates to check the collector's by; none: the system's", "none", false,
	  FIELD(otlp.certificate, CONFIG_TEXT), NULL },
	{ "otlp-client-certificate", 0, "FILE", set_input,
	  "a path that begins with /, or none", "the certificate that the daemon shows",
	  "none", false, FIELD(otlp.client_certificate, CONFIG_TEXT), NULL },
	{ "otlp-client-key", 0, "FILE", set_input,
	  "a path that begins with /, or none", "the key of that certificate", "none", false,
	  FIELD(otlp.client_key, CONFIG_TEXT), NULL },
	{ "otlp-compression", 0, "KIND", set_otlp_compression, "gzip or none",
	  "how requests are compressed: gzip or none", "gzip", false,
	  FIELD(otlp.compression, CONFIG_TEXT), NULL },
	{ "otlp-timeout", 0, "SECONDS", set_time_of_100_ms, "a time from 100ms to 24h, such as 10s",
	  "how long a request may take", "10s", false, FIELD(otlp.timeout_ns, CONFIG_NS), NULL },
	{ "otlp-interval", 0, "SECONDS", set_time_of_1_s, "a time from 1s to 24h, such as 60s",
	  "how often metrics are pushed", "60s", false, FIELD(otlp.interval_ns, CONFIG_NS), NULL },
	{ "otlp-trace-every", 0, "NUMBER", set_otlp_trace_every, "a number, or 0",
	  "trace also operations whose sequence number is a multiple of it; 0: none", "0", false,
	  FIELD(otlp.trace_every, CONFIG_COUNT), NULL },
	{ "memory-max", 0, "BYTES", set_memory_max, "a size of 176MiB or more, such as 256MiB",
	  "how much memory to use at most: the oldest detail is dropped first", "256MiB", false,
	  FIELD(memory_max, CONFIG_BYTES), NULL },
	{ "snapshot-interval", 0, "SECONDS", set_snapshot_interval,
	  "a time from 1s to 24h, such as 60s, or 0",
	  "how often to write a file with all that is known; 0: never",
	  "60s", true, FIELD(snapshot_interval_ns, CONFIG_NS_OR_0), NULL },
	{ "log-level", 'l', "LEVEL", set_log_level, "err, warn, info or debug",
	  "what to log: err, warn, info or debug", "info", true,
	  FIELD(log_level, CONFIG_LOG), NULL },
	{ "foreground", 'f', NULL, set_foreground, NULL, "stay in the foreground, log to stderr",
	  NULL, false, CONFIG_FLAG, 0, 0, NULL },
	{ "while-locked", 0, "FILE", set_path, "a path",
	  "end when no process holds a lock (flock) on FILE", NULL, false,
	  FIELD(while_locked, CONFIG_FLAG), NULL },
	{ "check-config", 'C', NULL, set_question, NULL, "check the configuration, and exit",
	  NULL, false, CONFIG_FLAG, 0, 0, NULL },
	{ "print-config", 0, NULL, set_question, NULL,
	  "print a configuration file with all defaults", NULL, false, CONFIG_FLAG, 0, 0, NULL },
	{ "version", 'V', NULL, set_question, NULL, "print the version", NULL,
	  false, CONFIG_FLAG, 0, 0, NULL },
	{ "help", 'h', NULL, set_question, NULL, "print this", NULL,
	  false, CONFIG_FLAG, 0, 0, NULL },
	{ .name = NULL },
};

_Static_assert(ARRAY_LEN(config_rows) <= CONFIG_ROWS + 1, "room for one line number each");

/* ---- what is in force, as it would be read ---------------------------------------- */

const char *config_source_name(enum config_source source)
{
	static const char *const names[] = { CONFIG_SOURCES(NAME_TEXT) };

	return names[source];
}

/* Write a time in the largest unit that leaves nothing over. */
static void show_ns(uint64_t ns, char value[CONFIG_VALUE_BYTES])
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = { { "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 } };
	size_t i = 0;

	while (ns % units[i].ns)
		i++;
	snprintf(value, CONFIG_VALUE_BYTES, "%" PRIu64 "%s", ns / units[i].ns,
		 ns ? units[i].unit : "");
}

static void show_word(const char *word, char value[CONFIG_VALUE_BYTES])
{
	snprintf(value, CONFIG_VALUE_BYTES, "%s", word);
}

/* Parts of a million as percent, without zeros at the end. */
static void show_ppm(uint32_t ppm, char value[CONFIG_VALUE_BYTES])
{
	snprintf(value, CONFIG_VALUE_BYTES, "%.7g", ppm / 10000.0);
}

static uint64_t row_number(const struct config *c, const struct config_row *row)
{
	const char *at = (const char *)c + row->at;
	uint64_t wide = 0;
	uint32_t narrow = 0;

	if (row->bytes == sizeof(wide))
		memcpy(&wide, at, sizeof(wide));
	else
		memcpy(&narrow, at, sizeof(narrow));
	return row->bytes == sizeof(wide) ? wide : narrow;
}

static void show_in_unit(const struct config_row *row, uint64_t n, char value[CONFIG_VALUE_BYTES])
{
	if (!n && row->kind != CONFIG_NS_OR_0)
		show_word(row->fallback, value);
	else if (row->kind == CONFIG_PPM)
		show_ppm((uint32_t)n, value);
	else if (row->kind == CONFIG_COUNT)
		snprintf(value, CONFIG_VALUE_BYTES, "%" PRIu64, n);
	else if (row->kind == CONFIG_BYTES)
		snprintf(value, CONFIG_VALUE_BYTES, "%" PRIu64 "MiB", n >> 20);
	else
		show_ns(n, value);
}

void config_show(const struct config *c, const struct config_row *row,
		 char value[CONFIG_VALUE_BYTES])
{
	const char *at = (const char *)c + row->at;

	value[0] = '\0';
	switch (row->kind) {
	case CONFIG_FLAG:
		break;
	case CONFIG_TEXT:
	case CONFIG_DIR:
	case CONFIG_FILE:
	case CONFIG_SOCKET:
		show_word(*at ? at : "none", value);
		break;
	case CONFIG_SWITCH:
		show_word(*(const bool *)at ? "yes" : "no", value);
		break;
	case CONFIG_LOG:
		show_word(log_level_name(c->log_level), value);
		break;
	default:
		show_in_unit(row, row_number(c, row), value);
	}
}
