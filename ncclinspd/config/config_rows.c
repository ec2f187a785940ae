/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of options: a row has an option's name, its values, its default and its help.  The
 * pages of the manual tell more of each.
 */
#include "ncclinspd/config/config_rows.h"

#include <errno.h>
#include <pwd.h>
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
#include "util/text.h"

#define LONGEST_NS UINT64_C(86400000000000)	/* a time that somebody waits for */
#define COST_LEAST_NS UINT64_C(100)
#define COST_MOST_NS UINT64_C(1000000000)
#define STALL_LEAST_NS UINT64_C(100000000)
#define MEMORY_MOST 1e15
#define INTERVAL_LEAST_NS UINT64_C(1000000000)
#define OTLP_LEAST_NS UINT64_C(100000000)
#define WINDOW_LEAST_NS UINT64_C(1000000000)	/* looked at once a second */

/* Whole, so that configurations can be compared byte by byte. */
int config_set_path(char path[PATH_MAX], const char *value)
{
	size_t n = strlen(value);

	for (const char *at = value; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return -EINVAL;
	if (n == 0 || n >= PATH_MAX)
		return -EINVAL;
	memset(path, 0, PATH_MAX);
	memcpy(path, value, n);
	return 0;
}

static int set_file(struct config *c, const char *value)
{
	c->file_named = true;
	return config_set_path(c->file, value);
}

static int set_socket(struct config *c, const char *value)
{
	if (strlen(value) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return -EINVAL;
	return config_set_path(c->socket, value);
}

static int set_shm_dir(struct config *c, const char *value)
{
	return config_set_path(c->shm_dir, value);
}

static int set_state_dir(struct config *c, const char *value)
{
	return config_set_path(c->state_dir, value);
}

static int set_control(struct config *c, const char *value)
{
	return config_set_path(c->control, value);
}

static int set_while_locked(struct config *c, const char *value)
{
	return config_set_path(c->while_locked, value);
}

static int set_switch(bool *to, const char *value)
{
	bool yes = !strcmp(value, "yes");

	if (!yes && strcmp(value, "no"))
		return -EINVAL;
	*to = yes;
	return 0;
}

/* It becomes part of the names of files, and of labels. */
static int set_node_name(struct config *c, const char *value)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789-_.";
	size_t n = strlen(value);

	if (n == 0 || n >= sizeof(c->node_name) || value[strspn(value, good)] || value[0] == '.')
		return -EINVAL;
	memset(c->node_name, 0, sizeof(c->node_name));
	if (strcmp(value, "none"))
		memcpy(c->node_name, value, n);
	else
		gethostname(c->node_name, sizeof(c->node_name) - 1);
	return 0;
}

static int set_containers(struct config *c, const char *value)
{
	return set_switch(&c->containers, value);
}

static int set_ras(struct config *c, const char *value)
{
	return set_switch(&c->ras, value);
}

static int set_auto_detail(struct config *c, const char *value)
{
	return set_switch(&c->auto_detail, value);
}

static int set_gpu_sensors(struct config *c, const char *value)
{
	return set_switch(&c->gpu_sensors, value);
}

static int set_nics(struct config *c, const char *value)
{
	return set_switch(&c->nics, value);
}

static int set_kernel_log(struct config *c, const char *value)
{
	memset(c->kernel_log, 0, sizeof(c->kernel_log));
	return strcmp(value, "none") ? config_set_path(c->kernel_log, value) : 0;
}

static int set_metrics_inspector(struct config *c, const char *value)
{
	return set_switch(&c->metrics_inspector, value);
}

static int set_metrics_peers(struct config *c, const char *value)
{
	return set_switch(&c->metrics_peers, value);
}

static int set_auto_thrift(struct config *c, const char *value)
{
	return set_switch(&c->auto_thrift, value);
}

/* Percent of wall time; the control file has it in parts of a million. */
static int set_kernel_budget(struct config *c, const char *value)
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

static int set_kernel_cost(struct config *c, const char *value)
{
	uint64_t ns = 0;

	if (strcmp(value, "auto") && (text_parse_duration(value, &ns) || ns < COST_LEAST_NS ||
				      ns > COST_MOST_NS))
		return -EINVAL;
	c->kernel_cost_ns = (uint32_t)ns;
	return 0;
}

static int set_kernels(struct config *c, const char *value)
{
	uint32_t seconds;

	if (strlen(value) >= sizeof(c->kernels) ||
	    (strcmp(value, "job") && !kernels_parse_mode(value, &seconds)))
		return -EINVAL;
	memset(c->kernels, 0, sizeof(c->kernels));
	memcpy(c->kernels, value, strlen(value));
	return 0;
}

static int set_foreground(struct config *c, const char *value)
{
	(void)value;
	c->foreground = true;
	return 0;
}

static int set_duration(uint64_t *ns, const char *value, uint64_t least_ns)
{
	uint64_t given_ns;

	if (text_parse_duration(value, &given_ns) || given_ns < least_ns || given_ns > LONGEST_NS)
		return -EINVAL;
	*ns = given_ns;
	return 0;
}

static int set_stall_min(struct config *c, const char *value)
{
	return set_duration(&c->stall_min_ns, value, STALL_LEAST_NS);
}

static int set_stall_max(struct config *c, const char *value)
{
	return set_duration(&c->stall_max_ns, value, STALL_LEAST_NS);
}

static int set_not_joined_critical(struct config *c, const char *value)
{
	return set_duration(&c->not_joined_critical_ns, value, STALL_LEAST_NS);
}

static int set_straggler_window(struct config *c, const char *value)
{
	return set_duration(&c->straggler_window_ns, value, WINDOW_LEAST_NS);
}

static int set_metrics_listen(struct config *c, const char *value)
{
	struct tcp_address address;
	bool none = !strcmp(value, "none");

	if (strlen(value) >= sizeof(c->metrics_listen) || (!none && tcp_parse(value, &address)))
		return -EINVAL;
	memset(c->metrics_listen, 0, sizeof(c->metrics_listen));
	if (!none)
		memcpy(c->metrics_listen, value, strlen(value));
	return 0;
}

static int set_metrics_textfile(struct config *c, const char *value)
{
	memset(c->metrics_textfile, 0, sizeof(c->metrics_textfile));
	return strcmp(value, "none") ? config_set_path(c->metrics_textfile, value) : 0;
}

static int set_on_finding(struct config *c, const char *value)
{
	char path[PATH_MAX] = "";
	int r = strcmp(value, "none") ? config_set_path(path, value) : 0;

	if (r || strlen(path) >= sizeof(c->on_finding))
		return r ?: -EINVAL;
	memset(c->on_finding, 0, sizeof(c->on_finding));
	memcpy(c->on_finding, path, strlen(path));
	return 0;
}

static int set_text(char *to, size_t room, const char *value)
{
	size_t n = strlen(value);

	for (const char *at = value; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return -EINVAL;
	if (n == 0 || n >= room)
		return -EINVAL;
	memset(to, 0, room);
	if (strcmp(value, "none"))
		memcpy(to, value, n);
	return 0;
}

static int set_probe(struct config *c, const char *value)
{
	bool no = !strcmp(value, "no") || !strcmp(value, "none");	/* shown as the same */

	if (!strcmp(value, "yes"))
		value = PROBE_SOCKET;
	if (!no && *value != '/')
		return -EINVAL;
	return set_text(c->probe, sizeof(c->probe), no ? "none" : value);
}

static int set_metrics_profile(struct config *c, const char *value)
{
	if (strcmp(value, "fleet") && strcmp(value, "full"))
		return -EINVAL;
	memset(c->metrics_profile, 0, sizeof(c->metrics_profile));
	memcpy(c->metrics_profile, value, strlen(value));
	return 0;
}

static int set_metrics_series(struct config *c, const char *value)
{
	uint64_t n = 0;

	if (!strcmp(value, "auto")) {
		c->metrics_series = 0;
		return 0;
	}
	for (const char *at = value; *at >= '0' && *at <= '9' && n <= METRICS_SERIES_MOST; at++)
		n = n * 10 + (uint64_t)(*at - '0');
	if (value[strspn(value, "0123456789")] || n < METRICS_SERIES_LEAST ||
	    n > METRICS_SERIES_MOST)
		return -EINVAL;
	c->metrics_series = (uint32_t)n;
	return 0;
}

/* Its brackets are read when nodes are asked, by ncclinsp. */
static int set_raise_hosts(struct config *c, const char *value)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789-_.@:%[],";

	if (value[strspn(value, good)] || *value == '-')
		return -EINVAL;
	return set_text(c->raise_hosts, sizeof(c->raise_hosts), value);
}

static int set_raise_user(struct config *c, const char *value)
{
	const struct passwd *user = strcmp(value, "none") ? getpwnam(value) : NULL;

	if (!user && strcmp(value, "none"))
		return -EINVAL;
	c->raiser = user ? user->pw_uid : 0;
	return set_text(c->raise_user, sizeof(c->raise_user), value);
}

static int set_otlp_endpoint(struct config *c, const char *value)
{
	const char *host = strstr(value, "://");

	bool http = !strncmp(value, "http://", 7) || !strncmp(value, "https://", 8);

	if (strcmp(value, "none") && (!http || !host[3] || strpbrk(value, "?# ")))
		return -EINVAL;
	return set_text(c->otlp.endpoint, sizeof(c->otlp.endpoint), value);
}

static int set_otlp_signals(struct config *c, const char *value)
{
	for (const char *at = value; *at; at += *at == ',') {
		size_t n = strcspn(at, ",");

		if (otlp_signal(at, n) < 0)
			return -EINVAL;
		at += n;
	}
	return set_text(c->otlp.signals, sizeof(c->otlp.signals), value);
}

static int set_otlp_headers(struct config *c, const char *value)
{
	if (strcmp(value, "none") && !strchr(value, '='))
		return -EINVAL;
	return set_text(c->otlp.headers, sizeof(c->otlp.headers), value);
}

static int set_otlp_compression(struct config *c, const char *value)
{
	if (strcmp(value, "none") && strcmp(value, "gzip"))
		return -EINVAL;
	return set_text(c->otlp.compression, sizeof(c->otlp.compression), value);
}

/* A file that the daemon reads, which several options may name. */
static int set_input(char path[PATH_MAX], const char *value)
{
	if (strcmp(value, "none") && *value != '/')
		return -EINVAL;
	return set_text(path, PATH_MAX, value);
}

static int set_otlp_headers_file(struct config *c, const char *value)
{
	return set_input(c->otlp.headers_file, value);
}

static int set_otlp_certificate(struct config *c, const char *value)
{
	return set_input(c->otlp.certificate, value);
}

static int set_otlp_client_certificate(struct config *c, const char *value)
{
	return set_input(c->otlp.client_certificate, value);
}

static int set_otlp_client_key(struct config *c, const char *value)
{
	return set_input(c->otlp.client_key, value);
}

static int set_otlp_timeout(struct config *c, const char *value)
{
	return set_duration(&c->otlp.timeout_ns, value, OTLP_LEAST_NS);
}

static int set_otlp_interval(struct config *c, const char *value)
{
	return set_duration(&c->otlp.interval_ns, value, INTERVAL_LEAST_NS);
}

static int set_otlp_trace_every(struct config *c, const char *value)
{
	int64_t n;

	if (text_parse_integer(value, 0, UINT32_MAX, &n))
		return -EINVAL;
	c->otlp.trace_every = (uint32_t)n;
	return 0;
}

static int set_memory_max(struct config *c, const char *value)
{
	double bytes;

	if (text_parse_bytes(value, &bytes) || bytes < (double)MEMORY_LEAST || bytes > MEMORY_MOST)
		return -EINVAL;
	c->memory_max = (uint64_t)bytes;
	return 0;
}

static int set_snapshot_interval(struct config *c, const char *value)
{
	uint64_t ns;

	if (!text_parse_duration(value, &ns) && !ns) {
		c->snapshot_interval_ns = 0;
		return 0;
	}
	return set_duration(&c->snapshot_interval_ns, value, INTERVAL_LEAST_NS);
}

static int set_log_level(struct config *c, const char *value)
{
	int level = log_parse_level(value);

	if (level < 0)
		return -EINVAL;
	c->log_level = (enum log_level)level;
	return 0;
}

static int set_check(struct config *c, const char *value)
{
	(void)value;
	c->question = CONFIG_CHECK;
	return 0;
}

static int set_print(struct config *c, const char *value)
{
	(void)value;
	c->question = CONFIG_PRINT;
	return 0;
}

static int set_version(struct config *c, const char *value)
{
	(void)value;
	c->question = CONFIG_VERSION;
	return 0;
}

static int set_help(struct config *c, const char *value)
{
	(void)value;
	c->question = CONFIG_HELP;
	return 0;
}

#define FIELD(name, kind) kind, offsetof(struct config, name), sizeof(((struct config *)0)->name)

static const struct config_row rows[] = {
	{ "config", 'c', "FILE", set_file, "a path", "the configuration file, instead of "
	  CONFIG_NODE_FILE, NULL, false, CONFIG_FLAG, 0, 0, NULL },
	{ "socket", 'S', "PATH", set_socket, "a path of at most 107 bytes",
	  "the Unix socket where ncclinsp and others ask", CONFIG_NODE_SOCKET, false,
	  FIELD(socket, CONFIG_SOCKET), "NCCLINSP_SOCKET" },
	{ "shm-dir", 'm', "DIR", set_shm_dir, "a path",
	  "the directory in shared memory where the plugins write", NCI_SHM_DIR, false,
	  FIELD(shm_dir, CONFIG_DIR), "NCCLINSP_SHM_DIR" },
	{ "node-name", 0, "NAME", set_node_name, "letters, digits, -, _ and ., 64 at most, or none",
	  "the name of this node in answers and metrics; none: the host name", "none", false,
	  FIELD(node_name, CONFIG_TEXT), NULL },
	{ "containers", 0, "YES", set_containers, "yes or no",
	  "look into the shared memory of containers: yes or no", "yes", false,
	  FIELD(containers, CONFIG_SWITCH), NULL },
	{ "gpu-sensors", 0, "YES", set_gpu_sensors, "yes or no",
	  "ask NVIDIA's library about the clocks and errors of GPUs in use: yes or no", "yes",
	  false,
	  FIELD(gpu_sensors, CONFIG_SWITCH), NULL },
	{ "nics", 0, "YES", set_nics, "yes or no",
	  "read the kernel's counters of network interfaces: yes or no", "yes", false,
	  FIELD(nics, CONFIG_SWITCH), NULL },
	{ "kernel-log", 0, "PATH", set_kernel_log, "a path, or none",
	  "where to read the GPU errors (Xid) that NVIDIA's driver reports", KMSG_PATH, false,
	  FIELD(kernel_log, CONFIG_TEXT), NULL },
	{ "state-dir", 's', "DIR", set_state_dir, "a path",
	  "where to keep snapshots, black boxes, baselines and the log", CONFIG_NODE_STATE, false,
	  FIELD(state_dir, CONFIG_DIR), NULL },
	{ "control", 0, "PATH", set_control, "a path",
	  "the file that tells jobs their level", NCI_CONTROL_PATH, false,
	  FIELD(control, CONFIG_FILE), "NCCLINSP_CONTROL" },
	{ "ras", 0, "YES", set_ras, "yes or no",
	  "ask NCCL's RAS on loopback about a hang whose cause is on another node: yes or no",
	  "yes", false, FIELD(ras, CONFIG_SWITCH), NULL },
	{ "auto-detail", 0, "YES", set_auto_detail, "yes or no",
	  "time every operation for 10 s when a rank or link is found slow: yes or no", "yes",
	  true, FIELD(auto_detail, CONFIG_SWITCH), NULL },
	{ "auto-thrift", 0, "YES", set_auto_thrift, "yes or no",
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
	{ "stall-min", 't', "SECONDS", set_stall_min, "a time from 100ms to 24h, such as 10s",
	  "the shortest limit for the time that an operation is in flight", "10s", true,
	  FIELD(stall_min_ns, CONFIG_NS), NULL },
	{ "stall-max", 0, "SECONDS", set_stall_max, "a time from 100ms to 24h, such as 60s",
	  "the longest such limit, unless operations usually take longer", "60s", true,
	  FIELD(stall_max_ns, CONFIG_NS), NULL },
	{ "not-joined-critical", 0, "SECONDS", set_not_joined_critical,
	  "a time from 100ms to 24h, such as 5m",
	  "how long a rank may be missing until that is critical, if none was missing before",
	  "300s",
	  true, FIELD(not_joined_critical_ns, CONFIG_NS), NULL },
	{ "straggler-window", 'w', "SECONDS", set_straggler_window,
	  "a time from 1s to 24h, such as 60s",
	  "a late rank is found after three times this time", "60s", true,
	  FIELD(straggler_window_ns, CONFIG_NS), NULL },
	{ "on-finding", 0, "SOCKET", set_on_finding,
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
	{ "metrics-textfile", 0, "FILE", set_metrics_textfile, "a path, or none",
	  "write the metrics into this file every 10 s, for node_exporter", "none", false,
	  FIELD(metrics_textfile, CONFIG_FILE), NULL },
	{ "metrics-peers", 0, "YES", set_metrics_peers, "yes or no",
	  "metrics with a series for each network link: yes or no", "no", false,
	  FIELD(metrics_peers, CONFIG_SWITCH), NULL },
	{ "metrics-inspector", 0, "YES", set_metrics_inspector, "yes or no",
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
	{ "otlp-headers-file", 0, "FILE", set_otlp_headers_file,
	  "a path that begins with /, or none",
	  "a file with such headers, one on each line, for secrets", "none", false,
	  FIELD(otlp.headers_file, CONFIG_TEXT), NULL },
	{ "otlp-certificate", 0, "FILE", set_otlp_certificate,
	  "a path that begins with /, or none",
	  "certificates to check the collector's by; none: the system's", "none", false,
	  FIELD(otlp.certificate, CONFIG_TEXT), NULL },
	{ "otlp-client-certificate", 0, "FILE", set_otlp_client_certificate,
	  "a path that begins with /, or none", "the certificate that the daemon shows",
	  "none", false, FIELD(otlp.client_certificate, CONFIG_TEXT), NULL },
	{ "otlp-client-key", 0, "FILE", set_otlp_client_key,
	  "a path that begins with /, or none", "the key of that certificate", "none", false,
	  FIELD(otlp.client_key, CONFIG_TEXT), NULL },
	{ "otlp-compression", 0, "KIND", set_otlp_compression, "gzip or none",
	  "how requests are compressed: gzip or none", "gzip", false,
	  FIELD(otlp.compression, CONFIG_TEXT), NULL },
	{ "otlp-timeout", 0, "SECONDS", set_otlp_timeout, "a time from 100ms to 24h, such as 10s",
	  "how long a request may take", "10s", false, FIELD(otlp.timeout_ns, CONFIG_NS), NULL },
	{ "otlp-interval", 0, "SECONDS", set_otlp_interval, "a time from 1s to 24h, such as 60s",
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
	{ "while-locked", 0, "FILE", set_while_locked, "a path",
	  "end when no process holds a lock (flock) on FILE", NULL, false,
	  CONFIG_FLAG, 0, 0, NULL },
	{ "check-config", 'C', NULL, set_check, NULL, "check the configuration, and exit",
	  NULL, false, CONFIG_FLAG, 0, 0, NULL },
	{ "print-config", 0, NULL, set_print, NULL, "print a configuration file with all defaults",
	  NULL, false, CONFIG_FLAG, 0, 0, NULL },
	{ "version", 'V', NULL, set_version, NULL, "print the version", NULL,
	  false, CONFIG_FLAG, 0, 0, NULL },
	{ "help", 'h', NULL, set_help, NULL, "print this", NULL, false, CONFIG_FLAG, 0, 0, NULL },
};

_Static_assert(sizeof(rows) / sizeof(rows[0]) <= CONFIG_ROWS, "room for one line number each");

const struct config_row *config_rows(size_t *n)
{
	*n = sizeof(rows) / sizeof(rows[0]);
	return rows;
}
