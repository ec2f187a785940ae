/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp config: what is in force at the daemon, or was told a process, and who said so. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/base/member.h"
#include "cli/common/listing.h"
#include "cli/doctor/variables.h"

static const struct column columns[] = {
#include "schema/config_columns.h"
};

/* The place where somebody would have to look to change it. */
static json_t *setting_from(const json_t *row, const char *file)
{
	const char *source = member_text(row, "source", "-");
	const char *name = member_text(row, "name", "-");
	const json_t *line = json_object_get(row, "line");

	if (json_is_integer(line) && file)
		return json_sprintf("%s:%lld", file, (long long)json_integer_value(line));
	if (!strcmp(source, "environment"))
		return json_string(member_text(row, "variable", NULL) ?: source);
	return !strcmp(source, "option") ? json_sprintf("--%s", name) : json_string(source);
}

/* The step until a change is in force: nothing in the file helps against an option. */
static const char *setting_change(const json_t *row)
{
	const char *source = member_text(row, "source", "");
	bool by_file = !strcmp(source, "file") || !strcmp(source, "default");

	if (member_true(row, "pending"))
		return "waits for a restart";
	return by_file && member_true(row, "reloads") ? "reload" : "restart";
}

/* Was the file written after the daemon read it?  Not known: null. */
static json_t *config_is_newer(const json_t *root)
{
	const char *file = member_text(root, "file", NULL);
	const json_t *read = json_object_get(root, "read_mono_ns");
	struct stat st;
	int64_t read_ns;

	if (!file || !json_is_integer(read) || stat(file, &st))
		return json_null();
	read_ns = cli_real_offset_ns() + json_integer_value(read);
	return json_boolean((int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec >
			    read_ns);
}

static int daemon_fetch(struct cli *cli, void *arg, json_t **root)
{
	int r = client_get(cli->client, "/v1/config", root);
	const char *file;

	if (r)
		return r;
	file = member_text(*root, "file", NULL);
	json_each(row, json_object_get(*root, "settings")) {
		json_object_set_new(row, "from", setting_from(row, file));
		json_object_set_new(row, "change", json_string(setting_change(row)));
	}
	json_object_set_new(*root, "file_newer", config_is_newer(*root));
	return 0;
}

/* The worst first: each hides that the next may be true. */
static bool daemon_note(const json_t *answer, char *text, size_t size)
{
	const char *why = member_text(answer, "refused_why", NULL);
	const char *file = member_text(answer, "file", "-");
	size_t pending = 0;

	json_each(row, json_object_get(answer, "settings"))
		pending += member_true(row, "pending");
	if (why)
		snprintf(text, size, "a newer configuration was refused, and the one before is in "
			 "force: %s; correct it, then: systemctl reload ncclinspd", why);
	else if (member_true(answer, "file_newer"))
		snprintf(text, size, "%s was changed after the daemon read it; to read it again: "
			 "ncclinspd --check-config && systemctl reload ncclinspd", file);
	else if (pending)
		snprintf(text, size, "%zu setting%s changed in %s and need%s a restart: systemctl "
			 "restart ncclinspd", pending, pending == 1 ? " was" : "s were", file,
			 pending == 1 ? "s" : "");
	return why || member_true(answer, "file_newer") || pending;
}

static bool process_note(const json_t *answer, char *text, size_t size)
{
	const json_t *rows = json_object_get(answer, "settings");
	const json_t *plugin = json_object_get(json_array_get(rows, 0), "value");

	snprintf(text, size, "%sthese are the values with which the process was started; changes "
		 "since then are not seen, and ncclinsp level shows what is in force",
		 json_is_string(plugin) ? "" : "NCCL_PROFILER_PLUGIN is not set, so NCCL loads no "
		 "plugin: start it with NCCL_PROFILER_PLUGIN=insp; ");
	return true;
}

static int process_fetch(struct cli *cli, void *arg, json_t **root)
{
	*root = json_incref(arg);
	json_each(row, json_object_get(*root, "settings"))
		json_object_set_new(row, "from", setting_from(row, NULL));
	return 0;
}

static int process_refuse(int64_t pid, int error)
{
	fprintf(stderr, "ncclinsp: the environment of process %lld cannot be read: %s; %s\n",
		(long long)pid, error == -ENOENT ? "no such process" : strerror(-error),
		error == -ENOENT ? "ncclinsp ps lists those that use NCCL; a container has its "
				   "own pids"
				 : "ask its user, or root");
	if (error == -ENOENT)
		return CLI_NOTHING;
	return error == -EACCES || error == -EPERM ? CLI_NO_RIGHT : CLI_FAILED;
}

static int process_show(struct cli *cli, int64_t pid)
{
	json_auto_t *root = NULL;
	json_t *rows;
	int r = variables_read(pid, &rows);

	if (r)
		return process_refuse(pid, r);
	root = json_pack("{s:I, s:o}", "pid", (json_int_t)pid, "settings", rows);
	return listing_run(cli, &(struct listing){
		.array = "settings", LISTING_COLUMNS(columns), .nothing = "no setting",
		.fetch = process_fetch, .arg = root, .note = process_note, .labelled = true,
	}, NULL);
}

int cmd_config(struct cli *cli)
{
	static const struct listing daemon = {
		.array = "settings", LISTING_COLUMNS(columns), .nothing = "no setting",
		.fetch = daemon_fetch, .note = daemon_note, .labelled = true,
	};
	int64_t pid = cli->pid;

	cli->pid = CLI_ANY;	/* it says whose settings, and filters no row */
	return pid == CLI_ANY ? listing_run(cli, &daemon, NULL) : process_show(cli, pid);
}
