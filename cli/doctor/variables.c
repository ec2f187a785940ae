/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin's environment variables with their defaults and help, and how a process has set
 * them: read from /proc.
 */
#include "cli/doctor/variables.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nci/control.h"
#include "nci/segment.h"
#include "nci/variables.h"
#include "util/list.h"

/* Shown whether they are set or not; libnccl-profiler-insp(7) explains them. */
static const struct {
	const char *name, *fallback, *help;
} always[] = {
	{ "NCCL_PROFILER_PLUGIN", NULL, "insp, or the library's path: NCCL loads the plugin" },
	{ "NCCLINSP_LEVEL", "net", "what to record: off, ops, kernel, net or trace" },
	{ "NCCLINSP_KERNELS", NULL,
	  "when kernels are timed: burst, \"first 60s\", always or never; by default burst up to "
	  "NCCL 2.30, and first 60s from 2.31 on" },
	{ "NCCLINSP_SETTLE", "30", "seconds of activity until bursts begin" },
	{ "NCCLINSP_CONTROL", NCI_CONTROL_PATH, "the daemon's control file" },
	{ "NCCLINSP_SHM_DIR", NCI_SHM_DIR, "where the plugin writes" },
	{ "NCCL_PROFILE_EVENT_MASK", NULL, "a mask of event types, in place of the level" },
	{ "NCCL_DEBUG", NULL, "with INFO, the plugin says in NCCL's log what it does" },
	{ "NCCL_DEBUG_SUBSYS", NULL, "must have INIT or PROFILE in it, if it is set" },
};

/* Shown where they are set: what versions before 2 have read. */
static const char *const gone[] = { "NCCLINSP_SAMPLE", "NCCLINSP_BUDGET", "NCCLINSP_GRAPHS" };

/* Shown where they are set. */
static const char *const of_launchers[] = {
#define X(name) #name,
	NCI_JOB_VARIABLES(X)
#undef X
};

int variables_read_all(const char *proc, int64_t pid, json_t **all)
{
	char path[PATH_MAX], *entry = NULL;
	size_t room = 0;
	FILE *in;
	int r = 0;

	snprintf(path, sizeof(path), "%s/%" PRId64 "/environ", proc, pid);
	in = fopen(path, "re");
	if (!in)
		return -errno;
	*all = json_object();
	errno = 0;
	while (getdelim(&entry, &room, '\0', in) > 0) {
		char *value = strchr(entry, '=');

		if (!value)
			continue;
		*value++ = '\0';
		if (!json_object_get(*all, entry))	/* getenv() takes the first, too */
			json_object_set_new(*all, entry, json_string(value) ?: json_string("?"));
	}
	if (ferror(in))
		r = errno ? -errno : -EIO;
	free(entry);
	fclose(in);
	if (!r)
		return 0;
	json_decref(*all);
	*all = NULL;
	return r;
}

static void variables_add(json_t *rows, const char *name, const json_t *value, const char *fallback,
			  const char *help)
{
	json_array_append_new(rows, json_pack("{s:s, s:s?, s:s, s:s}", "name", name, "value",
					      value ? json_string_value(value) : fallback,
					      "source", value ? "environment" : "default",
					      "help", help));
}

static void variables_add_set(json_t *rows, const json_t *all, const char *const *names, size_t n,
			      const char *help)
{
	for (size_t i = 0; i < n; i++) {
		const json_t *value = json_object_get(all, names[i]);

		if (value)
			variables_add(rows, names[i], value, NULL, help);
	}
}

int variables_read(int64_t pid, json_t **rows)
{
	json_auto_t *all = NULL;
	int r = variables_read_all("/proc", pid, &all);

	if (r)
		return r == -ESRCH ? -ENOENT : r;
	*rows = json_array();
	for (size_t i = 0; i < ARRAY_LEN(always); i++) {
		const json_t *value = json_object_get(all, always[i].name);
		bool is_set = value && *json_string_value(value);

		/* An empty variable is not set, for the plugin. */
		variables_add(*rows, always[i].name, is_set ? value : NULL, always[i].fallback,
			      always[i].help);
	}
	variables_add_set(*rows, all, gone, ARRAY_LEN(gone),
			  "no longer read: use NCCLINSP_KERNELS");
	variables_add_set(*rows, all, of_launchers, ARRAY_LEN(of_launchers),
			  "describes the job; the plugin copies it");
	return 0;
}
