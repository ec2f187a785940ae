/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/config.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nci/segment.h"
#include "util/text.h"

#define STALL_LEAST_NS UINT64_C(100000000)
#define WINDOW_LEAST_NS UINT64_C(1000000000)	/* looked at once a second */
#define KEEP_NS (UINT64_C(10) * 60 * 1000000000)

static int complain(const char *what, const char *value)
{
	fprintf(stderr, "ncclinspd: %s: %s\n", what, value);
	return -EINVAL;
}

static int set_path(char path[PATH_MAX], const char *value, const char *what)
{
	if (!*value)
		return complain("needs a path", what);
	if (snprintf(path, PATH_MAX, "%s", value) >= PATH_MAX)
		return complain("path too long", what);
	return 0;
}

static int set_socket(struct config *c, const char *value)
{
	return set_path(c->socket, value, "--socket");
}

static int set_shm_dir(struct config *c, const char *value)
{
	return set_path(c->shm_dir, value, "--shm-dir");
}

static int set_state_dir(struct config *c, const char *value)
{
	return set_path(c->state_dir, value, "--state-dir");
}

static int set_foreground(struct config *c, const char *value)
{
	(void)value;
	c->foreground = true;
	return 0;
}

static int set_stall_min(struct config *c, const char *value)
{
	if (text_parse_duration(value, &c->stall_min_ns) || c->stall_min_ns < STALL_LEAST_NS)
		return complain("--stall-min is a time of 100ms or more, as 10s, not", value);
	return 0;
}

static int set_straggler_window(struct config *c, const char *value)
{
	if (text_parse_duration(value, &c->straggler_window_ns) ||
	    c->straggler_window_ns < WINDOW_LEAST_NS)
		return complain("--straggler-window is a time of 1s or more, as 60s, not", value);
	return 0;
}

static int set_log_level(struct config *c, const char *value)
{
	int level = log_parse_level(value);

	if (level < 0)
		return complain("--log-level is err, warn, info or debug, not", value);
	c->log_level = (enum log_level)level;
	return 0;
}

static int usage(struct config *c, const char *value);

static int version(struct config *c, const char *value)
{
	(void)c;
	(void)value;
	puts("ncclinspd " NCCLINSP_VERSION);
	return CONFIG_DONE;
}

static const struct {
	const char *name;
	char letter;
	const char *argument;
	int (*set)(struct config *, const char *);
	const char *help;
} options[] = {
	{ "socket", 'S', "PATH", set_socket, "where to listen" },
	{ "shm-dir", 'm', "DIR", set_shm_dir, "where jobs write, " NCI_SHM_DIR " by default" },
	{ "state-dir", 's', "DIR", set_state_dir, "where to keep the log and what must last" },
	{ "foreground", 'f', NULL, set_foreground, "stay in the foreground, log to stderr" },
	{ "stall-min", 't', "SECONDS", set_stall_min,
	  "the shortest time in flight that may be a stall (10)" },
	{ "straggler-window", 'w', "SECONDS", set_straggler_window,
	  "late ranks are judged over four of these (60)" },
	{ "log-level", 'l', "LEVEL", set_log_level, "err, warn, info (default) or debug" },
	{ "version", 'V', NULL, version, "print the version" },
	{ "help", 'h', NULL, usage, "print this" },
};

#define OPTIONS (sizeof(options) / sizeof(options[0]))

static int usage(struct config *c, const char *value)
{
	(void)value;
	puts("usage: ncclinspd [option...]\n"
	     "\nWatches the NCCL processes of this node and answers ncclinsp(1).\n");
	for (size_t i = 0; i < OPTIONS; i++)
		printf("  -%c, --%s %-*s %s\n", options[i].letter, options[i].name,
		       16 - (int)strlen(options[i].name),
		       options[i].argument ? options[i].argument : "", options[i].help);
	printf("\nHere: --socket %s\n      --shm-dir %s\n      --state-dir %s\n", c->socket,
	       c->shm_dir, c->state_dir);
	return CONFIG_DONE;
}

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	return value && *value == '/' ? value : NULL;
}

static void user_paths(struct config *c)
{
	const char *runtime = environment("XDG_RUNTIME_DIR");
	const char *state = environment("XDG_STATE_HOME");
	const char *home = environment("HOME");

	if (runtime)
		snprintf(c->socket, PATH_MAX, "%s/ncclinsp/ncclinspd.sock", runtime);
	if (state)
		snprintf(c->state_dir, PATH_MAX, "%s/ncclinsp", state);
	else if (home)
		snprintf(c->state_dir, PATH_MAX, "%s/.local/state/ncclinsp", home);
}

static void defaults(struct config *c)
{
	const char *socket = environment("NCCLINSP_SOCKET");
	const char *shm_dir = environment("NCCLINSP_SHM_DIR");

	*c = (struct config){
		.loop = getenv("NCCLINSP_LOOP"),
		.everybody = geteuid() == 0,
		.log_level = LOG_INFO,
		.max_segments = 256,
		.max_ended = 64,
		.keep_ns = KEEP_NS,
	};
	strcpy(c->shm_dir, NCI_SHM_DIR);
	if (geteuid() == 0) {
		strcpy(c->socket, "/run/ncclinsp/ncclinspd.sock");
		strcpy(c->state_dir, "/var/lib/ncclinsp");
	} else {
		user_paths(c);
	}
	if (socket)
		snprintf(c->socket, PATH_MAX, "%s", socket);
	if (shm_dir)
		snprintf(c->shm_dir, PATH_MAX, "%s", shm_dir);
}

static void for_getopt(struct option longs[OPTIONS + 1], char shorts[2 * OPTIONS + 1])
{
	size_t n = 0;

	memset(longs, 0, (OPTIONS + 1) * sizeof(longs[0]));
	for (size_t i = 0; i < OPTIONS; i++) {
		longs[i].name = options[i].name;
		longs[i].has_arg = options[i].argument ? required_argument : no_argument;
		longs[i].val = options[i].letter;
		shorts[n++] = options[i].letter;
		if (options[i].argument)
			shorts[n++] = ':';
	}
	shorts[n] = '\0';
}

static int apply(struct config *c, int letter)
{
	for (size_t i = 0; i < OPTIONS; i++)
		if (options[i].letter == letter)
			return options[i].set(c, optarg);
	fputs("try: ncclinspd --help\n", stderr);
	return -EINVAL;
}

int config_parse(struct config *c, int argc, char **argv)
{
	struct option longs[OPTIONS + 1];
	char shorts[2 * OPTIONS + 1];
	int letter, r = CONFIG_RUN;

	defaults(c);
	for_getopt(longs, shorts);
	optind = 1;
	while (r == CONFIG_RUN && (letter = getopt_long(argc, argv, shorts, longs, NULL)) >= 0)
		r = apply(c, letter);
	if (r != CONFIG_RUN)
		return r;
	if (optind < argc)
		return complain("takes no arguments", argv[optind]);
	if (!c->socket[0])
		return complain("where to listen?  XDG_RUNTIME_DIR is not set", "use --socket");
	if (!c->state_dir[0])
		return complain("where to keep state?  HOME is not set", "use --state-dir");
	return CONFIG_RUN;
}
