/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options, environment, file and defaults come together here, and are checked as a whole: at the
 * start, by --check, and each time the file is read anew.
 */
#include "ncclinspd/config/config.h"

#include <errno.h>
#include <getopt.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ncclinspd/around/kmsg.h"
#include "ncclinspd/config/config_file.h"
#include "ncclinspd/config/config_rows.h"
#include "ncclinspd/levels/burst.h"
#include "nci/segment.h"
#include "util/cleanup.h"
#include "util/meant.h"

#define KEEP_NS (UINT64_C(10) * 60 * 1000000000)
#define SNAPSHOT_NS (UINT64_C(60) * 1000000000)
#define FIRST_VALUE 256		/* getopt's value of the first long option: behind all letters */

/* ---- what is told -------------------------------------------------------------- */

static void config_tell(config_tell_fn *fn, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void config_tell(config_tell_fn *fn, const char *format, ...)
{
	char line[PATH_MAX + 512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fn(line);
}

static void config_print_help(const struct config *c)
{
	puts("usage: ncclinspd [option...]\n"
	     "\nWatches the NCCL processes of this node and answers ncclinsp(1).\n");
	for (const struct config_row *row = config_rows; row->name; row++) {
		char letter[] = { '-', row->letter, ',', '\0' }, text[64];

		snprintf(text, sizeof(text), "%s %s", row->name,
			 row->argument ? row->argument : "");
		printf("  %-3s --%-24s  %s", row->letter ? letter : "", text, row->help);
		printf(row->fallback ? " (%s)\n" : "\n", row->fallback);
	}
	printf("\nNow in force: --config %s\n              --socket %s\n"
	       "              --shm-dir %s\n              --state-dir %s\n"
	       "              --control %s\n", c->file, c->socket, c->shm_dir, c->state_dir,
	       c->control);
}

static void config_print(void)
{
	puts("# How ncclinspd works on this node; ncclinspd.conf(5) explains it.\n"
	     "#\n"
	     "# One NAME = VALUE on each line; a line that begins with # is a comment.\n"
	     "# The values in comments are the defaults.  After a change:\n"
	     "#     ncclinspd --check-config && systemctl reload ncclinspd");
	for (const struct config_row *row = config_rows; row->name; row++)
		if (row->fallback)
			printf("\n# %s%s\n#%s = %s\n", row->help,
			       row->live ? "" : " (needs a restart)", row->name, row->fallback);
}

static int config_answer(const struct config *c)
{
	if (c->question == CONFIG_HELP)
		config_print_help(c);
	else if (c->question == CONFIG_PRINT)
		config_print();
	else if (c->question == CONFIG_VERSION)
		puts("ncclinspd " NCCLINSP_VERSION);
	else if (c->file_read)
		printf("%s: good\n", c->file);
	else
		printf("%s: no such file: the defaults are in force\n",
		       c->file[0] ? c->file : CONFIG_NODE_FILE);
	return CONFIG_DONE;
}

/* ---- defaults and environment -------------------------------------------------- */

static const char *environment_get(const char *name)
{
	const char *value = getenv(name);

	return value && *value == '/' ? value : NULL;
}

static void config_user_paths(struct config *c)
{
	const char *runtime = environment_get("XDG_RUNTIME_DIR");
	const char *config = environment_get("XDG_CONFIG_HOME");
	const char *state = environment_get("XDG_STATE_HOME");
	const char *home = environment_get("HOME");

	if (runtime)
		snprintf(c->socket, PATH_MAX, "%s/ncclinsp/ncclinspd.sock", runtime);
	if (config)
		snprintf(c->file, PATH_MAX, "%s/ncclinsp/ncclinspd.conf", config);
	else if (home)
		snprintf(c->file, PATH_MAX, "%s/.config/ncclinsp/ncclinspd.conf", home);
	if (state)
		snprintf(c->state_dir, PATH_MAX, "%s/ncclinsp", state);
	else if (home)
		snprintf(c->state_dir, PATH_MAX, "%s/.local/state/ncclinsp", home);
}

/* Root may, and a daemon that was given that right only: such a daemon serves the node. */
static bool config_may_read_all(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return syscall(SYS_capget, &header, data) == 0 &&
	       data[0].effective & (UINT32_C(1) << CAP_DAC_READ_SEARCH);
}

static void config_defaults(struct config *c)
{
	*c = (struct config){
		.everybody = geteuid() == 0 || config_may_read_all(),
		.containers = true,
		.ras = true,
		.gpu_sensors = true,
		.nics = true,
		.kernel_log = KMSG_PATH,
		.auto_detail = true,
		.auto_thrift = true,
		.kernel_budget_ppm = BURST_BUDGET_PPM,
		.kernels = "job", .metrics_profile = "full",
		.otlp = { .compression = "gzip", .signals = "logs,traces,metrics" },
		.snapshot_interval_ns = SNAPSHOT_NS,
		.log_level = LOG_INFO,
		.max_segments = 1024,
		.max_ended = 64,
		.keep_ns = KEEP_NS,
	};
	strcpy(c->shm_dir, NCI_SHM_DIR);
	gethostname(c->node_name, sizeof(c->node_name) - 1);
	if (c->everybody) {
		strcpy(c->file, CONFIG_NODE_FILE);
		strcpy(c->socket, CONFIG_NODE_SOCKET);
		strcpy(c->state_dir, CONFIG_NODE_STATE);
	} else {
		config_user_paths(c);
	}
}

static void environment_take(struct config *c)
{
	for (const struct config_row *row = config_rows; row->name; row++) {
		const char *value = row->variable ? environment_get(row->variable) : NULL;

		if (value && row->set(c, row, value) == 0)
			c->origin[row - config_rows] = (struct config_origin){
				.source = CONFIG_FROM_ENVIRONMENT };
	}
}

/* The control file lies beside the socket, unless a path was given. */
static void control_place(struct config *c)
{
	char path[PATH_MAX + sizeof("control")];
	const char *slash = strrchr(c->socket, '/');
	int dir = slash ? (int)(slash + 1 - c->socket) : 0;

	snprintf(path, sizeof(path), "%.*scontrol", dir, c->socket);
	if (!c->control[0])
		config_set_path(c->control, path);
}

/* ---- the file ------------------------------------------------------------------- */

struct config_parser {
	struct config *config;
	config_tell_fn *tell;
	unsigned set_on[CONFIG_ROWS];	/* the line; 0: on none yet */
	unsigned wrong;
};

static const struct config_row *row_find(const char *name)
{
	for (const struct config_row *row = config_rows; row->name; row++)
		if (strcmp(row->name, name) == 0)
			return row;
	return NULL;
}

/* The name that was probably meant, or NULL. */
static const char *row_similar(const char *name)
{
	struct meant meant = { .wanted = name };

	for (const struct config_row *row = config_rows; row->name; row++)
		if (row->fallback)
			meant_offer(&meant, row->name);
	return meant.best;
}

static void row_tell_unknown(const struct config_parser *r, unsigned line, const char *name)
{
	const char *file = r->config->file, *meant = row_similar(name);

	if (meant)
		config_tell(r->tell, "%s:%u: unknown setting \"%s\"; is it %s?", file, line, name,
			    meant);
	else
		config_tell(r->tell, "%s:%u: unknown setting \"%s\"; ncclinspd.conf(5) lists all",
			    file, line, name);
}

static bool row_is_place(const struct config_row *row)
{
	return row->kind == CONFIG_DIR || row->kind == CONFIG_FILE || row->kind == CONFIG_SOCKET;
}

/* Relative to what, when a file says it?  True: nothing, or not a path of the daemon's. */
static bool row_place_is_clear(const struct config_parser *r, unsigned line,
			       const struct config_row *row, const char *value)
{
	const char *file = r->config->file, *comment = strstr(value, " #");
	bool is_default = !strcmp(value, row->fallback);

	if (!row_is_place(row) || !*value || is_default)
		return true;
	if (*value != '/')
		config_tell(r->tell, "%s:%u: %s must be a path that begins with /, not \"%s\"",
			    file, line, row->name, value);
	else if (comment)
		config_tell(r->tell, "%s:%u: a comment must have its own line, and cannot follow "
			    "\"%.*s\"", file, line, (int)(comment - value), value);
	return *value == '/' && !comment;
}

static bool reading_take_line(struct config_parser *r, unsigned line, const char *name,
			      const char *value)
{
	const struct config_row *row = row_find(name);
	const char *file = r->config->file;
	size_t at = row ? (size_t)(row - config_rows) : 0;

	if (!value)
		config_tell(r->tell, "%s:%u: a line must be NAME = VALUE, not \"%s\"", file, line,
			    name);
	else if (!row)
		row_tell_unknown(r, line, name);
	else if (!row->fallback)
		config_tell(r->tell, "%s:%u: %s is for the command line only", file, line, name);
	else if (r->set_on[at])
		config_tell(r->tell, "%s:%u: %s was already set on line %u", file, line, name,
			    r->set_on[at]);
	else if (!row_place_is_clear(r, line, row, value))
		return false;
	else if (row->set(r->config, row, value) < 0)
		config_tell(r->tell, "%s:%u: %s must be %s, not \"%s\"", file, line, name,
			    row->wants, value);
	else {
		r->set_on[at] = line;
		r->config->origin[at] = (struct config_origin){
			.source = CONFIG_FROM_FILE, .line = line };
		return true;
	}
	return false;
}

static void reading_on_line(void *arg, unsigned line, const char *name, const char *value)
{
	struct config_parser *r = arg;

	r->wrong += !reading_take_line(r, line, name, value);
}

/* A file's content, cut up on the way.  0; -EINVAL: told, and all else is taken. */
static int config_take_text(struct config *c, char *text, config_tell_fn *fn)
{
	struct config_parser r = { .config = c, .tell = fn };

	config_file_walk(text, reading_on_line, &r);
	return r.wrong ? -EINVAL : 0;
}

/* One that nobody has named need not be there. */
static int config_take_file(struct config *c, config_tell_fn *fn)
{
	CLEANUP(cleanup_freep) char *text = NULL;
	int r;

	if (!c->file[0])
		return 0;
	r = config_file_read(c->file, &text);
	if (r == -ENOENT && !c->file_named)
		return 0;
	if (r < 0) {
		config_tell(fn, "%s: %s", c->file, config_file_error(r));
		return -EINVAL;
	}
	c->file_read = true;
	return config_take_text(c, text, fn);
}

/* ---- the command line ------------------------------------------------------------ */

static void rows_for_getopt(struct option *longs, char *shorts)
{
	for (const struct config_row *row = config_rows; row->name; row++, longs++) {
		longs->name = row->name;
		longs->has_arg = row->argument ? required_argument : no_argument;
		longs->val = FIRST_VALUE + (int)(row - config_rows);
		if (!row->letter)
			continue;
		*shorts++ = row->letter;
		if (row->argument)
			*shorts++ = ':';
	}
}

static const struct config_row *row_of_option(int value)
{
	for (const struct config_row *row = config_rows; row->name; row++)
		if (value == FIRST_VALUE + (int)(row - config_rows) ||
		    (row->letter && value == row->letter))
			return row;
	return NULL;
}

/* Say more of an option that getopt has refused: it is unknown, or lacks its value. */
static void option_suggest(const char *option, config_tell_fn *fn)
{
	const char *name = option + strspn(option, "-"), *meant = row_similar(name);

	if (meant && strcmp(meant, name) != 0)
		config_tell(fn, "is it --%s?", meant);
	fn("try: ncclinspd --help");
}

static int config_take_arguments(struct config *c, int argc, char **argv, config_tell_fn *fn)
{
	struct option longs[CONFIG_ROWS + 1] = { 0 };
	char shorts[2 * CONFIG_ROWS + 1] = "";
	int value;

	rows_for_getopt(longs, shorts);
	optind = 0;		/* GNU: begin anew, also what it has inside */
	while ((value = getopt_long(argc, argv, shorts, longs, NULL)) >= 0) {
		const struct config_row *row = row_of_option(value);

		if (!row) {
			option_suggest(argv[optind - 1], fn);
			return -EINVAL;
		}
		if (row->set(c, row, optarg) < 0) {
			config_tell(fn, "--%s must be %s, not \"%s\"", row->name, row->wants,
				    optarg);
			return -EINVAL;
		}
		c->origin[row - config_rows] =
			(struct config_origin){ .source = CONFIG_FROM_OPTION };
	}
	if (optind < argc) {
		config_tell(fn, "unexpected argument \"%s\"; try: ncclinspd --help", argv[optind]);
		return -EINVAL;
	}
	return 0;
}

/* ---- what it comes to ------------------------------------------------------------- */

static const char *row_place(const struct config *c, const struct config_row *row)
{
	return row_is_place(row) ? (const char *)c + row->at : "";
}

static bool path_is_taken(const struct config_row *row, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	return row->kind == CONFIG_DIR ? !S_ISDIR(st.st_mode) :
	       row->kind == CONFIG_SOCKET ? !S_ISSOCK(st.st_mode) : !S_ISREG(st.st_mode);
}

/* Tell what would be found at the start only, if at all.  Returns how much is wrong. */
static unsigned place_check(const struct config *c, const struct config_row *row,
			    config_tell_fn *fn)
{
	const char *path = row_place(c, row);
	unsigned wrong = 0;

	for (const struct config_row *other = config_rows; *path && other < row; other++)
		if (!strcmp(row_place(c, other), path)) {
			config_tell(fn, "%s and %s are both \"%s\": each needs its own path",
				    other->name, row->name, path);
			wrong++;
		}
	if (*path && row->kind != CONFIG_DIR && path[strlen(path) - 1] == '/') {
		config_tell(fn, "%s must be a file, not the directory \"%s\"", row->name, path);
		wrong++;
	} else if (*path && c->question == CONFIG_CHECK && path_is_taken(row, path)) {
		config_tell(fn, "%s cannot be \"%s\": something else is there", row->name, path);
		wrong++;
	}
	return wrong;
}

static int config_check(const struct config *c, config_tell_fn *fn)
{
	unsigned wrong = 0;

	for (const struct config_row *row = config_rows; row->name; row++)
		wrong += place_check(c, row, fn);
	if (!c->socket[0]) {
		fn("no path for the socket, because XDG_RUNTIME_DIR is not set: use --socket, or "
		   "set NCCLINSP_SOCKET, for ncclinsp as well");
		wrong++;
	}
	if (!c->state_dir[0]) {
		fn("no path for the state directory, because HOME is not set: use --state-dir");
		wrong++;
	}
	return wrong ? -EINVAL : 0;
}

/* ---- from outside ------------------------------------------------------------------ */

/* The command line has the last word, and the first: it says which file is read. */
int config_parse(struct config *c, int argc, char **argv, config_tell_fn *fn)
{
	int r;

	config_defaults(c);
	r = config_take_arguments(c, argc, argv, fn);
	if (r == 0)
		r = config_take_file(c, fn);
	if (r < 0 && c->question != CONFIG_HELP)
		return r;
	environment_take(c);
	r = config_take_arguments(c, argc, argv, fn);
	if (r < 0)
		return r;
	control_place(c);
	if (c->question == CONFIG_NONE || c->question == CONFIG_CHECK)
		r = config_check(c, fn);
	if (r < 0)
		return r;
	return c->question == CONFIG_NONE ? CONFIG_RUN : config_answer(c);
}

void config_take_live(struct config *c, const struct config *next, config_tell_fn *fn)
{
	c->file_read = next->file_read;
	for (const struct config_row *row = config_rows; row->name; row++) {
		size_t i = (size_t)(row - config_rows);
		char *to = (char *)c + row->at;
		const char *from = (const char *)next + row->at;

		c->origin[i].pending = !row->live && memcmp(to, from, row->bytes) != 0;
		if (c->origin[i].pending) {
			config_tell(fn, "a change of %s needs a restart", row->name);
			continue;
		}
		memcpy(to, from, row->bytes);
		c->origin[i] = next->origin[i];
	}
}
